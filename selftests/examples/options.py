#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""options.py ADDRESS PORT: connects, with options of rust_rdma_cm where they are to be had.

The method set_option() of pyverbs knows one option alone, RDMA_OPTION_ID_ACK_TIMEOUT, and its objects
keep their identifiers to themselves. So librdmacm is called here by ctypes.
"""
import ctypes
import errno
import os
import socket
import struct
import sys
import time

RDMA_PS_TCP = 0x0106
RDMA_OPTION_TUNING = 0x52434D00
OPTIONS = (
    ("RESPONSE_TIMEOUT", 0, 18),  # a time code: 2^(18 - 8) ms, about a second
    ("MAX_RETRIES", 1, 3),  # a number
    ("DEADLINE", 2, 500),  # milliseconds
    ("TIMEWAIT", 3, 18),  # a time code
    ("EARLY_RETRY", 4, 50),  # milliseconds
    ("PARKING", 5, 64),  # a number of requests, for an id that listens
    ("DEAD_LINK", 7, 200),  # milliseconds
    ("KEEPALIVE", 8, 60),  # seconds
)
rdmacm = ctypes.CDLL("librdmacm.so.1", use_errno=True)
rdmacm.rdma_create_event_channel.restype = ctypes.c_void_p
rdmacm.rdma_event_str.restype = ctypes.c_char_p
POINTERS = {
    "rdma_create_id": "ppp",
    "rdma_set_option": "p",
    "rdma_resolve_addr": "ppp",
    "rdma_resolve_route": "p",
    "rdma_connect": "pp",
    "rdma_get_cm_event": "pp",
    "rdma_ack_cm_event": "p",
    "rdma_destroy_id": "p",
}


class Event(ctypes.Structure):
    """The beginning of struct rdma_cm_event."""

    _fields_ = [
        ("id", ctypes.c_void_p),
        ("listen_id", ctypes.c_void_p),
        ("event", ctypes.c_int),
        ("status", ctypes.c_int),
    ]


class ConnParam(ctypes.Structure):
    """struct rdma_conn_param."""

    _fields_ = [("private_data", ctypes.c_void_p)] + [
        (name, ctypes.c_uint8)
        for name in (
            "private_data_len",
            "responder_resources",
            "initiator_depth",
            "flow_control",
            "retry_count",
            "rnr_retry_count",
            "srq",
        )
    ] + [("qp_num", ctypes.c_uint32)]


def call(name, *arguments):
    """Calls a function that returns 0 or sets errno."""
    pointers = POINTERS[name]
    arguments = [
        ctypes.c_void_p(one) if at < len(pointers) and isinstance(one, int) else one
        for at, one in enumerate(arguments)
    ]
    if getattr(rdmacm, name)(*arguments):
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")


def tune(cm_id):
    """Sets each option. Returns whether there are any."""
    for _, option, value in OPTIONS:
        word = ctypes.c_uint(value)
        try:
            call("rdma_set_option", cm_id, RDMA_OPTION_TUNING, option, ctypes.byref(word), ctypes.c_size_t(4))
        except OSError as error:
            if error.errno != errno.ENOSYS:
                raise
            return False
    return True


def next_event(channel):
    """Returns the name and the status of the next event, which is acknowledged."""
    event = ctypes.POINTER(Event)()
    call("rdma_get_cm_event", channel, ctypes.byref(event))
    name, status = rdmacm.rdma_event_str(event.contents.event).decode(), event.contents.status
    call("rdma_ack_cm_event", event)
    return name, status


def main():
    address, port = sys.argv[1:]
    to = struct.pack("=H", socket.AF_INET) + struct.pack("!H", int(port)) + socket.inet_aton(address) + bytes(8)
    channel = rdmacm.rdma_create_event_channel()
    if channel is None:
        raise OSError(ctypes.get_errno(), "rdma_create_event_channel")
    created = ctypes.c_void_p()
    call("rdma_create_id", channel, ctypes.byref(created), None, RDMA_PS_TCP)
    cm_id = created.value
    print("rust_rdma_cm: six options are set" if tune(cm_id) else "no options: the C modules")
    call("rdma_resolve_addr", cm_id, None, to, 2000)
    assert next_event(channel) == ("RDMA_CM_EVENT_ADDR_RESOLVED", 0)
    call("rdma_resolve_route", cm_id, 2000)
    assert next_event(channel) == ("RDMA_CM_EVENT_ROUTE_RESOLVED", 0)
    start = time.monotonic()
    call("rdma_connect", cm_id, ctypes.byref(ConnParam(qp_num=0x123457)))
    name, status = next_event(channel)
    print(f"{name}, status {status}, after {time.monotonic() - start:.1f} s")
    call("rdma_destroy_id", cm_id)


if __name__ == "__main__":
    main()
