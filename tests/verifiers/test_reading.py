"""The strict readers: every row of the hostile-input list that is about JSON, sums or event streams."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from checking.reading import JsonFault, depth, parse_body, read_document, read_json
from checking.streams import read_events
from checking.sums import SumsFault, read_sums
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

HASH = "0" * 64


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b'{"a": 1, "a": 1}', "json-duplicate-key"),
        (b'{"a": NaN}', "json-number"),
        (b'{"a": -Infinity}', "json-number"),
        (b'{"a": 1e400}', "json-number"),
        (b'{"a": ' + b"1" * 5000 + b"}", "json-number"),
        (b'{"a": 18446744073709551616}', "json-number"),
        (b'{"a": 9007199254740992}', "json-number"),
        (b"[" * 100000 + b"]" * 100000, "json-depth"),
        (b'{"a":' * 65 + b"1" + b"}" * 65, "json-depth"),
        (b'{"a": "\\ud800"}', "json-encoding"),
        (b'{"a": "\xff"}', "json-encoding"),
        (b'\xef\xbb\xbf{"a": 1}', "json-encoding"),
        ('{"a": 1}'.encode("utf-16"), "json-encoding"),
        (b'{"a": 1}{"b": 2}', "json-syntax"),
        (b'{"a": 1,}', "json-syntax"),
        (b"", "json-syntax"),
        (b"{'a': 1}", "json-syntax"),
        (b'{"a": 01}', "json-syntax"),
        (b'{"a": "tab\there"}', "json-syntax"),
    ],
)
def test_json_that_two_readers_could_read_two_ways_is_refused(data: bytes, code: str) -> None:
    with pytest.raises(JsonFault) as caught:
        read_json(data)
    assert caught.value.code == code


def test_numbers_keep_the_digits_that_were_written() -> None:
    value = read_json(b'{"a": 0.1, "b": 9007199254740991, "c": -0.000000001}')
    assert value == {"a": Decimal("0.1"), "b": 9007199254740991, "c": Decimal("-0.000000001")}


def test_64_levels_are_read() -> None:
    assert read_json(b"[" * 64 + b"]" * 64)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{\n  "a": 1\n}\n', None),
        ('{\n  "a": [],\n  "b": {\n    "c": "x: y, [z"\n  }\n}\n', None),
        ('{\n  "a": 1\n}', "json-form"),
        ('{\n  "a": 1\n}\n\n', "json-form"),
        ('{\n   "a": 1\n}\n', "json-form"),
        ('{"a": 1}\n', "json-form"),
        ('{\n  "b": 1,\n  "a": 2\n}\n', "json-form"),
        ('{\r\n  "a": 1\r\n}\r\n', "json-form"),
        ('{\n  "a": 1 \n}\n', "json-form"),
        ('{\n  "a":1\n}\n', "json-form"),
        ('{\n  "a": [\n    1, 2\n  ]\n}\n', "json-form"),
    ],
)
def test_package_form(text: str, fault: str | None) -> None:
    _, found = read_document(text.encode())
    assert (found.code if found else None) == fault


scalars = st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text()
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=20
)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.text(), values, max_size=5))
def test_what_json_writes_in_our_form_is_read_back(value: dict) -> None:
    text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    try:
        data = text.encode()
    except UnicodeEncodeError:
        return
    assert read_document(data) == (value, None)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(alphabet='[]{}",:\\ an1\n'))
def test_depth_is_never_less_than_what_parses(text: str) -> None:
    def deep(value: object) -> int:
        inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else None
        return 0 if inner is None else 1 + max(map(deep, inner), default=0)

    try:
        value = json.loads(text)
    except ValueError:
        return
    assert depth(text) == deep(value)


EVENTS = b'data: {"a": "\xe2\x82\xac\xf0\x9f\x98\x80"}\n\ndata: one\ndata: two\n\n: comment\nid: 7\nretry: 5\n\nevent: error\ndata: no\n\ndata:tight\n\ndata\n\n'
READ = [("message", '{"a": "€😀"}'), ("message", "one\ntwo"), ("error", "no"), ("message", "tight"), ("message", "")]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_events_are_the_same_for_every_line_end(end: bytes) -> None:
    assert [tuple(one) for one in read_events(EVENTS.replace(b"\n", end))] == READ


def test_a_bom_is_dropped_once_and_an_unfinished_event_is_none() -> None:
    assert read_events(b"\xef\xbb\xbfdata: x\n\ndata: never ended\n") == [("message", "x")]
    assert read_events(b"data: x") == []
    assert read_events(b"event: only\n\n") == []


def test_an_event_name_does_not_outlive_its_event() -> None:
    assert read_events(b"event: error\n\ndata: x\n\n") == [("message", "x")]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "sums-empty"),
        (f"{HASH}  a\r\n".encode(), "sums-form"),
        (b"\xef\xbb\xbf" + f"{HASH}  a\n".encode(), "sums-form"),
        (f"{HASH}  a\n\n".encode(), "sums-form"),
        (f"{HASH.replace('0', 'A')}  a\n".encode(), "sums-form"),
        (f"SHA256 (a) = {HASH}\n".encode(), "sums-form"),
        (f"{HASH} a\n".encode(), "sums-form"),
        (f"{HASH} *a\n".encode(), "sums-form"),
        (f"\\{HASH}  a\n".encode(), "sums-form"),
        (f"{HASH}  a".encode(), "sums-form"),
        (f"{HASH}  a\n{HASH}  a\n".encode(), "sums-duplicate"),
        (f"{HASH}  b\n{HASH}  a\n".encode(), "sums-order"),
        (f"{HASH}  SHA256SUMS\n".encode(), "sums-path"),
        (f"{HASH}  ../x\n".encode(), "sums-path"),
        (f"{HASH}  /x\n".encode(), "sums-path"),
        (f"{HASH}  a//b\n".encode(), "sums-path"),
    ],
)
def test_sums_in_any_other_form_are_refused(data: bytes, code: str) -> None:
    with pytest.raises(SumsFault) as caught:
        read_sums(data)
    assert caught.value.code == code


def test_bodies_may_hold_any_finite_number_but_no_doubled_key() -> None:
    assert parse_body('{"seed": 18446744073709551615}') == {"seed": 18446744073709551615}
    for text in ('{"a": 1, "a": 2}', '{"a": 1e999}', '{"a": NaN}', "{} {}"):
        with pytest.raises(JsonFault):
            parse_body(text)
