"""Loops that keep the greatest or least element and its index: they are the reductions of `np.argmax`, and compute the same numbers."""
from __future__ import annotations

import warnings

import numpy as np
import pytest

import caten
from caten import driver, loading
from caten.core.expr import Expr, Op, Var
from caten.core.program import resolve
from caten.core.text import read
from caten.frontend.spec_files import SpecText
from caten.options import Options
from caten.tensor.fused_text import fused
from caten.tensor.kept_extremes import Extreme
from caten.tensor.values import Define, FusedKernel, Output, TensorProgram

LOOPS = """
(dotimes (i M)
  (set best {start})
  (set at {at})
  (dotimes (j N)
    (let ((x {key}))
      (when {cond}
        (set best x)
        (set at {kept}))))
  (setf (aref y i) at)
  (setf (aref z i) best))
"""
SHAPES = ((3, 1), (9, 5), (2, 64), (5, 131), (4, 0), (0, 3))
NUMPY = "(not (or (isnan best) ({} x best)))"


def spec(code: str, lang: str = "lisp", dtype: str = "float", index: str = "int64", where: str = "") -> str:
    return (f'[composite]\nname = "T"\ninputs = ["X{{{dtype}}}[M N]{where}", "G{{{dtype}}}[N]"]\noutputs = ["y{{{index}}}[M]", "z{{{dtype}}}[M]"]\n'
            f'[implementation]\nlang = "{lang}"\ncode = """{code}"""\n')


def loops(cond: str, start: str = "(- inf)", at: str = "0", key: str = "(aref X i j)", kept: str = "j", **kinds: str) -> str:
    return spec(LOOPS.format(start=start, at=at, key=key, cond=cond, kept=kept), **kinds)


def tensor_program(text: str) -> TensorProgram:
    (loaded,) = loading.load_programs(SpecText("extremes.toml", text), Options())
    made = driver.advance(loaded, "tensor", Options())
    assert isinstance(made, TensorProgram)
    return made


def values_of(text: str) -> tuple[tuple[Define, ...], tuple[Output, ...]]:
    made = tensor_program(text)
    return made.definitions, made.outputs


def arrays(shape: tuple[int, int], dtype: str, kind: int) -> list[np.ndarray]:
    """Distinct elements, equal elements, some NaN, and rows of infinities with NaN or without."""
    rng = np.random.default_rng(kind)
    x, g = rng.standard_normal(shape) * 9, np.round(rng.standard_normal(shape[1]))
    if kind:
        x = np.round(x / 4)
    if kind == 2 and "float" in dtype:
        x[rng.random(shape) < 0.3] = np.nan
    if kind == 3 and "float" in dtype:
        x[rng.random(shape) < 0.7] = -np.inf
        x[:1], x[2:] = np.nan, np.inf
    return [a.astype({"float": "float32", "double": "float64"}.get(dtype, dtype)) for a in (x, g)]


CASES: dict[str, str] = {
    "first of the greatest": loops("(> x best)"),
    "last of the greatest": loops("(>= x best)"),
    "last of the least": loops("(>= best x)", start="inf"),
    "first of the least, from a number": loops("(< x best)", start="0.5", at="-1"),
    "from the first element": loops("(> x best)", start="(aref X i 0)", where="(where N > 0)"),
    "from NaN": loops("(> x best)", start="nan", at="5"),
    "from above": loops("(> x best)", start="inf", at="5"),
    "a NaN is the greatest": loops(NUMPY.format("<="), at="-1"),
    "a NaN is the least": loops(NUMPY.format(">="), start="inf"),
    "the last NaN is the greatest": loops("(or (isnan x) (>= x best))"),
    "of some elements": loops("(and (> (aref G j) 0.0) (< x best))", start="3.0"),
    "of a formula": loops("(> x best)", key="(+ (* (aref X i j) 1.7) (aref G j))"),
    "what is kept is a formula": loops("(> x best)", kept="(- (* 2 j) i)"),
    "an index of 32 bits": loops("(> x best)", kept="(cast int32 j)", at="(cast int32 -1)", index="int32"),
    "of doubles": loops("(>= x best)", start="(cast double 1)", dtype="double"),
    "of bytes": loops("(> x best)", start="(cast int8 -128)", at="3", dtype="int8"),
    "last of bytes": loops("(<= x best)", start="(cast int8 127)", at="3", dtype="int8"),
}


@pytest.mark.slow
@pytest.mark.slice(6)
@pytest.mark.parametrize("name", CASES)
def test_numbers(name: str) -> None:
    """As the loops compute them one after the other, at -O0."""
    text = CASES[name]
    dtype = text.partition("X{")[2].partition("}")[0]
    plain, made = caten.compile(text, opt=0), caten.compile(text)
    for shape in SHAPES:
        if "where N" in text and shape[1] == 0:
            continue
        for kind in range(4):
            given = arrays(shape, dtype, kind)
            for wanted, found in zip(plain(*given), made(*given), strict=True):
                np.testing.assert_array_equal(found, wanted, err_msg=f"{shape} {kind}")


