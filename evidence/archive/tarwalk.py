"""Walks a tar stream and accepts only headers that the writer would have written, byte for byte."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from mmap import mmap
from typing import Any, NamedTuple

from evidence.archive import grammar
from evidence.archive.bodies import HEX, NO_FOLDER, Run, folder_of, run
from evidence.archive.grammar import BLOCK, LIMITS, Names, Refusal, show

WHOLE = LIMITS.json_bytes
"""Members up to this size are handed over whole; larger ones are hashed as they pass."""
_ZEROS = bytes(BLOCK)
_SIZE = re.compile(rb"[0-7]{11}\0")
_FIELDS = (
    (0, "name"), (100, "mode"), (108, "uid"), (116, "gid"), (124, "size"), (136, "mtime"), (148, "checksum"),
    (156, "type"), (157, "link name"), (257, "magic"), (265, "owner"), (297, "group"), (329, "device"), (345, "prefix"),
    (500, "padding"),
)  # fmt: skip
_EXTENSIONS = b"xgXLKNMVDAI"


class Member(NamedTuple):
    """One file of the stream: whole name, size, offset of its header, digest; content where it was asked for."""

    name: bytes
    size: int
    offset: int
    sha256: str
    content: memoryview | bytes | None


class Piece(NamedTuple):
    """Part of a stream in memory that will be used again: slices of `data` are copies, those of `view` are not."""

    data: bytes | mmap
    view: memoryview


class _Stream:
    """Pieces of any length, taken apart again in runs of a wanted length."""

    def __init__(self, pieces: Iterator[bytes | memoryview | Piece]) -> None:
        self._pieces = pieces
        self.data: bytes | mmap = b""
        self.view = memoryview(b"")
        self.at = 0
        self.end = 0
        self.before = 0

    @property
    def offset(self) -> int:
        return self.before + self.at

    def _next(self) -> bool:
        piece = next(self._pieces, None)
        if piece is None:
            return False
        self.before += self.end
        self.data, self.view = piece if isinstance(piece, Piece) else (bytes(piece), memoryview(piece))
        self.at, self.end = 0, len(self.view)
        return True

    def some(self, most: int) -> memoryview | bytes:
        """Return the next bytes, at most so many and at least one, without a copy; none only at the end of the stream."""
        while self.at == self.end:
            if not self._next():
                return b""
        start, self.at = self.at, min(self.end, self.at + most)
        return self.view[start : self.at]

    def take(self, count: int) -> memoryview | bytes:
        """Return the next `count` bytes, fewer only at the end of the stream."""
        start, stop = self.at, self.at + count
        if stop <= self.end:
            self.at = stop
            return self.view[start:stop]
        parts = []
        while count and (part := self.some(count)):
            parts.append(bytes(part))
            count -= len(part)
        return b"".join(parts)


def walk(
    pieces: Iterator[bytes | memoryview | Piece],
    name: str,
    wanted: Callable[[bytes], bool] = lambda _: False,
    pass_on: Callable[[bytes, memoryview | bytes, bool], None] | None = None,
    most: int = LIMITS.members,
    runs: bool = False,
    hashed: bool = True,
) -> Iterator[Any]:
    """Yield every member of the stream; raise `Refusal` at the first byte that the writer would not have written.

    `name` stands for the stream in messages. `wanted(member name)` asks for the content of a small member;
    `pass_on(name, bytes, first)` is handed every member's content in runs instead, for unpacking. `most` is the number of members allowed. The iterator
    must be run to its end: only then are the end marker and the gzip trailer known to be right. With `runs`, what is yielded
    may also be a `Run` of bodies, of which `wanted` is not asked and nothing is passed on. Without `hashed` no member has a
    digest: who knows the stream's needs none.
    """
    stream = _Stream(pieces)
    names = Names(most)
    folder = NO_FOLDER
    sha256: Any
    sha256, new = hashlib.sha256 if hashed else _Unhashed, tuple.__new__  # the tuple itself: nearly all time is spent in these lines
    body = False
    while True:
        if body:
            digests, size, stop = run(stream.data, stream.view, stream.at, stream.end, folder, names)
            if digests:
                stream.at = stop
                yield Run(folder.path, digests, size, stream.offset)
        at = stream.at
        offset = stream.before + at
        if at + BLOCK <= stream.end:
            block = stream.data[at : at + BLOCK]
            at += BLOCK
            stream.at = at
        else:
            block = bytes(stream.take(BLOCK))
            at = stream.at
        lead = folder.lead
        tail = block[lead : block.find(0, lead, 101)]
        try:
            size = int(block[124:135], 8)
        except ValueError:
            break
        if size >= 0 and folder.header(tail, size) == block and names.add_sibling(tail, folder.shortest):
            # The usual case: one more plain file in the folder of the member before.
            path = folder.path + tail
        else:
            known = _rebuilt(block)
            if known is None:
                break
            path, parts = known
            names.add(path, f"{name}: byte {offset}")
            folder = folder_of(path, *parts)
        if size > LIMITS.member_bytes:
            raise Refusal("limit-member", f"{name}: byte {offset + 124}", f"{size} bytes", f"{LIMITS.member_bytes}")
        count = -size % BLOCK
        stop = at + size
        if stop + count <= stream.end:
            content: memoryview | bytes = stream.view[at:stop]
            pad = stream.data[stop : stop + count]
            stream.at = stop + count
            digest = sha256(content).hexdigest()
        elif size <= WHOLE and (pass_on is not None or wanted(path)):
            # Copied: the padding may lie in the next piece, and asking for that gives this one's memory away.
            content = bytes(stream.take(size))
            if len(content) < size:
                raise _truncated(stream, name, path, size)
            digest = sha256(content).hexdigest()
            pad = bytes(stream.take(count))
        else:
            content = b""
            digest = _long(stream, name, path, size, pass_on, sha256())
            pad = bytes(stream.take(count))
        if pad != _ZEROS[:count]:
            if len(pad) < count:
                raise _truncated(stream, name, path, size + count)
            spot = stream.offset - count + len(pad) - len(pad.lstrip(b"\0"))
            raise Refusal("header-not-canonical", f"{name}: byte {spot}", "a byte that is not zero", "zero padding")
        if pass_on is not None and size <= WHOLE:
            pass_on(path, content, True)
        body = runs and path[-HEX:] == digest.encode() and folder.fields is not None
        yield new(Member, (path, size, offset, digest, content if size <= WHOLE and wanted(path) else None))
    if block == _ZEROS or not block:
        _end(stream, name, offset, block, names.count)
    else:
        raise diagnose(block, name, offset)


def _rebuilt(block: bytes) -> tuple[bytes, tuple[bytes, bytes]] | None:
    """Return (whole name, (prefix, name)) when the block is what the writer writes for them, else None."""
    path = block[:100].rstrip(b"\0")
    if block[345:346].strip(b"\0"):
        path = block[345:500].rstrip(b"\0") + b"/" + path
    parts = grammar.split(path)
    if parts is None or not _SIZE.fullmatch(block[124:136]):
        return None
    return (path, parts) if grammar.header(*parts, int(block[124:135], 8), grammar.mode_of(path)) == block else None


def _truncated(stream: _Stream, name: str, path: bytes, size: int) -> Refusal:
    return Refusal("truncated", f"{name}: byte {stream.offset}", f"end of stream inside {show(path)}", f"{size} bytes")


def _long(
    stream: _Stream,
    name: str,
    path: bytes,
    size: int,
    pass_on: Callable[[bytes, memoryview | bytes, bool], None] | None,
    digest: Any,
) -> str:
    left = size
    while left:
        part = stream.some(left)
        if not part:
            raise _truncated(stream, name, path, size)
        digest.update(part)
        if pass_on is not None:
            pass_on(path, part, left == size)
        left -= len(part)
    return str(digest.hexdigest())


class _Unhashed:
    """Stands in for a digest that nobody asked for."""

    def __init__(self, content: memoryview | bytes = b"") -> None:
        pass

    def update(self, content: memoryview | bytes) -> None:
        pass

    def hexdigest(self) -> str:
        return ""


def _end(stream: _Stream, name: str, offset: int, block: bytes, members: int) -> None:
    """Accept exactly two zero blocks and then nothing."""
    second = bytes(stream.take(BLOCK)) if block else b""
    if not members and second in (b"", _ZEROS):
        raise Refusal("empty", f"{name}: byte {offset}", "no members", "at least one")
    if second != _ZEROS:
        found = "end of stream" if len(second) < BLOCK else "a block that is not zero"
        raise Refusal("end-marker", f"{name}: byte {offset}", found, "two zero blocks")
    rest = stream.take(1)
    if rest:
        raise Refusal("trailing-data", f"{name}: byte {stream.offset - 1}", "bytes after the end marker", "the end")


def diagnose(block: bytes, name: str, offset: int) -> Refusal:
    """Say why a block is no header of the grammar, the most telling reason first."""

    def refusal(code: str, at: int, found: str, expected: str) -> Refusal:
        return Refusal(code, f"{name}: byte {offset + at}", found, expected)

    if len(block) < BLOCK:
        return refusal("truncated", len(block), "end of stream inside a header", f"{BLOCK} bytes")
    total = sum(block) - sum(block[148:156]) + 8 * 32
    if block[148:156] != b"%06o\0 " % total:
        return refusal("header-not-canonical", 148, f"checksum {show(block[148:156])}", f"'{total:06o}\\x00 '")
    kind = block[156:157]
    size = block[124:136]
    if kind != b"0":
        fault = _type_fault(kind, size)
        return refusal(fault[0], 124 if fault[0] == "size-on-non-file" else 156, fault[1], "a regular file, type '0'")
    if block[257:265] != b"ustar\x0000":
        return refusal("header-not-canonical", 257, f"magic {show(block[257:265])}", "'ustar\\x0000'")
    if not _SIZE.fullmatch(size):
        return refusal("number", 124, f"size {show(size)}", "eleven octal digits and a NUL")
    path = block[:100].rstrip(b"\0")
    prefix = block[345:500].rstrip(b"\0")
    if prefix:
        path = prefix + b"/" + path
    fault_of_name = grammar.name_fault(path)
    if fault_of_name is not None:
        return refusal(fault_of_name[0], 0, fault_of_name[1], grammar.NAME_RULE)
    parts = grammar.split(path)
    assert parts is not None, "the name fits"
    right = grammar.header(*parts, int(size[:11], 8), grammar.mode_of(path))
    at = next((index for index in range(BLOCK) if block[index] != right[index] and not 148 <= index < 156), 148)
    start, field = max((start, field) for start, field in _FIELDS if start <= at)
    stop = min((start for start, _ in _FIELDS if start > at), default=BLOCK)
    return refusal(
        "header-not-canonical", at, f"{field} {show(block[start:stop])}", f"{show(right[start:stop])} for {show(path)}"
    )


def _type_fault(kind: bytes, size: bytes) -> tuple[str, str]:
    shown = show(kind)
    if kind in (b"1", b"2", b"3", b"4", b"5", b"6") and size.strip(b"0 \0"):
        return "size-on-non-file", f"type {shown} with size {show(size)}"
    if kind in (b"1", b"2"):
        return "type-link", f"a link, type {shown}"
    if kind == b"5":
        return "type-directory", f"a folder, type {shown}"
    if kind == b"\0":
        return "header-not-canonical", f"type {shown} of the form before ustar"
    if kind in (bytes([one]) for one in _EXTENSIONS):
        return "extension-not-allowed", f"extension header, type {shown}"
    return "type-special", f"type {shown}"
