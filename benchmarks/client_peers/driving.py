"""What the adapters of other clients share: so many requests at so many at once, and what is printed of them.

It runs in the peer's environment: nothing but the standard library is imported here.
"""

from __future__ import annotations

import asyncio
import json
import re
import resource
import sys
from collections.abc import Awaitable, Callable
from typing import Any

One = Callable[[], Awaitable[dict[str, Any]]]
Adapter = Callable[[int, str, int], Awaitable[tuple[One, Callable[[], Awaitable[None]]]]]


def row(text: str, ttft: float | None, total: float | None, good: bool, tokens: int | None) -> dict[str, Any]:
    """What a client says of one request; times in seconds. The number stands in the text that it read."""
    number = re.match(r"n(\d+) ", text)
    return {
        "number": int(number[1]) if number and good else None,
        "ttft_ms": None if ttft is None else ttft * 1e3,
        "total_ms": None if total is None else total * 1e3,
        "good": good,
        "tokens": tokens,
    }


def warm_ups(concurrency: int) -> int:
    """How many requests a client has made before it is measured, as in an arm, whose warm-up comes first."""
    return max(concurrency, 4)


def processor_seconds() -> float:
    """What this process has used until now."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


async def offer(
    adapter: Adapter, port: int, path: str, concurrency: int, requests: int, warm: int
) -> tuple[list[dict[str, Any]], float]:
    """Keep `concurrency` requests open until `requests` were made: a worker takes the next when its last has ended.

    Before them are `warm` that do not count. Returns a row of each and the processor time of all.
    """
    one, close = await adapter(port, path, concurrency)

    async def keep_open(left: int) -> list[dict[str, Any]]:
        rows = []

        async def work() -> None:
            nonlocal left
            while left:
                left -= 1
                rows.append(await one())

        await asyncio.gather(*(work() for _ in range(min(concurrency, left))))
        return rows

    try:
        await keep_open(warm)
        before = processor_seconds()
        rows = await keep_open(requests)
        return rows, processor_seconds() - before
    finally:
        await close()


async def offer_each(adapter: Adapter, port: int, paths: list[str]) -> tuple[list[dict[str, Any]], float]:
    """One request to each path, after one that warms the client up."""
    found = [await offer(adapter, port, path, 1, 1, 1) for path in paths]
    return [row for rows, _seconds in found for row in rows], sum(seconds for _rows, seconds in found)


def main(adapter: Adapter, run: Callable[[Any], Any] = asyncio.run) -> None:
    """Run an adapter by the command line and print its rows as the last line.

    `PORT PATH CONCURRENCY REQUESTS` measures; with several paths, joined by commas, there is one row for each.
    """
    port, paths, concurrency, requests = int(sys.argv[1]), sys.argv[2].split(","), int(sys.argv[3]), int(sys.argv[4])
    if len(paths) > 1:
        rows, spent = run(offer_each(adapter, port, paths))
    else:
        rows, spent = run(offer(adapter, port, paths[0], concurrency, requests, warm_ups(concurrency)))
    print("\n" + json.dumps({"rows": rows, "processor_seconds": spent}))
