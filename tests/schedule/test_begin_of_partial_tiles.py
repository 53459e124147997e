"""Sums that start from their first term: only where the tiles that do so cover all that is set to zero before."""
from __future__ import annotations

import numpy as np
import pytest

import caten

BODY = """[composite]
name = "Product"
inputs = ["A{float}[3 N]", "B{float}[3 8]"]
outputs = ["C{float}[8 N]"]
[implementation]
code = \"\"\"
(dotimes (i 8) (dotimes (j N) (setf (aref C i j) 0.0)))
(dotimes (i 8) (dotimes (j N) (dotimes (p 3) (incf (aref C i j) (* (aref A p j) (aref B p i))))))
\"\"\"
"""


@pytest.mark.slow
@pytest.mark.parametrize("march", ["x86_64_v3", "native"])
def test_a_version_for_sizes_up_to_a_tile_sets_what_is_no_tile(march: str) -> None:
    """For N ≤ 6 a whole tile is N = 6 alone; inside its loop that is known, and proves nothing about N = 5."""
    operator = caten.compile(BODY, config={} if march == "native" else {"MARCH": march})
    draw = np.random.default_rng(0)
    for n in range(1, 20):
        a, b = draw.standard_normal((3, n), dtype=np.float32), draw.standard_normal((3, 8), dtype=np.float32)
        c = np.full((8, n), np.nan, np.float32)
        np.testing.assert_allclose(operator(a, b, c), (a.T @ b).T, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_a_greatest_number_below_zero_is_not_the_zero_of_a_masked_lane() -> None:
    operator = caten.compile(BODY.split("[impl")[0].replace('"A{float}[3 N]", "B{float}[3 8]"', '"X{float}[M N]"').replace("C{float}[8 N]", "Y{float}[M]") + """
[implementation]
lang = "python"
code = "return np.max(X, axis=1)"
""")
    for m in (1, 3, 9):
        for n in (1, 5, 8, 13, 31, 33, 70):
            x = -1 - np.random.default_rng(n).random((m, n), dtype=np.float32)
            np.testing.assert_array_equal(operator(x), x.max(1))
