"""Adapters that requests selected: each way to bend the published record of them, and the place that gives it away."""

import copy
from decimal import Decimal
from pathlib import Path

import pytest
from checking.reading import read_json
from checking.rules import lifecycle
from checking.rules.lifecycle_events import EventsFault, read_raw
from checking.rules.lifecycle_selection_events import cosines, derive_selection, vectors_apart

FOLDER = Path("archive/lifecycle-adapters-cpu")
RECORD = read_json((FOLDER / "record.json").read_bytes())
LLAMA, SIE = 0, 1


class Read:
    name = "record.json"

    def __init__(self, record):
        self.record = record


def findings(record):
    """(code, place) of every rule of this kind that rejects a record."""
    return [
        (row.code.removeprefix("lifecycle-selection-"), complaint[0].partition("#")[2])
        for row in lifecycle.SELECTION_ROWS
        for complaint in row.hold(Read(record))
    ]


def bent(number, path, value):
    """The record with another value at a path of one experiment; a function makes it from the old one."""
    record = copy.deepcopy(RECORD)
    holder = record["experiments"][number]
    *way, last = [int(step) if step.lstrip("-").isdigit() else step for step in path.split("/")]
    for step in way:
        holder = holder[step]
    if value is None:
        del holder[last]
    else:
        holder[last] = value(holder[last]) if callable(value) else value
    return record


M, P, T, U = "measurements/", "protocol/", "selected_turns/", "measurements/undeclared_adapter/"
BENT = [
    (LLAMA, "models", lambda old: old * 2, "model", "/models"),
    (LLAMA, "models/0/kind", "embedding", "model", "/protocol/effect_measure"),
    (LLAMA, P + "request_seed", None, "model", "/protocol/request_seed"),
    (LLAMA, M + "base_text_restored", None, "model", "/measurements/base_text_restored"),
    (SIE, P + "embedding_raw_vector_shape", None, "model", "/protocol/embedding_raw_vector_shape"),
    (SIE, P + "embedding_raw_vector_shape", [2, 384, 1], "model", "/protocol/embedding_raw_vector_shape"),
    (SIE, M + "cosine_distance_vs_warm_base", None, "model", "/measurements/cosine_distance_vs_warm_base"),
    (LLAMA, P + "fixture_seeds/b", 2, "aliases", "/protocol/fixture_seeds/b"),
    (LLAMA, P + "fixture_seeds/b", None, "aliases", "/protocol/fixture_seeds"),
    (LLAMA, M + "effect_vs_warm_base/c", None, "aliases", "/measurements/effect_vs_warm_base"),
    (SIE, M + "cosine_distance_vs_warm_base/c", None, "aliases", "/measurements/cosine_distance_vs_warm_base"),
    (LLAMA, P + "selection_order/5", "a", "aliases", "/protocol/selection_order"),
    (LLAMA, P + "selection_order/5", "z", "aliases", "/protocol/selection_order/5"),
    (LLAMA, "resident_at_first", ["a", "c", "b"], "aliases", "/resident_at_first"),
    (LLAMA, T + "2/resident_aliases", ["a", "b", "c", "z"], "aliases", "/selected_turns/2/resident_aliases"),
    (LLAMA, T + "3/alias", "b", "turns", "/selected_turns/3/alias"),
    (LLAMA, T + "3/statuses", [200, 200], "turns", "/selected_turns/3/statuses"),
    (SIE, T + "0/statuses", [503], "turns", "/selected_turns/0/statuses"),
    (SIE, T + "0/statuses", [500, 200], "turns", "/selected_turns/0/statuses"),
    (LLAMA, "selected_turns", lambda old: old[:-1], "turns", "/selected_turns"),
    (LLAMA, M + "requests_answered", 15, "requests", "/measurements/requests_answered"),
    (SIE, T + "3/statuses", [200], "residency", "/selected_turns/3/statuses"),
    (SIE, T + "6/statuses", [503, 200], "residency", "/selected_turns/6/statuses"),
    (SIE, T + "6/resident_aliases", ["b"], "residency", "/selected_turns/6/resident_aliases"),
    (LLAMA, "resident_at_first", ["a", "b"], "capacity", "/resident_at_first"),
    (SIE, P + "resident_adapter_capacity", 1, "capacity", "/selected_turns/1/resident_aliases"),
    (SIE, P + "resident_adapter_capacity", 3, "capacity", "/protocol/resident_adapter_capacity"),
    (SIE, T + "0/resident_aliases", ["a", "b"], "capacity", "/selected_turns/0/resident_aliases"),
    (SIE, T + "2/resident_aliases", ["a", "c"], "capacity", "/selected_turns/2/resident_aliases"),
    (SIE, T + "2/resident_aliases", ["c"], "capacity", "/selected_turns/2/resident_aliases"),
    (SIE, T + "6/resident_aliases", ["c"], "capacity", "/selected_turns/6/resident_aliases"),
    (SIE, M + "cold_loading_503_then_success_aliases", ["a", "b"], "evicted", "/measurements/cold_loading_503_then_success_aliases"),
    (SIE, M + "evicted_and_served_again", ["a", "b"], "evicted", "/measurements/evicted_and_served_again"),
    (LLAMA, T + "0/effect", Decimal("0.5"), "effects", "/measurements/effect_vs_warm_base/a"),
    (LLAMA, T + "3/effect", lambda old: old + Decimal("0.001"), "effects", "/selected_turns/3/effect"),
    (LLAMA, M + "effect_vs_warm_base/b", Decimal("0.9"), "effects", "/measurements/effect_vs_warm_base/b"),
    (LLAMA, P + "effect_thresholds/effect_lower_bound", 0, "effect", "/protocol/effect_thresholds/effect_lower_bound"),
    (LLAMA, P + "effect_thresholds/effect_lower_bound", Decimal("0.5"), "effect", "/measurements/effect_vs_warm_base/a"),
    (LLAMA, "controls/cold_vs_warm", Decimal("0.04"), "effect", "/measurements/effect_vs_warm_base/a"),
    (LLAMA, M + "reset_drift", Decimal("0.2"), "effect", "/measurements/smallest_effect_between_aliases"),
    (SIE, M + "smallest_effect_between_aliases", Decimal("0.6"), "triangle", "/measurements/smallest_effect_between_aliases"),
    (SIE, M + "warm_repeat_drift", Decimal("0.00005"), "base", "/measurements/warm_repeat_drift"),
    (SIE, M + "repeat_drift", Decimal("0.001"), "base", "/measurements/repeat_drift"),
    (SIE, P + "base_comparison", "No limit.", "base", "/protocol/base_comparison"),
    (SIE, P + "base_comparison", "drift < 1e-3, drift < 1e-4", "base", "/protocol/base_comparison"),
    (SIE, M + "cosine_distance_vs_warm_base/a", 20, "cosine", "/measurements/cosine_distance_vs_warm_base/a"),
    (SIE, M + "cosine_distance_vs_warm_base/a", 0, "cosine", "/measurements/cosine_distance_vs_warm_base/a"),
    (SIE, M + "largest_control_cosine_distance", Decimal("0.00001"), "cosine", "/measurements/largest_control_cosine_distance"),
    (SIE, P + "embedding_raw_vector_shape/1", 1, "cosine", "/measurements/cosine_distance_vs_warm_base/a"),
    (LLAMA, U + "outcome", "never-ready", "undeclared", "/measurements/undeclared_adapter/outcome"),
    (LLAMA, U + "statuses", [200, 503], "undeclared", "/measurements/undeclared_adapter/statuses"),
    (SIE, U + "statuses", [503], "undeclared", "/measurements/undeclared_adapter/statuses"),
    (LLAMA, U + "distance_to_warm_base", Decimal("0.1"), "undeclared", "/measurements/undeclared_adapter/distance_to_warm_base"),
    (SIE, U + "distance_to_warm_base", 0, "undeclared", "/measurements/undeclared_adapter/distance_to_warm_base"),
    (SIE, U + "evicted", ["c"], "undeclared", "/measurements/undeclared_adapter/evicted"),
    (SIE, "limitations", ["One run."], "undeclared", "/limitations"),
]  # fmt: skip


