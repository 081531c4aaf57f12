"""`SHA256SUMS` and the detached digest files, read as strictly as they are written."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

from evidence.archive.grammar import SUMS_NAME, Refusal, name_fault, show
from evidence.archive.members import Members

_LINE = re.compile(rb"([0-9a-f]{64})  ([^\0]+)")
_MOST = 50
"""Findings about one file; the rest are counted."""


def render(members: Mapping[str, str]) -> bytes:
    """Return the one right `SHA256SUMS` for members (name -> digest), whatever order they come in."""
    names = sorted(name for name in members if name != SUMS_NAME)
    return "".join([f"{members[name]}  {name}\n" for name in names]).encode()


def digest(members: Members) -> str:
    """Return the SHA-256 of the one right `SHA256SUMS` for members that came sorted by name; none of it is held."""
    whole = hashlib.sha256()
    for lines in members.lines(SUMS_NAME):
        whole.update(lines.encode())
    return whole.hexdigest()


def compare(content: bytes, members: Mapping[str, str], place: str = SUMS_NAME) -> list[Refusal]:
    """Return what is wrong with a `SHA256SUMS` beside the members that are there; nothing when it is the right one."""
    if content == render(members) and content:
        return []
    findings: list[Refusal] = []
    listed = parse(content, findings, place)
    for name, (digest, line) in listed.items():
        where = f"{place}: line {line}"
        if name not in members:
            findings.append(Refusal("sums-missing", where, f"{name} is not there", "every listed file"))
        elif members[name] != digest:
            findings.append(Refusal("sums-mismatch", where, f"{name} has SHA-256 {members[name]}", digest))
    for name in sorted(set(members) - set(listed) - {SUMS_NAME}):
        findings.append(Refusal("sums-unlisted", name, f"not listed in {place}", "every file listed"))
    if len(findings) > _MOST:
        rest = len(findings) - _MOST
        findings[_MOST:] = [Refusal("sums-more", place, f"{rest} more findings", "none")]
    return findings


def parse(content: bytes, findings: list[Refusal], place: str = SUMS_NAME) -> dict[str, tuple[str, int]]:
    """Return name -> (digest, line number) of the well-formed lines; add a finding for every other line."""
    listed: dict[str, tuple[str, int]] = {}
    last = b""
    if not content:
        findings.append(Refusal("sums-empty", place, "an empty file", "at least one line"))
    lines = content.split(b"\n")
    if lines.pop() and content:
        findings.append(Refusal("sums-form", f"{place}: line {len(lines) + 1}", "no final newline", "one"))
    for number, line in enumerate(lines, 1):
        where = f"{place}: line {number}"
        match = _LINE.fullmatch(line)
        if match is None or line.endswith(b"\r"):
            if line.startswith(b"\\"):
                findings.append(Refusal("sums-escape", where, f"escaped name {show(line[67:])}", "a plain name"))
            else:
                findings.append(Refusal("sums-form", where, _form(line), "64 lower-case hex, two spaces, name"))
            continue
        digest, name = match[1].decode(), match[2]
        # The top folder counts for depth and length, so a name is judged as if it had one.
        fault = name_fault(name) or name_fault(b"x/" + name)
        if fault is not None:
            findings.append(Refusal("sums-path", where, fault[1], "a plain relative path below the package"))
            continue
        text = name.decode()
        if text == SUMS_NAME:
            findings.append(Refusal("sums-self", where, "the file lists itself", "every other file"))
        elif text in listed:
            findings.append(Refusal("sums-duplicate", where, f"{text} again after line {listed[text][1]}", "once"))
        elif name < last:
            findings.append(Refusal("sums-order", where, f"{text} after {last.decode()}", "sorted as bytes"))
            listed[text] = (digest, number)
        else:
            listed[text] = (digest, number)
        last = max(last, name)
    return listed


def _form(line: bytes) -> str:
    if not line.strip():
        return "a blank line"
    if line.endswith(b"\r"):
        return "a carriage return"
    if line.startswith(b"\xef\xbb\xbf"):
        return "a byte order mark"
    return f"line {show(line)}"


def read_detached(path: Path, name: str) -> str:
    """Return the digest that a detached file gives for `name`; raise `Refusal` detached-* when it does not."""
    expected = f"one line, 64 lower-case hex digits, two spaces, {name}"
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError as error:
        raise Refusal("detached-missing", path.name, (error.strerror or str(error)).lower(), expected) from None
    try:
        content = os.read(handle, 4096)
    except OSError as error:
        raise Refusal("detached-missing", path.name, (error.strerror or str(error)).lower(), expected) from None
    finally:
        os.close(handle)
    match = _LINE.fullmatch(content[:-1]) if content.endswith(b"\n") else None
    if match is None or b"\n" in match[2]:
        raise Refusal("detached-form", path.name, show(content), expected)
    if match[2] != os.fsencode(name):
        raise Refusal("detached-name", path.name, f"name {show(match[2])}", name)
    return match[1].decode()
