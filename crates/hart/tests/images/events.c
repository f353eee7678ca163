/* Programs that the checker must bound, one function each: wait at CSR 0x800, compute, answer there. Compiled without
   M, so that products and quotients are calls into libgcc. */
#include <stdint.h>

#define GET(csr) ({ uint32_t value_; __asm__ volatile("csrr %0, %1" : "=r"(value_) : "i"(csr)); value_; })
#define SET(csr, value) __asm__ volatile("csrw %0, %1" : : "i"(csr), "rK"((uint32_t)(value)))
#define PROGRAM(name) void __attribute__((noreturn, noinline, section(".text." #name))) name(void)
#define NOINLINE __attribute__((noinline))
#define EVENT 0x800
#define WORD 0x801

PROGRAM(straight) {
    for (;;) {
        uint32_t event = GET(EVENT);
        SET(EVENT, event * 4 + GET(WORD));
    }
}

PROGRAM(counted) {
    for (;;) {
        uint32_t event = GET(EVENT), sum = 0;
        for (uint32_t i = 0; i < 20; i++) {
            sum += (event >> (i & 7)) ^ i;
            __asm__ volatile("" : "+r"(sum));
        }
        SET(EVENT, sum | 1);
    }
}

PROGRAM(halving) {
    for (;;) {
        uint32_t event = GET(EVENT), bits = 0;
        while (event) {
            bits += event & 1;
            event >>= 1;
        }
        SET(EVENT, bits);
    }
}

/* The number of turns comes with the event, but is cut to 15. */
PROGRAM(bounded) {
    for (;;) {
        uint32_t event = GET(EVENT), turns = GET(WORD) & 15, sum = event;
        for (uint32_t i = 0; i < turns; i++) {
            sum = sum * 5 + i;
            __asm__ volatile("" : "+r"(sum));
        }
        SET(EVENT, sum | 1);
    }
}

PROGRAM(divides) {
    for (;;) {
        uint32_t event = GET(EVENT), by = GET(WORD);
        SET(EVENT, (event / by) * (event % by) | 1);
    }
}

static const uint8_t turns_of[8] = {1, 2, 3, 5, 8, 13, 21, 34};

PROGRAM(table) {
    for (;;) {
        uint32_t event = GET(EVENT), sum = 0;
        for (uint32_t turns = turns_of[event & 7]; turns; turns--) {
            sum += turns;
            __asm__ volatile("" : "+r"(sum));
        }
        SET(EVENT, sum);
    }
}

static NOINLINE uint32_t inner(uint32_t value) {
    volatile uint32_t room[8];
    room[value & 7] = value;
    return room[3] + value;
}

static NOINLINE uint32_t outer(uint32_t value) {
    return inner(value) + inner(value + 1) * 2;
}

PROGRAM(calls) {
    for (;;) {
        uint32_t event = GET(EVENT);
        SET(EVENT, outer(event) | 1);
    }
}

static uint32_t history[4];
static uint32_t place;

/* Keeps what it was told in memory, from event to event. */
PROGRAM(remembers) {
    for (;;) {
        uint32_t event = GET(EVENT), at = place & 3;
        history[at] = event;
        place = at + 1;
        SET(EVENT, history[0] + history[1] + history[2] + history[3] + 1);
    }
}

/* Waits in a function, so that the poll has a caller. */
static NOINLINE uint32_t wait(void) {
    return GET(EVENT);
}

PROGRAM(waits_below) {
    for (;;) {
        uint32_t event = wait();
        SET(EVENT, event + 1);
    }
}

/* What follows is refused. */
PROGRAM(unbounded) {
    for (;;) {
        uint32_t event = GET(EVENT), turns = GET(WORD);
        for (uint32_t i = 0; i < turns; i++) __asm__ volatile("" : "+r"(event));
        SET(EVENT, event | 1);
    }
}

NOINLINE uint32_t recursive(uint32_t value) {
    uint32_t result = value < 2 ? value : recursive(value - 1) + recursive(value - 2);
    __asm__ volatile("" : "+r"(result));
    return result;
}

PROGRAM(recurses) {
    for (;;) {
        uint32_t event = GET(EVENT);
        SET(EVENT, recursive(event & 7) | 1);
    }
}