def test_the_published_record_has_no_fault():
    assert findings(RECORD) == []


@pytest.mark.parametrize(
    ("number", "path", "value", "code", "place"), BENT, ids=[f"{n}-{code}-{path}-{i}" for i, (n, path, _, code, _) in enumerate(BENT)]
)  # fmt: skip
def test_what_is_bent_is_found(number, path, value, code, place):
    assert (code, f"/experiments/{number}{place}") in findings(bent(number, path, value))


def test_a_refusal_needs_no_limitation():
    record = bent(LLAMA, "measurements/undeclared_adapter", {"statuses": [404, 404], "outcome": "refused", "distance_to_warm_base": None, "evicted": []})  # fmt: skip
    record["experiments"][LLAMA]["limitations"] = ["One run."]
    assert findings(record) == []


def raw(name):
    return read_raw((FOLDER / "evidence" / name / "raw_events.jsonl").read_bytes())


@pytest.mark.parametrize("number", [LLAMA, SIE])
def test_raw_events_give_the_measurements(number):
    one = RECORD["experiments"][number]
    made = derive_selection(raw(one["id"]))
    assert made["measurements"] == one["measurements"]
    assert made["selected_turns"] == one["selected_turns"]
    assert made["controls"] == one["controls"]
    assert all(one["protocol"][key] == value for key, value in made["protocol"].items())


def test_another_vector_in_the_raw_events_is_another_figure():
    events = raw("cpu-sie-lora")
    for phase, key in (("turn_0", "effect_vs_warm_base"), ("reset_3", "reset_drift"), ("warm-base-1", "warm_repeat_drift"), ("turn_4", "repeat_drift"), ("warm-base-last", "largest_control_cosine_distance")):  # fmt: skip
        changed = copy.deepcopy(events)
        answer = next(one for one in changed if one["event"] == "response" and one["phase"] == phase and one["status"] == 200)  # fmt: skip
        answer["vectors"][0][0] += Decimal("0.5")
        measured = RECORD["experiments"][SIE]["measurements"]
        assert derive_selection(changed)["measurements"][key] != measured[key]


def test_distances_of_vectors():
    one, other = [[Decimal(1), Decimal(0)], [Decimal("0.6"), Decimal("0.8")]], [[Decimal(0), Decimal(1)], [Decimal("0.6"), Decimal("0.8")]]  # fmt: skip
    assert vectors_apart(one, other) == 1
    assert cosines(one, other) == [1, 0]
    with pytest.raises(EventsFault):
        vectors_apart(one, [[Decimal(1)], [Decimal(1)]])
