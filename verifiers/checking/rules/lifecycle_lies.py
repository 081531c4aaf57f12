"""Lies about lifecycle records, each coherent but for its meaning."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, Dict, Optional

from checking.rules.lifecycle_damage import add, change, on_bytes, on_experiment, on_record, put

CO, CRASH, LORA, SELECTION = "co-residency", "crash", "lora", "selection"
M, P = "measurements/", "protocol/"
EVENTS, SEEN = "selected_lifecycle_events/", "selected_residency_observations/"
TURN, UNDECLARED = "selected_turns/", "measurements/undeclared_adapter/"


def _twice(record: Dict[str, Any]) -> Optional[str]:
    if len(record["experiments"]) < 2:
        record["experiments"].append(json.loads(json.dumps(record["experiments"][0], default=float)))
    record["experiments"][1]["id"] = record["experiments"][0]["id"]
    return "/experiments/1/id"


def _other_day(record: Dict[str, Any]) -> str:
    record["measured_on"] = "2026-02-30"
    return "/measured_on 2026-02-30"


def _move_link(experiment: Dict[str, Any]) -> Optional[str]:
    for key, value in sorted(experiment["reproduction"].items()):
        if key.endswith("_url"):
            experiment["reproduction"][key] = value.replace("/blob/", "/blob/0", 1)
            return str(key)
    return None


def _flip_listing(experiment: Dict[str, Any], at: int, alias: str, instead: str) -> Optional[str]:
    ready = experiment["selected_residency_observations"][at]["ready_aliases"]
    if alias not in ready:
        return None
    ready[:] = sorted([one for one in ready if one != alias] + ([instead] if instead else []))
    return "listing %d: %s for %s" % (at, instead or "nothing", alias)


def _both(experiment: Dict[str, Any], when: Any) -> Any:
    """Move the recovery in its event and in its marker: to before the answer."""
    experiment["measurements"]["recovery_complete_marker_after_crash_s"] = when
    return when


def _evict_recent(experiment: Dict[str, Any]) -> Optional[str]:
    """In the first sequence let the second request push out what the first one brought."""
    order, pinned = (
        experiment["protocol"]["churn_request_order"],
        set(experiment["protocol"]["preloaded_pinned_aliases"]),
    )
    rows = experiment["selected_residency_observations"]
    at = next((number for number, row in enumerate(rows) if row["phase"] == "churn_1"), None)
    if at is None or order[0] not in rows[at]["ready_aliases"]:
        return None
    older = [one for one in rows[at - 1]["ready_aliases"] if one not in pinned and one != order[0]]
    if not older:
        return None
    return _flip_listing(experiment, at, order[0], older[0])


def _drop_eviction(experiment: Dict[str, Any]) -> Optional[str]:
    found = experiment.get("selected_pressure_events", [])
    kept = [event for event in found if event["event"] != "evicted"]
    experiment["selected_pressure_events"] = kept
    return "without the eviction" if len(kept) < len(found) else None


def _evict_the_pin(experiment: Dict[str, Any]) -> Optional[str]:
    for event in experiment.get("selected_pressure_events", []):
        if event["event"] == "evicted":
            event["resident_models"] = []
            return "no model resident after the eviction"
    return None


def _load_early(experiment: Dict[str, Any]) -> Optional[str]:
    for event in experiment.get("selected_pressure_events", []):
        if event["event"] == "evicted":
            event["resident_models"].append(experiment["protocol"]["next_load_model"])
            return "the next model resident at the eviction"
    return None


def _warm_again(old: Any, one: Dict[str, Any]) -> Any:
    return [200] if len(old) > 1 else [503, 200]


def _shorten_texts(one: Dict[str, Any]) -> Optional[str]:
    """Hide that nothing refused the undeclared adapter."""
    kept = [text for text in one["limitations"] if "undeclared" not in text]
    said = "no limitation of it" if len(kept) < len(one["limitations"]) else None
    one["limitations"] = kept
    return said


def _nothing(data: bytes) -> bytes:
    return data.replace(b'"schema_version"', b'"schema_version": 1, "schema_version"', 1)


move_day_out_of_calendar = on_record(_other_day)
give_two_experiments_one_id = on_record(_twice)
blank_limitation = put("", "limitations/0", "  ")
move_link_off_its_commit = on_experiment("", _move_link)
change_revision = put("", "models/0/revision", "0" * 40)
give_one_model_another_budget = add(CRASH, "models/0/kv_token_budget", 1)
claim_second_gpu = put("", "hardware/gpu_count", 2)
claim_second_run = put("", P + "recorded_completed_runs", 2)
retain_one_file_under_two_names = change(
    "",
    "retained_evidence_sha256/raw_events",
    lambda _, one: next((value for key, value in one["retained_evidence_sha256"].items() if key != "raw_events"), None),
)
shorten_cooldown_against_text = add(CRASH, P + "cooldown_s", -1)
shorten_advice_to_retry_against_text = change(CRASH, P + "retry_after_s", lambda old, _: old + 7)
claim_round_more = add(CO, P + "co_residency_rounds", 1)
claim_request_more = add(CO, M + "successful_guard_requests", 1)
let_one_model_answer_twice_in_round = change(
    CO, "selected_samples/1/model", lambda _, one: one["selected_samples"][0]["model"]
)
count_resident_model_more = add(CO, "selected_samples/2/resident_model_count", 1)
claim_co_resident_model_more = add(CO, M + "co_resident_models", 1)
lower_one_reservation_in_one_sample = change(
    CO,
    "selected_samples/2/admission_reservations_bytes",
    lambda old, _: {name: value - 1 for name, value in old.items()},
)
shave_sum_of_reservations = add(CO, M + "sum_admission_reservations_bytes", -1)
add_to_free_bytes = add(CO, M + "device_free_bytes_with_both_models", 1)
report_memory_0_used = change(
    CO, "selected_samples/0/device_free_bytes", lambda _, one: one["hardware"]["reported_device_total_bytes"]
)
shave_used_bytes = add(CO, M + "device_used_bytes_with_both_models", -1)
shave_gib = add(CO, M + "device_used_gib_with_both_models", "-0.0001")
raise_kv_capacity = change(
    CO, M + "kv_token_capacities", lambda old, _: {name: value + 1 for name, value in old.items()}
)
leave_free_what_next_load_needs = change(
    CO, M + "forced_pressure_free_bytes", lambda _, one: one["measurements"]["next_load_reservation_bytes"]
)
claim_reservation_larger_than_device = change(
    CO, M + "next_load_reservation_bytes", lambda _, one: one["hardware"]["reported_device_total_bytes"] + 1
)
leave_eviction_out = on_experiment(CO, _drop_eviction)
shave_pressure_in_its_event = add(CO, "selected_pressure_events/1/device_free_bytes", -1)
load_before_eviction = on_experiment(CO, _load_early)
evict_pinned_model_too = on_experiment(CO, _evict_the_pin)
let_healthy_model_be_victim = change(CRASH, P + "victim_model", lambda _, one: one["protocol"]["pinned_healthy_model"])
drop_sample_before_crash = add(CRASH, M + "phase_counts/before", -1)
claim_healthy_request_more = add(CRASH, M + "healthy_requests_total", 1)
let_one_healthy_request_fail = add(CRASH, M + "healthy_requests_successful", -1)
swap_detection_and_first_request = change(
    CRASH, "selected_lifecycle_events", lambda old, _: [old[0], old[2], old[1], *old[3:]]
)
claim_second_crash = add(CRASH, P + "crashes", 1)
shave_detection_time = add(CRASH, M + "detection_after_crash_s", "-0.01")
set_limit_below_recovery = change(
    CRASH, P + "recovery_timeout_s", lambda _, one: one["measurements"]["recovery_complete_marker_after_crash_s"] / 2
)
set_deadline_below_window = change(
    CRASH,
    P + "harness_deadline_s",
    lambda _, one: one["measurements"]["during_phase_window_relative_to_crash_s"]["last_response"] / 2,
)
end_window_before_recovery = change(
    CRASH,
    M + "during_phase_window_relative_to_crash_s/last_response",
    lambda _, one: one["measurements"]["recovery_complete_marker_after_crash_s"] - Decimal("0.001"),
)
lengthen_pause_beyond_window = change(
    CRASH,
    P + "pause_between_healthy_requests_s",
    lambda _, one: one["measurements"]["during_phase_window_relative_to_crash_s"]["last_response"] + 1,
)
answer_200_during_cooldown = change(CRASH, EVENTS + "2/response_statuses", lambda old, _: [200])
claim_second_reload = add(CRASH, M + "successful_reloads", 1)
lengthen_cooldown_beyond_recovery = change(
    CRASH, P + "cooldown_s", lambda _, one: one["measurements"]["recovery_complete_marker_after_crash_s"] + 1
)
try_too_often = change(CRASH, EVENTS + "3/response_statuses", lambda old, _: [503] * 500 + old)
mark_recovery_before_answer = change(CRASH, EVENTS + "-1/seconds_after_crash", lambda old, one: _both(one, old - 1))
claim_another_run_of_engine = on_experiment(
    LORA,
    lambda one: str(
        one["protocol"]["engine_runs"].update({key: value + 1 for key, value in one["protocol"]["engine_runs"].items()})
    ),
)
request_alias_that_is_not_declared = change(LORA, P + "churn_request_order/0", lambda old, _: "z")
drop_last_listing = change(LORA, "selected_residency_observations", lambda old, _: old[:-1])
start_with_adapter_ready = change(
    LORA, SEEN + "0/ready_aliases", lambda old, one: sorted([*old, one["protocol"]["dynamic_aliases"][-1]])
)
list_adapter_above_capacity = change(
    LORA, SEEN + "4/ready_aliases", lambda old, one: sorted(set(old) | set(one["protocol"]["dynamic_aliases"]))
)
forget_pin_in_listing = on_experiment(
    LORA, lambda one: _flip_listing(one, 4, one["protocol"]["preloaded_pinned_aliases"][0], "")
)
leave_requested_adapter_out = on_experiment(
    LORA, lambda one: _flip_listing(one, 3, one["protocol"]["churn_request_order"][0], "")
)
evict_most_recently_used = on_experiment(LORA, _evict_recent)
claim_one_alias_fewer_served_again = change(
    LORA, M + "dynamic_aliases_evicted_and_served_again", lambda old, _: old[:-1]
)
leave_out_cold_load = change(LORA, M + "cold_loading_503_then_success_aliases", lambda old, _: old[:-1] or None)
leave_out_refusal = change(LORA, M + "evicted_aliases_refused", lambda old, _: old[:-1] or None)
let_caller_be_told_another_fault = put(LORA, M + "undeclared_adapter_status", 429)
leave_one_slot = put(LORA, P + "actual_generation_gpu_slots", 1)
leave_shape_of_vectors_out = on_experiment(
    LORA, lambda one: None if one["protocol"].pop("embedding_raw_vector_shape", None) is None else "no shape"
)
leave_drift_out = on_experiment(
    LORA,
    lambda one: (
        None
        if (
            one["measurements"].pop("embedding_warm_repeat_max_abs", None),
            one["measurements"].pop("observed_warm_generation_probability_delta", None),
        )
        == (None, None)
        else "no drift"
    ),
)
raise_threshold_above_effect = change(
    LORA, P + "effect_thresholds/embedding_max_abs", lambda _, one: one["measurements"].get("embedding_a_vs_b_max_abs")
)
shave_effect_to_nothing = put(LORA, M + "generation_a_vs_b_probability_delta", "=0")
raise_control_drift_to_effect = change(
    LORA, M + "embedding_warm_repeat_max_abs", lambda _, one: one["measurements"]["embedding_a_vs_b_max_abs"]
)
raise_probability_drift_to_effect = change(
    LORA,
    M + "generation_warm_repeat_probability_delta",
    lambda _, one: one["measurements"]["generation_a_vs_b_probability_delta"],
)
stretch_one_distance = change(LORA, M + "embedding_a_vs_b_max_abs", lambda old, _: 10 * old)
stretch_one_probability = change(LORA, M + "generation_a_vs_b_probability_delta", lambda old, _: 10 * old + 10)
let_embedding_drift = put(LORA, M + "embedding_reset_after_churn_max_abs", "=0.001")
let_probability_drift = put(LORA, M + "observed_warm_generation_probability_delta", "=0.01")
measure_other_kind = change(
    SELECTION,
    P + "effect_measure",
    lambda old, _: next(one for one in ("embedding-max-abs", "first-token-probability") if one != old),
)
give_two_adapters_one_seed = change(SELECTION, P + "fixture_seeds", lambda old, _: dict.fromkeys(old, 1))
drop_last_turn = change(SELECTION, "selected_turns", lambda old, _: old[:-1])
claim_answer_more = add(SELECTION, M + "requests_answered", 1)
tell_cold_turn_as_warm_one = change(SELECTION, TURN + "0/statuses", _warm_again)
claim_room_for_one_more = add(SELECTION, P + "resident_adapter_capacity", 1)
claim_another_adapter_evicted = change(
    SELECTION,
    M + "evicted_and_served_again",
    lambda old, one: old[1:] if old else one["protocol"]["declared_aliases"][:1],
)
stretch_effect_of_later_turn = add(SELECTION, TURN + "-1/effect", "0.5")
shave_smallest_effect_to_nothing = put(SELECTION, M + "smallest_effect_between_aliases", "=0")
stretch_smallest_effect = change(SELECTION, M + "smallest_effect_between_aliases", lambda old, _: 10 * old + 10)
let_base_drift = put(SELECTION, M + "reset_drift", "=0.01")
let_controls_turn_by_right_angle = put(SELECTION, M + "largest_control_cosine_distance", "=1")
claim_that_undeclared_was_refused = put(SELECTION, UNDECLARED + "outcome", "refused")
leave_limitation_out = on_experiment(SELECTION, _shorten_texts)
write_key_twice = on_bytes(_nothing)
cut_last_byte_off = on_bytes(lambda data: data.rstrip()[:-1])
put_byte_order_mark_first = on_bytes(lambda data: b"\xef\xbb\xbf" + data)
add_key_that_is_not_known = on_record(lambda one: str(one.update({"reviewed": True})))
say_no_limitation = on_experiment("", lambda one: str(one.update({"limitations": []})))
write_hash_in_capitals = put("", "retained_evidence_sha256/raw_events", "A" * 64)
deny_that_process_ids_stayed = on_experiment(
    CO, lambda one: str(one["measurements"].update({"each_engine_pid_unchanged": False}))
)
