"""The token ids that an engine makes of a request, asked of its own tokenize route."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evidence.capture.answer import parse
from evidence.capture.exchange import Answer, ExchangeFailed, exchange

SECONDS = 30.0


@dataclass(frozen=True)
class Tokens:
    """The ids, or None where the engine did not tell them, with the last answer that was asked for."""

    ids: tuple[int, ...] | None
    answer: Answer | None


def hash_tokens(ids: Sequence[int]) -> str:
    """SHA-256 of the ids as compact JSON, `[1,2,3]`."""
    return hashlib.sha256(json.dumps(list(ids), separators=(",", ":")).encode()).hexdigest()


async def ask_tokens(adapter: str, url: str, body: bytes) -> Tokens:
    """Renders the request and tokenizes it the engine's own way; never raises for what the engine does.

    llama.cpp tokenizes text, so the messages go through its /apply-template first; vLLM and those that follow it
    take the messages themselves.
    """
    request: dict[str, Any] = json.loads(body)
    answer = None
    try:
        if adapter == "llama.cpp":
            text = request.get("prompt")
            if "messages" in request:
                answer = await post(url + "/apply-template", {"messages": request["messages"]})
                text = parse(answer.body)["prompt"]
            asked = {"content": text, "add_special": True, "parse_special": True}
        else:
            asked = {key: request[key] for key in ("model", "messages", "prompt") if key in request}
        answer = await post(url + "/tokenize", asked)
        ids = parse(answer.body)["tokens"]
        whole = answer.status == 200 and isinstance(ids, list) and all(type(one) is int for one in ids)
        return Tokens(tuple(ids) if whole else None, answer)
    except (ExchangeFailed, ValueError, KeyError, TypeError):
        return Tokens(None, answer)


async def post(url: str, value: dict[str, Any]) -> Answer:
    return await exchange(url, "POST", json.dumps(value, ensure_ascii=False).encode(), seconds=SECONDS)
