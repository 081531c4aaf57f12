"""SHA256SUMS: read line by line, so that a list of any length costs no memory; or whole, with what is wrong with it."""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import Dict, FrozenSet, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from checking.listing import Run
from checking.reading import shown

SUMS = "SHA256SUMS"
_PART = rb"[A-Za-z0-9_+-][A-Za-z0-9._+-]*"
_LINES = re.compile(rb"(?:[0-9a-f]{64}  " + _PART + rb"(?:/" + _PART + rb")*\n)+")
_LINE = re.compile(rb"([0-9a-f]{64})  ([^\n]+)\n")


class SumsFault(Exception):
    """SHA256SUMS is not in the form that this project writes: code, place, what was found and expected."""

    def __init__(self, code: str, place: str, found: str, expected: str) -> None:
        super().__init__("%s at %s" % (code, place))
        self.code = code
        self.place = place
        self.found = found
        self.expected = expected


class Unplain(Exception):
    """A list may have a fault, or names other files than it should: it is to be read whole, to tell which."""


Row = Tuple[str, str]
"""One line: a digest as hex, and the name of a file."""


def _blocks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The bytes in whole lines; what follows the last one comes at the end."""
    rest = b""
    for piece in pieces:
        cut = piece.rfind(b"\n") + 1
        if cut:
            yield rest + piece[:cut]
            rest = piece[cut:]
        else:
            rest += piece
    if rest:
        yield rest


def rows(pieces: Iterable[bytes]) -> Iterator[Row]:
    """The lines of a list that is known to have no fault."""
    for block in _blocks(pieces):
        for line in block.decode("utf-8", "surrogateescape").split("\n")[:-1]:
            yield line[:64], line[66:]


def _row(line: bytes) -> Row:
    text = line.decode("utf-8", "surrogateescape")
    return text[:64], text[66:]


def looks_plain(pieces: Iterable[bytes]) -> bool:
    """Whether a list has no fault, of those that can be told block by block: all names are plain, and they rise."""
    before = ""
    for block in _blocks(pieces):
        if not _LINES.fullmatch(block):
            return False
        names = [line[66:] for line in block.decode("ascii").split("\n")[:-1]]
        if SUMS in names or not (before < names[0] and all(map(str.__lt__, names, names[1:]))):
            return False
        before = names[-1]
    return bool(before)


Told = Tuple[Run, Optional[List[str]]]
"""A run of files and the digests of its lines; None where the name of each is its digest, too."""


def told(pieces: Iterable[bytes], runs: Iterable[Run]) -> Iterator[Told]:
    """The lines of a list run by run. Raises Unplain unless it has no fault and names these files, but for itself.

    Where files are named after their digests, what their lines have to be is written down and compared, whole.
    """
    source = iter(pieces)
    held, at = b"", 0
    for run in runs:
        if not run.folder:
            run = run._replace(names=[name for name in run.names if name != SUMS])
            if not run.names:
                continue
        start = run.folder + "/" if run.folder else ""
        size = len("".join(run.names)) + len(run.names) * len("%064d  %s\n" % (0, start))
        while len(held) - at < size:
            piece = next(source, b"")
            if not piece:
                raise Unplain
            held, at = held[at:] + piece, 0
        lines = held[at : at + size]
        at += size
        own = "\n".join([*map(("  " + start).join, zip(run.names, run.names)), ""]) if run.hashed else ""
        if lines == own.encode("utf-8", "replace") and _LINES.match(lines, 0, size // len(run.names)):
            yield run, None
            continue
        if not _LINES.fullmatch(lines):
            raise Unplain
        digests, names = zip(*rows([lines]))
        if list(names) != [start + name for name in run.names]:
            raise Unplain
        yield run, list(digests)
    if held[at:] or next(source, b"") or not held:
        raise Unplain


class Sums(Dict[str, str]):
    """Name -> hash of a list that has no fault; and the same list after alterations."""

    def __init__(self, found: Mapping[str, str]) -> None:
        super().__init__(sorted(found.items()))
        self._names = list(self)
        self._lines = [_line(name, digest) for name, digest in self.items()]

    def lines(self) -> List[bytes]:
        """The lines in order, without their ends."""
        return self._lines

    def written(self, changes: Mapping[str, Optional[str]]) -> bytes:
        """The list with other digests of some names, with names added, and (None) without some."""
        lines = list(self._lines)
        for name in sorted(changes, reverse=True):
            digest, place = changes[name], bisect_left(self._names, name)
            there = name in self
            lines[place : place + there] = [] if digest is None else [_line(name, digest)]
        return b"\n".join([*lines, b""])


def _line(name: str, digest: str) -> bytes:
    return ("%s  %s" % (digest, name)).encode("utf-8", "surrogateescape")


class Difference(NamedTuple):
    """What distinguishes a list from another one: lines that the other lacks, and names whose lines are gone."""

    found: Dict[str, Row]
    gone: FrozenSet[str]


def compare(data: bytes, lines: FrozenSet[bytes]) -> Optional[Difference]:
    """How a list differs from one with these lines, which has no fault; None when it may have a fault itself."""
    mine = data.split(b"\n")
    if mine.pop() or not mine:
        return None
    names = [line[66:] for line in mine]
    if not all(map(bytes.__lt__, names, names[1:])):
        return None
    fresh = [line for line in mine if line not in lines]
    if fresh and not looks_plain([b"".join([line + b"\n" for line in fresh])]):
        return None
    gone = lines.difference(mine)
    return Difference({row[1]: row for row in map(_row, fresh)}, frozenset(_row(line)[1] for line in gone))


def read_sums(data: bytes) -> Dict[str, str]:
    """Name -> hash of a SHA256SUMS: GNU text form, sorted, no duplicates, nothing else. Raises SumsFault."""
    if looks_plain([data]):
        return {name: digest for digest, name in rows([data])}
    if not data:
        raise SumsFault("sums-empty", "line 1", "nothing", "a line for every file")
    lines = data.split(b"\n")
    if lines.pop():
        raise SumsFault("sums-form", "line %d" % (len(lines) + 1), "no final newline", "one final newline")
    sums: Dict[str, str] = {}
    before = b""
    for number, line in enumerate(lines, 1):
        match = _LINE.fullmatch(line + b"\n")
        if match is None or b"\r" in line or b"\\" in line or line[66:67] in (b" ", b"*"):
            raise SumsFault(
                "sums-form",
                "line %d" % number,
                shown(line.decode("latin-1"), 60),
                "64 lower-case hex, two spaces, a name",
            )
        name = match.group(2)
        text = name.decode("utf-8", "surrogateescape")
        if name == before or text in sums:
            raise SumsFault("sums-duplicate", "line %d" % number, shown(text), "each name once")
        if name < before:
            raise SumsFault("sums-order", "line %d" % number, shown(text), "names sorted as bytes")
        parts = text.split("/")
        if text == SUMS or "" in parts or "." in parts or ".." in parts:
            raise SumsFault("sums-path", "line %d" % number, shown(text), "a relative name inside the package")
        before = name
        sums[text] = match.group(1).decode()
    return sums
