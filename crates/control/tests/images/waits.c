/* A program that lets each packet wait for a timer that it arms when it is asked. */
#define TracedPkts 0

typedef struct {
    int qpn;
    int opcode;
    int pktLength;
    int ecn;
} PktHeader;

typedef struct {
    uint32_t ready;
    uint32_t armed;
} QPContext;

int send() {
    Event e;
    while (true) {
        pollEventSync(&e);
        e.eventType = e.context.ready ? Send : LoopBack;
        if (e.context.ready) {
            updateContext(e.context.ready, 0);
        } else if (!e.context.armed) {
            updateContext(e.context.armed, 1);
            armTimer(2, 10000);
        }
        postEvent(&e);
    }
}

int recv() {
    Event e;
    while (true) {
        pollEventSync(&e);
        updateContext(e.context.ready, 1);
        updateContext(e.context.armed, 0);
        e.eventType = Done;
        postEvent(&e);
    }
}
