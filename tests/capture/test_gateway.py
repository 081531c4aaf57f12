"""The gateway hands requests on strictly in turn, byte for byte and without waiting."""

import asyncio
import json
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from synthetic_server import Server, ask, chat, read_response, receive, send, serve

from evidence.capture.gateway import Gateway, fill, hash_file, start_gateway
from evidence.capture.processes import choose_port
from evidence.errors import EvidenceError

CHAT = "/v1/chat/completions"
NGINX = """
daemon off; pid {folder}/nginx.pid; error_log stderr warn; worker_processes 1;
events { worker_connections 256; }
http {
  access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  upstream workers { server {worker_1}; server {worker_2}; }
  server {
    listen 127.0.0.1:{listen_port};
    location / { proxy_pass http://workers; proxy_http_version 1.1; proxy_buffering off; proxy_next_upstream off; }
  }
}
"""


@dataclass(frozen=True)
class OwnGateway:
    name: str
    command: tuple[str, ...]
    url: str


@pytest.fixture(scope="module")
def workers() -> Iterator[tuple[Server, Server]]:
    with serve("--token-ms", "0") as one, serve("--token-ms", "0") as two:
        yield one, two


@pytest.fixture(scope="module")
def gateway(workers: tuple[Server, Server]) -> Iterator[Server]:
    urls = [worker.url for worker in workers]
    with serve("--workers", *urls, module="evidence.capture.round_robin") as started:
        yield started


class Recorder:
    """A worker that keeps every byte it gets and answers by a function of the connection."""

    def __init__(self, answer: Callable[[socket.socket, bytes], None]) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.received: list[bytes] = []
        self.answer = answer
        threading.Thread(target=self.run, daemon=True).start()

    def run(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection: socket.socket) -> None:
        with connection:
            data = receive(connection, b"\r\n\r\n")
            place = len(self.received)
            self.received.append(data)
            self.answer(connection, data)
            connection.settimeout(5)
            try:
                while part := connection.recv(65536):
                    self.received[place] += part
            except OSError:
                pass


def finished(worker: Server) -> int:
    return int(ask(worker, "/metrics")[1].split(b"finished_total ")[1].split()[0])


def test_turns_are_strict_and_equal(workers: tuple[Server, Server], gateway: Server) -> None:
    before = [finished(worker) for worker in workers]
    for number in range(10):
        assert ask(gateway, CHAT, chat(number % 2 == 0))[0] == 200
        ask(gateway, "/health")  # has a turn of its own
    assert [finished(worker) - start for worker, start in zip(workers, before, strict=True)] == [5, 5]


