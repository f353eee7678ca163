#include "common.h"

int recv() {
    Event e;
    while (true) {
        pollEventSync(&e);
        updateContext(e.context.first, ROCI_POLL(0xc00)); /* wrong: there is no cycle counter */
        e.eventType = Done;
        postEvent(&e);
    }
}
