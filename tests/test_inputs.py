"""What a person may name instead of a file, and where an output may lead: one clear error each, and nothing half-written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from evidence import inputs
from evidence.cli import main
from evidence.errors import EvidenceError
from evidence.inputs import decode, read_input

ROOT = Path(__file__).parents[1]
READERS = {
    "check": ["check", "X"],
    "build": ["build", "X", "--runs", "runs", "--output", "out"],
    "capture": ["capture", "X", "--all", "--runs", "runs"],
    "lifecycle run": ["lifecycle", "run", "X", "--runs", "runs"],
    "lifecycle timeline": ["lifecycle", "timeline", "X"],
    "serve": ["serve", "X"],
    "weights check": ["weights", "check", "p", ".", "--package", "X"],
}


def evidence(*words: str, **more: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8"}
    given: dict[str, object] = {"stderr": subprocess.PIPE, "stdout": subprocess.PIPE, "env": environment} | more
    return subprocess.run([sys.executable, "-m", "evidence", *words], text=True, check=False, timeout=120, **given)  # type: ignore[call-overload,no-any-return]


@pytest.mark.parametrize("name", READERS)
def test_a_pipe_without_a_writer_and_a_file_without_an_end_are_refused_at_once(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        words = [str(path) if word == "X" else word for word in READERS[name]]
        ran = CliRunner().invoke(main, words, prog_name="evidence")
        assert ran.exit_code == 2
        assert ran.stderr.startswith(f"error: {path}: found no regular file, expected ")


def test_what_is_read_is_there_of_a_readable_size_and_in_utf_8(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"text\xff")
    assert read_input(path, "a text") == b"text\xff"
    for found, expected in (("found a folder", tmp_path), (r"cannot be read \(No such file", tmp_path / "no")):
        with pytest.raises(EvidenceError, match=f"{found}.*expected a text"):
            read_input(expected, "a text")
    with pytest.raises(EvidenceError, match="found 5 bytes, expected a text of at most 4"):
        read_input(path, "a text", most=4)
    with pytest.raises(EvidenceError, match="found bytes that are not UTF-8 at 4, expected TOML"):
        decode(path, path.read_bytes(), "TOML")
    assert inputs.MOST_BYTES == 1 << 26


def test_an_error_names_its_own_command(tmp_path: Path) -> None:
    ran = CliRunner().invoke(
        main, ["weights", "check", "p", str(tmp_path), "--package", str(tmp_path / "no")], prog_name="evidence"
    )
    assert ran.exit_code == 2
    assert ran.stderr.splitlines()[-1] == "hint: see `evidence weights check --help`"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize(
    "words", [["--help"], ["--version"], ["check", "--help"], ["check", "campaigns/demo", "--json"]]
)
def test_an_output_without_room_is_said_to_be_one(words: list[str]) -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123
        ran = evidence(*words, stdout=full, cwd=ROOT)
    assert ran.returncode == 2
    assert ran.stderr == (
        "error: the output: cannot be written: No space left on device\nhint: write it where there is room\n"
    )


def test_where_nobody_can_be_told_the_exit_code_says_it() -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123
        assert evidence("check", "nowhere", stderr=full).returncode == 2


@pytest.mark.parametrize("closed", ["2>&-", "<&-", "<&- >&- 2>&-"])
def test_closed_streams_are_none_of_the_files_that_are_opened_next(tmp_path: Path, closed: str) -> None:
    command = f'exec "{sys.executable}" -m evidence init {tmp_path}/made {closed}'
    ran = subprocess.run(["bash", "-c", command], check=False, env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=60)
    assert ran.returncode == 0
    template = ROOT / "evidence/templates/campaign/README.md"
    assert (tmp_path / "made/README.md").read_bytes() == template.read_bytes()


def test_a_folder_that_was_taken_away_is_no_traceback(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    command = f'cd "{gone}"; rmdir "{gone}"; exec "{sys.executable}" -m evidence check nowhere'
    ran = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=False, timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert ran.returncode == 2
    assert ran.stderr.startswith("error: nowhere/campaign.toml: cannot be read (") or ran.stderr.startswith(
        "error: nowhere: "
    )


@pytest.mark.parametrize("blocks", [0, 1, 8])
def test_init_on_a_disk_without_room_leaves_nothing(tmp_path: Path, blocks: int) -> None:
    command = f'ulimit -f {blocks}; exec "{sys.executable}" -m evidence init a/b/made'
    ran = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=False, timeout=60, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    if ran.returncode == 0:
        assert blocks == 8
        return
    assert ran.stderr.startswith(
        "error: a/b/made: cannot be written (File too large), expected a writable place with room"
    )
    assert list(tmp_path.iterdir()) == []
