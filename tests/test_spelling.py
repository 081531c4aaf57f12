"""A text that is proved by its spelling is strict JSON and fits its schema; the proof is held to both."""

import functools
import json
import random

import jsonschema
import orjson
import pytest
import referencing

from evidence import shipped, spelling
from evidence.archive import strictjson
from evidence.archive.grammar import Refusal
from evidence.examining import Examined

SCHEMAS = {
    name.partition("/")[2]: json.loads(data) for name, data in shipped.files().items() if name.startswith("schemas/")
}
REGISTRY = referencing.Registry().with_resources(
    (name, referencing.Resource.from_contents(schema)) for name, schema in SCHEMAS.items()
)
SAMPLE = {
    "offer": "r1-a-main-001", "repetition": 1, "arm": "A", "phase": "main", "worker": "worker-1",
    "requestSha256": "a" * 64, "requestBytes": 1, "responseSha256": "b" * 64, "responseBytes": 2, "status": 200,
    "transport": "complete", "startedSeconds": 0.5, "ttftSeconds": 1e-7, "reasoningSeconds": None, "totalSeconds": 1.5,
    "sendLagSeconds": 0.0, "classification": "NORMAL", "finishReason": "stop", "promptTokens": 1, "completionTokens": 2,
}  # fmt: skip
RECEIPT = {
    "complete": True, "startedSeconds": 0.25, "endedSeconds": 1, "method": "POST", "path": "/v1/chat/completions",
    "reason": None, "requestBytes": 0, "requestHeaders": {"accept": "*/*", "x-request-id": "r1"}, "requestId": "r1",
    "requestSha256": "0" * 64, "responseBytes": 7, "responseHeaders": {}, "responseSha256": "1" * 64, "sequence": 1,
    "status": 404, "traffic": False,
}  # fmt: skip
DOCUMENTS = {
    "samples": {"schemaVersion": 1, "comparison": "demo", "samples": [SAMPLE, {**SAMPLE, "arm": None}]},
    "ledger": {
        "schemaVersion": 1, "arm": "r2-b", "worker": "device-12",
        "receipts": [RECEIPT, {**RECEIPT, "responseHeaders": {"content-type": "text/event-stream"}}],
    },
}  # fmt: skip
ODD = [
    None, True, False, 0, 1, 3, 4, -1, 0.0, 1.0, 0.5, -0.5, 99, 100, 599, 600, 2**53 - 1, 2**53, 2**60, 1e9, 1e9 + 1, 1e300,
    1e-9, "", "x", "A", "a" * 64, "A" * 64, "worker-1\n", "worker-1", "worker-0", 'quote "', "back\\slash", "é", "\x7f",
    "\t", "a" * 21, "a" * 201, "a" * 2049, [], {}, [1], {"a": 1}, {"accept": "x"}, {"content-type": 1},
    {"content-type": "x", "retry-after": "1"}, {"accept": "", "content-length": "1", "content-type": "x"},
]  # fmt: skip


@functools.cache
def prove(name):
    return spelling.speller(SCHEMAS, f"{name}.schema.json")


def write(value):
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)


def fits(name, text):
    """What the slow way says: strict JSON that jsonschema accepts."""
    try:
        value = strictjson.parse(text, "x")
    except Refusal:
        return False
    return jsonschema.Draft202012Validator(SCHEMAS[f"{name}.schema.json"], registry=REGISTRY).is_valid(value)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_what_a_capture_writes_is_proved(name):
    assert prove(name)(write(DOCUMENTS[name]))
    assert fits(name, write(DOCUMENTS[name]))


def test_which_schemas_have_a_proof():
    found = {name for name in SCHEMAS if spelling.speller(SCHEMAS, name) is not None}
    assert found >= {"samples.schema.json", "ledger.schema.json", "offers.schema.json"}
    assert not found & {"manifest.schema.json", "common.schema.json", "comparison.schema.json", "no.schema.json"}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_no_odd_value_is_proved_that_does_not_fit(name):
    document, rows = DOCUMENTS[name], "samples" if name == "samples" else "receipts"
    tried = 0
    for where in (lambda changed: changed, lambda changed: changed[rows][1]):
        for key in [*where(document), "more"]:
            for odd in [*ODD, "gone"]:
                changed = json.loads(json.dumps(document))
                where(changed)[key] = odd
                if odd == "gone":
                    del where(changed)[key]
                text = write(changed)
                if prove(name)(text):
                    assert fits(name, text), (key, odd)
                    tried += 1
    assert tried > 50


