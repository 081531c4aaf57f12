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


async def offer(adapter: Adapter, port: int, path: str, concurrency: int, requests: int) -> list[dict[str, Any]]:
    """Keep `concurrency` requests open until `requests` were made: a worker takes the next when its last has ended."""
    one, close = await adapter(port, path, concurrency)
    left, rows = requests, []

    async def work() -> None:
        nonlocal left
        while left:
            left -= 1
            rows.append(await one())

    try:
        await asyncio.gather(*(work() for _ in range(min(concurrency, requests))))
    finally:
        await close()
    return rows


async def offer_each(adapter: Adapter, port: int, paths: list[str]) -> list[dict[str, Any]]:
    """Two requests to each path, one after the other; the second counts, since the first warms the client up."""
    return [(await offer(adapter, port, path, 1, 2))[-1] for path in paths]


def main(adapter: Adapter, run: Callable[[Any], Any] = asyncio.run) -> None:
    """Run an adapter by the command line and print its rows as the last line.

    `PORT PATH CONCURRENCY REQUESTS` measures; with several paths, joined by commas, there is one row for each.
    """
    port, paths, concurrency, requests = int(sys.argv[1]), sys.argv[2].split(","), int(sys.argv[3]), int(sys.argv[4])
    before = resource.getrusage(resource.RUSAGE_SELF)
    if len(paths) > 1:
        rows = run(offer_each(adapter, port, paths))
    else:
        rows = run(offer(adapter, port, paths[0], concurrency, requests))
    after = resource.getrusage(resource.RUSAGE_SELF)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print("\n" + json.dumps({"rows": rows, "processor_seconds": spent}))
