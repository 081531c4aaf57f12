"""Every figure and hash of a record, and what its verification is worth (checking.rules.lifecycle_worth).

The test that nudges every figure holds this table to the checks.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Dict, Iterator, List, NamedTuple, Sequence, Tuple

from checking.rules.lifecycle_record import experiments, kind_of
from checking.rules.lifecycle_shape import pointer
from checking.rules.lifecycle_worth import BOUNDED, CHECKED, DECLARED, RECOMPUTED, REQUIRED

_ALL = {
    "hardware/gpu_count": (RECOMPUTED, "device"),
    "protocol/recorded_completed_runs": (RECOMPUTED, "runs"),
    "models/*/revision": (RECOMPUTED, "model-links"),
    "models/*/kv_token_budget": (RECOMPUTED, "models-agree"),
    "hardware/reported_device_total_bytes": (RECOMPUTED, "models-agree"),
}
_TABLE: Dict[str, Dict[str, Tuple[str, str]]] = {
    "co-residency": {
        "hardware/reported_device_total_bytes": (RECOMPUTED, "device-used"),
        "models/*/kv_token_budget": (RECOMPUTED, "kv-capacity"),
        "protocol/co_residency_rounds": (RECOMPUTED, "rounds"),
        "protocol/requests_per_round": (RECOMPUTED, "rounds"),
        "measurements/successful_guard_requests": (RECOMPUTED, "requests"),
        "measurements/co_resident_models": (RECOMPUTED, "co-resident"),
        "measurements/device_free_bytes_with_both_models": (RECOMPUTED, "device-free"),
        "measurements/device_used_bytes_with_both_models": (RECOMPUTED, "device-used"),
        "measurements/device_used_gib_with_both_models": (RECOMPUTED, "gib"),
        "measurements/sum_admission_reservations_bytes": (RECOMPUTED, "reservation-sum"),
        "measurements/kv_token_capacities/*": (RECOMPUTED, "kv-capacity"),
        "measurements/next_load_reservation_bytes": (RECOMPUTED, "next-load"),
        "measurements/forced_pressure_free_bytes": (BOUNDED, "pressure"),
        "measurements/each_engine_pid_unchanged": (REQUIRED, "schema"),
        "measurements/preload_eviction_passed": (REQUIRED, "schema"),
        "measurements/explicit_memory_fraction_0_85_preserved": (REQUIRED, "schema"),
        "measurements/pinned_model_remained": (REQUIRED, "schema"),
        "measurements/evicted_engine_processes_ended": (REQUIRED, "schema"),
        "measurements/eviction_freed_device_bytes": (RECOMPUTED, "pressure-figures"),
        "selected_samples/*/round": (RECOMPUTED, "rounds"),
        "selected_samples/*/resident_model_count": (RECOMPUTED, "resident-count"),
        "selected_samples/-/device_free_bytes": (RECOMPUTED, "device-free"),
        "selected_samples/*/device_free_bytes": (BOUNDED, "device-bounds"),
        "selected_samples/*/admission_reservations_bytes/*": (RECOMPUTED, "reservation-steady"),
        "selected_pressure_events/0/seconds_after_pressure_began": (RECOMPUTED, "pressure-order"),
        "selected_pressure_events/*/seconds_after_pressure_began": (BOUNDED, "pressure-order"),
        "selected_pressure_events/*/device_free_bytes": (BOUNDED, "pressure-figures"),
    },
    "crash": {
        "protocol/crashes": (RECOMPUTED, "crashes"),
        "protocol/requested_before_samples": (RECOMPUTED, "phases"),
        "protocol/requested_after_samples": (RECOMPUTED, "phases"),
        "protocol/during_phase_sample_limit": (BOUNDED, "phases"),
        "protocol/pause_between_healthy_requests_s": (BOUNDED, "window-pauses"),
        "protocol/cooldown_s": (RECOMPUTED, "words"),
        "protocol/retry_after_s": (RECOMPUTED, "words"),
        "protocol/harness_deadline_s": (BOUNDED, "deadline"),
        "protocol/recovery_timeout_s": (BOUNDED, "recovery-limit"),
        "measurements/healthy_requests_total": (RECOMPUTED, "phase-sum"),
        "measurements/healthy_requests_successful": (RECOMPUTED, "healthy"),
        "measurements/phase_counts/before": (RECOMPUTED, "phases"),
        "measurements/phase_counts/during": (RECOMPUTED, "phase-sum"),
        "measurements/phase_counts/after": (RECOMPUTED, "phases"),
        "measurements/healthy_engine_pid_unchanged": (REQUIRED, "schema"),
        "measurements/victim_engine_pid_changed": (REQUIRED, "schema"),
        "measurements/successful_reloads": (RECOMPUTED, "reloads"),
        "measurements/detection_after_crash_s": (RECOMPUTED, "markers"),
        "measurements/recovery_complete_marker_after_crash_s": (RECOMPUTED, "markers"),
        "measurements/during_phase_window_relative_to_crash_s/*": (BOUNDED, "window"),
        "selected_lifecycle_events/0/seconds_after_crash": (RECOMPUTED, "event-order"),
        "selected_lifecycle_events/1/seconds_after_crash": (RECOMPUTED, "markers"),
        "selected_lifecycle_events/-/seconds_after_crash": (RECOMPUTED, "markers"),
        "selected_lifecycle_events/*/seconds_after_crash": (BOUNDED, "event-order"),
        "selected_lifecycle_events/*/response_statuses/*": (RECOMPUTED, "statuses"),
    },
    "lora": {
        "protocol/engine_runs/*": (RECOMPUTED, "kinds"),
        "protocol/fixture_seeds/*": (BOUNDED, "aliases"),
        "protocol/kv_token_cap": (RECOMPUTED, "words"),
        "protocol/ready_adapter_capacity": (RECOMPUTED, "capacity"),
        "protocol/actual_generation_gpu_slots": (BOUNDED, "slots"),
        "protocol/effect_thresholds/*": (BOUNDED, "effect"),
        "measurements/distinct_valid_gpu_slots_for_a_and_b": (REQUIRED, "schema"),
        "measurements/mixed_forward_count_is_not_request_or_trial_count": (REQUIRED, "schema"),
        "measurements/engine_pid_stable_for_each_model": (REQUIRED, "schema"),
        "measurements/ready_listing_capacity_and_pin_preserved": (REQUIRED, "schema"),
        "measurements/undeclared_adapter_status": (RECOMPUTED, "undeclared"),
        "measurements/warm_base_generation_text_restored": (REQUIRED, "schema"),
        "measurements/observed_warm_generation_probability_delta": (BOUNDED, "drift"),
        "measurements/embedding_*": (BOUNDED, "effect-drift"),
        "measurements/generation_*": (BOUNDED, "effect-drift"),
        "controls/warm_repeats_and_resets_match": (REQUIRED, "schema"),
        "controls/cold_vs_warm_embedding_max_abs": (BOUNDED, "effect-drift"),
    },
    "selection": {
        "protocol/fixture_seeds/*": (BOUNDED, "selection-aliases"),
        "protocol/resident_adapter_capacity": (RECOMPUTED, "selection-capacity"),
        "protocol/effect_thresholds/effect_lower_bound": (BOUNDED, "selection-effect"),
        "protocol/embedding_raw_vector_shape/1": (BOUNDED, "selection-cosine"),
        "measurements/engine_pid_stable": (REQUIRED, "schema"),
        "measurements/base_text_restored": (REQUIRED, "schema"),
        "measurements/requests_answered": (RECOMPUTED, "selection-requests"),
        "measurements/effect_vs_warm_base/*": (RECOMPUTED, "selection-effects"),
        "measurements/smallest_effect_between_aliases": (BOUNDED, "selection-effect"),
        "measurements/repeat_drift": (BOUNDED, "selection-base"),
        "measurements/warm_repeat_drift": (BOUNDED, "selection-base"),
        "measurements/reset_drift": (BOUNDED, "selection-base"),
        "measurements/cosine_distance_vs_warm_base/*": (BOUNDED, "selection-cosine"),
        "measurements/largest_control_cosine_distance": (BOUNDED, "selection-cosine"),
        "measurements/undeclared_adapter/statuses/*": (RECOMPUTED, "selection-undeclared"),
        "measurements/undeclared_adapter/distance_to_warm_base": (BOUNDED, "selection-undeclared"),
        "selected_turns/*/statuses/*": (RECOMPUTED, "selection-turns"),
        "selected_turns/*/effect": (BOUNDED, "selection-effects"),
        "controls/cold_vs_warm": (BOUNDED, "selection-effect"),
    },
}


class Figure(NamedTuple):
    """One item of the report: JSON pointer, value, worth, and the code of the check that speaks for it."""

    place: str
    value: Any
    worth: str
    code: str


def leaves(value: Any, path: Tuple[str, ...] = ()) -> Iterator[Tuple[Tuple[str, ...], Any]]:
    """(path, value) of every number, truth value and hash."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from leaves(one, (*path, key))
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from leaves(one, (*path, str(number)))
    elif isinstance(value, (bool, int, Decimal)) or (
        isinstance(value, str) and len(value) in (40, 64) and not value.strip("0123456789abcdef")
    ):
        yield path, value


