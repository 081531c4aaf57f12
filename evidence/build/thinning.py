"""Reads a streamed body by what differs in it: hundreds of events that are equal but for one string.

A campaign holds ten thousand streams of a hundred events each. Their events say the same thing around another word, so
it is proved once what such an event says, and the words are looked at together. A body that does not fit the proof is
read event by event by whoever asks.
"""

from __future__ import annotations

from dataclasses import dataclass

import orjson

_OPENINGS = (b'"content":"', b'"content": "')
_MARK = "\u2063thin\u2063"
_CONTROL = bytes(range(32))
_FEWEST = 6


@dataclass(frozen=True, slots=True)
class Thinned:
    """`rest`: the body with all but a few of its plain content events left out; `contents`: the strings of all of them.

    `exact` says that every content is a plain JSON string (no quote, no backslash, no control character, UTF-8), so
    that `rest` reads as the whole body does; without it `rest` and `contents` still hold every byte that differs.
    """

    rest: bytes
    contents: list[bytes]
    exact: bool


_last: tuple[bytes, Thinned | None] = (b"", None)


def thin(body: bytes) -> Thinned | None:
    """The body taken apart, or None when it is no stream of that kind. The last answer is remembered."""
    global _last
    if _last[0] is not body:
        _last = (body, _take_apart(body))
    return _last[1]


def _take_apart(body: bytes) -> Thinned | None:
    around = _around(body)
    if around is None or b"\r" in body:
        return None
    before, after = around
    least, front, back = len(before) + len(after), len(before), -len(after)
    kept: list[bytes] = []
    contents: list[bytes] = []
    word = -1  # where in `kept` stands the first event with a word, once there is one
    events = body.split(b"\n\n")
    tail = events.pop()
    for event in events:
        if event.startswith(before) and event.endswith(after) and len(event) >= least:
            contents.append(event[front:back])
            if len(contents) > 2 and (word >= 0 or len(event) == least):
                continue
            if len(event) > least and word < 0:
                word = len(kept)
        kept.append(event)
    if len(contents) < _FEWEST or not _is_content(before, after):
        return None
    kept.append(tail)
    return Thinned(b"\n\n".join(kept), contents, _is_plain(contents))


def _is_plain(contents: list[bytes]) -> bool:
    lines = b"\n".join(contents)
    if b'"' in lines or b"\\" in lines or len(lines.translate(None, _CONTROL)) != len(lines) - len(contents) + 1:
        return False
    try:
        # Joined by line ends: a character cut over two events is no character in either.
        lines.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _around(body: bytes) -> tuple[bytes, bytes] | None:
    """What stands before and after the content in the second event that has one: the first chunk is often the role's."""
    for opening in _OPENINGS:
        first = body.find(opening)
        at = body.find(opening, first + 1) if first >= 0 else -1
        if at < 0:
            continue
        start, close = body.rfind(b"\n\n", 0, at), body.find(b'"', at + len(opening))
        end = body.find(b"\n\n", close) if close >= 0 else -1
        if start >= 0 and end >= 0:
            return body[start + 2 : at + len(opening)], body[close:end]
    return None


def _is_content(before: bytes, after: bytes) -> bool:
    """Whether such an event is one data line with a plain content delta; a mark in its place must come out there."""
    text = before + _MARK.encode() + after
    if b"\n" in text or not text.startswith(b"data:"):
        return False
    try:
        item = orjson.loads(text[5:])
        choice = item["choices"][0]
        delta = choice["delta"]
        return (
            delta["content"] == _MARK
            and choice.get("finish_reason") is None
            and item.get("error") is None
            and not isinstance(item.get("usage"), dict)
            and set(delta) <= {"content", "role"}
        )
    except (orjson.JSONDecodeError, KeyError, IndexError, TypeError, AttributeError):
        return False
