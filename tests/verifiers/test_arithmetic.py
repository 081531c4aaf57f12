"""Nearest rank against Fraction and numpy, ratios, and what is open at once."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from checking.arithmetic import median, most_open, nearest_rank, rank, written

QUANTILES = [Fraction(n, 100) for n in (1, 5, 10, 25, 50, 75, 90, 95, 99)] + [Fraction(999, 1000), Fraction(1)]


@pytest.mark.parametrize("share", QUANTILES)
def test_rank_is_the_least_that_reaches_the_share(share: Fraction) -> None:
    for count in range(1, 1001):
        least = next(
            number for number in range(max(1, int(share * count) - 1), count + 1) if Fraction(number, count) >= share
        )
        assert rank(count, share) == least


def test_agrees_with_numpy_where_floats_are_exact() -> None:
    for count in range(1, 200):
        values = list(range(count))
        assert nearest_rank(values, Fraction(1, 2)) == np.quantile(values, 0.5, method="inverted_cdf")


def test_p95_of_24_is_the_23rd_and_of_1_to_100_is_95() -> None:
    assert nearest_rank(range(1, 25)) == 23
    assert nearest_rank(range(1, 101)) == 95
    with pytest.raises(ValueError):
        nearest_rank([])


def test_touching_intervals_are_not_open_together() -> None:
    assert most_open([(0, 1), (1, 2), (1, 3)]) == 2
    assert most_open([]) == 0
    assert most_open([(0, 0), (1, 1)]) == 0
    assert most_open([(0, 4), (1, 1), (2, 3), (2, 5), (3, 4)]) == 3


def test_median_and_words() -> None:
    assert median([Fraction(3), Fraction(1), Fraction(2)]) == 2
    assert (written(Fraction(0)), written(Fraction(-2, 4)), written(None)) == ("0/1", "-1/2", None)
