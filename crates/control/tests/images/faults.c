/* What a program can do wrong, chosen by the length of the packet that it hears of. */
#define TracedPkts (ACK | WRITE_REQ | ByteCounter)

typedef struct {
    int qpn;
    int opcode;
    int pktLength;
    int ecn;
} PktHeader;

typedef struct {
    uint32_t before;
    int32_t heard;
    struct {
        uint32_t at, octets;
    } link[2];
} QPContext;

static uint32_t cell;

/* Chosen in the same way: what it answers, and with which timer. */
int send() {
    Event e;
    while (true) {
        pollEventSync(&e);
        if (e.packet.pktLength == 20) armTimer(0, 5000);
        if (e.packet.pktLength == 21) armPeriods(0, 5000);
        e.eventType = e.packet.pktLength == 22 ? LoopBack : Send;
        postEvent(&e);
    }
}

int recv() {
    Event e;
    while (true) {
        pollEventSync(&e);
        e.eventType = Done;
        if (e.packet.opcode == Timer) {
            updateContext(e.context.before, e.context.before + 1);
            postEvent(&e);
            continue;
        }
        updateContext(e.context.heard, e.context.heard + 1);
        switch (e.packet.pktLength) {
        case 1: /* a store to wherever the context says */
            *(volatile uint32_t *)e.context.link[0].at = 1;
            break;
        case 2: /* a loop that ends when the context says so */
            for (uint32_t i = 0; i != e.context.link[0].octets; i += 2) __asm__ volatile("");
            break;
        case 3: /* an answer that is none */
            e.eventType = 77;
            break;
        case 4: /* an answer of the other side */
            e.eventType = Send;
            break;
        case 5: /* no command */
            ROCI_DO(15, 1);
            break;
        case 6: /* a packet that is nobody's to ask for */
            updatePkt(e.packet.opcode, WRITE_REQ);
            e.eventType = GenTxEvent;
            break;
        case 7: /* what it did before is undone */
            setRate(1);
            armTimer(0, 1000);
            __builtin_trap();
        case 8: /* timers without end */
            armPeriods(0, 1);
            break;
        case 9: /* commands without end */
            for (;;) armByteCounter(1);
        case 11: /* timers too short, and not too short */
            armTimer(0, 1);
            break;
        case 12:
            armTimer(0, 200000000);
            break;
        case 13: /* other classes */
            tracePackets(CNP);
            break;
        case 14: /* all that a program can set */
            setRate(1000);
            setWindow(4096);
            setTokens(8192);
            setPriority(5);
            armTimer(0, 50000);
            armByteCounter(10000);
            tracePackets(ACK | CNP);
            break;
        case 10: /* a core's memory, not a queue pair's */
            updateContext(e.context.before, cell);
            cell = 5;
            break;
        }
        if (e.packet.opcode == WRITE_REQ && e.eventType == Done) {
            updatePkt(e.packet.opcode, ACK);
            e.eventType = GenTxEvent;
        }
        postEvent(&e);
    }
}
