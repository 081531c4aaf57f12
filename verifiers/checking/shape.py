"""Shapes of package documents as small tables, and what in a value does not fit one.

A shape is a function from (value, pointer) to the faults found: (code, JSON pointer, found, expected).
Codes: schema-type, schema-value, schema-missing-key, schema-unknown-key.
"""

from __future__ import annotations

import re
from decimal import Decimal
from itertools import chain
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

from checking.reading import shown

Fault = Tuple[str, str, str, str]
_DICT = frozenset((dict,))


class Shape:
    """What a value must look like. `fits(value)` is quick; `explain(value, pointer)` says what does not fit."""

    expected = "a value"

    def fits(self, value: Any) -> bool:
        """Whether the value has this shape."""
        raise NotImplementedError

    def all_fit(self, values: Sequence[Any]) -> bool:
        """Whether every one of the values has this shape: the same as to ask for each, but quicker for many."""
        return all(map(self.fits, values))

    def explain(self, value: Any, pointer: str) -> Iterator[Fault]:
        """The faults of a value that does not fit."""
        yield ("schema-value", pointer, shown(value), self.expected)


class Plain(Shape):
    """A scalar: its type, and a test beyond it; `quick` is true of many values only when the test is of each.

    `text` is a pattern of JSON texts, plain and without an escape, of values that all fit; other values may fit as well.
    """

    def __init__(
        self,
        kinds: Tuple[type, ...],
        expected: str,
        test: Optional[Callable[[Any], Any]] = None,
        quick: Optional[Callable[[Iterable[Any]], bool]] = None,
        text: Optional[str] = None,
    ) -> None:
        self.kinds = frozenset(kinds)
        self.expected = expected
        self.test = test
        self.quick = quick
        self.text = text
        self._once = kinds in ((str,), (int,))  # equal values are then alike in every way

    def fits(self, value: Any) -> bool:
        return type(value) in self.kinds and (self.test is None or bool(self.test(value)))

    def all_fit(self, values: Sequence[Any]) -> bool:
        if not self.kinds.issuperset(map(type, values)):
            return False
        if self.test is None or (self.quick is not None and self.quick(values)):
            return True
        return all(map(self.test, set(values) if self._once else values))

    def explain(self, value: Any, pointer: str) -> Iterator[Fault]:
        code = "schema-value" if type(value) in self.kinds else "schema-type"
        yield (code, pointer, shown(value), self.expected)


class OneOf(Shape):
    """One of fixed strings or numbers (None too where it is named)."""

    def __init__(self, *values: Union[str, int, None]) -> None:
        self.values = frozenset(values)
        self.kinds = frozenset(map(type, values))
        self.expected = " or ".join(shown(value) for value in values)

    def fits(self, value: Any) -> bool:
        return type(value) in self.kinds and value in self.values

    def all_fit(self, values: Sequence[Any]) -> bool:
        return self.kinds.issuperset(map(type, values)) and self.values.issuperset(values)

    def explain(self, value: Any, pointer: str) -> Iterator[Fault]:
        code = "schema-value" if type(value) in self.kinds else "schema-type"
        yield (code, pointer, shown(value), self.expected)


