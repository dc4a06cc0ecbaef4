# SPDX-License-Identifier: GPL-2.0
"""The function or variable at an address, and its module."""

import bisect

# The modules of a connection manager, as one.
CM = {"rust_rdma_cm", "ib_cm", "rdma_cm", "rdma_ucm"}
OTHERS = {"rdma_rxe": "rxe", "ib_core": "ib_core", "ib_uverbs": "uverbs"}
USER_END = 1 << 47
# The kinds of symbols of text, and of data.
TEXT, DATA = "tTwW", "bBdDrRvV"


class Symbols:
    """The symbols of a kernel at one moment, of its text or of its data."""

    def __init__(self, path, kinds=TEXT):
        found = {}
        with open(path, encoding="ascii", errors="replace") as file:
            for line in file:
                address, kind, name, *module = line.split()
                if kind in kinds:
                    module = module[0].strip("[]") if module else ""
                    # An alias, or something without a size, gives its place to another name.
                    if not name.startswith(("__pi_", "__key.")) or int(address, 16) not in found:
                        found[int(address, 16)] = (name, module)
        self.starts = sorted(found)
        self.names = [found[start] for start in self.starts]

    def find(self, address):
        if address < USER_END:
            return "", "user"
        i = bisect.bisect_right(self.starts, address) - 1
        name, module = self.names[i] if i >= 0 else ("?", "")
        if module in CM:
            return name, "module"
        return name, OTHERS.get(module, module and "other modules" or "kernel")
