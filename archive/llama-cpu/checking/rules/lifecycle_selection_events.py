"""Raw events of a run in which requests selected adapters, read again: what its record must say."""

from __future__ import annotations

from decimal import Context, Decimal
from itertools import combinations
from typing import Any, Dict, List, Set

from checking.rules.lifecycle_events import Events, EventsFault, Part, apart, of

EXACT = Context(prec=60)
TWELVE = Decimal("1e-12")


def vectors_apart(one: List[List[Any]], other: List[List[Any]]) -> Any:
    """The largest difference of two values at one place, over all texts."""
    if [len(row) for row in one] != [len(row) for row in other]:
        raise EventsFault("the events", "vectors of several shapes", "one shape")
    return max(abs(Decimal(left) - right) for row, its in zip(one, other) for left, right in zip(row, its))


def cosines(one: List[List[Any]], other: List[List[Any]]) -> List[Decimal]:
    """One minus the cosine of each text's two vectors, to twelve decimals."""
    found = []
    for row, its in zip(one, other):
        dot = sum((EXACT.multiply(left, right) for left, right in zip(row, its)), Decimal(0))
        size = EXACT.multiply(sum(value * value for value in row), sum(value * value for value in its))
        distance = EXACT.subtract(Decimal(1), EXACT.divide(dot, EXACT.sqrt(size)))
        found.append(abs(distance.quantize(TWELVE, context=EXACT)))
    return found


def derive_selection(events: Events) -> Part:
    """Turns, effects, drifts, and what became of the undeclared adapter."""
    first = events[0]
    asked, embeds = first["settings"], first["kind"] == "embedding"
    good = list(of(events, "response", status=200))
    by_phase = {event["phase"]: event for event in good}
    key = "vectors" if embeds else "first_token_probabilities"
    far: Any = vectors_apart if embeds else apart
    base = by_phase["warm-base-2"][key]
    order = asked["selection_order"]
    resident = {event["phase"]: event["aliases"] for event in of(events, "resident")}
    turns: List[Dict[str, Any]] = []
    firsts: Dict[str, Any] = {}
    again: List[Any] = [Decimal(0)]
    for number, alias in enumerate(order):
        phase = "turn_%d" % number
        told = [event for event in of(events, "response", phase=phase) if event["alias"] == alias]
        value = by_phase[phase][key]
        turns.append(
            {
                "alias": alias,
                "statuses": [event["status"] for event in told],
                "resident_aliases": resident[phase],
                "effect": far(value, base),
            }
        )
        if alias in firsts:
            again.append(far(value, firsts[alias]))
        firsts.setdefault(alias, value)
    resets = ["reset_%d" % number for number in range(len(order))] + ["warm-base-last"]
    known = ["warm-base-1"] + resets
    answers = [event[key] for event in good if event["phase"] == "undeclared"]
    statuses = [event["status"] for event in of(events, "undeclared")]
    outcome = "answered-by-base" if answers else "never-ready" if 503 in statuses else "refused"
    gone: Set[str] = set()
    back: Set[str] = set()
    before: List[str] = resident["initial"]
    for turn in turns:
        back |= {turn["alias"]} & gone
        gone |= set(before) - set(turn["resident_aliases"])
        before = turn["resident_aliases"]
    processes = {(event["pid"], event["started_ticks"]) for event in of(events, "resident")}
    measured: Dict[str, Any] = {
        "engine_pid_stable": len(processes) == 1 and None not in next(iter(processes)),
        "requests_answered": sum(bool(event["answered"]) and event["phase"] != "undeclared" for event in good),
        "effect_vs_warm_base": {alias: far(value, base) for alias, value in firsts.items()},
        "smallest_effect_between_aliases": min(far(one, two) for one, two in combinations(firsts.values(), 2)),
        "repeat_drift": max(again),
        "warm_repeat_drift": far(by_phase["warm-base-1"][key], base),
        "reset_drift": max(far(by_phase[phase][key], base) for phase in resets),
        "cold_loading_503_then_success_aliases": sorted({turn["alias"] for turn in turns if len(turn["statuses"]) > 1}),
        "evicted_and_served_again": sorted(back),
        "undeclared_adapter": {
            "statuses": statuses,
            "outcome": outcome,
            "distance_to_warm_base": max(far(value, base) for value in answers) if answers else None,
            "evicted": sorted(set(before) - set(resident["after-undeclared"])),
        },
    }
    protocol: Dict[str, Any] = {
        "adapter_residency": first["residency"],
        "declared_aliases": asked["declared_aliases"],
        "selection_order": order,
        "resident_adapter_capacity": asked["resident_adapter_capacity"],
        "fixture_seeds": asked["fixture_seeds"],
        "harness_deadline_s": asked["harness_deadline_s"],
    }
    if embeds:
        protocol["embedding_raw_vector_shape"] = [len(base), len(base[0])]
        measured["cosine_distance_vs_warm_base"] = {a: min(cosines(value, base)) for a, value in firsts.items()}
        measured["largest_control_cosine_distance"] = max(
            max(cosines(by_phase[phase]["vectors"], base)) for phase in known
        )
    else:
        protocol["request_seed"] = asked["request_seed"]
        words = {by_phase[phase]["text_sha256"] for phase in known + ["warm-base-2"]}
        measured["base_text_restored"] = len(words) == 1
    return {
        "protocol": protocol,
        "measurements": measured,
        "selected_turns": turns,
        "resident_at_first": resident["initial"],
        "controls": {"cold_vs_warm": far(by_phase["cold-base"][key], base)},
    }
