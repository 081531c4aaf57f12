"""The command line as a person meets it: bad input gives one clear error and the right exit code, never a traceback."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from evidence.build.classify import classify, read_request
from evidence.capture import session, topology
from evidence.capture.journal import Journal
from evidence.cli import main
from tests.build.forged_world import World, make_world
from tests.campaign_folder import CAMPAIGN, MAIN, write_campaign
from tests.capture.fast_campaign import assert_nothing_lost, events, stored, write_fast
from tests.capture.test_killed import MARK, await_end

ROOT = Path(__file__).parents[1]


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def refused(done: Result, code: int, *said: str) -> None:
    """Exit code, one `error:` line, at most one `hint:` line behind it, and nothing else on standard error."""
    lines = done.stderr.splitlines()
    assert (done.exit_code, lines[0][:7]) == (code, "error: "), done.output
    assert [line[:6] for line in lines[1:]] in ([], ["hint: "]), done.stderr
    assert "Traceback" not in done.output
    for words in said:
        assert words in lines[0], lines[0]


def test_the_program_itself_prints_no_traceback(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from evidence.cli import main; main()", "check", str(tmp_path / "none")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert [line.split(":")[0] for line in done.stderr.splitlines()] in (["error"], ["error", "hint"])


# The campaign file

WRONG_CAMPAIGNS = {
    "an unknown key": ('version = "1"', 'version = "1"\nspeed = "high"', ("campaign.toml", "speed", "unknown key")),
    "a missing file": ("requests/main.json", "requests/none.json", ("requests/none.json",)),
    "a bad number": ("schema_version = 1", "schema_version = nan", ("schema_version", "nan")),
    "a negative number": ('case = "tiny-rr"', 'case = "tiny-rr"\nrequest_timeout_seconds = -1', ("request_timeout_seconds", "-1")),
    "an unknown engine": ('engine = "synthetic"', 'engine = "synthetik"', ("synthetik",)),
    "an unknown adapter": ('adapter = "synthetic"', 'adapter = "vlm"', ("vlm",)),
    "no TOML": ("schema_version = 1", "schema_version 1", ("campaign.toml",)),
}  # fmt: skip


@pytest.mark.parametrize("command", ["check", "capture", "build"])
@pytest.mark.parametrize("name", WRONG_CAMPAIGNS)
def test_a_wrong_campaign_is_refused_before_anything_is_made(tmp_path: Path, name: str, command: str) -> None:
    old, new, said = WRONG_CAMPAIGNS[name]
    assert old in CAMPAIGN
    path = write_campaign(tmp_path / "campaign", CAMPAIGN.replace(old, new, 1))
    words: dict[str, list[str | Path]] = {
        "check": [path.parent],
        "capture": [path, "--case", "tiny-memory", "--runs", tmp_path / "runs"],
        "build": [path.parent, "--runs", tmp_path / "runs", "--output", tmp_path / "dist"],
    }
    refused(run(command, *words[command]), 2, *said)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["campaign"]


@pytest.mark.parametrize("words", [[], ["--case", "tiny-memory", "--all"]])
def test_what_to_capture_is_said_once(tmp_path: Path, words: list[str]) -> None:
    path = write_campaign(tmp_path / "campaign")
    refused(run("capture", path, *words, "--runs", tmp_path / "runs"), 2, "--case and --all")


def test_a_name_that_is_not_in_the_campaign(tmp_path: Path) -> None:
    done = run("capture", write_campaign(tmp_path / "c"), "--case", "tiny-memry", "--runs", tmp_path / "runs")
    refused(done, 2, "tiny-memry")


# Engines that misbehave


def captured(tmp_path: Path, name: str = "tiny-memory") -> tuple[Result, Path]:
    """What `evidence capture` says of the one run, and its folder."""
    done = run("capture", tmp_path / "campaign/campaign.toml", "--case", name, "--runs", tmp_path / "runs", "--quiet")
    (folder,) = (tmp_path / "runs").iterdir()
    return done, folder


INCOMPLETE: dict[str, tuple[list[str], dict[str, str], str, str]] = {
    "never ready": (["--never-ready"], {"engine": "ready_timeout_seconds = 0.5\n"}, "ENGINE_NOT_READY", "no token within 0.5 s"),
    "dies in the middle": (["--die-after", "15"], {}, "ENGINE_DIED", "ended by itself"),
    "hangs": (["--fault", "hang-before-head", "--fault-from", "20", "--fault-until", "20"],
              {"comparison": "request_timeout_seconds = 1\n"}, "TIME_OUT", "had no end within 1 s"),
}  # fmt: skip


@pytest.mark.parametrize("name", INCOMPLETE)
def test_an_engine_that_ends_the_run_early(tmp_path: Path, name: str) -> None:
    arguments, more, reason, said = INCOMPLETE[name]
    write_fast(tmp_path / "campaign", case=arguments, **more)  # type: ignore[arg-type]
    done, folder = captured(tmp_path)
    refused(done, 4, "tiny-memory: ", said)
    assert [event["reason"] for event in events(folder, "aborted")] == [reason]
    assert done.stdout == f"tiny-memory: incomplete: {reason}: {folder}\n"
    assert_nothing_lost(folder)


FAILING = {
    "answers 500": ("status-500", "HTTP_ERROR", ("complete", 500)),
    "closes early": ("truncate", "UPSTREAM_PARTIAL", ("closed-early", 200)),
    "closes early and clean": ("close-early", "UPSTREAM_PARTIAL", ("complete", 200)),
    "sends a broken stream": ("broken-stream", "MALFORMED", ("complete", 200)),
    "sends no usage": ("no-usage", "NORMAL", ("complete", 200)),
}


@pytest.mark.parametrize("name", FAILING)
def test_an_engine_that_answers_badly_is_recorded_to_the_last_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The run is complete: planned is present, and what the answers are worth is derived from their bytes."""
    fault, classification, ended = FAILING[name]
    monkeypatch.setattr(session, "ORDER", session.ORDER[:1])
    path = write_fast(tmp_path / "campaign", case=["--fault", fault, "--fault-from", "20"])
    done, folder = captured(tmp_path)
    assert (done.exit_code, done.stderr) == (0, "")
    samples = [one for one in events(folder, "sample") if one["phase"] == "main"]
    assert len(samples) == 24
    shape = read_request((path.parent / "requests/main.json").read_bytes())
    told = Counter(
        classify(
            one["transport"], one["status"], shape, stored(folder, one["responseSha256"]), owes_done=True
        ).classification
        for one in samples
    )
    if classification == "NORMAL":
        assert told == {"NORMAL": 24}
        assert Counter(one["completionTokens"] is None for one in samples) == {False: 18, True: 6}
    else:
        assert told == {"NORMAL": 18, classification: 6}
        assert Counter((one["transport"], one["status"]) for one in samples)[ended] >= 6


