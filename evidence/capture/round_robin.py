"""The built-in round-robin gateway, a process of its own.

`python -m evidence.capture.round_robin --listen 127.0.0.1:0 --workers URL URL` prints `ready HOST:PORT` and hands the
requests to the workers strictly in turn, by the arrival of their heads. Traffic (POST) and everything else have turns
of their own, so that a health check does not shift the traffic. It stands on the measured path: heads and bodies go
on as they come, in both directions, without waiting for an end.

* Each request has a fresh connection to its worker. A kept one may close at the moment it is used again, and then
  nobody can tell whether the worker saw the request: one offer might become two receipts.
* All header fields go on in their order and spelling, X-Request-Id among them. The bytes of a request's body are
  unchanged (its chunk boundaries may move); a response passes as raw bytes, framing included.
* A worker that cannot be reached is answered with 502 and its turn counts; one that ends in the middle of a response
  ends the client's connection there, so that the cut is seen.
"""

import argparse
import asyncio
import contextlib
import errno
import gc
import os
import signal
import socket
import sys
from collections import deque
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

import httptools

BAD_GATEWAY = b"HTTP/1.1 502 Bad Gateway\r\ncontent-type: text/plain\r\ncontent-length: 19\r\n\r\nworker unreachable\n"
MALFORMED = b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class Turns:
    """Whose turn it is, for traffic and for everything else."""

    def __init__(self, workers: Sequence[tuple[str, int]]) -> None:
        self.workers = workers
        self.taken = {True: 0, False: 0}

    def take(self, traffic: bool) -> tuple[str, int]:
        place = self.taken[traffic] % len(self.workers)
        self.taken[traffic] += 1
        return self.workers[place]


class Upstream(asyncio.Protocol):
    """One exchange with a worker: passes raw bytes on, and watches for the end of the message."""

    def __init__(self, client: "Client", method: bytes) -> None:
        self.client, self.method = client, method
        self.parser = httptools.HttpResponseParser(self)
        self.transport: asyncio.Transport | None = None
        self.connection: socket.socket | None = None
        self.waiting: list[bytes] = []
        self.started = self.complete = self.keep_alive = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.writelines(self.waiting)
        self.waiting.clear()

    def send(self, data: bytes) -> None:
        if self.transport:
            self.transport.write(data)
            return
        if self.connection is not None and not self.waiting:
            # The event loop takes some turns to make its transport; the worker need not wait for them.
            with contextlib.suppress(OSError):
                data = data[self.connection.send(data) :]
        if data:
            self.waiting.append(data)

    def data_received(self, data: bytes) -> None:
        if self.complete:
            return
        self.started = True
        self.client.transport.write(data)
        try:
            self.parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self.client.transport.close()
            self.abandon()
        if self.complete:
            self.abandon()
            self.client.end_exchange(self.keep_alive)

    def on_headers_complete(self) -> None:
        self.keep_alive = self.parser.should_keep_alive()
        if self.method == b"HEAD" and self.parser.get_status_code() >= 200:
            self.complete = True

    def on_message_complete(self) -> None:
        if self.parser.get_status_code() >= 200:
            self.complete = True

    def connection_lost(self, problem: Exception | None) -> None:
        if not self.complete:
            self.complete = True
            self.client.lose_worker(self.started, reset=problem is not None)

    def pause_writing(self) -> None:
        self.client.transport.pause_reading()

    def resume_writing(self) -> None:
        self.client.resume_reading()

    def abandon(self) -> None:
        self.complete = True
        if self.transport:
            self.transport.close()


