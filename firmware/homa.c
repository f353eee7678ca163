/* Homa's sender (Montazeri et al., SIGCOMM 2018, section 3) with the values of the Linux module:
   the first `unscheduled` octets of a message go at once, at a priority that its length decides,
   all others as the receiver grants them. Who is granted how much is the receiver's affair, whose
   port agent has the same values. It is the twin of the Rust law with its defaults, bit for bit. */
#define TracedPkts (Message | GRANT | RESEND | Open)

uint32_t unscheduled = 40000;                               /* parameters: octets */
uint32_t cutoff_1 = 200, cutoff_2 = 2800, cutoff_3 = 15000; /* lengths of messages */
uint32_t patience = 7000000; /* ns: longer than the receiver goes on asking for octets again */
#define PACKET_MAX 4096u

typedef struct {
    int qpn;
    int opcode;
    int pktLength;
    int ecn;
} PktHeader;

typedef struct {
    uint32_t message;
    uint32_t length;
    uint32_t granted; /* octets from its start that may be sent */
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
        } else if (e.packet.opcode == Open) {
            setTokens(0); /* until its first message begins */
            counts = false;
        } else {
            loadContext(&e);
            length = e.context.length;
            uint32_t granted = e.context.granted;
            if (e.packet.opcode == Timer) { /* the granter has forgotten: a packet finds out */
                end = addSaturating(granted, PACKET_MAX);
            } else { /* a RESEND of octets not yet granted stands for a grant that was lost */
                counts = message == e.context.message && end > granted;
                if (counts) setPriority(least(headerWord(4), 7));
            }
            if (counts) {
                updateContext(e.context.granted, most(least(end, length), granted));
                uint32_t more = e.context.granted - granted;
                setTokens(least(addSaturating(e.tokens, more), UINT32_MAX - 1));
            }
        }
        if (counts) armTimer(0, e.context.granted < length ? patience : 0);
        postEvent(&e);
    }
}
