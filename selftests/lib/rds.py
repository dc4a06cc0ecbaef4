#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Messages of Reliable Datagram Sockets.

    rds.py ping HERE THERE      the other host's kernel answers
    rds.py stress HERE THERE    both are addresses of this host
    rds.py echo HERE            answers another's "talk", and ends
    rds.py talk HERE THERE      to another's "echo"
"""

import os
import socket
import sys

# The port of "echo".
PORT = 4711
LENGTHS = [1, 100, 4096, 4097, 65536, 100000] * 10


def open_at(address, port=0):
    s = socket.socket(socket.AF_RDS, socket.SOCK_SEQPACKET, 0)
    s.settimeout(60)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    s.bind((address, port))
    return s


def expect(s, data, sender):
    got = s.recvfrom(1 << 20)
    assert got == (data, sender), (len(got[0]), got[1])


def main(mode, here, there=None):
    one = open_at(here, PORT if mode == "echo" else 0)
    if mode == "ping":
        # Port 0 answers by itself.
        for _ in range(20):
            one.sendto(b"", (there, 0))
            expect(one, b"", (there, 0))
    elif mode == "stress":
        two = open_at(there)
        for length in LENGTHS:
            for a, b in (one, two), (two, one):
                data = os.urandom(length)
                a.sendto(data, b.getsockname())
                expect(b, data, a.getsockname())
    elif mode == "echo":
        print("listening", flush=True)
        for _ in LENGTHS:
            one.sendto(*one.recvfrom(1 << 20))
    elif mode == "talk":
        for length in LENGTHS:
            data = os.urandom(length)
            one.sendto(data, (there, PORT))
            expect(one, data, (there, PORT))
    else:
        raise ValueError(mode)


main(*sys.argv[1:])
