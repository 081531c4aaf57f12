"""What must be true of adapters that a request selects: no list that a caller steers, no pins, no refusal of the gone.

`fixed`: every adapter is there from start to end. `server`: the first request loads it (503, then 200), and the server
evicts the least recently used one; who is resident is told by a second source (`residency_source`) than the statuses,
and the two must agree. The base is asked after every turn, so its drift is the control of every effect.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, Dict, Iterator, List, Set, Tuple

from checking.rules.lifecycle_record import Record, differ
from checking.rules.lifecycle_shape import Fault, pointer, show

TURNS = "/selected_turns"
DRIFTS = ("warm_repeat_drift", "reset_drift", "repeat_drift")
MEASURES = {"embedding": "embedding-max-abs", "generation": "first-token-probability"}


def _turn(number: int, key: str) -> str:
    return "%s/%d/%s" % (TURNS, number, key)


def _embeds(experiment: Record) -> bool:
    return bool(experiment["protocol"]["effect_measure"] == "embedding-max-abs")


def selection_is_of_one_model(experiment: Record) -> Iterator[Fault]:
    """One model of one kind, measured as its kind is; vectors come with a shape, texts and tokens with a seed."""
    protocol, models = experiment["protocol"], experiment["models"]
    yield from differ("/models", len(models), 1, "one model")
    expected = MEASURES.get(str(models[0].get("kind")), "a kind of the model")
    yield from differ("/protocol/effect_measure", protocol["effect_measure"], expected, "the model's kind")
    measured, embeds = experiment["measurements"], _embeds(experiment)
    for key, where, wanted in (
        ("embedding_raw_vector_shape", protocol, embeds),
        ("request_seed", protocol, not embeds),
        ("temperature", protocol, not embeds),
        ("cosine_distance_vs_warm_base", measured, embeds),
        ("largest_control_cosine_distance", measured, embeds),
        ("base_text_restored", measured, not embeds),
    ):
        if (key in where) != wanted:
            room = "/protocol/" if where is protocol else "/measurements/"
            yield Fault(room + key, "there" if key in where else "nothing", "it with the other kind of model alone")
    shape = protocol.get("embedding_raw_vector_shape", [1, 1])
    if len(shape) != 2:
        yield Fault("/protocol/embedding_raw_vector_shape", "%d sides" % len(shape), "2: texts, dimensions")


def selection_aliases_are_declared(experiment: Record) -> Iterator[Fault]:
    """Each declared alias has a seed of its own and an effect, is selected at least twice, and no other is named."""
    protocol, measured = experiment["protocol"], experiment["measurements"]
    declared = protocol["declared_aliases"]
    words = ", ".join(sorted(declared))
    yield from differ("/protocol/fixture_seeds", ", ".join(sorted(protocol["fixture_seeds"])), words, "a seed each")
    values = list(protocol["fixture_seeds"].values())
    for number, (alias, seed) in enumerate(protocol["fixture_seeds"].items()):
        if seed in values[:number]:
            yield Fault(pointer("/protocol/fixture_seeds", alias), show(seed), "a seed of its own")
    for key in ("effect_vs_warm_base", "cosine_distance_vs_warm_base"):
        if key in measured:
            yield from differ("/measurements/" + key, ", ".join(sorted(measured[key])), words, "an effect each")
    order = protocol["selection_order"]
    for alias in declared:
        if order.count(alias) < 2:
            yield Fault("/protocol/selection_order", "%s %d times" % (alias, order.count(alias)), "twice or more")
    for number, alias in enumerate(order):
        if alias not in declared:
            yield Fault("/protocol/selection_order/%d" % number, show(alias), "a declared alias")
    rows = [("/resident_at_first", experiment["resident_at_first"])]
    rows += [
        (_turn(n, "resident_aliases"), one["resident_aliases"]) for n, one in enumerate(experiment["selected_turns"])
    ]
    for place, names in rows:
        if names != sorted(set(names) & set(declared)):
            yield Fault(place, ", ".join(names), "declared aliases alone, sorted, none twice")


def turns_are_the_order(experiment: Record) -> Iterator[Fault]:
    """There is a turn for each entry of the order, of its alias, and every turn ends with an answer."""
    order, turns = experiment["protocol"]["selection_order"], experiment["selected_turns"]
    yield from differ(TURNS, len(turns), len(order), "the entries of the order")
    for number, (alias, turn) in enumerate(zip(order, turns)):
        yield from differ(_turn(number, "alias"), turn["alias"], alias, "by the order")
        statuses = turn["statuses"]
        if statuses[-1] != 200 or any(one != 503 for one in statuses[:-1]):
            yield Fault(_turn(number, "statuses"), " ".join(map(str, statuses)), "503 any number of times, then 200")


def requests_are_counted(experiment: Record) -> Iterator[Fault]:
    """Answers: three of the base first, one of an adapter and one of the base a turn, one of the base last."""
    expected = 4 + 2 * len(experiment["selected_turns"])
    yield from differ(
        "/measurements/requests_answered", experiment["measurements"]["requests_answered"], expected, "by the turns"
    )


def _walk(experiment: Record) -> Iterator[Tuple[int, Dict[str, Any], List[str]]]:
    """(number, turn, residents before it)."""
    before = experiment["resident_at_first"]
    for number, turn in enumerate(experiment["selected_turns"]):
        yield number, turn, before
        before = turn["resident_aliases"]


def residency_agrees_with_statuses(experiment: Record) -> Iterator[Fault]:
    """A turn is cold (503 first) exactly when its alias was not resident before it, and it is resident after it."""
    for number, turn, before in _walk(experiment):
        cold = len(turn["statuses"]) > 1
        if cold == (turn["alias"] in before):
            told = "503 first" if cold else "200 at once"
            expected = "200 at once" if turn["alias"] in before else "503 first"
            yield Fault(
                _turn(number, "statuses"), told, "%s: resident were %s" % (expected, ", ".join(before) or "none")
            )
        if turn["alias"] not in turn["resident_aliases"]:
            yield Fault(
                _turn(number, "resident_aliases"),
                ", ".join(turn["resident_aliases"]) or "none",
                "%s, just answered" % turn["alias"],
            )


def residency_is_its_kind(experiment: Record) -> Iterator[Fault]:
    """Fixed: all declared aliases always. Server: within the capacity, one new a turn, the least recently used goes."""
    protocol = experiment["protocol"]
    declared, capacity = sorted(protocol["declared_aliases"]), protocol["resident_adapter_capacity"]
    fullest = len(experiment["resident_at_first"])
    if protocol["adapter_residency"] == "fixed" and experiment["resident_at_first"] != declared:
        yield Fault("/resident_at_first", ", ".join(experiment["resident_at_first"]) or "none", ", ".join(declared))
    used: Dict[str, int] = {}
    for number, turn, before in _walk(experiment):
        now, place = turn["resident_aliases"], _turn(number, "resident_aliases")
        fullest = max(fullest, len(now))
        if len(now) > capacity:
            yield Fault(place, "%d aliases" % len(now), "at most the capacity of %d" % capacity)
        for alias in sorted(set(now) - set(before) - {turn["alias"]}):
            yield Fault(place, show(alias), "nothing new but %s" % turn["alias"])
        gone = sorted(set(before) - set(now))
        if gone and (len(before) < capacity or turn["alias"] in before or len(gone) > 1):
            yield Fault(place, "%s evicted" % ", ".join(gone), "one at most, to make room at capacity")
        for alias in gone:
            if used.get(alias, -1) > min(used.get(one, -1) for one in before):
                yield Fault(place, "%s evicted" % alias, "the least recently used")
        used[turn["alias"]] = number
    yield from differ("/protocol/resident_adapter_capacity", capacity, fullest, "the fullest listing")


def _gone_and_again(experiment: Record) -> Tuple[Set[str], Set[str]]:
    """(aliases loaded cold, aliases evicted and answered again)."""
    cold: Set[str] = set()
    gone: Set[str] = set()
    again: Set[str] = set()
    for _, turn, before in _walk(experiment):
        if len(turn["statuses"]) > 1:
            cold.add(turn["alias"])
        if turn["alias"] in gone:
            again.add(turn["alias"])
        gone |= set(before) - set(turn["resident_aliases"])
    return cold, again


def evictions_are_the_turns(experiment: Record) -> Iterator[Fault]:
    """The aliases told 503 first, and those evicted and answered again, are those of the turns."""
    cold, again = _gone_and_again(experiment)
    for key, expected in (("cold_loading_503_then_success_aliases", cold), ("evicted_and_served_again", again)):
        found = ", ".join(experiment["measurements"][key])
        yield from differ("/measurements/" + key, found, ", ".join(sorted(expected)), "by the turns")


def effects_are_the_turns(experiment: Record) -> Iterator[Fault]:
    """An alias's effect is that of its first turn; its later ones differ by no more than the repeat drift."""
    measured = experiment["measurements"]
    first: Dict[str, Any] = {}
    for number, turn in enumerate(experiment["selected_turns"]):
        alias, effect = turn["alias"], turn["effect"]
        if alias not in first:
            first[alias] = effect
            stated = measured["effect_vs_warm_base"].get(alias)
            yield from differ(pointer("/measurements/effect_vs_warm_base", alias), stated, effect, "its first turn's")
        elif abs(effect - first[alias]) > measured["repeat_drift"]:
            yield Fault(
                _turn(number, "effect"),
                show(effect),
                "%s but for the repeat drift %s" % (first[alias], measured["repeat_drift"]),
            )


