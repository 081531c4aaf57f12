"""What makes the verifiers quick changes no verdict: each short way is held against the long one."""

from __future__ import annotations

import json
import sys
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.verifiers.kill_matrix import ground, kills_of, table, verifier  # sets the path to the verifiers

from checking import reading, shape  # isort: skip
from checking.check import judge  # isort: skip
from checking.damage import try_mutation, Bench, written_json  # isort: skip
from checking.check import Scope, read_documents  # isort: skip
from checking.listing import FILE, Listing, one_of_hashes  # isort: skip
from checking.package import Folder, Memory, Recall, View  # isort: skip
from checking.reading import JsonFault, read_document  # isort: skip
from checking.rules import answers, checksums, pairing, protocol, receipts, samples, shapes  # isort: skip
from checking.rules.answers import answer, read_request  # isort: skip
from checking.streams import fold, read_events, unify  # isort: skip
from checking.rules.comparison import Comparison  # isort: skip
from checking.rules.settings import documents as documents_of  # isort: skip
from checking.sums import SUMS, Sums, SumsFault, Unplain, compare, looks_plain, read_sums, rows, told  # isort: skip

REQUESTS = [
    read_request(body)
    for body in (
        b'{"messages":[],"stream":true}',
        b'{"prompt":"","stream":true}',
    )
]

# Streams ------------------------------------------------------------------------------------------------------------

HEADS = [
    '{"id":"chatcmpl-1","created":17,"model":"m","choices":[{"index":0,"delta":{"content":"%s"},"finish_reason":null}]}',
    '{"id":"chatcmpl-1","created":17,"model":"m","choices":[{"index":0,"delta":{"reasoning_content":"%s","content":null}}]}',
    '{"id": "chatcmpl-1", "created": 18, "model": "m", "choices": [{"delta": {"reasoning": "%s"}}]}',
    '{"id":"cmpl-1","model":"m","choices":[{"text":"%s","finish_reason":null}]}',
    '{"model":"m","choices":[{"delta":{"tool_calls":[{"id":"t","content":"%s"}]}}]}',
    '{"content":"%s","content":"x"}',
    '{"error":{"text":"%s"}}',
    '["content":"%s"]',
    '{"id":"%s","model":"%s"}',
    '{"x":"\\"content\\":\\"","content":"%s"}',
]
PIECES = ["a", " b", "", "ß", "河", "🌊", "\\n", '\\"', "\\\\", "\\u00e9", "\\ud83d", "\\x", '"', "\\", "\x01", "\x7f", "1" * 310, "x\n\ndata: y"]  # fmt: skip
WHOLE = [
    'data: {"id":"chatcmpl-1","model":"m","choices":[{"delta":{"role":"assistant","content":""}}]}\n\n',
    'data: {"choices":[{"index":0,"finish_reason":"stop","delta":{}}]}\n\n',
    'data: {"id":"other","choices":[{"finish_reason":"length","delta":{}}]}\n\n',
    'data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":128}}\n\n',
    'data: {"choices":[],"usage":{"prompt_tokens":12345678901234567890}}\n\n',
    "data: [DONE]\n\n",
    ": comment\n\n",
    "event: error\ndata: {}\n\n",
    "event: other\n",
    "data: {",
    'data: {"created": 0123, "id":"an id that no engine gives"}\n\n',
]


def _event(head: str, piece: str) -> str:
    return "data: " + head.replace("%s", piece) + "\n\n"


events = st.one_of(
    st.sampled_from(WHOLE),
    st.builds(_event, st.sampled_from(HEADS), st.sampled_from(PIECES)),
    st.builds(
        lambda head, pieces: "".join(_event(head, piece) for piece in pieces),
        st.sampled_from(HEADS),
        st.lists(st.sampled_from(PIECES[:8]), min_size=2, max_size=12),
    ),
)
ends = st.sampled_from(["\n", "\r\n", "\r"])


