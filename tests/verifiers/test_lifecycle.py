"""verify-lifecycle on the published record and on a record of our own: every figure, every code, every exit."""

import copy
import hashlib
import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import jsonschema
import pytest
from checking.check import judge, table
from checking.damage import NOTHING, Bench, try_mutation, written_json
from checking.package import Memory
from checking.reading import read_json
from checking.rules import lifecycle
from checking.rules.lifecycle_figures import BOUNDED, DECLARED, RECOMPUTED, REQUIRED, figures

PUBLISHED = Path("tests/vectors/lifecycle/published-record.json")
OWN = Path("archive/lifecycle-cpu")
ADAPTERS = Path("archive/lifecycle-adapters-cpu")
SCRIPT = "verifiers/verify-lifecycle.py"
FAMILIES = (lifecycle.FAMILY,)
SCHEMA = json.loads(Path("schemas/lifecycle-record.schema.json").read_text())
FORM = {"lifecycle-json", "lifecycle-schema"}

# What nothing in the published record speaks for or against. A figure that joins this list is a check that was lost.
ONLY_DECLARED = [
    "/experiments/0/protocol/max_generated_tokens",
    "/experiments/0/protocol/temperature",
    "/experiments/1/hardware/cpu_cores",
    "/experiments/1/hardware/host_memory_gib",
    "/experiments/2/source/verified_source_files",
    "/experiments/2/hardware/reported_device_total_bytes",
    "/experiments/2/hardware/cpu_cores",
    "/experiments/2/hardware/host_memory_gib",
    "/experiments/2/protocol/lora_alpha",
    "/experiments/2/protocol/fixture_normal_weight_scale",
    "/experiments/2/protocol/static_memory_fraction",
    "/experiments/2/protocol/temperature",
    "/experiments/2/protocol/request_seed",
    "/experiments/2/protocol/embedding_raw_vector_shape/0",
    "/experiments/2/protocol/embedding_raw_vector_shape/1",
    "/experiments/2/measurements/successful_forwards_containing_both_a_and_b",
    "/experiments/2/controls/cold_vs_warm_chat_max_observed_chosen_probability_delta",
    "/experiments/2/controls/cold_vs_warm_native_nonstreaming_text_equal",
]


class Read(NamedTuple):
    """A record as the checks see it, without the way through bytes."""

    record: dict
    name: str = "record.json"


SHAPE = lifecycle.load_shape()
RULES = (
    lifecycle.RECORD_ROWS + lifecycle.CO_ROWS + lifecycle.CRASH_ROWS + lifecycle.LORA_ROWS + lifecycle.SELECTION_ROWS
)


FITTING: list[dict] = []
"""Experiments that have their shape. They are kept, so that no other object can ever take the place of one."""


def fits(record):
    """Whether every experiment has its shape; those that were not altered are not walked again."""
    rest = [one for one in record["experiments"] if not any(one is known for known in FITTING)]
    return not SHAPE.faults({**record, "experiments": rest or record["experiments"][:1]})


def codes(record):
    """The codes that an altered record is rejected with."""
    if not fits(record):
        return {"lifecycle-schema"}
    return {rule.code for rule in RULES if any(True for _ in rule.hold(Read(record)))}


def with_figure(record, place, value):
    """The record with another value at a JSON pointer; only the way to it is copied."""

    def put(holder, steps):
        if not steps:
            return value
        made = copy.copy(holder)
        step = int(steps[0]) if isinstance(made, list) else steps[0].replace("~1", "/").replace("~0", "~")
        made[step] = put(made[step], steps[1:])
        return made

    return put(record, place.split("/")[1:])


