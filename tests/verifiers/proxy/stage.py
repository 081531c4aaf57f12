"""A stage for transcripts: the real proxy in its own process, and both its neighbours as raw sockets.

A transcript is a list of steps, played one after the other in this thread. Because each step that
expects bytes waits for exactly those bytes, a transcript also shows that nothing waits for the end of a body.

    ("C>", bytes)  the client sends            ("U<", bytes)  the worker must get exactly these
    ("U>", bytes)  the worker sends            ("C<", bytes)  the client must get exactly these
    ("C|",)        the client shuts its half   ("U<|",)       the worker sees the end of its input
    ("U|",)        the worker closes           ("C<|",)       the client sees the end of its input
    ("C!",)        the client resets           ("U<!",)       the worker sees end or reset
    ("U!",)        the worker resets           ("C<!",)       the client sees a reset
    ("C~", regex)  the client gets an answer of the proxy's own that matches, and the end of its input
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).parents[3] / "verifiers" / "receipt-proxy.py"
PATIENCE = 20.0  # seconds until a missing event fails the test
EMPTY = hashlib.sha256(b"").hexdigest()


def load_proxy() -> Any:
    """The script as a module, for tests of its framing without sockets."""
    spec = importlib.util.spec_from_file_location("receipt_proxy", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["receipt_proxy"] = module
    spec.loader.exec_module(module)
    return module


def listen() -> socket.socket:
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    listener.settimeout(PATIENCE)
    return listener


def command(ledger: Path, bodies: Path, upstream: str, *options: str, python: str = sys.executable) -> list[str]:
    where = ["--upstream", upstream, "--worker", "worker-1", "--ledger", str(ledger), "--bodies", str(bodies)]
    return [python, "-I", "-B", str(SCRIPT), *where, *options]


class Witness:
    """One proxy process, its ledger and its bodies; `worker` is the listener of the worker it stands before."""

    def __init__(self, folder: Path, *options: str, worker: bool = True, python: str = sys.executable, **popen: Any):
        self.ledger = folder / "worker-1.jsonl"
        self.opens = folder / "worker-1.jsonl.open"
        self.bodies = folder / "bodies"
        self.worker = listen()
        port = self.worker.getsockname()[1]
        if not worker:
            self.worker.close()
        self.process = subprocess.Popen(
            command(self.ledger, self.bodies, f"http://127.0.0.1:{port}", *options, python=python),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **popen,
        )
        assert self.process.stdout is not None
        ready = self.process.stdout.readline()
        if not ready:
            raise AssertionError(f"the proxy did not start: {self.process.communicate()[1]}")
        word, _, address = ready.strip().partition(" ")
        assert word == "ready"
        host, _, number = address.rpartition(":")
        self.address = (host, int(number))
        self.read = 0

    def __enter__(self) -> Witness:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
        self.worker.close()

    def connect(self) -> socket.socket:
        client = socket.create_connection(self.address, timeout=PATIENCE)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return client

    def receipts(self, number: int) -> list[dict[str, Any]]:
        """The next `number` receipts, awaited."""
        self.read += number
        deadline = time.monotonic() + PATIENCE
        while True:
            lines = self.ledger.read_bytes().split(b"\n")[:-1]  # a last one without its end is being written
            if len(lines) >= self.read:
                return [json.loads(line) for line in lines[self.read - number : self.read]]
            assert time.monotonic() < deadline, f"{len(lines)} receipts, {self.read} expected"
            time.sleep(0.002)

    def stop(self, expected: int = 0) -> str:
        """SIGTERM, await the end, return what stood on stderr."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.end(expected)

    def end(self, expected: int) -> str:
        _, errors = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == expected, errors
        return str(errors)

    def check_ledger(self) -> list[dict[str, Any]]:
        """What holds of every ledger: one receipt a sequence, an open line for each, every body in its place."""
        receipts = [json.loads(line) for line in self.ledger.read_bytes().splitlines()]
        assert len(receipts) == self.read, "more receipts than exchanges"
        sequences = sorted(receipt["sequence"] for receipt in receipts)
        assert sequences == list(range(1, len(receipts) + 1))
        opened = {json.loads(line)["sequence"] for line in self.opens.read_bytes().splitlines()}
        assert opened == {receipt["sequence"] for receipt in receipts if receipt["method"]}
        cited = {receipt[key] for receipt in receipts for key in ("requestSha256", "responseSha256")}
        assert {path.name for path in self.bodies.iterdir()} == cited
        for path in self.bodies.iterdir():
            assert hashlib.sha256(path.read_bytes()).hexdigest() == path.name
        return receipts

    def body(self, digest: str) -> bytes:
        return (self.bodies / digest).read_bytes()


class Stage:
    """Plays one transcript through a witness."""

    def __init__(self, witness: Witness) -> None:
        self.witness = witness
        self.client = witness.connect()
        self._worker: socket.socket | None = None

    @property
    def worker(self) -> socket.socket:
        if self._worker is None:
            self._worker, _ = self.witness.worker.accept()
            self._worker.settimeout(PATIENCE)
            self._worker.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._worker

    def play(self, steps: list[tuple[Any, ...]]) -> None:
        for number, (what, *rest) in enumerate(steps):
            side = self.client if what[0] == "C" else self.worker
            act = what[1:]
            try:
                if act == ">":
                    side.sendall(rest[0])
                elif act == "<":
                    found = receive(side, len(rest[0]))
                    assert found == rest[0]
                elif act == "|":
                    side.shutdown(socket.SHUT_WR) if what[0] == "C" else side.close()
                elif act == "!":
                    side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    side.close()
                elif act == "<|":
                    assert side.recv(1) == b""
                elif act == "<!":
                    ended_by = end_of(side)
                    assert ended_by == "reset" or what[0] == "U"
                elif act == "~":
                    answer = receive_all(side)
                    assert re.fullmatch(rest[0], answer, re.DOTALL), answer
                else:
                    raise ValueError(what)
            except (AssertionError, OSError) as error:
                raise AssertionError(f"step {number} {what}: {error!r}") from error

    def forget_worker(self) -> None:
        """The next step of the worker is on the next connection."""
        self._worker = None

    def close(self) -> None:
        self.client.close()
        if self._worker is not None:
            self._worker.close()


def receive(side: socket.socket, length: int) -> bytes:
    """Exactly `length` bytes, fewer if the input ends before."""
    found = b""
    while len(found) < length:
        data = side.recv(length - len(found))
        if not data:
            break
        found += data
    return found


def receive_all(side: socket.socket) -> bytes:
    found = b""
    while data := side.recv(65536):
        found += data
    return found


def end_of(side: socket.socket) -> str:
    """How the input of this socket ends, whatever comes before."""
    try:
        while side.recv(65536):
            pass
    except ConnectionResetError:
        return "reset"
    return "end"


def files_under(folder: Path) -> bytes:
    """Everything under a folder, names and bytes, to search it for what must not be there."""
    found = b""
    for root, _, names in os.walk(folder):
        for name in names:
            found += name.encode() + b"\n" + (Path(root) / name).read_bytes() + b"\n"
    return found
