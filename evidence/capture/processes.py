"""Child processes that cannot outlive the runner: started in their own group, watched, ended as a whole.

Each process has a watcher beside it (`supervise.py`) that holds the other end of a pipe. However the runner ends,
SIGKILL included, the pipe closes and the watcher ends the group.
"""

import asyncio
import contextlib
import os
import random
import select
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from evidence.errors import EvidenceError

WATCHER = Path(__file__).with_name("supervise.py")
PACKAGE_ROOT = Path(__file__).parents[2]
_PORTS = range(20000, 32768)  # below Linux's ephemeral range, so that no outgoing connection takes one meanwhile
_CLAIMS = 64
_CLAIMED: dict[int, socket.socket] = {}
"""The ports that were chosen last; whoever asked has long begun to listen when one leaves."""


@dataclass(frozen=True)
class Exit:
    """How a process ended: an exit code, or the number of the signal that ended it; `expected` if it was asked to."""

    exit_code: int | None
    signal: int | None
    expected: bool

    def describe(self) -> str:
        if self.signal is not None:
            return f"ended by signal {signal.Signals(self.signal).name}"
        return f"ended with exit code {self.exit_code}"


class Process:
    """A running child. `pid` is also its process group.

    `outcome` is its Exit as soon as it is known, and `died` is set then if nobody had asked for it; `ended` holds the
    same Exit once everything that it left behind is gone too.
    """

    def __init__(self, name: str, watcher: asyncio.subprocess.Process, log_path: Path) -> None:
        self.name = name
        self.log_path = log_path
        self.pid = 0
        self.outcome: Exit | None = None
        self.ended: asyncio.Future[Exit] = asyncio.get_running_loop().create_future()
        self.died = asyncio.Event()
        self.announced: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._watcher = watcher
        self._stopping = False
        self._handle: int | None = None
        self._listener: asyncio.Task[None] | None = None

    async def _begin(self) -> None:
        assert self._watcher.stdout is not None
        first = (await self._watcher.stdout.readline()).decode().strip()
        if not first.startswith("pid "):
            await self._watcher.wait()
            raise EvidenceError(f"{self.name} could not be started: {first.removeprefix('error ')}", code=4)
        self.pid = int(first[4:])
        with contextlib.suppress(OSError, AttributeError):  # gone already, or a system without them
            self._handle = os.pidfd_open(self.pid)
        self._listener = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        assert self._watcher.stdout is not None
        while line := (await self._watcher.stdout.readline()).decode("utf-8", "replace").strip():
            word, _, rest = line.partition(" ")
            if word == "ready" and not self.announced.done():
                self.announced.set_result(rest)
            elif word in ("exit", "signal"):
                number, _, asked = rest.partition(" ")
                code, killer = (int(number), None) if word == "exit" else (None, int(number))
                self._note(Exit(code, killer, asked == "asked"))
        await self._watcher.wait()
        if self.outcome is None:  # the watcher itself was killed, and took the process along
            self._note(Exit(None, int(signal.SIGKILL), self._stopping))
        assert self.outcome is not None
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
        self.ended.set_result(self.outcome)
        self.announced.cancel()

    def _note(self, outcome: Exit) -> None:
        self.outcome = outcome
        if not outcome.expected:
            self.died.set()

    def has_ended(self) -> bool:
        """Whether it has ended by now, also while the news of that is still on its way here."""
        if self.outcome is None and self._handle is not None:
            end = select.poll()
            end.register(self._handle, select.POLLIN)
            return bool(end.poll(0))
        return self.outcome is not None

    async def announcement(self, seconds: float) -> str:
        """What the process printed after `ready `; an EvidenceError if it ends or `seconds` pass without it."""
        try:
            return await asyncio.wait_for(asyncio.shield(self.announced), seconds)
        except asyncio.TimeoutError:
            pass
        except asyncio.CancelledError:
            if not self.announced.cancelled():  # then it is the caller who was cancelled
                raise
        fate = self.ended.result().describe() if self.ended.done() else f"was not ready within {seconds} s"
        raise EvidenceError(f"{self.name} {fate}: {read_tail(self.log_path)}", f"see {self.log_path}", code=4)

    async def stop(self, grace: float = 10.0) -> Exit:
        """End the whole group: SIGTERM, after `grace` seconds SIGKILL. May be called again."""
        if not self.ended.done() and not self._stopping:
            self._stopping = True
            assert self._watcher.stdin is not None
            with contextlib.suppress(OSError):
                self._watcher.stdin.write(f"stop {grace}\n".encode())
                await self._watcher.stdin.drain()
        return await asyncio.shield(self.ended)


