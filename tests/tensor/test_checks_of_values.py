"""Run-time checks of bodies over whole arrays are values of their own: no loops are made of the body."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import caten
from caten import loading
from caten.core.program import Check, Ensure
from caten.core.text import show
from caten.errors import CatenError
from caten.frontend.op import Body, OpProgram
from caten.frontend.spec_files import SpecText
from caten.options import Options
from caten.passes import with_checks
from caten.tensor.values import FailIf

SPEC = """[composite]
name = "Take"
inputs = [{inputs}]
outputs = ["Y{{float}}[{shape}]"]
[implementation]
lang = "python"
code = '''{code}'''
"""


def spec(code: str, inputs: str = "X{float}[M N] k{int}[T]", shape: str = "T N") -> str:
    quoted = ", ".join([f'"{each}"' for each in inputs.replace("] ", "]|").split("|")])
    return SPEC.format(inputs=quoted, shape=shape, code=code)


def checked(text: str) -> OpProgram:
    (op,) = loading.load_programs(SpecText("take.toml", text), Options())
    assert isinstance(op, OpProgram)
    return with_checks(op)


def index_checks(op: OpProgram) -> list[str]:
    return [c.text for c in op.all(Check) if "index" in c.text]


def test_a_gather_has_its_check_as_a_value() -> None:
    op = checked(spec("return np.exp(X[k])"))
    assert op.first(Body) is None
    assert index_checks(op) == ["X: index 1 (= (aref k i)) is outside [-M, M)"]
    (row,) = [c.row for c in op.all(FailIf)]
    assert f"(inside (where (< (read k i) 0) (+ (read k i) M) (read k i)) M {row})" in show(op)
    assert [show(c.cond) for c in op.all(Ensure) if c.row == row] == ["(or (or (<= 1 M) (<= T 0)) (<= N 0))"]


@pytest.mark.parametrize(("code", "checks"), [
    ("return X[k] + X[k] * 2", 1),                                      # equal indices
    ("return np.where((k >= 0)[:, None], X[k], 0)", 1),
    ("return X[k] * Z[k]", 2),                                          # of two extents
    ("return np.concatenate([X, Z])[k]", 2),                            # those of the pieces are
    ("return X[::-1].T[:, k].T", 1),                                    # outside of the axis is outside of X
])
def test_the_number_of_checks(code: str, checks: int) -> None:
    op = checked(spec(code, "X{float}[M N] Z{float}[L N] k{int}[T]"))
    assert op.first(Body) is None
    assert len(index_checks(op)) == len(op.all(FailIf)) == checks


def test_an_index_at_which_no_piece_has_an_element_is_checked() -> None:
    op = checked(spec("return np.stack([X[0], X[0] * 2])[k]"))
    (row,) = [c.row for c in op.all(FailIf)]
    assert [c.text for c in op.all(Check) if c.row == row] == ["(aref k i) is outside [-2, 2)"]


def test_a_computed_index_is_said_by_its_formula() -> None:
    (text,) = index_checks(checked(spec("return X[k + 1]")))
    assert text == "X: index 1 (= (+ (aref k i) 1)) is outside [-M, M)"


@pytest.mark.parametrize(("code", "shape"), [("return X[1:]", "(- M 1) N"), ("return X[::-1] + X", "M N")])
def test_what_sizes_imply_needs_no_check(code: str, shape: str) -> None:
    assert not index_checks(checked(spec(code, "X{float}[M N]", shape)))


CASES: list[tuple[str, str, str, Any]] = [
    ("return np.exp(X[k])", "X{float}[M N] k{int}[T]", "T N", lambda X, k: np.exp(X[k])),
    ("return X[:, k].T * 2", "X{float}[N M] k{int}[T]", "T N", lambda X, k: X[:, k].T * 2),
    ("return (X[k] * X[k]).sum(axis=1, keepdims=True) + X[k]", "X{float}[M N] k{int}[T]", "T N", lambda X, k: (X[k] ** 2).sum(axis=1, keepdims=True) + X[k]),
    ("return X[k[k]]", "X{float}[M N] k{int}[T]", "T N", lambda X, k: X[k[k]]),
    ("return np.choose(np.abs(k)[:, None], [X[k]] * 5)", "X{float}[M N] k{int}[T]", "T N", lambda X, k: np.choose(np.abs(k)[:, None], [X[k]] * 5)),
    ("return np.stack([X[0], X[1], X[2], X[3]])[k]", "X{float}[M N] k{int}[T]", "T N", lambda X, k: X[:4][k]),
]


@pytest.mark.slow
@pytest.mark.slice(2)
@pytest.mark.parametrize("opt", [0, 2])
@pytest.mark.parametrize("case", CASES, ids=lambda c: c[0])
def test_it_gathers_or_fails_as_numpy_does(case: tuple[str, str, str, Any], opt: int) -> None:
    code, inputs, shape, numpy = case
    rng = np.random.default_rng(5)
    take = caten.compile(spec(code, inputs, shape), runtime="gcc", opt=opt)
    for m, n, t in ((5, 3, 4), (4, 33, 4), (4, 0, 4)):
        x = rng.standard_normal((n, m) if inputs.startswith("X{float}[N") else (m, n)).astype(np.float32)
        k = rng.integers(-min(m, t), min(m, t), t)
        np.testing.assert_allclose(take(x, k), numpy(x, k), rtol=1e-5)
    k[2] = 7
    if n:
        with pytest.raises(CatenError, match="E711"):
            take(x, k)


@pytest.mark.slow
@pytest.mark.parametrize("code", ["return np.where(X[k] < 0, Z[k], 0)", "return np.where(X[k] < 0, Z[k], X[k] * 2)"])
def test_a_check_under_a_condition_that_is_gathered(code: str) -> None:
    take = caten.compile(spec(code, "X{float}[M N] Z{float}[L N] k{int}[T]"), runtime="gcc")
    rng = np.random.default_rng(5)
    x, z = (rng.standard_normal((m, 19)).astype(np.float32) for m in (6, 4))
    k = np.array([-4, 3, 0, 1, -1])
    np.testing.assert_allclose(take(x, z, k), np.where(x[k] < 0, z[k], x[k] * 2 if "* 2" in code else 0), rtol=1e-6)
    x[5] = 1
    np.testing.assert_array_equal(take(x, z, np.array([5])), 2 * x[5:] if "* 2" in code else 0 * x[5:])
    x[5, 7] = -1
    with pytest.raises(CatenError, match="Z: index 1"):
        take(x, z, np.array([5]))


PARTS = ["x[1:4]", "x[::2][:3]", "np.broadcast_to(x[0], (3,))", "np.ones(3)", "np.repeat(x[:1], 3)",
         "x[:6].reshape(2, 3)[1]", "np.stack([x[0], x[1], x[0]])", "np.pad(x[:1], 1)"]


@pytest.mark.slow
@pytest.mark.parametrize("opt", [0, 2])
@pytest.mark.parametrize("code", [
    "return {part}[k] * 1.0",
    "y = np.zeros(T)\nfor i in range(T):\n    y[i] = {part}[k[i]]\nreturn y"], ids=["whole", "loop"])
@pytest.mark.parametrize("part", PARTS)
def test_an_index_into_part_of_an_array_or_into_copies_is_checked(part: str, code: str, opt: int) -> None:
    text = spec(code.format(part=part), "x{double}[N] k{int}[T]", "T").replace("Y{float}", "Y{double}")
    take = caten.compile(text, runtime="gcc", opt=opt)
    x, k = np.arange(9.0) + 1, np.array([0, 2, -3, 1])
    np.testing.assert_array_equal(take(x, k), eval(part, {"np": np, "x": x})[k])
    for wrong in (3, -4):
        with pytest.raises(CatenError, match="E711"):
            take(x, np.array([0, wrong, 1]))


@pytest.mark.slow
@pytest.mark.parametrize("line", ["y[i] = x[1:4][i]", "y[1:4][i] = x[i]", "y[1:4][k[i]] = x[i]"])
def test_an_index_of_a_loop_into_part_of_an_array_is_checked(line: str) -> None:
    text = spec(f"y = np.zeros(9)\nfor i in range(T):\n    {line}\nreturn y", "x{double}[N] k{int}[T]", "9")
    take = caten.compile(text.replace("Y{float}", "Y{double}"), runtime="gcc")
    x, k = np.arange(9.0) + 1, np.arange(4)
    wanted = np.zeros(9)
    wanted[slice(3) if line.startswith("y[i]") else slice(1, 4)] = x[1:4] if line.startswith("y[i]") else x[:3]
    np.testing.assert_array_equal(take(x, k[:3]), wanted)
    with pytest.raises(CatenError, match="E711"):
        take(x, k)
