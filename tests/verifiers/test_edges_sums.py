"""SHA256SUMS at the edges of its form, whole and in pieces however they are cut."""

from __future__ import annotations

import pytest
from checking.listing import FILE, Listing
from checking.sums import Sums, SumsFault, Unplain, compare, looks_plain, read_sums, rows, told

ONE, TWO, THREE = "0" * 64, "a9" * 32, "f" * 64


def lines(*names: str, digest: str = ONE) -> bytes:
    return "".join(f"{digest}  {name}\n" for name in names).encode("utf-8", "surrogateescape")


GOOD = [
    ("a",),
    ("a", "b"),
    ("a", "a.b", "a/b", "a0", "ab", "b/c/d", "z"),
    ("+a", "-a", "_a", "a+b", "a-", "a_"),
    ("SHA256SUM", "SHA256SUMS.x", "x/SHA256SUMS", "xSHA256SUMS"),
    tuple(f"n{number:04d}" for number in range(500)),
]
ODD = [  # no fault, but nothing that a look at whole blocks admits
    ("a b",),
    ("a", "b c", "d"),
    ("\u00e9",),
    ("a\udcff",),
    (".a",),
    ("a/.b",),
    ("a..b",),
]


def cuts(data: bytes) -> list[list[bytes]]:
    """A text whole, byte by byte, and in pieces of several sizes, empty ones among them."""
    sized = [[data[at : at + size] for at in range(0, len(data), size)] for size in (1, 7, 66, 67, 68, 200)]
    return [[data], [b"", data, b""], *sized]


@pytest.mark.parametrize("names", GOOD)
def test_plain_lists_are_read_the_same_in_any_pieces(names: tuple[str, ...]) -> None:
    data = lines(*names)
    assert read_sums(data) == dict.fromkeys(names, ONE)
    for pieces in cuts(data):
        assert looks_plain(pieces)
        assert [tuple(row) for row in rows(pieces)] == [(ONE, name) for name in names]


@pytest.mark.parametrize("names", ODD)
def test_what_does_not_look_plain_may_have_no_fault_all_the_same(names: tuple[str, ...]) -> None:
    data = lines(*names)
    assert read_sums(data) == dict.fromkeys(names, ONE)
    for pieces in cuts(data):
        assert [row[1] for row in rows(pieces)] == list(names)


@pytest.mark.parametrize(
    ("data", "code", "place", "found"),
    [
        (b"", "sums-empty", "line 1", "nothing"),
        (lines("a")[:-1], "sums-form", "line 1", "no final newline"),
        (lines("a") + lines("b")[:-1], "sums-form", "line 2", "no final newline"),
        (lines("a") + b"\n", "sums-form", "line 2", '""'),
        (b"\n" + lines("a"), "sums-form", "line 1", '""'),
        (lines("a", digest="A" * 64), "sums-form", "line 1", "A" * 57 + "..."),
        (lines("a", digest="0" * 63), "sums-form", "line 1", "0" * 57 + "..."),
        (lines("a", digest="0" * 65), "sums-form", "line 1", "0" * 57 + "..."),
        (lines("a").replace(b"  ", b" *"), "sums-form", "line 1", "0" * 57 + "..."),
        (lines("a").replace(b"  ", b" "), "sums-form", "line 1", "0" * 57 + "..."),
        (lines(" a"), "sums-form", "line 1", "0" * 57 + "..."),
        (lines("*a"), "sums-form", "line 1", "0" * 57 + "..."),
        (lines("a\\nb"), "sums-form", "line 1", "0" * 57 + "..."),
        (lines("a\r"), "sums-form", "line 1", "0" * 57 + "..."),
        (lines("a", "a"), "sums-duplicate", "line 2", "a"),
        (lines("a", "b", "a"), "sums-duplicate", "line 3", "a"),
        (lines("b", "a"), "sums-order", "line 2", "a"),
        (lines("a/b", "a.b"), "sums-order", "line 2", "a.b"),
        (lines("a", "c", "b"), "sums-order", "line 3", "b"),
        (lines("/a"), "sums-path", "line 1", "/a"),
        (lines("a/"), "sums-path", "line 1", "a/"),
        (lines("a//b"), "sums-path", "line 1", "a//b"),
        (lines("."), "sums-path", "line 1", "."),
        (lines(".."), "sums-path", "line 1", ".."),
        (lines("a/./b"), "sums-path", "line 1", "a/./b"),
        (lines("a/.."), "sums-path", "line 1", "a/.."),
        (lines("SHA256SUMS"), "sums-path", "line 1", "SHA256SUMS"),
        (lines("A", "SHA256SUMS", "b"), "sums-path", "line 2", "SHA256SUMS"),
    ],
)
def test_a_fault_has_its_code_line_and_what_was_found(data: bytes, code: str, place: str, found: str) -> None:
    with pytest.raises(SumsFault) as caught:
        read_sums(data)
    assert (caught.value.code, caught.value.place, caught.value.found) == (code, place, found)
    assert caught.value.expected
    for pieces in cuts(data):
        assert not looks_plain(pieces)


