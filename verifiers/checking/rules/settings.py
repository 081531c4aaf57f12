"""The table of everything that must hold of a complete setting comparison."""

from __future__ import annotations

import hashlib
from decimal import Decimal
from functools import partial
from typing import Any, Callable, Dict, List, Optional, Tuple

from checking.check import Check, Family, Mutation
from checking.later import Later
from checking.package import View
from checking.rules import (
    agreement,
    clocks,
    index,
    memory,
    protocol,
    receipts,
    samples,
    settings_index,
    shapes,
    shapes_comparison,
    shapes_decision,
    verdict,
)
from checking.rules.comparison import ARMS, Comparison, ledgers_below
from checking.shape import Shape

told, more, lies = map(Later, ("checking.rules.%s_lies" % name for name in ("agreement", "receipt", "settings")))
timed, read, runs = map(Later, ("checking.rules.%s_lies" % name for name in ("clocks", "memory", "runs")))
forgery = Later("checking.rules.forgery")
Tell = Callable[..., Any]

DOCUMENTS = (
    ("comparison.json", shapes_comparison.COMPARISON),
    ("samples.json", shapes.SAMPLES),
    ("snapshots.json", shapes_comparison.SNAPSHOTS),
    ("decision.json", shapes_decision.DECISION),
)


def documents(view: View, folder: str) -> List[Tuple[str, Shape]]:
    """The four documents and a ledger for every worker and arm, and what further ledgers lie there."""
    wanted: List[Tuple[str, Shape]] = [("%s/%s" % (folder, name), shape) for name, shape in DOCUMENTS]
    expected: Dict[str, Shape] = {
        "%s/ledgers/%s.worker-%d.json" % (folder, arm, number): shapes.LEDGER for arm in ARMS for number in (1, 2)
    }
    expected.update(dict(ledgers_below(view, folder)))
    return wanted + sorted(expected.items(), key=lambda item: item[0])


def facts(subject: Comparison) -> Dict[str, Any]:
    """What later families compare: the index row, and a fingerprint of every main batch."""
    right = verdict.derived(subject)
    batches = []
    for arm in ARMS:
        rows = [
            (row["responseSha256"], str(row["startedSeconds"]), str(row["ttftSeconds"]), str(row["totalSeconds"]))
            for row in subject.main(arm)
        ]
        batches.append((arm, hashlib.sha256(repr(rows).encode()).hexdigest()))
    row = {key: subject.data[key] for key in ("id", "case", "profile", "engine", "kind", "synthetic")}
    for key in ("decision", "failedGates", "performanceComparisonQualified"):
        row[key] = right[key]
    return {
        "row": row,
        "run": subject.data["run"],
        "startedAt": subject.data["arms"][0]["startedAt"] if subject.data["arms"] else None,
        "batches": batches,
        "counts": {"receipts": sum(map(len, subject.ledgers.values())), "bodies": len(subject.bodies.names)},
    }


def _c(code: str, truth: str, hold: Any, *mutations: Mutation, needs: Tuple[str, ...] = ()) -> Check:
    return Check(code, truth, hold, mutations, needs)


def lie(name: str, tell: Tell, wanted: Optional[Tell] = None, decide: bool = False) -> Mutation:
    """A coherent forgery of one comparison; with `decide` the decision is made to follow from the lie."""
    return Mutation(name, partial(forgery.forge, tell, wanted, decide))


def setting_to(name: str, document: str, steps: Tuple[Any, ...], value: Any) -> Mutation:
    """A forgery that sets one value of one document (`value` may be a function of the old one)."""
    return lie(name, partial(forgery.set_value, document, steps, value))


def _flip(value: Any) -> Any:
    return not value


