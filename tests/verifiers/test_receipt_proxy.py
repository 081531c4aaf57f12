"""What passes and what is refused, as transcripts on real sockets (the notation is in proxy/stage.py)."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.verifiers.proxy.stage import Stage, Witness

CHAT = "/v1/chat/completions"
POST = b"POST /v1/chat/completions HTTP/1.1\r\nHost: w\r\n"
GET = b"GET /v1/models HTTP/1.1\r\nHost: w\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\n"
SIZED = OK + b"Content-Length: 2\r\n\r\nok"
CHUNKED = OK + b"Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
ZIPPED = gzip.compress(b"the same word " * 50, mtime=0)


@pytest.fixture(scope="module")
def witness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Witness]:
    with Witness(tmp_path_factory.mktemp("witness"), "--idle-seconds", "60") as witness:
        yield witness
        assert witness.stop() == ""
        witness.check_ledger()


def play(witness: Witness, steps: list[tuple[Any, ...]], *expected: tuple[Any, ...]) -> list[dict[str, Any]]:
    """Play the steps; then the receipts must be these: (method, path, request, response, status, reason)."""
    stage = Stage(witness)
    stage.play(steps)
    stage.close()
    receipts = witness.receipts(len(expected))
    for receipt, (method, path, request, response, status, reason) in zip(receipts, expected, strict=True):
        assert (receipt["method"], receipt["path"]) == (method, path)
        assert (receipt["status"], receipt["reason"], receipt["complete"]) == (status, reason, reason is None)
        assert receipt["traffic"] == (method == "POST" and path == CHAT)
        assert (witness.body(receipt["requestSha256"]), receipt["requestBytes"]) == (request, len(request))
        assert (witness.body(receipt["responseSha256"]), receipt["responseBytes"]) == (response, len(response))
        assert 0 < receipt["startedSeconds"] <= receipt["endedSeconds"]
    return receipts


def both(to_worker: bytes, to_client: bytes) -> list[tuple[Any, ...]]:
    """One exchange, each message in one piece."""
    return [("C>", to_worker), ("U<", to_worker), ("U>", to_client), ("C<", to_client)]


# fmt: off
PASSES: dict[str, tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]] = {
    "length-framed": (
        both(POST + b"Content-Length: 5\r\n\r\nhello", SIZED),
        [("POST", CHAT, b"hello", b"ok", 200, None)],
    ),
    "odd head spelling is left alone": (
        both(b"GET /v1/models?b=1&a HTTP/1.1\r\nhOsT:w\r\nX-A:  \t1 \r\nX-A: 2\r\n\r\n", b"HTTP/1.1 404\r\ncontent-LENGTH:0\r\n\r\n"),
        [("GET", "/v1/models", b"", b"", 404, None)],
    ),
    "request body does not wait for its end": (
        [
            ("C>", POST + b"Content-Length: 5\r\n\r\n"), ("U<", POST + b"Content-Length: 5\r\n\r\n"),
            ("C>", b"he"), ("U<", b"he"), ("C>", b"llo"), ("U<", b"llo"),
            ("U>", SIZED), ("C<", SIZED),
        ],
        [("POST", CHAT, b"hello", b"ok", 200, None)],
    ),
    "stream stays a stream": (
        [
            *both(POST + b"Content-Length: 2\r\n\r\n{}", CHUNKED),
            ("U>", b"9\r\ndata: a\n\n\r\n"), ("C<", b"9\r\ndata: a\n\n\r\n"),
            ("U>", b"9\r\ndat"), ("C<", b"9\r\ndat"), ("U>", b"a: b\n\n\r\n"), ("C<", b"a: b\n\n\r\n"),
            ("U>", b"0\r\n\r\n"), ("C<", b"0\r\n\r\n"),
        ],
        [("POST", CHAT, b"{}", b"data: a\n\ndata: b\n\n", 200, None)],
    ),
    "chunk extensions and trailers": (
        both(
            POST + b'Transfer-Encoding: chunked\r\n\r\n3;a="b c";d\r\nabc\r\n00A ;x\r\n0123456789\r\n0;last\r\nX-Sum: 1\r\n\r\n',
            CHUNKED + b"1;e\r\nz\r\n000\r\nServer-Timing: a;dur=1\r\nX-T:\r\n\r\n",
        ),
        [("POST", CHAT, b"abc0123456789", b"z", 200, None)],
    ),
    "empty chunked bodies": (
        both(POST + b"Transfer-Encoding: Chunked\r\n\r\n0\r\n\r\n", CHUNKED + b"0\r\n\r\n"),
        [("POST", CHAT, b"", b"", 200, None)],
    ),
    "gzip is left alone": (
        both(GET, OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(ZIPPED) + ZIPPED),
        [("GET", "/v1/models", b"", ZIPPED, 200, None)],
    ),
    "100-continue": (
        [
            *both(POST + b"Expect: 100-continue\r\nContent-Length: 5\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n"),
            *both(b"hello", SIZED),
        ],
        [("POST", CHAT, b"hello", b"ok", 200, None)],
    ),
    "100-continue and answer in one write": (
        both(POST + b"Content-Length: 2\r\n\r\n{}", b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + SIZED),
        [("POST", CHAT, b"{}", b"ok", 200, None)],
    ),
    "HEAD has no body": (
        [*both(b"HEAD /health HTTP/1.1\r\nHost: w\r\n\r\n", OK + b"Content-Length: 99\r\n\r\n"), *both(GET, SIZED)],
        [("HEAD", "/health", b"", b"", 200, None), ("GET", "/v1/models", b"", b"ok", 200, None)],
    ),
    "HEAD of a chunked resource": (
        [*both(b"HEAD /health HTTP/1.1\r\nHost: w\r\n\r\n", CHUNKED), *both(GET, SIZED)],
        [("HEAD", "/health", b"", b"", 200, None), ("GET", "/v1/models", b"", b"ok", 200, None)],
    ),
    "204 and 304 have no body": (
        [*both(GET, b"HTTP/1.1 204 No Content\r\n\r\n"), *both(GET, b"HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n")],
        [("GET", "/v1/models", b"", b"", 204, None), ("GET", "/v1/models", b"", b"", 304, None)],
    ),
    "OPTIONS *": (
        both(b"OPTIONS * HTTP/1.1\r\nHost: w\r\n\r\n", b"HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n"),
        [("OPTIONS", "*", b"", b"", 200, None)],
    ),
    "keep-alive": (
        both(GET, SIZED) * 3,
        [("GET", "/v1/models", b"", b"ok", 200, None)] * 3,
    ),
    "pipelined requests wait their turn": (
        [
            ("C>", POST + b"Content-Length: 1\r\n\r\na" + GET + GET[:9]),
            ("U<", POST + b"Content-Length: 1\r\n\r\na"), ("U>", SIZED), ("C<", SIZED),
            ("U<", GET), ("C>", GET[9:]), ("U>", SIZED), ("C<", SIZED),
            ("U<", GET), ("U>", SIZED), ("C<", SIZED),
        ],
        [("POST", CHAT, b"a", b"ok", 200, None)] + [("GET", "/v1/models", b"", b"ok", 200, None)] * 2,
    ),
    "connection: close": (
        [*both(GET, OK + b"Connection: close\r\nContent-Length: 2\r\n\r\nok"), ("U|",), ("C<|",)],
        [("GET", "/v1/models", b"", b"ok", 200, None)],
    ),
    "body until close": (
        [*both(GET, OK + b"\r\nfirst"), ("U>", b" last"), ("C<", b" last"), ("U|",), ("C<|",)],
        [("GET", "/v1/models", b"", b"first last", 200, None)],
    ),
    "HTTP/1.0": (
        [*both(b"GET /health HTTP/1.0\r\n\r\n", b"HTTP/1.0 200 OK\r\n\r\nup"), ("U|",), ("C<|",)],
        [("GET", "/health", b"", b"up", 200, None)],
    ),
    "half-closed client gets its answer": (
        [
            ("C>", POST + b"Content-Length: 2\r\n\r\n{}"), ("U<", POST + b"Content-Length: 2\r\n\r\n{}"),
            ("C|",), ("U<|",), ("U>", SIZED), ("C<", SIZED), ("C<|",),
        ],
        [("POST", CHAT, b"{}", b"ok", 200, None)],
    ),
    "half-closed client gets all its pipelined answers": (
        [
            ("C>", GET + GET), ("C|",), ("U<", GET), ("U>", SIZED), ("U<", GET), ("U>", SIZED),
            ("C<", SIZED + SIZED), ("C<|",),
        ],
        [("GET", "/v1/models", b"", b"ok", 200, None)] * 2,
    ),
    "early answer, then the rest of the request": (
        [
            ("C>", POST + b"Content-Length: 4\r\n\r\nab"), ("U<", POST + b"Content-Length: 4\r\n\r\nab"),
            ("U>", SIZED), ("C<", SIZED), ("C>", b"cd"), ("U<", b"cd"), *both(GET, SIZED),
        ],
        [("POST", CHAT, b"abcd", b"ok", 200, None), ("GET", "/v1/models", b"", b"ok", 200, None)],
    ),
    "idle worker closes, client is told": (
        [*both(GET, SIZED), ("U|",), ("C<|",)],
        [("GET", "/v1/models", b"", b"ok", 200, None)],
    ),
}

BREAKS: dict[str, tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]] = {
    "client resets while waiting": (
        [("C>", GET), ("U<", GET), ("C!",), ("U<!",)],
        [("GET", "/v1/models", b"", b"", None, "client-closed")],
    ),
    "client resets inside the stream": (
        [("C>", GET), ("U<", GET), ("U>", CHUNKED + b"1\r\na\r\n"), ("C<", CHUNKED + b"1\r\na\r\n"), ("C!",), ("U<!",)],
        [("GET", "/v1/models", b"", b"a", 200, "client-closed")],
    ),
    "client closes, worker follows": (
        [("C>", GET), ("U<", GET), ("C|",), ("U<|",), ("U|",), ("C<|",)],
        [("GET", "/v1/models", b"", b"", None, "client-closed")],
    ),
    "client closes inside its body": (
        [("C>", POST + b"Content-Length: 5\r\n\r\nhe"), ("U<", POST + b"Content-Length: 5\r\n\r\nhe"), ("C|",), ("U<!",)],
        [("POST", CHAT, b"he", b"", None, "client-closed")],
    ),
    "client closes inside its head": (
        [("C>", GET[:12]), ("C|",), ("C<|",)],
        [("", "", b"", b"", None, "client-closed")],
    ),
    "worker closes without an answer": (
        [("C>", GET), ("U<", GET), ("U|",), ("C<|",)],
        [("GET", "/v1/models", b"", b"", None, "upstream-closed")],
    ),
    "worker closes inside its head": (
        [("C>", GET), ("U<", GET), ("U>", OK[:9]), ("U|",), ("C<|",)],
        [("GET", "/v1/models", b"", b"", None, "upstream-closed")],
    ),
    "worker closes inside a sized body": (
        [*both(GET, OK + b"Content-Length: 9\r\n\r\nhalf"), ("U|",), ("C<|",)],
        [("GET", "/v1/models", b"", b"half", 200, "upstream-closed")],
    ),
    "worker closes between chunks": (
        [*both(GET, CHUNKED + b"4\r\nhalf\r\n"), ("U|",), ("C<|",)],
        [("GET", "/v1/models", b"", b"half", 200, "upstream-closed")],
    ),
    "worker resets a body until close: no clean end": (
        [*both(GET, OK + b"\r\nhalf"), ("U!",), ("C<!",)],
        [("GET", "/v1/models", b"", b"half", 200, "upstream-closed")],
    ),
    "worker answers early and closes": (
        [
            ("C>", POST + b"Content-Length: 9\r\n\r\nhalf"), ("U<", POST + b"Content-Length: 9\r\n\r\nhalf"),
            ("U>", SIZED), ("C<", SIZED), ("U|",), ("C<|",),
        ],
        [("POST", CHAT, b"half", b"ok", 200, "upstream-closed")],
    ),
}

# fmt: on

TE = b"Transfer-Encoding: chunked\r\n"
REFUSED_HEADS: dict[str, tuple[bytes, int]] = {
    "CL and TE": (POST + b"Content-Length: 5\r\n" + TE + b"\r\n0\r\n\r\n", 400),
    "TE and CL": (POST + TE + b"Content-Length: 5\r\n\r\n0\r\n\r\n", 400),
    "two lengths": (POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", 400),
    "two equal lengths": (POST + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", 400),
    "length list": (POST + b"Content-Length: 5, 5\r\n\r\nhello", 400),
    "signed length": (POST + b"Content-Length: +5\r\n\r\nhello", 400),
    "negative length": (POST + b"Content-Length: -1\r\n\r\n", 400),
    "empty length": (POST + b"Content-Length:\r\n\r\n", 400),
    "hex length": (POST + b"Content-Length: 0x5\r\n\r\nhello", 400),
    "underscore in length": (POST + b"Content-Length: 1_0\r\n\r\nhello", 400),
    "huge length": (POST + b"Content-Length: 99999999999999999999\r\n\r\n", 400),
    "length spelt with underscore": (POST + b"Content_Length: 5\r\n\r\nhello", 400),
    "TE not chunked": (POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n", 400),
    "TE twice": (POST + TE + TE + b"\r\n0\r\n\r\n", 400),
    "TE obfuscated": (POST + b"Transfer-Encoding: xchunked\r\n\r\n", 400),
    "TE with vertical tab": (POST + b"Transfer-Encoding:\x0bchunked\r\n\r\n", 400),
    "TE with space before colon": (POST + b"Transfer-Encoding : chunked\r\n\r\n", 400),
    "TE behind a fold": (POST + b"X: y\r\n Transfer-Encoding: chunked\r\n\r\n", 400),
    "TE in HTTP/1.0": (b"POST /x HTTP/1.0\r\n" + TE + b"\r\n0\r\n\r\n", 400),
    "folded line": (POST + b"X: a\r\n\tb\r\n\r\n", 400),
    "folded first line": (b"GET / HTTP/1.1\r\n Host: w\r\n\r\n", 400),
    "bare LF": (b"GET / HTTP/1.1\nHost: w\n\n", 400),
    "one bare LF": (POST + b"X: a\nContent-Length: 5\r\n\r\n", 400),
    "bare CR": (POST + b"X: a\rContent-Length: 5\r\n\r\n", 400),
    "NUL": (POST + b"X: a\0b\r\n\r\n", 400),
    "empty name": (POST + b": a\r\n\r\n", 400),
    "no colon": (POST + b"garbage\r\n\r\n", 400),
    "empty line first": (b"\r\n" + GET, 400),
    "two hosts": (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
    "no host": (b"GET / HTTP/1.1\r\n\r\n", 400),
    "HTTP/0.9": (b"GET /\r\n\r\n", 400),
    "HTTP/2 preface": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    "HTTP/1.2": (b"GET / HTTP/1.2\r\nHost: w\r\n\r\n", 400),
    "lower-case version": (b"GET / http/1.1\r\nHost: w\r\n\r\n", 400),
    "two spaces": (b"GET  / HTTP/1.1\r\nHost: w\r\n\r\n", 400),
    "space in target": (b"GET /a b HTTP/1.1\r\nHost: w\r\n\r\n", 400),
    "raw UTF-8 in target": ("GET /é HTTP/1.1\r\nHost: w\r\n\r\n".encode(), 400),
    "absolute target": (b"GET http://other/ HTTP/1.1\r\nHost: w\r\n\r\n", 400),
    "CONNECT": (b"CONNECT w:80 HTTP/1.1\r\nHost: w\r\n\r\n", 400),
    "asterisk with GET": (b"GET * HTTP/1.1\r\nHost: w\r\n\r\n", 400),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    "header flood": (b"GET / HTTP/1.1\r\nHost: w\r\n" + b"A: b\r\n" * 200 + b"\r\n", 431),
    "oversized head": (b"GET / HTTP/1.1\r\nHost: w\r\nA: " + b"b" * 70000, 431),
    "oversized target": (b"GET /" + b"a" * 70000, 431),
}

REFUSED_BODIES: dict[str, tuple[bytes, bytes, bytes]] = {  # sent, what still passes, what is recorded
    "bad size": (b"xyz\r\n", b"", b""),
    "size with 0x": (b"0x3\r\nabc\r\n", b"", b""),
    "signed size": (b"+3\r\nabc\r\n", b"", b""),
    "size with underscore": (b"1_0\r\nabc\r\n", b"", b""),
    "space before size": (b" 3\r\nabc\r\n", b"", b""),
    "space after size": (b"3 \r\nabc\r\n", b"", b""),
    "empty size": (b"\r\nabc\r\n", b"", b""),
    "huge size": (b"fffffffffffffffff\r\n", b"", b""),
    "size line ends in LF": (b"3\nabc\r\n", b"", b""),
    "LF in extension": (b"3;a\nb\r\nabc\r\n", b"", b""),
    "CR in extension": (b"3;a\rb\r\nabc\r\n", b"", b""),
    "data ends in LF": (b"3\r\nabc\n0\r\n\r\n", b"3\r\nabc", b"abc"),
    "data longer than size": (b"3\r\nabcd\r\n0\r\n\r\n", b"3\r\nabc", b"abc"),
    "second size is bad": (b"1\r\na\r\nzz\r\n", b"1\r\na\r\n", b"a"),
    "length in trailer": (b"0\r\nContent-Length: 5\r\n\r\n", b"0\r\n", b""),
    "coding in trailer": (b"0\r\nTransfer-Encoding: chunked\r\n\r\n", b"0\r\n", b""),
    "folded trailer": (b"0\r\nA: b\r\n c\r\n\r\n", b"0\r\nA: b\r\n", b""),
    "endless extension": (b"3;" + b"a" * 5000, b"", b""),
    "endless trailers": (b"0\r\n" + (b"A: " + b"b" * 8000 + b"\r\n") * 9, None, b""),  # type: ignore[dict-item]
}

MALFORMED_ANSWERS: dict[str, bytes] = {
    "no HTTP": b"SSH-2.0-OpenSSH_9\r\n\r\n",
    "bad version": b"HTTP/2 200\r\n\r\n",
    "bad status": b"HTTP/1.1 20 OK\r\n\r\n",
    "status 600": b"HTTP/1.1 600 X\r\n\r\n",
    "CL and TE": OK + b"Content-Length: 2\r\n" + TE + b"\r\n0\r\n\r\n",
    "two lengths": OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nok",
    "TE not chunked": OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
    "TE in HTTP/1.0": b"HTTP/1.0 200 OK\r\n" + TE + b"\r\n0\r\n\r\n",
    "bare LF": b"HTTP/1.1 200 OK\nContent-Length: 0\n\n",
    "folded line": OK + b"X: a\r\n b\r\nContent-Length: 0\r\n\r\n",
    "204 with a body": b"HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\nabc",
    "204 with TE": b"HTTP/1.1 204 No Content\r\n" + TE + b"\r\n0\r\n\r\n",
    "switch of protocols": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n",
    "oversized head": OK + b"A: " + b"b" * 70000,
    "header flood": OK + b"A: b\r\n" * 200 + b"\r\n",
}


@pytest.mark.parametrize("name", PASSES)
def test_passes_byte_for_byte(witness: Witness, name: str) -> None:
    steps, receipts = PASSES[name]
    play(witness, steps, *receipts)


@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_exchange_leaves_one_receipt(witness: Witness, name: str) -> None:
    steps, receipts = BREAKS[name]
    play(witness, steps, *receipts)


@pytest.mark.parametrize("name", REFUSED_HEADS)
def test_a_malformed_request_head_is_refused_and_recorded(witness: Witness, name: str) -> None:
    head, status = REFUSED_HEADS[name]
    answer = (
        rb"HTTP/1\.1 %d [^\r]+\r\nContent-Length: 0\r\nConnection: close\r\nX-Receipt-Proxy: [ -~]+\r\n\r\n" % status
    )
    play(witness, [("C>", head), ("C~", answer)], ("", "", b"", b"", None, "refused"))
    witness.worker.setblocking(False)
    with pytest.raises(BlockingIOError):
        witness.worker.accept()  # nothing reached the worker
    witness.worker.settimeout(20)


@pytest.mark.parametrize("name", REFUSED_BODIES)
def test_a_malformed_request_body_is_refused_and_recorded(witness: Witness, name: str) -> None:
    sent, passes, recorded = REFUSED_BODIES[name]
    head = POST + TE + b"\r\n"
    steps: list[tuple[Any, ...]] = [("C>", head), ("U<", head), ("C>", sent)]
    steps += [("U<", passes), ("U<|",)] if passes is not None else [("U<!",)]
    steps += [("C~", rb"HTTP/1\.1 4(00|31) .*")]
    play(witness, steps, ("POST", CHAT, recorded, b"", None, "refused"))


@pytest.mark.parametrize("name", MALFORMED_ANSWERS)
def test_a_malformed_answer_is_refused_and_recorded(witness: Witness, name: str) -> None:
    steps: list[tuple[Any, ...]] = [("C>", GET), ("U<", GET), ("U>", MALFORMED_ANSWERS[name])]
    steps += [("C~", rb"HTTP/1\.1 502 Bad Gateway\r\nContent-Length: 0\r\n.*"), ("U<!",)]
    play(witness, steps, ("GET", "/v1/models", b"", b"", None, "upstream-malformed"))


def test_a_bad_chunk_of_the_worker_cuts_the_stream(witness: Witness) -> None:
    steps = [*both(GET, CHUNKED + b"1\r\na\r\n"), ("U>", b"1\r\nbc\r\n"), ("C<", b"1\r\nb"), ("C<|",), ("U<!",)]
    play(witness, steps, ("GET", "/v1/models", b"", b"ab", 200, "upstream-malformed"))


@pytest.mark.parametrize("cut", [False, True])
def test_bytes_that_answer_no_request_pass_nowhere(witness: Witness, cut: bool) -> None:
    split = [("U>", SIZED), ("C<", SIZED), ("U>", SIZED)] if cut else [("U>", SIZED + SIZED), ("C<", SIZED)]
    steps = [("C>", GET), ("U<", GET), *split, ("C<|",)]
    play(
        witness,
        steps,
        ("GET", "/v1/models", b"", b"ok", 200, None),
        ("", "", b"", b"", None, "upstream-malformed"),
    )


def test_a_smuggled_request_never_reaches_the_worker(witness: Witness) -> None:
    hidden = b"GET /admin HTTP/1.1\r\nHost: w\r\n\r\n"
    sent = POST + b"Content-Length: %d\r\n" % (5 + len(hidden)) + TE + b"\r\n0\r\n\r\n" + hidden
    play(witness, [("C>", sent), ("C~", rb"HTTP/1\.1 400 .*")], ("", "", b"", b"", None, "refused"))


def test_receipt_keeps_the_whitelisted_headers_and_the_request_id(witness: Witness) -> None:
    head = (
        POST + b"X-Request-Id: r1-a-main-007\r\nAccept: a\r\nAccept: b\r\nUser-Agent: curl\r\nCookie: c=1\r\n"
        b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    )
    answer = OK + b"Set-Cookie: s=1\r\nRetry-After: 3\r\nServer: x\r\nContent-Length: 2\r\n\r\nok"
    [receipt] = play(witness, both(head, answer), ("POST", CHAT, b"{}", b"ok", 200, None))
    assert receipt["requestId"] == "r1-a-main-007"
    assert receipt["requestHeaders"] == {
        "accept": "a, b",
        "content-length": "2",
        "content-type": "application/json",
        "x-request-id": "r1-a-main-007",
    }
    assert receipt["responseHeaders"] == {"content-length": "2", "retry-after": "3"}
    assert set(receipt) == {
        *("sequence", "requestId", "method", "path", "traffic", "requestSha256", "requestBytes", "responseSha256"),
        *("responseBytes", "status", "complete", "reason", "startedSeconds", "endedSeconds", "requestHeaders"),
        "responseHeaders",
    }


def test_ledger_times_have_at_most_nine_decimals(witness: Witness) -> None:
    play(witness, both(GET, SIZED), ("GET", "/v1/models", b"", b"ok", 200, None))
    line = witness.ledger.read_text().splitlines()[-1]
    for part in line.split(", "):
        if "Seconds" in part:
            whole, _, decimals = part.rpartition(": ")[2].partition(".")
            assert whole.isdigit()
            assert decimals.isdigit()
            assert len(decimals) <= 9


def test_every_byte_alone(witness: Witness) -> None:
    """Both messages sent one byte at a time pass unchanged, and the receipt is that of the whole."""
    request = POST + TE + b"\r\n3;x\r\nabc\r\n0\r\nT: 1\r\n\r\n"
    answer = b"HTTP/1.1 100 Continue\r\n\r\n" + CHUNKED + b"2\r\nok\r\n0\r\n\r\n"
    steps: list[tuple[Any, ...]] = [("C>", bytes([byte])) for byte in request]
    steps += [("U<", request), *[("U>", bytes([byte])) for byte in answer], ("C<", answer)]
    play(witness, steps, ("POST", CHAT, b"abc", b"ok", 200, None))


def test_large_bodies_of_both_sides_are_kept(witness: Witness) -> None:
    body = bytes(range(256)) * 4096  # 1 MiB, beyond what is kept in memory
    request = POST + b"Content-Length: %d\r\n\r\n" % len(body) + body
    answer = CHUNKED + b"%x\r\n" % len(body) + body[::-1] + b"\r\n0\r\n\r\n"
    [receipt] = play(witness, both(request, answer), ("POST", CHAT, body, body[::-1], 200, None))
    assert receipt["requestSha256"] == hashlib.sha256(body).hexdigest()


def test_no_partial_file_is_left(witness: Witness) -> None:
    play(witness, both(GET, SIZED), ("GET", "/v1/models", b"", b"ok", 200, None))
    assert [path.name for path in Path(witness.bodies).iterdir() if path.name.startswith(".")] == []
