"""Which receipt is of which sample."""

from __future__ import annotations

from collections import Counter
from operator import itemgetter
from typing import Dict, Iterator, List, Tuple

from checking.rules.comparison import Comparison, Row, Spot

_SAMPLE = itemgetter("offer", "worker", "requestSha256", "responseSha256", "status")
_RECEIPT = itemgetter("requestId", "requestSha256", "responseSha256", "status")


def arrived(row: Row) -> bool:
    """Whether a sample came back whole from a worker: a gateway may answer an error of its own instead."""
    return row["transport"] == "complete" and row["status"] is not None and 200 <= row["status"] <= 299


def paired(subject: Comparison, arm: str) -> bool:
    """Whether an arm's samples and its traffic are the same exchanges, one by one, told once a subject.

    Then every sample came back whole, has an offer of its own, and there is one receipt with that as its request id, its
    worker, its hashes and its status; this receipt is complete, and there is no other. It is so of nearly every arm, and
    leaves nothing to be asked that follows from it.
    """
    if arm not in subject.paired:
        mine, seen = subject.by_arm.get(arm, []), subject.traffic(arm)
        asked = set(map(_SAMPLE, mine))
        subject.paired[arm] = (
            len(asked) == len(mine) == len(seen) == len({row["offer"] for row in mine})
            and all(map(arrived, mine))
            and all(row["complete"] for _, row in seen)
            and asked == {(name, worker, *rest) for worker, row in seen for name, *rest in (_RECEIPT(row),)}
        )
    return subject.paired[arm]


def mismatched(subject: Comparison, arm: str) -> bool:
    """Whether receipts and samples of an arm differ as multisets of (request hash, response hash)."""
    if paired(subject, arm):
        return False
    mine = subject.by_arm.get(arm, [])
    left = Counter((worker, row["requestSha256"], row["responseSha256"]) for worker, row in subject.traffic(arm))
    known = Counter((row["worker"], row["requestSha256"], row["responseSha256"]) for row in mine if row["worker"])
    rest = Counter((row["requestSha256"], row["responseSha256"]) for row in mine if not row["worker"])
    if known - left:
        return True
    left -= known
    union: "Counter[Tuple[str, str]]" = Counter()
    for (_, request, response), count in left.items():
        union[(request, response)] += count
    return union != rest


def _witnessed(subject: Comparison, arm: str) -> Iterator[Tuple[Spot, Row, Row]]:
    samples = {row["offer"]: row for row in subject.by_arm.get(arm, []) if arrived(row)}
    pairs: Dict[Tuple[str, str], List[Row]] = {}
    for row in samples.values():
        pairs.setdefault((row["requestSha256"], row["responseSha256"]), []).append(row)
    for worker, receipt in subject.traffic(arm):
        if not receipt["complete"]:
            continue
        if receipt["requestId"] is not None:
            same = [samples[receipt["requestId"]]] if receipt["requestId"] in samples else []
        else:
            same = pairs.get((receipt["requestSha256"], receipt["responseSha256"]), [])
        if len(same) == 1:
            yield (subject.ledger_names[(arm, worker)], receipt["sequence"]), same[0], receipt


def witnessed(subject: Comparison, arm: str) -> List[Tuple[Spot, Row, Row]]:
    """(place, sample, receipt) of an arm's exchanges that both sides saw whole, told once a subject.

    By the request id; where the gateway dropped it, by both hashes, as long as they are those of one sample.
    """
    if arm not in subject.witnessed:
        subject.witnessed[arm] = list(_witnessed(subject, arm))
    return subject.witnessed[arm]
