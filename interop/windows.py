#!/usr/bin/env python3
"""One end of connections on which memory windows of types 1 and 2B are bound, used, ended and misused.

    windows.py DEVICE LOCAL PEER MTU own|use [listen]

Both ends go through the same cases, each with queue pairs of its own, since what is refused ends them; they meet over TCP port
18600, at which PEER listens unless this end is to. The one that owns has the memory, and compares all of it after each step.

Soft-RoCE's windows let through what lies in their region, before and behind them as well: it looks at the region's bounds alone.
"""

import socket
import sys

import pyverbs.enums as e
from pyverbs.mr import MR, MW, MWBind, MWBindInfo
from pyverbs.wr import SendWR
from verify import BACK, OUT, PORT, End, pattern

SIZE = 8192
FIRST, LENGTH = 1000, 3000
"""The octets that a window is bound to."""

PSN = 0xFFFFF0
READS = e.IBV_ACCESS_REMOTE_READ
ALL = READS | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_ATOMIC

KERNELS_WITH_INV = 1 << 2
"""How Soft-RoCE says that a key was invalidated: by the kernel's flag, which is not that of verbs."""

ENDS = {
    1: ["bound to nothing", "bound anew", "deallocated"],
    2: ["invalidated by its owner", "invalidated by its peer", "deallocated"],
}
"""How a window ends that has been used, by its type."""

MISUSES = ["beyond its end", "before its beginning", "against its rights", "by another queue pair"]

CASES = [(kind, zero, end) for kind, zero in [(1, False), (2, False), (2, True)] for end in ENDS[kind] + MISUSES]
"""Type, whether it is named from zero on, and what is tried."""


class Wrong(SystemExit):
    """What was not as it should be."""


class Side(End):
    def __init__(self, device, local, mtu, line):
        super().__init__(local, device)
        self.local, self.mtu, self.line, self.lines = local, mtu, line, line.makefile("r")

    def say(self, *words):
        self.line.sendall(" ".join(map(str, words)).encode() + b"\n")

    def hear(self, wanted):
        words = self.lines.readline().split()
        if words[:1] != [wanted]:
            raise Wrong(f"{wanted} was due, but {words} came")
        return words[1:]

    def meet(self):
        """Another queue pair, connected to another of the other end's."""
        self.qp = self.queue_pair()
        self.say("end", self.qp.qp_num, PSN, self.local)
        qpn, psn, address = self.hear("end")
        self.connect(int(qpn), int(psn), address, self.mtu)
        self.say("connected")
        self.hear("connected")

    def ended(self):
        """The next completion."""
        while True:
            found, completions = self.cq.poll(1)
            if found:
                return completions[0]

    def well(self):
        completion = self.ended()
        if completion.status != e.IBV_WC_SUCCESS:
            raise Wrong(f"completion with status {completion.status}")
        return completion


