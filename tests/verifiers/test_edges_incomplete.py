"""Comparisons that did not finish, at the edges of their rules: one fact altered, and the exact lines said of it."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from checking.damage import Bench, sha256
from checking.rules.forgery import Desk

from tests.verifiers.edges import INCOMPLETE, Change, edited, only, received, sampled, told, told_of

INDEX = "results/incomplete-settings-index.json"
FOLDER = "results/incomplete/aborted-20261130t090000.000000z"
Row = dict[str, Any]


def aborted(bench: Bench) -> Desk:
    desk = only(bench, "incomplete")
    assert desk.folder == FOLDER
    return desk


def said(code: str, *changes: Change) -> list[str]:
    return told_of(aborted, FOLDER, INCOMPLETE, code, *changes)


def data(change: Callable[[Row], object], name: str = "comparison.json") -> Change:
    return edited(name, change)


def to(**values: Any) -> Callable[[Desk], None]:
    return data(lambda value: value.update(values))


def arm(place: int, **values: Any) -> Callable[[Desk], None]:
    return data(lambda value: value["arms"][place].update(values))


def timeline(place: int, **values: Any) -> Callable[[Desk], None]:
    return data(lambda value: value["arms"][place]["timeline"].update(values))


def offer(name: str, **values: Any) -> Callable[[Desk], None]:
    def change(value: Row) -> None:
        next(one for one in value["offers"] if one["offer"] == name).update(values)

    return data(change, "offers.json")


def lose(name: str) -> Callable[[Desk], None]:
    """The client died before it kept a sample of this exchange."""

    def apply(desk: Desk) -> None:
        with desk.samples() as rows:
            rows[:] = [row for row in rows if row["offer"] != name]
        offer(name, sample=False, fate="failed", client=None)(desk)

    return apply


KEPT, OTHER, TIMED_OUT, FAILED, NEVER = "r1-b-main-003", "r1-b-main-005", "r1-b-main-009", "r1-b-main-010", "r1-b-main-012"  # fmt: skip


def test_the_ground_is_as_these_tests_take_it() -> None:
    def look(desk: Desk) -> None:
        fates = {one["offer"]: (one["fate"], one["sample"]) for one in desk.load("offers.json")["offers"]}
        assert [fates[name] for name in (KEPT, OTHER, TIMED_OUT, FAILED, NEVER)] == [
            ("completed", True), ("completed", True), ("timed-out", True), ("failed", False), ("never-started", False),
        ]  # fmt: skip

    said("incomplete-fate", look)


def test_a_receipt_of_an_exchange_that_the_client_lost_may_stand_alone() -> None:
    assert said("incomplete-request-id", lose(KEPT)) == []
    # Another receipt that is wrong is told all the same, and so is an id that no arm's sample has.
    wrong = received(OTHER, status=201)
    (line,) = said("incomplete-request-id", lose(KEPT), wrong)
    assert ", status 201, expected worker-1, " in line
    assert said("incomplete-request-id", lose(KEPT), received(OTHER, requestId=KEPT)) == [
        f"ledgers/r1-b.worker-1.json#12: found request id {KEPT} again, first at "
        f"{FOLDER}/ledgers/r1-b.worker-1.json#11, expected each id once"
    ]
    assert said("incomplete-request-id", received(OTHER, requestId=None, requestHeaders={})) == []


def test_every_document_names_the_run_and_every_ledger_a_worker_and_its_arm() -> None:
    def ledger(**values: Any) -> Callable[[Desk], None]:
        return data(lambda value: value.update(values), "ledgers/r1-a.worker-1.json")

    at, right = "ledgers/r1-a.worker-1.json: found ", "expected worker-1 of r1-a"
    assert said("incomplete-names", ledger(worker="worker-2")) == [f"{at}worker-2 of r1-a, {right}"]
    assert said("incomplete-names", ledger(arm="r1-b")) == [f"{at}worker-1 of r1-b, {right}"]
    one = to(workers=[{"alias": "worker-2", "device": "device-2"}, {"alias": "worker-3", "device": "device-3"}])
    assert len(said("incomplete-names", one)) == 2
    own = FOLDER.rpartition("/")[2]
    for document, key in (
        ("comparison.json", "id"),
        ("comparison.json", "run"),
        ("samples.json", "comparison"),
        ("offers.json", "comparison"),
    ):
        changed = data(lambda value, key=key: value.update({key: "zz"}), document)
        assert said("incomplete-names", changed) == [f"{document}#/{key}: found zz, expected {own}"]


def test_the_arms_that_were_begun_are_the_first_of_the_plan_and_bear_every_offer() -> None:
    one_arm = data(lambda value: value["arms"].pop())
    assert said("incomplete-arms", one_arm) == [
        "offers.json#r1-b-native-warm-001: found an offer of r1-b, expected offers of arms that were begun"
    ]
    for values, told_ in (({"sequence": 3}, "3, repetition 1, arm B"), ({"repetition": 2}, "2, repetition 2, arm B")):
        lines = said("incomplete-arms", arm(1, **values))
        assert lines[0] == f"comparison.json#/arms/1: found sequence {told_}, expected 2, 1, B"


def test_every_offer_is_planned_stands_once_and_says_its_phase() -> None:
    twice = data(lambda value: value["offers"].append(value["offers"][-1]), "offers.json")
    right = "found an offer twice or not of the plan, expected each planned offer once"
    assert said("incomplete-offers", twice) == [f"offers.json#{NEVER}: {right}"]
    assert said("incomplete-offers", offer(NEVER, offer="r1-b-main-025")) == [f"offers.json#r1-b-main-025: {right}"]
    assert said("incomplete-offers", offer(NEVER, offer="r1-b-rr-warm-017")) == [
        f"offers.json#r1-b-rr-warm-017: {right}"
    ]
    assert said("incomplete-offers", offer(NEVER, repetition=2)) == [
        f"offers.json#{NEVER}: found main in r2-b, expected what the offer id says"
    ]

    def drop(desk: Desk) -> None:
        with desk.edit("offers.json") as value:
            value["offers"] = [one for one in value["offers"] if one["offer"] != KEPT]

    assert said("incomplete-offers", drop) == [
        f"samples.json#{KEPT}: found a sample without an offer, expected an offer for every sample",
        f"ledgers/r1-b.worker-1.json#11: found a receipt of {KEPT} without an offer, expected an offer for every exchange",
    ]
    assert said("incomplete-offers", received(KEPT, requestId="r9-z")) == [
        "ledgers#11: found a receipt of r9-z without an offer, expected an offer for every exchange"
    ]


def test_offers_run_from_one_without_a_gap() -> None:
    def number(name: str, new: str) -> list[str]:
        return said("incomplete-gaps", offer(name, offer=new))

    at = "offers.json#r1-b-main: found no offer "
    assert number(NEVER, "r1-b-main-013") == [f"{at}012, expected offers without a gap"]
    assert number("r1-b-main-001", "r1-b-main-013") == [f"{at}001, expected offers without a gap"]
    assert number("r1-b-main-001", "r1-b-main-002") == [f"{at}001, expected offers without a gap"]
    last = data(lambda value: value["offers"].pop(), "offers.json")
    assert said("incomplete-gaps", last) == []


@pytest.mark.parametrize(
    ("name", "values", "line"),
    [
        (KEPT, {"fate": "timed-out"}, "fate: found timed-out, expected completed"),
        (KEPT, {"sample": False}, "sample: found false, expected true"),
        (TIMED_OUT, {"fate": "failed"}, "fate: found failed, expected timed-out"),
        (FAILED, {"sample": True}, "sample: found true, expected false"),
        (FAILED, {"fate": "timed-out"}, "fate: found timed-out, expected failed or never-started, since there is no sample"),
        (FAILED, {"fate": "never-started"}, None),
        (NEVER, {"fate": "failed"}, None),
        (NEVER, {"upstream": {"sha256": "e" * 64, "bytes": 1, "worker": "worker-1", "complete": False}}, "fate: found never-started with a receipt, expected failed: a worker saw it"),
    ],
)  # fmt: skip
def test_a_fate_is_what_sample_and_receipt_say(name: str, values: Row, line: str | None) -> None:
    lines = said("incomplete-fate", offer(name, **values))
    assert lines == ([] if line is None else [f"offers.json#{name}/{line}"])


def test_what_a_worker_saw_has_started() -> None:
    right = "found never-started with a receipt, expected failed: a worker saw it"
    assert said("incomplete-fate", lose(KEPT)) == []
    started = offer(KEPT, fate="never-started", upstream=None)
    assert said("incomplete-fate", lose(KEPT), started) == [f"offers.json#{KEPT}/fate: {right}"]


@pytest.mark.parametrize(
    ("transport", "fate"),
    [("complete", "completed"), ("timeout", "timed-out"), ("closed-early", "failed"), ("failed", "failed")],
)
def test_the_transport_of_a_sample_gives_its_fate(transport: str, fate: str) -> None:
    change = sampled(KEPT, transport=transport)
    for told_ in ("completed", "timed-out", "failed", "never-started"):
        lines = said("incomplete-fate", change, offer(KEPT, fate=told_))
        assert lines == ([] if told_ == fate else [f"offers.json#{KEPT}/fate: found {told_}, expected {fate}"])


def test_offers_are_counted_by_their_fates() -> None:
    def counts(**values: int) -> Callable[[Desk], None]:
        return data(lambda value: value["counts"].update(values), "offers.json")

    true = {"offered": 72, "completed": 68, "timedOut": 1, "failed": 1, "neverStarted": 2}
    for key, value in true.items():
        assert said("incomplete-counts", counts(**{key: value + 1})) == [
            f"offers.json#/counts/{key}: found {value + 1}, expected {value}"
        ]


def test_the_clients_bytes_of_an_offer_are_its_samples() -> None:
    assert said("incomplete-client", offer(KEPT, client=None)) == [
        f"offers.json#{KEPT}/client: found null, expected the bytes that the client got"
    ]
    empty = sampled(KEPT, responseBytes=0)
    assert said("incomplete-client", offer(KEPT, client=None), empty) == []
    (line,) = said("incomplete-client", offer(KEPT, client={"sha256": "e" * 64, "bytes": 1}))
    assert line.startswith(f"offers.json#{KEPT}/client: found {'e' * 64}, expected ")
    assert said("incomplete-client", offer(NEVER, client={"sha256": "e" * 64, "bytes": 1})) == []
    for values in ({"requestSha256": "e" * 64}, {"requestBytes": 1}):
        assert len(said("incomplete-client", offer(KEPT, **values))) == 1
        assert said("incomplete-client", offer(NEVER, **values)) == []


def test_only_a_receipt_says_that_upstream_bytes_are_all() -> None:
    body = {"sha256": "e" * 64, "bytes": 1, "worker": "worker-1"}
    at = f"offers.json#{FAILED}/upstream"
    assert said("incomplete-upstream", offer(FAILED, upstream={**body, "complete": False})) == []
    assert said("incomplete-upstream", offer(FAILED, upstream={**body, "complete": True})) == [
        f"{at}: found complete, expected not complete: no receipt carries this offer"
    ]
    assert len(said("incomplete-upstream", offer(KEPT, upstream=None))) == 1
    assert len(said("incomplete-upstream", received(KEPT, complete=False))) == 1


def test_a_partial_that_nothing_cites_does_not_lie_there() -> None:
    def put(name: str, data_: bytes = b"x") -> Callable[[Desk], None]:
        return lambda desk: desk.bench.put(desk.path(name), data_)

    stray = sha256(b"x")
    assert said("incomplete-apart", put("partials/" + stray)) == [
        f"partials/{stray}: found a partial that nothing cites, expected bytes of incomplete exchanges"
    ]
    assert said("incomplete-apart", put("bodies/" + stray)) == [
        f"bodies/{stray}: found a body that nothing cites, expected bodies that samples, receipts and offers cite"
    ]
    upstream = {"sha256": stray, "bytes": 1, "worker": "worker-1", "complete": False}
    cited = offer(FAILED, upstream=upstream)
    assert said("incomplete-apart", put("partials/" + stray), cited) == []
    assert said("incomplete-apart", put("bodies/" + stray), cited) == [
        f"bodies/{stray}: found an upstream partial, expected bodies that samples, receipts and offers cite"
    ]
    assert said("incomplete-stored", cited) == [
        f"offers.json#{FAILED}: found no partial {stray}, expected the bytes that came from upstream, in partials/"
    ]
    assert said("incomplete-stored", cited, put("partials/" + stray)) == []
    whole = offer(FAILED, upstream={**upstream, "complete": True})
    assert said("incomplete-stored", whole) == [f"offers.json#{FAILED}: found no body {stray}, expected a stored body"]


def test_a_partial_is_a_regular_file_of_its_name_and_length() -> None:
    def partial(desk: Desk) -> str:
        (name,) = desk.bench.below(desk.path("partials"))
        return name

    (line,) = said("partial-digest", lambda desk: desk.bench.place(partial(desk), "link"))
    assert line.endswith(": found no regular file, expected a partial")
    (line,) = said("partial-digest", lambda desk: desk.bench.put(partial(desk), b"other"))
    assert line.endswith(f": found sha256 {sha256(b'other')}, expected the hash that is its name")


def test_what_is_whole_is_no_incomplete_comparison_but_for_what_is_found_at_its_end() -> None:
    def whole(desk: Desk) -> None:
        with desk.samples() as rows:
            first = rows[0]
            offers = [
                f"r{place // 2 + 1}-{name}-{phase}-{number:03d}"
                for place, name in enumerate("abbaab")
                for phase, count in (("native-warm", 2), ("rr-warm", 16), ("main", 24))
                for number in range(1, count + 1)
            ]
            rows[:] = [{**first, "offer": name} for name in offers]

    def broken(desk: Desk) -> None:
        with desk.samples() as rows:
            rows[-1]["transport"] = "timeout"

    last = ("AUDIT_FAILED", "ENGINE_DIED", "PROXY_DIED", "GATEWAY_DIED", "DISK_FULL", "RUNNER_DIED")
    for reason in last:
        assert said("incomplete-reason", whole, to(reason=reason)) == []
    for reason in ("OPERATOR", "TIME_OUT", "ENGINE_NOT_READY"):
        line = f"comparison.json#/reason: found all 252 samples with {reason}, expected {' or '.join(last)}"
        assert said("incomplete-reason", whole, to(reason=reason)) == [line]
        # the last request had no end in time, or was cancelled: it has its sample all the same
        assert said("incomplete-reason", whole, broken, to(reason=reason)) == []
    assert said("incomplete-reason", to(reason="AUDIT_FAILED")) == []
    later = "2026-11-30T09:01:00.000000Z"  # the second arm began then
    assert said("incomplete-reason", to(abortedAt=later)) == []
    assert said("incomplete-reason", to(abortedAt="2026-11-30T09:00:59.999999Z")) == [
        f"comparison.json#/abortedAt: found 2026-11-30T09:00:59.999999Z, expected not before {later}"
    ]


@pytest.mark.parametrize(
    ("name", "stray"),
    [
        ("decision.json", True),
        ("x", True),
        ("bodies/" + "a" * 63, True),
        ("bodies/" + "g" * 64, True),
        ("partials/" + "A" * 64, True),
        ("other/" + "a" * 64, True),
        ("ledgers/attempt.worker-1.json", True),
        ("ledgers/x.json", True),
        ("bodies/" + "a" * 64, False),
        ("partials/" + "b" * 64, False),
    ],
)
def test_an_incomplete_comparison_has_no_decision_and_no_stray_file(name: str, stray: bool) -> None:
    ledger = b'{\n  "arm": "attempt",\n  "receipts": [],\n  "schemaVersion": 1,\n  "worker": "worker-1"\n}\n'
    lines = said("incomplete-files", lambda desk: desk.bench.put(desk.path(name), ledger))
    right = "found a file that no incomplete comparison has, expected documents, ledgers, bodies and partials; never a decision"
    assert lines == ([f"{name}: {right}"] if stray else [])


# As far as the run went


def launches(place: int, change: Callable[[list[Row]], object]) -> Callable[[Desk], None]:
    return data(lambda value: change(value["arms"][place]["launches"]))


def unasked(name: str) -> Callable[[Desk], None]:
    def apply(desk: Desk) -> None:
        with desk.samples() as rows:
            rows[:] = [row for row in rows if not row["offer"].startswith(name)]

    return apply


def test_an_arm_that_was_asked_has_every_launch_and_all_ready() -> None:
    at = "comparison.json#/arms/1/launches: found "
    unready = launches(1, lambda rows: rows[0].update(ready=None))
    assert said("incomplete-launches", unready) == [
        f"{at}a launch that was never ready, expected ready launches, since the arm was asked"
    ]
    assert said("incomplete-launches", unready, unasked("r1-b")) == []
    one = launches(1, lambda rows: rows.pop())
    assert said("incomplete-launches", one) == [
        f'{at}launches of ["worker-1"], expected one of each of ["worker-1", "worker-2"], since it was asked'
    ]
    assert said("incomplete-launches", one, unasked("r1-b")) == []
    assert said("incomplete-launches", launches(1, lambda rows: rows.clear()), unasked("r1-b")) == []
    twice = launches(1, lambda rows: rows[1].update(worker="worker-1"))
    most = f'{at}launches of ["worker-1", "worker-1"], expected at most one of each of ["worker-1", "worker-2"]'
    assert said("incomplete-launches", twice)[0] == most
    assert said("incomplete-launches", twice, unasked("r1-b"))[0] == most
    stranger = launches(1, lambda rows: rows[1].update(worker="worker-3"))
    assert said("incomplete-launches", stranger, unasked("r1-b"))[0] == (
        f'{at}launches of ["worker-1", "worker-3"], expected at most one of each of ["worker-1", "worker-2"]'
    )


def edge(name: str, which: str, more: str) -> Callable[[Desk], None]:
    """A moment of the second arm, so much later than the edge of a phase's samples."""
    phase = {"readySeconds": "native-warm", "nativeWarmEndedSeconds": "native-warm", "snapshotSeconds": "rr-warm",
             "rrWarmEndedSeconds": "rr-warm", "firstMainSeconds": "main", "lastMainSeconds": "main"}[name]  # fmt: skip

    def apply(desk: Desk) -> None:
        rows = [row for row in desk.load("samples.json")["samples"] if row["offer"].startswith(f"r1-b-{phase}-")]
        first = min(row["startedSeconds"] for row in rows)
        last = max(row["startedSeconds"] + row["totalSeconds"] for row in rows)
        timeline(1, **{name: (first if which == "first" else last) + Decimal(more)})(desk)

    return apply


