"""Remainders and the quotients that go with them, where the quotient is so small that one division finds it.

With q = trunc(x / y) the remainder x - q y is a number of the type, so a fused multiply-add gives it exactly. The
division may round up to the next whole number; the remainder then has the other sign, and q is one less. It cannot be
too small: rounding keeps the order of numbers. Other arguments take the function for scalars.
"""
from __future__ import annotations

from collections.abc import Callable

from ...core.expr import Expr, Op
from .arithmetic import Arithmetic

LIMITS = {"f32": 2.0**22, "f64": 2.0**51}             # of |x / y|: whole numbers below are exact, and one less, too


def divided(a: Arithmetic, x: Expr, y: Expr) -> tuple[Expr, Expr]:
    """trunc(x / y), and the remainder with the sign of x."""
    q: Expr = Op("trunc", (x / y,))
    r = Op("fma", (a.minus(q), y, x))
    zero = a.at(0.0)
    beyond = Op("and", (Op("ne", (r, zero)), Op("xor", (r < zero, x < zero))))
    return (a.where(beyond, q - a.with_sign(a.at(1.0), q), q),
            a.with_sign(a.magnitude(a.where(beyond, r + a.with_sign(a.magnitude(y), x), r)), x))


def truncmod(a: Arithmetic, x: Expr, y: Expr) -> Expr:
    """The remainder with the sign of x, as C's fmod."""
    return divided(a, x, y)[1]


def mod(a: Arithmetic, x: Expr, y: Expr) -> Expr:
    """The remainder with the sign of y."""
    r = truncmod(a, x, y)
    moved = a.where(Op("xor", (r < 0.0, y < 0.0)), r + y, r)
    return a.where(Op("eq", (r, a.at(0.0))), a.with_sign(a.at(0.0), y), moved)


def floordiv(a: Arithmetic, x: Expr, y: Expr) -> Expr:
    """The quotient rounded down; 0 with the sign of x / y."""
    q, r = divided(a, x, y)
    lower = Op("and", (Op("ne", (r, a.at(0.0))), Op("xor", (r < 0.0, y < 0.0))))
    whole = a.where(lower, q - 1.0, q)
    return a.where(Op("eq", (whole, a.at(0.0))), a.with_sign(a.at(0.0), x / y), whole)


FORMS: dict[str, Callable[[Arithmetic, Expr, Expr], Expr]] = {"truncmod": truncmod, "mod": mod, "floordiv": floordiv}
