"""Bodies, the bulk of a package: a run of them in one folder is read by a loop of few steps for each file.

A body is named after its digest. So once its content was hashed, one comparison shows that its name is in the alphabet,
and nothing of it is kept but the digest. Whatever is not that stops the run, and `tarwalk.walk` says what it is.
"""

from __future__ import annotations

import hashlib
from binascii import hexlify
from mmap import mmap
from struct import Struct
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


class Folder(NamedTuple):
    """What the headers of all plain files in one folder share, for the fast comparison."""

    path: bytes  # of the folder, with its final slash
    lead: int  # how much of it stands in the name field
    room: int  # what is left there for the file's own name
    form: bytes  # the header with places for that name, the size and the checksum
    total: int  # the checksum without the file's own name and the size digits
    shortest: int  # a shorter name of its own would not need the prefix field
    fields: Struct | None  # of the header of a body: its own name, the size, the checksum, and `fixed` around them
    fixed: tuple[bytes, ...]

    def header(self, tail: bytes, size: int) -> bytes:
        """Return the header of a plain file in this folder: what `grammar.header` returns, at a fifth of the cost.

        `tail` is its own name, at least `shortest` and at most `room` bytes.
        """
        # Adler-32 begins with the sum, at a fifth of the cost of `sum` (RFC 1950, section 9).
        total = self.total + (adler32(b"%011o" % size, adler32(tail)) & 0xFFFF) - 1
        return self.form % (tail.ljust(self.room, b"\0"), size, total)


NO_FOLDER = Folder(b"", 0, 0, b"%b%o%o", 0, 1, None, ())


def folder_of(path: bytes, prefix: bytes, name: bytes) -> Folder:
    """What the headers beside the member `path` share; `prefix` and `name` are its own fields."""
    head = path[: path.rindex(b"/") + 1]
    if head.count(b"/") == 1:
        return NO_FOLDER  # scripts there have another mode
    front = name[: name.rfind(b"/") + 1]
    bare = grammar.header(prefix, front, 0, 0o644)
    total = int(bare[148:154], 8) - 11 * 48
    # No name of the grammar holds a per cent sign.
    form = front + b"%b" + bare[100:124] + b"%011o" + bare[135:148] + b"%06o\0 " + bare[156:]
    lead, room, shortest = len(front), 100 - len(front), 101 - len(head) if prefix else 1
    if not shortest <= HEX <= room:
        return Folder(head, lead, room, form, total, shortest, None, ())
    fields = Struct(f"{lead}s{HEX}s{60 - lead}s11s13s8s356s")
    front, _, owner, _, time, _, rest = fields.unpack(form % (bytes(room), 0, 0))
    return Folder(head, lead, room, form, total, shortest, fields, (front, owner, time, rest))


def run(
    data: bytes | mmap, view: memoryview, start: int, end: int, folder: Folder, names: Names
) -> tuple[bytes, int, int]:
    """Read the bodies that lie whole in `data[start:end]`, all in `folder`, in which the member before them lies.

    `view` is of `data`. Returns their digests, their size together and where the next header begins; no digests when
    there is no such body.
    """
    assert folder.fields is not None, "the folder can hold bodies"
    unpack, total, sha256 = folder.fields.unpack_from, folder.total, hashlib.sha256
    right_front, right_owner, right_time, right_rest = folder.fixed
    known, last, room = names.beside()
    found: list[bytes] = []
    at, payload = start, 0
    while (begin := at + BLOCK) <= end:
        front, tail, owner, digits, time, checksum, rest = unpack(data, at)
        if (
            rest != right_rest or time != right_time or owner != right_owner or front != right_front
            or not digits.isdigit() or b"8" in digits or b"9" in digits
            # Adler-32 begins with the sum, at a fifth of the cost of `sum` (RFC 1950, section 9).
            or checksum != b"%06o\0 " % (total + (adler32(digits, adler32(tail)) & 0xFFFF) - 1)
        ):  # fmt: skip
            break
        size = int(digits, 8)
        stop = begin + size
        after = stop + -size % BLOCK
        if after > end or tail <= last or tail in known or len(found) == room:
            break
        digest = sha256(view[begin:stop]).digest()
        if hexlify(digest) != tail or data[stop:after] != _PADDINGS[after - stop]:
            break
        known[tail] = (tail, False)
        found.append(digest)
        at, last = after, tail
        payload += size
    if found:
        names.passed(last, len(found))
    return b"".join(found), payload, at