@given(st.lists(events, max_size=8), ends, st.sampled_from(REQUESTS), st.booleans(), st.integers(0, 40))
def test_a_folded_stream_says_what_the_whole_one_says(parts: list[str], end: str, request: Any, owes: bool, cut: int) -> None:  # fmt: skip
    body = "".join(parts).replace("\n", end).encode()
    body = body[: len(body) - cut] if cut < 10 else body
    try:
        right = answers._read(body, request.kind, owes)
    except JsonFault:
        right = answers._nothing("MALFORMED")
    assert answer("complete", 200, request, body, owes) == right


@given(st.lists(st.integers(0, 255), max_size=6).map(bytes), st.lists(st.integers(0, 255), max_size=6).map(bytes))
def test_no_bytes_between_head_and_tail_are_folded_that_are_no_string(one: bytes, two: bytes) -> None:
    head, tail = b'data: {"choices":[{"delta":{"content":"', b'"}}]}\n\n'
    body = b": x\n\n" + b"".join(head + piece + tail for piece in (b"a", one, two, b"b"))
    try:
        right = answers._read(body, "chat", False)
    except JsonFault:
        right = answers._nothing("MALFORMED")
    assert answer("complete", 200, REQUESTS[0], body, False) == right


def test_a_long_stream_folds_to_its_few_kinds_of_event() -> None:
    body = (WHOLE[0] + "".join(_event(HEADS[0], f"w{n}") for n in range(3000)) + WHOLE[3]).encode()
    assert len(read_events(fold(body))) == 2 + 3  # a thousand repeats at most are told as one
    assert fold(body.replace(b"\n", b"\r\n")) == fold(body) == unify(fold(body))


# Documents ----------------------------------------------------------------------------------------------------------


def _long_way(data: bytes) -> Any:
    text = reading.decode_text(data)
    form = reading.read_form(text)
    try:
        return reading._parse(text, reading._decode_sorted, form.shallow), form.fault
    except reading._Unsorted:
        return reading._parse(text, reading._decode), JsonFault("json-form", "", "keys out of order", "")


def _told(read: Any, data: bytes) -> Any:
    try:
        value, fault = read(data)
    except JsonFault as bad:
        return bad.code, bad.place, bad.found
    return value, fault and (fault.code, fault.place, fault.found)


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**54), 2**54),
    st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**6), max_value=10**6),
    st.sampled_from(['"', 'a": 5', "\\", "é", "\u2028", "x\ty", "z" * 20]),
)
inner = st.dictionaries(st.sampled_from("abc"), scalars, max_size=3)
row = st.dictionaries(st.sampled_from(["k", "l", 'm": 0', "n"]), st.one_of(scalars, inner, st.lists(scalars, max_size=2)), max_size=4)  # fmt: skip
documents = st.fixed_dictionaries({"name": scalars, "rows": st.lists(row, max_size=5).map(lambda rows: rows * 2)})
LINES = ["      \"k\": 1,\n", "    },\n    {\n", "  ],\n", '  "b": [\n', "    {\n", '      "k": 1e400\n', '      "k": 12345678901234567,\n', '      "k": NaN,\n', "\n"]  # fmt: skip


@given(documents, st.integers(0, 10**6), st.sampled_from(["", "drop", "twice", "char", *LINES]))
def test_a_document_reads_by_its_outline_as_it_reads_whole(value: Any, place: int, change: str) -> None:
    lines = (written_json(value) + "\n").splitlines(keepends=True)
    at = place % len(lines)
    if change == "drop":
        del lines[at]
    elif change == "twice":
        lines[at:at] = lines[at : at + 1 + place % 7]
    elif change == "char":
        lines[at] = lines[at][: place % len(lines[at])] + '"}:, 0'[place % 6] + lines[at][place % len(lines[at]) :]
    elif change:
        lines.insert(at, change)
    data = "".join(lines).encode()
    assert _told(read_document, data) == _told(_long_way, data)


