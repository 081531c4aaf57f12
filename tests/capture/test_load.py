"""The client against real servers: what it times, what it keeps, and how each way of ending is recorded."""

from __future__ import annotations

import asyncio
import hashlib
import json
import socket
import time

import pytest
from scripted_server import (
    DONE,
    END,
    PLAIN,
    STREAM,
    STREAM_HEAD,
    Journal,
    Script,
    Talk,
    delta,
    event,
    framed,
    plan,
    serving,
    usage,
)

from evidence.capture import arrival
from evidence.capture.load import Exchange, fetch, offer_batch
from evidence.errors import EvidenceError


def ask(script: Script, *, body: bytes = STREAM, timeout: float = 10.0) -> tuple[Exchange, Talk]:
    """Offer one request to a script; its sample must be the only one, after its offer."""

    async def run() -> tuple[Exchange, Talk]:
        journal = Journal()
        async with serving(script) as (url, talks):
            (exchange,) = await offer_batch([plan(url, body=body, timeout=timeout)], concurrency=1, recorder=journal)
        assert journal.lines == [("offer", exchange.offer), ("sample", exchange.offer)]
        return exchange, talks[0]

    return asyncio.run(run())


def streamed(*events: bytes) -> Script:
    async def script(talk: Talk) -> None:
        await talk.send(STREAM_HEAD)
        await talk.stream(*events)
        await talk.send(END)

    return script


def raw(data: bytes) -> Script:
    async def script(talk: Talk) -> None:
        await talk.send(data)

    return script


def arrived_with(exchange: Exchange, measured_ns: int | None, talk: Talk, write: int) -> bool:
    """True when the instant lies between the leaving of that write and of the next one (one clock serves both)."""
    if measured_ns is None:
        return False
    at, left = exchange.started_ns + measured_ns, talk.left_ns
    return left[write] - arrival.TOLERANCE_NS <= at and (write + 1 == len(left) or at <= left[write + 1])


def test_role_chunk_is_no_first_token() -> None:
    # vllm#3759, vllm#15106
    async def script(talk: Talk) -> None:
        await talk.send(STREAM_HEAD)
        await talk.stream(delta(role="assistant", content=""))
        await talk.stream(delta(content="a"), after=0.03)
        await talk.stream(delta(content="b"), after=0.01)
        await talk.stream(delta("stop"), usage(2), DONE, after=0.01)
        await talk.send(END)

    exchange, talk = ask(script)
    assert arrived_with(exchange, exchange.ttft_ns, talk, 2)
    assert len(exchange.event_ns) == 2
    assert exchange.event_ns[0] == exchange.ttft_ns
    assert exchange.event_ns[1] - exchange.event_ns[0] > 8_000_000
    assert exchange.whole
    assert (exchange.finish_reason, exchange.prompt_tokens, exchange.completion_tokens) == ("stop", 8, 2)


def test_only_text_starts_the_clock_and_reasoning_has_its_own() -> None:
    # aisix#869
    async def script(talk: Talk) -> None:
        await talk.send(STREAM_HEAD)
        await talk.stream(delta(content=""), delta(content=None))
        await talk.stream(delta(reasoning_content="hm"), after=0.02)
        await talk.stream(delta(content=" "), after=0.02)
        await talk.stream(delta("stop"), DONE, after=0.01)
        await talk.send(END)

    exchange, talk = ask(script)
    assert arrived_with(exchange, exchange.reasoning_ns, talk, 2)
    assert arrived_with(exchange, exchange.ttft_ns, talk, 3)


def test_reasoning_alone_has_no_ttft_and_is_kept() -> None:
    # inference-perf#559
    exchange, _ = ask(streamed(delta(reasoning="hm"), delta("length"), usage(5), DONE))
    assert exchange.ttft_ns is None
    assert exchange.reasoning_ns is not None
    assert (exchange.transport, exchange.finish_reason, exchange.completion_tokens) == ("complete", "length", 5)
    assert not exchange.whole


