/* DCQCN with all of it on the cores, as SwCC's prototype has it (ATC 2025, Table 3): it hears CNPs,
   data and timers. The program is asked before each packet, paces by LoopBack and counts octets
   itself; the receiver answers marked data with a CNP and keeps their distance by the clock. What
   it does not answer with an ACK, the NIC acknowledges. dcqcn.c leaves pacing, counting and marks
   to hardware and is the one to use; this one shows what they cost. */
#define TracedPkts (CNP | SEND_REQ | WRITE_REQ | READ_RESP | Open)

#define R_AI 40000u
#define R_HAI 200000u
#define R_MIN 40000u
#define F 5u
#define ONE (1u << 24)
#define BYTES 10000000
#define PERIOD 55000u
#define CNP_GAP 50000u
#define GAP_OF_16KIB 2048000000u /* ns for 16 KiB at 64 kb/s */
#define WAIT_MAX 819200u         /* ns for 4096 octets, the longest packet, at R_MIN */

enum { ALPHA, INCREASE, OCTETS }; /* timers */

typedef struct {
    int qpn;
    int opcode;
    int pktLength;
    int ecn;
} PktHeader;

typedef struct {
    Kbps link;   /* the link's rate */
    Kbps rate;   /* R_C */
    Kbps target; /* R_T */
    uint32_t alpha;
    uint32_t stage;      /* increases by the timer since the last cut */
    uint32_t byte_stage; /* increases by octets since then */
    uint32_t notified;   /* as receiver, when it sent the last CNP */
    uint32_t gap;        /* ns that 16 KiB take at that rate; 0: not paced */
    uint32_t next;       /* when the next packet may go */
    int left;            /* octets until the next increase by octets */
} QPContext;

/* SwCC's poll reads all of header and context into the Event (its Table 2; the public code has
   other calls for who wants less). Ours leaves out what a program does not use, so this one uses
   each word: to nothing, but it has been read. */
#define USED(a, b) __asm__ volatile("" : : "r"(a), "r"(b))
#define pollWhole(e)                                                                               \
    do {                                                                                           \
        pollEventSync(&(e));                                                                       \
        USED((e).packet.qpn, (e).packet.opcode);                                                   \
        USED((e).packet.pktLength, (e).packet.ecn);                                                \
        USED((e).context.link, (e).context.rate);                                                  \
        USED((e).context.target, (e).context.alpha);                                               \
        USED((e).context.stage, (e).context.byte_stage);                                           \
        USED((e).context.notified, (e).context.gap);                                               \
        USED((e).context.next, (e).context.left);                                                  \
    } while (0)

int send() {
    Event e;
    while (true) {
        pollWhole(e);
        uint32_t length = e.packet.pktLength, gap = e.context.gap, at = e.context.next;
        int left = e.context.left - (int)length;
        e.eventType = Send;
        if (gap) {
            /* It has come, unless it is at most the longest wait ahead: a clock of 32 bits goes
               round while a queue pair is idle. What today's gap says is no bound, for the rate
               may have risen since. */
            if (at - e.now - 1 < WAIT_MAX) {
                e.eventType = LoopBack;
            } else {
                if (left <= 0) { /* rates are the other core's */
                    left += BYTES;
                    armTimer(OCTETS, 100);
                }
                updateContext(e.context.next, e.now + mulShift(length, gap, 14));
                updateContext(e.context.left, left);
            }
        }
        postEvent(&e);
    }
}

/* What 16 KiB take at a rate. */
static uint32_t gap_of(uint32_t rate) {
    return GAP_OF_16KIB / most(rate >> 6, 1);
}

static uint32_t decayed(uint32_t alpha) {
    return (alpha * 255) >> 8;
}

/* How far the target rises: fast recovery, additive, hyper increase. */
static uint32_t step(uint32_t stage, uint32_t byte_stage) {
    if (most(stage, byte_stage) < F) return 0;
    return least(stage, byte_stage) > F ? R_HAI : R_AI;
}

int recv() {
    Event e;
    while (true) {
        pollWhole(e);
        e.eventType = Done;
        if (e.packet.opcode == CNP) {
            uint32_t rate = e.context.rate, alpha = e.context.alpha;
            updateContext(e.context.target, rate);
            rate -= ((uint64_t)rate * alpha) >> 25;
            updateContext(e.context.rate, most(rate, R_MIN));
            updateContext(e.context.alpha, decayed(alpha) + ONE / 256);
            updateContext(e.context.stage, 0);
            updateContext(e.context.byte_stage, 0);
            updateContext(e.context.left, BYTES);
            updateContext(e.context.gap, gap_of(e.context.rate));
            armPeriods(ALPHA, PERIOD);
            armTimer(INCREASE, PERIOD);
            cancelTimer(OCTETS);
        } else if (e.packet.opcode & (SEND_REQ | WRITE_REQ | READ_RESP)) {
            /* The clock of 32 bits goes round in 4.3 s: a CNP that is due just then waits for the
             * next mark. */
            if (e.packet.ecn && e.now - e.context.notified >= CNP_GAP) {
                updateContext(e.context.notified, e.now);
                updatePkt(e.packet.opcode, CNP);
                e.eventType = GenTxEvent;
            }
        } else if (e.packet.opcode == Timer && e.timer == ALPHA) {
            uint32_t alpha = e.context.alpha;
            for (uint32_t left = e.periods; left > 0; left--) alpha = decayed(alpha);
            updateContext(e.context.alpha, alpha);
            if (alpha == 0) cancelTimer(ALPHA);
        } else if (e.packet.opcode == Timer) { /* INCREASE, or OCTETS */
            if (e.timer == INCREASE) {
                updateContext(e.context.stage, e.context.stage + 1);
                armTimer(INCREASE, PERIOD);
            } else {
                updateContext(e.context.byte_stage, e.context.byte_stage + 1);
            }
            uint32_t before = e.context.rate, more = step(e.context.stage, e.context.byte_stage);
            updateContext(e.context.target, least(e.context.target + more, e.context.link));
            updateContext(e.context.rate, midpoint(before, e.context.target + 1));
            bool rests = e.context.rate == before && e.context.target == e.context.link;
            updateContext(e.context.gap, rests ? 0 : gap_of(e.context.rate));
            if (rests) cancelTimer(INCREASE);
        } else { /* Open */
            updateContext(e.context.link, e.rate);
            updateContext(e.context.rate, e.rate);
            updateContext(e.context.target, e.rate);
            updateContext(e.context.alpha, ONE);
            updateContext(e.context.left, BYTES);
            updateContext(e.context.notified, e.now - CNP_GAP);
        }
        postEvent(&e);
    }
}
