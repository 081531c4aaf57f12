"""A comparison goes by its protocol, and whatever ends it early is written down."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from evidence.capture import session
from evidence.capture.journal import Journal, read_journal
from evidence.capture.session import CaptureResult, capture
from evidence.errors import EvidenceError
from tests.capture.fast_campaign import assert_nothing_lost, events, receipts, stored, write_fast

ARMS = ["r1-a", "r1-b", "r2-b", "r2-a", "r3-a", "r3-b"]


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> CaptureResult:
    folder = tmp_path_factory.mktemp("complete")
    return capture(write_fast(folder / "campaign"), "tiny-memory", folder / "runs", quiet=True)


def test_three_paired_repetitions_in_their_order(complete: CaptureResult) -> None:
    assert (complete.complete, complete.reason, complete.outcome) == (True, None, None)
    started = events(complete.run, "arm-started")
    assert [f"r{one['repetition']}-{one['arm'].lower()}" for one in started] == ARMS
    assert [one["sequence"] for one in started] == [1, 2, 3, 4, 5, 6]
    assert read_journal(complete.run)[-1]["complete"] is True


def test_every_phase_has_its_number_of_requests(complete: CaptureResult) -> None:
    counts = Counter((one["repetition"], one["arm"], one["phase"]) for one in events(complete.run, "sample"))
    expected = {"native-warm": 2, "rr-warm": 16, "main": 24}
    assert counts == {(r, a, phase): n for r in (1, 2, 3) for a in "AB" for phase, n in expected.items()}
    assert {one["status"] for one in events(complete.run, "sample")} == {200}
    assert_nothing_lost(complete.run)


def test_every_exchange_has_its_receipt_and_the_workers_shared_equally(complete: CaptureResult) -> None:
    samples = {one["offer"]: one for one in events(complete.run, "sample")}
    for arm in ARMS:
        by_worker = receipts(complete.run, arm)
        assert sorted(by_worker) == ["worker-1", "worker-2"]
        for rows in by_worker.values():
            phases = Counter(row["requestId"].rsplit("-", 1)[0].removeprefix(f"{arm}-") for row in rows)
            assert phases == {"native-warm": 1, "rr-warm": 8, "main": 12}
            for row in rows:
                sample = samples.pop(row["requestId"])
                assert (row["requestSha256"], row["responseSha256"]) == (
                    sample["requestSha256"],
                    sample["responseSha256"],
                )
    assert not samples


def test_events_of_an_arm_come_in_their_order(complete: CaptureResult) -> None:
    story = [event for event in read_journal(complete.run) if event.get("repetition", 1) == 1]
    names = [
        f"{event['event']} {event['phase']}" if "phase" in event else event["event"]
        for event in story[: next(i for i, event in enumerate(story) if event["event"] == "arm-ended") + 1]
    ]
    order = [name for i, name in enumerate(names) if name not in names[:i]]
    assert order == [
        "run-started", "arm-started", "engine-started", "engine-ready", "identity", "proxy-ready", "gateway-ready",
        "offer native-warm", "sample native-warm", "snapshot", "offer rr-warm", "sample rr-warm", "offer main",
        "sample main", "client", "timeline", "engine-stopped", "arm-ended",
    ]  # fmt: skip


def test_never_more_than_eight_are_open(complete: CaptureResult) -> None:
    highest = []
    for repetition in (1, 2, 3):
        for arm in "AB":
            main = [
                s
                for s in events(complete.run, "sample")
                if (s["repetition"], s["arm"], s["phase"]) == (repetition, arm, "main")
            ]
            steps = [(s["startedSeconds"], 1) for s in main] + [
                (s["startedSeconds"] + s["totalSeconds"], -1) for s in main
            ]
            open_now, most = 0, 0
            for _, step in sorted(steps):
                open_now += step
                most = max(most, open_now)
            highest.append(most)
    assert max(highest) == 8  # of an arm on a busy machine it may be less: an answer takes 5 ms


def test_an_offer_is_written_before_its_first_byte(complete: CaptureResult) -> None:
    arm_start = {(e["repetition"], e["arm"]): e["t"] for e in events(complete.run, "arm-started")}
    offers = {e["offer"]: e["t"] for e in events(complete.run, "offer")}
    for sample in events(complete.run, "sample"):
        left = arm_start[sample["repetition"], sample["arm"]] + sample["startedSeconds"]
        assert offers[sample["offer"]] <= left


def test_the_setting_stands_in_every_launch_and_in_the_snapshot(complete: CaptureResult) -> None:
    arm = ""
    used: dict[str, set[int]] = {"A": set(), "B": set()}
    for event in read_journal(complete.run):
        arm = event.get("arm") or arm
        if event["event"] == "engine-started":
            at = event["arguments"].index("--context-tokens")
            assert event["arguments"][at + 1] == {"A": "4096", "B": "1024"}[arm]
            assert "{port}" in event["arguments"]
        if event["event"] == "snapshot":
            assert event["source"] == "synthetic"
            used[arm] |= {row["usedBytes"] for row in event["devices"]}
    assert len(used["A"]) == len(used["B"]) == 1
    assert min(used["A"]) > max(used["B"])


def test_the_timeline_is_in_order(complete: CaptureResult) -> None:
    names = ["engineStartedSeconds", "readySeconds", "nativeWarmEndedSeconds", "snapshotSeconds", "rrWarmEndedSeconds",
             "firstMainSeconds", "lastMainSeconds"]  # fmt: skip
    timelines = events(complete.run, "timeline")
    assert len(timelines) == 6
    for timeline, ended in zip(timelines, events(complete.run, "arm-ended"), strict=True):
        values = [timeline[name] for name in names]
        assert values == sorted(values)
        assert ended["wallSeconds"] == values[-1]


def test_the_client_says_whether_it_was_late(complete: CaptureResult) -> None:
    records = events(complete.run, "client")
    assert len(records) == 6
    assert all(record["sendLagMaxSeconds"] > 0 for record in records)


def test_the_engine_proved_itself_with_a_token(complete: CaptureResult) -> None:
    proofs = events(complete.run, "engine-ready")
    assert len(proofs) == 12
    assert all(b"completion_tokens" in stored(complete.run, proof["responseSha256"]) for proof in proofs)


def aborted(folder: Path, reason: str, **changes: object) -> tuple[Path, float]:
    """Captures a campaign that must end early for `reason`; the run folder and the seconds that it took."""
    path = write_fast(folder / "campaign", **changes)  # type: ignore[arg-type]
    begun = time.monotonic()
    result = capture(path, "tiny-memory", folder / "runs", quiet=True)
    took = time.monotonic() - begun
    said = [event["reason"] for event in events(result.run, "aborted")]
    assert (result.complete, result.reason, said) == (False, reason, [reason]), events(result.run, "aborted")
    assert read_journal(result.run)[-1]["complete"] is False
    assert_nothing_lost(result.run)
    assert len(events(result.run, "sample")) == len(events(result.run, "offer"))
    assert len(events(result.run, "engine-stopped")) == len(events(result.run, "engine-started"))
    return result.run, took


def test_an_engine_that_dies_ends_the_run_while_others_hang(tmp_path: Path) -> None:
    """The 11th answer of each engine is its last; the ones after it hang, and nobody waits 60 seconds for them."""
    run, took = aborted(
        tmp_path, "ENGINE_DIED", setting=("--die-after", "11", "1000"), case=["--fault", "hang-mid-stream", "--fault-from", "12"],
        comparison="request_timeout_seconds = 60\n",
    )  # fmt: skip
    assert took < 20
    broken = [one for one in events(run, "sample") if one["transport"] != "complete"]
    assert any(one["responseBytes"] > 0 for one in broken)
    assert not all(one["expected"] for one in events(run, "engine-stopped"))


def test_an_engine_that_gives_no_token_is_not_ready(tmp_path: Path) -> None:
    run, _ = aborted(tmp_path, "ENGINE_NOT_READY", case=["--never-ready"], engine="ready_timeout_seconds = 0.5\n")
    assert events(run, "offer") == []
    assert events(run, "timeline")[0]["readySeconds"] is None


def test_an_engine_that_ends_at_once_is_dead(tmp_path: Path) -> None:
    run, _ = aborted(tmp_path, "ENGINE_DIED", case=["--no-such-option"])
    assert events(run, "offer") == []


def test_an_answer_that_does_not_end_is_a_time_out_with_what_had_come(tmp_path: Path) -> None:
    run, _ = aborted(
        tmp_path, "TIME_OUT", case=["--fault", "hang-mid-stream", "--fault-from", "13", "--fault-until", "13"],
        comparison="request_timeout_seconds = 1.5\n",
    )  # fmt: skip
    late = [one for one in events(run, "sample") if one["transport"] == "timeout"]
    assert len(late) == 2
    partial = {row["responseSha256"] for rows in receipts(run, "r1-a").values() for row in rows if not row["complete"]}
    assert len([one for one in events(run, "sample") if one["phase"] == "main"]) == 24
    assert partial == {one["responseSha256"] for one in late}


GATEWAY = """
[gateway]
name = "{name}"
command = {command}
url = "http://127.0.0.1:{{listen_port}}"
"""
BUILT_IN = '["{python}", "-m", "evidence.capture.round_robin", "--listen", "127.0.0.1:{listen_port}", "--workers", "{worker_1}", "%s"]'


def test_a_gateway_that_prefers_a_worker_fails_the_audit(tmp_path: Path) -> None:
    gateway = GATEWAY.format(name="one-sided", command=BUILT_IN % "{worker_1}")
    run, _ = aborted(tmp_path, "AUDIT_FAILED", more=gateway)
    assert "worker-1 17, worker-2 1" in events(run, "aborted")[0]["message"]
    assert events(run, "gateway-ready")[0]["kind"] == "command"
    assert {one["phase"] for one in events(run, "offer")} == {"native-warm", "rr-warm"}


DYING = """
import socket, sys
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
server.accept()[0].close()
server.accept()
"""


def test_a_gateway_that_dies_ends_the_run(tmp_path: Path) -> None:
    (tmp_path / "dying.py").write_text(DYING)
    command = f'["{{python}}", "{tmp_path / "dying.py"}", "{{listen_port}}"]'
    run, _ = aborted(tmp_path, "GATEWAY_DIED", more=GATEWAY.format(name="dying", command=command))
    assert {one["phase"] for one in events(run, "offer")} == {"native-warm", "rr-warm"}


def find_processes(*words: str) -> list[int]:
    """Ids of processes whose command line holds all the words, watchers left out."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            line = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
        except OSError:
            continue
        if line and all(word.encode() in line for word in words) and b"supervise.py" not in line:
            found.append(int(entry.name))
    return found