class Owner(Side):
    def __init__(self, *words):
        super().__init__(*words)
        self.open = MR(self.pd, SIZE, e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_MW_BIND)
        self.is_kernel = words[0].startswith("rxe")
        self.tells = KERNELS_WITH_INV if self.is_kernel else e.IBV_WC_WITH_INV

    def bind(self, window, kind, first, length, rights):
        """Binds a window; gives its key."""
        info = MWBindInfo(self.open, self.open.buf + first, length, rights)
        if kind == 1:
            self.qp.bind_mw(window, MWBind(info, e.IBV_SEND_SIGNALED))
            self.well()
            return window.rkey
        request = SendWR(opcode=e.IBV_WR_BIND_MW)
        request.set_bind_wr(window, info)
        self.qp.post_send(request)
        self.well()
        return request.rkey

    def compare(self, case, wanted):
        if self.open.read(SIZE, 0) != bytes(wanted):
            raise Wrong(f"{case}: memory is not as it should be")

    def run(self, number, case):
        kind, zero, what = case
        octets = bytearray(pattern(number, SIZE))
        self.open.write(bytes(octets), SIZE, 0)
        self.meet()
        window = MW(self.pd, e.IBV_MW_TYPE_1 if kind == 1 else e.IBV_MW_TYPE_2)
        rights = (READS if what == MISUSES[2] else ALL) | (e.IBV_ACCESS_ZERO_BASED if zero else 0)
        key = self.bind(window, kind, FIRST, LENGTH, rights)
        self.say("window", 0 if zero else self.open.buf + FIRST, key)
        if what == MISUSES[3]:
            # The window stays with the queue pair that bound it.
            bound = self.qp
            self.meet()
        if what in ENDS[kind]:
            self.hear("used")
            octets[FIRST + 8 : FIRST + 1508] = pattern(number + 1, 1500)
            count = int.from_bytes(octets[FIRST : FIRST + 8], sys.byteorder) + 1
            octets[FIRST : FIRST + 8] = count.to_bytes(8, sys.byteorder)
            self.compare(case, octets)
            self.end(window, kind, what, key)
            self.say("ended")
        status = int(self.hear("tried")[0])
        # One of type 1 serves all queue pairs of its domain.
        serves = kind == 1 and what == MISUSES[3]
        is_known = self.is_kernel and what in MISUSES[:2] and status == e.IBV_WC_SUCCESS
        if status != (e.IBV_WC_SUCCESS if serves else e.IBV_WC_REM_ACCESS_ERR) and not is_known:
            raise Wrong(f"type {kind}{' from zero on' if zero else ''}, {what}: status {status}")
        if serves:
            octets[FIRST + 8 : FIRST + 16] = pattern(number + 1, 8)
        if not is_known:
            self.compare(case, octets)
        self.say("heard")
        return is_known

    def end(self, window, kind, what, key):
        """Ends a window."""
        if what == "bound to nothing":
            self.bind(window, kind, 0, 0, 0)
        elif what == "bound anew":
            self.bind(window, kind, FIRST, LENGTH, ALL)
        elif what == "deallocated":
            window.close()
        elif what == "invalidated by its owner":
            self.qp.post_send(SendWR(opcode=e.IBV_WR_LOCAL_INV, imm_data=key))
            self.well()
        else:
            self.receive(8)
            self.say("ready")
            told = self.well()
            if not told.wc_flags & self.tells or told.imm_data != key:
                raise Wrong(f"{what}: flags {told.wc_flags}, key {told.imm_data}, not {key}")


class User(Side):
    def run(self, number, case):
        kind, _, what = case
        self.meet()
        address, key = map(int, self.hear("window"))
        if what == MISUSES[3]:
            bound = self.qp
            self.meet()
        data = pattern(number + 1, 1500)
        self.mr.write(data, len(data), OUT)
        if what in ENDS[kind]:
            self.post(e.IBV_WR_RDMA_WRITE, OUT, len(data), remote=(key, address + 8))
            self.post(e.IBV_WR_ATOMIC_FETCH_AND_ADD, BACK + 4096, 8, atomic=(key, address, 1, 0))
            self.post(e.IBV_WR_RDMA_READ, BACK, LENGTH, remote=(key, address))
            for _ in range(3):
                self.well()
            expected = bytearray(pattern(number, SIZE)[FIRST : FIRST + LENGTH])
            expected[8:1508] = data
            if self.mr.read(LENGTH - 8, BACK + 8) != bytes(expected[8:]):
                raise Wrong(f"{case}: READ is wrong")
            self.say("used")
            if what == "invalidated by its peer":
                self.hear("ready")
                self.qp.post_send(SendWR(opcode=e.IBV_WR_SEND_WITH_INV, imm_data=key))
                self.well()
            self.hear("ended")
        place = {MISUSES[0]: LENGTH - 7, MISUSES[1]: -1}.get(what, 8)
        if address + place < 0:
            place += 1 << 64
        self.post(e.IBV_WR_RDMA_WRITE, OUT, 8, remote=(key, address + place))
        self.say("tried", self.ended().status)
        self.hear("heard")


def main():
    device, local, peer, mtu, role, *listens = sys.argv[1:]
    if listens:
        with socket.create_server(("", PORT)) as server:
            line, _ = server.accept()
    else:
        line = socket.create_connection((peer, PORT))
    side = (Owner if role == "own" else User)(device, local, int(mtu), line)
    beyond = sum(side.run(number, case) or 0 for number, case in enumerate(CASES))
    note = f", {beyond} of them as long as their region, as is known of Soft-RoCE" if beyond else ""
    print(f"{len(CASES)} windows{note}")


if __name__ == "__main__":
    main()
