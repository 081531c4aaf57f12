"""No process outlives the runner, and how each ended is known."""

import asyncio
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evidence.capture import processes, supervise
from evidence.capture.processes import PACKAGE_ROOT, Exit, choose_port, find_group, is_port_free, start_process
from evidence.errors import EvidenceError

# A child that starts a grandchild in the group and one with a session of its own, then says all three ids.
FAMILY = """
import os, subprocess, sys, time
near = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
far = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"], start_new_session=True)
print("ready", os.getpid(), near.pid, far.pid, flush=True)
time.sleep(600)
"""
DEAF = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready x', flush=True); time.sleep(600)"
)


def python(code: str) -> list[str]:
    return [sys.executable, "-S", "-c", code]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def wait_until_gone(pids: list[int], seconds: float = 15) -> list[int]:
    deadline = time.monotonic() + seconds
    while (left := [pid for pid in pids if is_alive(pid)]) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


def test_the_exit_code_and_the_log_are_kept(tmp_path: Path) -> None:
    async def go() -> None:
        process = await start_process("child", python("print('words'); raise SystemExit(7)"), log_path=tmp_path / "log")
        end = await asyncio.wait_for(process.ended, 10)
        assert (end.exit_code, end.signal, end.expected) == (7, None, False)
        assert process.died.is_set()
        assert end.describe() == "ended with exit code 7"

    asyncio.run(go())
    assert (tmp_path / "log").read_text() == "words\n"


def test_a_signal_is_told_from_an_exit(tmp_path: Path) -> None:
    async def go() -> None:
        process = await start_process("child", python("import time; time.sleep(600)"), log_path=tmp_path / "log")
        os.kill(process.pid, signal.SIGSEGV)
        end = await asyncio.wait_for(process.ended, 10)
        assert (end.exit_code, end.signal) == (None, signal.SIGSEGV)
        assert end.describe() == "ended by signal SIGSEGV"

    asyncio.run(go())


def test_an_end_that_came_before_the_word_to_stop_is_not_expected(tmp_path: Path) -> None:
    async def go() -> None:
        process = await start_process("child", python("import time; time.sleep(600)"), log_path=tmp_path / "log")
        assert not process.has_ended()
        os.kill(process.pid, signal.SIGKILL)
        end = select.poll()
        end.register(os.pidfd_open(process.pid), select.POLLIN)
        assert end.poll(10_000)
        assert process.has_ended()
        assert process.outcome is None  # no news of it yet: this process has not read any
        assert await process.stop() == Exit(None, signal.SIGKILL, False)
        assert process.has_ended()

    asyncio.run(go())


LEAVING = """
import signal, subprocess, sys
child = subprocess.Popen([sys.executable, "-S", "-c", sys.argv[1]], stdout=subprocess.PIPE)
child.stdout.readline()
print("last words")
raise SystemExit(3)
"""


def test_an_end_is_told_before_what_is_left_behind_is_gone(tmp_path: Path) -> None:
    async def go() -> None:
        process = await start_process("parent", [*python(LEAVING), DEAF], log_path=tmp_path / "log")
        await asyncio.wait_for(process.died.wait(), 20)
        assert process.outcome == Exit(3, None, False)
        assert not process.ended.done()
        assert b"last words" in (tmp_path / "log").read_bytes()
        assert (await process.ended) == process.outcome

    asyncio.run(go())


def test_stop_ends_the_whole_family_and_is_expected(tmp_path: Path) -> None:
    async def go() -> list[int]:
        process = await start_process("family", python(FAMILY), log_path=tmp_path / "log")
        pids = [int(word) for word in (await process.announcement(20)).split()]
        assert pids[0] == process.pid
        assert find_group(process.pid) == sorted(pids)
        end = await process.stop(0.3)
        assert end.expected
        assert not process.died.is_set()
        assert await process.stop() == end
        return pids

    assert wait_until_gone(asyncio.run(go())) == []


def test_a_deaf_process_is_killed_after_its_grace(tmp_path: Path) -> None:
    async def go() -> None:
        process = await start_process("deaf", python(DEAF), log_path=tmp_path / "log")
        await process.announcement(20)
        end = await asyncio.wait_for(process.stop(0.1), 10)
        assert end.signal == signal.SIGKILL

    asyncio.run(go())


RUNNER = """
import asyncio, pathlib, sys
sys.path.insert(0, sys.argv[1])
from evidence.capture.processes import start_process
async def go():
    family = await start_process("family", [sys.executable, "-S", "-c", sys.argv[3]], log_path=pathlib.Path(sys.argv[2]), grace=0.2)
    print(await family.announcement(20), flush=True)
    await asyncio.sleep(600)
asyncio.run(go())
"""


