"""The client knows when it is late."""

from __future__ import annotations

import asyncio
import time

import pytest
from scripted_server import DONE, END, STREAM_HEAD, Journal, Talk, delta, framed, plan, serving

from evidence.capture.lateness import LagMonitor, note_send
from evidence.capture.load import offer_batch

FIELDS = {
    "late",
    "limitSeconds",
    "loopLagP99Seconds",
    "loopLagMaxSeconds",
    "sendLagP99Seconds",
    "sendLagMaxSeconds",
    "processorShare",
}


def test_starved_client_says_so() -> None:
    # llm-d-benchmark#261
    async def run() -> LagMonitor:
        async with LagMonitor(0.05) as monitor:
            end = time.process_time() + 0.3
            while time.process_time() < end:
                pass
            await asyncio.sleep(0)
        return monitor

    record = asyncio.run(run()).record()
    assert set(record) == FIELDS
    assert record["late"] is True
    assert record["loopLagMaxSeconds"] > 0.2
    assert 0.02 < record["processorShare"] < 1.1


def test_stall_weighs_by_its_length() -> None:
    async def run() -> LagMonitor:
        async with LagMonitor(1.0) as monitor:
            time.sleep(0.45)  # noqa: ASYNC251
            await asyncio.sleep(0)
        return monitor

    monitor = asyncio.run(run())
    assert len(monitor.loop_lags_ns) >= 10
    assert monitor.record()["processorShare"] < 0.9


def test_batch_tells_its_send_lags_to_the_monitor_around_it() -> None:
    async def script(talk: Talk) -> None:
        await talk.send(STREAM_HEAD + framed(delta(content="a") + delta("stop") + DONE) + END)

    async def run() -> tuple[LagMonitor, list[int]]:
        async with serving(script) as (url, _), LagMonitor(10.0) as monitor:
            found = await offer_batch([plan(url, n) for n in range(24)], concurrency=8, recorder=Journal())
        return monitor, [e.send_lag_ns for e in found]

    monitor, lags = asyncio.run(run())
    assert sorted(monitor.send_lags_ns) == sorted(lags)
    record = monitor.record()
    assert record["late"] is False
    assert record["sendLagMaxSeconds"] == max(lags) / 1e9


def test_one_late_send_is_late() -> None:
    async def run() -> LagMonitor:
        async with LagMonitor(0.05) as monitor:
            for lag in [1_000] * 23 + [60_000_000]:
                note_send(lag)
        return monitor

    assert asyncio.run(run()).record()["late"] is True


def test_nothing_is_watched_outside() -> None:
    async def run() -> LagMonitor:
        async with LagMonitor() as monitor:
            pass
        note_send(1)
        return monitor

    assert asyncio.run(run()).send_lags_ns == []


@pytest.mark.parametrize("limit", [0, -1, float("nan"), float("inf")])
def test_limit_must_be_a_positive_number(limit: float) -> None:
    with pytest.raises(ValueError, match="positive"):
        LagMonitor(limit)
