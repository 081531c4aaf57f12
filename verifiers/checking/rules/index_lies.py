"""Lies in an index and beside it, each coherent but for its meaning."""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Tuple

from checking.damage import Bench
from checking.rules.index import Row, Table


def tell(table: Table, change: Callable[[List[Row]], Any], bench: Bench) -> Optional[str]:
    """A lie in the index alone: sums are sealed, its hashes are not put right. No lie where `change` returns False."""
    value = bench.load(table.name)
    if not value[table.key] or change(value[table.key]) is False:
        return None
    bench.store(table.name, value)
    bench.reseal_sums()
    return table.name


def drop(rows: List[Row]) -> None:
    """Drop the last row."""
    rows.pop()


def invent(rows: List[Row]) -> None:
    """List what is not there, last of all."""
    folder = rows[-1]["folder"].rpartition("/")[0]
    rows.append(dict(rows[-1], id="zz-invented", folder=folder + "/zz-invented"))


def reverse(rows: List[Row]) -> bool:
    """Reverse the rows."""
    rows.reverse()
    return len(rows) > 1


def twist_hash(rows: List[Row]) -> None:
    """Write another hash of the samples."""
    rows[0]["files"]["samples"] = "0" * 64


def other_decision(rows: List[Row]) -> None:
    """Turn a decision round."""
    rows[0]["decision"] = "baseline" if rows[0]["decision"] == "candidate" else "candidate"


def other_profile(rows: List[Row]) -> None:
    """Tell another profile."""
    rows[0]["profile"] = "another-profile"


def other_outcome(rows: List[Row]) -> None:
    """Tell another outcome of an attempt."""
    rows[0]["outcome"] = "MISSING_IMAGE"


def other_reason(rows: List[Row]) -> None:
    """Tell another reason why a comparison is incomplete."""
    rows[0]["reason"] = "OPERATOR" if rows[0]["reason"] != "OPERATOR" else "DISK_FULL"


def more_completed(rows: List[Row]) -> None:
    """Count an offer more as completed."""
    rows[0]["counts"]["completed"] += 1


def stray_file(table: Table, bench: Bench) -> Optional[str]:
    """Leave a file beside the folders."""
    if not bench.folders(table.parent):
        return None
    bench.put(table.parent + "/summary.txt", b"all good\n")
    return table.parent + "/summary.txt"


def package_twice(
    table: Table, names: Tuple[Tuple[str, str], ...], counts: Tuple[Tuple[str, int], ...], bench: Bench
) -> Optional[str]:
    """Package the first folder twice, with the manifest's counts."""
    folders = bench.folders(table.parent)
    if not folders:
        return None
    with bench.edit("manifest.json") as data:
        for key, more in counts:
            data["counts"][key] += more
    return package_again(table, names, folders[0], bench)


def package_again(table: Table, names: Tuple[Tuple[str, str], ...], folder: str, bench: Bench) -> str:
    """Package a folder under another id, with its row of the index; `names` are the keys of its documents that tell the id."""
    twin = folder + "-again"
    own = twin.rpartition("/")[2]
    for name in bench.below(folder):
        bench.put(twin + name[len(folder) :], bench.read(name))
    for name, key in names:
        with bench.edit("%s/%s" % (twin, name)) as data:
            data[key] = own
    with bench.edit(table.name) as data:
        row = next(row for row in data[table.key] if row["folder"] == folder)
        data[table.key].append(dict(row, id=own, folder=twin, files=dict(row["files"])))
        data[table.key].sort(key=lambda row: str(row["id"]))
    return "%s packaged again as %s" % (folder, own)
