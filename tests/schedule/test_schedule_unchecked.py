"""Loops whose indices are checked by their first and last: the same results, negative indices and failures included."""
from __future__ import annotations

import numpy as np
import pytest

import caten

SPEC = ('[composite]\nname = "F"\ninputs = ["w{{int}}[2]", "h{{int}}[K]", "x{{float}}[N]"]\noutputs = ["y{{float}}[8]"]\n'
        '[implementation]\nlang = "python"\ncode = """\ny[:] = 0.0\nc = w[0]\nfor r in range(1):\n    for i in range(w[1]):\n        y[i] = x[{}]\n"""\n')
X, H = np.arange(9, dtype=np.float32), np.array([0, 1, 2, 3])


@pytest.mark.slow
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


@pytest.mark.slow
def test_what_is_read_in_the_loop_alone_is_not_read_before_it() -> None:
    operator = caten.compile(SPEC.format("h[c] + i"))
    assert "unchecked" not in operator.schedule
    np.testing.assert_array_equal(operator(np.array([-2**40, 0]), H, X), np.zeros(8))
    with pytest.raises(caten.CatenError, match="E711"):
        operator(np.array([-2**40, 1]), H, X)


BUTTERFLIES = ('[composite]\nname = "Walsh"\ninputs = ["w{int}[3]", "x{float}[N]"]\noutputs = ["y{float}[N]"]\n'
               '[implementation]\nlang = "python"\ncode = """\nz = np.zeros(N, np.float32)\ny[:] = x\ndone = np.int64(w[0])\nfor stage in range(w[1]):\n'
               '    apart = N // 2\n    for k in range(w[2]):\n        for q in range(done):\n            at, to = q + k * done, q + 2 * k * done\n'
               '            z[to] = y[at] + y[at + apart]\n            z[to + done] = y[at] - y[at + apart]\n    y[:] = z\n    done = 2 * done\n"""\n')


@pytest.mark.slow
def test_indices_at_a_distance_from_each_other_are_vectors() -> None:
    """Where two indices differ by the number of iterations, no two iterations store the same element, whatever the products in them are."""
    operator = caten.compile(BUTTERFLIES, config={"MARCH": "x86_64"})
    assert "(vectorize quvi)" in operator.schedule
    for width in (1, 4, 8, 12, 64):
        for parts in range(4):
            x = np.arange(2 * width * parts, dtype=np.float32) % 7
            top, low = x.reshape(2, parts, width)
            np.testing.assert_array_equal(operator(np.array([width, 1, parts]), x), np.stack([top + low, top - low], 1).ravel())


@pytest.mark.slow
@pytest.mark.parametrize("w", [(5, 1, 2), (4, 1, 3), (2**31 - 1, 1, 1), (2**31 - 1, 1, 2**31 - 1), (4, 2, 2)])
def test_a_butterfly_that_leaves_its_array_fails(w: tuple[int, ...]) -> None:
    with pytest.raises(caten.CatenError, match="E711"):
        caten.compile(BUTTERFLIES)(np.array(w), np.zeros(16, np.float32))


@pytest.mark.slow
@pytest.mark.slice(2)
@pytest.mark.parametrize("w", [(-1, 5, 2), (0, 40, 2), (2**31 - 1, 1, 0), (-2**31, 1, 2**31 - 1)])
def test_a_butterfly_without_iterations_reads_nothing(w: tuple[int, ...]) -> None:
    expected = np.zeros(16) if w[1] else np.ones(16)
    np.testing.assert_array_equal(caten.compile(BUTTERFLIES)(np.array(w), np.ones(16, np.float32)), expected)
