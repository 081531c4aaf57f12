"""Lies in runtime-matrix.json, and in what it is made of, each coherent but for its meaning."""

from __future__ import annotations

from typing import Any, Callable, Optional

from checking.damage import Bench
from checking.rules.matrix import NAME, Row

Lie = Callable[[Bench], Optional[str]]


def _change(change: Callable[[Row], Optional[str]]) -> Lie:
    """A lie in the matrix; `change` says None when there is nothing of the kind."""

    def damage(bench: Bench) -> Optional[str]:
        with bench.edit(NAME) as data:
            told = change(data)
            if told is None:
                bench.changes.pop(NAME, None)
        if told is None:
            bench.changes.pop(NAME, None)
            return None
        return "%s: %s" % (NAME, told)

    return damage


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


def deferred_recipe(bench: Bench) -> Optional[str]:
    rows = [row for row in bench.load(NAME)["rows"] if row["outcome"] == "USER_DEFERRED"]
    if not rows or not bench.has("recipes.json"):
        return None
    with bench.edit("recipes.json") as data:
        if not data["recipes"]:
            return None
        data["recipes"][0]["case"] = rows[0]["case"]
    return "a recipe for " + str(rows[0]["case"])


def _retell(before: str, outcome: str, reason: str) -> Lie:
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


def open_profiles(bench: Bench) -> Optional[str]:
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


drop_row = _change(_drop_row)
unknown_profile = _change(_unknown_profile)
hide_newest = _change(_hide_newest)
blocked_to_success = _change(_blocked_to_success)
older_decides = _change(_older_decides)
merge_outcomes = _change(_merge_outcomes)
unattempted_to_success = _change(_unattempted_to_success)
other_topology = _change(_other_topology)
hide_blocker = _change(_hide_blocker)
storage_to_access = _retell("MISSING_STORAGE", "BLOCKED_ACCESS", "ACCESS_DENIED")
access_to_storage = _retell("BLOCKED_ACCESS", "MISSING_STORAGE", "MODEL_NOT_FOUND")


def _unknown_engine(data: Row) -> Optional[str]:
    row = _first(data, lambda row: row["decidedBy"] is None)
    if row is None:
        return None
    row["engine"] = "another-engine"
    return str(row["case"]) + " of another engine"


def _turn_synthetic(data: Row) -> Optional[str]:
    row = _first(data, lambda row: row["decidedBy"] is None)
    if row is None:
        return None
    row["synthetic"] = not row["synthetic"]
    return "%s told as synthetic: %s" % (row["case"], row["synthetic"])


def _other_reason(data: Row) -> Optional[str]:
    row = _first(data, lambda row: row["decidedBy"] is None)
    if row is None:
        return None
    row["reason"] = "OK"
    return str(row["case"]) + " for the reason OK"


def other_version(bench: Bench) -> Optional[str]:
    """Tell an engine in the version after that which it told in a kept control."""
    for name in bench.below("results/converged"):
        if not name.endswith("/controls.json"):
            continue
        folder = name.rpartition("/")[0]
        told = [one for one in bench.load(name)["controls"] if one["kind"] == "version" and one["kept"]]
        if not told or b'"version"' not in bench.read("%s/bodies/%s" % (folder, told[0]["sha256"])):
            continue
        engine = bench.load(folder + "/attempt.json")["engine"]
        with bench.edit("manifest.json") as manifest:
            for one in manifest["engines"]:
                if one["id"] == engine and one["source"] == "reported":
                    one["version"] += ".1"
                    return "%s in version %s" % (engine, one["version"])
    return None


unknown_engine = _change(_unknown_engine)
turn_synthetic = _change(_turn_synthetic)
other_reason = _change(_other_reason)