@pytest.mark.parametrize("name", DOCUMENTS)
def test_no_altered_text_is_proved_that_does_not_fit(name):
    chance, text = random.Random(name), write(DOCUMENTS[name])
    lines = text.splitlines(keepends=True)
    marks = b'{}[],:"\\\n 019ex.-+\x00\x7f\xff'
    proved = 0
    for _ in range(6000):
        way = chance.randrange(5)
        at = chance.randrange(len(text))
        if way == 0:
            changed = text[:at] + bytes([chance.choice(marks)]) + text[at + 1 :]
        elif way == 1:
            changed = text[:at] + bytes([chance.choice(marks)]) + text[at:]
        elif way == 2:
            changed = text[:at] + text[at + chance.randint(1, 3) :]
        else:
            rows = list(lines)
            row = rows[chance.randrange(len(rows))] if way == 3 else rows.pop(chance.randrange(len(rows)))
            rows.insert(chance.randrange(len(rows)), row)
            changed = b"".join(rows)
        if prove(name)(changed):
            assert fits(name, changed), changed
            proved += changed != text
    assert proved > 20


def test_a_key_twice_a_comma_too_many_and_keys_out_of_order_are_not_proved():
    text = write(DOCUMENTS["ledger"]).decode()
    proof = prove("ledger")
    for old, new in (
        ('"accept": "*/*",\n', '"accept": "*/*",\n        "accept": "*/*",\n'),
        ('"x-request-id": "r1"\n', '"x-request-id": "r1",\n'),
        ('"accept": "*/*",\n        "x-request-id": "r1"', '"x-request-id": "r1",\n        "accept": "*/*"'),
        ('"accept": "*/*",\n        "x-request-id": "r1"\n', ""),
        ('      "traffic": false\n    }\n', '      "traffic": false\n    },\n'),
        ('"responseHeaders": {}', '"responseHeaders": {\n      }'),
    ):
        assert old in text
        assert not proof(text.replace(old, new, 1).encode())
    assert not proof(text.encode() + b"\n")
    assert not proof(b"\xef\xbb\xbf" + text.encode())
    assert not proof(b"")


@pytest.mark.parametrize(
    "pattern",
    [
        "^a|b$",
        "a$",
        "^a",
        "^[^/]+$",
        "^.$",
        "^(?i)a$",
        "^(?=a)a$",
        r"^\d$",
        "^[A-z]$",
        "^[/-z]$",
        '^"$',
        "^é$",
        r"^\\$",
        "^[.-z]$",
    ],
)
def test_a_pattern_that_may_mean_more_is_left_alone(pattern):
    rows = {"items": {"type": "string", "pattern": pattern}, "type": "array"}
    schema = {"type": "object", "properties": {"x": rows}, "required": ["x"], "additionalProperties": False}
    assert spelling.speller({"x": schema}, "x") is None
    fine = {**schema, "properties": {"x": {**rows, "items": {"type": "string", "pattern": r"^(a|b[0-9.-]{2})\.c?$"}}}}
    proof = spelling.speller({"x": fine}, "x")
    assert proof(write({"x": ["a.", "b0-.c"]}))
    assert not proof(write({"x": ["a.", "ab"]}))


def test_a_long_table_is_verified_and_an_altered_one_has_its_finding():
    rows = [{**SAMPLE, "offer": f"r1-a-main-{n:03}"} for n in range(100)]
    name = "results/settings/demo/samples.json"
    for changed, codes in ((rows, []), ([*rows, {**SAMPLE, "repetition": 9}], ["schema-any-of"])):
        examined = Examined()
        examined.take(name, write({**DOCUMENTS["samples"], "samples": changed}))
        assert [finding.code for finding in examined.stage.findings] == codes
        assert examined.stage.verified == 1 - len(codes)
    examined = Examined()
    text = write({**DOCUMENTS["samples"], "samples": rows})
    examined.take(name, text.replace(b'      "worker"', b'      "arm": "A",\n      "worker"', 1))
    assert [finding.code for finding in examined.stage.findings] == ["json-duplicate-key"]