def test_a_row_that_closes_its_list_is_never_told_once() -> None:
    row = '      "k": 1\n    }\n  ],\n  "b": [\n    {\n      "k": 1'
    data = ('{\n  "a": [\n    {\n' + "\n    },\n    {\n".join([row] * 4) + "\n    }\n  ]\n}\n").encode()
    assert (
        _told(read_document, data) == _told(_long_way, data) == ("json-duplicate-key", "", "key b twice in one object")
    )


# Shapes -------------------------------------------------------------------------------------------------------------

ODD = [0, 1, -1, True, None, "", "A", "1", Decimal("1"), Decimal("1.0000000000"), Decimal("1E+3"), Decimal("1E-9"), Decimal("-0.1"), 10**9, [], {}, "a" * 64, 200, "NORMAL"]  # fmt: skip
LEAVES = [shape.SECONDS, shape.LAG, shape.COUNT, shape.HASH, shape.VERSION, shape.BOOL, shape.OneOf("A", None, 1), shape.Maybe(shape.STATUS)]  # fmt: skip


@given(st.sampled_from(LEAVES), st.lists(st.sampled_from(ODD), max_size=6))
def test_many_values_fit_when_each_does(leaf: Any, values: list[Any]) -> None:
    assert leaf.all_fit(values) == all(leaf.fits(value) for value in values) == all(not list(leaf.explain(value, "")) or leaf.fits(value) for value in values)  # fmt: skip


@lru_cache
def _rows() -> tuple[Any, ...]:
    files = ground("verify-results").source.files
    return tuple(read_document(files[next(name for name in files if name.endswith("/samples.json"))])[0]["samples"][:3])


values_ = st.tuples(st.sampled_from(sorted(shapes.SAMPLES.fields["samples"].shape.fields)), st.sampled_from(ODD))


@settings(deadline=None)  # the first call forges the package
@given(st.lists(values_, max_size=2), st.integers(1, 3))
def test_rows_fit_when_each_of_their_values_does(changes: list[tuple[str, Any]], copies: int) -> None:
    wanted = shapes.SAMPLES.fields["samples"].shape
    rows_ = [dict(one) for one in _rows()[:copies]]
    assert wanted.all_fit(rows_)
    for key, value in changes:
        rows_[-1][key] = value
    right = all(wanted.fields[key].fits(value) for one in rows_ for key, value in one.items())
    assert wanted.all_fit(rows_) is right
    assert bool(shape.faults(rows_, shape.ListOf(wanted))) is not right


def test_decimals_that_equal_an_integer_do_not_hide_behind_it() -> None:
    assert not shape.SECONDS.all_fit([1, Decimal("1.0000000000")])
    assert not shape.VERSION.all_fit([1, True])
    assert not shape.Keys(a=shape.COUNT).all_fit([{"a": 1}, {"b": 1}])


# Names --------------------------------------------------------------------------------------------------------------

names = st.lists(st.sampled_from(["a", "a-b", "b", "0" * 64, "A", "c.json"]), min_size=1, max_size=4).map("/".join)
listings = st.dictionaries(names, st.sampled_from(["file", "file", "link", "folder", "special"]), max_size=12)


def _below(entries: dict[str, str], folder: str) -> list[str]:
    return sorted(name for name in entries if not folder or name.startswith(folder + "/"))


