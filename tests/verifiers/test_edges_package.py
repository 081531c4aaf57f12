"""A package as names and bytes, at its edges: what a folder lists and opens, what an alteration in memory changes."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from checking import package
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


def known(source: Source, *names: str) -> dict[str, str]:
    """What a source knows of the names without being asked for their bytes."""
    found = {name: source.known(name) for name in names}
    return {name: digest for name, digest in found.items() if digest is not None}


def reason_of(source: Source, name: str, asked: str = "read") -> str:
    with pytest.raises(Unreadable) as caught:
        getattr(source, asked)(name)
    assert caught.value.name == name
    assert str(caught.value) == f"{name}: {caught.value.reason}"
    return caught.value.reason


def test_a_folder_lists_every_entry_by_its_kind_and_follows_no_link(laid: Path, tmp_path: Path) -> None:
    assert dict(Folder(str(laid)).entries) == ENTRIES
    (tmp_path / "empty").mkdir()
    assert dict(Folder(str(tmp_path / "empty")).entries) == {}
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
    assert folder.known(name) is None


def test_bytes_and_digests_are_those_of_the_file_however_they_are_asked_for(laid: Path) -> None:
    folder = Folder(str(laid))
    assert folder.read("a/deep/er/x") == b"one"
    assert known(folder, *ENTRIES) == {"a/deep/er/x": sha(b"one")}
    assert folder.digest("b.txt") == sha(b"two")
    assert folder.digest("a/y") == sha(b"")
    assert folder.read("a/y") == b""
    assert known(folder, *ENTRIES) == {"a/deep/er/x": sha(b"one"), "b.txt": sha(b"two"), "a/y": sha(b"")}
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
    assert b"".join(Folder(str(laid)).pieces("large")) == data
    for size, kept in ((64 << 20, True), ((64 << 20) + 1, False)):
        with (laid / "large").open("wb") as file:
            file.truncate(size)
        folder = Folder(str(laid))
        if kept:
            assert len(folder.read("large")) == sum(map(len, folder.pieces("large"))) == size
        else:
            assert reason_of(folder, "large") == "67108865 bytes, more than 67108864"
            with pytest.raises(Unreadable, match="67108865 bytes"):
                list(folder.pieces("large"))
            assert len(folder.digest("large")) == 64


@pytest.mark.parametrize("into", [True, False])
@pytest.mark.parametrize("most", [1, 2, 3, 4, 1000])
def test_a_file_that_comes_in_pieces_is_read_to_its_end(
    laid: Path, monkeypatch: pytest.MonkeyPatch, most: int, into: bool
) -> None:
    real, readv = os.read, os.readv
    monkeypatch.setattr(package.os, "read", lambda descriptor, size: real(descriptor, min(size, most)))
    monkeypatch.setattr(package.os, "readv", lambda descriptor, buffers: readv(descriptor, [buffers[0][:most]]))
    monkeypatch.setattr(package, "_INTO", into)
    folder = Folder(str(laid))
    for name, data in {"a/deep/er/x": b"one", "a/y": b"", "a/z": b"zzz"}.items():
        assert folder.digest(name) == sha(data)
        assert folder.read(name) == data
        assert b"".join(folder.pieces(name)) == data
        assert folder.digest(name) == sha(data)


def test_a_file_that_was_cut_while_it_was_read_has_the_digest_of_what_came(
    laid: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = package._size
    monkeypatch.setattr(package, "_size", lambda descriptor, name, most=None: real(descriptor, name, most) + 5)
    folder = Folder(str(laid))
    assert folder.digest("a/z") == sha(b"zzz")
    assert folder.read("a/z") == b"zzz"


def test_a_body_under_its_own_hash_is_known_as_well_as_any_other(laid: Path) -> None:
    names = []
    for data in (b"1", b"2", b"3"):
        (laid / "bodies").mkdir(exist_ok=True)
        (laid / "bodies" / sha(data)).write_bytes(data)
        names.append("bodies/" + sha(data))
    (laid / "bodies" / sha(b"other")).write_bytes(b"4")
    folder = Folder(str(laid))
    assert known(folder, *names) == {}
    assert folder.read(names[1]) == b"2"
    assert known(folder, *names) == {names[1]: sha(b"2")}
    assert folder.digest(names[2]) == sha(b"3")
    assert known(folder, *names) == {names[1]: sha(b"2"), names[2]: sha(b"3")}
    wrong = "bodies/" + sha(b"other")
    assert folder.digest(wrong) == folder.known(wrong) == sha(b"4")
    assert folder.known("bodies/none") is None
    assert folder.known("nowhere/" + sha(b"1")) is None
    # Known is known: the disk is not asked again.
    (laid / names[2]).unlink()
    assert folder.digest(names[2]) == sha(b"3")


def test_a_file_that_became_something_else_after_the_listing_is_refused(laid: Path) -> None:
    folder = Folder(str(laid))
    (laid / "b.txt").unlink()
    assert reason_of(folder, "b.txt") == "No such file or directory"
    os.mkfifo(laid / "b.txt")
    with pytest.raises(Unreadable, match="not a regular file"):
        list(folder.pieces("b.txt"))
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
    assert folder.known("b.txt") is None


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
            list(folder.pieces(name))
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
    assert dict(memory.entries) == {"a": "file", "b": "file"}
    assert known(memory, "a", "b", "c") == {}
    assert memory.read("a") == b"1"
    assert memory.digest("b") == sha(b"2")
    assert known(memory, "a", "b", "c") == {"a": sha(b"1"), "b": sha(b"2")}
    assert list(memory.pieces("a")) == [b"1"]
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
    assert dict(overlay.entries) == {"b/c": "file", "b/d": "link", "b/e": "file", "pipe": "special"}
    assert dict(BASE.entries) == {"a": "file", "b/c": "file", "b/d": "file"}
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
    assert known(overlay, *"abcdef") == {"b": sha(b"new"), "d": sha(b"4"), "e": sha(b"5")}
    assert set(known(base, *"abcdef")) == {"a", "b", "c", "d"}
    fresh = Memory({"a": b"1"})
    assert known(Overlay(fresh, {"e": b"5"}), "a", "e") == {"e": sha(b"5")}


def seen(files: dict[str, bytes]) -> View:
    return View(Memory(files))


def test_a_view_says_what_is_there() -> None:
    overlay = Overlay(BASE, {}, {"b/e": "link"})
    view = View(overlay)
    assert [view.kind(name) for name in ("a", "b/e", "b", "c")] == ["file", "link", None, None]
    assert [view.has(name) for name in ("a", "b/e", "b", "c")] == [True, False, False, False]
    assert (view.read("a"), view.digest("b/c")) == (b"1", sha(b"2"))
    assert view.listing() is overlay.entries
    assert list(view.pieces("b/d")) == [b"3"]
    assert view.below("b") == ["b/c", "b/d", "b/e"]
    assert view.folders("b") == []
    assert [view.known(name) for name in ("a", "b/c", "b/e", "c")] == [sha(b"1"), sha(b"2"), None, None]


@pytest.mark.parametrize("asked", ["kind", "has", "read", "digest", "pieces"])
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


def measured(more: int, data: bytes | None) -> int | None:
    return None if data is None else len(data) + more


def test_what_was_derived_is_touched_only_when_it_comes_out_otherwise() -> None:
    files = {"a": b"one", "b": b"two"}
    view = seen(files)
    lengths = {name: view.derive(name, measured, 1) for name in ("a", "b", "c")}
    assert lengths == {"a": 4, "b": 4, "c": None}
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


def test_what_is_derived_is_worked_out_once_for_each_source_function_and_words() -> None:
    asked: list[tuple[str, bytes | None]] = []

    def note(word: str, data: bytes | None) -> str:
        asked.append((word, data))
        return word.upper()

    base = Memory({"a": b"1", "b": b"2"})
    for _ in range(2):
        assert [View(base).derive("a", note, word) for word in ("x", "y")] == ["X", "Y"]
        assert View(base).derive("b", note, "x") == "X"
    assert asked == [("x", b"1"), ("y", b"1"), ("x", b"2")]
    overlay = Overlay(base, {"b": b"new", "c": None})
    assert [View(overlay).derive(name, note, "x") for name in ("a", "b", "b", "c")] == ["X"] * 4
    assert asked[3:] == [("x", b"new"), ("x", None)]


def test_what_is_known_is_depended_on_and_what_is_not_is_not() -> None:
    source = Memory({"a": b"1", "b": b"2"})
    source.digest("a")
    view = View(source)
    assert (view.known("a"), view.known("b")) == (sha(b"1"), None)
    for name, touched in (("a", True), ("b", False)):
        overlay = Overlay(source, {name: b"x"})
        assert view.touched(overlay, overlay.changed, overlay.moved) is touched


def test_of_a_folder_in_which_a_file_is_known_all_files_are_depended_on() -> None:
    source = Memory({"f/" + sha(b"1"): b"1", "f/" + sha(b"2"): b"2", "g/" + sha(b"3"): b"3", "h/x": b"4"})
    source.digest("f/" + sha(b"1"))
    source.digest("h/x")
    view = View(source)
    assert sum(view.own("f") or ()) == 1
    assert list(view.own("h") or ()) == [0]
    assert view.own("g") is None
    assert view.reads == {"f/" + sha(b"1"), "f/" + sha(b"2"), "h/x"}
    quiet = View(source, noted=False)
    assert sum(quiet.own("f") or ()) == 1
    assert quiet.reads == set()


def test_a_view_that_nobody_asks_again_notes_nothing() -> None:
    view = View(Memory({"a": b"1"}), noted=False)
    view.read("a")
    view.derive("a", measured, 0)
    assert view.reads == set()
    overlay = Overlay(Memory({"a": b"1"}), {"a": b"22"})
    assert not view.touched(overlay, overlay.changed, overlay.moved)