def test_digests_go_with_their_names() -> None:
    data = f"{TWO}  a\n{THREE}  b/c\n{ONE}  d\n".encode()
    assert read_sums(data) == {"a": TWO, "b/c": THREE, "d": ONE}
    assert list(rows([data[:80], data[80:]])) == [(TWO, "a"), (THREE, "b/c"), (ONE, "d")]
    odd = f"{TWO}  a b\n{THREE}  c\n".encode()
    assert read_sums(odd) == {"a b": TWO, "c": THREE}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"b": THREE},
        {"a": TWO, "d": THREE},
        {"b": None},
        {"a": None, "b": None, "d": None},
        {"0": TWO, "c": THREE, "e": TWO},
        {"b": None, "c": TWO, "bb": THREE, "a": TWO, "none": None},
        {"never": None},
    ],
)
def test_a_list_after_alterations_is_that_of_the_altered_names(changes: dict[str, str | None]) -> None:
    names = {"d": ONE, "a": ONE, "b": TWO}
    made = Sums(names)
    assert list(made.items()) == sorted(names.items())
    assert b"\n".join([*made.lines(), b""]) == made.written({})
    altered = {name: digest for name, digest in {**names, **changes}.items() if digest is not None}
    right = "".join(f"{altered[name]}  {name}\n" for name in sorted(altered)).encode()
    assert made.written(changes) == right
    assert dict(made) == names
    assert made.written({}) == Sums(names).written({})


def test_a_list_is_compared_with_another_line_by_line() -> None:
    base = Sums({"a": ONE, "b": TWO, "d": ONE})
    told = compare(base.written({"b": THREE, "c": TWO, "d": None}), frozenset(base.lines()))
    assert told is not None
    assert {name: row[0] for name, row in told.found.items()} == {"b": THREE, "c": TWO}
    assert told.gone == {"b", "d"}  # their lines are gone
    same = compare(base.written({}), frozenset(base.lines()))
    assert same is not None
    assert (same.found, same.gone) == ({}, frozenset())
    for faulty in (b"", b"\n", base.written({})[:-1], base.written({}) + base.written({}), base.written({}) + b"x\n"):
        assert compare(faulty, frozenset(base.lines())) is None


@pytest.mark.parametrize("names", [*GOOD[:4], ("x/" + ONE, "x/" + TWO), ("a/b/c", "results/" + TWO)])
def test_a_list_that_names_the_files_is_told_run_by_run(names: tuple[str, ...]) -> None:
    data = "".join(f"{name[-64:] if len(name) > 64 else THREE}  {name}\n" for name in names).encode()
    listing = Listing.of([(name, FILE) for name in (*names, "SHA256SUMS")])
    for pieces in ([piece for piece in cut if piece] for cut in cuts(data)):
        found = [
            (f"{run.folder}/{name}".lstrip("/"), digest)
            for run, digests in told(pieces, listing.runs())
            for name, digest in zip(run.names, digests or run.names, strict=True)
        ]
        assert found == list(read_sums(data).items())


@pytest.mark.parametrize(
    "data", [lines("a", "b"), lines("a", "b", "c", "d"), lines("a", "b", "d"), b"", lines("a", "b", "c")[:-1]]
)
def test_a_list_that_names_other_files_is_not_told_so(data: bytes) -> None:
    listing = Listing.of([(name, FILE) for name in ("a", "b", "c", "SHA256SUMS")])
    for pieces in cuts(data):
        with pytest.raises(Unplain):
            list(told(pieces, listing.runs()))


def test_an_empty_list_of_no_files_is_not_told_so() -> None:
    with pytest.raises(Unplain):
        list(told([b""], Listing.of([("SHA256SUMS", FILE)]).runs()))