@given(listings, st.dictionaries(names, st.sampled_from(["file", "link", None]), max_size=4))
def test_a_listing_is_the_dictionary_that_it_stands_for(
    entries: dict[str, str], changes: dict[str, str | None]
) -> None:
    made = Listing.of(entries.items()).altered(changes)
    right = {**entries, **changes}
    right = {name: kind for name, kind in right.items() if kind is not None}
    assert dict(made) == right
    assert len(made) == len(right)
    for folder in ("", "a", "a-b", "a/b", "b/c.json", "nowhere"):
        below = _below(right, folder)
        start = len(folder) + 1 if folder else 0
        assert made.below(folder) == below
        assert made.right_in(folder) == [name for name in below if "/" not in name[start:]]
        assert made.folders(folder) == sorted({name[: name.find("/", start)] for name in below if "/" in name[start:]})
        assert sorted(made.inside(folder)) == [name[start:] for name in below]
        hashed = {name for name in below if name.rpartition("/")[0] == "a/b" and right[name] == FILE}
        if all(len(name) == 68 for name in hashed):
            assert made.below(folder, "a/b") == [name for name in below if folder == "a/b" or name not in hashed]
    files = sorted(name for name, kind in right.items() if kind == FILE)
    assert [f"{run.folder}/{name}".lstrip("/") for run in made.runs() for name in run.names] == files
    for run in made.runs():
        assert run.hashed is bool(run.names == made.files(run.folder) and one_of_hashes(made.joined(run.folder))) or (
            made.folders(run.folder) != []
        )
    assert [made.find(name) for name in ("a", "a/b", "a//b", "", "/")] == [
        right.get(name) for name in ("a", "a/b", "a//b", "", "/")
    ]


def test_a_stored_body_costs_the_listing_its_name_and_little_more() -> None:
    listing = Listing()
    for folder in range(40):
        listing.add(f"results/settings/c-{folder}/bodies", [f"{n:064x}" for n in range(250)], {})
    listing.find("results/settings/c-1/bodies/" + "0" * 64)
    weight = sum(map(sys.getsizeof, (listing._files, *listing._files, *listing._files.values())))
    assert weight < 70 * len(listing)


@pytest.mark.parametrize(
    ("joined", "hashed"),
    [
        ("", False),
        ("0" * 64 + "/", True),
        ("0" * 64 + "/" + "af09" * 16 + "/", True),
        ("0" * 64 + "/" + "AF09" * 16 + "/", False),
        ("0" * 63 + "/", False),
        ("0" * 65 + "/", False),
        ("0" * 63 + "//", False),
        ("0" * 64, False),
        ("0" * 64 + "/" + "0" * 32 + "/" + "0" * 31 + "/", False),
        ("0" * 63 + "é/", False),
        ("0" * 63 + "\udc80/", False),
        ("0" * 63 + "g/" + "0" * 64 + "/", False),
    ],
)
def test_names_are_hashes_when_each_is_one(joined: str, hashed: bool) -> None:
    assert one_of_hashes(joined) == ("0" * 64 if hashed else "")


# SHA256SUMS ---------------------------------------------------------------------------------------------------------

DIGESTS = [f"{n:064x}" for n in range(3)]
sums = st.dictionaries(
    st.sampled_from(["a", "a/b", "a-b", "b", "c/d", "é", ".x", "SHA256SUMS"]), st.sampled_from(DIGESTS)
)


@given(sums, sums, st.sampled_from(["", "crlf", "blank", "cut", "swap", "twice"]), st.integers(1, 40))
def test_a_list_is_read_alike_in_pieces_and_by_its_difference(one: Any, two: Any, change: str, size: int) -> None:
    base = Sums({name: digest for name, digest in one.items() if name not in ("é", ".x", "SHA256SUMS")})
    lines = [f"{two[name]}  {name}\n" for name in sorted(two)]
    if change == "swap":
        lines.reverse()
    if change == "twice":
        lines[:0] = lines[:1]
    data = "".join(lines).encode() + (b"\n" if change == "blank" else b"")
    data = data.replace(b"\n", b"\r\n") if change == "crlf" else data[:-1] if change == "cut" else data
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    plain = looks_plain(pieces)
    try:
        read = read_sums(data)
    except SumsFault:
        assert not plain
        assert compare(data, frozenset(base.lines())) is None
        return
    assert {name: digest for digest, name in rows(pieces)} == read
    differs = compare(data, frozenset(base.lines()))
    if differs is not None:
        assert {name: found[0] for name, found in differs.found.items()} == {
            name: digest for name, digest in read.items() if base.get(name) != digest
        }
        assert differs.gone == {name for name in base if read.get(name) != base[name]}
    if plain:
        assert base.written({**dict.fromkeys(base), **read}) == data


