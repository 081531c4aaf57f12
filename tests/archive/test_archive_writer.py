"""The writer: one input, one archive, whoever writes it and wherever."""

import hashlib
import importlib.util
import os
import random
import shutil
import subprocess
import sys
import tarfile
import zlib
from pathlib import Path

import pytest

from evidence import validate
from evidence.archive import beside, reader
from evidence.archive.grammar import LIMITS, Limits
from evidence.build import archive as writer
from evidence.build import deflating
from evidence.build.archive import Piece, write_archive, write_digests
from evidence.build.deflating import Deflater
from evidence.errors import EvidenceError
from tests.archive.packages import base, make, publish

ROOT = Path(__file__).resolve().parents[2]
either = pytest.mark.usefixtures("by_whom")


@pytest.fixture(params=["here", "beside"])
def by_whom(request, monkeypatch):
    """The stream is made by this process, or by one beside it."""
    monkeypatch.setattr(writer, "_FORK_FROM", 0 if request.param == "beside" else 1 << 60)
    monkeypatch.setattr(beside, "pays", lambda: True)


PROGRAM = """
import os, random, sys
from pathlib import Path
from evidence.build.archive import write_archive
seed, umask, source, target = sys.argv[1:]
os.umask(int(umask, 8))
names = [path for path in Path(source).rglob("*") if path.is_file()]
random.Random(seed).shuffle(names)
print(write_archive(((one.relative_to(source).as_posix(), one) for one in names), Path(target), "demo").tar_sha256)
"""


def interpreter(name):
    """A Python of this name on PATH or under pyenv that runs, or None."""
    for path in (shutil.which(name), *Path.home().glob(f".pyenv/versions/{name[6:]}.*/bin/{name}")):
        if path is not None and subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0:
            return str(path)
    return None


def lay(folder):
    for name, data in base.small().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        os.utime(path, (random.randrange(10**9), random.randrange(10**9)))
        path.chmod(random.choice([0o600, 0o644, 0o777]))
    return folder


def write(folder, target, python=sys.executable, seed="0", umask="022", before="", **environment):
    ran = subprocess.run(
        [python, "-c", before + PROGRAM, seed, umask, folder, target],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **environment},
        cwd=target.parent, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return ran.stdout.strip(), target.read_bytes()


def test_the_stream_is_what_the_suite_builds_independently(tmp_path):
    damage = make.Damage(files=base.small())
    path = publish(base.small(), tmp_path)
    assert zlib.decompress(path.read_bytes(), 31) == damage.tar()
    assert path.read_bytes()[:10] == make.GZIP


def test_order_umask_locale_time_zone_and_times_make_no_difference(tmp_path):
    first = write(lay(tmp_path / "a"), tmp_path / "a.tgz")
    second = write(
        lay(tmp_path / "b"), tmp_path / "b.tgz", seed="7", umask="077", LC_ALL="C", TZ="Asia/Seoul", PYTHONHASHSEED="3"
    )
    assert first == second


@either
def test_rows_in_order_and_pieces_of_a_file_give_the_same_archive(tmp_path):
    rows = base.small()
    spool = tmp_path / "spool"
    spool.write_bytes(b"before" + b"".join(rows[name] for name in sorted(rows)))
    start, pieces = 6, []
    for name in sorted(rows):
        pieces.append((name, Piece(str(spool), start, len(rows[name]))))
        start += len(rows[name])
    assert write_archive(iter(pieces), tmp_path / "a.tgz", "demo", in_order=True) == write_archive(
        rows.items(), tmp_path / "b.tgz", "demo"
    )
    with pytest.raises(EvidenceError, match="order"):
        write_archive(reversed(pieces), tmp_path / "c.tgz", "demo", in_order=True)
    assert not (tmp_path / "c.tgz").exists()


@either
def test_more_members_than_the_bytes_account_for_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "LIMITS", LIMITS._replace(free_members=3))
    with pytest.raises(EvidenceError, match="limit-members: 40 members"):
        write_archive([(f"a{n}", b"") for n in range(40)], tmp_path / "a.tgz", "demo")
    assert not (tmp_path / "a.tgz").exists()


