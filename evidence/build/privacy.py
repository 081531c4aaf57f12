"""Refuses what must never be published: addresses, names, home paths, credentials, model bytes.

Every byte of a package passes `scan` before it is packed, the tools of this project excepted, which are pinned
by hash. A finding says the file, the line, the kind, and what was found (of a credential only its beginning).
An exception of the campaign lifts a finding whose kind is its kind and whose text matches its pattern, a shell
pattern; it stands in the manifest with its reason.

Kinds: `ip-address` (any IPv4 or IPv6 address that can be routed or is private, outside the documentation ranges
of RFC 5737 and RFC 3849; loopback and the unspecified address identify nobody), `host-name` and `user-name`
(of this machine, and cloud-internal names), `home-path`, `device-id`, `credential`, `authorization`, `weights`,
`tokenizer`, `template`.
"""

from __future__ import annotations

import fnmatch
import getpass
import ipaddress
import re
import socket
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from evidence.build import credentials, thinning
from evidence.campaign import PrivacyException

# Four numbers with dots that are no part of a longer number, a version (`v1.2.3.4`) or a word.
_IPV4 = re.compile(rb"(?<![0-9A-Za-z_.])(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?![0-9A-Za-z_]|\.[0-9])")
# What is allocated at all: global unicast, unique local and link local. `[::2]` in a program is no address.
_IPV6 = re.compile(rb"(?<![0-9A-Za-z:.])(?:[23][0-9a-fA-F]{3}|[fF][cCdD][0-9a-fA-F]{2}|[fF][eE][89abAB][0-9a-fA-F]):[0-9a-fA-F:]{1,34}(?![0-9A-Za-z:])")  # fmt: skip
# Text with every digit, or every hexadecimal digit, as a 0 can be searched for the bones of an address.
_DIGITS = bytes(48 if chr(place).isdigit() and place < 128 else place for place in range(256))
_HEX = bytes(48 if place < 128 and chr(place) in "0123456789abcdefABCDEF" else place for place in range(256))
_DOTTED = (b"0.0.0", b"0.00.0", b"0.000.0")
# Any of these is reason to look closer: names of clouds, and what weights, tokenizers and templates hold.
_MARKERS = (b"Users\\", b".internal", b".cluster.local", b"GGUF", b'"data_offsets"', b"\x80\x02", b"\x80\x03", b"\x80\x04",
            b"\x80\x05", b"PK\x03\x04", b'"merges"', b'"vocab"', b"#version: 0.2", b"<unk>", b"added_tokens_decoder")  # fmt: skip
