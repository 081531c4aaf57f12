"""Lies about the form and the shape of a document: each damages the one that its target names."""

from __future__ import annotations

import re
from typing import Any, Callable, Optional

from checking.damage import Bench, written_json

Target = Callable[[Bench], Optional[str]]
Lie = Callable[[Target, Bench], Optional[str]]


def _bytes(change: Callable[[bytes], bytes]) -> Lie:
    """A lie that rewrites the bytes of a document."""

    def damage(target: Target, bench: Bench) -> Optional[str]:
        document = target(bench)
        if document is None:
            return None
        bench.put(document, change(bench.read(document)))
        bench.reseal_sums()
        return document

    return damage


def _text(change: Callable[[str], str]) -> Lie:
    """A lie that rewrites the text of a document."""
    return _bytes(lambda data: change(data.decode()).encode("utf-8", "surrogatepass"))


def _value(change: Callable[[Any], Any]) -> Lie:
    """A lie that changes the value of a document and writes it in the right form."""

    def damage(target: Target, bench: Bench) -> Optional[str]:
        document = target(bench)
        if document is None:
            return None
        value = bench.load(document)
        change(value)
        bench.put(document, (written_json(value) + "\n").encode())
        bench.reseal_sums()
        return document

    return damage


def _version(number: str) -> Lie:
    return _text(lambda text: text.replace('"schemaVersion": 1', '"schemaVersion": ' + number))


def remove(target: Target, bench: Bench) -> Optional[str]:
    """Remove a document and its line."""
    document = target(bench)
    if document is not None:
        bench.remove(document)
        bench.reseal_sums()
    return document


trailing_comma = _text(lambda text: text.rstrip()[:-1].rstrip() + ",\n}\n")
second_document = _text(lambda text: text + text)
empty = _text(lambda text: "")
key_twice = _text(lambda text: text.replace('"schemaVersion": 1', '"schemaVersion": 1,\n  "schemaVersion": 1', 1))
not_a_number = _version("NaN")
endless_number = _version("1e400")
huge_integer = _version("18446744073709551616")
long_number = _version("1" * 5000)
deep_lists = _version("[" * 100000 + "]" * 100000)
byte_order_mark = _bytes(lambda data: b"\xef\xbb\xbf" + data)
other_encoding = _bytes(lambda data: data.decode().encode("utf-16"))
broken_byte = _bytes(lambda data: data.replace(b'"schemaVersion"', b'"schema\xff"', 1))
half_a_pair = _text(lambda text: text.replace('"schemaVersion"', '"\\ud800"', 1))
no_final_newline = _text(lambda text: text.rstrip("\n"))
wider_indent = _text(lambda text: text.replace("\n  ", "\n   "))
one_line = _text(lambda text: re.sub(r"\n *", "", text) + "\n")
drop_key = _value(lambda value: value.pop("schemaVersion"))
further_key = _value(lambda value: value.update(zzUnknown=True))
version_text = _value(lambda value: value.update(schemaVersion="1"))
version_two = _value(lambda value: value.update(schemaVersion=2))
