"""What must be true of a co-residency experiment: rounds, device memory, reservations, eviction under pressure.

The samples are taken after each response. `..._with_both_models` are the figures of the last sample, when all models
of the rounds are resident. used = total - free; GiB = used / 2^30; the reservation of a model is one figure
throughout; forced pressure lies below the next load's reservation.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Dict, Iterator, List

from checking.rules.lifecycle_record import Record, differ, model_names
from checking.rules.lifecycle_shape import Fault, pointer, show

ORDER = ["unloaded", "ballast_taken", "load_requested", "evicted", "load_started", "served", "ballast_released"]


def rounds_hold_their_requests(experiment: Record) -> Iterator[Fault]:
    """Samples = rounds x requests a round x runs; rounds count from 0 without a gap, each with equally many."""
    protocol, samples = experiment["protocol"], experiment["selected_samples"]
    rounds: Dict[int, int] = {}
    for sample in samples:
        rounds[sample["round"]] = rounds.get(sample["round"], 0) + 1
    order = [sample["round"] for sample in samples]
    if order != sorted(order) or sorted(rounds) != list(range(len(rounds))):
        yield Fault("/selected_samples", "rounds %s" % order, "rounds in order from 0")
    yield from differ(
        "/protocol/co_residency_rounds", protocol["co_residency_rounds"], len(rounds), "rounds of samples"
    )
    for number, count in sorted(rounds.items()):
        if count != protocol["requests_per_round"]:
            found = "%d samples in round %d" % (count, number)
            yield Fault("/protocol/requests_per_round", show(protocol["requests_per_round"]), found)


def requests_are_counted(experiment: Record) -> Iterator[Fault]:
    """Successful requests = rounds x requests a round x runs = samples."""
    protocol = experiment["protocol"]
    expected = protocol["co_residency_rounds"] * protocol["requests_per_round"] * protocol["recorded_completed_runs"]
    found = experiment["measurements"]["successful_guard_requests"]
    yield from differ("/measurements/successful_guard_requests", found, expected, "rounds x requests x runs")
    yield from differ("/measurements/successful_guard_requests", found, len(experiment["selected_samples"]), "samples")


def rounds_alternate(experiment: Record) -> Iterator[Fault]:
    """Within a round each co-resident model answers once, in the same order in every round."""
    order: List[str] = []
    for number, sample in enumerate(experiment["selected_samples"]):
        if sample["model"] not in model_names(experiment):
            yield Fault("/selected_samples/%d/model" % number, show(sample["model"]), "a model of the experiment")
        if sample["round"] == 0:
            if sample["model"] in order:
                yield Fault("/selected_samples/%d/model" % number, show(sample["model"]), "each model once a round")
            order.append(sample["model"])
        elif order:
            expected = order[number % len(order)]
            yield from differ("/selected_samples/%d/model" % number, sample["model"], expected, "as in round 0")


def residents_are_counted(experiment: Record) -> Iterator[Fault]:
    """A sample counts as many resident models as it lists reservations; the one that answered is among them."""
    names, before = model_names(experiment), 0
    for number, sample in enumerate(experiment["selected_samples"]):
        place = "/selected_samples/%d" % number
        held = sample["admission_reservations_bytes"]
        yield from differ(place + "/resident_model_count", sample["resident_model_count"], len(held), "reservations")
        if sample["model"] not in held:
            yield Fault(place + "/admission_reservations_bytes", ", ".join(held), "one for %s" % sample["model"])
        for name in held:
            if name not in names:
                yield Fault(pointer(place + "/admission_reservations_bytes", name), show(name), "a model's name")
        if sample["resident_model_count"] < before:
            found = show(sample["resident_model_count"])
            yield Fault(place + "/resident_model_count", found, "at least %d: models stay resident" % before)
        before = max(before, sample["resident_model_count"])
        if sample["round"] and sample["resident_model_count"] != before:
            yield Fault(place + "/resident_model_count", show(sample["resident_model_count"]), "all of them")


def residents_are_all(experiment: Record) -> Iterator[Fault]:
    """The co-resident models are those of the last sample, at least two, and from round 1 on all are there."""
    samples, found = experiment["selected_samples"], experiment["measurements"]["co_resident_models"]
    expected = samples[-1]["resident_model_count"]
    yield from differ("/measurements/co_resident_models", found, expected, "resident in the last sample")
    yield from differ(
        "/measurements/co_resident_models", found, len({one["model"] for one in samples}), "that answered"
    )
    if found < 2:
        yield Fault("/measurements/co_resident_models", show(found), "at least two")
    for number, sample in enumerate(samples):
        if sample["round"] and sample["resident_model_count"] != found:
            yield Fault(
                "/selected_samples/%d/resident_model_count" % number, show(sample["resident_model_count"]), show(found)
            )


def reservations_stay(experiment: Record) -> Iterator[Fault]:
    """A model's admission reservation is one figure in all samples, positive, and all fit the device together."""
    known: Dict[str, int] = {}
    total = experiment["hardware"]["reported_device_total_bytes"]
    for number, sample in enumerate(experiment["selected_samples"]):
        place = "/selected_samples/%d/admission_reservations_bytes" % number
        for name, value in sample["admission_reservations_bytes"].items():
            yield from differ(pointer(place, name), value, known.setdefault(name, value), "as in the samples before")
            if value <= 0:
                yield Fault(pointer(place, name), show(value), "more than 0")
        if sum(sample["admission_reservations_bytes"].values()) > total:
            yield Fault(
                place, show(sum(sample["admission_reservations_bytes"].values())), "at most the device's %d" % total
            )


