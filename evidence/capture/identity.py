"""What an engine is: told by itself, by the metadata of its package, by the hash of its program, else only declared."""

import asyncio
import contextlib
import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from evidence.capture.answer import parse
from evidence.capture.engines import Engine
from evidence.capture.exchange import ExchangeFailed, exchange
from evidence.capture.gateway import hash_file

_ASK_METADATA = """
import hashlib, importlib.metadata as m, json, sys
d = m.distribution(sys.argv[1])
record = d.read_text("RECORD")
digest = hashlib.sha256(record.encode()).hexdigest() if record else None
print(json.dumps([d.version, digest]))
"""


class DeclaredIdentity(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def value(self) -> str: ...
    @property
    def sha256(self) -> str | None: ...


@dataclass(frozen=True)
class EngineIdentity:
    """`source` is `reported` when `version` came from the engine or its package, `declared` when from the campaign."""

    version: str
    identity: tuple[tuple[str, str, str | None], ...]
    source: str

    def entry(self, engine: str) -> dict[str, Any]:
        """The journal's `identity` event, without event and time."""
        facts = [{"name": name, "value": value, "sha256": digest} for name, value, digest in self.identity]
        return {"engine": engine, "version": self.version, "identity": facts, "source": self.source}


async def identify(engine: Engine, declared: tuple[DeclaredIdentity, ...] = ()) -> EngineIdentity:
    """Ask a ready engine what it is. What cannot be had is left out; nothing here raises for an engine's silence."""
    versions: list[str] = []
    facts: list[tuple[str, str, str | None]] = []
    if told := await _ask_route(engine):
        versions.append(told)
        facts.append(("reported-version", told, None))
    if engine.launch:
        program = shutil.which(engine.launch.words[0])
        python = program and await asyncio.to_thread(find_python, Path(program))
        if python and engine.adapter.wheel and (wheel := await _ask_wheel(python, engine.adapter.wheel)):
            version, digest = wheel
            versions.append(version)
            facts.append((f"wheel {engine.adapter.wheel}", version, digest))
        if program and not python:
            digest = await asyncio.to_thread(hash_file, program)
            told = await _ask_program(program) if engine.adapter.name == "llama.cpp" else None
            versions += [told] if told else []
            facts.append((f"program {Path(program).name}", told or "unknown", digest))
        for word in engine.launch.words[1:2]:
            if word.endswith(".py") and await asyncio.to_thread(Path(word).is_file):
                facts.append((f"script {Path(word).name}", "file", await asyncio.to_thread(hash_file, word)))
    facts += [(fact.name, fact.value, fact.sha256) for fact in declared]
    if versions:
        return EngineIdentity(versions[0], tuple(facts), "reported")
    return EngineIdentity(engine.spec.version, tuple(facts), "declared")


async def _ask_route(engine: Engine) -> str | None:
    """The version that the adapter's route tells."""
    if engine.adapter.version_route is None:
        return None
    path, key = engine.adapter.version_route
    with contextlib.suppress(ExchangeFailed, ValueError, KeyError, TypeError):
        answer = await exchange(engine.url + path, seconds=10)
        if answer.status == 200:
            return str(parse(answer.body)[key])
    return None


def find_python(program: Path) -> str | None:
    """The interpreter of a program: itself, or what the first line of a script names. None for a binary."""
    if re.fullmatch(r"python[\d.]*", program.name):
        return str(program)
    with contextlib.suppress(OSError), program.open("rb") as file:
        first = file.readline(256)
        if first.startswith(b"#!") and b"python" in first:
            words = first[2:].decode("utf-8", "replace").split()
            return words[-1] if words[0].endswith("/env") else words[0]
        if first.startswith(b"#!/bin/sh"):  # pip's form for long paths: '''exec' /path/to/python "$0" "$@"
            second = re.match(rb"'''exec' (\"?)([^\"]+?python[\d.]*)\1 ", file.readline(1024))
            return second[2].decode() if second else None
    return None


async def _ask_wheel(python: str, name: str) -> tuple[str, str | None] | None:
    """Version of an installed distribution and the SHA-256 of its RECORD, which holds the hashes of all its files."""
    output = await _run(python, "-I", "-c", _ASK_METADATA, name)
    with contextlib.suppress(ValueError, TypeError):
        version, digest = json.loads(output)
        return str(version), digest
    return None


async def _ask_program(program: str) -> str | None:
    """llama.cpp's own build number and commit; a build without them calls itself 0 (unknown) and tells nothing."""
    found = re.search(r"version: ([1-9]\d*) \(([0-9a-f]+)\)", await _run(program, "--version"))
    return f"{found[1]} ({found[2]})" if found else None


async def _run(*command: str) -> str:
    """Both outputs of a short command; empty when it fails or takes longer than 30 seconds."""
    with contextlib.suppress(OSError, asyncio.TimeoutError):
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        try:
            output, _ = await asyncio.wait_for(process.communicate(), 30)
            return output.decode("utf-8", "replace")
        except asyncio.TimeoutError:
            process.kill()
            await process.wait()
    return ""
