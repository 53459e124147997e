"""Algebraic identities that hold for every value: one rule per line, with its equation.

Those of floats hold for NaN, infinities and signed zeros, too. What depends on a proof about integers is in
loop.simplify, sums and products of indices in loop.affine."""
from __future__ import annotations

from math import copysign, inf
from typing import Any

from .dtypes import is_complex, is_integer, part
from .expr import FALSE, TRUE, Cast, Const, Expr, Hole, Op
from .rewrite import Rules, holes
from .scalars import NEGATED

x, y = holes("x y")
i, j = holes("i j", lambda n: is_integer(n.dtype))


def _literal(name: str, value: float) -> Hole:
    """A constant of any element type with this value; zeros are told apart by their sign."""
    def holds(n: Any) -> bool:
        return isinstance(n, Const) and n.value == value and (value != 0 or copysign(1, n.value) == copysign(1, value))
    return Hole(name, holds)


def _op(fn: str, *args: Any) -> Op:
    return Op(fn, args)


one, two, three, minus_one = _literal("one", 1), _literal("two", 2), _literal("three", 3), _literal("minus_one", -1)
zero, minus_zero = _literal("zero", 0.0), _literal("minus_zero", -0.0)


def _reciprocal(x: Expr, minus_one: Expr) -> Expr:
    return Const(1.0, x.dtype) / x


def _lattice(fn: str) -> Rules:
    """min and max, written for min."""
    m = _op(fn, x, y)
    return Rules(
        (_op(fn, x, x), x),                           # min(x, x) = x
        (_op(fn, m, x), m), (_op(fn, m, y), m),       # min(min(x, y), x) = min(x, y)
        (_op(fn, x, m), m), (_op(fn, y, m), m),       # min(x, min(x, y)) = min(x, y)
    )


EXTREMA = _lattice("min") + _lattice("max")

FLOATS = Rules(
    (x * one, x), (one * x, x),                       # x · 1 = x
    (x / one, x),                                     # x / 1 = x
    (x - zero, x),                                    # x - (+0) = x
    (x + minus_zero, x), (minus_zero + x, x),         # x + (-0) = x
    (_op("neg", _op("neg", x)), x),                   # -(-x) = x
    # Powers, within one unit in the last place.
    (_op("pow", x, one), x),                          # x^1 = x
    (_op("pow", x, two), x * x),                      # x^2 = x · x
    (_op("pow", x, three), x * x * x),                # x^3 = x · x · x
    (_op("pow", x, minus_one), _reciprocal),          # x^-1 = 1 / x
) + EXTREMA

z, w = holes("z w", lambda n: is_complex(n.dtype))
real, = holes("real", lambda n: not is_complex(n.dtype))
condition, = holes("condition", lambda n: n.dtype == "bool")
constant, = holes("constant", lambda n: isinstance(n, Const) and is_complex(n.dtype))


def re(x: Any) -> Op:
    """The real part."""
    return _op("real", x)


def im(x: Any) -> Op:
    """The imaginary part."""
    return _op("imag", x)


def _converted(to: str) -> tuple[tuple[Expr, Any], ...]:
    """The parts of what is converted to a complex type."""
    dtype = part(to)
    return ((re(Cast(to, z)), Cast(dtype, re(z))), (im(Cast(to, z)), Cast(dtype, im(z))),
            (re(Cast(to, real)), lambda real: real if real.dtype == dtype else Cast(dtype, real)),
            (im(Cast(to, real)), Const(0.0, dtype)))


def _quotient(z: Expr, w: Expr) -> tuple[Expr, Expr]:
    """The parts of z / w by Smith's algorithm, without overflow in between. Where w is 0, they are those of z times
    infinity."""
    a, b, c, d = re(z), im(z), re(w), im(w)
    none, one, endless = [Const(value, c.dtype) for value in (0.0, 1.0, inf)]
    flat = _op("ge", _op("abs", c), _op("abs", d))
    greater, less = _op("where", flat, c, d), _op("where", flat, d, c)
    ratio = less / greater
    scale = one / (greater + less * ratio)
    sums = _op("where", flat, a + b * ratio, a * ratio + b), _op("where", flat, b - a * ratio, b * ratio - a)
    first, second = [_op("where", flat & _op("eq", c, none), x * endless, total * scale)
                     for x, total in zip((a, b), sums, strict=True)]
    return first, second


# The parts of complex numbers, by those of the operands.
PARTS = Rules(
    (re(constant), lambda constant: Const(constant.value.real, part(constant.dtype))),
    (im(constant), lambda constant: Const(constant.value.imag, part(constant.dtype))),
    (_op("abs", z), _op("hypot", re(z), im(z))),      # |z| = √(Re² + Im²)
    (re(_op("complex", x, y)), x),                    # Re(x + iy) = x
    (im(_op("complex", x, y)), y),                    # Im(x + iy) = y
    (re(_op("conj", z)), re(z)),                      # Re z̄ = Re z
    (im(_op("conj", z)), _op("neg", im(z))),          # Im z̄ = -Im z
    *[(of(_op("neg", z)), _op("neg", of(z))) for of in (re, im)],
    *[(of(_op(fn, z, w)), _op(fn, of(z), of(w))) for of in (re, im) for fn in ("add", "sub")],
    *_converted("c64"), *_converted("c128"),          # Re (c64 z) = f32 (Re z), Re (c64 x) = f32 x, Im (c64 x) = 0
    (re(z * w), re(z) * re(w) - im(z) * im(w)),
    (im(z * w), re(z) * im(w) + im(z) * re(w)),
    (_op("isnan", z), _op("or", _op("isnan", re(z)), _op("isnan", im(z)))),
    (_op("isinf", z), _op("or", _op("isinf", re(z)), _op("isinf", im(z)))),
    (_op("eq", z, w), _op("eq", re(z), re(w)) & _op("eq", im(z), im(w))),
    (_op("ne", z, w), _op("ne", re(z), re(w)) | _op("ne", im(z), im(w))),
)

# Those that say more than the operator itself does: a choice is made twice, and a chain of them by each part of each.
PARTS_OF_ALL = PARTS + Rules(
    *[(of(_op("where", condition, z, w)), _op("where", condition, of(z), of(w))) for of in (re, im)],
    (re(z / w), lambda z, w: _quotient(z, w)[0]),
    (im(z / w), lambda z, w: _quotient(z, w)[1]),
)

LOGIC = Rules(
    (x & FALSE, FALSE), (FALSE & x, FALSE),           # x and false = false
    (x & TRUE, x), (TRUE & x, x),                     # x and true = x
    (x & x, x),                                       # x and x = x
    (x | TRUE, TRUE), (TRUE | x, TRUE),               # x or true = true
    (x | FALSE, x), (FALSE | x, x),                   # x or false = x
    (x | x, x),                                       # x or x = x
)

NEGATIONS = Rules(
    (_op("not", _op("not", x)), x),                                                             # not not x = x
    *[(_op("not", _op(fn, x, y)), _op(NEGATED[fn], x, y)) for fn in ("eq", "ne")],              # not x = y is x ≠ y
    *[(_op("not", _op(fn, i, j)), _op(NEGATED[fn], i, j)) for fn in ("lt", "le", "gt", "ge")],  # not i < j is i ≥ j
)
