"""Lifecycle records: one row a truth, with the alteration that must be seen.

A record is judged alone (`record.json` of a package of one file) or as results/lifecycle/*.json of a package; the
bundle of raw evidence, where it is given, lies under `evidence/<experiment>/`. JSON is read strictly but in any
layout, since a published record keeps its own bytes.
"""

from __future__ import annotations

import json
import os
from functools import partial
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Tuple

from checking.check import Check, Complaint, Family, Mutation, Scope
from checking.later import Later
from checking.package import View
from checking.reading import JsonFault, read_json
from checking.rules.lifecycle_index import RECORDS

if TYPE_CHECKING:
    from checking.rules.lifecycle_shape import Fault, Shape

whole, raw, lies, forged = map(
    Later, ("checking.rules.lifecycle_" + one for one in ("record", "raw", "lies", "raw_lies"))
)
CO, CRASH, LORA, SELECTION = "co-residency", "crash", "lora", "selection"
co, crash, lora, selection = map(
    Later, ("checking.rules.lifecycle_" + one for one in ("coresidency", "crash", "lora", "selection"))
)
SINGLE, ROOM = "record.json", "evidence"
JSON, SCHEMA = "lifecycle-json", "lifecycle-schema"
_HERE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def load_shape() -> Shape:
    """The schema that lies beside the verifiers: in a package at the same height, in a checkout one above."""
    from checking.rules.lifecycle_shape import Shape

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


def _hold_rule(kind: str, rule: Any, subject: Subject) -> Iterator[Complaint]:
    """A rule of whole records, or with a kind one of that kind's experiments."""
    judged = whole.experiments(subject.record, kind) if kind else [("", subject.record)]
    for base, value in judged:
        for place, found, expected in rule(value):
            yield "%s#%s%s" % (subject.name, base, place), found, expected


def _hold_evidence(rule: Any, subject: Subject) -> Iterator[Complaint]:
    """A rule of raw evidence, where there is any."""
    return rule(subject) if subject.view.below(ROOM) else iter(())


class Row(Check):
    """A check whose truth is the docstring of its rule, which is read when a record needs it, or the page of checks."""

    __slots__ = ()

    @property
    def truth(self) -> str:
        """The docstring of the rule, as one sentence."""
        return _truth(self.hold.args[-1].function)  # type: ignore[attr-defined]


def _truth(rule: Any) -> str:
    return " ".join(rule.__doc__.split()).rstrip(".")


def _row(code: str, rule: Any, *mutations: Mutation, kind: str = "") -> Check:
    return Row("lifecycle-" + code, "", partial(_hold_rule, kind, rule), mutations, (SCHEMA,))


def _evidence(code: str, truth: str, rule: Any, *mutations: Mutation, needs: Tuple[str, ...] = ()) -> Check:
    return Check("lifecycle-" + code, truth, partial(_hold_evidence, rule), mutations, (SCHEMA, *needs))


