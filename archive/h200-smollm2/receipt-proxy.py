#!/usr/bin/env python3
"""The witness: a recording HTTP/1.1 reverse proxy in front of one worker.

    receipt-proxy.py --listen 127.0.0.1:0 --upstream http://127.0.0.1:9000 --worker worker-1
                     --ledger worker-1.jsonl --bodies bodies

What it promises
  1. Bytes pass as they came, both ways: heads, chunk sizes, trailers, compressed bodies, interim answers.
     Nothing is added, dropped or reordered, and no body waits for its end. Only a head, or a chunk's
     size line, is held until it is whole, because it is checked before it passes.
  2. Each exchange leaves exactly one receipt in the ledger, however it ends: SHA-256 and length of
     both bodies, the worker's status, whether both messages were whole, and if not, why. An exchange
     begins with the first byte of a request head. A body is what is left when the transfer framing is
     taken off (chunk sizes and trailers; never the content coding), which is what an HTTP client gets.
  3. Each body, a partial one too, is kept in the bodies folder under the name of its own SHA-256,
     and is there before the receipt that cites it.
  4. Before the first byte of an exchange goes to the worker, a line {path, requestId, sequence} is in
     LEDGER.open. So when this process is killed, an open line without a receipt is an exchange that was
     under way. Lines are written whole or not at all; a torn last line is recognised at the next start.
  5. Framing that two readers could read differently is refused, never repaired: content-length beside
     transfer-encoding or twice, bare LF, folded lines, bad chunk sizes, oversized heads, bytes nobody asked
     for. What is refused never reaches the other side.
  6. Of headers it keeps only those named in KEPT_REQUEST and KEPT_RESPONSE, of the target only the path:
     never a credential.
  7. What the proxy answers by itself (400, 408, 431, 502, 504) has an empty body and a header
     `X-Receipt-Proxy` that says why. Its receipt has status null, for the worker gave none.
  8. It listens on loopback only, unless told otherwise. It holds a bounded number of bytes a connection:
     who reads slowly slows the sender down.

How it is built: one client connection has one upstream connection, opened when the first request was
accepted; one exchange at a time (a pipelined request waits its turn). A close travels like a byte: a client
that shuts its sending half has that passed on and still gets its answer; a client that is gone closes the
upstream connection at once, and the other way round.

The file reads from the inside out: framing (bytes in, messages out, no sockets), recording (disk),
passing (sockets), command line. Standard library only, Python 3.8 or newer.

Exit codes: 0 ended by SIGTERM or SIGINT with every receipt written; 2 wrong usage, or a ledger that exists
already; 5 something could not be recorded (the exchanges under way still passed).
"""

from __future__ import annotations

import argparse
import collections
import errno
import fcntl
import hashlib
import ipaddress
import json
import os
import re
import resource
import selectors
import signal
import socket
import struct
import sys
import time
from typing import Any, Callable, Deque, Dict, List, NamedTuple, Optional, Set, Tuple, Union
from urllib.parse import urlsplit

MAX_HEAD = 65536  # bytes of one head, and of one trailer section
MAX_FIELDS = 128  # header lines of one head
MAX_CHUNK_LINE = 4096  # bytes of one chunk size line with its extensions
IN_MEMORY = 65536  # a body up to this many bytes is kept in memory until its end
BUFFERED = 262144  # bytes waiting for a slow reader before its sender is held back
RECEIVED = 65536  # bytes asked of a socket at once
MOST_PENDING = 32  # receipts that may wait for a quiet moment to be written
LINGER_SECONDS = 1.0  # after our last byte, how long we wait for the client to close its side

TRAFFIC = {"/v1/chat/completions", "/v1/completions", "/v1/embeddings"}
KEPT_REQUEST = {"content-type", "content-length", "transfer-encoding", "accept", "x-request-id"}
KEPT_RESPONSE = {
    "content-type",
    "content-length",
    "content-encoding",
    "transfer-encoding",
    "x-request-id",
    "retry-after",
}

# ------------------------------------------------------------------------------------------------
# Framing: bytes in, messages out (RFC 9112). No sockets, no clock, no disk.
# ------------------------------------------------------------------------------------------------

_TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_TEXT = rb"[\t\x20-\x7e\x80-\xff]*"
_REQUEST_LINE = re.compile(rb"(" + _TOKEN + rb") (/[\x21\x22\x24-\x7e]*|\*) HTTP/1\.([01])")
_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9][0-9])(?: " + _TEXT + rb")?")
_FIELD = re.compile(rb"(" + _TOKEN + rb"):(" + _TEXT + rb")")
_LENGTH = re.compile(rb"[0-9]{1,18}")
_CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]{1,15})(?:[ \t]*;" + _TEXT + rb")?\r\n")
_NOT_A_LINE = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|(?<!\r)\n|\r[^\n]")
_FRAMING_FIELDS = (b"content-length", b"transfer-encoding")

Fields = List[Tuple[bytes, bytes]]


class Refusal(Exception):
    """Bytes that are not accepted: why, in plain words, and the status that says so to a client."""

    def __init__(self, why: str, status: int = 400) -> None:
        super().__init__(why)
        self.why = why
        self.status = status


class Sized:
    """A body of exactly `length` bytes; none at all for 0."""

    def __init__(self, length: int) -> None:
        self.left = length
        self.done = length == 0

    def take(self, rest: bytes, pieces: List[bytes]) -> int:
        """Append the body bytes found in `rest` to `pieces`; return how many bytes were used up."""
        used = min(len(rest), self.left)
        self.left -= used
        self.done = self.left == 0
        pieces.append(rest[:used])
        return used


class UntilClose:
    """A response body that ends where its connection ends."""

    done = False

    def take(self, rest: bytes, pieces: List[bytes]) -> int:
        pieces.append(rest)
        return len(rest)


