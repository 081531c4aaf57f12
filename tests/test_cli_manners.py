"""How the command behaves: help, completion, what goes where, colours, errors, and names as a person would type them."""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import pty
import re
import shlex
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from evidence import __version__, kept
from evidence.cli import main
from evidence.manners import EXIT_CODES, near

ROOT = Path(__file__).parents[1]


def commands(group: click.Group = main, name: str = "") -> Iterator[tuple[str, click.Command]]:
    yield name, group
    for word, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, f"{name} {word}".strip())
        else:
            yield f"{name} {word}".strip(), command


ALL = dict(commands())
LEAVES = {name: command for name, command in ALL.items() if not isinstance(command, click.Group)}


def call(*words: str) -> Result:
    return CliRunner().invoke(main, list(words), prog_name="evidence")


def process(*words: str, where: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "evidence", *words], capture_output=True, text=True, cwd=where, check=False, timeout=120,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8", **environment},
    )  # fmt: skip


def on_terminal(*words: str, where: Path = ROOT, **environment: str) -> str:
    """What a person sees of both streams."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    with subprocess.Popen(
        [sys.executable, "-m", "evidence", *words], stdout=theirs, stderr=theirs, cwd=where,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "TERM": "xterm", "LC_ALL": "C.UTF-8", **environment},
    ) as child:  # fmt: skip
        os.close(theirs)
        seen = b""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # Linux says EIO at the end of a terminal
                break
            if not piece:
                break
            seen += piece
        os.close(ours)
    assert child.returncode is not None
    return seen.decode()


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package folder with the checksums of two files, and a model folder that has them."""
    model = tmp_path / "model"
    model.mkdir()
    lines = []
    for name in ("a.json", "b.json"):
        (model / name).write_text(name)
        lines.append(f"{hashlib.sha256(name.encode()).hexdigest()}  {name}\n")
    (tmp_path / "package/weights").mkdir(parents=True)
    (tmp_path / "package/weights/tiny.sha256").write_text("".join(lines))
    return tmp_path


@pytest.mark.parametrize("name", ALL)
def test_help_has_examples_and_exit_codes(name: str) -> None:
    ran = call(*name.split(), "--help")
    assert ran.exit_code == 0
    assert "  Example:\n    evidence " in ran.output
    for code, meaning in EXIT_CODES.items():
        assert re.search(rf"(?m)^    {code} +{re.escape(meaning)}$", ran.output)


@pytest.mark.parametrize("name", LEAVES)
def test_examples_are_right(name: str) -> None:
    text = LEAVES[name].help or ""
    lines = text[text.index("Example:\n") :].splitlines()[1:]
    assert lines
    for line in lines:
        words = shlex.split(line)
        assert words[: 1 + len(name.split())] == ["evidence", *name.split()]
        context = LEAVES[name].make_context(name, words[1 + len(name.split()) :])
        context.close()


@pytest.mark.parametrize("name", LEAVES)
def test_every_option_is_explained_and_every_command_can_be_quiet_or_tell(name: str) -> None:
    options = [one for one in LEAVES[name].params if isinstance(one, click.Option)]
    assert [one.name for one in options if not one.help] == []
    assert {"--quiet", "--verbose"} <= {flag for one in options for flag in one.opts}


def test_the_help_of_verify_says_what_it_does_not_prove() -> None:
    page = (Path(__file__).parents[1] / "docs/what-this-does-not-prove.md").read_text(encoding="utf-8")
    said = " ".join(call("verify", "--help").output.split())
    heads = re.findall(r"(?m)^(\d+\. )\*\*(.+?)\*\*", page)
    assert len(heads) > 10
    assert [number + head for number, head in heads if " ".join(f"{number}{head}".split()) not in said] == []


def test_version() -> None:
    assert call("--version").output == f"evidence, version {__version__}\n"


