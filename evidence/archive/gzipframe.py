"""Reads the one gzip member that a package archive is, as strictly as it was written.

isal inflates where it is installed and zlib where not; both see raw deflate only, and the frame is judged here,
so that their verdicts are the same.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from evidence.archive.grammar import GZIP_HEADER, LIMITS, Limits, Refusal

TAKE = 32 << 10
GIVE = 256 << 10
"""What is inflated at once is hashed and copied too; this much stays in a processor's own cache meanwhile."""
_RESERVED, _EXTRA, _NAME, _COMMENT, _CHECK = 0xE0, 0x04, 0x08, 0x10, 0x02


def fastest() -> Any:
    """Return the module that inflates fastest here: `isal.isal_zlib`, or the standard library's `zlib`."""
    try:
        from isal import isal_zlib
    except ImportError:
        return zlib
    return isal_zlib


class Frame:
    """One pass over a .tgz: `pieces` yields the inflated stream, and after its end the attributes are true.

    `read(n)` gives the next n bytes of the file, `size` is the file's length. `findings` holds what is wrong with
    the frame and does not stop the reading: a header of another gzip.
    """

    def __init__(
        self, read: Callable[[int], bytes], size: int, name: str, codec: Any = None, limits: Limits = LIMITS
    ) -> None:
        self._read = read
        self._size = size
        self._name = name
        self._codec = codec or fastest()
        self._most = limits.inflated(size)
        self._limits = limits
        self._digest = hashlib.sha256()
        self.consumed = 0
        self.produced = 0
        self.findings: list[Refusal] = []

    @property
    def sha256(self) -> str:
        """Digest of all bytes of the file that were read."""
        return self._digest.hexdigest()

    def drain(self) -> None:
        """Read the file to its end, so that its digest is known although its content was refused."""
        while self._next():
            pass

    def _next(self) -> bytes:
        piece = self._read(TAKE)
        self._digest.update(piece)
        self.consumed += len(piece)
        return piece

    def _refusal(self, code: str, offset: int, found: str, expected: str) -> Refusal:
        return Refusal(code, f"{self._name}: byte {offset}", found, expected)

    def pieces(self) -> Iterator[bytes]:
        """Yield the stream in pieces of at most `GIVE` bytes; raise `Refusal` for anything but one canonical member."""
        piece = self._next()
        start = self._header(piece)
        inflater = self._codec.decompressobj(-15)
        crc32 = self._codec.crc32
        crc = 0
        data = piece[start:]
        while not inflater.eof:
            try:
                out = inflater.decompress(data, GIVE)
            except self._codec.error as error:
                raise self._refusal(
                    "gzip-deflate", self.consumed, f"broken deflate data before this byte ({_plain(error)})", "deflate"
                ) from None
            data = inflater.unconsumed_tail
            if out:
                self.produced += len(out)
                if self.produced > self._most:
                    raise self._too_much()
                crc = crc32(out, crc)
                yield out
            if not data and len(out) < GIVE and not inflater.eof:
                data = self._next()
                if not data:
                    raise self._refusal("gzip-truncated", self.consumed, "end of file inside deflate data", "more data")
        self._trailer(inflater.unused_data, crc)

    def _too_much(self) -> Refusal:
        if self.produced > self._limits.total_bytes:
            return self._refusal(
                "limit-total", self.consumed, f"{self.produced} bytes", f"at most {self._limits.total_bytes} inflated"
            )
        return self._refusal(
            "limit-ratio",
            self.consumed,
            f"{self.produced} bytes out of a file of {self._size}",
            f"at most {self._limits.ratio} to 1 and {self._limits.ratio_slack} bytes",
        )

    def _header(self, piece: bytes) -> int:
        """Judge the header and return where deflate begins."""
        if piece[:2] != GZIP_HEADER[:2]:
            found = f"bytes {piece[:2].hex()}" if piece else "an empty file"
            raise self._refusal("gzip-magic", 0, found, "a gzip file, 1f8b")
        if piece[:10] == GZIP_HEADER:
            return 10
        if len(piece) < 10:
            raise self._refusal("gzip-truncated", len(piece), "end of file inside the gzip header", "10 bytes")
        offset = next(index for index in range(10) if piece[index] != GZIP_HEADER[index])
        finding = self._refusal("gzip-header", offset, f"header {piece[:10].hex()}", GZIP_HEADER.hex())
        if piece[2] != 8 or piece[3] & _RESERVED:
            raise finding
        # A header of another gzip program is refused, and yet the stream below it can be compared.
        self.findings.append(finding)
        at = 10
        if piece[3] & _EXTRA:
            at += 2 + int.from_bytes(piece[at : at + 2], "little")
        for flag in (_NAME, _COMMENT):
            if piece[3] & flag:
                at = piece.find(b"\0", at) + 1
                if not at:
                    raise finding
        at += 2 if piece[3] & _CHECK else 0
        if at > len(piece):
            raise finding
        return at

    def _trailer(self, rest: bytes, crc: int) -> None:
        while len(rest) <= 8 and (more := self._next()):
            rest += more
        at = self.consumed - len(rest)
        if len(rest) < 8:
            raise self._refusal("gzip-truncated", self.consumed, f"a trailer of {len(rest)} bytes", "8 bytes")
        found = int.from_bytes(rest[:4], "little")
        if found != crc:
            raise self._refusal("gzip-crc", at, f"CRC {found:08x}", f"{crc:08x}")
        length = int.from_bytes(rest[4:8], "little")
        if length != self.produced & 0xFFFFFFFF:
            raise self._refusal("gzip-length", at + 4, f"length {length}", f"{self.produced & 0xFFFFFFFF}")
        if len(rest) > 8:
            code = "gzip-members" if rest[8:10] == GZIP_HEADER[:2] else "gzip-trailing"
            raise self._refusal(code, at + 8, f"bytes {rest[8:16].hex()} after the trailer", "end of file")


def _plain(error: Exception) -> str:
    """Return the codec's words without its error numbers, which differ between codecs."""
    return "invalid" if not str(error) else "invalid stream"
