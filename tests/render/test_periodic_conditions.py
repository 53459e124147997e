"""Conditions on the remainder of an index are masks of small numbers."""
from __future__ import annotations

import numpy as np
import pytest

import caten

CASES = [("=", 3, 1), ("<", 5, 2), ("/=", 60, 7), (">=", 200, 150), ("=", 8, 3), ("=", 1, 0)]
COMPARED = {"=": np.equal, "<": np.less, "/=": np.not_equal, ">=": np.greater_equal}


@pytest.mark.parametrize("dtype", ["int16", "uint8", "float64"])
@pytest.mark.parametrize("runtime", ["clang", "gcc"])
def test_every_comparison_at_every_length(runtime: str, dtype: str) -> None:
    outputs = ", ".join(f'"y{n}{{{dtype}}}[M N]"' for n in range(len(CASES)))
    body = "".join(f"(setf (aref y{n} i j) (aref x i j)) (if ({fn} (mod j {by}) {rest}) (incf (aref y{n} i j) 5))" for n, (fn, by, rest) in enumerate(CASES))
    spec = f'[composite]\nname = "Periodic"\ninputs = ["x{{{dtype}}}[M N]"]\noutputs = [{outputs}]\n[implementation]\ncode = "(dotimes (i M) (dotimes (j N) {body}))"\n'
    operator = caten.compile(spec, runtime=runtime)
    assert "ct_mod_positive_i" in operator.source
    assert "ct_mod_positive_i64" not in operator.source
    for n in (1, 7, 64, 131, 500):
        x = np.random.default_rng(n).integers(0, 100, (3, n)).astype(dtype)
        for (fn, by, rest), found in zip(CASES, operator(x), strict=True):
            np.testing.assert_array_equal(found, np.where(COMPARED[fn](np.arange(n) % by, rest), x + 5, x), err_msg=f"{fn} {by} {rest}, {n}")