def test_a_port_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(topology, "choose_port", lambda: port)
        write_fast(tmp_path / "campaign")
        done, folder = captured(tmp_path)
    refused(done, 4, f"port {port} on {{host}} is in use")
    assert events(folder, "aborted")[0]["reason"] == "ENGINE_NOT_READY"


def test_a_disk_that_fills_up_while_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Journal.append

    def append(journal: Journal, content: bytes) -> None:
        if journal.length > 12_000 and (journal.folder / ".reserve").exists():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        whole(journal, content)

    monkeypatch.setattr(Journal, "append", append)
    write_fast(tmp_path / "campaign")
    done, folder = captured(tmp_path)
    refused(done, 4, "no room to record (No space left on device)")
    assert events(folder, "aborted")[0]["reason"] == "DISK_FULL"
    assert_nothing_lost(folder)


ENDS = {
    "complete": ([], 0),
    "a fault": (["--die-after", "15"], 4),
    "not ready": (["--no-such-option"], 4),
}


@pytest.mark.parametrize("name", ENDS)
def test_no_process_is_left_however_a_capture_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Everything that was started, however deep, carries the mark in its environment."""
    arguments, code = ENDS[name]
    monkeypatch.setenv(MARK, str(tmp_path))
    monkeypatch.setattr(session, "ORDER", session.ORDER[:2])
    write_fast(tmp_path / "campaign", case=arguments)
    done, _ = captured(tmp_path)
    assert done.exit_code == code
    await_end(str(tmp_path))


# Run folders


def attempt(world: World) -> None:
    """The attempts that the campaign's recipe and the gated profile need."""
    world.attempt("one-rr-1", 10)
    world.attempt("two-native-1", 12, reason="ACCESS_DENIED", outcome="BLOCKED_ACCESS", requests=0)


def build(world: World) -> Result:
    return run("build", world.campaign.folder, "--runs", world.runs, "--output", world.folder / "dist", "--quiet")