def selection_changes_the_answer(experiment: Record) -> Iterator[Fault]:
    """Every effect, and the smallest between two aliases, is above the bound and above the multiple of every drift."""
    measured, limits = experiment["measurements"], experiment["protocol"]["effect_thresholds"]
    drifts = [(key, measured[key]) for key in DRIFTS] + [("cold_vs_warm", experiment["controls"]["cold_vs_warm"])]
    effects = [
        (pointer("/measurements/effect_vs_warm_base", alias), value)
        for alias, value in measured["effect_vs_warm_base"].items()
    ]
    effects += [("/measurements/smallest_effect_between_aliases", measured["smallest_effect_between_aliases"])]
    bound, multiple = limits["effect_lower_bound"], limits["effect_vs_control_drift_multiplier"]
    if bound <= 0:
        yield Fault("/protocol/effect_thresholds/effect_lower_bound", show(bound), "above 0")
    for place, value in effects:
        if value <= bound:
            yield Fault(place, show(value), "above the bound %s" % bound)
        for key, drift in drifts:
            if value <= multiple * drift:
                yield Fault(place, show(value), "above %s x %s = %s" % (multiple, key, multiple * drift))


def aliases_are_one_geometry(experiment: Record) -> Iterator[Fault]:
    """The smallest distance between two aliases is at most the sum of the two smallest effects (triangle inequality)."""
    effects = sorted(experiment["measurements"]["effect_vs_warm_base"].values())
    found, most = experiment["measurements"]["smallest_effect_between_aliases"], sum(effects[:2])
    if found > most:
        yield Fault(
            "/measurements/smallest_effect_between_aliases", show(found), "at most %s, two effects together" % most
        )


