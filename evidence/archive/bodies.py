"""Bodies, the bulk of a package: a run of them in one folder is read by a loop of few steps for each file.

A body is named after its digest. So once its content was hashed, one comparison shows that its name is in the alphabet,
and nothing of it is kept but the digest. Whatever is not that stops the run, and `tarwalk.walk` says what it is.
"""

from __future__ import annotations

import hashlib
from binascii import hexlify
from dataclasses import dataclass
from typing import NamedTuple
from zlib import adler32

from evidence.archive import grammar
from evidence.archive.grammar import BLOCK, Names

HEX = 64
_PADDINGS = tuple(bytes(count) for count in range(BLOCK))


class Run(NamedTuple):
    """Bodies of one folder (its path has the final slash): 32 bytes of digest each, and their size together."""

    folder: bytes
    sha256: bytes
    size: int
    end: int  # offset of what follows in the stream


@dataclass(frozen=True)
class Folder:
    """What the headers of all plain files in one folder share, for the fast comparison."""

    path: bytes  # of the folder, with its final slash
    lead: int  # how much of it stands in the name field
    room: int  # what is left there for the file's own name
    form: bytes  # the header with places for that name, the size and the checksum
    total: int  # the checksum without the file's own name and the size digits
    shortest: int  # a shorter name of its own would not need the prefix field
    mould: bytearray | None  # the header of a body, to be filled in again and again


NO_FOLDER = Folder(b"", 0, 0, b"%b%o%o", 0, 1, None)


def folder_of(path: bytes, prefix: bytes, name: bytes) -> Folder:
    """What the headers beside the member `path` share; `prefix` and `name` are its own fields."""
    head = path[: path.rindex(b"/") + 1]
    if head.count(b"/") == 1:
        return NO_FOLDER  # scripts there have another mode
    front = name[: name.rfind(b"/") + 1]
    bare = grammar.header(prefix, front, 0, 0o644)
    total = sum(bare) - sum(bare[148:156]) + 8 * 32 - 11 * 48
    # No name of the grammar holds a per cent sign.
    form = front + b"%b" + bare[100:124] + b"%011o" + bare[135:148] + b"%06o\0 " + bare[156:]
    lead, room, shortest = len(front), 100 - len(front), 101 - len(head) if prefix else 1
    mould = bytearray(form % (bytes(room), 0, 0)) if shortest <= HEX <= room else None
    return Folder(head, lead, room, form, total, shortest, mould)


def run(view: memoryview, start: int, end: int, folder: Folder, names: Names) -> tuple[bytes, int, int]:
    """Read the bodies that lie whole in `view[start:end]`, all in `folder`, in which the member before them lies.

    Returns their digests, their size together and where the next header begins; no digests when there is no such body.
    """
    mould, total, sha256 = folder.mould, folder.total, hashlib.sha256
    assert mould is not None, "the folder can hold bodies"
    known, last, room = names.beside()
    first, after = folder.lead, folder.lead + HEX
    found: list[bytes] = []
    at, payload = start, 0
    while (begin := at + BLOCK) <= end:
        block = bytes(view[at:begin])
        digits, tail = block[124:135], block[first:after]
        if not digits.isdigit() or b"8" in digits or b"9" in digits:
            break
        size = int(digits, 8)
        stop = begin + size
        next_at = stop + -size % BLOCK
        if next_at > end or tail <= last or tail in known or len(found) == room:
            break
        mould[first:after] = tail
        mould[124:135] = digits
        # Adler-32 begins with the sum, at a fifth of the cost of `sum` (RFC 1950, section 9).
        mould[148:154] = b"%06o" % (total + (adler32(tail + digits) & 0xFFFF) - 1)
        if mould != block:
            break
        digest = sha256(view[begin:stop]).digest()
        if hexlify(digest) != tail or bytes(view[stop:next_at]) != _PADDINGS[next_at - stop]:
            break
        known[tail] = (tail, False)
        found.append(digest)
        at, last = next_at, tail
        payload += size
    if found:
        names.passed(last, len(found))
    return b"".join(found), payload, at