async def start_process(
    name: str,
    arguments: Sequence[str],
    *,
    log_path: Path,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    grace: float = 5.0,
) -> Process:
    """Start `arguments` under a watcher, output appended to `log_path`; `environment` is added to the runner's own.

    `grace` is what the process gets between SIGTERM and SIGKILL when the runner dies. Raises EvidenceError (code 4)
    when the program cannot be started.
    """
    log_path.parent.mkdir(parents=True, exist_ok=True)
    with log_path.open("ab") as log:
        watcher = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-S", "-B", str(WATCHER), str(grace), *arguments,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=log,
            env={**os.environ, **(environment or {})}, cwd=folder, start_new_session=True,
        )  # fmt: skip
    process = Process(name, watcher, log_path)
    await process._begin()
    return process


def own_module(module: str) -> tuple[list[str], dict[str, str]]:
    """The command and environment that run a module of this package with this interpreter, from any folder."""
    inherited = os.environ.get("PYTHONPATH")
    path = str(PACKAGE_ROOT) + (os.pathsep + inherited if inherited else "")
    return [sys.executable, "-B", "-m", module], {"PYTHONPATH": path}


def find_group(pid: int) -> list[int]:
    """Ids of the live processes in the group that `pid` leads, and of their descendants, sorted."""
    members: set[int] = set()
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir() if Path("/proc").is_dir() else ():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError):
                state, parent, group = (entry / "stat").read_bytes().rpartition(b")")[2].split()[:3]
                if state != b"Z":
                    parents[int(entry.name)] = int(parent)
                    if int(group) == pid or int(entry.name) == pid:
                        members.add(int(entry.name))
    grew = True
    while grew:
        below = {child for child, parent in parents.items() if parent in members} - members
        members |= below
        grew = bool(below)
    return sorted(members)


def is_port_free(host: str, port: int) -> bool:
    """True if a server could listen there now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
        return True


def choose_port(host: str = "127.0.0.1") -> int:
    """A free port outside the system's ephemeral range, and not one that was chosen a moment ago for who is yet to listen."""
    chooser = random.SystemRandom()
    for _ in range(1000):
        port = chooser.choice(_PORTS)
        if is_port_free(host, port) and _claim(port):
            return port
    raise EvidenceError(f"no free port between {_PORTS.start} and {_PORTS.stop - 1} on {host}", code=4)


def _claim(port: int) -> bool:
    """Claim a port for this process, against others too where a name can be held that goes with its process (Linux)."""
    if port in _CLAIMED:
        return False
    named = sys.platform == "linux"
    claim = socket.socket(socket.AF_UNIX if named else socket.AF_INET)
    try:
        if named:
            claim.bind(f"\0serving-evidence-port-{port}")
    except OSError:
        claim.close()
        return False
    _CLAIMED[port] = claim
    if len(_CLAIMED) > _CLAIMS:
        _CLAIMED.pop(next(iter(_CLAIMED))).close()
    return True


def read_tail(path: Path, lines: int = 3) -> str:
    """The last lines of a log, joined for an error message."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 4096))
            kept = file.read().decode("utf-8", "replace").strip().splitlines()[-lines:]
    except OSError:
        kept = []
    return " | ".join(line.strip() for line in kept) or "it wrote nothing to its log"