def base_comes_back(experiment: Record) -> Iterator[Fault]:
    """The warm base's drift on repetition and after every turn, and a repeated adapter's, are below the stated limit."""
    text = experiment["protocol"]["base_comparison"]
    found = re.findall(r"drift < ([0-9]+(?:\.[0-9]+)?(?:e-?[0-9]+)?)", text)
    if len(found) != 1:
        yield Fault("/protocol/base_comparison", "%d limits" % len(found), "one `drift < LIMIT`")
        return
    for key in DRIFTS:
        if experiment["measurements"][key] >= Decimal(found[0]):
            yield Fault("/measurements/" + key, show(experiment["measurements"][key]), "below %s" % found[0])


def cosines_fit_the_distances(experiment: Record) -> Iterator[Fault]:
    """For unit vectors the cosine distance is half the squared distance: at most half of dimensions x max-abs squared.

    And every cosine distance is above the multiple of the largest that the control drifted.
    """
    measured = experiment["measurements"]
    if "cosine_distance_vs_warm_base" not in measured or "largest_control_cosine_distance" not in measured:
        return
    shape = experiment["protocol"].get("embedding_raw_vector_shape", [1, 1])
    multiple = experiment["protocol"]["effect_thresholds"]["effect_vs_control_drift_multiplier"]
    control = measured["largest_control_cosine_distance"]
    slack = Decimal("1e-6")  # the vectors are of unit length in single precision
    for alias, value in measured["cosine_distance_vs_warm_base"].items():
        place = pointer("/measurements/cosine_distance_vs_warm_base", alias)
        most = Decimal(shape[-1]) * Decimal(measured["effect_vs_warm_base"].get(alias, 0)) ** 2 / 2 + slack
        if value > most:
            yield Fault(place, show(value), "at most %s by the largest difference" % most)
        if value <= multiple * control:
            yield Fault(
                place, show(value), "above %s x largest_control_cosine_distance = %s" % (multiple, multiple * control)
            )
    drift = max(measured["warm_repeat_drift"], measured["reset_drift"])
    most = Decimal(shape[-1]) * Decimal(drift) ** 2 / 2 + slack
    if control > most:
        yield Fault("/measurements/largest_control_cosine_distance", show(control), "at most %s by the drifts" % most)


def undeclared_is_told_truly(experiment: Record) -> Iterator[Fault]:
    """What became of an undeclared adapter agrees with its statuses, and a limitation says it unless it was refused."""
    measured = experiment["measurements"]
    seen, place = measured["undeclared_adapter"], "/measurements/undeclared_adapter/"
    statuses, apart = seen["statuses"], seen["distance_to_warm_base"]
    if all(one == 200 for one in statuses):
        expected = "answered-by-base"
    elif all(one == 503 for one in statuses) and len(statuses) > 1:
        expected = "never-ready"
    elif all(one in (400, 404, 422) for one in statuses):
        expected = "refused"
    else:
        yield Fault(place + "statuses", " ".join(map(str, statuses)), "all 200, two or more 503, or all 400, 404, 422")
        return
    yield from differ(place + "outcome", seen["outcome"], expected, "by the statuses")
    if (apart is None) != (expected != "answered-by-base"):
        yield Fault(place + "distance_to_warm_base", show(apart), "a distance exactly where it was answered")
    elif apart is not None and apart > max(measured[key] for key in DRIFTS):
        yield Fault(place + "distance_to_warm_base", show(apart), "no more than the base drifted")
    last = experiment["selected_turns"][-1]["resident_aliases"]
    if not set(seen["evicted"]) <= set(last):
        yield Fault(place + "evicted", ", ".join(seen["evicted"]), "of the residents before: %s" % ", ".join(last))
    if expected != "refused" and not any("undeclared" in text for text in experiment["limitations"]):
        yield Fault("/limitations", "none of an undeclared adapter", "one that says that it was not refused")
