#include "common.h"

static volatile uint32_t depth;

__attribute__((noinline)) static uint32_t halvings(uint32_t value) {
    depth++;
    return value < 2 ? 0 : 1 + halvings(value / 2) * depth; /* wrong: it calls itself */
}

int recv() {
    Event e;
    while (true) {
        pollEventSync(&e);
        updateContext(e.context.first, halvings(e.acked));
        e.eventType = Done;
        postEvent(&e);
    }
}
