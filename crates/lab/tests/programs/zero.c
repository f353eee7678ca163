#include "common.h"

int recv() {
    Event e;
    while (true) {
        pollEventSync(&e);
        updateContext(e.context.first, e.acked / 0); /* wrong: nothing is defined to come of it */
        e.eventType = Done;
        postEvent(&e);
    }
}
