"""What an answer says and when: the fields that a sample takes from the body, and the times of its events.

Text is `choices[].delta.content` of a chat chunk (`choices[].text` of a completion chunk), a non-empty
string, white space included. A role, null, "", a usage chunk or separate reasoning is no text. Reasoning is
`reasoning_content` or `reasoning`. Nothing here judges an answer: the classification is derived later from
the stored bytes.
"""

from __future__ import annotations

import json
import re

from evidence.capture.sse import EventReader

OPENING = re.compile(r'"(?:content|text)": ?"')
PIECES = 64
MARK = "a mark in place of the text"


class Answer:
    """Reads one answer as it comes; what it says is whole after `finish`. `feed` never raises: what it cannot read says nothing.

    `text_ns` holds the arrival of each event with text, `reasoning_at` that of the first with reasoning, both in
    the caller's clock. `events` counts events, `error` tells of an error event, `terminal` of `[DONE]`.
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

    def feed(self, data: bytes, at: int) -> None:
        """Take body bytes of a stream that arrived at `at`; a body that is no stream waits for `finish`.

        Reading waits for some pieces: done at once it costs three times as much, in the middle of a measurement.
        """
        if self.stream:
            self._pieces.append((data, at))
            if len(self._pieces) >= PIECES:
                self._read_pieces()

    def finish(self, body: bytes) -> None:
        """Read what is still unread, of a body that is no stream everything; the end of feeding."""
        if self.stream:
            self._read_pieces()
        else:
            self._read(body, None)

    def _read_pieces(self) -> None:
        feed = self._reader.feed
        for data, at in self._pieces:
            for event in feed(data, at):
                self.events += 1
                if event.type == "error":
                    self.error = True
                if event.data == "[DONE]":
                    self.terminal = True
                else:
                    self._read_event(event.data, at)
        self._pieces.clear()

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
        said = len(self.text_ns)
        self._read(data, at)
        if len(self.text_ns) > said:
            self._learn(data)

    def _learn(self, data: str) -> None:
        """Remember what surrounds the text of a plain event: one choice, no finish, no usage, nothing but text."""
        self._before = self._after = ""
        opening = OPENING.search(data)
        if opening is None:
            return
        end = data.find('"', opening.end())
        before, after = data[: opening.end()], data[end:]
        try:
            probe = json.loads(before + MARK + after)
            choice = probe["choices"][0]
            said = choice["delta"]["content"] if "delta" in choice else choice["text"]
        except (ValueError, RecursionError, LookupError, TypeError):
            return
        plain = len(probe["choices"]) == 1 and not isinstance(choice.get("finish_reason"), str)
        if plain and said == MARK and probe.get("usage") is None and probe.get("error") is None:
            self._before, self._after = before, after

    def _read(self, text: str | bytes, at: int | None) -> None:
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            return
        if not isinstance(found, dict):
            return
        if found.get("error") is not None:
            self.error = True
        usage = found.get("usage")
        if isinstance(usage, dict):
            self.prompt_tokens = _count(usage.get("prompt_tokens"))
            self.completion_tokens = _count(usage.get("completion_tokens"))
        choices = found.get("choices")
        said = thought = False
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict):
                reason = choice.get("finish_reason")
                if isinstance(reason, str):
                    self.finish_reason = reason
                delta = choice.get("delta" if self.stream else "message")
                if isinstance(delta, dict):
                    said = said or _is_text(delta.get("content"))
                    thought = thought or _is_text(delta.get("reasoning_content")) or _is_text(delta.get("reasoning"))
                else:
                    said = said or _is_text(choice.get("text"))
        self.said = self.said or said
        if said and at is not None:
            self.text_ns.append(at)
        if thought and at is not None and self.reasoning_at is None:
            self.reasoning_at = at


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _count(value: object) -> int | None:
    """A token count as an engine reports it: an integer of zero or more, or unknown."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
