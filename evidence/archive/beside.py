"""Bytes that a process beside this one makes, handed over through memory that both share.

The interpreter lock has two threads of Python wait for one another, and a pipe copies twice. A child that fills pieces of
shared memory in turn costs one call of the system for each of them.
"""

from __future__ import annotations

import contextlib
import itertools
import marshal
import mmap
import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

from evidence.archive.grammar import Refusal
from evidence.errors import EvidenceError

Facts = dict[str, Any]
"""What a child says at the end: text, numbers, lists, nothing else."""


def pays() -> bool:
    """Tell whether a second process can run at the same time as this one, and be forked from it."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    # A fork beside other threads may inherit a held lock.
    return usable > 1 and hasattr(os, "fork") and threading.active_count() == 1


class Filler:
    """Lays bytes into pieces of memory, each filled to its end but the last.

    `memory()` gives room for the next piece, `give(piece)` takes what was laid of one.
    """

    def __init__(self, memory: Callable[[], memoryview], give: Callable[[memoryview], object]) -> None:
        self._memory, self._give = memory, give
        self._piece = memoryview(b"")
        self._size = self._filled = 0

    def put(self, part: bytes) -> None:
        """Lay a copy of these bytes."""
        start, end = self._filled, self._filled + len(part)
        if end < self._size:
            self._piece[start:end] = part
            self._filled = end
            return
        view = memoryview(part)
        while view:
            room = self._room()
            count = min(len(room), len(view))
            room[:count] = view[:count]
            self._lay(count)
            view = view[count:]

    def pull(self, handle: int, size: int) -> int:
        """Lay the next `size` bytes of a regular file, without a copy between; return how many were there."""
        left = size
        while left:
            room = self._room()[:left]
            count = os.readv(handle, [room])
            self._lay(count)
            left -= count
            if count < len(room):  # a regular file gives less only where it ends
                break
        return size - left

    def flush(self) -> None:
        """Give what was laid of the last piece, if anything was."""
        if self._filled:
            self._give(self._piece[: self._filled])
            self._size = self._filled = 0

    def _room(self) -> memoryview:
        if not self._size:
            self._piece = self._memory()
            self._size = len(self._piece)
        return self._piece[self._filled :]

    def _lay(self, count: int) -> None:
        self._filled += count
        if self._filled == self._size:
            self.flush()


class Beside:
    """Pieces that a child process fills, in their order; each stays as it is until it is given back, the oldest first.

    `make(filler)` runs in the child and returns what `facts` holds once all pieces were taken. A `Refusal`, `EvidenceError` or
    `OSError` that it raises is raised here, behind the pieces that it laid before. Anything else that ends the child is an
    `EvidenceError`, with `what` for its name. Use it in a `with`: the child is gone at the end, however that comes.
    """

    def __init__(self, make: Callable[[Filler], Facts], *, pieces: int, size: int, what: str) -> None:
        self.facts: Facts = {}
        self._what = what
        self._slots = [mmap.mmap(-1, size) for _ in range(pieces)]
        self._ready, say_ready = os.pipe()
        free, self._say_free = os.pipe()
        self._child = os.fork()
        if not self._child:
            os.close(self._ready)
            os.close(self._say_free)
            _fill(self._slots, say_ready, free, make)
        os.close(say_ready)
        self._free = free  # stays open: the child may have ended before its last pieces are given back

    def __enter__(self) -> Beside:
        return self

    def __exit__(self, *_: object) -> None:
        for pipe in (self._ready, self._free, self._say_free):
            os.close(pipe)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._child, signal.SIGKILL)
        os.waitpid(self._child, 0)

    def __iter__(self) -> Iterator[tuple[mmap.mmap, memoryview]]:
        for slot in itertools.cycle(self._slots):
            word = os.read(self._ready, 4)
            if len(word) < 4:
                raise EvidenceError(f"{self._what} ended early", "was it killed? run it again")
            count = int.from_bytes(word, "little")
            if not count:
                break
            yield slot, memoryview(slot)[:count]
        with os.fdopen(os.dup(self._ready), "rb") as rest:
            raised, said = marshal.loads(rest.read())  # noqa: S302  # the child of this process wrote it
        if raised:
            raise _RAISED[raised](*said)
        self.facts = said

    def give_back(self) -> None:
        """Let the child use the oldest piece again that was taken and not given back."""
        os.write(self._say_free, b"f")


_RAISED: dict[str, Callable[..., Exception]] = {
    "Refusal": Refusal,
    "EvidenceError": lambda message, hint, code: EvidenceError(message, hint, code=code),
    "OSError": OSError,
}


def _fill(slots: list[mmap.mmap], say_ready: int, free: int, make: Callable[[Filler], Facts]) -> None:
    """The child: never returns. Fills slots in turn and, after a zero, says how it ended."""
    turn, views = itertools.count(), [memoryview(slot) for slot in slots]

    def memory() -> memoryview:
        number = next(turn)
        if number >= len(slots) and not os.read(free, 1):
            os._exit(1)
        return views[number % len(slots)]

    try:
        filler = Filler(memory, lambda piece: os.write(say_ready, len(piece).to_bytes(4, "little")))
        said: tuple[str, Any]
        try:
            said = "", make(filler)
        except Refusal as error:
            said = "Refusal", (error.code, error.place, error.found, error.expected)
        except EvidenceError as error:
            said = "EvidenceError", (error.message, error.hint, error.code)
        except OSError as error:
            said = "OSError", (error.errno, error.strerror or str(error), error.filename)
        filler.flush()
        os.write(say_ready, bytes(4) + marshal.dumps(said))
        os._exit(0)
    finally:
        os._exit(1)