@pytest.mark.skipif(importlib.util.find_spec("isal") is None, reason="isal is not installed: nothing to compare")
def test_the_file_is_the_same_bytes_with_isal_and_without(tmp_path):
    """zlib is the declared codec: isal only sums here, and it may be missing."""
    hidden = "import sys; sys.modules['isal'] = None\n"
    folder = lay(tmp_path / "a")
    (folder / "long.txt").write_bytes(b"".join(b"%d\n" % (n * n) for n in range(200_000)))
    first = write(folder, tmp_path / "a.tgz")
    assert write(folder, tmp_path / "b.tgz", before=hidden) == first


def test_another_level_or_codec_changes_the_gzip_bytes_alone_and_validate_says_so(tmp_path, monkeypatch):
    published = publish(base.full(), tmp_path)
    stated = hashlib.sha256(published.read_bytes()).hexdigest()
    monkeypatch.setattr(deflating, "LEVEL", 6)
    again = write_archive(base.full().items(), published, "demo")
    assert again.tgz_sha256 != stated
    assert (tmp_path / "demo-evaluation.tar.sha256").read_text().startswith(again.tar_sha256)
    assert [(one.code, one.place) for one in validate.validate(published).findings] == [
        ("gzip-differs", "demo-evaluation.tgz")
    ]


@pytest.mark.parametrize("version", ["python3.10", "python3.11", "python3.12", "python3.13", "python3.14"])
def test_every_python_writes_the_same_stream(version, tmp_path):
    python = interpreter(version)
    if python is None:
        pytest.skip(f"{version} is not on this machine")
    folder = lay(tmp_path / "a")
    assert write(folder, tmp_path / "b.tgz", python)[0] == write(folder, tmp_path / "a.tgz")[0]


def test_digests_are_of_the_file_and_of_the_stream_and_sha256sum_reads_them(tmp_path):
    path = tmp_path / "demo-evaluation.tgz"
    digest = write_archive(base.small().items(), path, "demo")
    packed, stream = write_digests(path, digest)
    data = path.read_bytes()
    tar = zlib.decompress(data, 31)
    assert digest.tgz_sha256 == hashlib.sha256(data).hexdigest()
    assert digest.tar_sha256 == hashlib.sha256(tar).hexdigest()
    assert (digest.members, digest.tar_bytes, digest.tgz_bytes) == (6, len(tar), len(data))
    assert packed.read_text() == f"{digest.tgz_sha256}  demo-evaluation.tgz\n"
    assert stream.name == "demo-evaluation.tar.sha256"
    (tmp_path / "demo-evaluation.tar").write_bytes(tar)
    for name in (packed.name, stream.name):
        subprocess.run(["sha256sum", "-c", "--strict", name], cwd=tmp_path, check=True, capture_output=True)


def test_members_have_the_two_modes_and_nobody_as_owner(tmp_path):
    with tarfile.open(publish(base.small(), tmp_path)) as archive:
        facts = {(one.mode, one.uid, one.gid, one.uname, one.gname, one.mtime) for one in archive}
        executable = {one.name for one in archive if one.mode == 0o755}
    assert facts == {(mode, 0, 0, "", "", 315532800) for mode in (0o644, 0o755)}
    assert executable == {"demo/verify-results.py"}


def test_a_name_that_only_its_top_folder_makes_long_is_split(tmp_path):
    """The name of a campaign may have a hundred characters, and its top folder has that name."""
    rows = {"manifest.json": b"{}", "verify-results.py": b"", "x/y": b"1", "x/z": b"2"}
    path = tmp_path / "a.tgz"
    write_archive(rows.items(), path, "t" * 100)
    with tarfile.open(path) as archive:
        assert {one.name: archive.extractfile(one).read() for one in archive} == {
            f"{'t' * 100}/{name}": data for name, data in rows.items()
        }
    handle = reader.open_archive(path)
    try:
        reading = reader.read_archive(handle, path.name)
    finally:
        os.close(handle)
    assert reading.complete
    assert not reading.findings


