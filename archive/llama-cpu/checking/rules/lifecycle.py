"""Lifecycle records: one row a truth, with the alteration that must be seen.

A record is judged alone (`record.json` of a package of one file) or as results/lifecycle/*.json of a package; the
bundle of raw evidence, where it is given, lies under `evidence/<experiment>/`. JSON is read strictly but in any
layout, since a published record keeps its own bytes.
"""

from __future__ import annotations

import json
import os
from decimal import Decimal
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence

from checking.check import Check, Complaint, Family, Mutation, Scope
from checking.package import View
from checking.reading import JsonFault, read_json
from checking.rules import lifecycle_coresidency as co
from checking.rules import lifecycle_crash as crash
from checking.rules import lifecycle_lora as lora
from checking.rules import lifecycle_record as whole
from checking.rules import lifecycle_selection as selection
from checking.rules.lifecycle_damage import RECORDS, SINGLE, add, change, on_bytes, on_experiment, on_record, put
from checking.rules.lifecycle_raw import EVIDENCE_CHECKS
from checking.rules.lifecycle_shape import Fault, Shape

JSON, SCHEMA = "lifecycle-json", "lifecycle-schema"
_HERE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def load_shape() -> Shape:
    """The schema that lies beside the verifiers: in a package at the same height, in a checkout one above."""
    for folder in (_HERE, os.path.dirname(_HERE)):
        path = os.path.join(folder, "schemas", "lifecycle-record.schema.json")
        if os.path.isfile(path):
            with open(path, "rb") as file:
                return Shape(json.loads(file.read().decode("utf-8")))
    raise OSError("schemas/lifecycle-record.schema.json is not beside the verifiers")


class Subject:
    """One record: its bytes, what they say, and where its raw evidence lies."""

    _shape: Optional[Shape] = None

    def __init__(self, scope: Scope) -> None:
        self.name = scope.folder
        self.view: View = scope.view
        self.json_fault: Optional[JsonFault] = None
        self.shape_faults: List[Fault] = []
        self.record: Dict[str, Any] = {}
        try:
            self.record = read_json(scope.view.read(self.name))
        except JsonFault as fault:
            self.json_fault = fault
            return
        if Subject._shape is None:
            Subject._shape = load_shape()
        self.shape_faults = Subject._shape.faults(self.record)


def _json(subject: Subject) -> Iterator[Complaint]:
    """Strict JSON: UTF-8, no duplicate key, no NaN, bounded numbers and nesting."""
    fault = subject.json_fault
    if fault is not None:
        yield ("%s %s" % (subject.name, fault.place)).strip(), "%s: %s" % (fault.code, fault.found), fault.expected


def _shape(subject: Subject) -> Iterator[Complaint]:
    """The record has the shape of schemas/lifecycle-record.schema.json."""
    for place, found, expected in subject.shape_faults:
        yield "%s#%s" % (subject.name, place), found, expected


def _on_record(rule: Callable[[Dict[str, Any]], Iterable[Fault]]) -> Callable[[Subject], Iterator[Complaint]]:
    def hold(subject: Subject) -> Iterator[Complaint]:
        for place, found, expected in rule(subject.record):
            yield "%s#%s" % (subject.name, place), found, expected

    return hold


def _on_kind(kind: str, rule: Callable[[Dict[str, Any]], Iterable[Fault]]) -> Callable[[Subject], Iterator[Complaint]]:
    def hold(subject: Subject) -> Iterator[Complaint]:
        for base, experiment in whole.experiments(subject.record, kind):
            for place, found, expected in rule(experiment):
                yield "%s#%s%s" % (subject.name, base, place), found, expected

    return hold


def _truth(rule: Any) -> str:
    return " ".join(rule.__doc__.split()).rstrip(".")


def _row(code: str, rule: Any, *mutations: Mutation, kind: str = "", also: Sequence[str] = ()) -> Check:
    hold = _on_kind(kind, rule) if kind else _on_record(rule)
    return Check(
        "lifecycle-" + code, _truth(rule), hold, mutations, (SCHEMA,), tuple("lifecycle-" + one for one in also)
    )


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


_CO, _CRASH, _LORA, _SELECTION = "co-residency", "crash", "lora", "selection"
_M, _P = "measurements/", "protocol/"
_EVENTS, _SEEN = "selected_lifecycle_events/", "selected_residency_observations/"

