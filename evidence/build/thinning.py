"""Reads a streamed body by what differs in it: hundreds of events that are equal but for one string.

A campaign holds ten thousand streams of a hundred events each. Their events say the same thing around another word, so
it is proved once what such an event says, and the words are looked at together. A body that does not fit the proof is
read event by event by whoever asks.
"""

from __future__ import annotations

import functools
import re
from operator import itemgetter
from typing import NamedTuple

import orjson

_OPENINGS = (b'"content":"', b'"content": "')
_IDS = (b'"id":"', b'"id": "')
_MARK = "\u2063thin\u2063"
_FEWEST = 6
_MOST_RUNS = 64
# What stands for itself in a JSON string, and the end of a line.
_PLAIN = bytes(byte for byte in range(256) if byte >= 32 and byte not in b'"\\') + b"\n"
_CREATED = b'"created":'
_NUMBER = re.compile(rb'":\s?-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?=[,}\]])')
_CONTENT = re.compile(rb'"(?:content|text|reasoning|reasoning_content)":\s?"((?:[^"\\]|\\.)*)"')


class Thinned(NamedTuple):
    """One streamed body, taken apart; every byte of it that differs from another place in it is in here.

    `rest` reads as the whole body does: it has all events but those with nothing except a content, of which one with a
    word (if any has one) stands for all of a run. `frame` is `rest` without those words, the stream's `identifier` and the second in which
    it was made: many bodies share it. `lines` are all contents of the stream, one a line, each a JSON string. `worded` says that one of those
    that `rest` has not is not empty.
    """

    rest: bytes
    frame: bytes
    identifier: bytes
    lines: bytes
    worded: bool


class _Run(NamedTuple):
    """Events one after the other that differ in their contents alone, which are the `lines`; `word` is the first that is not empty.

    `start` is where the first content begins, `end` where the last one ends; `each` is the length of an event without its
    content, `drawn` of these events.
    """

    lines: bytes
    word: bytes
    drawn: _Drawn
    each: int
    start: int
    end: int


_Drawn = tuple[bytes, bytes]
"""What is a stream's own in all its events: its `id`, and `created` with its key and the comma behind it."""
_last: tuple[bytes, Thinned | None] = (b"", None)


def thin(body: bytes) -> Thinned | None:
    """The body taken apart, or None when it is no stream of that kind. The last answer is remembered."""
    global _last
    if _last[0] is not body:
        _last = (body, _take_apart(body))
    return _last[1]


def joined(body: bytes) -> bytes:
    """The text that a streamed answer adds up to, roughly: an address may be cut over several events."""
    if sum(map(body.count, (b'content"', b'text"', b'reasoning"'))) < 2:
        return b""
    contents = _CONTENT.findall(body)
    return b"".join(contents) if len(contents) > 1 else b""


def _take_apart(body: bytes) -> Thinned | None:
    run = None if b"\r" in body else _find_run(body, 0)
    if run is None:
        return None
    drawn, rest, lines, worded, at = run.drawn, list[bytes](), list[bytes](), False, 0
    while run is not None:
        rest += body[at : run.start], run.word
        lines.append(run.lines)
        worded = worded or run.word != b""
        at = run.end
        # Another run follows where the second of an engine's clock went on, or its events got another field.
        again = len(body) - at > _FEWEST * run.each and len(lines) < _MOST_RUNS
        run = _find_run(body, at) if again else None
    rest.append(body[at:])
    frame = _blanked(b"".join(rest[::2]), drawn)
    if not _is_silent(frame):
        said = map(_CONTENT.findall, rest[::2])
        lines = [line for more, run_lines in zip(said, [*lines, b""], strict=True) for line in (*more, run_lines)]
    return Thinned(b"".join(rest), frame, drawn[0], b"\n".join(lines), worded)


def form(frame: bytes) -> bytes:
    """The frame with a 0 for every number that is a JSON value: the streams of an engine that tells its timings share it."""
    return _NUMBER.sub(b'":0', frame)


