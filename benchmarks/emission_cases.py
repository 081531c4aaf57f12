"""Streams that measuring clients have been seen to get wrong, each with the right reading.

A case is raw bytes after the accept: the whole response, head and framing included, in timed writes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
TEXT_AT = 0.060
"""Seconds after the request at which the first text of every case leaves."""


def chunk(delta: dict[str, object], *, finish: str | None = None) -> bytes:
    """One chat chunk as an event."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    body = {"id": "e", "object": "chat.completion.chunk", "created": 1, "model": "synthetic", "choices": [choice]}
    return b"data: " + json.dumps(body, ensure_ascii=False).encode() + b"\n\n"


def text_chunk(text: str) -> bytes:
    """One chat chunk with text."""
    return chunk({"content": text})


ROLE = chunk({"role": "assistant", "content": ""})
STOP = chunk({}, finish="stop")
LENGTH = chunk({}, finish="length")
USAGE = b'data: {"id":"e","object":"chat.completion.chunk","model":"synthetic","choices":[],"usage":{"prompt_tokens":8,"completion_tokens":%d,"total_tokens":9}}\n\n'
DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True)
class Case:
    """A stream and its right reading: `text` whether there is a first text (at TEXT_AT), `good` whether it is a
    whole answer, `tokens` as reported by the engine."""

    name: str
    fault: str
    parts: tuple[tuple[float, bytes], ...]
    text: bool = True
    good: bool = True
    tokens: int | None = 3
    events: int | None = None
    ending: str = "close"
    terminated: bool = True

    def writes(self) -> tuple[list[tuple[float, bytes, bool]], str]:
        """The writes with their framing, and how the connection ends."""
        found = [(0.0, HEAD, False)]
        found += [(at, b"%x\r\n%b\r\n" % (len(body), body), False) for at, body in self.parts]
        if self.terminated:
            found.append((found[-1][0], b"0\r\n\r\n", False))
        return found, self.ending


def _tail(tokens: int = 3) -> bytes:
    return STOP + USAGE % tokens + DONE


def _with(text: bytes, edit: Callable[[bytes], bytes]) -> tuple[tuple[float, bytes], ...]:
    parts = ((0.005, ROLE), (TEXT_AT, text), (TEXT_AT + 0.02, text_chunk("b")), (TEXT_AT + 0.04, _tail()))
    return tuple((at, edit(body)) for at, body in parts)


def _same(body: bytes) -> bytes:
    return body


A = text_chunk("a")
WIDE = text_chunk("é€😀")
CUT = WIDE.index("😀".encode()) + 2
_CASES = (
    Case("role", "a role chunk taken for the first token", _with(A, _same)),
    Case(
        "empty", "empty content taken for text", ((0.005, ROLE), (0.02, chunk({"content": ""})), *_with(A, _same)[1:])
    ),
    Case(
        "null", "null content taken for text", ((0.005, ROLE), (0.02, chunk({"content": None})), *_with(A, _same)[1:])
    ),
    Case(
        "reasoning",
        "reasoning taken for text",
        ((0.005, ROLE), (0.02, chunk({"reasoning_content": "hm"})), *_with(A, _same)[1:]),
    ),
    Case(
        "reasoning-only",
        "an answer of reasoning alone given a first token",
        ((0.02, chunk({"reasoning_content": "hm"})), (0.04, LENGTH + USAGE % 3 + DONE)),
        text=False,
        good=False,
    ),
    Case("usage-last", "the usage chunk moved the first token", _with(A, _same)),
    Case("space", "white space not taken for text", _with(text_chunk(" "), _same)),
    Case("crlf", "CRLF line ends not read", _with(A, lambda body: body.replace(b"\n", b"\r\n"))),
    Case("cr", "CR line ends not read", _with(A, lambda body: body.replace(b"\n", b"\r"))),
    Case("no-space", "data: without a space not read", _with(A, lambda body: body.replace(b"data: ", b"data:"))),
    Case("two-lines", "data over two lines not joined", _with(A, lambda body: body.replace(b', "', b',\ndata: "', 1))),
    Case("u2028", "a raw U+2028 taken for a line end", _with(text_chunk("a\u2028b\u0085c"), _same)),
    Case("comment", "a keep-alive comment not passed over", ((0.005, b": keep-alive\n\n"), *_with(A, _same)[1:])),
    Case(
        "cut-character",
        "a character cut by two reads",
        ((0.005, ROLE), (0.04, WIDE[:CUT]), (TEXT_AT, WIDE[CUT:]), (TEXT_AT + 0.02, _tail())),
    ),
    Case(
        "joined",
        "three events in one read taken for one",
        ((0.005, ROLE), (TEXT_AT, A + text_chunk("b") + text_chunk("c")), (TEXT_AT + 0.02, _tail())),
        events=3,
    ),
    Case(
        "chunk-is-not-token",
        "chunks counted as tokens",
        ((TEXT_AT, A * 10), (TEXT_AT + 0.02, _tail(40))),
        tokens=40,
        events=10,
    ),
    Case(
        "error-event",
        "an error inside the stream taken for success",
        (
            (TEXT_AT, A * 3),
            (TEXT_AT + 0.02, b'event: error\ndata: {"error":{"message":"out of memory","code":500}}\n\n'),
        ),
        good=False,
        tokens=None,
    ),
    Case("early-end", "a cleanly ended stream without its last events", ((TEXT_AT, A * 3),), good=False, tokens=None),
    Case(
        "early-close",
        "a stream closed before its end",
        ((TEXT_AT, A * 3),),
        good=False,
        tokens=None,
        terminated=False,
    ),
    Case(
        "unterminated",
        "a whole text, but no end of the framing",
        ((TEXT_AT, A * 3), (TEXT_AT + 0.02, _tail())),
        good=False,
        terminated=False,
    ),
    Case("reset", "a reset connection", ((TEXT_AT, A * 3),), good=False, tokens=None, terminated=False, ending="reset"),
    Case(
        "nothing",
        "a stream without an event taken for success",
        ((0.02, b": nothing\n\n"),),
        text=False,
        good=False,
        tokens=None,
    ),
)
CASES = {case.name: case for case in _CASES}
