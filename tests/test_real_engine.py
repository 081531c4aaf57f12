"""The whole job on a real engine: llama.cpp with SmolLM2, two workers, sequence cap 2 -> 4, all 252 samples.

What the gates say is the machine's affair and not asserted; that everything is counted, recorded and verifiable is.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tarfile
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from evidence.cli import main
from tests.capture.fast_campaign import assert_nothing_lost, events, receipts
from tests.capture.real_engines import LLAMA_MODEL, LLAMA_PYTHON, ROOT, needs_llama

pytestmark = [needs_llama, pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(900)]

CAMPAIGN = "campaigns/llama-cpu"
ARMS = ["r1-a", "r1-b", "r2-b", "r2-a", "r3-a", "r3-b"]


def evidence(*words: str | Path) -> str:
    done = CliRunner().invoke(main, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def sceptic(package: Path, *words: str, elsewhere: Path) -> str:
    """The shipped verifier, from another folder, with nothing but the standard library."""
    command = [sys.executable, "-I", "-S", str(package / "verify-results.py"), *words]
    done = subprocess.run(command, cwd=elsewhere, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


def contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_sequence_cap_comparison_from_capture_to_the_shipped_verifier(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVIDENCE_LLAMA_PYTHON", str(LLAMA_PYTHON))
    monkeypatch.setenv("EVIDENCE_LLAMA_MODEL", str(LLAMA_MODEL))
    monkeypatch.chdir(ROOT)
    runs = tmp_path / "runs"
    evidence("capture", f"{CAMPAIGN}/campaign.toml", "--all", "--runs", runs, "--quiet")
    (run,) = runs.glob("llama-sequence-cap-*")
    expect_252_samples_with_a_receipt_each(run)
    expect_the_cap_in_every_launch_and_the_memory_of_processes(run)
    expect_the_archive_verified_by_the_scripts_that_it_ships(runs, tmp_path)


def expect_252_samples_with_a_receipt_each(run: Path) -> None:
    samples = events(run, "sample")
    assert Counter(one["phase"] for one in samples) == {"native-warm": 12, "rr-warm": 96, "main": 144}
    assert {(one["status"], one["transport"]) for one in samples} == {(200, "complete")}
    assert all(one["completionTokens"] > 0 for one in samples)
    assert_nothing_lost(run)
    for arm in ARMS:
        assert {worker: len(rows) for worker, rows in receipts(run, arm).items()} == {"worker-1": 21, "worker-2": 21}


def expect_the_cap_in_every_launch_and_the_memory_of_processes(run: Path) -> None:
    arm, caps = "", Counter[tuple[str, str]]()
    for event in events(run, "arm-started", "engine-started"):
        arm = event.get("arm", arm)
        if event["event"] == "engine-started":
            assert event["arguments"][:3] == ["{python}", "engines/serve_llama.py", "-m"]
            assert str(ROOT) not in " ".join(event["arguments"])
            caps[arm, event["arguments"][event["arguments"].index("--parallel") + 1]] += 1
    assert caps == {("A", "2"): 6, ("B", "4"): 6}
    snapshots = events(run, "snapshot")
    assert len(snapshots) == 6
    for snapshot in snapshots:
        assert snapshot["source"] == "process-rss"
        assert "no device memory" in snapshot["method"]
        for row in snapshot["devices"]:
            assert 100 << 20 < row["usedBytes"] < 2 << 30  # the weights alone are 98 MB
            assert row["totalBytes"] is None


def expect_the_archive_verified_by_the_scripts_that_it_ships(runs: Path, tmp_path: Path) -> None:
    dist = tmp_path / "dist"
    said = json.loads(evidence("build", ROOT / CAMPAIGN, "--runs", runs, "--output", dist, "--json"))
    with tarfile.open(said["archive"]) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    package = tmp_path / "unpacked" / "llama-cpu"
    before = contents(package)
    sums = subprocess.run(["sha256sum", "--strict", "--quiet", "-c", "SHA256SUMS"], cwd=package, capture_output=True)
    assert (sums.returncode, sums.stdout) == (0, b"")
    sceptic(package, elsewhere=tmp_path)
    found = json.loads(sceptic(package, "--mutation-control", "--json", elsewhere=tmp_path))
    assert (found["verdict"], found["findings"]) == ("verified", [])
    assert found["mutations"]
    assert {one["verdict"] for one in found["mutations"]} == {"killed"}
    assert contents(package) == before

    manifest = json.loads((package / "manifest.json").read_bytes())
    assert (manifest["synthetic"], manifest["counts"]["mainSamples"], manifest["counts"]["comparisons"]) == (
        "none",
        144,
        1,
    )
    (comparison,) = (package / "results/settings").iterdir()
    snapshots = (comparison / "snapshots.json").read_text()
    assert "process-rss" in snapshots
    assert "nvml" not in snapshots.lower()
    assert "--parallel 2 -> 4" in evidence("show", said["archive"])
    evidence("validate", said["archive"], "--source-root", said["retained"], "--verify-results", "--quiet")
