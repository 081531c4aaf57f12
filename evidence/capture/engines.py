"""Engines: processes that the runner starts, waits for until they give a real token, identifies, and stops.

`start_engine` writes the launch arguments of the adapter, the campaign and the setting under comparison; an engine
that runs already is `attach_engine`d by its URL. Whatever keeps an engine from serving is a `SetupFailure` with the
outcome code of docs/format.md, section 5.
"""

import asyncio
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evidence.campaign import expanded
from evidence.capture.adapters import Adapter, find_adapter
from evidence.capture.answer import parse
from evidence.capture.exchange import Answer, ExchangeFailed, exchange
from evidence.capture.launch import HOST, EngineSpec, Launch, SetupFailure, check_setup, write_launch
from evidence.capture.processes import Exit, Process, is_port_free, read_tail, start_process
from evidence.errors import EvidenceError

NOTHING = "nothing answered"
CUT_SECONDS = 0.25


@dataclass(frozen=True)
class Ready:
    """The exchange that proved a real token: bodies as sent and received, and seconds waited for it."""

    request: bytes
    response: bytes
    seconds: float

    @property
    def request_sha256(self) -> str:
        return hashlib.sha256(self.request).hexdigest()

    @property
    def response_sha256(self) -> str:
        return hashlib.sha256(self.response).hexdigest()


@dataclass
class Engine:
    """A serving engine at `url`. Without a process when the runner did not start it."""

    spec: EngineSpec
    adapter: Adapter
    worker: str
    device: str
    url: str
    log_path: Path | None
    launch: Launch | None
    process: Process | None
    model_name: str | None = None
    died: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def arguments(self) -> tuple[str, ...]:
        return self.launch.arguments if self.launch else ()

    @property
    def arguments_sha256(self) -> str:
        return self.launch.sha256 if self.launch else hashlib.sha256(b"").hexdigest()

    @property
    def environment(self) -> Mapping[str, str]:
        return self.launch.environment if self.launch else {}

    @property
    def pid(self) -> int | None:
        """The leader of the engine's process group."""
        return self.process.pid if self.process else None

    async def ready(self) -> Ready:
        """Wait for a real token, not for /health only.

        Raises SetupFailure: ENGINE_DIED, NOT_READY after the spec's time, ACCESS_DENIED when the engine says 401 or 403.
        """
        clock = asyncio.get_running_loop().time
        begun = clock()
        deadline = begun + self.spec.ready_timeout_seconds
        attempt = asyncio.create_task(self._ask_until(deadline))
        ended = asyncio.create_task(self.died.wait())
        try:
            await asyncio.wait({attempt, ended}, return_when=asyncio.FIRST_COMPLETED)
            if not attempt.done():
                raise self._describe_death()
            request, answer = attempt.result()
            return Ready(request, answer.body, clock() - begun)
        finally:
            attempt.cancel()
            ended.cancel()

    async def _ask_until(self, deadline: float) -> tuple[bytes, Answer]:
        clock, pause, seen = asyncio.get_running_loop().time, 0.02, NOTHING
        while (left := deadline - clock()) > 0:
            try:
                name = await self._find_name(left)
                path, request = _ask_for_token(self.adapter, self.spec.arguments, name)
                answer = await exchange(self.url + path, "POST", request, seconds=max(0.01, deadline - clock()))
                if answer.status in (401, 403):
                    raise SetupFailure("ACCESS_DENIED", f"engine {self.spec.id}: {path} answers {answer.status}")
                if answer.status == 200 and _holds_token(answer.body):
                    return request, answer
                seen = f"{path} answers {answer.status}: {answer.body[:120].decode('utf-8', 'replace')}"
            except ExchangeFailed as problem:
                if left > CUT_SECONDS or seen == NOTHING:  # what the deadline cut short says less than the one before
                    seen = str(problem)
            await asyncio.sleep(min(pause, max(0.0, deadline - clock())))
            pause = min(0.25, pause * 1.5)
        raise SetupFailure(
            "NOT_READY",
            f"engine {self.spec.id} ({self.worker}): no token within {self.spec.ready_timeout_seconds:g} s: {seen}",
            f"see {self.log_path}, or raise ready_timeout_seconds" if self.log_path else "is it still running?",
        )

    async def _find_name(self, seconds: float) -> str:
        """The model's name in requests: what /v1/models lists first, else its folder."""
        if self.model_name is None:
            fallback = Path(self.spec.model or self.spec.id).name
            if "models" in self.adapter.lacks:
                self.model_name = fallback
            else:
                answer = await exchange(self.url + "/v1/models", seconds=seconds)
                if answer.status >= 500:
                    raise ExchangeFailed(f"/v1/models answers {answer.status}")
                self.model_name = _first_model(answer.body) or fallback
        return self.model_name

    def _describe_death(self) -> SetupFailure:
        fate = self.process.outcome.describe() if self.process and self.process.outcome else "ended"
        tail = read_tail(self.log_path) if self.log_path else ""
        return SetupFailure(
            "ENGINE_DIED", f"engine {self.spec.id} ({self.worker}) {fate}: {tail}", f"see {self.log_path}"
        )

    async def stop(self, grace: float = 10.0) -> Exit | None:
        """End the whole group: SIGTERM, then SIGKILL. None for an engine that the runner did not start."""
        return await self.process.stop(grace) if self.process else None