HASHED = [f"{n:064x}" for n in range(3)]
shelves = st.dictionaries(
    st.builds(
        "/".join, st.tuples(st.sampled_from(["x/bodies", "x-y", "x", "é"]), st.sampled_from([*HASHED, "a", "b"]))
    ),
    st.sampled_from(HASHED),
    min_size=1,
    max_size=8,
)


@given(
    shelves, st.booleans(), st.sampled_from(["", "drop", "add", "swap", "cut", "upper", "blank"]), st.integers(1, 90)
)
def test_a_list_that_agrees_with_the_files_says_what_it_says_line_by_line(
    files: dict[str, str], own: bool, change: str, size: int
) -> None:
    if own:
        files = {name: name[-64:] if name[-64:] in HASHED else digest for name, digest in files.items()}
    lines = [f"{digest}  {name}\n" for name, digest in sorted(files.items())]
    data = "".join(
        {"drop": lines[1:], "add": [*lines, f"{HASHED[0]}  z\n"], "swap": lines[::-1]}.get(change, lines)
    ).encode()
    data = {"cut": data[:-1], "upper": data[:3] + b"A" + data[4:], "blank": data + b"\n"}.get(change, data)
    listing = Listing.of([(name, FILE) for name in (*files, SUMS)])
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    try:
        found = {
            f"{run.folder}/{name}": digest
            for run, digests in told(pieces, listing.runs())
            for name, digest in zip(run.names, digests or run.names, strict=True)
        }
    except Unplain:
        assert change not in ("", "swap") or len(files) > 1 or any(name.startswith("é") for name in files)
        assert change or any(name.startswith("é") for name in files)
        return
    assert found == files == read_sums(data)


@pytest.mark.parametrize("listed", [checksums.EVERYTHING, checksums.WHAT_WAS_READ])
def test_a_file_is_held_to_its_line_whether_or_not_it_was_read_before(listed: Any, tmp_path: Path) -> None:
    body = Memory({"x": b"1"}).digest("x")
    files = {
        "x/bodies/" + body: b"1",
        "x/bodies/" + HASHED[0]: b"2",
        "y/bodies/" + HASHED[1]: b"3",
        "manifest.json": b"4",
    }
    lines = {name: name[-64:] if "/" in name else HASHED[2] for name in files}
    files[SUMS] = "".join(f"{digest}  {name}\n" for name, digest in sorted(lines.items())).encode()
    for name, data in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    for read in ([], ["x/bodies/" + body], ["x/bodies/" + HASHED[0]], list(files)[:4]):
        for source in (Memory(files), Folder(str(tmp_path))):
            for name in read:
                source.read(name)
            subject = listed.open(Scope(View(source), "package", "", {}))
            assert subject.wrong is not None
            asked = set(files) - {SUMS} if listed is checksums.EVERYTHING else {*read, "manifest.json"}
            wrong = {name for name in asked if name != "x/bodies/" + body}
            assert {name for name, _, _ in checksums.hold_digests(subject)} == wrong
            assert subject.compared == len(asked)
            assert {name for name, _, _ in subject.mismatches(subject.rows())} == wrong


@pytest.mark.parametrize("name", ["verify-results", "verify-incomplete-results", "verify-converged"])
def test_what_is_judged_by_the_difference_is_judged_as_the_whole_is(name: str) -> None:
    on, recall = ground(name), Recall()
    before = judge(on.source, on.families, recall=recall, again=True)
    recall.sums, recall.lines = on.sums, frozenset(on.sums.lines())
    for check in table(verifier(name).families)[::3]:  # some of each; `--mutation-control=all` judges them all so
        for kill, mutation in zip(kills_of(name, check), check.mutations, strict=True):
            outcome = try_mutation(
                check.code, mutation, on.source, on.families, before, Bench(on.source, on.sums), recall
            )
            assert outcome.observed == tuple(sorted({finding.code for finding in kill.findings})), mutation.name


# Exchanges ----------------------------------------------------------------------------------------------------------


