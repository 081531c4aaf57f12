"""The clerk's own classification of an answer, from its status and stored bytes alone.

Nothing here is shared with the judge: the verifiers read the same bytes with rules of their own, so one
wrong rule shows as a disagreement. The law is section 4 of docs/format.md.

Streams are read from the few events that `thinning` leaves of them, where it proves that the others say nothing else.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

import orjson

from evidence.build import thinning

Json = dict[str, Any]

# A number that no body holds parts the events in one call of the parser; see `read_objects`.
_FENCE = b"918273645546372819"

# A character outside the first plane is two escapes, and servers that count in UTF-16 cut between them: a half alone is text as
# well, which JSON can write and this parser does not read.
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
_ANY = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)


class Reading(NamedTuple):
    """What the bytes of one answer say: its classification, finish reason and reported token counts."""

    classification: str
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class RequestShape(NamedTuple):
    """What the bytes of a request ask for: `kind` is `chat`, `completions` or `embeddings`."""

    kind: str
    stream: bool


class _Malformed(Exception):
    pass


class _Failed(Exception):
    pass


def read_request(body: bytes) -> RequestShape:
    """The shape that a request body asks for; a body that is no JSON object counts as a plain chat."""
    try:
        request = orjson.loads(body)
    except orjson.JSONDecodeError:
        return RequestShape("chat", False)
    if not isinstance(request, dict):
        return RequestShape("chat", False)
    kind = "chat"
    if "messages" not in request:
        kind = "completions" if "prompt" in request else "embeddings" if "input" in request else "chat"
    return RequestShape(kind, request.get("stream") is True)


def classify(transport: str, status: int | None, request: RequestShape, body: bytes, *, owes_done: bool) -> Reading:
    """Classify one answer; the first rule that applies decides.

    `transport` is the client's word for how the exchange ended, `owes_done` says whether the engine ends
    its streams with `[DONE]`. Finish reason and tokens are null where the body was not what decided.
    """
    early = {"timeout": "CLIENT_TIMEOUT", "failed": "TRANSPORT_ERROR", "closed-early": "UPSTREAM_PARTIAL"}
    if transport in early:
        return Reading(early[transport])
    if status is None or not 200 <= status <= 299:
        return Reading("HTTP_ERROR")
    if _HALF.search(body):
        body = _ANY.sub(lambda found: b"\\ufffd" if found[1] else found[0], body)
    try:
        if request.stream:
            return _stream(body, request.kind, owes_done)
        return _document(body, request.kind)
    except _Malformed:
        return Reading("MALFORMED")
    except _Failed:
        return Reading("HTTP_ERROR")


def events(body: bytes) -> list[tuple[str, bytes]]:
    """The (name, data) of every dispatched event of an SSE body, by the WHATWG rules.

    LF, CRLF and CR end a line, one BOM is dropped, several data lines join with a newline, an event that no
    blank line ends is none, and an event without a data line is not dispatched.
    """
    if body.startswith(b"\xef\xbb\xbf"):
        body = body[3:]
    if b"\r" in body:
        body = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    found: list[tuple[str, bytes]] = []
    name, data = "", None
    lines = body.split(b"\n")
    lines.pop()  # what follows the last line end is no line
    for line in lines:
        if not line:
            if data is not None:
                found.append((name, data))
            name, data = "", None
            continue
        field, _, value = line.partition(b":")
        if value.startswith(b" "):
            value = value[1:]
        if field == b"data":
            data = value if data is None else data + b"\n" + value
        elif field == b"event":
            name = value.decode("utf-8", "replace")
    return found


def _stream(body: bytes, kind: str, owes_done: bool) -> Reading:
    thinned = thinning.thin(body)
    if thinned is None:
        return _events(body, kind, owes_done)
    # Streams with the same frame say the same, whatever their words and their id are.
    key = (thinned.frame, thinned.worded, kind, owes_done)
    found = _known.get(key)
    if found is None:
        found = _events(thinned.rest, kind, owes_done)
        if len(_known) >= _KNOWN:
            _known.clear()
        _known[key] = found
    return found


_known: dict[tuple[bytes, bool, str, bool], Reading] = {}
_KNOWN = 256


def _events(rest: bytes, kind: str, owes_done: bool) -> Reading:
    dispatched = events(rest)
    if not dispatched:
        raise _Malformed
    try:
        rest.decode("utf-8")
    except UnicodeDecodeError:
        raise _Malformed from None
    done = any(data == b"[DONE]" for _, data in dispatched)
    named = [(name, data) for name, data in dispatched if data != b"[DONE]"]
    items = read_objects([data for _, data in named])
    if items is None:
        raise _Malformed
    answer = _Answer()
    for (name, _), item in zip(named, items, strict=True):
        if name == "error" or item.get("error") is not None:
            raise _Failed
        answer.usage(item)
        choices = item.get("choices")
        if isinstance(choices, list) and choices and isinstance(choices[0], dict):
            choice = choices[0]
            answer.part(choice.get("delta") if kind == "chat" else choice)
            answer.finish(choice)
    if answer.finish_reason is None or (owes_done and not done):
        return answer.reading("UPSTREAM_PARTIAL")
    return answer.verdict()


def read_objects(payloads: list[bytes]) -> list[Json] | None:
    """Parse the payloads in one call; None when one of them is not one JSON object.

    They stand in one array, parted by a number that none of them holds. A payload that reaches into the next
    one would swallow the fence between, so as many fences at the top as there are joints proves each whole.
    """
    text = b"[" + (b"," + _FENCE + b",").join(payloads) + b"]"
    try:
        if text.count(_FENCE) == max(len(payloads) - 1, 0):
            parsed = orjson.loads(text)
            if len(parsed) != max(2 * len(payloads) - 1, 0) or not all(type(n) is int for n in parsed[1::2]):
                return None
            parsed = parsed[::2]
        else:
            parsed = [orjson.loads(payload) for payload in payloads]
    except orjson.JSONDecodeError:
        return None
    return parsed if all(type(item) is dict for item in parsed) else None


def _document(body: bytes, kind: str) -> Reading:
    item = _strict(body)
    if item.get("error") is not None:
        raise _Failed
    answer = _Answer()
    answer.usage(item)
    if kind == "embeddings":
        return _embedding(item, answer)
    try:
        choice = item["choices"][0]
        part = choice["message"] if kind == "chat" else choice
    except (KeyError, IndexError, TypeError):
        raise _Malformed from None
    if not isinstance(choice, dict) or not isinstance(part, dict) or (kind != "chat" and "text" not in part):
        raise _Malformed
    answer.part(part)
    answer.finish(choice)
    return answer.verdict()


def _embedding(item: Json, answer: _Answer) -> Reading:
    data = item.get("data")
    first = data[0] if isinstance(data, list) and data else None
    vector = first.get("embedding") if isinstance(first, dict) else None
    if not isinstance(vector, list) or not vector or not all(type(n) in (int, float) for n in vector):
        raise _Malformed
    return answer.reading("NORMAL")


def _strict(body: bytes) -> Json:
    """One JSON object, with the numbers and keys that two parsers read alike."""

    def pairs(items: list[tuple[str, Any]]) -> Json:
        found = dict(items)
        if len(found) != len(items):
            raise _Malformed
        return found

    def constant(_: str) -> Any:
        raise _Malformed

    try:
        orjson.loads(body)  # decides depth, encoding and range before the slower reader
        item = json.loads(body, object_pairs_hook=pairs, parse_constant=constant)
    except (ValueError, RecursionError):
        raise _Malformed from None
    if not isinstance(item, dict):
        raise _Malformed
    return item


class _Answer:
    """What has been seen of an answer so far."""

    def __init__(self) -> None:
        self.text = self.reasoning = self.tool = False
        self.finish_reason: str | None = None
        self.tokens: tuple[int | None, int | None] = (None, None)

    def part(self, part: object) -> None:
        """A delta, a message, or a completion's choice."""
        if not isinstance(part, dict):
            return
        for key in ("content", "text"):
            self.text = self.text or (isinstance(part.get(key), str) and part[key] != "")
        for key in ("reasoning_content", "reasoning"):
            self.reasoning = self.reasoning or (isinstance(part.get(key), str) and part[key] != "")
        self.tool = self.tool or bool(part.get("tool_calls")) or bool(part.get("function_call"))

    def finish(self, choice: Json) -> None:
        if isinstance(choice.get("finish_reason"), str):
            self.finish_reason = choice["finish_reason"]

    def usage(self, item: Json) -> None:
        usage = item.get("usage")
        if isinstance(usage, dict):
            self.tokens = (_count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens")))

    def reading(self, classification: str) -> Reading:
        return Reading(classification, self.finish_reason, *self.tokens)

    def verdict(self) -> Reading:
        if self.tool:
            return self.reading("TOOL_CALL")
        if not self.text:
            return self.reading("REASONING_ONLY" if self.reasoning else "EMPTY")
        ended = {"length": "CAPPED", "stop": "NORMAL"}.get(self.finish_reason or "", "MALFORMED")
        return self.reading(ended)


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
