"""Times that are told twice, at the edges of what may differ: slots of the client, the engine's own clock, memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from checking.damage import Bench
from checking.rules.answers import answer, read_request
from checking.rules.forgery import Desk

from tests.verifiers.edges import CONVERGED, RESULTS, Change, edited, only, sampled, told, told_of

AT = "results/settings/memory-half"
MAIN = "r1-b-main-003"


def said(code: str, *changes: Change) -> list[str]:
    return told_of(lambda bench: only(bench, "settings", "memory-half"), AT, RESULTS, code, *changes)


def row_of(offer: str) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    told(RESULTS, "slot-pace", lambda bench: rows.extend(Desk(bench, AT).load("samples.json")["samples"]))
    return next(row for row in rows if row["offer"] == offer)


def reworded(offer: str, change: Callable[[bytes], bytes]) -> Change:
    """The answer to an offer in other words, told truly on both sides."""

    def apply(desk: Desk) -> None:
        with desk.samples() as rows:
            row = next(row for row in rows if row["offer"] == offer)
            desk.answer_with(row, change(desk.body(row)))

    return apply


def timed(offer: str, prompt: object, text: object) -> Change:
    event = "data: " + json.dumps({"timings": {"prompt_ms": "P", "predicted_ms": "T"}}) + "\n\n"
    words = event.replace('"P"', str(prompt)).replace('"T"', str(text)).encode()
    return reworded(offer, lambda data: data.replace(b"data: [DONE]", words + b"data: [DONE]"))


# The client's slots


@pytest.mark.parametrize(
    ("offer", "lag", "seen"),
    [
        ("r1-b-main-012", "0.001021", False),
        ("r1-b-main-012", "0.001022", True),
        ("r1-b-rr-warm-012", "0.001022", True),
        ("r1-b-native-warm-002", "9", False),
    ],
)
def test_a_request_is_due_when_a_slot_is_free_to_a_millisecond(offer: str, lag: str, seen: bool) -> None:
    lines = said("slot-pace", sampled(offer, sendLagSeconds=Decimal(lag)))
    assert bool(lines) is seen
    assert all("when a slot of its batch was free" in line for line in lines)


def test_the_first_eight_are_due_at_once() -> None:
    (line,) = said("slot-pace", sampled("r1-b-main-008", sendLagSeconds=Decimal("0.0005"), startedSeconds=4))
    assert line.startswith("samples.json#r1-b-main-")


def test_a_batch_with_an_exchange_that_failed_tells_nothing_of_slots() -> None:
    late = sampled("r1-b-main-012", sendLagSeconds=Decimal("0.5"))
    assert said("slot-pace", late)
    for fault in ({"transport": "closed-early"}, {"status": 503}):
        assert said("slot-pace", late, sampled("r1-b-main-002", **fault)) == []


# The engine's own times


@pytest.mark.parametrize(("over", "seen"), [("0.005", False), ("0.006", True)])
def test_no_answer_came_sooner_than_its_engine_worked(over: str, seen: bool) -> None:
    row = row_of(MAIN)
    worked = (row["totalSeconds"] + Decimal(over)) * 1000
    assert bool(said("engine-times", timed(MAIN, 0, worked))) is seen
    read = (row["ttftSeconds"] + Decimal(over)) * 1000
    lines = said("engine-times", timed(MAIN, read, 0))
    assert [line for line in lines if "that the prompt took" in line] == lines[: int(seen)]


def test_the_first_text_did_not_come_a_quarter_of_a_second_before_it_was_written() -> None:
    row = row_of(MAIN)
    wrote = Decimal("0.1")
    longer = sampled(MAIN, totalSeconds=row["ttftSeconds"] + wrote + Decimal("0.25"))
    assert not any("about" in line for line in said("engine-times", timed(MAIN, 0, wrote * 1000), longer))
    longer = sampled(MAIN, totalSeconds=row["ttftSeconds"] + wrote + Decimal("0.251"))
    assert any("about" in line for line in said("engine-times", timed(MAIN, 0, wrote * 1000), longer))


@pytest.mark.parametrize("value", ["null", '"7"', "-1", "true", "[]"])
def test_what_is_no_time_tells_none(value: str) -> None:
    assert said("engine-times", timed(MAIN, value, 99999999)) == []


def test_timings_and_moments_are_read_of_streams_and_of_plain_answers() -> None:
    plain = {"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}], "created": 1796000001,
             "timings": {"prompt_ms": 1.25, "predicted_ms": 3}, "system_fingerprint": "b"}  # fmt: skip
    read = answer("complete", 200, read_request(b'{"messages": []}'), json.dumps(plain).encode(), True)
    assert read.timings == (Decimal("1.25"), Decimal(3))
    assert read.moments == (1796000001, 1796000001)
    assert read.builds == ("b",)
    chunks = [
        {"id": "one", "created": 1796000001 + number, "system_fingerprint": "b",
         "choices": [{"delta": {"content": "a"}, "finish_reason": None if number < 3 else "stop"}]}
        for number in range(4)
    ]  # fmt: skip
    stream = b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in chunks) + b"data: [DONE]\n\n"
    read = answer("complete", 200, read_request(b'{"messages": [], "stream": true}'), stream, True)
    assert read.moments == (1796000001, 1796000004)
    assert (read.builds, read.name) == (("b",), "one")


# The engine's clock


def dated(seconds: int) -> Callable[[Desk], None]:
    """All answers of worker-1 made so much later."""

    def apply(desk: Desk) -> None:
        with desk.samples() as rows:
            for row in rows:
                if row["worker"] == "worker-1" and row["phase"] != "native-warm":
                    desk.answer_with(row, moved(desk.body(row), seconds))

    return apply


def moved(data: bytes, seconds: int) -> bytes:
    head, sign, rest = data.partition(b'"created": ')
    old = rest[:10]
    return data.replace(sign + old, sign + str(int(old) + seconds).encode()) if sign else head


@pytest.mark.parametrize(("seconds", "seen"), [(0, False), (299, False), (-299, False), (310, True), (-310, True)])
def test_the_clock_of_an_engine_that_was_launched_is_that_of_the_client(seconds: int, seen: bool) -> None:
    lines = said("engine-dates", dated(seconds))
    assert bool(lines) is seen
    assert all("by the clock of worker-1" in line for line in lines)


def test_an_engine_that_was_not_launched_may_have_any_clock_but_one_alone() -> None:
    def elsewhere(value: Any) -> None:
        for arm in value["arms"]:
            for launch in arm["launches"]:
                launch["arguments"] = []

    assert said("engine-dates", dated(86400), edited("comparison.json", elsewhere)) == []
    (line,) = said("engine-dates", reworded(MAIN, lambda data: moved(data, 60)))
    assert "made outside its exchange when that of" in line
    assert said("engine-dates", reworded(MAIN, lambda data: moved(data, 4))) == []


def test_a_stepped_wall_clock_and_an_engine_without_a_clock_tell_nothing() -> None:
    def step(value: Any) -> None:
        value["arms"][2]["client"]["wallClockStepped"] = True

    assert said("engine-dates", dated(900), edited("comparison.json", step)) == []

    def stop(desk: Desk) -> None:
        with desk.samples() as rows:
            for row in rows:
                data = desk.body(row)
                _, sign, rest = data.partition(b'"created": ')
                if sign:
                    desk.answer_with(row, data.replace(sign + rest[:10], sign + b"1500000000"))

    assert said("engine-dates", stop) == []


def test_a_functional_answer_is_dated_by_the_start_of_its_attempt() -> None:
    def later(bench: Bench) -> None:
        desk = only(bench, "converged", "a02-native")
        with desk.samples() as rows:
            desk.answer_with(rows[1], moved(desk.body(rows[1]), 60))

    (line,) = told(CONVERGED, "attempt-engine-dates", later)
    assert "one offset between the clocks of worker-1 and of the client" in line


# Which run is which


def test_an_arm_may_begin_a_second_before_the_stamp_of_its_run_and_no_more() -> None:
    def begin(second: str) -> Change:
        return edited("comparison.json", lambda value: value["arms"][0].update(startedAt=f"2026-11-30T00:59:{second}Z"))

    def lines(change: Change) -> list[str]:
        return told(RESULTS, "index-runs", lambda bench: change(Desk(bench, AT)))

    assert lines(begin("59.000000")) == []
    (line,) = lines(begin("58.999999"))
    assert line.endswith("expected not before the stamp of its run, 2026-11-30T01:00:00.000000Z")


# Memory


@pytest.mark.parametrize(("share", "seen"), [(Decimal(15) / 16, False), (Decimal("0.93"), True)])
def test_a_device_holds_about_what_its_engine_does(share: Decimal, seen: bool) -> None:
    def less(value: Any) -> None:
        one = value["snapshots"][0]
        held = 4294971392
        assert f"device-1: {held} bytes" in one["method"]
        one["devices"][0]["usedBytes"] = int(held * share) + (not seen)

    assert bool(said("snapshot-figures", edited("snapshots.json", less))) is seen
