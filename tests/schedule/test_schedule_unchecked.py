"""Loops whose indices are checked by their first and last: the same results, negative indices and failures included."""
from __future__ import annotations

import numpy as np
import pytest

import caten

SPEC = ('[composite]\nname = "F"\ninputs = ["w{{int}}[2]", "h{{int}}[K]", "x{{float}}[N]"]\noutputs = ["y{{float}}[8]"]\n'
        '[implementation]\nlang = "python"\ncode = """\ny[:] = 0.0\nc = w[0]\nfor r in range(1):\n    for i in range(w[1]):\n        y[i] = x[{}]\n"""\n')
X, H = np.arange(9, dtype=np.float32), np.array([0, 1, 2, 3])


@pytest.mark.parametrize("place", ["c + i", "c - 2 * i", "i"])
def test_first_and_last_decide(place: str) -> None:
    operator = caten.compile(SPEC.format(place))
    assert "(unchecked i)" in operator.schedule
    failed = 0
    for c in (-9, -3, -1, 0, 4, 8, 9, 2**40, -2**40, 2**62):
        for count in (-5, 0, 1, 3, 8, 9):
            at = [{"c + i": c + i, "c - 2 * i": c - 2 * i, "i": i}[place] for i in range(max(count, 0))]
            if all(-9 <= k < 9 for k in at) and count <= 8:
                expected = np.zeros(8, np.float32)
                expected[:len(at)] = [X[k] for k in at]
                np.testing.assert_array_equal(operator(np.array([c, count]), H, X), expected)
            else:
                failed += 1
                with pytest.raises(caten.CatenError, match="E711"):
                    operator(np.array([c, count]), H, X)
    assert failed >= 10


def test_what_is_read_in_the_loop_alone_is_not_read_before_it() -> None:
    operator = caten.compile(SPEC.format("h[c] + i"))
    assert "unchecked" not in operator.schedule
    np.testing.assert_array_equal(operator(np.array([-2**40, 0]), H, X), np.zeros(8))
    with pytest.raises(caten.CatenError, match="E711"):
        operator(np.array([-2**40, 1]), H, X)