def await_offer(runs: Path, phase: str) -> None:
    """Returns once a request of that phase was offered in the only run there."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if any(f'"phase": "{phase}"' in path.read_text() for path in runs.glob("[!.]*/journal.jsonl")):
            return
        time.sleep(0.01)
    raise AssertionError(f"no offer of phase {phase}")


def test_a_proxy_that_dies_ends_the_run(tmp_path: Path) -> None:
    def kill() -> None:
        await_offer(tmp_path / "runs", "main")
        for pid in find_processes("receipt-proxy.py", str(tmp_path), "worker-2.jsonl"):
            os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    slow = ["--prefill-ms", "300"]
    run, took = aborted(tmp_path, "PROXY_DIED", case=slow, comparison="request_timeout_seconds = 60\n")
    killer.join()
    assert took < 20
    assert any(one["transport"] != "complete" or one["status"] != 200 for one in events(run, "sample"))


def test_a_full_disk_ends_the_run_with_its_last_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reserve of the run folder is what the last samples and the reason are written into."""
    whole = Journal.append

    def append(journal: Journal, content: bytes) -> None:
        if journal.length > 12_000 and (journal.folder / ".reserve").exists():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        whole(journal, content)

    monkeypatch.setattr(Journal, "append", append)
    run, _ = aborted(tmp_path, "DISK_FULL")
    assert not (run / ".reserve").exists()


