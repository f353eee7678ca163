/* Swift (Kumar et al., SIGCOMM 2020, Algorithm 1) with the values of csg-htsim's model: ai 1, beta
   0.8, max_mdf 0.5, a base of 20 us and 3.053 us for each hop, flow scaling of up to 100 us between
   windows of 0.1 and 100 packets. Windows are packets and fractions in 16.16, times are ns. It is
   the twin of the Rust law's preset `htsim`, bit for bit. The window grows by a packet for each
   window of octets acknowledged; only then, and when it is cut, is there a division and a root. */
#define TracedPkts (ACK | Loss | Open)

#define ONE (1u << 16)
#define OVERHEAD 82u /* octets of a packet's headers, preamble and gap */

/* Parameters: windows are packets and fractions in 16.16. */
Fraction ai = ONE, beta = 52429, max_mdf = ONE / 2, fs_min_cwnd = 6554, fs_max_cwnd = 100 * ONE;
Fraction min_cwnd = 655, max_cwnd = 1000 * ONE, first_cwnd = 12 * ONE;
Nanoseconds base_target = 20000, per_hop = 3053, fs_range = 100000;
Octets mss = 1024;
uint32_t retx_reset = 5, hops_untold = 1; /* where packets do not tell */
/* Flow scaling's alpha, with 12 fractional bits, and what it comes to at fs_max_cwnd. */
static uint32_t FS_ALPHA, FS_OFFSET;

typedef struct {
    int qpn, opcode, pktLength, ecn;
} PktHeader;

typedef struct {
    Kbps link; /* the link's rate */
    Fraction cwnd;
    Nanoseconds target;    /* the target delay of this window and these hops */
    uint32_t hops;         /* which it counts */
    Octets grown;          /* octets acknowledged since the window grew */
    uint32_t decreased_at; /* t_last_decrease */
    Nanoseconds rtt;       /* the last round trip */
    uint32_t timeouts;     /* retransmit_cnt: since the last acknowledgement */
} QPContext;

/* What is offered here may go: window and pacer have held it back. */
int send() {
    Event e;
    while (true) {
        pollEvent(&e);
        e.eventType = Send;
        postEvent(&e);
    }
}

/* The square root, from 16.16 to 12 fractional bits, rounded down; `value` is less than 256. */
static uint32_t root(uint32_t value) {
    uint32_t rest = value << 8, result = 0;
    for (uint32_t bit = 1u << 30; bit > 0; bit >>= 2) {
        if (rest >= result + bit) {
            rest -= result + bit;
            result += bit << 1;
        }
        result >>= 1;
    }
    return result;
}

/* Equations 1 to 4: base, hops, and what flow scaling adds. */
static uint32_t target_delay(uint32_t cwnd, uint32_t crossed) {
    uint32_t scaling = FS_ALPHA / most(root(least(cwnd, fs_max_cwnd)), 1);
    scaling = scaling > FS_OFFSET ? scaling - FS_OFFSET : 0;
    return base_target + per_hop * crossed + least(scaling, fs_range);
}

/* The window, or below one packet that and a packet in each rtt / cwnd. */
static void answer(uint32_t cwnd, uint32_t rtt, uint32_t link) {
    if (cwnd >= ONE) {
        setRate(UINT32_MAX);
        setWindow(mulShift(cwnd, mss, 16));
    } else {
        uint64_t bits = (mss + OVERHEAD) * 8 * (uint64_t)cwnd * 1000000;
        setRate(clamp(saturate(bits / most(rtt, 1) >> 16), 1, link));
        setWindow(mss);
    }
}

int recv() {
    Event e;
    require(within(beta, 1, ONE) && within(max_mdf, 1, ONE) && within(ai, 66, 60000 * ONE));
    require(within(first_cwnd, 66, 60000 * ONE) && within(max_cwnd, 66, 60000 * ONE));
    require(within(min_cwnd, 66, max_cwnd)); /* 66: a thousandth of a packet */
    require(within(fs_min_cwnd, 66, 255 * ONE) && within(fs_max_cwnd, 66, 255 * ONE));
    require(base_target <= 67000000 && fs_range <= 500000);
    require(per_hop <= 16000000); /* so that 255 of them and the base do not wrap */
    require(within(mss, 1, 4096) && within(retx_reset, 1, 255) && hops_untold <= 64);
    uint32_t low = most(root(least(fs_min_cwnd, fs_max_cwnd - 1)), 1),
             high = most(root(fs_max_cwnd), 2);
    FS_ALPHA = saturate((uint64_t)fs_range * low * high / most(high - low, 1));
    FS_OFFSET = FS_ALPHA / high;
    while (true) {
        pollEvent(&e);
        e.eventType = Done;
        uint32_t before = readContext(e.context.cwnd), cwnd = before;
        bool can_decrease =
            e.now - readContext(e.context.decreased_at) >= readContext(e.context.rtt);
        if (e.packet.opcode == Open) {
            updateContext(e.context.link, e.rate);
            updateContext(e.context.hops, hops_untold);
            cwnd = first_cwnd;
        } else if (e.packet.opcode == Loss) {
            uint32_t timeouts = addSaturating(readContext(e.context.timeouts), 1);
            updateContext(e.context.timeouts, e.timeout ? timeouts : 0);
            if (e.context.timeouts >= retx_reset) {
                cwnd = min_cwnd;
            } else if (can_decrease) {
                cwnd = mulShift(cwnd, ONE - max_mdf, 16);
            }
        } else if (e.sentKnown) {
            uint32_t delay = roundTrip(e.now, e.sent), crossed = e.hops > 0 ? e.hops : hops_untold;
            can_decrease = e.now - e.context.decreased_at >= delay;
            updateContext(e.context.timeouts, 0);
            updateContext(e.context.rtt, delay);
            if (crossed != readContext(e.context.hops)) {
                updateContext(e.context.hops, crossed);
                updateContext(e.context.target, target_delay(cwnd, crossed));
            }
            uint32_t target = readContext(e.context.target);
            if (delay < target) { /* grows once a window, or a packet, has been acknowledged */
                uint32_t window = mulShift(most(cwnd, ONE), mss, 16);
                uint32_t grown = addSaturating(readContext(e.context.grown), e.acked);
                bool grows = grown >= window;
                updateContext(e.context.grown, grows ? grown - window : grown);
                if (grows) cwnd = addSaturating(cwnd, ai);
            } else if (can_decrease) {
                uint32_t excess = mulShift(beta, ONE - ratio(target, delay), 16);
                cwnd = mulShift(cwnd, ONE - least(excess, max_mdf), 16);
            }
        } else if (e.acked > 0) { /* what was sent twice has no round trip, but it did arrive */
            updateContext(e.context.timeouts, 0);
        }
        if (cwnd != before) {
            cwnd = clamp(cwnd, min_cwnd, max_cwnd);
            updateContext(e.context.cwnd, cwnd);
            if (cwnd < before) {
                updateContext(e.context.decreased_at, e.now);
                updateContext(e.context.grown, 0);
            }
            updateContext(e.context.target, target_delay(cwnd, readContext(e.context.hops)));
            answer(cwnd, readContext(e.context.rtt), readContext(e.context.link));
        }
        postEvent(&e);
    }
}
