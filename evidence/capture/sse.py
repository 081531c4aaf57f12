"""Server-sent events from bytes, by the rules of the WHATWG specification (HTML, section 9.2.6).

LF, CRLF or CR ends a line, and nothing else does (U+2028 and U+0085 are text). `data` lines join with a
newline, comments and unknown fields are ignored, one leading BOM is dropped, a blank line ends an event, an
event without `data` is none, and an unterminated last event is none. Bytes are decoded after lines are whole,
so a character that was cut between two reads is whole again; what is not UTF-8 becomes U+FFFD.
"""

from __future__ import annotations

import re
from typing import NamedTuple

BOM = b"\xef\xbb\xbf"
LINE_END = re.compile(rb"\r\n|\r|\n")


class Event(NamedTuple):
    """One event; `at` is the stamp of the read that completed it."""

    type: str
    data: str
    at: int


class EventReader:
    """Reads a stream in pieces. The same bytes give the same events wherever they are cut.

    A CR that ends a piece ends its line at once; an LF that opens the next piece then belongs to it. So an
    event is never held back for a byte that may not come.
    """

    __slots__ = ("_after_cr", "_at_start", "_data", "_rest", "_type")

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        self._data: list[bytes] = []
        self._type = b""
        self._after_cr = False
        self._at_start = True

    @property
    def between(self) -> bool:
        """Whether the last event is over and nothing of a next one has come."""
        return not (self._rest or self._data or self._type or self._after_cr or self._at_start)

    def feed(self, data: bytes, at: int = 0) -> list[Event]:
        """Take the next bytes, which arrived at `at`, and return the events that they completed."""
        if (
            data.startswith(b"data: ")
            and data.endswith(b"\n\n")
            and not (self._rest or self._data or self._type or self._after_cr or b"\r" in data)
        ):
            # What nearly every read of every engine is: whole events of one line each.
            lines = data[6:-2].split(b"\n\ndata: ")
            if data.count(b"\n") == 2 * len(lines):
                self._at_start = False
                return [Event("message", line.decode("utf-8", "replace"), at) for line in lines]
        if self._after_cr and data:
            self._after_cr = False
            if data[0] == 0x0A:
                data = data[1:]
        if b"\r" in data:
            lines = LINE_END.split(data)
            self._after_cr = data[-1] == 0x0D
        else:
            lines = data.split(b"\n")
        if len(lines) == 1:
            if data:
                self._rest.append(data)
            return []
        if self._rest:
            self._rest.append(lines[0])
            lines[0] = b"".join(self._rest)
            self._rest.clear()
        last = lines.pop()
        if last:
            self._rest.append(last)
        if self._at_start:
            self._at_start = False
            lines[0] = lines[0].removeprefix(BOM)
        events: list[Event] = []
        for line in lines:
            if line:
                self._take(line)
            else:
                if self._data:
                    kind = self._type.decode("utf-8", "replace") or "message"
                    events.append(Event(kind, b"\n".join(self._data).decode("utf-8", "replace"), at))
                    self._data.clear()
                self._type = b""
        return events

    def _take(self, line: bytes) -> None:
        """Take one whole line that is not blank; a comment is a field without a name."""
        name, _colon, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
        elif name == b"event":
            self._type = value.removeprefix(b" ")
