/* DCQCN (Zhu et al., SIGCOMM 2015) with the values of its paper: alpha and increase timer 55 us,
   CNPs at least 50 us apart, 10 MB, F = 5, R_AI 40 Mb/s, g = 1/256. Rates are kb/s on the wire,
   alpha has 24 bits. It is the twin of the Rust law's preset `sigcomm15`, bit for bit. A queue pair
   without congestion has no timer and costs nothing. */
#define TracedPkts (CNP | CE | ByteCounter | Open)

#define ONE (1u << 24)

Kbps rai = 40000, rhai = 200000, rmin = 40000; /* parameters */
Nanoseconds alpha_timer = 55000, increase_timer = 55000, cnp_gap = 50000;
Octets byte_counter = 10000000;
uint32_t threshold = 5; /* stages */
Fraction24 g = ONE / 256;

enum { ALPHA, INCREASE, GAP }; /* timers */

/* Flags: there has been a CNP, and with it an alpha; the rate still rises; the last CNP sent is
   less than the gap ago. */
enum { ESTIMATING = 1, INCREASING = 2, WAITING = 4 };

typedef struct {
    int qpn, opcode, pktLength, ecn;
} PktHeader;

typedef struct {
    Kbps link;   /* the link's rate */
    Kbps rate;   /* R_C */
    Kbps target; /* R_T */
    Fraction24 alpha;
    uint32_t stage;      /* increases by the timer since the last cut */
    uint32_t byte_stage; /* increases by the byte counter since then */
    uint32_t flags;
} QPContext;

/* What is offered here may go: the pacer has held it back for as long as the rate demands. */
int send() {
    Event e;
    while (true) {
        pollEvent(&e);
        e.eventType = Send;
        postEvent(&e);
    }
}

/* (1 - g) alpha, equation 2. */
static uint32_t decayed(uint32_t alpha) {
    return mulHigh(alpha, (ONE - g) << 8);
}

/* How far the target rises at these stages, equations 3 and 4: fast recovery, additive, hyper
 * increase. */
static uint32_t step(uint32_t stage, uint32_t byte_stage) {
    if (most(stage, byte_stage) < threshold) return 0;
    return least(stage, byte_stage) > threshold ? rhai : rai;
}

int recv() {
    Event e;
    require(rai > 0 && rhai > 0 && rmin > 0);
    require(within(g, 1, ONE));
    require(within(threshold, 1, 255));
    require(within(byte_counter, 1, (1 << 28) - 1));
    require(within(alpha_timer, 100, (1 << 28) - 1));
    require(within(increase_timer, 100, (1 << 28) - 1));
    require(within(cnp_gap, 100, (1 << 28) - 1));
    while (true) {
        pollEvent(&e);
        e.eventType = Done;
        if (e.packet.opcode == CE) {
            uint32_t flags = readContext(e.context.flags);
            if (!(flags & WAITING)) {
                updateContext(e.context.flags, flags | WAITING);
                armPeriods(GAP, cnp_gap);
                updatePkt(e.packet.opcode, CNP);
                e.eventType = GenTxEvent;
            }
        } else if (e.packet.opcode == CNP) { /* equation 1 */
            uint32_t rate = readContext(e.context.rate),
                     low = least(rmin, readContext(e.context.link));
            uint32_t flags = readContext(e.context.flags);
            uint32_t alpha = flags & ESTIMATING ? readContext(e.context.alpha) : ONE;
            updateContext(e.context.target, rate);
            rate -= ((uint64_t)rate * alpha + ONE) >> 25;
            updateContext(e.context.rate, most(rate, low));
            updateContext(e.context.alpha, decayed(alpha) + g);
            updateContext(e.context.stage, 0);
            updateContext(e.context.byte_stage, 0);
            updateContext(e.context.flags, flags | ESTIMATING | INCREASING);
            armPeriods(ALPHA, alpha_timer);
            armTimer(INCREASE, increase_timer);
            armByteCounter(byte_counter);
            setRate(e.context.rate);
        } else if (e.packet.opcode == Open) {
            updateContext(e.context.link, e.rate);
            updateContext(e.context.rate, e.rate);
            updateContext(e.context.target, e.rate);
        } else if (e.packet.opcode == Timer && e.timer == ALPHA) {
            uint32_t alpha = readContext(e.context.alpha);
            for (uint32_t left = e.periods; left > 0; left--) alpha = decayed(alpha);
            updateContext(e.context.alpha, alpha);
            if (alpha == 0) cancelTimer(ALPHA);
        } else if (e.packet.opcode == Timer && e.timer == GAP) {
            updateContext(e.context.flags, readContext(e.context.flags) & ~WAITING);
            cancelTimer(GAP);
        } else if (readContext(e.context.flags) &
                   INCREASING) { /* timer INCREASE, or the byte counter */
            loadContext(&e);
            if (e.packet.opcode == Timer) {
                updateContext(e.context.stage, least(e.context.stage + 1, 0xffff));
                armTimer(INCREASE, increase_timer);
            } else {
                updateContext(e.context.byte_stage, least(e.context.byte_stage + 1, 0xffff));
                armByteCounter(byte_counter);
            }
            uint32_t before = e.context.rate, more = step(e.context.stage, e.context.byte_stage);
            updateContext(e.context.target,
                          least(addSaturating(e.context.target, more), e.context.link));
            updateContext(e.context.rate, midpoint(before, addSaturating(e.context.target, 1)));
            if (e.context.target == e.context.link &&
                e.context.rate == before) { /* at rest until the next CNP */
                updateContext(e.context.flags, e.context.flags & ~INCREASING);
                cancelTimer(INCREASE);
                armByteCounter(0);
            }
            setRate(e.context.rate);
        }
        postEvent(&e);
    }
}
