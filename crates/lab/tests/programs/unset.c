#include "common.h"

int send() {
    Event e;
    while (true) {
        pollEventSync(&e);
        if (e.packet.pktLength > 1000) e.eventType = LoopBack;
        else e.eventType = Send;
        postEvent(&e);
    }
}

int recv() {
    Event e;
    while (true) {
        pollEventSync(&e);
        if (e.packet.opcode == ACK) {
            updateContext(e.context.first, e.acked);
            postEvent(&e); /* warned of: what kind of event it is has not been said */
        } else {
            e.eventType = 7;
            postEvent(&e); /* warned of: there is no such answer */
        }
    }
}
