"""Deflates the tar stream in pieces, side by side, into the one gzip member that an archive is."""

from __future__ import annotations

import hashlib
import os
import zlib
from collections import deque
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
    """Takes a stream in parts and writes it as gzip into `file`; `finish` completes the attributes.

    `sha256` and `size` are of the gzip file, `stream_sha256` and `length` of the stream.

    The stream is cut into pieces of 1 MiB, which are deflated side by side, as pigz does: zlib releases the interpreter
    lock. Each piece is deflated by itself, primed with the 32 KiB before it and ended on a byte boundary, so the result
    depends on the pieces alone and not on how many threads there are. Raw deflate is framed here, because zlib's own gzip
    header says which system it ran on.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._threads = max(1, min(os.cpu_count() or 1, 8))
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="deflate")
        self._summing = ThreadPoolExecutor(1, thread_name_prefix="sum")  # one thread keeps the pieces in their order
        self._waiting: deque[tuple[Future[bytes], Future[None], memoryview]] = deque()
        self._spare: list[memoryview] = []
        self._piece, self._filled, self._window = self._memory(), 0, b""
        self._stream, self._packed, self._crc = hashlib.sha256(), hashlib.sha256(), 0
        self.length = self.size = 0
        self.sha256 = self.stream_sha256 = ""
        self._emit(grammar.GZIP_HEADER)

    def __enter__(self) -> Deflater:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)
        self._summing.shutdown(cancel_futures=True)

    def put(self, part: bytes) -> None:
        """Take the next part."""
        start, end = self._filled, self._filled + len(part)
        if end < PIECE:
            self._piece[start:end] = part
            self._filled = end
            return
        view = memoryview(part)
        while view:
            count = min(PIECE - self._filled, len(view))
            self._piece[self._filled : self._filled + count] = view[:count]
            self._advance(count)
            view = view[count:]

    def pull(self, handle: int, size: int) -> int:
        """Take the next `size` bytes of a regular file, without a copy between; return how many were there."""
        left = size
        while left:
            room = self._piece[self._filled : self._filled + left]
            count = os.readv(handle, [room])
            self._advance(count)
            left -= count
            if count < len(room):  # a regular file gives less only where it ends
                break
        return size - left

    def finish(self) -> None:
        """Write what is left, and the end."""
        if self._filled:
            self._cut()
        while self._waiting:
            self._collect()
        trailer = self._crc.to_bytes(4, "little") + (self.length & 0xFFFFFFFF).to_bytes(4, "little")
        self._emit(_LAST_BLOCK + trailer)
        self.sha256, self.stream_sha256 = self._packed.hexdigest(), self._stream.hexdigest()

    def _memory(self) -> memoryview:
        """Room for one piece: pages that were touched before cost nothing again."""
        return self._spare.pop() if self._spare else memoryview(bytearray(PIECE))

    def _advance(self, count: int) -> None:
        self._filled += count
        if self._filled == PIECE:
            self._cut()

    def _cut(self) -> None:
        piece = self._piece[: self._filled]
        deflated = self._pool.submit(_deflate, piece, self._window)
        self._waiting.append((deflated, self._summing.submit(self._sum, piece), self._piece))
        self.length += len(piece)
        self._window = bytes(piece[-_WINDOW:])
        while len(self._waiting) > self._threads + 1:
            self._collect()
        self._piece, self._filled = self._memory(), 0

    def _sum(self, piece: memoryview) -> None:
        self._stream.update(piece)
        self._crc = crc32(piece, self._crc)

    def _collect(self) -> None:
        deflated, summed, memory = self._waiting.popleft()
        self._emit(deflated.result())
        summed.result()
        self._spare.append(memory)

    def _emit(self, data: bytes) -> None:
        self._file.write(data)
        self._packed.update(data)
        self.size += len(data)


def _deflate(piece: memoryview, window: bytes) -> bytes:
    packer = zlib.compressobj(LEVEL, zlib.DEFLATED, -15, zlib.DEF_MEM_LEVEL, zlib.Z_DEFAULT_STRATEGY, window)
    return packer.compress(piece) + packer.flush(zlib.Z_SYNC_FLUSH)