RECORD_ROWS = (
    _row("date", whole.date_is_real, Mutation("move the day out of the calendar", lies.move_day_out_of_calendar)),
    _row("ids", whole.ids_are_unique, Mutation("give two experiments one id", lies.give_two_experiments_one_id)),
    _row("limitations", whole.limitations_are_stated, Mutation("blank a limitation", lies.blank_limitation)),
    _row("source-links", whole.code_urls_pin_the_source, Mutation("move a link off its commit", lies.move_link_off_its_commit)),
    _row("model-links", whole.model_urls_pin_the_revision, Mutation("change a revision", lies.change_revision)),
    _row("models-agree", whole.models_agree, Mutation("give one model another budget than elsewhere", lies.give_one_model_another_budget)),
    _row("device", whole.device_is_named, Mutation("claim a second GPU", lies.claim_second_gpu)),
    _row("runs", whole.runs_are_counted, Mutation("claim a second run", lies.claim_second_run)),
    _row("retained", whole.evidence_is_named, Mutation("retain one file under two names", lies.retain_one_file_under_two_names)),
    _row("words", whole.words_agree_with_figures, Mutation("shorten the cooldown against the text", lies.shorten_cooldown_against_text), Mutation("shorten the advice to retry against the text", lies.shorten_advice_to_retry_against_text)),
)  # fmt: skip
CO_ROWS = (
    _row("rounds", co.rounds_hold_their_requests, Mutation("claim a round more", lies.claim_round_more), kind=CO),
    _row("requests", co.requests_are_counted, Mutation("claim a request more", lies.claim_request_more), kind=CO),
    _row("alternation", co.rounds_alternate, Mutation("let one model answer twice in a round", lies.let_one_model_answer_twice_in_round), kind=CO),
    _row("resident-count", co.residents_are_counted, Mutation("count a resident model more", lies.count_resident_model_more), kind=CO),
    _row("co-resident", co.residents_are_all, Mutation("claim a co-resident model more", lies.claim_co_resident_model_more), kind=CO),
    _row("reservation-steady", co.reservations_stay, Mutation("lower one reservation in one sample", lies.lower_one_reservation_in_one_sample), kind=CO),
    _row("reservation-sum", co.reservations_sum, Mutation("shave the sum of the reservations", lies.shave_sum_of_reservations), kind=CO),
    _row("device-free", co.free_is_that_of_the_samples, Mutation("add to the free bytes", lies.add_to_free_bytes), kind=CO),
    _row("device-bounds", co.samples_fit_the_device, Mutation("report memory 0 used", lies.report_memory_0_used), kind=CO),
    _row("device-used", co.used_is_total_minus_free, Mutation("shave the used bytes", lies.shave_used_bytes), kind=CO),
    _row("gib", co.gib_is_from_bytes, Mutation("shave the GiB", lies.shave_gib), kind=CO),
    _row("kv-capacity", co.capacities_are_the_budgets, Mutation("raise a KV capacity", lies.raise_kv_capacity), kind=CO),
    _row("pressure", co.pressure_is_below_the_reservation, Mutation("leave free what the next load needs", lies.leave_free_what_next_load_needs), kind=CO),
    _row("next-load", co.next_load_is_a_model, Mutation("claim a reservation larger than the device", lies.claim_reservation_larger_than_device), kind=CO),
    _row("pressure-order", co.pressure_is_in_order, Mutation("leave the eviction out", lies.leave_eviction_out), kind=CO),
    _row("pressure-figures", co.pressure_figures_are_the_events, Mutation("shave the pressure in its event", lies.shave_pressure_in_its_event), kind=CO),
    _row("evicted-first", co.eviction_comes_before_the_load, Mutation("load before the eviction", lies.load_before_eviction), kind=CO),
    _row("pin", co.pin_is_kept, Mutation("evict the pinned model too", lies.evict_pinned_model_too), kind=CO),
)  # fmt: skip
CRASH_ROWS = (
    _row("parties", crash.crash_parties_are_models, Mutation("let the healthy model be the victim", lies.let_healthy_model_be_victim), kind=CRASH),
    _row("phases", crash.phases_are_as_requested, Mutation("drop a sample before the crash", lies.drop_sample_before_crash), kind=CRASH),
    _row("phase-sum", crash.phases_sum, Mutation("claim a healthy request more", lies.claim_healthy_request_more), kind=CRASH),
    _row("healthy", crash.healthy_requests_succeed, Mutation("let one healthy request fail", lies.let_one_healthy_request_fail), kind=CRASH),
    _row("event-order", crash.events_are_in_order, Mutation("swap detection and the first request", lies.swap_detection_and_first_request), kind=CRASH),
    _row("crashes", crash.crashes_are_counted, Mutation("claim a second crash", lies.claim_second_crash), kind=CRASH),
    _row("markers", crash.markers_are_the_events, Mutation("shave the detection time", lies.shave_detection_time), kind=CRASH),
    _row("recovery-limit", crash.recovery_is_in_time, Mutation("set the limit below the recovery", lies.set_limit_below_recovery), kind=CRASH),
    _row("deadline", crash.deadline_holds_the_run, Mutation("set the deadline below the window", lies.set_deadline_below_window), kind=CRASH),
    _row("window", crash.window_brackets_the_recovery, Mutation("end the window before the recovery", lies.end_window_before_recovery), kind=CRASH),
    _row("window-pauses", crash.window_holds_its_pauses, Mutation("lengthen the pause beyond the window", lies.lengthen_pause_beyond_window), kind=CRASH),
    _row("statuses", crash.statuses_tell_the_recovery, Mutation("answer 200 during the cooldown", lies.answer_200_during_cooldown), kind=CRASH),
    _row("reloads", crash.reloads_are_counted, Mutation("claim a second reload", lies.claim_second_reload), kind=CRASH),
    _row("cooldown", crash.cooldown_is_respected, Mutation("lengthen the cooldown beyond the recovery", lies.lengthen_cooldown_beyond_recovery), kind=CRASH),
    _row("retries", crash.retries_take_their_time, Mutation("try more often than Retry-After allows", lies.try_too_often), kind=CRASH),
    _row("recovered", crash.detection_precedes_the_error, Mutation("mark the recovery before the answer", lies.mark_recovery_before_answer), kind=CRASH),
)  # fmt: skip
LORA_ROWS = (
    _row("kinds", lora.kinds_are_the_models, Mutation("claim another run of an engine", lies.claim_another_run_of_engine), kind=LORA),
    _row("aliases", lora.aliases_are_declared, Mutation("request an alias that is not declared", lies.request_alias_that_is_not_declared), kind=LORA),
    _row("listing-phases", lora.phases_are_complete, Mutation("drop the last listing", lies.drop_last_listing), kind=LORA),
    _row("listing-start", lora.start_is_as_declared, Mutation("start with an adapter ready", lies.start_with_adapter_ready), kind=LORA),
    _row("capacity", lora.capacity_is_kept, Mutation("list an adapter above the capacity", lies.list_adapter_above_capacity), kind=LORA),
    _row("pinned-adapter", lora.pins_are_resident, Mutation("forget the pin in a listing", lies.forget_pin_in_listing), kind=LORA),
    _row("requested", lora.requested_is_resident, Mutation("leave the requested adapter out", lies.leave_requested_adapter_out), kind=LORA),
    _row("least-recent", lora.least_recent_is_evicted, Mutation("evict the most recently used", lies.evict_most_recently_used), kind=LORA),
    _row("served-again", lora.evicted_are_served_again, Mutation("claim one alias fewer served again", lies.claim_one_alias_fewer_served_again), kind=LORA),
    _row("cold-loads", lora.cold_loads_are_of_loaded, Mutation("leave out a cold load", lies.leave_out_cold_load), Mutation("leave out a refusal", lies.leave_out_refusal), kind=LORA),
    _row("undeclared", lora.undeclared_is_refused, Mutation("let the caller be told another fault", lies.let_caller_be_told_another_fault), kind=LORA),
    _row("slots", lora.slots_hold_both, Mutation("leave one slot", lies.leave_one_slot), kind=LORA),
    _row("vectors", lora.vectors_have_a_shape, Mutation("leave the shape of the vectors out", lies.leave_shape_of_vectors_out), kind=LORA),
    _row("lora-figures", lora.figures_come_whole, Mutation("leave a drift out", lies.leave_drift_out), kind=LORA),
    _row("effect", lora.effects_are_above_threshold, Mutation("raise the threshold above the effect", lies.raise_threshold_above_effect), Mutation("shave an effect to nothing", lies.shave_effect_to_nothing), kind=LORA),
    _row("effect-drift", lora.effects_are_above_drift, Mutation("raise a control drift to the effect", lies.raise_control_drift_to_effect), Mutation("raise a probability drift to the effect", lies.raise_probability_drift_to_effect), kind=LORA),
    _row("triangle", lora.effects_are_one_geometry, Mutation("stretch one distance", lies.stretch_one_distance), Mutation("stretch one probability", lies.stretch_one_probability), kind=LORA),
    _row("drift", lora.drifts_are_below_limits, Mutation("let the embedding drift", lies.let_embedding_drift), Mutation("let the probability drift", lies.let_probability_drift), kind=LORA),
)  # fmt: skip


