"""The receipts of an attempt that was not ended: its client may have died over exchanges that its recorders saw to their end.

What it offered and kept no sample of is the difference that `requests` tells. An attempt that ended is held to the rules
of every other subject.
"""

from __future__ import annotations

from typing import Iterator, Set

from checking.check import Complaint
from checking.reading import shown
from checking.rules import receipts
from checking.rules.converged import Attempt, offer_names


def _lost(subject: Attempt) -> Set[str]:
    """The offers of an attempt that was not ended of which it has no sample."""
    if subject.data["ended"]:
        return set()
    return set(offer_names(subject.data["requests"])) - {row["offer"] for row in subject.samples}


def hold_sequence(subject: Attempt) -> Iterator[Complaint]:
    """Receipts are numbered without a gap, but where an exchange was open when its recorder died."""
    return (receipts.hold_sequence if subject.data["ended"] else receipts.hold_increasing)(subject)


def hold_matched(subject: Attempt) -> Iterator[Complaint]:
    """Every receipt belongs to a sample, but for as many as there are offers that the client died over."""
    spare = len(_lost(subject))
    for place, complaint in enumerate(receipts.hold_matched(subject)):
        if place >= spare:
            yield complaint


def hold_ids(subject: Attempt) -> Iterator[Complaint]:
    """A request id is that of a sample with the receipt's hashes, or of an offer that the client died over."""
    lost = {"request id " + shown(offer) for offer in _lost(subject)}
    return (complaint for complaint in receipts.hold_ids(subject) if complaint[1] not in lost)
