"""Prints the frames of vectors.txt, built and sealed by scapy's RoCE layer (scapy.contrib.roce, scapy 2.8.0).

Run by hand, in a virtual environment with scapy: python3 vectors.py > vectors.txt
Each line is a name and a frame in hexadecimal, from the destination address to the ICRC. As a second opinion the
ICRC of each is computed again with zlib alone.
"""
import logging
import struct
import zlib

logging.getLogger("scapy").setLevel(logging.ERROR)
from scapy.all import IP, UDP, Dot1Q, Ether, IPv6, Raw
from scapy.contrib.roce import AETH, BTH, cnp

PAYLOAD = bytes(n % 251 for n in range(4096))
ETHER = dict(dst="02:00:00:00:00:02", src="02:00:00:00:00:01")


def ip4(**more):
    return IP(**{**dict(src="10.0.0.1", dst="10.0.0.2", flags="DF", ttl=64, tos=0x02, id=0x1234), **more})


def ip6(**more):
    return IPv6(**{**dict(src="fd00::1", dst="fd00::2", hlim=64, tc=0x02, fl=0xABCDE), **more})


def udp():
    return UDP(sport=0xC123, dport=4791, chksum=0)


def reth(va, rkey, length):
    return struct.pack(">QII", va, rkey, length)


def padded(octets):
    return octets + bytes(-len(octets) % 4)


def bth(opcode, body=b"", payload=b"", **more):
    fields = dict(opcode=opcode, dqpn=0x11, psn=0xFFFFFE, padcount=-len(payload) % 4)
    return BTH(**{**fields, **more}) / Raw(body + padded(payload))


def transports():
    yield "ACKNOWLEDGE", BTH(opcode=0x11, dqpn=0x11, psn=5) / AETH(syndrome=0x1F, msn=0x010203)
    yield "ACKNOWLEDGE-BECN", BTH(opcode=0x11, dqpn=0x11, psn=5, becn=1) / AETH(syndrome=0x1F, msn=7)
    yield "NAK-SEQUENCE", BTH(opcode=0x11, dqpn=0x11, psn=6) / AETH(syndrome=0x60, msn=7)
    yield "RNR-NAK", BTH(opcode=0x11, dqpn=0x11, psn=6) / AETH(syndrome=0x2C, msn=7)
    yield "SEND_ONLY-EMPTY", bth(0x04)
    yield "SEND_FIRST-4096", bth(0x00, payload=PAYLOAD)
    yield "SEND_ONLY_IMMEDIATE", bth(0x05, struct.pack(">I", 0xDEADBEEF), PAYLOAD[:6], solicited=1, ackreq=1)
    yield "SEND_LAST_INVALIDATE", bth(0x16, struct.pack(">I", 0x00C0FFEE), PAYLOAD[:8], ackreq=1)
    yield "WRITE_FIRST", bth(0x06, reth(0x0123456789ABCDEF, 0x2A, 8192), PAYLOAD[:1024])
    yield "WRITE_MIDDLE-FECN", bth(0x07, payload=PAYLOAD[:256], fecn=1)
    yield "WRITE_ONLY-ODD", bth(0x0A, reth(0x1000, 0x2A, 13), PAYLOAD[:13], ackreq=1)
    yield "WRITE_ONLY_IMMEDIATE", bth(0x0B, reth(0x1000, 0x2A, 3) + struct.pack(">I", 1), PAYLOAD[:3], ackreq=1)
    yield "READ_REQUEST", bth(0x0C, reth(0xFFFF800000001000, 0xFFFFFFFF, 1 << 31), ackreq=1)
    yield "READ_RESPONSE_FIRST", bth(0x0D, struct.pack(">I", 0x1F000009), PAYLOAD[:1024])
    yield "READ_RESPONSE_MIDDLE", bth(0x0E, payload=PAYLOAD[:1024])
    yield "READ_RESPONSE_ONLY", bth(0x10, struct.pack(">I", 0x1F000009), PAYLOAD[:1])
    yield "COMPARE_SWAP", bth(0x13, struct.pack(">QIQQ", 0x1000, 0x2A, 0x1111222233334444, 0x5555666677778888), ackreq=1)
    yield "FETCH_ADD", bth(0x14, struct.pack(">QIQQ", 0x1008, 0x2A, 1, 0), ackreq=1)
    yield "ATOMIC_ACKNOWLEDGE", bth(0x12, struct.pack(">IQ", 0x1F00000A, 0x99AABBCCDDEEFF00))
    yield "UC_SEND_FIRST", bth(0x20, payload=PAYLOAD[:1024])
    yield "UC_SEND_LAST_IMMEDIATE", bth(0x23, struct.pack(">I", 0xDEADBEEF), PAYLOAD[:7], solicited=1)
    yield "UC_WRITE_ONLY-ODD", bth(0x2A, reth(0x1000, 0x2A, 13), PAYLOAD[:13])
    yield "UD_SEND_ONLY", bth(0x64, struct.pack(">II", 0x80010000, 1), PAYLOAD[:256], dqpn=1)
    yield "CNP", cnp(0x11)


def second_opinion(frame, link, version):
    datagram = bytearray(frame[link:-4])
    if version == 4:
        header, masked = 20, (1, 8, 10, 11)
    else:
        header, masked = 40, (1, 2, 3, 7)
        datagram[0] |= 0x0F
    for at in (*masked, header + 6, header + 7, header + 8 + 4):
        datagram[at] = 0xFF
    assert zlib.crc32(bytes(8 * [0xFF]) + datagram) == struct.unpack("<I", frame[-4:])[0]


for name, transport in transports():
    for version, ip in ((4, ip4()), (6, ip6())):
        frame = bytes(Ether(**ETHER) / ip / udp() / transport)
        second_opinion(frame, 14, version)
        print(f"v{version}-{name}", frame.hex())
marked = bytes(Ether(**ETHER) / Dot1Q(prio=3, vlan=42) / ip4(tos=0x6B, ttl=61) / udp() / bth(0x04, payload=PAYLOAD[:5]))
second_opinion(marked, 18, 4)
print("v4-VLAN-CE", marked.hex())
