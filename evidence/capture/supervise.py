"""Watch over one child process and everything it starts, so that a killed runner leaves nothing behind.

Run as `python -I -S supervise.py GRACE PROGRAM ARGUMENT...`, standard library alone. The program becomes the
leader of its own session and process group. The conversation is by lines:

    standard output   `pid N` once started, `error TEXT` if it could not be, the first line `ready ...` (of at most 4 KiB) of the program's
                      own output, and at its end `exit CODE` or `signal NUMBER`, with ` asked` behind it when it was
                      asked to end before; what it left behind is ended after that, and then this output
    standard input    `stop SECONDS` asks for the end; the end of the input (the runner died) asks the same with GRACE

The end is SIGTERM to the group, and after the grace SIGKILL to the group and to every descendant: orphans become
children of this process (PR_SET_CHILD_SUBREAPER), so that a grandchild with a session of its own is found too. Both
output streams of the program go to standard error, which the runner has opened on the log.
"""

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from types import FrameType

PIPE_MOST = 1 << 20
WORDS_MOST = 4096
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def say(line: str) -> None:
    """Tell the runner; a runner that is gone no longer listens, which is no error."""
    with contextlib.suppress(OSError):
        os.write(1, line.encode() + b"\n")


def find_descendants(root: int) -> list[int]:
    """Process ids below `root`, zombies left out."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc") if os.path.isdir("/proc") else []:  # noqa: PTH112, PTH208 - starts faster
        if entry.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{entry}/stat", "rb") as file:  # noqa: PTH123
                state, parent = file.read().rpartition(b")")[2].split()[:2]
                if state != b"Z":
                    children.setdefault(int(parent), []).append(int(entry))
    found, queue = [], [root]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found


def _signal_all(group: int, number: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(group, number)
    if number == signal.SIGKILL:
        for pid in find_descendants(os.getpid()):
            with contextlib.suppress(OSError):
                os.kill(pid, number)


def _reap() -> dict[int, int]:
    """Wait for every child that has ended: process id to wait status."""
    ended = {}
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            ended[pid] = status
    return ended


class Watch:
    """The loop: output of the child, words of the runner, ends of processes."""

    def __init__(self, child: "subprocess.Popen[bytes]", grace: float, wake: int) -> None:
        self.child, self.grace, self.wake = child, grace, wake
        self.deadline: float | None = None
        self.status: int | None = None
        self.asked = False
        self.heard = b""
        self.announced = False

    def ask_to_stop(self, seconds: float) -> None:
        if self.deadline is None:
            self.deadline = time.monotonic() + seconds
            self.asked = True
            _signal_all(self.child.pid, signal.SIGTERM)

    def hear(self, data: bytes) -> bool:
        """Words of the runner; False at the end of them."""
        if not data:
            self.ask_to_stop(self.grace)
            return False
        for line in data.splitlines():
            if line.startswith(b"stop "):
                self.ask_to_stop(float(line[5:]))
        return True

    def relay(self, data: bytes) -> bool:
        """Output of the child goes to the log, its first `ready` line to the runner too; False at its end."""
        with contextlib.suppress(OSError):  # a full disk must not stop the engine by a blocked pipe
            os.write(2, data)
        if not self.announced:
            *lines, self.heard = (self.heard + data).split(b"\n")
            for line in lines:
                if line.startswith(b"ready ") and len(line) <= WORDS_MOST:
                    self.announced = True
                    say(line.decode("utf-8", "replace").strip())
                    break
            # Of a line without an end, no more is kept than shows that it is none of ours.
            self.heard = self.heard[: WORDS_MOST + 1]
        return bool(data)

    def run(self) -> None:
        """Until the child has ended and what it left behind is gone."""
        assert self.child.stdout is not None
        output = self.child.stdout.fileno()
        actions: dict[int, Callable[[bytes], bool]] = {0: self.hear, output: self.relay, self.wake: lambda data: True}
        while self.status is None:
            timeout = None if self.deadline is None else max(0.0, self.deadline - time.monotonic())
            ready, _, _ = select.select(list(actions), [], [], timeout)
            if self.deadline is not None and time.monotonic() >= self.deadline:
                _signal_all(self.child.pid, signal.SIGKILL)
                self.deadline = time.monotonic() + 1.0
            self.status = _reap().get(self.child.pid)  # before the words: an end that nobody had asked for is told so
            if self.status is not None:
                break
            for descriptor in ready:
                if not actions[descriptor](os.read(descriptor, 65536)):
                    del actions[descriptor]
        self._drain(output)
        self._announce(self.status)
        self._sweep()
        self._drain(output)

    def _drain(self, output: int) -> None:
        """Put into the log what the child wrote until now: what a pipe can hold, though something it left goes on writing."""
        for _ in range(PIPE_MOST // 65536):
            if not select.select([output], [], [], 0)[0] or not self.relay(os.read(output, 65536)):
                break

    def _announce(self, status: int) -> None:
        """Tell the end at once: sweeping may take seconds, in which the runner would go on with a dead process."""
        end = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit {os.WEXITSTATUS(status)}"
        say(end + " asked" * self.asked)

    def _sweep(self) -> None:
        """Give what the leader left behind the rest of its grace, then end it."""
        limit = time.monotonic() + 1.0 if self.deadline is None else self.deadline
        _signal_all(self.child.pid, signal.SIGTERM)
        while find_descendants(os.getpid()) and time.monotonic() < limit:
            time.sleep(0.02)
            _reap()
        for _ in range(100):
            if not find_descendants(os.getpid()):
                break
            _signal_all(self.child.pid, signal.SIGKILL)
            time.sleep(0.02)
            _reap()


def _wake_on_signals() -> int:
    """A descriptor that becomes readable when a child ends."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)

    def note(number: int, frame: FrameType | None) -> None:
        pass

    signal.signal(signal.SIGCHLD, note)
    return read


def main(arguments: list[str]) -> int:
    grace, command = float(arguments[0]), arguments[1:]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    wake = _wake_on_signals()

    def prepare() -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # should this watcher itself be killed

    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=2,
            start_new_session=True,
            preexec_fn=prepare,  # safe: this process has one thread
        )
    except OSError as problem:
        say(f"error {problem.errno} {problem.strerror}: {command[0]}")
        return 127
    say(f"pid {child.pid}")
    Watch(child, grace, wake).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
