"""Reads an unpacked package: every file opened once by descriptor and read once; nothing else is opened at all."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable
from pathlib import Path

from evidence.archive.grammar import LIMITS, NAME_RULE, Names, Refusal, name_fault, show
from evidence.archive.reader import Examine, Reading
from evidence.archive.tarwalk import WHOLE
from evidence.errors import EvidenceError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_TOP = b"package/"
"""Stands for the folder's own name, which says nothing."""


def read_folder(
    path: Path, *, examine: Examine | None = None, wanted: Callable[[bytes], bool] = lambda _: False
) -> Reading:
    """Read the package in `path` and return what it is, by the rules that an archive's names obey.

    `wanted` and `examine` are those of `read_archive`. Raises `EvidenceError` when the folder cannot be opened.
    """
    reading = Reading(path.name)
    reading.top = path.name
    try:
        root = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise EvidenceError(f"{path}: cannot be read: {error.strerror}", "expected a package folder") from error
    found: list[tuple[bytes, str]] = []
    try:
        _visit(root, _TOP, reading, found, wanted, examine)
        names = Names()
        for name, digest in sorted(found):
            names.add(name, name[len(_TOP) :].decode())
            reading.members.add(name[len(_TOP) :].decode(), digest)
        if not found:
            raise Refusal("empty", path.name, "no files", "at least one")
        reading.complete = True
    except Refusal as refusal:
        reading.findings.append(refusal)
    except OSError as error:
        raise EvidenceError(f"{path}: cannot be read: {error.strerror or error}", "check the permissions") from error
    finally:
        os.close(root)
    return reading


def _visit(
    folder: int,
    prefix: bytes,
    reading: Reading,
    found: list[tuple[bytes, str]],
    wanted: Callable[[bytes], bool],
    examine: Examine | None,
) -> None:
    with os.scandir(folder) as entries:
        rows = sorted((os.fsencode(entry.name), entry.stat(follow_symlinks=False)) for entry in entries)
    for base, facts in rows:
        name = prefix + base
        shown = show(name[len(_TOP) :])
        fault = name_fault(name)
        if fault is not None:
            raise Refusal(fault[0], shown, fault[1], NAME_RULE)
        kind = stat.S_IFMT(facts.st_mode)
        if kind == stat.S_IFLNK:
            raise Refusal("type-link", shown, "a symbolic link", "a regular file")
        if kind not in (stat.S_IFREG, stat.S_IFDIR):
            raise Refusal("type-special", shown, "a FIFO, socket or device", "a regular file")
        handle = os.open(base, _FOLDER if kind == stat.S_IFDIR else _FILE, dir_fd=folder)
        try:
            now = os.fstat(handle)
            if (now.st_dev, now.st_ino) != (facts.st_dev, facts.st_ino) or stat.S_IFMT(now.st_mode) != kind:
                raise Refusal("changed", shown, "another file than a moment before", "a folder at rest")
            if kind == stat.S_IFDIR:
                before = len(found)
                _visit(handle, name + b"/", reading, found, wanted, examine)
                if len(found) == before:
                    raise Refusal("folder-empty", shown, "a folder without files", "what an archive can hold")
                continue
            if now.st_size > LIMITS.member_bytes:
                raise Refusal("limit-member", shown, f"{now.st_size} bytes", f"at most {LIMITS.member_bytes}")
            found.append((name, _read(handle, now.st_size, name, reading, wanted, examine)))
        finally:
            os.close(handle)
        if len(found) > LIMITS.members:
            raise Refusal("limit-members", shown, f"file {len(found)}", f"at most {LIMITS.members}")


def _read(
    handle: int,
    size: int,
    name: bytes,
    reading: Reading,
    wanted: Callable[[bytes], bool],
    examine: Examine | None,
) -> str:
    """Return the digest of a file; a file that is not as long as it was is refused."""
    below = name[len(_TOP) :].decode()
    # One byte more than expected shows growth, and the usual small file costs one call.
    content = os.read(handle, min(size, WHOLE) + 1)
    digest = hashlib.sha256(content)
    length = len(content)
    while WHOLE < length <= size and (piece := os.read(handle, WHOLE)):
        digest.update(piece)
        length += len(piece)
    if length != size:
        raise Refusal("changed", below, f"{length} bytes read of {size}", "a folder at rest")
    reading.payload_bytes += size
    if reading.payload_bytes > LIMITS.total_bytes:
        raise Refusal("limit-total", below, f"{reading.payload_bytes} bytes", f"at most {LIMITS.total_bytes}")
    if examine is not None and len(content) == size and wanted(name):
        try:
            examine(below, content)
        except Refusal as refusal:
            reading.findings.append(refusal)
    return digest.hexdigest()
