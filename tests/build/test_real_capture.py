"""What a real capture leaves is what the builder reads: engine processes, proxies, gateway and client on real sockets."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evidence import validate
from evidence.build.package import build
from evidence.capture.session import capture
from evidence.report import tables

CAMPAIGN = """
schema_version = 1
[campaign]
name = "real"
title = "One real attempt"
status = "FINAL"
surfaces = ["rr"]
[[profile]]
id = "words"
repository = "example/words"
revision = "0123456789012345678901234567890123456789"
state = "accessible"
license = "Apache-2.0"
definition = "source-definitions/words.toml"
template = {source = "none"}
[[engine]]
id = "synthetic"
adapter = "synthetic"
version = "1.0"
snapshot = "synthetic"
arguments = ["--answer-tokens", "20"]
ready_timeout_seconds = 60
[[case]]
id = "words-rr"
profile = "words"
engine = "synthetic"
topology = "two-worker"
surface = "rr"
requests = 4
controls = ["models", "metrics"]
withhold = {metrics = "counters of a running engine"}
[[recipe]]
id = "words"
case = "words-rr"
modes = ["rr"]
scope = "Four short requests."
"""


def test_a_real_attempt_becomes_a_package_that_verifies(tmp_path: Path) -> None:
    campaign = tmp_path / "campaign"
    (campaign / "source-definitions").mkdir(parents=True)
    (campaign / "source-definitions/words.toml").write_text("id = 'words'\n")
    (campaign / "campaign.toml").write_text(CAMPAIGN)
    result = capture(campaign, "words-rr", tmp_path / "runs", quiet=True)
    assert (result.complete, result.outcome) == (True, "SUCCESS")
    built = build(campaign, tmp_path / "runs", tmp_path / "dist", quiet=True)
    found = validate.validate(built.archive, source_root=built.retained, verify_results=False, quiet=True)
    assert found.exit_code == 0, found.render("text")
    view = tables.read_package(built.archive)
    [attempt] = view.attempts
    assert attempt["attemptFile"]["counts"] == {"NORMAL": 4}
    manifest = view.one("manifest.json")
    assert manifest["engines"][0]["source"] == "reported"
    assert view.one("recipes.json")["recipes"][0]["requalification"]["attempt"] == result.run.name


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_an_attempt_that_was_stopped_becomes_a_package_that_verifies(tmp_path: Path, number: signal.Signals) -> None:
    """Stopped when its requests are under way: it was not attempted, says why, and no control finds the verifier blind."""
    campaign = tmp_path / "campaign"
    (campaign / "source-definitions").mkdir(parents=True)
    (campaign / "source-definitions/words.toml").write_text("id = 'words'\n")
    slow = CAMPAIGN.replace('"--answer-tokens", "20"', '"--prefill-ms", "1500"')
    (campaign / "campaign.toml").write_text(slow)
    words = ["capture", str(campaign), "--case", "words-rr", "--runs", str(tmp_path / "runs")]
    with subprocess.Popen(
        [sys.executable, "-m", "evidence", *words], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    ) as runner:  # fmt: skip
        until = time.monotonic() + 60
        while not any(b'"offer"' in path.read_bytes() for path in tmp_path.glob("runs/[!.]*/journal.jsonl")):
            assert runner.poll() is None
            assert time.monotonic() < until
            time.sleep(0.02)
        runner.send_signal(number)
        assert runner.stderr is not None
        said = runner.stderr.read().decode()
    asked = number != signal.SIGKILL
    assert runner.returncode == (130 if asked else -signal.SIGKILL)
    assert said.startswith(f"error: words-rr: stopped by {number.name}\nhint: " if asked else "")
    built = build(campaign, tmp_path / "runs", tmp_path / "dist", preparation=True, quiet=True)
    [row] = json.loads(next(built.retained.glob("runtime-matrix.json")).read_text())["rows"]
    assert (row["outcome"], row["reason"]) == ("NOT_ATTEMPTED", "NOT_ATTEMPTED")
    found = validate.verify(built.archive, mutation_control="all", quiet=True)
    assert found.exit_code == 0, found.render("text")
