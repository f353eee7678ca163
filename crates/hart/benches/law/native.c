/* The yardstick: the same law as native code, under the same events as the executors get. Prints nanoseconds of
   processor time per event and a checksum of all contexts. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void tx(uint32_t *restrict block);
void rx(uint32_t *restrict block);

enum { QPS = 64, WORDS = 64, KIND = 32, LENGTH = 33, ECN = 34, EVENT = 48, NOW = 49 };

static uint32_t blocks[QPS][WORDS];

static double cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int count, char **arguments) {
    if (count != 2) return 2;
    uint32_t events = (uint32_t)strtoul(arguments[1], 0, 10), random = 1, now = 0;
    for (int qp = 0; qp < QPS; qp++) blocks[qp][0] = blocks[qp][1] = 100000;
    double start = cpu_ns();
    for (uint32_t event = 0; event < events; event++) {
        random ^= random << 13, random ^= random >> 17, random ^= random << 5;
        uint32_t *block = blocks[random % QPS], draw = (random >> 8) % 100;
        block[NOW] = now += 40;
        block[EVENT] = 1;
        block[LENGTH] = 1024;
        if (draw < 49) {
            tx(block);
        } else {
            block[KIND] = draw < 98 ? 1 + (draw & 1) : 3;
            block[ECN] = (random >> 20) % 50 == 0 ? 3 : 2;
            rx(block);
        }
    }
    double spent = cpu_ns() - start;
    uint32_t sum = 0;
    for (int qp = 0; qp < QPS; qp++)
        for (int word = 0; word < WORDS; word++) sum = (sum << 1 | sum >> 31) ^ blocks[qp][word];
    printf("%.3f %u\n", spent / events, sum);
    return 0;
}