class Maybe(Shape):
    """The shape, or null."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.expected = shape.expected + " or null"

    def fits(self, value: Any) -> bool:
        return value is None or self.shape.fits(value)

    def all_fit(self, values: Sequence[Any]) -> bool:
        return self.shape.all_fit([value for value in values if value is not None])

    def explain(self, value: Any, pointer: str) -> Iterator[Fault]:
        return self.shape.explain(value, pointer)


class ListOf(Shape):
    """A list of one shape, with bounds on its length; `unique` for lists of scalars without repeats."""

    def __init__(
        self, shape: Shape, length: Optional[int] = None, least: int = 0, most: int = 10**6, unique: bool = False
    ) -> None:
        self.shape = shape
        self.least = least if length is None else length
        self.most = most if length is None else length
        self.unique = unique
        self.expected = "a list" if length is None else "a list of %d" % length

    def fits(self, value: Any) -> bool:
        return self.all_fit((value,))

    def all_fit(self, values: Sequence[Any]) -> bool:
        for value in values:
            if type(value) is not list or not self.least <= len(value) <= self.most:
                return False
        if not self.shape.all_fit(list(chain.from_iterable(values))):
            return False
        return not self.unique or all(len(set(value)) == len(value) for value in values)

    def explain(self, value: Any, pointer: str) -> Iterator[Fault]:
        if type(value) is not list:
            yield ("schema-type", pointer, shown(value), self.expected)
        elif not self.least <= len(value) <= self.most:
            expected = "%d" % self.least if self.least == self.most else "%d to %d" % (self.least, self.most)
            yield ("schema-value", pointer, "%d entries" % len(value), expected)
        else:
            wrong = False
            for number, item in enumerate(value):
                if not self.shape.fits(item):
                    wrong = True
                    yield from self.shape.explain(item, "%s/%d" % (pointer, number))
            if not wrong:
                yield ("schema-value", pointer, "an entry twice", "each entry once")


class MapOf(Shape):
    """An object with free keys."""

    expected = "an object"

    def __init__(self, key: Shape, shape: Shape) -> None:
        self.key = key
        self.shape = shape

    def fits(self, value: Any) -> bool:
        return self.all_fit((value,))

    def all_fit(self, values: Sequence[Any]) -> bool:
        return (
            _DICT.issuperset(map(type, values))
            and self.key.all_fit(list(chain.from_iterable(values)))
            and self.shape.all_fit(list(chain.from_iterable(map(dict.values, values))))
        )

    def explain(self, value: Any, pointer: str) -> Iterator[Fault]:
        if type(value) is not dict:
            yield ("schema-type", pointer, shown(value), self.expected)
            return
        for key, item in value.items():
            if not self.key.fits(key):
                yield ("schema-unknown-key", _step(pointer, key), "key " + shown(key), self.key.expected)
            elif not self.shape.fits(item):
                yield from self.shape.explain(item, _step(pointer, key))


class Keys(Shape):
    """An object with exactly the named keys, all required."""

    expected = "an object"

    def __init__(self, **fields: Shape) -> None:
        self.fields: Dict[str, Shape] = fields
        self._count = frozenset((len(fields),))

    def fits(self, value: Any) -> bool:
        return self.all_fit((value,))

    def all_fit(self, values: Sequence[Any]) -> bool:
        if not _DICT.issuperset(map(type, values)) or not self._count.issuperset(map(len, values)):
            return False
        try:
            return all(shape.all_fit([value[key] for value in values]) for key, shape in self.fields.items())
        except KeyError:
            return False

    def explain(self, value: Any, pointer: str) -> Iterator[Fault]:
        if type(value) is not dict:
            yield ("schema-type", pointer, shown(value), self.expected)
            return
        for key in sorted(self.fields):
            if key not in value:
                yield ("schema-missing-key", _step(pointer, key), "nothing", self.fields[key].expected)
        for key in sorted(value):
            if key not in self.fields:
                yield ("schema-unknown-key", _step(pointer, key), "key " + shown(key), "no such key")
            elif not self.fields[key].fits(value[key]):
                yield from self.fields[key].explain(value[key], _step(pointer, key))


class Open(Shape):
    """Any object at all: for files that keep the form of others."""

    expected = "an object"

    def fits(self, value: Any) -> bool:
        return type(value) is dict

    def explain(self, value: Any, pointer: str) -> Iterator[Fault]:
        yield ("schema-type", pointer, shown(value), self.expected)


def _step(pointer: str, key: str) -> str:
    return "%s/%s" % (pointer, key.replace("~", "~0").replace("/", "~1"))


def faults(value: Any, shape: Shape) -> List[Fault]:
    """What in the value does not fit the shape; nothing when all does."""
    return [] if shape.fits(value) else list(shape.explain(value, ""))


def _seconds(value: Union[int, Decimal]) -> bool:
    if type(value) is int:
        return 0 <= value < 10**9
    return 0 <= value < 10**9 and value.as_tuple().exponent >= -9  # type: ignore[operator, union-attr]


_PLAINLY = re.compile(r"(?:[0-9]{1,9}(?:\.[0-9]{1,9})? )*\Z")


def _all_seconds(values: Iterable[Union[int, Decimal]]) -> bool:
    return _PLAINLY.match(" ".join(map(str, values)) + " ") is not None


_CLASS = re.compile(r"\[(?:[A-Za-z0-9_:/+. ]|-)+\]")
_SIMPLE = re.compile(r"(?:[A-Za-z0-9_:/ -]|\\\.|[()|?*+]|\?:|\{[0-9]+(?:,[0-9]*)?\})*")


def matching(pattern: str, expected: str) -> Plain:
    """A string that matches a pattern from end to end."""
    simple = _SIMPLE.fullmatch(_CLASS.sub("", pattern))  # then nothing but plain characters can match
    text = '"(?:%s)"' % pattern if simple else None
    return Plain((str,), expected, re.compile(pattern + r"\Z").match, text=text)


PLAIN = r"[ !#-\[\]-~]"
"""A character that stands for itself in a JSON string."""


def at_most(length: int) -> Plain:
    """A string of at most so many characters."""
    return Plain(
        (str,),
        "at most %d characters" % length,
        lambda value: len(value) <= length,
        text='"%s{0,%d}"' % (PLAIN, length),
    )


TEXT = Plain((str,), "a string", text='"%s*"' % PLAIN)
LINE = Plain((str,), "a non-empty string", lambda value: bool(value), text='"%s+"' % PLAIN)
BOOL = Plain((bool,), "true or false", text="(?:true|false)")
COUNT = Plain((int,), "an integer, 0 or more", lambda value: value >= 0, text="(?:0|[1-9][0-9]{0,14})")
NATURAL = Plain((int,), "an integer, 1 or more", lambda value: value >= 1, text="[1-9][0-9]{0,14}")
INTEGER = Plain((int,), "an integer")
NUMBER = Plain((int, Decimal), "a number")
SECONDS = Plain(
    (int, Decimal), "seconds, 0 or more, at most nine decimals", _seconds, _all_seconds,
    text=r"(?:0|[1-9][0-9]{0,8})(?:\.[0-9]{1,9})?",
)  # fmt: skip
LAG = Plain((int, Decimal), "seconds, at most nine decimals", lambda value: _seconds(abs(value)))
HASH = matching(r"[0-9a-f]{64}", "64 lower-case hex digits")
REVISION = matching(r"[0-9a-f]{40}", "40 lower-case hex digits")
ID = matching(r"[a-z0-9][a-z0-9.-]{0,62}", "an id")
INSTANT = matching(
    r"20[0-9]{2}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{6}Z",
    "an instant in UTC with microseconds",
)
RELATION = matching(r"-?(?:0|[1-9][0-9]*)/[1-9][0-9]*", "a fraction p/q")
STATUS = Plain((int,), "an HTTP status", lambda value: 100 <= value <= 599, text="[1-5][0-9]{2}")
VERSION = OneOf(1)
