/* A program with a credit of packets that an acknowledgement gives back and that a loss takes: what is sent again takes it too,
   and Loss is not heard. */
#define TracedPkts ACK

typedef struct {
    int qpn;
    int opcode;
    int pktLength;
    int ecn;
} PktHeader;

typedef struct {
    uint32_t credit;
} QPContext;

int send() {
    Event e;
    while (true) {
        pollEventSync(&e);
        e.eventType = LoopBack;
        if (e.context.credit) {
            updateContext(e.context.credit, e.context.credit - 1);
            e.eventType = Send;
        }
        postEvent(&e);
    }
}

int recv() {
    Event e;
    while (true) {
        pollEventSync(&e);
        if (e.packet.opcode == ACK) updateContext(e.context.credit, e.context.credit + 1);
        e.eventType = Done;
        postEvent(&e);
    }
}