def reservations_sum(experiment: Record) -> Iterator[Fault]:
    """The sum of the reservations is that of the last sample."""
    expected = sum(experiment["selected_samples"][-1]["admission_reservations_bytes"].values())
    found = experiment["measurements"]["sum_admission_reservations_bytes"]
    yield from differ("/measurements/sum_admission_reservations_bytes", found, expected, "the sum in the last sample")


def free_is_that_of_the_samples(experiment: Record) -> Iterator[Fault]:
    """The free bytes with all models are those of the last sample."""
    expected = experiment["selected_samples"][-1]["device_free_bytes"]
    found = experiment["measurements"]["device_free_bytes_with_both_models"]
    yield from differ("/measurements/device_free_bytes_with_both_models", found, expected, "the last sample's")


def samples_fit_the_device(experiment: Record) -> Iterator[Fault]:
    """Free bytes lie between 0 and the total, never 0 used, and another resident model leaves fewer of them."""
    total = experiment["hardware"]["reported_device_total_bytes"]
    samples = experiment["selected_samples"]
    least: Dict[int, int] = {}
    for number, sample in enumerate(samples):
        free, count = sample["device_free_bytes"], sample["resident_model_count"]
        place = "/selected_samples/%d/device_free_bytes" % number
        if not 0 < free < total:
            yield Fault(place, show(free), "between 0 and the device's %d, both left out" % total)
        for fewer, value in least.items():
            if fewer < count and free >= value:
                yield Fault(place, show(free), "below %d, what was free with %d models" % (value, fewer))
        least[count] = min(free, least.get(count, free))


def used_is_total_minus_free(experiment: Record) -> Iterator[Fault]:
    """Used bytes = the device's total - free bytes."""
    measured = experiment["measurements"]
    total = experiment["hardware"]["reported_device_total_bytes"]
    expected = total - measured["device_free_bytes_with_both_models"]
    found = measured["device_used_bytes_with_both_models"]
    yield from differ("/measurements/device_used_bytes_with_both_models", found, expected, "total - free")


def gib_is_from_bytes(experiment: Record) -> Iterator[Fault]:
    """The GiB are the used bytes / 2^30, to the last digit of a double."""
    measured = experiment["measurements"]
    found, used = measured["device_used_gib_with_both_models"], measured["device_used_bytes_with_both_models"]
    if Fraction(float(found)) != Fraction(used / 2**30):
        yield Fault("/measurements/device_used_gib_with_both_models", show(found), "%r, bytes / 2^30" % (used / 2**30))


def capacities_are_the_budgets(experiment: Record) -> Iterator[Fault]:
    """The KV token capacity of each model equals its budget, and no other model is listed."""
    budgets = {one["model"]: one["kv_token_budget"] for one in experiment["models"] if "kv_token_budget" in one}
    found: Dict[str, Any] = experiment["measurements"]["kv_token_capacities"]
    place = "/measurements/kv_token_capacities"
    for name in sorted(set(found) | set(budgets)):
        yield from differ(pointer(place, name), found.get(name), budgets.get(name), "the model's KV token budget")


def pressure_is_below_the_reservation(experiment: Record) -> Iterator[Fault]:
    """Forced pressure left some free memory, less than the next load's reservation and than the models left free."""
    measured = experiment["measurements"]
    free, place = measured["forced_pressure_free_bytes"], "/measurements/forced_pressure_free_bytes"
    if not 0 < free < measured["next_load_reservation_bytes"]:
        expected = "between 0 and the reservation of %d, both left out" % measured["next_load_reservation_bytes"]
        yield Fault(place, show(free), expected)
    if free >= measured["device_free_bytes_with_both_models"]:
        yield Fault(place, show(free), "less than without the ballast")


def reservations_of(experiment: Record) -> Dict[str, int]:
    """Model name -> admission reservation, from the samples."""
    known: Dict[str, int] = {}
    for sample in experiment["selected_samples"]:
        known.update(sample["admission_reservations_bytes"])
    return known


def next_load_is_a_model(experiment: Record) -> Iterator[Fault]:
    """The next load's reservation is that of the model it loads, or of one of the models where it is not named."""
    known, found = reservations_of(experiment), experiment["measurements"]["next_load_reservation_bytes"]
    place = "/measurements/next_load_reservation_bytes"
    name = experiment["protocol"].get("next_load_model")
    if name is not None and name not in model_names(experiment):
        yield Fault("/protocol/next_load_model", show(name), "a model of the experiment")
    elif name in known:
        yield from differ(place, found, known[name], "the reservation of %s" % name)
    elif name is None and found not in known.values():
        yield Fault(place, show(found), "the reservation of a model in the samples")
    if found > experiment["hardware"]["reported_device_total_bytes"]:
        yield Fault(place, show(found), "at most the device's total")


