"""The table of targets. A new one is one row; its function raises nothing but `Refusal` on any bytes."""

from __future__ import annotations

import functools
import gzip
import io
import shutil
import sys
import tempfile
import weakref
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from evidence import examining
from evidence.archive import gzipframe, strictjson, sums
from evidence.archive.grammar import Refusal
from evidence.archive.tarwalk import walk
from evidence.build import classify
from evidence.build.archive import write_stream
from evidence.campaign import read_campaign
from evidence.capture.sse import EventReader
from evidence.errors import EvidenceError

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT / "verifiers") not in sys.path:
    sys.path.append(str(ROOT / "verifiers"))

from checking import reading, streams  # noqa: E402


class Target(NamedTuple):
    name: str
    run: Callable[[bytes], None]
    seeds: tuple[bytes, ...]
    dictionary: tuple[bytes, ...] = ()


def _inflate(data: bytes, codec: object) -> bytes | str:
    frame = gzipframe.Frame(io.BytesIO(data).read, len(data), "x.tgz", codec)
    try:
        return b"".join(frame.pieces())
    except Refusal as refusal:
        return refusal.code


def read_gzip(data: bytes) -> None:
    """Whatever is accepted is one gzip member to the standard library too, and the same stream to both codecs."""
    ours = _inflate(data, zlib)
    if isinstance(ours, bytes):
        assert gzip.decompress(data) == ours
    if gzipframe.fastest() is not zlib:
        theirs = _inflate(data, gzipframe.fastest())
        # Two inflaters may stop at different bytes of a broken stream, never accept different streams.
        assert isinstance(ours, bytes) == isinstance(theirs, bytes), (ours, theirs)
        if isinstance(ours, bytes):
            assert ours == theirs


def read_tar(data: bytes) -> None:
    """Whatever is accepted is exactly what the writer writes for those members."""
    rows = [
        (name.partition(b"/")[2].decode(), bytes(content or b""))
        for name, _, _, _, content in walk(iter([data]), "x.tar", lambda _: True)
    ]
    top = data[:100].partition(b"/")[0] if not data[345] else data[345:500].partition(b"/")[0]
    assert b"".join(write_stream(rows, top.decode())) == data


def read_archive(data: bytes) -> None:
    """The stream in a right frame, so that mutation reaches the tar reader behind the gzip reader."""
    stream = _inflate(data, None)
    if isinstance(stream, bytes):
        read_tar(stream)


def read_sums(data: bytes) -> None:
    """The only accepted file is the one that is rendered from what it lists."""
    findings: list[Refusal] = []
    listed = sums.parse(data, findings)
    if not findings:
        assert sums.render({name: digest for name, (digest, _) in listed.items()}) == data


def read_json(data: bytes) -> None:
    """The quick way and the slow way give one value, or both refuse."""
    try:
        slow = strictjson._parse_slowly(data, "x.json")
    except Refusal:
        slow = strictjson
    try:
        quick = strictjson.parse(data, "x.json")
    except Refusal:
        quick = strictjson
    assert repr(quick) == repr(slow)


def judge_json(data: bytes) -> None:
    """Any JSON in place of any package file ends in findings."""
    examined = examining.Examined()
    for name in ("manifest.json", "results/settings/a/samples.json", "results/lifecycle/a.json", "recipes.json"):
        examined.take(name, data)


def read_stream(data: bytes) -> None:
    """The client's reader gives the same events wherever the bytes are cut; the first byte says where."""
    size, data = (data[0] % 9 + 1, data[1:]) if data else (1, data)
    whole, cut = EventReader(), EventReader()
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    assert whole.feed(data) == [event for piece in pieces for event in cut.feed(piece)]


def judge_stream(data: bytes) -> None:
    """Client, clerk and judge read the same events from the same bytes; what is not UTF-8 the judge refuses."""
    client = [(event.type, event.data) for event in EventReader().feed(data)]
    clerk = [(name or "message", text.decode("utf-8", "replace")) for name, text in classify.events(data)]
    assert client == clerk, (client, clerk)
    try:
        data.decode()
    except UnicodeDecodeError:
        _refuse(lambda: streams.read_events(data), reading.JsonFault)
        return
    judge = [(event.name, event.data) for event in streams.read_events(data)]
    assert client == judge, (client, judge)


def _refuse(call: Callable[[], object], kind: type[Exception]) -> None:
    """The call must raise that kind of refusal."""
    try:
        read = call()
    except kind:
        return
    raise AssertionError(f"read as {read!r}")


@functools.cache
def _campaign_folder() -> Path:
    """A folder with what the demo campaign names, in which campaign.toml is written anew for every input."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-campaign-"))
    weakref.finalize(Target, shutil.rmtree, folder, ignore_errors=True)
    return Path(shutil.copytree(ROOT / "campaigns/demo", folder / "demo"))


def judge_campaign(data: bytes) -> None:
    """Any bytes as campaign.toml give a campaign or one refusal that names the file and says what to expect."""
    path = _campaign_folder() / "campaign.toml"
    path.write_bytes(data)
    refusal = None
    try:
        read_campaign(path)
    except EvidenceError as error:
        refusal = error
    if refusal is not None:
        assert "campaign.toml" in refusal.message, refusal.message
        assert "\n" not in refusal.message, refusal.message
        assert refusal.code in (1, 2)


_HASH = b"0" * 64
_DEMO = (ROOT / "campaigns/demo/campaign.toml").read_bytes()
_SSE = b'\xef\xbb\xbf: hello\r\nevent: error\rdata: {"a": "\xe2\x82\xac"}\n\ndata: one\ndata:two\n\nid: 7\ndata\n\ndata: [DONE]\n\n'
_TAR = b"".join(write_stream([("a.py", b"x" * 600), ("b/" + "c" * 90 + "/d", b""), ("b/e", b"y")], "demo"))
_TGZ = bytes.fromhex("1f8b08000000000000ff") + zlib.compress(_TAR, 6)[2:-4]
_TGZ += zlib.crc32(_TAR).to_bytes(4, "little") + len(_TAR).to_bytes(4, "little")
_JSON = b'{\n  "a": [\n    1,\n    "x\\u00e9",\n    null,\n    1.5e-7\n  ]\n}\n'
TARGETS = (
    Target("gzip", read_gzip, (_TGZ,), (b"\x1f\x8b\x08", b"\x00" * 8)),
    Target("tar", read_tar, (_TAR,), (b"ustar\x0000", b"00000000000\x00", b"../", b"\x00" * 512)),
    Target("archive", read_archive, (_TGZ,)),
    Target("sums", read_sums, (_HASH + b"  a\n" + _HASH + b"  b/c\n", b"\\" + _HASH + b"  a\n"), (b"  ", b"\r\n", b"../")),
    Target("json", read_json, (_JSON, b"[" * 70, b'{"a":1,"a":2}'), (b"NaN", b"1e400", b"\\ud800", b'"', b"[", b"{", b"\xef\xbb\xbf")),
    Target("schema", judge_json, (_JSON, b'{"schemaVersion": 1, "recipes": []}\n')),
    Target("stream", read_stream, (b"\x03" + _SSE, b"\x00" + _SSE), (b"data: ", b"event:", b"\r\n", b"\n\n", b"\xef\xbb\xbf", b"\xff")),
    Target("events", judge_stream, (_SSE,), (b"data: ", b"event:", b"\r\n", b"\n\n", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\x00")),
    Target("campaign", judge_campaign, (_DEMO,), (b'""', b"[[", b"]]", b" = ", b"-1", b"true", b"{}", b"../", b"\n", b'"""', b"1979-05-27", b"nan")),
)  # fmt: skip
