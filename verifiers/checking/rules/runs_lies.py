"""Lies about which run of a comparison is which, and when it began."""

from __future__ import annotations

from typing import Any, Callable, Optional

from checking.damage import Bench
from checking.rules.forgery import INDEX, SETTINGS, Desk, first
from checking.rules.instants import STAMP, begun


def _comparison(change: Callable[[Desk, Any], Optional[str]]) -> Callable[[Bench], Optional[str]]:
    """A lie that changes comparison.json of the first comparison."""

    def damage(bench: Bench) -> Optional[str]:
        desk = first(bench)
        if desk is None:
            return None
        with desk.edit("comparison.json") as data:
            told = change(desk, data)
        return None if told is None else "%s: %s" % (desk.folder, told)

    return damage


def rename(bench: Bench, old: str, new: str) -> None:
    """Move a comparison to another id, in every document and in the index."""
    source, target = Desk(bench, "%s/%s" % (SETTINGS, old)), "%s/%s" % (SETTINGS, new)
    for name in ("samples.json", "snapshots.json", "decision.json"):
        with source.edit(name) as value:
            value["comparison"] = new
    with source.edit("comparison.json") as data:
        data["id"] = new
    for name in bench.below(source.folder):
        bench.put(target + name[len(source.folder) :], bench.read(name))
        bench.remove(name)
    with bench.edit(INDEX) as index:
        for row in index["comparisons"]:
            if row["folder"] == source.folder:
                row.update(id=new, folder=target)
        index["comparisons"].sort(key=lambda row: row["id"])


def _renumber(suffix: str, bench: Bench) -> Optional[str]:
    desk = first(bench)
    if desk is None:
        return None
    old = desk.folder.rpartition("/")[2]
    if old + suffix in {folder.rpartition("/")[2] for folder in bench.folders(SETTINGS)}:
        return None
    rename(bench, old, old + suffix)
    return "%s told as %s" % (old, old + suffix)


def be_latest(bench: Bench) -> Optional[str]:
    """Tell the latest run of a comparison as an earlier one."""
    return _renumber(".run-1", bench)


def skip_run(bench: Bench) -> Optional[str]:
    """Tell the latest run of a comparison as its ninth."""
    return _renumber(".run-9", bench)


def _begin_before(desk: Desk, data: Any) -> Optional[str]:
    started = data["arms"][0]["startedAt"]
    if begun(data["run"]) is None:
        return None
    data["arms"][0]["startedAt"] = "2020" + started[4:]
    return "its first arm begun in 2020"


def _lose_stamp(desk: Desk, data: Any) -> str:
    data["run"] = STAMP.sub("", data["run"])
    return "run told as " + str(data["run"])


begin_before = _comparison(_begin_before)
lose_stamp = _comparison(_lose_stamp)
