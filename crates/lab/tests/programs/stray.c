#include "common.h"

static uint32_t table[8];

/* Not refused: executors look at each store. The first goes where a packet says, the second surely into the table. */
int recv() {
    Event e;
    while (true) {
        pollEventSync(&e);
        *(volatile uint32_t *)(uintptr_t)e.packet.pktLength = 1;
        table[e.acked & 7] = e.now;
        e.eventType = Done;
        postEvent(&e);
    }
}
