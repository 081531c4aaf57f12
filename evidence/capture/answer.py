"""What an answer says and when: the fields that a sample takes from the body, and the times of its events.

Text is `choices[].delta.content` of a chat chunk (`choices[].text` of a completion chunk), a non-empty
string, white space included. A role, null, "", a usage chunk or separate reasoning is no text. Reasoning is
`reasoning_content` or `reasoning`. Nothing here judges an answer: the classification is derived later from
the stored bytes.
"""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

from evidence.capture.sse import EventReader

OPENING = re.compile(r'"(?:content|text)": ?"')
LIKE_TEXT = re.compile(rb'"(?:content|text)"[ \t]*:[ \t]*"[^"]')
PLAIN_TEXT = re.compile(
    rb"""[0-9A-Fa-f]+\r\ndata:[ ]?\{
    (?:"(?:id|object|model|system_fingerprint|service_tier)":[ ]?"[^"\\\x00-\x1f]*",[ ]?|"created":[ ]?[0-9]+,[ ]?)*
    "choices":[ ]?\[\{(?:"index":[ ]?[0-9]+,[ ]?|"(?:logprobs|finish_reason)":[ ]?null,[ ]?)*
    (?:"delta":[ ]?\{(?:"role":[ ]?"assistant",[ ]?)?"content"|"text"):[ ]?"[^"\\\x00-\x1f][^\r\n]*\n\n""",
    re.VERBOSE,
)
"""A whole event with text at the beginning of a chunk, as it comes from most engines."""
PIECES = 64


