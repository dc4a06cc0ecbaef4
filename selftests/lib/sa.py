#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A subnet administrator for the devices of tools/softib.

sa.py [OPTION...] DEVICE answers what is sent to the port with LID 1, which has to be DEVICE's. It knows
the InfiniBand ports of this host and those that --node names. Who asks again before the answer is gets
one.

  --node GID=LID        a port of another host
  --service id=N,name=TEXT,gid=GID[,pkey=N][,data8=HEX]    a service record to begin with
  --mtu N               of paths and groups, in bytes (4096)
  --life N              packet life time of paths, 4.096 us * 2^N (14)
  --hop-limit N         of paths (0)
  --no-send-only        do not offer send-only full members
  --no-opa-paths        do not offer the path records of Omni-Path
  --control FILE        read anew for each request: lines "KIND ACTION", where KIND is "path" (with a
                        service id: those of a connection manager), "ippath" (without: IPoIB's),
                        "mcast", "service", "info" or "all" and ACTION is "silent", "refuse" (a status),
                        "drop=N" (of the requests since this line is there, the first N), "delay=MS";
                        "hop-limit N" and "record id=..." are as the options --hop-limit and --service,
                        as long as they are there
  --log FILE            a line for each request (standard output)

It prints "ready" when it can be asked.
"""
import argparse
import fcntl
import glob
import os
import select
import socket
import struct
import sys
import time

HDR = struct.Struct("=5I4s4s2sBBBBBB16s4sH6x")       # struct ib_user_mad_hdr
MAD = struct.Struct(">BBBBHHQHHI")                    # the common header
RMPP = struct.Struct(">BBBBII")
SA = struct.Struct(">QHHQ")
AT_SA = MAD.size + RMPP.size
AT_DATA = AT_SA + SA.size
REGISTER_AGENT2 = 3 << 30 | 40 << 16 | 0x1b << 8 | 4
ENABLE_PKEY = 0x1b << 8 | 3

GET, SET, GET_TABLE, DELETE = 1, 2, 0x12, 0x15
OPA_VERSION = 0x80                                    # of the base and of the class, on Omni-Path
CLASS_PORT_INFO, INFORM_INFO, SERVICE, PATH, MCAST = 1, 3, 0x31, 0x35, 0x38
KINDS = {SERVICE: "service", PATH: "path", MCAST: "mcast"}
NAMES = {GET: "get", SET: "set", GET_TABLE: "table", DELETE: "delete"}
# Statuses.
BAD_METHOD, NO_RESOURCES, INVALID, NO_RECORDS, BAD_GID, INSUFFICIENT = \
    0x000c, 0x0100, 0x0200, 0x0300, 0x0500, 0x0600
MTUS = {256: 1, 512: 2, 1024: 3, 2048: 4, 4096: 5}
RATE = 16                                             # 100 Gb/s: four lanes of EDR
EXACTLY = 2 << 6
SEND_ONLY_FULL_MEMBER = 8


class Refused(Exception):
    """With a status."""


def bits(mask, *numbers):
    for n in numbers:
        if mask >> n & 1:
            return True
    return False


def gid_bytes(text):
    return socket.inet_pton(socket.AF_INET6, text)


def gid_text(raw):
    return socket.inet_ntop(socket.AF_INET6, raw)


class Subnet:
    def __init__(self, args, control):
        self.args = args
        self.control = control
        self.mtu = MTUS[args.mtu]
        self.fixed = {}
        for node in args.node:
            gid, lid = node.rsplit("=", 1)
            self.fixed[gid_bytes(gid)] = int(lid, 0)
        self.groups = {}
        self.services = [self.service(text) for text in args.service]
        self.next_mlid = 0xc000
        self.next_mgid = 1
        self.found, self.read = {}, 0

    def nodes(self):
        """The answers, which are not read anew for each of many requests at once."""
        if time.monotonic() - self.read < 0.2:
            return self.found
        found = dict(self.fixed)
        for port in glob.glob("/sys/class/infiniband/*/ports/1"):
            try:
                def read(name, port=port):
                    with open(f"{port}/{name}", encoding="ascii") as file:
                        return file.read().strip()
                lid = int(read("lid"), 0)
                if read("link_layer") == "InfiniBand" and lid:
                    found[gid_bytes(read("gids/0"))] = lid
            except OSError:
                pass                                  # it is going
        self.found, self.read = found, time.monotonic()
        return found

    # PathRecord

    def paths(self, mask, data, is_opa=False):
        # A record of Omni-Path has LIDs of 32 bits, so that what follows them is four bytes later.
        lids, end = (">II", 48) if is_opa else (">HH", 44)
        dgid, sgid = data[8:24], data[24:40]
        dlid, slid = struct.unpack_from(lids, data, 40)
        pkey, = struct.unpack_from(">H", data, end + 6)
        lid_mask = 0xffffffff if is_opa else 0xffff
        nodes = self.nodes()
        group = self.groups.get(dgid) if bits(mask, 2) else None

        def ends(with_gid, gid, with_lid, lid):
            return [(g, l) for g, l in nodes.items()
                    if (not with_gid or g == gid) and (not with_lid or l == lid)]

        sources = ends(bits(mask, 3), sgid, bits(mask, 5), slid)
        if group:
            targets = [(dgid, group["mlid"])]
        else:
            targets = ends(bits(mask, 2), dgid, bits(mask, 4), dlid)
        if bits(mask, 13) and pkey & 0x7fff not in (0x7fff, 0x0001):
            return []
        if not bits(mask, 13):
            pkey = 0xffff
        hop_limit = int((self.control.values("hop-limit") or [self.args.hop_limit])[-1])
        records = []
        for source in sources:
            for target in targets:
                record = bytearray(64)
                record[0:8] = data[0:8] if bits(mask, 0, 1) else bytes(8)
                record[8:24] = target[0]
                record[24:40] = source[0]
                struct.pack_into(lids + "I", record, 40, target[1] & lid_mask, source[1] & lid_mask, hop_limit)
                record[end + 4] = data[end + 4] if bits(mask, 10) else 0
                record[end + 5] = 0x80 | 1            # reversible
                struct.pack_into(">H", record, end + 6, pkey)
                if is_opa:
                    record[56] = 0x30                 # packets of 9B and 16B
                else:
                    struct.pack_into(">H", record, 52, struct.unpack_from(">H", data, 52)[0] & 0xfff0)
                at = 60 if is_opa else 54
                record[at:at + 3] = bytes((EXACTLY | self.mtu, EXACTLY | RATE, EXACTLY | self.args.life))
                records.append(bytes(record))
        return records

    # MCMemberRecord

    def group(self, mgid, **what):
        if self.next_mlid > 0xfffe:
            raise Refused(NO_RESOURCES)
        group = {"mlid": self.next_mlid, "qkey": 0x0b1b, "pkey": 0xffff, "tclass": 0, "mtu": self.mtu,
                 "rate": RATE, "life": self.args.life, "sl_flow_hop": 0, "scope": mgid[1] & 15,
                 "members": {}}
        group.update(what)
        self.next_mlid += 1
        self.groups[mgid] = group
        return group

    def member(self, mgid, group, port, state):
        record = bytearray(52)
        record[0:16] = mgid
        record[16:32] = port
        struct.pack_into(">IHBBHBBI", record, 32, group["qkey"], group["mlid"], EXACTLY | group["mtu"],
                         group["tclass"], group["pkey"], EXACTLY | group["rate"], EXACTLY | group["life"],
                         group["sl_flow_hop"])
        record[48] = group["scope"] << 4 | state
        return bytes(record)

    @staticmethod
    def is_broadcast(mgid):
        """True for a broadcast group of IPoIB: it is there before anybody joins."""
        return mgid[0] == 0xff and mgid[2:4] == b"\x40\x1b" and mgid[6:] == bytes(6) + b"\xff\xff\xff\xff"

    def join(self, mask, data):
        mgid, port = data[0:16], data[16:32]
        qkey, _, mtu, tclass, pkey, rate, life, sl_flow_hop = struct.unpack_from(">IHBBHBBI", data, 32)
        state = data[48] & 15
        if not bits(mask, 16) or not state:
            raise Refused(INSUFFICIENT)
        if port not in self.nodes():
            raise Refused(BAD_GID)
        if mgid == bytes(16):
            mgid = gid_bytes("ff12:a01b:fe80::") [0:12] + struct.pack(">I", self.next_mgid)
            self.next_mgid += 1
        elif mgid[0] != 0xff:
            raise Refused(INVALID)
        group = self.groups.get(mgid)
        if not group and self.is_broadcast(mgid):
            group = self.group(mgid, pkey=struct.unpack_from(">H", mgid, 4)[0] | 0x8000)
        if not group:
            # A node that creates it has to name its properties, and has to be more than a send-only
            # member.
            if not all(bits(mask, n) for n in (2, 6, 7, 12, 13)):
                raise Refused(INSUFFICIENT)
            if not state & (1 | SEND_ONLY_FULL_MEMBER):
                raise Refused(INVALID)
            group = self.group(mgid, qkey=qkey, pkey=pkey, tclass=tclass, sl_flow_hop=sl_flow_hop)
            if bits(mask, 5) and mtu >> 6 == 2:
                group["mtu"] = mtu & 63
            if bits(mask, 9) and rate >> 6 == 2:
                group["rate"] = rate & 63
            if bits(mask, 11) and life >> 6 == 2:
                group["life"] = life & 63
        elif bits(mask, 2) and qkey != group["qkey"] or bits(mask, 7) and (pkey ^ group["pkey"]) & 0x7fff:
            raise Refused(INVALID)
        members = group["members"]
        members[port] = members.get(port, 0) | state
        return self.member(mgid, group, port, members[port])

    def leave(self, _, data):
        mgid, port, state = data[0:16], data[16:32], data[48] & 15
        group = self.groups.get(mgid)
        if not group or not group["members"].get(port, 0) & state:
            raise Refused(INVALID)
        group["members"][port] &= ~state
        answer = self.member(mgid, group, port, group["members"][port])
        if not group["members"][port]:
            del group["members"][port]
        if not group["members"]:
            del self.groups[mgid]
        return answer

    def members(self, mask, data):
        mgid = data[0:16]
        if bits(mask, 0) and mgid not in self.groups and self.is_broadcast(mgid):
            self.group(mgid, pkey=struct.unpack_from(">H", mgid, 4)[0] | 0x8000)
        records = []
        for known, group in self.groups.items():
            if bits(mask, 0) and known != mgid:
                continue
            if bits(mask, 1):
                if data[16:32] in group["members"]:
                    records.append(self.member(known, group, data[16:32], group["members"][data[16:32]]))
            else:
                records.append(self.member(known, group, bytes(16), 0))
        return records

    # ServiceRecord

    @staticmethod
    def service(text):
        what = dict(item.split("=", 1) for item in text.split(","))
        record = bytearray(176)
        struct.pack_into(">Q16sHxxI", record, 0, int(what["id"], 0), gid_bytes(what["gid"]),
                         int(what.get("pkey", "0xffff"), 0), 0xffffffff)
        name = what.get("name", "").encode()[:64]
        record[48:48 + len(name)] = name
        data8 = bytes.fromhex(what.get("data8", ""))[:16]
        record[112:112 + len(data8)] = data8
        return bytes(record)

    # The part of a service record that a bit of the mask compares.
    FIELDS = {0: (0, 8), 1: (8, 24), 2: (24, 26), 4: (28, 32), 5: (32, 48), 6: (48, 112)}
    FIELDS.update({7 + i: (112 + i, 113 + i) for i in range(16)})
    FIELDS.update({23 + i: (128 + 2 * i, 130 + 2 * i) for i in range(8)})
    FIELDS.update({31 + i: (144 + 4 * i, 148 + 4 * i) for i in range(4)})
    FIELDS.update({35 + i: (160 + 8 * i, 168 + 8 * i) for i in range(2)})

    def find_services(self, mask, data):
        known = self.services + [self.service(text) for text in self.control.values("record")]
        return [record for record in known
                if all(record[a:b] == data[a:b] for bit, (a, b) in self.FIELDS.items() if bits(mask, bit))]

    def set_service(self, _, data):
        record = data[0:176]
        self.services = [known for known in self.services if known[0:26] != record[0:26]] + [record]
        return record

    def delete_service(self, mask, data):
        found = self.find_services(mask, data)
        if not found:
            raise Refused(NO_RECORDS)
        self.services.remove(found[0])
        return found[0]

    def class_port_info(self, is_opa):
        capabilities2 = 0 if self.args.no_send_only else 1 << 12
        if is_opa:
            capabilities2 |= 0 if self.args.no_opa_paths else 1 << 26
            return struct.pack(">BBHI72x", OPA_VERSION, OPA_VERSION, 0, capabilities2 << 5 | 18)
        return struct.pack(">BBHI64x", 1, 2, 0, capabilities2 << 5 | 18)

    def answer(self, method, attribute, mask, data, is_opa):
        """A list of records for a table, else one."""
        if attribute == CLASS_PORT_INFO and method == GET:
            return self.class_port_info(is_opa)
        if is_opa and attribute == PATH and method in (GET, GET_TABLE):
            found = self.paths(mask, data, True)
            if method == GET and not found:
                raise Refused(NO_RECORDS)
            return found if method == GET_TABLE else found[0]
        if attribute == INFORM_INFO and method == SET:
            return data
        find = {PATH: self.paths, MCAST: self.members, SERVICE: self.find_services}.get(attribute)
        change = {(MCAST, SET): self.join, (MCAST, DELETE): self.leave, (SERVICE, SET): self.set_service,
                  (SERVICE, DELETE): self.delete_service}.get((attribute, method))
        if change:
            return change(mask, data)
        if not find or method not in (GET, GET_TABLE):
            raise Refused(BAD_METHOD)
        found = find(mask, data)
        if method == GET_TABLE:
            return found
        if not found:
            raise Refused(NO_RECORDS)
        return found[0]


class Control:
    """The treatment of requests that the control file asks for."""

    def __init__(self, path):
        self.path = path
        self.lines = []
        self.seen = {}

    def read(self):
        """Reads the file, which is done once for each request."""
        try:
            with open(self.path, "rb", buffering=0) as file:
                self.lines = file.read().decode("ascii").splitlines()
        except (OSError, TypeError):                  # there is none
            self.lines = []
        self.seen = {line: n for line, n in self.seen.items() if line in self.lines}

    def values(self, name):
        return [line.partition(" ")[2] for line in self.lines if line.partition(" ")[0] == name]

    def action(self, kind):
        for line in self.lines:
            what, _, action = line.partition(" ")
            if what not in (kind, "all"):
                continue
            name, _, number = action.partition("=")
            if name != "drop":
                return name, int(number or 0)
            self.seen[line] = self.seen.get(line, 0) + 1
            if self.seen[line] <= int(number):
                return "silent", 0
        return "", 0


class Agent:
    def __init__(self, device):
        for path in glob.glob("/sys/class/infiniband_mad/umad*"):
            with open(f"{path}/ibdev", encoding="ascii") as file:
                if file.read().strip() == device:
                    break
        else:
            sys.exit(f"sa.py: {device} has no umad device (ib_umad)")
        self.file = os.open(f"/dev/infiniband/{os.path.basename(path)}", os.O_RDWR | os.O_NONBLOCK)
        methods = 0
        for method in NAMES:
            methods |= 1 << method
        for version in 2, OPA_VERSION:
            request = bytearray(struct.pack("=IIBBHIQQIB3x", 0, 1, 3, version, 0, 0, methods, 0, 0, 1))
            fcntl.ioctl(self.file, REGISTER_AGENT2, request)

    def read(self, waiting):
        """Adds all that have come to the requests that wait; one that waits already is not added again."""
        while True:
            try:
                packet = os.read(self.file, 1 << 16)
            except BlockingIOError:
                return
            header, request = packet[:HDR.size], packet[HDR.size:]
            if not HDR.unpack(header)[1]:             # else it could not be sent
                waiting.setdefault((header[28:30], request[8:18]), (header, request))

    def send(self, header, mad, rmpp):
        fields = list(HDR.unpack(header))
        fields[1:5] = [0, 1000 if rmpp else 0, 3 if rmpp else 0, len(mad)]
        fields[6] = struct.pack(">I", 0x80010000)
        os.write(self.file, HDR.pack(*fields) + mad)


def reply(subnet, request, refuse):
    """The answering MAD, whether it goes in segments, and what became of it in words."""
    base, cls, version, method, _, specific, tid, attribute, _, modifier = MAD.unpack_from(request)
    sm_key, _, _, mask = SA.unpack_from(request, AT_SA)
    status, payload, size = 0, b"", 0
    try:
        if refuse:
            raise Refused(INVALID)
        payload = subnet.answer(method, attribute, mask, request[AT_DATA:256], version == OPA_VERSION)
    except Refused as why:
        status = why.args[0]
    table = method == GET_TABLE and not status
    what = "0x%04x" % status if status else "ok"
    if table:
        records = payload if isinstance(payload, list) else []
        what += f" {len(records)}"
        size = -(-len(records[0]) // 8) if records else 0
        payload = b"".join(record.ljust(size * 8, b"\0") for record in records)
    elif status:
        payload = request[AT_DATA:256]
    mad = MAD.pack(base, cls, version, {SET: 0x81}.get(method, method | 0x80), status, specific, tid,
                   attribute, 0, modifier)
    mad += RMPP.pack(1, 1, 1, 0, 0, 0) if table else bytes(RMPP.size)
    mad += SA.pack(sm_key, size, 0, mask)
    mad += payload if table else payload.ljust(200, b"\0")
    return mad, table, what


def describe(attribute, data):
    if attribute == PATH:
        return f" {gid_text(data[24:40])} {gid_text(data[8:24])}"
    if attribute == MCAST:
        return f" {gid_text(data[0:16])} {gid_text(data[16:32])} state {data[48] & 15}"
    if attribute == SERVICE:
        return " id 0x%x name %s" % (int.from_bytes(data[0:8], "big"),
                                     data[48:112].rstrip(b"\0").decode(errors="replace") or "-")
    return ""


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--node", action="append", default=[])
    parser.add_argument("--service", action="append", default=[])
    parser.add_argument("--mtu", type=int, default=4096)
    parser.add_argument("--life", type=int, default=14)
    parser.add_argument("--hop-limit", type=int, default=0)
    parser.add_argument("--no-send-only", action="store_true")
    parser.add_argument("--no-opa-paths", action="store_true")
    parser.add_argument("--control")
    parser.add_argument("--log")
    parser.add_argument("device")
    args = parser.parse_args()
    log = open(args.log, "a", encoding="ascii") if args.log else sys.stdout

    # Programs of librdmacm wait for 2 s, and on a real fabric do not share a processor with it.
    os.setpriority(os.PRIO_PROCESS, 0, -20)
    control = Control(args.control)
    subnet, agent = Subnet(args, control), Agent(args.device)
    waiting = {}                                      # header and request, by who asks and the transaction
    later = []                                        # (when, header, mad, rmpp)
    print("ready", flush=True)
    while True:
        pause = max(0.0, later[0][0] - time.monotonic()) if later else None
        if waiting or select.select([agent.file], [], [], pause)[0]:
            try:
                agent.read(waiting)
            except OSError as why:
                sys.exit(f"sa.py: {why}")             # the device is gone
        # One, and then what came meanwhile is read: where many ask at once, each asks again every 200 ms, and
        # to answer each of these takes longer than to answer them all.
        if waiting:
            header, request = waiting.pop(next(iter(waiting)))
            control.read()
            method, attribute = request[3], int.from_bytes(request[16:18], "big")
            kind = KINDS.get(attribute, "info")
            if attribute == PATH and not request[AT_SA + 19] & 3:
                kind = "ippath"
            action, number = control.action(kind)
            if action == "silent":
                what = "silent"
            else:
                mad, rmpp, what = reply(subnet, request, action == "refuse")
                due = time.monotonic() + (number / 1000 if action == "delay" else 0)
                later.append((due, header, mad, rmpp))
                later.sort(key=lambda item: item[0])
            print(f"{kind} {NAMES.get(method, method)}{describe(attribute, request[AT_DATA:])}: {what}",
                  file=log, flush=not waiting)
        while later and later[0][0] <= time.monotonic():
            _, header, mad, rmpp = later.pop(0)
            try:
                agent.send(header, mad, rmpp)
            except OSError as why:
                print(f"not sent: {why}", file=log, flush=True)


if __name__ == "__main__":
    main()
