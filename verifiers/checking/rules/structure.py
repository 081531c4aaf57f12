"""The form and the shape of documents: codes that reading itself gives, with the mutations that trip them.

The rows hold nothing on their own: `read_documents` judges every document before the checks of its family.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Callable, Iterator, Optional, Tuple

from checking.check import Check, Complaint, Family, Mutation
from checking.later import Later

if TYPE_CHECKING:
    from checking.damage import Bench

    Target = Callable[[Bench], Optional[str]]

lies = Later("checking.rules.structure_lies")


def _hold(subject: Any) -> Iterator[Complaint]:
    return iter(())


def rows(target: Target, more: Tuple[Mutation, ...] = ()) -> Tuple[Check, ...]:
    """The rows of form and shape, damaged at one document; `more` are further mutations of schema-value."""

    def lie(name: str, damage: Callable[..., Optional[str]]) -> Mutation:
        return Mutation(name, partial(damage, target), resealed=False)

    return (
        Check(
            "file-missing",
            "every document that must be there is there",
            _hold,
            (lie("remove a document and its line", lies.remove),),
        ),
        Check(
            "json-syntax",
            "a document is one JSON document",
            _hold,
            (
                lie("end a list with a comma", lies.trailing_comma),
                lie("append a second document", lies.second_document),
                lie("empty a document", lies.empty),
            ),
        ),
        Check(
            "json-duplicate-key",
            "no key stands twice in an object",
            _hold,
            (lie("write a key twice", lies.key_twice),),
        ),
        Check(
            "json-number",
            "numbers are finite, integers within +-(2^53-1)",
            _hold,
            (
                lie("write NaN", lies.not_a_number),
                lie("write an endless number", lies.endless_number),
                lie("write 2^64", lies.huge_integer),
                lie("write a number of 5,000 digits", lies.long_number),
            ),
        ),
        Check(
            "json-depth",
            "nesting is at most 64",
            _hold,
            (lie("nest 100,000 lists", lies.deep_lists),),
        ),
        Check(
            "json-encoding",
            "a document is UTF-8 without a byte order mark, of whole characters",
            _hold,
            (
                lie("put a byte order mark before a document", lies.byte_order_mark),
                lie("write UTF-16", lies.other_encoding),
                lie("write a byte that is no UTF-8", lies.broken_byte),
                lie("write half a surrogate pair", lies.half_a_pair),
            ),
        ),
        Check(
            "json-form",
            "keys are sorted, two spaces a level, one final newline",
            _hold,
            (
                lie("drop the final newline of a document", lies.no_final_newline),
                lie("indent by one space more", lies.wider_indent),
                lie("write it in one line", lies.one_line),
            ),
        ),
        Check("schema-missing-key", "every key is there", _hold, (lie("leave out a key", lies.drop_key),)),
        Check("schema-unknown-key", "no key is unknown", _hold, (lie("add a key", lies.further_key),)),
        Check(
            "schema-type",
            "every value is of its type",
            _hold,
            (lie("write a number as a string", lies.version_text),),
        ),
        Check(
            "schema-value",
            "every value is in its range",
            _hold,
            (lie("write another schema version", lies.version_two), *more),
        ),
    )


def family(target: Target, more: Tuple[Mutation, ...] = ()) -> Family:
    """The rows as a family without a subject."""
    return Family(kind="package", find=lambda view: [], open=lambda scope: None, checks=rows(target, more))


def always(name: str) -> Target:
    """The document itself."""
    return lambda bench: name if bench.has(name) else None
