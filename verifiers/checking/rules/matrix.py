"""runtime-matrix.json: every profile and surface, decided by the latest attempt that ended."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional, Tuple

from checking.check import Check, Complaint, Family, Mutation, Scope
from checking.later import Later
from checking.package import View
from checking.reading import shown
from checking.rules import shapes_inputs
from checking.rules.comparison import peek
from checking.shape import Shape

lies = Later("checking.rules.matrix_lies")

NAME = "runtime-matrix.json"
Row = Dict[str, Any]


class Matrix:
    """The matrix, the attempts as they were found, and the profiles."""

    def __init__(self, scope: Scope) -> None:
        self.view = scope.view
        self.data: Row = scope.document(NAME)
        self.rows: List[Row] = self.data["rows"]
        self.attempts: Dict[str, Row] = {}
        for found in scope.facts.get("attempt", {}).values():
            if found is not None:
                self.attempts[found["row"]["id"]] = dict(
                    found["row"], normal=found["normal"], launched=bool(found["launches"]), versions=found["versions"]
                )
        told = peek(self.view, "model-identities.json")
        self.profiles: Dict[str, Row] = {
            one["id"]: one
            for one in told.get("profiles", ())
            if isinstance(one, dict) and isinstance(one.get("id"), str)
        }
        self.recipes: List[Row] = list(peek(self.view, "recipes.json").get("recipes", ()))
        engines = peek(self.view, "manifest.json").get("engines", ())
        self.engines: Dict[str, Row] = {one["id"]: one for one in engines if isinstance(one, dict) and "id" in one}

    def at(self, row: Row) -> str:
        """Where a row stands."""
        return "%s#%s" % (NAME, row["case"])

    def mine(self, row: Row) -> List[Row]:
        """The attempts of a row's case, oldest first."""
        found = [one for one in self.attempts.values() if one["case"] == row["case"]]
        return sorted(found, key=lambda one: (one["startedAt"], one["id"]))


def documents(view: View, folder: str) -> List[Tuple[str, Shape]]:
    """The matrix."""
    return [(NAME, shapes_inputs.MATRIX)]


def hold_complete(subject: Matrix) -> Iterator[Complaint]:
    """Every profile has a row on every surface of the campaign, cases stand once and sorted."""
    there = {(row["profile"], row["surface"]) for row in subject.rows}
    for profile in sorted(subject.profiles):
        for surface in subject.data["surfaces"]:
            if (profile, surface) not in there:
                yield (NAME, "no row for %s on %s" % (profile, surface), "one for every profile and surface")
    cases = [row["case"] for row in subject.rows]
    if cases != sorted(set(cases)):
        yield (NAME, "cases out of order or twice", "each case once, sorted")
    for row in subject.rows:
        if row["profile"] not in subject.profiles:
            yield (subject.at(row), "profile " + row["profile"], "a profile of model-identities.json")
        if row["surface"] not in subject.data["surfaces"]:
            yield (subject.at(row), "surface " + row["surface"], "a surface of the campaign")


def hold_cited(subject: Matrix) -> Iterator[Complaint]:
    """A row cites all attempts of its case, oldest first, and every attempt has a row."""
    cases = {row["case"] for row in subject.rows}
    for row in subject.rows:
        right = [one["id"] for one in subject.mine(row)]
        if row["attempts"] != right:
            yield (subject.at(row) + "/attempts", shown(row["attempts"]), shown(right))
    for one in subject.attempts.values():
        if one["case"] not in cases:
            yield (NAME, "no row for case %s of attempt %s" % (one["case"], one["id"]), "a row for every case")


def decider(subject: Matrix, row: Row) -> Optional[Row]:
    """The latest attempt of a row's case that ended."""
    ended = [one for one in subject.mine(row) if one["ended"] and one["endedAt"] is not None]
    return max(ended, key=lambda one: (one["endedAt"], one["startedAt"], one["id"])) if ended else None


def hold_decided(subject: Matrix) -> Iterator[Complaint]:
    """The latest attempt that ended decides: outcome, reason and id are its own."""
    for row in subject.rows:
        one = decider(subject, row)
        if (row["decidedBy"] or None) != (one["id"] if one else None):
            yield (subject.at(row) + "/decidedBy", shown(row["decidedBy"]), shown(one["id"] if one else None))
        if one is not None and (row["outcome"], row["reason"]) != (one["outcome"], one["reason"]):
            yield (
                subject.at(row),
                "%s, %s" % (row["outcome"], row["reason"]),
                "%s, %s" % (one["outcome"], one["reason"]),
            )


def hold_undecided(subject: Matrix) -> Iterator[Complaint]:
    """Without an attempt that ended, a case was deferred by the user or not attempted, as its profile says."""
    for row in subject.rows:
        deferred = subject.profiles.get(row["profile"], {}).get("state") == "deferred"
        if decider(subject, row) is None:
            right = "USER_DEFERRED" if deferred else "NOT_ATTEMPTED"
            if (row["outcome"], row["reason"]) != (right, right):
                yield (subject.at(row), "%s, %s" % (row["outcome"], row["reason"]), "%s, %s" % (right, right))
        elif deferred:
            yield (subject.at(row), "an attempt of a deferred profile", "none")


def hold_borne(subject: Matrix) -> Iterator[Complaint]:
    """A success is borne by an attempt with a normal answer, whose case is the row's."""
    for row in subject.rows:
        one = subject.attempts.get(row["decidedBy"] or "")
        if row["outcome"] == "SUCCESS" and (one is None or not one["normal"]):
            yield (subject.at(row), "SUCCESS", "a converged attempt with raw bodies and a normal answer")
        if one is not None:
            for key in ("profile", "engine", "topology", "surface", "synthetic"):
                if row[key] != one[key]:
                    yield (
                        subject.at(row) + "/" + key,
                        shown(row[key]),
                        "that of %s: %s" % (one["id"], shown(one[key])),
                    )


