"""The form and the shape of documents: codes that reading itself gives, with the mutations that trip them.

The rows hold nothing on their own: `read_documents` judges every document before the checks of its family.
"""

from __future__ import annotations

import re
from typing import Any, Callable, Iterator, Optional, Tuple

from checking.check import Check, Complaint, Family, Mutation
from checking.damage import Bench

Target = Callable[[Bench], Optional[str]]


def _hold(subject: Any) -> Iterator[Complaint]:
    return iter(())


def _text(name: str, target: Target, change: Callable[[str], str]) -> Mutation:
    """A mutation that rewrites the text of a document."""

    def damage(bench: Bench) -> Optional[str]:
        document = target(bench)
        if document is None:
            return None
        bench.put(document, change(bench.read(document).decode()).encode("utf-8", "surrogatepass"))
        bench.reseal_sums()
        return document

    return Mutation(name, damage, resealed=False)


def _bytes(name: str, target: Target, change: Callable[[bytes], bytes]) -> Mutation:
    def damage(bench: Bench) -> Optional[str]:
        document = target(bench)
        if document is None:
            return None
        bench.put(document, change(bench.read(document)))
        bench.reseal_sums()
        return document

    return Mutation(name, damage, resealed=False)


def _value(name: str, target: Target, change: Callable[[Any], Any]) -> Mutation:
    """A mutation that changes the value of a document and writes it in the right form, indices made true."""

    def damage(bench: Bench) -> Optional[str]:
        document = target(bench)
        if document is None:
            return None
        value = bench.load(document)
        change(value)
        bench.put(document, written(value))
        bench.reseal_sums()
        return document

    return Mutation(name, damage, resealed=False)


def written(value: Any) -> bytes:
    """A value in the form of package JSON."""
    from checking.damage import written_json

    return (written_json(value) + "\n").encode()


def _version(number: str) -> Callable[[str], str]:
    return lambda text: text.replace('"schemaVersion": 1', '"schemaVersion": ' + number)


def _drop_version(value: Any) -> None:
    del value["schemaVersion"]


def _add_key(value: Any) -> None:
    value["zzUnknown"] = True


def _version_text(value: Any) -> None:
    value["schemaVersion"] = "1"


def _version_two(value: Any) -> None:
    value["schemaVersion"] = 2


def _remove(target: Target) -> Mutation:
    def damage(bench: Bench) -> Optional[str]:
        document = target(bench)
        if document is not None:
            bench.remove(document)
            bench.reseal_sums()
        return document

    return Mutation("remove a document and its line", damage, resealed=False)


def rows(target: Target, more: Tuple[Mutation, ...] = ()) -> Tuple[Check, ...]:
    """The rows of form and shape, damaged at one document; `more` are further mutations of schema-value."""
    return (
        Check("file-missing", "every document that must be there is there", _hold, (_remove(target),)),
        Check(
            "json-syntax",
            "a document is one JSON document",
            _hold,
            (
                _text("end a list with a comma", target, lambda text: text.rstrip()[:-1].rstrip() + ",\n}\n"),
                _text("append a second document", target, lambda text: text + text),
                _text("empty a document", target, lambda text: ""),
            ),
        ),
        Check(
            "json-duplicate-key",
            "no key stands twice in an object",
            _hold,
            (
                _text(
                    "write a key twice",
                    target,
                    lambda text: text.replace('"schemaVersion": 1', '"schemaVersion": 1,\n  "schemaVersion": 1', 1),
                ),
            ),
        ),
        Check(
            "json-number",
            "numbers are finite, integers within +-(2^53-1)",
            _hold,
            (
                _text("write NaN", target, _version("NaN")),
                _text("write an endless number", target, _version("1e400")),
                _text("write 2^64", target, _version("18446744073709551616")),
                _text("write a number of 5,000 digits", target, _version("1" * 5000)),
            ),
        ),
        Check(
            "json-depth",
            "nesting is at most 64",
            _hold,
            (_text("nest 100,000 lists", target, _version("[" * 100000 + "]" * 100000)),),
        ),
        Check(
            "json-encoding",
            "a document is UTF-8 without a byte order mark, of whole characters",
            _hold,
            (
                _bytes("put a byte order mark before a document", target, lambda data: b"\xef\xbb\xbf" + data),
                _bytes("write UTF-16", target, lambda data: data.decode().encode("utf-16")),
                _bytes(
                    "write a byte that is no UTF-8",
                    target,
                    lambda data: data.replace(b'"schemaVersion"', b'"schema\xff"', 1),
                ),
                _text(
                    "write half a surrogate pair", target, lambda text: text.replace('"schemaVersion"', '"\\ud800"', 1)
                ),
            ),
        ),
        Check(
            "json-form",
            "keys are sorted, two spaces a level, one final newline",
            _hold,
            (
                _text("drop the final newline of a document", target, lambda text: text.rstrip("\n")),
                _text("indent by one space more", target, lambda text: text.replace("\n  ", "\n   ")),
                _text("write it in one line", target, lambda text: re.sub(r"\n *", "", text) + "\n"),
            ),
        ),
        Check("schema-missing-key", "every key is there", _hold, (_value("leave out a key", target, _drop_version),)),
        Check("schema-unknown-key", "no key is unknown", _hold, (_value("add a key", target, _add_key),)),
        Check(
            "schema-type",
            "every value is of its type",
            _hold,
            (_value("write a number as a string", target, _version_text),),
        ),
        Check(
            "schema-value",
            "every value is in its range",
            _hold,
            (_value("write another schema version", target, _version_two), *more),
        ),
    )


def family(target: Target, more: Tuple[Mutation, ...] = ()) -> Family:
    """The rows as a family without a subject."""
    return Family(kind="package", find=lambda view: [], open=lambda scope: None, checks=rows(target, more))


def always(name: str) -> Target:
    """The document itself."""
    return lambda bench: name if bench.has(name) else None


def first_below(parent: str, name: str) -> Target:
    """A document of the first folder below a parent."""
    return lambda bench: next(
        ("%s/%s" % (folder, name) for folder in bench.folders(parent) if bench.has("%s/%s" % (folder, name))), None
    )
