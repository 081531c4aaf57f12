"""Raw events of our own harness, read again: what a record must say if these are its events.

Format 1 (docs/lifecycle.md): JSON lines, `event` and `t` in each, run-started first, run-ended last. Each `derive_*`
gives the part of an experiment that follows from the events alone, as nested objects of figures.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Dict, Iterator, List, Set, Tuple

from checking.reading import JsonFault, read_json

Events = List[Dict[str, Any]]
Part = Dict[str, Any]


class EventsFault(Exception):
    """Raw events that cannot be read as such: place, found, expected."""

    def __init__(self, place: str, found: str, expected: str) -> None:
        super().__init__(place, found, expected)
        self.place, self.found, self.expected = place, found, expected


def read_raw(data: bytes) -> Events:
    """The events of a finished run. Raises EventsFault."""
    events: Events = []
    before = Decimal(0)
    if not data.endswith(b"\n"):
        raise EventsFault("the end", "a line without its end", "whole lines")
    for number, line in enumerate(data.split(b"\n")[:-1], 1):
        place = "line %d" % number
        try:
            event = read_json(line)
        except JsonFault as fault:
            raise EventsFault(place, fault.found, fault.expected) from None
        if not isinstance(event, dict) or not isinstance(event.get("event"), str):
            raise EventsFault(place, "no event", "an object with `event` and `t`")
        now = event.get("t")
        if isinstance(now, bool) or not isinstance(now, (int, Decimal)):
            raise EventsFault(place, "no time", "`t` in seconds")
        if now < before:
            raise EventsFault(place, "t %s" % now, "at least %s: times never go back" % before)
        before = Decimal(now)
        events.append(event)
    if not events or events[0]["event"] != "run-started" or events[0].get("format") != 1:
        raise EventsFault("line 1", "another first event", "run-started of format 1")
    if events[-1]["event"] != "run-ended" or events[-1].get("complete") is not True:
        raise EventsFault("line %d" % len(events), events[-1]["event"], "run-ended, complete")
    return events


def of(events: Events, name: str, **wanted: Any) -> Iterator[Dict[str, Any]]:
    """Events of a name with these values."""
    for event in events:
        if event["event"] == name and all(event.get(key) == value for key, value in wanted.items()):
            yield event


def up(listing: Dict[str, Any]) -> Dict[str, Dict[str, Any]]:
    """The loaded models of a listing by name."""
    return {row["model"]: row for row in listing["models"] if row["state"] == "loaded"}


def processes(events: Events, model: str) -> Set[Tuple[int, int]]:
    """(process id, start) of every process that served a model while loaded."""
    found = set()
    for listing in of(events, "listing"):
        row = up(listing).get(model)
        if row is not None and row["pid"] is not None:
            found.add((row["pid"], row["started_ticks"]))
    return found


def hardware_of(listing: Dict[str, Any]) -> Dict[str, Any]:
    """Memory source, total, and the device's name where the target told one."""
    made = {"device_memory_source": listing["source"], "reported_device_total_bytes": listing["total_bytes"]}
    if listing.get("device_name"):
        made["gpu"] = listing["device_name"]
    return made


