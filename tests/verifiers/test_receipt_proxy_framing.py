"""The framing without sockets: the same messages and the same refusals however the bytes were cut."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.verifiers.proxy.stage import load_proxy

PROXY = load_proxy()
HEAD = b"POST /v1/completions HTTP/1.1\r\nHost: w\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\n"

STREAMS = {
    "sized": HEAD + b"Content-Length: 5\r\n\r\nhello",
    "chunked": HEAD + CHUNKED + b"3;a=b\r\nabc\r\nA\r\n0123456789\r\n0\r\nX-T: 1\r\n\r\n",
    "pipelined": HEAD + b"Content-Length: 2\r\n\r\nab" + HEAD + CHUNKED + b"1\r\nz\r\n0\r\n\r\n" + HEAD + b"\r\n",
    "CRLF inside the data": HEAD + CHUNKED + b"8\r\n\r\n0\r\n\r\n\r\r\n0\r\n\r\n",
    "bad chunk end": HEAD + CHUNKED + b"3\r\nabc\n\n0\r\n\r\n",
    "bad second size": HEAD + CHUNKED + b"1\r\na\r\n-1\r\nb\r\n",
    "bad trailer": HEAD + CHUNKED + b"1\r\na\r\n0\r\nA : b\r\n\r\n",
    "bare LF": HEAD + b"X: 1\nContent-Length: 0\r\n\r\n",
    "bare CR": HEAD + b"X: 1\r\r\n\r\n",
    "LF behind CR LF": HEAD + b"X: 1\r\n\n\r\n",
    "garbage behind a message": HEAD + b"Content-Length: 2\r\n\r\nabXX\r\n\r\n",
}
ANSWERS = {
    "interim": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 X\r\nLink: a\r\n\r\n" + OK + b"Content-Length: 2\r\n\r\nok",
    "chunked": OK + CHUNKED + b"9\r\ndata: a\n\n\r\n000\r\nT: x\r\n\r\n",
    "until close": OK + b"\r\nabc\r\n\r\ndef",
    "204": b"HTTP/1.1 204 No Content\r\n\r\n",
    "CL and TE": OK + b"Content-Length: 2\r\n" + CHUNKED + b"0\r\n\r\n",
}


def read(pieces: list[bytes], parse: Any) -> tuple[bytes, list[Any], int]:
    """What passed, the messages (head, body, whole), and the status of a refusal or 0."""
    stream = PROXY.Stream()
    stream.restart(parse)
    passed, messages, current = b"", [], [b"", b"", False]
    try:
        for piece in pieces:
            stream.receive(piece)
            while True:
                while (event := stream.next()) is not None:
                    passed += event.raw
                    if isinstance(event, PROXY.Head):
                        current[0] += event.raw
                    else:
                        current[1] += event.body
                current[2] = stream.ended
                if not (stream.ended and stream.rest):
                    break
                messages.append(tuple(current))
                current = [b"", b"", False]
                stream.restart(parse)
    except PROXY.Refusal as refusal:
        return passed, [*messages, tuple(current)], refusal.status
    return passed, [*messages, tuple(current)], 0


def answer(raw: bytes) -> Any:
    return PROXY.read_response(raw, "GET")


CASES = [(name, data, PROXY.read_request) for name, data in STREAMS.items()]
CASES += [("answer: " + name, data, answer) for name, data in ANSWERS.items()]


@pytest.mark.parametrize(("data", "parse"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_every_cut_in_two_and_every_byte_alone(data: bytes, parse: Any) -> None:
    whole = read([data], parse)
    assert read([data[at : at + 1] for at in range(len(data))], parse) == whole
    for at in range(1, len(data)):
        assert read([data[:at], data[at:]], parse) == whole
    if whole[2] == 0:
        assert whole[0] == data
    else:
        assert data.startswith(whole[0])


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.binary(min_size=1, max_size=40), max_size=6),
    st.lists(st.integers(1, 400), max_size=12),
    st.sampled_from([b"", b";x=1", b' ; y="z"']),
)
def test_any_chunks_at_any_cuts_give_the_body(chunks: list[bytes], cuts: list[int], extension: bytes) -> None:
    data = (
        HEAD + CHUNKED + b"".join(b"%X%s\r\n%s\r\n" % (len(chunk), extension, chunk) for chunk in chunks) + b"0\r\n\r\n"
    )
    at = sorted({0, *(cut for cut in cuts if cut < len(data)), len(data)})
    pieces = [data[start:end] for start, end in itertools.pairwise(at)]
    assert read(pieces, PROXY.read_request) == (data, [(HEAD + CHUNKED, b"".join(chunks), True)], 0)


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(CASES),
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), min_size=1, max_size=3),
    st.data(),
)
def test_damaged_bytes_are_read_the_same_at_every_cut(case: Any, damage: list[tuple[int, int]], data: Any) -> None:
    """Whatever is in the bytes: no exception but Refusal, nothing passes that is not a prefix, cuts do not matter."""
    damaged = bytearray(case[1])
    for position, value in damage:
        damaged[position % len(damaged)] = value
    found = bytes(damaged)
    cut = data.draw(st.integers(1, len(found) - 1))
    whole = read([found], case[2])
    assert found.startswith(whole[0])
    assert read([found[:cut], found[cut:]], case[2]) == whole


def test_a_head_at_its_limit() -> None:
    """A head of exactly MAX_HEAD bytes is read, one more is refused, at every speed."""
    start = b"GET / HTTP/1.1\r\nHost: w\r\nA: "
    for extra, status in ((0, 0), (1, 431)):
        head = start + b"b" * (PROXY.MAX_HEAD - len(start) - 4 + extra) + b"\r\n\r\n"
        assert read([head], PROXY.read_request)[2] == status
        assert read([head[:1000], head[1000:-2], head[-2:-1], head[-1:]], PROXY.read_request)[2] == status


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0.0"),
        (1, "0.000000001"),
        (10**9, "1.0"),
        (12_345_678_900, "12.3456789"),
        (10**18 + 7, "1000000000.000000007"),
    ],
)
def test_seconds_are_exact(nanoseconds: int, text: str) -> None:
    assert str(PROXY.Seconds(nanoseconds)) == text