def test_a_killed_runner_leaves_nothing_behind(tmp_path: Path) -> None:
    runner = subprocess.Popen(
        [sys.executable, "-c", RUNNER, str(PACKAGE_ROOT), str(tmp_path / "log"), FAMILY], stdout=subprocess.PIPE
    )
    assert runner.stdout is not None
    pids = [int(word) for word in runner.stdout.readline().split()]
    assert len(pids) == 3
    assert all(is_alive(pid) for pid in pids)
    runner.send_signal(signal.SIGKILL)
    runner.wait(10)
    assert wait_until_gone(pids) == []


def test_a_killed_watcher_takes_the_process_along(tmp_path: Path) -> None:
    async def go() -> int:
        process = await start_process("child", python("import time; time.sleep(600)"), log_path=tmp_path / "log")
        os.kill(process._watcher.pid, signal.SIGKILL)
        end = await asyncio.wait_for(process.ended, 10)
        assert not end.expected
        return process.pid

    assert wait_until_gone([asyncio.run(go())]) == []


def test_a_program_that_is_not_there_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(EvidenceError, match="No such file or directory: /no/such/program"):
        asyncio.run(start_process("thing", ["/no/such/program"], log_path=tmp_path / "log"))


def test_a_process_that_ends_before_its_announcement_says_why(tmp_path: Path) -> None:
    async def go() -> None:
        process = await start_process("child", python("raise SystemExit('cannot do it')"), log_path=tmp_path / "log")
        await process.announcement(20)

    with pytest.raises(EvidenceError, match="exit code 1: cannot do it"):
        asyncio.run(go())


def test_an_announcement_that_does_not_come_is_an_error(tmp_path: Path) -> None:
    async def go() -> None:
        process = await start_process("mute", python("import time; time.sleep(600)"), log_path=tmp_path / "log")
        try:
            await process.announcement(0.05)
        finally:
            await process.stop(0)

    with pytest.raises(EvidenceError, match="mute was not ready within"):
        asyncio.run(go())


def test_a_chosen_port_is_free_and_not_ephemeral() -> None:
    port = choose_port()
    assert is_port_free("127.0.0.1", port)
    assert 20000 <= port < 32768


def test_a_port_is_chosen_once_though_nobody_listens_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    start = processes.choose_port()
    found = [port for port in range(start + 1, min(start + 40, 32767)) if processes.is_port_free("127.0.0.1", port)]
    ports = range(found[0], found[0] + 2)
    monkeypatch.setattr(processes, "_PORTS", ports)
    ask = (
        "from evidence.capture import processes\n"
        f"processes._PORTS = range({ports.start}, {ports.stop})\n"
        "try:\n    print(processes.choose_port())\nexcept processes.EvidenceError as error:\n    print(error.code)\n"
    )
    first = processes.choose_port()
    other = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True).stdout.strip()
    assert {first, int(other)} == set(ports)
    assert processes.choose_port() == int(other)  # its process is gone, and its claim with it
    with pytest.raises(processes.EvidenceError, match="no free port"):
        processes.choose_port()
    again = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True).stdout.strip()
    assert again == "4"


def test_claims_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_CLAIMS", 3)
    monkeypatch.setattr(processes, "_CLAIMED", {})
    chosen = [processes.choose_port() for _ in range(5)]
    assert list(processes._CLAIMED) == chosen[-3:]


def test_a_line_that_only_begins_like_an_announcement_is_none(tmp_path: Path) -> None:
    """An engine's own `ready` line, longer than whoever listens would take, and one that never ends."""
    words = "import os\nos.write(1, b'ready ' + bytes(300_000))\nraise SystemExit(3)"

    async def go() -> None:
        process = await start_process("wordy", python(words), log_path=tmp_path / "log")
        assert (await asyncio.wait_for(process.ended, 20)).exit_code == 3
        assert process.announced.cancelled()

    asyncio.run(go())
    assert (tmp_path / "log").stat().st_size == 300_006


def test_what_is_kept_of_a_line_without_an_end_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(supervise, "say", said.append)
    monkeypatch.setattr(supervise.os, "write", lambda descriptor, data: len(data))
    watch = supervise.Watch(None, 1.0, -1)  # type: ignore[arg-type]
    for _ in range(1000):
        watch.relay(b"x" * 65536)
    assert len(watch.heard) <= supervise.WORDS_MOST + 1
    watch.relay(b"ready to confuse\nready 127.0.0.1:1\n")
    assert said == ["ready 127.0.0.1:1"]


def test_an_end_is_told_though_what_is_left_behind_writes_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = []
    monkeypatch.setattr(supervise.select, "select", lambda *which: (which[0], [], []))
    monkeypatch.setattr(supervise.os, "read", lambda descriptor, size: reads.append(size) or b"y" * size)
    monkeypatch.setattr(supervise.os, "write", lambda descriptor, data: len(data))
    supervise.Watch(None, 1.0, -1)._drain(9)  # type: ignore[arg-type]
    assert sum(reads) == supervise.PIPE_MOST
