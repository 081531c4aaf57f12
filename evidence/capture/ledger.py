"""Reads the witness's ledgers while a run goes on, to see whether every exchange left its receipt."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evidence.capture.watch import Aborted

RECEIPT_SECONDS = 5.0
POLL_SECONDS = 0.005


def read_receipts(path: Path) -> list[dict[str, Any]]:
    """The traffic receipts of a ledger so far; an unfinished last line is left for the next reading."""
    try:
        lines = path.read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        return []
    return [receipt for receipt in map(json.loads, lines) if receipt["traffic"]]


def count_receipts(ledgers: Mapping[str, Path], offers: Sequence[str] | None = None) -> dict[str, int]:
    """Traffic receipts by worker; with `offers`, what a worker got of those request ids."""
    wanted = None if offers is None else set(offers)
    return {
        worker: sum(wanted is None or receipt["requestId"] in wanted for receipt in read_receipts(path))
        for worker, path in ledgers.items()
    }


async def await_receipts(ledgers: Mapping[str, Path], total: int) -> dict[str, int]:
    """Receipts by worker once there are `total` of them; what there is after five seconds when there are not.

    A receipt is written when the exchange has ended on both sides of the proxy, which is a moment after the client
    has its last byte.
    """
    for _ in range(round(RECEIPT_SECONDS / POLL_SECONDS)):
        counts = count_receipts(ledgers)
        if sum(counts.values()) >= total:
            return counts
        await asyncio.sleep(POLL_SECONDS)
    return count_receipts(ledgers)


def expect_counts(counts: Mapping[str, int], expected: Mapping[str, int], what: str) -> None:
    """Ends the run with AUDIT_FAILED when a worker got another number of exchanges than it must have."""
    if dict(counts) != dict(expected):
        found = ", ".join(f"{worker} {count}" for worker, count in counts.items())
        wanted = ", ".join(f"{worker} {count}" for worker, count in expected.items())
        raise Aborted("AUDIT_FAILED", f"{what}: found receipts {found}, expected {wanted}")
