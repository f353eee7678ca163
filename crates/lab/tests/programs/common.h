/* What the bad programs beside this file have in common: they are right but for one line, which says so. */
#define TracedPkts (ACK)

typedef struct {
    int qpn;
    int opcode;
    int pktLength;
    int ecn;
} PktHeader;

typedef struct {
    uint32_t first, second;
} QPContext;
