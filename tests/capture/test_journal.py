"""What was recorded stays readable, whatever ends the recording."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import subprocess
import sys
import threading
from datetime import datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from pathlib import Path

import pytest

from evidence.campaign import Campaign, read_campaign
from evidence.capture import journal as journals
from evidence.capture.journal import DiskFull, Journal, Seconds, encode, instant, open_run, read_journal
from evidence.errors import EvidenceError
from tests.campaign_folder import write_campaign


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    return read_campaign(write_campaign(tmp_path / "campaign"))


def test_a_run_folder_says_what_it_is(tmp_path: Path, campaign: Campaign) -> None:
    at = datetime(2026, 11, 30, 8, 15, 0, 123456, tzinfo=timezone.utc)
    journal = open_run(tmp_path / "runs", campaign, "tiny-memory", "comparison", at)
    journal.close()
    assert journal.folder.name == "tiny-memory-20261130t081500.123456z"
    record = json.loads((journal.folder / "run.json").read_text())
    assert record["campaignSha256"] == campaign.sha256
    assert record["startedAt"] == "2026-11-30T08:15:00.123456Z"
    assert (journal.folder / "campaign.toml").read_bytes() == campaign.content
    assert sorted(path.name for path in journal.folder.iterdir()) == [
        "bodies",
        "campaign.toml",
        "journal.jsonl",
        "logs",
        "run.json",
        "witness",
    ]
    assert [event["event"] for event in read_journal(journal.folder)] == ["run-started"]


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0.000000000"),
        (1, "0.000000001"),
        (1_234_567_891, "1.234567891"),
        (-5_000_000, "-0.005000000"),
        (86_400 * 10**9 + 1, "86400.000000001"),
    ],
)
def test_durations_keep_every_nanosecond(nanoseconds: int, text: str) -> None:
    assert encode({"t": Seconds(nanoseconds)}) == f'{{"t": {text}}}'
    assert json.loads(text, parse_float=Decimal) * 10**9 == nanoseconds


def test_not_a_number_is_never_written() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        encode({"ttftSeconds": float("nan")})


def test_a_body_is_stored_once_under_its_hash(tmp_path: Path, campaign: Campaign) -> None:
    journal = open_run(tmp_path / "runs", campaign, "tiny-rr", "attempt")
    names = {journal.body(b"one"), journal.body(b"one"), journal.body(b"")}
    journal.close()
    assert {path.name for path in (journal.folder / "bodies").iterdir()} == names
    for path in (journal.folder / "bodies").iterdir():
        assert hashlib.sha256(path.read_bytes()).hexdigest() == path.name


def test_half_a_character_is_written_as_a_question_mark(tmp_path: Path, campaign: Campaign) -> None:
    """JSON can say a lone surrogate, and so can a path that is no UTF-8; a file in UTF-8 cannot."""
    journal = open_run(tmp_path / "runs", campaign, "tiny-rr", "attempt")
    journal.write("sample", finishReason="st\ud800op")
    journal.close()
    assert read_journal(journal.folder)[-1]["finishReason"] == "st?op"


def test_instants_stay_in_order_though_the_wall_clock_is_set_back(
    tmp_path: Path, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = open_run(tmp_path / "runs", campaign, "tiny-rr", "attempt")
    before = journal.now()
    assert not journal.stepped

    class SetBack(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) - timedelta(hours=1)

    monkeypatch.setattr(journals, "datetime", SetBack)
    assert journal.stepped
    assert timedelta(0) <= journal.now() - before < timedelta(minutes=1)
    journal.close()


def test_a_torn_last_line_is_no_event(tmp_path: Path, campaign: Campaign) -> None:
    journal = open_run(tmp_path / "runs", campaign, "tiny-rr", "attempt")
    journal.write("offer", offer="attempt-001")
    journal.close()
    path = journal.folder / "journal.jsonl"
    whole = path.read_bytes()
    before = len(whole.splitlines(keepends=True)[0])
    for cut in range(before, len(whole)):
        path.write_bytes(whole[:cut])
        assert [event["event"] for event in read_journal(path)] == ["run-started"]


@pytest.mark.parametrize("line", [b"{", b"[1]", b'{"t": 1}', b'{"event": 5}', b"\xff"])
def test_a_malformed_line_within_is_an_error(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b'{"event": "run-started"}\n' + line + b'\n{"event": "run-ended"}\n')
    with pytest.raises(EvidenceError, match=r"journal\.jsonl, line 2: found no"):
        read_journal(path)


def test_one_event_is_one_write(tmp_path: Path, campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = open_run(tmp_path / "runs", campaign, "tiny-rr", "attempt")
    written: list[bytes] = []
    real = os.write
    monkeypatch.setattr(
        os, "write", lambda descriptor, content: (written.append(bytes(content)), real(descriptor, content))[1]
    )
    journal.write("offer", offer="attempt-001", message="zwei\nZeilen")
    monkeypatch.undo()
    journal.close()
    assert len(written) == 1
    assert written[0].count(b"\n") == 1
    assert read_journal(journal.folder)[-1]["message"] == "zwei\nZeilen"


class FullDisk:
    """A disk with `room` bytes left, and the reserve's bytes once the reserve is gone."""

    def __init__(self, journal: Journal, room: int) -> None:
        self.journal, self.room, self.real, self.freed = journal, room, os.write, False

    def write(self, descriptor: int, content: bytes) -> int:
        if descriptor != self.journal.descriptor:
            return self.real(descriptor, content)
        if not self.freed and not (self.journal.folder / ".reserve").exists():
            self.room, self.freed = self.room + 200, True
        if self.room <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = self.real(descriptor, content[: self.room])
        self.room -= written
        return written


