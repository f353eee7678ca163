/* A program that sets all there is at its opening. */
#define TracedPkts (ACK | Open)

typedef struct {
    int qpn;
    int opcode;
    int pktLength;
    int ecn;
} PktHeader;

typedef struct {
    uint32_t opened; /* when */
    int qpn;
} QPContext;

int recv() {
    Event e;
    while (true) {
        pollEventSync(&e);
        e.eventType = Done;
        if (e.packet.opcode == Open) {
            updateContext(e.context.opened, e.now);
            updateContext(e.context.qpn, e.packet.qpn);
            setRate(1000);
            setWindow(4096);
            setTokens(8192);
            setPriority(5);
            armTimer(0, 50000);
            armByteCounter(10000);
            tracePackets(CNP);
        }
        postEvent(&e);
    }
}
