"""Run folders are read strictly: what a killed recorder leaves is understood, what a person changed is not."""

from __future__ import annotations

import fcntl
import json
from pathlib import Path

import pytest
from forged_world import PROFILES, World

from benchmarks.forged_runs import Shape, write_campaign
from evidence.build.privacy import Machine, Scanner
from evidence.build.runs import Store, find_runs
from evidence.campaign import read_campaign
from evidence.errors import EvidenceError


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_folder_of_another_campaign_is_refused(world: World) -> None:
    edit(world.compare() / "run.json", '"campaign": "forged"', '"campaign": "other"')
    with pytest.raises(EvidenceError, match=r"run\.json: found a run of campaign 'other', expected 'forged'"):
        find_runs(world.runs, world.campaign)


def test_a_folder_that_is_no_run_is_refused(world: World) -> None:
    (world.runs / "notes").mkdir()
    with pytest.raises(EvidenceError, match=r"notes/run\.json: found no such file"):
        find_runs(world.runs, world.campaign)


def test_a_renamed_folder_is_refused(world: World) -> None:
    folder = world.compare()
    folder.rename(folder.with_name("compare-1-by-hand"))
    with pytest.raises(EvidenceError, match="expected 'compare-1-by-hand'"):
        find_runs(world.runs, world.campaign)


def test_a_campaign_may_grow_after_a_capture(world: World) -> None:
    world.compare()
    grown = write_campaign(world.campaign.folder, profiles=PROFILES, tokens=24, comparisons=3)
    assert [run.name for run in find_runs(world.runs, grown)] == ["compare-1"]


def test_a_run_under_other_words_is_refused(world: World) -> None:
    world.compare()
    edit(world.campaign.path, "baseline = '4096'", "baseline = '8192'")
    with pytest.raises(EvidenceError, match=r"found \[\[comparison\]\] 'compare-1' other than in campaign\.toml"):
        find_runs(world.runs, read_campaign(world.campaign.path))


def test_a_run_under_way_is_refused_and_not_told_as_killed(world: World) -> None:
    folder = world.compare(shape=Shape(killed_after=50))
    with (folder / "journal.jsonl").open("ab") as journal:
        fcntl.flock(journal, fcntl.LOCK_EX)  # as the recorder does for as long as it lives
        with pytest.raises(EvidenceError, match="found a run that is still under way"):
            find_runs(world.runs, world.campaign)
    assert [run.ended for run in find_runs(world.runs, world.campaign)] == [None]


def test_a_torn_last_line_is_no_event_and_no_receipt(world: World) -> None:
    folder = world.compare(shape=Shape(killed_after=50))
    with (folder / "journal.jsonl").open("a") as journal:
        journal.write('{"event": "offer", "t": 1')
    ledger = folder / "witness/r1-a/worker-1.jsonl"
    with ledger.open("a") as lines:
        lines.write('{"sequence": 99')
    [run] = find_runs(world.runs, world.campaign)
    assert run.events[-1]["event"] in ("offer", "sample")
    assert not run.complete
    assert 99 not in [receipt.sequence for receipt in run.ledgers()["r1-a", "worker-1"]]


def test_a_broken_line_in_the_middle_is_refused(world: World) -> None:
    folder = world.compare()
    ledger = folder / "witness/r1-a/worker-1.jsonl"
    ledger.write_text("not json\n" + ledger.read_text())
    [run] = find_runs(world.runs, world.campaign)
    with pytest.raises(EvidenceError, match=r"worker-1\.jsonl, line 1: found no JSON"):
        run.ledgers()


def test_a_receipt_with_an_unknown_key_is_refused(world: World) -> None:
    folder = world.compare()
    ledger = folder / "witness/r1-a/worker-1.jsonl"
    rows = [json.loads(line) for line in ledger.read_text().splitlines()]
    ledger.write_text("".join(json.dumps(row | {"extra": 1}) + "\n" for row in rows))
    [run] = find_runs(world.runs, world.campaign)
    with pytest.raises(EvidenceError, match=r"receipt 1 with other keys \(extra\)"):
        run.ledgers()


def test_an_altered_body_is_refused(world: World) -> None:
    folder = world.compare()
    [run] = find_runs(world.runs, world.campaign)
    digest = run.all("sample")[0]["responseSha256"]
    (folder / "bodies" / digest).write_bytes(b"something else")
    store = Store(run, Scanner(Machine()))
    with pytest.raises(EvidenceError, match="expected that of its name"):
        store.take(digest)


def test_open_exchanges_are_those_without_a_receipt(world: World) -> None:
    folder = world.compare(shape=Shape(killed_after=60))
    partial = folder / "witness/bodies/.worker-1-4711-999-response.partial"
    partial.write_bytes(b"half an ans")
    with (folder / "witness/r1-a/worker-1.jsonl.open").open("a") as lines:
        lines.write(json.dumps({"sequence": 999, "requestId": "r1-a-main-020", "path": "/v1/chat/completions"}) + "\n")
    [run] = find_runs(world.runs, world.campaign)
    found = {one.request_id: one for one in run.open_exchanges()["r1-a"]}
    assert found["r1-a-main-020"].partial == partial
    closed = {receipt.request_id for rows in run.ledgers().values() for receipt in rows}
    assert not closed & found.keys()