def _fits(pattern: str, path: Sequence[str], lengths: Sequence[int]) -> bool:
    steps = pattern.split("/")
    if len(steps) != len(path):
        return False
    for step, name, length in zip(steps, path, lengths):
        if step == "-":
            if not (length and int(name) == length - 1):
                return False
        elif step.endswith("*"):
            if not name.startswith(step[:-1]):
                return False
        elif step != name:
            return False
    return True


def _lengths(value: Any, path: Sequence[str]) -> List[int]:
    """For each step of a path the length of the list that it steps into, 0 for an object."""
    found = []
    for step in path:
        found.append(len(value) if isinstance(value, list) else 0)
        value = value[int(step)] if isinstance(value, list) else value[step]
    return found


def _adjust(table: Dict[str, Tuple[str, str]], experiment: Dict[str, Any], gpus: Sequence[Any]) -> None:
    """What depends on the experiment: a GPU named twice, a next load outside the samples, drifts that are all 0."""
    kind, gpu = kind_of(experiment), experiment["hardware"].get("gpu")
    if kind != "co-residency" and (gpu is None or gpus.count(gpu) < 2):
        del table["hardware/reported_device_total_bytes"]
    wanted = experiment["protocol"].get("next_load_model")
    if wanted is not None and wanted not in experiment["selected_samples"][-1]["admission_reservations_bytes"]:
        table["measurements/next_load_reservation_bytes"] = (BOUNDED, "evicted-first")
    if "selected_pressure_events" in experiment:
        table["measurements/forced_pressure_free_bytes"] = (RECOMPUTED, "pressure-figures")
    if kind == "selection":
        drifts = [value for key, value in experiment["measurements"].items() if key.endswith("_drift")]
        if not any(drift > 0 for drift in [*drifts, experiment["controls"]["cold_vs_warm"]]):
            table["protocol/effect_thresholds/effect_vs_control_drift_multiplier"] = (DECLARED, "")
        else:
            table["protocol/effect_thresholds/effect_vs_control_drift_multiplier"] = (BOUNDED, "selection-effect")
    if kind == "lora":
        cold = "cold_vs_warm_chat_max_observed_chosen_probability_delta"
        drifts = [experiment["controls"].get("cold_vs_warm_embedding_max_abs", 0)]
        if "generation_a_vs_b_probability_delta" in experiment["measurements"]:
            table["controls/" + cold] = (BOUNDED, "effect-drift")
            drifts += [
                experiment["controls"].get(cold, 0),
                experiment["measurements"].get("observed_warm_generation_probability_delta", 0),
            ]
        worth = (BOUNDED, "effect-drift") if any(drift > 0 for drift in drifts) else (DECLARED, "")
        table.update(
            {
                "protocol/effect_thresholds/effect_vs_control_drift_multiplier": worth,
                "protocol/effect_thresholds/*": table.pop("protocol/effect_thresholds/*"),
            }
        )


def figures(record: Dict[str, Any], checked: Sequence[str] = ()) -> List[Figure]:
    """Every figure and hash of a verified record; `checked` are the pointers that raw evidence was held against."""
    made = [Figure("/schema_version", record["schema_version"], REQUIRED, "lifecycle-schema")]
    twice = [one["hardware"].get("gpu") for _, one in experiments(record)]
    for base, experiment in experiments(record):
        table = dict(_TABLE[kind_of(experiment)])
        for pattern, found in _ALL.items():
            table.setdefault(pattern, found)
        _adjust(table, experiment, twice)
        for path, value in leaves(experiment):
            place = base
            for step in path:
                place = pointer(place, step)
            worth, code = DECLARED, ""
            lengths = _lengths(experiment, path)
            for pattern, found in table.items():
                if _fits(pattern, path, lengths):
                    worth, code = found
                    break
            if place in checked:
                worth, code = CHECKED, "evidence"
            made.append(Figure(place, value, worth, "lifecycle-" + code if code else ""))
    return made
