/* Not refused: the receiver paces. Four packets go unasked; for each four that came, its timer lets four more go, by a
   packet of the law's own. Until that one comes nothing is in flight, and the sender has no timer. */
#define TracedPkts (LAW_0 | WRITE_REQ | Open)
Nanoseconds gap = 70000;

typedef struct {
    int qpn;
    int opcode;
    int pktLength;
    int ecn;
    uint32_t grant;
} PktHeader;

typedef struct {
    uint32_t credit;
    uint32_t came;
} QPContext;

int send() {
    Event e;
    while (true) {
        pollEventSync(&e);
        e.eventType = e.context.credit > 0 ? Send : LoopBack;
        if (e.context.credit > 0) updateContext(e.context.credit, e.context.credit - 1);
        updatePkt(e.packet.grant, 0);
        postEvent(&e);
    }
}

int recv() {
    Event e;
    while (true) {
        pollEventSync(&e);
        e.eventType = Done;
        if (e.packet.opcode == Open) {
            updateContext(e.context.credit, 4);
        } else if (e.packet.opcode == LAW_0) {
            updateContext(e.context.credit, e.context.credit + e.packet.grant);
        } else if (e.packet.opcode == WRITE_REQ) {
            updateContext(e.context.came, e.context.came + 1);
            if (e.context.came == 4) armTimer(0, gap);
        } else if (e.packet.opcode == Timer) {
            updatePkt(e.packet.grant, e.context.came);
            updateContext(e.context.came, 0);
            updatePkt(e.packet.opcode, LAW_0);
            e.eventType = GenTxEvent;
        }
        postEvent(&e);
    }
}
