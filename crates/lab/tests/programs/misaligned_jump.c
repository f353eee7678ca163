#include "common.h"

int recv() {
    Event e;
    while (true) {
        pollEventSync(&e);
        __asm__ volatile("jal x0, .+6"); /* wrong: there is half an instruction */
        e.eventType = Done;
        postEvent(&e);
    }
}
