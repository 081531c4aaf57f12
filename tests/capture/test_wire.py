"""Response framing, byte by byte, and the conversion of kernel stamps."""

from __future__ import annotations

import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.capture import arrival
from evidence.capture.framing import FramingError, Response

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
WHOLE = {
    "length": OK + b"Content-Length: 2\r\n\r\nab",
    "chunked": CHUNKED + b"1\r\na\r\n1;x=y\r\nb\r\n0\r\nTrailer: t\r\n\r\n",
    "interim": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: a\r\n\r\n"
    + OK
    + b"Content-Length: 2\r\n\r\nab",
    "1.0": b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nab",
}
REFUSED = {
    "bare lf": b"HTTP/1.1 200 OK\nContent-Length: 2\n\nab",
    "length and chunked": OK + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
    "length twice": OK + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\nab",
    "signed length": OK + b"Content-Length: +2\r\n\r\nab",
    "negative length": OK + b"Content-Length: -2\r\n\r\nab",
    "list of lengths": OK + b"Content-Length: 2, 2\r\n\r\nab",
    "huge length": OK + b"Content-Length: 99999999999999999999999\r\n\r\nab",
    "gzip encoding": OK + b"Transfer-Encoding: gzip\r\n\r\nab",
    "gzip, chunked": OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
    "chunked twice": OK + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
    "xchunked": OK + b"Transfer-Encoding: xchunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
    "chunked of 1.0": b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
    "chunk by lf": CHUNKED + b"2\nab\n0\n\n",
    "chunk overrun": CHUNKED + b"2\r\nabXX0\r\n\r\n",
    "hex prefix": CHUNKED + b"0x2\r\nab\r\n0\r\n\r\n",
    "signed chunk": CHUNKED + b"-2\r\nab\r\n0\r\n\r\n",
    "chunk and space": CHUNKED + b"2 \r\nab\r\n0\r\n\r\n",
    "huge chunk": CHUNKED + b"fffffffffffffffffff\r\nab",
    "folded header": OK + b"A: b\r\n c\r\nContent-Length: 2\r\n\r\nab",
    "space before colon": OK + b"Content-Length : 2\r\n\r\nab",
    "nul": OK + b"A: b\0c\r\nContent-Length: 2\r\n\r\nab",
    "no colon": OK + b"Garbage\r\nContent-Length: 2\r\n\r\nab",
    "version 2": b"HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nab",
    "status 000": b"HTTP/1.1 000 OK\r\nContent-Length: 2\r\n\r\nab",
    "status 999": b"HTTP/1.1 999 OK\r\nContent-Length: 2\r\n\r\nab",
    "icecast": b"ICY 200 OK\r\nContent-Length: 2\r\n\r\nab",
    "upgrade": b"HTTP/1.1 101 S\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nab",
    "tls": b"\x15\x03\x01\x00\x02\x02\x16",
}


def feed(response: Response, *pieces: bytes) -> None:
    for piece in pieces:
        response.feed(piece)


@pytest.mark.parametrize("name", WHOLE)
def test_whole_response_is_whole_however_cut(name: str) -> None:
    data = WHOLE[name]
    for cut in range(len(data) + 1):
        response = Response()
        brought = response.feed(data[:cut]) + response.feed(data[cut:])
        assert (response.status, bytes(response.body), brought) == (200, b"ab", b"ab"), cut
        assert response.complete, cut
        assert not response.excess, cut


@pytest.mark.parametrize("name", REFUSED)
def test_malformed_response_is_refused_however_cut(name: str) -> None:
    data = REFUSED[name]
    for cut in range(len(data) + 1):
        response = Response()
        with pytest.raises(FramingError):
            feed(response, data[:cut], data[cut:])
        assert not response.complete, cut


def test_body_before_a_fault_is_kept() -> None:
    response = Response()
    with pytest.raises(FramingError, match="malformed"):
        response.feed(CHUNKED + b"2\r\nab\r\nzz\r\n")
    assert bytes(response.body) == b"ab"


def test_bytes_after_the_end_are_noticed_and_not_taken() -> None:
    response = Response()
    response.feed(WHOLE["length"] + WHOLE["length"])
    assert (bytes(response.body), response.complete, response.excess) == (b"ab", True, True)


def test_limits_hold() -> None:
    with pytest.raises(FramingError, match="head exceeds 100 bytes"):
        Response(head_limit=100).feed(OK + b"A: b\r\n" * 50)
    response = Response(body_limit=10)
    with pytest.raises(FramingError, match="body exceeds 10 bytes"):
        response.feed(OK + b"Content-Length: 100\r\n\r\n" + b"x" * 50)


@given(st.binary(max_size=60), st.sampled_from([b"", OK, CHUNKED, OK + b"Content-Length: 9\r\n\r\n"]))
def test_no_bytes_raise_anything_else(data: bytes, head: bytes) -> None:
    response = Response()
    with contextlib.suppress(FramingError):
        response.feed(head + data)
    assert response.status is None or 200 <= response.status <= 599


def test_bridge_converts_and_sees_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    moved = 0
    monkeypatch.setattr(arrival, "time_ns", lambda: time.time_ns() + moved)
    bridge = arrival.WallBridge()
    stamp, before = time.time_ns(), time.monotonic_ns()
    at = bridge.monotonic(stamp, bridge.now())
    assert at is not None
    assert abs(at - before) < 5_000_000
    moved = 2_000_000_000
    bridge.now()
    assert bridge.stepped
    assert bridge.monotonic(stamp, bridge.now()) is None


def test_stamp_of_the_future_is_refused() -> None:
    bridge = arrival.WallBridge()
    assert bridge.monotonic(time.time_ns() + 3_600_000_000_000, bridge.now()) is None


def test_bridge_is_calm_while_nobody_sets_the_clock() -> None:
    bridge = arrival.WallBridge()
    for _ in range(20_000):
        bridge.now()
    assert not bridge.stepped
