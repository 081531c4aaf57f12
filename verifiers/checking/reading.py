"""Strict readers of JSON and of the form of package JSON.

JSON here is RFC 8259 with nothing left to taste: UTF-8 without BOM, no duplicate keys, no NaN or
Infinity, integers within +-(2^53-1), other numbers finite as a double and at most 40 characters, nesting
at most 64 and decided before parsing, no lone surrogates. Integers become int, all other numbers
Decimal, which keeps the value exactly as it was written.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from functools import lru_cache
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

MAX_DEPTH = 64
MAX_INTEGER = 2**53 - 1
MAX_NUMBER_LENGTH = 40
SHORT = 8192  # characters of a text that is worth remembering

_STRING = r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"'
_TEXT = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_BRACKET = re.compile(r"[\[\]{}]")
_LINE = re.compile(
    r"^( *)(?:(?:" + _STRING + r": )?(?:([\[{])|(?:" + _STRING + r"|-?[0-9][0-9.eE+-]*|true|false|null|\[\]|\{\}),?)"
    r"|([\]}]),?)\n",
    re.MULTILINE,
)
_VALUE = re.compile(r'": (?:"[^"\\\n]*"|-?[0-9][0-9.]{0,14}|true|false|null|' + _STRING + r")(?=,?\n)")
_NEXT_ROW = "\n    },\n    {\n"
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class JsonFault(Exception):
    """Bytes that are no JSON document in the strict sense: code, place, what was found and expected."""

    def __init__(self, code: str, place: str, found: str, expected: str) -> None:
        super().__init__("%s at %s: %s, expected %s" % (code, place, found, expected))
        self.code = code
        self.place = place
        self.found = found
        self.expected = expected


def shown(value: object, limit: int = 80) -> str:
    """A value as it may stand in one line of output: printable ASCII, cut at the limit."""
    text = (
        value
        if isinstance(value, str)
        else str(value)
        if isinstance(value, Decimal)
        else json.dumps(value, default=str)
    )
    text = text.encode("ascii", "backslashreplace").decode()
    text = "".join(c if " " <= c <= "~" else "\\x%02x" % ord(c) for c in text)
    if not text:
        return '""'
    return text if len(text) <= limit else text[: limit - 3] + "..."


def _pairs(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen = set()
        for key, _ in pairs:
            if key in seen:
                raise JsonFault("json-duplicate-key", "", "key %s twice in one object" % shown(key), "once")
            seen.add(key)
    return made


def _sorted_pairs(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    made = _pairs(pairs)
    keys = list(made)
    if keys != sorted(keys):
        raise _Unsorted
    return made


class _Unsorted(Exception):
    """An object whose keys are not in order: found while parsing, told as a fault of form."""


def _integer(text: str) -> int:
    if len(text) > 17 or not -MAX_INTEGER <= int(text) <= MAX_INTEGER:
        raise JsonFault("json-number", "", "integer %s" % shown(text, 30), "within +-(2^53-1)")
    return int(text)


def _decimal(text: str) -> Decimal:
    if len(text) > MAX_NUMBER_LENGTH:
        raise JsonFault("json-number", "", "a number of %d characters" % len(text), "at most %d" % MAX_NUMBER_LENGTH)
    size = abs(float(text))
    if size > 1.7976931348623157e308:
        raise JsonFault("json-number", "", "number %s" % shown(text, 30), "a finite one")
    return Decimal(text)


def _constant(text: str) -> Any:
    raise JsonFault("json-number", "", text, "a number of JSON")


_decode = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_int=_integer, parse_float=_decimal, parse_constant=_constant
).decode
decode_checked = json.JSONDecoder(
    parse_float=Decimal, parse_constant=_constant
).decode  # of a text that is known to be strict
_decode_sorted = json.JSONDecoder(
    object_pairs_hook=_sorted_pairs, parse_int=_integer, parse_float=_decimal, parse_constant=_constant
).decode


def depth(text: str) -> int:
    """How deep brackets nest outside strings, found without parsing."""
    level = deepest = 0
    for bracket in _BRACKET.findall(_TEXT.sub("", text)):
        if bracket in "[{":
            level += 1
            if level > deepest:
                deepest = level
        else:
            level -= 1
    return deepest


def decode_text(data: bytes) -> str:
    """UTF-8 without BOM as text. Raises JsonFault json-encoding."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise JsonFault("json-encoding", "byte %d" % error.start, "bytes that are not UTF-8", "UTF-8") from None
    if text.startswith("\ufeff"):
        raise JsonFault("json-encoding", "byte 0", "a byte order mark", "UTF-8 without one")
    return text


def _parse(text: str, decode: Any, shallow: bool = False) -> Any:
    if not shallow and text.count("{") + text.count("[") > MAX_DEPTH and depth(text) > MAX_DEPTH:
        raise JsonFault("json-depth", "", "nesting deeper than %d" % MAX_DEPTH, "at most %d" % MAX_DEPTH)
    try:
        value = decode(text)
    except json.JSONDecodeError as error:
        place = "line %d column %d" % (error.lineno, error.colno)
        raise JsonFault("json-syntax", place, error.msg.lower(), "one JSON document") from None
    if _SURROGATE.search(text):
        try:
            json.dumps(value, ensure_ascii=False, default=str).encode("utf-8")
        except UnicodeEncodeError:
            raise JsonFault("json-encoding", "", "a lone surrogate", "whole characters") from None
    return value


