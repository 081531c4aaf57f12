"""A run is complete only when everything it stood on was there to its end, whoever tells it first."""

from __future__ import annotations

import os
import resource
import select
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evidence.capture import session, topology
from evidence.capture.attempt import Attempt
from evidence.capture.journal import read_journal
from evidence.capture.processes import Process, start_process
from evidence.capture.session import Arm, CaptureResult, capture
from evidence.capture.topology import Topology
from tests.capture.fast_campaign import assert_nothing_lost, events, write_fast
from tests.capture.synthetic_server import serve

PARTS: dict[str, Callable[[Topology], Process]] = {
    "ENGINE_DIED": lambda stage: stage.engines[1].process,  # type: ignore[dict-item, return-value]
    "PROXY_DIED": lambda stage: stage.workers[0].proxy,  # type: ignore[dict-item, return-value]
    "GATEWAY_DIED": lambda stage: stage.gateway.process,  # type: ignore[dict-item, return-value, union-attr]
}


def kill(process: Process) -> None:
    """Returns when it has ended, of which nobody in this process has heard then."""
    handle = os.pidfd_open(process.pid)
    os.kill(process.pid, signal.SIGKILL)
    end = select.poll()
    end.register(handle, select.POLLIN)
    assert end.poll(20_000)
    os.close(handle)


