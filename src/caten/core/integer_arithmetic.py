"""What every operator means on integers and bools: the one table, and the Python functions made from it.

Constant folding, the interpreter, formulas over sizes and written Python wrappers evaluate these texts.
numpy's functions (mathematics.evaluate) and the C helpers (render.helper_bodies) spell the same meaning themselves; a
test compares them with this table."""
from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from .dtypes import DTYPES, FORMATS, is_short, rounded
from .expr import Const
from .scalars import COMPARISONS, OPERATORS

# Python expressions over unbounded integers x y z; `bits` is the width of the type. Results wrap modulo 2^bits.
INTEGERS: dict[str, str] = {
    "add": "x + y", "sub": "x - y", "mul": "x * y", "fma": "x * y + z",
    "neg": "-x", "abs": "abs(x)", "sign": "(x > 0) - (x < 0)",
    "floordiv": "x // y if y else 0",        # Python rounds quotients down; a remainder has the sign of the divisor
    "mod": "x % y if y else 0",
    "truncdiv": "abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) if y else 0",
    "truncmod": "abs(x) % abs(y) * (-1 if x < 0 else 1) if y else 0",
    "max": "max(x, y)", "min": "min(x, y)", "fmax": "max(x, y)", "fmin": "min(x, y)",
    "clip": "min(max(x, y), z)", "relu": "max(x, 0)",
    "and": "x & y", "or": "x | y", "xor": "x ^ y", "not": "~x",
    "shl": "x << y if 0 <= y < bits else 0",
    "shr": "x >> (y if 0 <= y < bits else bits)",  # 0 or -1 from the width on
    "lt": "x < y", "gt": "x > y", "le": "x <= y", "ge": "x >= y", "eq": "x == y", "ne": "x != y",
    "where": "y if x else z", "real": "x", "imag": "0", "conj": "x",
}
BOOLS: dict[str, str] = {"and": "x and y", "or": "x or y", "xor": "x != y", "not": "not x",
                         **{fn: INTEGERS[fn] for fn in (*COMPARISONS, "where")}}

# Operators whose results lie in the range of their operands.
CLOSED = frozenset(("and", "or", "xor", "shr", "max", "min", "fmax", "fmin", "where", "clip", "relu", "mod", "truncmod",
                    "real", "imag", "conj"))


def wrap(value: int, dtype: str) -> int:
    """`value` modulo 2^bits, in the range of `dtype`."""
    d = DTYPES[dtype]
    if d.least <= value <= d.greatest:
        return value
    value &= (1 << d.bits) - 1
    return value - (1 << d.bits) if d.kind == "int" and value > d.greatest else value


@cache
def exact(fn: str) -> Callable[..., Any]:
    """The operator on unbounded Python integers; comparisons, sums and products of Python floats are right, too."""
    return _made(fn, INTEGERS[fn])


@cache
def function(fn: str, dtype: str) -> Callable[..., Any] | None:
    """The operator on Python integers or bools of element type `dtype` (that of its last operand), the result wrapped.
    None where it has no meaning on integers."""
    d = DTYPES[dtype]
    text = BOOLS.get(fn) if d.kind == "bool" else INTEGERS.get(fn) if d.kind in ("int", "uint") else None
    if text is None:
        return None
    text = re.sub(r"\bbits\b", str(d.bits), text)
    if d.kind == "bool":
        return _made(fn, f"bool({text})")
    if OPERATORS[fn].gives == "bool" or (fn in CLOSED):
        return _made(fn, text)
    return _made(fn, f"r if {d.least} <= (r := {text}) <= {d.greatest} else wrap(r, {dtype!r})")


def _made(fn: str, text: str) -> Callable[..., Any]:
    """A function of x y z from the text of its result, which is one of this module."""
    made: Callable[..., Any] = eval(f"lambda {', '.join('xyz'[:OPERATORS[fn].arity])}: {text}", {"wrap": wrap})
    return made


def fold(fn: str, args: tuple[Const, ...]) -> Const | None:
    """The operator applied to integer or bool constants; None on floats and on types that the row does not accept."""
    dtype = args[-1].dtype
    kind = DTYPES[dtype].kind
    if {kind, DTYPES[args[0].dtype].kind} & {"float", "complex"} or not OPERATORS[fn].accepts(kind):
        return None
    compute = function(fn, dtype)
    if compute is None:
        return None
    gives = OPERATORS[fn].result_type(tuple(a.dtype for a in args))
    value = compute(*[_integer(a.value) for a in args])
    return Const(bool(value) if gives == "bool" else int(value), gives)


def convert(dtype: str, value: Const) -> Const | None:
    """`(cast dtype value)` of an integer or bool constant, or between a 16-bit float and another one; None where a
    float takes part inexactly."""
    source, target = DTYPES[value.dtype], DTYPES[dtype]
    if source.kind == target.kind == "float" and (is_short(value.dtype) or is_short(dtype)):
        return Const(rounded(rounded(float(value.value), value.dtype), dtype), dtype)
    if source.kind in ("float", "complex"):
        return None
    number = _integer(value.value)
    match target.kind:
        case "bool":
            return Const(number != 0, dtype)
        case "int" | "uint":
            return Const(wrap(int(number), dtype), dtype)
        case "float" if abs(number) <= 1 << FORMATS[dtype][0]:
            return Const(float(number), dtype)
        case _:
            return None


def _integer(value: Any) -> int:
    return value if isinstance(value, bool) else int(value)
