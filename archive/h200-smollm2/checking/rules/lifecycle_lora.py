"""What must be true of a run-time LoRA experiment: residency listings, churn, effects, drift, thresholds.

Each kind of model (generation, embedding) has its own sequence of listings: initial, a_b_ready, before_churn,
churn_0 ... one after each request of the churn order. The effect of an adapter is held against its threshold and
against the multiple of every control drift, cold against warm included; drifts of the warm base are held against the
limits that the record states in `base_comparison`.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, Dict, Iterator, List, Set, Tuple

from checking.rules.lifecycle_record import Record, differ
from checking.rules.lifecycle_shape import Fault, pointer, show

LISTINGS = "/selected_residency_observations"
Listing = Tuple[int, str, List[str]]
PROBABILITY = "generation_%s_probability_delta"


def listings(experiment: Record) -> Dict[str, List[Listing]]:
    """Kind -> (index in the record, phase, aliases), in order."""
    found: Dict[str, List[Listing]] = {}
    for number, one in enumerate(experiment["selected_residency_observations"]):
        found.setdefault(one["kind"], []).append((number, one["phase"], one["ready_aliases"]))
    return found


def _place(number: int) -> str:
    return "%s/%d/ready_aliases" % (LISTINGS, number)


def kinds_are_the_models(experiment: Record) -> Iterator[Fault]:
    """Each model has a kind; engine runs and listings exist for exactly these kinds, one run each a recorded run."""
    kinds = sorted(str(model.get("kind")) for model in experiment["models"])
    runs = experiment["protocol"]["engine_runs"]
    yield from differ("/protocol/engine_runs", ", ".join(sorted(runs)), ", ".join(kinds), "the models' kinds")
    yield from differ(LISTINGS, ", ".join(sorted(listings(experiment))), ", ".join(kinds), "the models' kinds")
    for kind, count in runs.items():
        expected = experiment["protocol"]["recorded_completed_runs"]
        yield from differ("/protocol/engine_runs/" + kind, count, expected, "recorded runs")


def aliases_are_declared(experiment: Record) -> Iterator[Fault]:
    """Pinned and dynamic aliases are apart, each has a seed of its own, and nothing else is named anywhere."""
    protocol = experiment["protocol"]
    pinned, dynamic = protocol["preloaded_pinned_aliases"], protocol["dynamic_aliases"]
    declared = set(pinned) | set(dynamic)
    if set(pinned) & set(dynamic):
        yield Fault("/protocol/dynamic_aliases", ", ".join(dynamic), "none of the pinned ones")
    seeds = protocol["fixture_seeds"]
    yield from differ("/protocol/fixture_seeds", ", ".join(sorted(seeds)), ", ".join(sorted(declared)), "a seed each")
    values = list(seeds.values())
    for number, (alias, seed) in enumerate(seeds.items()):
        if seed in values[:number]:
            yield Fault(pointer("/protocol/fixture_seeds", alias), show(seed), "a seed of its own")
    for number, alias in enumerate(protocol["churn_request_order"]):
        if alias not in declared:
            yield Fault("/protocol/churn_request_order/%d" % number, show(alias), "a declared alias")
    for rows in listings(experiment).values():
        for index, _, ready in rows:
            if not set(ready) <= declared:
                yield Fault(_place(index), ", ".join(ready), "declared aliases alone")
            if ready != sorted(set(ready)):
                yield Fault(_place(index), ", ".join(ready), "sorted, none twice")


def phases_are_complete(experiment: Record) -> Iterator[Fault]:
    """Each kind is listed at first, with a and b ready, before the churn, and after each request of its order."""
    churn = len(experiment["protocol"]["churn_request_order"])
    expected = ["initial", "a_b_ready", "before_churn"] + ["churn_%d" % number for number in range(churn)]
    for kind, rows in listings(experiment).items():
        found = [phase for _, phase, _ in rows]
        if found != expected:
            yield Fault(LISTINGS, "%s: %s" % (kind, " ".join(found)), " ".join(expected))


def start_is_as_declared(experiment: Record) -> Iterator[Fault]:
    """At first the pinned aliases alone are ready, then a and b too, and nothing changes before the churn."""
    protocol = experiment["protocol"]
    pinned = sorted(protocol["preloaded_pinned_aliases"])
    for rows in listings(experiment).values():
        ready = {phase: (index, aliases) for index, phase, aliases in rows}
        both = sorted(set(pinned) | set(protocol["dynamic_aliases"][:2]))
        for phase, expected in (("initial", pinned), ("a_b_ready", both), ("before_churn", both)):
            if phase in ready and ready[phase][1] != expected:
                yield Fault(_place(ready[phase][0]), ", ".join(ready[phase][1]) or "none", ", ".join(expected))


def capacity_is_kept(experiment: Record) -> Iterator[Fault]:
    """No listing holds more than the capacity, and an alias is evicted only at capacity."""
    capacity, fullest = experiment["protocol"]["ready_adapter_capacity"], 0
    for rows in listings(experiment).values():
        before: List[str] = []
        for index, _, ready in rows:
            if len(ready) > capacity:
                yield Fault(_place(index), "%d aliases" % len(ready), "at most the capacity of %d" % capacity)
            if set(before) - set(ready) and len(before) < capacity:
                yield Fault(_place(index), "an eviction below capacity", "none with %d of %d" % (len(before), capacity))
            before, fullest = ready, max(fullest, len(ready))
    if fullest < capacity:
        yield Fault("/protocol/ready_adapter_capacity", show(capacity), "%d, the fullest listing" % fullest)


def pins_are_resident(experiment: Record) -> Iterator[Fault]:
    """The pinned aliases are in every listing."""
    for rows in listings(experiment).values():
        for index, _, ready in rows:
            for alias in experiment["protocol"]["preloaded_pinned_aliases"]:
                if alias not in ready:
                    yield Fault(_place(index), ", ".join(ready) or "none", "%s, pinned" % alias)


def _churn(experiment: Record, rows: List[Listing]) -> Iterator[Tuple[int, str, List[str], List[str]]]:
    """(index, requested alias, listing before, listing after) of each request of the churn."""
    order = experiment["protocol"]["churn_request_order"]
    before: List[str] = []
    for index, phase, ready in rows:
        if phase.startswith("churn_") and int(phase[6:]) < len(order):
            yield index, order[int(phase[6:])], before, ready
        before = ready


def requested_is_resident(experiment: Record) -> Iterator[Fault]:
    """The requested alias is resident after its request, and no other has appeared."""
    for rows in listings(experiment).values():
        for index, alias, before, ready in _churn(experiment, rows):
            if alias not in ready:
                yield Fault(_place(index), ", ".join(ready) or "none", "%s, just requested" % alias)
            for other in sorted(set(ready) - set(before) - {alias}):
                yield Fault(_place(index), show(other), "nothing new but %s" % alias)


def least_recent_is_evicted(experiment: Record) -> Iterator[Fault]:
    """A request evicts at most one alias, only to make room for its own, and the least recently used of the dynamic."""
    pinned = set(experiment["protocol"]["preloaded_pinned_aliases"])
    for rows in listings(experiment).values():
        used: Dict[str, int] = {}
        for turn, (index, alias, before, ready) in enumerate(_churn(experiment, rows)):
            gone = sorted(set(before) - set(ready))
            allowed = 0 if alias in before else 1
            if len(gone) > allowed:
                yield Fault(_place(index), "%d evicted" % len(gone), "at most %d" % allowed)
            # what was not requested since the churn began was used before it, in an order that is not known
            others = [used.get(one, -1) for one in before if one not in pinned]
            for one in gone:
                if one not in pinned and used.get(one, -1) > min(others):
                    yield Fault(_place(index), "%s evicted" % one, "the least recently used")
            used[alias] = turn


def served_again(experiment: Record) -> Dict[str, Set[str]]:
    """Kind -> dynamic aliases that left a listing and were resident after a later request for them."""
    found: Dict[str, Set[str]] = {}
    for kind, rows in listings(experiment).items():
        evicted: Set[str] = set()
        again = found.setdefault(kind, set())
        for _, alias, before, ready in _churn(experiment, rows):
            if alias in evicted and alias in ready:
                again.add(alias)
            evicted |= set(before) - set(ready)
    return found


def evicted_are_served_again(experiment: Record) -> Iterator[Fault]:
    """Every dynamic alias was evicted and served again, by the listings of every kind."""
    measured = experiment["measurements"]["dynamic_aliases_evicted_and_served_again"]
    for kind, again in served_again(experiment).items():
        expected = sorted(again)
        place = "/measurements/dynamic_aliases_evicted_and_served_again"
        yield from differ(place, ", ".join(measured), ", ".join(expected), "by the listings of " + kind)
    if sorted(measured) != sorted(experiment["protocol"]["dynamic_aliases"]):
        yield Fault(
            "/protocol/dynamic_aliases", ", ".join(experiment["protocol"]["dynamic_aliases"]), ", ".join(measured)
        )


def cold_loads_are_of_loaded(experiment: Record) -> Iterator[Fault]:
    """The aliases told 503 first are those that were loaded at run time; the refused ones those evicted."""
    measured = experiment["measurements"]
    loaded: Set[str] = set()
    gone: Set[str] = set()
    for rows in listings(experiment).values():
        before: List[str] = rows[0][2]
        for _, _, ready in rows[1:]:
            loaded |= set(ready) - set(before)
            gone |= set(before) - set(ready)
            before = ready
    for key, expected in (("cold_loading_503_then_success_aliases", loaded), ("evicted_aliases_refused", gone)):
        if measured.get(key):
            yield from differ(
                "/measurements/" + key, ", ".join(sorted(measured[key])), ", ".join(sorted(expected)), "by the listings"
            )


def undeclared_is_refused(experiment: Record) -> Iterator[Fault]:
    """An undeclared adapter is refused as the caller's fault: 400, 404 or 422."""
    found = experiment["measurements"]["undeclared_adapter_status"]
    if found not in (400, 404, 422):
        yield Fault("/measurements/undeclared_adapter_status", show(found), "400, 404 or 422")


