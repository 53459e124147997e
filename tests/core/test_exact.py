"""Sums in two parts lose nothing."""
from __future__ import annotations

import random
from fractions import Fraction

from caten.mathematics.double_double import fast_two_sum, two_sum


def pairs() -> list[tuple[float, float]]:
    rng = random.Random(1)
    return [(rng.uniform(-1, 1) * 2.0**rng.randrange(-60, 60), rng.uniform(-1, 1) * 2.0**rng.randrange(-60, 60)) for _ in range(500)]


def test_two_sum_of_any_two_numbers_is_exact() -> None:
    for x, y in pairs():
        total, error = two_sum(x, y)
        assert total == x + y
        assert Fraction(total) + Fraction(error) == Fraction(x) + Fraction(y)


def test_fast_two_sum_is_exact_where_the_first_is_the_greater() -> None:
    for a, b in pairs():
        x, y = (a, b) if abs(a) >= abs(b) else (b, a)
        total, error = fast_two_sum(x, y)
        assert Fraction(total) + Fraction(error) == Fraction(x) + Fraction(y)
    assert fast_two_sum(2.0**-60, 1.0)[1] == 0                   # in the other order the error is lost