class Chunked:
    """A body in chunks with its trailer section. Framing lines are used up only when they are whole."""

    def __init__(self) -> None:
        self.left = 0  # bytes of the current chunk still to come
        self.due = b""  # the line end that must follow a chunk's last byte
        self.trailer = 0  # bytes of trailers so far, once the last chunk was seen
        self.in_trailer = False
        self.done = False

    def take(self, rest: bytes, pieces: List[bytes]) -> int:
        used = 0
        while not self.done:
            try:
                step = self._step(rest, used, pieces)
            except Refusal:
                if used == 0:
                    raise
                break  # what came before the fault still passes; the next call meets the fault again
            if step == 0:
                break
            used += step
        return used

    def _step(self, rest: bytes, at: int, pieces: List[bytes]) -> int:
        """Bytes used by one chunk piece, line end or framing line; 0 when more must come first."""
        if self.left:
            piece = rest[at : at + self.left]
            pieces.append(piece)
            self.left -= len(piece)
            self.due = b"" if self.left else b"\r\n"
            return len(piece)
        if self.due:
            found = rest[at : at + 2]
            if not self.due.startswith(found):
                raise Refusal("chunk data does not end where its size says")
            if found == self.due:
                self.due = b""
                return 2
            return 0
        if self.in_trailer:
            return self._step_trailer(rest, at)
        match = _CHUNK_LINE.match(rest, at, at + MAX_CHUNK_LINE + 2)
        if match is None:
            if _cut_line(rest, at, MAX_CHUNK_LINE) is None:
                return 0
            raise Refusal("bad chunk size line")
        self.left = int(match.group(1), 16)
        self.in_trailer = self.left == 0
        return match.end() - at

    def _step_trailer(self, rest: bytes, at: int) -> int:
        line = _cut_line(rest, at, MAX_HEAD - self.trailer)
        if line is None:
            return 0
        if not line:
            self.done = True
        elif _read_field(line)[0] in _FRAMING_FIELDS:
            raise Refusal("framing field in a trailer")
        self.trailer += len(line) + 2
        return len(line) + 2


Decoder = Union[Sized, UntilClose, Chunked]


class Head(NamedTuple):
    """One accepted head. `raw` is what passes on; a request has method and path, a response a status."""

    raw: bytes
    fields: Fields
    body: Decoder
    method: str = ""
    path: str = ""
    status: int = 0

    @property
    def interim(self) -> bool:
        return 100 <= self.status < 200

    def keep(self, names: Set[str]) -> Dict[str, str]:
        """The named headers, lower-case; one that comes several times is joined by ", "."""
        kept: Dict[str, str] = {}
        for raw_name, raw_value in self.fields:
            name, value = raw_name.decode("ascii"), raw_value.decode("latin-1")
            if name in names:
                kept[name] = kept[name] + ", " + value if name in kept else value
        return kept


class Data(NamedTuple):
    """Some bytes of a body: `raw` as they stand on the wire, `body` without the framing."""

    raw: bytes
    body: bytes


def _cut_line(rest: bytes, at: int, limit: int) -> Optional[bytes]:
    """The line at `at` without its CRLF, None when it is not whole yet."""
    end = rest.find(b"\r\n", at, at + limit + 2)
    line = rest[at : end if end >= 0 else at + limit + 2]
    if _NOT_A_LINE.search(line):
        raise Refusal("bare line end or control character in a framing line")
    if end >= 0:
        return line
    if len(line) >= limit + 2:
        raise Refusal("framing line too long", 431)
    return None


def _read_field(line: bytes) -> Tuple[bytes, bytes]:
    match = _FIELD.fullmatch(line)
    if match is None:
        raise Refusal("folded header line" if line[:1] in (b" ", b"\t") else "bad header line")
    name = match.group(1).lower()
    if b"_" in name and name.replace(b"_", b"-") in _FRAMING_FIELDS:
        raise Refusal("framing field spelt with an underscore")
    return name, match.group(2).strip(b" \t")


def _read_fields(lines: List[bytes]) -> Fields:
    if len(lines) > MAX_FIELDS:
        raise Refusal("too many header lines", 431)
    return [_read_field(line) for line in lines]


def _read_framing(fields: Fields, minor: bytes) -> Union[int, Chunked, None]:
    """The declared length, a chunked body, or None where the head declares neither."""
    lengths = [value for name, value in fields if name == b"content-length"]
    codings = [value for name, value in fields if name == b"transfer-encoding"]
    if codings:
        if lengths:
            raise Refusal("content-length beside transfer-encoding")
        if minor == b"0":
            raise Refusal("transfer-encoding in HTTP/1.0")
        if len(codings) > 1 or codings[0].lower() != b"chunked":
            raise Refusal("transfer-encoding other than one chunked")
        return Chunked()
    if not lengths:
        return None
    if len(lengths) > 1:
        raise Refusal("content-length given twice")
    if _LENGTH.fullmatch(lengths[0]) is None:
        raise Refusal("bad content-length")
    return int(lengths[0])


def read_request(raw: bytes) -> Head:
    """Read a request head that ends with its empty line. Raises Refusal."""
    first, *lines = raw[:-4].split(b"\r\n")
    match = _REQUEST_LINE.fullmatch(first)
    if match is None:
        raise Refusal("bad request line")
    method, target, minor = match.groups()
    if method == b"CONNECT" or (target == b"*" and method != b"OPTIONS"):
        raise Refusal("target does not fit the method")
    fields = _read_fields(lines)
    hosts = sum(name == b"host" for name, _ in fields)
    if hosts > 1 or (hosts == 0 and minor == b"1"):
        raise Refusal("host header missing or given twice")
    framing = _read_framing(fields, minor)
    body = framing if isinstance(framing, Chunked) else Sized(framing or 0)
    path = target.split(b"?", 1)[0].decode("ascii")  # a query may carry a key: it is never kept
    return Head(raw, fields, body, method=method.decode("ascii"), path=path)


