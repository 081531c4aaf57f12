"""Nothing that was offered is lost, and nothing of an upstream partial is taken for an answer."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from forged_world import World

from benchmarks.forged_runs import Shape
from evidence.build.archive import Piece
from evidence.build import incomplete
from evidence.build.privacy import Machine, Scanner
from evidence.build.runs import find_runs
from evidence.build.tree import Tree
from evidence.capture.load import Exchange
from evidence.records import IncompleteEntry


def pack(world: World) -> tuple[Tree, IncompleteEntry, list[dict[str, Any]]]:
    [run] = find_runs(world.runs, world.campaign)
    staging = world.folder / "staging"
    staging.mkdir()
    tree = Tree(staging, Scanner(Machine()))
    entry = incomplete.pack(run, world.campaign, tree)
    return tree, entry, load(tree, f"{entry.folder}/offers.json")["offers"]


def load(tree: Tree, path: str) -> dict[str, Any]:
    content = tree.files[path][1]
    assert isinstance(content, Piece)
    return json.loads(content.read())  # type: ignore[no-any-return]


def offered(folder: Path) -> list[str]:
    rows = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
    return [row["offer"] for row in rows if row["event"] == "offer"]


@pytest.mark.parametrize("killed_after", [1, 2, 5, 21, 36, 61, 83, 130, 300, 503])
def test_every_offer_of_a_killed_run_has_one_fate(world: World, killed_after: int) -> None:
    folder = world.compare(shape=Shape(killed_after=killed_after))
    _, entry, offers = pack(world)
    assert [row["offer"] for row in offers] == offered(folder)
    assert entry.reason == "RUNNER_DIED"
    fates = Counter(row["fate"] for row in offers)
    counts = entry.counts
    assert (counts.completed, counts.timed_out, counts.failed, counts.never_started) == tuple(
        fates[fate] for fate in ("completed", "timed-out", "failed", "never-started")
    )
    assert counts.offered == len(offers) == sum(fates.values())


def test_what_a_proxy_saw_of_an_offer_without_a_sample_is_failed_and_not_never_started(world: World) -> None:
    folder = world.compare(shape=Shape(killed_after=50))
    _, _, offers = pack(world)
    begun = set()
    for path in (folder / "witness").glob("*/*.open"):
        begun |= {json.loads(line)["requestId"] for line in path.read_text().splitlines()}
    for row in offers:
        if not row["sample"]:
            assert row["fate"] == ("failed" if row["offer"] in begun else "never-started")
    assert any(row["fate"] == "failed" for row in offers)


def test_the_bytes_of_a_killed_proxy_are_kept_as_a_partial(world: World) -> None:
    folder = world.compare(shape=Shape(killed_after=50))
    ledger = folder / "witness/r1-a/worker-1.jsonl"
    closed = {json.loads(line)["sequence"] for line in ledger.read_text().splitlines()}
    begun = [json.loads(line) for line in ledger.with_name("worker-1.jsonl.open").read_text().splitlines()]
    open_one = next(row for row in begun if row["sequence"] not in closed)
    half = b'data: {"choices": [{"delta": {"content": "ha'
    (folder / f"witness/bodies/.worker-1-4711-{open_one['sequence']}-response.partial").write_bytes(half)
    tree, entry, offers = pack(world)
    row = next(row for row in offers if row["offer"] == open_one["requestId"])
    digest = hashlib.sha256(half).hexdigest()
    assert row["upstream"] == {"bytes": len(half), "complete": False, "sha256": digest, "worker": "worker-1"}
    assert (row["fate"], row["client"]) == ("failed", None)
    assert tree.files[f"{entry.folder}/partials/{digest}"][0] == digest
    assert digest not in [name for room in tree.bodies for _, name, _ in room]


def late(exchange: Exchange) -> Exchange:
    if exchange.offer != "r1-b-main-003":
        return exchange
    return replace(exchange, transport="timeout", response_body=exchange.response_body[:300], error="timed out")


def cut(offer: str, body: bytes) -> tuple[bytes, bool]:
    return (body[:700] if offer == "r1-b-main-003" else body), offer != "r1-b-main-003"


def test_a_timed_out_client_and_its_upstream_partial_are_kept_apart(world: World) -> None:
    def upstream(offer: str, body: bytes) -> tuple[bytes, bool]:
        return cut(offer, whole[offer]) if offer in whole else (body, True)

    whole: dict[str, bytes] = {}

    def alter(exchange: Exchange) -> Exchange:
        if exchange.offer == "r1-b-main-003":
            whole[exchange.offer] = exchange.response_body
        return late(exchange)

    world.compare(shape=Shape(aborted_after=150, alter=alter, upstream=upstream))
    tree, entry, offers = pack(world)
    row = next(row for row in offers if row["offer"] == "r1-b-main-003")
    client, partial = whole["r1-b-main-003"][:300], whole["r1-b-main-003"][:700]
    assert row["fate"] == "timed-out"
    assert row["client"] == {"bytes": 300, "sha256": hashlib.sha256(client).hexdigest()}
    assert row["upstream"]["sha256"] == hashlib.sha256(partial).hexdigest()
    assert row["upstream"]["complete"] is False
    names = {name for room in tree.bodies for _, name, _ in room}
    assert row["client"]["sha256"] in names
    assert row["upstream"]["sha256"] not in names
    assert f"{entry.folder}/partials/{row['upstream']['sha256']}" in tree.files
    samples = load(tree, f"{entry.folder}/samples.json")["samples"]
    assert next(one for one in samples if one["offer"] == "r1-b-main-003")["classification"] == "CLIENT_TIMEOUT"
    assert (entry.reason, entry.counts.timed_out) == ("OPERATOR", 1)


def test_batches_before_the_abort_are_kept_whole(world: World) -> None:
    world.compare(shape=Shape(aborted_after=200))
    tree, entry, offers = pack(world)
    samples = load(tree, f"{entry.folder}/samples.json")["samples"]
    assert sum(one["phase"] == "main" and one["arm"] == "A" for one in samples) == 24
    record = load(tree, f"{entry.folder}/comparison.json")
    assert [(arm["repetition"], arm["arm"]) for arm in record["arms"]] == [(1, "A"), (1, "B"), (2, "B")]
    assert record["arms"][0]["wallSeconds"] is not None
    assert record["arms"][-1]["wallSeconds"] is None
    assert record["abortedAt"] is not None
    assert len(load(tree, f"{entry.folder}/snapshots.json")["snapshots"]) >= 2
    assert f"{entry.folder}/decision.json" not in tree.files
    assert all(row["client"] is not None for row in offers if row["sample"])


def test_a_run_killed_before_its_first_offer_is_packed_too(world: World) -> None:
    folder = world.compare(shape=Shape(killed_after=1))
    journal = folder / "journal.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:1]))
    _, entry, offers = pack(world)
    assert (offers, entry.counts.offered) == ([], 0)