def small_nudges(value):
    """The other truth value, or the nearest figures on both sides."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1]
    return [value * Decimal("1.001") + Decimal("1e-9"), value * Decimal("0.999") - Decimal("1e-9")]


def far_nudges(value):
    """Figures far away on both sides."""
    half = value // 2 if isinstance(value, int) else value / 2
    return [
        *small_nudges(value),
        0,
        value * 2,
        half,
        value // 10 if isinstance(value, int) else value / 10,
        value * 1000 + 1,
        value * 10**4 + 1,
    ]


def nudged_worth(record, place, value):
    """What the checks make of other values at a place: the worth that the table must state."""
    if isinstance(value, bool):
        return REQUIRED if codes(with_figure(record, place, not value)) else DECLARED
    if all(codes(with_figure(record, place, other)) for other in small_nudges(value)):
        return RECOMPUTED
    far = far_nudges(value)
    return BOUNDED if any(codes(with_figure(record, place, other)) - FORM for other in far) else DECLARED


def read(path):
    return read_json(path.read_bytes())


def numbers(record):
    return [one for one in figures(record) if isinstance(one.value, (bool, int, Decimal))]


def run(*words):
    return subprocess.run(
        [sys.executable, "-I", "-B", SCRIPT, *map(str, words)], capture_output=True, text=True, check=False
    )


def test_schema_accepts_the_published_record():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(json.loads(PUBLISHED.read_text()), SCHEMA)


def test_both_readers_of_the_schema_agree():
    record = json.loads(PUBLISHED.read_text())
    validator, shape = jsonschema.Draft202012Validator(SCHEMA), lifecycle.load_shape()

    def walk(value, place=""):
        yield place, value
        for key, one in (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        ):
            yield from walk(one, f"{place}/{str(key).replace('~', '~0').replace('/', '~1')}")

    others = (None, "", -1, 1.5, [], {}, True, "A" * 64)
    rejected = 0
    for number, (place, value) in enumerate(list(walk(record))[1::7]):
        other = others[number % len(others)]
        if other != value:
            made = with_figure(record, place, other)
            valid = validator.is_valid(made)
            rejected += not valid
            assert valid == (shape.faults(made) == []), (place, other)
    assert rejected > 40


RANKS = {DECLARED: 0, BOUNDED: 1, REQUIRED: 2, RECOMPUTED: 2}


@pytest.mark.parametrize(
    "path", [PUBLISHED, OWN / "record.json", ADAPTERS / "record.json"], ids=["published", "own", "adapters"]
)
def test_every_figure_is_worth_at_least_what_the_table_says(path):
    """Declared means that nothing speaks for it; all others may be held more tightly than the table claims."""
    record = read(path)
    FITTING.extend(record["experiments"])
    for one in numbers(record):
        found = nudged_worth(record, one.place, one.value)
        assert RANKS[found] >= RANKS[one.worth], (one, found)
        assert (found == DECLARED) == (one.worth == DECLARED), (one, found)


def test_only_these_figures_are_declared():
    assert [one.place for one in numbers(read(PUBLISHED)) if one.worth == DECLARED] == ONLY_DECLARED


def test_stated_codes_reject_their_figures():
    record = read(PUBLISHED)
    FITTING.extend(record["experiments"])
    for one in numbers(record)[::3]:
        if one.worth != DECLARED:
            nudges = small_nudges(one.value) if isinstance(one.value, bool) else reversed(far_nudges(one.value))
            assert any(one.code in codes(with_figure(record, one.place, other)) for other in nudges), one


def test_every_number_of_the_record_is_listed():
    def count(value):
        if isinstance(value, dict):
            return sum(map(count, value.values()))
        return sum(map(count, value)) if isinstance(value, list) else isinstance(value, (bool, int, Decimal))

    record = read(PUBLISHED)
    assert len(numbers(record)) == count(record) == 143


def outcomes(files):
    source = Memory(files)
    report = judge(source, FAMILIES)
    assert report.findings == ()
    return [
        try_mutation(row.code, mutation, source, FAMILIES, report, Bench(source, {}))
        for row in table(FAMILIES)
        for mutation in row.mutations
    ]


def own_files(folder=OWN):
    evidence = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in (folder / "evidence").rglob("*")
        if path.is_file()
    }
    return {"record.json": (folder / "record.json").read_bytes(), **evidence}


def test_every_code_is_tripped_by_its_mutation_on_one_of_the_records():
    found = outcomes({"record.json": PUBLISHED.read_bytes()}) + outcomes(own_files()) + outcomes(own_files(ADAPTERS))
    assert [
        one
        for one in found
        if one.verdict not in ("killed", "inert") or (one.verdict == "inert" and one.altered != NOTHING)
    ] == []
    killed = {one.mutation for one in found if one.verdict == "killed"}
    assert {one.mutation for one in found} == killed


def test_published_record_verifies_and_is_reported_item_by_item():
    ran = run(PUBLISHED, "--mutation-control")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert (
        "recomputed /experiments/0/measurements/device_used_bytes_with_both_models 24450236416 (lifecycle-device-used)"
        in ran.stdout
    )
    assert "declared   /experiments/2/retained_evidence_sha256/raw_bundle" in ran.stdout
    assert "killed    shave the used bytes (new process)" in ran.stdout


def test_json_output():
    said = json.loads(run(PUBLISHED, "--json").stdout)
    assert (said["verdict"], said["exitCode"], said["counts"]["experiments"]) == ("verified", 0, 3)


def test_altered_record_is_rejected_with_code_place_found_expected(tmp_path):
    text = PUBLISHED.read_text().replace(
        '"device_used_bytes_with_both_models": 24450236416', '"device_used_bytes_with_both_models": 24450236417'
    )
    (tmp_path / "record.json").write_text(text)
    ran = run(tmp_path / "record.json")
    assert ran.returncode == 1
    assert (
        "lifecycle-device-used record.json#/experiments/0/measurements/device_used_bytes_with_both_models: found 24450236417, expected 24450236416"
        in ran.stdout
    )


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "lifecycle-json"),
        (b"{}", "lifecycle-schema"),
        (b"[]", "lifecycle-schema"),
        (b"\xff\xfe{}", "lifecycle-json"),
        (b'{"a": NaN}', "lifecycle-json"),
        (b'{"a": 1, "a": 1}', "lifecycle-json"),
        (b"[" * 100_000, "lifecycle-json"),
        (b'{"experiments": {}, "schema_version": true}', "lifecycle-schema"),
    ],
)
def test_malformed_record_is_rejected_without_a_traceback(data, code, tmp_path):
    (tmp_path / "r.json").write_bytes(data)
    ran = run(tmp_path / "r.json")
    assert ran.returncode == 1
    assert code in ran.stdout
    assert "Traceback" not in ran.stderr


def test_unreadable_and_wrong_usage_exit_2(tmp_path):
    assert run(tmp_path / "none.json").returncode == 2
    assert run(PUBLISHED, "--evidence").returncode == 2
    assert run(PUBLISHED, "--evidence", tmp_path / "none").returncode == 2
    assert run(tmp_path, "--evidence", tmp_path).returncode == 2


@pytest.mark.parametrize("folder", [OWN, ADAPTERS], ids=lambda path: path.name)
def test_own_record_is_held_against_its_raw_events(folder):
    ran = run(folder / "record.json", "--evidence", folder / "evidence", "--mutation-control")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "killed    alter one raw event and make every hash true again (new process)" in ran.stdout
    figure = "successful_guard_requests" if folder == OWN else "effect_vs_warm_base/a"
    assert f"checked    /experiments/0/measurements/{figure}" in ran.stdout


@pytest.mark.parametrize("folder", [OWN, ADAPTERS], ids=lambda path: path.name)
def test_own_record_fits_the_schema(folder):
    jsonschema.validate(json.loads((folder / "record.json").read_text()), SCHEMA)


@pytest.mark.parametrize("number", range(12))
def test_a_changed_line_of_raw_events_is_seen(number):
    """Whatever number of an event is changed, hash or figures or form say so even when every hash is made true again."""
    files = own_files()
    name = "evidence/cpu-crash/raw_events.jsonl"
    lines = files[name].split(b"\n")
    at = [i for i, line in enumerate(lines) if b'"lane":"healthy"' in line and b'"event":"response"' in line][
        number * 5
    ]
    files[name] = b"\n".join([*lines[:at], lines[at].replace(b'"status":200', b'"status":500'), *lines[at + 1 :]])
    report = judge(Memory(files), FAMILIES)
    assert {"lifecycle-evidence-hash", "lifecycle-raw-figures"} <= report.codes()


def package(folder):
    """A package that holds nothing but the published record."""

    data = PUBLISHED.read_bytes()
    index = {"schemaVersion": 1, "records": [{"id": "published", "path": "results/lifecycle/published.json", "sha256": hashlib.sha256(data).hexdigest(), "experiments": ["h100_guard_co_residency", "h100_single_process_crash", "l4_runtime_lora_lifecycle"]}]}  # fmt: skip
    files = {
        "results/lifecycle-index.json": (written_json(index) + "\n").encode(),
        "results/lifecycle/published.json": data,
    }
    files["manifest.json"] = b"{}\n"
    (folder / "results/lifecycle").mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    sums = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in sorted(files.items()))
    (folder / "SHA256SUMS").write_text(sums)
    return folder


def test_package_of_records_verifies_with_all_mutations(tmp_path):
    ran = run(package(tmp_path / "p"), "--mutation-control=all")
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr
    assert "killed    change a record's hash in the index" in ran.stdout
    assert "(new process)" in ran.stdout
    assert "results/lifecycle/published.json#/experiments/0/protocol/temperature" in ran.stdout


def test_package_with_an_unlisted_record_is_rejected(tmp_path):
    folder = package(tmp_path / "p")
    (folder / "results/lifecycle/other.json").write_bytes(PUBLISHED.read_bytes())
    ran = run(folder)
    assert ran.returncode == 1
    assert "lifecycle-index-paths results/lifecycle/other.json" in ran.stdout