@pytest.mark.parametrize(
    ("name", "which", "inside", "outside"),
    [
        ("readySeconds", "first", "0.000001", "0.000001001"),
        ("nativeWarmEndedSeconds", "last", "-0.000001", "-0.000001001"),
        ("snapshotSeconds", "first", "0.000001", "0.000001001"),
        ("rrWarmEndedSeconds", "last", "-0.000001", "-0.000001001"),
        ("firstMainSeconds", "first", "0.000001", "0.000001001"),
        ("lastMainSeconds", "last", "-0.000001", "-0.000001001"),
    ],
)
def test_samples_lie_in_their_phase_as_far_as_it_was_reached(name: str, which: str, inside: str, outside: str) -> None:
    place = f"comparison.json#/arms/1/timeline/{name}"
    assert said("incomplete-moments", edge(name, which, inside)) == []
    (line,) = said("incomplete-moments", edge(name, which, outside))
    assert line.startswith(f"{place}: found ")
    assert f", expected not {'before' if which == 'first' else 'after'} " in line
    lines = said("incomplete-moments", timeline(1, **{name: None}))
    if which == "first":
        (line,) = lines
        assert line.startswith(f"{place}: found null with ")
    else:
        assert lines == []
    assert said("incomplete-moments", arm(1, timeline=None)) == []


