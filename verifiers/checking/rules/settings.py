"""The table of everything that must hold of a complete setting comparison.

How it was run and what was decided is here; `settings_samples`, `settings_receipts` and `settings_clocks` are the rows
between the two.
"""

from __future__ import annotations

import hashlib
from decimal import Decimal
from typing import Any, Dict, List, Tuple

from checking.check import Family, Mutation
from checking.later import Later
from checking.package import View
from checking.rules import (
    agreement,
    protocol,
    settings_clocks,
    settings_index,
    settings_receipts,
    settings_samples,
    shapes,
    shapes_comparison,
    shapes_decision,
    verdict,
)
from checking.rules.comparison import ARMS, Comparison, ledgers_below
from checking.rules.row import lie, row, setting_to
from checking.shape import Shape

agreement_lies, protocol_lies, receipts_lies, samples_lies, verdict_lies = map(
    Later, ("checking.rules.%s_lies" % name for name in ("agreement", "protocol", "receipts", "samples", "verdict"))
)
forgery = Later("checking.rules.forgery")

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
    prints = []
    for arm in ARMS:
        rows = [
            (row["responseSha256"], str(row["startedSeconds"]), str(row["ttftSeconds"]), str(row["totalSeconds"]))
            for row in subject.main(arm)
        ]
        prints.append(("samples.json#" + arm, hashlib.sha256(repr(rows).encode()).hexdigest()))
    told = {key: subject.data[key] for key in ("id", "case", "profile", "engine", "kind", "synthetic")}
    for key in ("decision", "failedGates", "performanceComparisonQualified"):
        told[key] = right[key]
    return {
        "row": told,
        "run": subject.data["run"],
        "startedAt": subject.data["arms"][0]["startedAt"] if subject.data["arms"] else None,
        "prints": prints,
        "counts": {"receipts": sum(map(len, subject.ledgers.values())), "bodies": len(subject.bodies.names)},
    }


def _flip(value: Any) -> Any:
    return not value


RUN = (
    row(
        "comparison-files",
        "the folder holds its documents, ledgers and bodies, and nothing else",
        protocol.hold_files,
        lie("leave a further file in a comparison", protocol_lies.add_file),
    ),
    row(
        "comparison-names",
        "every document names its comparison, every ledger its arm and worker",
        protocol.hold_names,
        lie("give a comparison another id than its folder", protocol_lies.rename_self),
        lie("name another comparison in samples.json", protocol_lies.rename_samples),
        lie("write the other worker's alias into a ledger", protocol_lies.rename_ledger),
    ),
    row(
        "comparison-workers",
        "two workers on two devices",
        protocol.hold_workers,
        lie("exchange the devices of the workers", protocol_lies.swap_devices),
    ),
    row(
        "arm-order",
        "the arms ran A, B, B, A, A, B, one after the other",
        protocol.hold_order,
        lie("exchange the arms of a repetition", protocol_lies.swap_arm_labels),
        lie("put the last repetition first", protocol_lies.reorder_repetitions),
        setting_to("give an arm another sequence number", "comparison.json", ("arms", 0, "sequence"), 6),
    ),
    row(
        "arm-calendar",
        "every arm began on a real day and not before the one before had ended",
        protocol.hold_calendar,
        lie("let an arm begin while another ran", protocol_lies.late_arm),
        lie("begin on a day that does not exist", protocol_lies.no_such_day),
    ),
    row(
        "setting-value",
        "every launch carries the setting once, with its arm's value",
        protocol.hold_setting,
        lie("launch a candidate arm with the baseline's value", protocol_lies.launch_alike),
        setting_to("name another candidate value", "comparison.json", ("setting", "candidate"), "another"),
        setting_to("compare a value with itself", "comparison.json", ("setting", "candidate"), "same"),
    ),
    row(
        "launch-equal",
        "between arms nothing but the setting differs",
        protocol.hold_launches,
        lie("launch one arm with a further argument", protocol_lies.change_two_settings),
        lie("launch one worker with a further variable", protocol_lies.change_environment),
    ),
    row(
        "protocol-body",
        "the request bodies say what the protocol says",
        protocol.hold_protocol,
        setting_to("tell another temperature", "comparison.json", ("protocol", "temperature"), Decimal("1.5")),
        setting_to("tell another output budget", "comparison.json", ("protocol", "outputBudget"), 99999),
        setting_to(
            "tell streams as plain answers, or the other way round", "comparison.json", ("protocol", "stream"), _flip
        ),
    ),
    row(
        "timeline-order",
        "the moments of an arm stand in order and its wall time ends with its last main response",
        protocol.hold_timeline,
        lie("let an engine be ready before it was started", protocol_lies.swap_moments),
        lie("halve the wall time of an arm", protocol_lies.shorten_wall),
    ),
    row(
        "timeline-samples",
        "samples lie in their phase, as the timeline says",
        protocol.hold_moments,
        lie("tell a main batch a millisecond long", protocol_lies.shorten_main),
        lie("let the warm-ups end before they did", protocol_lies.stretch_warm_up),
    ),
    row(
        "snapshot-devices",
        "one snapshot an arm, of one source, with every device once",
        protocol.hold_snapshots,
        lie("copy one device's row over the other's", protocol_lies.shave_memory),
        lie("drop a snapshot", protocol_lies.drop_snapshot),
        lie("take one snapshot from another source", protocol_lies.mix_sources),
    ),
    row(
        "snapshot-moment",
        "a snapshot is taken between native and round-robin warm-ups",
        protocol.hold_snapshot_moment,
        lie("move a snapshot behind the load", protocol_lies.move_snapshot),
        lie("move a snapshot before the native warm-ups", protocol_lies.hurry_snapshot),
    ),
    row(
        "snapshot-memory",
        "what was not read is null with a reason, never 0",
        protocol.hold_memory,
        lie("write 0 where nothing was read", protocol_lies.zero_memory),
        lie("leave out a figure without a reason", protocol_lies.hide_memory),
        lie("use more memory than there is", protocol_lies.overfill_memory),
    ),
    row(
        "synthetic-mark",
        "what the synthetic engine made says so everywhere",
        protocol.hold_synthetic,
        lie("turn the synthetic mark round", protocol_lies.deny_synthetic),
        setting_to("name an engine that the manifest does not know", "comparison.json", ("engine",), "another-engine"),
    ),
    row(
        "client-late",
        "the client was late when its figures say so, and only then",
        agreement.hold_late,
        lie("deny that the client was late", agreement_lies.drop_client_lag),
        lie("make a percentile greater than the greatest", agreement_lies.swap_client_lag),
        lie("deny a late client by its greatest send lag alone", agreement_lies.hide_send_lag),
        lie("allow one arm's client to be later than the others", agreement_lies.allow_more),
    ),
    row(
        "client-lag",
        "the client's send lag is the greatest of its main samples",
        agreement.hold_send_lag,
        lie("tell a smaller send lag than a main sample had", agreement_lies.shrink_send_lag),
        lie("let a main sample leave late and not say so", agreement_lies.lag_quietly),
    ),
    row(
        "log-window",
        "a log finding lies in the main window",
        protocol.hold_log_window,
        lie("put a log finding before the main window", protocol_lies.invent_log_finding),
    ),
    row(
        "date-control",
        "a date control reads every worker in every arm",
        protocol.hold_date,
        lie("control the date on one worker alone", protocol_lies.forget_a_reading),
    ),
    row(
        "date-tokens",
        "readings of one hash tell one number of tokens",
        agreement.hold_date_tokens,
        lie("tell more tokens in one reading of the date control", agreement_lies.count_more_tokens),
    ),
)

