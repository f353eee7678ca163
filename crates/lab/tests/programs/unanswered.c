#include "common.h"

int recv() {
    Event e;
    while (true) {
        pollEventSync(&e);
        if (e.acked == 0) continue; /* wrong: it has not been answered */
        e.eventType = Done;
        postEvent(&e);
    }
}