def pressure_is_in_order(experiment: Record) -> Iterator[Fault]:
    """Unload, ballast, request, eviction, load, answer, release: in that order, at times that never go back."""
    events = experiment.get("selected_pressure_events", [])
    names = [event["event"] for event in events]
    if events and [ORDER.index(name) for name in names] != sorted(ORDER.index(name) for name in names):
        yield Fault("/selected_pressure_events", " ".join(names), "the order %s" % " ".join(ORDER))
    for needed in ORDER[:6]:
        if events and needed not in names:
            yield Fault("/selected_pressure_events", "no %s" % needed, "each of %s" % " ".join(ORDER[:6]))
    before = None
    for number, event in enumerate(events):
        if before is not None and event["seconds_after_pressure_began"] < before:
            place = "/selected_pressure_events/%d/seconds_after_pressure_began" % number
            yield Fault(place, show(event["seconds_after_pressure_began"]), "at least %s" % before)
        before = event["seconds_after_pressure_began"]
    if events:
        yield from differ(
            "/selected_pressure_events/0/seconds_after_pressure_began", events[0]["seconds_after_pressure_began"], 0
        )


def _at(experiment: Record, name: str) -> Iterator[Any]:
    for number, event in enumerate(experiment.get("selected_pressure_events", [])):
        if event["event"] == name:
            yield "/selected_pressure_events/%d" % number, event


def pressure_figures_are_the_events(experiment: Record) -> Iterator[Fault]:
    """The free bytes under pressure are those when the ballast was taken; the evicted models those of the events."""
    measured = experiment["measurements"]
    for place, event in _at(experiment, "ballast_taken"):
        found = measured["forced_pressure_free_bytes"]
        yield from differ(
            "/measurements/forced_pressure_free_bytes", found, event["device_free_bytes"], "as in " + place
        )
    evicted = [event.get("model") for _, event in _at(experiment, "evicted")]
    if "selected_pressure_events" in experiment:
        yield from differ("/measurements/evicted_models", measured.get("evicted_models"), evicted, "the events'")
    total = experiment["hardware"]["reported_device_total_bytes"]
    events = experiment.get("selected_pressure_events", [])
    for number, event in enumerate(events):
        if not 0 < event["device_free_bytes"] < total:
            place = "/selected_pressure_events/%d/device_free_bytes" % number
            yield Fault(place, show(event["device_free_bytes"]), "between 0 and the device's %d" % total)
    if evicted and "eviction_freed_device_bytes" in measured:
        before = [event for _, event in _at(experiment, "load_requested")] + [
            event for _, event in _at(experiment, "ballast_taken")
        ]
        after = [event for _, event in _at(experiment, "evicted")][-1]
        if before:
            expected = after["device_free_bytes"] - before[0]["device_free_bytes"]
            found = measured["eviction_freed_device_bytes"]
            yield from differ("/measurements/eviction_freed_device_bytes", found, expected, "free after - free before")


def eviction_comes_before_the_load(experiment: Record) -> Iterator[Fault]:
    """An evicted model was resident and is not any more, the loaded one is at last, and memory sufficed for it."""
    events, residents = experiment.get("selected_pressure_events", []), None
    loaded = experiment["protocol"].get("next_load_model")
    for number, event in enumerate(events):
        place = "/selected_pressure_events/%d" % number
        now = event["resident_models"]
        if event["event"] == "evicted":
            if residents is not None and (event.get("model") not in residents or event.get("model") in now):
                yield Fault(place + "/model", show(event.get("model")), "a model resident before and not after")
            if loaded in now:
                yield Fault(place + "/resident_models", show(loaded), "not resident before the eviction ended")
        if event["event"] == "load_started":
            needed = experiment["measurements"]["next_load_reservation_bytes"]
            if event["device_free_bytes"] < needed:
                yield Fault(
                    place + "/device_free_bytes",
                    show(event["device_free_bytes"]),
                    "at least the reservation of %d" % needed,
                )
        if event["event"] == "served" and (event.get("model") != loaded or loaded not in now):
            yield Fault(place + "/model", show(event.get("model")), "%s, resident" % show(loaded))
        residents = now


def pin_is_kept(experiment: Record) -> Iterator[Fault]:
    """The pinned model is resident in every listing and was never evicted."""
    pinned = experiment["protocol"].get("pinned_model")
    events = experiment.get("selected_pressure_events", [])
    if events and pinned not in model_names(experiment):
        yield Fault("/protocol/pinned_model", show(pinned), "a model of the experiment")
    for number, event in enumerate(events):
        place = "/selected_pressure_events/%d" % number
        if pinned not in event["resident_models"]:
            yield Fault(
                place + "/resident_models", ", ".join(event["resident_models"]) or "none", "%s, pinned" % pinned
            )
        if event["event"] == "evicted" and event.get("model") == pinned:
            yield Fault(place + "/model", show(pinned), "a model that is not pinned")