RECORD_ROWS = (
    _row("date", whole.date_is_real, on_record("move the day out of the calendar", _other_day)),
    _row("ids", whole.ids_are_unique, on_record("give two experiments one id", _twice)),
    _row("limitations", whole.limitations_are_stated, put("", "blank a limitation", "limitations/0", "  ")),
    _row("source-links", whole.code_urls_pin_the_source, on_experiment("", "move a link off its commit", _move_link)),
    _row("model-links", whole.model_urls_pin_the_revision, put("", "change a revision", "models/0/revision", "0" * 40)),
    _row("models-agree", whole.models_agree, add(_CRASH, "give one model another budget than elsewhere", "models/0/kv_token_budget", 1)),
    _row("device", whole.device_is_named, put("", "claim a second GPU", "hardware/gpu_count", 2)),
    _row("runs", whole.runs_are_counted, put("", "claim a second run", _P + "recorded_completed_runs", 2)),
    _row("retained", whole.evidence_is_named, change("", "retain one file under two names", "retained_evidence_sha256/raw_events", lambda _, one: next((value for key, value in one["retained_evidence_sha256"].items() if key != "raw_events"), None))),
    _row("words", whole.words_agree_with_figures, add(_CRASH, "shorten the cooldown against the text", _P + "cooldown_s", -1), change(_CRASH, "shorten the advice to retry against the text", _P + "retry_after_s", lambda old, _: old + 7)),
)  # fmt: skip
CO_ROWS = (
    _row("rounds", co.rounds_hold_their_requests, add(_CO, "claim a round more", _P + "co_residency_rounds", 1), kind=_CO),
    _row("requests", co.requests_are_counted, add(_CO, "claim a request more", _M + "successful_guard_requests", 1), kind=_CO),
    _row("alternation", co.rounds_alternate, change(_CO, "let one model answer twice in a round", "selected_samples/1/model", lambda _, one: one["selected_samples"][0]["model"]), kind=_CO),
    _row("resident-count", co.residents_are_counted, add(_CO, "count a resident model more", "selected_samples/2/resident_model_count", 1), kind=_CO),
    _row("co-resident", co.residents_are_all, add(_CO, "claim a co-resident model more", _M + "co_resident_models", 1), kind=_CO),
    _row("reservation-steady", co.reservations_stay, change(_CO, "lower one reservation in one sample", "selected_samples/2/admission_reservations_bytes", lambda old, _: {name: value - 1 for name, value in old.items()}), kind=_CO),
    _row("reservation-sum", co.reservations_sum, add(_CO, "shave the sum of the reservations", _M + "sum_admission_reservations_bytes", -1), kind=_CO),
    _row("device-free", co.free_is_that_of_the_samples, add(_CO, "add to the free bytes", _M + "device_free_bytes_with_both_models", 1), kind=_CO),
    _row("device-bounds", co.samples_fit_the_device, change(_CO, "report memory 0 used", "selected_samples/0/device_free_bytes", lambda _, one: one["hardware"]["reported_device_total_bytes"]), kind=_CO),
    _row("device-used", co.used_is_total_minus_free, add(_CO, "shave the used bytes", _M + "device_used_bytes_with_both_models", -1), kind=_CO),
    _row("gib", co.gib_is_from_bytes, add(_CO, "shave the GiB", _M + "device_used_gib_with_both_models", "-0.0001"), kind=_CO),
    _row("kv-capacity", co.capacities_are_the_budgets, change(_CO, "raise a KV capacity", _M + "kv_token_capacities", lambda old, _: {name: value + 1 for name, value in old.items()}), kind=_CO),
    _row("pressure", co.pressure_is_below_the_reservation, change(_CO, "leave free what the next load needs", _M + "forced_pressure_free_bytes", lambda _, one: one["measurements"]["next_load_reservation_bytes"]), kind=_CO),
    _row("next-load", co.next_load_is_a_model, change(_CO, "claim a reservation larger than the device", _M + "next_load_reservation_bytes", lambda _, one: one["hardware"]["reported_device_total_bytes"] + 1), kind=_CO),
    _row("pressure-order", co.pressure_is_in_order, on_experiment(_CO, "leave the eviction out", _drop_eviction), kind=_CO),
    _row("pressure-figures", co.pressure_figures_are_the_events, add(_CO, "shave the pressure in its event", "selected_pressure_events/1/device_free_bytes", -1), kind=_CO),
    _row("evicted-first", co.eviction_comes_before_the_load, on_experiment(_CO, "load before the eviction", _load_early), kind=_CO),
    _row("pin", co.pin_is_kept, on_experiment(_CO, "evict the pinned model too", _evict_the_pin), kind=_CO),
)  # fmt: skip
CRASH_ROWS = (
    _row("parties", crash.crash_parties_are_models, change(_CRASH, "let the healthy model be the victim", _P + "victim_model", lambda _, one: one["protocol"]["pinned_healthy_model"]), kind=_CRASH),
    _row("phases", crash.phases_are_as_requested, add(_CRASH, "drop a sample before the crash", _M + "phase_counts/before", -1), kind=_CRASH),
    _row("phase-sum", crash.phases_sum, add(_CRASH, "claim a healthy request more", _M + "healthy_requests_total", 1), kind=_CRASH),
    _row("healthy", crash.healthy_requests_succeed, add(_CRASH, "let one healthy request fail", _M + "healthy_requests_successful", -1), kind=_CRASH),
    _row("event-order", crash.events_are_in_order, change(_CRASH, "swap detection and the first request", "selected_lifecycle_events", lambda old, _: [old[0], old[2], old[1], *old[3:]]), kind=_CRASH),
    _row("crashes", crash.crashes_are_counted, add(_CRASH, "claim a second crash", _P + "crashes", 1), kind=_CRASH),
    _row("markers", crash.markers_are_the_events, add(_CRASH, "shave the detection time", _M + "detection_after_crash_s", "-0.01"), kind=_CRASH),
    _row("recovery-limit", crash.recovery_is_in_time, change(_CRASH, "set the limit below the recovery", _P + "recovery_timeout_s", lambda _, one: one["measurements"]["recovery_complete_marker_after_crash_s"] / 2), kind=_CRASH),
    _row("deadline", crash.deadline_holds_the_run, change(_CRASH, "set the deadline below the window", _P + "harness_deadline_s", lambda _, one: one["measurements"]["during_phase_window_relative_to_crash_s"]["last_response"] / 2), kind=_CRASH),
    _row("window", crash.window_brackets_the_recovery, change(_CRASH, "end the window before the recovery", _M + "during_phase_window_relative_to_crash_s/last_response", lambda _, one: one["measurements"]["recovery_complete_marker_after_crash_s"] - Decimal("0.001")), kind=_CRASH),
    _row("window-pauses", crash.window_holds_its_pauses, change(_CRASH, "lengthen the pause beyond the window", _P + "pause_between_healthy_requests_s", lambda _, one: one["measurements"]["during_phase_window_relative_to_crash_s"]["last_response"] + 1), kind=_CRASH),
    _row("statuses", crash.statuses_tell_the_recovery, change(_CRASH, "answer 200 during the cooldown", _EVENTS + "2/response_statuses", lambda old, _: [200]), kind=_CRASH),
    _row("reloads", crash.reloads_are_counted, add(_CRASH, "claim a second reload", _M + "successful_reloads", 1), kind=_CRASH),
    _row("cooldown", crash.cooldown_is_respected, change(_CRASH, "lengthen the cooldown beyond the recovery", _P + "cooldown_s", lambda _, one: one["measurements"]["recovery_complete_marker_after_crash_s"] + 1), kind=_CRASH),
    _row("retries", crash.retries_take_their_time, change(_CRASH, "try more often than Retry-After allows", _EVENTS + "3/response_statuses", lambda old, _: [503] * 500 + old), kind=_CRASH),
    _row("recovered", crash.detection_precedes_the_error, change(_CRASH, "mark the recovery before the answer", _EVENTS + "-1/seconds_after_crash", lambda old, one: _both(one, old - 1)), kind=_CRASH),
)  # fmt: skip
LORA_ROWS = (
    _row("kinds", lora.kinds_are_the_models, on_experiment(_LORA, "claim another run of an engine", lambda one: str(one["protocol"]["engine_runs"].update({key: value + 1 for key, value in one["protocol"]["engine_runs"].items()}))), kind=_LORA),
    _row("aliases", lora.aliases_are_declared, change(_LORA, "request an alias that is not declared", _P + "churn_request_order/0", lambda old, _: "z"), kind=_LORA),
    _row("listing-phases", lora.phases_are_complete, change(_LORA, "drop the last listing", "selected_residency_observations", lambda old, _: old[:-1]), kind=_LORA),
    _row("listing-start", lora.start_is_as_declared, change(_LORA, "start with an adapter ready", _SEEN + "0/ready_aliases", lambda old, one: sorted([*old, one["protocol"]["dynamic_aliases"][-1]])), kind=_LORA),
    _row("capacity", lora.capacity_is_kept, change(_LORA, "list an adapter above the capacity", _SEEN + "4/ready_aliases", lambda old, one: sorted(set(old) | set(one["protocol"]["dynamic_aliases"]))), kind=_LORA),
    _row("pinned-adapter", lora.pins_are_resident, on_experiment(_LORA, "forget the pin in a listing", lambda one: _flip_listing(one, 4, one["protocol"]["preloaded_pinned_aliases"][0], "")), kind=_LORA),
    _row("requested", lora.requested_is_resident, on_experiment(_LORA, "leave the requested adapter out", lambda one: _flip_listing(one, 3, one["protocol"]["churn_request_order"][0], "")), kind=_LORA),
    _row("least-recent", lora.least_recent_is_evicted, on_experiment(_LORA, "evict the most recently used", _evict_recent), kind=_LORA),
    _row("served-again", lora.evicted_are_served_again, change(_LORA, "claim one alias fewer served again", _M + "dynamic_aliases_evicted_and_served_again", lambda old, _: old[:-1]), kind=_LORA),
    _row("cold-loads", lora.cold_loads_are_of_loaded, change(_LORA, "leave out a cold load", _M + "cold_loading_503_then_success_aliases", lambda old, _: old[:-1] or None), change(_LORA, "leave out a refusal", _M + "evicted_aliases_refused", lambda old, _: old[:-1] or None), kind=_LORA),
    _row("undeclared", lora.undeclared_is_refused, put(_LORA, "let the caller be told another fault", _M + "undeclared_adapter_status", 429), kind=_LORA),
    _row("slots", lora.slots_hold_both, put(_LORA, "leave one slot", _P + "actual_generation_gpu_slots", 1), kind=_LORA),
    _row("vectors", lora.vectors_have_a_shape, on_experiment(_LORA, "leave the shape of the vectors out", lambda one: None if one["protocol"].pop("embedding_raw_vector_shape", None) is None else "no shape"), kind=_LORA),
    _row("lora-figures", lora.figures_come_whole, on_experiment(_LORA, "leave a drift out", lambda one: None if (one["measurements"].pop("embedding_warm_repeat_max_abs", None), one["measurements"].pop("observed_warm_generation_probability_delta", None)) == (None, None) else "no drift"), kind=_LORA),
    _row("effect", lora.effects_are_above_threshold, change(_LORA, "raise the threshold above the effect", _P + "effect_thresholds/embedding_max_abs", lambda _, one: one["measurements"].get("embedding_a_vs_b_max_abs")), put(_LORA, "shave an effect to nothing", _M + "generation_a_vs_b_probability_delta", "=0"), kind=_LORA),
    _row("effect-drift", lora.effects_are_above_drift, change(_LORA, "raise a control drift to the effect", _M + "embedding_warm_repeat_max_abs", lambda _, one: one["measurements"]["embedding_a_vs_b_max_abs"]), change(_LORA, "raise a probability drift to the effect", _M + "generation_warm_repeat_probability_delta", lambda _, one: one["measurements"]["generation_a_vs_b_probability_delta"]), kind=_LORA),
    _row("triangle", lora.effects_are_one_geometry, change(_LORA, "stretch one distance", _M + "embedding_a_vs_b_max_abs", lambda old, _: 10 * old), change(_LORA, "stretch one probability", _M + "generation_a_vs_b_probability_delta", lambda old, _: 10 * old + 10), kind=_LORA),
    _row("drift", lora.drifts_are_below_limits, put(_LORA, "let the embedding drift", _M + "embedding_reset_after_churn_max_abs", "=0.001"), put(_LORA, "let the probability drift", _M + "observed_warm_generation_probability_delta", "=0.01"), kind=_LORA),
)  # fmt: skip

