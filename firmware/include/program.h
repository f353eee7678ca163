/* What a congestion-control program is written against: the calls and types of SwCC's listing (ATC 2025, Table 2), and what
   that leaves out. docs/guide/programs.md describes each register bit by bit. `roci program build` puts this file before a
   program's text and program_end.h behind it; a program defines

       TracedPkts     the classes of events that its receiving side wants to hear,
       PktHeader      the four words that each packet has, then the program's own header words, at most 16,
       QPContext      what it remembers of a queue pair, at most 32 words of 32 bits,
       int send()     answers Transmit events with Send or LoopBack; without it, what credit allows is sent,
       int recv()     answers all others with Done or GenTxEvent,

   both endless loops of pollEventSync and postEvent. A field that is never looked at costs nothing. */
#ifndef ROCI_PROGRAM_H
#define ROCI_PROGRAM_H
#include <stdbool.h>
#include <stdint.h>

/* A parameter or a word of context of such a type is given to a run, and shown by it, as what it is: a fraction (0.5, 1/16) with 16
   or 24 bits behind the point, or Fraction1 to Fraction31 defined alike; a time (55us), a rate (5Gb/s), octets (64KiB). */
typedef uint32_t Fraction, Fraction24;
typedef uint32_t Nanoseconds, Kbps, Octets;

/* Classes of events, one bit each, to be or-ed in TracedPkts and compared with `e.packet.opcode`. */
enum {
    /* packets */
    SEND_REQ = 1 << 0, WRITE_REQ = 1 << 1, READ_REQ = 1 << 2, READ_RESP = 1 << 3, ATOMIC_REQ = 1 << 4,
    ACK = 1 << 5, NACK = 1 << 6, RNR = 1 << 7, GRANT = 1 << 8, PULL = 1 << 9, RESEND = 1 << 10, BUSY = 1 << 11,
    TRIMMED = 1 << 12,
    /* packets that mean what the program makes of them, in layout cc; as in SwCC, bit n is operation n of the opcode */
    LAW_0 = 1 << 24, LAW_1 = 1 << 25, LAW_2 = 1 << 26, LAW_3 = 1 << 27,
    LAW_4 = 1 << 28, LAW_5 = 1 << 29, LAW_6 = 1 << 30, LAW_7 = INT32_MIN,
    /* private to the NIC */
    CNP = 1 << 16,         /* a congestion notification packet arrived */
    CE = 1 << 17,          /* a data packet arrived that is marked, of a class that is not traced */
    Transmit = 1 << 18,    /* a packet is about to be sent: for send() alone, whatever is traced */
    Timer = 1 << 19,       /* e.timer ran out, at e.now */
    ByteCounter = 1 << 20, /* e.packet.pktLength octets have been sent */
    Loss = 1 << 21,        /* recovery began, a time-out (e.timeout), a trimmed packet (pktLength) */
    Message = 1 << 22,     /* a message is next whose first octet has not been sent */
    Open = 1 << 23,        /* the queue pair is new: its context is all zero, e.rate is the link's */
    Turn = 1 << 15,        /* a message on its way in is to be granted more, or (e.timeout) asked for again */
};

/* What a program answers in `e.eventType`. */
enum { Send = 1, LoopBack = 2, Done = 3, GenTxEvent = 4 };

/* An event. It stands in one place of known alignment, so that the address of a field tells which register it is. */
#define Event                                                                                                          \
    struct __attribute__((aligned(256))) {                                                                             \
        __attribute__((aligned(128))) QPContext context;                                                               \
        __attribute__((aligned(128))) PktHeader packet;                                                                \
        int eventType;          /* its class; the answer is put here */                                                \
        uint32_t now;           /* the NIC's clock in ns, modulo 2^32 */                                               \
        uint32_t sent;          /* when the packet was sent that this one answers, if sentKnown */                     \
        uint32_t peerSent;      /* when its sender sent it, by the sender's clock, if stamped (layout cc, time) */             \
        uint32_t echoed;        /* when what it answers was sent, as the peer echoes it, if stamped; else 0 */                 \
        uint32_t acked;         /* octets that it newly acknowledges */                                                \
        uint32_t inFlight;      /* octets sent and not acknowledged */                                                 \
        uint32_t ackedSequence; /* packets acknowledged and packets sent so far, counted modulo 2^32 */                \
        uint32_t nextSequence;                                                                                         \
        uint32_t rate, window, tokens; /* the credit as it stands: kb/s, at most the link's; octets; octets */         \
        uint8_t timer, periods; /* which timer ran out, how often since the last event: 1 to 15 */                     \
        uint8_t hops;           /* switches that the packet crossed */                                                 \
        uint32_t path;          /* of an ACK with telemetry: by which switches that came; never 0 */                   \
        bool timeout, drained, sentKnown, stamped;                                                                     \
    }

