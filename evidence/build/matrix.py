"""The runtime matrix: the outcome of every case, from the latest attempt that ended."""

from __future__ import annotations

from collections.abc import Sequence

from evidence import records
from evidence.build.converged import Packed
from evidence.campaign import Campaign, Case


def build(campaign: Campaign, packed: Sequence[Packed], status: str) -> records.RuntimeMatrix:
    """One row a case, sorted by case; `status` is FINAL or IN_PROGRESS_NOT_FINAL."""
    rows = [
        _row(campaign, case, [one.attempt for one in packed if one.attempt.case == case.id])
        for case in sorted(campaign.cases.values(), key=lambda case: case.id)
    ]
    return records.RuntimeMatrix(campaign.name, status, campaign.surfaces, rows)


def _row(campaign: Campaign, case: Case, attempts: Sequence[records.Attempt]) -> records.MatrixRow:
    profile, engine = campaign.profiles[case.profile], campaign.engines[case.engine]
    ordered = sorted(attempts, key=lambda attempt: (attempt.started_at, attempt.id))
    ended = sorted((a for a in ordered if a.ended), key=lambda attempt: (attempt.ended_at or "", attempt.id))
    decided_by = None
    if profile.state == "deferred":
        outcome, reason = "USER_DEFERRED", "USER_DEFERRED"
        blocker: str | None = "the user deferred this profile; it has no recipe"
    elif not ended:
        outcome, reason = "NOT_ATTEMPTED", "NOT_ATTEMPTED"
        begun = f"{len(ordered)} attempts began and none ended" if ordered else "no attempt was made"
        blocker = begun
    else:
        latest = ended[-1]
        outcome, reason, decided_by = latest.outcome, latest.reason, latest.id
        blocker = None if outcome == "SUCCESS" else latest.message or f"the attempt ended with {reason}"
    return records.MatrixRow(
        case=case.id,
        profile=case.profile,
        engine=case.engine,
        topology=case.topology,
        surface=case.surface,
        outcome=outcome,
        reason=reason,
        synthetic=engine.adapter == "synthetic",
        attempts=[attempt.id for attempt in ordered],
        decided_by=decided_by,
        blocker=blocker,
    )


def accepted_modes(matrix: records.RuntimeMatrix, case: Case) -> set[str]:
    """The surfaces on which the case's profile, engine and topology ended in SUCCESS."""
    return {
        row.surface
        for row in matrix.rows
        if (row.profile, row.engine, row.topology) == (case.profile, case.engine, case.topology)
        and row.outcome == "SUCCESS"
    }
