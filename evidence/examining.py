"""Judges the JSON files of a package while they pass, in a process of its own where that pays."""

from __future__ import annotations

import contextlib
import functools
import marshal
import os
import signal
from collections.abc import Callable, Iterable
from typing import Any, BinaryIO

from evidence import shapes, shipped, toolsets
from evidence.archive import inputs, layout
from evidence.archive.grammar import LIMITS, SUMS_NAME, Refusal
from evidence.errors import EvidenceError
from evidence.verdict import Finding, Stage

_PIPE = 1 << 20
"""Bytes that may wait between the two processes; a kernel that allows less gives less."""
_AFTER = 5
"""The two that inflate and hash wait for one another, so what is left of two processors goes to this child."""
_LONG = 4 << 10
"""A file of so many bytes is worth a look at its text before it is parsed."""


def wanted(name: bytes) -> bool:
    """Tell whether `Examined.take` is to be given this member (its whole name)."""
    return name.endswith((b".json", b"/SHA256SUMS")) or (name.endswith(b"/README.md") and name.count(b"/") == 1)


def as_findings(refusals: Iterable[Refusal]) -> list[Finding]:
    """Refusals as findings."""
    return [Finding(one.code, one.place, one.found, one.expected) for one in refusals]


def faults(name: str, content: bytes) -> list[Finding]:
    """What stands against a JSON file of a package: how it is written, and the shape that its path gives it."""
    alone = Examined()
    alone.take(name, content)
    return alone.stage.findings


class Examined:
    """What is learned of JSON files while they pass: nothing but small facts is kept.

    After `close`, `stage` is the verdict, `kept` holds what `inputs.check` reads, and `tools` is `toolsets.current`.
    """

    def __init__(self) -> None:
        self.stage = Stage("schemas")
        self.sums: bytes | None = None
        self.guide = b""
        self.kept: dict[str, Any] = {}
        self.tools: dict[str, str] = {}
        self._judged = 0

    def __enter__(self) -> Examined:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def take(self, name: str, content: bytes) -> None:
        """Judge one JSON file, or keep `SHA256SUMS`; what is wrong becomes a finding of the stage."""
        if not name.endswith(".json"):
            self.sums = content if name == SUMS_NAME else self.sums
            self.guide = content if name == "README.md" else self.guide
            return
        schema = layout.schema_of(name)
        self._judged += 1
        if schema == layout.ORIGINAL:
            return
        self.stage.expected += 1
        if schema is not None and _LONG <= len(content) <= LIMITS.json_bytes and not inputs.is_wanted(name):
            prove = _speller(schema)
            if prove is not None and prove(content):
                self.stage.verified += 1
                return
        from evidence.archive import strictjson  # here, so that only the process that parses has to load it

        try:
            value = strictjson.parse(content, name)
        except Refusal as refusal:
            self.stage.findings += as_findings([refusal])
            return
        if schema is None:
            self.stage.findings.append(
                Finding("schema-unknown", name, "a JSON file of no kind", "a path of the package tree")
            )
            return
        faults = [] if _acceptor(schema)(value) else list(_judge(schema, value, name))
        self.stage.findings += faults
        self.stage.verified += not faults
        if not faults and inputs.is_wanted(name):
            self.kept[name] = value

    def close(self, members: Iterable[str]) -> None:
        """Name what was too large to be looked at; nothing is passed over in silence."""
        self.tools = self.tools or toolsets.current()
        unseen = sum(name.endswith(".json") for name in members) - self._judged
        if unseen:
            self.stage.expected += unseen
            limit = f"at most {LIMITS.json_bytes} bytes each"
            self.stage.findings.append(Finding("limit-json", "package", f"{unseen} JSON files over the limit", limit))


