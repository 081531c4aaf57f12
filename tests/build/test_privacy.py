"""Each kind of thing that must not be published is planted and found; hashes and prose are left alone."""

from __future__ import annotations

import hashlib
import json
import random

import pytest

from evidence.build import thinning
from evidence.build.privacy import Machine, Scanner
from evidence.campaign import PrivacyException

MACHINE = Machine((b"gpu-node-17",), (b"mjohansson",), (b"/srv/people/mjohansson",))
# Put together here, so that no scanner of this repository takes them for real.
TOKENS = {
    "hub": "hf" + "_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZ123456",
    "github": "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8",
    "aws": "AK" + "IA" + "IOSFODNN7ABCDEFG",
    "nvidia": "nv" + "api-" + "abcdefghij0123456789ABCDEFGHIJ",
    "model service": "sk" + "-proj-" + "abc123DEF456ghi789JKL012mno345",
    "slack": "xo" + "xb-" + "123456789012-123456789012-abcdefghijklmnop",
    "json web token": "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + "dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "private key": "-----BEGIN " + "RSA PRIVATE KEY-----",
    "url": "https://user:" + "s3cretpass@" + "example.com/",
}  # fmt: skip


def scan(
    data: bytes | str, *, body: bool = False, exceptions: tuple[PrivacyException, ...] = ()
) -> list[tuple[str, str, str]]:
    scanner = Scanner(MACHINE, exceptions)
    scanner.scan("some/file.json", data.encode() if isinstance(data, str) else data, body=body)
    return [(finding.place, finding.kind, finding.text) for finding in scanner.findings]


@pytest.mark.parametrize("body", [False, True])
@pytest.mark.parametrize(
    ("planted", "kind"),
    [
        ("10.1.2.3", "ip-address"),
        ("172.17.0.2", "ip-address"),
        ("192.168.1.20:8000", "ip-address"),
        ("169.254.169.254", "ip-address"),
        ("8.8.8.8", "ip-address"),
        ("010.001.002.003", "ip-address"),
        ("fd12:3456:789a::1", "ip-address"),
        ("fe80::1ff:fe23:4567:890a", "ip-address"),
        ("2001:4860:4860::8888", "ip-address"),
        ("gpu-node-17", "host-name"),
        ("ip-10-0-3-4.ec2.internal", "host-name"),
        ("engine.team.svc.cluster.local", "host-name"),
        ("mjohansson", "user-name"),
        ("/home/alice/models", "home-path"),
        ("/Users/alice/models", "home-path"),
        ("/root/.cache/hub", "home-path"),
        ("C:\\\\Users\\\\alice\\\\models", "home-path"),
        ("GPU-5f2c1d3a-1a2b-3c4d-5e6f-0123456789ab", "device-id"),
        ("Authorization: Bearer abcdef123456", "authorization"),
        ('{"authorization": "Basic dXNlcjpwYXNz"}', "authorization"),
        *[(token, "credential") for token in TOKENS.values()],
    ],
)
def test_a_planted_secret_is_found_with_place_and_kind(planted: str, kind: str, body: bool) -> None:
    found = scan(f'{{\n  "a": 1,\n  "b": "see {planted} there"\n}}\n', body=body)
    assert ("line 3", kind) in [(place, what) for place, what, _ in found]


@pytest.mark.parametrize(
    "planted",
    [
        '"environment": {\n  "HF_TOKEN": "abcdefgh"\n}',
        '"arguments": [\n  "--api-key",\n  "abcdefgh"\n]',
        '"arguments": ["--api-key=abcdefgh"]',
        '"password": "hunter2hunter2"',
    ],
)
def test_a_setting_whose_name_says_secret_is_found(planted: str) -> None:
    assert [kind for _, kind, _ in scan("{" + planted + "}")] == ["credential"]


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"GGUF\x03\x00\x00\x00" + bytes(100), "weights"),
        ((40).to_bytes(8, "little") + b'{"a":{"dtype":"F16","data_offsets":[0,2]}}', "weights"),
        (b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00\x8c\x01a\x94.", "weights"),
        (b"PK\x03\x04" + b"model/data.pkl", "weights"),
        (b'{"model":{"type":"BPE","vocab":{"a":0},"merges":["a b"]}}', "tokenizer"),
        (b'{"added_tokens_decoder":{"0":{"content":"<s>"}}}', "tokenizer"),
        (b"#version: 0.2\na b\n", "tokenizer"),
        (b"\n\x0e\n\x05<unk>\x15\x00\x00\x00\x00\x18\x02", "tokenizer"),
        (b"{% for message in messages %}{{ message['role'] }}{% endfor %}", "template"),
    ],
)
@pytest.mark.parametrize("body", [False, True])
def test_model_bytes_are_found(data: bytes, kind: str, body: bool) -> None:
    assert kind in [what for _, what, _ in scan(data, body=body)]


