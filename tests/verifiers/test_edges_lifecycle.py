"""Lifecycle records at the edges of their rules: one figure of a record altered, and the exact faults told of it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from checking.reading import read_json
from checking.rules import lifecycle_coresidency as co
from checking.rules import lifecycle_crash as crash
from checking.rules import lifecycle_lora as lora
from checking.rules import lifecycle_raw as raw
from checking.rules import lifecycle_record as whole

PUBLISHED = read_json(Path("tests/vectors/lifecycle/published-record.json").read_bytes())
OWN = read_json(Path("archive/lifecycle-cpu/record.json").read_bytes())
Row = dict[str, Any]
GUARD, GRANITE = "Qwen/Qwen3Guard-Gen-4B", "ibm-granite/granite-guardian-3.0-2b"


def at(record: Any, path: str) -> tuple[Any, Any]:
    """(holder, last step) of a place in a record."""
    *steps, last = path.split("/")
    for step in steps:
        record = record[int(step)] if isinstance(record, list) else record[step]
    return record, int(last) if isinstance(record, list) else last


def altered(record: Row, *changes: tuple[str, Any] | Callable[[Row], object]) -> Row:
    """A copy with other values at places (... takes one away), or changed by a function."""
    made = copy.deepcopy(record)
    for change in changes:
        if callable(change):
            change(made)
            continue
        holder, step = at(made, change[0])
        if change[1] is ...:
            del holder[step]
        else:
            holder[step] = change[1](holder[step]) if callable(change[1]) else change[1]
    return made


def told(rule: Callable[[Row], Any], record: Row, *changes: Any) -> list[str]:
    assert list(rule(record)) == []
    return [f"{place}: {found}, {expected}" for place, found, expected in rule(altered(record, *changes))]


CO, CRASH, LORA = PUBLISHED["experiments"]
OWN_CO = next(one for _, one in whole.experiments(OWN, "co-residency"))
OWN_LORA = next(one for _, one in whole.experiments(OWN, "lora"))
M, P, S = "measurements/", "protocol/", "selected_samples/"


def more(value: Any) -> Any:
    return value + 1


def less(value: Any) -> Any:
    return value - 1


# Co-residency


@pytest.mark.parametrize(
    ("changes", "faults"),
    [
        ([(P + "co_residency_rounds", 4)], ["/protocol/co_residency_rounds: 4, 3, rounds of samples"]),
        ([(P + "requests_per_round", 3)], [f"/protocol/requests_per_round: 3, 2 samples in round {n}" for n in (0, 1, 2)]),
        ([(S + "5/round", 1)], [
            "/selected_samples: rounds [0, 0, 1, 1, 2, 1], rounds in order from 0",
            "/protocol/requests_per_round: 2, 3 samples in round 1", "/protocol/requests_per_round: 2, 1 samples in round 2"]),
        ([(S + "4/round", 3), (S + "5/round", 3)], ["/selected_samples: rounds [0, 0, 1, 1, 3, 3], rounds in order from 0"]),
    ],
)  # fmt: skip
def test_rounds_hold_their_requests(changes: list[Any], faults: list[str]) -> None:
    assert told(co.rounds_hold_their_requests, CO, *changes) == faults


def test_requests_are_rounds_times_requests_times_runs_and_the_samples() -> None:
    place = "/measurements/successful_guard_requests: "
    assert told(co.requests_are_counted, CO, (M + "successful_guard_requests", 7)) == [
        place + "7, 6, rounds x requests x runs", place + "7, 6, samples",
    ]  # fmt: skip
    assert told(co.requests_are_counted, CO, (P + "recorded_completed_runs", 2)) == [
        place + "6, 12, rounds x requests x runs"
    ]


def test_models_alternate_in_the_order_of_the_first_round() -> None:
    assert told(co.rounds_alternate, CO, (S + "3/model", GUARD)) == [
        f"/selected_samples/3/model: '{GUARD}', '{GRANITE}', as in round 0"
    ]
    assert told(co.rounds_alternate, CO, (S + "1/model", GUARD))[0] == (
        f"/selected_samples/1/model: '{GUARD}', each model once a round"
    )
    assert (
        told(co.rounds_alternate, CO, (S + "5/model", "x"))[0]
        == "/selected_samples/5/model: 'x', a model of the experiment"
    )


def test_residents_are_counted_and_stay() -> None:
    place = "/selected_samples/3/resident_model_count: "
    assert told(co.residents_are_counted, CO, (S + "3/resident_model_count", 3))[0] == place + "3, 2, reservations"
    assert told(co.residents_are_counted, CO, (S + "3/resident_model_count", 1)) == [
        place + "1, 2, reservations", place + "1, at least 2: models stay resident", place + "1, all of them",
    ]  # fmt: skip
    held = S + "3/admission_reservations_bytes"
    assert told(co.residents_are_counted, CO, (held, {GUARD: 1, "x": 2})) == [
        f"/selected_samples/3/admission_reservations_bytes: {GUARD}, x, one for {GRANITE}",
        "/selected_samples/3/admission_reservations_bytes/x: 'x', a model's name",
    ]


def test_the_co_resident_models_are_all_that_answered() -> None:
    place = "/measurements/co_resident_models: "
    assert told(co.residents_are_all, CO, (M + "co_resident_models", 3))[:2] == [
        place + "3, 2, resident in the last sample", place + "3, 2, that answered",
    ]  # fmt: skip
    one = altered(CO, (M + "co_resident_models", 1), *[(f"{S}{n}/resident_model_count", 1) for n in range(6)])
    assert [str(fault.expected) for fault in co.residents_are_all(one)] == ["2, that answered", "at least two"]
    assert told(co.residents_are_all, CO, (S + "2/resident_model_count", 1)) == [
        "/selected_samples/2/resident_model_count: 1, 2"
    ]
    assert told(co.residents_are_all, CO, (S + "0/resident_model_count", 2)) == []


def test_a_reservation_is_one_positive_figure_and_all_fit_the_device() -> None:
    place = f"/selected_samples/4/admission_reservations_bytes/{GUARD.replace('/', '~1')}: "
    at_4 = f"{S}4/admission_reservations_bytes"
    held = CO["selected_samples"][4]["admission_reservations_bytes"]
    assert told(co.reservations_stay, CO, (at_4, {**held, GUARD: 17392552091})) == [
        place + "17392552091, 17392552090, as in the samples before"
    ]
    for value in (0, -1):
        changed = [
            (f"{S}{n}/admission_reservations_bytes", lambda one, value=value: {**one, GUARD: value}) for n in range(6)
        ]
        lines = told(co.reservations_stay, CO, *changed)
        assert len(lines) == 6
        assert lines[4] == place + f"{value}, more than 0"
    both = sum(held.values())
    assert told(co.reservations_stay, CO, ("hardware/reported_device_total_bytes", both)) == []
    lines = told(co.reservations_stay, CO, ("hardware/reported_device_total_bytes", both - 1))
    assert lines == [
        f"/selected_samples/{n}/admission_reservations_bytes: {both}, at most the device's {both - 1}"
        for n in range(1, 6)
    ]
    assert told(co.reservations_sum, CO, (M + "sum_admission_reservations_bytes", more)) == [
        f"/measurements/sum_admission_reservations_bytes: {both + 1}, {both}, the sum in the last sample"
    ]


def test_free_bytes_lie_inside_the_device_and_fall_with_every_model() -> None:
    place = "/selected_samples/0/device_free_bytes: "
    total = CO["hardware"]["reported_device_total_bytes"]
    bounds = f"between 0 and the device's {total}, both left out"
    assert told(co.samples_fit_the_device, CO, (S + "0/device_free_bytes", total)) == [place + f"{total}, {bounds}"]
    assert told(co.samples_fit_the_device, CO, (S + "0/device_free_bytes", total - 1)) == []
    assert told(co.samples_fit_the_device, CO, (S + "0/device_free_bytes", 0))[0] == place + f"0, {bounds}"
    two = CO["selected_samples"][1]["device_free_bytes"]
    assert told(co.samples_fit_the_device, CO, (S + "0/device_free_bytes", two + 1)) == []
    lines = told(co.samples_fit_the_device, CO, (S + "0/device_free_bytes", two))
    assert lines == [
        f"/selected_samples/{n}/device_free_bytes: {two}, below {two}, what was free with 1 models" for n in range(1, 6)
    ]
    # The least that was free with fewer models counts.
    lines = told(co.samples_fit_the_device, CO, (S + "1/resident_model_count", 1), (S + "1/device_free_bytes", two))
    assert len(lines) == 4


@pytest.mark.parametrize(
    ("rule", "key", "why"),
    [
        (co.free_is_that_of_the_samples, "device_free_bytes_with_both_models", "the last sample's"),
        (co.used_is_total_minus_free, "device_used_bytes_with_both_models", "total - free"),
    ],
)
def test_free_and_used_bytes_follow(rule: Any, key: str, why: str) -> None:
    value = CO["measurements"][key]
    for other in (value - 1, value + 1):
        assert told(rule, CO, (M + key, other)) == [f"/measurements/{key}: {other}, {value}, {why}"]


def test_gib_are_bytes_by_two_to_the_thirtieth() -> None:
    key = M + "device_used_gib_with_both_models"
    assert told(co.gib_is_from_bytes, CO, (key, Decimal("22.7710571289063"))) == [
        "/measurements/device_used_gib_with_both_models: 22.7710571289063, 22.77105712890625, bytes / 2^30"
    ]
    assert (
        told(co.gib_is_from_bytes, CO, (M + "device_used_bytes_with_both_models", 2**30), (key, Decimal("1.0"))) == []
    )


def test_capacities_are_the_budgets() -> None:
    place = "/measurements/kv_token_capacities/"
    assert told(co.capacities_are_the_budgets, CO, (M + "kv_token_capacities", {GUARD: 32768, "x": 1})) == [
        f"{place}{GRANITE.replace('/', '~1')}: null, 8192, the model's KV token budget",
        f"{place}x: 1, null, the model's KV token budget",
    ]


def test_pressure_leaves_some_memory_but_less_than_the_next_load_needs() -> None:
    key, place = M + "forced_pressure_free_bytes", "/measurements/forced_pressure_free_bytes: "
    need = CO["measurements"]["next_load_reservation_bytes"]
    bounds = f"between 0 and the reservation of {need}, both left out"
    assert told(co.pressure_is_below_the_reservation, CO, (key, need - 1)) == []
    assert told(co.pressure_is_below_the_reservation, CO, (key, 1)) == []
    for value in (need, 0):
        assert told(co.pressure_is_below_the_reservation, CO, (key, value)) == [f"{place}{value}, {bounds}"]
    free = CO["measurements"]["forced_pressure_free_bytes"]
    bare = [(M + "device_free_bytes_with_both_models", free)]
    assert told(co.pressure_is_below_the_reservation, CO, *bare) == [f"{place}{free}, less than without the ballast"]
    assert told(co.pressure_is_below_the_reservation, CO, (M + "device_free_bytes_with_both_models", free + 1)) == []


def test_the_next_load_is_a_model_with_its_reservation() -> None:
    need, place = CO["measurements"]["next_load_reservation_bytes"], "/measurements/next_load_reservation_bytes: "
    assert told(co.next_load_is_a_model, CO, (P + "next_load_model", "x")) == [
        "/protocol/next_load_model: 'x', a model of the experiment"
    ]
    assert told(co.next_load_is_a_model, CO, (P + "next_load_model", GRANITE)) == []
    assert told(co.next_load_is_a_model, CO, (P + "next_load_model", GUARD)) == [
        f"{place}{need}, 17392552090, the reservation of {GUARD}"
    ]
    assert told(co.next_load_is_a_model, CO, (M + "next_load_reservation_bytes", more)) == [
        f"{place}{need + 1}, the reservation of a model in the samples"
    ]
    third = [("models", lambda rows: [*rows, {"model": "third"}]), (P + "next_load_model", "third")]
    total = CO["hardware"]["reported_device_total_bytes"]
    assert told(co.next_load_is_a_model, CO, *third, (M + "next_load_reservation_bytes", total)) == []
    assert told(co.next_load_is_a_model, CO, *third, (M + "next_load_reservation_bytes", total + 1)) == [
        f"{place}{total + 1}, at most the device's total"
    ]


EVENTS = "selected_pressure_events"


def event(name: str) -> int:
    return [one["event"] for one in OWN_CO[EVENTS]].index(name)


def test_pressure_events_are_in_order_and_whole() -> None:
    def swap(one: Row) -> None:
        rows = one[EVENTS]
        rows[1], rows[2] = {**rows[1], "event": rows[2]["event"]}, {**rows[2], "event": rows[1]["event"]}

    (line,) = told(co.pressure_is_in_order, OWN_CO, swap)
    assert line.startswith("/selected_pressure_events: unloaded load_requested ballast_taken ")
    assert line.endswith(", the order " + " ".join(co.ORDER))
    whole_ = " ".join(co.ORDER[:6])
    for name in co.ORDER[:6]:
        drop = [(EVENTS, lambda rows, name=name: [one for one in rows if one["event"] != name])]
        assert f"/selected_pressure_events: no {name}, each of {whole_}" in told(co.pressure_is_in_order, OWN_CO, *drop)
    assert told(co.pressure_is_in_order, OWN_CO, (EVENTS, ...)) == []
    times = [one["seconds_after_pressure_began"] for one in OWN_CO[EVENTS]]
    at_2 = f"{EVENTS}/2/seconds_after_pressure_began"
    assert told(co.pressure_is_in_order, OWN_CO, (at_2, times[1])) == []
    assert told(co.pressure_is_in_order, OWN_CO, (at_2, times[1] - Decimal("1e-9")))[0] == (
        f"/{at_2}: {times[1] - Decimal('1e-9')}, at least {times[1]}"
    )
    first = f"{EVENTS}/0/seconds_after_pressure_began"
    assert told(co.pressure_is_in_order, OWN_CO, (first, Decimal("-1e-9"))) == [f"/{first}: -1E-9, 0"]


def test_pressure_figures_are_those_of_the_events() -> None:
    rule, taken = co.pressure_figures_are_the_events, event("ballast_taken")
    free = OWN_CO["measurements"]["forced_pressure_free_bytes"]
    assert told(rule, OWN_CO, (M + "forced_pressure_free_bytes", more)) == [
        f"/measurements/forced_pressure_free_bytes: {free + 1}, {free}, as in /selected_pressure_events/{taken}"
    ]
    (line,) = told(rule, OWN_CO, (M + "evicted_models", []))
    assert line.startswith("/measurements/evicted_models: [], [")
    freed = OWN_CO["measurements"]["eviction_freed_device_bytes"]
    assert told(rule, OWN_CO, (M + "eviction_freed_device_bytes", less)) == [
        f"/measurements/eviction_freed_device_bytes: {freed - 1}, {freed}, free after - free before"
    ]
    total = OWN_CO["hardware"]["reported_device_total_bytes"]
    last = len(OWN_CO[EVENTS]) - 1
    for value in (0, total):
        assert told(rule, OWN_CO, (f"{EVENTS}/{last}/device_free_bytes", value)) == [
            f"/selected_pressure_events/{last}/device_free_bytes: {value}, between 0 and the device's {total}"
        ]
    for value in (1, total - 1):
        assert told(rule, OWN_CO, (f"{EVENTS}/{last}/device_free_bytes", value)) == []


def test_an_evicted_model_was_resident_and_the_loaded_one_comes_after_it() -> None:
    rule, gone, begun, served = (
        co.eviction_comes_before_the_load,
        event("evicted"),
        event("load_started"),
        event("served"),
    )
    victim, loaded = OWN_CO[EVENTS][gone]["model"], OWN_CO["protocol"]["next_load_model"]
    place = f"/{EVENTS}/{gone}"
    wrong = f"{place}/model: {{}}, a model resident before and not after"
    assert told(rule, OWN_CO, (f"{EVENTS}/{gone}/model", "x")) == [wrong.format("'x'")]
    stays = (f"{EVENTS}/{gone}/resident_models", lambda names: [*names, victim])
    assert told(rule, OWN_CO, stays) == [wrong.format(f"'{victim}'")]
    early = (f"{EVENTS}/{gone}/resident_models", lambda names: [*names, loaded])
    assert told(rule, OWN_CO, early) == [f"{place}/resident_models: '{loaded}', not resident before the eviction ended"]
    need = OWN_CO["measurements"]["next_load_reservation_bytes"]
    assert told(rule, OWN_CO, (f"{EVENTS}/{begun}/device_free_bytes", need)) == []
    assert told(rule, OWN_CO, (f"{EVENTS}/{begun}/device_free_bytes", need - 1)) == [
        f"/{EVENTS}/{begun}/device_free_bytes: {need - 1}, at least the reservation of {need}"
    ]
    answer = f"/{EVENTS}/{served}/model: {{}}, '{loaded}', resident"
    assert told(rule, OWN_CO, (f"{EVENTS}/{served}/model", "x")) == [answer.format("'x'")]
    left = (f"{EVENTS}/{served}/resident_models", lambda names: [one for one in names if one != loaded])
    assert told(rule, OWN_CO, left) == [answer.format(f"'{loaded}'")]


def test_the_pinned_model_is_in_every_listing_and_never_evicted() -> None:
    pinned, gone = OWN_CO["protocol"]["pinned_model"], event("evicted")
    lines = told(co.pin_is_kept, OWN_CO, (P + "pinned_model", "x"))
    assert lines[0] == "/protocol/pinned_model: 'x', a model of the experiment"
    assert told(co.pin_is_kept, OWN_CO, (f"{EVENTS}/{gone}/resident_models", [])) == [
        f"/{EVENTS}/{gone}/resident_models: none, {pinned}, pinned"
    ]
    assert told(co.pin_is_kept, OWN_CO, (f"{EVENTS}/{gone}/resident_models", ["y", "z"])) == [
        f"/{EVENTS}/{gone}/resident_models: y, z, {pinned}, pinned"
    ]
    assert told(co.pin_is_kept, OWN_CO, (f"{EVENTS}/{gone}/model", pinned)) == [
        f"/{EVENTS}/{gone}/model: '{pinned}', a model that is not pinned"
    ]
    assert told(co.pin_is_kept, CO, (P + "pinned_model", "x")) == []


# Crash


LIFE = "selected_lifecycle_events/"
SEEN = "seconds_after_crash"


def test_the_healthy_model_and_the_victim_are_two_of_the_experiment() -> None:
    assert told(crash.crash_parties_are_models, CRASH, (P + "victim_model", "x")) == [
        "/protocol/victim_model: 'x', a model of the experiment"
    ]
    assert told(crash.crash_parties_are_models, CRASH, (P + "pinned_healthy_model", "x")) == [
        "/protocol/pinned_healthy_model: 'x', a model of the experiment"
    ]
    assert told(crash.crash_parties_are_models, CRASH, (P + "victim_model", GUARD)) == [
        f"/protocol/victim_model: '{GUARD}', another model than the healthy one"
    ]


def test_phases_hold_what_was_requested() -> None:
    place = "/measurements/phase_counts/"
    for key in ("before", "after"):
        for value in (24, 26):
            assert told(crash.phases_are_as_requested, CRASH, (f"{M}phase_counts/{key}", value)) == [
                f"{place}{key}: {value}, 25, as requested"
            ]
    for value, fits in ((0, False), (1, True), (50, True), (51, False)):
        lines = told(crash.phases_are_as_requested, CRASH, (M + "phase_counts/during", value))
        assert lines == ([] if fits else [f"{place}during: {value}, from 1 to the limit of 50"])
    for key in ("before", "during", "after"):
        (line,) = told(crash.phases_sum, CRASH, (f"{M}phase_counts/{key}", more))
        assert line == "/measurements/healthy_requests_total: 96, 97, the sum of the phases"
    assert told(crash.healthy_requests_succeed, CRASH, (M + "healthy_requests_successful", 95)) == [
        "/measurements/healthy_requests_successful: 95, 96, all of them"
    ]


def test_events_stand_in_order_each_once_but_for_requests() -> None:
    rule, place = crash.events_are_in_order, "/selected_lifecycle_events"
    assert (
        told(rule, CRASH, (LIFE + "0/" + SEEN, 1))[0] == f"{place}/0/seconds_after_crash: 1, 0, the crash is the origin"
    )

    def swap(one: Row) -> None:
        rows = one["selected_lifecycle_events"]
        rows[1], rows[2] = {**rows[1], "event": "recovery_request"}, {**rows[2], "event": "crash_detected"}

    assert told(rule, CRASH, swap) == [
        f"{place}: crash recovery_request crash_detected recovery_request recovery_request recovered, "
        "crash, crash_detected, recovery_request ..., recovered"
    ]

    def without(name: str) -> Any:
        return "selected_lifecycle_events", lambda rows: [one for one in rows if one["event"] != name]

    for name in ("crash_detected", "recovery_request", "recovered"):
        assert told(rule, CRASH, without(name)) == [f"{place}: 0 {name}, exactly one, of requests at least one"]
    for number in (1, 5):
        twice = ("selected_lifecycle_events", lambda rows, n=number: [*rows[: n + 1], rows[n], *rows[n + 1 :]])
        name = CRASH["selected_lifecycle_events"][number]["event"]
        assert told(rule, CRASH, twice) == [f"{place}: 2 {name}, exactly one, of requests at least one"]
    earlier = CRASH["selected_lifecycle_events"][2][SEEN]
    assert told(rule, CRASH, (LIFE + "3/" + SEEN, earlier)) == []
    (line,) = told(rule, CRASH, (LIFE + "3/" + SEEN, earlier - Decimal("1e-9")))
    assert line == f"{place}/3/seconds_after_crash: {earlier - Decimal('1e-9')}, at least {earlier}"
    assert told(rule, CRASH, (LIFE + "1/" + SEEN, 0)) == [f"{place}/1/seconds_after_crash: 0, after the crash"]
    assert told(rule, CRASH, (LIFE + "1/" + SEEN, Decimal("1e-9"))) == []


def test_crashes_and_markers_are_those_of_the_events() -> None:
    assert told(crash.crashes_are_counted, CRASH, (P + "crashes", 2)) == [
        "/protocol/crashes: 2, 1, crash events x runs"
    ]
    assert told(crash.crashes_are_counted, CRASH, (P + "recorded_completed_runs", 2)) == [
        "/protocol/crashes: 1, 2, crash events x runs"
    ]
    for key, name in (
        ("detection_after_crash_s", "crash_detected"),
        ("recovery_complete_marker_after_crash_s", "recovered"),
    ):
        (line,) = told(crash.markers_are_the_events, CRASH, (M + key, 2))
        assert line.startswith(f"/measurements/{key}: 2, ")
        assert line.endswith(f", the event {name}")


def test_recovery_is_within_its_time_out_and_that_within_the_deadline() -> None:
    recovered = CRASH["measurements"]["recovery_complete_marker_after_crash_s"]
    assert told(crash.recovery_is_in_time, CRASH, (P + "recovery_timeout_s", recovered)) == []
    just = recovered - Decimal("1e-9")
    assert told(crash.recovery_is_in_time, CRASH, (P + "recovery_timeout_s", just)) == [
        f"/measurements/recovery_complete_marker_after_crash_s: {recovered}, at most {just}"
    ]
    assert told(crash.recovery_is_in_time, CRASH, (P + "recovery_timeout_s", 1300)) == []
    assert told(crash.recovery_is_in_time, CRASH, (P + "recovery_timeout_s", 1301)) == [
        "/protocol/recovery_timeout_s: 1301, at most the deadline 1300"
    ]


def test_the_deadline_holds_pauses_and_window() -> None:
    end = CRASH["measurements"]["during_phase_window_relative_to_crash_s"]["last_response"]
    least = end + 96
    assert told(crash.deadline_holds_the_run, CRASH, (P + "harness_deadline_s", least)) == []
    assert told(crash.deadline_holds_the_run, CRASH, (P + "harness_deadline_s", 188)) == [
        f"/protocol/harness_deadline_s: 188, at least {least}"
    ]
    none = [(M + "phase_counts/before", 0), (M + "phase_counts/after", 1)]
    assert told(crash.deadline_holds_the_run, CRASH, *none, (P + "harness_deadline_s", end)) == []
    assert told(crash.deadline_holds_the_run, CRASH, *none, (P + "harness_deadline_s", 92)) != []


def test_the_window_brackets_detection_and_recovery_and_holds_its_pauses() -> None:
    rule, window = crash.window_brackets_the_recovery, M + "during_phase_window_relative_to_crash_s/"
    detected = CRASH["measurements"]["detection_after_crash_s"]
    recovered = CRASH["measurements"]["recovery_complete_marker_after_crash_s"]
    tiny = Decimal("1e-9")
    assert told(rule, CRASH, (window + "first_request", detected), (window + "last_response", recovered)) == []
    (line,) = told(rule, CRASH, (window + "first_request", detected + tiny))
    assert line == f"/{window}first_request: {detected + tiny}, at most the detection at {detected}"
    (line,) = told(rule, CRASH, (window + "last_response", recovered - tiny))
    assert line == f"/{window}last_response: {recovered - tiny}, at least the recovery at {recovered}"
    exact = [(window + "first_request", 0), (window + "last_response", 90)]
    assert told(crash.window_holds_its_pauses, CRASH, *exact) == []
    assert told(crash.window_holds_its_pauses, CRASH, *exact, (M + "phase_counts/during", 47)) == [
        "/protocol/pause_between_healthy_requests_s: 46 pauses in a window of 90 s, at least 92 s"
    ]


@pytest.mark.parametrize(
    ("changes", "faults"),
    [
        ([(LIFE + "5/response_statuses", [200])], ["5/response_statuses: '[200]', statuses of requests, and of nothing else", "5/response_statuses/0: 200 after 200, the 200 last"]),
        ([(LIFE + "3/response_statuses", [])], ["3/response_statuses: '[]', statuses of requests, and of nothing else"]),
        ([(LIFE + "3/response_statuses", [503, 404])], ["3/response_statuses/1: 404, 502, 503 or 200"]),
        ([(LIFE + "4/response_statuses", [502]), (LIFE + "5/response_statuses", [])], ["4/response_statuses/0: 502 after 503, no second failure once it loads", ": last status 502, 200"]),
        ([(LIFE + "2/response_statuses", [502, 502])], ["2/response_statuses/0: 502 and another try, 502 as the last of its request, which ends there"]),
        ([(LIFE + "2/response_statuses", [502, 503])], ["2/response_statuses/0: 502 and another try, 502 as the last of its request, which ends there"]),
        ([(LIFE + "4/response_statuses", [200, 503])], ["4/response_statuses/1: 503 after 200, the 200 last", ": last status 503, 200"]),
        ([(LIFE + "4/response_statuses", [200, 200])], ["4/response_statuses/1: 200 after 200, the 200 last"]),
        ([(LIFE + "2/response_statuses", [503])], [": first status 503, 502 of the cooldown"]),
        ([(LIFE + "4/response_statuses", [503])], [": last status 503, 200"]),
        ([(f"{LIFE}{n}/response_statuses", []) for n in (2, 3, 4)], [f"{n}/response_statuses: '[]', statuses of requests, and of nothing else" for n in (2, 3, 4)] + [": first status none, 502 of the cooldown"]),
    ],
)  # fmt: skip
def test_statuses_tell_the_recovery(changes: list[Any], faults: list[str]) -> None:
    place = "/selected_lifecycle_events"
    lines = told(crash.statuses_tell_the_recovery, CRASH, *changes)
    assert lines == [place + (one if one.startswith(":") else "/" + one) for one in faults]


def test_reloads_are_answers_after_the_crash() -> None:
    place = "/measurements/successful_reloads: "
    assert told(crash.reloads_are_counted, CRASH, (M + "successful_reloads", 2)) == [
        place + "2, 1, answers of the victim after the crash", place + "2, 1, one a crash",
    ]  # fmt: skip
    assert told(crash.reloads_are_counted, CRASH, (LIFE + "4/response_statuses", [200, 200]))[0].startswith(
        place + "1, 2"
    )


def test_the_cooldown_lies_between_the_last_502_and_the_next_answer() -> None:
    rule, failed = crash.cooldown_is_respected, CRASH["selected_lifecycle_events"][2][SEEN]
    assert told(rule, CRASH, (LIFE + "3/" + SEEN, failed + 30)) == []
    just = failed + 30 - Decimal("1e-9")
    assert told(rule, CRASH, (LIFE + "3/" + SEEN, just)) == [
        f"/selected_lifecycle_events/3/seconds_after_crash: {just}, at least {failed} + the cooldown 30"
    ]
    # A second 502 begins the cooldown anew; only what comes next is held to it.
    again = [(LIFE + "3/response_statuses", [502]), (LIFE + "4/" + SEEN, Decimal("91.111804423"))]
    assert told(rule, CRASH, *again) == []
    assert len(told(rule, CRASH, again[0], (LIFE + "4/" + SEEN, Decimal("91.1118")))) == 1
    detected = CRASH["measurements"]["detection_after_crash_s"]
    recovered = "measurements/recovery_complete_marker_after_crash_s"
    assert told(rule, CRASH, (recovered, detected + 30)) == []
    assert told(rule, CRASH, (recovered, detected + 29)) == ["/protocol/cooldown_s: 30, at most recovery - detection"]


def test_tries_are_a_retry_after_apart() -> None:
    rule = crash.retries_take_their_time
    before = CRASH["selected_lifecycle_events"][2][SEEN]
    assert told(rule, CRASH, (LIFE + "3/" + SEEN, before + 30)) == []
    (line,) = told(rule, CRASH, (LIFE + "3/" + SEEN, before + 29))
    assert (
        line
        == f"/selected_lifecycle_events/3/response_statuses: 7 tries within {before + 29 - before} s, at least 30 s"
    )
    assert told(rule, CRASH, (P + "retry_after_s", 6)) == []
    assert len(told(rule, CRASH, (P + "retry_after_s", 7))) == 1
    assert len(told(rule, CRASH, (P + "retry_after_s", 11))) == 2
    assert told(rule, CRASH, ("caller_behavior", ...), (LIFE + "3/" + SEEN, before)) == []
    assert told(rule, CRASH, (P + "retry_after_s", 0), (LIFE + "3/" + SEEN, before)) == []


def test_the_recovery_marker_follows_its_answer_within_a_second() -> None:
    rule, key = crash.detection_precedes_the_error, M + "recovery_complete_marker_after_crash_s"
    answer = CRASH["selected_lifecycle_events"][4][SEEN]
    tiny = Decimal("1e-9")
    for value, fits in ((answer, True), (answer + 1, True), (answer - tiny, False), (answer + 1 + tiny, False)):
        lines = told(rule, CRASH, (key, value))
        assert lines == ([] if fits else [f"/{key}: {value}, within a second after the answer at {answer}"])


# LoRA


LIST = "selected_residency_observations/"
LISTING = "/selected_residency_observations"


def ready(number: int, *aliases: str) -> tuple[str, list[str]]:
    return f"{LIST}{number}/ready_aliases", list(aliases)


def test_kinds_are_those_of_the_models_each_run_as_often_as_recorded() -> None:
    rule = lora.kinds_are_the_models
    assert told(rule, LORA, (P + "engine_runs/embedding", 2)) == [
        "/protocol/engine_runs/embedding: 2, 1, recorded runs"
    ]
    assert told(rule, LORA, (P + "engine_runs/embedding", ...)) == [
        "/protocol/engine_runs: 'generation', 'embedding, generation', the models' kinds"
    ]
    one = (LIST[:-1], lambda rows: [row for row in rows if row["kind"] == "generation"])
    assert told(rule, LORA, one) == [f"{LISTING}: 'generation', 'embedding, generation', the models' kinds"]


def test_aliases_are_declared_apart_with_a_seed_each() -> None:
    rule = lora.aliases_are_declared
    assert told(rule, LORA, (P + "dynamic_aliases", ["a", "b", "c", "d", "pin"])) == [
        "/protocol/dynamic_aliases: a, b, c, d, pin, none of the pinned ones"
    ]
    assert told(rule, LORA, (P + "fixture_seeds/d", 20261016)) == [
        "/protocol/fixture_seeds/d: 20261016, a seed of its own"
    ]
    assert told(rule, LORA, (P + "fixture_seeds/d", ...)) == [
        "/protocol/fixture_seeds: 'a, b, c, pin', 'a, b, c, d, pin', a seed each"
    ]
    assert told(rule, LORA, (P + "churn_request_order/6", "z")) == [
        "/protocol/churn_request_order/6: 'z', a declared alias"
    ]
    assert told(rule, LORA, ready(3, "a", "pin", "z")) == [
        f"{LISTING}/3/ready_aliases: a, pin, z, declared aliases alone"
    ]
    for names in (("b", "a", "pin"), ("a", "a", "pin")):
        assert told(rule, LORA, ready(3, *names)) == [
            f"{LISTING}/3/ready_aliases: {', '.join(names)}, sorted, none twice"
        ]


def test_every_kind_is_listed_after_every_request() -> None:
    phases = "initial a_b_ready before_churn churn_0 churn_1 churn_2 churn_3 churn_4 churn_5 churn_6"
    last = (LIST[:-1], lambda rows: rows[:-1])
    assert told(lora.phases_are_complete, LORA, last) == [f"{LISTING}: embedding: {phases[:-8]}, {phases}"]
    lines = told(lora.phases_are_complete, LORA, (P + "churn_request_order", list("cdabcd")))
    assert lines == [f"{LISTING}: {kind}: {phases}, {phases[:-8]}" for kind in ("generation", "embedding")]


def test_at_first_the_pinned_are_ready_then_a_and_b() -> None:
    rule = lora.start_is_as_declared
    for number, right in ((0, "pin"), (1, "a, b, pin"), (2, "a, b, pin")):
        assert told(rule, LORA, ready(number)) == [f"{LISTING}/{number}/ready_aliases: none, {right}"]
        assert told(rule, LORA, ready(number, "c")) == [f"{LISTING}/{number}/ready_aliases: c, {right}"]
    assert told(rule, LORA, ready(3)) == []
    assert len(told(rule, LORA, (P + "dynamic_aliases", ["b", "c", "a", "d"]))) == 4


def test_capacity_is_reached_kept_and_the_only_cause_of_an_eviction() -> None:
    rule = lora.capacity_is_kept
    assert (
        told(rule, LORA, (P + "ready_adapter_capacity", 4))[-1]
        == "/protocol/ready_adapter_capacity: 4, 3, the fullest listing"
    )
    assert told(rule, LORA, ready(4, "a", "c", "d", "pin")) == [
        f"{LISTING}/4/ready_aliases: 4 aliases, at most the capacity of 3"
    ]
    assert told(rule, LORA, ready(2, "a", "pin"), ready(3, "c", "pin")) == [
        f"{LISTING}/3/ready_aliases: an eviction below capacity, none with 2 of 3"
    ]
    # Each kind begins with nothing before it.
    assert told(rule, LORA, ready(9, "c", "d")) == []


def test_pinned_aliases_are_in_every_listing() -> None:
    assert told(lora.pins_are_resident, LORA, ready(5)) == [f"{LISTING}/5/ready_aliases: none, pin, pinned"]
    assert told(lora.pins_are_resident, LORA, ready(19, "a", "b")) == [f"{LISTING}/19/ready_aliases: a, b, pin, pinned"]


def test_what_was_requested_is_resident_and_nothing_else_has_come() -> None:
    rule = lora.requested_is_resident
    assert told(rule, LORA, ready(3, "a", "b", "pin"))[0] == f"{LISTING}/3/ready_aliases: a, b, pin, c, just requested"
    assert told(rule, LORA, ready(3, "c", "d", "pin"))[0] == f"{LISTING}/3/ready_aliases: 'd', nothing new but c"
    assert told(rule, LORA, ready(9))[0] == f"{LISTING}/9/ready_aliases: none, pin, just requested"
    assert told(rule, LORA, ready(1, "c", "d", "pin")) == []


def test_a_request_evicts_one_alias_at_most_and_the_least_recently_used() -> None:
    rule = lora.least_recent_is_evicted
    assert told(rule, LORA, ready(3, "c", "pin"))[0] == f"{LISTING}/3/ready_aliases: 2 evicted, at most 1"
    assert told(rule, LORA, ready(9, "d", "pin"))[0] == f"{LISTING}/9/ready_aliases: 1 evicted, at most 0"
    # Of a and b, neither requested since the churn began, either may go; of two that were, the older one.
    assert told(rule, LORA, ready(3, "b", "c", "pin")) == []
    lines = told(rule, LORA, ready(5, "a", "c", "pin"))
    assert lines[0] == f"{LISTING}/5/ready_aliases: d evicted, the least recently used"
    # That the pinned one went is another rule's affair.
    gone = altered(
        LORA,
        *[(f"{LIST}{n}/ready_aliases", lambda names: [one for one in names if one != "pin"]) for n in range(9, 10)],
    )
    assert list(rule(gone)) == [(f"{LISTING}/9/ready_aliases", "1 evicted", "at most 0")]


def test_every_dynamic_alias_was_evicted_and_served_again() -> None:
    rule, key = lora.evicted_are_served_again, M + "dynamic_aliases_evicted_and_served_again"
    lines = told(rule, LORA, (key, ["a", "b", "c"]))
    assert lines == [
        f"/{key}: 'a, b, c', 'a, b, c, d', by the listings of generation",
        f"/{key}: 'a, b, c', 'a, b, c, d', by the listings of embedding",
        "/protocol/dynamic_aliases: a, b, c, d, a, b, c",
    ]
    assert told(rule, LORA, ready(8, "b", "c", "pin"), ready(9, "b", "c", "pin")) == [
        f"/{key}: 'a, b, c, d', 'a, b, c', by the listings of generation"
    ]


def test_cold_loads_are_of_what_was_loaded_and_refusals_of_what_was_evicted() -> None:
    rule = lora.cold_loads_are_of_loaded
    for record, key in ((LORA, "cold_loading_503_then_success_aliases"), (OWN_LORA, "evicted_aliases_refused")):
        assert told(rule, record, (M + key, ["a", "b", "c"])) == [
            f"/measurements/{key}: 'a, b, c', 'a, b, c, d', by the listings"
        ]
        assert told(rule, record, (M + key, ["d", "c", "b", "a"])) == []
        assert told(rule, record, (M + key, [])) == []
        assert told(rule, record, (M + key, ...)) == []


@pytest.mark.parametrize(
    ("status", "fits"), [(400, True), (404, True), (422, True), (401, False), (200, False), (500, False)]
)
def test_an_undeclared_adapter_is_the_callers_fault(status: int, fits: bool) -> None:
    lines = told(lora.undeclared_is_refused, LORA, (M + "undeclared_adapter_status", status))
    assert lines == ([] if fits else [f"/measurements/undeclared_adapter_status: {status}, 400, 404 or 422"])


def test_slots_hold_both_adapters_and_are_no_more_than_the_capacity() -> None:
    rule, key = lora.slots_hold_both, P + "actual_generation_gpu_slots"
    assert told(rule, LORA, (key, 1)) == [f"/{key}: 1, at least 2, both were in one forward"]
    assert told(rule, LORA, (key, 3)) == []
    assert told(rule, LORA, (key, 4)) == [f"/{key}: 4, at most the capacity of 3"]
    assert told(rule, LORA, (key, ...)) == []
    assert told(rule, LORA, (key, 1), (M + "successful_forwards_containing_both_a_and_b", ...)) == []


def test_embeddings_come_with_the_shape_of_their_vectors() -> None:
    rule, key = lora.vectors_have_a_shape, P + "embedding_raw_vector_shape"
    assert told(rule, LORA, (key, ...)) == [f"/{key}: 'None', a shape exactly with embeddings"]
    assert told(rule, LORA, (key, [2])) == [f"/{key}: 1 sides, 2: texts, dimensions"]
    assert told(rule, LORA, (P + "engine_runs/embedding", ...)) == [
        f"/{key}: '[2, 1024]', a shape exactly with embeddings"
    ]


EMBEDDING = ["a_vs_b", "a_vs_warm_base", "b_vs_warm_base", "warm_repeat", "reset_after_a_b", "reset_after_churn"]


def test_the_figures_of_a_kind_that_ran_are_all_there() -> None:
    rule = lora.figures_come_whole
    for key in [*[f"embedding_{name}_max_abs" for name in EMBEDDING], "warm_base_generation_text_restored", "observed_warm_generation_probability_delta"]:  # fmt: skip
        assert told(rule, LORA, (M + key, ...)) == [f"/measurements/{key}: nothing, the figure of a kind that ran"]
    for name in ("a_vs_b", "a_vs_warm_base", "b_vs_warm_base", "warm_repeat", "reset_after_churn"):
        key = f"generation_{name}_probability_delta"
        assert told(rule, OWN_LORA, (M + key, ...)) == [f"/measurements/{key}: nothing, the figure of a kind that ran"]
    for key in ("embedding_max_abs", "generation_first_token_probability_lower_bound"):
        assert told(rule, LORA, (f"{P}effect_thresholds/{key}", ...)) == [
            f"/protocol/effect_thresholds/{key}: nothing, the threshold of a kind that ran"
        ]
    assert told(rule, LORA, (P + "engine_runs", {"generation": 1}), (M + "embedding_a_vs_b_max_abs", ...)) == []
    assert (
        told(rule, LORA, (P + "engine_runs", {"embedding": 1}), (M + "warm_base_generation_text_restored", ...)) == []
    )


BETA = "generation_{}_probability_delta"


@pytest.mark.parametrize(
    ("record", "stem", "threshold"),
    [
        (LORA, "embedding_{}_max_abs", "embedding_max_abs"),
        (OWN_LORA, BETA, "generation_first_token_probability_lower_bound"),
    ],
)
def test_every_effect_is_above_its_threshold_and_that_above_nought(record: Row, stem: str, threshold: str) -> None:
    rule, limit = lora.effects_are_above_threshold, record["protocol"]["effect_thresholds"][threshold]
    for name in EMBEDDING[:3]:
        key = stem.format(name)
        assert told(rule, record, (M + key, limit)) == [
            f"/measurements/{key}: {limit}, above the threshold {limit}, itself above 0"
        ]
        assert told(rule, record, (M + key, limit + Decimal("1e-12"))) == []
    lines = told(rule, record, (f"{P}effect_thresholds/{threshold}", 0))
    assert len(lines) == 4
    assert lines[3] == f"/protocol/effect_thresholds/{threshold}: 0, above 0"
    assert len(told(rule, record, (f"{P}effect_thresholds/{threshold}", -1))) == 4


@pytest.mark.parametrize(
    ("record", "stem", "drifts"),
    [
        (LORA, "embedding_{}_max_abs", ["measurements/embedding_warm_repeat_max_abs", "measurements/embedding_reset_after_a_b_max_abs",
                "measurements/embedding_reset_after_churn_max_abs", "controls/cold_vs_warm_embedding_max_abs"]),
        (OWN_LORA, BETA, ["measurements/generation_warm_repeat_probability_delta", "measurements/generation_reset_after_churn_probability_delta",
                          "controls/cold_vs_warm_chat_max_observed_chosen_probability_delta", "measurements/observed_warm_generation_probability_delta"]),
    ],
)  # fmt: skip
def test_every_effect_is_above_the_multiple_of_every_drift(record: Row, stem: str, drifts: list[str]) -> None:
    rule = lora.effects_are_above_drift
    effects = {name: record["measurements"][stem.format(name)] for name in EMBEDDING[:3]}
    least = min(effects, key=effects.__getitem__)
    size = effects[least]
    for drift in drifts:
        name = drift.rpartition("/")[2]
        over = altered(record, (drift, size / 5), (P + "effect_thresholds/effect_vs_control_drift_multiplier", 5))
        lines = [f"{place}: {found}, {expected}" for place, found, expected in rule(over)]
        assert lines == [f"/measurements/{stem.format(least)}: {size}, above 5 x {name} = {5 * (size / 5)}"], drift
        under = altered(over, (drift, size / 5 - Decimal("1e-12")))
        assert list(rule(under)) == []


def test_three_distances_are_one_triangle() -> None:
    rule = lora.effects_are_one_geometry
    sides = [M + f"embedding_{name}_max_abs" for name in EMBEDDING[:3]]
    for number, long in enumerate(sides):
        others = [one for one in sides if one != long]
        flat = [(long, Decimal("0.3")), (others[0], Decimal("0.1")), (others[1], Decimal("0.2"))]
        assert told(rule, LORA, *flat) == []
        assert told(rule, LORA, *flat, (long, Decimal("0.31"))) == [
            f"/{long}: 0.31, at most the other two together, 0.3"
        ], number
        assert told(rule, LORA, *flat, (long, 9), (others[0], ...)) == []


def test_drifts_are_below_the_limits_that_are_stated() -> None:
    rule, tiny = lora.drifts_are_below_limits, Decimal("1e-12")
    assert lora.drift_limits(LORA) == {"probability": Decimal("1e-3"), "embedding": Decimal("5e-5")}
    for name in EMBEDDING[3:]:
        key = f"embedding_{name}_max_abs"
        assert told(rule, LORA, (M + key, Decimal("5e-5"))) == [f"/measurements/{key}: 0.00005, below 0.00005"]
        assert told(rule, LORA, (M + key, Decimal("5e-5") - tiny)) == []
    for key in (
        "observed_warm_generation_probability_delta",
        BETA.format("warm_repeat"),
        BETA.format("reset_after_churn"),
    ):
        (line,) = told(rule, OWN_LORA, (M + key, Decimal("1e-3")))
        assert line == f"/measurements/{key}: 0.001, below 0.001"
        assert told(rule, OWN_LORA, (M + key, Decimal("1e-3") - tiny)) == []
    lines = told(rule, LORA, (P + "base_comparison", "probability drift < 1e-3"))
    assert lines == ["/protocol/base_comparison: no limit of the embedding drift, `embedding drift < LIMIT`"] * 3


# The record as a whole


def record(*changes: Any) -> Row:
    return altered(PUBLISHED, *changes)


X = "experiments/"


@pytest.mark.parametrize(
    ("rule", "changes", "faults"),
    [
        (whole.date_is_real, [("measured_on", "2026-02-29")], ["/measured_on: '2026-02-29', a day of the calendar"]),
        (whole.date_is_real, [("measured_on", "2028-02-29")], []),
        (whole.ids_are_unique, [(X + "2/id", PUBLISHED["experiments"][0]["id"])], ["/experiments/2/id: 'h100_guard_co_residency', an id of its own"]),
        (whole.ids_are_unique, [(X + "0/models/1/model", GUARD)], [f"/experiments/0/models/1/model: '{GUARD}', a name of its own"]),
        (whole.device_is_named, [(X + "0/hardware/gpu_count", 2)], ["/experiments/0/hardware/gpu_count: 2, 1, one device"]),
        (whole.device_is_named, [(X + "0/hardware/gpu_count", True)], ["/experiments/0/hardware/gpu_count: true, 1, one device"]),
        (whole.device_is_named, [(X + "0/hardware/gpu", ...)], ["/experiments/0/hardware/gpu: null, a GPU's name exactly when there is one"]),
        (whole.device_is_named, [(X + "0/hardware/device", "cpu")], ["/experiments/0/hardware/gpu_count: 1, 0, one device", "/experiments/0/hardware/gpu: 'NVIDIA H100 80GB HBM3', a GPU's name exactly when there is one"]),
        (whole.device_is_named, [(X + "0/hardware/device_memory_source", "process-rss-against-budget")], ["/experiments/0/hardware/device_memory_source: 'process-rss-against-budget', a source that fits the device"]),
        (whole.device_is_named, [(X + "0/hardware/device_memory_source", "nvml")], []),
        (whole.limitations_are_stated, [(X + "1/limitations", [])], ["/experiments/1/limitations: none, at least one"]),
        (whole.limitations_are_stated, [(X + "1/limitations", ...)], ["/experiments/1/limitations: none, at least one"]),
        (whole.limitations_are_stated, [(X + "1/limitations", ["a", " ", "a"])], ["/experiments/1/limitations/1: ' ', a limitation, once", "/experiments/1/limitations/2: 'a', a limitation, once"]),
        (whole.runs_are_counted, [(X + "1/protocol/recorded_completed_runs", 2)], ["/experiments/1/protocol/recorded_completed_runs: 2, 1, the figures are of one run"]),
        (whole.evidence_is_named, [(X + "1/retained_evidence_sha256/raw_events", ...)], ["/experiments/1/retained_evidence_sha256/raw_events: nothing, the hash of the raw events"]),
        (whole.evidence_is_named, [(X + "1/retained_evidence_sha256/raw_bundle", PUBLISHED["experiments"][1]["retained_evidence_sha256"]["report"])], ["/experiments/1/retained_evidence_sha256/raw_bundle: '" + PUBLISHED["experiments"][1]["retained_evidence_sha256"]["report"] + "', a hash of its own"]),
        (whole.evidence_is_named, [(X + "2/retained_evidence_sha256/source_manifest_file", "e" * 64)], ["/experiments/2/retained_evidence_sha256/source_manifest_file: '" + "e" * 64 + "', '" + PUBLISHED["experiments"][2]["source"]["source_manifest_file_sha256"] + "'"]),
        (whole.code_urls_pin_the_source, [(X + "1/reproduction/readme_url", "https://github.com/superlinked/sie/blob/main/x")], ["/experiments/1/reproduction/readme_url: 'main', a link pinned to one of b342dc55235cef70fe031857e5788e2b0bb3f1be, 7b4d7d9b0039d8a1c206256eff4aad35ceaa5c93"]),
        (whole.code_urls_pin_the_source, [(X + "1/reproduction/readme_url", "https://github.com/other/sie/blob/7b4d7d9b0039d8a1c206256eff4aad35ceaa5c93/x")], ["/experiments/1/reproduction/readme_url: 'https://github.com/other/sie/blob/7b4d7d9b0039d8a1c206256eff4aad35ceaa5c93/x', a link into https://github.com/superlinked/sie"]),
        (whole.code_urls_pin_the_source, [(X + "1/source/pull_request", "https://github.com/superlinked/sie/pull/0")], ["/experiments/1/source/pull_request: 'https://github.com/superlinked/sie/pull/0', a pull request of https://github.com/superlinked/sie"]),
        (whole.code_urls_pin_the_source, [(X + "1/source/pull_request", ...)], []),
        (whole.model_urls_pin_the_revision, [(X + "0/models/0/revision", "0" * 40)], [f"/experiments/0/models/0/config_url: '{GUARD}@6ec42827da0c1ff11e7a49dc269d2e810d27e108@config.json', '{GUARD}@{'0' * 40}@config.json'"]),
        (whole.models_agree, [(X + "1/models/0/kv_token_budget", 1)], ["/experiments/1/models/0/kv_token_budget: 1, 32768 as in /experiments/0/models/0/kv_token_budget"]),
        (whole.models_agree, [(X + "1/hardware/reported_device_total_bytes", 1)], ["/experiments/1/hardware/reported_device_total_bytes: 1, 85009367040 as in /experiments/0/hardware/reported_device_total_bytes"]),
        (whole.models_agree, [(X + "2/hardware/reported_device_total_bytes", 1)], []),
        (whole.words_agree_with_figures, [(X + "1/protocol/cooldown_s", 31)], ["/experiments/1/caller_behavior/1: '30', 31, the figure of the record"]),
        (whole.words_agree_with_figures, [(X + "1/measurements/healthy_requests_successful", 95)], ["/experiments/1/limitations/0: '96', 95, the figure of the record"]),
        (whole.words_agree_with_figures, [(X + "1/protocol/retry_after_s", 6)], ["/experiments/1/caller_behavior/1: '5', 6, the figure of the record"]),
        (whole.words_agree_with_figures, [(X + "2/protocol/kv_token_cap", 1)], ["/experiments/2/protocol/instrumentation: '4096', 1, the figure of the record"]),
        (whole.words_agree_with_figures, [(X + "1/reproduction/environment_note", "the 900-second default deadline")], ["/experiments/1/reproduction/environment_note: '900', 1300"]),
        (whole.words_agree_with_figures, [(X + "1/reproduction/environment_note", "the 1300-second default deadline")], []),
    ],
)  # fmt: skip
def test_what_must_be_true_of_a_record_as_a_whole(rule: Any, changes: list[Any], faults: list[str]) -> None:
    assert told(rule, PUBLISHED, *changes) == [shortened(one) for one in faults]


def shortened(line: str) -> str:
    """A fault whose values are cut as a line of output cuts them."""
    place, _, rest = line.partition(": ")
    cut = [one[:77] + "..." if one[0] == "'" and len(one) > 80 else one for one in rest.split(", ", 1)]
    return f"{place}: {', '.join(cut)}"


def test_a_bundle_has_the_files_that_the_record_names_and_no_other() -> None:
    kept = {key: f"evidence/cpu-crash/{key}.x" for key in OWN["experiments"][1]["retained_evidence_sha256"]}
    assert OWN["experiments"][1]["id"] == "cpu-crash"
    rows = []
    for names in (kept.values(), [*kept.values(), "evidence/cpu-crash/notes.txt"], [*kept.values()][1:]):
        view = SimpleNamespace(below=lambda room, names=names: sorted(names))
        rows.append(list(raw.hold_files(SimpleNamespace(name="record.json", record=OWN, view=view))))
    place = "record.json#/experiments/1/retained_evidence_sha256/"
    assert rows == [
        [],
        [(place + "notes", "no hash of evidence/cpu-crash/notes.txt", "a file and its hash")],
        [(place + next(iter(kept)), "no file", "a file and its hash")],
    ]
