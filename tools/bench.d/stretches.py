# SPDX-License-Identifier: GPL-2.0
"""The stretches that a plugin of QEMU (tools/insns) has looked at, of point "insns", "cache" or "shared"."""

import csv
import os

from symbols import Symbols


class Stretches:
    """The stretches of a measurement in a directory, which has kallsyms-CM and stretches.csv, too."""

    def __init__(self, directory):
        self.directory = directory
        with open(self.path("stretches.csv"), newline="", encoding="ascii") as file:
            self.wanted = {int(row["stretch"]): row for row in csv.DictReader(file)}
        self.symbols = {}

    def path(self, name):
        return os.path.join(self.directory, name)

    def read(self, name):
        """Yields connection manager, round, x, number of connections, symbols, and lines as words."""
        lines = []
        with open(self.path(name), encoding="ascii") as file:
            for line in file:
                words = line.split()
                if words[0] != "end":
                    lines.append(words)
                    continue
                row = self.wanted.get(int(words[1]))
                if row:
                    cm = row["cm"]
                    if cm not in self.symbols:
                        self.symbols[cm] = Symbols(self.path(f"kallsyms-{cm}"))
                    yield cm, row["round"], row["x"], int(row["connections"]), self.symbols[cm], lines
                lines = []
