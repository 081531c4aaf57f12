"""Nothing is lost: the runner is killed at 50 points of a capture, each time in the middle of writing an event down.

The points are counted in events, not in seconds: SIGKILL comes right after the write of the n-th line of the journal,
or, at every other point, just before it. The capture is the real one, shortened to its first two arms, most points in
the first; at most of them eight requests are under way. What is left each time packages as an incomplete comparison,
and the package's own verifiers accept it.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

from evidence.build.package import build
from evidence.capture.journal import read_journal
from tests.capture.fast_campaign import assert_nothing_lost, events, write_fast

FIRST_ARM, EVENTS = 100, 199  # `test_the_points_lie_within_the_capture` holds both
POINTS = [round(1 + n * (FIRST_ARM - 1) / 43) for n in range(44)] + [FIRST_ARM + 16 * n for n in range(1, 7)]
MARK = "EVIDENCE_KILL_TEST"

# Imports once, then forks a runner for each point, two at a time; prints how each ended.
RUNNER = """
import json, os, signal, sys
from pathlib import Path
from evidence.capture import attempt, session
from evidence.build.package import build
from evidence.capture.journal import Journal

session.ORDER = session.ORDER[:2]
whole, count, point = Journal.append, 0, 0

def append(journal, content):
    global count
    count += 1
    if count == point and point % 2:
        os.kill(os.getpid(), signal.SIGKILL)
    whole(journal, content)
    if count == point:
        os.kill(os.getpid(), signal.SIGKILL)

def run(folder):
    os.environ["MARK"] = str(folder)
    os.chdir(folder)
    session.capture(folder.parent / "campaign", "tiny-memory", folder / "runs", quiet=True)

Journal.append = append
folder, points = Path(sys.argv[1]), [int(word) for word in sys.argv[2:]]
running, ended = {}, {}
while points or running:
    while points and len(running) < 2:
        point = points.pop(0)
        pid = os.fork()
        if pid == 0:
            run(folder / str(point))
            os._exit(0)
        running[pid] = point
    pid, status = os.wait()
    ended[running.pop(pid)] = os.waitstatus_to_exitcode(status)
print(json.dumps(ended))
""".replace("MARK", MARK)


def find_marked(mark: str) -> list[int]:
    """Live processes that carry the mark in their environment: everything that the runner started, however deep."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"{MARK}={mark}\0".encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def run_until(folder: Path, points: list[int]) -> set[int]:
    """Runs a capture for each point, in a folder of its name, that is killed there; how they ended."""
    write_fast(folder / "campaign", case=["--emission-log", "{alias}.emissions"])
    for point in points:
        (folder / str(point)).mkdir()
    words = [str(point) for point in points]
    done = subprocess.run(
        [sys.executable, "-c", RUNNER, str(folder), *words], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout.splitlines()[-1]).values())


def seen_by_proxies(run: Path) -> set[str]:
    """Request ids of every traffic exchange that a proxy began, with a receipt or without."""
    found = set()
    for path in [*(run / "witness").glob("r*/*.jsonl"), *(run / "witness").glob("r*/*.jsonl.open")]:
        rows = [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]
        found |= {row["requestId"] for row in rows if row["path"] == "/v1/chat/completions"}
    return found


def seen_by_engines(folder: Path) -> set[str]:
    """Request ids of everything that an engine wrote an event of."""
    lines = [line for path in folder.glob("*.emissions") for line in path.read_bytes().split(b"\n")[:-1]]
    return {json.loads(line)["id"] for line in lines} - {""}


@pytest.mark.slow
@pytest.mark.parametrize("part", range(5))
def test_a_killed_runner_loses_nothing(tmp_path: Path, part: int) -> None:
    points = POINTS[part::5]
    assert run_until(tmp_path, points) == {-signal.SIGKILL}
    for point in points:
        folder = tmp_path / str(point)
        runs = [path for path in (folder / "runs").iterdir() if not path.name.startswith(".")]
        if point == 1:  # killed before the first event: there is no run folder yet
            assert runs == []
        for run in runs:
            story = read_journal(run)
            assert len(story) == point - point % 2
            assert [event for event in story if event["event"] == "run-ended"] == []
            offers = {event["offer"] for event in events(run, "offer")}
            assert seen_by_proxies(run) <= offers
            assert seen_by_engines(folder) <= offers
            assert_nothing_lost(run)
        await_end(str(folder))
    package_as_incomplete(tmp_path, points)


def package_as_incomplete(folder: Path, points: list[int]) -> None:
    """Builds one package of all the killed runs, in which every offer stands, and verifies it as a reader would."""
    everything = folder / "runs"
    everything.mkdir()
    offered = {}
    for run in (run for point in points for run in (folder / str(point) / "runs").glob("[!.]*")):
        offered[run.name] = {event["offer"] for event in events(run, "offer")}
        run.rename(everything / run.name)
    built = build(folder / "campaign", everything, folder / "dist", preparation=True, quiet=True)
    with tarfile.open(built.archive) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (package,) = (folder / "unpacked").iterdir()
    index = json.loads((package / "results/incomplete-settings-index.json").read_text())["comparisons"]
    assert {entry["run"]: entry["reason"] for entry in index} == dict.fromkeys(offered, "RUNNER_DIED")
    for entry in index:
        rows = json.loads((package / entry["folder"] / "offers.json").read_text())["offers"]
        assert {row["offer"] for row in rows} == offered[entry["run"]]
    for verifier in sorted(package.glob("verify-*.py")):
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-B", str(verifier)], capture_output=True, text=True, check=False
        )
        assert (verifier.name, done.returncode) == (verifier.name, 0), done.stdout + done.stderr


def await_end(mark: str) -> None:
    """No process that the runner started survives it for long."""
    deadline = time.monotonic() + 20
    while left := find_marked(mark):
        assert time.monotonic() < deadline, left
        time.sleep(0.02)


def test_the_points_lie_within_the_capture(tmp_path: Path) -> None:
    """A capture that is left alone writes as many events as the points were chosen from, and the counting sees them."""
    assert run_until(tmp_path, [EVENTS + 1]) == {0}
    (run,) = (tmp_path / str(EVENTS + 1) / "runs").iterdir()
    story = [event["event"] for event in read_journal(run)]
    assert (len(story), story.index("arm-ended") + 1) == (EVENTS, FIRST_ARM)
    assert len(set(POINTS)) == 50
    streamed = {event["offer"] for event in events(run, "offer") if event["phase"] != "native-warm"}
    assert seen_by_engines(tmp_path / str(EVENTS + 1)) == streamed
    assert seen_by_proxies(run) == {event["offer"] for event in events(run, "offer")}
    await_end(str(tmp_path / str(EVENTS + 1)))