def test_a_phase_begins_when_the_one_before_has_ended() -> None:
    def early(more: str) -> Callable[[Desk], None]:
        def apply(desk: Desk) -> None:
            with desk.samples() as rows:
                warm = [row for row in rows if row["offer"].startswith("r1-b-rr-warm")]
                end = max(row["startedSeconds"] + row["totalSeconds"] for row in warm)
                next(row for row in rows if row["offer"] == "r1-b-main-001")["startedSeconds"] = end + Decimal(more)
            arm(1, timeline=None)(desk)

        return apply

    assert said("incomplete-moments", early("-0.000001")) == []
    (line,) = said("incomplete-moments", early("-0.000001001"))
    assert line.startswith("comparison.json#/arms/1/timeline: found main samples from ")
    assert line.endswith(" s, when the phase before had ended")
    # An arm without samples of a phase says nothing about it.
    assert said("incomplete-moments", unasked("r1-b-rr-warm"), timeline(1, snapshotSeconds=None)) == []


def snapshots(change: Callable[[list[Row]], object]) -> Callable[[Desk], None]:
    return data(lambda value: change(value["snapshots"]), "snapshots.json")


def test_an_arm_that_was_warmed_round_robin_has_a_snapshot() -> None:
    at = "snapshots.json#/snapshots: found snapshots of "
    right = 'expected those of ["r1-a", "r1-b"], in their order'
    assert said("incomplete-snapshots", snapshots(lambda rows: rows.pop())) == [f'{at}["r1-a"], {right}']
    assert said("incomplete-snapshots", snapshots(lambda rows: rows.pop()), unasked("r1-b-rr-warm")) == []
    assert said("incomplete-snapshots", snapshots(lambda rows: rows.reverse())) == [f'{at}["r1-b", "r1-a"], {right}']
    assert said("incomplete-snapshots", unasked("r1-b-rr-warm")) == []
    other = snapshots(lambda rows: rows[1]["devices"][0].update(worker="worker-2"))
    (line,) = said("incomplete-snapshots", other)
    assert line.startswith("snapshots.json#/snapshots/1/devices: found ")


