/* HPCC (Li et al., SIGCOMM 2019, Algorithm 1) with the values of its paper: eta 95 %, maxStage 5,
   W_AI 80 octets, T 13 us. Rates are kb/s on the wire; U and what octets last are 8.24, eta
   is 16.16. It is the twin of the Rust law's preset `sigcomm19`, bit for bit: instead of u it keeps
   tau times u, so that only W^c / U divides, and a gap beyond T, by 32 bits. */
#define TracedPkts (ACK | Open)

Nanoseconds base_rtt = 13000; /* parameters; T */
Octets w_ai = 80, wmin = 80;
uint32_t max_stage = 5;
Fraction eta = 62259;
static uint32_t PER_T, OCTETS_OF_KBPS, KBPS_OF_OCTET; /* and what follows from T */
#define HOPS 5
#define FULL (64 << 24) /* what is beyond 64 base round trips is 64 */

typedef struct {
    int qpn, opcode, pktLength, ecn;
} PktHeader;

typedef struct {
    uint32_t at;       /* the switch's clock in ns */
    uint32_t tx_bytes; /* octets that it had sent by then */
    uint32_t queue;    /* octets queued */
    uint32_t rate;     /* the link's rate */
    uint32_t octet;    /* ns that an octet takes on it */
} Link;

typedef struct {
    uint32_t link;          /* the rate of the queue pair's own link */
    uint32_t window;        /* W */
    uint32_t reference;     /* W^c */
    Fraction24 utilisation; /* U */
    uint32_t update_at;     /* lastUpdateSeq: the packet after which W^c moves */
    uint32_t stage;         /* incStage */
    uint32_t path;          /* by which switches the last ACK's telemetry came; 0: none did yet */
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

/* What an octet lasts on a link of so many kb/s, at most 4 Tb/s: ns in 8.24, from 16 bits. */
static uint32_t octet_of(uint32_t rate) {
    int shift = 16 - __builtin_clz(rate);
    uint32_t first = rate >> shift, whole = (8000000 << 8) / first;
    return most(((whole << 16) + ((8000000 << 8) % first << 16) / first) >> shift, 1 << 15);
}

/* What octets last on a link: ns in 24.8, at most 8 ms. */
static uint32_t lasts(uint32_t octets, uint32_t octet) {
    uint32_t high = mulHigh(octets, octet);
    return high >> 15 ? INT32_MAX : high << 16 | octets * octet >> 16;
}

/* T times what a link was used in a gap beyond it; nothing where an ACK overtook this one. */
static uint32_t slow(uint32_t sent, uint32_t octet, uint32_t gap) {
    uint32_t busy = gap >> 31 ? 0 : least(saturate((uint64_t)sent * octet >> 24), gap);
    int shift = gap >> 28 ? 16 : gap >> 24 ? 12 : gap >> 20 ? 8 : gap >> 16 ? 4 : 0;
    return mulShift((busy >> shift << 16) / (gap >> shift), base_rtt << 8, 16);
}

int recv() {
    Event e;
    require(within(eta, 1, 1 << 16) && within(base_rtt, 1000, 1000000));
    require(within(w_ai, 1, 1 << 30) && within(wmin, 1, 1 << 30) && max_stage <= 255);
    PER_T = UINT32_MAX / base_rtt, OCTETS_OF_KBPS = constant(base_rtt, 32, 8000000);
    KBPS_OF_OCTET = constant(8000000, 16, base_rtt);
    while (true) {
        pollEvent(&e);
        e.eventType = Done;
        uint32_t hops = least(e.hops, HOPS), tau = 1, fullest = 0;
        if (e.packet.opcode == Open) {
            updateContext(e.context.link, e.rate);
            updateContext(e.context.window, window_max(e.rate));
            updateContext(e.context.reference, e.context.window);
            updateContext(e.context.utilisation, 1 << 24);
            answer(e.context.window, e.rate);
        } else if (hops > 0) {
            const uint32_t T = base_rtt, per_t = PER_T;
            bool known = __builtin_expect(readContext(e.context.path) == e.path, 1);
#pragma GCC unroll 5
            for (uint32_t n = 0; n < HOPS; n++) { /* lines 2 to 9, in flight: tau u */
                Link *link = &e.context.links[n];
                if (n == hops) break;
                if (n == 4) showHops(4);
                uint32_t at = hopWord(n, 0), tx_bytes = hopWord(n, 1), queue = hopWord(n, 2);
                if (known) {
                    uint32_t rate = hopWord(n, 3), octet = readContext(link->octet);
                    if (__builtin_expect(readContext(link->rate) != rate, 0)) { /* another link */
                        updateContext(link->rate, rate);
                        updateContext(link->octet, octet = octet_of(most(rate, 1 << 16)));
                    }
                    uint32_t gap = at - readContext(link->at), time = least(gap += gap == 0, T);
                    uint32_t sent = tx_bytes - readContext(link->tx_bytes);
                    uint32_t waits = mulHigh(least(queue, readContext(link->queue)), time * per_t);
                    uint32_t inflight = gap > T ? slow(sent, octet, gap) : 0;
                    inflight += lasts(addSaturating(gap > T ? 0 : sent, waits), octet);
                    bool fuller = (uint64_t)inflight * tau > (uint64_t)fullest * time;
                    if (fuller) fullest = inflight, tau = time;
                }
                updateContext(link->at, at);
                updateContext(link->tx_bytes, tx_bytes);
                updateContext(link->queue, queue);
            }
            if (known) { /* line 10: U follows the fullest link by tau / T */
                uint32_t u = readContext(e.context.utilisation);
                u = saturate((u - mulHigh(u, tau * per_t)) + ((uint64_t)fullest * per_t >> 16));
                updateContext(e.context.utilisation, u = least(u, FULL));
                uint32_t link = readContext(e.context.link), stage = readContext(e.context.stage);
                uint32_t window = readContext(e.context.reference);
                bool divides = u >> 8 >= eta || stage >= max_stage; /* lines 11 to 21 */
                if (divides)
                    window = saturate((uint64_t)window * ((eta << 15) / most(u >> 8, 64)) >> 15);
                window = clamp(addSaturating(window, w_ai), wmin, window_max(link));
                updateContext(e.context.window, window);
                if (passed(e.ackedSequence, readContext(e.context.update_at))) {
                    updateContext(e.context.reference, window);
                    updateContext(e.context.stage, divides ? 0 : stage + 1);
                    updateContext(e.context.update_at, e.nextSequence);
                }
                answer(window, link);
            } else { /* a new path: where its counters stand */
                if (readContext(e.context.path) == 0)
                    updateContext(e.context.update_at, e.nextSequence);
                updateContext(e.context.path, e.path);
            }
        }
        postEvent(&e);
    }
}
