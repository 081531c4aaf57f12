"""The figures of snapshots against one another: what is told twice is one figure."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Dict, Iterator

from checking.check import Complaint
from checking.reading import shown
from checking.rules.comparison import Comparison

LEAST = Fraction(15, 16)  # the two are read one after the other
HELD = re.compile(r"(device-[1-9][0-9]?): ([0-9]{1,16}) bytes\b")


def hold_figures(subject: Comparison) -> Iterator[Complaint]:
    """A device has one size in all snapshots, and holds no less than what the method tells that its engine holds.

    A figure that was read has no reason why it was not; the reason belongs to what is null.
    """
    sizes: Dict[str, int] = {}
    for place, one in enumerate(subject.snapshots):
        held = {device: int(told) for device, told in HELD.findall(one["method"].partition(";")[2])}
        for number, row in enumerate(one["devices"]):
            at = "%s#/snapshots/%d/devices/%d" % (subject.path("snapshots.json"), place, number)
            used, total = row["usedBytes"], row["totalBytes"]
            if used is not None and total is not None and row["reason"]:
                yield (at + "/reason", shown(row["reason"]), "null, since nothing is")
            if total is not None and sizes.setdefault(row["device"], total) != total:
                yield (at + "/totalBytes", "%d" % total, "%d, as before" % sizes[row["device"]])
            if used is not None and used < held.get(row["device"], 0) * LEAST:
                yield (
                    at + "/usedBytes",
                    "%d" % used,
                    "the %d that its engine holds by the method" % held[row["device"]],
                )
