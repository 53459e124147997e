"""The operator table says what is so: the 27 principal operators, types, numpy's functions, derivatives, error bounds."""
from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from caten.core.dtypes import DTYPES, FORMATS
from caten.core.expr import Const, Expr, Op, Var
from caten.core.scalars import BY_SPELLING, OPERATORS, PRINCIPAL
from caten.core.text import read
from caten.mathematics import evaluate

FLOATS = [row for row in OPERATORS.values() if row.accepts("float")]


def test_there_are_27_principal_operators() -> None:
    assert len(PRINCIPAL) == len(set(PRINCIPAL)) == 27
    assert "cast" in PRINCIPAL
    assert "loop" in PRINCIPAL
    assert "tanh" not in PRINCIPAL


def test_spellings_are_unique_and_every_row_has_a_meaning() -> None:
    assert len(BY_SPELLING) == len(OPERATORS)
    assert all(row.meaning and row.arity in (1, 2, 3) and row.name == name for name, row in OPERATORS.items())


def test_types() -> None:
    assert OPERATORS["lt"].result_type(("f32", "f32")) == "bool"
    assert OPERATORS["abs"].result_type(("c64",)) == "f32"
    assert OPERATORS["abs"].result_type(("i8",)) == "i8"
    assert OPERATORS["where"].result_type(("bool", "i8", "i8")) == "i8"
    assert OPERATORS["add"].accepts("complex")
    assert not OPERATORS["max"].accepts("complex")
    assert not OPERATORS["sin"].accepts("int")
    assert not OPERATORS["shl"].accepts("bool")


@pytest.mark.parametrize("row", [r for r in FLOATS if r.numpy and r.name != "where"], ids=lambda r: r.name)
def test_the_named_numpy_function_agrees_on_float64(row: Any) -> None:
    rng = np.random.default_rng(1)
    args = [np.abs(rng.standard_normal(50)) * 0.9 + (1 if row.name == "acosh" else 0.01) for _ in range(row.arity)]
    if row.name in ("asin", "acos", "atanh"):
        args = [np.clip(a, 0, 0.99) for a in args]
    if row.name == "clip":
        args[2] = args[1] + 1
    assert np.allclose(evaluate.apply(row.name, args, "f64"), getattr(np, row.numpy)(*args), rtol=1e-14)


def value(expr: Expr, env: dict[str, float]) -> float:
    """A derivative of the table at a point; its numbers stand for float64."""
    match expr:
        case Const(number): return float(number)
        case Var(name): return env[name]
        case Op(fn, args):
            dtype = "bool" if fn in ("and", "or", "not") else "f64"
            like = np.bool_ if dtype == "bool" else np.float64
            given = [value(a, env) for a in args]
            if fn == "where":
                return given[1] if given[0] else given[2]
            return float(evaluate.apply(fn, tuple(like(g) for g in given), dtype))
    raise AssertionError(expr)


SMOOTH = {"x": (0.37, 0.81, 1.3, 2.6), "y": (0.58, 1.7, 3.1), "z": (2.2,)}


@pytest.mark.parametrize("row", [r for r in FLOATS if r.derivative and r.name != "where"], ids=lambda r: r.name)
def test_derivatives_against_central_differences(row: Any) -> None:
    assert len(row.derivative) == row.arity
    formulas = [read(d)[0] for d in row.derivative]
    checked = 0
    for x in (*SMOOTH["x"], -0.4, -1.9):
        for y in SMOOTH["y"] if row.arity > 1 else (0.0,):
            env = {"x": x, "y": y, "z": 2.2}
            for n, name in enumerate("xyz"[:row.arity]):
                def at(t: float, name: str = name, env: dict[str, float] = env) -> float:
                    return float(evaluate.apply(row.name, tuple((env | {name: t})[v] for v in "xyz"[:row.arity]), "f64"))
                h = 1e-6 * max(1.0, abs(env[name]))
                slope = (at(env[name] + h) - at(env[name] - h)) / (2 * h)
                if not math.isfinite(slope) or not math.isfinite(at(env[name])):
                    continue
                assert value(formulas[n], env) == pytest.approx(slope, rel=1e-6, abs=1e-7), (name, env)
                checked += 1
    assert checked >= 2


def test_rounding_units_and_ranges_of_types() -> None:
    for name, (precision, last, greatest) in FORMATS.items():
        limits = ml_dtypes.finfo(evaluate.numpy_type(name))
        assert DTYPES[name].unit_roundoff == 2.0**-precision == float(limits.eps) / 2
        assert (2.0**last, greatest) == (float(limits.smallest_subnormal), float(limits.max))
    for name, d in DTYPES.items():
        if d.kind in ("int", "uint"):
            limits = ml_dtypes.iinfo(evaluate.numpy_type(name))
            assert (d.least, d.greatest) == (limits.min, limits.max)
        assert evaluate.numpy_type(name)(0).dtype.itemsize == d.bytes