def hold_blockers(subject: Matrix) -> Iterator[Complaint]:
    """What is no success names its blocker, and a success has none."""
    for row in subject.rows:
        if (row["outcome"] == "SUCCESS") is not (row["blocker"] is None):
            yield (subject.at(row) + "/blocker", shown(row["blocker"]), "null exactly with SUCCESS")


def hold_deferred(subject: Matrix) -> Iterator[Complaint]:
    """A deferred, gated-out or failed case has no recipe."""
    outcomes = {row["case"]: row["outcome"] for row in subject.rows}
    for recipe in subject.recipes:
        if isinstance(recipe, dict) and outcomes.get(recipe.get("case", "")) == "USER_DEFERRED":
            yield ("recipes.json#" + shown(recipe.get("id")), "a recipe of a deferred case", "none")


def hold_access(subject: Matrix) -> Iterator[Complaint]:
    """Access is blocked for a gated profile alone, whose absent model is never told as missing storage.

    An engine that ran and answered 401 or 403 may have blocked access to any model.
    """
    for one in subject.attempts.values():
        state = subject.profiles.get(one["profile"], {}).get("state")
        at = "results/converged/%s/attempt.json#/outcome" % one["id"]
        if one["outcome"] == "BLOCKED_ACCESS" and state != "gated" and not one["launched"]:
            yield (at, "BLOCKED_ACCESS of a profile that is " + shown(state), "a gated profile")
        if one["reason"] == "MODEL_NOT_FOUND" and state == "gated":
            yield (at, "%s, MODEL_NOT_FOUND of a gated profile" % one["outcome"], "BLOCKED_ACCESS, ACCESS_DENIED")


def hold_engines(subject: Matrix) -> Iterator[Complaint]:
    """The engine of a row is one of the manifest; its reported version is one that a kept control tells, if any does."""
    for row in subject.rows:
        engine = subject.engines.get(row["engine"])
        if engine is None:
            yield (subject.at(row) + "/engine", shown(row["engine"]), "an engine of the manifest")
        elif row["synthetic"] is not (engine.get("adapter") == "synthetic"):
            yield (subject.at(row) + "/synthetic", shown(row["synthetic"]), shown(not row["synthetic"]))
    for name, engine in sorted(subject.engines.items()):
        told = {one for each in subject.attempts.values() if each["engine"] == name for one in each["versions"]}
        if engine.get("source") == "reported" and told and engine.get("version") not in told:
            yield (
                "manifest.json#/engines/%s/version" % shown(name),
                shown(engine.get("version")),
                "what its kept controls tell: " + shown(sorted(told)),
            )


def facts(subject: Matrix) -> Dict[str, Any]:
    """Counts."""
    return {"counts": {"matrix rows": len(subject.rows)}}


CHECKS = (
    Check(
        "matrix-complete",
        "every profile has a row on every surface",
        hold_complete,
        (
            Mutation("leave a profile without its row", lies.drop_row),
            Mutation("add a row of an unlisted profile", lies.unknown_profile),
        ),
    ),
    Check(
        "matrix-attempts",
        "a row cites all attempts of its case",
        hold_cited,
        (Mutation("hide the newest attempt of a case", lies.hide_newest),),
    ),
    Check(
        "matrix-decided",
        "the latest attempt that ended decides",
        hold_decided,
        (
            Mutation("turn a blocker into a success", lies.blocked_to_success),
            Mutation("let the oldest attempt decide", lies.older_decides),
        ),
    ),
    Check(
        "matrix-undecided",
        "without an ended attempt a case is deferred or not attempted",
        hold_undecided,
        (
            Mutation("tell a deferral as not attempted, or the other way round", lies.merge_outcomes),
            Mutation("give another reason for what was not attempted", lies.other_reason),
        ),
    ),
    Check(
        "matrix-borne",
        "a success is borne by raw bodies of its own case",
        hold_borne,
        (
            Mutation("tell a success without an attempt", lies.unattempted_to_success),
            Mutation("tell a case under another topology", lies.other_topology),
        ),
    ),
    Check(
        "matrix-blocker",
        "what is no success names its blocker",
        hold_blockers,
        (Mutation("hide a blocker", lies.hide_blocker),),
    ),
    Check(
        "matrix-deferred",
        "a deferred case has no recipe",
        hold_deferred,
        (Mutation("write a recipe for a deferred case", lies.deferred_recipe),),
    ),
    Check(
        "matrix-engine",
        "an engine is the manifest's, and has a version that it told",
        hold_engines,
        (
            Mutation("tell a case of an engine that nobody knows", lies.unknown_engine),
            Mutation("turn a case's synthetic mark round", lies.turn_synthetic),
            Mutation("tell an engine in another version than it told", lies.other_version),
        ),
    ),
    Check(
        "matrix-access",
        "access is blocked for a gated profile alone",
        hold_access,
        (
            Mutation("tell missing storage as blocked access", lies.storage_to_access),
            Mutation("tell blocked access as missing storage", lies.access_to_storage),
            Mutation("tell a gated profile accessible", lies.open_profiles),
        ),
    ),
)

FAMILY = Family(kind="package", find=lambda view: [""], open=Matrix, checks=CHECKS, documents=documents, facts=facts)
