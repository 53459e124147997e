"""A nest changes an array that begins as a copy of another one which it needs, too: the two have memory of their own."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import caten

SPEC = '''
[composite]
name = "Copies"
inputs = ["x{double}[N]"]
outputs = ["y{double}[N]", "z{double}[N]"]

[implementation]
lang = "python"
code = """
a = np.copy(x)
b = np.copy(x)
left = np.int64(N)
for stage in range(41):
    if left > 1:
        for k in range(left):
            STATEMENT
        left = left // 2
return a, b
"""
'''


def wanted(x: np.ndarray, change: Any) -> tuple[np.ndarray, np.ndarray]:
    a, b = x.copy(), x.copy()
    left = len(x)
    while left > 1:
        for k in range(left):
            change(a, b, k)
        left //= 2
    return a, b


def one(a: np.ndarray, b: np.ndarray, k: int) -> None:
    b[k] = a[k] + a[0]


def both(a: np.ndarray, b: np.ndarray, k: int) -> None:
    b[k] = a[k] + a[0]
    a[0] += 1


def neither_reads(a: np.ndarray, b: np.ndarray, k: int) -> None:
    a[k] += k
    b[k] -= 2 * k


@pytest.mark.slow
@pytest.mark.slice(2)
@pytest.mark.parametrize(("statements", "change"), [
    ("b[k] = a[k] + a[0]", one), ("b[k] = a[k] + a[0]\n            a[0] += 1", both), ("a[k] += np.float64(k)\n            b[k] -= np.float64(2 * k)", neither_reads)])
@pytest.mark.parametrize("opt", [0, 1, 2])
def test_two_copies_of_one_array(statements: str, change: Any, opt: int, tool: Any) -> None:
    tool("gcc")
    x = np.array([0.5, -1.0, 2.0, 4.0, 0.25])
    made = caten.compile(SPEC.replace("STATEMENT", statements), runtime="gcc", opt=opt)(x)
    assert [each.tolist() for each in made] == [each.tolist() for each in wanted(x, change)]
