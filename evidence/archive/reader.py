"""One pass over a .tgz: digests of the file, of the tar stream and of every member, and nothing written.

On more than one processor a child process inflates into shared memory, hashing file and stream, while this
process walks the headers and hashes the members; the interpreter lock makes threads slower than one process.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

from evidence.archive import beside
from evidence.archive.beside import Filler
from evidence.archive.bodies import Run
from evidence.archive.grammar import LIMITS, Limits, Refusal
from evidence.archive.gzipframe import GIVE, Frame
from evidence.archive.members import Members
from evidence.archive.tarwalk import Piece, walk
from evidence.errors import EvidenceError

_SLOTS = 16
_SLOT = 2 * GIVE
"""Handing over costs both sides a call; what was written lately is still in the cache that they share."""
_FORK_FROM = 1 << 20
"""Compressed bytes from which a second process pays for its start."""
Examine = Callable[[str, bytes], None]


class Reading:
    """What a package was found to be. Names are below the top folder; digests are lower-case hex.

    `findings` are refusals that did not stop the reading; the reading that stopped at one has it last and
    `complete` is false. `tgz_sha256` is of the whole file in any case, `tar_sha256` is empty unless complete.
    """

    def __init__(self, name: str, tgz_bytes: int = 0) -> None:
        self.name = name
        self.top = ""
        self.members = Members()
        self.payload_bytes = 0
        self.tgz_sha256 = ""
        self.tgz_bytes = tgz_bytes
        self.tar_sha256 = ""
        self.tar_bytes = 0
        self.findings: list[Refusal] = []
        self.complete = False


class _Facts:
    """What the inflating side knows once the stream has ended."""

    def __init__(self) -> None:
        self.tgz = ""
        self.tar = ""
        self.findings: list[Refusal] = []


def open_archive(path: Path) -> int:
    """Return a descriptor of the regular file at `path`, opened without waiting; raise `EvidenceError` otherwise."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError as error:
        raise EvidenceError(f"{path}: cannot be read: {error.strerror}", "expected a package archive") from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise EvidenceError(f"{path}: not a regular file, expected a package archive", "name the .tgz itself")
    return handle


def read_archive(
    handle: int,
    name: str,
    *,
    examine: Examine | None = None,
    wanted: Callable[[bytes], bool] = lambda _: False,
    pass_on: Callable[[bytes, Any, bool], None] | None = None,
    codec: Any = None,
    limits: Limits = LIMITS,
    processes: int | None = None,
) -> Reading:
    """Read the archive behind the descriptor once and return what it is; refusals are in its findings.

    `wanted(whole name)` chooses the small members whose content `examine(name below top, content)` is given, in
    order; it may raise `Refusal`, which is collected. Of bodies, which are named after their digest, it is not asked. `pass_on` is that of `tarwalk.walk`; the reading has no members then. `processes` is 1 or 2
    and by default what suits file and machine. Raises `EvidenceError` when the file cannot be read.
    """
    reading = Reading(name, tgz_bytes=os.fstat(handle).st_size)
    facts = _Facts()
    keep_heap()
    try:
        with contextlib.closing(_source(handle, name, reading.tgz_bytes, codec, limits, processes, facts)) as pieces:
            _follow(
                reading,
                walk(
                    pieces, _stream_name(name), wanted, pass_on, limits.members_in(reading.tgz_bytes),
                    runs=pass_on is None, hashed=pass_on is None,
                ),
                examine,
            )
        reading.findings[:0] = facts.findings
        reading.tgz_sha256, reading.tar_sha256 = facts.tgz, facts.tar
        reading.complete = True
    except Refusal as refusal:
        reading.findings += [*facts.findings, refusal]
        reading.tgz_sha256 = file_sha256(handle)
    except OSError as error:
        raise EvidenceError(
            f"{name}: cannot be read: {error.strerror or error}", "is the file system sound?"
        ) from error
    return reading