def _find_run(body: bytes, at: int) -> _Run | None:
    around = _around(body, at)
    if around is None:
        return None
    before, after, first = around
    event = before + b"\n" + after
    drawn = _drawn(event)
    if (first and body[first - 1] != 10) or not _is_content(_blanked(event, drawn)):
        return None
    joint = after + b"\n\n" + before
    last = body.rfind(joint, at)
    # Twice as quick as a search for the two characters: a single one is looked for by the machine's own search.
    events = body[first : body.find(b"\n", last + len(joint))].split(b"\n")[::2]
    if not events[-1].endswith(after):
        events.pop()
    if events and not events[0].endswith(after):
        first += len(events.pop(0)) + 2
    contents = [*map(itemgetter(slice(len(before), -len(after))), events)]
    lines = b"\n".join(contents)
    # Put together again they must give the bytes that were taken apart: one comparison proves every event's frame.
    start, whole = first + len(before), joint.join(contents)
    end = start + len(whole)
    proved = body.startswith(whole, start) and body.startswith(after + b"\n\n", end)
    if not proved or len(contents) <= _FEWEST or not _are_strings(lines, len(contents)):
        return None
    return _Run(lines, next(filter(None, contents), b""), drawn, len(joint), start, end)


def _are_strings(lines: bytes, count: int) -> bool:
    """Whether the lines are so many JSON strings. Without bare quotes in them, none can end early or run into the next."""
    if not lines.translate(None, _PLAIN):
        try:
            lines.decode()
        except UnicodeDecodeError:
            return False
        return True
    if b'"' in lines.replace(b"\\\\", b"").replace(b'\\"', b""):
        return False
    try:
        return len(orjson.loads(b'["' + lines.replace(b"\n", b'","') + b'"]')) == count
    except orjson.JSONDecodeError:
        return False


def _drawn(event: bytes) -> _Drawn:
    """The id of such an event, if it is plain text between quotes, and its second, if it is a plain number; else nothing."""
    identifier = b""
    for opening in _IDS:
        start = event.find(opening)
        if start >= 0:
            start += len(opening)
            identifier = event[start : event.find(b'"', start)]
            break
    if len(identifier) < 8 or not identifier.replace(b"-", b"").isalnum():
        identifier = b""
    start = event.find(_CREATED)
    end = event.find(b",", start)
    number = event[start + len(_CREATED) : end].lstrip(b" ") if 0 <= start < end else b""
    plain = number.isdigit() and number[0] != 48 and 6 <= len(number) <= 12
    return identifier, event[start : end + 1] if plain else b""


def _blanked(text: bytes, drawn: _Drawn) -> bytes:
    """The text with nothing for that id and 0 for that second, wherever they stand."""
    identifier, created = drawn
    if identifier:
        text = text.replace(b'"' + identifier + b'"', b'""')
    if created:
        text = text.replace(created, _CREATED + b"0,")
    return text


def _around(body: bytes, begin: int) -> tuple[bytes, bytes, int] | None:
    """What stands before and after the content in the second event that has one: the first chunk is often the role's.

    And where the first event begins that says the same before it, which is the first or the second.
    """
    for opening in _OPENINGS:
        first = body.find(opening, begin)
        at = body.find(opening, first + 1) if first >= 0 else -1
        if at < 0:
            continue
        start, close = body.rfind(b"\n\n", begin, at), body.find(b'"', at + len(opening))
        while close >= 0 and body[close - 1] == 92:  # a quote behind a backslash is one of the content
            close = body.find(b'"', close + 1)
        end = body.find(b"\n\n", close) if close >= 0 else -1
        if start >= 0 and end >= 0:
            before, first = body[start + 2 : at + len(opening)], first + len(opening)
            same = body.endswith(before, begin, first)
            return before, body[close:end], first - len(before) if same else start + 2
    return None


@functools.lru_cache(256)
def _is_silent(frame: bytes) -> bool:
    """Whether the frame has no content of its own."""
    return not any(_CONTENT.findall(frame))


@functools.lru_cache(256)
def _is_content(event: bytes) -> bool:
    """Whether an event, without its content, is one data line with a plain content delta: a mark must come out there."""
    before, _, after = event.partition(b"\n")
    if b"\n" in after or not before.startswith(b"data:"):
        return False
    try:
        item = orjson.loads(before[5:] + _MARK.encode() + after)
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