def slots_hold_both(experiment: Record) -> Iterator[Fault]:
    """Both adapters in one forward need two slots, and slots are no more than the capacity."""
    slots = experiment["protocol"].get("actual_generation_gpu_slots")
    if slots is None:
        return
    if "successful_forwards_containing_both_a_and_b" in experiment["measurements"] and slots < 2:
        yield Fault("/protocol/actual_generation_gpu_slots", show(slots), "at least 2, both were in one forward")
    capacity = experiment["protocol"]["ready_adapter_capacity"]
    if slots > capacity:
        yield Fault("/protocol/actual_generation_gpu_slots", show(slots), "at most the capacity of %d" % capacity)


def vectors_have_a_shape(experiment: Record) -> Iterator[Fault]:
    """Embedding figures come with the shape of the raw vectors, two sides, and only where an embedding model ran."""
    embedding = "embedding" in experiment["protocol"]["engine_runs"]
    shape = experiment["protocol"].get("embedding_raw_vector_shape")
    if embedding != (shape is not None):
        yield Fault("/protocol/embedding_raw_vector_shape", show(str(shape)), "a shape exactly with embeddings")
    if shape is not None and len(shape) != 2:
        yield Fault("/protocol/embedding_raw_vector_shape", "%d sides" % len(shape), "2: texts, dimensions")


