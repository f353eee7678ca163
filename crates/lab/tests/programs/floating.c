#include "common.h"

/* Not refused: what it takes is bounded. */
int recv() {
    Event e;
    while (true) {
        pollEventSync(&e);
        updateContext(e.context.first, (uint32_t)(e.acked * 0.8f)); /* warned of: it computes with floating point */
        e.eventType = Done;
        postEvent(&e);
    }
}
