"""The exact gateway admits a request to a worker that sees the expected prompt, and keeps to HTTP beside that."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from synthetic_server import Server, receive, serve
from test_gateway import Recorder

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


class Worker(Recorder):
    """A worker whose tokenize route sees `tokens` in whatever it is asked."""

    def __init__(self, tokens: list[int]) -> None:
        seen = json.dumps({"tokens": tokens}).encode()
        told = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(seen), seen)

        def answer(connection: socket.socket, data: bytes) -> None:
            connection.sendall(told if data.startswith(b"POST /tokenize ") else OK)

        super().__init__(answer)

    @property
    def served(self) -> int:
        return sum(data.startswith(b"POST /v1/") for data in self.received)


@pytest.fixture(params=[[1, 2], [3]], ids=["admitted", "refused"])
def exact(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Server, Worker]]:
    worker = Worker(request.param)
    expected = tmp_path / "expected.json"
    expected.write_text("[1, 2]")
    with serve("--workers", worker.url, "--expected", str(expected), module="evidence.capture.exact_prefix") as started:
        yield started, worker


def post(*headers: bytes, version: bytes = b"1.1") -> bytes:
    body = b'{"model": "m", "messages": [{"role": "user", "content": "go"}]}'
    lines = [b"POST /v1/chat/completions HTTP/" + version, b"Host: a", b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


@pytest.mark.parametrize(
    "request_bytes", [post(b"Connection: close"), post(version=b"1.0")], ids=["connection-close", "version-1.0"]
)
def test_a_client_that_asks_for_the_end_gets_it(exact: tuple[Server, Worker], request_bytes: bytes) -> None:
    gateway, worker = exact
    with socket.create_connection(("127.0.0.1", int(gateway.url.rpartition(":")[2])), 5) as client:
        client.sendall(request_bytes)
        answer = b""
        while part := client.recv(65536):
            answer += part
    if worker.served:
        assert answer == OK
    else:
        assert answer.startswith(b"HTTP/1.1 409 ")


def test_a_client_that_stays_is_answered_again(exact: tuple[Server, Worker]) -> None:
    gateway, worker = exact
    with socket.create_connection(("127.0.0.1", int(gateway.url.rpartition(":")[2])), 5) as client:
        for _ in range(2):
            client.sendall(post())
            assert receive(client, b"}").startswith((b"HTTP/1.1 200 ", b"HTTP/1.1 409 "))
            client.settimeout(5)
    assert worker.served in (0, 2)
