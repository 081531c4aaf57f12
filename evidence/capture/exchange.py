"""One plain HTTP exchange at a time, outside every measurement: readiness, controls, snapshots.

It is the measuring client's own `fetch`, of which only a whole answer counts.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from evidence.capture.load import fetch
from evidence.errors import EvidenceError


class ExchangeFailed(Exception):
    """There is no whole answer: the text says why."""


@dataclass(frozen=True)
class Answer:
    """A whole response: status, header fields (lower case), body bytes as they came."""

    status: int
    headers: Mapping[str, str]
    body: bytes


async def exchange(
    url: str,
    method: str = "GET",
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    *,
    seconds: float,
) -> Answer:
    """Send one request on a connection of its own. Raises ExchangeFailed, after `seconds` at the latest."""
    try:
        found = await asyncio.wait_for(fetch(url, method, body, seconds, headers, dated=False), seconds)
    except asyncio.TimeoutError:
        raise ExchangeFailed(f"no whole answer within {seconds:.1f} s") from None
    except EvidenceError as problem:
        raise ExchangeFailed(problem.message) from None
    if found.transport == "timeout":
        raise ExchangeFailed(f"no whole answer within {seconds:.1f} s")
    if found.transport != "complete" or found.status is None:
        raise ExchangeFailed(found.error or "no whole answer")
    return Answer(found.status, dict(found.headers), found.response_body)
