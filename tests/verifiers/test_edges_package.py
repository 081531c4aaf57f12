"""A package as names and bytes, at its edges: what a folder lists and opens, what an alteration in memory changes."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from checking import package
from checking.listing import Listing
from checking.package import Folder, Memory, Overlay, Source, Unreadable, View


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def laid(tmp_path: Path) -> Path:
    """A folder with one of every kind of entry."""
    root = tmp_path / "p"
    for name, data in {"b.txt": b"two", "a/deep/er/x": b"one", "a/y": b"", "a/z": b"zzz"}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    (root / "a/none").mkdir()
    (root / "link").symlink_to(root / "b.txt")
    (root / "way").symlink_to(root / "a")
    os.mkfifo(root / "a/pipe")
    return root


ENTRIES = {
    "a/deep/er/x": "file",
    "a/none": "folder",
    "a/pipe": "special",
    "a/y": "file",
    "a/z": "file",
    "b.txt": "file",
    "link": "link",
    "way": "link",
}


def reason_of(source: Source, name: str, asked: str = "read") -> str:
    with pytest.raises(Unreadable) as caught:
        getattr(source, asked)(name)
    assert caught.value.name == name
    assert str(caught.value) == f"{name}: {caught.value.reason}"
    return caught.value.reason


def test_a_folder_lists_every_entry_by_its_kind_and_follows_no_link(laid: Path, tmp_path: Path) -> None:
    assert Folder(str(laid)).entries == ENTRIES
    (tmp_path / "empty").mkdir()
    assert Folder(str(tmp_path / "empty")).entries == {}
    with pytest.raises(OSError, match="nowhere"):
        Folder(str(tmp_path / "nowhere"))


@pytest.mark.parametrize("asked", ["read", "digest"])
@pytest.mark.parametrize(
    ("name", "reason"),
    [("link", "link"), ("a/pipe", "special"), ("a/none", "folder"), ("a", "not there"), ("c", "not there")],
)
def test_only_a_regular_file_is_opened(laid: Path, name: str, reason: str, asked: str) -> None:
    folder = Folder(str(laid))
    assert reason_of(folder, name, asked) == reason
    assert known(folder) == {}


def test_bytes_and_digests_are_those_of_the_file_however_they_are_asked_for(laid: Path) -> None:
    folder = Folder(str(laid))
    assert folder.read("a/deep/er/x") == b"one"
    assert known(folder) == {"a/deep/er/x": sha(b"one")}
    assert folder.digest("b.txt") == sha(b"two")
    assert folder.digest("a/y") == sha(b"")
    assert folder.read("a/y") == b""
    assert known(folder) == {"a/deep/er/x": sha(b"one"), "b.txt": sha(b"two"), "a/y": sha(b"")}
    # Known is known: a digest is asked of the disk once.
    (laid / "b.txt").write_bytes(b"altered")
    assert folder.digest("b.txt") == sha(b"two")
    assert folder.read("b.txt") == b"altered"
    assert folder.digest("b.txt") == sha(b"altered")


def test_a_large_file_is_digested_whole_and_read_up_to_64_mib(laid: Path) -> None:
    data = bytes(range(256)) * (3 << 12) + b"tail"
    (laid / "large").write_bytes(data)
    assert Folder(str(laid)).digest("large") == sha(data)
    assert Folder(str(laid)).read("large") == data
    for size, kept in ((64 << 20, True), ((64 << 20) + 1, False)):
        with (laid / "large").open("wb") as file:
            file.truncate(size)
        folder = Folder(str(laid))
        if kept:
            assert len(folder.read("large")) == size
        else:
            assert reason_of(folder, "large") == "67108865 bytes, more than 67108864"
            assert len(folder.digest("large")) == 64


@pytest.mark.parametrize("most", [1, 2, 3, 4, 1000])
def test_a_file_that_comes_in_pieces_is_read_to_its_end(laid: Path, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    real = os.read
    monkeypatch.setattr(package.os, "read", lambda descriptor, size: real(descriptor, min(size, most)))
    folder = Folder(str(laid))
    for name, data in {"a/deep/er/x": b"one", "a/y": b"", "a/z": b"zzz"}.items():
        assert folder.digest(name) == sha(data)
        assert folder.read(name) == data
        assert folder.digest(name) == sha(data)


def test_a_file_that_became_something_else_after_the_listing_is_refused(laid: Path) -> None:
    folder = Folder(str(laid))
    (laid / "b.txt").unlink()
    assert reason_of(folder, "b.txt") == "No such file or directory"
    os.mkfifo(laid / "b.txt")
    for asked in ("read", "digest"):
        assert reason_of(folder, "b.txt", asked) == "not a regular file"
    (laid / "b.txt").unlink()
    (laid / "b.txt").symlink_to(laid / "a/z")
    for asked in ("read", "digest"):
        assert "symbolic links" in reason_of(folder, "b.txt", asked)
    # A folder on the way that became a link is not walked through either.
    (laid / "a/deep").rename(laid / "elsewhere")
    (laid / "a/deep").symlink_to(laid / "elsewhere")
    assert reason_of(folder, "a/deep/er/x") in ("Not a directory", "Too many levels of symbolic links")
    assert "b.txt" not in known(folder)


def test_no_descriptor_stays_open_but_one_until_the_folder_is_closed(laid: Path) -> None:
    def count() -> int:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208

    if not Path("/proc/self/fd").is_dir():
        pytest.skip("this system does not list descriptors")
    before, folder = count(), Folder(str(laid))
    for _ in range(3):
        for name in ("a/deep/er/x", "b.txt", "a/z"):
            folder.read(name)
            folder.digest(name)
        for name in ("link", "c", "a/deep/er/none"):
            reason_of(folder, name)
    assert count() <= before + 1
    folder.close()
    assert count() == before
    folder.close()
    assert folder.read("a/z") == b"zzz"
    folder.close()
    assert count() == before


BASE = Memory({"a": b"1", "b/c": b"2", "b/d": b"3"})


def test_memory_gives_bytes_and_tells_what_it_was_asked() -> None:
    memory = Memory({"a": b"1", "b": b"2"})
    assert memory.entries == {"a": "file", "b": "file"}
    assert known(memory) == {}
    assert memory.read("a") == b"1"
    assert memory.digest("b") == sha(b"2")
    assert known(memory) == {"a": sha(b"1"), "b": sha(b"2")}
    assert reason_of(memory, "c") == reason_of(memory, "c", "digest") == "not there"


def test_an_overlay_without_coming_or_going_shares_the_listing() -> None:
    overlay = Overlay(BASE, {"a": b"new"})
    assert (overlay.changed, overlay.moved) == ({"a"}, set())
    assert overlay.entries is BASE.entries
    assert (overlay.read("a"), overlay.read("b/c")) == (b"new", b"2")
    assert (overlay.digest("a"), overlay.digest("b/c")) == (sha(b"new"), sha(b"2"))
    assert BASE.read("a") == b"1"


def test_an_overlay_adds_removes_and_replaces() -> None:
    changes = {"a": None, "b/c": b"", "b/e": b"5", "gone": None}
    overlay = Overlay(BASE, changes, {"b/d": "link", "pipe": "special"})
    assert overlay.changed == {"a", "b/c", "b/e", "gone", "b/d", "pipe"}
    assert overlay.moved == {"a", "b/e", "b/d", "pipe"}
    assert overlay.entries == {"b/c": "file", "b/d": "link", "b/e": "file", "pipe": "special"}
    assert BASE.entries == {"a": "file", "b/c": "file", "b/d": "file"}
    for asked in ("read", "digest"):
        assert reason_of(overlay, "a", asked) == "not there"
        assert reason_of(overlay, "b/d", asked) == "link"
        assert reason_of(overlay, "pipe", asked) == "special"
    assert (overlay.read("b/c"), overlay.read("b/e")) == (b"", b"5")
    assert (overlay.digest("b/c"), overlay.digest("b/e")) == (sha(b""), sha(b"5"))


def test_what_an_overlay_knows_is_what_is_there_now() -> None:
    base = Memory({"a": b"1", "b": b"2", "c": b"3", "d": b"4"})
    for name in base.entries:
        base.digest(name)
    overlay = Overlay(base, {"a": None, "b": b"new", "e": b"5"}, {"c": "link"})
    assert known(overlay) == {"b": sha(b"new"), "d": sha(b"4"), "e": sha(b"5")}
    assert set(known(base)) == {"a", "b", "c", "d"}


NAMES = ["a", "a-b/x", "a.b/c", "a/b", "a/c/d", "a/c/e/f", "a/d", "a0/b", "ab/c", "z/y/x"]


def test_names_below_a_folder_are_its_own_and_not_its_neighbours() -> None:
    names = Listing.of(dict.fromkeys(reversed(NAMES), "file").items())
    assert names.below("") == NAMES
    assert names.below("a") == ["a/b", "a/c/d", "a/c/e/f", "a/d"]
    assert names.below("a/c") == ["a/c/d", "a/c/e/f"]
    assert names.below("z") == ["z/y/x"]
    assert names.below("a/b") == names.below("q") == []


def test_folders_are_those_right_below_in_order() -> None:
    names = Listing.of(dict.fromkeys(reversed(NAMES), "file").items())
    assert names.folders("a") == ["a/c"]
    assert names.folders("a/c") == ["a/c/e"]
    assert names.folders("z") == names.folders("z") == ["z/y"]
    assert names.folders("a0") == names.folders("q") == []
    more = Listing.of(dict.fromkeys(["r/b/1", "r/b/2", "r/a/1/2", "r/c", "r/aa/3"], "file").items())
    assert more.folders("r") == ["r/a", "r/aa", "r/b"]


def known(source: Source | View) -> dict[str, str]:
    """What a source knows of the digests of its names, and of some others."""
    entries = source.listing() if isinstance(source, View) else source.entries
    told = {name: source.known(name) for name in [*entries, "a", "b", "nowhere", "no/where"]}
    return {name: digest for name, digest in told.items() if digest is not None}


def seen(files: dict[str, bytes]) -> View:
    source = Memory(files)
    return View(source)


def test_a_view_says_what_is_there() -> None:
    overlay = Overlay(BASE, {}, {"b/e": "link"})
    view = View(overlay)
    assert [view.kind(name) for name in ("a", "b/e", "b", "c")] == ["file", "link", None, None]
    assert [view.has(name) for name in ("a", "b/e", "b", "c")] == [True, False, False, False]
    assert (view.read("a"), view.digest("b/c")) == (b"1", sha(b"2"))
    assert view.listing() == overlay.entries
    assert view.below("b") == ["b/c", "b/d", "b/e"]
    assert view.folders("b") == []
    assert known(view) == {"a": sha(b"1"), "b/c": sha(b"2")}


@pytest.mark.parametrize("asked", ["kind", "has", "read", "digest"])
def test_what_asked_for_a_file_is_touched_by_its_alteration_alone(asked: str) -> None:
    view = seen({"a": b"1", "b": b"2"})
    getattr(view, asked)("a")
    for changes, touched in (({"a": b"x"}, True), ({"b": b"x"}, False), ({"a": None}, True), ({"c": b"x"}, False)):
        overlay = Overlay(Memory({"a": b"1", "b": b"2"}), changes)
        assert view.touched(overlay, overlay.changed, overlay.moved) is touched, changes


@pytest.mark.parametrize(
    ("ask", "folder"),
    [(View.below, "f"), (View.folders, "f"), (View.below, ""), (lambda view, _: view.listing(), "")],
)
def test_what_listed_a_folder_is_touched_by_coming_and_going_below_it(ask, folder: str) -> None:
    files = {"f/a": b"1", "fg/a": b"2", "g": b"3"}
    view = seen(files)
    ask(view, folder)
    for changes, touched in (
        ({"f/a": b"x"}, False),
        ({"f/a": None}, True),
        ({"f/b/c": b"x"}, True),
        ({"fg/b": b"x"}, folder == ""),
        ({"g": None}, folder == ""),
    ):
        overlay = Overlay(Memory(files), changes)
        assert view.touched(overlay, overlay.changed, overlay.moved) is touched, changes


def test_what_was_derived_is_touched_only_when_it_comes_out_otherwise() -> None:
    files = {"a": b"one", "b": b"two"}
    view = seen(files)
    lengths = {name: view.derive(name, lambda data: None if data is None else len(data)) for name in ("a", "b", "c")}
    assert lengths == {"a": 3, "b": 3, "c": None}
    for changes, touched in (
        ({"a": b"new"}, False),
        ({"a": b"newer"}, True),
        ({"b": None}, True),
        ({"c": b""}, True),
        ({"d": b"x"}, False),
    ):
        overlay = Overlay(Memory(files), changes)
        assert view.touched(overlay, overlay.changed, overlay.moved) is touched, changes
    linked = Overlay(Memory(files), {}, {"a": "link"})
    assert view.touched(linked, linked.changed, linked.moved)


def test_what_cannot_be_read_is_derived_as_nothing(laid: Path) -> None:
    folder = Folder(str(laid))
    (laid / "b.txt").unlink()
    view = View(folder)
    assert [view.derive(name, repr) for name in ("a/z", "b.txt", "link")] == ["b'zzz'", "None", "None"]
