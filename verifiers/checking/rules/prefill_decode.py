"""pd-index.json: reviewed summaries. Their shape can be judged; what they say public bytes cannot give back."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Tuple

from checking.check import Check, Complaint, Family, Mutation, Scope
from checking.later import Later
from checking.package import View
from checking.reading import shown
from checking.rules import shapes_inputs
from checking.rules.comparison import peek
from checking.shape import Shape

lies = Later("checking.rules.prefill_decode_lies")

NAME = "results/pd-index.json"
REMARK = "prefill/decode cases are reviewed summaries: public bytes cannot reconstruct them"
PROOF = ("roles", "statePreserved", "bootstrapIdentity", "decodeTransferCounters", "recovery", "cleanup")


class Summaries:
    """The reviewed cases."""

    def __init__(self, scope: Scope) -> None:
        self.data: Dict[str, Any] = scope.document(NAME)
        self.cases: List[Dict[str, Any]] = self.data["cases"]
        told = peek(scope.view, "model-identities.json").get("profiles", ())
        self.profiles = {one.get("id") for one in told if isinstance(one, dict)}
        rows = peek(scope.view, "runtime-matrix.json").get("rows", ())
        self.rows = {one.get("case"): one for one in rows if isinstance(one, dict)}


def documents(view: View, folder: str) -> List[Tuple[str, Shape]]:
    """The summaries."""
    return [(NAME, shapes_inputs.PD_INDEX)]


def hold_reviewed(subject: Summaries) -> Iterator[Complaint]:
    """Each case stands once, was reviewed, and is of a profile of the package; of what the matrix says where it has it."""
    ids = [one["id"] for one in subject.cases]
    for place, one in enumerate(subject.cases):
        at = "%s#%s" % (NAME, one["id"])
        if not one["reviewed"]:
            yield (at + "/reviewed", "false", "true: only reviewed cases are published")
        if ids.index(one["id"]) != place:
            yield (at, "the case twice", "each case once")
        if one["profile"] not in subject.profiles:
            yield (at + "/profile", shown(one["profile"]), "a profile of model-identities.json")
        for key, right in subject.rows.get(one["case"], {}).items():
            if key in ("profile", "engine") and one[key] != right:
                yield ("%s/%s" % (at, key), shown(one[key]), "that of the matrix: " + shown(right))


def hold_qualified(subject: Summaries) -> Iterator[Complaint]:
    """A qualified case states every proof; a failed one a reason, and only the checks that it completed."""
    for one in subject.cases:
        at = "%s#%s" % (NAME, one["id"])
        if one["outcome"] == "FAILED":
            if one["reason"] is None:
                yield (at + "/reason", "null", "a reason code")
            continue
        for key in PROOF:
            if one[key] in (None, False):
                yield ("%s/%s" % (at, key), shown(one[key]), "stated, since the case is qualified")
        counters = one["decodeTransferCounters"]
        if counters is not None and counters["after"] <= counters["before"]:
            yield (at + "/decodeTransferCounters", shown(counters), "a transfer: after greater than before")
        if not one["negatives"] or not all(negative["rejected"] for negative in one["negatives"]):
            yield (at + "/negatives", shown(one["negatives"]), "negatives, all rejected")
        if one["reason"] is not None:
            yield (at + "/reason", shown(one["reason"]), "null, since the case is qualified")


CHECKS = (
    Check(
        "pd-reviewed",
        "each prefill/decode case stands once and was reviewed",
        hold_reviewed,
        (
            Mutation("publish a case that nobody reviewed", lies.publish_unreviewed),
            Mutation("summarise an unlisted profile", lies.unlisted_profile),
            Mutation("summarise a case of the matrix under another engine", lies.other_engine),
        ),
    ),
    Check(
        "pd-qualified",
        "a qualified case states every proof, a failed one its reason",
        hold_qualified,
        (
            Mutation("let a failed case inherit a qualification", lies.inherit_qualification),
            Mutation("qualify a case without a transfer", lies.no_transfer),
            Mutation("hide the reason of a failure", lies.hide_reason),
        ),
    ),
)
FAMILY = Family(kind="package", find=lambda view: [""], open=Summaries, checks=CHECKS, documents=documents)
