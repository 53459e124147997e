"""Ranges of floating-point expressions that are converted to integers, against values."""
from __future__ import annotations

import math
import random

import pytest

from caten.core.dtypes import rounded
from caten.core.expr import Cast, Const, Expr, Op, Var
from caten.loop import float_ranges
from caten.loop.float_ranges import float_range, is_nonpositive, whole_range
from caten.loop.statements import Splat

X = Var("x", "f32")
UNARY = {"neg": lambda v: -v, "abs": abs, "floor": math.floor, "ceil": math.ceil, "trunc": math.trunc, "round": round, "sqrt": lambda v: math.sqrt(v) if v >= 0 else 0.0, "relu": lambda v: max(v, 0.0)}
BINARY = {"max": max, "min": min, "add": lambda a, b: a + b, "mul": lambda a, b: a * b, "sub": lambda a, b: a - b,
          "div": lambda a, b: a / b if b else math.copysign(1e30, a) * math.copysign(1, b) if a else 0.0}


def number(value: float) -> Const:
    return Const(value, "f32")


@pytest.mark.parametrize(("expr", "wanted"), [
    (Op("max", (X, number(0.0))), (0, 100)), (Op("min", (X, number(7.5))), (-100, 8)), (Op("clip", (X, number(-1.0), number(3.0))), (-1, 3)), (X, (-100, 100)),
    (Op("max", (X, number(2.5))), (0, 100)), (Op("sqrt", (X,)), (0, 100)), (Op("mul", (Op("abs", (X,)), number(0.5))), (0, 100)),
    (Op("floor", (Op("min", (X, number(3.5))),)), (-100, 4)), (Cast("f64", Op("relu", (X,))), (0, 100)), (Op("sub", (Op("abs", (X,)), number(1.0))), (-100, 100)),
    (Op("fmax", (X, number(1.0))), (-100, 100)), (Op("max", (X, number(1e30))), (-100, 100)),
])
def test_ranges(expr: Expr, wanted: tuple[int, int]) -> None:
    assert whole_range(expr, -100, 100) == wanted


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32"])
def test_what_is_rounded_to_another_type_may_leave_its_range(dtype: str) -> None:
    """A float32 that is at most 1003 may be 1004 as a bfloat16, and one that is at least 65520 is infinite as a float16."""
    x = Var("x", "f64")
    for limit in [sign * size for size in (3.0, 255.0, 256.0, 1003.0, 2051.0, 65520.0, 2.0**24 + 3, 1e30) for sign in (1, -1)]:
        for fn in ("min", "max"):
            lo, hi = float_range(Cast(dtype, Op(fn, (x, Const(limit, "f64")))))
            assert lo <= rounded(limit, dtype) <= hi, (limit, fn)
    assert float_range(Cast(dtype, Op("clip", (X, number(-3.0), number(200.0))))) == (-3, 200)


def test_random_expressions_are_in_their_ranges() -> None:
    draw = random.Random(5)

    def made(depth: int, x: float) -> tuple[Expr, float]:
        if depth == 0:
            value = draw.choice((0.0, 1.0, -2.0, 0.5, 3.25))
            return (X, x) if draw.random() < 0.5 else (number(value), value)
        if draw.random() < 0.5:
            fn = draw.choice(list(UNARY))
            arg, value = made(depth - 1, x)
            return Op(fn, (arg,)), float(UNARY[fn](value))
        fn = draw.choice(list(BINARY))
        (a, left), (b, right) = made(depth - 1, x), made(depth - 1, x)
        return Op(fn, (a, b)), BINARY[fn](left, right)

    narrow = 0
    for _ in range(3000):
        expr, value = made(draw.randint(0, 3), draw.choice((-1e6, -3.5, -0.0, 0.25, 2.0, 7e5)))
        lo, hi = float_range(expr)
        assert lo <= value <= hi, (expr, value)
        narrow += (lo, hi) != (-math.inf, math.inf)
    assert narrow > 1000


def test_what_is_known_to_be_at_most_0() -> None:
    y, square = Var("y", "f32"), Op("mul", (X, X))
    negated = Op("neg", (X,))
    for expr in (Op("neg", (Op("abs", (X,)),)), Op("neg", (square,)), Op("mul", (negated, X)), Op("mul", (X, negated)), Op("div", (Op("neg", (square,)), number(2.0))),
                 Op("mul", (number(-0.5), square)), Op("sub", (X, Op("max", (y, X)))), Op("sub", (Op("min", (y, number(0.0))), square)), number(0.0),
                 Op("add", (number(-1.0), Op("neg", (square,)))), Op("neg", (Splat(8, square),)), Op("min", (X, number(0.0)))):
        assert is_nonpositive(expr), expr
    for expr in (X, Op("neg", (X,)), square, Op("mul", (X, y)), Op("sub", (X, Op("max", (y, y)))), Op("sub", (X, Op("fmax", (y, X)))), Op("div", (Op("neg", (square,)), y)),
                 Op("div", (square, number(-0.0))), Op("add", (number(1.0), Op("neg", (square,)))), Op("sub", (X, Op("min", (y, X)))), number(0.25)):
        assert not is_nonpositive(expr), expr


def test_shared_parts_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum of a sum with itself, and so on, has as many parts as it has levels."""
    calls: list[int] = []
    monkeypatch.setattr(float_ranges, "_by_signs", lambda sign, right=float_ranges._by_signs: calls.append(sign) or right(sign))
    whole: Expr = Op("abs", (Var("shared", "f32"),))
    for _ in range(16):
        whole = Op("add", (whole, Op("sub", (whole, Op("neg", (whole,))))))
    assert float_range(whole) == (0, math.inf)
    assert len(calls) == 32
