/* A program that lets nothing go, by LoopBack or, as `tokenless` says, for want of tokens, and arms a timer again and
   again. */
#define TracedPkts Open

typedef struct {
    int qpn;
    int opcode;
    int pktLength;
    int ecn;
} PktHeader;

typedef struct {
    Nanoseconds period;
    uint32_t tokenless;
} QPContext;

int send() {
    Event e;
    while (true) {
        pollEventSync(&e);
        e.eventType = LoopBack;
        postEvent(&e);
    }
}

int recv() {
    Event e;
    while (true) {
        pollEventSync(&e);
        if (e.context.tokenless && e.packet.opcode == Open) setTokens(0);
        armTimer(0, e.context.period);
        e.eventType = Done;
        postEvent(&e);
    }
}
