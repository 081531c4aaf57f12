"""Receipts: what the recorder before each worker saw, against what the client kept."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from operator import itemgetter
from typing import Callable, Dict, Iterator, Optional, Tuple

from checking.check import Complaint
from checking.plan import MAIN_PER_ARM, NATIVE_WARM_PER_WORKER, RR_WARM, WORKERS, Number
from checking.reading import shown
from checking.rules.comparison import TRAFFIC, Comparison, Row
from checking.rules.pairing import arrived, paired

WITNESS_SLACK = Decimal("0.005")
EACH = {"native-warm": NATIVE_WARM_PER_WORKER, "rr-warm": RR_WARM // WORKERS, "main": MAIN_PER_ARM // WORKERS}


def _receipts(subject: Comparison) -> Iterator[Tuple[str, Row]]:
    """(ledger, receipt) of every receipt."""
    for key, rows in subject.ledgers.items():
        name = subject.ledger_names[key]
        for row in rows:
            yield name, row


def _wrong(subject: Comparison, keys: Tuple[str, ...], right: Callable[..., bool]) -> Iterator[Tuple[str, Row]]:
    """(ledger, receipt) of every receipt of whose values of some keys `right` is not true; it is asked once of equal ones."""
    values = itemgetter(*keys)
    for key, rows in subject.ledgers.items():
        wrong = {told for told in set(map(values, rows)) if not right(*told)}
        for row in rows if wrong else ():
            if values(row) in wrong:
                yield subject.ledger_names[key], row


def _is_traffic(method: str, path: str) -> bool:
    return method == "POST" and path.split("?")[0] in TRAFFIC


def _at(ledger: str, receipt: Row) -> str:
    return "%s#%d" % (ledger, receipt["sequence"])


def hold_sequence(subject: Comparison) -> Iterator[Complaint]:
    """The receipts of a ledger are numbered from 1 without a gap."""
    for key, rows in subject.ledgers.items():
        told = [row["sequence"] for row in rows]
        if told != list(range(1, len(rows) + 1)):
            wrong = next(place for place, number in enumerate(told, 1) if place != number)
            yield (
                "%s#%d" % (subject.ledger_names[key], told[wrong - 1]),
                "sequence %d" % told[wrong - 1],
                "%d" % wrong,
            )


def hold_increasing(subject: Comparison) -> Iterator[Complaint]:
    """The numbers of a ledger grow; where a run died, an exchange that was open may have left a gap."""
    for key, rows in subject.ledgers.items():
        before = 0
        for row in rows:
            if row["sequence"] <= before:
                at = "%s#%d" % (subject.ledger_names[key], row["sequence"])
                yield (at, "sequence %d" % row["sequence"], "more than %d" % before)
            before = row["sequence"]


def hold_traffic(subject: Comparison) -> Iterator[Complaint]:
    """Traffic is a POST to a serving path, and nothing else is."""
    keys = ("method", "path", "traffic")
    for ledger, row in _wrong(subject, keys, lambda method, path, traffic: traffic is _is_traffic(method, path)):
        yield (
            _at(ledger, row),
            "traffic %s for %s %s" % (shown(row["traffic"]), shown(row["method"]), shown(row["path"])),
            shown(not row["traffic"]),
        )


def hold_completeness(subject: Comparison) -> Iterator[Complaint]:
    """A complete exchange has a status and no reason; an incomplete one has a reason."""
    keys = ("complete", "reason", "status")
    for ledger, row in _wrong(
        subject, keys, lambda whole, reason, status: whole is (reason is None) and (not whole or status is not None)
    ):
        if row["complete"]:
            yield (
                _at(ledger, row),
                "complete with reason %s and status %s" % (row["reason"], row["status"]),
                "a status and no reason",
            )
        else:
            yield (_at(ledger, row), "incomplete without a reason", "a reason")


def hold_headers(subject: Comparison) -> Iterator[Complaint]:
    """Recorded headers agree with the receipt: request id and content lengths."""
    for ledger, row in _receipts(subject):
        asked, given = row["requestHeaders"], row["responseHeaders"]
        if asked.get("x-request-id") != row["requestId"]:
            yield (_at(ledger, row), "x-request-id " + shown(asked.get("x-request-id")), shown(row["requestId"]))
        length = asked.get("content-length")
        if length is not None and row["complete"] and length != str(row["requestBytes"]):
            yield (_at(ledger, row), "request content-length " + shown(length), str(row["requestBytes"]))
        length = given.get("content-length")
        if length is not None and row["complete"] and length != str(row["responseBytes"]):
            yield (_at(ledger, row), "response content-length " + shown(length), str(row["responseBytes"]))


def hold_clock(subject: Comparison) -> Iterator[Complaint]:
    """An exchange ends after it began."""
    for ledger, row in _receipts(subject):
        if row["endedSeconds"] < row["startedSeconds"]:
            yield (_at(ledger, row), "ended at %s s" % row["endedSeconds"], "not before %s s" % row["startedSeconds"])


def hold_copies(subject: Comparison) -> Iterator[Complaint]:
    """No receipt is a copy of another: the same start and end do not come twice in a ledger."""
    for key, rows in subject.ledgers.items():
        seen: Dict[Tuple[Number, Number], int] = {}
        if len({row["endedSeconds"] for row in rows}) == len(rows):
            continue
        for row in rows:
            other = seen.setdefault((row["startedSeconds"], row["endedSeconds"]), row["sequence"])
            if other != row["sequence"]:
                yield (
                    "%s#%d" % (subject.ledger_names[key], row["sequence"]),
                    "the times of receipt %d" % other,
                    "its own",
                )


def hold_matched(subject: Comparison) -> Iterator[Complaint]:
    """Every traffic receipt belongs to one sample: the same pair of hashes, or a request that the client lost."""
    for arm in subject.arms_seen():
        if paired(subject, arm):
            continue
        mine = subject.by_arm.get(arm, [])
        pairs = Counter((row["requestSha256"], row["responseSha256"]) for row in mine)
        lost = Counter(row["requestSha256"] for row in mine if not arrived(row))
        unmatched = []
        for worker, row in subject.traffic(arm):
            pair = (row["requestSha256"], row["responseSha256"])
            if pairs[pair] > 0:
                pairs[pair] -= 1
            else:
                unmatched.append((worker, row))
        for worker, row in unmatched:
            if lost[row["requestSha256"]] > 0:
                lost[row["requestSha256"]] -= 1
                continue
            yield (
                _at(subject.ledger_names[(arm, worker)], row),
                "request %s, response %s" % (row["requestSha256"], row["responseSha256"]),
                "a sample with both hashes",
            )


def hold_receipted(subject: Comparison) -> Iterator[Complaint]:
    """Every sample that came back whole from a worker has one receipt with its hashes, on its worker if it names one.

    An error did not come back whole: it may be the gateway's own word, a refusal of exact admission or a worker not reached.
    """
    for arm in subject.arms_seen():
        if paired(subject, arm):
            continue
        left = Counter((worker, row["requestSha256"], row["responseSha256"]) for worker, row in subject.traffic(arm))
        union = Counter((row["requestSha256"], row["responseSha256"]) for _, row in subject.traffic(arm))
        for row in subject.by_arm.get(arm, []):
            if not arrived(row):
                continue
            pair = (row["requestSha256"], row["responseSha256"])
            if row["worker"] is not None:
                if left[(row["worker"], *pair)] < 1:
                    yield (subject.at(row), "no receipt of %s for its hashes" % row["worker"], "exactly one")
                left[(row["worker"], *pair)] -= 1
            elif union[pair] < 1:
                yield (subject.at(row), "no receipt of any worker for its hashes", "exactly one")
            union[pair] -= 1


def hold_ids(subject: Comparison) -> Iterator[Complaint]:
    """A request id that a receipt carries is that of one sample of its arm, with its hashes, worker and status.

    When a worker fails before it answered whole, proxy or gateway say so with a 5xx of their own: then status and
    answer of the sample are theirs, and the receipt keeps what the worker gave.
    """
    for arm in subject.arms_seen():
        if paired(subject, arm):
            continue
        samples = {row["offer"]: row for row in subject.by_arm.get(arm, [])}
        seen: Dict[str, Tuple[str, Row]] = {}
        for worker, receipt in subject.traffic(arm):
            offer = receipt["requestId"]
            if offer is None:
                continue
            ledger = subject.ledger_names[(arm, worker)]
            sample: Optional[Row] = samples.get(offer)
            if offer in seen:
                found = "request id %s again, first at %s" % (shown(offer), _at(*seen[offer]))
                yield (_at(ledger, receipt), found, "each id once")
            elif sample is None:
                yield (_at(ledger, receipt), "request id " + shown(offer), "a sample of " + arm)
            elif arrived(sample):
                told = (worker, receipt["requestSha256"], receipt["responseSha256"], receipt["status"])
                right = (sample["worker"], sample["requestSha256"], sample["responseSha256"], sample["status"])
                if told != right:
                    found = "%s, request %s, response %s, status %s" % told
                    yield (_at(ledger, receipt), found, "%s, %s, %s, %s" % right)
                elif not receipt["complete"]:
                    found = "an incomplete exchange (%s)" % receipt["reason"]
                    yield (_at(ledger, receipt), found, "a complete one, since the sample is")
            seen.setdefault(offer, (ledger, receipt))


def hold_ids_seen(subject: Comparison) -> Iterator[Complaint]:
    """As hold_ids, where the client may have died before it kept a sample of an exchange."""
    kept = {row["offer"] for row in subject.samples}
    lost = {receipt["requestId"] for arm in subject.arms_seen() for _, receipt in subject.traffic(arm)} - kept
    for path, found, expected in hold_ids(subject):
        if not any(offer is not None and found == "request id " + shown(offer) for offer in lost):
            yield (path, found, expected)


def hold_balance(subject: Comparison) -> Iterator[Complaint]:
    """Round robin over two workers means equal counts: 1 native, 8 warm and 12 main an arm and worker."""
    for arm in subject.arms_seen():
        mine = subject.by_arm.get(arm, [])
        if any(row["transport"] != "complete" for row in mine):
            continue
        counts = Counter(worker for worker, _ in subject.traffic(arm))
        for worker in subject.workers:
            if counts[worker] != sum(EACH.values()):
                name = subject.ledger_names.get((arm, worker), subject.path("ledgers"))
                yield (name, "%d exchanges of traffic" % counts[worker], "%d" % sum(EACH.values()))
        for phase, each in EACH.items():
            named = Counter(row["worker"] for row in mine if row["phase"] == phase)
            if named[None]:
                continue
            for worker in subject.workers:
                if named[worker] != each:
                    at = "%s#%s-%s" % (subject.path("samples.json"), arm, phase)
                    yield (at, "%d samples on %s" % (named[worker], worker), "%d" % each)


def hold_witness(subject: Comparison) -> Iterator[Complaint]:
    """What the client timed took at least as long as what the recorder saw, in the middle of an arm's main batch.

    The recorder stands inside the client's interval. One late wake-up proves nothing, so the median counts,
    with 5 ms of slack.
    """
    for arm in subject.arms_seen():
        spent = {
            receipt["requestId"]: receipt["endedSeconds"] - receipt["startedSeconds"]
            for _, receipt in subject.traffic(arm)
            if receipt["complete"] and receipt["requestId"] is not None
        }
        gaps = sorted(
            row["totalSeconds"] - spent[row["offer"]]
            for row in subject.main(arm)
            if row["offer"] in spent and row["transport"] == "complete"
        )
        if gaps and gaps[len(gaps) // 2] < -WITNESS_SLACK:
            at = "%s#%s-main" % (subject.path("samples.json"), arm)
            yield (
                at,
                "a client that took %s s less than the recorder" % -gaps[len(gaps) // 2],
                "never less, but for 5 ms",
            )
