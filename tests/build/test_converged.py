"""Attempts, their outcomes, and the matrix that leans on them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from forged_world import World

from benchmarks.forged_runs import Shape
from evidence.build import converged, matrix
from evidence.build.converged import Packed
from evidence.build.privacy import Machine, Scanner
from evidence.build.runs import find_runs
from evidence.build.tree import Tree
from evidence.capture.load import Exchange


def pack(world: World) -> list[Packed]:
    staging = world.folder / "staging"
    staging.mkdir()
    tree = Tree(staging, Scanner(Machine()))
    found = [converged.pack(run, world.campaign, tree) for run in find_runs(world.runs, world.campaign)]
    assert tree.refusals == []
    return found


def outcome(world: World) -> tuple[str, str]:
    [one] = pack(world)
    return one.attempt.outcome, one.attempt.reason


def test_success_is_borne_by_bodies_and_receipts(world: World) -> None:
    world.attempt("one-rr-1")
    [one] = pack(world)
    assert (one.attempt.outcome, one.attempt.reason, one.attempt.counts) == ("SUCCESS", "OK", {"NORMAL": 8})
    assert (one.attempt.scope.accepted, one.attempt.scope.modes) == (True, ["rr"])
    assert one.entry.accepted


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("ACCESS_DENIED", "BLOCKED_ACCESS"),
        ("PROGRAM_NOT_FOUND", "MISSING_IMAGE"),
        ("MODEL_NOT_FOUND", "MISSING_STORAGE"),
        ("DISK_TOO_SMALL", "MISSING_STORAGE"),
        ("NOT_READY", "NATIVE_FAILURE"),
        ("ENGINE_DIED", "NATIVE_FAILURE"),
    ],
)
def test_set_up_failures_keep_their_reason(world: World, reason: str, expected: str) -> None:
    world.attempt("one-native-1", reason=reason, outcome=expected, requests=0)
    [one] = pack(world)
    assert (one.attempt.outcome, one.attempt.reason, one.attempt.requests) == (expected, reason, 0)
    assert not one.attempt.scope.accepted


def one_bad(exchange: Exchange) -> Exchange:
    return replace(exchange, status=500) if exchange.offer == "attempt-003" else exchange


def test_the_runners_word_does_not_make_a_bad_answer_good(world: World) -> None:
    world.attempt("one-rr-1", shape=Shape(alter=one_bad), outcome="SUCCESS", reason="OK")
    assert outcome(world) == ("NATIVE_FAILURE", "BAD_ANSWER")


def test_capped_answers_are_kept_and_counted_but_do_not_bear_success_alone(world: World) -> None:
    def capped(exchange: Exchange) -> Exchange:
        return replace(exchange, response_body=exchange.response_body.replace(b'"stop"', b'"length"'))

    world.attempt("one-rr-1", shape=Shape(alter=capped))
    [one] = pack(world)
    assert (one.attempt.outcome, one.attempt.reason, one.attempt.counts) == (
        "NATIVE_FAILURE",
        "BAD_ANSWER",
        {"CAPPED": 8},
    )


def test_an_odd_number_of_requests_is_no_round_robin(world: World) -> None:
    world.attempt("one-rr-1", requests=7)
    assert outcome(world) == ("NATIVE_FAILURE", "ROUTING_UNEQUAL")


def test_a_receipt_of_other_bytes_takes_success_away(world: World) -> None:
    world.attempt("one-rr-1", shape=Shape(upstream=lambda offer, body: (body + b"\n" * (offer == "attempt-002"), True)))
    assert outcome(world) == ("NATIVE_FAILURE", "BAD_ANSWER")


def test_the_latest_attempt_that_ended_decides_the_row(world: World) -> None:
    world.attempt("one-native-1", 1, reason="NOT_READY", outcome="NATIVE_FAILURE", requests=0)
    world.attempt("one-native-1", 2)
    killed = world.attempt("one-native-1", 3, shape=Shape(killed_after=3))
    assert '"run-ended"' not in (killed / "journal.jsonl").read_text()
    packed = pack(world)
    row = next(row for row in matrix.build(world.campaign, packed, "FINAL").rows if row.case == "one-native-1")
    assert (row.outcome, row.decided_by) == ("SUCCESS", packed[1].attempt.id)
    assert row.attempts == [one.attempt.id for one in packed]
    assert (packed[2].attempt.ended, packed[2].attempt.reason) == (False, "RUNNER_DIED")


def test_a_later_failure_takes_an_earlier_success_away(world: World) -> None:
    world.attempt("one-native-1", 1)
    world.attempt("one-native-1", 2, reason="ENGINE_DIED", outcome="NATIVE_FAILURE", requests=0)
    row = next(row for row in matrix.build(world.campaign, pack(world), "FINAL").rows if row.case == "one-native-1")
    assert (row.outcome, row.reason, row.blocker) == ("NATIVE_FAILURE", "ENGINE_DIED", "it was ENGINE_DIED")


def test_every_case_has_a_row_and_every_row_without_success_names_its_blocker(world: World) -> None:
    world.attempt("one-native-1", 1)
    world.attempt("two-native-1", 2, reason="ACCESS_DENIED", outcome="BLOCKED_ACCESS", requests=0)
    rows = matrix.build(world.campaign, pack(world), "FINAL").rows
    assert [row.case for row in rows] == sorted(world.campaign.cases)
    outcomes = {row.case: row.outcome for row in rows}
    assert outcomes["three-rr-1"] == outcomes["three-native-1"] == "USER_DEFERRED"
    assert outcomes["one-rr-1"] == outcomes["two-rr-1"] == "NOT_ATTEMPTED"
    assert outcomes["two-native-1"] == "BLOCKED_ACCESS"
    assert all((row.blocker is None) == (row.outcome == "SUCCESS") for row in rows)
