"""Tables proved by their text: what is proved reads as in full and has no fault, whatever was altered."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest
from checking import proof
from checking.proof import Unspelled, prover, read_proved, spell
from checking.reading import JsonFault, read_document
from checking.rules import shapes
from checking.shape import (
    COUNT,
    HASH,
    LINE,
    NATURAL,
    NUMBER,
    SECONDS,
    STATUS,
    TEXT,
    Keys,
    ListOf,
    MapOf,
    Maybe,
    OneOf,
    Shape,
    faults,
    matching,
)

SAMPLE = {
    "offer": "r1-a-main-001", "repetition": 1, "arm": "A", "phase": "main", "worker": "worker-1",
    "requestSha256": "a" * 64, "requestBytes": 1, "responseSha256": "b" * 64, "responseBytes": 2, "status": 200,
    "transport": "complete", "startedSeconds": 0.5, "ttftSeconds": 0.125, "reasoningSeconds": None, "totalSeconds": 15,
    "sendLagSeconds": 0, "classification": "NORMAL", "finishReason": "stop", "promptTokens": 1, "completionTokens": 2,
}  # fmt: skip
RECEIPT = {
    "complete": True, "startedSeconds": 0.25, "endedSeconds": 1, "method": "POST", "path": "/v1/chat/completions",
    "reason": None, "requestBytes": 0, "requestHeaders": {"accept": "*/*", "x-request-id": "r1"}, "requestId": "r1",
    "requestSha256": "0" * 64, "responseBytes": 7, "responseHeaders": {}, "responseSha256": "1" * 64, "sequence": 1,
    "status": 404, "traffic": False,
}  # fmt: skip
TABLES: dict[str, tuple[Shape, str, dict[str, Any]]] = {
    "samples": (
        shapes.SAMPLES,
        "samples",
        {"schemaVersion": 1, "comparison": "demo-1", "samples": [SAMPLE, {**SAMPLE, "arm": None, "worker": None}] * 9},
    ),
    "ledger": (
        shapes.LEDGER,
        "receipts",
        {
            "schemaVersion": 1, "arm": "r2-b", "worker": "device-12",
            "receipts": [RECEIPT, {**RECEIPT, "responseHeaders": {"content-type": "text/event-stream"}}] * 9,
        },
    ),
}  # fmt: skip
ODD: list[Any] = [
    None, True, False, 0, 1, 3, 4, -1, -0.0, 0.5, -0.5, 99, 100, 599, 600, 10**9, 2**53, 2**60, 0.1234567891, "", "x", "A",
    "a" * 64, "A" * 64, "worker-1", "worker-0", "worker-1\n", 'quote "', "back\\slash", "é", "\x7f", "\t", "a" * 21,
    "a" * 201, "a" * 2049, [], {}, [1], {"a": 1}, {"accept": "x"}, {"content-type": 1}, {"accept": ""},
]  # fmt: skip


def write(value: Any) -> bytes:
    return (json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()


def holds(text: bytes, shape: Shape) -> bool:
    """Whether a text is proved; and then it must read in full as it does by its proof, without a fault."""
    prove = prover(shape)
    assert prove is not None
    if not text.isascii() or not prove(text.decode()):
        return False
    value, fault = read_document(text)
    assert fault is None
    assert faults(value, shape) == []
    assert read_proved(text, shape) == (value if len(text) >= proof.WORTH else None)
    return True


@pytest.mark.parametrize("name", TABLES)
def test_what_a_capture_writes_is_proved(name: str) -> None:
    shape, rows, document = TABLES[name]
    assert holds(write(document), shape)
    assert len(write(document)) >= proof.WORTH
    assert holds(write({**document, rows: document[rows][:1]}), shape)
    assert not holds(write({**document, rows: []}), shape)
    assert read_proved(write({**document, rows: document[rows][:1]}), shape) is None  # not worth it


@pytest.mark.parametrize("name", TABLES)
def test_no_odd_value_is_proved_that_does_not_fit(name: str) -> None:
    shape, rows, document = TABLES[name]
    proved = 0
    for where in (lambda value: value, lambda value: value[rows][1]):
        for key in [*where(document), "more"]:
            for odd in [*ODD, "gone"]:
                changed = copy.deepcopy({**document, rows: document[rows][:3]})
                where(changed)[key] = odd
                if odd == "gone":
                    del where(changed)[key]
                proved += holds(write(changed), shape)
    assert proved > 50


@pytest.mark.parametrize("name", TABLES)
def test_no_altered_text_is_proved_that_has_a_fault(name: str) -> None:
    shape, rows, document = TABLES[name]
    chance, text = random.Random(name), write({**document, rows: document[rows][:3]})
    lines = text.splitlines(keepends=True)
    marks = b'{}[],:"\\\n 019ex.-+\x00\x7f\xff'
    proved = 0
    for _ in range(4000):
        way, at = chance.randrange(5), chance.randrange(len(text))
        if way == 0:
            changed = text[:at] + bytes([chance.choice(marks)]) + text[at + 1 :]
        elif way == 1:
            changed = text[:at] + bytes([chance.choice(marks)]) + text[at:]
        elif way == 2:
            changed = text[:at] + text[at + chance.randint(1, 3) :]
        else:
            told = list(lines)
            line = told[chance.randrange(len(told))] if way == 3 else told.pop(chance.randrange(len(told)))
            told.insert(chance.randrange(len(told)), line)
            changed = b"".join(told)
        proved += holds(changed, shape) and changed != text
    assert proved > 20


def test_a_key_twice_a_comma_too_many_and_keys_out_of_order_are_not_proved() -> None:
    shape, _, document = TABLES["ledger"]
    text = write(document).decode()
    for old, new in (
        ('"accept": "*/*",\n', '"accept": "*/*",\n        "accept": "*/*",\n'),
        ('"x-request-id": "r1"\n', '"x-request-id": "r1",\n'),
        ('"accept": "*/*",\n        "x-request-id": "r1"', '"x-request-id": "r1",\n        "accept": "*/*"'),
        ('      "traffic": false\n    }\n', '      "traffic": false\n    },\n'),
        ('"responseHeaders": {}', '"responseHeaders": {\n      }'),
        ('"responseHeaders": {}', '"responseHeaders": {\n\n      }'),
        ('"sequence": 1', '"sequence": 01'),
        ('"startedSeconds": 0.25', '"startedSeconds": .25'),
        ('"startedSeconds": 0.25', '"startedSeconds": 0.'),
        ('"requestBytes": 0', '"requestBytes": -0'),
        ('"arm": "r2-b"', '"arm": "r2-c"'),
    ):
        assert old in text
        assert not holds(text.replace(old, new, 1).encode(), shape), new
    for more in (text + "\n", text[:-1], "\ufeff" + text, "", text + text):
        assert not holds(more.encode(), shape)


def test_rows_are_counted() -> None:
    for least, most, right in ((0, 9, True), (3, 3, True), (4, 9, False), (0, 2, False)):
        shape = Keys(rows=ListOf(Keys(a=COUNT), least=least, most=most))
        assert holds(write({"rows": [{"a": 1}] * 3}), shape) is right


@pytest.mark.parametrize(
    "shape",
    [
        TEXT, ListOf(Keys(a=COUNT)), Keys(a=COUNT), Keys(a=ListOf(Keys(b=COUNT)), c=ListOf(Keys(b=COUNT))),
        Keys(a=ListOf(COUNT, unique=True)), Keys(a=ListOf(Keys(b=NUMBER))), Keys(a=ListOf(Keys(b=MapOf(TEXT, TEXT)))),
        Keys(a=ListOf(Keys(b=matching("[^/]+", "no slash")))), Keys(a=ListOf(Keys(b=matching(".+", "a line")))),
        Keys(a=ListOf(Keys(b=COUNT)), c=NUMBER),
    ],
)  # fmt: skip
def test_what_is_no_table_or_has_no_pattern_is_read_in_full(shape: Shape) -> None:
    assert prover(shape) is None
    assert read_proved(b" " * 10000, shape) is None


@pytest.mark.parametrize(
    "shape", [TEXT, LINE, COUNT, NATURAL, SECONDS, STATUS, HASH, Maybe(COUNT), OneOf("a.b", 1, None)]
)
def test_every_text_that_a_pattern_accepts_is_of_a_value_that_fits(shape: Shape) -> None:
    table = Keys(rows=ListOf(Keys(a=shape)))
    proved = [odd for odd in [*ODD, "a.b", "axb", 1.0, 1e-7] if holds(write({"rows": [{"a": odd}]}), table)]
    assert proved
    with pytest.raises(Unspelled):
        spell(NUMBER, "")


def test_what_cannot_be_read_says_so_as_before() -> None:
    shape, _, document = TABLES["samples"]
    with pytest.raises(JsonFault):
        read_document(write(document)[:-5])
    assert read_proved(write(document)[:-5], shape) is None
