"""Values that are kept where a result will be stored: no reader comes after the element was overwritten."""
from __future__ import annotations

import numpy as np
import pytest

import caten

PROGRAM = """(tensor F (outputs Y)
  (buffer X f64 (M N) (0 1) in) (buffer Y f64 (M N) (0 1) out) (size M) (size N) (opt {opt})
  (define v0 (compute f64 ((i M) (j N)) (sigmoid (read X i j))))
  (define v1 (reduce f64 ((i M) (j N)) ((p N)) add true (* (read v0 i {at}) (read X i j))))
  (define v2 (compute f64 ((i M) (j N)) (+ (read v1 i j) (* (read v0 i j) (read v0 i j)))))
  (output Y v2))"""


@pytest.mark.slow
@pytest.mark.parametrize("runtime", ["gcc", "numpy"])
@pytest.mark.parametrize("opt", [1, 2])
@pytest.mark.parametrize("at", ["p", "j"])
def test_a_sum_in_the_loop_that_stores_reads_what_was_there(at: str, opt: int, runtime: str) -> None:
    """Over the whole row of a value, of which the first elements would be results already."""
    X = np.random.default_rng(0).standard_normal((3, 5))
    kept = 1 / (1 + np.exp(-X))
    want = X * (kept.sum(1, keepdims=True) if at == "p" else 5 * kept) + kept * kept
    np.testing.assert_allclose(caten.compile(PROGRAM.format(at=at, opt=opt), runtime=runtime, opt=opt)(X), want, rtol=1e-12)