CAPTURE = """
import sys
from pathlib import Path
from evidence.capture.session import capture
result = capture(Path(sys.argv[1]), "tiny-memory", Path(sys.argv[2]))
print(result.reason)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_operator_stops_a_run_and_nothing_is_left_behind(tmp_path: Path, number: signal.Signals) -> None:
    path = write_fast(tmp_path / "campaign", case=["--prefill-ms", "300"])
    with subprocess.Popen(
        [sys.executable, "-c", CAPTURE, str(path), str(tmp_path / "runs")], stdout=subprocess.PIPE, text=True
    ) as runner:
        await_offer(tmp_path / "runs", "main")
        runner.send_signal(number)
        said, _ = runner.communicate(timeout=30)
    assert (said.strip(), runner.returncode) == ("OPERATOR", 0)
    (run,) = (tmp_path / "runs").iterdir()
    assert events(run, "aborted")[0]["message"] == f"stopped by {number.name}"
    assert len(events(run, "sample")) == len(events(run, "offer"))
    assert_nothing_lost(run)
    assert find_processes(str(tmp_path)) == []


def test_an_engine_that_answers_500_is_recorded_and_not_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed main request is a sample like any other: 24 offered, 24 there."""
    monkeypatch.setattr(session, "ORDER", session.ORDER[:1])
    path = write_fast(tmp_path / "campaign", case=["--fault", "status-500", "--fault-from", "20"])
    result = capture(path, "tiny-memory", tmp_path / "runs", quiet=True)
    statuses = Counter(one["status"] for one in events(result.run, "sample") if one["phase"] == "main")
    assert statuses == {200: 18, 500: 6}
    assert result.complete


