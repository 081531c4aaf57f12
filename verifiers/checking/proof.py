"""Long tables proved by their text alone: strict, in the package form and of their shape, before anything is parsed.

A shape of which most of a document is one list of objects (samples, receipts) is spelled as patterns over the text. What
they accept is JSON with every key once and in order, plain characters without escapes and numbers that need no second
look, so that a quick parser may read it and nobody has to ask for its form or shape again. What they do not accept may be
right all the same: it is read in full. `tests/verifiers/test_proof.py` holds the one way to the other.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any, Callable, Optional

from checking.reading import decode_checked
from checking.shape import Keys, ListOf, MapOf, Maybe, OneOf, Plain, Shape

WORTH = 8192
"""So many bytes are read quicker with a proof, patterns to be compiled and all."""


class Unspelled(Exception):
    """A shape that has no pattern here."""


def read_proved(data: bytes, shape: Shape) -> Any:
    """The value of a long table that its text proves to be right; None where it has to be read in full."""
    if len(data) < WORTH or not data.isascii():
        return None
    prove = prover(shape)
    text = data.decode("ascii")
    return decode_checked(text) if prove is not None and prove(text) else None


@lru_cache(maxsize=None)
def prover(shape: Shape) -> Optional[Callable[[str], bool]]:
    """What tells of a text that it is a right table of this shape; None where the shape is no table or has no pattern."""
    lists = [(key, one) for key, one in getattr(shape, "fields", {}).items() if isinstance(one, ListOf)]
    if not isinstance(shape, Keys) or len(lists) != 1 or lists[0][1].unique:
        return None
    rows, listed = lists[0]
    keys = sorted(shape.fields)
    place = keys.index(rows)
    try:
        lines = {key: '  "%s": %s' % (key, spell(shape.fields[key], "  ")) for key in keys if key != rows}
        row = re.compile("    " + spell(listed.shape, "    ")).match
    except Unspelled:
        return None
    head = re.compile(r"\{" + "\n" + "".join([lines[key] + ",\n" for key in keys[:place]])).match
    start = '  "%s": [\n' % rows
    tail = re.compile(",\n".join([r"  \]", *[lines[key] for key in keys[place + 1 :]]]) + "\n\\}\n").fullmatch

    def prove(text: str) -> bool:
        found = head(text)
        if found is None or not text.startswith(start, found.end()):
            return False
        at, count = found.end() + len(start), 0
        while True:
            found = row(text, at)
            if found is None:
                return False
            at, count = found.end(), count + 1
            if not text.startswith(",\n", at):
                break
            at += 2
        right = text.startswith("\n", at) and tail(text, at + 1) is not None
        return right and listed.least <= count <= listed.most

    return prove


def spell(shape: Shape, indent: str) -> str:
    """A pattern of texts of values that fit, each in a line of this indentation. Raises Unspelled."""
    if isinstance(shape, Plain) and shape.text is not None:
        return shape.text
    if isinstance(shape, Maybe):
        return "(?:null|%s)" % spell(shape.shape, indent)
    if isinstance(shape, OneOf):
        return "(?:%s)" % "|".join(sorted(re.escape(json.dumps(value)) for value in shape.values))
    end = "\n" + indent + r"\}"
    if isinstance(shape, Keys):
        lines = ['%s  "%s": %s' % (indent, key, spell(one, indent + "  ")) for key, one in sorted(shape.fields.items())]
        return r"\{" + "\n" + ",\n".join(lines) + end
    if isinstance(shape, MapOf) and isinstance(
        shape.key, OneOf
    ):  # each key or none, in order, a comma behind all but the last
        value = spell(shape.shape, indent + "  ")
        lines = [
            '(?:%s  "%s": %s(?:,\n|(?=%s)))?' % (indent, re.escape(str(key)), value, end)
            for key in sorted(map(str, shape.key.values))
        ]
        return r"(?:\{\}|\{" + "\n(?!\n)" + "".join(lines) + "(?<!,\n)" + end + ")"
    raise Unspelled(shape.expected)
