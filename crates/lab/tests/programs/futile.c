#define TracedPkts (ACK | CNP | Open | 1 << 13)

typedef struct {
    int qpn, opcode, pktLength, ecn;
} PktHeader;

typedef struct {
    uint32_t first;
} QPContext;

uint32_t period = 1000;
static uint32_t seen[4], total;

int send() {
    Event e;
    while (true) {
        pollEventSync(&e);
        e.eventType = LoopBack;
        postEvent(&e); /* warned of: no packet goes */
    }
}

int recv() {
    Event e;
    while (true) {
        pollEventSync(&e);
        seen[e.now & 3]++;
        total += e.acked;
        updateContext(e.context.first, *(volatile uint32_t *)(uintptr_t)e.packet.pktLength); /* warned of: may miss */
        if (e.packet.opcode == Open) {
            require(period > 5);                      /* warned of: too late */
            ROCI_SET(ROCI_COMMAND, 0xd0000001u); /* warned of: no command */
            e.eventType = Done;
            postEvent(&e);
        } else if (e.packet.opcode == CNP) {
            updatePkt(e.packet.opcode, Timer); /* warned of: no packet */
            e.eventType = GenTxEvent;
            postEvent(&e);
        } else {
            e.eventType = GenTxEvent;
            postEvent(&e); /* warned of: which packet */
        }
    }
}
