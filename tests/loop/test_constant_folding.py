"""What is folded is a number of the type, exactly; an argument is left where the other one changes nothing."""
from __future__ import annotations

import math

import pytest

from caten.core.expr import Const, Expr, Op, Var, number
from caten.loop.constant_folding import fold


@pytest.mark.parametrize(("x", "root"), [(64.0, 8.0), (0.25, 0.5), (1.0, 1.0), (2.0 ** -20, 2.0 ** -10), (2.0, None), (-4.0, None), (0.0, None), (math.inf, None), (math.nan, None)])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_square_roots_of_squares(x: float, root: float | None, dtype: str) -> None:
    given = Op("sqrt", (number(x, dtype),))
    assert fold(given) is (given if root is None else number(root, dtype))


@pytest.mark.parametrize(("fn", "start", "dtype"), [("max", -math.inf, "f32"), ("min", math.inf, "f64"), ("max", -128, "i8"), ("min", 255, "u8"), ("max", 0, "u8")])
def test_a_maximum_with_the_least_is_the_other(fn: str, start: float, dtype: str) -> None:
    x, least = Var("x", dtype), number(start, dtype)
    assert fold(Op(fn, (x, least))) is x
    assert fold(Op(fn, (least, x))) is x


@pytest.mark.parametrize(("fn", "other", "dtype"), [("max", math.inf, "f32"), ("max", 0.0, "f32"), ("min", -math.inf, "f64"), ("max", 127, "i8"), ("min", 0, "i8")])
def test_other_maxima_stay(fn: str, other: float, dtype: str) -> None:
    given: Expr = Op(fn, (Var("x", dtype), number(other, dtype)))
    assert fold(given) is given
    assert not isinstance(given, Const)


@pytest.mark.parametrize("z", [0j, 3 + 4j, complex(math.inf, 0.0), complex(math.nan, 1.0)])
@pytest.mark.parametrize(("fn", "operands"), [("abs", 1), ("real", 1), ("imag", 1), ("neg", 1), ("conj", 1), ("sqrt", 1), ("eq", 2), ("ne", 2), ("add", 2), ("mul", 2), ("div", 2)])
@pytest.mark.parametrize("dtype", ["c64", "c128"])
def test_operators_of_complex_constants_stay(fn: str, operands: int, z: complex, dtype: str) -> None:
    given = Op(fn, (Const(z, dtype),) * operands)
    assert fold(given) is given
