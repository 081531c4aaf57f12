"""Rules and readers at their very edge, where a mutation of a whole package is too coarse to tell `<` from `<=`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from checking.damage import Bench
from checking.reading import JsonFault, parse_body, read_document, read_json, shown
from checking.rules.answers import answer, read_request
from checking.rules.lifecycle_shape import Shape
from checking.sums import read_sums

from tests.verifiers.edges import told

CHAT = read_request(b'{"messages": [], "stream": true}')
WORD = b'data: {"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'


@pytest.mark.parametrize(
    ("status", "expected"), [(199, "HTTP_ERROR"), (200, "NORMAL"), (299, "NORMAL"), (300, "HTTP_ERROR")]
)
def test_a_status_counts_as_an_answer_from_200_to_299(status: int, expected: str) -> None:
    assert answer("complete", status, CHAT, WORD, True).classification == expected


@pytest.mark.parametrize(("count", "read"), [("0", 0), ("1", 1), ("-1", None), ("true", None), ("1.0", None)])
def test_a_token_count_is_a_whole_number_from_nought(count: str, read: int | None) -> None:
    body = WORD.replace(
        b'"choices"', b'"usage": {"prompt_tokens": 1, "completion_tokens": %s}, "choices"' % count.encode()
    )
    assert answer("complete", 200, CHAT, body, True).completion_tokens == read


def test_only_true_asks_for_a_stream_and_the_keys_say_the_kind() -> None:
    kinds = [(b'{"prompt": ""}', "completions"), (b'{"input": ""}', "embeddings"), (b"{}", "chat"), (b"[]", "chat")]
    for body, kind in kinds:
        assert read_request(body)[:2] == (kind, False)
    assert read_request(b'{"messages": [], "stream": 1}').streaming is False


@pytest.mark.parametrize("sign", ["", "-"])
def test_integers_are_read_to_the_last_exact_one(sign: str) -> None:
    assert read_json(f"{sign}9007199254740991".encode()) == int(f"{sign}9007199254740991")
    with pytest.raises(JsonFault, match="9007199254740992"):
        read_json(f"{sign}9007199254740992".encode())


def test_a_number_is_read_up_to_40_characters_and_to_the_greatest_double() -> None:
    assert str(read_json(b"0." + b"1" * 38)) == "0." + "1" * 38
    with pytest.raises(JsonFault, match="41 characters"):
        read_json(b"0." + b"1" * 39)
    assert read_json(b"1.7976931348623157e308") > 0
    assert parse_body("-1.7976931348623157e308") < 0


@pytest.mark.parametrize("text", ["%s", "[%s]", '{"a": %s, "b": "text"}', " %s ", "-%s"])
@pytest.mark.parametrize("digits", [299, 300, 301, 5000])
def test_a_body_may_hold_an_integer_of_299_digits_and_no_longer_one(text: str, digits: int) -> None:
    number = "1" * digits
    if digits < 300:
        assert repr(parse_body(text % number)).count(number) == 1
    else:
        with pytest.raises(JsonFault) as caught:
            parse_body(text % number)
        assert caught.value.code == "json-number"
    # In a string they are no number.
    assert parse_body(f'["{number}"]') == [number]


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_64_levels_are_read_and_65_are_not(opening: str) -> None:
    closing = "]" if opening == "[" else "}"
    inner = "1" if opening != "[" else ""
    for read in (lambda text: read_json(text.encode()), parse_body):
        assert read(opening * 64 + inner + closing * 64) is not None
        with pytest.raises(JsonFault, match="deeper than 64"):
            read(opening * 65 + inner + closing * 65)


def test_a_document_of_64_levels_has_its_form_judged_and_one_more_is_refused() -> None:
    def nested(depth: int) -> bytes:
        value: list = []
        for _ in range(depth - 1):
            value = [value]
        return (json.dumps(value, indent=2) + "\n").encode()

    assert read_document(nested(64))[1] is None
    with pytest.raises(JsonFault, match="deeper than 64"):
        read_document(nested(65))


def listed(*keys: str, rows: int = 2) -> bytes:
    """A document with lists of rows that look alike."""
    row = '    {\n      "x": 1,\n      "y": "a"\n    }'
    lists = [f'  "{key}": [\n' + ",\n".join([row] * rows) + "\n  ]" for key in keys]
    return ("{\n" + ",\n".join(lists) + "\n}\n").encode()


@pytest.mark.parametrize("rows", [1, 2, 3, 5])
def test_a_key_twice_or_out_of_order_is_seen_however_alike_the_rows_between_are(rows: int) -> None:
    value, fault = read_document(listed("a", "b", "c", rows=rows))
    assert (fault, list(value), len(value["c"])) == (None, ["a", "b", "c"], rows)
    for keys in (("a", "a"), ("a", "b", "b"), ("a", "a", "a"), ("a", "b", "b", "b"), ("a", "b", "a", "b")):
        with pytest.raises(JsonFault) as caught:
            read_document(listed(*keys, rows=rows))
        assert caught.value.code == "json-duplicate-key"
    for keys in (("b", "a"), ("a", "c", "b"), ("c", "b", "a")):
        _, fault = read_document(listed(*keys, rows=rows))
        assert fault is not None
        assert (fault.code, fault.found) == ("json-form", "keys out of order")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'      "x": 1,\n', b'     "x": 1,\n'),
        (b'      "x": 1,\n', b'        "x": 1,\n'),
        (b'      "y": "a"\n', b'    "y": "a"\n'),
        (b'      "x": 1,\n', b'      "x":  1,\n'),
        (b'      "x": 1,\n', b'      "x": 1, \n'),
        (b'      "x": 1,\n', b'      "x": [1],\n'),
        (b"    },\n", b"    } ,\n"),
    ],
)
@pytest.mark.parametrize("place", [0, 1, 4])
def test_a_row_out_of_form_is_seen_wherever_it_stands_among_others(old: bytes, new: bytes, place: int) -> None:
    data = listed("a", "b", rows=6)
    parts = data.split(old)
    for count in (1, 3):
        changed = (
            old.join(parts[: place + 1])
            + new
            + new.join(parts[place + 1 : place + count])
            + (new if count > 1 else b"")
        )
        changed += old.join(parts[place + count :]) if count > 1 else old.join(parts[place + 1 :])
        _, fault = read_document(changed)
        assert fault is not None, changed
        assert fault.code == "json-form"


def test_a_line_of_output_is_cut_at_its_limit_and_stays_printable() -> None:
    assert shown("x" * 80) == "x" * 80
    assert shown("x" * 81) == "x" * 77 + "..."
    assert shown(" ~\x7f\x1fé") == " ~\\x7f\\x1f\\xe9"
    assert shown({"a": None}) == '{"a": null}'


def test_names_of_every_letter_are_read_from_sums_both_ways() -> None:
    one, two = "0" * 64, "f" * 64
    assert read_sums(f"{one}  a\n{two}  b/c\n".encode()) == {"a": one, "b/c": two}
    assert read_sums(f"{one}  a b\n{two}  b\n".encode()) == {"a b": one, "b": two}


def test_a_lifecycle_record_whose_experiment_is_no_object_gets_faults_and_no_crash() -> None:
    shape = Shape(json.loads(Path("schemas/lifecycle-record.schema.json").read_text()))
    record = json.loads(Path("tests/vectors/lifecycle/published-record.json").read_text())
    assert not list(shape.faults(record))
    for wrong in ("text", 7, None, [], {}):
        assert list(shape.faults({**record, "experiments": [wrong]})), wrong
    # The faults told are those of the kind that the experiment is meant to be.
    damaged = {**record["experiments"][1]}
    damaged.pop("limitations")
    (fault,) = shape.faults({**record, "experiments": [damaged]})
    assert fault.place == "/experiments/0/limitations"


def weighted(bench: Bench) -> tuple[str, list[str]]:
    """A profile with an index and checksums, and the names of its shards."""
    for one in bench.load("model-identities.json")["profiles"]:
        if bench.has(f"weights/{one['id']}.sha256") and one["sourceIndexSha256"] is not None:
            index = bench.load(f"weights/{one['id']}.source-index")
            return one["id"], sorted(set(index["weight_map"].values()))
    raise AssertionError("no such profile in the forged package")


def test_every_shard_of_an_index_has_a_line_in_the_checksums() -> None:
    def drop_line(bench: Bench) -> None:
        profile, shards = weighted(bench)
        name = f"weights/{profile}.sha256"
        kept = [
            line
            for line in bench.read(name).splitlines(keepends=True)
            if not line.endswith(f"  {shards[-1]}\n".encode())
        ]
        bench.put(name, b"".join(kept))

    (line,) = told("verify-converged", "model-weights", drop_line)
    assert "found no line for model-" in line
    assert "expected one for every shard" in line


def test_every_shard_of_an_index_has_a_hash_in_the_identities() -> None:
    def drop_hash(bench: Bench) -> None:
        profile, shards = weighted(bench)
        with bench.edit("model-identities.json") as value:
            for one in value["profiles"]:
                if one["id"] == profile:
                    one["artifacts"] = [row for row in one["artifacts"] if row["path"] != shards[-1]]

    lines = told("verify-converged", "model-weights", drop_hash)
    assert any("found no hash of model-" in line and "every shard of its index" in line for line in lines), lines