@pytest.mark.parametrize(
    ("words", "found", "hint"),
    [
        (["vreify"], "no such command 'vreify'", "`evidence --help`"),
        (["verify"], "missing argument 'PATH'", "`evidence verify --help`"),
        (["show", "x", "--format", "xml"], "invalid value for '--format': 'xml'", "`evidence show --help`"),
        (["weights", "check"], "missing argument 'PROFILE'", "`evidence weights check --help`"),
        (["capture", "x", "--runs", "y"], "found neither or both of --case and --all", "`evidence capture --help`"),
        (["verify", "missing.tgz"], "missing.tgz: ", "archive"),
        (["lifecycle", "timeline", "tests"], "tests: found a folder, expected a lifecycle record", "record.json"),
        (["serve", "tests"], "tests: found a folder, expected a supervisor's TOML file", "campaigns/lifecycle/"),
        (["verify", "tests"], "tests: found neither SHA256SUMS nor manifest.json", "`evidence check`"),
        (["show", "tests"], "tests: found no manifest.json, expected a complete package", "the .tgz"),
        (["verify", ""], "invalid value for 'PATH': found an empty path", "`evidence verify --help`"),
        (
            ["capture", "x", "--runs", ""],
            "invalid value for '--runs': found an empty path",
            "`evidence capture --help`",
        ),
    ],
)
def test_an_error_is_two_lines_on_standard_error(words: list[str], found: str, hint: str) -> None:
    ran = call(*words)
    assert (ran.exit_code, ran.stdout) == (2, "")
    first, second = ran.stderr.splitlines()
    assert first.startswith(f"error: {found}")
    assert second.startswith("hint: ")
    assert hint in second


@pytest.mark.parametrize("words", [[], ["weights"], ["lifecycle"]])
def test_no_command_at_all_is_answered_with_the_help(words: list[str]) -> None:
    ran = call(*words)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.lower().startswith("usage: ")
    assert ran.stderr.splitlines()[1:] == call(*words, "--help").stdout.splitlines()[1:]


@pytest.mark.parametrize("words", [[], ["weights"], ["lifecycle"]])
def test_the_list_of_commands_says_whole_sentences(words: list[str]) -> None:
    rows = call(*words, "--help").stdout.partition("Commands:\n")[2].partition("\n\n")[0].splitlines()
    assert rows
    assert [row for row in rows if not row.endswith(".") or row.endswith("...")] == []


