"""The floor: connect, stamp, send, and date each read; looks for two byte patterns and parses nothing."""

from __future__ import annotations

import json
import re
import resource
import select
import socket
import sys
from time import monotonic_ns

from evidence.capture.arrival import Receiver, WallBridge, request_stamps

BODY = b'{"model":"synthetic","messages":[{"role":"user","content":"go"}],"stream":true}'


def main() -> None:
    """Offer the requests and print what was measured."""
    port, path, concurrency, requests = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    head = f"POST {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {len(BODY)}\r\n\r\n".encode()
    receiver, poll, left, rows = Receiver(WallBridge()), select.epoll(), requests, []
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

    usage = resource.getrusage(resource.RUSAGE_SELF)
    while left or running:
        while left and len(running) < concurrency:
            left -= 1
            start()
        for descriptor, _event in poll.poll():
            state = running[descriptor]
            try:
                data, at, _kernel = receiver.read(state[0])
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
    after = resource.getrusage(resource.RUSAGE_SELF)
    spent = after.ru_utime + after.ru_stime - usage.ru_utime - usage.ru_stime
    print(json.dumps({"rows": rows, "processor_seconds": spent}))


if __name__ == "__main__":
    main()