_TURN, _UNDECLARED = "selected_turns/", "measurements/undeclared_adapter/"


def _warm_again(old: Any, one: Dict[str, Any]) -> Any:
    return [200] if len(old) > 1 else [503, 200]


def _shorten_texts(one: Dict[str, Any]) -> Optional[str]:
    """Hide that nothing refused the undeclared adapter."""
    kept = [text for text in one["limitations"] if "undeclared" not in text]
    said = "no limitation of it" if len(kept) < len(one["limitations"]) else None
    one["limitations"] = kept
    return said


SELECTION_ROWS = (
    _row("selection-model", selection.selection_is_of_one_model, change(_SELECTION, "measure the other kind", _P + "effect_measure", lambda old, _: next(one for one in ("embedding-max-abs", "first-token-probability") if one != old)), kind=_SELECTION),
    _row("selection-aliases", selection.selection_aliases_are_declared, change(_SELECTION, "give two adapters one seed", _P + "fixture_seeds", lambda old, _: dict.fromkeys(old, 1)), kind=_SELECTION),
    _row("selection-turns", selection.turns_are_the_order, change(_SELECTION, "drop the last turn", "selected_turns", lambda old, _: old[:-1]), kind=_SELECTION),
    _row("selection-requests", selection.requests_are_counted, add(_SELECTION, "claim an answer more", _M + "requests_answered", 1), kind=_SELECTION),
    _row("selection-residency", selection.residency_agrees_with_statuses, change(_SELECTION, "tell a cold turn as a warm one", _TURN + "0/statuses", _warm_again), kind=_SELECTION),
    _row("selection-capacity", selection.residency_is_its_kind, add(_SELECTION, "claim room for one more", _P + "resident_adapter_capacity", 1), kind=_SELECTION),
    _row("selection-evicted", selection.evictions_are_the_turns, change(_SELECTION, "claim another adapter evicted and served again", _M + "evicted_and_served_again", lambda old, one: old[1:] if old else one["protocol"]["declared_aliases"][:1]), kind=_SELECTION),
    _row("selection-effects", selection.effects_are_the_turns, add(_SELECTION, "stretch the effect of a later turn", _TURN + "-1/effect", "0.5"), kind=_SELECTION),
    _row("selection-effect", selection.selection_changes_the_answer, put(_SELECTION, "shave the smallest effect to nothing", _M + "smallest_effect_between_aliases", "=0"), kind=_SELECTION),
    _row("selection-triangle", selection.aliases_are_one_geometry, change(_SELECTION, "stretch the smallest effect", _M + "smallest_effect_between_aliases", lambda old, _: 10 * old + 10), kind=_SELECTION),
    _row("selection-base", selection.base_comes_back, put(_SELECTION, "let the base drift", _M + "reset_drift", "=0.01"), kind=_SELECTION),
    _row("selection-cosine", selection.cosines_fit_the_distances, put(_SELECTION, "let the controls turn by a right angle", _M + "largest_control_cosine_distance", "=1"), kind=_SELECTION),
    _row("selection-undeclared", selection.undeclared_is_told_truly, put(_SELECTION, "claim that the undeclared was refused", _UNDECLARED + "outcome", "refused"), on_experiment(_SELECTION, "leave the limitation out", _shorten_texts), kind=_SELECTION),
)  # fmt: skip