def test_a_run_was_aborted_after_its_last_sample_but_for_a_second() -> None:
    def ends(more: str) -> Callable[[Desk], None]:
        """The last sample ends so many seconds after the abort: arms began at 09:00 and 09:01."""
        return sampled(KEPT, startedSeconds=6 + Decimal(more), totalSeconds=Decimal("0.5"))

    # Aborted 66.5 s after the run began, which is 6.5 s after its second arm did.
    assert said("incomplete-end", ends("0")) == []
    assert said("incomplete-end", ends("0.99")) == []
    (line,) = said("incomplete-end", ends("1.01"))
    assert line == f"comparison.json#/abortedSeconds: found 66.5 s, expected at least 67.510 s, the end of {KEPT}"
    assert said("incomplete-end", ends("1.01"), to(abortedSeconds=None)) == []
    assert said("incomplete-end", ends("1.01"), to(run="aborted")) == []  # that id tells no instant
    day = to(abortedSeconds=None, abortedAt="2026-11-30T09:01:06.500000Z")
    assert said("incomplete-end", ends("0.99"), day) == []
    assert said("incomplete-end", ends("1.01"), day) == [
        f"comparison.json#/abortedAt: found 2026-11-30T09:01:06.500000Z, expected not before the end of {KEPT}"
    ]
    stepped = data(lambda value: value["arms"][0]["client"].update(wallClockStepped=True))
    assert said("incomplete-end", ends("1.01"), stepped) == []
    assert said("incomplete-end", unasked("r1"), to(abortedSeconds=0)) == []


