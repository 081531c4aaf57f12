"""Packs functional attempts: all of them, set-up failures and capped answers too, each with the outcome it bears.

The runner's own word is taken only for what left no bytes (no access, no program, no storage, an engine that
never got ready or died). Whatever has samples is judged by its stored bytes and receipts, in the order of
docs/format.md, section 5.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from evidence import records
from evidence.build import arms
from evidence.build.comparisons import add_ledgers, add_samples
from evidence.build.decide import mismatches
from evidence.build.runs import Run, Store
from evidence.build.tree import Tree
from evidence.campaign import Campaign, Case

FOLDER = "results/converged"
SETUP = {
    "ACCESS_DENIED": "BLOCKED_ACCESS",
    "PROGRAM_NOT_FOUND": "MISSING_IMAGE",
    "MODEL_NOT_FOUND": "MISSING_STORAGE",
    "DISK_TOO_SMALL": "MISSING_STORAGE",
    "NOT_READY": "NATIVE_FAILURE",
    "ENGINE_DIED": "NATIVE_FAILURE",
}
ANSWERED = ("NORMAL", "CAPPED")
Ledgers = Mapping[tuple[str, str], Sequence[records.Receipt]]


class Packed(NamedTuple):
    """A packed attempt: its index entry, its record, and the gateway that it went through."""

    entry: records.ConvergedEntry
    attempt: records.Attempt


def pack(run: Run, campaign: Campaign, tree: Tree) -> Packed:
    """Pack one attempt below results/converged/."""
    case = campaign.cases[run.name]
    engine = campaign.engines[case.engine]
    store = Store(run, tree.scanner)
    ledgers = run.ledgers()
    samples = [s for s in arms.samples(run, store, engine, ledgers) if s.response_sha256 not in store.missing]
    workers = arms.workers(run, 1 if case.topology == "single" else 2)
    exact = _exact(run, case, ledgers, workers, samples)
    outcome, reason, message = _outcome(run, case, samples, ledgers, workers, exact)
    launched = arms.launches(run.events, run.id)
    controls = [arms.filled(records.Control, event, run.id) for event in run.all("control")]
    arms.cite_bodies(store, launched, ledgers.values())
    for control in controls:
        if control.kept:
            store.cite(control.sha256)
    if run.complete:  # else a disk that was full has taken no more, and the run says so
        tree.refusals += [
            f"{run.id}: found no file with the body {digest}, expected it recorded" for digest in store.missing
        ]
    attempt = records.Attempt(
        id=run.id,
        run=run.id,
        case=case.id,
        profile=case.profile,
        engine=case.engine,
        topology=case.topology,
        surface=case.surface,
        synthetic=engine.adapter == "synthetic",
        started_at=run.started_at,
        ended_at=run.told_end,
        ended=run.complete,
        outcome=outcome,
        reason=reason,
        message=message,
        launches=launched,
        gateway=arms.gateway(run),
        workers=workers,
        requests=len(run.all("offer")),
        counts=dict(Counter(sample.classification for sample in samples)),
        exact=exact,
        scope=_scope(case, outcome, exact, workers),
    )
    folder = f"{FOLDER}/{run.id}"
    files = records.ConvergedFiles(
        attempt=tree.add(f"{folder}/attempt.json", records.to_bytes(attempt)),
        samples=add_samples(tree, folder, run.id, samples),
        controls=tree.add(f"{folder}/controls.json", records.to_bytes(records.Controls(run.id, controls))),
    )
    add_ledgers(tree, folder, ledgers)
    tree.add_bodies(f"{folder}/bodies/", store.owners, store.sources)
    tree.payload_bytes += store.total_bytes
    entry = records.ConvergedEntry(
        id=run.id,
        case=case.id,
        profile=case.profile,
        engine=case.engine,
        topology=case.topology,
        surface=case.surface,
        synthetic=attempt.synthetic,
        started_at=run.started_at,
        ended_at=run.told_end,
        ended=attempt.ended,
        outcome=outcome,
        reason=reason,
        accepted=attempt.scope.accepted,
        folder=folder,
        files=files,
    )
    return Packed(entry, attempt)


def _outcome(
    run: Run,
    case: Case,
    samples: Sequence[records.Sample],
    ledgers: Ledgers,
    workers: Sequence[records.Worker],
    exact: records.Exact | None,
) -> tuple[str, str, str | None]:
    """(outcome, reason, message); the first rule that applies decides."""
    said, aborted = run.last("outcome"), run.last("aborted")
    message = (said or {}).get("message") or (aborted or {}).get("message")
    if not run.complete:
        return "NOT_ATTEMPTED", aborted["reason"] if aborted else "RUNNER_DIED", message or "the attempt did not end"
    reason = str(said["reason"]) if said is not None else ""
    if reason in SETUP:
        return SETUP[reason], reason, message
    bad = [sample for sample in samples if sample.classification not in ANSWERED]
    refused = _refused(case, samples, ledgers)
    if (bad and not refused) or not samples:
        what = f"{bad[0].offer} is {bad[0].classification}" if bad else "no request was answered"
        return "NATIVE_FAILURE", "BAD_ANSWER", message or what
    if case.surface == "exact":
        if exact is not None and exact.token_ids_equal is False:
            return "EXACT_REJECTED", "TOKENS_DIFFER", message or "the engine saw other token ids than the probe's"
        if refused:
            return "EXACT_REJECTED", "NOT_ADMITTED", message or "the gateway refused, and no worker saw the request"
        if exact is not None and exact.engagement == "PARTIAL_ONE_PREFILL":
            return "EXACT_PARTIAL_ONE_PREFILL", "ONE_PREFILL", message or "one of the workers served every request"
    counts = _traffic(ledgers, workers)
    if case.surface == "rr" and len(set(counts.values())) > 1:
        found = ", ".join(f"{worker} {count}" for worker, count in counts.items())
        return "NATIVE_FAILURE", "ROUTING_UNEQUAL", message or f"round robin gave {found}"
    if not any(sample.classification == "NORMAL" for sample in samples):
        return "NATIVE_FAILURE", "BAD_ANSWER", message or "every answer was capped"
    unmatched = mismatches(samples, ledgers)
    if unmatched:
        return "NATIVE_FAILURE", "BAD_ANSWER", unmatched[0]
    return "SUCCESS", "OK", None


def _refused(case: Case, samples: Sequence[records.Sample], ledgers: Ledgers) -> bool:
    """Whether an exact gateway answered with an error of its own, so that no worker saw the request."""
    traffic = sum(receipt.traffic for receipts in ledgers.values() for receipt in receipts)
    return case.surface == "exact" and bool(samples) and traffic == 0


def _traffic(ledgers: Ledgers, workers: Sequence[records.Worker]) -> dict[str, int]:
    return {
        worker.alias: sum(receipt.traffic for receipt in ledgers.get(("attempt", worker.alias), ()))
        for worker in workers
    }


def _exact(
    run: Run, case: Case, ledgers: Ledgers, workers: Sequence[records.Worker], samples: Sequence[records.Sample]
) -> records.Exact | None:
    """What is known of exact admission; null on other surfaces, and where no request was offered."""
    if case.surface != "exact" or not samples:
        return None
    event = run.last("exact") or {}
    observed = event.get("observedTokenIds")
    counts = _traffic(ledgers, workers)
    engaged = sum(count > 0 for count in counts.values())
    expected = list(case.probe.expected_token_ids) if case.probe is not None else []
    return records.Exact(
        request_sha256=hashlib.sha256(case.body).hexdigest(),
        expected_token_ids=expected,
        observed_token_ids=observed,
        control=event.get("control"),
        token_ids_equal=None if observed is None else list(observed) == expected,
        engagement="REJECTED" if not engaged else "PARTIAL_ONE_PREFILL" if engaged < len(counts) else "ADMITTED",
        traffic_per_worker=counts,
    )


def _scope(case: Case, outcome: str, exact: records.Exact | None, workers: Sequence[records.Worker]) -> records.Scope:
    """What the attempt may be cited for."""
    if outcome == "SUCCESS":
        how = {
            "native": "requests sent straight to the worker were answered",
            "rr": f"round robin over {len(workers)} workers was answered, each with the same number of requests",
            "exact": "the gateway admitted the exact prefix and every worker was engaged",
            "native-pd": "requests through native prefill and decode were answered",
        }[case.surface]
        tokens = ""
        if exact is not None and exact.token_ids_equal is None:
            tokens = "; the engine showed no token ids, so the rendered input was not compared"
        return records.Scope(True, [case.surface], f"{how}, with these launch arguments and these requests{tokens}")
    if outcome == "EXACT_PARTIAL_ONE_PREFILL":
        return records.Scope(False, [], "one worker was engaged: that proves engagement, no selection among prefills")
    return records.Scope(False, [], "nothing may be cited from this attempt but that it failed, and how")