DECISION = (
    row(
        "decision-kind",
        "the decision is of the comparison's kind",
        verdict.hold_kind,
        lie("name another kind in the decision", verdict_lies.other_kind),
    ),
    row(
        "decision-pairs",
        "both sides of every pair follow from the samples",
        verdict.hold_pairs,
        lie("shorten a p95", verdict_lies.better_tail, forgery.streaming),
        lie("take the 22nd of 24 as p95", verdict_lies.other_percentile),
        lie("tell another token total", verdict_lies.other_tokens),
        lie("tell another memory figure", verdict_lies.other_memory),
        lie("halve a wall time in a pair", verdict_lies.other_wall),
        lie("exchange the main times of two arms in the samples alone", samples_lies.exchange_arm_times),
    ),
    row(
        "decision-gates",
        "every gate, row, ratio and holding follows",
        verdict.hold_gates,
        lie("turn the decision round with its whole gate table", verdict_lies.flip_everything),
        lie("turn one gate round", verdict_lies.flip_gate),
        lie("tell another ratio", verdict_lies.other_ratio),
        lie("drop a row of a gate", verdict_lies.drop_gate_row),
        lie("tell an easier gate twice", verdict_lies.other_gate),
        needs=("decision-kind",),
    ),
    row(
        "decision-failed",
        "the failed gates are all that do not hold",
        verdict.hold_failed,
        lie("change the failed gates alone", verdict_lies.forget_failed),
    ),
    row(
        "decision-disqualified",
        "the disqualifications are those that the evidence gives",
        verdict.hold_disqualified,
        lie("change the disqualifications alone", verdict_lies.excuse),
        lie("overlook an engine error", verdict_lies.keep_log_error),
        lie("overlook a stepped wall clock", verdict_lies.step_clock),
        lie("overlook a late client", verdict_lies.be_late),
        Mutation("take the date control away from a date-sensitive comparison", agreement_lies.forget_date_control),
    ),
    row(
        "decision-qualified",
        "qualified means that nothing disqualifies",
        verdict.hold_qualified,
        lie("turn performanceComparisonQualified round", verdict_lies.raise_qualified),
    ),
    row(
        "decision-outcome",
        "the candidate is taken only when qualified and no gate failed",
        verdict.hold_decision,
        lie("turn the decision round", verdict_lies.flip_decision),
    ),
    row(
        "decision-requalification",
        "a candidate needs an attempt of its own",
        verdict.hold_requalification,
        lie("turn the requalification round", verdict_lies.drop_requalification),
    ),
)

FAMILY = Family(
    kind="comparison",
    find=settings_index.TABLE.find,
    open=Comparison,
    checks=RUN + settings_samples.CHECKS + settings_receipts.CHECKS + settings_clocks.CHECKS + DECISION,
    documents=documents,
    facts=facts,
)

CONTROLS = (("receipt-unmatched", lie("alter the hash of a receipt", receipts_lies.alter_receipt_hash)),)

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
