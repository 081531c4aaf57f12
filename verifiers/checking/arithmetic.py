"""Exact arithmetic of the comparison protocol. No float decides anything.

The shares are those of the protocol (package format, section 4); they are fixed here and are never read from a
package.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Iterable, Optional, Sequence

from checking.plan import Number

PERCENTILE = Fraction(95, 100)
TOKEN_VOLUME = Fraction(5, 100)
MEMORY_REDUCTION = Fraction(30, 100)
LATENCY_REGRESSION = Fraction(5, 100)
MEDIAN_IMPROVEMENT = Fraction(10, 100)


def fraction(value: Number) -> Fraction:
    """The number exactly as it was written."""
    return Fraction(value)


def rank(count: int, share: Fraction) -> int:
    """Nearest rank: ceil(share * count), at least 1."""
    return max(1, -((-share.numerator * count) // share.denominator))


def nearest_rank(values: Iterable[Number], share: Fraction = PERCENTILE) -> Number:
    """The value at the nearest rank, no interpolation. Raises ValueError on no values."""
    ordered = sorted(values)
    if not ordered:
        raise ValueError("no values")
    return ordered[rank(len(ordered), share) - 1]


def median(values: Sequence[Fraction]) -> Fraction:
    """The middle value of an odd number of values."""
    if len(values) % 2 != 1:
        raise ValueError("an even number of values")
    return sorted(values)[len(values) // 2]


def relative(numerator: Number, denominator: Number) -> Optional[Fraction]:
    """numerator / denominator, or None when that is no number."""
    return Fraction(numerator) / Fraction(denominator) if denominator else None


def written(value: Optional[Fraction]) -> Optional[str]:
    """`p/q` in lowest terms; zero is `0/1`."""
    return None if value is None else "%d/%d" % (value.numerator, value.denominator)


def most_open(intervals: Iterable[Sequence[Number]]) -> int:
    """The greatest number of [start, end) intervals open at once; one that ends as another starts is closed."""
    spans = list(intervals)
    ends = sorted(end for _, end in spans)
    most = closed = 0
    for opened, start in enumerate(sorted(start for start, _ in spans), 1):
        while closed < len(ends) and ends[closed] <= start:
            closed += 1
        most = max(most, opened - closed)
    return most
