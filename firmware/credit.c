/* Credit: a packet goes when the queue pair has credit for its payload, which the receiver returns
   with the acknowledgement. Of one queue pair there are never more octets in flight than the credit
   that it begins with, `context = { total_credit = "64KiB" }`, READ data that it answers among
   them. What is lost takes its credit with it: a recovery, which sends all that is in flight once
   more, begins with the whole of it, whatever of the first copies is still on its way. What a lost
   acknowledgement has returned is had from the octets that the next one acknowledges; of READ data,
   which no other does, when the READ is asked for again. */
#define TracedPkts (ACK | SEND_REQ | WRITE_REQ | READ_RESP | RNR | Loss | Open)

typedef struct {
    int qpn;
    int opcode;
    int pktLength;
    int ecn;
    uint32_t returned_credit;
} PktHeader;

typedef struct {
    Octets total_credit;
    Octets limit; /* what it began with */
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
        e.eventType = Done;
        if (e.packet.opcode == ACK) {
            uint32_t returned = most(e.packet.returned_credit, e.acked);
            uint32_t credit = addSaturating(e.context.total_credit, returned);
            updateContext(e.context.total_credit, least(credit, e.context.limit));
        } else if (e.packet.opcode == Open) {
            updateContext(e.context.limit, e.context.total_credit);
        } else if (e.packet.opcode & (Loss | RNR)) {
            updateContext(e.context.total_credit, e.context.limit);
        } else if (e.packet.opcode != Timer) {
            updatePkt(e.packet.returned_credit, e.packet.pktLength);
            updatePkt(e.packet.opcode, ACK);
            e.eventType = GenTxEvent;
        }
        postEvent(&e);
    }
}