def _comparison() -> Comparison:
    on = ground("verify-results")
    view = View(on.source)
    scope = Scope(view, "comparison", view.folders("results/settings")[0], {})
    assert read_documents(scope, documents_of(view, scope.folder)) == []
    return Comparison(scope)


VALUES: dict[str, list[Any]] = {
    "offer": ["r1-a-main-001"], "requestId": ["r1-a-main-001", None], "worker": ["worker-1", "worker-2", None],
    "responseSha256": ["0" * 64], "requestSha256": ["0" * 64], "status": [200, 502, None], "transport": ["closed-early"],
    "complete": [False], "traffic": [False], "method": ["GET"], "path": ["/v1/models"], "reason": ["CLOSED"],
    "responseBytes": [1], "totalSeconds": [Decimal("0.5")], "startedSeconds": [Decimal(1)], "endedSeconds": [Decimal(2)],
}  # fmt: skip
changes = st.lists(
    st.tuples(st.booleans(), st.integers(0, 41), st.sampled_from(sorted(VALUES)), st.integers(0, 2)), max_size=3
)
ASKED = (
    samples.hold_stored, samples.hold_lengths, samples.hold_cited, samples.hold_arm_copies, samples.hold_sample_copies,
    receipts.hold_traffic, receipts.hold_completeness, receipts.hold_copies, protocol.hold_files,
)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(changes)
def test_what_is_one_exchange_by_its_id_is_one_by_every_other_question(
    altered: list[tuple[bool, int, str, int]],
) -> None:
    subject = _comparison()
    for is_sample, place, key, value in altered:
        table_ = subject.by_arm["r1-a"] if is_sample else subject.ledgers["r1-a", "worker-1"]
        row = table_[place % len(table_)]
        if key in row:
            row[key] = VALUES[key][value % len(VALUES[key])]
    questions = (receipts.hold_matched, receipts.hold_receipted, receipts.hold_ids)
    paired = pairing.paired(subject, "r1-a")
    quick = [list(hold(subject)) for hold in questions], pairing.mismatched(subject, "r1-a")
    subject.paired = dict.fromkeys(subject.paired, False)
    assert ([list(hold(subject)) for hold in questions], pairing.mismatched(subject, "r1-a")) == quick
    assert not paired or quick == ([[], [], []], False)
    assert {(name, length) for _, name, length in subject.citations()} == subject.cited_lengths()


def test_nothing_is_left_to_be_asked_of_a_comparison_that_is_right() -> None:
    subject = _comparison()
    assert all(pairing.paired(subject, arm) for arm in subject.arms_seen())
    assert [list(hold(subject)) for hold in ASKED] == [[]] * len(ASKED)


# Bytes --------------------------------------------------------------------------------------------------------------


def test_a_folder_knows_what_it_read_and_nothing_else(tmp_path: Path) -> None:
    right = Memory({"x/bodies/a": b"1", "x/b": b"2" * 600_000, "c": b""})
    body = right.digest("x/bodies/a")
    files = {"x/bodies/" + body: b"1", "x/bodies/" + "0" * 64: b"3", "x/b": b"2" * 600_000, "c": b""}
    for name, data in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    folder, memory = Folder(str(tmp_path)), Memory(files)
    assert [folder.known(name) for name in files] == [None] * 4
    for name, data in files.items():
        assert folder.digest(name) == memory.digest(name)
        assert folder.known(name) == memory.digest(name)
        assert b"".join(folder.pieces(name)) == folder.read(name) == data
    assert folder.known("x/bodies/" + "1" * 64) is None
    assert sum(map(sum, folder._own.values())) == 1  # a body under its own hash costs one byte
    folder.close()


def test_a_report_keeps_no_views_unless_it_is_to_be_used_again() -> None:
    on = ground("verify-results")
    assert all(result.view is None for result in judge(on.source, on.families).results.values())
    assert all(result.view is not None for result in on.clean.results.values())
    assert json.dumps(sorted({finding.code for finding in on.clean.findings})) == "[]"