/* Registers. A read happens after the poll before it and before whatever is written or posted next, since both claim to
   change the memory that it claims to look at; a read whose value is not used does not happen. */
#define ROCI_ORDER "m"(*(const uint32_t *)16)
#define ROCI_GET(csr)                                                                                                  \
    ({                                                                                                                 \
        uint32_t roci_got;                                                                                             \
        __asm__("csrr %0, %1" : "=r"(roci_got) : "i"(csr), ROCI_ORDER);                                                \
        roci_got;                                                                                                      \
    })
#define ROCI_POLL(csr)                                                                                                 \
    ({                                                                                                                 \
        uint32_t roci_got;                                                                                             \
        __asm__ volatile("csrr %0, %1" : "=r"(roci_got) : "i"(csr) : "memory");                                        \
        roci_got;                                                                                                      \
    })
#define ROCI_SET(csr, value)                                                                                           \
    do {                                                                                                               \
        ROCI_INTEGER(value)                                                                                            \
        __asm__ volatile("csrw %0, %1" : : "i"(csr), "rK"((uint32_t)(value)) : "memory");                              \
    } while (0)

enum {
    ROCI_CONTEXT = 0x800, ROCI_HEADER = 0x820,
    ROCI_EVENT = 0x830, ROCI_QPN, ROCI_OPCODE, ROCI_LENGTH, ROCI_DETAIL, ROCI_NOW, ROCI_SENT,
    ROCI_PEER_SENT, ROCI_ECHOED, ROCI_ACKED, ROCI_IN_FLIGHT, ROCI_ACKED_SEQUENCE, ROCI_NEXT_SEQUENCE, ROCI_RATE,
    ROCI_WINDOW, ROCI_TOKENS,
    ROCI_COMMAND = ROCI_DETAIL,
};

/* Waits for an event. What the program uses of it anywhere is read here. */
#define pollEventSync(event)                                                                                           \
    do {                                                                                                               \
        pollEvent(event);                                                                                              \
        loadContext(event);                                                                                            \
    } while (0)

/* The same without the context, for a program that needs little of it for most events: see readContext. */
#define pollEvent(event)                                                                                               \
    do {                                                                                                               \
        __auto_type roci_e = (event);                                                                                  \
        roci_e->eventType = ROCI_POLL(ROCI_EVENT);                                                                     \
        roci_e->packet.qpn = ROCI_GET(ROCI_QPN);                                                                       \
        roci_e->packet.opcode = ROCI_GET(ROCI_OPCODE);                                                                 \
        roci_e->packet.pktLength = ROCI_GET(ROCI_LENGTH);                                                              \
        roci_e->packet.ecn = ROCI_GET(ROCI_DETAIL) & 1;                                                                \
        ROCI_WORDS16((uint32_t *)(void *)&roci_e->packet + 4, sizeof(roci_e->packet) - 16, ROCI_HEADER)                \
        roci_e->now = ROCI_GET(ROCI_NOW);                                                                              \
        roci_e->sent = ROCI_GET(ROCI_SENT);                                                                            \
        roci_e->peerSent = ROCI_GET(ROCI_PEER_SENT);                                                                   \
        roci_e->echoed = ROCI_GET(ROCI_ECHOED);                                                                        \
        roci_e->acked = ROCI_GET(ROCI_ACKED);                                                                          \
        roci_e->inFlight = ROCI_GET(ROCI_IN_FLIGHT);                                                                   \
        roci_e->ackedSequence = ROCI_GET(ROCI_ACKED_SEQUENCE);                                                         \
        roci_e->nextSequence = ROCI_GET(ROCI_NEXT_SEQUENCE);                                                           \
        roci_e->rate = ROCI_GET(ROCI_RATE);                                                                            \
        roci_e->window = ROCI_GET(ROCI_WINDOW);                                                                        \
        roci_e->tokens = ROCI_GET(ROCI_TOKENS);                                                                        \
        roci_e->timeout = ROCI_GET(ROCI_DETAIL) >> 1 & 1;                                                              \
        roci_e->drained = ROCI_GET(ROCI_DETAIL) >> 2 & 1;                                                              \
        roci_e->sentKnown = ROCI_GET(ROCI_DETAIL) >> 3 & 1;                                                            \
        roci_e->stamped = ROCI_GET(ROCI_DETAIL) >> 4 & 1;                                                              \
        roci_e->timer = ROCI_GET(ROCI_DETAIL) >> 8 & 3;                                                                \
        roci_e->periods = ROCI_GET(ROCI_DETAIL) >> 16 & 15;                                                            \
        roci_e->hops = ROCI_GET(ROCI_DETAIL) >> 24;                                                                    \
        roci_e->path = ROCI_GET(ROCI_LENGTH);                                                                          \
    } while (0)

