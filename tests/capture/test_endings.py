"""The middle of a stream may lie unread, where that costs no time that is told."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import pytest
from scripted_server import DONE, END, STREAM_HEAD, Journal, Talk, delta, framed, plan, serving, usage

from evidence.capture import wire
from evidence.capture.endings import AT_ONCE_NS, PROOF_EVERY, Manners, has_ended
from evidence.capture.load import Exchange, offer_batch

EVENTS = 12


@pytest.fixture
def rested(monkeypatch: pytest.MonkeyPatch) -> list[socket.socket]:
    """The connections that were left to lie."""
    seen: list[socket.socket] = []
    real = wire.await_many

    def note(connection: socket.socket) -> bool:
        seen.append(connection)
        return real(connection)

    monkeypatch.setattr(wire, "await_many", note)
    return seen


def trust(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take every server for one that closes at once."""
    monkeypatch.setattr(Manners, "may_wait", lambda manners: True)
    monkeypatch.setattr(Manners, "closes", True, raising=False)
    monkeypatch.setattr(Manners, "__init__", lambda manners: None)


def stream_of(*, closing_after: float = 0.0, first: bytes = b"") -> Callable[[Talk], object]:
    """Role, text, more text, the end, and a close after some seconds."""

    async def script(talk: Talk) -> None:
        await talk.send(STREAM_HEAD + framed(delta(role="assistant", content="") + first))
        await talk.stream(delta(content="a"), after=0.003)
        for _ in range(EVENTS - 1):
            await talk.stream(delta(content="b"), after=0.002)
        await talk.stream(delta("stop"), usage(EVENTS), DONE, after=0.002)
        await talk.send(END)
        if closing_after:
            await asyncio.sleep(closing_after)

    return script


def offer(script: Callable[[Talk], object], count: int, **more: object) -> tuple[list[Exchange], list[Talk]]:
    async def run() -> tuple[list[Exchange], list[Talk]]:
        async with serving(script) as (url, talks):  # type: ignore[arg-type]
            plans = [plan(url, number, **more) for number in range(count)]
            return await offer_batch(plans, concurrency=1, recorder=Journal()), talks

    return asyncio.run(run())


def test_only_the_first_text_and_the_end_wake_the_reader(rested: list[socket.socket]) -> None:
    exchanges, talks = offer(stream_of(), 8)
    assert rested, "a server that closes at once was never found to do so"
    assert all(exchange.whole and exchange.completion_tokens == EVENTS for exchange in exchanges)
    assert all(len(exchange.event_ns) == EVENTS for exchange in exchanges)
    for exchange, talk in zip(exchanges, talks, strict=True):
        assert exchange.ttft_ns is not None
        text, end = (talk.left_ns[place] - exchange.started_ns for place in (1, -1))
        assert text <= exchange.ttft_ns < talk.left_ns[2] - exchange.started_ns
        assert end <= exchange.total_ns
    gathered = [len(set(exchange.event_ns)) for exchange in exchanges]
    assert min(gathered) < EVENTS / 2, "no reader was left to sleep"


def test_a_server_that_closes_late_is_read_to_its_last_byte(rested: list[socket.socket]) -> None:
    exchanges, talks = offer(stream_of(closing_after=0.02), 4)
    assert rested == []
    assert all(exchange.whole for exchange in exchanges)
    for exchange, talk in zip(exchanges, talks, strict=True):
        assert exchange.total_ns < talk.left_ns[-1] - exchange.started_ns + 15_000_000