# The index


def index(change: Callable[[list[Row]], object]) -> Callable[[Bench], None]:
    def damage(bench: Bench) -> None:
        with bench.edit(INDEX) as value:
            change(value["comparisons"])

    return damage


def test_the_index_has_one_row_for_every_folder() -> None:
    at = f"incomplete-index {INDEX}"
    assert told(INCOMPLETE, "incomplete-index", index(lambda rows: rows.clear())) == [
        f"{at}: found 0 rows for {FOLDER}, expected one"
    ]
    assert told(INCOMPLETE, "incomplete-index", index(lambda rows: rows.append(rows[0]))) == [
        f"{at}: found 2 rows for {FOLDER}, expected one"
    ]
    own = FOLDER.rpartition("/")[2]
    moved = index(lambda rows: rows.append({**rows[0], "folder": "results/incomplete/x"}))
    assert told(INCOMPLETE, "incomplete-index", moved) == [
        f"{at}#{own}: found folder results/incomplete/x, expected {FOLDER} with an incomplete comparison"
    ]
    renamed = index(lambda rows: rows[0].update(id="x"))
    assert told(INCOMPLETE, "incomplete-index", renamed) == [
        f"{at}#x: found folder {FOLDER}, expected results/incomplete/x with an incomplete comparison"
    ]
    before = index(lambda rows: rows.append({**rows[0], "id": "a", "folder": "results/incomplete/a"}))
    assert told(INCOMPLETE, "incomplete-index", before) == [
        f"{at}#a: found folder results/incomplete/a, expected results/incomplete/a with an incomplete comparison",
        f"{at}: found rows out of order, expected rows sorted by id",
    ]
    assert told(INCOMPLETE, "incomplete-index", lambda bench: bench.put("results/incomplete/x", b"")) == [
        "incomplete-index results/incomplete/x: found a file beside the incomplete comparisons, "
        "expected folders of incomplete comparisons only"
    ]


