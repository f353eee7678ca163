/* DCQCN with all of it on the cores, as SwCC's prototype has it (ATC 2025): the program is asked before each packet and hears
   each one that arrives, paces by LoopBack, counts octets itself, and the receiver notifies in a word of the acknowledgement.
   dcqcn.c leaves pacing and counting to hardware and is the one to use; this one shows what they cost. */
#define TracedPkts (ACK | SEND_REQ | WRITE_REQ | READ_RESP | Open)

#define R_AI 40000u
#define R_HAI 200000u
#define R_MIN 40000u
#define F 5u
#define ONE (1u << 24)
#define BYTES 10000000
#define PERIOD 55000u
#define CNP_GAP 50000u
#define PACKET_MAX 4096u
#define GAP_OF_16KIB 2048000000u /* ns for 16 KiB at 64 kb/s */

enum { ALPHA, INCREASE, GAP }; /* timers */

typedef struct {
    int qpn;
    int opcode;
    int pktLength;
    int ecn;
    uint32_t congested; /* of an acknowledgement: the packet was marked */
} PktHeader;

typedef struct {
    uint32_t link;   /* the link's rate */
    uint32_t rate;   /* R_C */
    uint32_t target; /* R_T */
    uint32_t alpha;
    uint32_t stages; /* increases since the last cut: by the timer, and from bit 16 on by octets */
    uint32_t gap;    /* ns that 16 KiB take at that rate; 0: not paced */
    uint32_t next;   /* when the next packet may go */
    int left;        /* octets until the next increase by octets */
    uint32_t waiting; /* whether the last notification is less than the gap ago */
} QPContext;

int send() {
    Event e;
    while (true) {
        pollEventSync(&e);
        uint32_t length = e.packet.pktLength, gap = e.context.gap, at = e.context.next;
        e.eventType = Send;
        if (gap) {
            /* It has come, unless it is less than the longest packet's time ahead: a clock of 32 bits
               goes round while a queue pair is idle. */
            if (at - e.now - 1 < gap / (16384 / PACKET_MAX)) {
                e.eventType = LoopBack;
            } else {
                updateContext(e.context.next, e.now + mulShift(length, gap, 14));
                updateContext(e.context.left, e.context.left - (int)length);
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

/* Increases by the timer or by octets: fast recovery, additive, hyper increase. */
#define increase(e)                                                                                                    \
    do {                                                                                                               \
        uint32_t timer = (e).context.stages & 0xffff, octets = (e).context.stages >> 16, more = 0;                     \
        if (most(timer, octets) >= F) more = least(timer, octets) > F ? R_HAI : R_AI;                                  \
        updateContext((e).context.target, least((e).context.target + more, (e).context.link));                         \
        uint32_t before = (e).context.rate;                                                                            \
        updateContext((e).context.rate, midpoint(before, (e).context.target + 1));                                     \
        bool rests = (e).context.rate == before && (e).context.target == (e).context.link;                             \
        updateContext((e).context.gap, rests ? 0 : gap_of((e).context.rate));                                          \
        if (rests) cancelTimer(INCREASE);                                                                              \
    } while (0)

int recv() {
    Event e;
    while (true) {
        pollEventSync(&e);
        e.eventType = Done;
        if (e.packet.opcode == ACK) {
            if (e.packet.congested) {
                uint32_t rate = e.context.rate, alpha = e.context.alpha;
                updateContext(e.context.target, rate);
                rate -= ((uint64_t)rate * alpha) >> 25;
                updateContext(e.context.rate, most(rate, R_MIN));
                updateContext(e.context.alpha, decayed(alpha) + ONE / 256);
                updateContext(e.context.stages, 0);
                updateContext(e.context.left, BYTES);
                updateContext(e.context.gap, gap_of(e.context.rate));
                armPeriods(ALPHA, PERIOD);
                armTimer(INCREASE, PERIOD);
            } else if (e.context.left < 0) {
                updateContext(e.context.left, BYTES);
                updateContext(e.context.stages, e.context.stages + (1u << 16));
                increase(e);
            }
        } else if (e.packet.opcode == Timer && e.timer == INCREASE) {
            updateContext(e.context.stages, e.context.stages + 1);
            armTimer(INCREASE, PERIOD);
            increase(e);
        } else if (e.packet.opcode == Timer && e.timer == GAP) {
            updateContext(e.context.waiting, 0);
            cancelTimer(GAP);
        } else if (e.packet.opcode == Timer) {
            uint32_t alpha = e.context.alpha;
            for (uint32_t left = e.periods; left > 0; left--) alpha = decayed(alpha);
            updateContext(e.context.alpha, alpha);
        } else if (e.packet.opcode == Open) {
            updateContext(e.context.link, e.rate);
            updateContext(e.context.rate, e.rate);
            updateContext(e.context.target, e.rate);
            updateContext(e.context.alpha, ONE);
            updateContext(e.context.left, BYTES);
        } else { /* data */
            uint32_t congested = e.packet.ecn && !e.context.waiting;
            if (congested) {
                updateContext(e.context.waiting, 1);
                armPeriods(GAP, CNP_GAP);
            }
            updatePkt(e.packet.congested, congested);
            updatePkt(e.packet.opcode, ACK);
            e.eventType = GenTxEvent;
        }
        postEvent(&e);
    }
}
