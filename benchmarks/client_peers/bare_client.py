"""The floor: connect, stamp, send, and date each read; looks for two byte patterns and parses nothing."""

from __future__ import annotations

import json
import re
import select
import socket
import sys
from time import monotonic_ns

from benchmarks.client_peers.driving import processor_seconds, warm_ups
from evidence.capture.arrival import WallBridge, date_read, read_once, request_stamps

BODY = b'{"model":"synthetic","messages":[{"role":"user","content":"go"}],"stream":true}'


def main() -> None:
    """Offer the requests and print what was measured."""
    port, path, concurrency, requests = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    head = f"POST {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {len(BODY)}\r\n\r\n".encode()
    bridge, poll, left, rows = WallBridge(), select.epoll(), warm_ups(concurrency), []
    holder = socket.socket()
    request_stamps(holder)
    running: dict[int, list] = {}

    def start() -> None:
        connection = socket.create_connection(("127.0.0.1", port))
        connection.setblocking(False)
        request_stamps(connection)
        poll.register(connection, select.EPOLLIN)
        running[connection.fileno()] = state = [connection, 0, None, b"", 0]
        state[1] = monotonic_ns()
        connection.send(head + BODY)

    before = None
    while left or running or before is None:
        if not left and not running:
            before, left, rows = processor_seconds(), requests, []
        while left and len(running) < concurrency:
            left -= 1
            start()
        for descriptor, _event in poll.poll():
            state = running[descriptor]
            try:
                data, ancillary, now = read_once(state[0])
                at, _kernel = date_read(bridge, ancillary, now)
            except OSError:
                data, at = b"", monotonic_ns()
            if state[2] is None:
                state[3] += data
                if b'"content": "n' in state[3]:
                    state[2] = at
            if data:
                state[4] = at
            if not data or data.endswith(b"0\r\n\r\n"):
                number = re.search(rb'"content": "n(\d+) ', state[3])
                rows.append(
                    {
                        "number": int(number[1]) if number else None,
                        "ttft_ms": (state[2] - state[1]) / 1e6 if state[2] else None,
                        "total_ms": (state[4] - state[1]) / 1e6,
                        "good": bool(data),
                        "tokens": None,
                    }
                )
                poll.unregister(descriptor)
                state[0].close()
                del running[descriptor]
    print(json.dumps({"rows": rows, "processor_seconds": processor_seconds() - before}))


if __name__ == "__main__":
    main()