_DOCUMENTATION = [
    ipaddress.ip_network(text)
    for text in ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20")
]
_HOME = re.compile(rb"(?:/home/|/Users/)[A-Za-z_][A-Za-z0-9._-]*|/root/[A-Za-z0-9._-]+|[A-Za-z]:\\{1,2}Users\\{1,2}[A-Za-z0-9._ -]+")  # fmt: skip
_INTERNAL = re.compile(rb"(?i)\b[a-z0-9-]+(?:\.[a-z0-9-]+)*\.(?:svc\.cluster\.local|compute\.internal|ec2\.internal|c\.[a-z0-9-]+\.internal)\b|\bip-[0-9]{1,3}(?:-[0-9]{1,3}){3}\b")  # fmt: skip
_DEVICE = re.compile(rb"\b(?:GPU|MIG)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_TEMPLATE = re.compile(rb"\{%-?\s*(?:for|if|set|macro|generation)\b")
_TEMPLATE_WORDS = (b"add_generation_prompt", b"for message in", b"bos_token", b"message['role']", b'message["role"]', b'message[\\"role\\"]', b"message.role")  # fmt: skip
_PROSE = bytes(place for place in range(256) if place >= 128 or chr(place).isalpha() or chr(place) in " \n.,;!?'()*-")
_WORDS = bytes(97 if place < 128 and (chr(place).isalpha() or place == 45) else 32 for place in range(256))
_RUN = b"a" * 11
_DRAWN = re.compile(rb"(?:(?:(?:(?:chatcmpl|cmpl|gen|embd)-)?[0-9a-f-]{8,64})?\n)*")
_ENOUGH = 50
_TOGETHER = 32
_NAMED = (b".internal", b".cluster.local", b"GPU-", b"MIG-", b"PRIVATE KEY", b"GGUF")
# Names that many machines share, and that ordinary text contains.
_COMMON_NAMES = frozenset(
    [
        "root",
        "user",
        "users",
        "admin",
        "administrator",
        "guest",
        "nobody",
        "ubuntu",
        "debian",
        "fedora",
        "centos",
        "runner",
        "vscode",
        "codespace",
        "jovyan",
        "app",
        "test",
        "tests",
        "dev",
        "demo",
        "docker",
        "node",
        "build",
        "builder",
        "worker",
        "server",
        "client",
        "model",
        "data",
        "local",
        "localhost",
        "host",
        "main",
        "master",
        "home",
        "machine",
        "computer",
        "laptop",
        "desktop",
        "linux",
        "default",
        "system",
        "service",
        "example",
        "agent",
        "engine",
        "python",
    ]
)


class Finding(NamedTuple):
    """One thing that must not be published: `place` is a line (`line 3`) or a byte offset (`byte 0`)."""

    path: str
    place: str
    kind: str
    text: str

    def __str__(self) -> str:
        shown = self.text if self.kind not in ("credential", "authorization") else f"{self.text[:6]}..."
        return f"{self.path}, {self.place}: {self.kind} {shown!r}"


@dataclass
class Machine:
    """The names of the machine that captures and builds, as whole words to look for."""

    hosts: tuple[bytes, ...] = ()
    users: tuple[bytes, ...] = ()
    homes: tuple[bytes, ...] = ()

    @staticmethod
    def here() -> Machine:
        """This machine: its host name, its user and the user's home."""
        name = socket.gethostname()
        hosts = {name, name.split(".")[0]}
        try:
            user = getpass.getuser()
        except (KeyError, OSError):
            user = ""
        home = str(Path.home())
        return Machine(
            tuple(sorted(host.encode() for host in hosts if _telling(host))),
            (user.encode(),) if _telling(user) else (),
            (home.encode(),) if home.count("/") >= 2 else (),
        )


def _telling(name: str) -> bool:
    return len(name) >= 3 and name.lower() not in _COMMON_NAMES and not name.isdigit()


@dataclass
class Scanner:
    """Looks at every file of one package. `findings` says what must not be published, up to 50 things and a few."""

    machine: Machine = field(default_factory=Machine.here)
    exceptions: Sequence[PrivacyException] = ()

    def __post_init__(self) -> None:
        machine = self.machine
        self._words = (*machine.hosts, *machine.users, *machine.homes, *_MARKERS)
        self._named = (*machine.hosts, *machine.users, *_NAMED)
        self._frames: set[bytes] = set()
        self._found: list[Finding] = []
        self._waiting: list[tuple[str, bytes, thinning.Thinned]] = []

    @property
    def findings(self) -> list[Finding]:
        """What was found in all that was scanned."""
        self.settle()
        return self._found

    def scan(self, path: str, data: bytes, *, body: bool = False, free: bytes | None = None) -> None:
        """Note what must not be published.

        `body`: bytes that a client sent or a server answered, not a publisher's. `free`: all the text in `data` that is
        no number, hash or name of this project's own, one piece a line; it is looked at first.
        """
        if len(self._found) >= _ENOUGH:
            return
        thinned = thinning.thin(data) if body else None
        if thinned is not None and self._knows(thinned):
            self._waiting.append((path, data, thinned))
            if len(self._waiting) >= _TOGETHER:
                self.settle()
        elif thinned is not None or self._suspicious(data if free is None else free, body):
            self._look(path, data, body)

    def settle(self) -> None:
        """Look at the streams that wait: at their words all together, and one by one where something is in them."""
        waiting, self._waiting = self._waiting, []
        if waiting and self._tells([thinned for _, _, thinned in waiting]):
            for path, data, thinned in waiting:
                if self._tells([thinned]):
                    self._look(path, data, True)

    def _knows(self, thinned: thinning.Thinned) -> bool:
        """Whether there is nothing in a stream but what may be in its words and its id; many streams have one frame."""
        if thinned.frame in self._frames:
            return True
        form = thinning.form(thinned.frame)  # a number by itself is no address, name or token
        if form not in self._frames and self._hints(thinned.rest, True):
            return False
        if len(self._frames) >= 256:
            self._frames.clear()
        self._frames |= {thinned.frame, form}
        return True

    def _suspicious(self, data: bytes, body: bool) -> bool:
        """Whether a closer look is worth it: false for nearly every file, and for none that holds a finding."""
        return self._hints(data, body) or (body and self._hints(thinning.joined(data), body))

    def _tells(self, streams: Sequence[thinning.Thinned]) -> bool:
        """Whether words or ids of these streams are worth a closer look, each word by itself and all joined to a text."""
        words = [one.lines for one in streams]
        text = b"\n".join([*words, *(lines.replace(b"\n", b"") for lines in words)])
        identifiers = b"".join([one.identifier + b"\n" for one in streams])
        if _DRAWN.fullmatch(identifiers) is None:
            return self._hints(text, True) or self._hints(identifiers, True)
        # Ids that engines draw by lot: no token, address or marker looks like that.
        return self._hints(text, True) or _has_any(identifiers, (*self.machine.hosts, *self.machine.users))

    def _look(self, path: str, data: bytes, body: bool) -> None:
        self._found += [found for found in self._thorough(path, data, body) if not self._lifted(found)]

    def _hints(self, text: bytes, body: bool) -> bool:
        if b"\\" in text:
            text = unescaped(text)
        if not text.translate(None, _PROSE):
            # Letters and plain punctuation: no address, path, setting or token but one of letters alone.
            return _has_any(text, self._named) or (_RUN in text.translate(_WORDS) and credentials.suspicious(text))
        digits = text.translate(_DIGITS)
        if b"0.0" in digits and _has_any(digits, _DOTTED) and _IPV4.search(text):
            return True
        if b"0000:" in text.translate(_HEX) and _IPV6.search(text):
            return True
        if b"/" in text and (b"/home/" in text or b"/root/" in text or b"/Users/" in text):
            return True
        if _has_any(text, self._words):
            return True
        if b"{%" in text or (b"-" in text and (b"GPU-" in text or b"MIG-" in text or b"ip-" in text)):
            return True
        return credentials.suspicious(text) or (not body and credentials.assigned(text))

    def _lifted(self, finding: Finding) -> bool:
        return any(
            one.kind == finding.kind and fnmatch.fnmatchcase(finding.text, one.pattern) for one in self.exceptions
        )

    def _thorough(self, path: str, data: bytes, body: bool) -> Iterator[Finding]:
        for kind, what in model_bytes(data):
            yield Finding(path, "byte 0", kind, what)
        lines = [(f"line {number}", line) for number, line in enumerate(data.split(b"\n"), 1)]
        if body:
            lines += [("the joined contents", line) for line in thinning.joined(data).split(b"\n")]
        seen = set()
        for place, raw in lines:
            line = unescaped(raw) if b"\\" in raw else raw
            for kind, text in (*self._names(line), *credentials.find(line, settings=not body)):
                if (place, kind, text) not in seen:
                    seen.add((place, kind, text))
                    yield Finding(path, place, kind, text)
        if not body:
            # An argument and its value stand on two lines of a package file.
            for match in credentials.ASSIGNED.finditer(data):
                if b"\n" in match[0]:
                    line_number = data.count(b"\n", 0, match.start(1)) + 1
                    yield Finding(path, f"line {line_number}", "credential", match[1].decode("utf-8", "replace"))

    def _names(self, line: bytes) -> Iterator[tuple[str, str]]:
        for match in _IPV4.finditer(line):
            if _private_or_public(match[0]):
                yield "ip-address", match[0].decode()
        for match in _IPV6.finditer(line):
            if _private_or_public(match[0]):
                yield "ip-address", match[0].decode()
        for kind, pattern in (("home-path", _HOME), ("host-name", _INTERNAL), ("device-id", _DEVICE)):
            for match in pattern.finditer(line):
                yield kind, match[0].decode("utf-8", "replace")
        for kind, words in (
            ("host-name", self.machine.hosts),
            ("user-name", self.machine.users),
            ("home-path", self.machine.homes),
        ):
            for word in words:
                if re.search(rb"(?<![A-Za-z0-9])" + re.escape(word) + rb"(?![A-Za-z0-9])", line):
                    yield kind, word.decode("utf-8", "replace")


def _has_any(text: bytes, words: Sequence[bytes]) -> bool:
    # A plain loop: this runs for every body, and a generator would cost more than the search.
    for word in words:  # noqa: SIM110
        if word in text:
            return True
    return False


def unescaped(text: bytes) -> bytes:
    """JSON's escapes as what they stand for, as far as they would hide where a word begins or a path goes on."""
    for escape, meaning in ((b"\\n", b" "), (b"\\t", b" "), (b"\\r", b" "), (b"\\/", b"/"), (b'\\"', b'"')):
        text = text.replace(escape, meaning)
    return text


def _private_or_public(text: bytes) -> bool:
    parts = text.split(b".")
    try:
        if len(parts) == 4:
            address: ipaddress.IPv4Address | ipaddress.IPv6Address = ipaddress.IPv4Address(bytes(int(p) for p in parts))
        else:
            address = ipaddress.ip_address(text.decode())
    except ValueError:
        return False
    if address.is_loopback or address.is_unspecified or int(address) == 0xFFFFFFFF:
        return False
    return not any(address.version == network.version and address in network for network in _DOCUMENTATION)


def model_bytes(data: bytes) -> Iterable[tuple[str, str]]:
    """Weight files by their magic, tokenizers by their shape, chat templates by their language."""
    if data.startswith(b"GGUF") or re.search(rb"GGUF[\x01-\x05]\x00\x00\x00", data):
        yield "weights", "GGUF"
    if data[8:10] == b'{"' and b'"data_offsets"' in data[:100_000]:
        yield "weights", "safetensors"
    if re.match(rb"\x80[\x02-\x05]", data) and data.endswith(b"."):
        yield "weights", "pickle"
    if data.startswith(b"PK\x03\x04") and (b"data.pkl" in data or b".npy" in data):
        yield "weights", "zipped tensors"
    if b'"merges"' in data and b'"vocab"' in data:
        yield "tokenizer", "vocabulary and merges"
    elif b'"added_tokens"' in data and b'"vocab"' in data:
        yield "tokenizer", "vocabulary"
    if b'"added_tokens_decoder"' in data:
        yield "tokenizer", "tokenizer configuration"
    if data.startswith(b"#version: 0.2"):
        yield "tokenizer", "merges"
    if data[:1] == b"\n" and b"\n\x05<unk>" in data[:64]:
        yield "tokenizer", "sentencepiece model"
    if _TEMPLATE.search(data) and any(word in data for word in _TEMPLATE_WORDS):
        yield "template", "chat template"
