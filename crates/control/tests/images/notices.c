/* Asks for a packet at each of its timers, and at each WRITE. */
#define TracedPkts (WRITE_REQ | ACK)

typedef struct {
    int qpn;
    int opcode;
    int pktLength;
    int ecn;
} PktHeader;

typedef struct {
    uint32_t asked;
} QPContext;

int recv() {
    Event e;
    while (true) {
        pollEventSync(&e);
        e.eventType = GenTxEvent;
        if (e.packet.opcode == ACK) { /* arms */
            armTimer(0, 1000);
            armTimer(1, 1000);
            armPeriods(2, 500);
            e.eventType = Done;
        } else {
            if (e.packet.opcode == Timer && e.timer == 2) cancelTimer(2);
            updateContext(e.context.asked, e.context.asked + 1);
            updatePkt(e.packet.opcode, e.packet.opcode == Timer ? CNP : ACK);
        }
        postEvent(&e);
    }
}
