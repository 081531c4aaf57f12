"""What a process beside this one makes: the bytes in their order, what it says of them, and how it can fail."""

import errno
import os
import random
import signal
from pathlib import Path

import pytest

from evidence.archive import beside
from evidence.archive.beside import Beside, Filler
from evidence.archive.grammar import Refusal
from evidence.errors import EvidenceError

SIZE = 64


def taken(make, *, pieces=3, held=1, out=b""):
    """All that came, with at most `held` pieces not yet given back, and what was said."""
    waiting = 0
    with Beside(make, pieces=pieces, size=SIZE, what="x.tgz: the process") as child:
        for slot, view in child:
            assert slot[: len(view)] == view
            out += view
            waiting += 1
            if waiting == held:
                child.give_back()
                waiting -= 1
    return out, child.facts


@pytest.mark.parametrize("length", [0, 1, SIZE - 1, SIZE, SIZE + 1, 3 * SIZE, 20 * SIZE + 7])
@pytest.mark.parametrize("cut", [1, 7, SIZE - 1, SIZE, SIZE + 1, 5 * SIZE])
@pytest.mark.parametrize("held", [1, 3])
def test_bytes_come_in_order_however_they_are_laid(length, cut, held, tmp_path):
    data = random.Random(length).randbytes(length)
    file = tmp_path / "file"
    file.write_bytes(data)

    def make(filler: Filler):
        handle, pulled = os.open(file, os.O_RDONLY), 0
        for number, start in enumerate(range(0, length, cut)):
            if number % 2:
                filler.put(data[start : start + cut])
            else:
                os.lseek(handle, start, os.SEEK_SET)
                pulled += filler.pull(handle, cut)
        os.lseek(handle, 0, os.SEEK_END)
        return {"pulled": pulled, "after": filler.pull(handle, 5)}

    pulled = sum(len(data[start : start + cut]) for start in range(0, length, 2 * cut))
    assert taken(make, held=held) == (data, {"pulled": pulled, "after": 0})


def test_pieces_are_full_but_for_the_last():
    sizes = []
    filler = Filler(lambda: memoryview(bytearray(10)), lambda piece: sizes.append(len(piece)))
    for count in (3, 10, 4, 21):
        filler.put(bytes(count))
    filler.flush()
    filler.flush()
    assert sizes == [10, 10, 10, 8]


@pytest.mark.parametrize(
    "error",
    [
        Refusal("truncated", "x: byte 3", "the end", "more"),
        EvidenceError("x: shrank", "try again", code=1),
        OSError(errno.EIO, "Input/output error", "x"),
    ],
)
def test_what_was_laid_before_an_error_comes_and_then_the_error(error):
    def make(filler: Filler):
        filler.put(b"so far")
        raise error

    out = bytearray()
    with pytest.raises(type(error)) as caught:
        taken(make, out=out)
    assert out == b"so far"
    assert vars(caught.value) == vars(error)
    assert str(caught.value) == str(error)


@pytest.mark.parametrize(
    "make",
    [
        lambda filler: os.kill(os.getpid(), signal.SIGKILL),
        lambda filler: os._exit(0),
        lambda filler: 1 / 0,
        lambda filler: signal.raise_signal(signal.SIGINT),
    ],
)
def test_a_process_that_ends_early_is_named(make, capfd):
    with pytest.raises(EvidenceError, match=r"x\.tgz: the process ended early"):
        taken(make)


def test_a_process_that_is_not_waited_for_is_gone():
    def make(filler: Filler):
        while True:
            filler.put(b"more")

    with Beside(make, pieces=2, size=SIZE, what="x") as child:
        next(iter(child))
        number = child._child
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


def test_its_descriptors_are_given_back():
    before = sorted(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").is_dir() else None
    taken(lambda filler: {})
    assert before is None or sorted(os.listdir("/proc/self/fd")) == before


def test_one_processor_or_another_thread_is_no_place_for_it(monkeypatch):
    monkeypatch.setattr(beside.os, "sched_getaffinity", lambda _: {0}, raising=False)
    assert not beside.pays()
    monkeypatch.setattr(beside.os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    monkeypatch.setattr(beside.threading, "active_count", lambda: 2)
    assert not beside.pays()
    monkeypatch.setattr(beside.threading, "active_count", lambda: 1)
    assert beside.pays()
