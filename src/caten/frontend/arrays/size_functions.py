"""Functions of sizes that are sizes: `np.prod(x.shape[:2])`, `math.prod((n, m))`, `math.ceil(n / 2)`, `int(n / 2)`.

Like `np.maximum(n, m)`, they take the type that they meet, and may be an extent or the bound of a loop or a slice.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any

from ..typing import WEAK_FLOAT, WEAK_INT, Literal, Open, Term
from .argument_binding import Function, as_array, described
from .array_reductions import total
from .builder import Builder
from .elementwise_functions import apply, number_of, term_of
from .handles import Array, Operand

IDENTITY = {"add": 0, "mul": 1}


def also_of_sizes(fn: str, make: Callable[..., Operand]) -> Callable[..., Operand]:
    """A reduction of arrays, with the arguments `axis`, perhaps `dtype`, `keepdims`, `initial` and `where`, that also
    takes sizes in a tuple. E321 for the greatest of none."""
    def made(b: Builder, x: Array | tuple[Term, ...], axis: Any, *options: Any) -> Operand:
        if isinstance(x, Array):
            return make(b, x, axis, *options)
        *dtype, keepdims, initial, where = options
        items = [*x] if initial is None else [initial, *x]
        if not items and fn not in IDENTITY:
            b.fail("E321", f"the list is empty: no element is the {fn}imum")
        if not x or (axis in (None, 0, -1) and not keepdims and where is True and set(dtype) <= {None, "i64"}):
            return combined(b, fn, items)
        array = as_array(b, x)
        assert array is not None
        return make(b, array, axis, *options)
    return made


def combined(b: Builder, fn: str, operands: Iterable[Operand]) -> Operand:
    """x fn y fn z; of nothing the identity of a sum or a product."""
    items = list(operands)
    first = items.pop(0) if items else Literal(WEAK_INT, b.pos, value=IDENTITY[fn])
    return reduce(lambda x, y: apply(b, fn, x, y), items, first)


def whole_quotient(b: Builder, fn: str, x: Any) -> Operand | None:
    """floor, ceil or trunc of a size or of a quotient of sizes; None for others, and where the quotient may be
    negative and is not rounded down."""
    if not isinstance(x, Open) or x.fn != "div" or any(arg.kind != WEAK_INT for arg in x.args):
        return x if isinstance(x, Term) and x.kind == WEAK_INT else None
    above, below = x.args
    positive = b.is_never_negative(b.typing.default(below))
    if fn == "ceil" and positive:
        return apply(b, "floordiv", apply(b, "add", above, apply(b, "sub", below, Literal(WEAK_INT, b.pos, value=1))),
                     below)
    if fn == "floor" or (fn == "trunc" and positive and b.is_never_negative(b.typing.default(above))):
        return apply(b, "floordiv", above, below)
    return None


def as_float(b: Builder, x: Term) -> Operand:
    """`float(n)`, which takes the type that it meets, like every decimal of Python."""
    return apply(b, "mul", x, Literal(WEAK_FLOAT, b.pos, value=1.0))


def _rounded(fn: str) -> Function:
    def make(b: Builder, x: Operand) -> Any:
        number = number_of(x)
        if number is not None and math.isfinite(number):
            return getattr(math, fn)(number)
        found = whole_quotient(b, fn, x)
        return apply(b, fn, x) if found is None else found
    return Function(f"math.{fn}", "x:operand", make)


def _product(b: Builder, iterable: Any, start: Any) -> Operand:
    if isinstance(iterable, Array) and iterable.rank == 1:
        return combined(b, "mul", [x for x in (start, total(b, "mul", iterable, None, None, False)) if x is not None])
    items = [term_of(x, b.pos) for x in iterable] if isinstance(iterable, tuple | list | range) else [None]
    if any(x is None for x in items):
        b.fail("E322", f"math.prod takes a list of arrays and numbers, not {described(iterable)}",
               "np.prod multiplies the elements of an array")
    return combined(b, "mul", [x for x in (start, *items) if x is not None])


def _of_known(name: str, parameters: str) -> Function:
    """A function of integers that are known when the body is compiled."""
    function = getattr(math, name)

    def make(b: Builder, *given: Any) -> Any:
        values = [*given[0]] if parameters.startswith("*") else [x for x in given if x is not None]
        numbers = [n.value if isinstance(n, Literal) else n for n in values]
        if not all(isinstance(n, int) for n in numbers):
            b.fail("E326", f"math.{name} takes integers that are known when the body is compiled",
                   HINTS.get(name, "an attribute, or an annotation with a number for the extent, is known"))
        try:
            return function(*numbers)
        except ValueError as problem:
            b.fail("E304", f"math.{name}: {problem}")
    return Function(f"math.{name}", parameters, make)


HINTS = {"gcd": "np.gcd(n, 4) computes it of sizes at the call", "lcm": "np.lcm(n, 4) computes it of sizes at the call",
         "isqrt": "np.sqrt(n).astype(np.int64) computes it of a size at the call"}


# Those of Python's `math` that differ from NumPy's.
MATH: dict[str, Function] = {"prod": Function("math.prod", "iterable start:operand=None", _product),
                             **{fn: _rounded(fn) for fn in ("floor", "ceil", "trunc")},
                             **{fn: _of_known(fn, parameters) for fn, parameters in (
                                 ("gcd", "*integers"), ("lcm", "*integers"), ("isqrt", "n"), ("factorial", "n"),
                                 ("comb", "n k"), ("perm", "n k=None"))}}