_CHECKS = (
    _c(
        "comparison-files",
        "the folder holds its documents, ledgers and bodies, and nothing else",
        protocol.hold_files,
        lie("leave a further file in a comparison", lies.add_file),
    ),
    _c(
        "comparison-names",
        "every document names its comparison, every ledger its arm and worker",
        protocol.hold_names,
        lie("give a comparison another id than its folder", more.rename_self),
        lie("name another comparison in samples.json", more.rename_samples),
        lie("write the other worker's alias into a ledger", more.rename_ledger),
    ),
    _c(
        "comparison-workers",
        "two workers on two devices",
        protocol.hold_workers,
        lie("exchange the devices of the workers", more.swap_devices),
    ),
    _c(
        "arm-order",
        "the arms ran A, B, B, A, A, B, one after the other",
        protocol.hold_order,
        lie("exchange the arms of a repetition", lies.swap_arm_labels),
        lie("put the last repetition first", lies.reorder_repetitions),
        setting_to("give an arm another sequence number", "comparison.json", ("arms", 0, "sequence"), 6),
    ),
    _c(
        "arm-calendar",
        "every arm began on a real day and not before the one before had ended",
        protocol.hold_calendar,
        lie("let an arm begin while another ran", lies.late_arm),
        lie("begin on a day that does not exist", lies.no_such_day),
    ),
    _c(
        "setting-value",
        "every launch carries the setting once, with its arm's value",
        protocol.hold_setting,
        lie("launch a candidate arm with the baseline's value", lies.launch_alike),
        setting_to("name another candidate value", "comparison.json", ("setting", "candidate"), "another"),
        setting_to("compare a value with itself", "comparison.json", ("setting", "candidate"), "same"),
    ),
    _c(
        "launch-equal",
        "between arms nothing but the setting differs",
        protocol.hold_launches,
        lie("launch one arm with a further argument", lies.change_two_settings),
        lie("launch one worker with a further variable", lies.change_environment),
    ),
    _c(
        "protocol-body",
        "the request bodies say what the protocol says",
        protocol.hold_protocol,
        setting_to("tell another temperature", "comparison.json", ("protocol", "temperature"), Decimal("1.5")),
        setting_to("tell another output budget", "comparison.json", ("protocol", "outputBudget"), 99999),
        setting_to(
            "tell streams as plain answers, or the other way round", "comparison.json", ("protocol", "stream"), _flip
        ),
    ),
    _c(
        "timeline-order",
        "the moments of an arm stand in order and its wall time ends with its last main response",
        protocol.hold_timeline,
        lie("let an engine be ready before it was started", lies.swap_moments),
        lie("halve the wall time of an arm", lies.shorten_wall),
    ),
    _c(
        "timeline-samples",
        "samples lie in their phase, as the timeline says",
        protocol.hold_moments,
        lie("tell a main batch a millisecond long", lies.shorten_main),
        lie("let the warm-ups end before they did", lies.stretch_warm_up),
    ),
    _c(
        "snapshot-devices",
        "one snapshot an arm, of one source, with every device once",
        protocol.hold_snapshots,
        lie("copy one device's row over the other's", lies.shave_memory),
        lie("drop a snapshot", lies.drop_snapshot),
        lie("take one snapshot from another source", lies.mix_sources),
    ),
    _c(
        "snapshot-moment",
        "a snapshot is taken between native and round-robin warm-ups",
        protocol.hold_snapshot_moment,
        lie("move a snapshot behind the load", lies.move_snapshot),
        lie("move a snapshot before the native warm-ups", lies.hurry_snapshot),
    ),
    _c(
        "snapshot-memory",
        "what was not read is null with a reason, never 0",
        protocol.hold_memory,
        lie("write 0 where nothing was read", lies.zero_memory),
        lie("leave out a figure without a reason", lies.hide_memory),
        lie("use more memory than there is", lies.overfill_memory),
    ),
    _c(
        "snapshot-figures",
        "figures of snapshots agree: one size a device, no less in use than its engine holds",
        memory.hold_figures,
        lie("tell less memory in use than the engine holds", read.hold_less, decide=True),
        lie("let a device grow between snapshots", read.grow),
        lie("explain why a figure is missing that is there", read.explain),
    ),
    _c(
        "synthetic-mark",
        "what the synthetic engine made says so everywhere",
        protocol.hold_synthetic,
        lie("turn the synthetic mark round", lies.deny_synthetic),
        setting_to("name an engine that the manifest does not know", "comparison.json", ("engine",), "another-engine"),
    ),
    _c(
        "client-late",
        "the client was late when its figures say so, and only then",
        agreement.hold_late,
        lie("deny that the client was late", lies.drop_client_lag),
        lie("make a percentile greater than the greatest", lies.swap_client_lag),
        lie("deny a late client by its greatest send lag alone", told.hide_send_lag),
        lie("allow one arm's client to be later than the others", told.allow_more),
    ),
    _c(
        "client-lag",
        "the client's send lag is the greatest of its main samples",
        agreement.hold_send_lag,
        lie("tell a smaller send lag than a main sample had", told.shrink_send_lag),
        lie("let a main sample leave late and not say so", told.lag_quietly),
    ),
    _c(
        "log-window",
        "a log finding lies in the main window",
        protocol.hold_log_window,
        lie("put a log finding before the main window", lies.invent_log_finding),
    ),
    _c(
        "date-control",
        "a date control reads every worker in every arm",
        protocol.hold_date,
        lie("control the date on one worker alone", lies.forget_a_reading),
    ),
    _c(
        "date-tokens",
        "readings of one hash tell one number of tokens",
        agreement.hold_date_tokens,
        lie("tell more tokens in one reading of the date control", told.count_more_tokens),
    ),
    _c(
        "sample-offers",
        "exactly the planned offers, in their order",
        samples.hold_offers,
        lie("drop a main sample", lies.drop_sample, decide=True),
        lie("list a main sample twice", lies.add_twice),
        lie("exchange two samples in the list", lies.reorder_samples),
        lie("drop a bad pair and relabel the third", lies.relabel_repetition),
        lie("empty the samples", lies.empty_samples),
    ),
    _c(
        "sample-labels",
        "an offer's id says its repetition, arm and phase",
        samples.hold_labels,
        lie("count a warm-up as a main request", lies.relabel_warm_up, decide=True),
        lie("exchange the arms of a repetition's samples", lies.swap_sample_arms, decide=True),
        lie("leave out a native warm-up's worker", lies.forget_native_worker),
    ),
    _c(
        "sample-native",
        "each arm warms every worker natively once",
        samples.hold_native,
        lie("warm one worker twice", lies.both_native_on_one),
        needs=("sample-offers", "sample-labels"),
    ),
    _c(
        "fixed-body",
        "every request of a phase is the one fixed body",
        samples.hold_fixed_body,
        lie("ask one main request something easier", lies.ask_something_easier),
    ),
    _c(
        "model-one",
        "one model is asked for, and one answers",
        agreement.hold_models,
        lie("ask another model in the main body", told.ask_another_model),
        lie("let another model answer once", told.answer_as_another),
    ),
    _c(
        "answer-own",
        "no two samples have one answer",
        agreement.hold_answer_ids,
        lie("give a main sample the answer of another", told.answer_twice),
    ),
    _c(
        "body-stored",
        "every cited hash is a stored body",
        samples.hold_stored,
        lie("remove a response body", lies.remove_body),
    ),
    _c(
        "body-digest",
        "the name of a body is its SHA-256",
        samples.hold_digests,
        lie("alter a response body under its old name", lies.alter_body),
    ),
    _c(
        "body-cited",
        "no body lies there that nothing cites",
        samples.hold_cited,
        lie("add a body that nothing cites", lies.add_body),
    ),
    _c(
        "body-length",
        "every told length is that of the stored body",
        samples.hold_lengths,
        lie("tell a response a byte shorter", lies.misstate_length),
    ),
    _c(
        "sample-class",
        "the classification follows from the stored bytes",
        samples.hold_classification,
        lie("call a capped answer normal", lies.cap_quietly),
        lie("call a cut stream normal", lies.cut_quietly, forgery.streaming),
        lie("call a broken stream normal", lies.break_quietly, forgery.streaming),
        lie("call an error event normal", lies.error_quietly, forgery.streaming),
        lie("call an answer with a doubled key normal", lies.double_key),
        lie("change a classification alone", lies.call_failed_normal),
    ),
    _c(
        "sample-finish",
        "the finish reason is that of the stored body",
        samples.hold_finish,
        lie("tell another finish reason", lies.invent_finish),
    ),
    _c(
        "sample-tokens",
        "tokens are those that the engine reported in the stored body",
        samples.hold_tokens,
        lie("tell more completion tokens than the body", lies.raise_tokens, decide=True),
        lie("tell more prompt tokens than the body", lies.raise_prompt_tokens),
        lie("keep the tokens of a body without usage", lies.drop_usage),
    ),
    _c(
        "sample-status",
        "a complete exchange has a status",
        samples.hold_status,
        lie("leave out a status", lies.drop_status),
    ),
    _c(
        "ttft-present",
        "a stream with text has a time to it, and nothing else has",
        samples.hold_ttft,
        lie("leave out the slowest time to first text", lies.drop_ttft, forgery.streaming, decide=True),
        lie("time a plain answer", lies.time_native),
        lie("time reasoning that is not there", lies.invent_reasoning),
    ),
    _c(
        "time-order",
        "first text comes after the first byte out and before the last byte in",
        samples.hold_times,
        lie("let the first text come after the last byte", lies.exceed_total, decide=True),
        lie("make a time to first text zero", lies.zero_ttft, decide=True),
    ),
    _c(
        "concurrency",
        "never more than eight requests are open at once",
        samples.hold_concurrency,
        lie("start a whole main batch at once", lies.start_all_at_once),
    ),
    _c(
        "start-order",
        "offers began in the order of their numbers, as far as eight slots allow",
        samples.hold_started,
        lie("start the last main offer first", lies.start_backwards),
    ),
    _c(
        "arm-copy",
        "no main batch is a copy of another",
        samples.hold_arm_copies,
        lie("copy a repetition over another", lies.copy_arm, decide=True),
    ),
    _c(
        "sample-copy",
        "no sample is a copy of another",
        samples.hold_sample_copies,
        lie("replace the slowest sample by a copy of the fastest", lies.drop_slowest, decide=True),
    ),
    _c(
        "receipt-sequence",
        "the receipts of a ledger are numbered without a gap",
        receipts.hold_sequence,
        lie("leave a number out", more.renumber),
    ),
    _c(
        "receipt-traffic",
        "traffic is a POST to a serving path, and nothing else",
        receipts.hold_traffic,
        lie("call traffic a control", more.hide_traffic),
    ),
    _c(
        "receipt-complete",
        "a complete exchange has a status and no reason",
        receipts.hold_completeness,
        lie("keep an incomplete exchange without its reason", more.cut_receipt),
        lie("call a cut exchange complete", more.complete_with_reason),
    ),
    _c(
        "receipt-headers",
        "recorded headers agree with the receipt",
        receipts.hold_headers,
        lie("record another content length", more.lose_header),
        lie("record another request id header", more.other_request_header),
    ),
    _c(
        "receipt-clock",
        "an exchange ends after it began",
        receipts.hold_clock,
        lie("end an exchange before it began", more.end_first),
    ),
    _c(
        "receipt-fits",
        "path, status and content type of a receipt fit its exchange",
        agreement.hold_fitting,
        lie("let a chat request have gone to the embeddings path", told.receive_elsewhere),
        lie("let a stream have come as a page", told.answer_html),
        lie("let the recorder have seen another good status", told.other_status),
    ),
    _c(
        "receipt-offset",
        "one offset lays every receipt of a ledger inside its sample",
        agreement.hold_clocks,
        lie("move the receipts of a main batch ten seconds on", told.shift_main_receipts),
        lie("exchange the times of two receipts", told.exchange_receipt_times),
    ),
    _c(
        "receipt-copy",
        "no receipt is a copy of another",
        receipts.hold_copies,
        lie("append a copy of a receipt", more.repeat_receipt),
        lie("give two receipts the same times", more.copy_receipt_times),
    ),
    _c(
        "receipt-unmatched",
        "every traffic receipt belongs to one sample",
        receipts.hold_matched,
        lie("alter the hash of a receipt", more.alter_receipt_hash),
    ),
    _c(
        "sample-unreceipted",
        "every whole sample has one receipt with its hashes, on its worker",
        receipts.hold_receipted,
        lie("drop a receipt", more.drop_receipt),
        lie("empty a ledger", more.empty_ledger),
        lie("move a receipt to the other worker", more.move_receipt),
    ),
    _c(
        "request-id",
        "a recorded request id is that of the sample with the same hashes and worker",
        receipts.hold_ids,
        lie("exchange two request ids", more.swap_ids),
        lie("tell a sample as the other worker's", more.move_worker),
        lie("let the recorder see a cut exchange as the client sees a whole one", more.call_partial_complete),
    ),
    _c(
        "round-robin",
        "both workers served equal counts",
        receipts.hold_balance,
        lie("let one worker serve two requests of the other", more.unbalance),
    ),
    _c(
        "witness-time",
        "the client took no less time than the recorder before the worker",
        receipts.hold_witness,
        lie("halve the client's times of an arm", more.halve_client_times, decide=True),
        lie("halve the candidate's times in every repetition", lies.shave_times, decide=True),
    ),
    _c(
        "slot-pace",
        "eight requests are open as long as there are offers",
        clocks.hold_pace,
        lie("halve the slowest exchange of a candidate arm", timed.shorten_slowest, decide=True),
        lie("offer half of a batch later than its slots were free", timed.load_less),
    ),
    _c(
        "engine-times",
        "no answer or first text came sooner than the engine says that it worked at it",
        clocks.hold_work,
        lie("let an engine work for longer than the client waited", timed.work_longer, forgery.streaming),
        lie("let first texts come before the prompts were read", timed.read_longer, forgery.streaming),
        lie("let the first texts of an arm come at once", timed.hasten_first_texts, forgery.streaming, decide=True),
        lie("let an answer end a second after it was written", timed.write_a_word, forgery.streaming),
    ),
    _c(
        "engine-dates",
        "the engine made each answer within its exchange, by one offset of its clock",
        clocks.hold_dated,
        lie("let an answer have been made the day before", partial(timed.date_back, "comparison.json")),
        lie("let a comparison have run thirty days after its answers", timed.move_arms),
    ),
    _c(
        "engine-build",
        "one build of the engine is named by all answers that name one",
        clocks.hold_build,
        lie("let two answers name two builds", timed.build_anew),
    ),
    _c(
        "decision-kind",
        "the decision is of the comparison's kind",
        verdict.hold_kind,
        lie("name another kind in the decision", more.other_kind),
    ),
    _c(
        "decision-pairs",
        "both sides of every pair follow from the samples",
        verdict.hold_pairs,
        lie("shorten a p95", more.better_tail, forgery.streaming),
        lie("take the 22nd of 24 as p95", more.other_percentile),
        lie("tell another token total", more.other_tokens),
        lie("tell another memory figure", more.other_memory),
        lie("halve a wall time in a pair", more.other_wall),
        lie("exchange the main times of two arms in the samples alone", lies.exchange_arm_times),
    ),
    _c(
        "decision-gates",
        "every gate, row, ratio and holding follows",
        verdict.hold_gates,
        lie("turn the decision round with its whole gate table", more.flip_everything),
        lie("turn one gate round", more.flip_gate),
        lie("tell another ratio", more.other_ratio),
        lie("drop a row of a gate", more.drop_gate_row),
        lie("tell an easier gate twice", more.other_gate),
        needs=("decision-kind",),
    ),
    _c(
        "decision-failed",
        "the failed gates are all that do not hold",
        verdict.hold_failed,
        lie("change the failed gates alone", more.forget_failed),
    ),
    _c(
        "decision-disqualified",
        "the disqualifications are those that the evidence gives",
        verdict.hold_disqualified,
        lie("change the disqualifications alone", more.excuse),
        lie("overlook an engine error", more.keep_log_error),
        lie("overlook a stepped wall clock", more.step_clock),
        lie("overlook a late client", more.be_late),
        Mutation("take the date control away from a date-sensitive comparison", told.forget_date_control),
    ),
    _c(
        "decision-qualified",
        "qualified means that nothing disqualifies",
        verdict.hold_qualified,
        lie("turn performanceComparisonQualified round", more.raise_qualified),
    ),
    _c(
        "decision-outcome",
        "the candidate is taken only when qualified and no gate failed",
        verdict.hold_decision,
        lie("turn the decision round", more.flip_decision),
    ),
    _c(
        "decision-requalification",
        "a candidate needs an attempt of its own",
        verdict.hold_requalification,
        lie("turn the requalification round", more.drop_requalification),
    ),
)

