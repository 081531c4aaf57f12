"""What a stored body says, case by case: docs/format.md, section 4, from the verifier's side."""

from __future__ import annotations

import json
from typing import Any

import pytest
from checking.rules.answers import Answer, Request, answer, read_request

USAGE = {"prompt_tokens": 3, "completion_tokens": 40}
CHAT, PLAIN = Request("chat", True, {}), Request("chat", False, {})
WORDS, PLAIN_WORDS = Request("completions", True, {}), Request("completions", False, {})
VECTOR = Request("embeddings", False, {})
NOTHING = (None, None, None, "", "")


def event(*choices: Any, **more: Any) -> bytes:
    return b"data: " + json.dumps({"choices": list(choices), **more}).encode() + b"\n\n"


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"delta": fields, "finish_reason": finish}


DONE = b"data: [DONE]\n\n"
END = event(delta("stop")) + DONE


def plain(told: Answer) -> Answer:
    """An answer without its words: whether there are any is all that anyone asks."""
    return told._replace(text=bool(told.text), reasoning=bool(told.reasoning))


def read(body: bytes, asked: Request = CHAT, status: int | None = 200, transport: str = "complete", done: bool = True):
    return answer(transport, status, asked, body, done)


@pytest.mark.parametrize(
    ("transport", "status", "expected"),
    [
        ("timeout", 200, "CLIENT_TIMEOUT"),
        ("failed", 200, "TRANSPORT_ERROR"),
        ("closed-early", 200, "UPSTREAM_PARTIAL"),
        ("complete", None, "HTTP_ERROR"),
        ("complete", 500, "HTTP_ERROR"),
    ],
)
def test_transport_and_status_decide_before_the_body(transport: str, status: int | None, expected: str) -> None:
    body = event(delta(content="a"), usage=USAGE) + END
    assert plain(read(body, status=status, transport=transport)) == plain(Answer(expected, *NOTHING))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", Answer("MALFORMED", *NOTHING)),
        (b"\xff\n\n", Answer("MALFORMED", *NOTHING)),
        (b"data: {\n\n", Answer("MALFORMED", *NOTHING)),
        (b"data: []\n\n", Answer("MALFORMED", *NOTHING)),
        (b"data: 1\n\n" + END, Answer("MALFORMED", *NOTHING)),
        (b"event: error\ndata: {}\n\n" + END, Answer("HTTP_ERROR", *NOTHING)),
        (event(delta(content="a")) + b'data: {"error": {"code": 1}}\n\n' + END, Answer("HTTP_ERROR", *NOTHING)),
        (event(delta(content="a"), error=None) + END, Answer("NORMAL", "stop", None, None, "a", "")),
        (DONE, Answer("UPSTREAM_PARTIAL", *NOTHING)),
        (event(delta(content="a")) + DONE, Answer("UPSTREAM_PARTIAL", None, None, None, "a", "")),
        (event(delta("stop", content="a")), Answer("UPSTREAM_PARTIAL", "stop", None, None, "a", "")),
        (event(delta("stop", content="a")) + DONE, Answer("NORMAL", "stop", None, None, "a", "")),
        (event(delta("length", content=" ")) + DONE, Answer("CAPPED", "length", None, None, "a", "")),
        (event(delta("halt", content="a")) + DONE, Answer("MALFORMED", "halt", None, None, "a", "")),
        (END, Answer("EMPTY", "stop", None, None, "", "")),
        (event(delta(reasoning="r")) + END, Answer("REASONING_ONLY", "stop", None, None, "", "r")),
        (event(delta(reasoning_content="q", reasoning="r")) + END, Answer("REASONING_ONLY", "stop", None, None, "", "q")),
        (event(delta(content=7, reasoning=None)) + END, Answer("EMPTY", "stop", None, None, "", "")),
        (event(delta(content="a", tool_calls=[{}])) + END, Answer("TOOL_CALL", "stop", None, None, "a", "")),
        (event(delta(content="a", function_call={"n": 1})) + END, Answer("TOOL_CALL", "stop", None, None, "a", "")),
        (event(delta(tool_calls=[{}])) + event(delta(content="a")) + END, Answer("TOOL_CALL", "stop", None, None, "a", "")),
        (event(delta(content="a", tool_calls=[], function_call=None)) + END, Answer("NORMAL", "stop", None, None, "a", "")),
        (event(delta(content="a")) + event(delta("stop"), usage=USAGE) + DONE, Answer("NORMAL", "stop", 3, 40, "a", "")),
        (event(delta(content="a"), usage=USAGE) + event(delta("stop"), usage=None) + DONE, Answer("NORMAL", "stop", 3, 40, "a", "")),
        (event(delta(content="a"), usage={"prompt_tokens": 9}) + event(usage=USAGE) + END, Answer("NORMAL", "stop", 3, 40, "a", "")),
        (event(delta(content="a"), usage=USAGE) + event(usage={"prompt_tokens": 0}) + END, Answer("NORMAL", "stop", 0, None, "a", "")),
        (event() + event("text") + event(None) + event(delta("stop", content="a")) + DONE, Answer("NORMAL", "stop", None, None, "a", "")),
        (b'data: {}\n\ndata: {"choices": 3}\n\n' + event(delta("stop", content="a")) + DONE, Answer("NORMAL", "stop", None, None, "a", "")),
        (event({"delta": None}) + event({"delta": "x"}) + event(delta("stop", content="a")) + DONE, Answer("NORMAL", "stop", None, None, "a", "")),
        (event(delta("stop", content="a")) + event({"delta": {}, "finish_reason": 5}) + DONE, Answer("NORMAL", "stop", None, None, "a", "")),
        (event(delta("length", content="a")) + event(delta("stop")) + DONE, Answer("NORMAL", "stop", None, None, "a", "")),
        (event({"text": "a", "finish_reason": "stop"}) + DONE, Answer("EMPTY", "stop", None, None, "", "")),
    ],
)  # fmt: skip
def test_streams_of_a_chat(body: bytes, expected: Answer) -> None:
    assert plain(read(body)) == plain(expected)


