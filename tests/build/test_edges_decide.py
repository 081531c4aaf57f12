"""The decision of a whole comparison, and the outcome of a case, at their edges: one fact altered at a time."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from evidence import records
from evidence.build import matrix
from evidence.build.decide import decide, exact, mismatches, nearest_rank, offer_arm

ORDER = "ABBAAB"
CLIENT = records.Client(False, 0.01, 0.001, 0.002, 0.001, 0.002, 0.5, False, "kernel")
LAUNCH = records.Launch("worker-1", ["serve"], "0" * 64, {}, None)


class Given:
    """A memory comparison that decides for its candidate; what a test alters, it alters here."""

    def __init__(self) -> None:
        self.kind = "memory"
        self.arms = [
            records.Arm(place // 2 + 1, arm, place + 1, "2026-01-01T00:00:00.000000Z", 10.0 + place, [LAUNCH], None, CLIENT, [])
            for place, arm in enumerate(ORDER)
        ]  # fmt: skip
        self.snapshots = [
            records.Snapshot(
                one.repetition, one.arm, 1.0, "nvml", "m",
                [records.DeviceMemory(f"device-{n}", f"worker-{n}", 1000 if one.arm == "A" else 700, 2000, None) for n in (1, 2)],
            )
            for one in self.arms
        ]  # fmt: skip
        self.samples: list[records.Sample] = []
        self.ledgers: dict[tuple[str, str], list[records.Receipt]] = {}
        for one in self.arms:
            arm = f"r{one.repetition}-{one.arm.lower()}"
            for phase, count in (("native-warm", 2), ("rr-warm", 2), ("main", 4)):
                for number in range(1, count + 1):
                    worker = f"worker-{number % 2 + 1}"
                    digest = f"{len(self.samples):064x}"
                    self.samples.append(
                        records.Sample(
                            f"{arm}-{phase}-{number:03d}", one.repetition, one.arm, phase, worker, "a" * 64, 1, digest, 1,
                            200, "complete", 0.0, 0.1 * number, None, 0.2 * number, 0.0, "NORMAL", "stop", 1, 10 * number,
                        )
                    )  # fmt: skip
                    self.ledgers.setdefault((arm, worker), []).append(
                        records.Receipt(
                            number, None, "POST", "/v1/chat/completions", True, "a" * 64, 1, digest, 1, 200, True, None,
                            0.0, 0.1, {}, {},
                        )
                    )  # fmt: skip
        self.date_control: records.DateControl | None = None
        self.options: dict[str, bool] = {}

    def alter(self, offer: str, **values: Any) -> None:
        self.samples = [one._replace(**values) if one.offer == offer else one for one in self.samples]

    def client(self, place: int, **values: Any) -> None:
        self.arms[place] = self.arms[place]._replace(client=CLIENT._replace(**values))

    def dated(self, hashes: list[str]) -> None:
        rows = [
            records.TokenIds(place // 4 + 1, ORDER[place // 2], f"worker-{place % 2 + 1}", digest * 64, 5)
            for place, digest in enumerate(hashes)
        ]
        self.date_control = records.DateControl("UTC", "2026-01-01", rows)

    def decided(self) -> records.Decision:
        body = records.Body("a" * 64, 1)
        comparison = records.Comparison(
            "x", "case", "run", "campaign", "profile", "engine", "two-worker", "rr", self.kind, True,
            records.Setting("--x", "1", "2"), records.Protocol(0, 16, True), records.Requests(body, body),
            [records.Worker(f"worker-{n}", f"device-{n}") for n in (1, 2)],
            records.Gateway("built-in", "round-robin", None, "part of the runner"), self.date_control, self.arms,
        )  # fmt: skip
        return decide(comparison, self.samples, self.ledgers, self.snapshots, **self.options)


def altered(*changes: Callable[[Given], Any]) -> records.Decision:
    given = Given()
    for change in changes:
        change(given)
    return given.decided()


def told(decision: records.Decision) -> list[tuple[str, str]]:
    return [(one.code, one.detail) for one in decision.disqualifications]


def test_a_candidate_that_passes_every_gate_is_selected_and_has_to_be_requalified() -> None:
    decision = altered()
    assert (decision.comparison, decision.kind) == ("x", "memory")
    assert (decision.decision, decision.failed_gates, decision.requalification) == ("candidate", [], "required")
    assert decision.performance_comparison_qualified is True
    assert told(decision) == []
    assert [gate.gate for gate in decision.gates] == ["token-volume", "memory-reduction", "latency-regression"]
    again = altered(lambda given: given.options.update(requalified=True))
    assert (again.decision, again.requalification) == ("candidate", "not-required")


def test_a_failed_gate_keeps_the_baseline_and_leaves_the_comparison_qualified() -> None:
    decision = altered(lambda given: given.alter("r2-b-main-001", completion_tokens=16))
    assert (decision.decision, decision.failed_gates) == ("baseline", ["token-volume"])
    assert decision.requalification == "not-required"
    assert decision.performance_comparison_qualified is True


def test_a_side_is_of_its_own_repetition_and_arm_and_of_main_samples_alone() -> None:
    decision = altered(
        lambda given: given.alter("r2-b-main-003", completion_tokens=31, ttft_seconds=0.7, total_seconds=0.9),
        lambda given: given.alter("r2-b-rr-warm-001", completion_tokens=500, ttft_seconds=5.0, total_seconds=6.0),
    )
    assert [pair.repetition for pair in decision.pairs] == [1, 2, 3]
    plain = records.Side(0.4, 0.8, 100, 10.0, {"device-1": 1000, "device-2": 1000})
    saved = {"device-1": 700, "device-2": 700}
    walls = {(one, arm): wall for one, arm, wall in zip((1, 1, 2, 2, 3, 3), ORDER, range(10, 16), strict=True)}
    for pair in decision.pairs:
        assert pair.baseline == plain._replace(wall_seconds=walls[pair.repetition, "A"])
    assert decision.pairs[0].candidate == plain._replace(wall_seconds=11.0, devices=saved)
    assert decision.pairs[1].candidate == records.Side(0.7, 0.9, 101, 12.0, saved)


def test_what_one_main_sample_lacks_its_side_lacks() -> None:
    side = altered(lambda given: given.alter("r1-a-main-002", completion_tokens=None)).pairs[0].baseline
    assert (side.completion_tokens, side.p95_ttft_seconds) == (None, 0.4)
    side = altered(lambda given: given.alter("r1-a-main-002", ttft_seconds=None)).pairs[0].baseline
    assert (side.completion_tokens, side.p95_ttft_seconds, side.p95_total_seconds) == (100, None, 0.8)

    def without_main(given: Given) -> None:
        given.samples = [one for one in given.samples if (one.phase, one.offer[:4]) != ("main", "r1-a")]

    side = altered(without_main).pairs[0].baseline
    assert (side.completion_tokens, side.p95_ttft_seconds, side.p95_total_seconds) == (None, None, None)


def test_a_device_without_a_snapshot_is_unknown_and_an_unknown_wall_time_is_nought() -> None:
    def forget(given: Given) -> None:
        del given.snapshots[0]
        given.arms[0] = given.arms[0]._replace(wall_seconds=None)

    decision = altered(forget)
    assert decision.pairs[0].baseline.devices == {"device-1": None, "device-2": None}
    assert decision.pairs[0].baseline.wall_seconds == 0
    assert decision.failed_gates == ["memory-reduction"]
    gate = decision.gates[1]
    assert [(row.repetition, row.device, row.holds) for row in gate.rows[:3]] == [
        (1, "device-1", None),
        (1, "device-2", None),
        (2, "device-1", True),
    ]
    assert (gate.holds, gate.rows[2].relative) == (None, "3/10")


def test_nought_tokens_or_bytes_give_no_ratio() -> None:
    decision = altered(*[lambda given, n=n: given.alter(f"r1-a-main-00{n}", completion_tokens=0) for n in (1, 2, 3, 4)])
    row = decision.gates[0].rows[0]
    assert (row.baseline, row.candidate, row.relative, row.holds) == (0, 100, None, False)

    def nothing_used(given: Given) -> None:
        rows = [one._replace(used_bytes=0) for one in given.snapshots[0].devices]
        given.snapshots[0] = given.snapshots[0]._replace(devices=rows)

    row = altered(nothing_used).gates[1].rows[0]
    assert (row.baseline, row.candidate, row.relative, row.holds) == (0, 700, None, False)


def test_a_latency_of_nought_is_compared_with_nothing_and_one_second_is_a_latency() -> None:
    def ttft(value: float) -> Callable[[Given], None]:
        def change(given: Given) -> None:
            given.samples = [one._replace(ttft_seconds=value) if one.arm == "A" else one for one in given.samples]

        return change

    assert [row.relative for row in altered(ttft(1.0)).gates[2].rows] == ["-3/5"] * 3
    gate = altered(ttft(0.0)).gates[2]
    assert ([row.relative for row in gate.rows], gate.holds) == ([None] * 3, None)
    assert altered(ttft(0.2)).gates[2].rows[0] == records.GateRow(1, None, 0.2, 0.4, "1/1", False)


def test_every_sample_that_is_not_normal_or_lacks_a_figure_disqualifies() -> None:
    decision = altered(lambda given: given.alter("r3-a-main-004", classification="CAPPED"))
    assert told(decision) == [("SAMPLE_NOT_NORMAL", "r3-a-main-004 is CAPPED")]
    assert decision.performance_comparison_qualified is False
    assert (decision.decision, decision.failed_gates) == ("baseline", [])
    decision = altered(
        lambda given: given.alter("r1-a-main-001", completion_tokens=None, ttft_seconds=None),
        lambda given: given.alter("r1-b-main-002", completion_tokens=None),
        lambda given: given.alter("r1-b-main-003", completion_tokens=None),
    )
    assert told(decision) == [
        ("TOKENS_UNKNOWN", "r1-a-main-001 has no completion tokens and 2 more"),
        ("TTFT_UNKNOWN", "r1-a-main-001 has no TTFT"),
    ]


def test_warm_ups_do_not_disqualify_by_what_they_answered() -> None:
    decision = altered(
        lambda given: given.alter(
            "r1-a-rr-warm-001", classification="EMPTY", completion_tokens=None, ttft_seconds=None
        ),
    )
    assert (told(decision), decision.decision) == ([], "candidate")


def test_receipts_that_do_not_match_disqualify() -> None:
    def lose(given: Given) -> None:
        given.ledgers["r2-a", "worker-1"].pop()

    assert told(altered(lose)) == [("RECEIPT_MISMATCH", "r2-a: 7 receipts and 8 samples do not match")]


def test_memory_that_was_not_read_disqualifies_a_memory_comparison_alone() -> None:
    def unread(*reasons: str | None) -> Callable[[Given], None]:
        def change(given: Given) -> None:
            devices = [
                row._replace(used_bytes=None, reason=reason)
                for row, reason in zip(given.snapshots[3].devices, reasons, strict=True)
            ]
            given.snapshots[3] = given.snapshots[3]._replace(devices=devices)

        return change

    assert told(altered(unread(None, "no permission"))) == [("MEMORY_UNKNOWN", "r2-a device-1: not read and 1 more")]
    assert told(altered(unread("no permission", None))) == [
        ("MEMORY_UNKNOWN", "r2-a device-1: no permission and 1 more")
    ]
    decision = altered(unread(None, None), lambda given: setattr(given, "kind", "sequence-cap"))
    assert told(decision) == []
    assert [gate.gate for gate in decision.gates] == ["token-volume", "latency-improvement", "median-improvement"]
    assert decision.failed_gates == ["latency-improvement", "median-improvement"]


def test_a_late_client_a_stepped_clock_and_a_log_line_disqualify() -> None:
    late = altered(lambda given: given.client(1, late=True, limit_seconds=0.02))
    assert told(late) == [("CLIENT_LATE", "r1-b: the client was later than 0.02 s")]
    stepped = altered(
        lambda given: given.client(2, wall_clock_stepped=True), lambda given: given.client(5, wall_clock_stepped=True)
    )
    assert told(stepped) == [("WALL_CLOCK", "r2-b: the wall clock was stepped and 1 more")]

    def log(given: Given) -> None:
        given.arms[4] = given.arms[4]._replace(
            log_findings=[records.LogFinding("worker-2", "error", "an error", 3.0)], client=None
        )

    assert told(altered(log)) == [("LOG_FINDING", "r3-a worker-2: error")]


ALIKE = ["d"] * 12


@pytest.mark.parametrize(
    ("hashes", "detail"),
    [
        (ALIKE, None),
        ([*ALIKE[:11], "e"], "2 different rendered inputs in 12 readings, expected one in 12"),
        (ALIKE[:11], "1 different rendered inputs in 11 readings, expected one in 12"),
        ([*ALIKE, "d"], "1 different rendered inputs in 13 readings, expected one in 12"),
        ([], "0 different rendered inputs in 0 readings, expected one in 12"),
    ],
)
@pytest.mark.parametrize("sensitive", [False, True])
def test_a_date_control_is_one_hash_from_every_worker_in_every_arm(
    hashes: list[str], detail: str | None, sensitive: bool
) -> None:
    order = [*"AABBBBAAAABB", "A"]

    def dated(given: Given) -> None:
        rows = [records.TokenIds(1, order[place], "worker-1", one * 64, 5) for place, one in enumerate(hashes)]
        given.date_control = records.DateControl("UTC", "2026-01-01", rows)
        given.options["date_sensitive"] = sensitive

    assert told(altered(dated)) == ([] if detail is None else [("DATE_INPUT_DIFFERS", detail)])


def test_a_date_sensitive_profile_needs_a_date_control() -> None:
    assert told(altered(lambda given: given.options.update(date_sensitive=True))) == [
        ("DATE_INPUT_DIFFERS", "the profile is date-sensitive and nobody read the rendered input")
    ]


def test_causes_stand_in_the_order_of_the_table() -> None:
    decision = altered(
        lambda given: given.client(0, late=True, wall_clock_stepped=True),
        lambda given: given.alter("r1-a-main-001", classification="EMPTY", completion_tokens=None, ttft_seconds=None),
        lambda given: given.options.update(date_sensitive=True),
        lambda given: given.ledgers.clear(),
    )
    assert [code for code, _ in told(decision)] == [
        "SAMPLE_NOT_NORMAL",
        "RECEIPT_MISMATCH",
        "CLIENT_LATE",
        "TOKENS_UNKNOWN",
        "DATE_INPUT_DIFFERS",
        "TTFT_UNKNOWN",
        "WALL_CLOCK",
    ]


def test_the_arms_of_samples_and_of_receipts_are_both_looked_at() -> None:
    given = Given()
    assert mismatches(given.samples, given.ledgers) == []
    stray = {**given.ledgers, ("r9-a", "worker-1"): given.ledgers["r1-a", "worker-1"][:1]}
    assert mismatches(given.samples, stray) == ["r9-a: 1 receipts and 0 samples do not match"]
    # A sample that names no worker matches a receipt of either, one that names a worker only that worker's.
    given.alter("r1-a-main-001", worker=None)
    assert mismatches(given.samples, given.ledgers) == []
    given.alter("r1-a-main-001", worker="worker-1")
    assert mismatches(given.samples, given.ledgers) == ["r1-a: 8 receipts and 8 samples do not match"]


def test_a_number_is_the_decimal_that_was_written() -> None:
    assert exact(0.1) * 10 == 1
    assert exact(3) == 3
    assert exact(2**60 + 1) == 2**60 + 1


@pytest.mark.parametrize(
    ("percent", "count", "rank"), [(95, 20, 19), (95, 21, 20), (95, 1, 1), (95, 1000, 950), (50, 4, 2), (50, 5, 3)]
)
def test_the_rank_is_the_least_that_reaches_the_share(percent: int, count: int, rank: int) -> None:
    assert nearest_rank([float(value) for value in range(count, 0, -1)], percent) == rank


def test_an_offer_says_its_arm() -> None:
    assert [offer_arm(one) for one in ("r1-a-main-007", "r3-b-rr-warm-016", "attempt-001")] == [
        "r1-a",
        "r3-b",
        "attempt",
    ]


def attempt(name: str, started: str, ended: str | None, outcome: str = "SUCCESS", reason: str = "OK", message: str | None = None) -> Any:  # fmt: skip
    return SimpleNamespace(
        attempt=SimpleNamespace(
            id=name, case="tiny-rr", started_at=started, ended_at=ended, ended=ended is not None, outcome=outcome,
            reason=reason, message=message,
        )
    )  # fmt: skip


def row(*attempts: Any, state: str = "accessible", adapter: str = "synthetic") -> records.MatrixRow:
    case = SimpleNamespace(id="tiny-rr", profile="tiny", engine="e", topology="two-worker", surface="rr")
    campaign: Any = SimpleNamespace(
        name="c",
        cases={"tiny-rr": case},
        profiles={"tiny": SimpleNamespace(state=state)},
        engines={"e": SimpleNamespace(adapter=adapter)},
        surfaces=["rr"],
    )
    built = matrix.build(campaign, attempts, "FINAL")
    assert (built.campaign, built.status, built.surfaces) == ("c", "FINAL", ["rr"])
    [one] = built.rows
    assert (one.case, one.profile, one.engine, one.topology, one.surface) == (
        "tiny-rr",
        "tiny",
        "e",
        "two-worker",
        "rr",
    )
    return one


def test_the_attempt_that_ended_last_decides_and_all_are_cited_as_they_began() -> None:
    first = attempt("a", "1", "9", "NATIVE_FAILURE", "BAD_ANSWER", "it said nothing")
    second, third, open_one = attempt("b", "2", "5"), attempt("c", "3", "7"), attempt("d", "4", None)
    one = row(third, open_one, first, second)
    assert (one.outcome, one.reason, one.decided_by) == ("NATIVE_FAILURE", "BAD_ANSWER", "a")
    assert one.attempts == ["a", "b", "c", "d"]
    assert one.blocker == "it said nothing"
    one = row(second, third)
    assert (one.outcome, one.decided_by, one.blocker) == ("SUCCESS", "c", None)
    assert row(attempt("q", "1", "5"), attempt("p", "1", "5")).attempts == ["p", "q"]
    assert row(attempt("q", "1", "5"), attempt("p", "1", "5")).decided_by == "q"


def test_a_case_without_a_decision_says_why() -> None:
    one = row()
    assert (one.outcome, one.reason, one.decided_by, one.attempts) == ("NOT_ATTEMPTED", "NOT_ATTEMPTED", None, [])
    assert one.blocker == "no attempt was made"
    assert row(attempt("a", "1", None)).blocker == "1 attempts began and none ended"
    assert row(attempt("a", "1", "2", "NATIVE_FAILURE", "NOT_READY")).blocker == "the attempt ended with NOT_READY"


def test_a_deferred_profile_is_deferred_whatever_was_tried() -> None:
    one = row(attempt("a", "1", "2"), state="deferred")
    assert (one.outcome, one.reason, one.decided_by) == ("USER_DEFERRED", "USER_DEFERRED", None)
    assert one.blocker == "the user deferred this profile; it has no recipe"
    assert one.attempts == ["a"]


def test_only_the_synthetic_engine_makes_a_synthetic_row() -> None:
    assert row().synthetic is True
    assert row(adapter="vllm").synthetic is False
    assert row(adapter="a").synthetic is False


def test_accepted_modes_are_the_surfaces_of_its_own_successes() -> None:
    def one(surface: str, outcome: str = "SUCCESS", **other: str) -> Any:
        return SimpleNamespace(**{"profile": "p", "engine": "e", "topology": "t", "surface": surface, "outcome": outcome, **other})  # fmt: skip

    rows = [one("rr"), one("native"), one("exact", "EXACT_REJECTED"), one("x1", profile="q"), one("x2", engine="f"),
            one("x3", topology="u"), one("x4", "TUCCESS"), one("x5", "RUCCESS")]  # fmt: skip
    case: Any = one("rr")
    assert matrix.accepted_modes(SimpleNamespace(rows=rows), case) == {"rr", "native"}  # type: ignore[arg-type]


def test_rows_stand_in_the_order_of_their_cases() -> None:
    names = ["z", "a", "m"]
    campaign: Any = SimpleNamespace(
        name="c",
        cases={
            name: SimpleNamespace(id=name, profile="p", engine="e", topology="single", surface="native")
            for name in names
        },
        profiles={"p": SimpleNamespace(state="accessible")},
        engines={"e": SimpleNamespace(adapter="vllm")},
        surfaces=["native"],
    )
    assert [one.case for one in matrix.build(campaign, [], "FINAL").rows] == ["a", "m", "z"]
