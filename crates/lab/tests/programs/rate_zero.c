#include "common.h"

/* Not refused: it is sound, and lets nothing go but a packet in many seconds. */
int recv() {
    Event e;
    while (true) {
        pollEventSync(&e);
        setRate(0);
        e.eventType = Done;
        postEvent(&e);
    }
}
