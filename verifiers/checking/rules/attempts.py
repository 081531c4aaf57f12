"""The table of everything that must hold of functional attempts and their index, with the lies that prove it."""

from __future__ import annotations

from checking.check import Check, Family, Mutation
from checking.later import Later
from checking.rules import converged, index, receipts, samples

lies = Later("checking.rules.attempts_lies")


C = converged
CHECKS = (
    Check(
        "attempt-files",
        "an attempt's folder holds its documents, ledgers and bodies",
        C.hold_files,
        (Mutation("leave a further file in an attempt", lies.add_file),),
    ),
    Check(
        "attempt-names",
        "every document names its attempt",
        C.hold_names,
        (
            Mutation("give an attempt another id", lies.other_id),
            Mutation("tell an attempt as another run", lies.other_run),
        ),
    ),
    Check(
        "attempt-shape",
        "topology, surface, workers and launches fit one another",
        C.hold_shape,
        (
            Mutation("forget a worker of two", lies.forget_worker),
            Mutation("tell exact traffic without its probe", lies.forget_probe),
            Mutation("route requests through no gateway", lies.forget_gateway),
        ),
    ),
    Check(
        "attempt-offers",
        "the samples of an attempt are numbered without a gap",
        C.hold_offers,
        (
            Mutation("leave out the first offer", lies.leave_out_offer),
            Mutation("tell a functional request as a main one", lies.tell_as_main),
        ),
    ),
    Check(
        "attempt-stored",
        "every hash that an attempt cites is a stored body",
        C.hold_stored,
        (Mutation("remove a functional answer", lies.remove_answer),),
    ),
    Check(
        "attempt-digest",
        "the name of a functional body is its SHA-256",
        samples.hold_digests,
        (Mutation("alter a functional answer under its old name", lies.alter_answer),),
    ),
    Check(
        "attempt-cited",
        "no functional body lies there that nothing cites",
        C.hold_cited,
        (Mutation("add a functional body that nothing cites", lies.uncited_body),),
    ),
    Check(
        "attempt-length",
        "every told length of an attempt is that of the stored body",
        samples.hold_lengths,
        (Mutation("tell a functional answer a byte longer", lies.longer_answer),),
    ),
    Check(
        "attempt-class",
        "a functional classification follows from the stored bytes",
        samples.hold_classification,
        (
            Mutation("call a capped functional answer normal", lies.cap_quietly),
            Mutation("call a broken functional answer normal", lies.break_quietly),
        ),
    ),
    Check(
        "attempt-finish",
        "a functional finish reason is that of the stored body",
        samples.hold_finish,
        (Mutation("tell another functional finish reason", lies.other_finish),),
    ),
    Check(
        "attempt-tokens",
        "functional token counts are those of the stored body",
        samples.hold_tokens,
        (Mutation("tell more functional tokens than the body", lies.more_tokens),),
    ),
    Check(
        "attempt-times",
        "functional times are in order",
        samples.hold_times,
        (Mutation("let functional text come after its end", lies.text_after_end),),
    ),
    Check(
        "attempt-sequence",
        "the receipts of an attempt are numbered without a gap",
        C.hold_sequence,
        (Mutation("number an attempt's receipts from two", lies.number_from_two),),
    ),
    Check(
        "attempt-traffic",
        "an attempt's traffic is a POST to a serving path, and nothing else",
        receipts.hold_traffic,
        (Mutation("call functional traffic a control", lies.hide_traffic),),
    ),
    Check(
        "attempt-complete",
        "a complete functional exchange has a status and no reason",
        receipts.hold_completeness,
        (Mutation("cut a functional exchange without a reason", lies.cut_exchange),),
    ),
    Check(
        "attempt-headers",
        "recorded headers of an attempt agree with the receipt",
        receipts.hold_headers,
        (Mutation("record another functional content length", lies.other_length),),
    ),
    Check(
        "attempt-unmatched",
        "every functional receipt belongs to one sample",
        C.hold_matched,
        (Mutation("alter the hash of a functional receipt", lies.alter_receipt),),
    ),
    Check(
        "attempt-unreceipted",
        "every whole functional sample has one receipt",
        receipts.hold_receipted,
        (Mutation("drop a functional receipt", lies.drop_receipt),),
    ),
    Check(
        "attempt-request-id",
        "a functional request id is that of the sample with the same hashes",
        C.hold_ids,
        (Mutation("give a functional receipt another id", lies.other_request_id),),
    ),
    Check(
        "attempt-counts",
        "requests and classes are counted as the bodies classify",
        C.hold_counts,
        (
            Mutation("count a request more", lies.count_more),
            Mutation("count a capped answer as normal", lies.count_capped_normal),
        ),
    ),
    Check(
        "attempt-outcome",
        "the outcome follows from bodies, receipts and token ids",
        C.hold_outcome,
        (
            Mutation("turn a set-up failure into a success", lies.succeed_in_setup),
            Mutation("turn a success into a failure", lies.fail_a_success),
            Mutation("tell a blocked attempt as deferred", lies.defer_blocked),
            Mutation("tell the outcome of an attempt that did not end", lies.decide_unended),
            Mutation("turn one-prefill engagement into a success", lies.promote_partial),
        ),
    ),
    Check(
        "attempt-setup",
        "a set-up failure has no traffic, and only what ended is a success",
        C.hold_setup,
        (
            Mutation("tell traffic as a set-up failure", lies.fail_in_setup),
            Mutation("end an attempt before it began", lies.end_before_begin),
            Mutation("tell a success that did not end", lies.succeed_without_end),
        ),
    ),
    Check(
        "attempt-exact",
        "exact engagement is what token ids and ledgers say",
        C.hold_exact,
        (
            Mutation("tell other token ids as equal", lies.other_token_ids),
            Mutation("tell one prefill as full engagement", lies.admit_partial),
            Mutation("invent traffic of an idle worker", lies.invent_traffic),
            Mutation("leave out the idle worker", lies.forget_idle),
        ),
    ),
    Check(
        "attempt-scope",
        "only a success may be cited, for its own surface",
        C.hold_scope,
        (
            Mutation("accept an attempt that failed", lies.accept_failure),
            Mutation("accept an attempt for another surface", lies.accept_other_surface),
        ),
    ),
    Check(
        "attempt-round-robin",
        "a round-robin success reached its workers equally often",
        C.hold_balance,
        (Mutation("drop one worker's half of a round-robin success", lies.lose_half),),
    ),
    Check(
        "attempt-controls",
        "a kept control has its body, a withheld one a reason",
        C.hold_controls,
        (
            Mutation("withhold a control without a reason", lies.withhold_silently),
            Mutation("keep a control and withhold it", lies.keep_and_withhold),
        ),
    ),
    Check(
        "attempt-synthetic",
        "what the synthetic engine answered says so",
        C.hold_synthetic,
        (Mutation("turn an attempt's synthetic mark round", lies.turn_synthetic),),
    ),
)

FAMILY = Family(kind="attempt", find=C.TABLE.find, open=C.Attempt, checks=CHECKS, documents=C.documents, facts=C.facts)
INDEX_FAMILY = index.family(
    C.TABLE,
    (("tell another outcome in the converged index alone", index.lies.other_outcome),),
    Check(
        "attempt-copy",
        "no attempt is a copy of another",
        index.hold_distinct,
        (Mutation("package an attempt twice under another run", lies.package_twice),),
    ),
    lists=(("reverse the index of the attempts", index.lies.reverse),),
)
CONTROLS = (("attempt-unmatched", Mutation("alter the hash of a functional receipt", lies.alter_receipt)),)