def _nothing(data: bytes) -> bytes:
    return data.replace(b'"schema_version"', b'"schema_version": 1, "schema_version"', 1)


FIRST_ROWS = (
    Check(JSON, _truth(_json), _json, (on_bytes("write a key twice", _nothing), on_bytes("cut the last byte off", lambda data: data.rstrip()[:-1]), on_bytes("put a byte order mark first", lambda data: b"\xef\xbb\xbf" + data))),
    Check(SCHEMA, _truth(_shape), _shape, (
        on_record("add a key that is not known", lambda one: str(one.update({"reviewed": True}))),
        on_experiment("", "say no limitation", lambda one: str(one.update({"limitations": []}))),
        put("", "write a hash in capitals", "retained_evidence_sha256/raw_events", "A" * 64),
        on_experiment(_CO, "deny that process ids stayed", lambda one: str(one["measurements"].update({"each_engine_pid_unchanged": False}))),
    ), (JSON,)),
)  # fmt: skip


def find(view: View) -> List[str]:
    """The records of a package, or the one that stands alone."""
    if view.has(SINGLE):
        return [SINGLE]
    return [name for name in view.below(RECORDS) if name.endswith(".json")]


def _facts(subject: Subject) -> Dict[str, Any]:
    listed = subject.record.get("experiments", []) if not subject.shape_faults else []
    return {"counts": {"records": 1, "experiments": len(listed)}, "experiments": [one["id"] for one in listed]}


FAMILY = Family(
    kind="lifecycle",
    find=find,
    open=Subject,
    checks=FIRST_ROWS + RECORD_ROWS + CO_ROWS + CRASH_ROWS + LORA_ROWS + SELECTION_ROWS + EVIDENCE_CHECKS,
    facts=_facts,
)
