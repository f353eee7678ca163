#include "common.h"
#undef TracedPkts
#define TracedPkts (ACK | Open)

/* Not refused: it is sound, but its timer is shorter than what it does when that runs
   out. */
int recv() {
    Event e;
    while (true) {
        pollEventSync(&e);
        uint32_t sum = e.context.first;
        for (int round = 0; round < 50; round++) sum = sum * 5 + e.context.second;
        updateContext(e.context.first, sum);
        updateContext(e.context.second, e.context.second + (e.packet.opcode == Timer));
        armTimer(0, 10); // taken for 100
        e.eventType = Done;
        postEvent(&e);
    }
}