def test_a_full_disk_is_one_error_and_what_was_recorded_stays(
    tmp_path: Path, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = open_run(tmp_path / "runs", campaign, "tiny-rr", "attempt")
    disk = FullDisk(journal, 150)
    monkeypatch.setattr(os, "write", disk.write)
    recorded: list[str] = []

    def record_until_full() -> None:
        while True:
            journal.write("offer", offer=f"attempt-{len(recorded) + 1:03d}")
            recorded.append("offer")

    with pytest.raises(DiskFull, match="no room to record") as caught:
        record_until_full()
    monkeypatch.undo()
    journal.close()
    assert caught.value.code == 4
    assert journal.full
    assert len(recorded) > 2
    assert len(read_journal(journal.folder)) == len(recorded) + 1
    assert (journal.folder / "journal.jsonl").read_bytes().endswith(b"\n")


def test_a_body_that_finds_no_room_leaves_no_half(tmp_path: Path, campaign: Campaign) -> None:
    """A real limit of the system on file sizes, in a process of its own."""
    program = f"""
import resource, signal
from pathlib import Path
from evidence.campaign import read_campaign
from evidence.capture.journal import DiskFull, open_run
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
journal = open_run(Path({str(tmp_path / "runs")!r}), read_campaign(Path({str(campaign.path)!r})), "tiny-rr", "attempt")
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
journal.body(b"x" * 4000)
try:
    journal.body(b"y" * 6000)
except DiskFull as error:
    print(journal.folder, error.message)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    folder = Path(done.stdout.split()[0])
    assert "no room to record" in done.stdout
    assert [path.name for path in (folder / "bodies").iterdir()] == [hashlib.sha256(b"x" * 4000).hexdigest()]


def test_a_runs_folder_that_cannot_be_written_is_refused(tmp_path: Path, campaign: Campaign) -> None:
    (tmp_path / "runs").write_text("a file")
    with pytest.raises(EvidenceError, match="the run folder cannot be made"):
        open_run(tmp_path / "runs", campaign, "tiny-rr", "attempt")


@pytest.mark.parametrize(
    "limit",
    [
        pytest.param(500_000, id="no-room-for-the-reserve"),
        pytest.param(1_500_000, id="no-room-for-a-body"),
    ],
)
def test_a_run_folder_that_finds_no_room_leaves_nothing(tmp_path: Path, campaign: Campaign, limit: int) -> None:
    """A real limit of the system on file sizes, in a process of its own."""
    program = f"""
import resource, signal
from pathlib import Path
from evidence.campaign import read_campaign
from evidence.capture.journal import open_run
from evidence.errors import EvidenceError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
campaign = read_campaign(Path({str(campaign.path)!r}))
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
try:
    open_run(Path({str(tmp_path / "runs")!r}), campaign, "tiny-rr", "attempt", bodies=[b"x" * 2_000_000])
except EvidenceError as error:
    print(error.code, error.message)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("4 ")
    assert list((tmp_path / "runs").iterdir()) == []


def test_the_folder_of_another_run_is_left_alone(tmp_path: Path, campaign: Campaign) -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=timezone.utc)
    other = tmp_path / "runs" / ".tiny-rr-20260102t030405.000006z"
    other.mkdir(parents=True)
    (other / "run.json").touch()
    with pytest.raises(EvidenceError, match="the run folder cannot be made"):
        open_run(tmp_path / "runs", campaign, "tiny-rr", "attempt", at)
    assert (other / "run.json").exists()


def test_events_and_bodies_may_come_from_any_thread(tmp_path: Path, campaign: Campaign) -> None:
    journal = open_run(tmp_path / "runs", campaign, "tiny-rr", "attempt")

    def record(number: int) -> None:
        for part in range(50):
            journal.write("offer", offer=f"{number}-{part}", requestSha256=journal.body(b"%d" % part))

    threads = [threading.Thread(target=record, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    journal.close()
    events = read_journal(journal.folder)
    assert len({event.get("offer") for event in events}) == 201
    assert [event["t"] for event in events] == sorted(event["t"] for event in events)
    assert len(list((journal.folder / "bodies").iterdir())) == 50


def test_instants_are_in_utc() -> None:
    assert instant(datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=timezone.utc)) == "2026-01-02T03:04:05.000006Z"