def derive_co_residency(events: Events) -> Part:
    """Samples of the rounds, pressure events and every measured figure."""
    asked = events[0]["settings"]
    samples = []
    for number in range(asked["rounds"]):
        seen = list(of(events, "listing", label="round %d" % number))
        told = [
            event
            for event in of(events, "response", lane="round", round=number)
            if event["status"] == 200 and event["answered"]
        ]
        if len(seen) != len(told):
            raise EventsFault(
                "round %d" % number, "%d listings, %d answers" % (len(seen), len(told)), "one of each a request"
            )
        for listing, answer in zip(seen, told):
            if answer["served_model"] != answer["model"]:
                raise EventsFault("round %d" % number, str(answer["served_model"]), "an answer of %s" % answer["model"])
            held = {name: row["reservation_bytes"] for name, row in up(listing).items()}
            samples.append(
                {
                    "model": answer["model"],
                    "round": number,
                    "resident_model_count": len(held),
                    "device_free_bytes": listing["free_bytes"],
                    "admission_reservations_bytes": held,
                }
            )
    last, first = samples[-1], next(of(events, "listing"))
    pressure = _pressure(events)
    taken = next(row for row in pressure if row["event"] == "ballast_taken")
    evicted = [row for row in pressure if row["event"] == "evicted"]
    wanted = asked["next_load_model"]
    need = [
        row["reservation_bytes"]
        for listing in of(events, "listing")
        for row in listing["models"]
        if row["model"] == wanted
    ]
    return {
        "hardware": hardware_of(first),
        "protocol": {
            "co_residency_rounds": asked["rounds"], "requests_per_round": len(asked["models"]),
            "max_generated_tokens": asked["max_generated_tokens"], "harness_deadline_s": asked["harness_deadline_s"],
            "pinned_model": asked["pinned_model"], "next_load_model": wanted,
        },
        "measurements": {
            "successful_guard_requests": len(samples),
            "co_resident_models": last["resident_model_count"],
            "each_engine_pid_unchanged": all(len(processes(events, name)) == 1 for name in asked["models"]),
            "device_free_bytes_with_both_models": last["device_free_bytes"],
            "device_used_bytes_with_both_models": first["total_bytes"] - last["device_free_bytes"],
            "sum_admission_reservations_bytes": sum(last["admission_reservations_bytes"].values()),
            "forced_pressure_free_bytes": taken["device_free_bytes"],
            "next_load_reservation_bytes": need[-1],
            "preload_eviction_passed": bool(evicted) and all(asked["pinned_model"] != row["model"] for row in evicted),
            "evicted_models": [row["model"] for row in evicted],
            "pinned_model_remained": all(asked["pinned_model"] in row["resident_models"] for row in pressure),
            "evicted_engine_processes_ended": not any(row["alive"] for row in of(events, "process")),
            "eviction_freed_device_bytes": evicted[-1]["device_free_bytes"] - taken["device_free_bytes"],
        },
        "selected_samples": samples,
        "selected_pressure_events": pressure,
    }  # fmt: skip


def _pressure(events: Events) -> List[Dict[str, Any]]:
    """The pressure in order of time: listings by their labels, the request, the target's account in between."""
    wanted = events[0]["settings"]["next_load_model"]
    rows: List[Tuple[Any, Dict[str, Any]]] = []
    names = {
        "unloaded": "unloaded",
        "ballast taken": "ballast_taken",
        "served": "served",
        "ballast released": "ballast_released",
    }
    state: List[str] = []
    free = 0
    request = next(of(events, "request", lane="pressure"))["t"]
    answered = next(of(events, "listing", label="served"))["t"]
    between = sorted(
        (row for row in of(events, "account") if request < row["at"] < answered), key=lambda row: row["at"]
    )
    for event in events:
        if event["event"] == "listing" and event["label"] in names:
            if event["label"] == "served":
                for row in between:
                    if row["what"] == "evicted":
                        state = [name for name in state if name != row["model"]]
                    if row["what"] in ("evicted", "load_started"):
                        rows.append(
                            (
                                row["at"],
                                {
                                    "event": row["what"],
                                    "model": row["model"],
                                    "resident_models": state,
                                    "device_free_bytes": row["device_free_bytes"],
                                },
                            )
                        )
            state, free = sorted(up(event)), event["free_bytes"]
            made = {"event": names[event["label"]], "resident_models": state, "device_free_bytes": free}
            if event["label"] in ("unloaded", "served"):
                made["model"] = wanted
            rows.append((event["t"], made))
        if event["event"] == "request" and event["lane"] == "pressure" and event["t"] == request:
            rows.append(
                (
                    request,
                    {"event": "load_requested", "model": wanted, "resident_models": state, "device_free_bytes": free},
                )
            )
    return [{**made, "seconds_after_pressure_began": when - rows[0][0]} for when, made in rows]


def derive_crash(events: Events) -> Part:
    """Phases, window, events relative to the crash."""
    asked = events[0]["settings"]
    crash = next(of(events, "crash"))
    zero = crash["t"]
    told = list(of(events, "response", lane="healthy"))
    during = [event for event in told if event["phase"] == "during"]
    found = next(of(events, "crash_detected"))["t"]
    later = [event for event in events if event["t"] > found]
    new = processes(later, asked["victim_model"]) - {(crash["pid"], crash["started_ticks"])}
    names = ("crash", "crash_detected", "recovery_request", "recovered")
    first = next(of(events, "listing"))
    kept = (
        "cooldown_s",
        "retry_after_s",
        "pause_between_healthy_requests_s",
        "requested_before_samples",
        "during_phase_sample_limit",
        "requested_after_samples",
        "harness_deadline_s",
        "recovery_timeout_s",
    )
    return {
        "hardware": hardware_of(first),
        "protocol": {
            "crashes": len(list(of(events, "crash"))), "pinned_healthy_model": asked["healthy_model"],
            "victim_model": asked["victim_model"], **{key: asked[key] for key in kept},
        },
        "measurements": {
            "healthy_requests_total": len(told),
            "healthy_requests_successful": sum(event["status"] == 200 and event["answered"] and event["served_model"] == asked["healthy_model"] for event in told),
            "phase_counts": {phase: sum(event["phase"] == phase for event in told) for phase in ("before", "during", "after")},
            "healthy_engine_pid_unchanged": len(processes(events, asked["healthy_model"])) == 1,
            "victim_engine_pid_changed": bool(new),
            "successful_reloads": len(new),
            "detection_after_crash_s": found - zero,
            "recovery_complete_marker_after_crash_s": next(of(events, "recovered"))["t"] - zero,
            "during_phase_window_relative_to_crash_s": {
                "first_request": next(of(events, "request", lane="healthy", phase="during"))["t"] - zero,
                "last_response": during[-1]["t"] - zero,
            },
        },
        "selected_lifecycle_events": [
            {"event": event["event"], "seconds_after_crash": event["t"] - zero, "response_statuses": event.get("statuses", [])}
            for event in events if event["event"] in names
        ],
    }  # fmt: skip