def read_json(data: bytes) -> Any:
    """One JSON document from bytes. Raises JsonFault."""
    return _parse(decode_text(data), _decode)


def _finite(text: str) -> float:
    value = float(text)
    if not -1.7976931348623157e308 <= value <= 1.7976931348623157e308:
        raise JsonFault("json-number", "", "number %s" % shown(text, 30), "a finite one")
    return value


_body_decoder = json.JSONDecoder(object_pairs_hook=_pairs, parse_float=_finite, parse_constant=_constant)
_decode_body = _body_decoder.decode
_scan_body: Any = _body_decoder.scan_once  # type: ignore[attr-defined]
LONG_INTEGER = 300
_LARGE = re.compile(r"[0-9]{%d}" % LONG_INTEGER)


def parse_body(text: str) -> Any:
    """JSON that an engine wrote: as strict, but any finite number. Raises JsonFault."""
    if text.count("{") + text.count("[") > MAX_DEPTH and depth(text) > MAX_DEPTH:
        raise JsonFault("json-depth", "", "nesting deeper than %d" % MAX_DEPTH, "at most %d" % MAX_DEPTH)
    if len(text) >= LONG_INTEGER and _LARGE.search(text) and _LARGE.search(_TEXT.sub("", text)):
        return _parse(text, _decode)
    try:
        value, end = _scan_body(text, 0)
        if end == len(text):
            return value
    except (StopIteration, json.JSONDecodeError):
        pass  # told below with its place
    try:
        return _decode_body(text)
    except json.JSONDecodeError as error:
        raise JsonFault("json-syntax", "column %d" % error.colno, error.msg.lower(), "one JSON document") from None


def read_body(data: bytes) -> Any:
    """JSON that an engine wrote, from bytes. Raises JsonFault."""
    return parse_body(decode_text(data))


class Form(NamedTuple):
    """The form of a text: what is wrong with it, and whether it proves by itself that nesting is shallow."""

    fault: Optional[JsonFault]
    shallow: bool


def read_form(text: str) -> Form:
    """The package form: two spaces a level, one element a line, one final newline.

    A line holds at most one bracket outside strings but for an empty `[]` or `{}`, so that the indentation of a
    text without fault bounds its nesting before anything is parsed.
    """
    lines = _LINE.findall(text)
    if len(lines) != text.count("\n") or not text.endswith("\n"):
        for number, line in enumerate(text.split("\n"), 1):
            if not _LINE.match(line + "\n"):
                found = shown(line, 40)
                return Form(
                    JsonFault("json-form", "line %d" % number, found, "two spaces a level, one element a line"), False
                )
        return Form(
            JsonFault("json-form", "line %d" % (len(lines) or 1), "no final newline", "one final newline"), False
        )
    level = deepest = 0
    for number, (indent, opener, closer) in enumerate(lines, 1):
        if closer:
            level -= 1
        if len(indent) != 2 * level:
            expected = "%d" % (2 * max(level, 0))
            return Form(JsonFault("json-form", "line %d" % number, "%d spaces" % len(indent), expected), False)
        if opener:
            level += 1
            if level > deepest:
                deepest = level
    return Form(None, deepest < MAX_DEPTH)


def _outline(text: str) -> str:
    """A text with 0 for every plain value behind a key, and rows of one list that look alike then told once.

    Promise: the outline of a text in the package form is in that form, with as deep a nesting; and where an outline
    is, with keys sorted and no key twice, so is its text, if that is JSON at all. Every number of more than 15
    characters or with an exponent, and every value that stands in a list by itself, is in the outline as it is.

    Why it holds: a line that ends in `": 0` or `": 0,` is a line of the form only when a whole string, the key, ends
    at that quote; and then any other value may stand there. A row told once more begins and ends as deep as the
    first, since indentation tells the depth, and all of its lines are deeper than its braces.
    """
    rows = _VALUE.sub('": 0', text).split(_NEXT_ROW)
    seen = set()
    told = rows[:1]
    for row in rows[1:-1]:
        if row not in seen:
            seen.add(row)
            told.append(row)
            if row.count("\n      ") != row.count("\n") or row[:6] != "      ":
                return text
    told.extend(rows[1:][-1:])
    return _NEXT_ROW.join(told)


def _judge_outline(outline: str) -> bool:
    """Whether an outline shows nesting to be shallow. Raises JsonFault, or _Unsorted, on what is wrong with it."""
    form = read_form(outline)
    if form.fault is not None:
        raise form.fault
    _parse(outline, _decode_sorted, form.shallow)
    return form.shallow


_judge_again = lru_cache(maxsize=64)(_judge_outline)


def _read_plain(text: str) -> Any:
    """The value of a text in the package form. Raises JsonFault, or _Unsorted, on what its outline may not show."""
    outline = _outline(text)
    shallow = _judge_again(outline) if len(outline) <= SHORT else _judge_outline(outline)
    return _parse(text, decode_checked, shallow)


def read_document(data: bytes) -> Tuple[Any, Optional[JsonFault]]:
    """A JSON file of the package: its value, and what is wrong with its form while it can be read at all.

    Raises JsonFault when it is no strict JSON.
    """
    text = decode_text(data)
    try:
        return _read_plain(text), None
    except (JsonFault, _Unsorted):
        pass  # told below with its place
    form = read_form(text)
    try:
        value = _parse(text, _decode_sorted, form.shallow)
    except _Unsorted:
        return _parse(text, _decode), JsonFault("json-form", "", "keys out of order", "keys sorted in every object")
    return value, form.fault