SELECTION_ROWS = (
    _row("selection-model", selection.selection_is_of_one_model, Mutation("measure the other kind", lies.measure_other_kind), kind=SELECTION),
    _row("selection-aliases", selection.selection_aliases_are_declared, Mutation("give two adapters one seed", lies.give_two_adapters_one_seed), kind=SELECTION),
    _row("selection-turns", selection.turns_are_the_order, Mutation("drop the last turn", lies.drop_last_turn), kind=SELECTION),
    _row("selection-requests", selection.requests_are_counted, Mutation("claim an answer more", lies.claim_answer_more), kind=SELECTION),
    _row("selection-residency", selection.residency_agrees_with_statuses, Mutation("tell a cold turn as a warm one", lies.tell_cold_turn_as_warm_one), kind=SELECTION),
    _row("selection-capacity", selection.residency_is_its_kind, Mutation("claim room for one more", lies.claim_room_for_one_more), kind=SELECTION),
    _row("selection-evicted", selection.evictions_are_the_turns, Mutation("claim another adapter evicted and served again", lies.claim_another_adapter_evicted), kind=SELECTION),
    _row("selection-effects", selection.effects_are_the_turns, Mutation("stretch the effect of a later turn", lies.stretch_effect_of_later_turn), kind=SELECTION),
    _row("selection-effect", selection.selection_changes_the_answer, Mutation("shave the smallest effect to nothing", lies.shave_smallest_effect_to_nothing), kind=SELECTION),
    _row("selection-triangle", selection.aliases_are_one_geometry, Mutation("stretch the smallest effect", lies.stretch_smallest_effect), kind=SELECTION),
    _row("selection-base", selection.base_comes_back, Mutation("let the base drift", lies.let_base_drift), kind=SELECTION),
    _row("selection-cosine", selection.cosines_fit_the_distances, Mutation("let the controls turn by a right angle", lies.let_controls_turn_by_right_angle), kind=SELECTION),
    _row("selection-undeclared", selection.undeclared_is_told_truly, Mutation("claim that the undeclared was refused", lies.claim_that_undeclared_was_refused), Mutation("leave the limitation out", lies.leave_limitation_out), kind=SELECTION),
)  # fmt: skip