def file_sha256(handle: int) -> str:
    """Digest of everything behind a descriptor, whatever it is."""
    digest, at = hashlib.sha256(), 0
    while piece := os.pread(handle, 1 << 18, at):
        digest.update(piece)
        at += len(piece)
    return digest.hexdigest()


def _stream_name(name: str) -> str:
    return f"{name.removesuffix('.tgz')}.tar"


def _follow(reading: Reading, members: Iterator[Any], examine: Examine | None) -> None:
    add, cut, end = reading.members.add, 0, 0
    for member in members:
        if type(member) is Run:
            reading.members.extend(member.folder[cut:].decode(), member.sha256)
            reading.payload_bytes += member.size
            end = member.end
            continue
        path, size, offset, digest, content = member
        if not cut:
            reading.top = path[: path.index(b"/")].decode()
            cut = len(reading.top) + 1
        below = path[cut:].decode()
        if digest:
            add(below, digest)
        reading.payload_bytes += size
        end = offset + 512 + size + (-size % 512)
        if content is not None and examine is not None:
            try:
                examine(below, bytes(content))
            except Refusal as refusal:
                reading.findings.append(refusal)
    reading.tar_bytes = end + 1024


def keep_heap() -> None:
    """Have the C library keep freed memory for what is allocated next: once it has seen a block of this size freed, it no
    longer gives a piece's memory back to the system each time, to be zeroed page by page for the next piece."""
    bytes(8 << 20)


def pays(size: int) -> bool:
    """Tell whether another process pays for its start, for an archive of so many bytes on this machine."""
    return size >= _FORK_FROM and beside.pays()


def _source(
    handle: int, name: str, size: int, codec: Any, limits: Limits, processes: int | None, facts: _Facts
) -> Generator[Any, None, None]:
    if processes is None:
        processes = 2 if pays(size) else 1
    return (_beside if processes == 2 else _here)(handle, name, size, codec, limits, facts)


def _frame(handle: int, name: str, size: int, codec: Any, limits: Limits) -> Frame:
    at = 0

    def read(count: int) -> bytes:
        nonlocal at
        piece = os.pread(handle, count, at)
        at += len(piece)
        return piece

    return Frame(read, size, name, codec, limits)


def _here(handle: int, name: str, size: int, codec: Any, limits: Limits, facts: _Facts) -> Generator[Any, None, None]:
    frame, digest = _frame(handle, name, size, codec, limits), hashlib.sha256()
    facts.findings = frame.findings
    for piece in frame.pieces():
        digest.update(piece)
        yield piece
    facts.tgz, facts.tar = frame.sha256, digest.hexdigest()


def _beside(handle: int, name: str, size: int, codec: Any, limits: Limits, facts: _Facts) -> Generator[Any, None, None]:
    """Yield pieces in shared memory; each is overwritten some time after the next one was asked for."""
    frame = _frame(handle, name, size, codec, limits)

    def make(filler: Filler) -> beside.Facts:
        digest, refusal = hashlib.sha256(), None
        try:
            for piece in frame.pieces():
                digest.update(piece)
                filler.put(piece)
        except Refusal as error:  # what was found before it is told as well
            refusal = _row(error)
        findings = list(map(_row, frame.findings))
        return {"findings": findings, "refusal": refusal, "tgz": frame.sha256, "tar": digest.hexdigest()}

    what = f"{name}: the inflating process"
    with beside.Beside(make, pieces=_SLOTS, size=_SLOT, what=what) as child:
        for slot, view in child:
            yield Piece(slot, view)
            child.give_back()
        said = child.facts
    facts.findings += [Refusal(*row) for row in said["findings"]]
    if said["refusal"] is not None:
        raise Refusal(*said["refusal"])
    facts.tgz, facts.tar = said["tgz"], said["tar"]


def _row(refusal: Refusal) -> tuple[str, str, str, str]:
    return refusal.code, refusal.place, refusal.found, refusal.expected
