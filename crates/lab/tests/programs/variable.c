#include "common.h"

int recv() {
    Event e;
    while (true) {
        pollEventSync(&e);
        volatile uint32_t words[e.context.first]; /* wrong: nobody knows how long it is */
        words[0] = e.acked;
        updateContext(e.context.second, words[0]);
        e.eventType = Done;
        postEvent(&e);
    }
}
