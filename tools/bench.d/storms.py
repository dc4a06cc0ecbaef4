# SPDX-License-Identifier: GPL-2.0
"""The table and the plots of the simulated storms (cmsim storm), whose data are storm-*.csv."""

import csv
import glob
import os

NAMES = {"held": "all to all, held", "waves": "all to all, waves", "server": "one server"}
CONDITIONS = {"plain": "", "restart": ", a tenth restarts", "dead": ", a tenth is dead"}
POLICIES = {"c": "C", "rust": "Rust"}
HEAD = ("storm", "policy", "p50", "p99", "longest", "all", "messages", "failed", "memory")
PLOTS = [
    # file, scenario, column, title, y label
    ("storm-server", "server", "connect_p99", "Many clients of one server: p99 of a connection", "seconds"),
    ("storm-held", "held", "node_max", "All to all: until all are open", "seconds"),
    ("storm-waves", "waves", "node_max", "All to all in waves: until all are closed", "seconds"),
    ("storm-messages", "server", "messages_per_connection", "Many clients of one server: messages",
     "messages per connection"),
]


def is_storm(path):
    return os.path.basename(path).startswith("storm-")


def load(directory):
    """The storms in a directory, in the order of the files."""
    rows = []
    for path in sorted(glob.glob(os.path.join(directory, "storm-*.csv"))):
        with open(path, newline="", encoding="ascii") as file:
            rows += csv.DictReader(file)
    return rows


def order(row):
    return (list(NAMES).index(row["scenario"]), int(row["nodes"]), int(row["wave"]),
            list(CONDITIONS).index(row["condition"]), float(row["loss"]), row["policy"])


def seconds(value):
    value = float(value)
    return f"{value:,.2f} s" if value >= 1 else f"{value * 1000:,.1f} ms"


def lines(rows):
    for row in sorted(rows, key=order):
        name = f"{NAMES[row['scenario']]}, {int(row['nodes']):,}"
        if row["scenario"] == "waves":
            name += f" ({row['waves']} of {row['wave']})"
        name += f", {float(row['loss']):g} %{CONDITIONS[row['condition']]}"
        yield (name, POLICIES[row["policy"]],
               *(seconds(row[of]) for of in ("connect_p50", "connect_p99", "connect_max", "node_max")),
               f"{float(row['messages_per_connection']):.2f}", f"{int(row['failed']):,}",
               f"{int(row['peak_bytes']) / 1000:,.0f} kB")


def table(rows):
    """The table as reStructuredText."""
    body = [HEAD, *lines(rows)]
    widths = [max(len(line[i]) for line in body) for i in range(len(HEAD))]
    rule = "  ".join("=" * width for width in widths)
    out = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in body]
    return "\n".join([rule, out[0], rule, *out[1:], rule])


def plot(rows, directory, draw):
    for name, scenario, column, title, ylabel in PLOTS:
        mine = [row for row in rows if (row["scenario"], row["condition"]) == (scenario, "plain")]
        # The size that was simulated with the most losses, and the smaller one of two.
        sizes = sorted((-len({row["loss"] for row in mine if row["nodes"] == size}), int(size))
                       for size in {row["nodes"] for row in mine})
        if not sizes:
            continue
        size = sizes[0][1]
        data = {}
        for policy in POLICIES:
            points = {float(row["loss"]): float(row[column]) for row in mine
                      if row["policy"] == policy and int(row["nodes"]) == size}
            data[policy] = [f"{loss:g} {value:g}" for loss, value in sorted(points.items())]
        if all(data.values()):
            settings = ['set xlabel "messages lost, %"', "set logscale y" if ylabel == "seconds" else
                        "set yrange [0:*]", "set autoscale xfix",
                        "set offsets graph 0.03, graph 0.03, 0, 0"]
            draw(os.path.join(directory, name), title, f"simulated, {size:,} nodes: lower is better", ylabel,
                 settings, data, "with linespoints pointtype 7 pointsize 0.5")
