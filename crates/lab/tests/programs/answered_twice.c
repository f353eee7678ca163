#include "common.h"

int recv() {
    Event e;
    while (true) {
        pollEventSync(&e);
        e.eventType = Done;
        if (e.acked == 0) postEvent(&e);
        postEvent(&e); /* wrong: an event without octets was answered before */
    }
}