def test_usage_chunk_does_not_move_the_first_token() -> None:
    # genai-bench#44
    async def script(talk: Talk) -> None:
        await talk.send(STREAM_HEAD)
        await talk.stream(delta(content="a"))
        await talk.stream(delta("stop"), usage(1), DONE, after=0.03)
        await talk.send(END)

    exchange, talk = ask(script)
    assert arrived_with(exchange, exchange.ttft_ns, talk, 1)
    assert len(exchange.event_ns) == 1


def test_character_cut_over_reads_is_whole_again() -> None:
    # vllm#38717
    text = event({"choices": [{"delta": {"content": "é€😀"}}]}).replace(b"\\u00e9", "é€😀".encode())

    async def script(talk: Talk) -> None:
        await talk.send(STREAM_HEAD)
        for n in range(len(text)):
            await talk.stream(text[n : n + 1], after=0.0005 if n % 8 == 0 else 0)
        await talk.stream(delta("stop"), DONE, after=0.01)
        await talk.send(END)

    exchange, talk = ask(script)
    assert arrived_with(exchange, exchange.ttft_ns, talk, len(text))
    assert "é€😀".encode() in exchange.response_body


def test_events_of_one_read_are_separate_with_equal_times() -> None:
    # aiperf#368
    exchange, _ = ask(streamed(delta(content="a") + delta(content="b") + delta(content="c"), delta("stop"), DONE))
    assert len(exchange.event_ns) == 3
    assert len(set(exchange.event_ns)) == 1


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("space", [b"data: ", b"data:"])
def test_every_line_end_and_spacing_is_read(end: bytes, space: bytes) -> None:
    # inference-perf#781
    events = delta(content="a") + event(b'{"choices":\ndata: [{"delta":{"content":"b"}}]}') + delta("stop") + DONE
    exchange, _ = ask(streamed(events.replace(b"data: ", space).replace(b"\n", end)))
    assert len(exchange.event_ns) == 2
    assert exchange.whole


def test_stream_without_an_event_is_no_success() -> None:
    # inference-perf#781
    exchange, _ = ask(streamed(b": nothing\n\n"))
    assert exchange.transport == "complete"
    assert exchange.ttft_ns is None
    assert not exchange.whole


def test_clean_end_without_the_last_events_is_no_success() -> None:
    # vllm#54628
    exchange, _ = ask(streamed(delta(content="a"), delta(content="b")))
    assert (exchange.transport, exchange.finish_reason) == ("complete", None)
    assert not exchange.whole


def test_clean_close_before_the_last_chunk_is_closed_early() -> None:
    # vllm#54628
    body = delta(content="a") + delta("stop") + DONE
    exchange, _ = ask(raw(STREAM_HEAD + framed(body)))
    assert exchange.transport == "closed-early"
    assert exchange.response_body == body
    assert not exchange.whole


def test_error_event_is_no_success() -> None:
    # tokenomics#16
    exchange, _ = ask(streamed(delta(content="a") * 3, b"event: error\n" + event({"message": "oom"})))
    assert len(exchange.event_ns) == 3
    assert not exchange.whole


def test_tokens_are_the_engines_count_not_chunks() -> None:
    # vllm#50677
    exchange, _ = ask(streamed(delta(content="a") * 10, delta("stop"), usage(40), DONE))
    assert (exchange.completion_tokens, len(exchange.event_ns)) == (40, 10)


@pytest.mark.parametrize("reported", [-1, True, 1.5, "3", None, 1 << 53, 10**400])
def test_token_count_that_is_none_is_unknown(reported: object) -> None:
    exchange, _ = ask(streamed(delta(content="a"), delta("stop"), usage(reported), DONE))
    assert exchange.completion_tokens is None