def test_what_the_system_refuses_is_an_error_too(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ran = call("build", str(tmp_path / "file" / "campaign"), "--runs", str(tmp_path), "--output", str(tmp_path))
    assert ran.exit_code == 2
    assert ran.stderr.startswith("error: ")
    assert "\nhint: " in ran.stderr


def test_names_are_told_from_where_one_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert near(f"{tmp_path}/runs/a: found x in {tmp_path}/b") == "runs/a: found x in b"
    assert near(f"/mnt{tmp_path}/runs") == f"/mnt{tmp_path}/runs"
    assert near(f"{tmp_path}-other/runs") == f"{tmp_path}-other/runs"
    ran = call("check", str(tmp_path / "campaign"))
    assert ran.stderr.startswith("error: campaign")


def test_colours_are_for_terminals_without_no_color() -> None:
    shown = on_terminal("verify", "missing.tgz")
    assert "\x1b[31merror:" in shown
    assert "\x1b[36mhint:" in shown
    plain = on_terminal("verify", "missing.tgz", NO_COLOR="1")
    assert "error: missing.tgz" in plain
    assert "\x1b" not in plain
    assert "\x1b" not in process("verify", "missing.tgz").stderr


def test_progress_is_for_terminals_and_can_be_hushed(package: Path) -> None:
    words = ["weights", "check", "tiny", "model", "--package", "package"]
    assert "2/2 file" in on_terminal(*words, where=package)
    assert "2/2 file" not in on_terminal(*words, "-q", where=package)
    piped = process(*words, where=package)
    assert (piped.returncode, piped.stderr) == (0, "")


def test_verbose_tells_each_stage_with_its_time(package: Path) -> None:
    ran = process("weights", "check", "tiny", "model", "--package", "package", "-v", where=package)
    lines = ran.stderr.splitlines()
    assert [line.split(" s  ")[1] for line in lines] == ["tiny: a.json", "tiny: b.json"]
    assert all(float(line.split(" s  ")[0]) > 0 for line in lines)
    assert logging.getLogger("evidence").handlers == []


def test_weights_are_compared(package: Path) -> None:
    words = ["weights", "check", "tiny", str(package / "model"), "--package", str(package / "package")]
    assert call(*words).output == "a.json: OK\nb.json: OK\n"
    (package / "model/a.json").write_text("other")
    (package / "model/b.json").unlink()
    ran = call(*words)
    other = hashlib.sha256(b"other").hexdigest()
    assert (ran.exit_code, ran.output) == (1, f"a.json: FAILED, found {other}\nb.json: FAILED, found no file\n")
    rows = json.loads(call(*words, "--json").output)
    assert [row["found"] for row in rows] == [other, None]
    words[2] = "huge"
    ran = call(*words)
    assert ran.exit_code == 2
    assert "weights/huge.sha256" in ran.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete(shell: str) -> None:
    given = process(_EVIDENCE_COMPLETE=f"{shell}_source")
    assert given.returncode == 0
    assert f"_EVIDENCE_COMPLETE={shell}_complete" in given.stdout


def test_completion_knows_commands_and_options() -> None:
    asked = {"COMP_WORDS": "evidence ma", "COMP_CWORD": "1", "_EVIDENCE_COMPLETE": "bash_complete"}
    assert process(**asked).stdout == "plain,matrix\n"
    asked |= {"COMP_WORDS": "evidence matrix --out", "COMP_CWORD": "2"}
    assert process(**asked).stdout == "plain,--outcome\n"


def test_a_closed_pipe_is_no_error() -> None:
    ran = subprocess.run(
        f"{shlex.quote(sys.executable)} -m evidence lifecycle timeline archive/lifecycle-cpu/record.json | true",
        shell=True, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert ran.stderr == ""


def test_the_hook_finds_the_archives_of_changed_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (
        "archive/one-evaluation.tgz",
        "archive/two-evaluation.tgz",
        "archive/two/models/m.json",
        "archive/x/y",
    ):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("")
    changed = [
        "archive/one-evaluation.tgz.sha256",
        "archive/two/models/m.json",
        "archive/x/y",
        "archive/gone-evaluation.tgz",
    ]
    found = kept.archives([Path(name) for name in changed])
    assert found == [Path("archive/one-evaluation.tgz"), Path("archive/two-evaluation.tgz")]
    assert kept.main(["archive/x/y"]) == 0
    assert kept.main(["archive/one-evaluation.tgz"]) == 1


def test_a_program_that_asked_for_json_or_annotations_reads_an_error_as_such() -> None:
    for words in (["verify"], ["show"], ["matrix"], ["check"]):
        ran = call(*words, "missing.tgz", "--json")
        said = json.loads(ran.stdout)
        assert (sorted(said), said["exitCode"], ran.exit_code) == (["error", "exitCode", "hint"], 2, 2)
        assert ran.stderr.startswith(f"error: {said['error']}\n")
    assert call("verify", "missing.tgz", "--format", "github").stdout.startswith("::error::missing.tgz: ")


def test_names_are_shown_and_never_obeyed_or_fatal(tmp_path: Path) -> None:
    shown = on_terminal("show", "no\x1b[31m\u202e.tgz", where=tmp_path, NO_COLOR="1")
    assert "error: no\\u001b[31m\\u202e.tgz" in shown
    ran = process("diff", "\udcff", "\udcff", "--json", where=tmp_path, PYTHONIOENCODING="utf-8")
    assert ran.returncode == 2
    assert json.loads(ran.stdout)["error"].startswith("\udcff: ")


def test_a_record_is_exported_too_and_one_without_its_words_is_refused(tmp_path: Path) -> None:
    record = ROOT / "archive/lifecycle-cpu/record.json"
    ran = call("show", str(record.parent), "--export", str(tmp_path / "csv"))
    assert (ran.exit_code, len(list((tmp_path / "csv").iterdir()))) == (0, 4)
    (tmp_path / "bare.json").write_text('{"experiments": []}')
    ran = call("show", str(tmp_path / "bare.json"))
    assert (ran.exit_code, ran.stdout) == (1, "")
    assert "found nothing at 'title', expected a lifecycle record" in ran.stderr
