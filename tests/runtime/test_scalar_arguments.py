"""Scalars of every type: what may be given for one, and which values an index lets it have."""
from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import caten
from caten.core.dtypes import DTYPES, is_packed
from caten.core.numpy_types import numpy_dtype
from caten.errors import CatenError

TYPES = [n for n in DTYPES if n not in ("i4", "u4")]
INTEGERS = [n for n in TYPES if DTYPES[n].kind in ("int", "uint")]
VALUES: dict[str, Any] = {"bool": True, "float": 1.5, "complex": 2 - 1j, "int": -3, "uint": 3}


def echo(dtype: str) -> str:
    word = DTYPES[dtype].numpy
    return f"(composite Echo_{dtype} ((a{{{word}}}[], x{{{word}}}[N]) -> (y{{{word}}}[N])) (dotimes (i N) (setf (aref y i) (where (= i 0) a (aref x i)))))"


@pytest.fixture(scope="module")
def echoes() -> Any:
    return caten.compile([echo(t) for t in TYPES], opt=0)


@pytest.mark.parametrize("dtype", TYPES)
def test_a_scalar_is_a_number_of_python_or_numpy_or_an_array_without_axes(echoes: Any, dtype: str) -> None:
    value, kind = VALUES[DTYPES[dtype].kind], numpy_dtype(dtype)
    x = np.zeros(2, kind)
    for given in (value, kind.type(value), np.array(value, kind), np.array([value], kind)[0], np.array([[value]], kind).reshape(())):
        for _ in range(2):                                       # the second call is direct, where there is such a call
            assert echoes[f"Echo_{dtype}"](given, x)[0] == kind.type(value)


@pytest.mark.parametrize("dtype", TYPES)
def test_an_array_with_axes_is_no_scalar(echoes: Any, dtype: str) -> None:
    value, kind = VALUES[DTYPES[dtype].kind], numpy_dtype(dtype)
    for shape in ((1,), (1, 1), (0,), (2,)):
        with pytest.raises(CatenError, match=r"E708: Echo_\w+: a must be a number, not an array of shape \("):
            echoes[f"Echo_{dtype}"](np.full(shape, value, kind), np.zeros(2, kind))


@pytest.mark.parametrize(("dtype", "wrong"), [
    ("bool", np.array(1)), ("bool", np.array(1.0)), ("i32", np.array(1.0)), ("i32", np.array(True)), ("u8", np.array("1")), ("f32", np.array(1j)),
    ("f64", np.array("1")), ("c64", np.array("1")), ("f32", np.array(None)),
])
def test_the_element_of_an_array_without_axes_is_judged_as_a_number_is(echoes: Any, dtype: str, wrong: Any) -> None:
    with pytest.raises(CatenError, match="E708"):
        echoes[f"Echo_{dtype}"](wrong, np.zeros(2, numpy_dtype(dtype)))