def test_a_server_that_changes_its_manners_is_noticed(
    rested: list[socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evidence.capture.batch.LOOK_NS", 50_000_000)
    trust(monkeypatch)
    exchanges, talks = offer(stream_of(closing_after=5.0), 2)
    assert len(rested) == 2
    for exchange, talk in zip(exchanges, talks, strict=True):
        assert exchange.whole
        # The end was found late, and was dated when it came: nothing but the last byte lay there.
        assert exchange.total_ns < talk.left_ns[-1] - exchange.started_ns + 15_000_000


@pytest.mark.parametrize("sent", [b"data: nothing to read\n\n", delta(content="a")[:-1]], ids=["no-text", "cut"])
def test_what_was_put_off_is_read_at_the_end(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    trust(monkeypatch)

    async def script(talk: Talk) -> None:
        await talk.send(STREAM_HEAD + framed(sent))

    ((exchange,), _) = offer(script, 1)
    assert (exchange.transport, exchange.status, exchange.response_body) == ("closed-early", 200, sent)
    assert exchange.ttft_ns is None


def test_what_was_put_off_is_read_at_a_time_out(monkeypatch: pytest.MonkeyPatch) -> None:
    trust(monkeypatch)

    async def script(talk: Talk) -> None:
        await talk.send(STREAM_HEAD + framed(delta(role="assistant", content="")))
        await talk.reader.read()

    ((exchange,), _) = offer(script, 1, timeout=0.1)
    assert (exchange.transport, exchange.status) == ("timeout", 200)
    assert exchange.response_body == delta(role="assistant", content="")


def test_a_text_in_pieces_is_dated_by_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    trust(monkeypatch)
    text = delta(content="a")

    async def script(talk: Talk) -> None:
        await talk.send(STREAM_HEAD + framed(delta(role="assistant", content="")))
        for at in range(0, len(text), 20):
            await talk.stream(text[at : at + 20], after=0.003)
        await talk.stream(delta("stop"), DONE, after=0.03)
        await talk.send(END)

    ((exchange,), (talk,)) = offer(script, 1)
    assert exchange.ttft_ns is not None
    pieces = -(-len(text) // 20)
    assert (
        talk.left_ns[pieces] - exchange.started_ns <= exchange.ttft_ns < talk.left_ns[pieces + 1] - exchange.started_ns
    )


def test_reasoning_that_follows_text_is_not_dated() -> None:
    async def script(talk: Talk) -> None:
        await talk.send(STREAM_HEAD + framed(delta(content="a")))
        await talk.stream(delta(reasoning_content="hm"), after=0.003)
        await talk.stream(delta("stop"), DONE)
        await talk.send(END)

    ((exchange,), _) = offer(script, 1)
    assert exchange.ttft_ns is not None
    assert exchange.reasoning_ns is None


def test_an_open_stream_may_rest_as_soon_as_another_proved_the_close(rested: list[socket.socket]) -> None:
    async def script(talk: Talk) -> None:
        long = b"main-000" in talk.request
        await talk.send(STREAM_HEAD + framed(delta(content="a")))
        for _ in range(EVENTS if long else 1):
            await talk.stream(delta(content="b"), after=0.03 if long else 0.005)
        await talk.stream(delta("stop"), DONE)
        await talk.send(END)

    async def run() -> list[Exchange]:
        async with serving(script) as (url, _):
            return await offer_batch([plan(url, number) for number in range(8)], concurrency=2, recorder=Journal())

    long = asyncio.run(run())[0]
    assert rested, "a server that closes at once was never found to do so"
    assert long.whole
    assert len(long.event_ns) == EVENTS + 1
    assert len(set(long.event_ns)) < EVENTS


def test_proofs() -> None:
    manners = Manners()
    assert not manners.may_wait()
    manners.note(False, 0)
    assert not manners.may_wait(), "an open connection proves nothing"
    manners.note(True, AT_ONCE_NS + 1)
    assert not manners.may_wait(), "an end that was seen too late proves nothing"
    assert not manners.closes
    manners.note(True, AT_ONCE_NS)
    assert manners.closes
    granted = [manners.may_wait() for _ in range(PROOF_EVERY * 2)]
    assert granted.count(False) == 2
    manners.note(False, 0)
    assert manners.may_wait(), "not yet closed disproves nothing"
    manners.note(False, AT_ONCE_NS + 1)
    assert not manners.may_wait()
    assert not manners.closes


def test_whether_a_connection_has_ended() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        assert not has_ended(ours)
        theirs.send(b".")
        assert not has_ended(ours)
        ours.recv(1)
        theirs.close()
        assert has_ended(ours)
