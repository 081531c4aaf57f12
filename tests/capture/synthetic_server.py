"""A synthetic engine as a process of its own, for tests."""

import contextlib
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


class Server:
    """Where it listens, and its process."""

    def __init__(self, process: "subprocess.Popen[bytes]", host: str, port: int) -> None:
        self.process, self.host, self.port = process, host, port
        self.url = f"http://{host}:{port}"


@contextlib.contextmanager
def serve(*arguments: str, module: str = "evidence.capture.synthetic") -> Iterator[Server]:
    process = subprocess.Popen(
        [sys.executable, "-B", "-m", module, *arguments], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline().decode()
        assert line.startswith("ready "), process.stderr and process.stderr.read()
        host, _, port = line.split()[1].rpartition(":")
        yield Server(process, host, int(port))
    finally:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
        process.communicate()


def chat(stream: bool = True, **more: Any) -> dict[str, Any]:
    request = {
        "messages": [{"role": "user", "content": "Name three rivers."}],
        "max_tokens": 64,
        "stream": stream,
        **more,
    }
    if stream:
        request["stream_options"] = {"include_usage": True}
    return request


def send(server: Server, path: str, body: Any = None, headers: dict[str, str] | None = None) -> socket.socket:
    """Write one request on a new connection and return the connection."""
    data = b"" if body is None else json.dumps(body).encode()
    fields = {"Host": "x", "Connection": "close", "Content-Length": str(len(data)), **(headers or {})}
    head = f"{'GET' if body is None else 'POST'} {path} HTTP/1.1\r\n" + "".join(
        f"{n}: {v}\r\n" for n, v in fields.items()
    )
    connection = socket.create_connection((server.host, server.port), timeout=20)
    connection.sendall(head.encode() + b"\r\n" + data)
    return connection


def receive(connection: socket.socket, until: bytes | None = None) -> bytes:
    """Everything up to the end of the connection, or up to and including `until`."""
    received = b""
    while until is None or until not in received:
        part = connection.recv(65536)
        if not part:
            break
        received += part
    return received


def read_response(connection: socket.socket) -> tuple[int, bytes]:
    """(status, body) of the one response that is due; ValueError or OSError when it is cut off."""
    received = receive(connection, b"\r\n\r\n")
    head, _, body = received.partition(b"\r\n\r\n")
    if not head:
        raise ValueError("no response")
    fields = head.decode().lower()
    if "transfer-encoding: chunked" in fields:
        whole, rest = b"", body
        while True:
            while b"\r\n" not in rest:
                rest += _more(connection)
            size, _, rest = rest.partition(b"\r\n")
            length = int(size, 16)
            while len(rest) < length + 2:
                rest += _more(connection)
            whole, rest = whole + rest[:length], rest[length + 2 :]
            if length == 0:
                return int(head.split()[1]), whole
    length = int(fields.split("content-length: ")[1].split("\r\n")[0])
    while len(body) < length:
        body += _more(connection)
    return int(head.split()[1]), body


def _more(connection: socket.socket) -> bytes:
    part = connection.recv(65536)
    if not part:
        raise ValueError("cut off")
    return part


def ask(server: Server, path: str, body: Any = None, headers: dict[str, str] | None = None) -> tuple[int, bytes]:
    with send(server, path, body, headers) as connection:
        return read_response(connection)


def events(body: bytes) -> list[Any]:
    """The data of each event of a well-formed stream with LF, [DONE] as a string."""
    found: list[Any] = []
    for block in body.decode().split("\n\n"):
        for line in block.splitlines():
            if line.startswith("data: "):
                found.append(line[6:] if line[6:] == "[DONE]" else json.loads(line[6:]))
    return found
