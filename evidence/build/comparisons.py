"""Packs complete comparisons: every sample, ledger, snapshot and body, and the decision that follows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from evidence import records
from evidence.build import arms
from evidence.build.decide import decide
from evidence.build.runs import Run, Store
from evidence.build.tree import Tree
from evidence.campaign import Campaign
from evidence.errors import EvidenceError

FOLDER = "results/settings"
PHASES = {"native-warm": 12, "rr-warm": 96, "main": 144}


class Settled(NamedTuple):
    """A packed comparison: its index entry, and what recipes need of it."""

    entry: records.SettingsEntry
    decision: records.Decision
    run: str
    comparison: str
    started_at: str
    launches: Mapping[str, records.Launch]  # "baseline", "candidate" -> the first worker's last launch
    gateway: records.Gateway


def folder_ids(runs: Sequence[Run]) -> dict[str, str]:
    """Run -> the id of its folder: the latest complete run of a comparison has the comparison's own id.

    Earlier ones are kept beside it as `<id>.run-<n>`, numbered from the oldest.
    """
    found: dict[str, str] = {}
    by_name: dict[str, list[Run]] = {}
    for run in runs:
        by_name.setdefault(run.name, []).append(run)
    for name, same in by_name.items():
        for number, run in enumerate(same[:-1], 1):
            suffix = f".run-{number}"
            found[run.id] = name[: 63 - len(suffix)] + suffix
        found[same[-1].id] = name
    return found


def pack(run: Run, folder_id: str, campaign: Campaign, tree: Tree, *, requalified: bool) -> Settled | None:
    """Pack one complete run below results/settings/; None when a reason against it was noted.

    Raises EvidenceError when a file of the run is out of form or was altered.
    """
    comparison = campaign.comparisons[run.name]
    case = campaign.cases[comparison.case]
    engine = campaign.engines[case.engine]
    store = Store(run, tree.scanner)
    ledgers = run.ledgers()
    samples = arms.samples(run, store, engine, ledgers)
    snapshots = arms.snapshots(run)
    begun = arms.arms(run)
    gateway = arms.gateway(run)
    requests, _ = arms.requests(comparison)
    lacking = _lacking(run, begun, samples, ledgers, snapshots, requests)
    if gateway is None:
        lacking.append("no gateway was ready")
    arms.cite_bodies(store, [launch for arm in begun for launch in arm.launches], ledgers.values())
    lacking += [f"no file has the body {digest}" for digest in store.missing]
    if lacking or gateway is None:
        tree.refusals += [f"{run.id}: {reason}" for reason in lacking]
        return None
    record = records.Comparison(id=folder_id, gateway=gateway, arms=begun, **arms.head(run, campaign))
    dated = campaign.profiles[case.profile].date_sensitive
    decision = decide(record, samples, ledgers, snapshots, requalified=requalified, date_sensitive=dated)
    folder = f"{FOLDER}/{folder_id}"
    files = records.SettingsFiles(
        comparison=tree.add(f"{folder}/comparison.json", records.to_bytes(record)),
        samples=add_samples(tree, folder, folder_id, samples),
        snapshots=tree.add(f"{folder}/snapshots.json", records.to_bytes(records.Snapshots(folder_id, snapshots))),
        decision=tree.add(f"{folder}/decision.json", records.to_bytes(decision)),
    )
    add_ledgers(tree, folder, ledgers)
    tree.add_bodies(f"{folder}/bodies/", store.owners, store.sources)
    tree.payload_bytes += store.total_bytes
    return Settled(
        entry=records.SettingsEntry(
            id=folder_id,
            case=case.id,
            profile=case.profile,
            engine=case.engine,
            kind=comparison.kind,
            synthetic=record.synthetic,
            folder=folder,
            decision=decision.decision,
            failed_gates=decision.failed_gates,
            performance_comparison_qualified=decision.performance_comparison_qualified,
            files=files,
        ),
        decision=decision,
        run=run.id,
        comparison=run.name,
        started_at=run.started_at,
        launches={
            side: next(arm.launches[0] for arm in reversed(begun) if arm.arm == letter)
            for side, letter in (("baseline", "A"), ("candidate", "B"))
        },
        gateway=gateway,
    )


def add_samples(tree: Tree, folder: str, identifier: str, samples: Sequence[records.Sample]) -> str:
    """Pack samples.json. Of its words only the finish reasons are an engine's."""
    words = {sample.finish_reason for sample in samples if sample.finish_reason is not None}
    free = "\n".join(sorted(words)).encode("utf-8", "surrogatepass")
    return tree.add(f"{folder}/samples.json", records.to_bytes(records.Samples(identifier, samples)), free=free)


