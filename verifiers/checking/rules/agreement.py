"""What two sides of one comparison say of the same thing: client and samples, request and answer, receipt and client."""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache
from operator import itemgetter
from typing import Any, Dict, Iterator, List, Optional, Tuple

from checking.check import Complaint
from checking.plan import MAIN_PER_ARM
from checking.reading import JsonFault, read_json, shown
from checking.rules.comparison import Comparison, Row, Spot, adapter_of, arm_id
from checking.rules.pairing import witnessed

CLOCK_SLACK = Decimal("0.25")
PATH_OF = {"chat": "/v1/chat/completions", "completions": "/v1/completions", "embeddings": "/v1/embeddings"}
READ = frozenset(("NORMAL", "CAPPED"))
FREE_ADAPTER = "command"
_TOLD = itemgetter("requestSha256", "path", "status")


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
    """Late means that the loop lag at p99 or the greatest send lag is over the limit; and no p99 is over its greatest.

    One limit holds for all arms.
    """
    limit: Any = None
    for at, client, _ in _client(subject):
        limit = client["limitSeconds"] if limit is None else limit
        if client["limitSeconds"] != limit:
            yield (at + "limitSeconds", "%s s" % client["limitSeconds"], "%s s, as in the first arm" % limit)
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


def hold_models(subject: Comparison) -> Iterator[Complaint]:
    """One model is asked for in the native and the main body, and one is named by all answers that name one.

    The two need not be equal: an engine may answer with the name that it loaded.
    """
    asked: Dict[str, str] = {}
    for kind in ("native", "main"):
        name = subject.data["requests"][kind]["sha256"]
        model = subject.bodies.request(name).fields.get("model")
        if isinstance(model, str):
            asked[kind] = model
    if len(set(asked.values())) > 1:
        at = subject.path("comparison.json") + "#/requests/native"
        yield (at, "the model " + shown(asked["native"]), "that of the main body: " + shown(asked["main"]))
    first: Optional[Tuple[str, str]] = None
    for row, told in zip(subject.samples, subject.answers):
        if told is None or told.classification not in READ:
            continue
        for model in told.models:
            first = first or (model, row["offer"])
            if model != first[0]:
                yield (subject.at(row), "an answer of " + shown(model), "%s, as in %s" % (shown(first[0]), first[1]))


def hold_answer_ids(subject: Comparison) -> Iterator[Complaint]:
    """No two samples have an answer of one id: every engine gives each answer an id of its own.

    Of an engine that the campaign describes by a command alone nobody knows that; it is left out.
    """
    if adapter_of(subject.view, subject.data["engine"]) == FREE_ADAPTER:
        return
    seen: Dict[str, str] = {}
    for row, told in zip(subject.samples, subject.answers):
        if told is None or told.name is None or told.classification not in READ:
            continue
        other = seen.setdefault(told.name, row["offer"])
        if other != row["offer"]:
            yield (subject.at(row), "the answer id %s of %s" % (shown(told.name), other), "an answer of its own")


def hold_fitting(subject: Comparison) -> Iterator[Complaint]:
    """A receipt's path is that of its request body, its status the sample's, its content type that of the answer.

    Which type an engine sends that the campaign describes by a command alone is its own affair.
    """
    known: Dict[Tuple[Any, ...], List[Tuple[str, str]]] = {}
    for arm in subject.arms_seen():
        for at, row, receipt in witnessed(subject, arm):
            told = (
                *_TOLD(receipt),
                receipt["responseHeaders"].get("content-type"),
                row["status"],
                row["classification"],
            )
            if told not in known:
                known[told] = list(_misfits(subject, *told))
            for found, expected in known[told]:
                yield ("%s#%s" % at, found, expected)


def _misfits(
    subject: Comparison, name: str, path: str, status: Any, kind: Optional[str], right: Any, classification: str
) -> Iterator[Tuple[str, str]]:
    """(found, expected) of what a receipt with these values tells otherwise than its sample and its request body."""
    if not subject.bodies.has(name):
        return
    asked = subject.bodies.request(name)
    if path.split("?")[0] != PATH_OF[asked.kind]:
        yield "path " + shown(path), PATH_OF[asked.kind]
    if status != right:
        yield "status %s" % status, "%s, as the client got it" % right
    given = "text/event-stream" if asked.streaming else "application/json"
    if kind is None or kind == given or classification not in READ:
        return
    if kind.split(";")[0].strip().lower() != given and adapter_of(subject.view, subject.data["engine"]) != FREE_ADAPTER:
        yield "content-type " + shown(kind), given


def hold_clocks(subject: Comparison) -> Iterator[Complaint]:
    """One offset lays every receipt of a ledger inside its sample, and receipts began in the order of their numbers.

    The recorder's clock has a zero of its own, but one alone. It may tell an end late, when it waits for a processor
    after it has passed the last byte on: hence a quarter of a second of slack.
    """
    for key, rows in subject.ledgers.items():
        latest: Any = None
        for row in rows:
            if latest is not None and row["startedSeconds"] < latest - CLOCK_SLACK:
                yield (
                    "%s#%d" % (subject.ledger_names[key], row["sequence"]),
                    "began at %s s" % row["startedSeconds"],
                    "not before the one before it, at %s s" % latest,
                )
                break
            latest = row["startedSeconds"] if latest is None else max(latest, row["startedSeconds"])
    for arm in subject.arms_seen():
        spans: Dict[str, List[Tuple[Any, Any, Spot]]] = {}
        for at, row, receipt in witnessed(subject, arm):
            least = row["startedSeconds"] - receipt["startedSeconds"]
            most = row["startedSeconds"] + row["totalSeconds"] - receipt["endedSeconds"]
            spans.setdefault(at[0], []).append((least, most, at))
        for _, found in sorted(spans.items()):
            least, _, first = max(found)
            most, last = min((most, at) for _, most, at in found)
            if least > most + CLOCK_SLACK:
                yield (
                    "%s#%s" % last,
                    "outside its sample when receipt %s lies in its own: by %s s" % (first[1], least - most),
                    "one offset between the recorder's clock and the client's",
                )


def date_sensitive(subject: Comparison) -> bool:
    """Whether the package says of the comparison's profile that what it makes of a request depends on the date."""
    profile = subject.data["profile"]
    found: bool = subject.view.derive("models/%s.json" % profile, _date_sensitive)
    return found


@lru_cache(maxsize=64)
def _date_sensitive(model: Optional[bytes]) -> bool:
    try:
        return read_json(model or b"")["profile"]["dateSensitive"] is True
    except (JsonFault, KeyError, TypeError):
        return False


def hold_date_tokens(subject: Comparison) -> Iterator[Complaint]:
    """Readings of one hash tell one number of tokens."""
    control = subject.data["dateControl"]
    counts: Dict[str, int] = {}
    for place, one in enumerate(control["nativeTokenIds"] if control is not None else ()):
        right = counts.setdefault(one["tokenIdsSha256"], one["tokens"])
        if one["tokens"] != right:
            at = "%s#/dateControl/nativeTokenIds/%d" % (subject.path("comparison.json"), place)
            yield (at, "%d tokens" % one["tokens"], "%d, as of the same ids before" % right)
