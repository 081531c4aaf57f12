"""The way without the library that parses options: the same words and exit codes, and that library is not loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.archive.packages import base, lay, publish

ROOT = Path(__file__).parents[1]
ENVIRONMENT = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8"}
LOADED = """
import sys
from evidence.__main__ import run
try:
    run()
except SystemExit as end:
    print(end.code, sorted({"click", "logging"} & set(sys.modules)), file=sys.stderr)
"""


def call(*words: str | Path, where: Path) -> tuple[int, bytes, bytes]:
    ran = subprocess.run(
        [sys.executable, "-m", "evidence", *words], capture_output=True, cwd=where, env=ENVIRONMENT, check=False
    )
    return ran.returncode, ran.stdout, ran.stderr


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Packages and other things under the names that the test below has."""
    folder = tmp_path_factory.mktemp("inputs")
    whole = publish(base.full(), folder)
    data = whole.read_bytes()
    (folder / "bare.tgz").write_bytes(data)
    (folder / "broken.tgz").write_bytes(data[:2000] + bytes([data[2000] ^ 1]) + data[2001:])
    (folder / "pa\u0308ckage.tgz").write_bytes(b"no gzip")
    (folder / "with \x1b[31m.tgz").write_bytes(b"no gzip")
    publish({**base.full(), "strange.bin": b"\0"}, folder, "strange").rename(folder / "strange.tgz")
    lay({**base.full(), "other": b"not listed"}, folder / "unlisted")
    (folder / "empty").mkdir()
    (folder / "pipe").symlink_to("/dev/null")
    return folder


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("validate", "demo-evaluation.tgz"), 0),
        (("validate", "bare.tgz"), 1),
        (("validate", "broken.tgz"), 1),
        (("validate", "strange.tgz"), 1),
        (("validate", "pa\u0308ckage.tgz"), 1),
        (("validate", "with \x1b[31m.tgz"), 1),
        (("validate", "empty"), 2),
        (("validate", "pipe"), 2),
        (("validate", "missing.tgz"), 2),
        (("validate", ""), 2),
        (("verify", "unlisted"), 1),
        (("verify", "empty"), 2),
        (("verify", "broken.tgz"), 1),
        (("verify", "pipe"), 2),
    ],
)
def test_the_answer_is_that_of_the_command_with_an_option(inputs: Path, words: tuple[str, str], code: int) -> None:
    found = call(*words, where=inputs)
    assert found == call(*words, "--format", "text", where=inputs)
    assert found[0] == code
    assert found[1] if code < 2 else found[2].startswith(b"error: ")


@pytest.mark.parametrize(
    ("words", "loaded"),
    [(["validate", "demo-evaluation.tgz"], "0 []\n"), (["validate", "bare.tgz"], "1 []\n"),
     (["validate", "pipe"], "2 ['click', 'logging']\n"),
     (["validate", "demo-evaluation.tgz", "-q"], "0 ['click', 'logging']\n")],
)  # fmt: skip
def test_the_library_is_loaded_where_it_is_needed(inputs: Path, words: list[str], loaded: str) -> None:
    command = [sys.executable, "-c", LOADED, *words]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=inputs, env=ENVIRONMENT, check=False)
    assert ran.stderr.endswith(loaded), ran.stderr


@pytest.mark.parametrize("words", [["validate", "--help"], ["verify", "-h"], ["validate", "--no-such"]])
def test_an_option_is_never_taken_for_a_path(inputs: Path, words: list[str]) -> None:
    (inputs / words[1]).write_bytes(b"")
    code, said, wrong = call(*words, where=inputs)
    assert (code, b"Usage:" in said) in ((0, True), (2, False))
    assert code == 0 or b"no such option" in wrong


def test_completion_is_asked_of_the_library(inputs: Path) -> None:
    given = subprocess.run(
        [sys.executable, "-m", "evidence", "validate", "demo-evaluation.tgz"],
        capture_output=True, text=True, cwd=inputs, env={**ENVIRONMENT, "_EVIDENCE_COMPLETE": "bash_source"}, check=False,
    )  # fmt: skip
    assert "complete" in given.stdout
    assert "verified" not in given.stdout


def test_a_closed_pipe_is_no_error_here_either(inputs: Path) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    command = [sys.executable, "-m", "evidence", "validate", "demo-evaluation.tgz"]
    ran = subprocess.run(command, stdout=theirs, stderr=subprocess.PIPE, cwd=inputs, env=ENVIRONMENT, check=False)
    os.close(theirs)
    assert (ran.returncode, ran.stderr) == (141, b"")
