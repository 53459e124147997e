"""Functions of complex numbers by functions of their parts, where the table of operators has only those of floats. For
an infinite part a result may be NaN where C's functions have a limit, and -0 counts as 0 beside a branch cut."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

Apply = Callable[..., Any]                     # (operator, operands…) -> the operand, element by element
Number = Callable[[float], Any]


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
    return f("complex", f("where", right, large, small), f("where", f("lt", y, zero), f("neg", imaginary), imaginary))


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


OF_COMPLEX: dict[str, Callable[[Apply, Number, Any], Any]] = {
    "exp": exp, "log": log, "sqrt": sqrt, "sin": sin, "cos": cos, "sinh": sinh, "cosh": cosh}
