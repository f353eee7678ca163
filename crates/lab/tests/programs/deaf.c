#define TracedPkts 0

typedef struct {
    int qpn, opcode, pktLength, ecn;
} PktHeader;

typedef struct {
    uint32_t first;
} QPContext;

int recv() {
    Event e;
    while (true) {
        pollEventSync(&e);
        e.eventType = Done;
        postEvent(&e);
    }
}
