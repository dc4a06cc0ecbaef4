# SPDX-License-Identifier: GPL-2.0
"""For whom the kernel does something, by the calls that led to it (tools/insns/calls.h)."""

import collections

# The functions that the scheduler is: with all that they call.
SCHEDULER = {"__schedule", "try_to_wake_up", "do_idle", "sysvec_apic_timer_interrupt"}
RDMA = {"module", "ib_core", "rxe", "uverbs"}

# A function that was called from one place. Its owner is the RDMA module that has called it last and
# waits for its return, "elsewhere" if none has, or "scheduler"; callee is the function that the
# connection manager has called, if it is one or is called by one.
Call = collections.namedtuple("Call", "name parent owner callee instructions calls")


def calls(lines, symbols):
    """The lines of a stretch that are calls: {node: Call}."""
    found = {"0": Call("", None, "elsewhere", None, 0, 0)}
    for node, parent, address, own, count in (line for line in lines if len(line) == 5):
        name, group = symbols.find(int(address, 16))
        owner, callee = found[parent].owner, found[parent].callee
        if owner == "scheduler" or name in SCHEDULER:
            owner, callee = "scheduler", None
        elif group in RDMA:
            owner, callee = group, None
        elif owner == "module" and not callee:
            callee = name
        found[node] = Call(name, parent, owner, callee, int(own), int(count))
    return found