def test_failed_requests_stay_in_the_batch_without_a_latency() -> None:
    # aiperf#688, InferenceX#357, vllm#34929
    async def script(talk: Talk) -> None:
        if b"main-003" in talk.request or b"main-011" in talk.request:
            await talk.send(b"HTTP/1.1 503 Busy\r\nRetry-After: 5\r\nContent-Length: 2\r\n\r\n{}")
        else:
            await streamed(delta(content="a"), delta("stop"), DONE)(talk)

    async def run() -> list[Exchange]:
        async with serving(script) as (url, _):
            return await offer_batch([plan(url, n) for n in range(24)], concurrency=8, recorder=Journal())

    exchanges = asyncio.run(run())
    assert [e.offer for e in exchanges] == [f"r1-a-main-{n:03}" for n in range(24)]
    failed = [e for e in exchanges if e.status == 503]
    assert len(failed) == 2
    assert all(e.ttft_ns is None and e.retry_after == "5" and not e.whole for e in failed)
    assert all(e.ttft_ns is not None and e.ttft_ns > 0 for e in exchanges if e.status == 200)


def test_late_answers_are_recorded_as_timeouts_with_what_came() -> None:
    # llm-load-test#90
    async def script(talk: Talk) -> None:
        await talk.send(STREAM_HEAD)
        await talk.stream(delta(content="a"))
        await talk.reader.read()

    async def run() -> list[Exchange]:
        async with serving(script) as (url, _):
            plans = [plan(url, n, timeout=0.1) for n in range(24)]
            return await offer_batch(plans, concurrency=24, recorder=Journal())

    exchanges = asyncio.run(run())
    assert [e.transport for e in exchanges] == ["timeout"] * 24
    assert all(e.response_body == delta(content="a") and e.ttft_ns and e.total_ns >= 100_000_000 for e in exchanges)


def test_wall_clock_step_falsifies_no_duration(monkeypatch: pytest.MonkeyPatch) -> None:
    # sglang#6177
    moved = 0
    monkeypatch.setattr(arrival, "time_ns", lambda: time.time_ns() + moved)

    async def script(talk: Talk) -> None:
        nonlocal moved
        await talk.send(STREAM_HEAD)
        await talk.stream(delta(content="a"), after=0.01)
        await asyncio.sleep(0.02)
        moved = -3_600_000_000_000
        await talk.stream(delta(content="b"), after=0.01)
        await talk.stream(delta("stop"), DONE, after=0.01)
        await talk.send(END)

    exchange, talk = ask(script)
    assert arrived_with(exchange, exchange.ttft_ns, talk, 1)
    assert arrived_with(exchange, exchange.event_ns[1], talk, 2)
    assert arrived_with(exchange, exchange.total_ns, talk, 4)
    assert exchange.wall_clock_stepped
    assert exchange.clock == "monotonic"


def test_kernel_stamps_are_used_where_the_kernel_gives_them() -> None:
    probe = socket.socket()
    supported = arrival.request_stamps(probe)
    probe.close()

    async def run() -> list[Exchange]:
        async with serving(streamed(delta(content="a"), delta("stop"), DONE)) as (url, _):
            return await offer_batch([plan(url, n) for n in range(8)], concurrency=2, recorder=Journal())

    clocks = {e.clock for e in asyncio.run(run())}
    assert clocks == ({"kernel"} if supported else {"monotonic"})


def test_busy_client_does_not_age_what_the_kernel_stamped() -> None:
    # llm-d-benchmark#261: the loop stands still for 80 ms while the answer lies in the kernel.
    async def script(talk: Talk) -> None:
        await talk.send(STREAM_HEAD + framed(delta(content="a") + delta("stop") + DONE) + END)
        time.sleep(0.08)  # noqa: ASYNC251
        await talk.reader.read()

    exchange, _ = ask(script)
    if exchange.clock == "kernel":
        assert exchange.total_ns < 60_000_000
    else:
        assert exchange.total_ns >= 80_000_000


