#!/usr/bin/env python3
"""Checks a pcapng capture without any of this project's code: recomputes the ICRC of every RoCEv2 packet.

    icrc_check.py FILE.pcapng [--damaged N] [--cc-words N] [--hex]

Prints how many packets of each opcode it saw, and a line for each RoCEv2 packet whose ICRC is wrong, with its number in the
capture as Wireshark counts. Exits 0 when every ICRC is right, except for exactly N packets that a
fault damaged (0 unless given), and 1 otherwise. Needs nothing but Python 3.8.

The ICRC is the CRC-32 of Ethernet over the packet from its IP header to its payload's end, behind eight octets of ones
that stand for a header of InfiniBand's local routing, with ones in place of what routers may change: in IPv4 type of
service, time to live and checksum; in IPv6 traffic class, flow label and hop limit; in UDP the checksum; in the BTH its
fifth octet, and in Rocinante's layout "cc" the words behind the BTH, of which nothing in a packet tells how many there
are; datagrams and notifications have none. It stands least significant octet first (InfiniBand Architecture, Annex A17, section A17.3.3).
"""

import argparse
import collections
import struct
import sys
import zlib

ROCE_PORT = 4791
LONGEST = 4096 + 200  # octets of a packet: the largest payload with all headers
PACKET = 6  # the type of an Enhanced Packet Block
ONES = 0xFF


def frames(path):
    """Yields the octets of each captured frame."""
    with open(path, "rb") as file:
        data = file.read()
    order, place = "<", 0
    while place + 12 <= len(data):
        if data[place : place + 4] == b"\x0a\x0d\x0d\x0a":
            magic = data[place + 8 : place + 12]
            order = "<" if magic == b"\x4d\x3c\x2b\x1a" else ">"
        kind, length = struct.unpack_from(order + "II", data, place)
        if length < 12 or length % 4 or place + length > len(data):
            raise ValueError(f"block of {length} octets at {place}")
        if struct.unpack_from(order + "I", data, place + length - 4)[0] != length:
            raise ValueError(f"block at {place} ends with another length")
        if kind == PACKET:
            captured, original = struct.unpack_from(order + "II", data, place + 20)
            if captured != original:
                raise ValueError(f"packet at {place} was cut")
            yield data[place + 28 : place + 28 + captured]
        place += length
    if place != len(data):
        raise ValueError("a block is cut at the end")


def datagram(frame):
    """The IP datagram of a RoCEv2 frame and the length of its IP header, or None for another frame."""
    kind, place = struct.unpack_from(">H", frame, 12)[0], 14
    if kind == 0x8100:
        kind, place = struct.unpack_from(">H", frame, 16)[0], 18
    packet = frame[place:]
    if kind == 0x0800 and packet[9] == 17:
        header = (packet[0] & 15) * 4
        packet = packet[: struct.unpack_from(">H", packet, 2)[0]]
    elif kind == 0x86DD and packet[6] == 17:
        header = 40
        packet = packet[: 40 + struct.unpack_from(">H", packet, 4)[0]]
    else:
        return None
    if struct.unpack_from(">H", packet, header + 2)[0] != ROCE_PORT:
        return None
    return packet, header


def icrc(packet, header, words):
    """The ICRC that the datagram ought to have, with so many words of a cc header."""
    masked = bytearray(packet[:-4])
    opcode, behind = packet[header + 8], header + 8 + 12
    if opcode < 0x20 or opcode >= 0xC0:
        masked[behind : behind + 4 * words] = bytes([ONES] * 4 * words)
    if masked[0] >> 4 == 4:
        changing = [1, 8, 10, 11]
    else:
        masked[0] |= 0x0F
        changing = [1, 2, 3, 7]
    for place in changing + [header + 6, header + 7, header + 8 + 4]:
        masked[place] = ONES
    return zlib.crc32(bytes([ONES] * 8) + bytes(masked))


def main():
    parser = argparse.ArgumentParser(description="Recomputes the ICRC of every RoCEv2 packet of a capture.")
    parser.add_argument("capture")
    parser.add_argument("--damaged", type=int, default=0, help="how many packets have a wrong one, on purpose")
    parser.add_argument("--cc-words", type=int, default=0, help="how many words a header of layout cc has")
    parser.add_argument("--hex", action="store_true", help="show the octets of packets with a wrong one")
    arguments = parser.parse_args()
    right, wrong, runs = collections.Counter(), 0, 0
    for number, frame in enumerate(frames(arguments.capture), 1):
        found = datagram(frame)
        if found is None:
            continue
        packet, header = found
        opcode = packet[header + 8]
        if struct.unpack("<I", packet[-4:])[0] == icrc(packet, header, arguments.cc_words):
            right[opcode] += 1
        else:
            wrong += 1
            runs += len(packet) > LONGEST
            if wrong > arguments.damaged:
                octets = f": {packet.hex()}" if arguments.hex else ""
                print(f"packet {number}, {len(packet)} octets: wrong ICRC, opcode {opcode:#04x}{octets}", file=sys.stderr)
    for opcode, count in sorted(right.items()):
        print(f"opcode {opcode:#04x}: {count} right")
    print(f"{sum(right.values())} right, {wrong} wrong")
    if runs:
        # Offload leaves it to the device to split them, and the ICRC at the end is that of the last packet alone.
        print(
            f"{runs} of these longer than any packet: runs that were captured before they were split, "
            "see tx-udp-segmentation in docs/guide/perf.md",
            file=sys.stderr,
        )
    return 0 if right and wrong == arguments.damaged else 1


if __name__ == "__main__":
    sys.exit(main())