def read_response(raw: bytes, method: str) -> Head:
    """Read a response head that ends with its empty line; `method` is the request's. Raises Refusal."""
    first, *lines = raw[:-4].split(b"\r\n")
    match = _STATUS_LINE.fullmatch(first)
    if match is None:
        raise Refusal("bad status line")
    minor, status = match.group(1), int(match.group(2))
    fields = _read_fields(lines)
    framing = _read_framing(fields, minor)
    body: Decoder
    if status == 101:
        raise Refusal("a switch of protocols cannot be witnessed")
    if status < 200 or status == 204:
        if framing not in (None, 0):
            raise Refusal("a body declared where none may be")
        body = Sized(0)
    elif method == "HEAD" or status == 304:
        body = Sized(0)
    elif framing is None:
        body = UntilClose()
    else:
        body = framing if isinstance(framing, Chunked) else Sized(framing)
    return Head(raw, fields, body, status=status)


class Stream:
    """The bytes of one direction, cut into messages.

    `receive` takes bytes as they come; `next` gives the next Head or Data, or None when more must come
    first; `ended` is true from a message's last byte until `restart`. The events and the refusal are
    the same however the bytes were cut.
    """

    def __init__(self) -> None:
        self.rest = b""
        self.ended = True
        self.body: Optional[Decoder] = None
        self._read: Callable[[bytes], Head] = read_request
        self._searched = 0

    def receive(self, data: bytes) -> None:
        self.rest = self.rest + data if self.rest else data

    def restart(self, read: Callable[[bytes], Head]) -> None:
        """Begin the next message; its head is read by `read`."""
        self._read, self.body, self.ended, self._searched = read, None, False, 0

    def next(self) -> Union[Head, Data, None]:
        if self.ended or not self.rest:
            return None
        if self.body is None:
            raw = self._cut_head()
            if raw is None:
                return None
            head = self._read(raw)
            if not head.interim:
                self.body = head.body
                self.ended = head.body.done
            return head
        pieces: List[bytes] = []
        used = self.body.take(self.rest, pieces)
        raw, self.rest = self.rest[:used], self.rest[used:]
        self.ended = self.body.done
        return Data(raw, b"".join(pieces)) if used else None

    def close(self) -> bool:
        """The sender closed its side. True when that is how the message ends."""
        if isinstance(self.body, UntilClose):
            self.ended = True
        return self.ended

    def _cut_head(self) -> Optional[bytes]:
        start = max(0, self._searched - 3)
        end = self.rest.find(b"\r\n\r\n", start, MAX_HEAD)
        if _NOT_A_LINE.search(self.rest, start, end + 4 if end >= 0 else MAX_HEAD):
            raise Refusal("bare line end or control character in a head")
        if end >= 0:
            raw, self.rest = self.rest[: end + 4], self.rest[end + 4 :]
            self._searched = 0
            return raw
        if len(self.rest) >= MAX_HEAD:
            raise Refusal("head too large", 431)
        self._searched = len(self.rest)
        return None


# ------------------------------------------------------------------------------------------------
# Recording: what reaches the disk. A failure here never stops an exchange; it ends the proxy with 5.
# ------------------------------------------------------------------------------------------------


class CannotRecord(Exception):
    """The ledger or the bodies folder cannot be used; the message says which, and why."""


class Seconds(int):
    """Nanoseconds, written as decimal seconds with at most nine places."""

    def __str__(self) -> str:
        whole, part = divmod(int(self), 1_000_000_000)
        return (f"{whole}.{part:09d}").rstrip("0") + ("0" if part == 0 else "")


_encode = json.JSONEncoder(sort_keys=True).encode


def _write_line(value: Dict[str, Any]) -> bytes:
    """One object in one line, keys sorted, times exact."""
    parts = []
    for key in sorted(value):
        item = value[key]
        text = str(item) if isinstance(item, Seconds) else _encode(item)
        parts.append(f'"{key}": {text}')
    return ("{" + ", ".join(parts) + "}\n").encode("ascii")


class Lines:
    """An append-only file of JSON lines, locked against a second writer.

    A line is one write(2) on an O_APPEND descriptor; should the disk take only a part, the part is cut
    off again. With `resume`, bytes after the last newline (a torn line of a killed writer) are moved to
    FILE.torn, and `last` is the highest sequence found.
    """

    def __init__(self, path: str, resume: bool) -> None:
        self.path = path
        self.last = 0
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | (0 if resume else os.O_EXCL)
        try:
            self._file = os.open(path, flags, 0o644)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if resume:
                self._resume()
        except FileExistsError:
            raise CannotRecord(f"{path} exists already; give --resume to continue it, or another --ledger") from None
        except BlockingIOError:
            raise CannotRecord(f"{path} is being written by another process") from None
        except OSError as error:
            raise CannotRecord(f"cannot open {path}: {error.strerror}") from None

    def _resume(self) -> None:
        with open(self.path, "rb") as file:
            content = file.read()
        whole = content.rfind(b"\n") + 1
        for number, line in enumerate(content[:whole].splitlines(), 1):
            try:
                self.last = max(self.last, int(json.loads(line)["sequence"]))
            except (ValueError, KeyError, TypeError):
                raise CannotRecord(f"{self.path} line {number} is not a line of this proxy") from None
        if content[whole:]:
            with open(self.path + ".torn", "ab") as torn:
                torn.write(content[whole:] + b"\n")
            os.ftruncate(self._file, whole)
            print(f"{self.path}: a torn last line was moved to {self.path}.torn", file=sys.stderr)

    def append(self, value: Dict[str, Any]) -> None:
        """Write one line, whole or not at all. Raises OSError."""
        line = _write_line(value)
        before = os.fstat(self._file).st_size
        written = os.write(self._file, line)
        if written != len(line):
            os.ftruncate(self._file, before)
            raise OSError(0, "the disk took only a part of a line")


