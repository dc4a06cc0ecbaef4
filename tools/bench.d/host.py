# SPDX-License-Identifier: GPL-2.0
"""The host of the servers of a benchmark: beside the clients, or in another guest.

    python3 host.py

serves another guest's benchmark until that ends.
"""

import json
import socket
import subprocess
import time

PORT = 7000


class Host:
    """This host, or a network namespace of it."""

    def __init__(self, address, device, prefix=()):
        self.address, self.device, self.prefix = address, device, list(prefix)
        self.started = []

    def run(self, *words):
        """Run a command to its end."""
        subprocess.run([*self.prefix, *words], check=True)

    def start(self, *words):
        """Start a command that goes on; return its first line."""
        process = subprocess.Popen([*self.prefix, *words], stdout=subprocess.PIPE, text=True)
        self.started.append(process)
        return process.stdout.readline()

    def stop(self):
        """End what was started."""
        for process in self.started:
            process.kill()
            process.wait()
        self.started = []


class Guest:
    """Another guest, in which serve() runs. It does what a Host does."""

    def __init__(self, address, device):
        self.address, self.device = address, device
        for patience in reversed(range(120)):
            try:
                connection = socket.create_connection((address, PORT), timeout=10)
                break
            except OSError:
                # It is not up yet.
                if not patience:
                    raise
                time.sleep(1)
        connection.settimeout(None)
        self.lines = connection.makefile("rw")

    def ask(self, what, *words):
        print(json.dumps([what, *words]), file=self.lines, flush=True)
        answer = self.lines.readline()
        if not answer:
            raise RuntimeError(f"{what} {' '.join(words)}: the other guest failed")
        return json.loads(answer)

    def run(self, *words):
        self.ask("run", *words)

    def start(self, *words):
        return self.ask("start", *words)

    def stop(self):
        self.ask("stop")


def serve():
    host = Host("", "")
    listener = socket.create_server(("", PORT))
    lines = listener.accept()[0].makefile("rw")
    try:
        for line in lines:
            what, *words = json.loads(line)
            answer = {"run": host.run, "start": host.start, "stop": host.stop}[what](*words)
            print(json.dumps(answer), file=lines, flush=True)
    finally:
        host.stop()


if __name__ == "__main__":
    serve()
