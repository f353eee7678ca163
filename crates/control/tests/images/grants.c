/* Asks for grants, which its layout has only where it is Homa's, and of which it does not want to hear. */
#define TracedPkts ACK

typedef struct {
    int qpn;
    int opcode;
    int pktLength;
    int ecn;
} PktHeader;

typedef struct {
    uint32_t none;
} QPContext;

int recv() {
    Event e;
    while (true) {
        pollEventSync(&e);
        updatePkt(e.packet.opcode, GRANT);
        e.eventType = GenTxEvent;
        postEvent(&e);
    }
}