class Body:
    """One body as it passes: its hash, its length, and its bytes, in memory or in a partial file."""

    def __init__(self, recorder: Recorder) -> None:
        self.length = 0
        self._recorder = recorder
        self._sha256 = hashlib.sha256()
        self._memory = bytearray()
        self._file: Optional[int] = None
        self._partial = ""
        self._lost = False

    def name_partial(self, name: str) -> None:
        self._partial = os.path.join(self._recorder.bodies, name)

    def add(self, data: bytes) -> None:
        self._sha256.update(data)
        self.length += len(data)
        if self._lost:
            return
        if self._file is None:
            self._memory += data
            if len(self._memory) <= IN_MEMORY:
                return
            data = bytes(self._memory)
            self._memory.clear()
        try:
            if self._file is None:
                self._file = os.open(self._partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
            _write_all(self._file, data)
        except OSError as error:
            self._give_up(error)

    def keep(self) -> str:
        """Lay the bytes under their hash, unless they lie there already; return the hash."""
        digest = self._sha256.hexdigest()
        target = os.path.join(self._recorder.bodies, digest)
        if self._lost:
            return digest
        try:
            if _is_there(target, self.length):
                if self._file is not None:
                    os.unlink(self._partial)
            else:
                if self._file is None:
                    self._file = os.open(self._partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
                    _write_all(self._file, self._memory)
                os.rename(self._partial, target)
        except OSError as error:
            self._give_up(error)
        if self._file is not None:
            os.close(self._file)
            self._file = None
        return digest

    def _give_up(self, error: OSError) -> None:
        """The hash goes on; what is on disk stays as it is, under its partial name."""
        self._lost = True
        self._memory.clear()
        self._recorder.report(f"cannot record a body in {self._recorder.bodies}", error)
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _is_there(path: str, length: int) -> bool:
    try:
        return os.stat(path).st_size == length
    except FileNotFoundError:
        return False


def _write_all(file: int, data: Union[bytes, bytearray]) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


class Exchange:
    """One request and its answer, from the first byte of the request head to the end, whatever it is."""

    def __init__(self, recorder: Recorder) -> None:
        self.started = time.monotonic_ns()
        self.sequence = 0
        self.request = Body(recorder)
        self.response = Body(recorder)
        self.request_head: Optional[Head] = None
        self.response_head: Optional[Head] = None  # the final one, never an interim one


class Recorder:
    """The ledger, the open lines and the bodies folder of one worker."""

    def __init__(self, worker: str, ledger: str, bodies: str, resume: bool) -> None:
        self.worker = worker
        self.bodies = bodies
        self.failed = False
        self.pending: Deque[Tuple[Exchange, Optional[str], int]] = collections.deque()
        self._origin = time.monotonic_ns()
        try:
            os.makedirs(bodies, exist_ok=True)
        except OSError as error:
            raise CannotRecord(f"cannot make the folder {bodies}: {error.strerror}") from None
        self._ledger = Lines(ledger, resume)
        self._open = Lines(ledger + ".open", resume)
        self._sequence = max(self._ledger.last, self._open.last)

    def open(self, exchange: Exchange, head: Head) -> None:
        """A request head was accepted: number the exchange and say so on disk, before any byte leaves."""
        exchange.request_head = head
        self._number(exchange)
        request_id = head.keep({"x-request-id"}).get("x-request-id")
        line = {"sequence": exchange.sequence, "requestId": request_id, "path": head.path}
        self._append(self._open, line)

    def close(self, exchange: Exchange, reason: Optional[str]) -> None:
        """The exchange has ended, completely where `reason` is None; its receipt waits for `write_next`."""
        if not exchange.sequence:
            self._number(exchange)
        self.pending.append((exchange, reason, time.monotonic_ns()))

    def write_next(self) -> None:
        """Keep the bodies of the exchange that ended first, then write its receipt."""
        exchange, reason, ended = self.pending.popleft()
        asked, answered = exchange.request_head, exchange.response_head
        request_headers = asked.keep(KEPT_REQUEST) if asked else {}
        receipt = {
            "sequence": exchange.sequence,
            "requestId": request_headers.get("x-request-id"),
            "method": asked.method if asked else "",
            "path": asked.path if asked else "",
            "traffic": asked is not None and asked.method == "POST" and asked.path in TRAFFIC,
            "requestSha256": exchange.request.keep(),
            "requestBytes": exchange.request.length,
            "responseSha256": exchange.response.keep(),
            "responseBytes": exchange.response.length,
            "status": answered.status if answered else None,
            "complete": reason is None,
            "reason": reason,
            "startedSeconds": Seconds(exchange.started - self._origin),
            "endedSeconds": Seconds(ended - self._origin),
            "requestHeaders": request_headers,
            "responseHeaders": answered.keep(KEPT_RESPONSE) if answered else {},
        }
        self._append(self._ledger, receipt)

    def report(self, what: str, error: BaseException) -> None:
        """Say once that something could not be recorded, and have the proxy end with 5."""
        if not self.failed:
            self.failed = True
            why = (error.strerror if isinstance(error, OSError) else None) or repr(error)
            print(f"error: {what}: {why}; the exchanges under way still pass, then the proxy ends", file=sys.stderr)
            sys.stderr.flush()

    def _number(self, exchange: Exchange) -> None:
        self._sequence += 1
        exchange.sequence = self._sequence
        stem = f".{self.worker}-{os.getpid()}-{exchange.sequence}"
        exchange.request.name_partial(stem + "-request.partial")
        exchange.response.name_partial(stem + "-response.partial")

    def _append(self, lines: Lines, value: Dict[str, Any]) -> None:
        try:
            lines.append(value)
        except OSError as error:
            self.report(f"cannot write to {lines.path}", error)


# ------------------------------------------------------------------------------------------------
# Passing: sockets. The rules are in Connection; a Side only tells it what happened on its socket.
# ------------------------------------------------------------------------------------------------


class Settings(NamedTuple):
    """Where to, and how long to wait; all times in seconds."""

    upstream: Tuple[int, Tuple[str, int]]  # address family, numeric address and port
    head_seconds: float
    idle_seconds: float
    connect_seconds: float
    half_close_seconds: float
    drain_seconds: float


class Events(NamedTuple):
    """What a side tells its connection."""

    data: Callable[[bytes], None]
    eof: Callable[[Side], None]  # the peer has closed its sending half
    lost: Callable[[Side], None]  # the socket is closed, by whomever
    flow: Callable[[], None]  # `full` has changed


_SILENT = Events(lambda data: None, lambda side: None, lambda side: None, lambda: None)


class Side:
    """One non-blocking socket: sends at once what the kernel takes, and the rest as soon as it can."""

    def __init__(self, proxy: Proxy, connected: socket.socket, events: Events) -> None:
        connected.setblocking(False)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.full = False  # more than BUFFERED bytes wait to be sent
        self.eof = False
        self.lost = False
        self.closing = False
        self._socket = connected
        self._proxy = proxy
        self._events = events
        self._waiting = bytearray()
        self._shut_due = False
        self._allowed = True
        self._interest = 0
        self._watch()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def ready(self, mask: int) -> None:
        """The socket can be read or written."""
        if mask & selectors.EVENT_WRITE:
            self._send_waiting()
        if mask & selectors.EVENT_READ and not self.lost:
            self._receive()

    def write(self, pieces: List[bytes]) -> None:
        if self.lost or self.closing or not pieces:
            return
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        if not self._waiting:
            try:
                data = data[self._socket.send(data) :]
            except BlockingIOError:
                pass
            except OSError:
                self._proxy.soon.append(self.abort)  # told when the caller is done
                return
        if data:
            self._waiting += data
            self._watch()
            if len(self._waiting) > BUFFERED and not self.full:
                self.full = True
                self._events.flow()

    def let_read(self, allowed: bool) -> None:
        if allowed != self._allowed:
            self._allowed = allowed
            self._watch()

    def shut(self) -> None:
        """Close the sending half, after what waits to be sent."""
        self._shut_due = True
        self._end_sending()

    def close(self) -> None:
        """Close, after what waits to be sent."""
        self.closing = True
        self._end_sending()

    def abort(self) -> None:
        """Close now."""
        if not self.lost:
            self.lost = True
            self._watch()
            self._socket.close()
            self._events.lost(self)
            self._events = _SILENT  # nothing more to tell, and no cycle that keeps the connection in memory

    def reset(self) -> None:
        """Close now, so that the peer sees a failure and not an end."""
        if not self.lost:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.abort()

    def _receive(self) -> None:
        try:
            data = self._socket.recv(RECEIVED)
        except BlockingIOError:
            return
        except OSError:
            self.abort()
            return
        if data:
            self._events.data(data)
        else:
            self.eof = True
            self._watch()
            self._events.eof(self)

    def _send_waiting(self) -> None:
        try:
            with memoryview(self._waiting) as view:
                sent = self._socket.send(view[:BUFFERED])
            del self._waiting[:sent]
        except BlockingIOError:
            return
        except OSError:
            self.abort()
            return
        if not self._waiting:
            self._watch()
            self._end_sending()
        if self.full and not self.lost and len(self._waiting) <= BUFFERED // 2:
            self.full = False
            self._events.flow()

    def _end_sending(self) -> None:
        if self._waiting or self.lost:
            return
        if self.closing:
            self.abort()
        elif self._shut_due:
            try:
                self._socket.shutdown(socket.SHUT_WR)
            except OSError:
                self._proxy.soon.append(self.abort)

    def _watch(self) -> None:
        """Ask the selector for just what this socket can use now."""
        interest = 0
        if not self.lost:
            if self._allowed and not self.eof:
                interest |= selectors.EVENT_READ
            if self._waiting:
                interest |= selectors.EVENT_WRITE
        self._interest = self._proxy.watch(self._socket, self._interest, interest, self.ready)


class Connection:
    """One client connection, the upstream connection that answers it, and the exchange under way."""

    def __init__(self, proxy: Proxy, client: socket.socket) -> None:
        self._proxy = proxy
        self._recorder = proxy.recorder
        self._client = Side(
            proxy, client, Events(self._client_data, self._client_eof, self._client_lost, self._regulate)
        )
        self._upstream: Optional[Side] = None
        self._connecting: Optional[socket.socket] = None
        self._unsent: List[bytes] = []  # accepted bytes that wait for the upstream connection
        self._requests = Stream()
        self._responses = Stream()
        self._exchange: Optional[Exchange] = None
        self._began = 0.0  # when the exchange began, on the monotonic clock
        self._moved = time.monotonic()  # when a byte moved last
        self._leaving = False  # no further exchange; only what waits to be sent still goes out

    # -- what happens ----------------------------------------------------------------------------

    def _client_data(self, data: bytes) -> None:
        if not self._leaving:
            self._moved = time.monotonic()
            self._requests.receive(data)
            self._carry_request()

    def _client_eof(self, side: Side) -> None:
        if self._leaving:
            side.close()
        elif self._exchange is None:
            self._leave(idle=True)
        elif not self._requests.ended:
            self._fail("client-closed")
        else:
            self._settle()  # a half-closed client still gets its answer

    def _client_lost(self, side: Side) -> None:
        self._proxy.connections.discard(self)
        if self._exchange is not None:
            self._fail("client-closed")
        self._leave(idle=True)

    def _upstream_data(self, data: bytes) -> None:
        if not self._leaving:
            self._moved = time.monotonic()
            self._responses.receive(data)
            self._carry_response()

    def _upstream_eof(self, side: Side) -> None:
        if self._leaving:
            return
        if self._exchange is None:
            self._leave(idle=True)
        elif self._exchange.request_head is None:
            self._upstream = None  # the request is still being read: it gets a fresh connection
            side.close()
        elif self._responses.close() and self._requests.ended:
            self._settle()
        else:
            self._fail("upstream-closed")

    def _upstream_lost(self, side: Side) -> None:
        if not self._leaving and side is self._upstream:
            self._upstream = None
            if self._exchange is None:
                self._leave(idle=True)
            elif self._exchange.request_head is not None:
                self._fail("upstream-closed")

    def check_time(self, now: float) -> None:
        """Called now and then: end what has waited too long."""
        settings, exchange, still = self._proxy.settings, self._exchange, now - self._moved
        if self._leaving:
            if still > (settings.idle_seconds if self._client.waiting else LINGER_SECONDS):
                self._client.abort()
        elif exchange is None:
            if still > settings.idle_seconds:
                self._leave(idle=True)
        elif exchange.request_head is None:
            if now - self._began > settings.head_seconds:
                self._fail("timeout", 408, "the request head did not come in time")
        elif self._connecting is not None:
            if still > settings.connect_seconds:
                self._fail("upstream-unreachable", 502, "the worker did not take the connection in time")
        elif self._client.eof:
            if still > settings.half_close_seconds:
                self._fail("client-closed")
        elif still > settings.idle_seconds:
            if self._requests.ended:
                self._fail("timeout", 504, "the worker was silent for too long")
            else:
                self._fail("timeout", 408, "the request body did not come in time")

    def drain(self) -> None:
        """No further exchange; one under way goes on."""
        if self._exchange is None:
            self._leave(idle=True)

    def cut(self) -> None:
        """The time for draining is over."""
        if self._exchange is not None:
            self._fail("timeout", 504, "the proxy is being stopped")
        self._client.abort()

    # -- what is done about it -------------------------------------------------------------------

    def _carry_request(self) -> None:
        """Pass on what has come from the client, up to the end of one request."""
        if self._exchange is None:
            if not self._requests.rest:
                return
            self._exchange = Exchange(self._recorder)
            self._began = time.monotonic()
            self._requests.restart(read_request)
        exchange, passing, bodies = self._exchange, [], []
        refusal = None
        try:
            while (event := self._requests.next()) is not None:
                if isinstance(event, Head):
                    self._accept(exchange, event)
                else:
                    bodies.append(event.body)
                passing.append(event.raw)
        except Refusal as found:
            refusal = found
        if self._upstream is None:
            self._unsent += passing
        else:
            self._upstream.write(passing)
        for body in bodies:
            exchange.request.add(body)
        if refusal is not None:
            self._fail("refused", refusal.status, refusal.why)
        elif self._client.eof and not self._requests.ended:
            self._fail("client-closed")
        else:
            self._settle()

    def _accept(self, exchange: Exchange, head: Head) -> None:
        """A whole and sound request head: say so on disk, and see that there is a worker to send it to."""
        self._recorder.open(exchange, head)
        self._responses.restart(lambda raw: read_response(raw, head.method))
        if self._upstream is None:
            self._reach()

    def _reach(self) -> None:
        """Connect to the worker; on loopback that is done when the call returns, and asking again tells."""
        family, address = self._proxy.settings.upstream
        connecting = self._connecting = socket.socket(family, socket.SOCK_STREAM)
        connecting.setblocking(False)
        answer = connecting.connect_ex(address) and connecting.connect_ex(address)
        if answer in (0, errno.EISCONN):
            self._reached(connecting)
        elif answer in (errno.EINPROGRESS, errno.EALREADY):
            self._proxy.watch(connecting, 0, selectors.EVENT_WRITE, self._connected)
            self._regulate()
        else:
            self._proxy.soon.append(self._missed)  # when the request that came with it has been taken down

    def _connected(self, mask: int) -> None:
        connecting = self._connecting
        assert connecting is not None
        self._proxy.watch(connecting, selectors.EVENT_WRITE, 0, self._connected)
        if connecting.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self._missed()
        else:
            self._reached(connecting)
            self._settle()

    def _reached(self, connected: socket.socket) -> None:
        events = Events(self._upstream_data, self._upstream_eof, self._upstream_lost, self._regulate)
        self._connecting, self._upstream = None, Side(self._proxy, connected, events)
        unsent, self._unsent = self._unsent, []
        self._upstream.write(unsent)
        self._regulate()

    def _missed(self) -> None:
        if not self._leaving and self._connecting is not None:
            self._connecting.close()
            self._connecting = None
            self._fail("upstream-unreachable", 502, "the worker cannot be reached")

    def _carry_response(self) -> None:
        """Pass on what has come from the worker, up to the end of one response."""
        exchange = self._exchange
        if exchange is None or exchange.request_head is None:
            self._refuse_surplus()
            return
        passing, bodies = [], []
        refusal = None
        try:
            while (event := self._responses.next()) is not None:
                if isinstance(event, Data):
                    bodies.append(event.body)
                elif not event.interim:
                    exchange.response_head = event
                passing.append(event.raw)
        except Refusal as found:
            refusal = found
        self._client.write(passing)
        for body in bodies:
            exchange.response.add(body)
        if refusal is not None:
            self._fail("upstream-malformed", 502, refusal.why)
        elif self._responses.ended:
            if self._responses.rest and not self._requests.ended:
                self._fail("upstream-malformed")
            else:
                self._settle()

    def _settle(self) -> None:
        """End the exchange if both messages are whole, then see to what follows."""
        exchange, upstream = self._exchange, self._upstream
        if len(self._requests.rest) > MAX_HEAD:
            self._regulate()
        if exchange is None or upstream is None or not self._requests.ended:
            return
        if not self._responses.ended:
            if self._client.eof and not self._requests.rest:
                upstream.shut()
            return
        self._exchange = None
        self._recorder.close(exchange, None)
        if self._responses.rest:
            self._refuse_surplus()
        elif self._proxy.draining or upstream.eof or (self._client.eof and not self._requests.rest):
            self._leave()
        else:
            self._carry_request()  # a pipelined request may be waiting
            self._regulate()

    def _refuse_surplus(self) -> None:
        """The worker sent bytes that answer no request: they pass nowhere, and a receipt of their own says so."""
        exchange = self._exchange or Exchange(self._recorder)
        self._exchange = None
        self._recorder.close(exchange, "upstream-malformed")
        self._leave(failed=True)

    def _fail(self, reason: str, status: int = 0, why: str = "") -> None:
        """End the exchange before its time. The client gets `status` if no answer was begun."""
        exchange, self._exchange = self._exchange, None
        assert exchange is not None
        if self._client.eof and reason in ("upstream-closed", "timeout"):
            reason = "client-closed"  # the client went first, the rest followed from it
        self._recorder.close(exchange, reason)
        if exchange.response_head is None and status:
            self._client.write([_write_answer(status, why)])
        endless = exchange.response_head is not None and isinstance(exchange.response_head.body, UntilClose)
        self._leave(failed=True, reset=endless)

    def _leave(self, idle: bool = False, failed: bool = False, reset: bool = False) -> None:
        """Part from both sides. `reset` where a plain close would look like the end of a body."""
        if self._leaving:
            return
        self._leaving = True
        self._moved = time.monotonic()
        if self._connecting is not None:
            self._proxy.forget(self._connecting)
            self._connecting.close()
        if self._upstream is not None:
            if failed:
                self._upstream.abort()
            else:
                self._upstream.close()
        if reset:
            self._client.reset()
        elif idle or self._client.eof:
            self._client.close()
        else:
            # Bytes that we never read would turn our close into a reset and take the answer with it:
            # shut our half, read on without keeping anything, and close when the client does.
            self._client.shut()
            self._client.let_read(True)

    def _regulate(self) -> None:
        """Read from each side only what the other side takes."""
        if not self._leaving:
            upstream = self._upstream
            held = self._connecting is not None or len(self._requests.rest) > MAX_HEAD
            self._client.let_read(not held and not (upstream is not None and upstream.full))
            if upstream is not None:
                upstream.let_read(not self._client.full)


_PHRASES = {
    400: "Bad Request",
    408: "Request Timeout",
    431: "Request Header Fields Too Large",
    502: "Bad Gateway",
    504: "Gateway Timeout",
}


def _write_answer(status: int, why: str) -> bytes:
    return (
        f"HTTP/1.1 {status} {_PHRASES[status]}\r\nContent-Length: 0\r\nConnection: close\r\nX-Receipt-Proxy: {why}\r\n\r\n"
    ).encode("ascii")


class Proxy:
    """The listener, its connections, and the one loop that serves them: a single thread."""

    def __init__(self, settings: Settings, recorder: Recorder, listener: socket.socket) -> None:
        self.settings = settings
        self.recorder = recorder
        self.connections: Set[Connection] = set()
        self.soon: List[Callable[[], None]] = []  # to be called after the current events
        self.draining = False
        self._listener = listener
        self._selector = selectors.DefaultSelector()

    def watch(self, watched: socket.socket, before: int, after: int, ready: Callable[[int], None]) -> int:
        """Change what the selector tells about a socket, from `before` to `after`; return `after`."""
        if before == after:
            return after
        if not before:
            self._selector.register(watched, after, ready)
        elif not after:
            self._selector.unregister(watched)
        else:
            self._selector.modify(watched, after, ready)
        return after

    def forget(self, watched: socket.socket) -> None:
        """Stop watching a socket, if it is watched."""
        if watched in self._selector.get_map():
            self._selector.unregister(watched)

    def serve(self) -> None:
        """Serve until SIGTERM or SIGINT, or until something cannot be recorded; then drain."""
        bell, ringer = socket.socketpair()
        ringer.setblocking(False)
        signal.set_wakeup_fd(ringer.fileno())
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)  # the bell does the work
        stopping: List[bool] = []
        self.watch(bell, 0, selectors.EVENT_READ, lambda mask: stopping.append(bool(bell.recv(64))))
        self._listener.listen(1024)
        self._listener.setblocking(False)
        self.watch(self._listener, 0, selectors.EVENT_READ, self._accept)
        host, port = self._listener.getsockname()[:2]
        print(f"ready [{host}]:{port}" if ":" in host else f"ready {host}:{port}", flush=True)
        times = self.settings[1:5]
        interval = min(1.0, min(times) / 4)
        checked = now = time.monotonic()
        deadline = float("inf")
        while self.connections or self.recorder.pending or not self.draining:
            self._turn(0 if self.recorder.pending else max(0, min(interval, deadline - now)))
            now = time.monotonic()
            if (stopping or self.recorder.failed) and not self.draining:
                self._drain()
                deadline = now + self.settings.drain_seconds
            if now - checked >= interval:
                checked = now
                for connection in list(self.connections):
                    connection.check_time(now)
            if now > deadline:
                for connection in list(self.connections):
                    connection.cut()

    def _turn(self, seconds: float) -> None:
        """Handle what is ready. Disk work is done one receipt at a time, and waits for a quiet moment:
        a stream must not wait for another one's receipt."""
        found = self._selector.select(seconds)
        for key, mask in found:
            if key.fileobj.fileno() >= 0:  # type: ignore[union-attr]  # not closed by an event before it
                self._guard(key.data, mask)
        while self.soon:
            self._guard(self.soon.pop())
        if self.recorder.pending and not found:
            self._guard(self.recorder.write_next)
        while len(self.recorder.pending) > MOST_PENDING:
            self._guard(self.recorder.write_next)

    def _guard(self, act: Callable[..., None], *arguments: int) -> None:
        """A witness whose own program fails may have missed something, and must say so."""
        try:
            act(*arguments)
        except Exception as error:
            self.recorder.report("fault of the proxy itself", error)

    def _accept(self, mask: int) -> None:
        try:
            client, _ = self._listener.accept()
        except OSError:
            return  # the client is gone already, or there are too many; the rest wait in the backlog
        self.connections.add(Connection(self, client))

    def _drain(self) -> None:
        self.draining = True
        self.watch(self._listener, selectors.EVENT_READ, 0, self._accept)
        self._listener.close()
        for connection in list(self.connections):
            connection.drain()


# ------------------------------------------------------------------------------------------------
# Command line
# ------------------------------------------------------------------------------------------------


class WrongUsage(Exception):
    pass


def _read_arguments(arguments: Optional[List[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="receipt-proxy.py",
        description="Record every exchange with one worker: bodies under their SHA-256, one receipt a line.",
        epilog="Prints `ready HOST:PORT`. SIGTERM ends it after the exchanges under way. "
        "Exit: 0 ended as told, 2 wrong usage or a ledger that exists, 5 something could not be recorded.",
    )
    add = parser.add_argument
    add("--listen", default="127.0.0.1:0", metavar="HOST:PORT", help="default 127.0.0.1:0, a free port")
    add("--upstream", required=True, metavar="URL", help="the worker, http://HOST:PORT")
    add("--worker", required=True, metavar="ALIAS", help="the worker's alias in the evidence")
    add("--ledger", required=True, metavar="FILE", help="receipts go here; FILE.open says what was begun")
    add("--bodies", required=True, metavar="DIR", help="bodies go here, each under its own SHA-256")
    add("--resume", action="store_true", help="continue an existing ledger; a torn last line goes to FILE.torn")
    add("--allow-remote", action="store_true", help="allow --listen on an address that others can reach")

    def add_seconds(name: str, default: float, text: str) -> None:
        add(name, type=_read_seconds, default=default, metavar="S", help=f"{text} ({default:g})")

    add_seconds("--head-seconds", 30, "time for a request head")
    add_seconds("--idle-seconds", 600, "longest silence on a connection")
    add_seconds("--connect-seconds", 10, "time to reach the worker")
    add_seconds("--half-close-seconds", 10, "longest silence of the worker after the client's close")
    add_seconds("--drain-seconds", 30, "time for exchanges under way after SIGTERM")
    return parser.parse_args(arguments)


def _read_seconds(text: str) -> float:
    value = float(text)
    if not 0 < value <= 86400:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 86400")
    return value


def _read_upstream(url: str) -> Tuple[int, Tuple[str, int]]:
    try:
        parts = urlsplit(url)
        port = parts.port or 80
    except ValueError:
        raise WrongUsage(f"--upstream {url} is not http://HOST:PORT") from None
    plain = parts.path in ("", "/") and not (parts.query or parts.fragment or parts.username or parts.password)
    if parts.scheme != "http" or not parts.hostname or not plain:
        raise WrongUsage("--upstream is not http://HOST:PORT")
    return _resolve(parts.hostname, port)


def _resolve(host: str, port: int) -> Tuple[int, Tuple[str, int]]:
    """Address family and numeric address; names are looked up once, at the start."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise WrongUsage(f"cannot find the address of {host}: {error.strerror}") from None
    return int(found[0][0]), (str(found[0][4][0]), int(found[0][4][1]))


def _listen(text: str, allow_remote: bool) -> socket.socket:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise WrongUsage(f"--listen {text} is not HOST:PORT")
    family, address = _resolve(host.strip("[]"), int(port))
    if not ipaddress.ip_address(address[0].split("%")[0]).is_loopback:
        if not allow_remote:
            raise WrongUsage(f"--listen {text} is not a loopback address; give --allow-remote if that is meant")
        print(f"warning: {text} can be reached from other machines", file=sys.stderr)
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
    except OSError as error:
        raise WrongUsage(f"cannot listen on {text}: {error.strerror}") from None
    return listener


def main(arguments: Optional[List[str]] = None) -> int:
    options = _read_arguments(arguments)
    try:
        if re.fullmatch(r"[a-z0-9][a-z0-9.-]{0,62}", options.worker) is None:
            raise WrongUsage(f"--worker {options.worker} is not an alias such as worker-1")
        upstream = _read_upstream(options.upstream)
        listener = _listen(options.listen, options.allow_remote)
        recorder = Recorder(options.worker, options.ledger, options.bodies, options.resume)
    except (WrongUsage, CannotRecord) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # two descriptors a connection
    settings = Settings(
        upstream,
        options.head_seconds,
        options.idle_seconds,
        options.connect_seconds,
        options.half_close_seconds,
        options.drain_seconds,
    )
    Proxy(settings, recorder, listener).serve()
    return 5 if recorder.failed else 0


if __name__ == "__main__":
    sys.exit(main())
