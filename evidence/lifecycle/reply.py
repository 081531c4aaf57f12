"""What an engine answered, as a caller reads it, and one exchange with it as raw events."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from evidence.capture.answer import parse
from evidence.capture.load import Exchange, fetch
from evidence.lifecycle.events import EventLog

JSON = {"content-type": "application/json"}


@dataclass(frozen=True)
class Reply:
    """An answer as a caller reads it."""

    status: int | None
    served_model: str | None
    text: str
    retry_after: float | None
    code: str | None
    permanent: bool | None
    transport: str
    body: dict[str, Any]

    @property
    def good(self) -> bool:
        return self.status == 200 and self.transport == "complete" and bool(self.text)


def read_reply(exchange: Exchange) -> Reply:
    """A chat, completion or error body; whatever cannot be read is None or empty."""
    try:
        value = parse(exchange.response_body)
    except ValueError:
        value = None
    body: dict[str, Any] = value if isinstance(value, dict) else {}
    told = body.get("error") if isinstance(body.get("error"), dict) else body.get("detail")
    error: dict[str, Any] = told if isinstance(told, dict) else {}
    choices = body.get("choices")
    one = choices[0] if isinstance(choices, list) and choices else None
    first: dict[str, Any] = one if isinstance(one, dict) else {}
    said = first.get("message")
    message: dict[str, Any] = said if isinstance(said, dict) else {}
    text = message.get("content") or first.get("text") or ""
    try:
        wait = float(exchange.retry_after) if exchange.retry_after is not None else None
    except ValueError:
        wait = None
    if wait is not None and not 0 <= wait < math.inf:
        wait = None
    return Reply(
        status=exchange.status,
        served_model=body.get("model") if isinstance(body.get("model"), str) else None,
        text=text if isinstance(text, str) else "",
        retry_after=wait,
        code=str(error["code"]) if "code" in error else None,
        permanent=error.get("permanent") if isinstance(error.get("permanent"), bool) else None,
        transport=exchange.transport,
        body=body,
    )


async def ask(
    log: EventLog,
    url: str,
    value: Any,
    timeout: float,
    told: Mapping[str, Any],
    keep: Callable[[Exchange, Reply], Mapping[str, Any]],
    headers: Mapping[str, str] = JSON,
) -> Reply:
    """POST a JSON value, recorded as `request` and `response` with what is `told` of both.

    Of the answer its status, its transport and the hash of its bytes are kept, and what `keep` gives besides.
    """
    number = log.next_id()
    log.write("request", id=number, **told)
    exchange = await fetch(url, "POST", json.dumps(value).encode(), timeout, headers)
    reply = read_reply(exchange)
    log.write(
        "response",
        id=number,
        **told,
        status=reply.status,
        transport=reply.transport,
        body_sha256=hashlib.sha256(exchange.response_body).hexdigest(),
        **keep(exchange, reply),
    )
    return reply


def keep_text(exchange: Exchange, reply: Reply) -> dict[str, Any]:
    """Whether there was text, and its hash."""
    return {"answered": bool(reply.text), "text_sha256": hashlib.sha256(reply.text.encode()).hexdigest()}


def keep_chances(exchange: Exchange, reply: Reply) -> dict[str, Any]:
    """Whether there was text, its hash, and the probabilities of its first token."""
    return {**keep_text(exchange, reply), "first_token_probabilities": read_probabilities(reply.body)}


def read_probabilities(body: dict[str, Any]) -> dict[str, float] | None:
    """Token -> probability of the first generated token's observed candidates; None when the body has none."""
    try:
        first = body["choices"][0]["logprobs"]["content"][0]
        rows = [*first["top_logprobs"], first]
        found = {str(row["token"]): round(math.exp(float(row["logprob"])), 12) for row in rows}
    except (KeyError, IndexError, TypeError, ValueError, OverflowError):
        return None
    return found or None
