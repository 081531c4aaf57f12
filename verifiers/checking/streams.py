"""Server-sent events: what a stream says, and the same stream told in fewer events.

Nearly all bytes of an evidence package are streams of some hundred events that differ in one piece of text alone.
`fold` tells such a run as one event, at the speed of a search; whoever does not ask what the text is, but whether
there is any, learns the same from the folded stream as from the whole one.
"""

from __future__ import annotations

import re
from typing import List, NamedTuple

from checking.reading import JsonFault

_PLAIN = rb"[ !#-\[\]-\x7f]"
_OTHER = (  # an escape, or a character beyond ASCII in well-formed UTF-8 (Unicode, table 3-7)
    rb'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})'
    rb"|[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|\xed[\x80-\x9f][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}"
    rb"|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2}"
)
_TEXT = (  # what stands in a string that is not empty; the first way, without an escape, is by far the quicker
    rb"(?:" + _PLAIN + rb'+|(?!")' + _PLAIN + rb"*(?:(?:" + _OTHER + rb")" + _PLAIN + rb"*)*)"
)
_RUN = re.compile(
    rb'\n\n(data: [^\n]{0,500}"(?:content|reasoning_content|reasoning|text)": ?")'
    + _TEXT
    + rb'("[^\n]{0,500})(?:\n\n\1'
    + _TEXT
    + rb"\2){0,1000}(?=\n\n)"
)


class Event(NamedTuple):
    """One server-sent event: its type (`message` unless named) and its data."""

    name: str
    data: str


def unify(data: bytes) -> bytes:
    """A stream whose lines all end with LF, where they may end with CRLF or CR as well."""
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in data else data


def read_events(data: bytes) -> List[Event]:
    """The events of a stream by the WHATWG rules. Raises JsonFault json-encoding on bytes that are not UTF-8.

    LF, CRLF or CR ends a line; `data` lines join with a newline; comments and unknown fields are ignored;
    one leading BOM is dropped; a blank line ends an event; what follows the last blank line is no event.
    """
    try:
        text = unify(data).decode("utf-8")
    except UnicodeDecodeError as error:
        raise JsonFault("json-encoding", "byte %d" % error.start, "bytes that are not UTF-8", "UTF-8") from None
    if text.startswith("\ufeff"):
        text = text[1:]
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


def fold(data: bytes) -> bytes:
    """The stream with `x` for pieces of text, and events that are then as the one before them left out.

    Promise: a string of an event becomes `x` only when it is well formed, not empty, and stands behind a key
    `content`, `reasoning_content`, `reasoning` or `text`; an event is left out only when it is the one before it but
    for that string. All else stays as it is, but for the ends of lines, and a faulty stream stays faulty.

    Why it holds: what the events of a run share, head and tail, is the same to the byte, and a head ends in
    `"content":"`, say. Whoever reads JSON from left to right stands there in a string just opened, or has met a fault
    before: inside a string these quotes would be escaped, and a word right behind a string is a fault. What
    stands between head and tail is a whole string without its quotes, so that `x` may stand for it.
    """
    return _RUN.sub(_told_once, unify(data))


def _told_once(run: "re.Match[bytes]") -> bytes:
    return b"\n\n%bx%b" % run.groups()