class Aside(Examined):
    """The same, with the JSON judged by a child process; what it found is there after `close`.

    Parsing and judging tens of thousands of samples takes as long as hashing everything, and the interpreter lock would
    have one wait for the other. Use it in a `with`: the child is gone at the end, however that comes.
    """

    def __init__(self) -> None:
        super().__init__()
        asked, self._ask = os.pipe()
        self._answer, answer = os.pipe()
        with contextlib.suppress(ImportError, AttributeError, OSError):
            import fcntl

            fcntl.fcntl(self._ask, fcntl.F_SETPIPE_SZ, _PIPE)
        self._child = os.fork()
        if not self._child:
            os.close(self._ask)
            os.close(self._answer)
            _serve(os.fdopen(asked, "rb", buffering=_PIPE), answer)
        os.close(asked)
        os.close(answer)

    def __exit__(self, *_: object) -> None:
        for pipe in (self._ask, self._answer):
            os.close(pipe)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._child, signal.SIGKILL)
        os.waitpid(self._child, 0)

    def take(self, name: str, content: bytes) -> None:
        if name.endswith(".json"):
            self._send(name.encode(), content)
        else:
            super().take(name, content)

    def _send(self, name: bytes, content: bytes) -> None:
        head = b"%8d%8d%b" % (len(name), len(content), name)
        try:
            sent = os.writev(self._ask, [head, content])
            view = memoryview(content)[sent - len(head) :] if sent >= len(head) else memoryview(head[sent:] + content)
            while view:
                view = view[os.write(self._ask, view) :]
        except BrokenPipeError:
            raise _ended() from None

    def close(self, members: Iterable[str]) -> None:
        self._send(b"", b"")
        with os.fdopen(os.dup(self._answer), "rb") as answer:
            said = answer.read()
        if not said:
            raise _ended()
        facts = marshal.loads(said)  # noqa: S302  # the child of this process wrote it
        self.stage.expected, self.stage.verified, self._judged = facts["counts"]
        self.stage.findings = [Finding(*row) for row in facts["findings"]]
        self.kept, self.tools = facts["kept"], facts["tools"]
        super().close(members)


def _ended() -> EvidenceError:
    return EvidenceError("the process that reads the JSON files ended early", "was it killed? run it again")


def _serve(asked: BinaryIO, answer: int) -> None:
    """The child: never returns. Judges what comes and says at the end what it found."""
    os.nice(_AFTER)
    try:
        mine = Examined()
        while True:
            name, content = (int(asked.read(8)) for _ in range(2))
            if not name:
                break
            mine.take(asked.read(name).decode(), asked.read(content))
        findings = [[one.code, one.place, one.found, one.expected] for one in mine.stage.findings]
        said = {
            "counts": [mine.stage.expected, mine.stage.verified, mine._judged],
            "findings": findings,
            "kept": mine.kept,
            "tools": toolsets.current(),
        }
        with os.fdopen(answer, "wb") as out:
            out.write(marshal.dumps(said))
    finally:
        os._exit(0)


@functools.cache
def _schemas() -> dict[str, Any]:
    import json

    files = shipped.files()
    return {name.partition("/")[2]: json.loads(data) for name, data in files.items() if name.startswith("schemas/")}


@functools.cache
def _acceptors() -> shapes.Acceptors:
    return shapes.Acceptors(_schemas())


@functools.cache
def _acceptor(name: str) -> Callable[[Any], bool]:
    accept = _acceptors().find(f"{name}.schema.json")
    return accept if accept is not None else lambda _: False


@functools.cache
def _speller(name: str) -> Callable[[bytes], bool] | None:
    from evidence import spelling

    return spelling.speller(_schemas(), f"{name}.schema.json")


@functools.cache
def _validator(name: str) -> Any:
    import jsonschema
    import referencing

    rows = [(key, referencing.Resource.from_contents(schema)) for key, schema in _schemas().items()]
    registry: Any = referencing.Registry().with_resources(rows)
    return jsonschema.Draft202012Validator(_schemas()[f"{name}.schema.json"], registry=registry)


def _judge(name: str, value: Any, place: str) -> Iterable[Finding]:
    """Yield what jsonschema says, at most twenty findings a file, each with its JSON pointer."""
    import json

    for count, error in enumerate(_validator(name).iter_errors(value)):
        if count == 20:
            yield Finding("schema-more", place, "more than 20 findings", "none")
            return
        pointer = "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in error.absolute_path)
        rule = f"{error.validator} {json.dumps(error.validator_value)[:120]}"
        yield Finding(f"schema-{_kebab(error.validator)}", f"{place}#{pointer}", error.message[:200], rule)


def _kebab(word: str) -> str:
    return "".join(f"-{one.lower()}" if one.isupper() else one for one in word)
