"""Runs of real engines, on two GPUs and on a processor, as they were captured: today's builder and verifiers take them.

A check that is too sharp for an honest machine shows here. What they ran is in the README beside each of them.
"""

import subprocess
from pathlib import Path

import pytest

from evidence.build.package import build
from evidence.validate import validate

CAMPAIGNS = Path(__file__).parents[1] / "campaigns"
COUNTS = {
    "h200-smollm2": ("7 comparisons", "1008 main samples", "19 attempts", "350 offers", "3 experiments"),
    "llama-cpu": ("1 comparisons", "144 main samples", "1 attempts", "3 experiments"),
}


def test_all_are_known() -> None:
    assert {path.parent.name for path in CAMPAIGNS.glob("*/runs-*.tgz")} == set(COUNTS)


@pytest.mark.parametrize("name", COUNTS)
def test_real_runs_build_and_verify(name: str, tmp_path: Path) -> None:
    (archive,) = (CAMPAIGNS / name).glob("runs-*.tgz")
    runs = tmp_path / "runs"
    runs.mkdir()
    subprocess.run(["tar", "-C", runs, "-xzf", archive], check=True)
    built = build(CAMPAIGNS / name, runs, tmp_path / "dist", quiet=True)
    validation = validate(built.archive, source_root=built.retained, verify_results=True)
    assert not [finding for stage in validation.stages for finding in stage.findings]
    assert validation.exit_code == 0
    notes = ", ".join(stage.note for stage in validation.stages)
    for count in COUNTS[name]:
        assert count in notes
    assert {row["verdict"] for row in validation.mutations} <= {"killed", "inert"}
