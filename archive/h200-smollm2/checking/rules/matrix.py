"""runtime-matrix.json: every profile and surface, decided by the latest attempt that ended."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional, Tuple

from checking.check import Check, Complaint, Family, Mutation, Scope
from checking.damage import Bench
from checking.package import View
from checking.reading import shown
from checking.rules import shapes
from checking.rules.comparison import peek
from checking.shape import Shape

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
                    found["row"], normal=found["normal"], launched=bool(found["launches"])
                )
        told = peek(self.view, "model-identities.json")
        self.profiles: Dict[str, Row] = {
            one["id"]: one for one in told.get("profiles", ()) if isinstance(one, dict) and "id" in one
        }
        self.recipes: List[Row] = list(peek(self.view, "recipes.json").get("recipes", ()))

    def at(self, row: Row) -> str:
        """Where a row stands."""
        return "%s#%s" % (NAME, row["case"])

    def mine(self, row: Row) -> List[Row]:
        """The attempts of a row's case, oldest first."""
        found = [one for one in self.attempts.values() if one["case"] == row["case"]]
        return sorted(found, key=lambda one: (one["startedAt"], one["id"]))


def documents(view: View, folder: str) -> List[Tuple[str, Shape]]:
    """The matrix."""
    return [(NAME, shapes.MATRIX)]


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
            if row["outcome"] != right:
                yield (subject.at(row), row["outcome"], right)
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


def facts(subject: Matrix) -> Dict[str, Any]:
    """Counts."""
    return {"counts": {"matrix rows": len(subject.rows)}}


def _change(name: str, change: Any) -> Mutation:
    """A lie in the matrix; `change` gets its rows and says False when there is nothing of the kind."""

    def damage(bench: Bench) -> Optional[str]:
        with bench.edit(NAME) as data:
            told = change(data)
            if told is None:
                bench.changes.pop(NAME, None)
        if told is None:
            bench.changes.pop(NAME, None)
            return None
        return "%s: %s" % (NAME, told)

    return Mutation(name, damage)


def _first(data: Row, wanted: Any) -> Optional[Row]:
    return next((row for row in data["rows"] if wanted(row)), None)


def _blocked_to_success(data: Row) -> Optional[str]:
    row = _first(data, lambda row: row["outcome"] not in ("SUCCESS", "USER_DEFERRED", "NOT_ATTEMPTED"))
    if row is None:
        return None
    row.update(outcome="SUCCESS", reason="OK", blocker=None)
    return str(row["case"]) + " told a success"


def _unattempted_to_success(data: Row) -> Optional[str]:
    row = _first(data, lambda row: row["decidedBy"] is None)
    if row is None:
        return None
    row.update(outcome="SUCCESS", reason="OK", blocker=None)
    return str(row["case"]) + " told a success without an attempt"


def _hide_newest(data: Row) -> Optional[str]:
    row = _first(data, lambda row: row["attempts"])
    if row is None:
        return None
    gone = row["attempts"].pop()
    row["decidedBy"] = row["attempts"][-1] if row["attempts"] else None
    return "attempt %s hidden" % gone


def _older_decides(data: Row) -> Optional[str]:
    row = _first(data, lambda row: len(row["attempts"]) > 1)
    if row is None:
        return None
    row["decidedBy"] = row["attempts"][0]
    return "%s decided by its oldest attempt" % row["case"]


def _drop_row(data: Row) -> str:
    last = data["rows"].pop()
    data["rows"] = [
        row for row in data["rows"] if (row["profile"], row["surface"]) != (last["profile"], last["surface"])
    ]  # other cases of that profile on that surface would do for it
    if not data["rows"]:  # an empty matrix has no form: then the row that is missing is one more that was asked for
        data["rows"] = [last]
        data["surfaces"].append("native" if last["surface"] != "native" else "rr")
        return "a surface added that no row has"
    return str(last["case"]) + " dropped"


def _unknown_profile(data: Row) -> str:
    row = dict(data["rows"][-1], case="zz-unlisted", profile="unlisted", attempts=[], decidedBy=None)
    data["rows"].append(dict(row, outcome="NOT_ATTEMPTED", reason="NO_ATTEMPT", blocker="nobody asked"))
    return "a row of an unlisted profile"


def _merge_outcomes(data: Row) -> Optional[str]:
    row = _first(data, lambda row: row["outcome"] in ("USER_DEFERRED", "NOT_ATTEMPTED"))
    if row is None:
        return None
    row["outcome"] = "NOT_ATTEMPTED" if row["outcome"] == "USER_DEFERRED" else "USER_DEFERRED"
    return "%s told as %s" % (row["case"], row["outcome"])


