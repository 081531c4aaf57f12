"""A run of bodies is read in a loop of its own, which must see all that the plain way sees."""

import gzip
import hashlib
import mmap

import pytest

from evidence.archive import bodies, grammar
from evidence.archive.bodies import Run
from evidence.archive.grammar import Refusal
from evidence.archive.tarwalk import Piece, walk
from tests.archive.packages import publish

CONTENTS = [bytes([n]) * length for n, length in enumerate((0, 1, 500, 511, 512, 513, 700, 2048, 3000))]
BODIES = {hashlib.sha256(data).hexdigest(): data for data in CONTENTS}


def member(name, data=b""):
    path = name.encode()
    head = grammar.header(*grammar.split(path), len(data), grammar.mode_of(path))
    return head + data + bytes(grammar.padding(len(data)))


def stream_of(rows, end=grammar.END):
    return b"".join(member(name, data) for name, data in rows) + end


def read(pieces, runs):
    """What is told of a stream: (name, digest) of all members, and the refusal that ended it."""
    rows = []
    try:
        for one in walk(pieces, "x.tar", runs=runs):
            if type(one) is Run:
                digests = [one.sha256[at : at + 32].hex() for at in range(0, len(one.sha256), 32)]
                rows += [(f"{one.folder.decode()}{digest}", digest) for digest in digests]
            else:
                rows.append((one.name.decode(), one.sha256))
    except Refusal as refusal:
        return rows, (refusal.code, refusal.place, refusal.found, refusal.expected)
    return rows, None


def test_a_run_is_a_run(tmp_path):
    files = {f"results/x/bodies/{name}": data for name, data in BODIES.items()} | {"a/x.txt": b"1", "z/y.txt": b"2"}
    stream = gzip.decompress(publish(files, tmp_path).read_bytes())
    runs = [one for one in walk(iter([stream]), "x.tar", runs=True) if type(one) is Run]
    assert len(runs) == 1
    assert len(runs[0].sha256) == 32 * (len(BODIES) - 1)
    assert runs[0].folder == b"demo/results/x/bodies/"
    assert runs[0].size == sum(map(len, BODIES.values())) - len(BODIES[min(BODIES)])


def flips(stream):
    """The stream with one bit turned, and, where that lies in a header, with the checksum that goes with it too."""
    at = 0
    while at + grammar.BLOCK <= len(stream):
        size = int(stream[at + 124 : at + 135] or b"0", 8) if stream[at] else 0
        stop = at + grammar.BLOCK + size + grammar.padding(size)
        for place in range(at, stop):
            for bit in (0, 3, 5, 7) if place < at + 160 or not place % 8 else ():
                changed = bytearray(stream)
                changed[place] ^= 1 << bit
                yield bytes(changed)
                if place < at + grammar.BLOCK and not at + 148 <= place < at + 156:
                    total = sum(changed[at : at + grammar.BLOCK]) - sum(changed[at + 148 : at + 156]) + 8 * 32
                    changed[at + 148 : at + 156] = b"%06o\0 " % total
                    yield bytes(changed)
        at = stop


@pytest.mark.parametrize("folder", ["t/b/", f"t/{'long' * 12}/bodies/"])  # the second needs the prefix field
def test_every_flip_is_told_as_the_plain_way_tells_it(folder):
    rows = [(folder + name, BODIES[name]) for name in sorted(BODIES)[:3]]
    stream = stream_of(rows)
    assert read(iter([stream]), True) == read(iter([stream]), False) == ([(n, n[-64:]) for n, _ in rows], None)
    told = set()
    for changed in flips(stream):
        plain = read(iter([changed]), False)
        assert read(iter([changed]), True) == plain
        told.add(plain[1] and plain[1][0])
    assert {None, "header-not-canonical", "end-marker", "order", "path-character", "truncated"} <= told


def altered():
    names = [f"t/bodies/{name}" for name in sorted(BODIES)]
    rows = [(name, BODIES[name[-64:]]) for name in names]
    odd = [
        ("t/bodies/" + "F" * 64, b""),
        (names[4].upper().replace("T/BODIES", "t/bodies"), b""),
        (names[4] + "/x", b""),
    ]
    odd += [(names[4] + "0", b""), (names[4][:-1], b""), (names[4], b"other"), ("t/bodies/con", b""), ("t/z", b"")]
    yield rows
    yield [*rows[:3], rows[2], *rows[3:]]
    yield [*rows[:3], rows[4], rows[3], *rows[5:]]
    for extra in odd:
        for at in range(len(rows) + 1):
            yield [*rows[:at], extra, *rows[at:]]
        yield sorted([*rows, extra])


def test_what_does_not_belong_is_told_as_the_plain_way_tells_it():
    told = set()
    for rows in altered():
        stream = stream_of(rows)
        plain = read(iter([stream]), False)
        assert read(iter([stream]), True) == plain
        told.add(plain[1] and plain[1][0])
    assert told >= {None, "order", "path-duplicate", "path-collision", "path-file-as-directory", "path-character"}


@pytest.mark.parametrize("most", range(1, 10))
def test_the_limit_of_members_holds_inside_a_run(most):
    stream = stream_of((f"t/bodies/{name}", BODIES[name]) for name in sorted(BODIES))
    seen = []
    for runs in (False, True):
        with (
            pytest.raises(Refusal, match=f"limit-members .*at most {most}")
            if most < 9
            else pytest.MonkeyPatch.context()
        ):
            seen.append(sum(len(one.sha256) // 32 if type(one) is Run else 1
                            for one in walk(iter([stream]), "x.tar", most=most, runs=runs)))  # fmt: skip
    assert seen == ([] if most < 9 else [9, 9])


@pytest.mark.parametrize("length", [512, 600, 1024, 1500, 4096, 100_000])
def test_pieces_in_memory_that_is_used_again_give_the_same(length):
    stream = stream_of((f"t/bodies/{name}", BODIES[name]) for name in sorted(BODIES))
    slots = [mmap.mmap(-1, length) for _ in range(2)]

    def pieces():
        for number, start in enumerate(range(0, len(stream), length)):
            slot, part = slots[number % 2], stream[start : start + length]
            slot[: len(part)] = part
            yield Piece(slot, memoryview(slot)[: len(part)])
            slot[:] = b"\xee" * length

    assert read(pieces(), True) == read(iter([stream]), False)


def test_an_absolute_name_as_the_first_is_refused():
    for names in (["/x"], ["/x", "/y"], ["t/x", "/y"], ["/"]):
        rows, refusal = read(iter([stream_of((name, b"") for name in names)]), False)
        assert refusal[0] == "path-absolute"
        assert refusal[1] == f"x.tar: byte {512 * len(rows)}"


def test_a_folder_that_can_hold_no_body_has_no_fields():
    for name, can in (("t/x", False), ("t/bodies/x", True), (f"t/{'d' * 70}/x", False)):
        path = name.encode()
        assert (bodies.folder_of(path, *grammar.split(path)).fields is not None) == can
