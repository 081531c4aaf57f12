"""What a stored body says: classification, finish reason, tokens, text. Nothing else is believed.

The order is that of the format page, section 4: transport, status, then the body. An `Answer` is worked
out from the bytes of one response and three facts of its exchange; it never looks at what a sample claims.
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from checking.plan import Number
from checking.reading import SHORT, JsonFault, parse_body, read_body
from checking.streams import Event, fold, read_events

_NOBODY = "an id that no engine gives"
_MARK = ('"id":"%s"' % _NOBODY).encode()
_MARKED = _NOBODY.encode()
_ID = re.compile(rb'"id": ?"([A-Za-z0-9_:-]{1,100})"')
_CREATED = re.compile(rb'"created": ?[1-9][0-9]{0,14}[,}]')

NO_DONE = frozenset(("transformers-serve",))


Moments = Tuple[int, int]
Timings = Tuple[Number, Number]


class Answer(NamedTuple):
    """What follows from a body: whether it has text and separate reasoning, but never what they say.

    `name` is the id that the engine gave it, `models` the models that it names, `builds` its own builds
    (`system_fingerprint`). `moments` are the first and the last second (since 1970) at which the engine says that it made
    the answer (`created`); `timings` the milliseconds that it says it read the prompt and wrote the text.
    """

    classification: str
    finish_reason: Optional[str]
    prompt_tokens: Optional[int]
    completion_tokens: Optional[int]
    text: bool
    reasoning: bool
    name: Optional[str] = None
    models: Tuple[str, ...] = ()
    builds: Tuple[str, ...] = ()
    moments: Optional[Moments] = None
    timings: Optional[Timings] = None


def _nothing(classification: str) -> Answer:
    return Answer(classification, None, None, None, False, False)


class Request(NamedTuple):
    """What a request body asks for: `chat`, `completions` or `embeddings`, and whether as a stream."""

    kind: str
    streaming: bool
    fields: Dict[str, Any]


def read_request(body: bytes) -> Request:
    """Read a request body; one that is no JSON object counts as a chat without stream."""
    try:
        asked = read_body(body)
    except JsonFault:
        return Request("chat", False, {})
    if not isinstance(asked, dict):
        return Request("chat", False, {})
    kind = "chat"
    if "messages" not in asked:
        kind = "completions" if "prompt" in asked else "embeddings" if "input" in asked else "chat"
    return Request(kind, asked.get("stream") is True, asked)


def _count(value: Any) -> Optional[int]:
    return value if type(value) is int and value >= 0 else None


def _usage(value: Any) -> Tuple[Optional[int], Optional[int]]:
    if not isinstance(value, dict):
        return None, None
    return _count(value.get("prompt_tokens")), _count(value.get("completion_tokens"))


def _text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _word(value: Any) -> Optional[str]:
    return value if isinstance(value, str) and value else None


def _moment(value: Dict[str, Any]) -> List[int]:
    """The second at which an object says that it was made; none where it says no plain number."""
    made = value.get("created")
    return [made] if type(made) is int and made > 0 else []


def _timings(value: Any) -> Optional[Timings]:
    """What an engine says of its own work: milliseconds for the prompt and for the text."""
    if not isinstance(value, dict):
        return None
    asked, wrote = _duration(value.get("prompt_ms")), _duration(value.get("predicted_ms"))
    return None if asked is None or wrote is None else (asked, wrote)


def _duration(value: Any) -> Optional[Number]:
    if type(value) not in (int, float, Decimal) or value < 0:
        return None
    return Decimal(repr(value)) if type(value) is float else value


def answer(transport: str, status: Optional[int], request: Request, body: bytes, owes_done: bool) -> Answer:
    """Classify one response. Never raises: what cannot be read is MALFORMED.

    Where transport or status decides, the body is not asked: finish reason and tokens are then None.
    """
    if transport == "timeout":
        return _nothing("CLIENT_TIMEOUT")
    if transport == "failed":
        return _nothing("TRANSPORT_ERROR")
    if transport == "closed-early":
        return _nothing("UPSTREAM_PARTIAL")
    if status is None or not 200 <= status <= 299:
        return _nothing("HTTP_ERROR")
    try:
        return _stream(body, request.kind, owes_done) if request.streaming else _document(body, request.kind)
    except JsonFault:
        return _nothing("MALFORMED")


def _settle(
    finish: Optional[str], usage: Tuple[Optional[int], Optional[int]], text: bool, reasoning: bool, tools: bool
) -> Answer:
    if tools:
        kind = "TOOL_CALL"
    elif not text:
        kind = "REASONING_ONLY" if reasoning else "EMPTY"
    elif finish == "length":
        kind = "CAPPED"
    else:
        kind = "NORMAL" if finish == "stop" else "MALFORMED"
    return Answer(kind, finish, usage[0], usage[1], text, reasoning)


def _objects(events: List[Event]) -> List[Dict[str, Any]]:
    """The JSON objects of a stream, [DONE] left out. Raises JsonFault on data that is no object."""
    objects: List[Dict[str, Any]] = []
    for _, data in events:
        if data != "[DONE]":
            value = parse_body(data)
            if not isinstance(value, dict):
                raise JsonFault("json-syntax", "", "no object", "an object")
            objects.append(value)
    return objects


def _masked(data: bytes) -> Tuple[bytes, Optional[str], Optional[Moments]]:
    """A folded stream with marks for the id and the moments that its engine gave it, and that id and those moments.

    As for text (see `fold`), a plain string or whole number behind its key can stand for any other.
    """
    found = _ID.search(data)
    if found is None or _MARKED in data:
        return data, None, None
    data = data.replace(found[0], _MARK)
    told = set(_CREATED.findall(data))
    for moment in told:
        data = data.replace(moment, b'"created":1' + moment[-1:])
    seconds = [int(moment[10:-1]) for moment in told]
    return data, found[1].decode(), (min(seconds), max(seconds)) if seconds else None


def _stream(body: bytes, kind: str, owes_done: bool) -> Answer:
    """What a stream says. Answers that differ in id, moment and words alone, as most do, are read once."""
    data, name, moments = _masked(fold(body))
    read = _read_again(data, kind, owes_done) if len(data) <= SHORT else _read(data, kind, owes_done)
    if name is None:
        return read
    told = (moments or read.moments) if read.moments is not None else None
    name = name if read.name == _NOBODY else read.name
    return Answer(*read[:6], name, read.models, read.builds, told, read.timings)


def _read(data: bytes, kind: str, owes_done: bool) -> Answer:
    events = read_events(data)
    objects = _objects(events)
    if not events:
        return _nothing("MALFORMED")
    if any(event.name == "error" for event in events) or any(value.get("error") is not None for value in objects):
        return _nothing("HTTP_ERROR")
    finish: Optional[str] = None
    usage: Any = None
    text = reasoning = tools = False
    name: Optional[str] = None
    models: List[str] = []
    builds: List[str] = []
    moments: List[int] = []
    timings: Optional[Timings] = None
    for value in objects:
        if name is None:
            name = _word(value.get("id"))
        for key, seen in (("model", models), ("system_fingerprint", builds)):
            word = _word(value.get(key))
            if word is not None and word not in seen:
                seen.append(word)
        moments += _moment(value)
        timings = _timings(value.get("timings")) or timings
        said = value.get("usage")
        if isinstance(said, dict):
            usage = said
        choices = value.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            continue
        choice = choices[0]
        part = choice.get("delta") if kind == "chat" else choice
        if isinstance(part, dict):
            text = text or _text(part.get("content" if kind == "chat" else "text"))
            reasoning = reasoning or _text(part.get("reasoning_content")) or _text(part.get("reasoning"))
            tools = tools or bool(part.get("tool_calls")) or bool(part.get("function_call"))
        if isinstance(choice.get("finish_reason"), str):
            finish = choice["finish_reason"]
    read = _settle(finish, _usage(usage), text, reasoning, tools)
    told = (min(moments), max(moments)) if moments else None
    read = read._replace(name=name, models=tuple(models), builds=tuple(builds), moments=told, timings=timings)
    if finish is None or (owes_done and not any(event.data == "[DONE]" for event in events)):
        return read._replace(classification="UPSTREAM_PARTIAL")
    return read


_read_again = lru_cache(maxsize=256)(_read)


def _document(body: bytes, kind: str) -> Answer:
    value = read_body(body)
    if not isinstance(value, dict):
        return _nothing("MALFORMED")
    model, build, made = _word(value.get("model")), _word(value.get("system_fingerprint")), _moment(value)
    return _plain(value, kind)._replace(
        name=_word(value.get("id")),
        models=() if model is None else (model,),
        builds=() if build is None else (build,),
        moments=(made[0], made[0]) if made else None,
        timings=_timings(value.get("timings")),
    )


def _plain(value: Dict[str, Any], kind: str) -> Answer:
    if value.get("error") is not None:
        return _nothing("HTTP_ERROR")
    usage = _usage(value.get("usage"))
    if kind == "embeddings":
        data = value.get("data")
        first = data[0] if isinstance(data, list) and data else None
        vector = first.get("embedding") if isinstance(first, dict) else None
        if not isinstance(vector, list) or not vector or not all(type(one) in (int, float, Decimal) for one in vector):
            return _nothing("MALFORMED")
        return Answer("NORMAL", None, usage[0], usage[1], False, False)
    choices = value.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict):
        return _nothing("MALFORMED")
    finish = choice.get("finish_reason") if isinstance(choice.get("finish_reason"), str) else None
    if kind == "completions":
        if "text" not in choice:
            return _nothing("MALFORMED")
        return _settle(finish, usage, _text(choice["text"]), False, False)
    message = choice.get("message")
    if not isinstance(message, dict):
        return _nothing("MALFORMED")
    reasoning = _text(message.get("reasoning_content")) or _text(message.get("reasoning"))
    tools = bool(message.get("tool_calls")) or bool(message.get("function_call"))
    return _settle(finish, usage, _text(message.get("content")), reasoning, tools)
