/* Holds hardware time of the CC header against what the NIC knows by itself, and has the receiver tell how long data took. */
#define TracedPkts (ACK | WRITE_REQ)

typedef struct {
    int qpn, opcode, pktLength, ecn;
    uint32_t delay; /* of the data that an ACK is about, ns */
} PktHeader;

typedef struct {
    uint32_t heard, differ, delay;
} QPContext;

int recv() {
    Event e;
    while (true) {
        pollEventSync(&e);
        e.eventType = Done;
        if (e.packet.opcode == ACK) {
            if (e.stamped && e.sentKnown) {
                updateContext(e.context.heard, e.context.heard + 1);
                if (e.echoed != e.sent) updateContext(e.context.differ, e.context.differ + 1);
            }
            updateContext(e.context.delay, e.packet.delay);
        } else if (e.stamped) {
            updatePkt(e.packet.delay, e.now - e.peerSent);
            updatePkt(e.packet.opcode, ACK);
            e.eventType = GenTxEvent;
        }
        postEvent(&e);
    }
}
