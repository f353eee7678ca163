/* Not refused: every second packet that is acknowledged has the sender go on with another priority, 1 or 4. */
#include "common.h"

int recv() {
    Event e;
    while (true) {
        pollEventSync(&e);
        updateContext(e.context.first, e.context.first + 1);
        setPriority((e.context.first & 2) ? 4 : 1);
        e.eventType = Done;
        postEvent(&e);
    }
}
