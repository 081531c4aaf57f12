"""Every single-bit flip of a small package is refused, or does not change the stream."""

import io
import zlib

import pytest

from evidence.archive import gzipframe, sums
from evidence.archive.grammar import Refusal
from evidence.archive.tarwalk import walk
from tests.archive.packages import base, make


def small():
    damage = make.Damage(files=base.seal({"README.md": b"# demo\n", "results/a": b"x" * 40}))
    return damage.tar(), damage.archive()


def accept(stream):
    """The members of a tar stream whose checksums hold, or a Refusal."""
    members, text = {}, b""
    for name, _, _, digest, content in walk(iter([stream]), "x.tar", lambda name: name.endswith(b"/SHA256SUMS")):
        members[name.partition(b"/")[2].decode()] = digest
        text = bytes(content) if content is not None else text
    findings = sums.compare(text, members)
    if findings:
        raise findings[0]
    return members


def inflate(data, codec):
    return b"".join(gzipframe.Frame(io.BytesIO(data).read, len(data), "x.tgz", codec).pieces())


def flips(data):
    for at in range(len(data)):
        for bit in range(8):
            yield at, bit, data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]


def test_every_flip_of_the_stream_is_refused():
    stream, _ = small()
    assert len(accept(stream)) == 3
    count = 0
    for at, bit, changed in flips(stream):
        try:
            accept(changed)
        except Refusal:
            count += 1
            continue
        pytest.fail(f"bit {bit} of byte {at} makes no difference")
    assert count == 8 * len(stream)


@pytest.mark.parametrize("name", ["zlib", "isal"])
def test_every_flip_of_the_file_is_refused_or_inflates_to_the_same_stream(name):
    codec = zlib if name == "zlib" else pytest.importorskip("isal.isal_zlib")
    stream, packed = small()
    refused = same = 0
    for at, bit, changed in flips(packed):
        try:
            found = inflate(changed, codec)
        except Refusal:
            refused += 1
            continue
        frame_is_right = changed[:10] == packed[:10]
        assert found == stream or not frame_is_right, f"bit {bit} of byte {at} gives another stream"
        same += 1
    assert refused + same == 8 * len(packed)
    assert refused > 7 * len(packed)


def test_every_cut_of_file_and_stream_is_refused():
    stream, packed = small()
    for keep in range(len(stream)):
        with pytest.raises(Refusal):
            accept(stream[:keep])
    for keep in range(len(packed)):
        with pytest.raises(Refusal):
            inflate(packed[:keep], zlib)
