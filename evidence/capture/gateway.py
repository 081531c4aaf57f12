"""The gateway of a run: the built-in round robin, the campaign's own command, or one that runs already.

`python -m evidence.capture.gateway` is the built-in one (`round_robin.py`).
"""

import asyncio
import contextlib
import hashlib
import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from evidence.campaign import placeholders
from evidence.capture.processes import Exit, Process, choose_port, own_module, read_tail, start_process
from evidence.errors import EvidenceError

ROUND_ROBIN = Path(__file__).with_name("round_robin.py")
EXACT_PREFIX = Path(__file__).with_name("exact_prefix.py")
READY_SECONDS = 20.0


class GatewaySpec(Protocol):
    """The campaign's [gateway] table. `config` is a template file, filled like the command, or None."""

    @property
    def name(self) -> str: ...
    @property
    def command(self) -> Sequence[str]: ...
    @property
    def url(self) -> str: ...


@dataclass(frozen=True)
class ExactRule:
    """What the built-in gateway admits on surface `exact`: these token ids, asked the adapter's way."""

    adapter: str
    token_ids: Sequence[int]


@dataclass(frozen=True)
class Gateway:
    """A gateway that answers at `url`. `process` is None for one that the runner did not start."""

    kind: str  # built-in | command | url
    name: str
    sha256: str | None
    reason: str | None
    url: str
    process: Process | None

    def identity(self) -> dict[str, str | None]:
        """As comparison.json and the journal hold it."""
        return {"kind": self.kind, "name": self.name, "sha256": self.sha256, "reason": self.reason}

    async def stop(self) -> Exit | None:
        return await self.process.stop() if self.process else None


async def start_gateway(
    spec: GatewaySpec | None,
    workers: Sequence[str],
    log_path: Path,
    *,
    config: Path | None = None,
    exact: ExactRule | None = None,
) -> Gateway:
    """Start a round robin over the `workers` (URLs) and wait until it listens.

    Without a `spec` the built-in one, which with `exact` admits only requests that a worker renders as expected; with
    a command in it that one, placeholders {listen_port} {worker_1} {worker_2} (HOST:PORT) and {config} filled in, the
    latter with the path of a copy of `config` filled in the same way beside the log; with a url alone, that gateway is
    taken as it is. Raises EvidenceError, code 4 when it does not start.
    """
    if spec is None:
        program = ROUND_ROBIN if exact is None else EXACT_PREFIX
        command, environment = own_module(f"evidence.capture.{program.stem}")
        arguments = [*command, "--listen", "127.0.0.1:0", "--workers", *workers]
        if exact is not None:
            expected = log_path.with_suffix(".expected.json")
            expected.write_text(json.dumps(list(exact.token_ids)))
            arguments += ["--adapter", exact.adapter, "--expected", str(expected)]
        process = await start_process("the gateway", arguments, log_path=log_path, environment=environment)
        try:
            address = await process.announcement(READY_SECONDS)
        except BaseException:
            await process.stop(0)
            raise
        name = program.stem.replace("_", "-")
        return Gateway("built-in", name, hash_file(program), None, f"http://{address}", process)
    if not spec.command:
        reason = "it ran already: its program was not seen"
        return Gateway("url", spec.name, None, reason, spec.url.rstrip("/"), None)
    return await _start_command(spec, workers, log_path, config)


async def _start_command(spec: GatewaySpec, workers: Sequence[str], log_path: Path, config: Path | None) -> Gateway:
    port = choose_port()
    values = {"listen_port": str(port), "python": sys.executable, "folder": str(log_path.parent)}
    for place, worker in enumerate(workers, 1):
        values[f"worker_{place}"] = urlsplit(worker).netloc
    if config is not None:
        values["config"] = str(_write_config(config, log_path.with_suffix(".config"), values))
    command = [fill(part, values) for part in spec.command]
    url = fill(spec.url, values).rstrip("/")
    program = shutil.which(command[0])
    if program is None:
        hint = "install it, or leave [gateway] out for the built-in round robin"
        raise EvidenceError(f"gateway {spec.name}: program {command[0]} not found", hint, code=4)
    process = await start_process(f"gateway {spec.name}", [program, *command[1:]], log_path=log_path)
    address = urlsplit(url)
    try:
        await _await_listening(process, address.hostname or "127.0.0.1", address.port or 80)
    except BaseException:
        await process.stop(0)
        raise
    return Gateway("command", spec.name, hash_file(program), None, url, process)


def _write_config(template: Path, target: Path, values: dict[str, str]) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    text = template.read_text(encoding="utf-8", errors="surrogateescape")  # whatever it is written in stays as it is
    target.write_text(fill(text, values, sparing=True), encoding="utf-8", errors="surrogateescape")
    return target.resolve()


def hash_file(path: str | Path) -> str:
    """The SHA-256 of a file, links followed."""
    digest = hashlib.sha256()
    with Path(path).open("rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


def fill(text: str, values: dict[str, str], *, sparing: bool = False) -> str:
    """Put `values` in the place of their {names}; other braces stay when `sparing`, else an unknown name is an error."""
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    if not sparing:  # what a campaign says is looked into when it is read
        unknown = placeholders(text)
        if unknown:
            known = ", ".join("{" + name + "}" for name in values)
            raise EvidenceError(f"gateway: unknown placeholder {{{unknown[0]}}}", f"known here: {known}")
    return text


async def _await_listening(process: Process, host: str, port: int) -> None:
    deadline = asyncio.get_running_loop().time() + READY_SECONDS
    while asyncio.get_running_loop().time() < deadline:
        if process.ended.done():
            raise EvidenceError(
                f"{process.name} {process.ended.result().describe()}: {read_tail(process.log_path)}",
                "it must stay in the foreground (nginx: `daemon off;`)", code=4,
            )  # fmt: skip
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection(host, port)
            writer.close()
            return
        await asyncio.sleep(0.02)
    raise EvidenceError(f"{process.name} does not listen on {host}:{port} after {READY_SECONDS:.0f} s", code=4)


if __name__ == "__main__":
    from evidence.capture.round_robin import main

    main()