def test_a_run_that_is_told_incomplete_is_nowhere_told_complete() -> None:
    def promote(bench: Bench) -> None:
        with bench.edit("results/settings/memory-half/comparison.json") as value:
            value["run"] = FOLDER.rpartition("/")[2]

    (line,) = told(INCOMPLETE, "incomplete-unselected", promote)
    assert line == (
        "incomplete-unselected results/settings/memory-half/comparison.json#/run: "
        f"found {FOLDER.rpartition('/')[2]}, expected a run that is not told incomplete as well"
    )


def test_no_setting_is_selected_from_an_incomplete_comparison() -> None:
    def select(name: str) -> Callable[[Bench], None]:
        def damage(bench: Bench) -> None:
            with bench.edit("recipes.json") as value:
                value["recipes"][0]["comparison"] = name

        return damage

    (line,) = told(INCOMPLETE, "incomplete-unselected", select("aborted"))
    assert line.endswith(": found a setting of aborted, expected none: it is incomplete")
    assert told(INCOMPLETE, "incomplete-unselected", select("memory-half")) == []

    def complete_as_well(bench: Bench) -> None:
        select("aborted")(bench)
        with bench.edit("results/settings-index.json") as value:
            value["comparisons"][0]["id"] = "aborted"

    assert told(INCOMPLETE, "incomplete-unselected", complete_as_well) == []


def test_every_offer_with_a_wrong_fate_is_told() -> None:
    lines = said("incomplete-fate", offer(KEPT, sample=False), offer(OTHER, fate="failed"))
    assert lines == [
        f"offers.json#{KEPT}/sample: found false, expected true",
        f"offers.json#{OTHER}/fate: found failed, expected completed",
    ]