def test_a_run_of_another_campaign(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    record = world.compare() / "run.json"
    record.write_text(record.read_text().replace('"campaign": "forged"', '"campaign": "other"'))
    refused(build(world), 1, "run.json", "found a run of campaign 'other', expected 'forged'")
    assert not (tmp_path / "dist").exists()


def test_runs_of_another_campaign_in_a_folder_of_their_own(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    (world.runs / "other").mkdir()
    world.compare().rename(world.runs / "other" / "run")
    refused(build(world), 1, "runs/other: found a folder of run folders, expected a run folder")


def test_a_run_under_other_words_of_the_campaign(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    world.compare()
    world.campaign.path.write_text(world.campaign.path.read_text().replace("baseline = '4096'", "baseline = '8192'"))
    refused(build(world), 1, "[[comparison]] 'compare-1' other than in campaign.toml")


def test_an_unfinished_run_is_no_comparison(tmp_path: Path) -> None:
    """Its journal ends in the middle, as a runner leaves it that was killed: nothing can be chosen from it."""
    world = make_world(tmp_path)
    attempt(world)
    folder = world.compare()
    lines = (folder / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "journal.jsonl").write_bytes(b"".join(lines[:200]))
    done = build(world)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        "error: forged: found 1 reason against a package:",
        "  recipe recipe-1: found no complete run of comparison compare-1, expected one to choose from",
        "hint: nothing was written",
    ]
    assert not list((tmp_path / "dist").rglob("*"))


# Archives and package folders


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole archive of one comparison, with its digests beside it."""
    world = make_world(tmp_path_factory.mktemp("world"))
    world.compare()
    attempt(world)
    return world.build().archive


@pytest.fixture
def published(package: Path, tmp_path: Path) -> Path:
    """A copy of it to spoil."""
    folder = tmp_path / "published"
    folder.mkdir()
    for path in package.parent.glob("forged-evaluation.*"):
        shutil.copy(path, folder)
    return folder / package.name


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def alter(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def replace(path: Path) -> None:
    path.write_bytes(b"this is no archive\n" * 100)


@pytest.mark.parametrize("command", ["verify", "validate"])
@pytest.mark.parametrize("spoil", [truncate, alter, replace])
def test_a_spoilt_archive_is_rejected(published: Path, spoil: Callable[[Path], None], command: str) -> None:
    spoil(published)
    done = run(command, published)
    assert done.exit_code == 1, done.output
    assert published.name in done.output
    assert "Traceback" not in done.output


@pytest.mark.parametrize(
    "words", [["verify"], ["validate"], ["show"], ["matrix"], ["report", "--output", "none.html"]], ids=" ".join
)
def test_an_archive_that_is_not_there(tmp_path: Path, words: list[str]) -> None:
    refused(run(*words, tmp_path / "none.tgz"), 2)


def extra(folder: Path) -> None:
    (folder / "results/extra.json").write_text("{}\n")


def lacking(folder: Path) -> None:
    (folder / "recipes.json").unlink()


def changed(folder: Path) -> None:
    path = folder / "recipes.json"
    path.write_bytes(path.read_bytes().replace(b"1", b"2", 1))


@pytest.mark.parametrize(
    ("spoil", "said"), [(extra, "results/extra.json"), (lacking, "recipes.json"), (changed, "recipes.json")]
)
def test_a_package_folder_with_a_file_too_many_too_few_or_changed(
    published: Path, tmp_path: Path, spoil: Callable[[Path], None], said: str
) -> None:
    with tarfile.open(published) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    folder = tmp_path / "unpacked/forged"
    whole = run("verify", folder)
    assert whole.exit_code == 0, whole.output
    spoil(folder)
    done = run("verify", folder)
    assert done.exit_code == 1
    assert said in done.stdout
    assert "Traceback" not in done.output
    own = subprocess.run([sys.executable, "-I", "-S", "verify-results.py"], cwd=folder, capture_output=True, text=True)
    assert (own.returncode, own.stderr) == (1, "")
    assert said in own.stdout


def test_the_fixed_request_is_the_campaigns(tmp_path: Path) -> None:
    """A body that leaves room for another answer is refused, for then 24 requests are not one."""
    done = run("check", write_campaign(tmp_path / "c", main={**MAIN, "temperature": "hot"}).parent)
    refused(done, 2, "temperature")