def add_ledgers(tree: Tree, folder: str, ledgers: Mapping[tuple[str, str], Sequence[records.Receipt]]) -> None:
    """Pack every ledger as ledgers/<arm>.<worker>.json. Paths, ids and headers are words from outside."""
    for (arm, worker), receipts in sorted(ledgers.items()):
        words = {text for receipt in receipts for text in (receipt.method, receipt.path, receipt.request_id or "")}
        headers: set[tuple[str, str]] = set()
        for receipt in receipts:
            headers.update(receipt.request_headers.items(), receipt.response_headers.items())
        words |= {f"{name}: {value}" for name, value in headers}
        data = records.to_bytes(records.Ledger(worker, arm, receipts))
        tree.add(
            f"{folder}/ledgers/{arm}.{worker}.json", data, free="\n".join(sorted(words)).encode("utf-8", "replace")
        )


def _lacking(
    run: Run,
    begun: Sequence[records.Arm],
    samples: Sequence[records.Sample],
    ledgers: Mapping[tuple[str, str], Sequence[records.Receipt]],
    snapshots: Sequence[records.Snapshot],
    requests: records.Requests,
) -> list[str]:
    """What a run that calls itself complete does not have."""
    found = []
    order = [(1, "A"), (1, "B"), (2, "B"), (2, "A"), (3, "A"), (3, "B")]
    if [(arm.repetition, arm.arm) for arm in begun] != order:
        found.append(
            f"found the arms {[arms.arm_id(a.repetition, a.arm) for a in begun]}, expected r1-a to r3-b in order"
        )
    counts = Counter(sample.phase for sample in samples)
    if dict(counts) != PHASES or len({sample.offer for sample in samples}) != len(samples):
        found.append(f"found {dict(counts)} samples, expected {PHASES}")
    expected = {(arms.arm_id(r, a), worker) for r, a in order for worker in ("worker-1", "worker-2")}
    if ledgers.keys() != expected:
        found.append(f"found {len(ledgers)} ledgers, expected one for each of 6 arms and 2 workers")
    if len(snapshots) != len(order):
        found.append(f"found {len(snapshots)} snapshots, expected one for each of 6 arms")
    for arm in begun:
        where = arms.arm_id(arm.repetition, arm.arm)
        lost = [name for name in ("wall_seconds", "timeline", "client") if getattr(arm, name) is None]
        found += [f"{where}: found no {records.key(name)}, expected one" for name in lost]
        if len(arm.launches) != 2 or any(launch.ready is None for launch in arm.launches):
            found.append(f"{where}: found {len(arm.launches)} launches, expected two that got ready")
    fixed = {"native-warm": requests.native.sha256, "rr-warm": requests.main.sha256, "main": requests.main.sha256}
    other = sorted({s.phase for s in samples if s.request_sha256 != fixed.get(s.phase)})
    if other:
        found.append(
            f"found {' and '.join(other)} requests with another body than the campaign's, expected the fixed one"
        )
    return found


def check_named(campaign: Campaign, runs: Sequence[Run]) -> list[str]:
    """The comparisons of the campaign that nobody has run at all."""
    known = {run.name for run in runs if run.kind == "comparison"}
    return [
        f"comparison {name}: found no run of it, expected a complete or an aborted one"
        for name in campaign.comparisons
        if name not in known
    ]


def require_known(runs: Sequence[Run], campaign: Campaign) -> None:
    """Refuse runs of comparisons and cases that the campaign does not have."""
    for run in runs:
        group = campaign.comparisons if run.kind == "comparison" else campaign.cases
        if run.kind in ("comparison", "attempt") and run.name not in group:
            raise EvidenceError(
                f"{run.folder}: found a run of {run.name!r}, expected one that the campaign names", code=1
            )