def test_an_address_cut_over_the_events_of_a_stream_is_found() -> None:
    pieces = ["The", " host", " is", " 10", ".", "20", ".", "30", ".", "40", " today", "."]
    events = [{"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]} for piece in pieces]
    for separators in ((",", ":"), (", ", ": ")):
        body = b"".join(b"data: " + json.dumps(one, separators=separators).encode() + b"\n\n" for one in events)
        assert ("the joined contents", "ip-address", "10.20.30.40") in scan(body, body=True)


@pytest.mark.parametrize(("word", "kind"), [("10.1.2.3", "ip-address"), ("ghp_" + "aB3" * 12, "credential")])
@pytest.mark.parametrize("place", [0, 1, 9, 18, 19])
def test_what_must_not_be_published_is_found_in_any_event_of_a_stream(word: str, kind: str, place: int) -> None:
    words = [f" word{n}" for n in range(20)]
    words[place] = f" {word} "
    body = "".join(
        f'data: {{"id":"chatcmpl-0a1b2c3d4e5f","choices":[{{"index":0,"delta":{{"content":"{one}"}}}}]}}\n\n'
        for one in words
    )
    scanner = Scanner(Machine())
    scanner.scan("body", body.encode(), body=True)
    assert {found.kind for found in scanner.findings} == {kind}


def told(words: list[str], **more: dict[int, str]) -> bytes:
    """A stream of these words; `more` gives fields of the event, and of the stream, at some of the places."""
    made = []
    for place, word in enumerate(words):
        created = more.get("created", {}).get(place, "1796038129")
        fields = more.get("fields", {}).get(place, "")
        made.append(
            f'data: {{"choices":[{{"index":0,"delta":{{"content":"{word}"}}}}],"created":{created},"id":"chatcmpl-0a1b2c3d4e5f"{fields}}}\n\n'
        )
    return "".join(made).encode()


LATER = {"created": dict.fromkeys(range(10, 20), "1796038130")}
TIMED = {"fields": {19: ',"timings":{"ms":79.208,"n":[36,1.5e-3]}'}}
ROLE = {"fields": {0: ',"first":true'}}


@pytest.mark.parametrize("more", [{}, LATER, TIMED, ROLE, LATER | {"fields": TIMED["fields"] | ROLE["fields"]}])
@pytest.mark.parametrize("place", [0, 8, 16])
def test_an_address_cut_where_the_events_of_a_stream_begin_to_differ_is_found(
    more: dict[str, dict[int, str]], place: int
) -> None:
    words = [" word"] * 20
    clean = told(words, **more)
    words[place : place + 4] = [" 10.2", "0", ".30", ".40"]
    body = told(words, **more)
    assert thinning.thin(clean) is not None
    scanner = Scanner(Machine())
    for number in range(3):
        scanner.scan(f"clean-{number}", clean, body=True)
    scanner.scan("cut", body, body=True)
    assert {(found.path, found.text) for found in scanner.findings} == {("cut", "10.20.30.40")}


@pytest.mark.parametrize("number", ["10.20", "79.208", "-1.5e-3", "17", "123456789012"])
def test_numbers_differ_from_stream_to_stream_and_addresses_beside_them_are_found(number: str) -> None:
    scanner = Scanner(Machine())
    for text in ("7", number, f'"10.1.2.{len(number)}"', f'"{number}.9.{number}.9"'):
        scanner.scan(text, told([" word"] * 20, fields={19: f',"timings":{text}'}), body=True)
    assert {found.path for found in scanner.findings} >= {f'"10.1.2.{len(number)}"'}
    assert not {found.path for found in scanner.findings} & {"7", number}


def test_the_id_of_a_stream_is_searched_for_names_too() -> None:
    body = b'data: {"id":"chatcmpl-beef-01","choices":[{"index":0,"delta":{"content":" w"}}]}\n\n' * 20
    clean, named = Scanner(Machine()), Scanner(Machine(hosts=(b"beef",)))
    clean.scan("body", body, body=True)
    named.scan("body", body, body=True)
    assert not clean.findings
    assert {found.kind for found in named.findings} == {"host-name"}


def test_ten_thousand_hashes_and_prose_raise_no_finding() -> None:
    chance = random.Random(7)
    lines = [hashlib.sha256(str(n).encode()).hexdigest() for n in range(10_000)]
    lines += [f'"argumentsSha256": "{chance.randbytes(32).hex()}", "completionTokens": {n}' for n in range(2_000)]
    assert scan("\n".join(lines)) == []


@pytest.mark.parametrize(
    "text",
    [
        "version 0.26.0, b10264, 2.9.1+cu129 and v1.2.3.4; pi is 3.14159; at 12:34:56.789 on 2026-10-30",
        "192.0.2.1 198.51.100.11 203.0.113.9 2001:db8::1 3fff::1 127.0.0.1 0.0.0.0 ::1 255.255.255.255",
        "x[::2] and x[1::2], std::vector, bad::cafe, 999.1.2.3, section 1.2.3.4.5",
        "the root of the problem is a task-oriented desk-top risk-free disk-based approach in /home and /root",
        "a bearer bond, token volume, secret sauce, the password is asked for, Basic training",
        "the author's authorization is needed; {placeholder}; 'token': null; tokenIdsSha256",
        'the "messages" list, {{ value }}, 100 % sure, {% not a template %}',
        '"arguments": ["--max-model-len", "4096", "--tokenizer-mode", "auto", "--api-key", "{key}"]',
        "https://example.com/path?x=1 and someone@example.com",
    ],
)
@pytest.mark.parametrize("body", [False, True])
def test_ordinary_text_raises_no_finding(text: str, body: bool) -> None:
    assert scan(text, body=body) == []


def test_an_exception_lifts_its_kind_and_pattern_and_nothing_else() -> None:
    exception = PrivacyException("10.1.*", "ip-address", "an address in a published example")
    assert scan("10.1.2.3", exceptions=(exception,)) == []
    assert scan("10.2.2.3", exceptions=(exception,)) != []
    assert scan("10.1.2.3", exceptions=(PrivacyException("10.1.*", "host-name", "wrong kind"),)) != []


def test_a_message_shows_where_and_what_but_no_credential() -> None:
    scanner = Scanner(MACHINE)
    scanner.scan("settings/x.env", f"A=1\nB={TOKENS['hub']}\n".encode())
    message = str(scanner.findings[0])
    assert message.startswith("settings/x.env, line 2: credential ")
    assert TOKENS["hub"] not in message


def test_names_of_this_machine_that_many_machines_share_are_not_looked_for() -> None:
    machine = Machine.here()
    assert b"root" not in machine.users
    assert b"localhost" not in machine.hosts


def test_one_of_many_streams_is_found_by_its_own_name() -> None:
    def stream(number: int, *words: str) -> bytes:
        head = f'data: {{"id":"chatcmpl-{number:012x}","choices":[{{"index":0,"delta":{{"content":"'
        return "".join(f'{head}{word}"}}}}]}}\n\n' for word in (*words, *[" plain"] * 20)).encode()

    scanner = Scanner(MACHINE)
    for number in range(100):
        words = {41: [" at", " 10.1", ".2", ".3"], 77: [" so", " mjohansson", " said"]}.get(
            number, [" nothing", " here"]
        )
        scanner.scan(f"body-{number}", stream(number, *words), body=True)
    assert {(found.path, found.kind, found.text) for found in scanner.findings} == {
        ("body-41", "ip-address", "10.1.2.3"),
        ("body-77", "user-name", "mjohansson"),
    }
