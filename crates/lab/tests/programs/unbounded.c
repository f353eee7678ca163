#include "common.h"

int recv() {
    Event e;
    while (true) {
        pollEventSync(&e);
        for (int i = 0; i != e.packet.pktLength; i += 3) __asm__ volatile(""); /* wrong: it may never meet the length */
        e.eventType = Done;
        postEvent(&e);
    }
}
