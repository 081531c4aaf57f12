"""One HTTP/1.1 response from bytes: where its head ends, what its body is, and whether it came whole.

The grammar is llhttp's (httptools) with every leniency off: it refuses bare LF, folded headers, doubled or
malformed Content-Length, Content-Length beside Transfer-Encoding, and loose chunk sizes. Three things that it
lets pass are refused here: a version other than 1.0 and 1.1, a status outside 100..599, and any
Transfer-Encoding but a single `chunked` of HTTP/1.1. Bodies are freed of their transfer framing and of
nothing else.
"""

from __future__ import annotations

from collections.abc import Callable

import httptools

HEAD_LIMIT = 64 * 1024
BODY_LIMIT = 1 << 30


class FramingError(Exception):
    """The bytes are no well-formed response; the text says why, in lower case."""


class Response:
    """Collects one response, the interim ones (100, 103) left out.

    `status` is None until the head is whole; `body` holds what arrived without transfer framing; `complete`
    says that the framing itself said the end; `until_close` that only the end of the connection can; `chunked` that a
    last chunk will. `excess`
    says that bytes followed the end.
    """

    def __init__(self, *, head_limit: int = HEAD_LIMIT, body_limit: int = BODY_LIMIT) -> None:
        self.status: int | None = None
        self.headers: list[tuple[str, str]] = []
        self.body = bytearray()
        self.complete = False
        self.until_close = self.chunked = False
        self.keep_alive = False
        self.excess = False
        self._head_limit, self._body_limit = head_limit, body_limit
        self._head_bytes = 0
        self._fresh: list[bytes] = []
        self._interim = False
        self._refusal: str | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._feed: Callable[[bytes], None] = self._parser.feed_data

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes and return the body bytes that they brought.

        Raises FramingError on malformed bytes; what was whole before them stays in `body`.
        """
        if self.status is None:
            self._head_bytes += len(data)
        fresh = self._fresh
        fresh.clear()
        problem: str | None = None
        try:
            self._feed(data)
        except httptools.HttpParserUpgrade:
            problem = "the server switched protocols"
        except httptools.HttpParserError as error:
            if not self.complete:
                problem = self._refusal or f"malformed response: {error}"
            else:
                self.excess = True
        brought = fresh[0] if len(fresh) == 1 else b"".join(fresh)
        self.body += brought
        if problem is None and self.status is None and self._head_bytes > self._head_limit:
            problem = f"the response head exceeds {self._head_limit} bytes"
        if problem is None and len(self.body) > self._body_limit:
            problem = f"the response body exceeds {self._body_limit} bytes"
        if problem is not None:
            raise FramingError(problem)
        return brought

    def header(self, name: str) -> str | None:
        """Return the first header of that lower-case name, or None."""
        return next((value for key, value in self.headers if key == name), None)

    def let_go(self) -> None:
        """Part from the parser, which holds this object as this holds it; nothing can be fed afterwards."""
        del self._parser, self._feed

    # What follows is called by the parser.

    def on_message_begin(self) -> None:
        """Begin a message, which is one too many when the response is whole."""
        if self.complete:
            self.excess = True
        else:
            self.headers.clear()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; one that comes after the head is a trailer and is let go."""
        if not self.complete and self.status is None:
            self.headers.append((name.decode("latin-1").lower(), value.decode("latin-1").strip(" \t")))

    def on_headers_complete(self) -> None:
        """Judge the head."""
        if self.complete:
            return
        status, version = self._parser.get_status_code(), self._parser.get_http_version()
        encodings = [value.lower() for key, value in self.headers if key == "transfer-encoding"]
        if version not in ("1.0", "1.1"):
            self._refuse(f"HTTP version {version}, expected 1.0 or 1.1")
        if not 100 <= status <= 599:
            self._refuse(f"status {status}, expected 100 to 599")
        if encodings and (encodings != ["chunked"] or version == "1.0"):
            self._refuse(f"transfer-encoding {', '.join(encodings)} of HTTP/{version}, expected chunked of HTTP/1.1")
        self._interim = status < 200
        if not self._interim:
            self.status = status
            framed = bool(encodings) or self.header("content-length") is not None or status in (204, 304)
            self.until_close, self.chunked = not framed, bool(encodings)

    def on_body(self, data: bytes) -> None:
        """Keep body bytes of the response."""
        if not self.complete:
            self._fresh.append(data)

    def on_message_complete(self) -> None:
        """End the response, unless it was an interim one."""
        if self._interim:
            self._interim = False
        elif not self.complete:
            self.complete = True
            self.keep_alive = self._parser.should_keep_alive()

    def _refuse(self, why: str) -> None:
        self._refusal = f"malformed response: {why}"
        raise FramingError(why)
