"""Writes the archive: the same bytes wherever and whenever it is built from the same input."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

from evidence.archive import beside, grammar
from evidence.archive.beside import Filler
from evidence.archive.bodies import NO_FOLDER, folder_of
from evidence.archive.grammar import LIMITS, Refusal
from evidence.build.deflating import PIECE, Deflater
from evidence.errors import EvidenceError


class Piece(NamedTuple):
    """So many bytes of a file, from a place on."""

    path: str
    start: int
    size: int

    def pour(self, sink: _Sink) -> None:
        """Give them to a sink, however many they are; nobody else writes where they lie."""
        handle = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.lseek(handle, self.start, os.SEEK_SET)
            if sink.pull(handle, self.size) < self.size:
                raise EvidenceError(f"{self.path}: shrank below {self.start + self.size} bytes", "build again")
        finally:
            os.close(handle)

    def read(self) -> bytes:
        """Return them."""
        handle = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.pread(handle, self.size, self.start)
        finally:
            os.close(handle)


_FORK_FROM = 16 << 20
"""Bytes of content from which a second process pays for its start."""
_AHEAD = 4
"""Pieces that it may be ahead of what is deflated."""
Content = bytes | Path | str | Piece
"""The content of a member, or the file or the piece of one that has it; a path as text where there are very many."""
_Row = tuple[bytes, Content]


class ArchiveDigest(NamedTuple):
    """What to publish of an archive: digests in lower-case hex, sizes in bytes."""

    tar_sha256: str
    tgz_sha256: str
    members: int
    tar_bytes: int
    tgz_bytes: int


def write_archive(
    entries: Iterable[tuple[str, Content]], path: Path, top: str, *, in_order: bool = False, payload: int = 0
) -> ArchiveDigest:
    """Write `entries` (name below the top folder, content or the file that has it) as the .tgz at `path`.

    Entries come in any order and are sorted; with `in_order` they must come sorted by name and are taken one at a time,
    so that nothing is held of a hundred thousand. `payload` is about how many bytes they hold: much is read by a process
    beside this one. The file appears under its name complete or not at all. Raises
    `EvidenceError` with exit code 1 for what the grammar refuses, 2 for what cannot be read or written.
    """
    if not grammar.component_fits(top.encode("utf-8", "backslashreplace")):
        raise EvidenceError(f"{path.name}: top folder {top!r} is outside the alphabet", "rename the campaign", code=1)
    # What UTF-8 cannot carry gets a backslash, and the grammar refuses that.
    rows: Iterable[_Row] = ((f"{top}/{name}".encode("utf-8", "backslashreplace"), content) for name, content in entries)
    if not in_order:
        rows = sorted(rows, key=lambda row: row[0])
    try:
        with _replacing(path) as (file, temporary):
            digest = _write(rows, file, path, payload)
            file.flush()
            os.fsync(file.fileno())
            temporary.replace(path)
    except Refusal as refusal:
        raise _refused(refusal) from None
    except OSError as error:
        raise unwritable(path, error) from error
    return digest


def unwritable(path: Path, error: OSError) -> EvidenceError:
    """The refusal that a failed write becomes: where, why, and what to do about it."""
    reason = error.strerror or str(error)
    hint = "choose another folder with --output, or get the right to write there"
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        hint = "make room there (a build needs as much as the archive and the package's JSON files), or choose another disk with --output"
    return EvidenceError(f"{path}: cannot be written: {reason}", hint)


def write_stream(entries: Iterable[tuple[str, Content]], top: str) -> Iterator[bytes]:
    """Yield the tar stream of entries whose names are known to fit, in pieces of any length."""
    rows = sorted(((f"{top}/{name}".encode(), content) for name, content in entries), key=lambda entry: entry[0])
    parts = _Parts()
    _stream(rows, Path(f"{top}.tar"), parts, grammar.Names())
    return iter(parts)


def write_digests(path: Path, digest: ArchiveDigest) -> tuple[Path, Path]:
    """Write `x.tgz.sha256`, as `sha256sum -c` reads it, and `x.tar.sha256`, which names the tar stream `x.tar`."""
    packed, stream = digest_paths(path)
    for file, value, name in (
        (packed, digest.tgz_sha256, path.name),
        (stream, digest.tar_sha256, f"{path.stem}.tar"),
    ):
        with _replacing(file) as (output, temporary):
            output.write(f"{value}  {name}\n".encode())
            output.flush()
            temporary.replace(file)
    return packed, stream


def digest_paths(path: Path) -> tuple[Path, Path]:
    """Return where the two detached digests of the archive at `path` stand."""
    return path.with_name(f"{path.name}.sha256"), path.with_name(f"{path.stem}.tar.sha256")


class _replacing:
    """A new file beside `path`, with the usual permissions, gone again unless it was renamed."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> tuple[BinaryIO, Path]:
        handle, name = tempfile.mkstemp(prefix=f".{self._path.name}.", dir=self._path.parent)
        self._temporary = Path(name)
        os.fchmod(handle, 0o644)
        self._file = os.fdopen(handle, "wb")
        return self._file, self._temporary

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._file.close()
        with suppress(FileNotFoundError):
            self._temporary.unlink()


def _refused(refusal: Refusal) -> EvidenceError:
    return EvidenceError(
        f"{refusal.place}: {refusal.code}: {refusal.found}, expected {refusal.expected}",
        "rename or remove this entry before building",
        code=1,
    )


