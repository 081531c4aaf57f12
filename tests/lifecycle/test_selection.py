"""Adapters that a request selects: lies are unmasked, and an honest run bears a record that the judge derives again."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from evidence.errors import EvidenceError
from evidence.lifecycle.audit import audit
from evidence.lifecycle.bundle import ABOUT, MANIFEST, read_sources, render, summarize
from evidence.lifecycle.selected import cosine_distances, difference
from evidence.lifecycle.selection import LlamaSelector, Selection, SieSelector, read_vectors, run_selection
from evidence.lifecycle.timeline import read_record, timeline
from tests.lifecycle.doubles import carry_out
from tests.lifecycle.selectors import Llama, Sie

ROOT = Path(__file__).parents[2]
PATHS = {alias: f"/lora/{alias}" for alias in "abc"}
SEEDS = {"a": 2, "b": 3, "c": 4}
LLAMA = Selection("m", PATHS, ("a", "b", "c", "a", "c", "b"), SEEDS, 3, request_timeout_s=1)
SIE = Selection("m", PATHS, tuple("abcabccba"), SEEDS, 2, undeclared="/lora/nowhere", request_timeout_s=1)
ABOUT_RUN = {
    "software": {"engine": "double"},
    "hardware": {"reported_device_total_bytes": 1000, "device_memory_source": "process-rss-against-budget"},
    "fixtures": "Untrained.",
    "lora_alpha": 8,
    "fixture_normal_weight_scale": 0.2,
    "measured_on": "2026-11-30",
    "harness_version": "0",
}


def record(engine, lie, folder):
    """Raw events of one run against a double with this lie (none with an empty one)."""

    async def run(log):
        if engine == "llama.cpp":
            async with Llama(lie) as double:
                await run_selection(LLAMA, LlamaSelector(double.url, log, LLAMA, os.getpid()), log)
            return
        engine_log = folder / "engine.log"
        async with Sie(lie, engine_log) as double:
            await run_selection(SIE, SieSelector(double.url, log, SIE, os.getpid(), engine_log), log)

    return carry_out(run, folder)


LIES = [
    ("llama.cpp", "adapter silently answered by the base", "ADAPTER_NOT_APPLIED"),
    ("llama.cpp", "one adapter for all", "ADAPTERS_ALIKE"),
    ("llama.cpp", "base not restored", "BASE_NOT_RESTORED"),
    ("llama.cpp", "another answer when selected again", "ADAPTER_NOT_REPEATED"),
    ("llama.cpp", "undeclared adapter served", "UNDECLARED_SERVED"),
    ("llama.cpp", "list forgets an adapter", "NOT_LOADED"),
    ("llama.cpp", "no probabilities", "PROBABILITIES_MISSING"),
    ("llama.cpp", "empty answer", "ANSWER_EMPTY"),
    ("sie", "adapter silently answered by the base", "ADAPTER_NOT_APPLIED"),
    ("sie", "log forgets the eviction", "RESIDENCY_DISPUTED"),
    ("sie", "log forgets the load", "NOT_LOADED"),
    ("sie", "residency above capacity", "CAPACITY_EXCEEDED"),
    ("sie", "503 without Retry-After", "RETRY_AFTER_MISSING"),
    ("sie", "hangs", "ANSWER_MISSING"),
    ("sie", "empty answer", "ANSWER_EMPTY"),
]


@pytest.mark.parametrize("engine", ["llama.cpp", "sie"])
def test_honest_engine_has_no_fault(engine, tmp_path):
    assert audit(record(engine, "", tmp_path)) == []


@pytest.mark.parametrize(("engine", "lie", "code"), LIES, ids=[f"{engine}: {lie}" for engine, lie, _ in LIES])
def test_lie_is_unmasked(engine, lie, code, tmp_path):
    found = audit(record(engine, lie, tmp_path))
    assert code in {one for one, _ in found}, json.dumps(found, indent=1)


def test_process_that_changed_or_is_not_known_is_a_fault(tmp_path):
    events = record("llama.cpp", "", tmp_path)
    later = next(event for event in events if event.get("phase") == "turn_3" and event["event"] == "resident")
    later["pid"] += 1
    assert ("PROCESS_CHANGED", "the engine's process is not the one it was") in audit(events)
    later["started_ticks"] = None
    assert "PROCESS_UNKNOWN" in {code for code, _ in audit(events)}


def summarized(engines, folder, lie=""):
    """The record of one run of each engine."""
    runs = []
    for engine in engines:
        run = folder / engine
        record(engine, lie, run)
        kind = "generation" if engine == "llama.cpp" else "embedding"
        models = [{"model": "m", "kind": kind, "artifact": "m.bin", "artifact_sha256": "0" * 64}]
        (run / MANIFEST).write_bytes(render(read_sources()))
        (run / ABOUT).write_bytes(render({**ABOUT_RUN, "id": engine, "models": models}))
        runs.append(run)
    return summarize(runs, folder / "record")


def judge(path, *words):
    command = [sys.executable, "-I", "-B", "-S", ROOT / "verifiers/verify-lifecycle.py", path, *words]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)


def test_honest_runs_bear_a_record_that_the_judge_derives_again(tmp_path):
    path = summarized(["llama.cpp", "sie"], tmp_path)
    jsonschema.validate(
        json.loads(path.read_text()), json.loads((ROOT / "schemas/lifecycle-record.schema.json").read_text())
    )
    ran = judge(path, "--evidence", path.parent / "evidence", "--mutation-control")
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr
    for place in ("effect_vs_warm_base/b", "cosine_distance_vs_warm_base/c", "undeclared_adapter/statuses/2"):
        assert f"checked    /experiments/1/measurements/{place}" in ran.stdout
    assert "killed    alter one raw event and make every hash true again (new process)" in ran.stdout


def test_lies_bear_no_record(tmp_path):
    with pytest.raises(EvidenceError) as caught:
        summarized(["llama.cpp"], tmp_path, "base not restored")
    assert "BASE_NOT_RESTORED" in caught.value.message
    assert not (tmp_path / "record").exists()


def test_eviction_of_the_wrong_adapter_is_for_the_judge(tmp_path):
    """The harness learns the server's order from the server; that it is not the least recently used one, the judge says."""
    path = summarized(["sie"], tmp_path, "the most recently used evicted")
    ran = judge(path)
    assert ran.returncode == 1
    assert "lifecycle-selection-capacity" in ran.stdout
    assert "the least recently used" in ran.stdout