def _ask_for_token(adapter: Adapter, arguments: Sequence[str], name: str) -> tuple[str, bytes]:
    """Path and body of the smallest request whose answer proves that the model computes."""
    if ("chat" in adapter.lacks and "--upstreams-file" not in arguments) or "pooling" in arguments:
        return "/v1/embeddings", json.dumps({"model": name, "input": "Hello"}).encode()
    messages = [{"role": "user", "content": "Hello"}]
    return "/v1/chat/completions", json.dumps(
        {"model": name, "messages": messages, "max_tokens": 1, "temperature": 0, "stream": False}
    ).encode()


def _holds_token(body: bytes) -> bool:
    """Whether a non-streamed answer holds text, reasoning, an embedding, or at least counts a token."""
    try:
        value = parse(body)
        if value.get("data"):
            return bool(value["data"][0]["embedding"])
        message = value["choices"][0]["message"]
        text = message.get("content") or message.get("reasoning_content") or message.get("reasoning")
        return bool(text) or (value.get("usage") or {}).get("completion_tokens", 0) >= 1
    except (ValueError, KeyError, IndexError, TypeError, AttributeError):
        return False


def _first_model(body: bytes) -> str | None:
    """The first model of a list in OpenAI's form, or in SIE's own."""
    try:
        value = parse(body)
        return str(value["data"][0]["id"] if "data" in value else value["models"][0]["name"])
    except (ValueError, KeyError, IndexError, TypeError):
        return None


async def start_engine(
    spec: EngineSpec,
    *,
    worker: str,
    device: str,
    port: int,
    setting: tuple[str, str] | None,
    log_path: Path,
    arguments: Sequence[str] = (),
    model: str | None = None,
    served_name: str | None = None,
    gated: bool = False,
) -> Engine:
    """Start one worker; it listens on 127.0.0.1:`port` once `await engine.ready()` returns.

    Raises SetupFailure (see check_setup), EvidenceError when the port is taken.
    """
    model = model if model is not None else spec.model and expanded(spec.model)
    adapter = find_adapter(spec.adapter)
    if adapter.needs_model or model is not None or gated:
        # before the launch is written: a gated model's path may hang on a variable that is not set
        if model is None and gated:
            raise SetupFailure("ACCESS_DENIED", f"engine {spec.id}: the model is gated and no files of it are named")
        if model is None:
            raise SetupFailure("MODEL_NOT_FOUND", f"engine {spec.id}: no model is named, or its variable is not set")
    for word in spec.program:
        if expanded(word) is None:
            raise SetupFailure("PROGRAM_NOT_FOUND", f"engine {spec.id}: program {word}: its variable is not set")
    launch = write_launch(
        spec, device=device, port=port, worker=worker, setting=setting, arguments=arguments, model=model,
        served_name=served_name,
    )  # fmt: skip
    check_setup(spec, launch, model=model, gated=gated, folder=log_path.parent)
    if not is_port_free(HOST, port):
        raise EvidenceError(f"engine {spec.id}: port {port} on {HOST} is in use", "stop what listens there")
    process = await start_process(
        f"engine {spec.id} ({worker})", launch.words, log_path=log_path, environment=launch.variables,
        folder=launch.folder,
    )  # fmt: skip
    return Engine(
        spec, adapter, worker, device, f"http://{HOST}:{port}", log_path, launch, process, died=process.died
    )  # fmt: skip


def attach_engine(spec: EngineSpec, *, worker: str, device: str, index: int) -> Engine:
    """An engine that runs already at `spec.urls[index]`."""
    if index >= len(spec.urls):
        raise EvidenceError(f"engine {spec.id}: {len(spec.urls)} urls, expected one for {worker}")
    url = spec.urls[index].rstrip("/")
    return Engine(spec, find_adapter(spec.adapter), worker, device, url, None, None, None)


def describe_launch(engine: Engine, ready: Ready | None) -> dict[str, Any]:
    """One entry of an arm's `launches`."""
    proof = ready and {"requestSha256": ready.request_sha256, "responseSha256": ready.response_sha256}
    return {
        "worker": engine.worker,
        "arguments": list(engine.arguments),
        "argumentsSha256": engine.arguments_sha256,
        "environment": dict(engine.environment),
        "ready": proof,
    }
