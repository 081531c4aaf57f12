"""Folders, unpacking, checksums and JSON: what is accepted means one thing, what is not is named."""

import json
import os
import socket
import stat

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evidence.archive import folder, reader, strictjson, sums
from evidence.archive.grammar import LIMITS, Names, Refusal, name_fault, split
from evidence.archive.unpack import unpack
from evidence.errors import EvidenceError
from tests.archive.packages import base, lay, publish


def read(path, **options):
    handle = os.open(path, os.O_RDONLY)
    try:
        return reader.read_archive(handle, path.name, **options)
    finally:
        os.close(handle)


def codes(reading):
    return [finding.code for finding in reading.findings]


def test_folder_and_archive_of_one_package_read_the_same(tmp_path):
    packed = read(publish(base.full(), tmp_path))
    open_one = folder.read_folder(lay(base.full(), tmp_path / "demo"))
    assert packed.members == open_one.members
    assert packed.payload_bytes == open_one.payload_bytes
    assert packed.complete
    assert open_one.complete


@pytest.mark.parametrize("processes", [1, 2])
def test_a_member_larger_than_every_buffer_is_hashed_as_it_passes(processes, tmp_path):
    big = os.urandom(9 << 20)
    path = publish(base.seal({"big": big, "small": b"x"}), tmp_path)
    found = read(path, processes=processes)
    assert found.complete
    assert sums.render(found.members) == base.seal({"big": big, "small": b"x"})["SHA256SUMS"]


def test_the_child_that_inflates_is_gone_afterwards(tmp_path):
    damage = base.full()
    damage["zzz"] = b"x"
    path = publish(damage, tmp_path)
    assert read(path, processes=2).complete
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda root: (root / "link").symlink_to("README.md"), "type-link"),
        (lambda root: (root / "out").symlink_to("/etc"), "type-link"),
        (lambda root: (root / "results" / "dangling").symlink_to("nowhere"), "type-link"),
        (lambda root: os.mkfifo(root / "fifo"), "type-special"),
        (lambda root: (root / "results" / "empty").mkdir(), "folder-empty"),
        (lambda root: (root / "a b").write_bytes(b""), "path-character"),
        (lambda root: (root / ".hidden").write_bytes(b""), "path-character"),
        (lambda root: (root / "__pycache__").mkdir(), "folder-empty"),
        (lambda root: (root / "README.MD").write_bytes(b""), "path-collision"),
    ],
)
def test_a_folder_holds_files_and_nothing_else(spoil, code, tmp_path):
    root = lay(base.small(), tmp_path / "demo")
    spoil(root)
    assert codes(folder.read_folder(root)) == [code]


def test_a_socket_is_not_opened(tmp_path, monkeypatch):
    root = lay(base.small(), tmp_path / "demo")
    monkeypatch.chdir(root)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s")
        assert codes(folder.read_folder(root)) == ["type-special"]


def test_a_file_exchanged_between_look_and_open_is_noticed(tmp_path, monkeypatch):
    root = lay(base.small(), tmp_path / "demo")
    genuine = os.open

    def exchange(path, flags, *rest, **options):
        if path == b"README.md":
            (root / "other").write_bytes(b"evil")
            (root / "other").replace(root / "README.md")
        return genuine(path, flags, *rest, **options)

    monkeypatch.setattr(os, "open", exchange)
    assert codes(folder.read_folder(root)) == ["changed"]


def test_no_folder_no_reading(tmp_path):
    with pytest.raises(EvidenceError, match="cannot be read"):
        folder.read_folder(tmp_path / "none")
    with pytest.raises(EvidenceError, match="not a regular file"):
        reader.open_archive(tmp_path)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(EvidenceError, match="not a regular file"):
        reader.open_archive(tmp_path / "fifo")


def test_unpacking_gives_the_same_bytes_with_the_two_modes(tmp_path):
    path = publish(base.full(), tmp_path)
    handle = reader.open_archive(path)
    package = unpack(handle, reader.read_archive(handle, path.name), tmp_path / "new")
    os.close(handle)
    found = {one.relative_to(package).as_posix(): one for one in package.rglob("*") if one.is_file()}
    assert {name: one.read_bytes() for name, one in found.items()} == base.full()
    executable = {name for name, one in found.items() if stat.S_IMODE(one.stat().st_mode) == 0o755}
    assert executable == {name for name in found if name.endswith(".py") and "/" not in name}


@pytest.mark.parametrize("mask", [0o000, 0o077])
def test_the_modes_do_not_depend_on_the_umask(mask, tmp_path):
    path = publish(base.full(), tmp_path)
    handle = reader.open_archive(path)
    before = os.umask(mask)
    try:
        package = unpack(handle, reader.read_archive(handle, path.name), tmp_path / "new")
    finally:
        os.umask(before)
        os.close(handle)
    modes = {one.name.endswith(".py") and one.parent == package: set() for one in package.rglob("*")}
    for one in package.rglob("*"):
        if one.is_file():
            modes[one.name.endswith(".py") and one.parent == package].add(stat.S_IMODE(one.stat().st_mode))
    assert modes == {True: {0o755}, False: {0o644}}


