"""Faults that people who measure LLM serving have reported, and which tests hold each of them.

The table names reports and tests; `test_every_report_is_held_by_tests_that_exist` looks them up. The tests below it
show those that only the whole chain can: what was captured becomes a decision, and the package's own verifiers agree.
"""

from __future__ import annotations

import ast
import dataclasses
import json
import tarfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.forged_runs import Shape
from evidence import validate
from evidence.capture.load import Exchange
from tests.build.forged_world import make_world

CASES: dict[str, tuple[str, ...]] = {
    "vllm#3759, vllm#15106: a role-only first chunk counted as first token": (
        "capture.test_load::test_role_chunk_is_no_first_token",
    ),
    'aisix#869: `content: ""` counted on one server, null on the other': (
        "capture.test_load::test_only_text_starts_the_clock_and_reasoning_has_its_own",
    ),
    "inference-perf#559: reasoning inflates TTFT or makes it null, and the request is dropped": (
        "capture.test_load::test_reasoning_alone_has_no_ttft_and_is_kept",
        "capture.test_attempt::test_a_bad_answer_is_a_failure_with_its_bytes[reasoning-only-REASONING_ONLY]",
    ),
    "genai-bench#44: the last usage chunk overwrote TTFT": (
        "capture.test_load::test_usage_chunk_does_not_move_the_first_token",
    ),
    "vllm#38717: a character cut over two reads ended the request": (
        "capture.test_load::test_character_cut_over_reads_is_whole_again",
        "capture.test_sse::test_every_cut_gives_the_same_events_stamped_by_the_read_that_completed_them",
    ),
    "aiperf#368: several events in one read taken for one; equal times made an error": (
        "capture.test_load::test_events_of_one_read_are_separate_with_equal_times",
        "capture.test_sse::test_three_events_of_one_read_have_its_stamp_each",
    ),
    "inference-perf#781: CRLF, or `data:{` without a space, lost every event": (
        "capture.test_load::test_every_line_end_and_spacing_is_read",
        "capture.test_load::test_stream_without_an_event_is_no_success",
        "build.test_classify::test_every_line_end_reads_alike",
        "verifiers.test_reading::test_events_are_the_same_for_every_line_end",
    ),
    "vllm#54628: a clean early close counted as success": (
        "capture.test_load::test_clean_end_without_the_last_events_is_no_success",
        "capture.test_load::test_clean_close_before_the_last_chunk_is_closed_early",
        "capture.test_streams::test_every_cut_of_a_real_stream_is_no_normal_answer",
    ),
    "tokenomics#16: `event: error` in the stream counted as a short success": (
        "capture.test_load::test_error_event_is_no_success",
        "capture.test_attempt::test_a_bad_answer_is_a_failure_with_its_bytes[error-event-HTTP_ERROR]",
    ),
    "vllm#50677: chunk taken for token": (
        "capture.test_load::test_tokens_are_the_engines_count_not_chunks",
        "build.test_classify::test_tokens_are_the_engines_usage_and_not_the_chunks",
    ),
    "aiperf#688, InferenceX#357: failed requests left out of the percentile": (
        "capture.test_load::test_failed_requests_stay_in_the_batch_without_a_latency",
        "test_cases::test_a_failed_main_sample_disqualifies_and_planned_is_present[2 of 24 fail]",
        "test_cases::test_a_failed_main_sample_disqualifies_and_planned_is_present[three fast 503]",
    ),
    "llm-load-test#90: late requests filtered out, then NaN passed": (
        "capture.test_load::test_late_answers_are_recorded_as_timeouts_with_what_came",
        "capture.test_journal::test_not_a_number_is_never_written",
        "build.test_decide::test_what_is_unknown_holds_no_gate",
        "test_cases::test_a_failed_main_sample_disqualifies_and_planned_is_present[all 24 late]",
    ),
    "BenchBox#1551: three percentile rules in one program": (
        "build.test_decide::test_nearest_rank_of_one_to_a_hundred_is_95",
        "verifiers.test_arithmetic::test_p95_of_24_is_the_23rd_and_of_1_to_100_is_95",
    ),
    "aprender#2724: the self-test was green on a field that no producer writes": (
        "capture.test_streams::test_every_engine_left_every_kind",
        "capture.test_streams::test_the_client_reads_it_right",
        "build.test_real_capture::test_a_real_attempt_becomes_a_package_that_verifies",
        "test_real_engine::test_a_sequence_cap_comparison_from_capture_to_the_shipped_verifier",
    ),
    "aprender#2754: declared method server usage, tokens counted from chunks": (
        "build.test_classify::test_a_body_without_usage_has_unknown_tokens",
        "test_cases::test_tokens_that_no_engine_reported_are_rejected",
    ),
    "vllm#54839, vllm#18372, TGI#2505: unloading an adapter forgets its name only": (
        "lifecycle.test_liars::test_lie_is_unmasked",
    ),
    "sglang-omni#1685: NVML shows host process ids: 0 bytes": (
        "capture.test_gpu::test_process_ids_of_another_namespace_are_unknown_not_zero",
        "capture.test_pulse::test_an_end_during_the_snapshot_leaves_a_snapshot_that_says_unknown",
    ),
    "sglang#6177: wall clock moved during the run": (
        "capture.test_load::test_wall_clock_step_falsifies_no_duration",
    ),
    "llm-d-benchmark#261: a starved client shows as server latency": (
        "capture.test_lateness::test_starved_client_says_so",
    ),
    "vllm#34929: a failed request leaves TTFT 0.0 in the arrays": (
        "build.test_decide::test_zero_is_no_latency",
        "build.test_decide::test_a_missing_value_leaves_no_percentile",
    ),
    "mlcommons/inference 1461, 1670: errors logged, summary says OK": (
        "capture.test_session::test_a_log_line_of_late_work_is_found_in_the_main_window",
        "build.test_converged::test_the_runners_word_does_not_make_a_bad_answer_good",
        "capture.test_pulse::test_an_end_in_a_batch_is_found_when_all_its_requests_fail_before_the_news",
    ),
}  # fmt: skip


