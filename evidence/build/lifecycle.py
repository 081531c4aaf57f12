"""Packs lifecycle records: their own published form, byte for byte, and an index of them."""

from __future__ import annotations

import orjson

from evidence import records
from evidence.build.tree import Tree
from evidence.campaign import Campaign

PATH = "results/lifecycle-index.json"


def pack(campaign: Campaign, tree: Tree) -> int:
    """results/lifecycle/ and its index, from the records that the campaign names; how many there are."""
    entries = []
    for entry in sorted(campaign.lifecycle.values(), key=lambda entry: entry.id):
        if entry.record is None:
            tree.refusals.append(
                f"lifecycle {entry.id}: found no record, expected one made of its run by `evidence lifecycle summarize`"
            )
            continue
        data = entry.record.read()
        try:
            experiments = [str(experiment["id"]) for experiment in orjson.loads(data)["experiments"]]
        except (orjson.JSONDecodeError, KeyError, TypeError):
            tree.refusals.append(
                f"lifecycle {entry.id}: found no experiments in {entry.record.name}, expected a record"
            )
            continue
        path = f"results/lifecycle/{entry.id}.json"
        entries.append(records.LifecycleEntry(entry.id, path, tree.add(path, data), experiments))
    tree.add(PATH, records.to_bytes(records.LifecycleIndex(entries)))
    return len(entries)