def test_unpacking_never_uses_a_folder_that_is_there(tmp_path):
    path = publish(base.small(), tmp_path)
    (tmp_path / "new").mkdir()
    handle = reader.open_archive(path)
    with pytest.raises(FileExistsError):
        unpack(handle, reader.read_archive(handle, path.name), tmp_path / "new")
    os.close(handle)
    assert not list((tmp_path / "new").iterdir())


def test_an_archive_that_changes_after_the_verdict_is_not_unpacked(tmp_path):
    path = publish(base.small(), tmp_path)
    handle = reader.open_archive(path)
    verified = reader.read_archive(handle, path.name)
    (tmp_path / "other").mkdir()
    other = publish(base.seal({"README.md": b"other\n"}), tmp_path / "other")
    path.write_bytes(other.read_bytes())
    with pytest.raises(Refusal, match="changed"):
        unpack(handle, verified, tmp_path / "new")
    os.close(handle)
    assert not (tmp_path / "new").exists()


def test_an_archive_with_findings_is_not_unpacked(tmp_path):
    path = publish(base.small(), tmp_path)
    handle = reader.open_archive(path)
    with pytest.raises(Refusal, match="not-verified"):
        unpack(handle, reader.Reading(path.name), tmp_path / "new")
    os.close(handle)


COMPONENT = st.text("abzAZ09._+-% /\\\0é", max_size=12).map(lambda text: text.encode())


@settings(max_examples=100, deadline=None)
@given(st.lists(COMPONENT, min_size=1, max_size=9).map(b"/".join))
def test_a_name_of_the_grammar_is_safe_and_splits_back(name):
    if name_fault(name) is None:
        assert not name.startswith(b"/")
        assert b".." not in name.split(b"/")
        assert name.decode("ascii").isprintable()
        prefix, short = split(name)
        assert (prefix + b"/" + short if prefix else short) == name


@settings(max_examples=100, deadline=None)
@given(
    st.sets(st.lists(st.sampled_from(["a", "B", "b", "c.d", "c"]), min_size=1, max_size=3).map("/".join), max_size=12)
)
def test_names_are_refused_exactly_when_two_collide_on_a_folded_file_system(paths):
    rows = sorted(b"demo/" + path.encode() for path in paths)
    taken: dict[bytes, tuple[bytes, bool]] = {}
    clash = False
    for row in rows:
        parts = row.split(b"/")
        for depth in range(1, len(parts) + 1):
            part = b"/".join(parts[:depth])
            fact = (part, depth < len(parts))
            clash |= taken.setdefault(part.lower(), fact) != fact
    code = first_refusal(rows)
    assert (code in ("path-collision", "path-file-as-directory")) == clash
    assert (code is None) != clash


def first_refusal(rows):
    names = Names()
    try:
        for row in rows:
            names.add(row)
    except Refusal as refusal:
        return refusal.code
    return None


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=4), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(VALUES, st.sampled_from([None, 2]), st.booleans())
def test_strict_json_reads_what_json_writes(value, indent, ascii_only):
    data = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode()
    assert strictjson.parse(data, "x.json") == value


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=40) | st.text('{}[]",:0123456789eE+-.truefalsn\\u \n', max_size=30).map(str.encode))
def test_the_quick_way_never_accepts_what_the_slow_way_refuses(data):
    def attempt(parse):
        try:
            return repr(parse(data, "x.json"))
        except Refusal:
            return None

    quick, slow = attempt(strictjson.parse), attempt(strictjson._parse_slowly)
    assert quick == slow


def test_depth_is_64():
    for depth in (1, 63, 64):
        assert strictjson.parse(b"[" * depth + b"]" * depth, "x.json") is not None
        data = json.dumps(json.loads("[" * depth + "]" * depth), indent=2).encode() + b"\n"
        assert strictjson.parse(data, "x.json") is not None
    data = (json.dumps(json.loads("[" * 65 + "]" * 65), indent=2) + "\n").encode()
    with pytest.raises(Refusal, match="json-depth"):
        strictjson.parse(data, "x.json")


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_no_checksum_file_but_the_right_one_passes(content):
    members = {"a": "0" * 64, "b": "1" * 64, "SHA256SUMS": "2" * 64}
    assert sums.compare(content, members)
    assert not sums.compare(sums.render(members), members)


def test_limits_are_those_of_the_documentation():
    assert (LIMITS.members, LIMITS.member_bytes, LIMITS.total_bytes) == (262144, 1 << 30, 16 << 30)
    assert LIMITS.members_in(640) == 32768 + 10
    assert LIMITS.members_in(1 << 30) == LIMITS.members
    assert LIMITS.inflated(100) == 200 * 100 + (1 << 20)
