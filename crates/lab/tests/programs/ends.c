#include "common.h"

int recv() {
    Event e;
    while (true) {
        pollEventSync(&e);
        e.eventType = Done;
        postEvent(&e);
        if (e.acked == 7) return 0;
    }
} /* wrong: a program does not end */
