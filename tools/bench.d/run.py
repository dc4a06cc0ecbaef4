# SPDX-License-Identifier: GPL-2.0
"""The common part of the points of the benchmark: a connection manager that is measured in a round,
its servers and clients, and the table of the points."""

import contextlib
import json
import subprocess

from host import Host

CLIENT, GUARD = "10.0.0.1", "10.0.0.99"
CMSTORM = "/mnt/share/cmstorm"
PEER = ["ip", "netns", "exec", "peer"]
# The other guest, and the own interface to it.
OTHER, LINK, FAR_GUARD = "10.0.1.2", "eth0", "10.0.1.99"
# The stretches of a connection with --steps.
STEPS = 6
# Seconds after which a storm is given up, longer than the undisturbed takes by far.
LIMIT = 120
POINTS = {}


class Run:
    """One connection manager in one round."""

    def __init__(self, cm, turn, writer, quick, other=None):
        self.cm, self.turn, self.writer, self.quick = cm, turn, writer, quick
        # The namespace of the servers, the own interface to them, and a host there that does not
        # answer.
        self.host = other or Host("10.0.0.2", "v1", PEER)
        self.device, self.guard = (LINK, FAR_GUARD) if other else ("v0", GUARD)
        # No two storms on one module use the same numbers of queue pairs: a number
        # that comes again is a peer that has forgotten its connection.
        self.qpn = 1

    # The totals of all clients so far: the profiler numbers them.
    stretches = 0

    def row(self, x, measure, unit, value):
        self.writer.writerow([x, measure, unit, self.cm, self.turn, f"{value:.6g}"])

    def count(self, number):
        return min(number, max(20, number // 10)) if self.quick else number

    def server(self, *args, port=7471):
        """Start a server in the other namespace, or guest."""
        command = [CMSTORM, "server", "-a", self.host.address, "-p", str(port),
                   "--qpn", str(self.qpn), *map(str, args)]
        if self.host.start(*command) != "listening\n":
            raise RuntimeError("the server does not listen")
        # The client finds its neighbour, and the two know each other.
        self.storm("-p", port, "-n", 20)

    def command(self, *args, connections):
        command = [CMSTORM, "client", "-a", self.host.address, "--qpn", str(self.qpn), *map(str, args)]
        self.qpn += connections
        Run.stretches += STEPS if "--steps" in command else 2 if "--finish" in command else 1
        return command

    def storm(self, *args, limit=LIMIT):
        """Run a client to its end and return what it reports."""
        words = list(map(str, args))
        total = sum(int(words[i + 1]) for i, word in enumerate(words)
                    if word in ("-n", "-o", "--dead-count"))
        command = self.command(*words, "-t", limit, connections=total + 1000)
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        if not done.stdout:
            raise RuntimeError(f"{' '.join(command)}: no report")
        return json.loads(done.stdout)

    def completion(self, x, report):
        """The time that all connections of a storm took."""
        self.row(x, "seconds", "s", report["seconds"])
        if report["unfinished"]:
            self.row(x, "unfinished", "connections", report["unfinished"])
        if report["failed"]:
            self.row(x, "failed", "connections", report["failed"])

    def stop(self):
        self.host.stop()


@contextlib.contextmanager
def held(command):
    """A command that says something, as a client with --hold when all of its connections are up, and
    then waits for a line."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    # A client's report has no end of line yet.
    if not process.stdout.read1():
        raise RuntimeError(f"{' '.join(command)}: no report")
    yield process
    process.communicate(b"\n")


def point(name, text, mem="2G", seconds=1500, cpus=1, peer=False):
    """With peer: it can be measured with the servers in another guest."""
    def register(function):
        POINTS[name] = (function, text, mem, seconds, cpus, peer)
        return function
    return register


def shell(command):
    subprocess.run(command, shell=True, check=True)
