#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""ibpcap.py CAPTURE OUTPUT: of what was captured at interfaces below devices of tools/softib, the
InfiniBand packets, in a form that tshark reads (ERF records). CAPTURE is one of tcpdump, of an Ethernet
interface or of "any"."""
import struct
import sys

with open(sys.argv[1], "rb") as file:
    data = file.read()
order = "<" if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
# The offsets, by link type, at which IP begins, and of the Ethernet type.
ip, kind = {1: (14, 12), 276: (20, 0)}[struct.unpack_from(order + "I", data, 20)[0]]
out = bytearray(data[:20] + struct.pack(order + "I", 197))
at = 24
while at + 16 <= len(data):
    length, = struct.unpack_from(order + "I", data, at + 8)
    packet = data[at + 16:at + 16 + length]
    # IPv4 without options, UDP to the driver's port.
    if packet[kind:kind + 2] == b"\x08\x00" and packet[ip] == 0x45 and packet[ip + 9] == 17 and \
            packet[ip + 22:ip + 24] == struct.pack(">H", 4792):
        packet = packet[ip + 28:] + bytes(2)          # and a variant CRC
        seconds, micro = struct.unpack_from(order + "II", data, at)
        packet = struct.pack("<Q", seconds << 32 | (micro << 32) // 1000000) + struct.pack(
            ">BBHHH", 21, 4, len(packet) + 16, 0, len(packet)) + packet
        out += data[at:at + 8] + struct.pack(order + "II", len(packet), len(packet)) + packet
    at += 16 + length
with open(sys.argv[2], "wb") as file:
    file.write(out)
