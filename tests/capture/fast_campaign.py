"""Campaigns on the synthetic engine that are over in seconds, and what their run folders say."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from evidence.capture.journal import read_journal
from tests.campaign_folder import CAMPAIGN, write_campaign

FAST = ["--answer-tokens", "4", "--prefill-ms", "2", "--token-ms", "1"]


def write_fast(
    folder: Path, *, case: list[str] | None = None, setting: tuple[str, str, str] = ("--context-tokens", "4096", "1024"),
    engine: str = "", comparison: str = "", more: str = "",
) -> Path:  # fmt: skip
    """A campaign with a native case, a round-robin case and a comparison, altered where asked."""
    argument, baseline, candidate = setting
    text = CAMPAIGN.replace("arguments = []", f"arguments = {json.dumps(FAST)}\n{engine}")
    text = text.replace("--memory-mib", argument).replace('"1000"', f'"{baseline}"').replace('"600"', f'"{candidate}"')
    text = text.replace('surface = "rr"\n', f'surface = "rr"\narguments = {json.dumps(case or [])}\n')
    text = text.replace('surface = "native"\n', f'surface = "native"\narguments = {json.dumps(case or [])}\n')
    return write_campaign(folder, text + comparison + more)


def events(run: Path, *names: str) -> list[dict[str, Any]]:
    """The journal's events of these names, or all."""
    return [event for event in read_journal(run) if not names or event["event"] in names]


def receipts(run: Path, arm: str) -> dict[str, list[dict[str, Any]]]:
    """The traffic receipts of an arm by worker."""
    found = {}
    for path in sorted((run / "witness" / arm).glob("*.jsonl")):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        found[path.stem] = [row for row in rows if row["traffic"]]
    return found


def stored(run: Path, digest: str) -> bytes:
    """The body of that hash, which must be its own."""
    for room in ("bodies", "witness/bodies"):
        path = run / room / digest
        if path.exists():
            content = path.read_bytes()
            assert hashlib.sha256(content).hexdigest() == digest
            return content
    raise AssertionError(f"no body {digest}")


def assert_nothing_lost(run: Path) -> None:
    """Every offer has its request's bytes, every sample its answer's, and every receipt belongs to an offer."""
    offers = {event["offer"]: event for event in events(run, "offer")}
    samples = events(run, "sample")
    assert len(offers) == len(events(run, "offer"))
    assert len({sample["offer"] for sample in samples}) == len(samples)
    for event in [*offers.values(), *samples]:
        stored(run, event["requestSha256"])
    for sample in samples:
        assert sample["offer"] in offers
        assert len(stored(run, sample["responseSha256"])) == sample["responseBytes"]
    for arm in (run / "witness").iterdir():
        if arm.name != "bodies":
            for rows in receipts(run, arm.name).values():
                assert {row["requestId"] for row in rows} <= set(offers)
