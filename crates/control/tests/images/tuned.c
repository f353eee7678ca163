/* A program whose parameters decide what it hears and when, and one of which is a fraction. */
uint32_t hears_acks = 0, added = 1, tick = 0;
Fraction share = 1 << 15;

#define TracedPkts (CNP | (hears_acks ? ACK : 0))

typedef struct {
    int qpn;
    int opcode;
    int pktLength;
    int ecn;
} PktHeader;

typedef struct {
    uint32_t heard;
    Fraction part;
} QPContext;

int recv() {
    Event e;
    uint32_t twice = 2 * added; /* follows from a parameter */
    require(share > 0 && share <= 1 << 16);
    while (true) {
        pollEventSync(&e);
        updateContext(e.context.heard, e.context.heard + twice);
        updateContext(e.context.part, share);
        armTimer(0, tick); /* none */
        e.eventType = Done;
        postEvent(&e);
    }
}
