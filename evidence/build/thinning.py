"""Reads a streamed body by what differs in it: hundreds of events that are equal but for one string.

A campaign holds ten thousand streams of a hundred events each. Their events say the same thing around another word, so
it is proved once what such an event says, and the words are looked at together. A body that does not fit the proof is
read event by event by whoever asks.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter

import orjson

_OPENINGS = (b'"content":"', b'"content": "')
_IDS = (b'"id":"', b'"id": "')
_MARK = "\u2063thin\u2063"
_FEWEST = 6
# What stands for itself in a JSON string, and the end of a line.
_PLAIN = bytes(byte for byte in range(256) if byte >= 32 and byte not in b'"\\') + b"\n"


@dataclass(frozen=True, slots=True)
class Thinned:
    """One streamed body, taken apart; every byte of it that differs from another place in it is in here.

    `rest` reads as the whole body does: it has all events but those with nothing except a content, of which one with a
    word (if any has one) stands for all. `frame` is `rest` without that word and without the stream's `identifier`: many
    bodies share it. `lines` are the contents of those events, one a line, each proved to be a JSON string without quotes. `worded` says that one
    of them is not empty.
    """

    rest: bytes
    frame: bytes
    identifier: bytes
    lines: bytes
    worded: bool


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
    joint = after + b"\n\n" + before
    first, last = body.find(before), body.rfind(joint)
    if last < 0 or (first and body[first - 1] != 10):
        return None
    # Twice as quick as a search for the two characters: a single one is looked for by the machine's own search.
    lines = body[first : body.find(b"\n", last + len(joint))].split(b"\n")
    contents = [*map(itemgetter(slice(len(before), -len(after))), lines[::2])]
    text = b"\n".join(contents)
    if len(contents) <= _FEWEST or not _says_content(before, after):
        return None
    # Put together again they must give the bytes that were taken apart: one comparison proves every event's frame.
    start, whole = first + len(before), joint.join(contents)
    end = start + len(whole)
    if not (body.startswith(whole, start) and body.startswith(after + b"\n\n", end)):
        return None
    if not _are_strings(text, len(contents)):
        return None
    word = text.lstrip(b"\n").partition(b"\n")[0]
    head, tail = body[:start], body[end:]
    frame, identifier = _without_identifier(head + tail)
    return Thinned(head + word + tail, frame, identifier, text, bool(word))


def _are_strings(lines: bytes, count: int) -> bool:
    """Whether the lines are so many JSON strings. Without quotes in them, none can end early or run into the next."""
    if not lines.translate(None, _PLAIN):
        try:
            lines.decode()
        except UnicodeDecodeError:
            return False
        return True
    if b'"' in lines:
        return False
    try:
        return len(orjson.loads(b'["' + lines.replace(b"\n", b'","') + b'"]')) == count
    except orjson.JSONDecodeError:
        return False


def _without_identifier(frame: bytes) -> tuple[bytes, bytes]:
    """The frame with the first `id` taken out wherever it stands, and that id; it is plain text between quotes."""
    for opening in _IDS:
        start = frame.find(opening)
        if start >= 0:
            start += len(opening)
            identifier = frame[start : frame.find(b'"', start)]
            if len(identifier) >= 8 and identifier.replace(b"-", b"").isalnum():
                return frame.replace(b'"' + identifier + b'"', b'""'), identifier
    return frame, b""


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


def _says_content(before: bytes, after: bytes) -> bool:
    """`_is_content`, asked once for what differs in the stream's id alone."""
    key = _without_identifier(before)[0], after
    known = _frames.get(key)
    if known is None:
        if len(_frames) >= 256:
            _frames.clear()
        known = _frames[key] = _is_content(before, after)
    return known


_frames: dict[tuple[bytes, bytes], bool] = {}


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
