"""What real engines answered, recorded: the client and the judge, written apart, both read it right."""

import json
from pathlib import Path
from typing import Any

import pytest
from checking.rules.answers import answer, read_request

from evidence.capture.adapters import find_adapter
from evidence.capture.answer import Answer

STREAMS = Path(__file__).parents[1] / "vectors/streams"
TRUTHS = {path.parent.name: json.loads(path.read_text()) for path in sorted(STREAMS.glob("*/truth.json"))}
BODIES = [(engine, body) for engine, truth in TRUTHS.items() for body in truth["bodies"]]


def named(value: Any) -> str:
    return value if isinstance(value, str) else value["file"]


def read_body(engine: str, body: dict[str, Any]) -> bytes:
    return (STREAMS / engine / body["file"]).read_bytes()


def judge(engine: str, body: dict[str, Any], received: bytes, transport: str = "complete") -> Any:
    request = read_request(json.dumps(body["request"]).encode())
    return answer(transport, body["status"], request, received, find_adapter(TRUTHS[engine]["adapter"]).owes_done)


def test_every_engine_left_every_kind() -> None:
    assert {"llama.cpp", "vllm", "transformers-serve", "sie"} <= set(TRUTHS)
    assert all(TRUTHS[engine]["source"] == "reported" for engine in TRUTHS)
    assert all(
        sorted(p.name for p in (STREAMS / e).glob("*.body")) == sorted(b["file"] for b in t["bodies"])
        for e, t in TRUTHS.items()
    )


@pytest.mark.parametrize(("engine", "body"), BODIES, ids=named)
def test_the_judge_reads_it_right(engine: str, body: dict[str, Any]) -> None:
    found = judge(engine, body, read_body(engine, body))
    assert found.classification == body["classification"]
    if body["status"] == 200:
        # The judge asks only whether there is text: events that differ in nothing else are read once.
        assert (bool(found.text), found.finish_reason) == (bool(body.get("text")), body["finishReason"])
        assert (found.prompt_tokens, found.completion_tokens) == (body["promptTokens"], body["completionTokens"])


@pytest.mark.parametrize("cut", [1, 7, 1 << 20])
@pytest.mark.parametrize(("engine", "body"), [pair for pair in BODIES if pair[1]["status"] == 200], ids=named)
def test_the_client_reads_it_right(engine: str, body: dict[str, Any], cut: int) -> None:
    received, reader = read_body(engine, body), Answer(stream=body["stream"])
    for at in range(0, len(received), cut):
        reader.feed(received[at : at + cut], at)
    reader.finish(received)
    assert reader.finish_reason == body["finishReason"]
    assert (reader.prompt_tokens, reader.completion_tokens) == (body["promptTokens"], body["completionTokens"])
    if body["stream"]:
        assert reader.events == body["events"]
        assert reader.terminal == body["done"]
        if body["roleChunkFirst"] and cut == 1:  # the clock does not start at the role
            assert reader.text_ns[0] > received.index(b"\n\n") + 2


@pytest.mark.parametrize(
    ("engine", "body"), [pair for pair in BODIES if pair[1]["stream"] and pair[1]["status"] == 200], ids=named
)
def test_the_adapter_says_what_the_engine_gives(engine: str, body: dict[str, Any]) -> None:
    lacks = find_adapter(TRUTHS[engine]["adapter"]).lacks
    assert body["done"] == ("done" not in lacks)
    asked = "stream_options" in body["request"]
    assert (body["completionTokens"] is not None) == (asked or "usage-option" in lacks)
    if asked and body["path"] == "/v1/chat/completions":
        assert (body["usageOn"] == "own-chunk") == ("usage-chunk" not in lacks)


@pytest.mark.parametrize("engine", TRUTHS)
def test_every_cut_of_a_real_stream_is_no_normal_answer(engine: str) -> None:
    """vllm#54628: a clean early close is no success. Up to the last event that is owed, every cut shows."""
    body = next(body for body in TRUTHS[engine]["bodies"] if body["file"] == "chat-stream.body")
    received = read_body(engine, body)
    owed = b"[DONE]" if body["done"] else b'"finish_reason":"stop"'
    end = received.index(b"\n\n", received.index(owed)) + 1
    kinds = {judge(engine, body, received[:cut]).classification for cut in range(0, end + 1, 3)}
    assert kinds <= {"UPSTREAM_PARTIAL", "MALFORMED"}
    assert judge(engine, body, received, "closed-early").classification == "UPSTREAM_PARTIAL"


@pytest.mark.parametrize("engine", TRUTHS)
def test_no_folder_or_address_of_the_recording_is_left(engine: str) -> None:
    for path in (STREAMS / engine).iterdir():
        text = path.read_text()
        assert "/home/" not in text
        assert "/tmp/" not in text
        assert "127.0.0.1" not in text


HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
ROLE = b'80\r\ndata: {"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}\n\n\r\n'


def chunked(event: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(event), event)


@pytest.mark.parametrize(
    ("event", "found"),
    [
        (b'data: {"id":"c","created":1,"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n', True),
        (b'data:{"id": "c", "choices": [{"delta": {"role": "assistant", "content": " "}}]}\n\n', True),
        (b'data: {"choices":[{"index":0,"logprobs":null,"finish_reason":null,"text":"a"}]}\n\n', True),
        (b'data: {"choices":[{"index":0,"delta":{"content":""}}]}\n\n', False),
        (b'data: {"choices":[{"index":0,"delta":{"reasoning_content":"a"}}]}\n\n', False),
        (b": keep-alive\n\n", False),
        (b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n', None),
        (b'data: {"choices":[{"index":0,"delta":{"content":"\\u0000"}}]}\n\n', None),
        (b'data: {"prompt":{"text":"a"},"choices":[{"delta":{"role":"assistant"}}]}\n\n', None),
        (b'event: error\ndata: {"choices":[{"delta":{"content":"a"}}]}\n\n', None),
        (b': data: {"choices":[{"delta":{"content":"a"}}]}\n\n', None),
        (b'data: {"choices":[{"delta":{"content":"a"}}]}\r\n\r\n', None),
    ],
)
def test_only_a_plain_event_with_text_settles_the_first_text(event: bytes, found: bool | None) -> None:
    assert Answer(stream=True).settles(HEAD + ROLE, chunked(event)) is found


@pytest.mark.parametrize("before", [b"", HEAD, ROLE[:-4], ROLE[:-2] + b"\r", b"5\r\n: com\r\n"])
def test_text_behind_anything_but_a_whole_event_is_in_doubt(before: bytes) -> None:
    event = b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'
    assert Answer(stream=True).settles(before, chunked(event)) is None


def test_what_is_settled_is_read_at_the_end() -> None:
    reader = Answer(stream=True)
    first, text = ROLE[4:-2], b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'
    assert reader.settles(ROLE, chunked(text))
    for at, piece in enumerate((first, text, text * 3)):
        assert reader.feed(piece, at)
    assert reader.text_ns == []
    reader.finish(b"")
    assert reader.text_ns == [1, 2, 2, 2]
