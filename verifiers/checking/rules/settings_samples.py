"""What must hold of the samples of a complete setting comparison and of their stored bodies."""

from __future__ import annotations

from checking.later import Later
from checking.rules import agreement, samples
from checking.rules.row import lie, row

agreement_lies = Later("checking.rules.agreement_lies")
answers_lies = Later("checking.rules.answers_lies")
samples_lies = Later("checking.rules.samples_lies")
forgery = Later("checking.rules.forgery")

CHECKS = (
    row(
        "sample-offers",
        "exactly the planned offers, in their order",
        samples.hold_offers,
        lie("drop a main sample", samples_lies.drop_sample, decide=True),
        lie("list a main sample twice", samples_lies.add_twice),
        lie("exchange two samples in the list", samples_lies.reorder_samples),
        lie("drop a bad pair and relabel the third", samples_lies.relabel_repetition),
        lie("empty the samples", samples_lies.empty_samples),
    ),
    row(
        "sample-labels",
        "an offer's id says its repetition, arm and phase",
        samples.hold_labels,
        lie("count a warm-up as a main request", samples_lies.relabel_warm_up, decide=True),
        lie("exchange the arms of a repetition's samples", samples_lies.swap_sample_arms, decide=True),
        lie("leave out a native warm-up's worker", samples_lies.forget_native_worker),
    ),
    row(
        "sample-native",
        "each arm warms every worker natively once",
        samples.hold_native,
        lie("warm one worker twice", samples_lies.both_native_on_one),
        needs=("sample-offers", "sample-labels"),
    ),
    row(
        "fixed-body",
        "every request of a phase is the one fixed body",
        samples.hold_fixed_body,
        lie("ask one main request something easier", samples_lies.ask_something_easier),
    ),
    row(
        "model-one",
        "one model is asked for, and one answers",
        agreement.hold_models,
        lie("ask another model in the main body", agreement_lies.ask_another_model),
        lie("let another model answer once", agreement_lies.answer_as_another),
    ),
    row(
        "answer-own",
        "no two samples have one answer",
        agreement.hold_answer_ids,
        lie("give a main sample the answer of another", agreement_lies.answer_twice),
    ),
    row(
        "body-stored",
        "every cited hash is a stored body",
        samples.hold_stored,
        lie("remove a response body", answers_lies.remove_body),
    ),
    row(
        "body-digest",
        "the name of a body is its SHA-256",
        samples.hold_digests,
        lie("alter a response body under its old name", answers_lies.alter_body),
    ),
    row(
        "body-cited",
        "no body lies there that nothing cites",
        samples.hold_cited,
        lie("add a body that nothing cites", answers_lies.add_body),
    ),
    row(
        "body-length",
        "every told length is that of the stored body",
        samples.hold_lengths,
        lie("tell a response a byte shorter", answers_lies.misstate_length),
    ),
    row(
        "sample-class",
        "the classification follows from the stored bytes",
        samples.hold_classification,
        lie("call a capped answer normal", answers_lies.cap_quietly),
        lie("call a cut stream normal", answers_lies.cut_quietly, forgery.streaming),
        lie("call a broken stream normal", answers_lies.break_quietly, forgery.streaming),
        lie("call an error event normal", answers_lies.error_quietly, forgery.streaming),
        lie("call an answer with a doubled key normal", answers_lies.double_key),
        lie("change a classification alone", answers_lies.call_failed_normal),
    ),
    row(
        "sample-finish",
        "the finish reason is that of the stored body",
        samples.hold_finish,
        lie("tell another finish reason", answers_lies.invent_finish),
    ),
    row(
        "sample-tokens",
        "tokens are those that the engine reported in the stored body",
        samples.hold_tokens,
        lie("tell more completion tokens than the body", answers_lies.raise_tokens, decide=True),
        lie("tell more prompt tokens than the body", answers_lies.raise_prompt_tokens),
        lie("keep the tokens of a body without usage", answers_lies.drop_usage),
    ),
    row(
        "sample-status",
        "a complete exchange has a status",
        samples.hold_status,
        lie("leave out a status", answers_lies.drop_status),
    ),
    row(
        "ttft-present",
        "a stream with text has a time to it, and nothing else has",
        samples.hold_ttft,
        lie("leave out the slowest time to first text", samples_lies.drop_ttft, forgery.streaming, decide=True),
        lie("time a plain answer", samples_lies.time_native),
        lie("time reasoning that is not there", samples_lies.invent_reasoning),
    ),
    row(
        "time-order",
        "first text comes after the first byte out and before the last byte in",
        samples.hold_times,
        lie("let the first text come after the last byte", samples_lies.exceed_total, decide=True),
        lie("make a time to first text zero", samples_lies.zero_ttft, decide=True),
    ),
    row(
        "concurrency",
        "never more than eight requests are open at once",
        samples.hold_concurrency,
        lie("start a whole main batch at once", samples_lies.start_all_at_once),
    ),
    row(
        "start-order",
        "offers began in the order of their numbers, as far as eight slots allow",
        samples.hold_started,
        lie("start the last main offer first", samples_lies.start_backwards),
    ),
    row(
        "arm-copy",
        "no main batch is a copy of another",
        samples.hold_arm_copies,
        lie("copy a repetition over another", samples_lies.copy_arm, decide=True),
    ),
    row(
        "sample-copy",
        "no sample is a copy of another",
        samples.hold_sample_copies,
        lie("replace the slowest sample by a copy of the fastest", samples_lies.drop_slowest, decide=True),
    ),
)
