# SPDX-License-Identifier: GPL-2.0
"""The rows of a measurement."""

import csv


def writer(file):
    """A writer of rows, behind the row that names their values."""
    rows = csv.writer(file, lineterminator="\n")
    rows.writerow(["x", "measure", "unit", "cm", "round", "value"])
    return rows
