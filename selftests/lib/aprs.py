#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""aprs.py CAPTURE: the statuses of the APRs in a capture that ibpcap.py has written, in their order; an APR that is
sent again counts once."""
import struct
import sys

ERF_HEADER, LRH, GRH, BTH_DETH, MAD = 16, 8, 40, 20, 256
APR = 0x1a

with open(sys.argv[1], "rb") as file:
    data = file.read()
order = "<" if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
statuses = {}
at = 24
while at + 16 <= len(data):
    length, = struct.unpack_from(order + "I", data, at + 8)
    packet = data[at + 16 + ERF_HEADER:at + 16 + length]
    at += 16 + length
    has_grh = packet[1] & 3 == 3
    mad = packet[LRH + GRH * has_grh + BTH_DETH:][:MAD]
    # A message of communication management begins behind a header of 24 bytes.
    if len(mad) == MAD and mad[1] == 7 and struct.unpack_from(">H", mad, 16)[0] == APR:
        statuses[mad[8:16], mad[24:32]] = mad[33]
print(*statuses.values())
