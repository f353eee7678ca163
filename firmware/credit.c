/* Credit: a packet goes when the queue pair has credit for its payload, which the receiver returns
   with the acknowledgement. Of one queue pair there are never more octets in flight than the credit
   that it begins with: `context = { total_credit = "64KiB" }`. */
#define TracedPkts (ACK | SEND_REQ | WRITE_REQ | READ_RESP)

typedef struct {
    int qpn;
    int opcode;
    int pktLength;
    int ecn;
    uint32_t returned_credit;
} PktHeader;

typedef struct {
    uint32_t total_credit;
} QPContext;

int send() {
    Event e;
    while (true) {
        pollEventSync(&e);
        uint32_t length = e.packet.pktLength;
        e.eventType = LoopBack;
        if (e.context.total_credit >= length) {
            updateContext(e.context.total_credit, e.context.total_credit - length);
            updatePkt(e.packet.returned_credit, 0);
            e.eventType = Send;
        }
        postEvent(&e);
    }
}

int recv() {
    Event e;
    while (true) {
        pollEventSync(&e);
        if (e.packet.opcode == ACK) {
            updateContext(e.context.total_credit,
                          addSaturating(e.context.total_credit, e.packet.returned_credit));
            e.eventType = Done;
        } else {
            updatePkt(e.packet.returned_credit, e.packet.pktLength);
            updatePkt(e.packet.opcode, ACK);
            e.eventType = GenTxEvent;
        }
        postEvent(&e);
    }
}
