"""Writes the archive: the same bytes wherever and whenever it is built from the same input."""

from __future__ import annotations

import hashlib
import os
import queue
import tempfile
import threading
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from evidence.archive import grammar
from evidence.archive.grammar import LIMITS, Refusal
from evidence.errors import EvidenceError

LEVEL = 6
_PIECE = 1 << 20


@dataclass(frozen=True)
class ArchiveDigest:
    """What to publish of an archive: digests in lower-case hex, sizes in bytes."""

    tar_sha256: str
    tgz_sha256: str
    members: int
    tar_bytes: int
    tgz_bytes: int


def write_archive(entries: Iterable[tuple[str, bytes | Path]], path: Path, top: str) -> ArchiveDigest:
    """Write `entries` (name below the top folder, content or the file that has it) as the .tgz at `path`.

    Entries come in any order and are sorted. The file appears under its name complete or not at all. Raises
    `EvidenceError` with exit code 1 for what the grammar refuses, 2 for what cannot be read or written.
    """
    if not grammar.component_fits(top.encode("utf-8", "backslashreplace")):
        raise EvidenceError(f"{path.name}: top folder {top!r} is outside the alphabet", "rename the campaign", code=1)
    ordered = sorted(
        # What UTF-8 cannot carry gets a backslash, and the grammar refuses that.
        ((f"{top}/{name}".encode("utf-8", "backslashreplace"), content) for name, content in entries),
        key=lambda entry: entry[0],
    )
    if not ordered:
        raise EvidenceError(
            f"{path.name}: no members, expected at least one", "an empty archive proves nothing", code=1
        )
    names = grammar.Names()
    try:
        for name, _ in ordered:
            names.add(name, path.name)
    except Refusal as refusal:
        raise _refused(refusal) from None
    try:
        with _replacing(path) as (file, temporary):
            digest = _write(ordered, file, path)
            file.flush()
            os.fsync(file.fileno())
            temporary.replace(path)
    except OSError as error:
        raise EvidenceError(f"{path}: cannot be written: {error.strerror or error}", "is there room?") from error
    return digest


def write_stream(entries: Iterable[tuple[str, bytes | Path]], top: str) -> Iterator[bytes]:
    """Yield the tar stream of entries whose names are known to fit, in pieces of any length."""
    rows = sorted(((f"{top}/{name}".encode(), content) for name, content in entries), key=lambda entry: entry[0])
    return _stream(rows, Path(f"{top}.tar"))


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


def _write(ordered: list[tuple[bytes, bytes | Path]], file: BinaryIO, path: Path) -> ArchiveDigest:
    stream = hashlib.sha256()
    total = 0
    deflater = _Deflater(file)
    try:
        for piece in _gather(_stream(ordered, path)):
            stream.update(piece)
            total += len(piece)
            if total > LIMITS.total_bytes:
                raise EvidenceError(
                    f"{path.name}: limit-total: more than {LIMITS.total_bytes} bytes", "split the campaign", code=1
                )
            deflater.put(piece)
        packed, size = deflater.finish()
    except BaseException:
        deflater.abandon()
        raise
    if total > LIMITS.inflated(size):
        raise EvidenceError(
            f"{path.name}: limit-ratio: {total} bytes deflate to {size}, expected at most {LIMITS.ratio} to 1",
            "a reader would refuse this archive as a bomb",
            code=1,
        )
    return ArchiveDigest(stream.hexdigest(), packed, len(ordered), total, size)


def _gather(parts: Iterator[bytes]) -> Iterator[bytes]:
    """Join small parts, so that hashing and deflating run outside the interpreter lock."""
    waiting: list[bytes] = []
    size = 0
    for part in parts:
        waiting.append(part)
        size += len(part)
        if size >= _PIECE:
            yield b"".join(waiting)
            waiting.clear()
            size = 0
    if waiting:
        yield b"".join(waiting)


def _stream(ordered: list[tuple[bytes, bytes | Path]], path: Path) -> Iterator[bytes]:
    """Yield the tar stream: header, content, padding of every member, then the end marker."""
    for name, content in ordered:
        if isinstance(content, bytes):
            yield _header(name, len(content), path)
            yield content
            size = len(content)
        else:
            # No link is followed and no FIFO is waited for: what is published is what lies at this name.
            try:
                handle = os.open(content, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            except OSError as error:
                raise EvidenceError(
                    f"{content}: cannot be read: {error.strerror}", "only regular files are packed"
                ) from error
            with os.fdopen(handle, "rb", buffering=0) as source:
                facts = os.fstat(source.fileno())
                if facts.st_mode & 0o170000 != 0o100000:
                    raise EvidenceError(f"{content}: not a regular file", "only regular files are packed", code=1)
                size = facts.st_size
                yield _header(name, size, path)
                left = size
                while left:
                    piece = source.read(min(left, _PIECE))
                    if not piece:
                        raise EvidenceError(
                            f"{content}: shrank to {size - left} bytes of {size}", "try again when still"
                        )
                    left -= len(piece)
                    yield piece
                if source.read(1):
                    raise EvidenceError(f"{content}: grew past {size} bytes", "try again when nothing writes there")
        yield bytes(grammar.padding(size))
    yield grammar.END


def _header(name: bytes, size: int, path: Path) -> bytes:
    most = LIMITS.json_bytes if name.endswith(b".json") else LIMITS.member_bytes
    if size > most:
        raise EvidenceError(
            f"{path.name}: limit-member: {grammar.show(name)} has {size} bytes, expected at most {most}",
            "split this file",
            code=1,
        )
    parts = grammar.split(name)
    assert parts is not None, "names were checked"
    return grammar.header(*parts, size, grammar.mode_of(name))


class _Deflater:
    """Deflates, hashes and writes pieces in a thread of its own: zlib and OpenSSL release the interpreter lock."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._pieces: queue.Queue[bytes | None] = queue.Queue(maxsize=4)
        self._error: BaseException | None = None
        self._digest = hashlib.sha256()
        self._size = 0
        self._thread = threading.Thread(target=self._run, name="deflate", daemon=True)
        self._thread.start()

    def put(self, piece: bytes) -> None:
        if self._error is not None:
            raise self._error
        self._pieces.put(piece)

    def finish(self) -> tuple[str, int]:
        self._pieces.put(None)
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._digest.hexdigest(), self._size

    def abandon(self) -> None:
        if self._thread.is_alive():
            self._pieces.put(None)
            self._thread.join()

    def _run(self) -> None:
        # Raw deflate, framed here: zlib's own gzip header says which system it ran on.
        packer = zlib.compressobj(LEVEL, zlib.DEFLATED, -15)
        crc = length = 0
        try:
            self._emit(grammar.GZIP_HEADER)
            while (piece := self._pieces.get()) is not None:
                crc = zlib.crc32(piece, crc)
                length += len(piece)
                self._emit(packer.compress(piece))
            self._emit(packer.flush() + crc.to_bytes(4, "little") + (length & 0xFFFFFFFF).to_bytes(4, "little"))
        except BaseException as error:
            self._error = error
            while self._pieces.get() is not None:  # the other side may be waiting for room
                pass

    def _emit(self, data: bytes) -> None:
        self._file.write(data)
        self._digest.update(data)
        self._size += len(data)