def test_sixteen_at_once_are_eight_each(workers: tuple[Server, Server], gateway: Server) -> None:
    before = [finished(worker) for worker in workers]
    threads = [threading.Thread(target=ask, args=(gateway, CHAT, chat())) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [finished(worker) - start for worker, start in zip(workers, before, strict=True)] == [8, 8]


def test_the_answer_is_the_workers_own_bytes(workers: tuple[Server, Server], gateway: Server) -> None:
    header = {"X-Request-Id": "r1-a-main-001"}
    assert ask(gateway, CHAT, chat(), header) == ask(workers[0], CHAT, chat(), header)


def test_heads_and_bodies_arrive_as_sent() -> None:
    def answer(connection: socket.socket, data: bytes) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nX-Odd:  spaced\r\nContent-Length: 2\r\n\r\nok")

    worker = Recorder(answer)
    with serve("--workers", worker.url, module="evidence.capture.round_robin") as gateway:
        with socket.create_connection((gateway.host, gateway.port), timeout=10) as connection:
            body = bytes(range(256)) * 1000
            head = b"POST /v1/chat/completions?x=%%20 HTTP/1.1\r\nHost: h\r\nX-REQUEST-id: r1\r\nContent-Length: %d\r\n\r\n"
            connection.sendall(head % len(body) + body)
            assert receive(connection, b"ok") == b"HTTP/1.1 200 OK\r\nX-Odd:  spaced\r\nContent-Length: 2\r\n\r\nok"
            connection.sendall(
                b"POST /v1/x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
            )
            receive(connection, b"ok")
        deadline = time.monotonic() + 10
        while len(worker.received) < 2 or not worker.received[1].endswith(b"0\r\n\r\n"):
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert worker.received[0] == head % len(body) + body
    assert worker.received[1].endswith(b"\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
    worker.listener.close()


def test_pipelined_requests_are_answered_in_order(gateway: Server) -> None:
    with socket.create_connection((gateway.host, gateway.port), timeout=10) as connection:
        connection.sendall(b"GET /version HTTP/1.1\r\n\r\nGET /health HTTP/1.1\r\n\r\nGET /version HTTP/1.1\r\n\r\n")
        received = b""
        while received.count(b"HTTP/1.1 200") < 3 or not received.endswith(b"}"):
            received += connection.recv(65536)
    assert [received.count(b'"version"'), received.count(b'"status"')] == [2, 1]
    assert received.index(b'"status"') < received.rindex(b'"version"')


def test_nothing_waits_for_an_end(gateway: Server) -> None:
    with send(gateway, CHAT, chat(), {"X-Synthetic-Fault": "hang-mid-stream"}) as connection:
        assert b"content" in receive(connection, b'"content":" ')


def test_the_connection_closes_when_asked_to(gateway: Server) -> None:
    with send(gateway, CHAT, chat()) as connection:  # sends Connection: close
        assert receive(connection).endswith(b"[DONE]\n\n\r\n0\r\n\r\n")


def test_an_interim_response_is_not_the_end() -> None:
    def answer(connection: socket.socket, data: bytes) -> None:
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        receive(connection, b"abc")
        connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    worker = Recorder(answer)
    with serve("--workers", worker.url, module="evidence.capture.round_robin") as gateway:
        with socket.create_connection((gateway.host, gateway.port), timeout=10) as connection:
            connection.sendall(b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
            assert receive(connection, b"Continue\r\n\r\n").startswith(b"HTTP/1.1 100")
            connection.sendall(b"abc")
            assert receive(connection, b"\r\n\r\n").startswith(b"HTTP/1.1 204")
    worker.listener.close()


def test_a_head_response_has_no_body() -> None:
    def answer(connection: socket.socket, data: bytes) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n")

    worker = Recorder(answer)
    with serve("--workers", worker.url, module="evidence.capture.round_robin") as gateway:
        with socket.create_connection((gateway.host, gateway.port), timeout=10) as connection:
            for _ in range(2):  # the connection goes on
                connection.sendall(b"HEAD / HTTP/1.1\r\nHost: h\r\n\r\n")
                assert receive(connection, b"\r\n\r\n").endswith(b"500\r\n\r\n")
    worker.listener.close()


def test_a_worker_that_is_gone_is_502_and_keeps_its_turn(workers: tuple[Server, Server]) -> None:
    gone = f"http://127.0.0.1:{choose_port()}"
    with serve("--workers", gone, workers[0].url, module="evidence.capture.round_robin") as gateway:
        assert [ask(gateway, CHAT, chat(False))[0] for _ in range(4)] == [502, 200, 502, 200]


@pytest.mark.parametrize("fault", ["truncate", "reset", "hang-before-head"])
def test_a_cut_answer_is_cut_for_the_client_too(workers: tuple[Server, Server], gateway: Server, fault: str) -> None:
    if fault == "hang-before-head":
        with serve() as worker, serve("--workers", worker.url, module="evidence.capture.round_robin") as own:
            with send(own, CHAT, chat(), {"X-Synthetic-Fault": fault}) as connection:
                while b"running 0" in ask(worker, "/metrics")[1] and not connection.recv(
                    0, socket.MSG_PEEK | socket.MSG_DONTWAIT
                ):
                    break
                worker.process.kill()
                assert read_response(connection)[0] == 502
    else:
        with pytest.raises((ValueError, ConnectionResetError)):
            ask(gateway, CHAT, chat(), {"X-Synthetic-Fault": fault})


def test_a_client_that_leaves_is_told_to_the_worker() -> None:
    left = threading.Event()

    def answer(connection: socket.socket, data: bytes) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
        connection.settimeout(10)
        while connection.recv(65536):
            pass
        left.set()

    worker = Recorder(answer)
    with serve("--workers", worker.url, module="evidence.capture.round_robin") as gateway:
        with send(gateway, CHAT, chat()) as connection:
            receive(connection, b"a\r\n")
        assert left.wait(10)
    worker.listener.close()


def test_a_request_that_is_no_http_is_400(gateway: Server) -> None:
    with socket.create_connection((gateway.host, gateway.port), timeout=10) as connection:
        connection.sendall(b"hello\r\n\r\n")
        assert receive(connection).startswith(b"HTTP/1.1 400")


def test_a_large_answer_passes_a_slow_reader() -> None:
    size = 30_000_000

    def answer(connection: socket.socket, data: bytes) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + b"x" * size)

    worker = Recorder(answer)
    with serve("--workers", worker.url, module="evidence.capture.round_robin") as gateway:
        with send(gateway, CHAT, chat()) as connection:
            time.sleep(0.3)  # the reader is slow: that is the case under test
            status = Path(f"/proc/{gateway.process.pid}/status").read_text()
            assert int(status.split("VmRSS:")[1].split()[0]) < 60_000
            assert len(read_response(connection)[1]) == size
    worker.listener.close()


def in_gateway(spec: OwnGateway | None, urls: list[str], log: Path, config: Path | None = None) -> list[int]:
    """Starts it, sends four requests through it, stops it; the statuses."""

    async def go() -> list[int]:
        gateway = await start_gateway(spec, urls, log, config=config)
        try:
            host, _, port = gateway.url.removeprefix("http://").rpartition(":")
            server = Server(None, host, int(port))  # type: ignore[arg-type]
            statuses = [(await asyncio.to_thread(ask, server, CHAT, chat()))[0] for _ in range(4)]
            assert_identity(gateway)
            return statuses
        finally:
            end = await gateway.stop()
            assert end is None or end.expected

    return asyncio.run(go())


def assert_identity(gateway: Gateway) -> None:
    identity = gateway.identity()
    assert set(identity) == {"kind", "name", "sha256", "reason"}
    assert (identity["sha256"] is None) == (identity["kind"] == "url") == (identity["reason"] is not None)
    json.dumps(identity)


def test_the_built_in_gateway_is_the_default(workers: tuple[Server, Server], tmp_path: Path) -> None:
    assert in_gateway(None, [worker.url for worker in workers], tmp_path / "log") == [200] * 4


def test_a_gateway_that_runs_already(gateway: Server, tmp_path: Path) -> None:
    assert in_gateway(OwnGateway("given", (), gateway.url), [], tmp_path / "log") == [200] * 4


def test_the_campaigns_own_command(workers: tuple[Server, Server], tmp_path: Path) -> None:
    command = ("python3", "-m", "evidence.capture.round_robin", "--listen", "127.0.0.1:{listen_port}", "--workers",
               "http://{worker_1}", "{worker_2}")  # fmt: skip
    command = ("{python}", *command[1:])
    spec = OwnGateway("own", command, "http://127.0.0.1:{listen_port}/")
    assert in_gateway(spec, [worker.url for worker in workers], tmp_path / "log") == [200] * 4


@pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")
def test_nginx(workers: tuple[Server, Server], tmp_path: Path) -> None:
    (tmp_path / "nginx.conf").write_text(NGINX)
    spec = OwnGateway("nginx", ("nginx", "-e", "stderr", "-c", "{config}"), "http://127.0.0.1:{listen_port}")
    before = [finished(worker) for worker in workers]
    urls = [worker.url for worker in workers]
    assert in_gateway(spec, urls, tmp_path / "run" / "gateway.log", tmp_path / "nginx.conf") == [200] * 4
    assert [finished(worker) - start for worker, start in zip(workers, before, strict=True)] == [2, 2]


def test_gateways_that_do_not_start_are_one_error(tmp_path: Path) -> None:
    def fail(*command: str) -> str:
        spec = OwnGateway("own", command, "http://127.0.0.1:{listen_port}")
        with pytest.raises(EvidenceError) as caught:
            in_gateway(spec, ["http://127.0.0.1:1"], tmp_path / "log")
        return caught.value.message

    assert "program no-such-gateway not found" in fail("no-such-gateway")
    assert "ended with exit code 3: sorry" in fail("sh", "-c", "echo sorry; exit 3")
    assert "unknown placeholder {worker_9}" in fail("sh", "{worker_9}")


def test_filling_leaves_the_braces_of_a_file(tmp_path: Path) -> None:
    assert fill("a { b {x}; }", {"x": "1"}, sparing=True) == "a { b 1; }"
    (tmp_path / "f").write_bytes(b"abc")
    assert hash_file(tmp_path / "f").startswith("ba7816bf")