@either
def test_files_and_bytes_give_the_same_archive(tmp_path):
    folder = lay(tmp_path / "a")
    big = os.urandom(3 << 20)
    (folder / "results" / "big").write_bytes(big)
    rows = [(one.relative_to(folder).as_posix(), one) for one in folder.rglob("*") if one.is_file()]
    first = write_archive(rows, tmp_path / "a.tgz", "demo")
    second = write_archive([(name, path.read_bytes()) for name, path in rows], tmp_path / "b.tgz", "demo")
    assert first == second


@either
@pytest.mark.parametrize(
    ("names", "code"),
    [
        (["../x"], "path-parent"),
        (["a/../b"], "path-parent"),
        (["a//b"], "path-component"),
        ([""], "path-component"),
        (["a b"], "path-character"),
        (["é"], "path-character"),
        (["\udcff"], "path-character"),
        (["nul.txt"], "path-character"),
        (["a", "A"], "path-collision"),
        (["a/x", "A/y"], "path-collision"),
        (["a", "a/b"], "path-file-as-directory"),
        (["a", "a"], "path-duplicate"),
        (["d/e/a", "d/e/b", "d/e/B"], "path-collision"),
        (["d/e/a", "d/e/b", "d/e/b"], "path-duplicate"),
        (["d/e/a", "d/e/b", "d/e/b/c"], "path-file-as-directory"),
        (["d/e/a", "d/e/b c"], "path-character"),
        (["d/e/a", "d/e/con.b"], "path-character"),
        (["x" * 101], "path-length"),
        (["d/" * 8 + "f"], "path-depth"),
        (["b" * 99 + "/" + "c" * 99 + "/" + "d" * 99], "path-length"),
    ],
)
def test_a_name_that_no_reader_takes_is_not_written(names, code, tmp_path):
    with pytest.raises(EvidenceError, match=f": {code}: ") as caught:
        write_archive([(name, b"") for name in names], tmp_path / "a.tgz", "demo")
    assert caught.value.code == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("top", ["", ".", "..", "a/b", "-x", "é"])
def test_the_top_folder_is_one_plain_name(top, tmp_path):
    with pytest.raises(EvidenceError, match="top folder"):
        write_archive([("a", b"")], tmp_path / "a.tgz", top)


@either
def test_an_archive_of_nothing_is_refused(tmp_path):
    with pytest.raises(EvidenceError, match="no members"):
        write_archive([], tmp_path / "a.tgz", "demo")


@either
@pytest.mark.parametrize("kind", ["link", "fifo", "folder", "missing"])
def test_only_regular_files_are_packed_and_the_old_archive_stays(kind, tmp_path):
    source, target = tmp_path / "source", tmp_path / "a.tgz"
    target.write_bytes(b"old")
    if kind == "link":
        source.symlink_to("/etc/hostname")
    elif kind == "fifo":
        os.mkfifo(source)
    elif kind == "folder":
        source.mkdir()
    with pytest.raises(EvidenceError):
        write_archive([("a", source)], target, "demo")
    assert target.read_bytes() == b"old"
    assert {one.name for one in tmp_path.iterdir()} <= {"source", "a.tgz"}


@either
def test_a_bomb_is_not_written(tmp_path):
    with pytest.raises(EvidenceError, match="limit-ratio"):
        write_archive([("zeros", bytes(16 << 20))], tmp_path / "a.tgz", "demo")
    assert not list(tmp_path.iterdir())


@either
def test_limits_hold_for_the_writer_too(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "LIMITS", Limits(member_bytes=100, json_bytes=10))
    with pytest.raises(EvidenceError, match="limit-member"):
        write_archive([("a", b"x" * 101)], tmp_path / "a.tgz", "demo")
    with pytest.raises(EvidenceError, match="limit-member"):
        write_archive([("a.json", b"x" * 11)], tmp_path / "a.tgz", "demo")


@either
def test_a_full_disk_is_one_clear_error(tmp_path, monkeypatch):
    def full(self, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Deflater, "_emit", full)
    with pytest.raises(EvidenceError, match="No space left"):
        write_archive([("a", os.urandom(8 << 20))], tmp_path / "a.tgz", "demo")
    assert not list(tmp_path.iterdir())
