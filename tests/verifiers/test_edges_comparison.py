"""Complete comparisons at the edges of their rules: one fact of one of them altered, and the exact lines said of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from checking.check import judge
from checking.damage import Bench, sha256
from checking.package import Memory, View
from checking.rules.comparison import engine_of
from checking.rules.forgery import Desk
from checking.rules.protocol import hold_timeline
from checking.rules.samples import hold_lengths
from checking.rules.shapes import TIMES
from checking.sums import Sums

from tests.verifiers.edges import RESULTS, Change, edited, only, received, sampled, told, told_of
from tests.verifiers.kill_matrix import ground

AT = "results/settings/memory-half/"
Row = dict[str, Any]


def said(code: str, *changes: Change) -> list[str]:
    return told_of(lambda bench: only(bench, "settings", "memory-half"), AT[:-1], RESULTS, code, *changes)


def data(change: Callable[[Row], object], name: str = "comparison.json") -> Change:
    return edited(name, change)


def answered(offer: str, body: bytes, **values: Any) -> Callable[[Desk], None]:
    """Another answer to an offer, told truly on both sides."""

    def apply(desk: Desk) -> None:
        with desk.samples() as rows:
            row = next(row for row in rows if row["offer"] == offer)
            desk.answer_with(row, body)
            row.update(values)

    return apply


def stream(*deltas: Row, finish: str = "stop") -> bytes:
    chunks = [{"choices": [{"delta": one, "finish_reason": None}]} for one in deltas]
    chunks.append({"choices": [{"delta": {}, "finish_reason": finish}]})
    return b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in chunks) + b"data: [DONE]\n\n"


# Receipts


def test_a_response_length_header_is_that_of_a_whole_body_alone() -> None:
    header = {"responseHeaders": {"content-length": "7"}}
    (line,) = said("receipt-headers", received("r1-a-main-001", **header))
    assert line.startswith("ledgers/r1-a.worker-1.json#10: found response content-length 7, expected ")
    cut = {"complete": False, "reason": "client-closed", **header}
    assert said("receipt-headers", received("r1-a-main-001", **cut)) == []
    (line,) = said("receipt-headers", received("r1-a-main-001", requestHeaders={"x-request-id": "r1-a-main-001", "content-length": "7"}))  # fmt: skip
    assert line.startswith("ledgers/r1-a.worker-1.json#10: found request content-length 7, expected ")


@pytest.mark.parametrize(
    ("values", "found", "expected"),
    [
        ({"method": "GET"}, "traffic true for GET /v1/chat/completions", "false"),
        ({"path": "/v1/models"}, "traffic true for POST /v1/models", "false"),
        ({"path": "/v1/embeddings", "traffic": False}, "traffic false for POST /v1/embeddings", "true"),
        ({"path": "/v1/completions?x=1", "traffic": False}, "traffic false for POST /v1/completions?x=1", "true"),
        ({"path": "/v1/completions?x=1?y=2"}, None, None),
    ],
)
def test_traffic_is_a_post_to_a_serving_path(values: Row, found: str | None, expected: str | None) -> None:
    lines = said("receipt-traffic", received("r1-a-main-001", **values))
    at = "ledgers/r1-a.worker-1.json#10"
    assert lines == ([] if found is None else [f"{at}: found {found}, expected {expected}"])


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({"status": None}, "complete with reason None and status None, expected a status and no reason"),
        ({"reason": "timeout"}, "complete with reason timeout and status 200, expected a status and no reason"),
        ({"complete": False}, "incomplete without a reason, expected a reason"),
        ({"complete": False, "reason": "timeout", "status": None}, None),
        ({"complete": False, "reason": "timeout"}, None),
    ],
)
def test_a_complete_exchange_has_a_status_and_an_incomplete_one_a_reason(values: Row, found: str | None) -> None:
    lines = said("receipt-complete", received("r1-a-main-001", **values))
    assert lines == ([] if found is None else [f"ledgers/r1-a.worker-1.json#10: found {found}"])


def test_an_exchange_may_end_as_it_begins() -> None:
    assert said("receipt-clock", received("r1-a-main-001", startedSeconds=5, endedSeconds=5)) == []
    (line,) = said("receipt-clock", received("r1-a-main-001", startedSeconds=5, endedSeconds=Decimal("4.999999999")))
    assert line == "ledgers/r1-a.worker-1.json#10: found ended at 4.999999999 s, expected not before 5 s"


def test_two_receipts_may_share_their_start_or_their_end_but_not_both() -> None:
    times = {"startedSeconds": 5, "endedSeconds": 6}
    one, other = received("r1-a-main-001", **times), received("r1-a-main-003", **times)
    assert said("receipt-copy", one, other) == [
        "ledgers/r1-a.worker-1.json#11: found the times of receipt 10, expected its own"
    ]
    assert said("receipt-copy", one, received("r1-a-main-003", startedSeconds=5, endedSeconds=7)) == []
    assert said("receipt-copy", one, received("r1-a-main-003", startedSeconds=4, endedSeconds=6)) == []


LOST = {"transport": "timeout", "classification": "CLIENT_TIMEOUT", "finishReason": None, "promptTokens": None, "completionTokens": None}  # fmt: skip


def test_a_request_that_the_client_lost_may_have_a_receipt_of_other_bytes_once() -> None:
    other = received("r1-a-main-002", responseSha256="e" * 64)
    lost = sampled("r1-a-main-001", **LOST)
    assert len(said("receipt-unmatched", other)) == 1
    assert said("receipt-unmatched", lost, received("r1-a-main-001", responseSha256="f" * 64)) == []
    # One lost request excuses one receipt, not two.
    (line,) = said("receipt-unmatched", lost, received("r1-a-main-001", responseSha256="f" * 64), other)
    assert line.startswith("ledgers/r1-a.worker-2.json#10: found request ")
    assert line.endswith(f", response {'e' * 64}, expected a sample with both hashes")


def test_a_failed_sample_needs_no_receipt_but_the_samples_after_it_do() -> None:
    def drop(offer: str) -> Callable[[Desk], None]:
        def apply(desk: Desk) -> None:
            for name in desk.ledger_names("r1-a"):
                with desk.edit(name) as value:
                    value["receipts"] = [row for row in value["receipts"] if row["requestId"] != offer]

        return apply

    lost = sampled("r1-a-main-001", **LOST)
    assert said("sample-unreceipted", drop("r1-a-main-001")) == [
        "samples.json#r1-a-main-001: found no receipt of worker-1 for its hashes, expected exactly one"
    ]
    assert said("sample-unreceipted", drop("r1-a-main-001"), lost) == []
    lines = said("sample-unreceipted", drop("r1-a-main-001"), drop("r1-a-main-005"), lost)
    assert lines == ["samples.json#r1-a-main-005: found no receipt of worker-1 for its hashes, expected exactly one"]
    nowhere = sampled("r1-a-main-005", worker=None)
    assert said("sample-unreceipted", nowhere) == []
    assert said("sample-unreceipted", nowhere, drop("r1-a-main-005")) == [
        "samples.json#r1-a-main-005: found no receipt of any worker for its hashes, expected exactly one"
    ]
    # An error that names no worker may be the gateway's own word, below 400 nothing is.
    for status, count in ((299, 1), (400, 0), (503, 0)):
        refused = sampled("r1-a-main-005", worker=None, status=status)
        assert len(said("sample-unreceipted", refused, drop("r1-a-main-005"))) == count, status


def test_a_receipt_counts_for_one_sample() -> None:
    def answer_of_another(desk: Desk) -> None:
        with desk.samples() as rows:
            first, second = (next(row for row in rows if row["offer"] == f"r1-a-main-00{n}") for n in (1, 3))
            second.update({key: first[key] for key in ("responseSha256", "responseBytes")})

    same = "samples.json#r1-a-main-003: found no receipt of worker-1 for its hashes, expected exactly one"
    assert said("sample-unreceipted", answer_of_another) == [same]
    unnamed = [sampled(f"r1-a-main-00{n}", worker=None) for n in (1, 3)]
    assert said("sample-unreceipted", answer_of_another, *unnamed) == [
        "samples.json#r1-a-main-003: found no receipt of any worker for its hashes, expected exactly one"
    ]


def without_id(offer: str) -> Callable[[Desk], None]:
    return received(offer, requestId=None, requestHeaders={})


def test_a_receipt_without_an_id_is_passed_over_and_the_next_is_looked_at() -> None:
    assert said("request-id", without_id("r1-a-native-warm-001")) == []
    wrong = received("r1-a-main-001", status=201)
    (line,) = said("request-id", without_id("r1-a-native-warm-001"), wrong)
    assert line.startswith("ledgers/r1-a.worker-1.json#10: found worker-1, request ")
    assert ", status 201, expected worker-1, " in line
    assert line.endswith(", 200")


def test_an_id_is_of_one_sample_of_its_arm_and_comes_once() -> None:
    assert said("request-id", received("r1-a-main-003", requestId="r1-a-main-001")) == [
        "ledgers/r1-a.worker-1.json#11: found request id r1-a-main-001 again, first at "
        f"{AT}ledgers/r1-a.worker-1.json#10, expected each id once"
    ]
    assert said("request-id", received("r1-a-main-003", requestId="r1-b-main-001")) == [
        "ledgers/r1-a.worker-1.json#11: found request id r1-b-main-001, expected a sample of r1-a"
    ]


def cut(**values: Any) -> Callable[[Desk], None]:
    return received("r1-a-main-001", complete=False, reason="upstream-closed", **values)


def test_a_whole_sample_has_a_complete_exchange_but_for_a_5xx_of_the_way() -> None:
    assert said("request-id", cut()) == [
        "ledgers/r1-a.worker-1.json#10: found an incomplete exchange (upstream-closed), "
        "expected a complete one, since the sample is"
    ]
    # A 5xx is no answer of the worker; what the sample got then is another's word, and no ids are compared.
    for status in (500, 502, 404):
        assert said("request-id", cut(), sampled("r1-a-main-001", status=status)) == []
    assert said("request-id", cut(), sampled("r1-a-main-001", **LOST)) == []


def test_round_robin_is_counted_where_every_exchange_came_to_an_end() -> None:
    moved = sampled("r1-a-main-001", worker="worker-2")
    lines = said("round-robin", moved)
    assert lines == [
        "samples.json#r1-a-main: found 11 samples on worker-1, expected 12",
        "samples.json#r1-a-main: found 13 samples on worker-2, expected 12",
    ]
    assert said("round-robin", moved, sampled("r1-a-rr-warm-001", **LOST)) == []
    # Other arms are counted all the same, and a phase in which one sample names nobody is left to the ledgers.
    other = sampled("r1-b-main-001", worker="worker-2")
    assert len(said("round-robin", moved, sampled("r1-a-rr-warm-001", **LOST), other)) == 2
    assert said("round-robin", moved, sampled("r1-a-main-003", worker=None)) == []
    warm = sampled("r1-a-rr-warm-001", worker="worker-2")
    assert said("round-robin", sampled("r1-a-native-warm-001", worker=None), warm) == [
        "samples.json#r1-a-rr-warm: found 7 samples on worker-1, expected 8",
        "samples.json#r1-a-rr-warm: found 9 samples on worker-2, expected 8",
    ]


def test_a_ledger_has_21_exchanges_of_traffic() -> None:
    assert said("round-robin", received("r1-a-main-001", method="GET", traffic=False)) == [
        "ledgers/r1-a.worker-1.json: found 20 exchanges of traffic, expected 21"
    ]


@pytest.mark.parametrize(("less", "lines"), [("0.005", 0), ("0.005000001", 1)])
def test_the_client_may_take_5_ms_less_than_the_recorder_in_the_middle(less: str, lines: int) -> None:
    def shave(desk: Desk) -> None:
        with desk.samples() as rows:
            for row in rows:
                if row["offer"].startswith("r2-b-main"):
                    with desk.receipt(row["offer"]) as seen:
                        spent = seen["endedSeconds"] - seen["startedSeconds"]
                    row["totalSeconds"] = spent - Decimal(less)

    right = "a client that took 0.005000001 s less than the recorder, expected never less, but for 5 ms"
    assert said("witness-time", shave) == [f"samples.json#r2-b-main: found {right}"] * lines


# Samples


@pytest.mark.parametrize(
    ("status", "body", "line"),
    [
        (200, stream({"reasoning": "r"}), "ttftSeconds 0.1, expected null: the body has no text"),
        (201, stream({"reasoning": "r"}), None),
        (200, stream({"content": "a"}), None),
        (199, stream({"content": "a"}), None),
    ],
)
def test_a_time_to_text_needs_text(status: int, body: bytes, line: str | None) -> None:
    lines = said("ttft-present", answered("r1-a-main-001", body, status=status, ttftSeconds=Decimal("0.1")))
    assert lines == ([] if line is None else [f"samples.json#r1-a-main-001: found {line}"])


def test_a_stream_that_was_cut_keeps_the_time_of_the_text_that_it_brought() -> None:
    cut_off = answered("r1-a-main-001", stream({"reasoning": "r"}), ttftSeconds=Decimal("0.1"), reasoningSeconds=Decimal("0.1"), **LOST)  # fmt: skip
    assert said("ttft-present", cut_off) == []


def test_lengths_that_are_all_told_a_byte_short_are_all_seen() -> None:
    told = [(("samples.json", "one"), "a" * 64, 6), (("samples.json", "two"), "b" * 64, 8)]
    subject: Any = SimpleNamespace(
        bodies=SimpleNamespace(lengths={"a" * 64: 7, "b" * 64: 9}),
        cited_lengths=lambda: {one[1:] for one in told},
        citations=lambda: told,
    )
    assert list(hold_lengths(subject)) == [
        ("samples.json#one", "6 bytes", "7, as stored"),
        ("samples.json#two", "8 bytes", "9, as stored"),
    ]


def test_a_time_to_reasoning_needs_reasoning_in_a_stream() -> None:
    right = "null: no separate reasoning"
    thought = stream({"reasoning": "r"}, {"content": "a"})
    assert said("ttft-present", answered("r1-a-main-001", thought, reasoningSeconds=Decimal("0.05"))) == []
    (line,) = said("ttft-present", sampled("r1-a-main-001", reasoningSeconds=Decimal("0.05")))
    assert line == f"samples.json#r1-a-main-001: found reasoningSeconds 0.05, expected {right}"
    (line,) = said("ttft-present", sampled("r1-a-native-warm-001", reasoningSeconds=Decimal("0.05")))
    assert line.endswith(right)


def test_a_native_warm_up_names_a_worker_and_every_name_is_one_of_the_comparison() -> None:
    assert said("sample-labels", sampled("r1-a-main-001", worker="worker-3")) == [
        "samples.json#r1-a-main-001: found worker worker-3, expected a worker of the comparison"
    ]
    assert said("sample-labels", sampled("r1-a-main-001", worker=None)) == []
    assert said("sample-labels", sampled("r1-a-native-warm-001", worker=None)) == [
        "samples.json#r1-a-native-warm-001: found no worker, expected the worker that the client went to"
    ]
    assert said("sample-labels", sampled("r1-a-main-001", phase="rr-warm")) == [
        "samples.json#r1-a-main-001: found rr-warm in r1-a, expected what the offer id says"
    ]


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({"transport": "failed"}, "failed with status 200, expected no response head and no body"),
        ({"transport": "failed", "status": None}, "failed with status None, expected no response head and no body"),
        ({"transport": "failed", "status": None, "responseBytes": 0}, None),
        ({"transport": "failed", "responseBytes": 0}, "failed with status 200, expected no response head and no body"),
        ({"transport": "timeout", "status": None}, None),
        ({"status": None}, "complete without a status, expected a status"),
    ],
)
def test_a_failed_exchange_has_neither_status_nor_body(values: Row, line: str | None) -> None:
    lines = said("sample-status", sampled("r1-a-main-001", **values))
    assert lines == ([] if line is None else [f"samples.json#r1-a-main-001: found {line}"])


def test_nothing_takes_no_time() -> None:
    nanosecond, zero = Decimal("0.000000001"), {"ttftSeconds": None, "reasoningSeconds": None, "totalSeconds": 0}
    assert said("time-order", sampled("r1-a-main-001", **zero)) == [
        "samples.json#r1-a-main-001: found totalSeconds 0, expected over 0"
    ]
    assert said("time-order", sampled("r1-a-main-001", **{**zero, "totalSeconds": nanosecond})) == []
    same = {"ttftSeconds": nanosecond, "reasoningSeconds": nanosecond, "totalSeconds": nanosecond}
    assert said("time-order", sampled("r1-a-main-001", **same)) == []
    for name in ("ttftSeconds", "reasoningSeconds"):
        for value in (0, 2 * nanosecond):
            (line,) = said("time-order", sampled("r1-a-main-001", **{**same, name: value}))
            assert line.startswith(f"samples.json#r1-a-main-001: found {name} {value}, expected over 0 and at most")


def test_a_body_is_a_regular_file() -> None:
    def link(desk: Desk) -> None:
        row = next(row for row in desk.load("samples.json")["samples"] if row["offer"] == "r1-a-main-001")
        desk.bench.place(desk.path("bodies/" + row["responseSha256"]), "link")

    (line,) = said("body-digest", link)
    assert line.startswith("bodies/")
    assert line.endswith(": found no regular file, expected a body")


@pytest.mark.parametrize(("most", "count"), [(11, 0), (12, 1), (24, 1)])
def test_a_batch_with_the_times_of_half_another_is_a_copy(most: int, count: int) -> None:
    def copy(desk: Desk) -> None:
        with desk.samples() as rows:
            by_offer = {row["offer"]: row for row in rows}
            for number in range(1, most + 1):
                keys = ("startedSeconds", "ttftSeconds", "totalSeconds", "sendLagSeconds")
                other = by_offer[f"r1-a-main-{number:03d}"]
                by_offer[f"r2-b-main-{number:03d}"].update({key: other[key] for key in keys})

    right = f"{most} samples with the times of r1-a, expected a batch of its own"
    assert said("arm-copy", copy) == [f"samples.json#r2-b: found {right}"] * count


# Protocol


def launched(*arguments: str, arm: int = 0, environment: Row | None = None) -> Callable[[Desk], None]:
    def change(value: Row) -> None:
        launch = value["arms"][arm]["launches"][0]
        launch["arguments"] = launch["arguments"][:-2] + list(arguments)
        launch["environment"].update(environment or {})

    return data(change)


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (("--gpu-memory=0.9",), None),
        (("--gpu-memory=",), '--gpu-memory with [""], expected the value 0.9 once'),
        (("--gpu-memory=0.9", "--gpu-memory", "0.9"), '--gpu-memory with ["0.9", "0.9"], expected the value 0.9 once'),
        (("--gpu-memory",), "--gpu-memory with [], expected the value 0.9 once"),
        (("--gpu-memory-x", "0.9"), "--gpu-memory with [], expected the value 0.9 once"),
    ],
)
def test_a_setting_stands_once_in_either_form(arguments: tuple[str, ...], found: str | None) -> None:
    lines = said("setting-value", launched(*arguments))
    assert lines == ([] if found is None else [f"comparison.json#/arms/0/launches/0/arguments: found {found}"])


def test_a_setting_that_is_joined_differs_from_none_beyond_its_value() -> None:
    lines = said("launch-equal", launched("--gpu-memory=0.9"), launched("--gpu-memory=0.5", arm=1))
    assert lines == [
        f"comparison.json#/arms/{place}/launches/0: found arguments or environment that differ beyond --gpu-memory, "
        "expected those of the first arm"
        for place in (2, 3, 4, 5)
    ]


def variable(values: tuple[str | None, str | None]) -> Callable[[Desk], None]:
    def change(value: Row) -> None:
        value["setting"]["argument"] = "ENV:SHARE"
        for arm in value["arms"]:
            for launch in arm["launches"]:
                told = values["AB".index(arm["arm"])]
                if told is not None:
                    launch["environment"]["SHARE"] = told

    return data(change)


def test_a_setting_may_be_a_variable_of_the_environment() -> None:
    assert said("setting-value", variable(("0.9", "0.5"))) == []
    # The arguments differ still, the variable does not count.
    assert len(said("launch-equal", variable(("0.9", "0.5")))) == 6
    lines = said("setting-value", variable(("0.9", None)))
    assert len(lines) == 6
    assert lines[0] == (
        "comparison.json#/arms/1/launches/0/arguments: found ENV:SHARE with [], expected the value 0.5 once"
    )


def test_two_equal_values_are_no_comparison() -> None:
    lines = said("setting-value", data(lambda value: value["setting"].update(candidate="0.9")))
    assert lines[0] == "comparison.json#/setting: found the same value twice, expected two different values"
    assert len(lines) == 7
    lines = said("setting-value", data(lambda value: value["setting"].update(candidate="1.0")))
    assert len(lines) == 6


def asked(kind: str, **values: Any) -> Callable[[Desk], None]:
    """Another request body for a kind, where comparison.json names it."""

    def apply(desk: Desk) -> None:
        with desk.edit("comparison.json") as value:
            body = json.loads(desk.bench.read(desk.path("bodies/" + value["requests"][kind]["sha256"])))
            body.update(values)
            body = {key: one for key, one in body.items() if one is not ...}
            text = json.dumps(body).encode()
            value["requests"][kind] = {"sha256": desk.bench.body(desk.folder, text), "bytes": len(text)}

    return apply


@pytest.mark.parametrize(
    ("change", "lines"),
    [
        (asked("native", stream=True), ["requests/native: found a stream, expected a plain JSON answer"]),
        (asked("main", stream=False), ["protocol/stream: found true, expected what the main body asks: false"]),
        (asked("main", temperature=...), []),
        (asked("main", temperature=None), []),
        (asked("main", temperature=0.0), []),
        (asked("main", temperature=0.5), ["protocol/temperature: found 0, expected what the main body asks: 0.5"]),
        (asked("main", max_tokens=...), []),
        (asked("main", max_tokens=None), []),
        (asked("main", max_tokens=31), ["protocol/outputBudget: found 32, expected what the main body asks: [31]"]),
        (asked("main", max_tokens=31, max_completion_tokens=32), []),
        (asked("main", max_tokens=..., max_completion_tokens=33), ["protocol/outputBudget: found 32, expected what the main body asks: [33]"]),
    ],
)  # fmt: skip
def test_the_main_body_says_what_the_protocol_says(change: Callable[[Desk], None], lines: list[str]) -> None:
    assert said("protocol-body", change) == ["comparison.json#/" + line for line in lines]


def timeline(arm: int, **values: Any) -> Callable[[Desk], None]:
    return data(lambda value: value["arms"][arm]["timeline"].update(values))


def test_the_moments_of_an_arm_may_be_equal_but_not_before_one_another() -> None:
    equal = timeline(1, engineStartedSeconds=Decimal("1.5"), readySeconds=Decimal("1.5"))
    assert said("timeline-order", equal) == []
    before = timeline(1, engineStartedSeconds=Decimal("1.500000001"), readySeconds=Decimal("1.5"))
    assert said("timeline-order", before) == [
        "comparison.json#/arms/1/timeline/readySeconds: found 1.5 s, expected not before 1.500000001 s"
    ]
    assert said("timeline-order", timeline(0, engineStartedSeconds=0, readySeconds=0)) == []


def test_a_moment_or_an_arm_without_times_hides_none_that_come_after() -> None:
    late = {**dict.fromkeys(TIMES), "engineStartedSeconds": 2, "nativeWarmEndedSeconds": 1}
    arms = [{"timeline": None, "wallSeconds": None}, {"timeline": late, "wallSeconds": None}]
    subject = SimpleNamespace(path=lambda name: name, data={"arms": arms})
    assert [(place.rpartition("#")[2], *more) for place, *more in hold_timeline(subject)] == [
        ("/arms/1/timeline/nativeWarmEndedSeconds", "1 s", "not before 2 s")
    ]


@pytest.mark.parametrize("manifest", [b"{", b"[]", b"{}", b'{"engines": [{}]}', b""])
def test_a_manifest_that_cannot_be_read_names_no_engine(manifest: bytes) -> None:
    assert engine_of(View(Memory({"manifest.json": manifest})), "llama-cpp") is None
    assert engine_of(View(Memory({})), "llama-cpp") is None


def test_a_bench_takes_sums_of_any_kind() -> None:
    for sums in ({"a": sha256(b"1")}, Sums({"a": sha256(b"1")})):
        bench = Bench(Memory({"a": b"1", "SHA256SUMS": b""}), sums)
        bench.put("a", b"2")
        bench.reseal()
        assert bench.changes["SHA256SUMS"] == f"{sha256(b'2')}  a\n".encode()


@pytest.mark.parametrize(
    ("more", "count"), [("0.000001", 0), ("0.000001001", 1), ("-0.000001", 0), ("-0.000001001", 1)]
)
def test_the_wall_time_is_the_last_main_response_to_a_microsecond(more: str, count: int) -> None:
    def change(value: Row) -> None:
        arm = value["arms"][2]
        arm["wallSeconds"] = arm["timeline"]["lastMainSeconds"] + Decimal(more)

    lines = said("timeline-order", data(change))
    assert [line.split(":")[0] for line in lines] == ["comparison.json#/arms/2/wallSeconds"] * count


@pytest.mark.parametrize(
    ("name", "more", "count"),
    [
        ("firstMainSeconds", "0.000001", 0),
        ("firstMainSeconds", "0.000001001", 1),
        ("firstMainSeconds", "-0.000001001", 1),
        ("lastMainSeconds", "-0.000001", 0),
        ("lastMainSeconds", "-0.000001001", 1),
        ("rrWarmEndedSeconds", "-0.000001", 0),
        ("rrWarmEndedSeconds", "-0.000001001", 1),
        ("rrWarmEndedSeconds", "0.5", 0),
        ("nativeWarmEndedSeconds", "-0.000001001", 1),
        ("readySeconds", "-1", 0),
    ],
)
def test_samples_lie_in_their_phase_to_a_microsecond(name: str, more: str, count: int) -> None:
    def change(value: Row) -> None:
        value["arms"][3]["timeline"][name] += Decimal(more)

    lines = said("timeline-samples", data(change))
    assert [line.split(":")[0] for line in lines] == [f"comparison.json#/arms/3/timeline/{name}"] * count


@pytest.mark.parametrize(("key", "count"), [("readySeconds", "native-warm"), ("snapshotSeconds", "rr-warm")])
def test_no_phase_begins_before_it_was_opened(key: str, count: str) -> None:
    def opened(more: str) -> Callable[[Desk], None]:
        def apply(desk: Desk) -> None:
            rows = desk.load("samples.json")["samples"]
            first = min(row["startedSeconds"] for row in rows if row["offer"].startswith(f"r2-b-{count}"))
            with desk.edit("comparison.json") as value:
                value["arms"][2]["timeline"][key] = first + Decimal(more)

        return apply

    assert said("timeline-samples", opened("0.000001")) == []
    (line,) = said("timeline-samples", opened("0.000001001"))
    assert f": found {count} samples from " in line


def snapshot(place: int, change: Callable[[Row], object]) -> Callable[[Desk], None]:
    return data(lambda value: change(value["snapshots"][place]), "snapshots.json")


@pytest.mark.parametrize(("more", "count"), [("0.01", 0), ("0.010001", 0), ("0.010001001", 1), ("-0.01", 0), ("-0.010001", 0), ("-0.010001001", 1)])  # fmt: skip
def test_a_snapshot_is_taken_between_the_warm_ups_to_a_microsecond(more: str, count: int) -> None:
    def change(one: Row) -> None:
        one["takenSeconds"] += Decimal(more)

    lines = said("snapshot-moment", snapshot(1, change))
    assert [line.split(":")[0] for line in lines] == ["snapshots.json#/snapshots/1/takenSeconds"] * count


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({"usedBytes": None}, "/reason: found null, expected a reason, since usedBytes is null"),
        ({"usedBytes": None, "reason": "no permission"}, None),
        ({"usedBytes": 0}, "/usedBytes: found 0, expected a figure that was read, or null with a reason"),
        ({"usedBytes": 1, "totalBytes": None}, None),
        ({"usedBytes": 7, "totalBytes": 7}, None),
        ({"usedBytes": 8, "totalBytes": 7}, "/usedBytes: found 8 of 7, expected at most the total"),
    ],
)
def test_a_figure_was_read_or_is_null_with_its_reason(values: Row, line: str | None) -> None:
    lines = said("snapshot-memory", snapshot(2, lambda one: one["devices"][1].update(values)))
    assert lines == ([] if line is None else [f"snapshots.json#/snapshots/2/devices/1{line}"])


def test_what_follows_a_semicolon_in_the_method_is_of_its_own_snapshot() -> None:
    def method(place: int, text: str) -> Callable[[Desk], None]:
        return snapshot(place, lambda one: one.update(method=text))

    first = "what the synthetic engine says that it holds"
    assert said("snapshot-devices", method(4, first + ";;x; y")) == []
    assert said("snapshot-devices", method(4, "x; " + first)) == [
        f"snapshots.json#/snapshots/4/source: found synthetic, x, expected the source of the first: synthetic, {first}"
    ]


def source(place: int, name: str) -> Callable[[Desk], None]:
    return snapshot(place, lambda one: one.update(source=name))


def genuine(desk: Desk) -> None:
    """An engine that computes a model, and a comparison of it."""
    with desk.bench.edit("manifest.json") as manifest:
        manifest["engines"].append({**manifest["engines"][0], "id": "real", "adapter": "vllm", "synthetic": False})
    with desk.edit("comparison.json") as value:
        value.update(engine="real", synthetic=False)


def test_a_synthetic_comparison_reads_no_gpu_and_no_other_a_synthetic_snapshot() -> None:
    at = "snapshots.json#/snapshots/"
    assert said("synthetic-mark", source(3, "nvml")) == [
        f"{at}3/source: found nvml, expected no GPU: the engine is synthetic"
    ]
    assert said("synthetic-mark", source(3, "process-rss")) == []
    every = [source(place, "nvml") for place in range(6)]
    assert said("synthetic-mark", genuine, *every) == []
    assert said("synthetic-mark", genuine, *every, source(5, "synthetic")) == [
        f"{at}5/source: found synthetic, expected synthetic only with synthetic"
    ]
    unmarked = data(lambda value: value.update(synthetic=True))
    assert said("synthetic-mark", genuine, *[source(place, "synthetic") for place in range(6)], unmarked) == [
        "comparison.json#/synthetic: found true, expected false"
    ]
    assert said("synthetic-mark", data(lambda value: value.update(engine="nobody"))) == [
        "comparison.json#/engine: found nobody, expected an engine of the manifest"
    ]


def test_an_engine_is_synthetic_by_its_mark_and_by_its_adapter() -> None:
    def mark(**values: Any) -> Callable[[Desk], None]:
        def apply(desk: Desk) -> None:
            with desk.bench.edit("manifest.json") as manifest:
                manifest["engines"][0].update(values)

        return apply

    for values in ({"synthetic": False}, {"adapter": "vllm"}, {"adapter": "a"}):
        assert len(said("synthetic-mark", mark(**values))) == 1, values


def log(at: str, worker: str = "worker-1") -> Callable[[Desk], None]:
    def change(value: Row) -> None:
        arm = value["arms"][1]
        end = {"before": Decimal("-0.000001001"), "at": Decimal("-0.000001")}[at]
        moment = arm["timeline"]["rrWarmEndedSeconds"] + end
        arm["logFindings"] = [{"worker": worker, "pattern": "error", "line": "an error", "atSeconds": moment}]

    return data(change)


def test_a_log_finding_lies_in_the_main_window_and_names_a_worker() -> None:
    place = "comparison.json#/arms/1/logFindings/0"
    assert said("log-window", log("at")) == []
    (line,) = said("log-window", log("before"))
    assert line.startswith(f"{place}: found ")
    assert line.endswith(" s, expected inside the main window")
    assert said("log-window", log("before", "worker-9")) == [
        f"{place}: found worker-9, expected a worker of the comparison"
    ]


def calendar(*changes: tuple[int, str, Any]) -> Callable[[Desk], None]:
    def change(value: Row) -> None:
        for arm, key, told_ in changes:
            if key == "stepped":
                value["arms"][arm]["client"]["wallClockStepped"] = told_
            else:
                value["arms"][arm][key] = told_

    return data(change)


def test_arms_do_not_overlap_but_for_a_second() -> None:
    # Arm 0 begins at 01:00:00, arm 1 a minute later.
    at = "comparison.json#/arms/1/startedAt: found 2026-11-30T01:01:00.000000Z, "
    right = "expected not before the arm before had ended"
    assert said("arm-calendar", calendar((0, "wallSeconds", 61))) == []
    assert said("arm-calendar", calendar((0, "wallSeconds", Decimal("61.01")))) == [at + right]
    assert said("arm-calendar", calendar((0, "wallSeconds", Decimal("61.01")), (1, "stepped", True))) == []
    assert said("arm-calendar", calendar((0, "wallSeconds", Decimal("61.01")), (0, "stepped", True))) == [at + right]
    no_day = calendar((1, "startedAt", "2026-02-30T01:01:00.000000Z"), (2, "wallSeconds", 300))
    lines = said("arm-calendar", no_day)
    assert [line.split(", expected ")[1] for line in lines] == [
        "a day of the calendar",
        "not before the arm before had ended",
    ]


def test_an_arm_begins_after_the_one_before() -> None:
    same = calendar((1, "startedAt", "2026-11-30T01:00:00.000000Z"))
    assert said("arm-order", same) == [
        "comparison.json#/arms/1/startedAt: found 2026-11-30T01:00:00.000000Z, "
        "expected later than 2026-11-30T01:00:00.000000Z"
    ]
    assert said("arm-order", calendar((1, "startedAt", "2026-11-30T01:00:00.000001Z"))) == []


# Client, models, dates


def client(**values: Any) -> Callable[[Desk], None]:
    return data(lambda value: value["arms"][2]["client"].update(values))


@pytest.mark.parametrize(
    ("values", "late"),
    [
        ({"loopLagP99Seconds": Decimal("0.05"), "loopLagMaxSeconds": 1}, False),
        ({"loopLagP99Seconds": Decimal("0.050000001"), "loopLagMaxSeconds": 1}, True),
        ({"loopLagMaxSeconds": 1}, False),
        ({"sendLagMaxSeconds": Decimal("0.05")}, False),
        ({"sendLagMaxSeconds": Decimal("0.050000001")}, True),
    ],
)
def test_late_is_over_the_limit_by_loop_lag_at_p99_or_by_the_greatest_send_lag(values: Row, late: bool) -> None:
    lines = said("client-late", client(**values))
    assert len(lines) == late
    assert len(said("client-late", client(late=True, **values))) == (not late)


@pytest.mark.parametrize("name", ["loopLag", "sendLag"])
def test_a_percentile_is_at_most_the_greatest(name: str) -> None:
    same = {name + "P99Seconds": Decimal("0.003"), name + "MaxSeconds": Decimal("0.003")}
    assert said("client-late", client(**same)) == []
    (line,) = said("client-late", client(**{**same, name + "P99Seconds": Decimal("0.003000001")}))
    place = f"comparison.json#/arms/2/client/{name}P99Seconds"
    assert line == f"{place}: found 0.003000001, expected at most the greatest"


def test_the_lag_of_the_client_is_the_greatest_of_its_main_samples() -> None:
    place = "comparison.json#/arms/2/client/"
    right = "expected 0.000021 s, the greatest of its main samples"
    for name in ("sendLagMaxSeconds", "sendLagP99Seconds"):
        for value in ("0.000020", "0.000022"):
            assert said("client-lag", client(**{name: Decimal(value)})) == [f"{place}{name}: found {value} s, {right}"]
    assert said("client-lag", sampled("r2-b-rr-warm-001", sendLagSeconds=Decimal("0.01"))) == []
    assert len(said("client-lag", sampled("r2-b-main-001", sendLagSeconds=Decimal("0.01")))) == 2
    assert said("client-lag", sampled("r2-b-main-001", sendLagSeconds=Decimal("0.00001"))) == []


DAY = {"timeZone": "UTC", "comparisonDate": "2026-11-30"}


def dated(*hashes: str, tokens: tuple[int, ...] = ()) -> Callable[[Desk], None]:
    """A date control with these hashes in the order of arms and workers."""

    def change(value: Row) -> None:
        places = [(arm, worker) for arm in value["arms"] for worker in ("worker-1", "worker-2")]
        value["dateControl"] = {
            **DAY,
            "nativeTokenIds": [
                {
                    "repetition": arm["repetition"], "arm": arm["arm"], "worker": worker,
                    "tokenIdsSha256": digest * 64, "tokens": tokens[number] if tokens else 5,
                }
                for number, ((arm, worker), digest) in enumerate(zip(places, hashes, strict=False))
            ],
        }  # fmt: skip

    return data(change)


ALIKE = ("d",) * 12
DIFFERS = 'decision.json#/disqualifications: found [], expected ["DATE_INPUT_DIFFERS"]'


@pytest.mark.parametrize(
    ("hashes", "lines"),
    [(ALIKE, []), ((*ALIKE[:11], "e"), [DIFFERS]), (ALIKE[:11], [DIFFERS]), ((), [DIFFERS])],
)
def test_a_date_control_has_one_hash_from_every_worker_in_every_arm(hashes: tuple[str, ...], lines: list[str]) -> None:
    assert said("decision-disqualified", dated(*hashes)) == lines
    count = len(hashes)
    assert said("date-control", dated(*hashes)) == (
        [] if count == 12 else [
            f"comparison.json#/dateControl/nativeTokenIds: found {count} readings, "
            "expected one of every worker in every arm: 12"
        ]
    )  # fmt: skip


def test_a_date_sensitive_profile_needs_a_date_control() -> None:
    def sensitive(desk: Desk) -> None:
        with desk.bench.edit("models/tiny.json") as model:
            model["profile"]["dateSensitive"] = True

    assert said("decision-disqualified", sensitive) == [DIFFERS]
    assert said("decision-disqualified", sensitive, dated(*ALIKE)) == []


def test_readings_of_one_hash_tell_one_number_of_tokens() -> None:
    counts = (5, 6, 5, 6, *([5] * 8))
    hashes = ("d", "e", "d", "e", *(["d"] * 8))
    assert said("date-tokens", dated(*hashes, tokens=counts)) == []
    assert said("date-tokens", dated(*hashes, tokens=(*counts[:3], 7, *counts[4:]))) == [
        "comparison.json#/dateControl/nativeTokenIds/3: found 7 tokens, expected 6, as of the same ids before"
    ]


def test_one_model_is_asked_for_and_one_answers() -> None:
    assert said("model-one", asked("main", model="other")) == [
        "comparison.json#/requests/native: found the model tiny, expected that of the main body: other"
    ]
    assert said("model-one", asked("main", model=...)) == []
    assert said("model-one", asked("main", model=7)) == []
    other = stream({"content": "a"}).replace(b'{"choices"', b'{"model": "other", "choices"')
    (line,) = said("model-one", answered("r1-b-main-001", other))
    assert line.startswith("samples.json#r1-b-main-001: found an answer of other, expected tiny, as in r1-a-")
    # An answer that is not whole names nothing.
    broken = other.replace(b'"stop"', b'"halt"')
    assert said("model-one", answered("r1-b-main-001", broken)) == []


def named(name: str, finish: str = "stop") -> bytes:
    return stream({"content": name}, finish=finish).replace(b'{"choices"', b'{"id": "same", "choices"')


def test_no_two_samples_have_an_answer_of_one_id() -> None:
    one, two = answered("r1-b-main-001", named("one")), answered("r3-a-main-002", named("two"))
    assert said("answer-own", one, two) == [
        "samples.json#r3-a-main-002: found the answer id same of r1-b-main-001, expected an answer of its own"
    ]
    assert len(said("answer-own", one, answered("r3-a-rr-warm-002", named("two")))) == 1
    assert said("answer-own", one, answered("r3-a-main-002", named("two", "halt"))) == []
    assert len(said("answer-own", one, answered("r3-a-main-002", named("two", "length")))) == 1


def described_by_a_command(desk: Desk) -> None:
    with desk.bench.edit("manifest.json") as manifest:
        manifest["engines"][0]["adapter"] = "command"


def test_of_an_engine_described_by_a_command_alone_ids_and_content_types_are_its_own_affair() -> None:
    one, two = answered("r1-b-main-001", named("one")), answered("r3-a-main-002", named("two"))
    assert said("answer-own", described_by_a_command, one, two) == []
    page = received("r1-a-main-001", responseHeaders={"content-type": "text/html"})
    (line,) = said("receipt-fits", page)
    assert line == "ledgers/r1-a.worker-1.json#10: found content-type text/html, expected text/event-stream"
    assert said("receipt-fits", described_by_a_command, page) == []


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({"responseHeaders": {}}, None),
        ({"responseHeaders": {"content-type": "Text/Event-Stream ; charset=utf-8; x"}}, None),
        ({"responseHeaders": {"content-type": "application/json"}}, "content-type application/json, expected text/event-stream"),
        ({"path": "/v1/chat/completions?a=1?b=2"}, None),
        ({"path": "/v1/completions"}, "path /v1/completions, expected /v1/chat/completions"),
        ({"status": 201}, "status 201, expected 200, as the client got it"),
        ({"status": 201, "complete": False, "reason": "timeout"}, None),
        ({"requestId": "r1-a-main-999"}, None),
    ],
)  # fmt: skip
def test_path_status_and_type_of_a_receipt_fit_its_exchange(values: Row, line: str | None) -> None:
    lines = said("receipt-fits", received("r1-a-main-001", **values))
    assert lines == ([] if line is None else [f"ledgers/r1-a.worker-1.json#10: found {line}"])


def test_a_receipt_whose_request_is_not_stored_is_passed_over_and_the_next_is_looked_at() -> None:
    gone = received("r1-a-native-warm-001", requestSha256="e" * 64)
    assert said("receipt-fits", gone) == []
    assert said("receipt-fits", gone, received("r1-a-main-001", path="/v1/completions")) == [
        "ledgers/r1-a.worker-1.json#10: found path /v1/completions, expected /v1/chat/completions"
    ]
    # Nor does an answer that is not read, or names no type, keep the next receipt from being looked at.
    untyped = received("r1-a-native-warm-001", responseHeaders={})
    assert (
        len(said("receipt-fits", untyped, received("r1-a-main-001", responseHeaders={"content-type": "text/html"})))
        == 1
    )


def test_a_receipt_without_an_id_is_held_against_the_one_sample_with_its_hashes() -> None:
    other = {"requestId": None, "requestHeaders": {}, "path": "/v1/completions"}
    (line,) = said("receipt-fits", received("r1-a-main-001", **other))
    assert line == "ledgers/r1-a.worker-1.json#10: found path /v1/completions, expected /v1/chat/completions"

    def twin(desk: Desk) -> None:
        with desk.samples() as rows:
            first, second = (next(row for row in rows if row["offer"] == f"r1-a-main-00{n}") for n in (1, 3))
            second.update({key: first[key] for key in ("responseSha256", "responseBytes")})

    assert said("receipt-fits", twin, received("r1-a-main-001", **other)) == []


def moved(offer: str, start: str, end: str) -> Callable[[Desk], None]:
    def apply(desk: Desk) -> None:
        with desk.receipt(offer) as row:
            row["startedSeconds"] += Decimal(start)
            row["endedSeconds"] += Decimal(end)

    return apply


@pytest.mark.parametrize(("later", "count"), [("0.2", 0), ("0.3", 1)])
def test_a_recorder_may_tell_an_end_a_quarter_of_a_second_late(later: str, count: int) -> None:
    lines = said("receipt-offset", moved("r1-a-main-001", "0", later))
    assert len(lines) == count
    for line in lines:
        assert line.startswith("ledgers/r1-a.worker-1.json#10: found outside its sample when receipt ")


def test_receipts_began_in_the_order_of_their_numbers() -> None:
    def order(more: str) -> Callable[[Desk], None]:
        def apply(desk: Desk) -> None:
            with desk.receipt("r1-a-rr-warm-001") as row:
                first = row["startedSeconds"]
            with desk.receipt("r1-a-rr-warm-003") as row:
                row["startedSeconds"] = first + Decimal(more)

        return apply

    began = "not before the one before it, at "
    assert not any(began in line for line in said("receipt-offset", order("-0.25")))
    assert any(began in line for line in said("receipt-offset", order("-0.250000001")))


# What the decision says, and the index


def test_a_pair_has_its_own_repetition() -> None:
    def change(value: Row) -> None:
        value["pairs"][1]["repetition"] = 3
        value["pairs"][1]["baseline"]["completionTokens"] = 1

    assert said("decision-pairs", data(change, "decision.json")) == [
        "decision.json#/pairs/1/repetition: found 3, expected 2"
    ]


def test_a_figure_that_is_not_known_holds_no_gate_and_is_told_as_null() -> None:
    unread = snapshot(0, lambda one: one["devices"][0].update(usedBytes=None, reason="no permission"))
    lines = said("decision-gates", unread)
    assert lines == [
        "decision.json#/gates/1/holds: found true, expected null",
        "decision.json#/gates/1/rows/0/baseline: found 4294971392, expected null",
        "decision.json#/gates/1/rows/0/relative: found 524288/1048577, expected null",
        "decision.json#/gates/1/rows/0/holds: found true, expected null",
    ]
    assert said("decision-failed", unread) == ['decision.json#/failedGates: found [], expected ["memory-reduction"]']
    assert said("decision-disqualified", unread) == [
        'decision.json#/disqualifications: found [], expected ["MEMORY_UNKNOWN"]'
    ]
    assert said("decision-outcome", unread) == ["decision.json#/decision: found candidate, expected baseline"]
    assert said("decision-requalification", unread) == [
        "decision.json#/requalification: found required, expected not-required: the baseline stays"
    ]


def test_a_run_is_packaged_once() -> None:
    def same_run(bench: Bench) -> None:
        run = bench.load(AT + "comparison.json")["run"]
        with bench.edit("results/settings/seqs-four/comparison.json") as value:
            value["run"] = run

    (line,) = told(RESULTS, "index-distinct", same_run)
    assert "results/settings/seqs-four/comparison.json#/run: found memory-half-" in line
    assert line.endswith("expected a run of its own, not that of results/settings/memory-half")


def test_the_name_of_a_body_is_its_hash_and_anything_else_is_a_stray_file() -> None:
    def file(name: str) -> Callable[[Desk], None]:
        return lambda desk: desk.bench.put(desk.path(name), b"x")

    stray = "found a file that no comparison has, expected documents, ledgers of its arms and bodies"
    for name in (
        "bodies/" + "A" * 64, "bodies/" + "a" * 63, "bodies/" + "a" * 65, "bodies/" + "g" * 64, "bodie/" + "a" * 65,
        "offers.json", "ledgers/r4-a.worker-1.json", "ledgers/attempt.worker-1.json", "ledgers/r1-a.worker-3.json", "x/samples.json",
    ):  # fmt: skip
        if name.startswith("ledgers/") and "r4" not in name:
            continue  # a ledger of the grammar is a document and is read as one
        assert said("comparison-files", file(name)) == [f"{name}: {stray}"], name
    assert said("comparison-files", file("bodies/" + sha256(b"x"))) == []


@pytest.mark.parametrize(
    "ledger", [f"r{place // 2 + 1}-{arm}.worker-{n}" for place, arm in enumerate("abbaab") for n in (1, 2)]
)
def test_every_arm_has_a_ledger_of_every_worker(ledger: str) -> None:
    on = ground(RESULTS)
    bench = Bench(on.source, on.sums)
    bench.remove(f"{AT}ledgers/{ledger}.json")
    bench.reseal()
    overlay = bench.overlay()
    report = judge(overlay, on.families, on.clean, overlay.changed, overlay.moved, recall=on.recall)
    assert [str(one) for one in report.findings if one.code == "file-missing"] == [
        f"file-missing {AT}ledgers/{ledger}.json: found not there, expected a file"
    ]
