#include "common.h"

/* Compilers make a loop of one of the two calls, and put copies of the function in the place of the other. */
static uint32_t leaves(uint32_t value) {
    return value < 2 ? 1 : leaves(value - 1) * leaves(value - 2) + 3; /* wrong: it calls itself */
}

int recv() {
    Event e;
    while (true) {
        pollEventSync(&e);
        updateContext(e.context.first, leaves(e.acked) + e.acked / e.inFlight);
        e.eventType = Done;
        postEvent(&e);
    }
}