FIRST_ROWS = (
    Check(JSON, _truth(_json), _json, (Mutation("write a key twice", lies.write_key_twice), Mutation("cut the last byte off", lies.cut_last_byte_off), Mutation("put a byte order mark first", lies.put_byte_order_mark_first))),
    Check(SCHEMA, _truth(_shape), _shape, (
        Mutation("add a key that is not known", lies.add_key_that_is_not_known),
        Mutation("say no limitation", lies.say_no_limitation),
        Mutation("write a hash in capitals", lies.write_hash_in_capitals),
        Mutation("deny that process ids stayed", lies.deny_that_process_ids_stayed),
    ), (JSON,)),
)  # fmt: skip

EVIDENCE_CHECKS = (
    _evidence("evidence-hash", "every retained file has the hash that the record gives for it", raw.hold_hashes, Mutation("add a byte to the raw events", forged.add_byte_to_raw_events)),
    _evidence("evidence-files", "a bundle holds every retained file and no other", raw.hold_files, Mutation("take the report away", forged.take_report_away)),
    _evidence("evidence-sources", "digest and number of the sources are those of the manifest", raw.hold_manifest, Mutation("leave a source out of the manifest", forged.leave_source_out_of_manifest)),
    _evidence("evidence-bundle", "the bundle's list names the other files with their hashes", raw.hold_bundle, Mutation("list nothing in the bundle", forged.list_nothing_in_bundle)),
    _evidence("raw-events", "raw events are whole, in order of time, from start to end", raw.hold_form, Mutation("let time go back", forged.let_time_go_back), Mutation("cut the last event off", forged.cut_last_event_off)),
    _evidence("raw-figures", "every figure is what the raw events give", raw.hold_figures, Mutation("alter one raw event and make every hash true again", forged.alter_one_raw_event_and_make_every_hash_true_again), needs=("lifecycle-raw-events",)),
    _evidence("evidence-report", "the report repeats the record", raw.hold_report, Mutation("confess a fault in the report", forged.confess_fault_in_report)),
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
