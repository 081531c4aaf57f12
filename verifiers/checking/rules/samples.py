"""The samples of a comparison: what was offered, what follows from the bodies, and what times can be."""

from __future__ import annotations

from typing import Any, Dict, Iterator, Tuple

from checking.check import Complaint
from checking.plan import CONCURRENCY
from checking.reading import shown
from checking.rules.comparison import OFFERS, Comparison, Row, arm_id

COPIED = 12


def hold_offers(subject: Comparison) -> Iterator[Complaint]:
    """Exactly the planned offers, 24 main and 18 warm an arm, each once, in their order."""
    told = [row["offer"] for row in subject.samples]
    if told == list(OFFERS):
        return
    path = subject.path("samples.json")
    there = set(told)
    for offer in OFFERS:
        if offer not in there:
            yield ("%s#%s" % (path, offer), "no sample", "one for every planned offer")
    seen = set()
    for offer in told:
        if offer not in OFFERS or offer in seen:
            yield ("%s#%s" % (path, offer), "a sample too many", "each planned offer once")
        seen.add(offer)
    if len(told) == len(OFFERS) and there == set(OFFERS):
        yield (path, "samples out of order", "the order of the offers")


def hold_labels(subject: Comparison) -> Iterator[Complaint]:
    """An offer's id says its repetition, arm and phase; a native warm-up names its worker."""
    workers = subject.workers
    for row in subject.samples:
        named = arm_id(row) + "-" + row["phase"]
        if row["offer"][:-4] != named:
            yield (subject.at(row), "%s in %s" % (row["phase"], arm_id(row)), "what the offer id says")
        elif row["worker"] is not None and row["worker"] not in workers:
            yield (subject.at(row), "worker " + shown(row["worker"]), "a worker of the comparison")
        elif row["phase"] == "native-warm" and row["worker"] is None:
            yield (subject.at(row), "no worker", "the worker that the client went to")


def hold_native(subject: Comparison) -> Iterator[Complaint]:
    """Each arm warms every worker natively once."""
    for arm in sorted({arm for arm, _ in subject.by_phase}):
        workers = [row["worker"] for row in subject.by_phase.get((arm, "native-warm"), [])]
        if sorted(map(str, workers)) != subject.workers:
            yield ("%s#%s-native-warm" % (subject.path("samples.json"), arm), shown(workers), shown(subject.workers))


def hold_fixed_body(subject: Comparison) -> Iterator[Complaint]:
    """Every main and round-robin request is the one fixed body, every native one the native body."""
    for row in subject.samples:
        right = subject.data["requests"]["native" if row["phase"] == "native-warm" else "main"]
        if (row["requestSha256"], row["requestBytes"]) != (right["sha256"], right["bytes"]):
            yield (subject.at(row), "request " + row["requestSha256"], right["sha256"])


def hold_stored(subject: Comparison) -> Iterator[Complaint]:
    """Every hash that a document cites is a stored body."""
    if subject.bodies.names.issuperset(name for name, _ in subject.cited_lengths()):
        return
    missing = set()
    for at, name, _ in subject.citations():
        if name not in subject.bodies.names and name not in missing:
            missing.add(name)
            yield ("%s#%s" % at, "no body " + name, "a stored body")


def hold_digests(subject: Comparison) -> Iterator[Complaint]:
    """The name of a body is the SHA-256 of its bytes."""
    bodies = subject.bodies
    _ = subject.answers  # whoever works them out reads most of the bodies: each is then read once
    for name in sorted(bodies.names.difference(bodies.digests)):
        if bodies.has(name):
            bodies.measure(name)
    for name in sorted([name for name in bodies.names if bodies.digests.get(name) != name]):
        if bodies.has(name):
            yield (bodies.path(name), "sha256 " + bodies.digests[name], "the hash that is its name")
        else:
            yield (bodies.path(name), "no regular file", "a body")


def hold_cited(subject: Comparison) -> Iterator[Complaint]:
    """No body lies there that nothing cites."""
    cited = {name for name, _ in subject.cited_lengths()}
    for name in sorted(subject.bodies.names - cited):
        yield (subject.bodies.path(name), "a body that nothing cites", "bodies of samples, receipts and probes only")


def hold_lengths(subject: Comparison) -> Iterator[Complaint]:
    """Every length that a document tells is that of the stored body."""
    lengths = subject.bodies.lengths
    if all(length is None or lengths.get(name, length) == length for name, length in subject.cited_lengths()):
        return
    for at, name, length in subject.citations():
        if length is not None and lengths.get(name, length) != length:
            yield ("%s#%s" % at, "%d bytes" % length, "%d, as stored" % lengths[name])


def _derived(subject: Comparison) -> Iterator[Tuple[Row, Any]]:
    for row, told in zip(subject.samples, subject.answers):
        if told is not None:
            yield row, told


def hold_classification(subject: Comparison) -> Iterator[Complaint]:
    """The classification is the one that follows from the stored bytes."""
    for row, told in _derived(subject):
        if row["classification"] != told.classification:
            yield (subject.at(row), row["classification"], "%s, by its stored body" % told.classification)


def hold_finish(subject: Comparison) -> Iterator[Complaint]:
    """The finish reason is the one in the stored body."""
    for row, told in _derived(subject):
        if row["finishReason"] != told.finish_reason:
            yield (subject.at(row), "finish reason " + shown(row["finishReason"]), shown(told.finish_reason))


