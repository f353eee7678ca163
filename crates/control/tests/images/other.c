/* A program with some words of `faults.c` in other places. */
#define TracedPkts (ACK | CNP | Open)

typedef struct {
    int qpn;
    int opcode;
    int pktLength;
    int ecn;
} PktHeader;

typedef struct {
    uint32_t opened;
    uint32_t before;
    int32_t heard;
} QPContext;

int recv() {
    Event e;
    while (true) {
        pollEventSync(&e);
        if (e.packet.opcode == Open) {
            if (e.context.heard == 13) *(volatile uint32_t *)e.context.before = 1;
            updateContext(e.context.opened, 1);
        } else {
            updateContext(e.context.heard, e.context.heard + 100);
        }
        e.eventType = Done;
        postEvent(&e);
    }
}