/* Answers the event with `eventType`. */
#define postEvent(event) ROCI_SET(ROCI_EVENT, (event)->eventType)

/* Writes a field of the context, such as e.context.rate, here and in the queue pair's context. */
#define updateContext(place, value)                                                                                    \
    do {                                                                                                               \
        ROCI_INTEGER(value)                                                                                            \
        (place) = (value);                                                                                             \
        ROCI_WORD(place)                                                                                               \
        ROCI_SET(ROCI_CONTEXT + ROCI_OFFSET(place) / 4, place);                                                        \
    } while (0)

/* Writes the opcode or one of the program's own words of the header that goes out with Send or GenTxEvent. */
#define updatePkt(place, value)                                                                                        \
    do {                                                                                                               \
        ROCI_INTEGER(value)                                                                                            \
        (place) = (value);                                                                                             \
        ROCI_WORD(place)                                                                                               \
        if (ROCI_OFFSET(place) < 144 && ROCI_OFFSET(place) != 132) roci_not_writable();                                \
        ROCI_SET(ROCI_OFFSET(place) < 144 ? ROCI_OPCODE : ROCI_HEADER + (ROCI_OFFSET(place) - 144) / 4, place);        \
    } while (0)

/* Of an event that came by pollEvent: a field of the context, or all of it. */
#define readContext(place)                                                                                             \
    ({                                                                                                                 \
        ROCI_WORD(place)                                                                                               \
        (place) = ROCI_GET(ROCI_CONTEXT + ROCI_OFFSET(place) / 4);                                                     \
        (place);                                                                                                       \
    })
#define loadContext(event)                                                                                             \
    do {                                                                                                               \
        ROCI_WORDS32(&(event)->context, sizeof((event)->context), ROCI_CONTEXT)                                        \
    } while (0)

/* Credit: the pacer's rate in kb/s (the link's or more: not paced), octets in flight, octets on tokens (~0: no limit). */
#define setRate(kbps) ROCI_SET(ROCI_RATE, kbps)
#define setWindow(octets) ROCI_SET(ROCI_WINDOW, octets)
#define setTokens(octets) ROCI_SET(ROCI_TOKENS, octets) /* what is sent again takes none */

/* Commands: four bits say what, 28 how much, modulo 2^28: a timer takes 268 ms at most, a byte counter 268 MB. */
#define ROCI_DO(what, much)                                                                                            \
    do {                                                                                                               \
        ROCI_INTEGER(much)                                                                                             \
        ROCI_SET(ROCI_COMMAND, (uint32_t)(what) << 28 | ((uint32_t)(much)&0xfffffff));                                 \
    } while (0)
/* Timer 0 to 3 runs out `ns`, at least 100, after this event, whose time counts; at one instant the lower goes first. */
#define armTimer(timer, ns) ROCI_DO((timer) & 3, ns)
/* The same again and again, told only when something else happens, with the number of periods that have passed. */
#define armPeriods(timer, ns) ROCI_DO(4 | ((timer) & 3), ns)
#define cancelTimer(timer) ROCI_DO((timer) & 3, 0)
/* A ByteCounter event after so many octets; 0 stops the counter. */
#define armByteCounter(octets) ROCI_DO(8, octets)
/* The classes that recv() hears of this queue pair from now on; done at the start, for all, with TracedPkts. */
#define tracePackets(classes)                                                                                          \
    do {                                                                                                               \
        ROCI_DO(9, (uint32_t)(classes) & 0xfffffff);                                                                   \
        if ((uint32_t)(classes) >> 28) ROCI_DO(12, (uint32_t)(classes) >> 28);                                         \
    } while (0)
/* The priority of what this queue pair sends: 0 is the lowest, 7 the highest. */
#define setPriority(priority) ROCI_DO(10, priority)
/* Telemetry: shows the switches from number `first` on, four at most, in the header words: clock in ns, octets sent, octets
   queued, rate in kb/s. Before it, those from 0 on stand there. */