def figures_come_whole(experiment: Record) -> Iterator[Fault]:
    """The effects, drifts and thresholds of each kind that ran are there, all of them."""
    runs, measured = experiment["protocol"]["engine_runs"], experiment["measurements"]
    needed: List[str] = []
    if "embedding" in runs:
        needed += [
            "embedding_%s_max_abs" % name
            for name in (
                "a_vs_b",
                "a_vs_warm_base",
                "b_vs_warm_base",
                "warm_repeat",
                "reset_after_a_b",
                "reset_after_churn",
            )
        ]
    if "generation" in runs:
        needed += ["warm_base_generation_text_restored", "observed_warm_generation_probability_delta"]
    if any(PROBABILITY % name in measured for name in ("a_vs_b", "a_vs_warm_base", "b_vs_warm_base")):
        needed += [
            PROBABILITY % name
            for name in ("a_vs_b", "a_vs_warm_base", "b_vs_warm_base", "warm_repeat", "reset_after_churn")
        ]
    for key in needed:
        if key not in measured:
            yield Fault("/measurements/" + key, "nothing", "the figure of a kind that ran")
    thresholds = experiment["protocol"]["effect_thresholds"]
    for kind, key in (
        ("embedding", "embedding_max_abs"),
        ("generation", "generation_first_token_probability_lower_bound"),
    ):
        if kind in runs and key not in thresholds:
            yield Fault("/protocol/effect_thresholds/" + key, "nothing", "the threshold of a kind that ran")


