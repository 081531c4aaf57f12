"""The middle of a stream may lie unread, where that costs no time that is told."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable

import pytest
from scripted_server import DONE, END, STREAM_HEAD, Journal, Talk, delta, framed, plan, serving, usage

from evidence.capture import wire
from evidence.capture.endings import AT_ONCE_NS, PROOF_EVERY, Known, Manners, has_ended
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
    sharp = 0
    for exchange, talk in zip(exchanges, talks, strict=True):
        assert exchange.ttft_ns is not None
        text, end = (talk.left_ns[place] - exchange.started_ns for place in (1, -1))
        assert text <= exchange.ttft_ns <= exchange.total_ns
        assert end <= exchange.total_ns
        sharp += exchange.ttft_ns < talk.left_ns[2] - exchange.started_ns
    assert sharp > len(exchanges) / 2, "only a reader that was kept from reading dates a first text by what follows it"
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


def of_two_lengths(talk: Talk) -> Awaitable[None]:
    """The first offer streams until it is cut off, the others end at once."""

    async def script() -> None:
        await talk.send(STREAM_HEAD + framed(delta(content="a")))
        if b"main-000" in talk.request:
            await talk.reader.read()
        await talk.stream(delta("stop"), usage(1), DONE)
        await talk.send(END)

    return script()


async def cancel_at(samples: int, offers: int) -> Journal:
    """Offer so many, two at a time, and cancel when so many have samples."""
    journal, enough = Journal(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def watch(done: int, _total: int) -> None:
        if done == samples:
            loop.call_soon_threadsafe(enough.set)

    async with serving(of_two_lengths) as (url, _talks):
        plans = [plan(url, number) for number in range(offers)]
        batch = asyncio.create_task(offer_batch(plans, concurrency=2, recorder=journal, progress=watch))
        await asyncio.wait_for(enough.wait(), 10)
        batch.cancel()
        with pytest.raises(asyncio.CancelledError):
            await batch
    return journal


def test_what_has_ended_is_recorded_within_a_time_though_no_other_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evidence.capture.batch.LATER_NS", 30_000_000)
    trust(monkeypatch)
    journal = asyncio.run(cancel_at(1, 2))
    assert [exchange.transport for exchange in journal.samples] == ["complete", "closed-early"]


def test_what_has_ended_is_recorded_when_several_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evidence.capture.batch.LATER_NS", 3_000_000_000)
    monkeypatch.setattr("evidence.capture.batch.MANY", 3)
    trust(monkeypatch)
    for _ in range(8):
        journal = asyncio.run(cancel_at(3, 4))
        assert [exchange.transport for exchange in journal.samples] == ["complete"] * 3 + ["closed-early"]
        if [kind for kind, _offer in journal.lines] == ["offer"] * 4 + ["sample"] * 4:
            return
        # An answer was read before its close was there, so that it was looked into, and recorded, at once.
    pytest.fail("slots wait for the samples of what has ended")


def test_what_has_ended_is_recorded_when_the_batch_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evidence.capture.batch.LATER_NS", 60_000_000_000)
    monkeypatch.setattr("evidence.capture.batch.MANY", 4)
    trust(monkeypatch)
    journal = asyncio.run(cancel_at(4, 8))
    offers = [offer for kind, offer in journal.lines if kind == "offer"]
    assert sorted(exchange.offer for exchange in journal.samples) == sorted(offers)
    assert [exchange.transport for exchange in journal.samples].count("closed-early") >= 1


def test_an_end_that_cannot_be_recorded_leaves_no_other_without_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evidence.capture.batch.LATER_NS", 60_000_000_000)
    trust(monkeypatch)

    class Failing(Journal):
        def sample(self, exchange: Exchange) -> None:
            super().sample(exchange)
            if exchange.offer.endswith("002"):
                raise RuntimeError("no room")

    async def run() -> Journal:
        journal = Failing()
        async with serving(stream_of()) as (url, _talks):
            with pytest.raises(RuntimeError, match="no room"):
                await offer_batch([plan(url, number) for number in range(6)], concurrency=2, recorder=journal)
        return journal

    journal = asyncio.run(run())
    assert sorted(exchange.offer for exchange in journal.samples) == sorted(journal.offered)


def test_a_slot_goes_on_from_the_end_of_its_last_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    trust(monkeypatch)
    exchanges, talks = offer(stream_of(), 4)
    for before, exchange, talk in zip(exchanges, exchanges[1:], talks, strict=False):
        assert talk.left_ns[-1] <= exchange.intended_ns <= exchange.started_ns
        assert exchange.intended_ns == before.started_ns + before.total_ns


def test_what_was_seen_of_a_server_is_kept_for_the_next_batch(rested: list[socket.socket]) -> None:
    async def run() -> None:
        known: Known = {}
        async with serving(stream_of()) as (url, _talks):
            await offer_batch([plan(url, 0)], concurrency=1, recorder=Journal(), known=known)
            while not all(manners.closes for manners in known.values()):  # its close may have been seen too late
                await offer_batch([plan(url, 0)], concurrency=1, recorder=Journal(), known=known)
            assert rested == []
            await offer_batch([plan(url, 1)], concurrency=1, recorder=Journal(), known=known)
            assert len(rested) == 1

    asyncio.run(run())


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
