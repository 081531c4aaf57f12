"""The request bodies that a campaign fixes: files as they are, or made from a few keys."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from evidence.campaign.model import Probe
from evidence.campaign.table import Table, shown


def request_path(body: bytes) -> str:
    """The OpenAI path that a request body belongs to: chat, completions or embeddings."""
    request = json.loads(body)
    if "messages" in request:
        return "/v1/chat/completions"
    return "/v1/completions" if "prompt" in request else "/v1/embeddings"


def read_case_body(table: Table, model: str) -> bytes:
    """The request of a case: a file's bytes, or the keys of an inline table with `stream` and `max_tokens` beside it."""
    if isinstance(table.content.get("body"), str):
        return read_body(table, "body")
    given = table.take("body", dict, "a file name or a table with messages")
    stream, budget = table.flag("stream", True), table.integer("max_tokens", 64, least=1)
    request = {"model": model, "messages": [{"role": "user", "content": "Name three rivers."}], "temperature": 0}
    if given is not None:
        check_request(table, "body", "body", given)
        request = {"model": model, "temperature": 0, **given}
    if "input" not in request:
        request |= {"max_tokens": budget, "stream": stream}
        if stream:
            request["stream_options"] = {"include_usage": True}
    return encoded(table, "body", request)


def encoded(table: Table, key: str, request: Mapping[str, Any]) -> bytes:
    """A request as JSON; refused when it holds what JSON has no form for, as a date of TOML or nan."""
    try:
        return json.dumps(request, ensure_ascii=False, sort_keys=True, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise table.error(
            key, f"a value that JSON cannot hold ({error})", "texts, finite numbers, true, false, lists and tables"
        ) from None


FORMS: Mapping[str, tuple[Callable[[Any], Any], str]] = {
    "messages": (lambda value: isinstance(value, list) and value and all(isinstance(one, dict) for one in value), "a list of messages, at least one"),
    "prompt": (lambda value: isinstance(value, (str, list)) and value, "a text or a list"),
    "input": (lambda value: isinstance(value, (str, list)) and value, "a text or a list"),
    "stream": (lambda value: isinstance(value, bool), "true or false"),
    "stream_options": (lambda value: value is None or isinstance(value, dict), "a table of options"),
}  # fmt: skip
"""What is read of a request here and after its capture; everything else is the engine's own business."""


def check_request(table: Table, key: str, name: str, request: Mapping[str, Any]) -> None:
    """Refuses a request that is none of OpenAI's, or whose keys that matter here have another form."""
    if not {"messages", "prompt", "input"} & set(request):
        raise table.error(key, f"{name} without messages, prompt or input", "an OpenAI request body")
    for part, (holds, expected) in FORMS.items():
        if part in request and not holds(request[part]):
            raise table.error(key, f"{name} with {part} {shown(request[part])}", expected)


def read_body(table: Table, key: str) -> bytes:
    """The bytes of a request file, which must be a JSON object with messages, prompt or input."""
    file = table.file(key)
    content = file.read()
    request = parsed(table, key, file.name, content)
    check_request(table, key, file.name, request)
    return content


def parsed(table: Table, key: str, name: str, content: bytes) -> dict[str, Any]:
    """A JSON object from a file of the campaign, without duplicate keys, numbers beyond all bounds, or halves of characters."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({k for k, _ in items}) != len(items):
            raise ValueError("a duplicate key")
        return dict(items)

    def constant(word: str) -> Any:
        raise ValueError(word)

    def number(word: str) -> float:
        value = float(word)
        return value if math.isfinite(value) else constant(word)

    try:
        value = json.loads(
            content.decode("utf-8"), object_pairs_hook=pairs, parse_constant=constant, parse_float=number
        )
        json.dumps(value, ensure_ascii=False).encode()  # a surrogate without its other half has no bytes
    except (ValueError, RecursionError) as error:
        raise table.error(key, f"{name} with no strict JSON ({error})", "one JSON object") from None
    if not isinstance(value, dict):
        raise table.error(key, f"{name} with {type(value).__name__}", "one JSON object")
    return value


def read_probe(table: Table) -> Probe | None:
    """A probe file: `{"request": {...}, "expectedTokenIds": [...]}`."""
    file = table.optional_file("probe")
    if file is None:
        return None
    content = parsed(table, "probe", file.name, file.read())
    request, ids = content.get("request"), content.get("expectedTokenIds")
    if not isinstance(request, dict) or not {"messages", "prompt"} & set(request):
        raise table.error(
            "probe", f"{file.name} without a request", '{"request": {"messages": ..}, "expectedTokenIds": [..]}'
        )
    if not isinstance(ids, list) or not ids or not all(type(token) is int and token >= 0 for token in ids):
        raise table.error("probe", f"{file.name} without expectedTokenIds", "a list of token ids, at least one")
    check_request(table, "probe", file.name, request)
    return Probe(file, encoded(table, "probe", request), tuple(ids))


def unstreamed(table: Table, request: Mapping[str, Any]) -> bytes:
    """The main request without streaming: what the native warm-up sends when the campaign names no body for it."""
    kept = {key: value for key, value in request.items() if key not in ("stream", "stream_options")}
    return encoded(table, "body", kept | {"stream": False})
