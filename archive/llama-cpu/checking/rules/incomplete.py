"""The table of everything that must hold of incomplete comparisons and their index."""

from __future__ import annotations

from checking.check import Check, Family, Mutation
from checking.rules import aborted_lies, index, protocol, receipts, samples, unfinished
from checking.rules import unfinished_lies as lies
from checking.rules.unfinished_lies import lie

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
        (lie("give an incomplete comparison another run", lies.on_data(lambda value: value.update(run="another"))),),
    ),
    Check(
        "incomplete-arms",
        "the arms that were begun are the first of the plan",
        unfinished.hold_arms,
        (lie("reverse the arms that were begun", lies.on_data(lies.swap_arms)),),
    ),
    Check(
        "incomplete-offers",
        "every offer is of the plan and stands once; none is missing that a sample names",
        unfinished.hold_offers,
        (
            lie("drop an offer that has a sample", lies.drop_sampled),
            lie(
                "tell an offer as another phase's",
                lies.on_offer(lambda one: one.update(phase="main"), lambda one: one["phase"] != "main"),
            ),
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
            lie(
                "call a completed offer never started",
                lies.on_offer(
                    lambda one: one.update(fate="never-started", sample=False), lambda one: one["fate"] == "completed"
                ),
            ),
            lie(
                "call an offer completed that nobody answered",
                lies.on_offer(lambda one: one.update(fate="completed"), lambda one: not one["sample"]),
            ),
        ),
    ),
    Check(
        "incomplete-counts",
        "offers are completed, timed out, failed and never started, each counted",
        unfinished.hold_counts,
        (lie("count an offer less", lambda desk: lies.miscount(desk)),),
    ),
    Check(
        "incomplete-client",
        "the client's bytes are those of the sample",
        unfinished.hold_client,
        (
            lie(
                "lose the client's bytes of an offer",
                lies.on_offer(
                    lambda one: one.update(client=None),
                    lambda one: one["client"] is not None and one["client"]["bytes"],
                ),
            ),
            lie(
                "give an offer another request",
                lies.on_offer(lambda one: one.update(requestBytes=one["requestBytes"] + 1), lambda one: one["sample"]),
            ),
        ),
    ),
    Check(
        "incomplete-upstream",
        "the upstream bytes are those of the receipt",
        unfinished.hold_upstream,
        (
            lie(
                "call an upstream partial complete",
                lies.on_offer(
                    lambda one: one["upstream"].update(complete=True),
                    lambda one: one["upstream"] is not None and not one["upstream"]["complete"],
                ),
            ),
            lie(
                "forget what upstream sent",
                lies.on_offer(lambda one: one.update(upstream=None), lambda one: one["upstream"] is not None),
            ),
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
        (
            lie(
                "tell a response a byte longer",
                lies.on_sample(lambda row: row.update(responseBytes=row["responseBytes"] + 1)),
            ),
        ),
    ),
    Check(
        "incomplete-class",
        "the classification follows from the stored bytes",
        samples.hold_classification,
        (
            lie(
                "change a classification of an incomplete comparison",
                lies.on_sample(
                    lambda row: row.update(classification="CAPPED" if row["classification"] != "CAPPED" else "NORMAL")
                ),
            ),
        ),
    ),
    Check(
        "incomplete-tokens",
        "tokens are those of the stored body",
        samples.hold_tokens,
        (
            lie(
                "tell more tokens in an incomplete comparison",
                lies.on_sample(lambda row: row.update(completionTokens=999)),
            ),
        ),
    ),
    Check(
        "incomplete-sequence",
        "the numbers of a ledger grow",
        receipts.hold_increasing,
        (lie("number all receipts of a ledger one", lambda desk: lies.shift(desk)),),
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
        (lie("let an engine be ready before it began", lies.on_data(lambda value: lies.be_ready_early(value))),),
    ),
    Check(
        "incomplete-reason",
        "what is whole is not incomplete, and an abort comes after its arms",
        unfinished.hold_reason,
        (lie("abort before the beginning", lies.on_data(lies.abort_early)),),
    ),
    *(
        Check(code, truth, hold, tuple(lie(name, tell) for name, tell in lies))
        for code, truth, hold, lies in aborted_lies.ROWS
    ),
)


INDEX_CHECKS = (
    Check(
        "incomplete-index",
        "every incomplete comparison has one row of the index",
        index.hold_complete,
        (lies.index_lie("drop an incomplete comparison from its index", lambda rows: rows.pop()),),
    ),
    Check(
        "incomplete-index-files",
        "the hashes of the index are those of the files",
        index.hold_files,
        (
            lies.index_lie(
                "write another hash into the incomplete index", lambda rows: rows[0]["files"].update(offers="0" * 64)
            ),
        ),
    ),
    Check(
        "incomplete-index-rows",
        "a row says what was found",
        index.hold_rows,
        (
            lies.index_lie(
                "tell another reason in the incomplete index",
                lambda rows: rows[0].update(reason="OPERATOR" if rows[0]["reason"] != "OPERATOR" else "DISK_FULL"),
            ),
            lies.index_lie(
                "count more completed in the incomplete index",
                lambda rows: rows[0]["counts"].update(completed=rows[0]["counts"]["completed"] + 1),
            ),
        ),
    ),
    Check(
        "incomplete-unselected",
        "no setting is selected from an incomplete comparison",
        unfinished.hold_unselected,
        (Mutation("select a setting from an incomplete comparison", lies.select),),
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
INDEX_FAMILY = Family(
    kind="package",
    find=lambda view: [""],
    open=unfinished.IncompleteIndex,
    checks=INDEX_CHECKS,
    documents=unfinished.TABLE.documents,
)
CONTROLS = (
    ("partial-digest", lie("alter the bytes of a partial", lies.alter_partial)),
    ("incomplete-request-id", lie("alter the hash of a receipt of an incomplete comparison", lies.alter_receipt)),
)
