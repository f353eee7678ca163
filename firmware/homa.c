/* Homa (Montazeri et al., SIGCOMM 2018, section 3) with the values of the Linux module. The first
   `unscheduled` octets of a message go at once, at a priority that its length decides, all others
   as the receiver grants them. At the receiver the port's agent says whose turn it is and by which
   priority; how far that message is granted, and how octets are asked for again, is said here.
   It is the twin of the Rust law with its defaults, bit for bit. */
#define TracedPkts (Message | GRANT | RESEND | Turn | Open)

Octets unscheduled = 40000; /* parameters */
Octets ahead = 0; /* how far grants run ahead of what has come; 0: as far as `unscheduled` */
Octets cutoff_1 = 200, cutoff_2 = 2800, cutoff_3 = 15000; /* lengths of messages */
Nanoseconds patience = 7000000; /* longer than the receiver goes on asking for octets again */
#define PACKET_MAX 4096u

typedef struct {
    int qpn, opcode, pktLength, ecn;
} PktHeader;

typedef struct {
    uint32_t message;
    Octets length;
    Octets granted; /* octets from its start that may be sent */
} QPContext;

/* What is offered here may go: it has its tokens. */
int send() {
    Event e;
    while (true) {
        pollEvent(&e);
        e.eventType = Send;
        postEvent(&e);
    }
}

/* The priority of the unscheduled octets of a message: the shortest first (section 3.4). */
static uint32_t unscheduled_priority(uint32_t length) {
    return 7 - (length > cutoff_1) - (length > cutoff_2) - (length > cutoff_3);
}

int recv() {
    Event e;
    require(within(unscheduled, 1, 2000000000) && ahead <= 2000000000);
    require(within(cutoff_1, 1, 2000000000) && within(cutoff_2, 1, 2000000000));
    require(within(cutoff_3, 1, 2000000000) && within(patience, 100, (1 << 28) - 1));
    const uint32_t window = ahead ? ahead : unscheduled;
    while (true) {
        pollEvent(&e);
        e.eventType = Done;
        uint32_t message = headerWord(0), length = headerWord(1), end = headerWord(3);
        bool counts = true;
        if (e.packet.opcode == Message) {
            updateContext(e.context.message, message);
            updateContext(e.context.length, length);
            updateContext(e.context.granted, least(length, unscheduled));
            setTokens(e.context.granted);
            setPriority(unscheduled_priority(length));
        } else if (e.packet.opcode == Turn) { /* of a message that comes in */
            updatePkt(e.packet.opcode, e.timeout ? RESEND : GRANT);
            if (e.timeout) setHeaderWord(4, least(headerWord(4), unscheduled_priority(length)));
            if (!e.timeout) setHeaderWord(3, least(addSaturating(headerWord(2), window), length));
            e.eventType = GenTxEvent;
            counts = false;
        } else if (e.packet.opcode == Open) {
            setTokens(0); /* until its first message begins */
            counts = false;
        } else {
            loadContext(&e);
            length = e.context.length;
            uint32_t granted = e.context.granted, tokens = e.tokens;
            bool more = true;
            if (e.packet.opcode == Timer) { /* the granter has forgotten: a packet finds out */
                end = addSaturating(granted, PACKET_MAX);
            } else { /* a RESEND of octets not yet granted stands for a grant that was lost */
                more = message == e.context.message && end > granted;
                if (more) setPriority(least(headerWord(4), 7));
                /* a GRANT of nothing new tells that the granter knows of the message */
                counts = more || (message == e.context.message && e.packet.opcode == GRANT);
            }
            if (more) {
                updateContext(e.context.granted, most(least(end, length), granted));
                tokens = least(addSaturating(tokens, e.context.granted - granted), UINT32_MAX - 1);
                setTokens(tokens);
            }
            /* What may go and has not waits for shorter messages: it is not lost (section 3.7). */
            if (e.packet.opcode == RESEND && message == e.context.message && tokens > 0) {
                updatePkt(e.packet.opcode, BUSY);
                e.eventType = GenTxEvent;
            }
        }
        if (counts) armTimer(0, e.context.granted < length ? patience : 0);
        postEvent(&e);
    }
}
