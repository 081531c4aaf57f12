"""The names of a package, kept folder by folder, at their edges: beside a plain dictionary of the same names."""

from __future__ import annotations

import pytest
from checking.listing import Listing, one_of_hashes

NAMES = ["a", "a-b/x", "a.b/c", "a/b", "a/c/d", "a/c/e/f", "a/d", "a0/b", "ab/c", "results/bodies/x", "z/y/x"]
KINDS = dict.fromkeys(NAMES, "file") | {
    "a/link": "link",
    "z/y/none": "folder",
    "pipe": "special",
    "q/r/s/pipe": "special",
}


def listing(kinds: dict[str, str]) -> Listing:
    return Listing.of(reversed(list(kinds.items())))


def check(made: Listing, kinds: dict[str, str]) -> None:
    """Every question has the answer of the dictionary."""
    assert dict(made) == kinds
    assert len(made) == len(kinds)
    assert sorted(made) == sorted(kinds)
    assert made.odd() == {name: kind for name, kind in kinds.items() if kind != "file"}
    for name in [*kinds, "none", "a/none", "a/c", "", "a/"]:
        assert made.find(name) == kinds.get(name), name
        assert (name in made) is (name in kinds), name
    told = [f"{run.folder}/{last}".lstrip("/") for run in made.runs() for last in run.names]
    assert told == sorted(name for name, kind in kinds.items() if kind == "file")
    folders = {name.rpartition("/")[0] for name in kinds}
    assert made.all_folders() == sorted(folders)
    every = {"/".join(name.split("/")[:depth]) for name in kinds for depth in range(1, name.count("/") + 1)}
    for folder in ["", *every, "none", "a/b"]:
        start = folder + "/" if folder else ""
        assert made.below(folder) == sorted(name for name in kinds if name.startswith(start)), folder
        right = {
            name[: name.index("/", len(start))]
            for name in kinds
            if name.startswith(start) and "/" in name[len(start) :]
        }
        assert made.folders(folder) == made.folders(folder) == sorted(right), folder
        files = sorted(
            name[len(start) :] for name, kind in kinds.items() if kind == "file" and name.rpartition("/")[0] == folder
        )
        assert made.files(folder) == files, folder
        assert made.joined(folder) == "".join(name + "/" for name in files)
        assert dict(made.places(folder)) == {name: place for place, name in enumerate(files)}


@pytest.mark.parametrize(
    "kinds",
    [
        KINDS,
        {},
        {"a": "file"},
        {"a/b": "file"},
        {"a": "link"},
        {"a/b/c": "special"},
        {f"f{n}/x": "file" for n in range(30)},
    ],
)
def test_a_listing_answers_as_the_names_themselves(kinds: dict[str, str]) -> None:
    check(listing(kinds), kinds)


@pytest.mark.parametrize(
    "changes",
    [
        {"a": None},
        {"a": None, "pipe": None},
        {"a/c/d": None, "a/c/new": "file"},
        {"a/c/e/f": None},
        {"z/y/x": None, "z/y/none": None},
        {"z/y/none": None},
        {"new/deep/er": "file"},
        {"new/deep/pipe": "special"},
        {"a/b": "link", "a/link": "file", "q/r/s/pipe": "folder"},
        {"a/b": "file"},
        {"never": None, "a/never": None, "nowhere/never": None},
        dict.fromkeys(KINDS),
        {},
    ],
)
def test_an_altered_listing_is_that_of_the_altered_names_and_the_old_one_stays(changes: dict[str, str | None]) -> None:
    old = listing(KINDS)
    altered = {name: kind for name, kind in {**KINDS, **changes}.items() if kind is not None}
    made = old.altered(changes)
    check(made, altered)
    check(old, KINDS)
    check(made.altered({name: KINDS.get(name) for name in changes}), KINDS)


def test_what_is_no_name_is_not_there() -> None:
    made = listing(KINDS)
    assert 7 not in made  # type: ignore[comparison-overlap]
    with pytest.raises(KeyError, match="none"):
        made["none"]
    assert made["a/link"] == "link"


@pytest.mark.parametrize(
    ("lengths", "hashed"),
    [((64,), True), ((64, 64), True), ((63, 65), False), ((65, 63), False), ((129,), False), ((), False)],
)
def test_names_are_hashes_when_each_is_as_long_as_one(lengths: tuple[int, ...], hashed: bool) -> None:
    assert bool(one_of_hashes("".join("0" * length + "/" for length in lengths))) is hashed