def hold_tokens(subject: Comparison) -> Iterator[Complaint]:
    """Token counts are those that the engine reported in the stored body."""
    for row, told in _derived(subject):
        mine = (row["promptTokens"], row["completionTokens"])
        right = (told.prompt_tokens, told.completion_tokens)
        if mine != right:
            yield (subject.at(row), "prompt and completion tokens %s" % shown(mine), shown(right))


def hold_status(subject: Comparison) -> Iterator[Complaint]:
    """A complete exchange has a status; one that failed before any answer has none and no body."""
    for row in subject.samples:
        if row["transport"] == "complete" and row["status"] is None:
            yield (subject.at(row), "complete without a status", "a status")
        if row["transport"] == "failed" and (row["status"] is not None or row["responseBytes"]):
            yield (subject.at(row), "failed with status %s" % row["status"], "no response head and no body")


def hold_ttft(subject: Comparison) -> Iterator[Complaint]:
    """A stream that brought text has a time to it; what brought none, and what is no stream, has none."""
    for row, told in _derived(subject):
        streaming = subject.bodies.request(row["requestSha256"]).streaming
        if row["ttftSeconds"] is None:
            if streaming and told.text:
                yield (subject.at(row), "no time to first text", "one, since the stream brought text")
        elif not streaming:
            yield (subject.at(row), "ttftSeconds %s" % row["ttftSeconds"], "null: the answer is no stream")
        elif not told.text and row["transport"] == "complete" and row["status"] == 200:
            yield (subject.at(row), "ttftSeconds %s" % row["ttftSeconds"], "null: the body has no text")
        if (
            row["reasoningSeconds"] is not None
            and row["transport"] == "complete"
            and not (streaming and told.reasoning)
        ):
            yield (subject.at(row), "reasoningSeconds %s" % row["reasoningSeconds"], "null: no separate reasoning")


def hold_times(subject: Comparison) -> Iterator[Complaint]:
    """Text comes after the first byte out and not after the last byte in; nothing takes no time."""
    for row in subject.samples:
        for name in ("ttftSeconds", "reasoningSeconds"):
            value = row[name]
            if value is not None and not 0 < value <= row["totalSeconds"]:
                yield (
                    subject.at(row),
                    "%s %s" % (name, value),
                    "over 0 and at most the total, %s" % row["totalSeconds"],
                )
        if not row["totalSeconds"] > 0:
            yield (subject.at(row), "totalSeconds %s" % row["totalSeconds"], "over 0")


def hold_concurrency(subject: Comparison) -> Iterator[Complaint]:
    """Never more than eight requests are open at once."""
    from checking.arithmetic import most_open

    for arm in sorted({arm for arm, _ in subject.by_phase}):
        most = most_open(span for of, phase in subject.by_phase if of == arm for span in subject.spans(of, phase))
        if most > CONCURRENCY:
            yield ("%s#%s" % (subject.path("samples.json"), arm), "%d open at once" % most, "at most %d" % CONCURRENCY)


def hold_started(subject: Comparison) -> Iterator[Complaint]:
    """Within a phase the offers began in the order of their numbers, as far as eight slots allow."""
    for _, rows in sorted(subject.by_phase.items()):
        starts = [row["startedSeconds"] for row in rows]
        for place in range(CONCURRENCY, len(starts)):
            if starts[place] < min(starts[: place - CONCURRENCY + 1]):
                yield (
                    subject.at(rows[place]),
                    "began at %s s" % starts[place],
                    "after the offers %d before it" % CONCURRENCY,
                )
                break


def _print(row: Row) -> Tuple[Any, ...]:
    return (row["startedSeconds"], row["ttftSeconds"], row["totalSeconds"], row["sendLagSeconds"])


def hold_arm_copies(subject: Comparison) -> Iterator[Complaint]:
    """No arm's main batch is a copy of another's: the same starts and times do not come twice."""
    seen: Dict[Tuple[Any, ...], str] = {}
    shared: Dict[Tuple[str, str], int] = {}
    rows = [row for row in subject.samples if row["phase"] == "main"]
    if len({row["totalSeconds"] for row in rows}) == len(rows):
        return
    for row in rows:
        arm = arm_id(row)
        other = seen.setdefault(_print(row), arm)
        if other != arm:
            shared[(other, arm)] = shared.get((other, arm), 0) + 1
    for (other, arm), count in sorted(shared.items()):
        if count >= COPIED:
            path = "%s#%s" % (subject.path("samples.json"), arm)
            yield (path, "%d samples with the times of %s" % (count, other), "a batch of its own")


def hold_sample_copies(subject: Comparison) -> Iterator[Complaint]:
    """No sample is a copy of another: not the same body and the same times to the nanosecond."""
    seen: Dict[Tuple[Any, ...], str] = {}
    if len({row["responseSha256"] for row in subject.samples}) == len(subject.samples):
        return
    for row in subject.samples:
        key = (row["responseSha256"], row["ttftSeconds"], row["totalSeconds"], row["sendLagSeconds"], arm_id(row))
        other = seen.setdefault(key, row["offer"])
        if other != row["offer"]:
            yield (subject.at(row), "the body and the times of " + other, "an exchange of its own")