class Client(asyncio.Protocol):
    """One client connection: its requests one after the other, each to the worker whose turn it was on arrival."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.parser = httptools.HttpRequestParser(self)
        self.transport: asyncio.Transport
        self.upstream: Upstream | None = None
        self.steps: deque[Callable[[], None]] = deque()
        self.target = b""
        self.fields: list[tuple[bytes, bytes]] = []
        self.chunked = self.sent_whole = self.last = False
        self.tasks: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def connection_lost(self, problem: Exception | None) -> None:
        self.steps.clear()
        if self.upstream:
            self.upstream.abandon()

    def data_received(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            if self.upstream is None:
                self.transport.write(MALFORMED)
            self.transport.close()

    def pause_writing(self) -> None:
        if self.upstream and self.upstream.transport:
            self.upstream.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.upstream and self.upstream.transport:
            with contextlib.suppress(RuntimeError):
                self.upstream.transport.resume_reading()

    def resume_reading(self) -> None:
        with contextlib.suppress(RuntimeError):
            self.transport.resume_reading()

    def on_message_begin(self) -> None:
        self.target, self.fields = b"", []

    def on_url(self, part: bytes) -> None:
        self.target += part

    def on_header(self, name: bytes, value: bytes) -> None:
        self.fields.append((name, value))

    def on_headers_complete(self) -> None:
        method = self.parser.get_method()
        worker = self.turns.take(method == b"POST")
        self.chunked = any(n.lower() == b"transfer-encoding" and b"chunked" in v.lower() for n, v in self.fields)
        lines = [b"%s %s HTTP/%s" % (method, self.target, self.parser.get_http_version().encode())]
        head = b"\r\n".join(lines + [b"%s: %s" % field for field in self.fields]) + b"\r\n\r\n"
        last = not self.parser.should_keep_alive()
        self.step(lambda: self.begin_exchange(worker, method, head, last))

    def on_body(self, data: bytes) -> None:
        framed = b"%x\r\n%s\r\n" % (len(data), data) if self.chunked else data
        self.step(lambda: self.send(framed))

    def on_message_complete(self) -> None:
        last = b"0\r\n\r\n" if self.chunked else b""
        self.step(lambda: self.send(last))
        self.step(self.end_request)

    def step(self, action: Callable[[], None]) -> None:
        """Do it now, or after the exchange that is still open: pipelined requests wait for their turn."""
        if self.sent_whole or self.steps:
            self.steps.append(action)
            if len(self.steps) > 64:
                self.transport.pause_reading()
        else:
            action()

    def begin_exchange(self, worker: tuple[str, int], method: bytes, head: bytes, last: bool = False) -> None:
        self.last = last
        upstream = self.upstream = Upstream(self, method)
        upstream.connection = connect_at_once(worker)
        upstream.send(head)
        task = asyncio.get_running_loop().create_task(self.connect(worker, upstream))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def connect(self, worker: tuple[str, int], upstream: Upstream) -> None:
        try:
            loop = asyncio.get_running_loop()
            if upstream.connection is not None:
                transport, _ = await loop.create_connection(lambda: upstream, sock=upstream.connection)
            else:
                transport, _ = await loop.create_connection(lambda: upstream, *worker)
            if upstream.complete:  # the client went away meanwhile
                transport.close()
        except OSError:
            if not upstream.complete:
                upstream.complete = True
                self.lose_worker(started=False, reset=False)

    def send(self, data: bytes) -> None:
        if data and self.upstream and not self.upstream.complete:
            self.upstream.send(data)

    def end_request(self) -> None:
        self.sent_whole = True
        if self.upstream is None or self.upstream.complete:
            self.next_exchange()

    def end_exchange(self, keep_alive: bool) -> None:
        if self.last or not keep_alive or not self.sent_whole:
            self.transport.close()  # also an answer before the request's end: what is left of it has no reader
        else:
            self.next_exchange()

    def next_exchange(self) -> None:
        self.upstream, self.sent_whole = None, False
        while self.steps and not self.sent_whole:
            self.steps.popleft()()
        if len(self.steps) < 32:
            self.resume_reading()

    def lose_worker(self, started: bool, reset: bool) -> None:
        """The worker ended before the message did: say so, or cut the client off at the same byte."""
        if started:
            (self.transport.abort if reset else self.transport.close)()
        elif not self.transport.is_closing():
            self.transport.write(BAD_GATEWAY)
            self.end_exchange(True)


def connect_at_once(worker: tuple[str, int]) -> socket.socket | None:
    """A connection to a numeric IPv4 address that stands without waiting, as on this machine; else None."""
    try:
        socket.inet_pton(socket.AF_INET, worker[0])
    except OSError:
        return None
    connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        code = connection.connect_ex(worker)
        if code == errno.EINPROGRESS:
            code = connection.connect_ex(worker)
        if code in (0, errno.EISCONN):
            return connection
    except OSError:
        pass
    connection.close()
    return None


async def serve(
    listen: tuple[str, int], workers: Sequence[tuple[str, int]], make: Callable[[Turns], Client] = Client
) -> None:
    """Listen until SIGTERM; `make` gives the protocol of a client connection."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    turns = Turns(workers)
    try:
        server = await loop.create_server(lambda: make(turns), *listen, backlog=1024)
    except OSError as problem:
        sys.exit(f"error: {listen[0]}:{listen[1]}: {problem.strerror}")
    host, port = server.sockets[0].getsockname()[:2]
    # Modules and tables live as long as the process. To walk them takes the collector 8 ms, and it does so in the middle
    # of somebody's request; what requests leave behind is little and collected in microseconds.
    gc.collect()
    gc.freeze()
    print(f"ready {host}:{port}", flush=True)
    await ended.wait()
    server.close()


def parse_address(text: str) -> tuple[str, int]:
    """`http://HOST:PORT` or `HOST:PORT`."""
    parts = urlsplit(text if "//" in text else "//" + text)
    if parts.scheme not in ("", "http") or not parts.hostname or parts.port is None or parts.path not in ("", "/"):
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT or http://HOST:PORT")
    return parts.hostname, parts.port


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m evidence.capture.round_robin", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--listen", type=parse_address, default=("127.0.0.1", 0), metavar="HOST:PORT")
    parser.add_argument("--workers", type=parse_address, nargs="+", required=True, metavar="URL")
    options = parser.parse_args(arguments)
    asyncio.run(serve(options.listen, options.workers))
    os._exit(0)


if __name__ == "__main__":
    main()
