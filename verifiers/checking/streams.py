"""Server-sent events: what a stream says, and the same stream told in fewer events.

Nearly all bytes of an evidence package are streams of some hundred events that differ in one piece of text alone.
`fold` tells such a run as one event, at the speed of a search; whoever does not ask what the text is, but whether
there is any, learns the same from the folded stream as from the whole one.
"""

from __future__ import annotations

import re
from typing import List, NamedTuple

from checking.reading import JsonFault

_STRING = r'(?!")[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*'
_RUN = re.compile(
    r'\n\n(data: [^\n]{0,500}?"(?:content|reasoning_content|reasoning|text)": ?")'
    + _STRING
    + r'("[^\n]{0,500})(?:\n\n\1'
    + _STRING
    + r"\2){0,1000}(?=\n\n)"
)
_ONE = r"\n\n\1x\2"


class Event(NamedTuple):
    """One server-sent event: its type (`message` unless named) and its data."""

    name: str
    data: str


def read_text(data: bytes) -> str:
    """A stream as text whose lines end with LF alone, one leading BOM dropped. Raises JsonFault json-encoding."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise JsonFault("json-encoding", "byte %d" % error.start, "bytes that are not UTF-8", "UTF-8") from None
    if text.startswith("\ufeff"):
        text = text[1:]
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def read_events(text: str) -> List[Event]:
    """The events of a stream, from its `read_text`, by the WHATWG rules.

    `data` lines join with a newline; comments and unknown fields are ignored; a blank line ends an event; what
    follows the last blank line is no event.
    """
    lines = text.split("\n")
    lines.pop()
    events: List[Event] = []
    held: List[str] = []
    name = ""
    for line in lines:
        if line.startswith("data: "):
            held.append(line[6:])
        elif not line:
            if held:
                events.append(Event(name or "message", held[0] if len(held) == 1 else "\n".join(held)))
                held = []
            name = ""
        else:
            field, _, value = line.partition(":")
            value = value[1:] if value.startswith(" ") else value
            if field == "data":
                held.append(value)
            elif field == "event":
                name = value
    return events


def fold(text: str) -> str:
    """The stream (as `read_text` gives it) with `x` for pieces of text, and equal neighbours told once.

    Promise: a string of an event becomes `x` only when it is well formed, not empty, and stands behind a key
    `content`, `reasoning_content`, `reasoning` or `text`; an event is left out only when it is the one before it but
    for that string. All else stays as it is, and a faulty stream stays faulty.

    Why it holds: what a run's events share, head and tail, is the same to the byte, and a head ends in
    `"content":"`, say. Whoever reads JSON from left to right stands there in a string just opened, or has met a fault
    before: inside a string these quotes would be escaped, and a word right behind a string is a fault. What
    stands between head and tail is a whole string without its quotes, so that `x` may stand for it.
    """
    return _RUN.sub(_ONE, text)
