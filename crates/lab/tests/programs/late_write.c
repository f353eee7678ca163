#include "common.h"

int recv() {
    Event e;
    while (true) {
        pollEventSync(&e);
        e.eventType = Done;
        postEvent(&e);
        if (e.acked & 1) setRate(100000); /* wrong: it may be the next event's queue pair that gets it */
    }
}
