"""The bytes of a request: a URL that can be measured, and one HTTP/1.1 message ready to be sent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from evidence.errors import EvidenceError

TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
FIELD = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
OWN_HEADERS = {"host", "content-length", "transfer-encoding", "connection", "expect", "upgrade", "te", "trailer"}


@dataclass(frozen=True)
class Target:
    """Where a request goes: host and port to connect to, and what the request line and Host header say."""

    host: str
    port: int
    authority: str
    path: str


def parse_url(url: str) -> Target:
    """Read an http URL; raises EvidenceError on any other scheme, credentials, or a URL that cannot be sent."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port if parts.port is not None else 80
    except ValueError as error:
        raise EvidenceError(f"url {url!r}: {error}", "write http://HOST:PORT/PATH") from None
    if parts.scheme != "http":
        raise EvidenceError(
            f"url {url!r}: scheme {parts.scheme!r}, expected http",
            "the client measures plain HTTP; let a gateway on this machine speak TLS",
        )
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if not host or parts.username is not None or not re.fullmatch(r"[\x21-\x7e]+", path + parts.netloc):
        raise EvidenceError(f"url {url!r}: no plain host and path", "write http://HOST:PORT/PATH, escaped")
    return Target(host, port, parts.netloc, path)


def write_request(
    target: Target, method: str, body: bytes | None, headers: Mapping[str, str], *, keep_alive: bool = False
) -> bytes:
    """Write a whole request. Bodies are sent with Content-Length, answers are asked for uncompressed.

    Raises EvidenceError on a header that the framing owns or that would break the head.
    """
    lines = [f"{method} {target.path} HTTP/1.1", f"Host: {target.authority}"]
    fields = {"accept-encoding": "identity", "accept": "*/*", "connection": "keep-alive" if keep_alive else "close"}
    if body is not None:
        fields |= {"content-type": "application/json", "content-length": str(len(body))}
    for name, value in headers.items():
        if name.lower() in OWN_HEADERS or not TOKEN.fullmatch(name) or not FIELD.fullmatch(value):
            raise EvidenceError(f"request header {name!r}: it cannot be set, or its value is not one line of text")
        fields[name.lower()] = value
    lines += [f"{'-'.join(word.capitalize() for word in name.split('-'))}: {value}" for name, value in fields.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + (body or b"")