def test_a_stream_that_owes_no_done_may_end_without() -> None:
    body = event(delta("stop", content="a"))
    assert read(body, done=False).classification == "NORMAL"
    assert read(event(delta(content="a")), done=False).classification == "UPSTREAM_PARTIAL"


def test_the_texts_of_a_stream_are_joined_and_its_names_told() -> None:
    body = (
        event(delta(content="one "), id="", model="")
        + event(delta(content="two"), id="n1", model="m1")
        + event(delta(content=" three", reasoning="hm"), id="n2", model="m2")
        + event(delta(), id=7, model="m1")
        + END
    )
    told = read(body)
    assert (told.name, told.models, bool(told.text), bool(told.reasoning)) == ("n1", ("m1", "m2"), True, True)


def test_streams_of_completions() -> None:
    body = event({"text": "a", "finish_reason": None}) + event({"text": "", "finish_reason": "stop"}) + DONE
    assert plain(read(body, WORDS)) == plain(Answer("NORMAL", "stop", None, None, "a", ""))
    assert read(event({"text": "a", "tool_calls": [{}]}) + END, WORDS).classification == "TOOL_CALL"
    assert read(event(delta("stop", content="a")) + DONE, WORDS).classification == "EMPTY"


TEXTS = [
    "plain",
    'a "quote"',
    "back\\slash",
    "snow \u2603",
    "line\nbreak",
    "tab\t",
    "\x7f",
    "a mark that no engine writes",
    "",
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("other", [{}, {"content": 7}, {"role": "assistant"}, {"tool_calls": [{}]}, {"reasoning": "r"}])
def test_events_that_differ_in_their_text_alone_are_read_as_each_for_itself(text: str, other: dict[str, Any]) -> None:
    many = b"".join(event({"delta": {"content": one, **other}}) for one in [text, *TEXTS, text])
    told = read(many + END)
    tools, words = "tool_calls" in other, other.get("content") != 7
    right = "TOOL_CALL" if tools else "NORMAL" if words else "EMPTY"
    assert (told.classification, bool(told.text), bool(told.reasoning)) == (right, words, "reasoning" in other)
    alone = read(event({"delta": {"content": text, **other}}) + END)
    assert bool(alone.text) is (words and text != "")
    # An error or a broken end is seen in whichever of them it stands.
    broken = many + event({"delta": {"content": text, **other}}).replace(b"}]}", b"}]") + END
    assert read(broken).classification == "MALFORMED"
    failed = many + event({"delta": {"content": text, **other}}, error="no") + END
    assert read(failed).classification == "HTTP_ERROR"


def test_content_that_is_not_of_a_delta_is_no_text() -> None:
    for place in ({"content": "a"}, {"message": {"content": "a"}}, {"delta": {"inner": {"content": "a"}}}):
        for word in ("a", "b"):
            body = event({**place}) + event(json.loads(json.dumps(place).replace('"a"', f'"{word}"'))) + END
            assert read(body).classification == "EMPTY", place


def message(finish: Any = "stop", **fields: Any) -> dict[str, Any]:
    return {"choices": [{"message": fields, "finish_reason": finish}]}


@pytest.mark.parametrize(
    ("value", "asked", "expected"),
    [
        (message(content="a") | {"usage": USAGE}, PLAIN, Answer("NORMAL", "stop", 3, 40, "a", "")),
        (message("length", content="a"), PLAIN, Answer("CAPPED", "length", None, None, "a", "")),
        (message(None, content="a"), PLAIN, Answer("MALFORMED", None, None, None, "a", "")),
        (message(4, content="a"), PLAIN, Answer("MALFORMED", None, None, None, "a", "")),
        (message(content=None), PLAIN, Answer("EMPTY", "stop", None, None, "", "")),
        (message(content="", reasoning="r"), PLAIN, Answer("REASONING_ONLY", "stop", None, None, "", "r")),
        (message(reasoning_content="q"), PLAIN, Answer("REASONING_ONLY", "stop", None, None, "", "q")),
        (message(content="a", tool_calls=[{}]), PLAIN, Answer("TOOL_CALL", "stop", None, None, "a", "")),
        (message(content="a", function_call={"n": 1}), PLAIN, Answer("TOOL_CALL", "stop", None, None, "a", "")),
        (message(content="a") | {"error": {"code": 1}}, PLAIN, Answer("HTTP_ERROR", *NOTHING)),
        (message(content="a") | {"error": None, "id": "n", "model": "m"}, PLAIN, Answer("NORMAL", "stop", None, None, "a", "", "n", ("m",))),
        ([], PLAIN, Answer("MALFORMED", *NOTHING)),
        ({}, PLAIN, Answer("MALFORMED", *NOTHING)),
        ({"choices": {}}, PLAIN, Answer("MALFORMED", *NOTHING)),
        ({"choices": []}, PLAIN, Answer("MALFORMED", *NOTHING)),
        ({"choices": ["a"]}, PLAIN, Answer("MALFORMED", *NOTHING)),
        ({"choices": [{}]}, PLAIN, Answer("MALFORMED", *NOTHING)),
        ({"choices": [{"message": "a"}]}, PLAIN, Answer("MALFORMED", *NOTHING)),
        ({"choices": [{"text": "a", "finish_reason": "stop"}]}, PLAIN, Answer("MALFORMED", *NOTHING)),
        ({"choices": [{"text": "a", "finish_reason": "stop"}], "usage": USAGE}, PLAIN_WORDS, Answer("NORMAL", "stop", 3, 40, "a", "")),
        ({"choices": [{"text": "", "finish_reason": "stop", "reasoning": "r"}]}, PLAIN_WORDS, Answer("EMPTY", "stop", None, None, "", "")),
        ({"choices": [{"text": "a", "finish_reason": "stop", "tool_calls": [{}]}]}, PLAIN_WORDS, Answer("NORMAL", "stop", None, None, "a", "")),
        ({"choices": [{"finish_reason": "stop"}]}, PLAIN_WORDS, Answer("MALFORMED", *NOTHING)),
        (message(content="a"), PLAIN_WORDS, Answer("MALFORMED", *NOTHING)),
        ({"data": [{"embedding": [0.5, 1]}], "usage": {"prompt_tokens": 3}}, VECTOR, Answer("NORMAL", None, 3, None, "", "")),
        ({"data": [{"embedding": [1]}, {"embedding": []}]}, VECTOR, Answer("NORMAL", None, None, None, "", "")),
        ({"data": [{"embedding": []}]}, VECTOR, Answer("MALFORMED", *NOTHING)),
        ({"data": [{"embedding": [1, "2"]}]}, VECTOR, Answer("MALFORMED", *NOTHING)),
        ({"data": [{"embedding": [True]}]}, VECTOR, Answer("MALFORMED", *NOTHING)),
        ({"data": [{"embedding": {"a": 1}}]}, VECTOR, Answer("MALFORMED", *NOTHING)),
        ({"data": [[1]]}, VECTOR, Answer("MALFORMED", *NOTHING)),
        ({"data": []}, VECTOR, Answer("MALFORMED", *NOTHING)),
        ({"data": {"embedding": [1]}}, VECTOR, Answer("MALFORMED", *NOTHING)),
        ({}, VECTOR, Answer("MALFORMED", *NOTHING)),
        (message(content="a"), VECTOR, Answer("MALFORMED", *NOTHING)),
    ],
)  # fmt: skip
def test_plain_answers(value: Any, asked: Request, expected: Answer) -> None:
    assert plain(read(json.dumps(value).encode(), asked)) == plain(expected)


def test_a_plain_answer_that_is_no_strict_json_is_malformed() -> None:
    for body in (b"", b"{", b'{"a": 1, "a": 2}', b'{"a": NaN}', b"\xff", b"data: {}\n\n"):
        assert plain(read(body, PLAIN)) == plain(Answer("MALFORMED", *NOTHING))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"messages": [], "prompt": "", "input": "", "stream": true}', ("chat", True)),
        (b'{"prompt": "", "input": ""}', ("completions", False)),
        (b'{"input": "", "stream": false}', ("embeddings", False)),
        (b'{"stream": "true"}', ("chat", False)),
        (b'{"messages": [], "stream": 1}', ("chat", False)),
    ],
)
def test_a_request_says_its_kind_and_whether_it_streams(body: bytes, expected: tuple[str, bool]) -> None:
    told = read_request(body)
    assert (told.kind, told.streaming) == expected
    assert told.fields == json.loads(body)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"1", b'{"a": 1, "a": 2}', b"\xff"])
def test_a_request_that_is_no_object_is_a_chat_without_stream(body: bytes) -> None:
    assert read_request(body) == Request("chat", False, {})
