"""Functions of complex numbers by functions of their parts, where the table of operators has only those of floats. For
an infinite part a result may be NaN where C's functions have a limit. On a branch cut the sign of a zero says which
side is meant, as in C. Two complex numbers are ordered as in NumPy."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

Apply = Callable[..., Any]                     # (operator, operands…) -> the operand, element by element
Number = Callable[[float], Any]
Function = Callable[[Apply, Number, Any], Any]
OfTwo = Callable[[Apply, Number, Any, Any], Any]


def exp(f: Apply, number: Number, z: Any) -> Any:
    """e^(x + iy) = e^x (cos y + i sin y)."""
    x, y = f("exp", f("real", z)), f("imag", z)
    return f("complex", f("mul", x, f("cos", y)), f("mul", x, f("sin", y)))


def log(f: Apply, number: Number, z: Any) -> Any:
    """The principal value: log |z| + i arg z."""
    return f("complex", f("log", f("abs", z)), f("atan2", f("imag", z), f("real", z)))


def sqrt(f: Apply, number: Number, z: Any) -> Any:
    """The principal value, whose real part is not negative. Of its parts the larger one is √((|z| + |x|) / 2), the
    other one follows from their product (W. Kahan, "Branch cuts for complex elementary functions", 1987)."""
    x, y, zero = f("real", z), f("imag", z), number(0.0)
    large = f("sqrt", f("mul", number(0.5), f("add", f("abs", z), f("abs", x))))
    small = f("where", f("eq", large, zero), zero, f("div", f("abs", y), f("mul", number(2.0), large)))
    right = f("ge", x, zero)
    imaginary = f("where", right, small, large)
    return f("complex", f("where", right, large, small),
             f("where", _is_minus(f, number, y), f("neg", imaginary), imaginary))


def _is_minus(f: Apply, number: Number, y: Any) -> Any:
    """Is the sign of a number a minus, also that of -0? 1 / -0 is -inf."""
    zero = number(0.0)
    return f("or", f("lt", y, zero), f("and", f("eq", y, zero), f("lt", f("div", number(1.0), y), zero)))


def sin(f: Apply, number: Number, z: Any) -> Any:
    """sin x cosh y + i cos x sinh y."""
    x, y = f("real", z), f("imag", z)
    return f("complex", f("mul", f("sin", x), f("cosh", y)), f("mul", f("cos", x), f("sinh", y)))


def cos(f: Apply, number: Number, z: Any) -> Any:
    """cos x cosh y - i sin x sinh y."""
    x, y = f("real", z), f("imag", z)
    return f("complex", f("mul", f("cos", x), f("cosh", y)), f("neg", f("mul", f("sin", x), f("sinh", y))))


def sinh(f: Apply, number: Number, z: Any) -> Any:
    """sinh x cos y + i cosh x sin y."""
    x, y = f("real", z), f("imag", z)
    return f("complex", f("mul", f("sinh", x), f("cos", y)), f("mul", f("cosh", x), f("sin", y)))


def cosh(f: Apply, number: Number, z: Any) -> Any:
    """cosh x cos y + i sinh x sin y."""
    x, y = f("real", z), f("imag", z)
    return f("complex", f("mul", f("cosh", x), f("cos", y)), f("mul", f("sinh", x), f("sin", y)))


def tanh(f: Apply, number: Number, z: Any) -> Any:
    """With u = tanh x, t = tan y: (u (1 + t²) + i t / cosh² x) / (1 + u² t²), which does not overflow."""
    u, t = f("tanh", f("real", z)), f("tan", f("imag", z))
    squares, wide = f("mul", t, t), f("cosh", f("real", z))
    below = f("add", number(1.0), f("mul", f("mul", u, u), squares))
    return f("complex", f("div", f("mul", u, f("add", number(1.0), squares)), below),
             f("div", f("div", f("div", t, wide), wide), below))


def expm1(f: Apply, number: Number, z: Any) -> Any:
    """expm1(x) cos y - 2 sin² (y / 2) + i e^x sin y."""
    x, y = f("real", z), f("imag", z)
    half = f("sin", f("mul", number(0.5), y))
    return f("complex", f("sub", f("mul", f("expm1", x), f("cos", y)), f("mul", number(2.0), f("mul", half, half))),
             f("mul", f("exp", x), f("sin", y)))


def log1p(f: Apply, number: Number, z: Any) -> Any:
    """log (1 + z)."""
    return log(f, number, _moved(f, number(1.0), z))


def asin(f: Apply, number: Number, z: Any) -> Any:
    """atan (x / Re (√(1 - z) √(1 + z))) + i asinh Im (conj √(1 - z) · √(1 + z)) (Kahan 1987)."""
    below, above = _roots_beside(f, number, z)
    return f("complex", f("atan2", f("real", z), f("real", f("mul", below, above))),
             f("asinh", f("imag", f("mul", f("conj", below), above))))


def acos(f: Apply, number: Number, z: Any) -> Any:
    """2 atan (Re √(1 - z) / Re √(1 + z)) + i asinh Im (conj √(1 + z) · √(1 - z)) (Kahan 1987)."""
    below, above = _roots_beside(f, number, z)
    return f("complex", f("mul", number(2.0), f("atan2", f("real", below), f("real", above))),
             f("asinh", f("imag", f("mul", f("conj", above), below))))


def acosh(f: Apply, number: Number, z: Any) -> Any:
    """asinh Re (conj √(z - 1) · √(z + 1)) + 2 i atan (Im √(z - 1) / Re √(z + 1)) (Kahan 1987)."""
    below, above = (sqrt(f, number, _moved(f, number(by), z)) for by in (-1.0, 1.0))
    return f("complex", f("asinh", f("real", f("mul", f("conj", below), above))),
             f("mul", number(2.0), f("atan2", f("imag", below), f("real", above))))


def atanh(f: Apply, number: Number, z: Any) -> Any:
    """log1p (4 x / ((1 - x)² + y²)) / 4 + i atan2 (2 y, (1 - x) (1 + x) - y²) / 2."""
    x, y = f("real", z), f("imag", z)
    apart, squares = f("sub", number(1.0), x), f("mul", y, y)
    ratio = f("div", f("mul", number(4.0), x), f("add", f("mul", apart, apart), squares))
    right = f("sub", f("mul", apart, f("add", number(1.0), x)), squares)
    return f("complex", f("mul", number(0.25), f("log1p", ratio)),
             f("mul", number(0.5), f("atan2", f("mul", number(2.0), y), right)))


def sign(f: Apply, number: Number, z: Any) -> Any:
    """z / |z|, and 0 at 0."""
    size = f("abs", z)
    divisor = f("where", f("eq", size, number(0.0)), number(1.0), size)
    return f("complex", f("div", f("real", z), divisor), f("div", f("imag", z), divisor))


def _moved(f: Apply, by: Any, z: Any) -> Any:
    return f("complex", f("add", f("real", z), by), f("imag", z))


def _roots_beside(f: Apply, number: Number, z: Any) -> tuple[Any, Any]:
    """√(1 - z), whose imaginary part is not positive for real numbers above 1, and √(1 + z)."""
    mirrored = f("complex", f("sub", number(1.0), f("real", z)), f("imag", z))
    return f("conj", sqrt(f, number, mirrored)), sqrt(f, number, _moved(f, number(1.0), z))


def _turned(of: Function) -> Function:
    """-i f(i z)"""
    def made(f: Apply, number: Number, z: Any) -> Any:
        found = of(f, number, f("complex", f("neg", f("imag", z)), f("real", z)))
        return f("complex", f("imag", found), f("neg", f("real", found)))
    return made


def _scaled(of: Function, before: float, after: float) -> Function:
    """after · f(before · z)"""
    def by(f: Apply, number: Number, z: Any, factor: float) -> Any:
        return z if factor == 1 else f("complex", f("mul", f("real", z), number(factor)),
                                       f("mul", f("imag", z), number(factor)))

    def made(f: Apply, number: Number, z: Any) -> Any:
        return by(f, number, of(f, number, by(f, number, z, before)), after)
    return made


def _parts(fn: str) -> Function:
    """A function of each part."""
    return lambda f, number, z: f("complex", f(fn, f("real", z)), f(fn, f("imag", z)))


OF_COMPLEX: dict[str, Function] = {
    "exp": exp, "log": log, "sqrt": sqrt, "sin": sin, "cos": cos, "sinh": sinh, "cosh": cosh, "tanh": tanh,
    "tan": _turned(tanh), "asin": asin, "acos": acos, "atan": _turned(atanh), "asinh": _turned(asin), "acosh": acosh,
    "atanh": atanh, "expm1": expm1, "log1p": log1p, "exp2": _scaled(exp, math.log(2), 1.0),
    "log2": _scaled(log, 1.0, 1 / math.log(2)), "log10": _scaled(log, 1.0, 1 / math.log(10)), "sign": sign,
    "round": _parts("round")}


def _is_nan(f: Apply, z: Any) -> Any:
    return f("or", f("isnan", f("real", z)), f("isnan", f("imag", z)))


def _ordered(by_real: str, by_imaginary: str) -> OfTwo:
    """By the real parts, of equal ones by the imaginary parts; false if a part is NaN."""
    def made(f: Apply, number: Number, x: Any, y: Any) -> Any:
        known = f("not", f("or", _is_nan(f, x), _is_nan(f, y)))
        by_parts = f("or", f(by_real, f("real", x), f("real", y)), f("and", f("eq", f("real", x), f("real", y)), f(
            by_imaginary, f("imag", x), f("imag", y))))
        return f("and", known, by_parts)
    return made


def _extreme(before: OfTwo) -> OfTwo:
    """The first NaN of two, else the one that is before the other."""
    return lambda f, number, x, y: f("where", f("or", _is_nan(f, x), before(f, number, x, y)), x, y)


def power(f: Apply, number: Number, z: Any, w: Any) -> Any:
    """exp (w log z); 1 for w = 0, and of z = 0 the number 0 where the real part of w is positive, else NaN."""
    found = exp(f, number, f("mul", w, log(f, number, z)))
    zero = number(0.0)

    def is_zero(v: Any) -> Any:
        return f("and", f("eq", f("real", v), zero), f("eq", f("imag", v), zero))

    def part(name: str, of_exponent_zero: float) -> Any:
        of_zero = f("where", f("gt", f("real", w), zero), zero, number(math.nan))
        return f("where", is_zero(w), number(of_exponent_zero), f("where", is_zero(z), of_zero, f(name, found)))
    return f("complex", part("real", 1.0), part("imag", 0.0))


LESS, GREATER = _ordered("lt", "lt"), _ordered("gt", "gt")
AT_MOST, AT_LEAST = _ordered("lt", "le"), _ordered("gt", "ge")
OF_TWO_COMPLEX: dict[str, OfTwo] = {"lt": LESS, "gt": GREATER, "le": AT_MOST, "ge": AT_LEAST,
                                    "max": _extreme(AT_LEAST), "min": _extreme(AT_MOST), "pow": power}
