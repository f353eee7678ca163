/* What compilers call for `uint32_t a[16] = {0}`, for copies of structures and for comparisons of
   them, since there is no C library. `roci program build` puts this file behind a program that
   lacks them, each function only where it is called, and none where the program has its own. They
   go by words where both places and the length let them, and count what is left down to zero or
   below, so that a length of which only a bound is known is bounded too. */
#ifndef ROCI_MEMORY_H
#define ROCI_MEMORY_H
/* A loop that fills is not to become a call of what it is in, nor to end where a place is reached,
   which could be missed. */
#pragma GCC optimize("no-tree-loop-distribute-patterns", "no-ivopts")

#ifdef ROCI_MEMSET
void *memset(void *to, int octet, __SIZE_TYPE__ octets) {
    if (((uintptr_t)to | octets) % 4 == 0) {
        uint32_t *words = to, value = (uint8_t)octet * 0x01010101u;
        for (int32_t left = octets; left > 0; left -= 4) *words++ = value;
    } else {
        uint8_t *each = to;
        for (int32_t left = octets; left > 0; left--) *each++ = octet;
    }
    return to;
}
#endif

#ifdef ROCI_MEMCPY
void *memcpy(void *restrict to, const void *restrict from, __SIZE_TYPE__ octets) {
    if (((uintptr_t)to | (uintptr_t)from | octets) % 4 == 0) {
        uint32_t *words = to;
        const uint32_t *source = from;
        for (int32_t left = octets; left > 0; left -= 4) *words++ = *source++;
    } else {
        uint8_t *each = to;
        const uint8_t *source = from;
        for (int32_t left = octets; left > 0; left--) *each++ = *source++;
    }
    return to;
}
#endif

#ifdef ROCI_MEMMOVE
void *memmove(void *to, const void *from, __SIZE_TYPE__ octets) {
    uint8_t *each = to;
    const uint8_t *source = from;
    /* What lies behind is taken first where it would be overwritten. */
    bool up = (uintptr_t)to <= (uintptr_t)from;
    for (int32_t left = octets; left > 0; left--) {
        uint32_t at = up ? octets - left : (uint32_t)left - 1;
        each[at] = source[at];
    }
    return to;
}
#endif

#ifdef ROCI_MEMCMP
int memcmp(const void *one, const void *other, __SIZE_TYPE__ octets) {
    const uint8_t *a = one, *b = other;
    for (int32_t left = octets; left > 0; left--, a++, b++)
        if (*a != *b) return *a - *b;
    return 0;
}
#endif
#endif
