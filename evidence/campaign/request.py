"""The request bodies that a campaign fixes: files as they are, or made from a few keys."""

from __future__ import annotations

import json
from collections.abc import Mapping
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
        if not {"messages", "prompt", "input"} & set(given):
            raise table.error("body", shown(given), "messages, prompt or input")
        request = {"model": model, "temperature": 0, **given}
    if "input" not in request:
        request |= {"max_tokens": budget, "stream": stream}
        if stream:
            request["stream_options"] = {"include_usage": True}
    return json.dumps(request, ensure_ascii=False, sort_keys=True, allow_nan=False).encode()


def read_body(table: Table, key: str) -> bytes:
    """The bytes of a request file, which must be a JSON object with messages, prompt or input."""
    file = table.file(key)
    content = file.read()
    request = parsed(table, key, file.name, content)
    if not {"messages", "prompt", "input"} & set(request):
        raise table.error(key, f"{file.name} without messages, prompt or input", "an OpenAI request body")
    return content


def parsed(table: Table, key: str, name: str, content: bytes) -> dict[str, Any]:
    """A JSON object from a file of the campaign, without duplicate keys, NaN or Infinity."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({k for k, _ in items}) != len(items):
            raise ValueError("a duplicate key")
        return dict(items)

    def constant(word: str) -> Any:
        raise ValueError(word)

    try:
        value = json.loads(content.decode("utf-8"), object_pairs_hook=pairs, parse_constant=constant)
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
    return Probe(file, json.dumps(request, ensure_ascii=False, sort_keys=True).encode(), tuple(ids))


def unstreamed(request: Mapping[str, Any]) -> bytes:
    """The main request without streaming: what the native warm-up sends when the campaign names no body for it."""
    kept = {key: value for key, value in request.items() if key not in ("stream", "stream_options")}
    return json.dumps(kept | {"stream": False}, ensure_ascii=False, sort_keys=True).encode()
