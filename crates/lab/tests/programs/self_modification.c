#include "common.h"

int recv();

int recv() {
    Event e;
    while (true) {
        pollEventSync(&e);
        *(volatile uint32_t *)recv = 0x00000013; /* wrong: a nop over its own first instruction */
        e.eventType = Done;
        postEvent(&e);
    }
}
