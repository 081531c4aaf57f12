"""The built-in gateway of surface `exact`: round robin over the workers that see exactly the expected prompt.

`python -m evidence.capture.exact_prefix --adapter NAME --expected FILE --workers URL ...` is `round_robin` with one
rule before it. A request is held until it is whole; the worker whose turn it is says by its own /tokenize what it
makes of it. Are these the token ids in FILE (a JSON list), it gets the request; are they not, the next worker is
asked; does no worker see them, the answer is 409 and no worker gets anything.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections.abc import Sequence
from pathlib import Path

from evidence.capture.round_robin import Client, Turns, parse_address, serve
from evidence.capture.tokens import ask_tokens

REFUSAL = b'{"error": {"message": "no worker sees the expected prompt", "type": "not_admitted", "code": 409}}'
NOT_ADMITTED = b"HTTP/1.1 409 Conflict\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (
    len(REFUSAL),
    REFUSAL,
)


class ExactClient(Client):
    """A client connection whose POST requests wait for their admission."""

    def __init__(self, turns: Turns, adapter: str, expected: Sequence[int]) -> None:
        super().__init__(turns)
        self.adapter, self.expected = adapter, tuple(expected)
        self.method, self.head, self.body = b"", b"", b""
        self.closing = False

    def on_headers_complete(self) -> None:
        self.method = self.parser.get_method()
        if self.method != b"POST":
            super().on_headers_complete()
            return
        kept = [
            (name, value)
            for name, value in self.fields
            if name.lower() not in (b"transfer-encoding", b"content-length")
        ]
        self.closing = not self.parser.should_keep_alive()
        lines = [b"POST %s HTTP/%s" % (self.target, self.parser.get_http_version().encode())]
        self.head, self.body = b"\r\n".join(lines + [b"%s: %s" % field for field in kept]), b""

    def on_body(self, data: bytes) -> None:
        if self.method == b"POST":
            self.body += data
        else:
            super().on_body(data)

    def on_message_complete(self) -> None:
        if self.method != b"POST":
            super().on_message_complete()
            return
        body, closing = self.body, self.closing
        head = self.head + b"\r\ncontent-length: %d\r\n\r\n" % len(body)
        self.step(lambda: self.hold(head, body, closing))

    def hold(self, head: bytes, body: bytes, closing: bool) -> None:
        """Nothing else of this connection is looked at until the admission is decided."""
        self.sent_whole = True
        task = asyncio.get_running_loop().create_task(self.admit(head, body, closing))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def admit(self, head: bytes, body: bytes, closing: bool) -> None:
        """Ask the workers in turn; `closing` says that the client wants no more of this connection."""
        for _ in self.turns.workers:
            worker = self.turns.take(traffic=True)
            tokens = await ask_tokens(self.adapter, f"http://{worker[0]}:{worker[1]}", body)
            if self.transport.is_closing():
                return
            if tokens.ids == self.expected:
                self.begin_exchange(worker, b"POST", head, closing)
                self.send(body)
                self.end_request()
                return
        self.last = closing
        self.transport.write(NOT_ADMITTED)
        self.end_exchange(True)


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m evidence.capture.exact_prefix", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--listen", type=parse_address, default=("127.0.0.1", 0), metavar="HOST:PORT")
    parser.add_argument("--workers", type=parse_address, nargs="+", required=True, metavar="URL")
    parser.add_argument("--adapter", default="synthetic", help="whose way of tokenizing the workers have")
    parser.add_argument("--expected", type=Path, required=True, metavar="FILE", help="a JSON list of token ids")
    options = parser.parse_args(arguments)
    expected = json.loads(options.expected.read_text())
    asyncio.run(serve(options.listen, options.workers, lambda turns: ExactClient(turns, options.adapter, expected)))
    os._exit(0)


if __name__ == "__main__":
    main()