def test_a_log_line_of_late_work_is_found_in_the_main_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "ORDER", session.ORDER[:1])
    fault = ["--fault", "log-allocation", "--fault-from", "15", "--fault-until", "15"]
    result = capture(write_fast(tmp_path / "a", case=fault), "tiny-memory", tmp_path / "runs-a", quiet=True)
    found = events(result.run, "log-finding")
    assert sorted((one["worker"], one["pattern"]) for one in found) == [
        ("worker-1", "allocation"),
        ("worker-2", "allocation"),
    ]
    allowed = write_fast(tmp_path / "b", case=fault, comparison='allow_log_findings = ["allocation"]\n')
    assert events(capture(allowed, "tiny-memory", tmp_path / "runs-b", quiet=True).run, "log-finding") == []


def test_the_rendered_input_of_a_date_sensitive_comparison_is_the_same_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "ORDER", session.ORDER[:2])
    path = write_fast(tmp_path / "campaign", comparison='date_sensitive = {comparison_date = "2026-01-01"}\n')
    result = capture(path, "tiny-memory", tmp_path / "runs", quiet=True)
    told = events(result.run, "token-ids")
    assert [(one["repetition"], one["arm"], one["worker"]) for one in told] == [
        (1, arm, f"worker-{n}") for arm in "AB" for n in (1, 2)
    ]
    assert len({one["tokenIdsSha256"] for one in told}) == 1


def test_an_unknown_name_starts_nothing(tmp_path: Path) -> None:
    with pytest.raises(EvidenceError, match="no case, comparison or lifecycle"):
        capture(write_fast(tmp_path / "campaign"), "tiny-memroy", tmp_path / "runs", quiet=True)
    assert not (tmp_path / "runs").exists()


def test_a_lifecycle_entry_goes_to_its_protocol(tmp_path: Path) -> None:
    wrong = '[[lifecycle]]\nid = "evict"\nprotocol = "co-residency"\nsurprise = 1\n'
    with pytest.raises(EvidenceError, match="lifecycle evict: surprise: found an unknown key"):
        capture(write_fast(tmp_path / "campaign", more=wrong), "evict", tmp_path / "runs", quiet=True)


def test_a_ready_lifecycle_record_is_not_captured(tmp_path: Path) -> None:
    ready = '[[lifecycle]]\nid = "evict"\nprotocol = "crash"\nrecord = "requests/main.json"\n'
    with pytest.raises(EvidenceError, match="names the ready record"):
        capture(write_fast(tmp_path / "campaign", more=ready), "evict", tmp_path / "runs", quiet=True)


@pytest.mark.parametrize(("number", "reason"), [(errno.ENOSPC, "DISK_FULL"), (errno.EMFILE, "RUNNER_DIED")])
def test_what_the_system_refuses_is_an_incomplete_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, reason: str
) -> None:
    """No room for a folder, or no descriptor left: the run says so, and the command ends with 4."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(session.Topology, "start_engines", refuse)
    run, _ = aborted(tmp_path, reason)
    assert events(run, "offer") == []
