"""The table of everything that must hold of incomplete comparisons and their index."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable

from checking.check import Check, Family, Mutation
from checking.later import Later
from checking.rules import aborted, index, protocol, receipts, samples, unfinished, unfinished_samples

lies = Later("checking.rules.unfinished_lies")


def lie(name: str, tell: Callable[..., Any]) -> Mutation:
    """A coherent forgery of the first incomplete comparison that has something of its kind."""
    return Mutation(name, partial(lies.forge, tell))


CHECKS = (
    Check(
        "incomplete-files",
        "an incomplete comparison has no decision and no stray file",
        unfinished.hold_files,
        (lie("decide an incomplete comparison", lies.decide),),
    ),
    Check(
        "incomplete-names",
        "every document names the run",
        unfinished.hold_names,
        (
            lie("give an incomplete comparison another run", lies.other_run),
            lie("tell an incomplete comparison as another's", lies.other_comparison),
            lie("name another run in its snapshots", lies.other_snapshots),
        ),
    ),
    Check(
        "incomplete-arms",
        "the arms that were begun are the first of the plan",
        unfinished.hold_arms,
        (lie("reverse the arms that were begun", lies.reverse_arms),),
    ),
    Check(
        "incomplete-offers",
        "every offer is of the plan and stands once; none is missing that a sample names",
        unfinished.hold_offers,
        (
            lie("drop an offer that has a sample", lies.drop_sampled),
            lie("tell an offer as another phase's", lies.other_phase),
        ),
    ),
    Check(
        "incomplete-gaps",
        "offers run without a gap",
        unfinished.hold_gaps,
        (lie("drop an offer from the middle", lies.drop_offer),),
    ),
    Check(
        "incomplete-fate",
        "a fate is what sample and receipt say",
        unfinished.hold_fates,
        (
            lie("call a timeout completed", lies.complete_partial),
            lie("call a completed offer never started", lies.never_started),
            lie("call an offer completed that nobody answered", lies.complete_unanswered),
        ),
    ),
    Check(
        "incomplete-counts",
        "offers are completed, timed out, failed and never started, each counted",
        unfinished.hold_counts,
        (lie("count an offer less", lies.miscount),),
    ),
    Check(
        "incomplete-client",
        "the client's bytes and the place of an offer are those of the sample",
        unfinished.hold_client,
        (
            lie("lose the client's bytes of an offer", lies.lose_client),
            lie("give an offer another request", lies.other_request),
            lie("tell a native warm-up as the other worker's", lies.other_worker),
            lie("tell a sample of an aborted run as a functional one", lies.call_functional),
        ),
    ),
    Check(
        "incomplete-upstream",
        "the upstream bytes are those of the receipt",
        unfinished.hold_upstream,
        (
            lie("call an upstream partial complete", lies.complete_upstream),
            lie("forget what upstream sent", lies.forget_upstream),
        ),
    ),
    Check(
        "incomplete-stored",
        "whole bodies and partials are stored",
        unfinished.hold_stored,
        (
            lie("remove a partial", lies.drop_partial),
            lie("remove a body of an incomplete comparison", lies.remove_body),
        ),
    ),
    Check(
        "incomplete-apart",
        "a partial is never kept as a whole body",
        unfinished.hold_apart,
        (lie("keep a partial among the bodies", lies.partial_as_whole),),
    ),
    Check(
        "incomplete-digest",
        "the name of a body is its SHA-256",
        unfinished.hold_digests,
        (lie("alter a body of an incomplete comparison", lies.alter_body),),
    ),
    Check(
        "partial-digest",
        "the name of a partial is the SHA-256 of its own bytes",
        unfinished.hold_partials,
        (lie("alter the bytes of a partial", lies.alter_partial),),
    ),
    Check(
        "incomplete-length",
        "every told length is that of the stored bytes",
        unfinished.hold_lengths,
        (lie("tell a response a byte longer", lies.longer_response),),
    ),
    Check(
        "incomplete-class",
        "the classification follows from the stored bytes",
        samples.hold_classification,
        (lie("change a classification of an incomplete comparison", lies.other_class),),
    ),
    Check(
        "incomplete-tokens",
        "tokens are those of the stored body",
        samples.hold_tokens,
        (lie("tell more tokens in an incomplete comparison", lies.more_tokens),),
    ),
    Check(
        "incomplete-sequence",
        "the numbers of a ledger grow",
        receipts.hold_increasing,
        (lie("number all receipts of a ledger one", lies.shift),),
    ),
    Check(
        "incomplete-request-id",
        "a recorded request id has its sample's hashes",
        receipts.hold_ids_seen,
        (lie("alter the hash of a receipt of an incomplete comparison", lies.alter_receipt),),
    ),
    Check(
        "incomplete-timeline",
        "the moments that were reached stand in order",
        protocol.hold_timeline,
        (lie("let an engine be ready before it began", lies.be_ready_early),),
    ),
    Check(
        "incomplete-reason",
        "what is whole is not incomplete, and an abort comes after its arms",
        unfinished.hold_reason,
        (lie("abort before the beginning", lies.abort_early),),
    ),
    *(
        Check(code, truth, hold, tuple(lie(name, tell) for name, tell in told))
        for code, truth, hold, told in (*aborted.ROWS, *unfinished_samples.ROWS)
    ),
)


FAMILY = Family(
    kind="incomplete",
    find=unfinished.TABLE.find,
    open=unfinished.Incomplete,
    checks=CHECKS,
    documents=unfinished.documents,
    facts=unfinished.facts,
)
INDEX_FAMILY = index.family(
    unfinished.TABLE,
    (
        ("tell another reason in the incomplete index", index.lies.other_reason),
        ("count more completed in the incomplete index", index.lies.more_completed),
    ),
    Check(
        "incomplete-unselected",
        "no setting is selected from an incomplete comparison",
        unfinished.hold_unselected,
        (Mutation("select a setting from an incomplete comparison", lies.select),),
    ),
    subject=unfinished.IncompleteIndex,
)
CONTROLS = (
    ("partial-digest", lie("alter the bytes of a partial", lies.alter_partial)),
    ("incomplete-request-id", lie("alter the hash of a receipt of an incomplete comparison", lies.alter_receipt)),
)
