"""The reviewed prefill/decode summaries: results/pd-index.json."""

from __future__ import annotations

from evidence import records
from evidence.build.tree import Tree
from evidence.campaign import Campaign, PrefillDecode

PATH = "results/pd-index.json"
STATEMENT = (
    "Reviewed summaries. The private session state and the deployments that these cases ran with are not published, so "
    "nobody can derive them again from the bytes of this package. A failed case keeps the checks that it completed and "
    "inherits nothing from a qualified one."
)


def pack(campaign: Campaign, tree: Tree) -> None:
    """The cases of the campaign, sorted by id; what a failed case must not claim is a reason against the package."""
    cases = []
    for case in sorted(campaign.prefill_decode.values(), key=lambda case: case.id):
        tree.refusals += [f"prefill/decode {case.id}: {reason}" for reason in _lacking(case)]
        cases.append(_record(case))
    tree.add(PATH, records.to_bytes(records.PrefillDecodeIndex(STATEMENT, cases)))


def _record(case: PrefillDecode) -> records.PrefillDecodeCase:
    roles = None
    if case.roles is not None:
        prefill, decode = case.roles["prefill"], case.roles["decode"]
        roles = records.Roles(
            prefill=records.Role(prefill.request_sha256, prefill.response_sha256),
            decode=records.Role(decode.request_sha256, decode.response_sha256),
        )
    counters = case.decode_transfer_counters
    return records.PrefillDecodeCase(
        id=case.id,
        case=case.case,
        profile=case.profile,
        engine=case.engine,
        reviewed=case.reviewed,
        outcome=case.outcome,
        reason=case.reason,
        roles=roles,
        state_preserved=case.state_preserved,
        bootstrap_identity=case.bootstrap_identity,
        decode_transfer_counters=None
        if counters is None
        else records.TransferCounters(counters["before"], counters["after"]),
        negatives=[records.Negative(name, rejected) for name, rejected in case.negatives],
        recovery=case.recovery,
        cleanup=case.cleanup,
        completed_checks=list(case.completed_checks),
    )


def _lacking(case: PrefillDecode) -> list[str]:
    if case.outcome == "FAILED":
        return [] if case.reason else ["found no reason, expected the reason code of a failed case"]
    found = []
    if not case.reviewed:
        found.append("found QUALIFIED and not reviewed, expected a review first")
    for name in ("roles", "state_preserved", "bootstrap_identity", "decode_transfer_counters", "recovery", "cleanup"):
        if getattr(case, name) in (None, False):
            found.append(f"found no {name}, expected it of a qualified case")
    if (
        case.decode_transfer_counters
        and case.decode_transfer_counters["after"] <= case.decode_transfer_counters["before"]
    ):
        found.append("found decode transfer counters that did not rise, expected a transfer")
    found += [
        f"found negative {name} not rejected, expected it rejected" for name, rejected in case.negatives if not rejected
    ]
    return found
