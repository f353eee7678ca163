#!/usr/bin/env python3
"""One end of a connection on which every octet is compared: SEND, WRITE, READ and atomics of many lengths.

    verify.py PEER LOCAL MTU lead|follow ROUNDS

Connects to PEER's TCP port 18600 to tell each other what a connection needs, and to take turns. The other end is the
example `verify` of roci-endpoint, whose documentation has the protocol.
"""

import socket
import sys

import pyverbs.enums as e
from pyverbs.addr import GID, AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

PORT = 18600
PART = 256 << 10
IN, SOURCE, RECV, OUT, BACK, COUNTERS = (PART * part for part in range(6))
LENGTHS = [1, 3, 64, 255, 1024, 1025, 4096, 4097, 30000, 65536, 200001]


def pattern(seed, length):
    period = bytes((place * 131 + seed * 29) & 0xFF for place in range(251))
    return (period * (length // 251 + 1))[:length]


def octets_of(address):
    """The sixteen octets of a GID that is this address."""
    return socket.inet_pton(socket.AF_INET6, address if ":" in address else "::ffff:" + address)


class End:
    def __init__(self, local, device="rxe0"):
        self.context = Context(name=device)
        self.gid = next(index for index in range(16) if self.octets(index) == octets_of(local))
        self.pd = PD(self.context)
        self.cq = CQ(self.context, 64)
        rights = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE
        self.rights = rights | e.IBV_ACCESS_REMOTE_READ | e.IBV_ACCESS_REMOTE_ATOMIC
        self.mr = MR(self.pd, COUNTERS + 4096, self.rights)
        self.mr.write(bytes(4096), 4096, COUNTERS)
        self.qp = self.queue_pair()

    def queue_pair(self):
        cap = QPCap(max_send_wr=16, max_recv_wr=16, max_send_sge=1, max_recv_sge=1)
        qp = QP(self.pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq, cap=cap))
        attributes = QPAttr(port_num=1)
        attributes.qp_access_flags = self.rights
        qp.to_init(attributes)
        return qp

    def octets(self, index):
        return octets_of(str(self.context.query_gid(1, index)))

    def connect(self, qpn, psn, address, mtu):
        hexadecimal = octets_of(address).hex()
        groups = ":".join(hexadecimal[place : place + 4] for place in range(0, 32, 4))
        route = GlobalRoute(dgid=GID(groups), sgid_index=self.gid)
        attributes = QPAttr(port_num=1)
        attributes.ah_attr = AHAttr(gr=route, is_global=1, port_num=1)
        attributes.dest_qp_num, attributes.rq_psn = qpn, psn
        attributes.path_mtu = {1024: e.IBV_MTU_1024, 4096: e.IBV_MTU_4096}[mtu]
        attributes.max_dest_rd_atomic, attributes.max_rd_atomic = 16, 16
        attributes.min_rnr_timer = 12
        self.qp.to_rtr(attributes)
        attributes.sq_psn, attributes.timeout, attributes.retry_cnt, attributes.rnr_retry = 0xFFFFF0, 16, 7, 7
        self.qp.to_rts(attributes)

    def part(self, place, length):
        return SGE(self.mr.buf + place, length, self.mr.lkey)

    def number(self, place):
        return int.from_bytes(self.mr.read(8, place), sys.byteorder)

    def receive(self, length):
        self.qp.post_recv(RecvWR(num_sge=1, sg=[self.part(RECV, length)]))

    def post(self, opcode, place, length, remote=None, atomic=None):
        request = SendWR(opcode=opcode, num_sge=1, sg=[self.part(place, length)], send_flags=e.IBV_SEND_SIGNALED)
        if remote:
            request.set_wr_rdma(*remote)
        if atomic:
            request.set_wr_atomic(*atomic)
        self.qp.post_send(request)

    def done(self, count):
        while count:
            found, completions = self.cq.poll(1)
            for completion in completions if found else []:
                if completion.status != e.IBV_WC_SUCCESS:
                    raise SystemExit(f"completion with status {completion.status}, {count} to go")
                count -= 1

    def expect(self, what, place, wanted):
        if self.mr.read(len(wanted), place) != wanted:
            raise SystemExit(f"{what} of {len(wanted)} octets is wrong")


def lead(end, say, hear, rounds, address, key):
    for number in range(rounds):
        length = LENGTHS[number % len(LENGTHS)]
        say(f"round {number} {length}")
        hear("ready")
        both = pattern(number, length) + pattern(number + 2, length)
        end.mr.write(both[:length], length, OUT)
        end.post(e.IBV_WR_SEND, OUT, length)
        end.done(1)
        end.mr.write(both[length:], length, OUT)
        end.post(e.IBV_WR_RDMA_WRITE, OUT, length, remote=(key, address + IN))
        end.post(e.IBV_WR_RDMA_READ, BACK, length, remote=(key, address + SOURCE))
        results = COUNTERS + 64
        end.post(e.IBV_WR_ATOMIC_FETCH_AND_ADD, results, 8, atomic=(key, address + COUNTERS, 1, 0))
        end.post(e.IBV_WR_ATOMIC_CMP_AND_SWP, results + 8, 8, atomic=(key, address + COUNTERS + 8, number, number + 1))
        end.done(4)
        end.expect("READ", BACK, pattern(number + 1, length))
        for place in [results, results + 8]:
            end.expect("atomic", place, number.to_bytes(8, sys.byteorder))
        say("check")
        hear("right")
    say("done")


def follow(end, say, hear):
    while (words := hear("round", "done"))[0] == "round":
        number, length = map(int, words[1:])
        end.mr.write(pattern(number + 1, length), length, SOURCE)
        end.receive(length)
        say("ready")
        hear("check")
        end.done(1)
        end.expect("SEND", RECV, pattern(number, length))
        end.expect("WRITE", IN, pattern(number + 2, length))
        for place in [COUNTERS, COUNTERS + 8]:
            end.expect("atomic", place, (number + 1).to_bytes(8, sys.byteorder))
        say("right")


def main():
    peer, local, mtu, role, rounds = sys.argv[1:]
    line = socket.create_connection((peer, PORT))
    lines = line.makefile("r")

    def say(text):
        line.sendall(text.encode() + b"\n")

    def hear(*wanted):
        words = lines.readline().split()
        if not words or words[0] not in wanted:
            raise SystemExit(f"{' or '.join(wanted)} was due, but {words} came")
        return words

    end = End(local)
    say(f"end {end.qp.qp_num} {0xFFFFF0} {local} {end.mr.buf} {end.mr.rkey}")
    qpn, psn, address, memory, key = hear("end")[1:]
    end.connect(int(qpn), int(psn), address, int(mtu))
    say("connected")
    hear("connected")
    if role == "lead":
        lead(end, say, hear, int(rounds), int(memory), int(key))
    else:
        follow(end, say, hear)
    print("every octet is right")


if __name__ == "__main__":
    main()
