/* NAME: a law to begin with. It halves the rate when packets were marked, at most once in a round trip, and raises it by a
   step for each round trip without a mark. Replace what you like; docs/guide/programs.md tells what there is. */

/* The events that recv() hears: acknowledgements, and once Open, when the queue pair is made. */
#define TracedPkts (ACK | Open)

#define STEP 100000u     /* kb/s that the rate grows by in a round trip */
#define RATE_MIN 100000u /* kb/s that it never falls below */

/* The header of each packet: four words that all have, then up to 16 of your own, which travel to the peer. */
typedef struct {
    int qpn;
    int opcode;
    int pktLength;
    int ecn;
} PktHeader;

/* What is remembered of each queue pair: up to 32 words, zero at first. Each can be read and set by its name. */
typedef struct {
    uint32_t link;      /* the link's rate in kb/s */
    uint32_t rate;      /* ours */
    uint32_t round_end; /* the packet that ends this round trip */
    uint32_t marked;    /* whether one was marked in it */
} QPContext;

/* On the core for what is sent: may this packet go? Answer Send, or LoopBack to be asked again later. */
int send() {
    Event e;
    while (true) {
        pollEvent(&e);
        e.eventType = Send; /* the pacer has held it back for as long as the rate demands */
        postEvent(&e);
    }
}

/* On the core for what is received: answer Done, or GenTxEvent to send a packet. */
int recv() {
    Event e;
    while (true) {
        pollEventSync(&e); /* waits for an event; e has it, and the queue pair's context */
        e.eventType = Done;
        if (e.packet.opcode == Open) {
            updateContext(e.context.link, e.rate);
            updateContext(e.context.rate, e.rate);
        } else {
            if (e.packet.ecn) updateContext(e.context.marked, 1);
            if (passed(e.ackedSequence, e.context.round_end)) { /* a round trip is over */
                uint32_t rate = e.context.marked ? e.context.rate / 2 : addSaturating(e.context.rate, STEP);
                updateContext(e.context.rate, clamp(rate, RATE_MIN, e.context.link));
                updateContext(e.context.round_end, e.nextSequence);
                updateContext(e.context.marked, 0);
                setRate(e.context.rate); /* the link's rate or more is not paced */
            }
        }
        postEvent(&e);
    }
}
