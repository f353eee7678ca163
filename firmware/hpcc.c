/* HPCC (Li et al., SIGCOMM 2019, Algorithm 1) with the values of its paper: eta 95 %, maxStage 5,
   W_AI 80 octets, T 13 us. Rates are kb/s on the wire; U and what octets last are 8.24, eta
   is 16.16. It is the twin of the Rust law's preset `sigcomm19`, bit for bit: instead of u it keeps
   tau times u, so that only W^c / U divides, and a gap beyond T. */
#define TracedPkts (ACK | Open)

uint32_t base_rtt = 13000, w_ai = 80, wmin = 80, max_stage = 5; /* parameters; T */
Fraction eta = 62259;
static uint32_t PER_T, OCTETS_OF_KBPS, KBPS_OF_OCTET; /* and what follows from T */
#define HOPS 5
#define UNIT (1u << 24)
#define FULL ((uint64_t)64 * UNIT) /* what is beyond 64 base round trips is 64 */

typedef struct {
    int qpn;
    int opcode;
    int pktLength;
    int ecn;
} PktHeader;

typedef struct {
    uint32_t at;       /* the switch's clock in ns */
    uint32_t tx_bytes; /* octets that it had sent by then */
    uint32_t queue;    /* octets queued */
    uint32_t rate;     /* the link's rate */
    uint32_t octet;    /* ns that an octet takes on it */
} Link;

typedef struct {
    uint32_t link;        /* the rate of the queue pair's own link */
    uint32_t window;      /* W */
    uint32_t reference;   /* W^c */
    uint32_t utilisation; /* U */
    uint32_t update_at;   /* lastUpdateSeq: the packet after which W^c moves */
    uint32_t stage;       /* incStage */
    uint32_t hop_count;
    Link links[HOPS];
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

/* What the link carries in T. */
static uint32_t window_max(uint32_t link) {
    return most(((uint64_t)link * OCTETS_OF_KBPS + (1u << 31)) >> 32, wmin);
}

/* W, and W / T unless that is the link's rate. */
static void answer(uint32_t window, uint32_t link) {
    uint32_t rate = most(saturate((uint64_t)window * KBPS_OF_OCTET >> 16), 1);
    setRate(rate < link - (link >> 12) ? rate : UINT32_MAX);
    setWindow(window);
}

/* Lines 3 to 8: tau times what is in flight on a link over B T, in ns. */
static uint64_t inflight(Link link, uint32_t gap, uint32_t tx_bytes, uint32_t queue) {
    uint32_t tau = least(gap, base_rtt);
    uint64_t busy = (uint64_t)(tx_bytes - link.tx_bytes) * link.octet;
    if (gap > base_rtt) busy = busy / gap * base_rtt;
    uint64_t waiting = (uint64_t)least(least(queue, link.queue), UNIT) * link.octet;
    waiting = (waiting >> 16) * PER_T >> 16;
    if (waiting > FULL) waiting = FULL;
    if (busy > FULL * tau) busy = FULL * tau;
    return waiting * tau + busy;
}

/* Lines 11 to 21: W^c / (U / eta), U in 16.16. */
static uint32_t divided(uint32_t reference, uint32_t utilisation) {
    return saturate((uint64_t)reference * ((eta << 15) / most(utilisation, 1 << 6)) >> 15);
}

int recv() {
    Event e;
    require(eta > 0 && eta <= 1 << 16);
    PER_T = constant(1, 32, base_rtt), OCTETS_OF_KBPS = constant(base_rtt, 32, 8000000);
    KBPS_OF_OCTET = constant(8000000, 16, base_rtt);
    while (true) {
        pollEvent(&e);
        e.eventType = Done;
        uint32_t hops = least(e.hops, HOPS), tau = 1;
        if (e.packet.opcode == Open) {
            updateContext(e.context.link, e.rate);
            updateContext(e.context.window, window_max(e.rate));
            updateContext(e.context.reference, e.context.window);
            updateContext(e.context.utilisation, UNIT);
            answer(e.context.window, e.rate);
        } else if (hops > 0) {
            bool known = readContext(e.context.hop_count) == hops;
            uint64_t fullest = 0;
#pragma GCC unroll 5
            for (uint32_t n = 0; n < HOPS; n++) { /* lines 2 to 9 */
                Link *link = &e.context.links[n];
                if (n == hops) break;
                if (n == 4) showHops(4);
                uint32_t at = hopWord(n, 0), tx_bytes = hopWord(n, 1), queue = hopWord(n, 2);
                if (known) {
                    uint32_t rate = hopWord(n, 3), gap = most(at - readContext(link->at), 1);
                    readContext(link->tx_bytes);
                    readContext(link->queue);
                    readContext(link->octet);
                    if (readContext(link->rate) != rate) { /* another link */
                        updateContext(link->rate, rate);
                        updateContext(link->octet, constant(8000000, 24, most(rate, 1)));
                    }
                    uint64_t octets = inflight(*link, gap, tx_bytes, queue);
                    if ((octets >> 8) * tau > (fullest >> 8) * least(gap, base_rtt)) {
                        fullest = octets;
                        tau = least(gap, base_rtt);
                    }
                }
                updateContext(link->at, at);
                updateContext(link->tx_bytes, tx_bytes);
                updateContext(link->queue, queue);
            }
            if (known) {
                /* line 10: U follows the fullest link by tau / T */
                uint64_t u = readContext(e.context.utilisation), share = (uint64_t)tau * PER_T;
                u -= share >> 32 ? u : u * (uint32_t)share >> 32;
                u += fullest * PER_T >> 32;
                updateContext(e.context.utilisation, u > FULL ? FULL : u);
                uint32_t link = readContext(e.context.link), stage = readContext(e.context.stage);
                uint32_t window = readContext(e.context.reference);
                bool divides = u >> 8 >= eta || stage >= max_stage;
                if (divides) window = divided(window, e.context.utilisation >> 8);
                window = clamp(addSaturating(window, w_ai), wmin, window_max(link));
                updateContext(e.context.window, window);
                if (passed(e.ackedSequence, readContext(e.context.update_at))) {
                    updateContext(e.context.reference, window);
                    updateContext(e.context.stage, divides ? 0 : stage + 1);
                    updateContext(e.context.update_at, e.nextSequence);
                }
                answer(window, link);
            } else { /* a new path: where its counters stand */
                updateContext(e.context.hop_count, hops);
                updateContext(e.context.update_at, e.nextSequence);
            }
        }
        postEvent(&e);
    }
}
