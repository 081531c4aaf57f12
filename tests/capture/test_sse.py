"""The client's reader of server-sent events, on every cut of a corpus."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.capture.sse import Event, EventReader

CORPUS = Path(__file__).parent.parent / "vectors" / "sse"
NAMES = sorted(path.stem for path in CORPUS.glob("*.sse"))
ENDS = {"lf": b"\n", "crlf": b"\r\n", "cr": b"\r"}


def read(*pieces: bytes) -> list[Event]:
    reader = EventReader()
    return [event for at, piece in enumerate(pieces) for event in reader.feed(piece, at)]


def said(events: list[Event]) -> list[list[str]]:
    return [[event.type, event.data] for event in events]


def variants(name: str) -> dict[str, bytes]:
    stream = (CORPUS / f"{name}.sse").read_bytes()
    found = {}
    for space in ("space", "no-space"):
        if space == "no-space":
            closer = re.sub(rb"(?m)^(data|event|id|retry): (?! )", rb"\1:", stream)
            if closer == stream or name == "spaces":
                continue
            stream = closer
        for end, mark in ENDS.items():
            found[f"{end}-{space}"] = stream.replace(b"\n", mark)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_every_stream_of_the_corpus_gives_its_events(name: str) -> None:
    expected = json.loads((CORPUS / f"{name}.json").read_text())
    for variant, stream in variants(name).items():
        assert said(read(stream)) == expected, variant


def test_every_cut_gives_the_same_events_stamped_by_the_read_that_completed_them() -> None:
    # vllm#38717, inference-perf#781: characters, CRLF and fields cut anywhere, in two and in three.
    splits = 0
    for name in NAMES:
        expected = json.loads((CORPUS / f"{name}.json").read_text())
        for variant, stream in variants(name).items():
            bytewise = read(*(stream[n : n + 1] for n in range(len(stream))))
            assert said(bytewise) == expected, (name, variant)
            completed = [event.at for event in bytewise]
            for cut in range(len(stream) + 1):
                events = read(stream[:cut], stream[cut:])
                assert said(events) == expected, (name, variant, cut)
                assert [event.at for event in events] == [int(at >= cut) for at in completed], (name, variant, cut)
                splits += 1
            if len(stream) > 90:
                continue
            for first in range(len(stream) + 1):
                for second in range(first, len(stream) + 1):
                    events = read(stream[:first], stream[first:second], stream[second:])
                    assert said(events) == expected, (name, variant, first, second)
                    splits += 1
    assert splits >= 50_000


def test_a_cr_ends_the_event_before_the_lf_of_the_next_read() -> None:
    reader = EventReader()
    assert said(reader.feed(b"data: x\r\n\r", 1)) == [["message", "x"]]
    assert reader.feed(b"\n", 2) == []
    assert said(reader.feed(b"data: y\n\n", 3)) == [["message", "y"]]


def test_three_events_of_one_read_have_its_stamp_each() -> None:
    # aiperf#368
    assert [event.at for event in EventReader().feed(b"data: 1\n\ndata: 2\n\ndata: 3\n\n", 5)] == [5, 5, 5]


def test_bytes_that_are_no_utf8_become_replacement_characters() -> None:
    assert said(read(b"data: a\xff\n\n", b"data: \xe2\x82\n\n")) == [["message", "a\ufffd"], ["message", "\ufffd"]]


def test_a_long_line_in_small_reads_costs_linear_time() -> None:
    reader = EventReader()
    for _ in range(200_000):
        reader.feed(b"xxxxxxxx")
    assert reader.feed(b"\n\ndata: y\n\n") == [Event("message", "y", 0)]


lines = st.lists(
    st.one_of(
        st.sampled_from([b"data: x", b"data:", b"data", b":c", b"event: e", b"", b"\xef\xbb\xbfdata: x", b"id: 1"]),
        st.binary(max_size=8),
    ),
    max_size=12,
)


@given(lines, st.lists(st.sampled_from([b"\n", b"\r\n", b"\r"]), min_size=12, max_size=12), st.data())
def test_any_bytes_give_the_same_events_however_cut(parts: list[bytes], ends: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(part + end for part, end in zip(parts, ends, strict=False))
    whole = said(read(stream))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=4)))
    edges = [0, *cuts, len(stream)]
    assert said(read(*(stream[a:b] for a, b in itertools.pairwise(edges)))) == whole
    assert said(read(*(stream[n : n + 1] for n in range(len(stream))))) == whole