def test_without_kernel_stamps_the_clock_is_monotonic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrival, "ANCILLARY_BYTES", 0)

    async def script(talk: Talk) -> None:
        await talk.send(STREAM_HEAD)
        await talk.stream(delta(content="a"))
        await talk.stream(delta("stop"), DONE, after=0.01)
        await talk.send(END)

    exchange, talk = ask(script)
    assert exchange.clock == "monotonic"
    assert arrived_with(exchange, exchange.ttft_ns, talk, 1)


def test_offer_is_recorded_before_its_first_byte_leaves() -> None:
    async def run() -> None:
        journal = Journal()
        async with serving(streamed(delta(content="a"), DONE)) as (url, talks):
            (exchange,) = await offer_batch([plan(url)], concurrency=1, recorder=journal)
            assert journal.offered[exchange.offer] <= exchange.started_ns <= talks[0].asked_ns

    asyncio.run(run())


def test_request_is_what_the_plan_says() -> None:
    exchange, talk = ask(streamed(DONE))
    head, _, body = talk.request.partition(b"\r\n\r\n")
    assert body == STREAM
    assert (exchange.request_sha256, exchange.request_bytes) == (hashlib.sha256(STREAM).hexdigest(), len(STREAM))
    assert head.startswith(b"POST /v1/chat/completions HTTP/1.1\r\n")
    for line in (b"X-Request-Id: r1-a-main-000", b"Accept-Encoding: identity", b"Accept: text/event-stream"):
        assert line in head.split(b"\r\n")


def test_compressed_body_is_left_as_it_came() -> None:
    packed = b"\x1f\x8b\x08\x00 not unpacked"
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)
    exchange, _ = ask(raw(head + packed), body=PLAIN)
    assert (exchange.response_body, exchange.transport) == (packed, "complete")


@pytest.mark.parametrize(
    ("answer", "finish", "tokens"),
    [
        (
            {"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}], "usage": {"completion_tokens": 2}},
            "stop",
            2,
        ),
        ({"choices": [{"text": "a", "finish_reason": "length"}], "usage": {"completion_tokens": 3}}, "length", 3),
        ({"data": [{"embedding": [0.1]}], "usage": {"prompt_tokens": 4}}, None, None),
    ],
)
def test_answer_in_one_piece_has_no_ttft(answer: object, finish: str | None, tokens: int | None) -> None:
    body = json.dumps(answer).encode()
    exchange, _ = ask(raw(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)), body=PLAIN)
    assert (exchange.ttft_ns, exchange.event_ns) == (None, ())
    assert (exchange.finish_reason, exchange.completion_tokens, exchange.whole) == (finish, tokens, True)


def test_completion_stream_is_timed_by_its_text() -> None:
    chunks = [event({"choices": [{"text": text, "finish_reason": None}]}) for text in ("", "a", "b")]
    last = event({"choices": [{"text": "", "finish_reason": "stop"}]})
    exchange, _ = ask(streamed(*chunks, last, DONE))
    assert len(exchange.event_ns) == 2
    assert exchange.whole