def _effects(experiment: Record, stem: str) -> Iterator[Tuple[str, Any]]:
    for name in ("a_vs_b", "a_vs_warm_base", "b_vs_warm_base"):
        key = stem % name
        if key in experiment["measurements"]:
            yield key, experiment["measurements"][key]


def _families(experiment: Record) -> Iterator[Tuple[str, str, List[Tuple[str, Any]]]]:
    """(stem of the keys, key of the threshold, control drifts with their places) of both kinds."""
    measured, controls = experiment["measurements"], experiment["controls"]
    for stem, threshold, cold in (
        ("embedding_%s_max_abs", "embedding_max_abs", "cold_vs_warm_embedding_max_abs"),
        (
            PROBABILITY,
            "generation_first_token_probability_lower_bound",
            "cold_vs_warm_chat_max_observed_chosen_probability_delta",
        ),
    ):
        drifts = [
            (stem % name, measured.get(stem % name)) for name in ("warm_repeat", "reset_after_a_b", "reset_after_churn")
        ]
        drifts.append((cold, controls.get(cold)))
        if stem == PROBABILITY:
            drifts.append(
                (
                    "observed_warm_generation_probability_delta",
                    measured.get("observed_warm_generation_probability_delta"),
                )
            )
        yield stem, threshold, [(key, value) for key, value in drifts if value is not None]


def effects_are_above_threshold(experiment: Record) -> Iterator[Fault]:
    """Every effect (a against b, a and b against the warm base) is above its threshold, and the threshold above 0."""
    for stem, threshold, _ in _families(experiment):
        limit = experiment["protocol"]["effect_thresholds"].get(threshold)
        for key, value in _effects(experiment, stem):
            if limit is None or limit <= 0 or value <= limit:
                yield Fault("/measurements/" + key, show(value), "above the threshold %s, itself above 0" % limit)
        if limit is not None and limit <= 0:
            yield Fault("/protocol/effect_thresholds/" + threshold, show(limit), "above 0")


def effects_are_above_drift(experiment: Record) -> Iterator[Fault]:
    """Every effect is above the stated multiple of each control drift."""
    multiple = experiment["protocol"]["effect_thresholds"]["effect_vs_control_drift_multiplier"]
    for stem, _, drifts in _families(experiment):
        for key, value in _effects(experiment, stem):
            for drift, size in drifts:
                if value <= multiple * size:
                    yield Fault(
                        "/measurements/" + key, show(value), "above %s x %s = %s" % (multiple, drift, multiple * size)
                    )


def effects_are_one_geometry(experiment: Record) -> Iterator[Fault]:
    """The three distances between a, b and the base obey the triangle inequality, each way."""
    for stem, _, _ in _families(experiment):
        sides = dict(_effects(experiment, stem))
        if len(sides) == 3:
            for key, value in sides.items():
                rest = sum(other for name, other in sides.items() if name != key)
                if value > rest:
                    yield Fault("/measurements/" + key, show(value), "at most the other two together, %s" % rest)


def drift_limits(experiment: Record) -> Dict[str, Decimal]:
    """The limits that `base_comparison` states: probability drift and raw embedding drift."""
    text = experiment["protocol"]["base_comparison"]
    found = re.findall(r"(probability|embedding) drift < ([0-9]+(?:\.[0-9]+)?(?:e-?[0-9]+)?)", text)
    return {kind: Decimal(number) for kind, number in found}


def drifts_are_below_limits(experiment: Record) -> Iterator[Fault]:
    """The warm base drifted less than the stated limits, on repetition and after each reset."""
    limits, measured = drift_limits(experiment), experiment["measurements"]
    for kind, keys in (
        (
            "embedding",
            ["embedding_%s_max_abs" % name for name in ("warm_repeat", "reset_after_a_b", "reset_after_churn")],
        ),
        (
            "probability",
            ["observed_warm_generation_probability_delta"]
            + [PROBABILITY % name for name in ("warm_repeat", "reset_after_churn")],
        ),
    ):
        for key in keys:
            if key in measured and kind not in limits:
                yield Fault("/protocol/base_comparison", "no limit of the %s drift" % kind, "`%s drift < LIMIT`" % kind)
            elif key in measured and measured[key] >= limits[kind]:
                yield Fault("/measurements/" + key, show(measured[key]), "below %s" % limits[kind])