def _hide_blocker(data: Row) -> Optional[str]:
    row = _first(data, lambda row: row["blocker"] is not None)
    if row is None:
        return None
    row["blocker"] = None
    return "blocker of %s hidden" % row["case"]


def _other_topology(data: Row) -> Optional[str]:
    row = _first(data, lambda row: row["decidedBy"] is not None)
    if row is None:
        return None
    row["topology"] = "single" if row["topology"] != "single" else "two-worker"
    return "%s told as %s" % (row["case"], row["topology"])


def _deferred_recipe(bench: Bench) -> Optional[str]:
    rows = [row for row in bench.load(NAME)["rows"] if row["outcome"] == "USER_DEFERRED"]
    if not rows or not bench.has("recipes.json"):
        return None
    with bench.edit("recipes.json") as data:
        if not data["recipes"]:
            return None
        data["recipes"][0]["case"] = rows[0]["case"]
    return "a recipe for " + str(rows[0]["case"])


def _retell(before: str, outcome: str, reason: str) -> Any:
    """Tell the attempts of one outcome as another, everywhere."""

    def damage(bench: Bench) -> Optional[str]:
        folder = next(
            (
                folder
                for folder in bench.folders("results/converged")
                if bench.load(folder + "/attempt.json")["outcome"] == before
            ),
            None,
        )
        if folder is None:
            return None
        with bench.edit(folder + "/attempt.json") as data:
            data.update(outcome=outcome, reason=reason)
        with bench.edit("results/converged-index.json") as data:
            for row in data["attempts"]:
                if row["folder"] == folder:
                    row.update(outcome=outcome, reason=reason)
        with bench.edit(NAME) as data:
            for row in data["rows"]:
                if row["decidedBy"] == folder.rsplit("/", 1)[1]:
                    row.update(outcome=outcome, reason=reason)
        return folder

    return damage


def _open_profiles(bench: Bench) -> Optional[str]:
    """Tell every gated profile accessible, in both places, where an attempt says that access was blocked."""
    told = None
    attempts = (bench.load(folder + "/attempt.json") for folder in bench.folders("results/converged"))
    if not any(one["outcome"] == "BLOCKED_ACCESS" and not one["launches"] for one in attempts):
        return None
    with bench.edit("model-identities.json") as data:
        for one in data["profiles"]:
            if one["state"] == "gated":
                one["state"], told = "accessible", one["id"]
    for name in bench.below("models"):
        with bench.edit(name) as data:
            if data["profile"]["state"] == "gated":
                data["profile"]["state"] = "accessible"
    return told


CHECKS = (
    Check(
        "matrix-complete",
        "every profile has a row on every surface",
        hold_complete,
        (
            _change("leave a profile without its row", _drop_row),
            _change("add a row of an unlisted profile", _unknown_profile),
        ),
    ),
    Check(
        "matrix-attempts",
        "a row cites all attempts of its case",
        hold_cited,
        (_change("hide the newest attempt of a case", _hide_newest),),
    ),
    Check(
        "matrix-decided",
        "the latest attempt that ended decides",
        hold_decided,
        (
            _change("turn a blocker into a success", _blocked_to_success),
            _change("let the oldest attempt decide", _older_decides),
        ),
    ),
    Check(
        "matrix-undecided",
        "without an ended attempt a case is deferred or not attempted",
        hold_undecided,
        (_change("tell a deferral as not attempted, or the other way round", _merge_outcomes),),
    ),
    Check(
        "matrix-borne",
        "a success is borne by raw bodies of its own case",
        hold_borne,
        (
            _change("tell a success without an attempt", _unattempted_to_success),
            _change("tell a case under another topology", _other_topology),
        ),
    ),
    Check(
        "matrix-blocker",
        "what is no success names its blocker",
        hold_blockers,
        (_change("hide a blocker", _hide_blocker),),
    ),
    Check(
        "matrix-deferred",
        "a deferred case has no recipe",
        hold_deferred,
        (Mutation("write a recipe for a deferred case", _deferred_recipe),),
    ),
    Check(
        "matrix-access",
        "access is blocked for a gated profile alone",
        hold_access,
        (
            Mutation(
                "tell missing storage as blocked access", _retell("MISSING_STORAGE", "BLOCKED_ACCESS", "ACCESS_DENIED")
            ),
            Mutation(
                "tell blocked access as missing storage",
                _retell("BLOCKED_ACCESS", "MISSING_STORAGE", "MODEL_NOT_FOUND"),
            ),
            Mutation("tell a gated profile accessible", _open_profiles),
        ),
    ),
)

FAMILY = Family(kind="package", find=lambda view: [""], open=Matrix, checks=CHECKS, documents=documents, facts=facts)