def test_the_written_wrapper_takes_the_same(tmp_path: Path) -> None:
    (tmp_path / "echo.lisp").write_text("\n".join([echo(t) for t in TYPES if not is_packed(t)]))
    subprocess.run([sys.executable, "-m", "caten", "echo.lisp", "-O0", "--emit=so,python", "-o", "echo.so"], cwd=tmp_path, check=True)
    spec = importlib.util.spec_from_file_location("echo_numpy", tmp_path / "echo_numpy.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for dtype in TYPES:
        value, kind = VALUES[DTYPES[dtype].kind], numpy_dtype(dtype)
        for given in (value, kind.type(value), np.array(value, kind)):
            assert getattr(module, f"Echo_{dtype}")(given, np.zeros(2, kind))[0] == kind.type(value), dtype


# -- the range of integer scalars


VALUED = ["(setf D (max A 5))", "(setf D (min A 5))", "(setf D (where (< A 5) A 7))", "(setf D (clip A 1 100))", "(setf D (+ (* A 3) 1))",
          "(let ((b (+ A 1))) (setf D (- b 1)))", "(set s A) (incf s 1) (setf D s)", "(setf D 0) (when (< 5 A) (setf D A))", "(setf D 1) (incf D A)",
          "(setf D (aref k 0)) (incf D A)"]


@pytest.mark.slice(4)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_a_scalar_that_reaches_no_index_may_have_every_value_of_its_type(dtype: str) -> None:
    word, row = DTYPES[dtype].numpy, DTYPES[dtype]
    ops = caten.compile([f"(composite V{n} ((A{{{word}}}[], k{{{word}}}[1]) -> (D{{{word}}}[])) {body})" for n, body in enumerate(VALUED)], opt=0)

    def wrapped(v: int) -> int:
        return (v - row.least) % (1 << row.bits) + row.least
    for a in (row.least, row.greatest, 0, 6):
        want = [max(a, 5), min(a, 5), a if a < 5 else 7, min(max(a, 1), 100), wrapped(a * 3 + 1), a, wrapped(a + 1), a if a > 5 else 0,
                wrapped(a + 1), wrapped(a + 2)]
        got = [int(ops[f"V{n}"](a, np.array([2], word))) for n in range(len(VALUED))]
        assert got == want, a


REACHING = {
    "index": "(setf (aref y 0) (where (= A 1) (aref x (cast int A)) 0.0))",
    "index through a let": "(let ((b (cast int A))) (let ((c (+ b 1))) (setf (aref y 0) (where (= c 1) (aref x c) 0.0))))",
    "index through a local": "(set b 0) (incf b (cast int A)) (setf (aref y 0) (where (= b 1) (aref x b) 0.0))",
    "index through a maximum": "(setf (aref y 0) (where (= A 1) (aref x (cast int (max A 0))) 0.0))",
    "condition in an index": "(setf (aref y 0) (aref x (where (< A 5) 0 1)))",
    "bound": "(setf (aref y 0) 0.0) (loop (i 0 (min N (cast int A))) (setf (aref y 0) (aref x i)))",
    "bound through a let": "(setf (aref y 0) 0.0) (let ((n (min N (cast int A)))) (loop (i 0 n) (setf (aref y 0) (aref x i))))",
    "step": "(setf (aref y 0) 0.0) (loop (i 0 N (max 1 (cast int A))) (setf (aref y 0) (aref x i)))",
    "stored place": "(setf (aref y 0) 0.0) (when (= A 0) (setf (aref y (cast int A)) 1.0))",
}


@pytest.mark.slice(4)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_a_scalar_that_reaches_an_index_is_limited(dtype: str) -> None:
    word, row = DTYPES[dtype].numpy, DTYPES[dtype]
    ops = caten.compile([f"(composite R{n} ((A{{{word}}}[], x{{float}}[N](where N > 1)) -> (y{{float}}[1])) {body})"
                         for n, body in enumerate(REACHING.values())], opt=0)
    x = np.ones(3, np.float32)
    for n in range(len(REACHING)):
        for a in (min(row.greatest, 2**31 - 1), max(row.least, -2**31)):
            ops[f"R{n}"](a, x)
        for a in {row.greatest, row.least, 2**31, -2**31 - 1}:
            if row.least <= a <= row.greatest and not -2**31 <= a < 2**31:
                with pytest.raises(CatenError, match=r"the argument A, which an index or a loop depends on, is outside \[-2\^31, 2\^31\)"):
                    ops[f"R{n}"](a, x)


@pytest.mark.parametrize("opt", [0, 2])
def test_conditions_on_unlimited_scalars_mean_the_same_at_every_level(opt: int) -> None:
    body = """(dotimes (i N) (setf (aref y i) (aref x i)))
              (dotimes (i N) (when (< (+ i A) N) (incf (aref y i) 1)))
              (dotimes (i N) (when (< i (- A 1)) (incf (aref y i) 2)))
              (dotimes (i N) (when (< (* A i) N) (incf (aref y i) 4)))"""
    f = caten.compile(f"(composite C ((A{{int}}[], x{{int}}[N]) -> (y{{int}}[N])) {body})", opt=opt)
    n = 37
    i = np.arange(n)
    for a in (2**63 - 1, -2**63, -2**63 + 1, 2**62, 2**31, -2**31, 0, 1, 5, n, -n):
        with np.errstate(over="ignore"):
            A = np.full(n, a)
            want = 1 * (i + A < n) + 2 * (i < A - 1) + 4 * (A * i < n)
        np.testing.assert_array_equal(f(a, np.zeros(n, np.int64)), want, str(a))
