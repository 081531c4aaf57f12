"""Deflates the tar stream in pieces, side by side, into the one gzip member that an archive is."""

from __future__ import annotations

import hashlib
import os
import zlib
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import BinaryIO

from evidence.archive import grammar

try:
    from isal.isal_zlib import crc32  # the same sum in a third of the time
except ImportError:
    from zlib import crc32

LEVEL = 3
PIECE = 1 << 20
_WINDOW = 1 << 15
_LAST_BLOCK = b"\x03\x00"
"""The empty last block of a deflate stream (RFC 1951, 3.2.6): final, fixed codes, end of block."""


class Deflater:
    """Takes a stream in pieces and writes it as gzip into `file`; `finish` completes the attributes.

    `sha256` and `size` are of the gzip file, `stream_sha256` and `length` of the stream. It holds on to `most` pieces at once.

    The pieces have 1 MiB each, but for the last, and are deflated side by side, as pigz does: zlib releases the interpreter
    lock. Each piece is deflated by itself, primed with the 32 KiB before it and ended on a byte boundary, so the result
    depends on the pieces alone and not on how many threads there are. Raw deflate is framed here, because zlib's own gzip
    header says which system it ran on.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._threads = max(1, min(os.cpu_count() or 1, 8))
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="deflate")
        self._summing = ThreadPoolExecutor(1, thread_name_prefix="sum")  # one thread keeps the pieces in their order
        self._waiting: deque[tuple[Future[bytes], Future[None], Callable[[], object]]] = deque()
        self.most = self._threads + 1
        self._window = b""
        self._stream, self._packed, self._crc = hashlib.sha256(), hashlib.sha256(), 0
        self.length = self.size = 0
        self.sha256 = self.stream_sha256 = ""
        self._emit(grammar.GZIP_HEADER)

    def __enter__(self) -> Deflater:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)
        self._summing.shutdown(cancel_futures=True)

    def take(self, piece: memoryview, done: Callable[[], object]) -> None:
        """Take the next piece of `PIECE` bytes, or the last; `done()` says that its memory is free again, in their order."""
        deflated = self._pool.submit(_deflate, piece, self._window)
        self._waiting.append((deflated, self._summing.submit(self._sum, piece), done))
        self.length += len(piece)
        self._window = bytes(piece[-_WINDOW:])
        while len(self._waiting) > self.most:
            self._collect()

    def finish(self) -> None:
        """Write what is left, and the end."""
        while self._waiting:
            self._collect()
        trailer = self._crc.to_bytes(4, "little") + (self.length & 0xFFFFFFFF).to_bytes(4, "little")
        self._emit(_LAST_BLOCK + trailer)
        self.sha256, self.stream_sha256 = self._packed.hexdigest(), self._stream.hexdigest()

    def _sum(self, piece: memoryview) -> None:
        self._stream.update(piece)
        self._crc = crc32(piece, self._crc)

    def _collect(self) -> None:
        deflated, summed, done = self._waiting.popleft()
        self._emit(deflated.result())
        summed.result()
        done()

    def _emit(self, data: bytes) -> None:
        self._file.write(data)
        self._packed.update(data)
        self.size += len(data)


def _deflate(piece: memoryview, window: bytes) -> bytes:
    packer = zlib.compressobj(LEVEL, zlib.DEFLATED, -15, zlib.DEF_MEM_LEVEL, zlib.Z_DEFAULT_STRATEGY, window)
    return packer.compress(piece) + packer.flush(zlib.Z_SYNC_FLUSH)
