"""Event streams and their folding at the edges: what a folded stream says is what the whole one says."""

from __future__ import annotations

import json
import random

import pytest
from checking.reading import JsonFault
from checking.streams import fold, read_events, unify


def event(text: str, key: str = "content", more: str = "", ascii_: bool = False) -> bytes:
    said = json.dumps(text, ensure_ascii=ascii_)
    return f'data: {{"choices": [{{"delta": {{"{key}": {said}}}}}]{more}}}\n\n'.encode()


def words(data: bytes) -> list[str]:
    return [one.data for one in read_events(data)]


HEAD = b": hello\n\n"


@pytest.mark.parametrize("key", ["content", "reasoning_content", "reasoning", "text"])
@pytest.mark.parametrize(
    "texts",
    [
        ["one"],
        ["one", "two"],
        ["a", "b", "c"],
        [" ", "~", "\x7f"],
        ["\u00e9", "\u20ac", "\U0001f600"],
        ['q"', "b\\", "n\n"],
    ],
)
def test_a_run_of_events_that_differ_in_text_becomes_one(key: str, texts: list[str]) -> None:
    folded = fold(HEAD + b"".join(event(text, key) for text in texts) + b"data: [DONE]\n\n")
    assert folded == HEAD + event("x", key) + b"data: [DONE]\n\n"


@pytest.mark.parametrize(
    "events",
    [
        [event("a"), event("b", "other"), event("c")],
        [event(""), event("a"), event("")],
        [event("a", more=', "id": 1'), event("b", more=', "id": 2')],
        [event("a"), b"data: {}\n\n", event("b")],
        [event("a"), b"data: {\n\n", event("b")],
        [event("a"), b"event: error\ndata: {}\n\n", event("b")],
        [event("a"), event("b")[:-2], b"\n\n"],
        [event("a"), b": comment\n", event("b")],
    ],
)
def test_what_is_not_the_same_but_for_its_text_stays(events: list[bytes]) -> None:
    data = HEAD + b"".join(events)
    folded = words(fold(data))
    whole = words(data)
    # No event is lost that says something else than the one before it but for its words.
    blank = [json.dumps(blanked(one)) for one in whole]
    kept = [one for number, one in enumerate(blank) if number == 0 or one != blank[number - 1]]
    assert [one for number, one in enumerate(map(json.dumps, map(blanked, folded))) if number == 0 or one != json.dumps(blanked(folded[number - 1]))] == kept  # fmt: skip


def blanked(data: str) -> object:
    try:
        value = json.loads(data)
        delta = value["choices"][0]["delta"]
    except (ValueError, KeyError, TypeError):
        return data
    for key in ("content", "reasoning_content", "reasoning", "text"):
        if delta.get(key):
            delta[key] = "x"
    return value


@pytest.mark.parametrize(
    "broken",
    [
        b'data: {"content": "a\\x"}\n\n',
        b'data: {"content": "a\x01"}\n\n',
        b'data: {"content": "a\xff"}\n\n',
        b'data: {"content": "\xc0\xaf"}\n\n',
        b'data: {"content": "\xed\xa0\x80"}\n\n',
        b'data: {"content": "\xf4\x90\x80\x80"}\n\n',
        b'data: {"content": "\xe2\x82"}\n\n',
        b'data: {"content": "\\u12g4"}\n\n',
        b'data: {"content": ""}\n\n',
        b'data: {"content":  "a"}\n\n',
    ],
)
def test_a_string_that_is_not_well_formed_or_empty_is_not_folded(broken: bytes) -> None:
    assert fold(HEAD + broken) == HEAD + broken
    assert fold(HEAD + broken + broken) == HEAD + broken + broken


def test_the_first_event_and_the_last_one_without_its_end_are_left_alone() -> None:
    first = event("a")
    assert fold(first) == first
    assert fold(HEAD + event("a") + event("b")[:-1]) == HEAD + event("x") + event("b")[:-1]


def test_a_key_inside_a_string_is_no_key() -> None:
    inner = b'data: {"id": "\\"content\\": \\"a", "choices": []}\n\n'
    assert fold(HEAD + inner) == HEAD + inner


@pytest.mark.parametrize("length", [1, 2, 999, 1000, 1001, 1002, 2500])
def test_runs_of_any_length_keep_their_text(length: int) -> None:
    data = HEAD + b"".join(event(f"w{number}") for number in range(length)) + event("end", more=', "z": 1')
    folded = words(fold(data))
    assert folded[-1] == event("x", more=', "z": 1').decode()[6:-2]
    assert set(folded[:-1]) == {event("x").decode()[6:-2]}
    assert 1 <= len(folded) - 1 <= length / 1000 + 1


def test_heads_and_tails_may_have_500_characters() -> None:
    for size, folds in ((400, True), (600, False)):
        long = ', "pad": "' + "p" * size + '"'
        data = HEAD + event("a", more=long) + event("b", more=long)
        assert (len(fold(data)) < len(data) - 100) is folds


@pytest.mark.parametrize("seed", range(20))
def test_streams_of_chance_say_the_same_folded(seed: int) -> None:
    dice = random.Random(seed)
    parts = [event("a"), event("b"), event("", "content"), event("c", "reasoning"), event("d", more=', "n": 1'), b"data: [DONE]\n\n",
             b"data: {\n\n", b": c\n", b"\n", b"event: x\n", event("e", ascii_=True), b"data: 1\ndata: 2\n\n"]  # fmt: skip
    data = b"".join(dice.choice(parts) for _ in range(40)).replace(b"\n", dice.choice([b"\n", b"\r\n", b"\r"]))

    def seen(stream: bytes) -> list[tuple[str, str]]:
        told = [(one.name, json.dumps(blanked(one.data))) for one in read_events(stream)]
        return [one for number, one in enumerate(told) if number == 0 or one != told[number - 1]]

    assert seen(fold(data)) == seen(data)


def test_every_line_end_is_one() -> None:
    assert unify(b"a\r\nb\rc\nd\r\r\n") == b"a\nb\nc\nd\n\n"
    assert unify(b"a\nb") == b"a\nb"


def test_events_by_the_whatwg_rules() -> None:
    data = (
        b"\xef\xbb\xbfdata:a\ndata:  b\n\nevent: e\r\ndata\r\n\r\nevent: f\n\n: c\nid: 1\ndata: d\rdata:e\r\rdata: lost"
    )
    assert [tuple(one) for one in read_events(data)] == [("message", "a\n b"), ("e", ""), ("message", "d\ne")]
    assert read_events(b"") == read_events(b"\n\n") == read_events(b"data: a\n") == []
    assert [one.data for one in read_events(b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\ndata: b\n\n")] == ["b"]
    with pytest.raises(JsonFault) as caught:
        read_events(b"data: a\n\ndata: \xff\n\n")
    assert (caught.value.code, caught.value.place) == ("json-encoding", "byte 15")
