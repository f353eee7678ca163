#include "common.h"

int recv() {
    Event e;
    while (true) {
        pollEventSync(&e);
        ROCI_SET(ROCI_CONTEXT + 2, e.acked); /* wrong: the context has words 0 and 1 */
        e.eventType = Done;
        postEvent(&e);
    }
}
