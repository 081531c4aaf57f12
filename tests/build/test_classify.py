"""Answers are classified by their bytes: every rule of docs/format.md, section 4, and the fast path beside it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evidence.build import classify
from evidence.build.classify import Reading, RequestShape

CHAT = RequestShape("chat", True)
JSON_CHAT = RequestShape("chat", False)


def chunk(delta: dict[str, object] | None = None, finish: str | None = None, **more: object) -> bytes:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return b"data: " + json.dumps({"id": "x", "choices": choices, **more}, ensure_ascii=False).encode() + b"\n\n"


USAGE = {"prompt_tokens": 3, "completion_tokens": 40}
DONE = b"data: [DONE]\n\n"


def read(body: bytes, shape: RequestShape = CHAT, *, status: int | None = 200, done: bool = True) -> Reading:
    return classify.classify("complete", status, shape, body, owes_done=done)


def stream(*chunks: bytes, finish: str = "stop", usage: bool = True) -> bytes:
    tail = chunk({}, finish) + (chunk(None, usage=USAGE) if usage else b"") + DONE
    return chunk({"role": "assistant", "content": ""}) + b"".join(chunks) + tail


@pytest.mark.parametrize(
    ("transport", "status", "expected"),
    [
        ("timeout", None, "CLIENT_TIMEOUT"),
        ("failed", None, "TRANSPORT_ERROR"),
        ("closed-early", 200, "UPSTREAM_PARTIAL"),
        ("complete", 503, "HTTP_ERROR"),
        ("complete", None, "HTTP_ERROR"),
    ],
)
def test_transport_and_status_decide_before_the_body(transport: str, status: int | None, expected: str) -> None:
    whole = stream(chunk({"content": "a"}))
    assert classify.classify(transport, status, CHAT, whole, owes_done=True) == Reading(expected)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (stream(chunk({"content": "a"})), "NORMAL"),
        (stream(chunk({"content": " \n"})), "NORMAL"),
        (stream(chunk({"content": "a"}), finish="length"), "CAPPED"),
        (stream(chunk({"reasoning_content": "hm"}), finish="length"), "REASONING_ONLY"),
        (stream(chunk({"reasoning": "hm"})), "REASONING_ONLY"),
        (stream(), "EMPTY"),
        (stream(chunk({"content": None})), "EMPTY"),
        (stream(chunk({"tool_calls": [{"index": 0}]}), finish="tool_calls"), "TOOL_CALL"),
        (stream(chunk({"content": "a"}), finish="content_filter"), "MALFORMED"),
        (stream(chunk({"content": "a"})).replace(DONE, b""), "UPSTREAM_PARTIAL"),
        (chunk({"content": "a"}) + DONE, "UPSTREAM_PARTIAL"),
        (b"", "MALFORMED"),
        (b"data: {" + b"\n\n" + DONE, "MALFORMED"),
        (b"data: 3\n\n" + DONE, "MALFORMED"),
        (stream(chunk({"content": "a"}), b'event: error\ndata: {"message": "out of memory"}\n\n'), "HTTP_ERROR"),
        (stream(chunk({"content": "a"}), b'data: {"error": {"code": 500}}\n\n'), "HTTP_ERROR"),
        (stream(chunk({"content": "a"})).replace(b"a", b"\xff"), "MALFORMED"),
        (stream(chunk({"content": "a"}))[:-1], "UPSTREAM_PARTIAL"),
    ],
)
def test_streams(body: bytes, expected: str) -> None:
    assert read(body).classification == expected


def test_tokens_are_the_engines_usage_and_not_the_chunks() -> None:
    ten = stream(*[chunk({"content": f"w{n}"}) for n in range(10)])
    assert read(ten) == Reading("NORMAL", "stop", 3, 40)


def test_a_body_without_usage_has_unknown_tokens() -> None:
    assert read(stream(chunk({"content": "a"}), usage=False)) == Reading("NORMAL", "stop", None, None)


def test_tokens_that_are_no_counts_are_unknown() -> None:
    body = stream(
        chunk({"content": "a"}), chunk(None, usage={"prompt_tokens": -1, "completion_tokens": True}), usage=False
    )
    assert read(body) == Reading("NORMAL", "stop", None, None)


def test_an_engine_that_owes_no_done_may_leave_it_out() -> None:
    assert read(stream(chunk({"content": "a"})).replace(DONE, b""), done=False).classification == "NORMAL"


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_every_line_end_reads_alike(end: bytes) -> None:
    body = stream(*[chunk({"content": f"word {n}"}) for n in range(20)])
    assert read(body.replace(b"\n", end)) == read(body) == Reading("NORMAL", "stop", 3, 40)


def test_data_lines_join_comments_and_unknown_fields_are_ignored_and_one_mark_is_dropped() -> None:
    body = b"\xef\xbb\xbf: hello\n\nid: 7\nretry: 5\nevent:\ndata:{\ndata: }\n\ndata\n\nevent: x\n\ndata: left over"
    assert classify.events(body) == [("", b"{\n}"), ("", b"")]


@pytest.mark.parametrize(
    ("body", "shape", "expected"),
    [
        ({"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}], "usage": USAGE}, JSON_CHAT, Reading("NORMAL", "stop", 3, 40)),
        ({"choices": [{"message": {"content": None, "reasoning": "a"}, "finish_reason": "stop"}]}, JSON_CHAT, Reading("REASONING_ONLY", "stop")),
        ({"choices": [{"message": {"content": "a", "tool_calls": [{}]}, "finish_reason": "tool_calls"}]}, JSON_CHAT, Reading("TOOL_CALL", "tool_calls")),
        ({"choices": []}, JSON_CHAT, Reading("MALFORMED")),
        ({"error": {"code": 1}}, JSON_CHAT, Reading("HTTP_ERROR")),
        ({"choices": [{"text": "a", "finish_reason": "length"}]}, RequestShape("completions", False), Reading("CAPPED", "length")),
        ({"choices": [{"finish_reason": "length"}]}, RequestShape("completions", False), Reading("MALFORMED")),
        ({"data": [{"embedding": [0.5, 1]}], "usage": {"prompt_tokens": 3}}, RequestShape("embeddings", False), Reading("NORMAL", None, 3)),
        ({"data": [{"embedding": []}]}, RequestShape("embeddings", False), Reading("MALFORMED")),
        ([], JSON_CHAT, Reading("MALFORMED")),
    ],
)  # fmt: skip
def test_documents(body: object, shape: RequestShape, expected: Reading) -> None:
    assert read(json.dumps(body).encode(), shape) == expected


@pytest.mark.parametrize(
    "body",
    [
        b'{"choices":[{"message":{"content":"a"},"finish_reason":"stop","finish_reason":"length"}]}',
        b'{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}],"x":NaN}',
        b'{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}]} {}',
        b'\xef\xbb\xbf{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}',
        b"[" * 100_000,
    ],
)
def test_json_that_two_parsers_read_differently_is_malformed(body: bytes) -> None:
    assert read(body, JSON_CHAT).classification == "MALFORMED"


def test_requests() -> None:
    assert classify.read_request(b'{"messages": [], "stream": true}') == CHAT
    assert classify.read_request(b'{"prompt": "x", "stream": 1}') == RequestShape("completions", False)
    assert classify.read_request(b'{"input": "x"}') == RequestShape("embeddings", False)
    assert classify.read_request(b"no json") == JSON_CHAT


SPOILERS = [
    b"data: {\n\n",
    b"event: error\ndata: {}\n\n",
    chunk({"content": 'a "quote"'}),
    chunk({"tool_calls": [{"index": 0}]}),
    chunk({"content": "x"}, "length"),
    chunk(None, usage=USAGE),
    b'data: {"error": 1}\n\n',
    b"data: {},918273645546372819,{}\n\n",
]


@settings(max_examples=60, deadline=None)
@given(
    words=st.lists(st.text(max_size=6), min_size=3, max_size=30),
    spoiler=st.none() | st.sampled_from(SPOILERS),
    place=st.integers(0, 40),
    finish=st.sampled_from(["stop", "length", "tool_calls"]),
    ticks=st.booleans(),
)
def test_the_short_way_reads_what_the_long_way_reads(
    words: list[str], spoiler: bytes | None, place: int, finish: str, ticks: bool
) -> None:
    chunks = [chunk({"content": word}) for word in words]
    if spoiler is not None:
        chunks.insert(place % len(chunks), spoiler)
    body = stream(*chunks, finish=finish)
    if ticks:
        body = b"".join(event + b"\n\n" for event in ticking(body.split(b"\n\n")[:-1]))
    short = read(body)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(classify.thinning, "thin", lambda whole: None)
        patch.setattr(classify, "read_objects", one_by_one)
        assert read(body) == short


def ticking(events: list[bytes]) -> list[bytes]:
    """The events with the second in which each was made, nine in a second."""
    return [event.replace(b"{", b'{"created":%d,' % (1796038129 + n // 9), 1) for n, event in enumerate(events)]


def one_by_one(payloads: list[bytes]) -> list[dict[str, object]] | None:
    try:
        found = [json.loads(payload) for payload in payloads]
    except ValueError:
        return None
    return found if all(isinstance(item, dict) for item in found) else None


def test_a_stream_that_a_clock_ticks_in_and_that_ends_in_an_event_of_its_own_is_read_from_few_events() -> None:
    words = [
        chunk({"content": f' \\ "{n}"'}).replace(b"{", b'{"created":%d,' % (1796038129 + n // 12), 1) for n in range(36)
    ]
    timed = chunk({"content": " end"}, timings={"ms": 79.208})
    thinned = classify.thinning.thin(stream(*words, timed))
    assert thinned is not None
    assert thinned.rest.count(b"data:") < 10
    assert [line for line in thinned.lines.split(b"\n") if line][-2:] == [b' \\\\ \\"35\\"', b" end"]
    assert read(stream(*words, timed)) == Reading("NORMAL", "stop", 3, 40)


def test_long_streams_are_read_from_few_events() -> None:
    body = stream(*[chunk({"content": f" word{n}"}) for n in range(500)])
    thinned = classify.thinning.thin(body)
    assert thinned is not None
    assert len(thinned.rest) < len(body) / 20
    assert thinned.lines.count(b"\n") > 490
    assert read(body) == Reading("NORMAL", "stop", 3, 40)


@pytest.mark.parametrize("half", [r"\ud83d", r"\uDE00", r"\\\ud83d", r"\ud83d\ud83d\ude00"])
def test_half_a_character_is_text(half: str) -> None:
    """Servers that count in UTF-16 send a character of two escapes in two events."""
    body = stream(chunk({"content": "HALF"}), chunk({"content": "HALF"})).replace(b"HALF", half.encode())
    assert read(body) == Reading("NORMAL", "stop", 3, 40)
