"""Published experiments from raw events: figures, selected samples and events, nothing of the host.

`derive` gives what follows from the events alone (protocol figures, measurements, selections); `describe` adds what the
run was told about itself (models, software, limits) and the words: claim, caller behaviour, limitations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from evidence.errors import EvidenceError
from evidence.lifecycle.audit import audit, pids_of
from evidence.lifecycle.events import Event, pick, settings_of
from evidence.lifecycle.selected import derive_selection

Derived = dict[str, Any]
GIB = 2**30
PROBABILITY_DRIFT = "1e-3"
PROBABILITY_FLOOR = 1e-4
DRIFT_MULTIPLE = 5


def difference(later: float, earlier: float) -> float:
    """Seconds between two events, to the nanosecond that they were recorded with."""
    return round(later - earlier, 9)


def distance(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    """The largest difference of a token's probability; a token that was not among the observed ones counts as 0."""
    return max(round(abs(one.get(token, 0.0) - other.get(token, 0.0)), 12) for token in {*one, *other})


def loaded(listing: Event) -> dict[str, dict[str, Any]]:
    """Model -> entry of the models that a listing has as loaded."""
    return {one["model"]: one for one in listing["models"] if one["state"] == "loaded"}


def read_hardware(listing: Event) -> dict[str, Any]:
    """The device as a listing names it; a budget has no name."""
    named = {"gpu": listing["device_name"]} if listing.get("device_name") else {}
    return {"device_memory_source": listing["source"], "reported_device_total_bytes": listing["total_bytes"], **named}


def derive_co_residency(events: list[Event]) -> Derived:
    """Samples after each response of the rounds; pressure from unload to answer."""
    settings = settings_of(events)
    listings = list(pick(events, "listing"))
    samples: list[dict[str, Any]] = []
    for number in range(settings["rounds"]):
        answers = [event for event in pick(events, "response", lane="round", round=number) if event["status"] == 200]
        for answer, listing in zip(
            answers, (one for one in listings if one["label"] == f"round {number}"), strict=True
        ):
            held = {name: one["reservation_bytes"] for name, one in sorted(loaded(listing).items())}
            samples.append(
                {
                    "model": answer["model"],
                    "round": number,
                    "resident_model_count": len(held),
                    "device_free_bytes": listing["free_bytes"],
                    "admission_reservations_bytes": held,
                }
            )
    last, total = samples[-1], listings[0]["total_bytes"]
    pressure = derive_pressure(events)
    taken = next(one for one in pressure if one["event"] == "ballast_taken")
    evicted = [one for one in pressure if one["event"] == "evicted"]
    entry = {one["model"]: one for one in listings[-1]["models"]}
    used = total - last["device_free_bytes"]
    return {
        "hardware": read_hardware(listings[0]),
        "protocol": {
            "recorded_completed_runs": 1,
            "co_residency_rounds": settings["rounds"],
            "requests_per_round": len(settings["models"]),
            "max_generated_tokens": settings["max_generated_tokens"],
            "temperature": 0.0,
            "pinned_model": settings["pinned_model"],
            "next_load_model": settings["next_load_model"],
            "harness_deadline_s": settings["harness_deadline_s"],
        },
        "measurements": {
            "successful_guard_requests": len(samples),
            "co_resident_models": last["resident_model_count"],
            "each_engine_pid_unchanged": all(len(pids_of(events, name)) == 1 for name in settings["models"]),
            "device_free_bytes_with_both_models": last["device_free_bytes"],
            "device_used_bytes_with_both_models": used,
            "device_used_gib_with_both_models": used / GIB,
            "sum_admission_reservations_bytes": sum(last["admission_reservations_bytes"].values()),
            "forced_pressure_free_bytes": taken["device_free_bytes"],
            "next_load_reservation_bytes": entry[settings["next_load_model"]]["reservation_bytes"],
            "preload_eviction_passed": bool(evicted),
            "evicted_models": [one["model"] for one in evicted],
            "pinned_model_remained": all(settings["pinned_model"] in one["resident_models"] for one in pressure),
            "evicted_engine_processes_ended": not any(one["alive"] for one in pick(events, "process")),
            "eviction_freed_device_bytes": evicted[-1]["device_free_bytes"] - taken["device_free_bytes"],
        },
        "selected_samples": samples,
        "selected_pressure_events": pressure,
    }


