/* Packets of its own: each ACK is followed by a LAW_7, which the peer answers with a LAW_2, and that one with a LAW_3,
   which nobody listens for. Another class than LAW_7 is taken from the context, so nobody can know of it beforehand. */
#define TracedPkts (ACK | LAW_2 | LAW_7)

typedef struct {
    int qpn;
    int opcode;
    int pktLength;
    int ecn;
    uint32_t said;
} PktHeader;

typedef struct {
    uint32_t acks;
    uint32_t answers;
    uint32_t differ;
    uint32_t other;
} QPContext;

int recv() {
    Event e;
    while (true) {
        pollEventSync(&e);
        e.eventType = GenTxEvent;
        if (e.packet.opcode == ACK) {
            updateContext(e.context.acks, e.context.acks + 1);
            updatePkt(e.packet.said, e.context.acks);
            updatePkt(e.packet.opcode, LAW_7);
            if (e.context.other) updatePkt(e.packet.opcode, e.context.other);
        } else if (e.packet.opcode == LAW_7) {
            updatePkt(e.packet.said, e.packet.said ^ 0x5a5a);
            updatePkt(e.packet.opcode, LAW_2);
        } else if (e.packet.opcode == LAW_2) {
            updateContext(e.context.answers, e.context.answers + 1);
            if ((e.packet.said ^ 0x5a5a) != e.context.answers) updateContext(e.context.differ, e.context.differ + 1);
            updatePkt(e.packet.opcode, LAW_3);
        } else {
            e.eventType = Done;
        }
        postEvent(&e);
    }
}