#define showHops(first) ROCI_DO(11, first)
/* A header word as it stands there, and field 0 to 3 of a switch that is shown; both numbers are constants. */
#define headerWord(n) ROCI_GET(ROCI_BEYOND(n, 4) ? (roci_no_word_here(), ROCI_HEADER) : ROCI_HEADER + (n))
/* In recv(): writes one of the first five words, which name the message and octets of what GenTxEvent sends. */
#define setHeaderWord(n, value) ROCI_SET(((n) >> 4 ? (roci_no_word(), 0) : ROCI_HEADER + (n)), value)
#define hopWord(hop, field)                                                                                            \
    ROCI_GET(ROCI_NO_HOP(hop, field) ? (roci_no_field(), ROCI_HEADER) : ROCI_HEADER + (hop) % 4 * 4 + (field))

/* Before the first poll: refuses parameters that the program cannot work with. The condition stands in the image, but
   not in the cores' memory, for whoever is told of it. */
#define require(condition)                                                                                             \
    do {                                                                                                               \
        static const struct {                                                                                          \
            uint32_t line;                                                                                             \
            char text[sizeof #condition];                                                                              \
        } roci_required __attribute__((used, section(".roci_require"))) = {__LINE__, #condition};                      \
        auto bool __attribute__((noipa)) roci_holds(void);                                                             \
        bool roci_holds(void) {                                                                                        \
            return condition;                                                                                          \
        }                                                                                                              \
        if (!roci_holds()) ROCI_DO(15, 0);                                                                             \
    } while (0)

/* Fixed-point arithmetic. With M a product is one or two instructions; without, a call. */
static inline uint32_t mulHigh(uint32_t a, uint32_t b) {
    return (uint64_t)a * b >> 32;
}
static inline uint32_t mulShift(uint32_t a, uint32_t b, unsigned shift) {
    return (uint64_t)a * b >> shift;
}
static inline uint32_t saturate(uint64_t value) {
    return value >> 32 ? UINT32_MAX : (uint32_t)value;
}
static inline uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}
static inline uint32_t most(uint32_t a, uint32_t b) {
    return a < b ? b : a;
}
static inline uint32_t clamp(uint32_t value, uint32_t low, uint32_t high) {
    return value < low ? low : value > high ? high : value;
}
static inline bool within(uint32_t value, uint32_t low, uint32_t high) {
    return value >= low && value <= high;
}
/* Adds without wrapping. */
static inline uint32_t addSaturating(uint32_t a, uint32_t b) {
    return a + b < a ? UINT32_MAX : a + b;
}
/* (a + b) / 2 without wrapping, rounded down. */
static inline uint32_t midpoint(uint32_t a, uint32_t b) {
    return (a & b) + ((a ^ b) >> 1);
}
/* Whether a time or a sequence lies after another on the circle of 2^32. */
static inline bool passed(uint32_t a, uint32_t b) {
    return (int32_t)(a - b) > 0;
}

/* numerator 2^shift / denominator to the nearest, at most 2^32 - 1: for constants, since it divides by 64 bits. */
static inline uint32_t constant(uint64_t numerator, unsigned shift, uint32_t denominator) {
    return saturate(((numerator << shift) + denominator / 2) / denominator);
}
/* The same in 16.16. */
static inline uint32_t fraction(uint32_t numerator, uint32_t denominator) {
    return constant(numerator, 16, denominator);
}
/* numerator / denominator in 16.16, at most one, to 5 in the last place: one division of 32 bits. */
static inline uint32_t ratio(uint32_t numerator, uint32_t denominator) {
    if (numerator >= denominator) return 1u << 16;
    int zeros = __builtin_clz(denominator), shift = zeros < 16 ? 16 - zeros : 0;
    return ((numerator >> shift) << 16) / (denominator >> shift);
}
/* A round trip in ns, from 1 to 2^26 - 1. */
static inline uint32_t roundTrip(uint32_t now, uint32_t sent) {
    return clamp(now - sent, 1, (1u << 26) - 1);
}

/* The parts of the macros above. */
extern void roci_not_writable(void)
    __attribute__((error("updatePkt writes opcode and the program's own words, of 32 bits, in a local Event")));
extern void roci_no_word(void) __attribute__((error("packets have header words 0 to 15; setHeaderWord writes 0 to 4")));
extern void roci_no_word_here(void)
    __attribute__((error("packets have header words 0 to 15, and headerWord takes a constant: it names the register")));
extern void roci_no_field(void) __attribute__((error(
    "hops count from 0 and have fields 0 to 3, and hopWord takes constants: they name the register")));
extern void roci_no_integer(void)
    __attribute__((error("registers hold integers, and a float would lose its fraction: use Fraction, or a cast")));
extern void roci_not_a_word(void) __attribute__((error(
    "a field to write is an integer of 32 bits in a local Event (a float would lose its fraction: use Fraction)")));
extern void roci_not_constant(void) __attribute__((error(
    "the index of a word of the context must be a constant, for that names the register: behind `#pragma GCC unroll 8` write "
    "`for (uint32_t i = 0; i < 8; i++) if (i == place) updateContext(e.context.n[i], value);`")));
/* Whether a field of PktHeader has the place and the width of a word that each packet has. */
#define ROCI_FIXED(field, at) (__builtin_offsetof(PktHeader, field) == (at) && sizeof(((PktHeader *)0)->field) == 4)
/* A constant that is a whole number may be written as 5e6. */
#define ROCI_INTEGER(value)                                                                                            \
    if (__builtin_classify_type(value) == 8 &&                                                                         \
        !(__builtin_constant_p(value) && (double)(value) == (double)(uint32_t)(value)))                                \
        roci_no_integer();
/* Whether a number is none that the compiler knows, or needs more bits. */
#define ROCI_BEYOND(n, bits) (!__builtin_constant_p(n) || (n) >> (bits))
/* The number of a hop is looked at where it is written as a constant, so that one in an unrolled loop costs nothing. */
#define ROCI_NO_HOP(hop, field)                                                                                        \
    (__builtin_choose_expr(__builtin_constant_p(hop), hop, 0) >> 8 || ROCI_BEYOND(field, 2))
#define ROCI_OFFSET(place) ((uintptr_t) & (place)&255)
#define ROCI_WORD(place)                                                                                               \
    if (sizeof(place) != 4 || __builtin_classify_type(place) > 4) roci_not_a_word();                                   \
    if (!__builtin_constant_p(ROCI_OFFSET(place))) roci_not_constant();
#define ROCI_WORD_AT(to, octets, csr, n)                                                                               \
    if ((octets) > 4 * (n)) ((uint32_t *)(void *)(to))[n] = ROCI_GET((csr) + (n));
#define ROCI_WORDS4(to, octets, csr, n)                                                                                \
    ROCI_WORD_AT(to, octets, csr, n) ROCI_WORD_AT(to, octets, csr, n + 1)                                              \
    ROCI_WORD_AT(to, octets, csr, n + 2) ROCI_WORD_AT(to, octets, csr, n + 3)
#define ROCI_WORDS16_FROM(to, octets, csr, n)                                                                          \
    ROCI_WORDS4(to, octets, csr, n) ROCI_WORDS4(to, octets, csr, n + 4)                                                \
    ROCI_WORDS4(to, octets, csr, n + 8) ROCI_WORDS4(to, octets, csr, n + 12)
#define ROCI_WORDS16(to, octets, csr) ROCI_WORDS16_FROM(to, octets, csr, 0)
#define ROCI_WORDS32(to, octets, csr) ROCI_WORDS16_FROM(to, octets, csr, 0) ROCI_WORDS16_FROM(to, octets, csr, 16)

/* Where the compiler is only to warn: these do the same by way of an object, so that it warns of constants that do not fit. */
#ifdef ROCI_WARN
#undef ROCI_SET
#undef ROCI_DO
#define ROCI_SET(csr, value)                                                                                           \
    do {                                                                                                               \
        ROCI_INTEGER(value)                                                                                            \
        __asm__ volatile("csrw %0, %1" : : "i"(csr), "rK"(((uint32_t[1]){value})[0]) : "memory");                      \
    } while (0)
#define ROCI_DO(what, much)                                                                                            \
    do {                                                                                                               \
        ROCI_INTEGER(much)                                                                                             \
        ROCI_SET(ROCI_COMMAND,                                                                                         \
                 (uint32_t)(what) << 28 | ((struct { uint32_t roci_much : 28; }){much}).roci_much);                    \
    } while (0)
#undef armTimer
#undef armPeriods
#undef cancelTimer
#undef setPriority
#define ROCI_TIMER(timer) ((struct { uint32_t roci_timer : 2; }){timer}).roci_timer
#define armTimer(timer, ns) ROCI_DO(ROCI_TIMER(timer), ns)
#define armPeriods(timer, ns) ROCI_DO(4 | ROCI_TIMER(timer), ns)
#define cancelTimer(timer) ROCI_DO(ROCI_TIMER(timer), 0)
#define setPriority(priority) ROCI_DO(10, ((struct { uint32_t roci_priority : 3; }){priority}).roci_priority)
#endif

/* Of what C has in <string.h> there are these: `roci program build` puts them behind a program that calls them. */
void *memset(void *to, int octet, __SIZE_TYPE__ octets);
void *memcpy(void *restrict to, const void *restrict from, __SIZE_TYPE__ octets);
void *memmove(void *to, const void *from, __SIZE_TYPE__ octets);
int memcmp(const void *one, const void *other, __SIZE_TYPE__ octets);
#endif