def _write(rows: Iterable[_Row], file: BinaryIO, path: Path, payload: int) -> ArchiveDigest:
    with Deflater(file) as deflater:
        members = _pack(rows, path, deflater, payload)
    if not members:
        raise EvidenceError(
            f"{path.name}: no members, expected at least one", "an empty archive proves nothing", code=1
        )
    total, size = deflater.length, deflater.size
    if total > LIMITS.inflated(size):
        raise EvidenceError(
            f"{path.name}: limit-ratio: {total} bytes deflate to {size}, expected at most {LIMITS.ratio} to 1",
            "a reader would refuse this archive as a bomb",
            code=1,
        )
    if members > LIMITS.members_in(size):
        raise EvidenceError(
            f"{path.name}: limit-members: {members} members in {size} bytes, expected at most {LIMITS.members_in(size)}",
            "a reader would refuse this archive: one member more for every 64 bytes",
            code=1,
        )
    return ArchiveDigest(deflater.stream_sha256, deflater.sha256, members, total, size)


def _pack(rows: Iterable[_Row], path: Path, deflater: Deflater, payload: int) -> int:
    """Deflate the tar stream of the rows, from first to last; return the number of members."""

    def make(filler: Filler) -> beside.Facts:
        names = grammar.Names()
        _stream(rows, path, filler, names)
        return {"members": names.count}

    if payload < _FORK_FROM or not beside.pays():
        spare: list[memoryview] = []  # pages that were touched before cost nothing again

        def give(piece: memoryview) -> None:
            deflater.take(piece, lambda: spare.append(memoryview(piece.obj)))

        filler = Filler(lambda: spare.pop() if spare else memoryview(bytearray(PIECE)), give)
        facts = make(filler)
        filler.flush()
        deflater.finish()
    else:
        what = f"{path.name}: the process that reads the files"
        with beside.Beside(make, pieces=deflater.most + _AHEAD, size=PIECE, what=what) as child:
            for _, piece in child:
                deflater.take(piece, child.give_back)
            deflater.finish()
            facts = child.facts
    return int(facts["members"])


class _Sink(Protocol):
    """Takes a tar stream in parts."""

    def put(self, part: bytes) -> None: ...

    def pull(self, handle: int, size: int) -> int:
        """Take `size` bytes from a descriptor; return how many were there."""


class _Parts(list[bytes]):
    """A stream in memory."""

    put = list.append

    def pull(self, handle: int, size: int) -> int:
        self.append(os.read(handle, size))
        return len(self[-1])


def _stream(rows: Iterable[_Row], path: Path, sink: _Sink, names: grammar.Names) -> None:
    """Give the tar stream to the sink: header, content, padding of every member, then the end marker.

    Raises `Refusal` for names that the grammar does not allow one beside the other.
    """
    total, member = 0, _Member(path, sink, names)
    for name, content in rows:
        member.enter(name)
        if isinstance(content, bytes):
            size = len(content)
            member.begin(size)
            sink.put(content)
        elif isinstance(content, Piece):
            size = content.size
            member.begin(size)
            content.pour(sink)
        else:
            size = _pour(content, member, sink)
        padding = grammar.padding(size)
        sink.put(bytes(padding))
        total += grammar.BLOCK + size + padding
        if total > LIMITS.total_bytes:
            raise EvidenceError(
                f"{path.name}: limit-total: more than {LIMITS.total_bytes} bytes", "split the campaign", code=1
            )
    sink.put(grammar.END)


class _Member:
    """The member that is being written: its name, taken into account, and then its header. Most lie beside the one before."""

    def __init__(self, path: Path, sink: _Sink, names: grammar.Names) -> None:
        self._path, self._sink, self._names = path, sink, names
        self._name = self._tail = b""
        self._parts = b"", b""
        self._folder = NO_FOLDER

    def enter(self, name: bytes) -> None:
        """Go on to the next one. Raises `Refusal`."""
        folder, self._name = self._folder, name
        if folder.path and name.startswith(folder.path):
            self._tail = name[len(folder.path) :]
            if self._names.add_sibling(self._tail, folder.shortest):
                return
        self._names.add(name, self._path.name)
        parts = grammar.split(name)
        assert parts is not None, "names were checked"
        self._parts, self._folder = parts, folder_of(name, *parts)
        self._tail = name[len(self._folder.path) :]

    def begin(self, size: int) -> None:
        """Put its header. Raises `EvidenceError` for one that is too large."""
        most = LIMITS.json_bytes if self._name.endswith(b".json") else LIMITS.member_bytes
        if size > most:
            raise EvidenceError(
                f"{self._path.name}: limit-member: {grammar.show(self._name)} has {size} bytes, expected at most {most}",
                "split this file",
                code=1,
            )
        if self._folder.path:
            self._sink.put(self._folder.header(self._tail, size))
        else:
            self._sink.put(grammar.header(*self._parts, size, grammar.mode_of(self._name)))


def _pour(content: Path | str, member: _Member, sink: _Sink) -> int:
    """Give header and content of a member that is a file of its own; return its size."""
    # No link is followed and no FIFO is waited for: what is published is what lies at this name.
    try:
        handle = os.open(content, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise EvidenceError(f"{content}: cannot be read: {error.strerror}", "only regular files are packed") from error
    try:
        facts = os.fstat(handle)
        if facts.st_mode & 0o170000 != 0o100000:
            raise EvidenceError(f"{content}: not a regular file", "only regular files are packed", code=1)
        size = facts.st_size
        member.begin(size)
        there = sink.pull(handle, size + 1)  # one more than there should be tells of a file that grows
        if there < size:
            raise EvidenceError(f"{content}: shrank to {there} bytes of {size}", "try again when still")
        if there > size:
            raise EvidenceError(f"{content}: grew past {size} bytes", "try again when nothing writes there")
    finally:
        os.close(handle)
    return size
