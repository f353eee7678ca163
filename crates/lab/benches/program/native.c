/* The yardstick: a program of firmware/ as native code, under the events that the executors get. The registers are an array;
   a command is a call, and whoever writes the event's register returns. Prints nanoseconds of processor time per event,
   first of this harness alone, then with the program, and a checksum of what came of it.

       cc -O2 -fno-strict-aliasing -I FOLDER -DPROGRAM='"…/dcqcn.c"' native.c && ./a.out STREAM PASSES

   FOLDER holds program.h with two names changed, by which a call of send() or recv() goes on behind what they do once. */
#include "program.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The registers of the queue pair whose event is at hand, and what its commands to show other switches bring. */
static uint32_t *registers;
static const uint32_t *shown;
static uint32_t sum;
static bool begun;

static __attribute__((noinline)) void command(uint32_t word) {
    sum = (sum << 5 | sum >> 27) ^ word;
    if (word >> 28 == 11) memcpy(registers + 32, shown, 64), shown += 16;
}

#undef ROCI_GET
#undef ROCI_POLL
#undef ROCI_SET
#undef postEvent
#define ROCI_GET(csr) registers[(csr) - ROCI_CONTEXT]
#define ROCI_POLL ROCI_GET
#define ROCI_SET(csr, value)                                                                                           \
    do {                                                                                                               \
        if ((csr) == ROCI_COMMAND)                                                                                     \
            command(value);                                                                                            \
        else                                                                                                           \
            registers[(csr) - ROCI_CONTEXT] = (uint32_t)(value);                                                       \
    } while (0)
#define BEGIN                                                                                                          \
    if (begun) goto next;
#define pollEvent(event)                                                                                               \
    next:                                                                                                              \
    if (!begun) return 0;                                                                                              \
    pollBegun(event)
#define postEvent(event)                                                                                               \
    do {                                                                                                               \
        ROCI_SET(ROCI_EVENT, (event)->eventType);                                                                      \
        return 0;                                                                                                      \
    } while (0)

/* A NIC calls a law; it is not compiled into it. */
__attribute__((noinline)) int send();
__attribute__((noinline)) int recv();
#include PROGRAM

/* What the file holds: three counts, the contexts at the start, of each event its queue pair and side and where what it shows
   begins, its registers, and what is shown. */
typedef struct { uint16_t pair, sends; uint32_t shown; } Place;
static uint32_t pairs, events, shows;
static uint32_t (*initial)[64], (*blocks)[64], (*told)[32], (*others)[16];
static Place *places;

static void *part(FILE *file, size_t count, size_t octets) {
    void *start = aligned_alloc(64, (count * octets + 64) / 64 * 64);
    if (!start || fread(start, octets, count, file) != count) exit(2);
    return start;
}

static double cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* All events once. */
static inline __attribute__((always_inline)) double pass(bool runs) {
    double start = cpu_ns();
    memcpy(blocks, initial, pairs * sizeof *blocks);
    sum = 0;
    for (uint32_t event = 0; event < events; event++) {
        uint32_t *block = blocks[places[event].pair];
        memcpy(block + 32, told[event], sizeof *told);
        registers = block, shown = others[places[event].shown];
        if (!runs)
            block[48] = Done;
        else if (places[event].sends)
            send();
        else
            recv();
        sum = (sum << 1 | sum >> 31) ^ block[48] ^ block[50] ^ block[61] ^ block[62] ^ block[63];
    }
    return cpu_ns() - start;
}
static __attribute__((noinline)) double alone(void) { return pass(false); }
static __attribute__((noinline)) double whole(void) { return pass(true); }

int main(int count, char **arguments) {
    FILE *file = count == 3 ? fopen(arguments[1], "rb") : 0;
    uint32_t counts[3], passes = count == 3 ? (uint32_t)strtoul(arguments[2], 0, 10) : 0;
    if (!file || fread(counts, sizeof counts, 1, file) != 1) return 2;
    pairs = counts[0], events = counts[1], shows = counts[2];
    initial = part(file, pairs, sizeof *initial);
    places = part(file, events, sizeof *places);
    told = part(file, events, sizeof *told);
    others = part(file, shows, sizeof *others);
    blocks = aligned_alloc(64, pairs * sizeof *blocks);
    recv(), send();
    begun = true;
    double spent_alone = 0, spent = 0;
    for (uint32_t turn = 0; turn < passes; turn++) spent_alone += alone(), spent += whole();
    for (uint32_t pair = 0; pair < pairs; pair++)
        for (uint32_t word = 0; word < 32; word++) sum = (sum << 1 | sum >> 31) ^ blocks[pair][word];
    printf("%.4f %.4f %u\n", spent_alone / passes / events, spent / passes / events, sum);
    return 0;
}
