/* Loops that plainly end, one a function: wait at CSR 0x800, compute, answer there. For each the test knows the event and
   the words that make it longest. */
#include <stdbool.h>
#include <stdint.h>

#define GET(csr) ({ uint32_t value_; __asm__ volatile("csrr %0, %1" : "=r"(value_) : "i"(csr)); value_; })
#define SET(csr, value) __asm__ volatile("csrw %0, %1" : : "i"(csr), "rK"((uint32_t)(value)))
#define PROGRAM(name) void __attribute__((noreturn, noinline, section(".text." #name))) name(void)
#define EVENT 0x800
#define WORD 0x801

/* A program whose event is `x`, whose word is `n`, and whose answer is what `body` makes of `x`. */
#define LOOP(name, body)                                        \
    PROGRAM(name) {                                             \
        for (;;) {                                              \
            uint32_t x = GET(EVENT), n = GET(WORD);             \
            body;                                               \
            SET(EVENT, x | 1);                                  \
        }                                                       \
    }

static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

static uint32_t clamp(uint32_t value, uint32_t low, uint32_t high) {
    return value < low ? low : value > high ? high : value;
}

static uint32_t ring[64];

LOOP(bitmap, uint32_t lost = 0; for (int i = 0; i < 8; i++) lost += n >> ((x + i) & 31) & 1; x = lost)
LOOP(walk, uint32_t best = 0; uint32_t at = n; for (int i = 0; i < 8; i++, at++) {
    uint32_t value = ring[at % 64];
    if (value > best) best = value;
} ring[at % 64] = x; x = best)
LOOP(pointer, uint32_t *p = ring + (n & 7) * 8; uint32_t *end = p + 8; x = 0; while (p < end) x += *p++)
LOOP(masked_down, n &= 15; while (n--) x -= x >> 3)
LOOP(least_down, n = least(n, 15); while (n--) x -= x >> 3)
LOOP(octet_down, for (n &= 255; n-- > 0;) x -= x >> 3)
LOOP(at_most_20, n /= 4096; if (n > 20) n = 20; while (n--) x -= x >> 3)
LOOP(counted_down, for (n &= 15; n > 0; n--) x -= x >> 3)
LOOP(signed_down, for (int i = (int)(n & 15); i >= 0; i--) x -= x >> (i & 3))
LOOP(if_below, if (n < 10) for (uint32_t i = 0; i < n; i++) x -= x >> 3)
LOOP(once_and_again, if (n >= 10) n = 10; do { x -= x >> 3; } while (n-- > 0))
LOOP(capped, if (n > 8) n = 8; for (uint32_t i = 0; i < n; i++) x += (i * i) ^ x >> (i & 7))
LOOP(chosen, n = n > 9 ? 9 : n; for (uint32_t i = 0; i < n; i++) x -= x >> 3)
LOOP(least_up, n = least(n, 50); for (uint32_t i = 0; i < n; i++) x -= x >> 3)
LOOP(hundred, if (n > 100) n = 100; for (uint32_t i = 0; i < n; i++) x -= x >> 3)
LOOP(clamped_down, n = clamp(n, 1, 8); for (uint32_t i = n; i > 0; i--) x += (i * i) ^ x >> (i & 7))
LOOP(both_ends, int m = (int)n; if (m < 0) m = 0; if (m > 9) m = 9; for (int i = 0; i < m; i++) x -= x >> 3)
LOOP(two_ends, for (uint32_t i = 0; i < 50 && i < n; i++) x += (i * i) ^ x >> (i & 7))
LOOP(by_twos, n &= 15; for (uint32_t i = 0; i < n; i += 2) x += (i * i) ^ x >> (i & 7))
LOOP(counts_on, n &= 31; for (uint32_t i = 0; i < n; i++) { if (ring[i & 63] == 7) break; x++; })
