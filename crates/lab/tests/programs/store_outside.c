#include "common.h"

int recv() {
    Event e;
    while (true) {
        pollEventSync(&e);
        *(volatile uint32_t *)0x10000000 = e.acked; /* wrong: there is no memory */
        e.eventType = Done;
        postEvent(&e);
    }
}
