"""What samples, receipts and snapshots of an aborted run must say, as those of a whole comparison must."""

from __future__ import annotations

from typing import Iterator, Set

from checking.check import Complaint
from checking.later import Later
from checking.rules import memory, protocol, receipts, samples
from checking.rules.comparison import Comparison

lies = Later("checking.rules.unfinished_samples_lies")


def hold_once(subject: Comparison) -> Iterator[Complaint]:
    """No offer has two samples."""
    seen: Set[str] = set()
    for row in subject.samples:
        if row["offer"] in seen:
            yield (subject.at(row), "a second sample", "one sample of an offer")
        seen.add(row["offer"])


ROWS = (
    (
        "incomplete-once",
        "no offer has two samples",
        hold_once,
        (("list a sample of an aborted run twice", lies.list_twice),),
    ),
    (
        "incomplete-finish",
        "finish reasons are those of the stored bodies",
        samples.hold_finish,
        (("tell another finish reason of an aborted run", lies.finish_otherwise),),
    ),
    (
        "incomplete-ttft",
        "a stream with text has a time to it, and nothing else has",
        samples.hold_ttft,
        (("time reasoning of an aborted run that is not there", lies.time_reasoning),),
    ),
    (
        "incomplete-times",
        "first text comes after the first byte out and before the last byte in",
        samples.hold_times,
        (("let nothing of an aborted run take any time", lies.take_no_time),),
    ),
    (
        "incomplete-traffic",
        "traffic is a POST to a serving path, and nothing else",
        receipts.hold_traffic,
        (("call traffic of an aborted run a control", lies.hide_traffic),),
    ),
    (
        "incomplete-receipt-complete",
        "a complete exchange has a status and no reason",
        receipts.hold_completeness,
        (("cut an exchange of an aborted run without a reason", lies.cut_silently),),
    ),
    (
        "incomplete-headers",
        "recorded headers agree with the receipt",
        receipts.hold_headers,
        (("record another content length in an aborted run", lies.other_length),),
    ),
    (
        "incomplete-snapshot-memory",
        "what was not read is null with a reason, never 0",
        protocol.hold_memory,
        (("write 0 into a snapshot of an aborted run", lies.write_zero),),
    ),
    (
        "incomplete-snapshot-figures",
        "figures of snapshots agree: one size a device, no less in use than its engine holds",
        memory.hold_figures,
        (("let a device of an aborted run grow between snapshots", lies.grow),),
    ),
)