FAMILY = Family(
    kind="comparison",
    find=settings_index.TABLE.find,
    open=Comparison,
    checks=_CHECKS,
    documents=documents,
    facts=facts,
)

INDEX_FAMILY = Family(
    kind="package",
    find=lambda view: [""],
    open=settings_index.SettingsIndex,
    checks=(
        Check(
            "index-complete",
            "every comparison has one row of the index",
            index.hold_complete,
            (
                Mutation("drop a comparison from the index", more.drop_row, resealed=False),
                Mutation("list a comparison that is not there", more.invent_row, resealed=False),
                Mutation("reverse the index", more.reverse_index, resealed=False),
                Mutation("leave a file beside the comparisons", more.stray_file),
            ),
        ),
        Check(
            "index-files",
            "the hashes of the index are those of the files",
            index.hold_files,
            (Mutation("write another hash into the index", more.twist_hash, resealed=False),),
        ),
        Check(
            "index-rows",
            "a row says what the comparison was found to be",
            index.hold_rows,
            (
                Mutation("turn a decision round in the index alone", more.twist_row, resealed=False),
                Mutation("list a comparison under another profile", more.twist_profile, resealed=False),
            ),
        ),
        Check(
            "index-distinct",
            "no comparison is a copy of another",
            settings_index.hold_distinct,
            (Mutation("package a comparison twice", more.copy_comparison),),
        ),
        Check(
            "index-runs",
            "the latest run of a comparison has its id, earlier ones are numbered from the oldest",
            settings_index.hold_runs,
            (
                Mutation("tell the latest run as an earlier one", runs.be_latest),
                Mutation("number a run as if others had been before it", runs.skip_run),
                Mutation("let a comparison begin before its run", runs.begin_before),
                Mutation("take the stamp from the id of a run", runs.lose_stamp),
            ),
        ),
    ),
    documents=settings_index.TABLE.documents,
    facts=settings_index.facts,
)

CONTROLS = (("receipt-unmatched", lie("alter the hash of a receipt", more.alter_receipt_hash)),)

SHAPE_LIES = (
    setting_to("make a time negative", "samples.json", ("samples", 20, "totalSeconds"), -1),
    setting_to("make a time huge", "samples.json", ("samples", 20, "totalSeconds"), 10**12),
    setting_to("raise a threshold of the protocol", "comparison.json", ("protocol", "concurrency"), 16),
    setting_to("plan fewer main requests", "comparison.json", ("protocol", "mainPerArm"), 8),
    setting_to(
        "run the arms in another order", "comparison.json", ("protocol", "order"), ["A", "B", "A", "B", "A", "B"]
    ),
    setting_to("drop an arm", "comparison.json", ("arms",), lambda arms: arms[:4]),
    setting_to(
        "tell fewer main samples in decision.json's pairs", "decision.json", ("pairs",), lambda pairs: pairs[:2]
    ),
)