class Answer:
    """Reads one answer as it comes; what it says is whole after `finish`. `feed` never raises: what it cannot read says nothing.

    `text_ns` holds the arrival of each event with text, `reasoning_at` that of the first with reasoning, both in
    the caller's clock and only where it was not after text. `events` counts events, `error` tells of an error event, `terminal` of `[DONE]`.
    """

    def __init__(self, *, stream: bool) -> None:
        self.stream = stream
        self.text_ns: list[int] = []
        self.reasoning_at: int | None = None
        self.finish_reason: str | None = None
        self.prompt_tokens: int | None = None
        self.completion_tokens: int | None = None
        self.events = 0
        self.said = False
        self.error = False
        self.terminal = False
        self._reader = EventReader()
        self._pieces: list[tuple[bytes, int]] = []
        self._before = self._after = ""
        self._opening = self._closing = self._join = b""
        self._near = self._settled = False

    def settles(self, before: bytes, data: bytes) -> bool | None:
        """Whether the first text stands in `data`, which came behind `before` in a chunked response; None when in doubt.

        It surely does in a plain event at the beginning; then all reading waits for the end.
        """
        if LIKE_TEXT.search(data) is None:
            return False
        if before.endswith(b"\n\n\r\n") and PLAIN_TEXT.match(data):
            self._settled = True
            return True
        return None

    def feed(self, data: bytes, at: int) -> bool:
        """Take body bytes of a stream that arrived at `at`; a body that is no stream waits for `finish`.

        True once the first text is known: what follows has no time of its own but the end. Reading waits for what looks
        like text, and then for some pieces: done at once it costs three times as much, in the middle of a measurement.
        """
        if self._settled:
            self._pieces.append((data, at))
            return True
        if self.stream:
            self._pieces.append((data, at))
            self._near = self._near or LIKE_TEXT.search(data) is not None
            if (self._near and not self.text_ns) or len(self._pieces) >= PIECES:
                self._read_pieces()
        return bool(self.text_ns)

    def finish(self, body: bytes) -> None:
        """Read what is still unread, of a body that is no stream everything; the end of feeding."""
        if self.stream:
            self._read_pieces()
        else:
            self._read(body, None)

    def _read_pieces(self) -> None:
        feed = self._reader.feed
        for data, at in self._pieces:
            data = self._pass_alike(data, at)
            for event in feed(data, at) if data else ():
                self.events += 1
                if event.type == "error":
                    self.error = True
                if event.data == "[DONE]":
                    self.terminal = True
                else:
                    self._read_event(event.data, at)
        self._pieces.clear()

    def _pass_alike(self, data: bytes, at: int) -> bytes:
        """Read the events with which a piece begins that differ from the last one in their text alone; return the rest.

        It proves what `_read_event` proves of one event, of all of them at once: what stands between the same
        beginnings and ends is text and nothing else. With one exception in doubt, nothing is taken.
        """
        join = self._join
        if not join or not data.startswith(self._opening) or not self._reader.between:
            return data
        texts = data.split(join)
        texts[0] = texts[0][len(self._opening) :]
        texts[-1], whole, rest = texts[-1].partition(self._closing)
        if not whole:
            rest = self._opening + texts.pop()
        try:
            said = b"".join(texts).decode()
        except UnicodeDecodeError:
            return data
        if b"" in texts or not said or not said.isprintable() or '"' in said or "\\" in said:
            return data
        self.events += len(texts)
        self.text_ns += [at] * len(texts)
        return rest

    def whole(self, status: int | None) -> bool:
        """A first reading of a response that came complete: 2xx, no error, text, and its end said by the engine.

        The end of a stream is a finish reason and `[DONE]`; that of a document a finish reason, or token usage
        where there are no choices (embeddings).
        """
        if status is None or not 200 <= status <= 299 or self.error:
            return False
        if self.finish_reason is None:
            return not self.stream and self.prompt_tokens is not None
        return self.said and (self.terminal or not self.stream)

    def _read_event(self, data: str, at: int) -> None:
        """Read one event, without parsing it where it differs from the last one in its text alone.

        Proved, not guessed: between the same beginning and the same end stands a string without quote, backslash
        or control character, so it is the same JSON with another text, whose only meaning is to be empty or not.
        """
        before, after = self._before, self._after
        if before and len(data) >= len(before) + len(after) and data.startswith(before) and data.endswith(after):
            text = data[len(before) : len(data) - len(after)]
            if text.isprintable() and '"' not in text and "\\" not in text:
                if text:
                    self.text_ns.append(at)
                return
        if self._read(data, at):
            self._learn(data)

    def _learn(self, data: str) -> None:
        """Remember what surrounds the text of a plain event: one choice, no finish, no usage, nothing but text.

        Without a backslash a quoted word is what it looks like, so the one `"content"` (or `"text"`) is the key of the
        text that was just read, and what follows it up to the next quote is that text.
        """
        self._before = self._after = ""
        self._join = b""
        opening = OPENING.search(data)
        if opening is None or "\\" in data or data.count('"content"') + data.count('"text"') != 1:
            return
        end = data.find('"', opening.end())
        self._before, self._after = data[: opening.end()], data[end:]
        self._opening = b"data: " + self._before.encode()
        self._closing = self._after.encode() + b"\n\n"
        self._join = self._closing + self._opening

    def _read(self, text: str | bytes, at: int | None) -> bool:
        """Read one JSON document; True when it is a plain event with text."""
        try:
            found = parse(text)
        except ValueError:
            return False
        if not isinstance(found, dict):
            return False
        plain = True
        if found.get("error") is not None:
            self.error, plain = True, False
        usage = found.get("usage")
        if usage is not None:
            plain = False
        if isinstance(usage, dict):
            self.prompt_tokens = _count(usage.get("prompt_tokens"))
            self.completion_tokens = _count(usage.get("completion_tokens"))
        choices = found.get("choices")
        said = thought = False
        if not isinstance(choices, list):
            choices = []
        for choice in choices:
            if isinstance(choice, dict):
                reason = choice.get("finish_reason")
                if isinstance(reason, str):
                    self.finish_reason, plain = reason, False
                delta = choice.get("delta" if self.stream else "message")
                if isinstance(delta, dict):
                    said = said or _is_text(delta.get("content"))
                    thought = thought or _is_text(delta.get("reasoning_content")) or _is_text(delta.get("reasoning"))
                else:
                    said = said or _is_text(choice.get("text"))
        if thought and at is not None and self.reasoning_at is None and not self.text_ns:
            self.reasoning_at = at
        self.said = self.said or said
        if said and at is not None:
            self.text_ns.append(at)
        return plain and said and not thought and len(choices) == 1


def parse(text: str | bytes) -> Any:
    """What `json.loads` reads, by a quicker parser that refuses some of it; the one way to read what an engine wrote.

    Raises ValueError, of a text that is nested too deep as well.
    """
    try:
        return orjson.loads(text)
    except ValueError:
        try:
            return json.loads(text)
        except RecursionError:
            raise ValueError("nested too deep") from None


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _count(value: object) -> int | None:
    """A token count as an engine reports it: an integer of zero or more that JSON can carry, or unknown."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53 else None