@pytest.fixture
def no_news(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if every news of an end came too late."""
    monkeypatch.setattr(Topology, "expect", lambda *arguments: None)
    monkeypatch.setattr("evidence.capture.watch.NEWS_SECONDS", 0.0)


stop_whole = Topology.stop


def ended(path: Path, folder: Path, reason: str) -> Path:
    """Captures the first arm of the comparison, which must end early for `reason`; its run folder."""
    result: CaptureResult = capture(path, "tiny-memory", folder / "runs", quiet=True)
    said = events(result.run, "aborted")
    assert (result.complete, result.reason, [one["reason"] for one in said]) == (False, reason, [reason]), said
    assert read_journal(result.run)[-1]["complete"] is False
    assert len(events(result.run, "sample")) == len(events(result.run, "offer"))
    assert events(result.run, "arm-ended") == []
    assert_nothing_lost(result.run)
    return result.run


@pytest.mark.usefixtures("no_news")
def test_an_end_in_a_batch_is_found_when_all_its_requests_fail_before_the_news(tmp_path: Path) -> None:
    """Each engine ends with its last warm-up: 24 of 24 main requests are 502 within milliseconds."""
    path = write_fast(tmp_path / "campaign", setting=("--die-after", "10", "1000"))
    run = ended(path, tmp_path, "ENGINE_DIED")
    assert {one["exitCode"] for one in events(run, "engine-stopped")} == {9}
    assert not any(one["expected"] for one in events(run, "engine-stopped"))


@pytest.mark.usefixtures("no_news")
@pytest.mark.parametrize("reason", PARTS)
def test_an_end_between_two_batches_is_found_before_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    whole = Arm.take_snapshot

    async def take_snapshot(arm: Arm) -> None:
        await whole(arm)
        kill(PARTS[reason](arm.topology))

    monkeypatch.setattr(Arm, "take_snapshot", take_snapshot)
    run = ended(write_fast(tmp_path / "campaign"), tmp_path, reason)
    assert {one["phase"] for one in events(run, "offer")} == {"native-warm"}


def test_an_end_during_the_snapshot_leaves_a_snapshot_that_says_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Arm.take_snapshot

    async def take_snapshot(arm: Arm) -> None:
        kill(PARTS["ENGINE_DIED"](arm.topology))
        await whole(arm)

    monkeypatch.setattr(Arm, "take_snapshot", take_snapshot)
    run = ended(write_fast(tmp_path / "campaign"), tmp_path, "ENGINE_DIED")
    for snapshot in events(run, "snapshot"):
        assert [row["usedBytes"] is None for row in snapshot["devices"]] == [False, True]
    assert {one["phase"] for one in events(run, "offer")} == {"native-warm"}


@pytest.mark.usefixtures("no_news")
@pytest.mark.parametrize("reason", PARTS)
def test_an_end_behind_the_last_main_request_is_found_when_all_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    monkeypatch.setattr(session, "ORDER", session.ORDER[:1])

    async def stop(stage: Topology) -> None:
        kill(PARTS[reason](stage))
        await stop_whole(stage)

    monkeypatch.setattr(Topology, "stop", stop)
    run = ended(write_fast(tmp_path / "campaign"), tmp_path, reason)
    assert len(events(run, "sample")) == session.PER_ARM
    told = [one["expected"] for one in sorted(events(run, "engine-stopped"), key=lambda one: str(one["worker"]))]
    assert told == [True, reason != "ENGINE_DIED"]


def test_an_engine_that_ran_already_and_goes_away_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process is not the runner's to watch: that it takes no connection any more is the only sign."""
    with serve() as engine:

        async def take_controls(attempt: Attempt, kinds: list[str]) -> None:
            engine.process.kill()
            engine.process.wait(20)

        monkeypatch.setattr(Attempt, "take_controls", take_controls)
        path = write_fast(tmp_path / "campaign", engine=f'urls = ["{engine.url}", "{engine.url}"]\n')
        path.write_text(path.read_text()[: path.read_text().index("[[comparison]]")])
        result = capture(path, "tiny-native", tmp_path / "runs", quiet=True)
    (outcome,) = events(result.run, "outcome")
    assert (outcome["outcome"], outcome["reason"]) == ("NATIVE_FAILURE", "ENGINE_DIED")
    assert outcome["message"] == "worker-1: the engine takes no connections any more"
    assert {one["status"] for one in events(result.run, "sample")} == {502}


def test_an_attempt_whose_engine_ends_behind_its_last_answer_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stop(stage: Topology) -> None:
        kill(stage.engines[0].process)  # type: ignore[arg-type]
        await stop_whole(stage)

    monkeypatch.setattr(Topology, "stop", stop)
    result = capture(write_fast(tmp_path / "campaign"), "tiny-native", tmp_path / "runs", quiet=True)
    assert result.outcome == "NATIVE_FAILURE"
    assert events(result.run, "outcome")[0]["reason"] == "ENGINE_DIED"
    assert {one["status"] for one in events(result.run, "sample")} == {200}


def test_answers_without_receipts_fail_the_audit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One exchange of the arm broke, so the counts may be unequal; yet what was answered has a receipt."""
    monkeypatch.setattr(session, "ORDER", session.ORDER[:1])

    async def stop(stage: Topology) -> None:
        await stop_whole(stage)
        for ledger in stage.ledgers.values():
            ledger.write_bytes(b"".join(ledger.read_bytes().splitlines(keepends=True)[:-2]))

    monkeypatch.setattr(Topology, "stop", stop)
    fault = ["--fault", "truncate", "--fault-from", "13", "--fault-until", "13"]
    run = ended(write_fast(tmp_path / "campaign", case=fault), tmp_path, "AUDIT_FAILED")
    assert "found 38 receipts, expected 40 to 42" in events(run, "aborted")[0]["message"]


LIMITED = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
os.execv(sys.argv[2], sys.argv[2:])
"""


def test_a_proxy_that_finds_no_room_to_record_ends_the_run_as_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def start(name: str, arguments: list[str], **more: Any) -> Process:
        if name == "the proxy of worker-2":
            arguments = [sys.executable, "-c", LIMITED, "8000", *arguments]
        return await start_process(name, arguments, **more)

    monkeypatch.setattr(topology, "start_process", start)
    run = ended(write_fast(tmp_path / "campaign"), tmp_path, "DISK_FULL")
    message = events(run, "aborted")[0]["message"]
    assert message.startswith("the proxy of worker-2 could not record what passed it: error: cannot write to ")


def test_the_limit_that_stands_for_a_full_disk_is_none_of_this_process() -> None:
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
