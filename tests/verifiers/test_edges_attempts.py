"""Functional attempts at the edges of their rules: one fact of one of them altered, and the exact lines said of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from checking.damage import Bench
from checking.rules.converged import token_ids
from checking.rules.forgery import Desk

from tests.verifiers.edges import CONVERGED, Change, edited, told, told_of

NAMES = {
    "native": "a02-native",
    "failed": "a01-native",
    "rr": "a03-rr-20261130t000300.000000z",
    "exact": "a04-exact",
    "partial": "a05-exact",
    "image": "a06-native",
    "access": "a08-native",
    "rejected": "a09-exact",
}
INDEX = "results/converged-index.json"
Row = dict[str, Any]


def said(code: str, which: str, *changes: Change) -> list[str]:
    folder = "results/converged/" + NAMES[which]
    return told_of(lambda bench: Desk(bench, folder), folder, CONVERGED, code, *changes)


def data(change: Callable[[Row], object], name: str = "attempt.json") -> Change:
    return edited(name, change)


def to(**values: Any) -> Callable[[Desk], None]:
    return data(lambda value: value.update(values))


def exact(**values: Any) -> Callable[[Desk], None]:
    return data(lambda value: value["exact"].update(values))


def sample(place: int, **values: Any) -> Callable[[Desk], None]:
    return data(lambda value: value["samples"][place].update(values), "samples.json")


def ledger(worker: str, change: Callable[[list[Row]], object]) -> Callable[[Desk], None]:
    return data(lambda value: change(value["receipts"]), f"ledgers/attempt.{worker}.json")


def control(place: int, **values: Any) -> Callable[[Desk], None]:
    return data(lambda value: value["controls"][place].update(values), "controls.json")


def test_every_document_names_its_attempt_and_every_ledger_its_worker() -> None:
    other = data(lambda value: value.update(worker="worker-2"), "ledgers/attempt.worker-1.json")
    assert said("attempt-names", "rr", other) == [
        "ledgers/attempt.worker-1.json: found worker-2 of attempt, expected worker-1 of attempt"
    ]
    for document, key in (
        ("attempt.json", "id"),
        ("attempt.json", "run"),
        ("samples.json", "comparison"),
        ("controls.json", "attempt"),
    ):
        changed = data(lambda value, key=key: value.update({key: "zz"}), document)
        assert said("attempt-names", "rr", changed) == [f"{document}#/{key}: found zz, expected {NAMES['rr']}"]


@pytest.mark.parametrize(
    ("which", "changes", "line"),
    [
        ("native", [to(outcome="NATIVE_FAILURE", reason="BAD_ANSWER")], "NATIVE_FAILURE, BAD_ANSWER, expected SUCCESS, OK"),
        ("native", [to(outcome="NATIVE_FAILURE", reason="ENGINE_DIED")], "NATIVE_FAILURE, ENGINE_DIED, expected SUCCESS, OK"),
        ("failed", [to(reason="ENGINE_DIED")], None),
        ("failed", [to(outcome="SUCCESS", reason="OK")], "SUCCESS, OK, expected NATIVE_FAILURE, any of its reasons"),
        ("image", [to(outcome="NATIVE_FAILURE", reason="NOT_READY")], None),
        ("image", [to(outcome="NATIVE_FAILURE", reason="ENGINE_DIED")], None),
        ("image", [to(outcome="NATIVE_FAILURE", reason="BAD_ANSWER")], "NATIVE_FAILURE, expected an outcome of an attempt without samples"),
        ("image", [to(outcome="SUCCESS", reason="OK")], "SUCCESS, expected an outcome of an attempt without samples"),
        ("image", [to(outcome="NOT_ATTEMPTED", reason="NO_ATTEMPT")], "NOT_ATTEMPTED, expected an outcome that an attempt can have"),
        ("native", [to(ended=False, outcome="NOT_ATTEMPTED", reason="RUNNER_DIED")], None),
        ("native", [to(ended=False, outcome="NOT_ATTEMPTED", reason="OK")], "NOT_ATTEMPTED, OK, expected NOT_ATTEMPTED and the code of its end, since it did not end"),
        ("native", [to(ended=False)], "SUCCESS, OK, expected NOT_ATTEMPTED and the code of its end, since it did not end"),
        ("partial", [to(outcome="SUCCESS", reason="OK")], "SUCCESS, OK, expected EXACT_PARTIAL_ONE_PREFILL, ONE_PREFILL"),
        ("rr", [data(lambda one: one.update(surface="exact"))], None),
        ("exact", [exact(tokenIdsEqual=False)], "SUCCESS, OK, expected EXACT_REJECTED, TOKENS_DIFFER"),
        ("exact", [exact(tokenIdsEqual=None)], None),
        ("rejected", [exact(tokenIdsEqual=True)], "EXACT_REJECTED, expected an outcome of an attempt without samples"),
    ],
)  # fmt: skip
def test_an_outcome_follows_from_the_evidence(which: str, changes: list[Any], line: str | None) -> None:
    lines = said("attempt-outcome", which, *changes)
    assert lines == ([] if line is None else [f"attempt.json#/outcome: found {line}"])


def test_a_reason_is_one_of_its_outcome() -> None:
    assert said("attempt-outcome", "access", to(reason="PROGRAM_NOT_FOUND")) == [
        "attempt.json#/reason: found PROGRAM_NOT_FOUND, expected ACCESS_DENIED"
    ]


def no_traffic(rows: list[Row]) -> None:
    for row in rows:
        row.update(traffic=False)


def test_requests_that_reached_no_worker_were_not_admitted() -> None:
    quiet = [ledger(worker, no_traffic) for worker in ("worker-1", "worker-2")]
    assert said("attempt-outcome", "exact", *quiet) == [
        "attempt.json#/outcome: found SUCCESS, OK, expected EXACT_REJECTED, NOT_ADMITTED"
    ]
    # What round robin did not reach is another matter: its counts are equal.
    assert said("attempt-outcome", "rr", *quiet) == []
    assert said("attempt-outcome", "exact", quiet[0]) == [
        "attempt.json#/outcome: found SUCCESS, OK, expected EXACT_PARTIAL_ONE_PREFILL, ONE_PREFILL"
    ]
    assert said("attempt-outcome", "rr", quiet[0]) == [
        "attempt.json#/outcome: found SUCCESS, OK, expected NATIVE_FAILURE, ROUTING_UNEQUAL"
    ]


def answered(*finishes: str) -> Callable[[Desk], None]:
    """The samples of a stream end so, one after the other."""

    def apply(desk: Desk) -> None:
        with desk.samples() as rows:
            for row, finish in zip(rows, finishes, strict=False):
                chunk = {"choices": [{"delta": {"content": row["offer"]}, "finish_reason": finish}]}
                desk.answer_with(row, b"data: " + json.dumps(chunk).encode() + b"\n\ndata: [DONE]\n\n")

    return apply


def test_capped_answers_alone_are_no_success() -> None:
    assert said("attempt-outcome", "rr", answered("length", "length", "length", "stop")) == []
    assert said("attempt-outcome", "rr", answered("length", "length", "length", "length")) == [
        "attempt.json#/outcome: found SUCCESS, OK, expected NATIVE_FAILURE, any of its reasons"
    ]
    assert said("attempt-outcome", "rr", answered("length", "stop", "stop", "halt")) == [
        "attempt.json#/outcome: found SUCCESS, OK, expected NATIVE_FAILURE, any of its reasons"
    ]


@pytest.mark.parametrize(
    ("values", "lines"),
    [
        ({"ended": False}, ["endedAt: found 2026-11-30T00:02:30.000000Z, expected an instant exactly when ended", "ended: found false, expected true, since it is told a success"]),
        ({"endedAt": None}, ["endedAt: found null, expected an instant exactly when ended"]),
        ({"endedAt": None, "ended": False}, ["ended: found false, expected true, since it is told a success"]),
        ({"endedAt": "2026-11-30T00:02:00.000000Z"}, []),
        ({"endedAt": "2026-11-30T00:01:59.999999Z"}, ["endedAt: found 2026-11-30T00:01:59.999999Z, expected not before 2026-11-30T00:02:00.000000Z"]),
        ({"outcome": "NATIVE_FAILURE", "endedAt": None, "ended": False}, []),
        ({"outcome": "MISSING_IMAGE"}, ["outcome: found MISSING_IMAGE with traffic, expected no samples and no ledgers"]),
    ],
)  # fmt: skip
def test_an_attempt_ends_after_it_began_and_what_failed_in_set_up_has_no_traffic(values: Row, lines: list[str]) -> None:
    assert said("attempt-setup", "native", to(**values)) == ["attempt.json#/" + line for line in lines]


def test_set_up_failures_have_neither_samples_nor_ledgers() -> None:
    right = ["attempt.json#/outcome: found MISSING_IMAGE with traffic, expected no samples and no ledgers"]
    emptied = data(lambda value: value["samples"].clear(), "samples.json")
    assert said("attempt-setup", "native", to(outcome="MISSING_IMAGE"), emptied) == right

    def without_ledger(desk: Desk) -> None:
        desk.bench.remove(desk.path("ledgers/attempt.worker-1.json"))

    assert said("attempt-setup", "native", to(outcome="MISSING_IMAGE"), without_ledger) == right
    assert said("attempt-setup", "native", to(outcome="MISSING_IMAGE"), without_ledger, emptied) == []


def workers(*names: tuple[int, int]) -> Callable[[Desk], None]:
    told_ = [{"alias": f"worker-{alias}", "device": f"device-{device}"} for alias, device in names]
    return to(workers=told_)


@pytest.mark.parametrize(
    ("which", "change", "places"),
    [
        ("rr", workers((1, 1), (2, 2)), []),
        ("rr", workers((1, 1), (2, 1)), []),
        ("rr", workers((1, 1), (1, 1)), ["workers", "launches/1/worker"]),
        ("rr", workers((1, 1)), ["workers", "launches/1/worker"]),
        ("rr", workers((1, 1), (2, 2), (3, 3)), ["workers"]),
        ("native", workers((1, 1), (1, 1)), ["workers"]),
        ("native", workers((2, 2)), ["launches/0/worker"]),
        ("exact", to(exact=None), ["exact"]),
        ("exact", to(surface="rr"), ["exact"]),
        ("native", to(surface="exact"), ["gateway", "exact"]),
        ("rr", to(gateway=None), ["gateway"]),
        ("native", to(gateway=None), []),
        ("image", to(surface="rr"), []),
        ("rejected", to(exact=None), []),
        ("rejected", to(surface="rr"), []),
    ],
)
def test_topology_surface_workers_and_launches_fit_one_another(which: str, change: Any, places: list[str]) -> None:
    lines = said("attempt-shape", which, change)
    assert [line.split(":")[0] for line in lines] == ["attempt.json#/" + place for place in places]


def test_the_shape_is_told_in_words() -> None:
    assert said("attempt-shape", "exact", to(exact=None)) == [
        "attempt.json#/exact: found null, expected given on surface exact alone"
    ]
    assert said("attempt-shape", "exact", to(surface="rr")) == [
        "attempt.json#/exact: found an object, expected given on surface exact alone"
    ]
    assert said("attempt-shape", "native", workers((2, 2))) == [
        "attempt.json#/launches/0/worker: found worker-1, expected a worker of the attempt"
    ]


@pytest.mark.parametrize(
    ("which", "changes", "lines"),
    [
        ("exact", [exact(tokenIdsEqual=None)], ["/exact/tokenIdsEqual: found null, expected true"]),
        ("exact", [exact(expectedTokenIds=[1, 2])], ["/exact/tokenIdsEqual: found true, expected false"]),
        ("exact", [exact(observedTokenIds=None)], ["/exact/tokenIdsEqual: found true, expected null"]),
        ("exact", [exact(observedTokenIds=None, tokenIdsEqual=None, control=None)], []),
        ("exact", [exact(trafficPerWorker={"worker-1": 2, "worker-2": 2, "worker-3": 0})], ['/exact/trafficPerWorker: found {"worker-1": 2, "worker-2": 2, "worker-3": 0}, expected {"worker-1": 2, "worker-2": 2}']),
        ("exact", [exact(trafficPerWorker={"worker-1": 2, "worker-2": 1})], ['/exact/trafficPerWorker: found {"worker-1": 2, "worker-2": 1}, expected {"worker-1": 2, "worker-2": 2}']),
        ("partial", [exact(trafficPerWorker={"worker-1": 2})], ['/exact/trafficPerWorker: found {"worker-1": 2}, expected {"worker-1": 2, "worker-2": 0}']),
        ("exact", [exact(engagement="REJECTED")], ["/exact/engagement: found REJECTED, expected ADMITTED"]),
        ("partial", [exact(engagement="ADMITTED")], ["/exact/engagement: found ADMITTED, expected PARTIAL_ONE_PREFILL"]),
        ("rejected", [exact(engagement="ADMITTED")], ["/exact/engagement: found ADMITTED, expected REJECTED"]),
        ("exact", [exact(control=None)], ["/exact/control: found null, expected the tokenize control that gave the ids"]),
        ("exact", [exact(control="models-1")], ["/exact/control: found models-1, expected the tokenize control that gave the ids"]),
        ("exact", [exact(control="tokenize-2")], []),
        ("exact", [exact(observedTokenIds=[1, 15043], tokenIdsEqual=False)], ["/exact/observedTokenIds: found [1, 15043], expected [1, 15043, 3186]"]),
    ],
)  # fmt: skip
def test_exact_engagement_is_what_ledgers_and_the_tokenize_answer_give(which: str, changes: list[Any], lines: list[str]) -> None:  # fmt: skip
    assert said("attempt-exact", which, *changes) == ["attempt.json#" + line for line in lines]


def test_every_exact_request_is_the_one_body() -> None:
    (line,) = said("attempt-exact", "exact", sample(2, requestSha256="e" * 64))
    assert line.startswith(f"samples.json#attempt-003: found request {'e' * 64}, expected ")


def test_a_withheld_tokenize_answer_is_not_read() -> None:
    other = exact(observedTokenIds=[7], tokenIdsEqual=False)
    right = "attempt.json#/exact/observedTokenIds: found [7], expected [1, 15043, 3186]"

    def place(kind: str, desk: Desk) -> int:
        return [one["id"] for one in desk.load("controls.json")["controls"]].index(kind)

    def withhold(desk: Desk) -> None:
        control(place("tokenize-1", desk), kept=False, withheldReason="no")(desk)

    def lose(desk: Desk) -> None:
        desk.bench.remove(
            desk.path("bodies/" + desk.load("controls.json")["controls"][place("tokenize-1", desk)]["sha256"])
        )

    assert said("attempt-exact", "exact", other) == [right]
    assert said("attempt-exact", "exact", other, withhold) == []
    assert said("attempt-exact", "exact", other, lose) == []


@pytest.mark.parametrize(
    ("body", "ids"),
    [
        (b'{"tokens": [1, 2]}', [1, 2]),
        (b'{"token_ids": [3]}', [3]),
        (b'{"input_ids": []}', []),
        (b'{"ids": [4], "other": [5]}', [4]),
        (b'{"tokens": [1], "ids": [2]}', [1]),
        (b'{"tokens": 7, "ids": [2]}', [2]),
        (b"[5, 6]", [5, 6]),
        (b'{"other": [1]}', None),
        (b'{"tokens": ["1"]}', None),
        (b'{"tokens": [true]}', None),
        (b'{"tokens": [1.5]}', None),
        (b'"text"', None),
        (b"{", None),
        (b'{"tokens": [1], "tokens": [2]}', None),
    ],
)
def test_token_ids_are_a_list_of_integers_under_a_known_key(body: bytes, ids: list[int] | None) -> None:
    assert token_ids(body) == ids


@pytest.mark.parametrize(
    ("which", "scope", "lines"),
    [
        ("native", {"accepted": False, "modes": []}, []),
        ("native", {"accepted": False}, ['modes: found ["native"], expected modes exactly when accepted']),
        ("native", {"modes": []}, ["modes: found [], expected modes exactly when accepted"]),
        ("native", {"modes": ["native", "rr"]}, ["modes: found rr, expected the surface that was tried: native"]),
        ("failed", {"accepted": True, "modes": ["native"]}, ["accepted: found true with NATIVE_FAILURE, expected true only with SUCCESS"]),
        ("rr", {"modes": ["exact"]}, ["modes: found exact, expected the surface that was tried: rr"]),
    ],
)  # fmt: skip
def test_only_a_success_is_cited_and_for_its_own_surface(which: str, scope: Row, lines: list[str]) -> None:
    changed = data(lambda value: value["scope"].update(scope))
    assert said("attempt-scope", which, changed) == ["attempt.json#/scope/" + line for line in lines]


def test_a_control_stands_once_and_is_kept_or_has_a_reason() -> None:
    assert said("attempt-controls", "native", control(1, id="models-1")) == [
        "controls.json#models-1: found the id twice, expected each control once"
    ]
    right = "expected a reason exactly when withheld"
    assert said("attempt-controls", "native", control(0, withheldReason="no")) == [
        f"controls.json#models-1: found kept True, reason no, {right}"
    ]
    assert said("attempt-controls", "native", control(1, withheldReason=None)) == [
        f"controls.json#metrics-1: found kept False, reason null, {right}"
    ]
    # The body of a withheld control is not there, unless something else cites the same bytes.
    both = control(0, kept=False, withheldReason="no")
    lines = said("attempt-controls", "native", both)
    assert lines == ["controls.json#models-1: found the body of a withheld control, expected its hash and reason alone"]

    def cited(desk: Desk) -> None:
        digest = desk.load("controls.json")["controls"][0]["sha256"]
        with desk.samples() as rows:
            rows[0]["responseSha256"] = digest

    assert said("attempt-controls", "native", both, cited) == []


def test_round_robin_reached_its_workers_equally_often() -> None:
    def drop(rows: list[Row]) -> None:
        del rows[0]

    assert said("attempt-round-robin", "rr", ledger("worker-1", drop)) == [
        'ledgers: found {"worker-1": 1, "worker-2": 2}, expected equal counts'
    ]
    assert said("attempt-round-robin", "rr", ledger("worker-1", drop), to(outcome="NATIVE_FAILURE")) == []
    assert said("attempt-round-robin", "exact", ledger("worker-1", drop)) == []


def test_counts_are_those_of_the_bodies_and_nought_may_stand_there() -> None:
    def counts(**values: int) -> Callable[[Desk], None]:
        return to(counts=values)

    assert said("attempt-counts", "native", counts(NORMAL=1, CAPPED=1, EMPTY=0)) == []
    assert said("attempt-counts", "native", counts(NORMAL=2)) == [
        'attempt.json#/counts: found {"NORMAL": 2}, expected {"NORMAL": 1, "CAPPED": 1}'
    ]
    assert said("attempt-counts", "native", to(requests=3)) == ["attempt.json#/requests: found 3, expected 2 samples"]


def test_offers_run_on_and_name_workers_of_the_attempt() -> None:
    right = "offers attempt-001 to attempt-002 in order"
    assert said("attempt-offers", "native", sample(1, offer="attempt-003")) == [
        f'samples.json: found ["attempt-001", "attempt-003"], expected {right}'
    ]
    assert said("attempt-offers", "native", sample(1, worker="worker-2")) == [
        "samples.json#attempt-002: found worker-2, expected a worker of the attempt"
    ]
    assert said("attempt-offers", "native", sample(1, worker=None)) == []
    for values in ({"phase": "main"}, {"repetition": 1}):
        phase = values.get("phase", "functional")
        assert said("attempt-offers", "native", sample(1, **values)) == [
            f"samples.json#attempt-002: found {phase} of an arm, expected functional, arm and repetition null"
        ]


# What the documents of an attempt say of one another


def launch(place: int, change: Callable[[Row], object]) -> Callable[[Desk], None]:
    return data(lambda value: change(value["launches"][place]))


def test_launches_are_alike_but_for_what_names_the_worker() -> None:
    def named(one: Row) -> None:
        one["arguments"].append(one["worker"] + "-log")
        one["environment"]["NAME"] = "x" + one["worker"]

    assert said("attempt-launches", "rr", launch(0, named), launch(1, named)) == []
    (line,) = said("attempt-launches", "rr", launch(1, named))
    assert line.startswith("attempt.json#/launches/1: found ")
    assert "expected the launch of worker-1 but for placeholders: " in line
    (line,) = said("attempt-launches", "rr", launch(1, lambda one: one["environment"].update(NAME="x")))
    assert line.startswith("attempt.json#/launches/1: found ")


def test_every_worker_with_traffic_was_launched_once() -> None:
    twice = data(lambda value: value["launches"].append(value["launches"][0]))
    assert said("attempt-launches", "rr", twice) == [
        "attempt.json#/launches: found 2 launches of worker-1, expected one"
    ]
    gone = data(lambda value: value["launches"].pop())
    assert said("attempt-launches", "rr", gone) == [
        "attempt.json#/launches: found no launch of worker-2, which has 2 receipts, expected one"
    ]
    assert said("attempt-launches", "rr", gone, ledger("worker-2", no_traffic)) == []


def test_an_attempt_began_at_the_stamp_of_its_run_and_ended_after_its_last_answer() -> None:
    stamped = "the stamp of its run: 2026-11-30T00:03:00.000000Z"
    begun = to(startedAt="2026-11-30T00:03:00.000001Z")
    assert said("attempt-span", "rr", begun) == [
        f"attempt.json#/startedAt: found 2026-11-30T00:03:00.000001Z, expected {stamped}"
    ]
    # The id of the other run tells no instant.
    assert said("attempt-span", "native", to(startedAt="2026-11-30T00:02:00.000001Z")) == []
    # The last answer ends 3.704 s after the start; half a second is forgiven.
    last = sample(3, startedSeconds=3, totalSeconds=Decimal("0.7"))
    assert said("attempt-span", "rr", last, to(endedAt="2026-11-30T00:03:03.200000Z")) == []
    assert said("attempt-span", "rr", last, to(endedAt="2026-11-30T00:03:03.199000Z")) == [
        "attempt.json#/endedAt: found 2026-11-30T00:03:03.199000Z, 3.199 s after the start, "
        "expected not before its last answer, 3.700 s after the start"
    ]
    assert said("attempt-span", "rr", last, to(endedAt=None)) == []
    assert said("attempt-span", "native", to(endedAt="2026-02-30T00:00:00.000000Z")) == []


def test_a_kind_of_control_was_asked_of_every_launched_worker() -> None:
    right = "expected one of each launched worker"
    one = control(0, worker="worker-2")
    line = f'controls.json: found models of ["worker-2", "worker-2"], {right}'
    assert said("attempt-asked", "rr", one) == [line]
    assert said("attempt-asked", "rr", one, to(ended=False)) == []
    for reason in ("ENGINE_DIED", "NOT_READY"):
        assert said("attempt-asked", "rr", one, to(reason=reason)) == []
    assert said("attempt-asked", "rr", one, to(reason="BAD_ANSWER")) == [line]


def seen(worker: str = "worker-1", **values: Any) -> Callable[[Desk], None]:
    """The control that a recorder saw, the last line of its ledger."""
    return ledger(worker, lambda rows: rows[-1].update(values))


def test_a_control_has_the_status_that_its_recorder_saw() -> None:
    assert said("attempt-control-seen", "native", control(0, status=404)) == [
        "controls.json#models-1/status: found 404, expected what the recorder saw: [200]"
    ]
    assert said("attempt-control-seen", "native", control(0, status=404), seen(status=404)) == []
    assert said("attempt-control-seen", "native", control(0, status=404), seen(path="/v1/other")) == []
    assert said("attempt-control-seen", "native", control(1, status=404)) == []
    (line,) = said("attempt-control-seen", "native", seen(responseSha256="e" * 64))
    assert (
        line == f"ledgers/attempt.worker-1.json#3/responseSha256: found {'e' * 64}, expected the hash of a stored body"
    )
    assert said("attempt-control-seen", "native", seen(requestSha256="e" * 64)) == []  # it has no bytes
    assert len(said("attempt-control-seen", "native", seen(requestSha256="e" * 64, requestBytes=1))) == 1


def test_the_client_may_take_5_ms_less_than_the_recorder_in_the_middle_of_an_attempt() -> None:
    def shave(*less: str) -> Callable[[Desk], None]:
        def apply(desk: Desk) -> None:
            with desk.samples() as rows:
                for row, one in zip(rows, less, strict=False):
                    with desk.receipt(row["offer"]) as receipt:
                        assert receipt is not None
                        row["totalSeconds"] = receipt["endedSeconds"] - receipt["startedSeconds"] - Decimal(one)

        return apply

    found = "samples.json: found a client that took 0.006 s less than the recorder, expected never less, but for 5 ms"
    assert said("attempt-witness", "rr", shave("0.005", "0.005", "0.005", "0.005")) == []
    assert said("attempt-witness", "rr", shave("0.006", "0.006", "0.006", "0.007")) == [found]
    assert said("attempt-witness", "rr", shave("0.007", "0.006", "0.005", "0.005")) == []
    broken = data(lambda value: [row.update(transport="timeout") for row in value["samples"]], "samples.json")
    assert said("attempt-witness", "rr", shave("0.006", "0.006", "0.006", "0.006"), broken) == []
    unknown = [ledger(f"worker-{n}", lambda rows: [row.update(requestId=None) for row in rows]) for n in (1, 2)]
    assert said("attempt-witness", "rr", shave("0.006", "0.006", "0.006", "0.006"), *unknown) == []
    cut = [ledger(f"worker-{n}", lambda rows: [row.update(complete=False) for row in rows]) for n in (1, 2)]
    assert said("attempt-witness", "rr", shave("0.006", "0.006", "0.006", "0.006"), *cut) == []


# The index


def index(change: Callable[[list[Row]], object]) -> Callable[[Bench], None]:
    def damage(bench: Bench) -> None:
        with bench.edit(INDEX) as value:
            change(value["attempts"])

    return damage


def test_the_index_has_a_row_for_every_attempt_in_order() -> None:
    def swap(rows: list[Row]) -> None:
        rows[0], rows[1] = rows[1], rows[0]

    assert told(CONVERGED, "attempt-index", index(swap)) == [
        f"attempt-index {INDEX}: found rows out of order, expected rows sorted by id"
    ]
    assert told(CONVERGED, "attempt-index", index(lambda rows: rows.pop())) == [
        f"attempt-index {INDEX}: found 0 rows for results/converged/a09-exact, expected one"
    ]
    assert told(CONVERGED, "attempt-index", index(lambda rows: rows.append(rows[-1]))) == [
        f"attempt-index {INDEX}: found 2 rows for results/converged/a09-exact, expected one"
    ]
    moved = index(lambda rows: rows[-1].update(folder="results/converged/a10-exact"))
    assert told(CONVERGED, "attempt-index", moved) == [
        f"attempt-index {INDEX}: found 0 rows for results/converged/a09-exact, expected one",
        f"attempt-index {INDEX}#a09-exact: found folder results/converged/a10-exact, "
        "expected results/converged/a09-exact with an attempt",
    ]
    renamed = index(lambda rows: rows[-1].update(id="a0a"))
    assert told(CONVERGED, "attempt-index", renamed)[0].startswith(
        f"attempt-index {INDEX}#a0a: found folder results/converged/a09-exact, expected results/converged/a0a with"
    )
    assert told(CONVERGED, "attempt-index", lambda bench: bench.put("results/converged/x", b"")) == [
        "attempt-index results/converged/x: found a file beside the attempts, expected folders of attempts only"
    ]


def test_a_run_is_packaged_once() -> None:
    def same(bench: Bench) -> None:
        with bench.edit("results/converged/a04-exact/attempt.json") as value:
            value["run"] = "a02-native"

    assert told(CONVERGED, "attempt-copy", same) == [
        "attempt-copy results/converged/a04-exact/attempt.json#/run: found a02-native, "
        "expected a run of its own, not that of results/converged/a02-native"
    ]


@pytest.mark.parametrize(
    "name", ["bodies/" + "a" * 63, "bodies/" + "g" * 64, "bodies/" + "A" * 64, "bodie/" + "a" * 65, "x.json", "a" * 8]
)
def test_an_attempts_folder_holds_nothing_else(name: str) -> None:
    right = "found a file that no attempt has, expected documents, ledgers of its workers and bodies"
    put = [lambda desk: desk.bench.put(desk.path(name), b"x")]
    assert said("attempt-files", "native", *put) == [f"{name}: {right}"]
    body = "bodies/" + "a" * 64
    assert said("attempt-files", "native", lambda desk: desk.bench.put(desk.path(body), b"x")) == []