def read_tests(module: str) -> tuple[set[str], set[str]]:
    """The names of the functions in a test module, and the strings in it, those of a tuple joined as pytest joins them."""
    path = Path(__file__).parent / f"{module.replace('.', '/')}.py"
    nodes = list(ast.walk(ast.parse(path.read_bytes())))
    words = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    for node in nodes:
        if isinstance(node, ast.Tuple):
            words.add("-".join(str(one.value) for one in node.elts if isinstance(one, ast.Constant)))
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef)}, words


@pytest.mark.parametrize("report", CASES)
def test_every_report_is_held_by_tests_that_exist(report: str) -> None:
    for node in CASES[report]:
        module, _, name = node.partition("::")
        function, _, wanted = name.rstrip("]").partition("[")
        functions, words = read_tests(module)
        assert function.startswith("test_")
        assert function in functions, node
        assert not wanted or wanted in words, node


def fail(exchange: Exchange, status: int) -> Exchange:
    body = b'{"error": {"message": "no place", "code": %d}}' % status
    return dataclasses.replace(
        exchange, status=status, response_body=body, ttft_ns=None, event_ns=(), completion_tokens=None,
        prompt_tokens=None, finish_reason=None, total_ns=2_000_000,
    )  # fmt: skip


def late(exchange: Exchange) -> Exchange:
    return dataclasses.replace(
        exchange, transport="timeout", error="no end within the limit", response_body=b"", status=None, ttft_ns=None,
        event_ns=(), completion_tokens=None, prompt_tokens=None, finish_reason=None,
    )  # fmt: skip


def alter_some(chosen: Callable[[str], bool], change: Callable[[Exchange], Exchange]) -> Callable[[Exchange], Exchange]:
    return lambda exchange: change(exchange) if chosen(exchange.offer) else exchange


FAILURES = {
    "2 of 24 fail": (("r2-b-main-005", "r2-b-main-017"), lambda exchange: fail(exchange, 500), "HTTP_ERROR"),
    "three fast 503": (("r1-b-main-001", "r1-b-main-002", "r1-b-main-003"), lambda one: fail(one, 503), "HTTP_ERROR"),
    "all 24 late": (tuple(f"r3-b-main-{n:03d}" for n in range(1, 25)), late, "CLIENT_TIMEOUT"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failed_main_sample_disqualifies_and_planned_is_present(tmp_path: Path, name: str) -> None:
    """The failing side would be the faster one; it is not chosen, and nothing of it is left out."""
    offers, change, classification = FAILURES[name]
    documents = packaged(tmp_path, Shape(alter=alter_some(lambda offer: offer in offers, change)))
    samples, decision = documents["samples.json"]["samples"], documents["decision.json"]
    main = [one for one in samples if one["phase"] == "main"]
    assert len(main) == 144
    assert Counter(one["classification"] for one in main) == {"NORMAL": 144 - len(offers), classification: len(offers)}
    assert {one["ttftSeconds"] for one in main if one["offer"] in offers} == {None}
    assert (decision["performanceComparisonQualified"], decision["decision"]) == (False, "baseline")
    assert {"SAMPLE_NOT_NORMAL", "TTFT_UNKNOWN"} <= {one["code"] for one in decision["disqualifications"]}
    failing = decision["pairs"][int(offers[0][1]) - 1]["candidate"]
    assert failing["p95TtftSeconds"] is None


def packaged(folder: Path, shape: Shape) -> dict[str, Any]:
    """The JSON files of the one comparison in a package that its own verifiers accept."""
    world = make_world(folder)
    world.compare(shape=shape)
    world.attempt("one-rr-1", 10)
    world.attempt("two-native-1", 12, reason="ACCESS_DENIED", outcome="BLOCKED_ACCESS", requests=0)
    built = world.build()
    found = validate.verify(built.archive)
    assert found.exit_code == 0, found.render("text")
    with tarfile.open(built.archive) as archive:
        return {
            Path(member.name).name: json.load(archive.extractfile(member))  # type: ignore[arg-type]
            for member in archive
            if "/results/settings/" in member.name and member.name.endswith(".json")
        }


def test_tokens_that_no_engine_reported_are_rejected(tmp_path: Path) -> None:
    """The journal tells 24 tokens of an answer whose body tells none."""

    def forget(exchange: Exchange) -> Exchange:
        events = exchange.response_body.split(b"\n\n")
        return dataclasses.replace(
            exchange, response_body=b"\n\n".join(event for event in events if b'"usage"' not in event)
        )

    shape = Shape(alter=alter_some(lambda offer: offer == "r1-b-main-001", forget))
    documents = packaged(tmp_path, shape)
    (sample,) = [one for one in documents["samples.json"]["samples"] if one["offer"] == "r1-b-main-001"]
    assert sample["completionTokens"] is None
    assert "TOKENS_UNKNOWN" in {one["code"] for one in documents["decision.json"]["disqualifications"]}
