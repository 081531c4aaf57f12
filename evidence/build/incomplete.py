"""Packs comparisons that did not finish: every offer with what became of it, and nothing chosen from them.

Three sources are put together: the journal (what was offered, what the client has of it), the ledgers (what
the proxies saw) and the open exchanges of proxies that were killed. An offer is never lost and never mended.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence

from evidence import records
from evidence.build import arms
from evidence.build.comparisons import add_ledgers, add_samples
from evidence.build.decide import offer_arm
from evidence.build.runs import Json, Open, Run, Store
from evidence.build.tree import Tree
from evidence.campaign import Campaign

FOLDER = "results/incomplete"
Ledgers = Mapping[tuple[str, str], Sequence[records.Receipt]]


def pack(run: Run, campaign: Campaign, tree: Tree) -> records.IncompleteEntry:
    """Pack one aborted or killed run below results/incomplete/."""
    comparison = campaign.comparisons[run.name]
    case = campaign.cases[comparison.case]
    engine = campaign.engines[case.engine]
    store = Store(run, tree.scanner)
    ledgers = run.ledgers()
    kept = [
        sample for sample in arms.samples(run, store, engine, ledgers) if sample.response_sha256 not in store.missing
    ]
    begun = arms.arms(run)
    requests, _ = arms.requests(comparison)
    reason, message, at = _why(run)
    record = records.IncompleteComparison(
        id=run.id,
        comparison=run.name,
        gateway=arms.gateway(run),
        arms=begun,
        reason=reason,
        message=message,
        aborted_at=run.ended_at,
        aborted_seconds=at,
        **arms.head(run, campaign),
    )
    partials: dict[str, bytes] = {}
    fates = _fates(run, kept, ledgers, partials)
    counts = _count(fates)
    _cite(store, fates, begun, ledgers, partials)
    for body in (requests.native, requests.main):
        store.cite(body.sha256)
    folder = f"{FOLDER}/{run.id}"
    files = records.IncompleteFiles(
        comparison=tree.add(f"{folder}/comparison.json", records.to_bytes(record)),
        samples=add_samples(tree, folder, run.id, kept),
        offers=tree.add(f"{folder}/offers.json", records.to_bytes(records.Offers(run.id, counts, fates))),
    )
    tree.add(f"{folder}/snapshots.json", records.to_bytes(records.Snapshots(run.id, arms.snapshots(run))))
    add_ledgers(tree, folder, ledgers)
    for digest, data in sorted(partials.items()):
        tree.scanner.scan(f"{folder}/partials/{digest}", data, body=True)
        tree.add(f"{folder}/partials/{digest}", data, trusted=True)
    tree.add_bodies(f"{folder}/bodies/", store.owners, store.sources)
    tree.payload_bytes += store.total_bytes
    return records.IncompleteEntry(
        id=run.id,
        comparison=run.name,
        run=run.id,
        case=case.id,
        profile=case.profile,
        engine=case.engine,
        kind=comparison.kind,
        synthetic=record.synthetic,
        reason=reason,
        folder=folder,
        counts=counts,
        files=files,
    )


def _why(run: Run) -> tuple[str, str, float | None]:
    """(reason, message, seconds since the run began); a run without its last words was killed."""
    aborted = run.last("aborted")
    if aborted is not None:
        return aborted["reason"], aborted["message"], aborted["t"]
    if run.ended is not None:
        return "AUDIT_FAILED", "the run ended without being complete and gave no reason", run.ended["t"]
    last = run.events[-1]["t"] if run.events else None
    return "RUNNER_DIED", "the journal ends without the end of the run", last


def _fates(
    run: Run, samples: Sequence[records.Sample], ledgers: Ledgers, partials: dict[str, bytes]
) -> list[records.OfferFate]:
    """The fate of every offer in the order of the journal; `partials` gets the upstream bytes that are no answer."""
    client = {sample.offer: sample for sample in samples}
    seen = {
        receipt.request_id: (worker, receipt)
        for (_, worker), receipts in ledgers.items()
        for receipt in receipts
        if receipt.traffic and receipt.request_id is not None
    }
    unmatched = _unmatched(client, seen, ledgers)
    begun = {one.request_id: one for rows in run.open_exchanges().values() for one in rows if one.request_id}
    found = []
    for offer in run.all("offer"):
        name = offer["offer"]
        sample = client.get(name)
        receipt = seen.get(name) or _anonymous(unmatched, offer, sample)
        upstream = _upstream(run, receipt, begun.get(name), sample, partials)
        found.append(
            records.OfferFate(
                offer=name,
                repetition=offer["repetition"],
                arm=offer["arm"],
                phase=offer["phase"],
                worker=(sample.worker if sample else None) or (receipt[0] if receipt else None) or offer["worker"],
                request_sha256=offer["requestSha256"],
                request_bytes=offer["requestBytes"],
                fate=_fate(sample, receipt is not None or name in begun),
                sample=sample is not None,
                client=None if sample is None else records.Body(sample.response_sha256, sample.response_bytes),
                upstream=upstream,
            )
        )
    return found


Seen = tuple[str, records.Receipt]


def _unmatched(
    client: Mapping[str, records.Sample], seen: Mapping[str, Seen], ledgers: Ledgers
) -> dict[str, list[Seen]]:
    """Traffic receipts without a request id, by arm: a gateway may drop it, hashes then tell whose they are."""
    found: dict[str, list[Seen]] = {}
    for (arm, worker), receipts in ledgers.items():
        for receipt in receipts:
            if receipt.traffic and receipt.request_id not in seen:
                found.setdefault(arm, []).append((worker, receipt))
    return found


def _anonymous(unmatched: dict[str, list[Seen]], offer: Json, sample: records.Sample | None) -> Seen | None:
    """Take the receipt without an id that has the same request and, where the client has an answer, that answer."""
    rows = unmatched.get(offer_arm(offer["offer"]), [])
    for place, (_, receipt) in enumerate(rows):
        if receipt.request_sha256 != offer["requestSha256"]:
            continue
        if sample is None or receipt.response_sha256 == sample.response_sha256 or sample.transport != "complete":
            return rows.pop(place)
    return None


def _upstream(
    run: Run, receipt: Seen | None, open_one: Open | None, sample: records.Sample | None, partials: dict[str, bytes]
) -> records.Upstream | None:
    """What the proxy had from the worker. Only a whole exchange that the client got whole is an answer."""
    if receipt is not None:
        worker, row = receipt
        whole = row.complete and sample is not None and sample.transport == "complete"
        if not whole and not row.complete:
            path = run.folder / "witness/bodies" / row.response_sha256
            partials[row.response_sha256] = path.read_bytes() if path.exists() else b""
        return records.Upstream(row.response_sha256, row.response_bytes, worker, row.complete)
    if open_one is None or open_one.partial is None:
        return None
    data = open_one.partial.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    partials[digest] = data
    return records.Upstream(digest, len(data), open_one.worker, False)


def _fate(sample: records.Sample | None, left: bool) -> str:
    if sample is not None:
        return {"complete": "completed", "timeout": "timed-out"}.get(sample.transport, "failed")
    return "failed" if left else "never-started"


def _count(fates: Sequence[records.OfferFate]) -> records.OfferCounts:
    counts = Counter(fate.fate for fate in fates)
    return records.OfferCounts(
        offered=len(fates),
        completed=counts["completed"],
        timed_out=counts["timed-out"],
        failed=counts["failed"],
        never_started=counts["never-started"],
    )


def _cite(
    store: Store,
    fates: Sequence[records.OfferFate],
    begun: Sequence[records.Arm],
    ledgers: Ledgers,
    partials: Mapping[str, bytes],
) -> None:
    """Have every body packed that is cited, upstream partials apart."""
    for fate in fates:
        store.cite(fate.request_sha256)
    arms.cite_bodies(store, [launch for arm in begun for launch in arm.launches], [])
    for receipts in ledgers.values():
        for receipt in receipts:
            store.cite(receipt.request_sha256)
            if receipt.response_sha256 not in partials:
                store.cite(receipt.response_sha256)
    lost = [digest for digest in store.missing if digest not in partials]
    for digest in lost:
        store.missing.remove(digest)