ENDINGS = {
    "nothing": (b"", "failed", None, b""),
    "garbage": (b"\x16\x03\x01garbage\r\n\r\n", "failed", None, b""),
    "half a head": (b"HTTP/1.1 200 OK\r\nConte", "failed", None, b""),
    "endless head": (b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 20_000, "failed", None, b""),
    "short length": (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", "closed-early", 200, b"abc"),
    "no last chunk": (STREAM_HEAD + framed(b"abc"), "closed-early", 200, b"abc"),
    "half a chunk": (STREAM_HEAD + b"9\r\nabc", "closed-early", 200, b"abc"),
    "broken chunk": (STREAM_HEAD + framed(b"abc") + b"zz\r\n", "closed-early", 200, b"abc"),
    "two lengths": (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc", "failed", None, b""),
    "until close": (b"HTTP/1.1 200 OK\r\n\r\nabc", "complete", 200, b"abc"),
    "no content": (b"HTTP/1.1 204 No Content\r\n\r\n", "complete", 204, b""),
    "interim": (b"HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", "complete", 200, b"abc"),
}


@pytest.mark.parametrize("name", ENDINGS)
def test_completeness_is_decided_by_framing(name: str) -> None:
    sent, transport, status, body = ENDINGS[name]
    exchange, _ = ask(raw(sent))
    assert (exchange.transport, exchange.status, exchange.response_body) == (transport, status, body)
    assert (exchange.error is None) == (transport == "complete")
    assert exchange.total_ns > 0


def test_reset_keeps_what_came() -> None:
    async def script(talk: Talk) -> None:
        await talk.send(STREAM_HEAD)
        await talk.stream(delta(content="a"))
        await asyncio.sleep(0.01)
        talk.reset()

    exchange, _ = ask(script)
    assert exchange.transport == "closed-early"
    assert exchange.response_body == delta(content="a")
    assert exchange.ttft_ns is not None


def test_refused_connection_is_a_failed_sample() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1/chat/completions"
        journal = Journal()
        (exchange,) = asyncio.run(offer_batch([plan(url)], concurrency=1, recorder=journal))
    assert (exchange.transport, exchange.status, exchange.connect_ns) == ("failed", None, None)
    assert exchange.error == "connecting: econnrefused: connection refused"
    assert len(journal.lines) == 2


def test_early_answer_to_a_long_request_is_kept() -> None:
    async def run() -> Exchange:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\n{}")
            await writer.drain()
            await reader.read()
            writer.close()

        server = await asyncio.start_server(handle, "127.0.0.1", 0, limit=1024)
        async with server:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1/chat/completions"
            (exchange,) = await offer_batch([plan(url, body=b"x" * 30_000_000)], concurrency=1, recorder=Journal())
        return exchange

    exchange = asyncio.run(run())
    assert (exchange.transport, exchange.status, exchange.response_body) == ("complete", 413, b"{}")


def test_long_bodies_pass_both_ways() -> None:
    long = b"y" * 5_000_000

    async def script(talk: Talk) -> None:
        sent = talk.request.partition(b"\r\n\r\n")[2]
        await talk.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(long) + long)
        assert len(sent) == 3_000_000

    exchange, _ = ask(script, body=b"x" * 3_000_000)
    assert exchange.response_body == long


def test_cancelled_batch_leaves_a_sample_of_each_open_offer() -> None:
    journal = Journal()

    async def run() -> None:
        got = asyncio.Semaphore(0)

        async def script(talk: Talk) -> None:
            await talk.send(STREAM_HEAD + framed(delta(content="a")))
            got.release()
            await talk.reader.read()

        async with serving(script) as (url, _):
            batch = asyncio.ensure_future(
                offer_batch([plan(url, n) for n in range(24)], concurrency=4, recorder=journal)
            )
            for _ in range(4):
                await got.acquire()
            batch.cancel()
            with pytest.raises(asyncio.CancelledError):
                await batch

    asyncio.run(run())
    offers = sorted(name for kind, name in journal.lines if kind == "offer")
    assert len(offers) == 4
    assert sorted(e.offer for e in journal.samples) == offers
    assert all(e.transport == "closed-early" and e.error == "cancelled before its end" for e in journal.samples)
    assert all(e.response_body == delta(content="a") and e.ttft_ns is not None for e in journal.samples)


def test_failing_recorder_ends_the_batch_and_the_open_offers_are_sampled() -> None:
    class Full(Journal):
        def offer(self, plan: object, intended_ns: int) -> None:
            if len(self.lines) == 4:
                raise OSError(28, "no space left on device")
            super().offer(plan, intended_ns)  # type: ignore[arg-type]

    journal = Full()

    async def run() -> None:
        async def script(talk: Talk) -> None:
            await talk.reader.read()

        async with serving(script) as (url, _):
            await offer_batch([plan(url, n) for n in range(24)], concurrency=8, recorder=journal)

    with pytest.raises(OSError, match="no space"):
        asyncio.run(run())
    assert sorted(e.offer for e in journal.samples) == sorted(journal.offered)
    assert len(journal.offered) == 4


def test_concurrency_is_bounded_and_slots_start_after_their_last_end() -> None:
    async def run() -> tuple[list[Exchange], list[tuple[int, int]]]:
        seen: list[tuple[int, int]] = []

        async def script(talk: Talk) -> None:
            await streamed(delta(content="a"), delta("stop"), DONE)(talk)

        async with serving(script) as (url, _):
            found = await offer_batch(
                [plan(url, n) for n in range(40)],
                concurrency=8,
                recorder=Journal(),
                progress=lambda done, total: seen.append((done, total)),
            )
        return found, seen

    exchanges, seen = asyncio.run(run())
    edges = sorted([(e.started_ns, 1) for e in exchanges] + [(e.started_ns + e.total_ns, -1) for e in exchanges])
    still_open = most = 0
    for _at, change in edges:
        still_open += change
        most = max(most, still_open)
    assert most <= 8
    assert all(e.send_lag_ns >= 0 for e in exchanges)
    assert seen == [(n, 40) for n in range(1, 41)]


def test_each_request_has_its_own_connection_unless_asked_otherwise() -> None:
    async def run(reuse: bool) -> tuple[list[Exchange], int]:
        async def script(talk: Talk) -> None:
            while True:
                await talk.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
                await talk.read()

        async with serving(script) as (url, talks):
            found = await offer_batch(
                [plan(url, n, body=PLAIN) for n in range(6)], concurrency=1, recorder=Journal(), reuse=reuse
            )
            return found, len(talks)

    exchanges, connections = asyncio.run(run(False))
    assert (connections, any(e.reused for e in exchanges)) == (6, False)
    exchanges, connections = asyncio.run(run(True))
    assert connections == 1
    assert [e.reused for e in exchanges] == [False] + [True] * 5


def test_connection_that_the_server_closed_meanwhile_is_not_reused() -> None:
    async def run() -> list[Exchange]:
        async with serving(raw(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")) as (url, _):
            found = []
            for n in range(3):
                found += await offer_batch([plan(url, n)], concurrency=1, recorder=Journal(), reuse=True)
            return found

    assert [e.transport for e in asyncio.run(run())] == ["complete"] * 3


def test_fetch_is_no_offer() -> None:
    async def run() -> tuple[Exchange, bytes]:
        async with serving(raw(b"HTTP/1.1 200 OK\r\nX-A: b\r\nContent-Length: 2\r\n\r\n{}")) as (url, talks):
            return await fetch(url), talks[0].request

    exchange, request = asyncio.run(run())
    assert (exchange.status, exchange.response_body, exchange.offer) == (200, b"{}", "")
    assert ("x-a", "b") in exchange.headers
    assert request.startswith(b"GET ")
    assert b"X-Request-Id" not in request
    assert b"Content-Length" not in request


@pytest.mark.parametrize(
    "url", ["https://127.0.0.1/", "ftp://a/", "http://", "http://a:x/", "http://u:p@a/", "http://a/ b"]
)
def test_url_that_cannot_be_measured_is_refused_before_any_offer(url: str) -> None:
    journal = Journal()
    with pytest.raises(EvidenceError, match="url"):
        asyncio.run(offer_batch([plan(url)], concurrency=1, recorder=journal))
    assert journal.lines == []


@pytest.mark.parametrize("headers", [{"Host": "a"}, {"A": "b\r\nC: d"}, {"a b": "c"}, {"Content-Length": "1"}])
def test_header_that_would_break_the_request_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(EvidenceError, match="header"):
        asyncio.run(offer_batch([plan("http://127.0.0.1:1/", headers=headers)], concurrency=1, recorder=Journal()))


def test_host_name_is_resolved() -> None:
    async def run() -> Exchange:
        async with serving(streamed(delta(content="a"), delta("stop"), DONE)) as (url, _):
            return await fetch(url.replace("127.0.0.1", "localhost"), "POST", STREAM)

    exchange = asyncio.run(run())
    assert exchange.whole
    assert exchange.ttft_ns is not None
