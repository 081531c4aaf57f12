"""The reader's pieces lie in memory that is used again: what is handed on is what was hashed, wherever a piece ends."""

import gzip
import hashlib

import pytest

from evidence.archive.tarwalk import walk
from tests.archive.packages import publish


@pytest.mark.parametrize("length", [512, 600, 1024, 1100, 4096, 10_000])
def test_content_outlives_the_piece_that_held_its_end(tmp_path, length):
    files = {f"file-{size:05d}": bytes([size % 251]) * size for size in (0, 1, 41, 70, 511, 512, 513, 1000, 5365, 9999)}
    stream = gzip.decompress(publish(files, tmp_path).read_bytes())
    slot = bytearray(length)

    def pieces():
        for start in range(0, len(stream), length):
            piece = stream[start : start + length]
            slot[: len(piece)] = piece
            yield memoryview(slot)[: len(piece)]
            slot[:] = b"\xee" * length

    passed: dict[bytes, bytes] = {}

    def keep(path, content, first):
        passed[path] = (b"" if first else passed[path]) + bytes(content)

    for path, _, _, digest, content in walk(pieces(), "demo.tar", lambda _: True, keep):
        assert hashlib.sha256(passed[path]).hexdigest() == digest
        assert bytes(content) == passed[path]
        assert passed[path] == files[path.decode().partition("/")[2]]
    assert len(passed) == len(files)