def apart(one: Dict[str, Any], other: Dict[str, Any]) -> Any:
    """The largest difference of a token's probability over the tokens of either."""
    return max(abs(one.get(token, Decimal(0)) - other.get(token, Decimal(0))) for token in set(one) | set(other))


def derive_lora(events: Events) -> Part:
    """Listings, evictions, refusals, distances."""
    asked = events[0]["settings"]
    good = {event["phase"]: event for event in of(events, "response", status=200)}
    chance = {phase: event["first_token_probabilities"] for phase, event in good.items()}
    text = {phase: event["text_sha256"] for phase, event in good.items()}
    one, two = asked["dynamic_aliases"][:2]
    base, warm = chance["warm-base-2"], text["warm-base-2"]
    repeat = apart(chance["warm-base-1"], base)
    churned = max(apart(chance["reset-after-churn"], base), apart(chance["warm-base-last"], base))
    drift = max(repeat, churned, apart(chance["reset-after-a-b"], base))
    away: Set[str] = set()
    again: Set[str] = set()
    for event in events:
        if event["event"] == "unload":
            away.add(event["alias"])
        if (
            event["event"] == "response"
            and event["status"] == 200
            and event["phase"].startswith("churn_")
            and event["alias"] in away
        ):
            again.add(event["alias"])
    ready = list(of(events, "ready"))
    fits = [
        len(row["aliases"]) <= asked["ready_adapter_capacity"] and set(asked["pinned_aliases"]) <= set(row["aliases"])
        for row in ready
    ]
    return {
        "protocol": {
            "fixture_seeds": asked["fixture_seeds"], "ready_adapter_capacity": asked["ready_adapter_capacity"],
            "preloaded_pinned_aliases": asked["pinned_aliases"], "dynamic_aliases": asked["dynamic_aliases"],
            "churn_request_order": asked["churn_request_order"], "request_seed": asked["request_seed"],
            "harness_deadline_s": asked["harness_deadline_s"],
        },
        "measurements": {
            "engine_pid_stable_for_each_model": len({(row["pid"], row["started_ticks"]) for row in ready}) == 1 and ready[0]["started_ticks"] is not None,
            "ready_listing_capacity_and_pin_preserved": all(fits),
            "dynamic_aliases_evicted_and_served_again": sorted(again),
            "evicted_aliases_refused": sorted({row["alias"] for row in of(events, "refused") if row["status"] != 200}),
            "undeclared_adapter_status": next(of(events, "undeclared"))["status"],
            "warm_base_generation_text_restored": all(text[phase] == warm for phase in ("warm-base-1", "reset-after-a-b", "reset-after-churn", "warm-base-last")),
            "observed_warm_generation_probability_delta": drift,
            "generation_a_vs_b_probability_delta": apart(chance["effect-" + one], chance["effect-" + two]),
            "generation_a_vs_warm_base_probability_delta": apart(chance["effect-" + one], base),
            "generation_b_vs_warm_base_probability_delta": apart(chance["effect-" + two], base),
            "generation_warm_repeat_probability_delta": repeat,
            "generation_reset_after_churn_probability_delta": churned,
        },
        "selected_residency_observations": [{"kind": "generation", "phase": row["phase"], "ready_aliases": row["aliases"]} for row in ready],
        "controls": {
            "cold_vs_warm_chat_max_observed_chosen_probability_delta": apart(chance["cold-base"], base),
            "cold_vs_warm_native_nonstreaming_text_equal": text["cold-base"] == warm,
        },
    }  # fmt: skip
