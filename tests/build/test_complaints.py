"""What a person reads when a build cannot be done: which file, why, and what to do."""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from forged_world import World

from evidence.build.package import Built

ROOT = Path(__file__).resolve().parents[2]
Packed = tuple[World, Built]


def complain(runs: Path, output: Path, world: World, limit: Callable[[], None] | None = None) -> tuple[int, list[str]]:
    command = [sys.executable, "-m", "evidence", "build", world.campaign.folder, "--runs", runs, "--output", output]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, preexec_fn=limit)
    assert "Traceback" not in ran.stderr
    return ran.returncode, ran.stderr.splitlines()


@pytest.mark.parametrize("room", [0, 2_000, 200_000])
def test_a_full_disk_names_the_folder_and_leaves_nothing(packed: Packed, tmp_path: Path, room: int) -> None:
    """A file may not grow past `room` here, which the system reports as it does a full disk: early, or in the archive."""
    world, _ = packed

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    code, lines = complain(world.runs, tmp_path / "dist", world, limit)
    assert code == 2
    assert lines[0].startswith("error: ")
    assert str(tmp_path / "dist") in lines[0]
    assert lines[0].endswith("cannot be written: File too large")
    assert lines[1].startswith("hint: make room there")
    assert not (tmp_path / "dist").exists()


def test_an_output_that_cannot_be_a_folder(packed: Packed, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    code, lines = complain(packed[0].runs, tmp_path / "file" / "dist", packed[0])
    assert code == 2
    assert lines[0] == f"error: {tmp_path}/file/dist: cannot be made (Not a directory), expected a folder to write to"
    assert lines[1].startswith("hint: name a folder with --output")


def test_no_folder_of_runs(packed: Packed, tmp_path: Path) -> None:
    code, lines = complain(tmp_path / "nowhere", tmp_path / "dist", packed[0])
    assert code == 2
    assert lines == [
        f"error: {tmp_path}/nowhere: cannot be read (No such file or directory), expected a folder of run folders",
        "hint: give the folder that --runs of `evidence capture` named",
    ]


@pytest.mark.parametrize(
    ("lost", "code", "said", "hint"),
    [
        (
            "journal.jsonl",
            1,
            "cannot be read (No such file or directory), expected the run's journal",
            "put the journal back",
        ),
        ("run.json", 1, "found no such file, expected what capture wrote first", "keep only run folders"),
        ("witness/r1-a/worker-1.jsonl", 1, "found no regular file, expected one", "the run folder was altered"),
    ],
)
def test_a_run_that_lacks_a_file(packed: Packed, tmp_path: Path, lost: str, code: int, said: str, hint: str) -> None:
    world, _ = packed
    runs = shutil.copytree(world.runs, tmp_path / "runs")
    run = next(path for path in sorted(runs.iterdir()) if path.name.startswith("compare-1"))
    (run / lost).unlink()
    if lost.startswith("witness"):
        (run / lost).mkdir()
    found, lines = complain(runs, tmp_path / "dist", world)
    assert found == code
    assert lines[0] == f"error: {run / lost}: {said}"
    assert lines[1].startswith(f"hint: {hint}")
