/* A rate law in the manner of DCQCN, as a load for the executors. The same text is compiled for the core, where the
   block of registers is CSRs, and natively, where it is an array. Times are nanoseconds, rates Mb/s, alpha is in
   1/16384. */
#include <stdint.h>

enum {
    /* the context, one per queue pair */
    RATE, TARGET, ALPHA, TIME_STAGE, BYTE_STAGE, BYTES, LAST_CNP, LAST_CUT, ALPHA_DUE, INCREASE_DUE, MARKED, CUTS,
    /* the packet */
    KIND = 32, LENGTH, ECN,
    /* the event */
    EVENT = 48, NOW,
};
enum { DATA = 1, ACK = 2, CNP = 3 };
enum { SEND = 1, DONE = 2, NOTIFY = 3 };

#ifdef __riscv
#define GET(word) ({ uint32_t value_; __asm__ volatile("csrr %0, %1" : "=r"(value_) : "i"(0x800 + (word))); value_; })
#define SET(word, value) __asm__ volatile("csrw %0, %1" : : "i"(0x800 + (word)), "rK"((uint32_t)(value)))
#define PROGRAM(name) void __attribute__((noreturn)) name(void)
#define FOR_EACH_EVENT for (; GET(EVENT);)
#else
#define GET(word) (block[word])
#define SET(word, value) (block[word] = (uint32_t)(value))
#define PROGRAM(name) void name(uint32_t *restrict block)
#define FOR_EACH_EVENT
#define __builtin_unreachable() ((void)0)
#endif

#define LINE_RATE 100000u
#define MIN_RATE 100u
#define ADDITIVE 40u
#define HYPER 400u
#define STAGES 5u
#define BYTE_COUNTER (10u << 20)
#define ONE (1u << 14)
#define GAIN_SHIFT 8
#define NOTIFY_GAP 50000u
#define CUT_GAP 4000u
#define PERIOD 55000u

#define REACHED(now, due) ((int32_t)((now) - (due)) >= 0)

#define INCREASE(stage, other)                                                                                         \
    do {                                                                                                               \
        uint32_t other_ = (other);                                                                                     \
        uint32_t most_ = (stage) > other_ ? (stage) : other_, least_ = (stage) > other_ ? other_ : (stage);            \
        uint32_t target_ = GET(TARGET);                                                                                \
        if (most_ > STAGES) {                                                                                          \
            target_ += least_ > STAGES ? HYPER : ADDITIVE;                                                             \
            if (target_ > LINE_RATE) target_ = LINE_RATE;                                                              \
            SET(TARGET, target_);                                                                                      \
        }                                                                                                              \
        SET(RATE, (GET(RATE) + target_) >> 1);                                                                         \
    } while (0)

PROGRAM(tx) {
    FOR_EACH_EVENT {
        uint32_t bytes = GET(BYTES) + GET(LENGTH);
        if (bytes >= BYTE_COUNTER) {
            uint32_t stage = GET(BYTE_STAGE) + 1;
            bytes -= BYTE_COUNTER;
            SET(BYTE_STAGE, stage);
            INCREASE(stage, GET(TIME_STAGE));
        }
        SET(BYTES, bytes);
        SET(EVENT, SEND);
    }
    __builtin_unreachable();
}

PROGRAM(rx) {
    FOR_EACH_EVENT {
        uint32_t now = GET(NOW), answer = DONE;
        if (REACHED(now, GET(ALPHA_DUE))) {
            uint32_t alpha = GET(ALPHA);
            SET(ALPHA, alpha - (alpha >> GAIN_SHIFT));
            SET(ALPHA_DUE, now + PERIOD);
        }
        if (REACHED(now, GET(INCREASE_DUE))) {
            uint32_t stage = GET(TIME_STAGE) + 1;
            SET(TIME_STAGE, stage);
            SET(INCREASE_DUE, now + PERIOD);
            INCREASE(stage, GET(BYTE_STAGE));
        }
        if (GET(KIND) == CNP) {
            if (REACHED(now, GET(LAST_CUT) + CUT_GAP)) {
                uint32_t rate = GET(RATE), alpha = GET(ALPHA);
                SET(TARGET, rate);
                rate -= (rate * (alpha >> 1)) >> 14;
                SET(RATE, rate < MIN_RATE ? MIN_RATE : rate);
                alpha += (ONE - alpha) >> GAIN_SHIFT;
                SET(ALPHA, alpha);
                SET(LAST_CUT, now);
                SET(TIME_STAGE, 0);
                SET(BYTE_STAGE, 0);
                SET(BYTES, 0);
                SET(ALPHA_DUE, now + PERIOD);
                SET(INCREASE_DUE, now + PERIOD);
                SET(CUTS, GET(CUTS) + 1);
            }
        } else if (GET(ECN) == 3) {
            SET(MARKED, GET(MARKED) + 1);
            if (REACHED(now, GET(LAST_CNP) + NOTIFY_GAP)) {
                SET(LAST_CNP, now);
                answer = NOTIFY;
            }
        }
        SET(EVENT, answer);
    }
    __builtin_unreachable();
}