def derive_pressure(events: list[Event]) -> list[dict[str, Any]]:
    """Unload, ballast, request, eviction, load, answer, release, with residents and free bytes at each.

    Eviction and load are the target's own account where it keeps one, else the first listings that show them.
    """
    begun = next(pick(events, "steer", path="/admin/unload"))["t"]
    rows: list[tuple[float, str, str | None, list[str], int]] = []
    labels = {
        "unloaded": "unloaded",
        "ballast taken": "ballast_taken",
        "served": "served",
        "ballast released": "ballast_released",
    }
    wanted = settings_of(events)["next_load_model"]
    for listing in pick(events, "listing"):
        if listing["label"] in labels:
            model = wanted if listing["label"] in ("unloaded", "served") else None
            rows.append((listing["t"], labels[listing["label"]], model, sorted(loaded(listing)), listing["free_bytes"]))
    taken = next(row for row in rows if row[1] == "ballast_taken")
    request = next(pick(events, "request", lane="pressure"))
    rows.append((request["t"], "load_requested", wanted, taken[3], taken[4]))
    residents = list(taken[3])
    answered = next(row for row in rows if row[1] == "served")[0]
    for row in pick(events, "account"):
        if request["t"] < row["at"] < answered:
            if row["what"] == "evicted":
                residents = [name for name in residents if name != row["model"]]
                rows.append((row["at"], "evicted", row["model"], list(residents), row["device_free_bytes"]))
            elif row["what"] == "load_started":
                rows.append((row["at"], "load_started", row["model"], list(residents), row["device_free_bytes"]))
    rows.sort(key=lambda row: row[0])
    first = rows[0][0]
    if not begun <= first:
        raise EvidenceError("the listing after the unload is older than the unload", code=1)
    return [
        {
            "event": name,
            "seconds_after_pressure_began": difference(t, first),
            **({"model": model} if model else {}),
            "resident_models": names,
            "device_free_bytes": free,
        }
        for t, name, model, names, free in rows
    ]


def derive_crash(events: list[Event]) -> Derived:
    """Counts of the phases, the window, the events relative to the crash."""
    settings = settings_of(events)
    begun = next(pick(events, "crash"))["t"]
    phases = {
        phase: list(pick(events, "response", lane="healthy", phase=phase)) for phase in ("before", "during", "after")
    }
    answers = [one for rows in phases.values() for one in rows]
    first = next(pick(events, "request", lane="healthy", phase="during"))
    detected, recovered = next(pick(events, "crash_detected")), next(pick(events, "recovered"))
    after = [event for event in events if event["t"] > detected["t"]]
    killed = next(pick(events, "crash"))
    reloads = [
        one for one in pids_of(after, settings["victim_model"]) if one != (killed["pid"], killed["started_ticks"])
    ]
    selected = [
        {
            "event": event["event"],
            "seconds_after_crash": difference(event["t"], begun),
            "response_statuses": event.get("statuses", []),
        }
        for event in events
        if event["event"] in ("crash", "crash_detected", "recovery_request", "recovered")
    ]
    listing = next(pick(events, "listing"))
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
        "hardware": read_hardware(listing),
        "protocol": {
            "recorded_completed_runs": 1,
            "crashes": len(list(pick(events, "crash"))),
            "fault": f"SIGKILL to the owned engine process of {settings['victim_model']}",
            "pinned_healthy_model": settings["healthy_model"],
            "victim_model": settings["victim_model"],
            **{key: settings[key] for key in kept},
        },
        "measurements": {
            "healthy_requests_total": len(answers),
            "healthy_requests_successful": sum(one["status"] == 200 and one["answered"] for one in answers),
            "phase_counts": {phase: len(rows) for phase, rows in phases.items()},
            "healthy_engine_pid_unchanged": len(pids_of(events, settings["healthy_model"])) == 1,
            "victim_engine_pid_changed": bool(reloads),
            "successful_reloads": len(reloads),
            "detection_after_crash_s": difference(detected["t"], begun),
            "recovery_complete_marker_after_crash_s": difference(recovered["t"], begun),
            "during_phase_window_relative_to_crash_s": {
                "first_request": difference(first["t"], begun),
                "last_response": difference(phases["during"][-1]["t"], begun),
            },
        },
        "selected_lifecycle_events": selected,
    }


