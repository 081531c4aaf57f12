"""Each outcome of a functional attempt, from real engines that really behave so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evidence.capture import synthetic_answers
from evidence.capture.journal import read_journal
from evidence.capture.session import capture
from evidence.errors import EvidenceError
from tests.campaign_folder import CAMPAIGN, write_campaign
from tests.capture.fast_campaign import FAST, assert_nothing_lost, events, receipts, stored

HEAD = (
    CAMPAIGN[: CAMPAIGN.index("[[case]]")]
    .replace('["native", "rr"]', '["{surface}"]')
    .replace("arguments = []", "arguments = {fast}\n{engine}")
)
CASE = """
[[case]]
id = "one"
profile = "tiny"
engine = "synthetic"
topology = "{topology}"
surface = "{surface}"
"""
REQUEST = {
    "model": "tiny",
    "messages": [{"role": "user", "content": "Say the exact words."}],
    "max_tokens": 8,
    "stream": True,
}


def attempt(
    folder: Path,
    surface: str = "native",
    topology: str = "single",
    *,
    case: str = "",
    engine: str = "",
    state: str = "accessible",
) -> tuple[Path, dict[str, Any]]:
    """Attempts the one case of a campaign; its run folder and its outcome."""
    head = HEAD.replace("{surface}", surface).replace("{fast}", json.dumps(FAST)).replace("{engine}", engine)
    if 'adapter = "' in engine:
        head = head.replace('adapter = "synthetic"\n', "").replace('snapshot = "synthetic"\n', "")
    path = write_campaign(
        folder / "campaign",
        head.replace('state = "accessible"', f'state = "{state}"')
        + CASE.format(topology=topology, surface=surface)
        + case,
    )
    ids = synthetic_answers.number_tokens(synthetic_answers.render_prompt(REQUEST))
    (folder / "campaign/probe.json").write_text(json.dumps({"request": REQUEST, "expectedTokenIds": ids}))
    result = capture(path, "one", folder / "runs", quiet=True)
    assert (result.complete, result.reason) == (True, None), events(result.run, "aborted")
    (outcome,) = events(result.run, "outcome")
    assert result.outcome == outcome["outcome"]
    assert_nothing_lost(result.run)
    return result.run, outcome


def test_native_requests_go_to_the_workers_in_turn(tmp_path: Path) -> None:
    run, outcome = attempt(tmp_path, topology="two-worker", case="requests = 6\n")
    assert (outcome["outcome"], outcome["reason"], outcome["message"]) == ("SUCCESS", "OK", None)
    assert {worker: len(rows) for worker, rows in receipts(run, "attempt").items()} == {"worker-1": 3, "worker-2": 3}
    assert {one["route"] for one in events(run, "offer")} == {"native"}
    assert {one["repetition"] for one in events(run, "offer")} == {None}
    assert events(run, "gateway-ready") == []


def test_round_robin_shares_equally(tmp_path: Path) -> None:
    run, outcome = attempt(tmp_path, "rr", "two-worker", case="requests = 6\n")
    assert outcome["outcome"] == "SUCCESS"
    assert {worker: len(rows) for worker, rows in receipts(run, "attempt").items()} == {"worker-1": 3, "worker-2": 3}
    assert events(run, "gateway-ready")[0]["name"] == "round-robin"


def test_round_robin_with_unequal_counts_is_no_success(tmp_path: Path) -> None:
    _, outcome = attempt(tmp_path, "rr", "two-worker", case="requests = 3\n")
    assert (outcome["outcome"], outcome["reason"]) == ("NATIVE_FAILURE", "ROUTING_UNEQUAL")


def test_capped_answers_are_kept_beside_normal_ones(tmp_path: Path) -> None:
    run, outcome = attempt(tmp_path, case='arguments = ["--fault", "capped", "--fault-from", "4"]\n')
    assert outcome["outcome"] == "SUCCESS"
    assert sorted(one["finishReason"] for one in events(run, "sample")) == ["length", "length", "stop", "stop"]


def test_only_capped_answers_are_no_success(tmp_path: Path) -> None:
    _, outcome = attempt(tmp_path, case='arguments = ["--fault", "capped"]\n')
    assert outcome["outcome"] == "NATIVE_FAILURE"
    assert "capped" in outcome["message"]


@pytest.mark.parametrize(
    ("fault", "said"),
    [("status-500", "HTTP_ERROR"), ("broken-stream", "MALFORMED"), ("close-early", "UPSTREAM_PARTIAL"), ("truncate", "UPSTREAM_PARTIAL"),
     ("reset", "UPSTREAM_PARTIAL"), ("error-event", "HTTP_ERROR"), ("empty", "EMPTY"), ("reasoning-only", "REASONING_ONLY"),
     ("tool-call", "TOOL_CALL"), ("no-done", "UPSTREAM_PARTIAL")],
)  # fmt: skip
def test_a_bad_answer_is_a_failure_with_its_bytes(tmp_path: Path, fault: str, said: str) -> None:
    arguments = f'arguments = ["--fault", "{fault}", "--fault-from", "3", "--fault-until", "3"]\n'
    run, outcome = attempt(tmp_path, case=arguments)
    assert (outcome["outcome"], outcome["reason"]) == ("NATIVE_FAILURE", "BAD_ANSWER")
    assert outcome["message"] == f"1 of 4 answers, the first {said}"
    assert len(events(run, "sample")) == 4


def test_an_answer_without_usage_is_still_an_answer(tmp_path: Path) -> None:
    run, outcome = attempt(tmp_path, case='arguments = ["--fault", "no-usage"]\n')
    assert outcome["outcome"] == "SUCCESS"
    assert {one["completionTokens"] for one in events(run, "sample")} == {None}


def test_an_engine_that_dies_in_the_middle_is_a_failure(tmp_path: Path) -> None:
    run, outcome = attempt(tmp_path, case='arguments = ["--fault", "die", "--fault-from", "3"]\n')
    assert (outcome["outcome"], outcome["reason"]) == ("NATIVE_FAILURE", "ENGINE_DIED")
    assert events(run, "engine-stopped")[0]["expected"] is False


SETUP = {
    "gated without files": ({"state": "gated"}, "BLOCKED_ACCESS", "ACCESS_DENIED"),
    "gated, folder not there": ({"state": "gated", "engine": 'model = "./nowhere"\n'}, "BLOCKED_ACCESS", "ACCESS_DENIED"),
    "no program": ({"engine": 'program = ["no-such-program"]\n'}, "MISSING_IMAGE", "PROGRAM_NOT_FOUND"),
    "no model": ({"engine": 'model = "./nowhere"\n'}, "MISSING_STORAGE", "MODEL_NOT_FOUND"),
    "model not named": ({"engine": 'adapter = "vllm"\nprogram = ["true"]\nmodel = "{env:NO_SUCH_VARIABLE}"\n'}, "MISSING_STORAGE", "MODEL_NOT_FOUND"),
    "ends at once": ({"engine": 'adapter = "command"\nprogram = ["false"]\n'}, "NATIVE_FAILURE", "ENGINE_DIED"),
    "never ready": ({"engine": "ready_timeout_seconds = 0.5\n", "case": 'arguments = ["--never-ready"]\n'}, "NATIVE_FAILURE", "NOT_READY"),
}  # fmt: skip


@pytest.mark.parametrize("name", SETUP)
def test_a_set_up_that_fails_is_an_attempt_without_traffic(tmp_path: Path, name: str) -> None:
    changes, expected, reason = SETUP[name]
    run, outcome = attempt(tmp_path, **changes)
    assert (outcome["outcome"], outcome["reason"]) == (expected, reason)
    assert outcome["message"]
    assert events(run, "offer", "sample") == []


def test_exact_admission_engages_every_worker(tmp_path: Path) -> None:
    run, outcome = attempt(tmp_path, "exact", "two-worker", case='requests = 4\nprobe = "probe.json"\n')
    assert outcome["outcome"] == "SUCCESS"
    (exact,) = events(run, "exact")
    assert (exact["engagement"], exact["tokenIdsEqual"]) == ("ADMITTED", True)
    assert exact["trafficPerWorker"] == {"worker-1": 2, "worker-2": 2}
    (control,) = [one for one in events(run, "control") if one["id"] == exact["control"]]
    assert (
        json.loads(stored(run, control["sha256"]))["tokens"] == exact["expectedTokenIds"] == exact["observedTokenIds"]
    )
    assert events(run, "gateway-ready")[0]["name"] == "exact-prefix"


def test_other_tokens_are_rejected_and_no_worker_sees_the_request(tmp_path: Path) -> None:
    case = 'requests = 2\nprobe = "probe.json"\narguments = ["--wrong-token-ids"]\n'
    run, outcome = attempt(tmp_path, "exact", "two-worker", case=case)
    assert (outcome["outcome"], outcome["reason"]) == ("EXACT_REJECTED", "TOKENS_DIFFER")
    (exact,) = events(run, "exact")
    assert (exact["engagement"], exact["tokenIdsEqual"]) == ("REJECTED", False)
    assert [one["status"] for one in events(run, "sample")] == [409, 409]
    assert receipts(run, "attempt") == {"worker-1": [], "worker-2": []}


def test_one_engaged_worker_of_two_is_partial(tmp_path: Path) -> None:
    run, outcome = attempt(tmp_path, "exact", "two-worker", case='requests = 1\nprobe = "probe.json"\n')
    assert (outcome["outcome"], outcome["reason"]) == ("EXACT_PARTIAL_ONE_PREFILL", "ONE_PREFILL")
    assert events(run, "exact")[0]["engagement"] == "PARTIAL_ONE_PREFILL"


def test_a_withheld_control_leaves_its_hash_and_no_byte(tmp_path: Path) -> None:
    case = 'controls = ["models", "health", "version", "metrics"]\nwithhold = {metrics = "not for publication"}\n'
    run, _ = attempt(tmp_path, case=case)
    controls = {one["kind"]: one for one in events(run, "control")}
    assert sorted(controls) == ["health", "metrics", "models", "version"]
    assert json.loads(stored(run, controls["models"]["sha256"]))["data"][0]["id"] == "tiny"
    withheld = controls["metrics"]
    assert (withheld["kept"], withheld["withheldReason"], withheld["status"]) == (False, "not for publication", 200)
    assert withheld["bytes"] > 0
    assert list(run.rglob(withheld["sha256"])) == []
    assert all(not row["path"].startswith("/metrics") for rows in receipts(run, "attempt").values() for row in rows)


def test_a_deferred_profile_is_not_attempted(tmp_path: Path) -> None:
    with pytest.raises(EvidenceError, match="is deferred, expected one that may run"):
        attempt(tmp_path, state="deferred")
    assert not (tmp_path / "runs").exists()


def test_an_exact_case_needs_its_probe(tmp_path: Path) -> None:
    with pytest.raises(EvidenceError, match="on surface exact without a probe"):
        attempt(tmp_path, "exact", "two-worker")


def test_the_engine_says_what_it_is(tmp_path: Path) -> None:
    run, _ = attempt(tmp_path, engine='identity = [{name = "image", value = "none"}]\n')
    (identity,) = events(run, "identity")
    assert identity["source"] == "reported"
    assert {"name": "image", "value": "none", "sha256": None} in identity["identity"]
    assert read_journal(run)[-1]["event"] == "run-ended"
