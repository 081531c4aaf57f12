"""Answers at the edge of each rule of classification, from the builder's side; the verifier has a page of its own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evidence.build import classify
from evidence.build.classify import Reading, RequestShape

CHAT, PLAIN = RequestShape("chat", True), RequestShape("chat", False)
WORDS, PLAIN_WORDS, VECTOR = (
    RequestShape("completions", True),
    RequestShape("completions", False),
    RequestShape("embeddings", False),
)
USAGE = {"prompt_tokens": 3, "completion_tokens": 40}
DONE = b"data: [DONE]\n\n"


def event(*choices: Any, **more: Any) -> bytes:
    return b"data: " + json.dumps({"choices": list(choices), **more}).encode() + b"\n\n"


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"delta": fields, "finish_reason": finish}


END = event(delta("stop")) + DONE


def read(body: bytes, asked: RequestShape = CHAT, status: int | None = 200, done: bool = True) -> Reading:
    return classify.classify("complete", status, asked, body, owes_done=done)


@pytest.mark.parametrize(("status", "answered"), [(199, False), (200, True), (299, True), (300, False)])
def test_a_status_counts_as_an_answer_from_200_to_299(status: int, answered: bool) -> None:
    expected = "NORMAL" if answered else "HTTP_ERROR"
    assert read(event(delta("stop", content="a")) + DONE, status=status).classification == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", Reading("MALFORMED")),
        (b": only a comment\n\n", Reading("MALFORMED")),
        (b"data: \xff\n\n", Reading("MALFORMED")),
        (b": \xff\n\n" + event(delta("stop", content="a")) + DONE, Reading("MALFORMED")),
        (DONE, Reading("UPSTREAM_PARTIAL")),
        (b"data: {}\n\n" + DONE, Reading("UPSTREAM_PARTIAL")),
        (event(delta(content="a")) + DONE, Reading("UPSTREAM_PARTIAL")),
        (event(delta("stop", content="a"), usage=USAGE), Reading("UPSTREAM_PARTIAL", "stop", 3, 40)),
        (event(delta("stop", content="a")) + DONE, Reading("NORMAL", "stop")),
        (event(delta("length", content=" ")) + DONE, Reading("CAPPED", "length")),
        (event(delta("halt", content="a")) + DONE, Reading("MALFORMED", "halt")),
        (END, Reading("EMPTY", "stop")),
        (event(delta(reasoning="r")) + END, Reading("REASONING_ONLY", "stop")),
        (event(delta(reasoning_content="r")) + END, Reading("REASONING_ONLY", "stop")),
        (event(delta(reasoning="", reasoning_content="")) + END, Reading("EMPTY", "stop")),
        (event(delta(reasoning=1, content=1)) + END, Reading("EMPTY", "stop")),
        (event(delta(content="a")) + event(delta(content="", reasoning="r")) + END, Reading("NORMAL", "stop")),
        (event(delta(content="a", tool_calls=[{}])) + END, Reading("TOOL_CALL", "stop")),
        (event(delta(content="a", function_call={"n": 1})) + END, Reading("TOOL_CALL", "stop")),
        (event(delta(tool_calls=[{}])) + event(delta(content="a")) + END, Reading("TOOL_CALL", "stop")),
        (event(delta(content="a", tool_calls=[], function_call=None)) + END, Reading("NORMAL", "stop")),
        (event(delta(content="a")) + b'data: {"error": 0}\n\n' + END, Reading("HTTP_ERROR")),
        (event(delta(content="a"), error=None) + END, Reading("NORMAL", "stop")),
        (b"event: error\ndata: {}\n\n" + END, Reading("HTTP_ERROR")),
        (b"event: errors\ndata: {}\n\n" + event(delta(content="a")) + END, Reading("NORMAL", "stop")),
        (b"event: a\ndata: {}\n\n" + event(delta(content="a")) + END, Reading("NORMAL", "stop")),
        (event(delta(content="a"), usage=USAGE) + event(usage=None) + END, Reading("NORMAL", "stop", 3, 40)),
        (event(delta(content="a"), usage={"prompt_tokens": 9}) + event(usage=USAGE) + END, Reading("NORMAL", "stop", 3, 40)),
        (event(delta(content="a"), usage=USAGE) + event(usage={"prompt_tokens": 0}) + END, Reading("NORMAL", "stop", 0, None)),
        (event(delta(content="a"), usage={"prompt_tokens": 1.0, "completion_tokens": True}) + END, Reading("NORMAL", "stop")),
        (event() + event("x") + event(None) + event(delta("stop", content="a")) + DONE, Reading("NORMAL", "stop")),
        (b'data: {"choices": 3}\n\n' + event(delta("stop", content="a")) + DONE, Reading("NORMAL", "stop")),
        (event({"delta": None}) + event({"delta": "x"}) + event(delta("stop", content="a")) + DONE, Reading("NORMAL", "stop")),
        (event(delta("stop", content="a")) + event({"delta": {}, "finish_reason": 5}) + DONE, Reading("NORMAL", "stop")),
        (event(delta("length", content="a")) + event(delta("stop")) + DONE, Reading("NORMAL", "stop")),
        (event({"text": "a", "finish_reason": "stop"}) + DONE, Reading("EMPTY", "stop")),
        (b"data: []\n\n" + END, Reading("MALFORMED")),
        (b"data: 1\n\ndata: 2\n\n" + END, Reading("MALFORMED")),
    ],
)  # fmt: skip
def test_streams_of_a_chat(body: bytes, expected: Reading) -> None:
    assert read(body) == expected


def test_streams_of_completions_have_their_text_beside_the_finish_reason() -> None:
    body = event({"text": "a", "finish_reason": None}) + event({"text": "", "finish_reason": "stop"}) + DONE
    assert read(body, WORDS) == Reading("NORMAL", "stop")
    assert read(event(delta("stop", content="a")) + DONE, WORDS).classification == "EMPTY"


def test_a_stream_without_its_end_is_whole_only_where_none_is_owed() -> None:
    body = event(delta("stop", content="a"))
    assert read(body, done=False) == Reading("NORMAL", "stop")
    assert read(event(delta(content="a")), done=False).classification == "UPSTREAM_PARTIAL"


@pytest.mark.parametrize("count", [1, 2, 3, 7])
@pytest.mark.parametrize("place", [0, -1])
def test_a_payload_that_is_no_object_is_seen_wherever_it_stands(count: int, place: int) -> None:
    events = [event(delta(content=f"w{n}")) for n in range(count)]
    for wrong in (
        b"data: [1]\n\n",
        b"data: 7\n\n",
        b'data: "x"\n\n',
        b"data: {}{}\n\n",
        b"data: {},{}\n\n",
        b"data: {\n\n",
    ):
        made = list(events)
        made[place] = wrong
        assert read(b"".join(made) + END).classification == "MALFORMED", wrong
    assert read(b"".join(events) + END).classification == "NORMAL"


def message(finish: Any = "stop", **fields: Any) -> dict[str, Any]:
    return {"choices": [{"message": fields, "finish_reason": finish}]}


@pytest.mark.parametrize(
    ("value", "asked", "expected"),
    [
        (message(content="a") | {"usage": USAGE}, PLAIN, Reading("NORMAL", "stop", 3, 40)),
        (message("length", content="a"), PLAIN, Reading("CAPPED", "length")),
        (message(None, content="a"), PLAIN, Reading("MALFORMED")),
        (message(4, content="a"), PLAIN, Reading("MALFORMED")),
        (message(content="", reasoning="r"), PLAIN, Reading("REASONING_ONLY", "stop")),
        (message(content="a", function_call={"n": 1}), PLAIN, Reading("TOOL_CALL", "stop")),
        (message(content="a") | {"error": None}, PLAIN, Reading("NORMAL", "stop")),
        (message(content="a") | {"error": 0}, PLAIN, Reading("HTTP_ERROR")),
        ({}, PLAIN, Reading("MALFORMED")),
        ({"choices": {}}, PLAIN, Reading("MALFORMED")),
        ({"choices": None}, PLAIN, Reading("MALFORMED")),
        ({"choices": ["a"]}, PLAIN, Reading("MALFORMED")),
        ({"choices": [{}]}, PLAIN, Reading("MALFORMED")),
        ({"choices": [{"message": "a"}]}, PLAIN, Reading("MALFORMED")),
        ({"choices": [{"text": "a", "finish_reason": "stop"}]}, PLAIN, Reading("MALFORMED")),
        ({"choices": [{"text": "a", "finish_reason": "stop"}], "usage": USAGE}, PLAIN_WORDS, Reading("NORMAL", "stop", 3, 40)),
        ({"choices": [{"text": "", "finish_reason": "stop"}]}, PLAIN_WORDS, Reading("EMPTY", "stop")),
        (message(content="a"), PLAIN_WORDS, Reading("MALFORMED")),
        ({"choices": ["text"]}, PLAIN_WORDS, Reading("MALFORMED")),
        ({"data": [{"embedding": [0.5, 1]}], "usage": {"prompt_tokens": 3}}, VECTOR, Reading("NORMAL", None, 3)),
        ({"data": [{"embedding": [1]}, {"embedding": []}]}, VECTOR, Reading("NORMAL")),
        ({"data": [{"embedding": []}]}, VECTOR, Reading("MALFORMED")),
        ({"data": [{"embedding": [1, "2"]}]}, VECTOR, Reading("MALFORMED")),
        ({"data": [{"embedding": [True]}]}, VECTOR, Reading("MALFORMED")),
        ({"data": [{"embedding": {"a": 1}}]}, VECTOR, Reading("MALFORMED")),
        ({"data": [[1]]}, VECTOR, Reading("MALFORMED")),
        ({"data": []}, VECTOR, Reading("MALFORMED")),
        ({"data": {"embedding": [1]}}, VECTOR, Reading("MALFORMED")),
        (message(content="a"), VECTOR, Reading("MALFORMED")),
    ],
)  # fmt: skip
def test_plain_answers(value: Any, asked: RequestShape, expected: Reading) -> None:
    assert read(json.dumps(value).encode(), asked) == expected


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"1", b'"x"', b'{"a": 1, "a": 2}', b'{"a": Infinity}', b"\xff"])
def test_a_plain_answer_that_is_no_strict_object_is_malformed(body: bytes) -> None:
    assert read(body, PLAIN) == Reading("MALFORMED")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"messages": [], "prompt": "", "input": "", "stream": true}', CHAT),
        (b'{"prompt": "", "input": ""}', PLAIN_WORDS),
        (b'{"input": "", "stream": false}', VECTOR),
        (b'{"stream": "true"}', PLAIN),
        (b'{"messages": [], "stream": 1}', PLAIN),
        (b"{}", PLAIN),
        (b"[]", PLAIN),
        (b"", PLAIN),
    ],
)
def test_a_request_says_its_kind_and_whether_it_streams(body: bytes, expected: RequestShape) -> None:
    assert classify.read_request(body) == expected


@pytest.mark.parametrize("value", [Reading("NORMAL", "stop", 1, 2), CHAT])
def test_readings_are_remembered_and_so_cannot_be_altered(value: Any) -> None:
    assert {value: 1}[type(value)(*(getattr(value, name) for name in value._fields))] == 1
    with pytest.raises(AttributeError):
        setattr(value, value._fields[0], "other")


def test_an_event_has_its_name_and_its_data_and_neither_outlives_it() -> None:
    body = b"event: a\ndata:x\ndata: y\n\ndata:  z\n\nevent: b\n\ndata\nevent:c\nother: d\n\ndata: unfinished\n"
    assert classify.events(body) == [("a", b"x\ny"), ("", b" z"), ("c", b"")]
    assert classify.events(b"\xef\xbb\xbfdata: a\r\rdata: b\r\n\r\n") == [("", b"a"), ("", b"b")]
    assert classify.events(b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n") == []
    assert classify.events(b"") == classify.events(b"data: a\n") == classify.events(b"\n\n") == []
