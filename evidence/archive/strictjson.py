"""JSON as a package allows it: one meaning for every reader, or a refusal.

UTF-8 without BOM, no duplicate keys, no NaN or Infinity, integers within +-(2^53-1), nesting of at most 64 decided
before anything is parsed, no lone surrogates, one document.
"""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

from evidence.archive.grammar import LIMITS, Refusal

DEPTH = 64
LARGEST = 2**53 - 1
_CANONICAL = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE | orjson.OPT_STRICT_INTEGER
_DEEP = b"\n" + b" " * (2 * DEPTH)
_MARK = re.compile(rb'[\[\]{}"]')
_STRING_MARK = re.compile(rb'["\\]')
_NUMBER_LENGTH = 64


def parse(data: bytes, place: str) -> Any:
    """Return the value of one strict JSON document; raise `Refusal` json-* or limit-json otherwise."""
    if len(data) > LIMITS.json_bytes:
        raise Refusal("limit-json", place, f"{len(data)} bytes", f"at most {LIMITS.json_bytes}")
    try:
        # A text that its canonical form gives back byte for byte hides nothing: no second key, no second reading.
        value = orjson.loads(data)
        if orjson.dumps(value, option=_CANONICAL) == data and _DEEP not in data:
            return value
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        pass
    return _parse_slowly(data, place)


def _parse_slowly(data: bytes, place: str) -> Any:
    if data[:3] == b"\xef\xbb\xbf" or data[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in data[:4]:
        raise Refusal("json-encoding", f"{place}: byte 0", f"bytes {data[:4].hex()}", "UTF-8 without a byte order mark")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        found = f"byte {data[error.start]:02x}: {error.reason}"
        raise Refusal("json-encoding", f"{place}: byte {error.start}", found, "UTF-8") from None
    _measure(data, place)

    def integer(digits: str) -> int:
        if len(digits) > _NUMBER_LENGTH or abs(int(digits)) > LARGEST:
            raise Refusal("json-number", place, f"integer {digits[:30]}", f"within +-{LARGEST}")
        return int(digits)

    def decimal(digits: str) -> float:
        value = float(digits)
        if len(digits) > _NUMBER_LENGTH or value in (float("inf"), float("-inf")):
            raise Refusal("json-number", place, f"number {digits[:30]}", "a finite number in at most 64 characters")
        return value

    def constant(word: str) -> Any:
        raise Refusal("json-number", place, word, "a number")

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(found)
        if len(value) != len(found):
            names = [name for name, _ in found]
            twice = next(name for name in names if names.count(name) > 1)
            raise Refusal("json-duplicate-key", place, f"key {json.dumps(twice)[:80]} twice in one object", "once")
        return value

    try:
        value = json.loads(
            text, parse_int=integer, parse_float=decimal, parse_constant=constant, object_pairs_hook=pairs
        )
    except json.JSONDecodeError as error:
        where = f"{place}: line {error.lineno} column {error.colno}"
        raise Refusal("json-syntax", where, error.msg.lower(), "one JSON document") from None
    if "\\u" in text:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise Refusal("json-encoding", place, "a lone surrogate escape", "whole characters") from None
    return value


def _measure(data: bytes, place: str) -> None:
    """Refuse nesting beyond `DEPTH` by looking at brackets outside strings, whatever else is wrong."""
    depth = at = 0
    while mark := _MARK.search(data, at):
        at = mark.end()
        byte = mark[0]
        if byte in b"[{":
            depth += 1
            if depth > DEPTH:
                raise Refusal("json-depth", f"{place}: byte {mark.start()}", f"level {depth}", f"at most {DEPTH}")
        elif byte in b"]}":
            depth -= 1
        else:
            while inner := _STRING_MARK.search(data, at):
                at = inner.end()
                if inner[0] == b'"':
                    break
                at += 1
            else:
                return  # a string without an end: the parser will say where