@pytest.mark.slow
def test_threads_do_not_change_the_numbers() -> None:
    given = arrays((64, 257), "float", 2)
    found = [caten.compile(CASES["a NaN is the greatest"], config={"OMP": n})(*given) for n in (0, 1)]
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_the_rule_of_numpy() -> None:
    made = caten.compile(CASES["a NaN is the greatest"])
    for kind in range(3):
        x, g = arrays((9, 33), "float", kind)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            np.testing.assert_array_equal(made(x, g)[0], np.argmax(x, axis=1))


@pytest.mark.parametrize(("fn", "sign", "start", "than"), [("max", "-", "(- inf)", "<="), ("min", "", "inf", ">=")])
def test_loops_and_the_line_in_numpy_are_the_same_values(fn: str, sign: str, start: str, than: str) -> None:
    where = "(where N > 0)"
    line = spec(f"\nreturn X.arg{fn}(axis=1), X.{fn}(axis=1)\n", lang="python", where=where)
    found = [values_of(text) for text in (loops(NUMPY.format(than), start=start, where=where), line)]
    assert found[0] == found[1]
    assert [len(clauses) for clauses in found[0]] == [2, 2]


TWO_LOOPS = """
for i in range(M):
    top = -np.inf
    at = 0
    for j in range(N):
        for p in range(M):
            if X[p, j] + G[j] > top:
                top = X[p, j] + G[j]
                {kept}
    y[i] = at
    z[i] = top
"""


@pytest.mark.parametrize(("kept", "reductions"), [("pass", 1), ("at = p", 0)])
def test_two_loops_carry_one_extreme(kept: str, reductions: int) -> None:
    """One reduction over both; with an index of both loops the loops stay as they are."""
    program = tensor_program(spec(TWO_LOOPS.format(kept=kept), lang="python"))
    assert str(program).count("(reduce") == reductions


@pytest.mark.slow
@pytest.mark.parametrize("kept", ["pass", "at = p"])
def test_the_numbers_of_two_loops(kept: str) -> None:
    text = spec(TWO_LOOPS.format(kept=kept), lang="python")
    plain, made = caten.compile(text, opt=0), caten.compile(text)
    for kind in range(4):
        given = arrays((5, 9), "float", kind)
        for wanted, found in zip(plain(*given), made(*given), strict=True):
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.slow
def test_the_nearest_of_some_points_is_one_kernel() -> None:
    text = """[composite]
name = "T"
inputs = ["X{float}[M D]", "C{float}[K D]"]
outputs = ["y{int64}[M]"]
[implementation]
code = '''
(dotimes (i M)
  (set best inf)
  (set at 0)
  (dotimes (j K)
    (set d 0.0)
    (dotimes (p D) (incf d (let ((e (- (aref X i p) (aref C j p)))) (* e e))))
    (when (< d best) (set best d) (set at j)))
  (setf (aref y i) at))
'''
"""
    program = tensor_program(text)
    assert [[len(k.definitions), k.form] for k in fused(program).all(FusedKernel)] == [[4, "rows"]]
    rng = np.random.default_rng(0)
    x, c = rng.standard_normal((50, 7), np.float32), rng.standard_normal((19, 7), np.float32)
    np.testing.assert_array_equal(caten.compile(text)(x, c), ((x[:, None] - c) ** 2).sum(axis=2).argmin(axis=1))


RULES = {
    "(> x b)": ("max", False, False), "(>= x b)": ("max", True, False), "(< x b)": ("min", False, False), "(<= b x)": ("max", True, False),
    "(not (or (isnan b) (<= x b)))": ("max", False, True), "(or (isnan x) (<= x b))": ("min", True, True), "(and (= b b) (not (>= x b)))": ("min", False, True),
    "(not (<= x b))": None, "(/= x b)": None, "(or (> x b) (isnan b))": None, "(> x 1.0)": None, "(> x (* 2.0 b))": None, "(or (isnan x) (> x b))": None,
}


@pytest.mark.parametrize("cond", RULES)
def test_the_rule_of_a_condition(cond: str) -> None:
    program = resolve(read(f"(op T (scalar x f32) (scalar b f32) (buffer y bool () () inout) (body (setf (aref y) {cond})))")[0])
    test: Expr = program.body[0].value
    x, b = Var("x", "f32"), Var("b", "f32")
    found = Extreme.of({b: Op("where", (test, x, b))})
    assert (None if found is None else (found.fn, found.is_last, found.takes_nan)) == RULES[cond]
