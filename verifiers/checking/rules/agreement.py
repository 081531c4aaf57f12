"""What two sides of one comparison say of the same thing: client and samples, request and answer, receipt and client."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

from checking.arithmetic import MAIN_PER_ARM
from checking.check import Complaint
from checking.reading import shown
from checking.rules.comparison import Comparison, Row, adapter_of, arm_id
from checking.rules.receipts import arrived

CLOCK_SLACK = Decimal("0.25")
PATH_OF = {"chat": "/v1/chat/completions", "completions": "/v1/completions", "embeddings": "/v1/embeddings"}
READ = frozenset(("NORMAL", "CAPPED"))
FREE_ADAPTER = "command"


def _client(subject: Comparison) -> Iterator[Tuple[str, Row, List[Row]]]:
    for place, arm in enumerate(subject.data["arms"]):
        if arm["client"] is not None:
            at = "%s#/arms/%d/client/" % (subject.path("comparison.json"), place)
            yield at, arm["client"], subject.main(arm_id(arm))


def hold_send_lag(subject: Comparison) -> Iterator[Complaint]:
    """The client's greatest send lag is that of its arm's main samples, and so is the 99th percentile.

    The client measures over the main batch alone. By nearest rank the percentile of 24 is the greatest of them.
    """
    for at, client, rows in _client(subject):
        if len(rows) != MAIN_PER_ARM:
            continue
        right = max(row["sendLagSeconds"] for row in rows)
        for name in ("sendLagMaxSeconds", "sendLagP99Seconds"):
            if client[name] != right:
                yield (at + name, "%s s" % client[name], "%s s, the greatest of its main samples" % right)


def hold_least_send_lag(subject: Comparison) -> Iterator[Complaint]:
    """As hold_send_lag where the batch may have been cut: no main sample lagged more than the greatest that is told."""
    for at, client, rows in _client(subject):
        right = max([row["sendLagSeconds"] for row in rows] or [0])
        if client["sendLagMaxSeconds"] < right:
            name = "sendLagMaxSeconds"
            yield (at + name, "%s s" % client[name], "at least %s s, by its main samples" % right)


def hold_late(subject: Comparison) -> Iterator[Complaint]:
    """Late means that the loop lag at p99 or the greatest send lag is over the limit; and no p99 is over its greatest."""
    for at, client, _ in _client(subject):
        for name in ("loopLag", "sendLag"):
            if client[name + "P99Seconds"] > client[name + "MaxSeconds"]:
                yield (at + name + "P99Seconds", str(client[name + "P99Seconds"]), "at most the greatest")
        worst = max(client["loopLagP99Seconds"], client["sendLagMaxSeconds"])
        right = worst > client["limitSeconds"]
        if client["late"] is not right:
            yield (
                at + "late",
                shown(client["late"]),
                "%s: the worst is %s s with a limit of %s s" % (shown(right), worst, client["limitSeconds"]),
            )
