"""What the synthetic engine says: deterministic text, token ids and bodies, and no clock.

The text follows from the seed and the SHA-256 of the request body alone, the response id from the request id. So the
same request under the same id has the same answer, byte for byte, on every machine.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

CREATED = 1767225600  # 2026-01-01; a clock would make the bytes differ from run to run
WORDS = (  # noqa: SIM905 - one line of words reads better than a list of 32 strings
    "amber basin cedar delta ember fjord grove haven inlet jetty knoll larch maple north ocean pearl "
    "quarry ridge stone tidal umber vale willow yarrow zephyr café naïve straße 松 河 🌊 🪨"
).split()
EMBEDDING_SIZE = 16


def split_tokens(text: str) -> list[str]:
    """The engine's tokens: words with their leading blank."""
    return [(" " if place else "") + word for place, word in enumerate(text.split())]


def number_tokens(text: str, shift: int = 0) -> list[int]:
    """Token ids of a text, below 50,000; `shift` makes them wrong on purpose."""
    return [
        (int.from_bytes(hashlib.sha256(token.encode()).digest()[:4], "big") + shift) % 50_000
        for token in split_tokens(text)
    ]


def render_prompt(request: dict[str, Any]) -> str:
    """The one prompt text of a chat, completion, embedding or tokenize request."""
    messages = request.get("messages")
    if isinstance(messages, list):
        parts = []
        for message in messages:
            if isinstance(message, dict):
                parts.append(f"{message.get('role', 'user')} : {message.get('content', '')}")
        return " ".join(parts)
    for key in ("prompt", "content", "input"):
        value = request.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, list):
            return " ".join(str(part) for part in value)
    return ""


@dataclass(frozen=True)
class Answer:
    """One generation: who asked, what is said in which pieces, and how it ends."""

    id: str
    model: str
    pieces: tuple[str, ...]
    finish: str
    prompt_tokens: int
    tokens_per_piece: int
    chat: bool
    kind: str = "content"  # content | reasoning | tool-call

    @property
    def usage(self) -> dict[str, int]:
        completion = len(self.pieces) * self.tokens_per_piece
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": completion,
            "total_tokens": self.prompt_tokens + completion,
        }

    def _object(self, choices: list[dict[str, Any]], **more: Any) -> bytes:
        name = "chat.completion.chunk" if self.chat else "text_completion"
        value = {"id": self.id, "object": name, "created": CREATED, "model": self.model, "choices": choices, **more}
        return encode(value)

    def role_event(self) -> bytes:
        delta = {"role": "assistant", "content": ""}
        return encode_event(self._object([{"index": 0, "delta": delta, "finish_reason": None}]))

    def piece_events(self) -> Iterator[bytes]:
        for place, piece in enumerate(self.pieces):
            if not self.chat:
                yield encode_event(self._object([{"index": 0, "text": piece, "finish_reason": None}]))
                continue
            delta: dict[str, Any] = {"content": piece}
            if self.kind == "reasoning":
                delta = {"reasoning_content": piece}
            elif self.kind == "tool-call":
                call: dict[str, Any] = {"index": 0, "function": {"arguments": piece}}
                if place == 0:
                    call = {
                        "index": 0,
                        "id": "call-0",
                        "type": "function",
                        "function": {"name": "look", "arguments": piece},
                    }
                delta = {"tool_calls": [call]}
            yield encode_event(self._object([{"index": 0, "delta": delta, "finish_reason": None}]))

    def finish_event(self) -> bytes:
        choice: dict[str, Any] = {"index": 0, "finish_reason": self.finish}
        if self.chat:
            choice["delta"] = {}
        else:
            choice["text"] = ""
        return encode_event(self._object([choice]))

    def usage_event(self) -> bytes:
        return encode_event(self._object([], usage=self.usage))

    def whole(self, usage: bool = True) -> bytes:
        """The body of a request that did not ask for a stream."""
        text = "".join(self.pieces)
        choice: dict[str, Any] = {"index": 0, "finish_reason": self.finish}
        if not self.chat:
            choice["text"] = text
        else:
            message: dict[str, Any] = {"role": "assistant", "content": text}
            if self.kind == "reasoning":
                message = {"role": "assistant", "content": "", "reasoning_content": text}
            elif self.kind == "tool-call":
                function = {"name": "look", "arguments": text}
                calls = [{"id": "call-0", "type": "function", "function": function}]
                message = {"role": "assistant", "content": None, "tool_calls": calls}
            choice["message"] = message
        name = "chat.completion" if self.chat else "text_completion"
        value = {"id": self.id, "object": name, "created": CREATED, "model": self.model, "choices": [choice]}
        return encode({**value, "usage": self.usage} if usage else value)


DONE = b"data: [DONE]\n\n"


def encode(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def encode_event(data: bytes) -> bytes:
    return b"data: " + data + b"\n\n"


def encode_error(status: int, message: str) -> bytes:
    return encode({"error": {"message": message, "type": "synthetic", "code": status}})


def compose_answer(
    request: dict[str, Any],
    body: bytes,
    *,
    request_id: str,
    model: str,
    seed: int,
    length: int,
    tokens_per_piece: int,
    chat: bool,
    fault: str,
) -> Answer:
    """The answer to `body`: `length` pieces unless the request's budget is smaller, which ends it with `length`."""
    digest = hashlib.sha256(
        seed.to_bytes(8, "big", signed=True) + str(request.get("seed", "")).encode() + body
    ).digest()
    budget = request.get("max_completion_tokens", request.get("max_tokens"))
    room = budget // tokens_per_piece if isinstance(budget, int) and not isinstance(budget, bool) else length
    count = max(1, min(length, room))
    capped = count < length or fault == "capped"
    words = [WORDS[digest[place % 32] * (place // 32 + 1) % len(WORDS)] for place in range(count)]
    pieces = tuple((" " if place else "") + word for place, word in enumerate(words))
    kind, finish = "content", "length" if capped else "stop"
    if fault == "reasoning-only":
        kind, finish = "reasoning", "length"
    elif fault == "tool-call":
        kind, finish, pieces = "tool-call", "tool_calls", ('{"word":', '"' + words[0] + '"}')
    elif fault == "empty":
        pieces = ()
    unique = hashlib.sha256(request_id.encode()).hexdigest()[:24]
    return Answer(
        id=("chatcmpl-" if chat else "cmpl-") + unique,
        model=model,
        pieces=pieces,
        finish=finish,
        prompt_tokens=len(split_tokens(render_prompt(request))),
        tokens_per_piece=tokens_per_piece,
        chat=chat,
        kind=kind,
    )


def embed(text: str, seed: int) -> list[float]:
    """A vector of EMBEDDING_SIZE numbers between -1 and 1."""
    digest = hashlib.sha256(f"{seed}:{text}".encode()).digest()
    return [round(digest[place] / 127.5 - 1, 6) for place in range(EMBEDDING_SIZE)]
