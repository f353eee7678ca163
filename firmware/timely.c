/* TIMELY (Mittal et al., SIGCOMM 2015, Algorithm 1) with the values of its paper, and 0.875, 0.8
   and 20 us where that leaves them open: a completion event in each 64 KB. Rates are kb/s on the
   wire. The twin of the Rust law's `sigcomm15`, bit for bit. Only an event above t_high divides. */
#define TracedPkts (ACK | Open)

#define ONE (1u << 16)

/* Parameters, and what follows from them in 16.16; SLOPE is beta over the least round trip. */
uint32_t alpha_num = 7, alpha_den = 8, beta_num = 4, beta_den = 5, hai_after = 5;
uint32_t first_num = 1, first_den = 2;
Octets segment = 64000;
Nanoseconds t_low = 50000, t_high = 500000, min_rtt = 20000;
Kbps delta = 10000, hai = 50000, rmin = 10000;
static uint32_t ALPHA, BETA, SLOPE, FIRST;

typedef struct {
    int qpn, opcode, pktLength, ecn;
} PktHeader;

typedef struct {
    Kbps link; /* the link's rate */
    Kbps rate;
    Nanoseconds prev_rtt; /* 0 before the first completion event */
    int32_t rtt_diff;     /* in sixteenths of a nanosecond */
    uint32_t quiet;       /* completion events in a row whose gradient was not positive */
    Octets progress;      /* octets acknowledged since the last completion event */
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

/* Lines 1 to 3: the smoothed difference of round trips. */
static int32_t smoothed(int32_t old, int32_t difference) {
    return ((int64_t)(ONE - ALPHA) * old + (int64_t)(16 * ALPHA) * difference + ONE / 2) >> 16;
}

/* Lines 4 and 15: beta times the normalised gradient, which is positive; at most one. */
static uint32_t growth(int32_t rtt_diff) {
    uint64_t product = (uint64_t)(uint32_t)rtt_diff * SLOPE;
    return product >> 24 > ONE ? ONE : product >> 24;
}

/* Line 9: beta (1 - T_high / rtt). */
static uint32_t excess(uint32_t rtt) {
    return mulShift(BETA, ONE - ratio(t_high, rtt), 16);
}

/* Lines 5 to 15: the rate after a completion event. */
static uint32_t next_rate(uint32_t rate, uint32_t rtt, int32_t rtt_diff, uint32_t quiet) {
    if (rtt < t_low) return addSaturating(rate, delta);
    if (rtt > t_high) return rate - mulShift(rate, excess(rtt), 16);
    if (rtt_diff <= 0) return addSaturating(rate, quiet >= hai_after ? hai : delta);
    return rate - mulShift(rate, growth(rtt_diff), 16);
}

int recv() {
    Event e;
    require(within(alpha_num, 1, alpha_den) && within(beta_num, 1, beta_den));
    require(within(first_num, 1, first_den) && within(segment, 1, 1000000000));
    require(within(t_low, 100, 67000000) && within(t_high, 100, 67000000));
    require(within(min_rtt, 100, 67000000) && (uint64_t)beta_den * min_rtt <= UINT32_MAX);
    require(delta > 0 && hai > 0 && rmin > 0 && hai_after <= 255);
    ALPHA = fraction(alpha_num, alpha_den), BETA = fraction(beta_num, beta_den);
    SLOPE = constant(beta_num, 36, beta_den * min_rtt), FIRST = fraction(first_num, first_den);
    while (true) {
        pollEvent(&e);
        e.eventType = Done;
        if (e.packet.opcode == Open) {
            updateContext(e.context.link, e.rate);
            uint32_t rate = mulShift(e.rate, FIRST, 16);
            updateContext(e.context.rate, clamp(rate, least(rmin, e.rate), e.rate));
            setRate(readContext(e.context.rate));
        } else {
            uint32_t progress = addSaturating(readContext(e.context.progress), e.acked);
            bool completes = e.sentKnown && progress >= segment;
            updateContext(e.context.progress, completes ? 0 : progress);
            if (completes) {
                uint32_t before = readContext(e.context.prev_rtt), rtt = roundTrip(e.now, e.sent);
                updateContext(e.context.prev_rtt, rtt);
                if (before > 0) {
                    int32_t rtt_diff = smoothed(readContext(e.context.rtt_diff), rtt - before);
                    uint32_t quiet = addSaturating(readContext(e.context.quiet), 1);
                    uint32_t link = readContext(e.context.link);
                    updateContext(e.context.rtt_diff, rtt_diff);
                    updateContext(e.context.quiet, rtt_diff <= 0 ? quiet : 0);
                    uint32_t rate = readContext(e.context.rate);
                    rate = next_rate(rate, rtt, rtt_diff, e.context.quiet);
                    updateContext(e.context.rate, clamp(rate, least(rmin, link), link));
                }
                setRate(readContext(e.context.rate));
            }
        }
        postEvent(&e);
    }
}
