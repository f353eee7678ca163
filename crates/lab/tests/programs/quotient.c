#include "common.h"

int recv() {
    Event e;
    while (true) {
        pollEventSync(&e);
        uint32_t turns = 1000 / (e.context.first & 15); /* the cause: by zero it is 2^32 - 1 */
        for (uint32_t i = 0; i < turns; i++) __asm__ volatile(""); /* wrong: it may go on for long */
        e.eventType = Done;
        postEvent(&e);
    }
}
