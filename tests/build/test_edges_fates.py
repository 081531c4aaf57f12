"""The fate of an offer at its edges: who saw what of it, where a gateway dropped the id or a proxy was killed."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from forged_world import World

from benchmarks.forged_runs import Shape
from evidence import records
from evidence.build import incomplete
from evidence.build.privacy import Machine, Scanner
from evidence.build.runs import find_runs
from evidence.build.tree import Tree


def offer(name: str, request: str = "a", worker: str | None = None) -> dict[str, Any]:
    return {
        "offer": name, "repetition": 1, "arm": name[3].upper(), "phase": name[5:-4], "worker": worker,
        "requestSha256": request * 64, "requestBytes": 7,
    }  # fmt: skip


def sample(name: str, response: str = "b", transport: str = "complete", worker: str | None = None) -> records.Sample:
    return records.Sample(
        name, 1, name[3].upper(), "main", worker, "a" * 64, 7, response * 64, 9, 200, transport, 0.0, 0.1, None, 0.2, 0.0,
        "NORMAL", "stop", 1, 1,
    )  # fmt: skip


def receipt(
    name: str | None, response: str = "b", request: str = "a", *, traffic: bool = True, complete: bool = True
) -> records.Receipt:
    return records.Receipt(
        1, name, "POST", "/v1/chat/completions", traffic, request * 64, 7, response * 64, 9, 200, complete,
        None if complete else "client-closed", 0.0, 0.1, {}, {},
    )  # fmt: skip


def fates(
    folder: Path, offers: list[Any], samples: Any = (), ledgers: Any = None, opened: dict[str, list[Any]] | None = None
) -> tuple[list[records.OfferFate], dict[str, bytes]]:
    run: Any = SimpleNamespace(folder=folder, all=lambda event: offers, open_exchanges=lambda: opened or {})
    partials: dict[str, bytes] = {}
    return incomplete._fates(run, samples, ledgers or {}, partials), partials


ONE, TWO = "r1-a-main-001", "r1-a-main-002"
A1, A2, B1 = ("r1-a", "worker-1"), ("r1-a", "worker-2"), ("r1-b", "worker-1")


def test_an_offer_that_nobody_saw_never_started(tmp_path: Path) -> None:
    (fate,), partials = fates(tmp_path, [offer(ONE)])
    assert fate == records.OfferFate(ONE, 1, "A", "main", None, "a" * 64, 7, "never-started", False, None, None)
    assert partials == {}


@pytest.mark.parametrize(
    ("transport", "expected"),
    [("complete", "completed"), ("timeout", "timed-out"), ("closed-early", "failed"), ("failed", "failed")],
)
def test_a_sample_says_what_became_of_its_offer(tmp_path: Path, transport: str, expected: str) -> None:
    (fate,), _ = fates(tmp_path, [offer(ONE)], [sample(ONE, transport=transport)], {A1: [receipt(ONE)]})
    assert (fate.fate, fate.sample, fate.client) == (expected, True, records.Body("b" * 64, 9))
    assert (fate.worker, fate.upstream) == ("worker-1", records.Upstream("b" * 64, 9, "worker-1", True))


def test_what_a_recorder_or_a_killed_one_saw_has_failed(tmp_path: Path) -> None:
    (fate,), _ = fates(tmp_path, [offer(ONE)], [], {A1: [receipt(ONE)]})
    assert (fate.fate, fate.sample, fate.client, fate.worker) == ("failed", False, None, "worker-1")
    opened = {
        "worker-2": [SimpleNamespace(request_id=ONE, partial=None, worker="worker-2"), SimpleNamespace(request_id=None)]
    }
    (one, two), partials = fates(tmp_path, [offer(ONE), offer(TWO)], opened=opened)
    assert [(fate.fate, fate.upstream) for fate in (one, two)] == [("failed", None), ("never-started", None)]
    assert partials == {}


def test_the_bytes_of_a_killed_recorder_are_no_answer(tmp_path: Path) -> None:
    half = tmp_path / "half"
    half.write_bytes(b"half an answer")
    opened = {"worker-2": [SimpleNamespace(request_id=ONE, partial=half, worker="worker-2")]}
    (fate,), partials = fates(tmp_path, [offer(ONE)], opened=opened)
    digest = hashlib.sha256(b"half an answer").hexdigest()
    assert fate.upstream == records.Upstream(digest, 14, "worker-2", False)
    assert (fate.fate, partials) == ("failed", {digest: b"half an answer"})
    # A receipt says more than an open line.
    (fate,), partials = fates(tmp_path, [offer(ONE)], [], {A1: [receipt(ONE)]}, opened)
    assert fate.upstream == records.Upstream("b" * 64, 9, "worker-1", True)
    assert partials == {}


@pytest.mark.parametrize("transport", [None, "complete", "timeout"])
@pytest.mark.parametrize("stored", [True, False])
def test_an_exchange_that_was_cut_upstream_is_kept_as_a_partial(
    tmp_path: Path, transport: str | None, stored: bool
) -> None:
    bodies = tmp_path / "witness/bodies"
    bodies.mkdir(parents=True)
    if stored:
        (bodies / ("b" * 64)).write_bytes(b"part")
    samples = [] if transport is None else [sample(ONE, transport=transport)]
    (fate,), partials = fates(tmp_path, [offer(ONE)], samples, {A1: [receipt(ONE, complete=False)]})
    assert fate.upstream == records.Upstream("b" * 64, 9, "worker-1", False)
    assert partials == {"b" * 64: b"part" if stored else b""}
    # What was whole upstream is no partial, even when the client did not get it whole.
    (fate,), partials = fates(tmp_path, [offer(ONE)], samples, {A1: [receipt(ONE)]})
    assert fate.upstream is not None
    assert (fate.upstream.complete, partials) == (True, {})


def test_a_control_is_no_traffic_of_an_offer(tmp_path: Path) -> None:
    (fate,), _ = fates(tmp_path, [offer(ONE)], [], {A1: [receipt(ONE, traffic=False), receipt(None, traffic=False)]})
    assert fate.fate == "never-started"


def test_the_worker_is_the_samples_then_the_receipts_then_the_offers(tmp_path: Path) -> None:
    ledgers = {A2: [receipt(ONE)]}
    named = [sample(ONE, worker="worker-1")]
    assert fates(tmp_path, [offer(ONE, worker="worker-3")], named, ledgers)[0][0].worker == "worker-1"
    assert fates(tmp_path, [offer(ONE, worker="worker-3")], [sample(ONE)], ledgers)[0][0].worker == "worker-2"
    assert fates(tmp_path, [offer(ONE, worker="worker-3")], [], ledgers)[0][0].worker == "worker-2"
    assert fates(tmp_path, [offer(ONE, worker="worker-3")])[0][0].worker == "worker-3"


def test_where_the_gateway_dropped_the_id_hashes_tell_whose_a_receipt_is(tmp_path: Path) -> None:
    ledgers = {A1: [receipt(None, "c")], A2: [receipt(None, "b")], B1: [receipt(None, "b")]}
    (one, two), _ = fates(tmp_path, [offer(ONE), offer(TWO)], [sample(ONE, "b"), sample(TWO, "c")], ledgers)
    assert [(fate.worker, fate.upstream and fate.upstream.sha256) for fate in (one, two)] == [
        ("worker-2", "b" * 64), ("worker-1", "c" * 64),
    ]  # fmt: skip
    # A receipt is of one offer alone, and of its own arm.
    (one, two), _ = fates(
        tmp_path, [offer(ONE), offer(TWO)], [sample(ONE), sample(TWO)], {A1: [receipt(None)], B1: [receipt(None)]}
    )
    assert [fate.upstream is not None for fate in (one, two)] == [True, False]


def test_an_id_that_no_offer_of_the_run_has_keeps_its_receipt(tmp_path: Path) -> None:
    ledgers = {A1: [receipt(ONE, "c"), receipt(None, "b")]}
    (one, two), _ = fates(tmp_path, [offer(ONE), offer(TWO)], [sample(TWO, "b")], ledgers)
    assert [fate.upstream and fate.upstream.sha256 for fate in (one, two)] == ["c" * 64, "b" * 64]


def test_another_request_is_another_offers(tmp_path: Path) -> None:
    ledgers = {A1: [receipt(None, "b", "d"), receipt(None, "b", "a")]}
    (one, two), _ = fates(tmp_path, [offer(ONE), offer(TWO, "d")], [], ledgers)
    assert [fate.fate for fate in (one, two)] == ["failed", "failed"]
    (one, two), _ = fates(tmp_path, [offer(ONE, "e"), offer(TWO, "e")], [], ledgers)
    assert [fate.fate for fate in (one, two)] == ["never-started", "never-started"]


@pytest.mark.parametrize(("transport", "taken"), [("complete", False), ("timeout", True), ("closed-early", True)])
def test_an_answer_that_came_whole_is_the_receipts_and_one_that_did_not_may_be_longer(
    tmp_path: Path, transport: str, taken: bool
) -> None:
    (fate,), _ = fates(tmp_path, [offer(ONE)], [sample(ONE, "b", transport)], {A1: [receipt(None, "c")]})
    assert (fate.upstream is not None) is taken


def test_fates_are_counted_by_their_kind() -> None:
    names = ["completed"] * 4 + ["timed-out"] * 3 + ["failed"] * 2 + ["never-started"]
    told = incomplete._count([SimpleNamespace(fate=name) for name in names])  # type: ignore[misc]
    assert told == records.OfferCounts(offered=10, completed=4, timed_out=3, failed=2, never_started=1)


def run_of(*events: dict[str, Any], aborted: dict[str, Any] | None = None, ended: dict[str, Any] | None = None) -> Any:
    return SimpleNamespace(events=list(events), ended=ended, last=lambda name: aborted if name == "aborted" else None)


def test_the_reason_is_the_runs_own_or_that_it_was_killed() -> None:
    own = {"reason": "OPERATOR", "message": "by hand", "t": 4.5}
    assert incomplete._why(run_of(aborted=own, ended={"t": 9})) == ("OPERATOR", "by hand", 4.5)
    assert incomplete._why(run_of(ended={"t": 9})) == (
        "AUDIT_FAILED", "the run ended without being complete and gave no reason", 9,
    )  # fmt: skip
    killed = ("RUNNER_DIED", "the journal ends without the end of the run")
    assert incomplete._why(run_of({"t": 1}, {"t": 2})) == (*killed, 2)
    assert incomplete._why(run_of()) == (*killed, None)


@pytest.mark.parametrize(("adapter", "synthetic"), [("synthetic", True), ("vllm", False), ("command", False)])
def test_only_the_synthetic_engine_makes_a_synthetic_comparison(world: World, adapter: str, synthetic: bool) -> None:
    world.compare(shape=Shape(killed_after=2))
    [run] = find_runs(world.runs, world.campaign)
    engines = {name: one._replace(adapter=adapter) for name, one in world.campaign.engines.items()}
    (world.folder / "staging").mkdir()
    tree = Tree(world.folder / "staging", Scanner(Machine()))
    entry = incomplete.pack(run, replace(world.campaign, engines=engines), tree)
    assert entry.synthetic is synthetic