def test_what_became_of_the_undeclared_adapter_is_in_the_record(tmp_path):
    path = summarized(["llama.cpp", "sie"], tmp_path)
    llama, sie = (one["measurements"]["undeclared_adapter"] for one in json.loads(path.read_text())["experiments"])
    assert llama == {
        "statuses": [200, 200, 200],
        "outcome": "answered-by-base",
        "distance_to_warm_base": 0.0,
        "evicted": [],
    }
    assert (sie["statuses"], sie["outcome"], sie["distance_to_warm_base"]) == ([503] * 3, "never-ready", None)
    assert len(sie["evicted"]) == 1
    limits = json.loads(path.read_text())["experiments"]
    assert all(any("undeclared" in text for text in one["limitations"]) for one in limits)


def test_timeline_tells_who_came_and_went(tmp_path):
    rows = timeline(read_record(summarized(["sie"], tmp_path)))
    text = "\n".join(" ".join(row) for row in rows)
    assert "turn 2 c statuses 503 200; " in text
    assert "resident b, c (c came, a went)" in text
    assert "never-ready" in text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"selection_order": ("a", "b", "c", "a", "b")}, "twice or more"),
        ({"selection_order": (*"abcabc", "z")}, "no other"),
        ({"fixture_seeds": {"a": 1}}, "a path and a seed"),
        ({"undeclared": "/lora/a"}, "another than the declared"),
        ({"undeclared_tries": 1}, "2 to 20"),
    ],
)
def test_contradicting_settings_are_refused(change, said):
    settings = {field: getattr(SIE, field) for field in SIE.__dataclass_fields__}
    with pytest.raises(EvidenceError) as caught:
        Selection(**{**settings, **change}).check()
    assert said in caught.value.message


def test_distances():
    assert difference({"x": 0.5}, {"y": 0.25}) == 0.5
    assert difference([[0.0, 1.0]], [[0.25, 1.0]]) == 0.25
    assert cosine_distances([[1.0, 0.0], [0.6, 0.8]], [[0.0, 1.0], [0.6, 0.8]]) == [1.0, 0.0]
    with pytest.raises(ValueError, match="longer"):
        difference([[0.0]], [[0.0, 1.0]])


@pytest.mark.parametrize(
    "data", [b"", b"{}", b'{"items": []}', b'{"items": [{"dense": {"values": []}}]}', b'{"items": [{"dense": null}]}']
)
def test_answers_without_vectors_have_none(data):
    assert read_vectors(data) is None