def derive_lora(events: list[Event]) -> Derived:
    """Residency listings, evictions and refusals, and distances of first-token probabilities."""
    settings = settings_of(events)
    by_phase = {event["phase"]: event for event in pick(events, "response", status=200)}
    probabilities = {phase: event["first_token_probabilities"] for phase, event in by_phase.items()}
    base = probabilities["warm-base-2"]
    one, two = (probabilities[f"effect-{alias}"] for alias in settings["dynamic_aliases"][:2])
    resets = [probabilities[phase] for phase in ("reset-after-churn", "warm-base-last")]
    observations = [
        {"kind": "generation", "phase": event["phase"], "ready_aliases": event["aliases"]}
        for event in pick(events, "ready")
    ]
    gone: set[str] = set()
    again: set[str] = set()
    for event in events:
        if event["event"] == "unload":
            gone.add(event["alias"])
        elif (
            event["event"] == "response"
            and str(event.get("phase")).startswith("churn_")
            and event["status"] == 200
            and event["alias"] in gone
        ):
            again.add(event["alias"])
    texts = {phase: event["text_sha256"] for phase, event in by_phase.items()}
    restored = ("warm-base-1", "reset-after-a-b", "reset-after-churn", "warm-base-last")
    repeat, churned = distance(probabilities["warm-base-1"], base), max(distance(base, reset) for reset in resets)
    drift = max(repeat, churned, distance(base, probabilities["reset-after-a-b"]))
    return {
        "protocol": {
            "recorded_completed_runs": 1,
            "engine_runs": {"generation": 1},
            "fixture_seeds": settings["fixture_seeds"],
            "ready_adapter_capacity": settings["ready_adapter_capacity"],
            "preloaded_pinned_aliases": settings["pinned_aliases"],
            "dynamic_aliases": settings["dynamic_aliases"],
            "churn_request_order": settings["churn_request_order"],
            "temperature": 0.0,
            "request_seed": settings["request_seed"],
            "harness_deadline_s": settings["harness_deadline_s"],
        },
        "measurements": {
            "engine_pid_stable_for_each_model": len(
                {(event["pid"], event["started_ticks"]) for event in pick(events, "ready")}
            )
            == 1,
            "ready_listing_capacity_and_pin_preserved": all(
                len(event["aliases"]) <= settings["ready_adapter_capacity"]
                and set(settings["pinned_aliases"]) <= set(event["aliases"])
                for event in pick(events, "ready")
            ),
            "dynamic_aliases_evicted_and_served_again": sorted(again),
            "evicted_aliases_refused": sorted(
                {event["alias"] for event in pick(events, "refused") if event["status"] != 200}
            ),
            "undeclared_adapter_status": next(pick(events, "undeclared"))["status"],
            "warm_base_generation_text_restored": all(texts[phase] == texts["warm-base-2"] for phase in restored),
            "observed_warm_generation_probability_delta": drift,
            "generation_a_vs_b_probability_delta": distance(one, two),
            "generation_a_vs_warm_base_probability_delta": distance(one, base),
            "generation_b_vs_warm_base_probability_delta": distance(two, base),
            "generation_warm_repeat_probability_delta": repeat,
            "generation_reset_after_churn_probability_delta": churned,
        },
        "selected_residency_observations": observations,
        "controls": {
            "cold_vs_warm_chat_max_observed_chosen_probability_delta": distance(probabilities["cold-base"], base),
            "cold_vs_warm_native_nonstreaming_text_equal": texts["cold-base"] == texts["warm-base-2"],
            "warm_repeats_and_resets_match": drift < float(PROBABILITY_DRIFT),
        },
    }


DERIVE: Mapping[str, Callable[[list[Event]], Derived]] = {
    "co-residency": derive_co_residency,
    "crash": derive_crash,
    "lora": derive_lora,
    "selection": derive_selection,
}


def derive(events: list[Event]) -> Derived:
    """What follows from a run's events. Raises EvidenceError (code 1) with every fault when they bear no record."""
    faults = audit(events)
    if faults:
        said = "; ".join(f"{code}: {text}" for code, text in faults[:8])
        raise EvidenceError(
            f"the raw events bear no record: {said}", "the run folder keeps them; mend the target and run again", code=1
        )
    return DERIVE[str(events[0]["protocol"])](events)
