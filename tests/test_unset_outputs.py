"""What an output holds where no statement has set it: 0, on every level, and a run that forgets to put it there is found."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import caten
from caten import driver, passes
from caten.compiler import build
from caten.core.dtypes import DTYPES, is_packed
from caten.core.numpy_types import numpy_dtype
from caten.frontend.spec_files import SpecText
from caten.options import Options
from caten.testing import runner

POSITIVE = "(composite P ((x{float}[N]) -> (y{float}[N])) (dotimes (i N) (when (< 0 (aref x i)) (setf (aref y i) (aref x i)))))"
SCATTER = "(composite S ((k{int}[M], x{float}[N]) -> (y{float}[N])) (dotimes (i M) (setf (aref y (aref k i)) 7)))"
SCALAR = "(composite C ((x{float}[N]) -> (s{float}[])) (dotimes (i N) (when (< 5 (aref x i)) (setf s (aref x i)))))"
LOWER = "(composite L ((A{float}[N N]) -> (L{float}[N N]<1 0>)) (dotimes (i N) (dotimes (j (+ i 1)) (setf (aref L i j) (aref A i j)))))"
READ = "(composite R ((x{float}[N]) -> (y{float}[N])) (dotimes (i N) (setf (aref y i) (if (> i 0) (+ 1 (aref y (- N i))) 0))))"


@pytest.mark.slice(6)
@pytest.mark.parametrize("options", [{}, {"bounds_check": False}, {"config": {"OMP": 1}}], ids=["plain", "unchecked", "threads"])
@pytest.mark.parametrize("opt", [0, 1, 2])
@pytest.mark.parametrize("runtime", ["gcc", "clang", "numpy"])
def test_what_nothing_sets_is_zero(runtime: str, opt: int, options: dict[str, Any]) -> None:
    if options.get("config") and runtime == "numpy":
        pytest.skip("the interpreter has no threads")
    ops = caten.compile([POSITIVE, SCATTER, SCALAR, LOWER, READ], runtime=runtime, opt=opt, **options)
    for n in (0, 1, 5, 37):
        x = np.linspace(-1, 1, n).astype(np.float32)
        y = np.full(n, np.nan, np.float32)
        ops.P(x, out=y)
        np.testing.assert_array_equal(y, np.where(x > 0, x, 0))
        k = np.arange(0, n, 3)
        want = np.zeros(n, np.float32)
        want[k] = 7
        ops.S(k, x, out=(y := np.full(n, np.nan, np.float32)))
        np.testing.assert_array_equal(y, want)
        s = np.full((), np.nan, np.float32)
        ops.C(x, out=s)
        assert s == 0
        a = np.random.default_rng(n).uniform(-1, 1, (n, n)).astype(np.float32)
        lower = np.full((n, n), np.nan, np.float32, order="F")
        np.testing.assert_array_equal(ops.L(a, out=lower), np.tril(a))
        want = np.zeros(n, np.float32)
        for i in range(1, n):
            want[i] = 1 + want[n - i]
        ops.R(x, out=(y := np.full(n, np.nan, np.float32)))
        np.testing.assert_array_equal(y, want)


@pytest.mark.slice(8)
@pytest.mark.parametrize("dtype", list(DTYPES))
def test_every_type_has_its_zero(dtype: str) -> None:
    word, kind = DTYPES[dtype].numpy, numpy_dtype(dtype)
    some = np.array([1, 0, 1, 0, 1], bool)
    spec = f"(composite Z ((c{{bool}}[N], x{{{word}}}[N]) -> (y{{{word}}}[N])) (dotimes (i N) (when (aref c i) (setf (aref y i) (aref x i)))))"
    x = np.ones(5).astype(kind)
    y = np.frombuffer(b"\x01" * (5 * kind.itemsize), kind).copy() if is_packed(dtype) or dtype == "bool" else np.full(5, 77).astype(kind)
    for opt in (0, 2):
        caten.compile(spec, opt=opt)(some, x, out=y)
        np.testing.assert_array_equal(y.astype(np.complex128), some.astype(np.complex128))


@pytest.mark.parametrize("spec", [POSITIVE, LOWER, READ])
def test_a_kernel_that_forgets_the_fill_is_found(monkeypatch: pytest.MonkeyPatch, spec: str) -> None:
    source, options = [SpecText("t", spec, "lisp")], Options(runtime="gcc", opt=0, use_cache=False)
    assert [r.status for r in runner.run_cases(build(source, options), options)] == ["ok"]
    monkeypatch.setattr(driver, "PASSES", tuple([p for p in passes.PASSES if p.name != "fill"]))
    assert [r.status for r in runner.run_cases(build(source, options), options)] == ["wrong"]
