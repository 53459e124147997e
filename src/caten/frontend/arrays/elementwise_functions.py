"""Operators on elements, with numpy's broadcasting: `x + y`, `np.exp(x)`, `np.where(c, x, y)`, `x.astype(t)`."""
from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import partial, reduce
from itertools import pairwise
from typing import Any

from ...core.dtypes import DTYPES, is_complex, part, whole
from ...core.expr import FALSE, TRUE, Bitcast, Cast, Const, Expr, Op, index, number
from ...core.scalars import COMPARISONS, OPERATORS
from ...loop.affine import canonical
from ...tensor.values import Inside
from ..typing import WEAK_FLOAT, WEAK_INT, Literal, Term, Value, spell
from .builder import MAX_INLINE, Builder
from .complex_functions import OF_COMPLEX, OF_TWO_COMPLEX
from .handles import Array, Indices, Operand, dtype_of, is_whole, shape_of
from .numpy_promotion import is_complex_constant, is_number_of_python, is_same_kind

# The functions of Python on numbers, where they are those of the table. All others stay expressions.
STATIC: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
    "floordiv": operator.floordiv, "mod": operator.mod, "pow": operator.pow, "neg": operator.neg, "abs": abs,
    "and": operator.and_, "or": operator.or_, "xor": operator.xor, "not": operator.invert, "shl": operator.lshift,
    "shr": operator.rshift, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "eq": operator.eq, "ne": operator.ne, "max": max, "min": min, "sqrt": math.sqrt, "exp": math.exp, "log": math.log,
    "sin": math.sin, "cos": math.cos, "tanh": math.tanh, "log2": math.log2, "floor": math.floor, "ceil": math.ceil}
MOST_PRODUCTS = 100             # the exponent of a complex number from which on its power is one of e, as in NumPy
POWERS = (2, 3, 4, 5, 6, 7, 8)                  # exponents of integers that become products
# The float type in which numpy computes a function of integers.
FLOAT_OF = {"bool": "f16", "i8": "f16", "u8": "f16", "i16": "f32", "u16": "f32"}
OF_BYTES = ("floordiv", "mod")                  # of bools: numpy computes them in int8
WHOLE = ("floor", "ceil", "trunc")              # of integers and bools: these


def term_of(value: Any, pos: int) -> Operand | None:
    """A value as an operand; None if it is none (a tuple, a function)."""
    match value:
        case Array() | Term():
            return value
        case bool():
            return Value("bool", pos, expr=TRUE if value else FALSE)
        case int():
            return Literal(WEAK_INT, pos, value=value)
        case float():
            return Literal(WEAK_FLOAT, pos, value=value)
        case complex():
            return Value("c128", pos, expr=Op("complex", (number(value.real, "f64"), number(value.imag, "f64"))))
    return None


def number_of(value: Operand) -> int | float | bool | None:
    """The number that a scalar is known to be."""
    match value:
        case Literal(value=number):
            return number
        case Value(kind="bool", expr=Const(value=truth)):
            return bool(truth)
    return None


def apply(b: Builder, fn: str, *operands: Operand) -> Operand:
    """A row of the table of operators, element by element."""
    if b.lang == "python" and (known := _static(b, fn, operands)) is not None:
        return known
    if b.lang == "python":
        if fn in WHOLE and ((kind := dtype_of(operands[0])) == "bool" or is_whole(kind)):
            return operands[0]
        operands = as_in_numpy(b, fn, operands)
    if fn == "pow" and (power := _power(b, *operands)) is not None:
        return power
    if (fn in OF_COMPLEX or fn in OF_TWO_COMPLEX) and (found := _of_complex(b, fn, operands)) is not None:
        return found
    return mapped(b, lambda *terms: b.typing.apply(fn, terms, b.pos), *operands)


def _of_complex(b: Builder, fn: str, operands: tuple[Operand, ...]) -> Operand | None:
    """A function of complex numbers by their parts. None for others, and in bodies in Lisp for what has no order."""
    kinds = [kind for x in operands if (kind := dtype_of(x)) in DTYPES and is_complex(kind)]
    if not kinds:
        return None
    by_parts = partial(_part_by_part, b)
    def number(value: float) -> Literal:
        return Literal(WEAK_FLOAT, b.pos, value=value)
    if len(operands) == 1:
        made: Operand = OF_COMPLEX[fn](by_parts, number, operands[0])
        return made
    if b.lang != "python":
        return None
    common = reduce(lambda s, t: b.typing.join_kinds(s, t, b.pos, fn), [dtype_of(x) for x in operands])
    both = [converted(b, common, x) for x in operands]
    found: Operand = OF_TWO_COMPLEX[fn](by_parts, number, *both)
    return found


def _part_by_part(b: Builder, fn: str, *operands: Operand) -> Operand:
    return choose(b, *operands) if fn == "where" else apply(b, fn, *operands)


def mapped(b: Builder, element: Callable[..., Term], *operands: Operand) -> Operand:
    """An element of the result from the elements of the operands."""
    shape = b.broadcast(*[shape_of(x) for x in operands if isinstance(x, Array)])
    if not any(isinstance(x, Array) for x in operands):
        return scalar(b, element(*operands))

    def expr(indices: Indices) -> Expr:
        return b.typing.default(element(*[b.broadcast_term(x, indices, shape) for x in operands]))

    return b.compute(shape, expr)


def scalar(b: Builder, term: Term) -> Operand:
    """The value of scalars in canonical form; a long expression gets a name."""
    if term.kind == WEAK_INT:
        expr = canonical(b.typing.default(term))
        if isinstance(expr, Const) and isinstance(expr.value, int):
            return Literal(WEAK_INT, term.pos, value=expr.value)
        return Value(WEAK_INT, term.pos, expr=expr)
    if isinstance(term, Value) and term.expr is not None and term.expr.written_out > MAX_INLINE:
        return b.array(term)
    return term


def _static(b: Builder, fn: str, operands: tuple[Operand, ...]) -> Operand | None:
    """The result on numbers that are known, as Python computes it."""
    numbers = [number_of(x) for x in operands]
    if fn not in STATIC or any(n is None for n in numbers):
        return None
    if fn == "not" and isinstance(numbers[0], bool):
        return term_of(not numbers[0], b.pos)
    if fn in ("pow", "shl") and all(isinstance(n, int) for n in numbers) and abs(int(numbers[1] or 0)) >= 64:
        return None                                         # of too many digits
    try:
        return term_of(STATIC[fn](*numbers), b.pos)
    except (ArithmeticError, ValueError, TypeError) as problem:
        b.fail("E304", f"{b.typing.words.operator(fn)} of {', '.join(map(str, numbers))}: {problem}")


def as_in_numpy(b: Builder, fn: str, operands: tuple[Operand, ...]) -> tuple[Operand, ...]:
    """The operands converted as numpy does it: / on integers divides in float64, functions of integers are floats."""
    operands = numbers_as_floats(b, operands)
    kinds = [dtype_of(x) for x in operands]
    if fn in OF_BYTES and all(k == "bool" for k in kinds):
        return tuple([converted(b, "i8", x) for x in operands])
    strong = [k for k in kinds if k == "bool" or is_whole(k)]
    if OPERATORS[fn].takes != "float" or fn == "pow" or not strong or any(
            k != WEAK_INT and k not in strong for k in kinds):
        return operands
    dtype = "f64" if fn == "div" or len(set(strong)) > 1 else FLOAT_OF.get(strong[0], "f64")
    return tuple([converted(b, dtype, x) if k in strong else x for x, k in zip(operands, kinds, strict=True)])


def numbers_as_floats(b: Builder, operands: tuple[Operand, ...]) -> tuple[Operand, ...]:
    """Integers that the caller gives as numbers in the type of the floats that they meet, as NumPy takes numbers of
    Python."""
    floats = {k for x in operands if (k := dtype_of(x)) in DTYPES and DTYPES[k].kind in ("float", "complex")
              and not is_complex_constant(x)}
    if b.lang != "python" or len(floats) != 1:
        return operands
    dtype, = floats

    def taken(x: Operand) -> Operand:
        if is_complex_constant(x):
            return converted(b, whole(part(dtype)) or "c128", x)
        return converted(b, dtype, x) if isinstance(x, Term) and is_number_of_python(x, b.counts) else x
    return tuple([taken(x) for x in operands])


def _power(b: Builder, x: Operand, y: Operand) -> Operand | None:
    """x**2 = x · x, x**0.5 = sqrt x, x**-1 = 1 / x; None for other powers."""
    exponent = number_of(y)
    if dtype_of(x) == "bool" and b.lang == "python" and exponent is not None and not isinstance(exponent, bool):
        kind = "f64" if isinstance(exponent, float) else "i8" if exponent == 2 else "i64"   # x ** 2 is a square
        x = converted(b, kind, x)
    kind = dtype_of(x)
    whole = kind == WEAK_INT or is_whole(kind)
    if whole and is_whole(dtype_of(y)) and number_of(x) == 2:
        return apply(b, "shl", converted(b, dtype_of(y), Literal(WEAK_INT, b.pos, value=1)), y)
    if exponent is None and all(is_whole(k) or k in ("bool", WEAK_INT) for k in (dtype_of(x), dtype_of(y))):
        return _whole_power(b, x, y)
    if exponent is None or isinstance(exponent, bool) or number_of(x) is not None or not math.isfinite(exponent):
        return None
    if exponent == 1:
        return x
    if exponent == int(exponent) and int(exponent) in (POWERS if whole else POWERS[:2]):
        return reduce(lambda product, _: apply(b, "mul", product, x), range(int(exponent) - 1), x)
    if kind in DTYPES and is_complex(kind) and exponent == int(exponent) and 1 < abs(exponent) < MOST_PRODUCTS:
        made = _product_of_squares(b, x, abs(int(exponent)))
        return made if exponent > 0 else apply(b, "div", Literal(WEAK_INT, b.pos, value=1), made)
    if exponent in (0.5, -1) and not whole:
        return apply(b, "sqrt", x) if exponent == 0.5 else apply(b, "div", Literal(WEAK_INT, b.pos, value=1), x)
    return None


def _product_of_squares(b: Builder, x: Operand, exponent: int) -> Operand:
    """x to a positive power, of the powers whose exponents are 1, 2, 4, …"""
    factors: list[Operand] = []
    while exponent:
        if exponent % 2:
            factors.append(x)
        exponent //= 2
        x = apply(b, "mul", x, x) if exponent else x
    return reduce(lambda s, t: apply(b, "mul", s, t), factors)


def _whole_power(b: Builder, x: Operand, y: Operand) -> Operand | None:
    """x**y of integers by repeated squaring; only powers of 0, 1 and -1 are exact beyond the exponent 63. A negative
    exponent makes the call fail."""
    kinds = [dtype_of(x), dtype_of(y)]
    if b.lang != "python" or kinds == [WEAK_INT] * 2:
        return None
    dtype = b.typing.join_kinds(dtype_of(x), dtype_of(y), b.pos, "**")
    if dtype == "bool":
        dtype = "i8"

    def number(value: int) -> Literal:
        return Literal(WEAK_INT, b.pos, value=value)
    base, rest = converted(b, dtype, x), converted(b, dtype, y)
    if dtype[0] == "i" and not (isinstance(y, Array) and y.dtype == "bool"):
        row = b.check("an integer is raised to a power that is negative", b.pos)
        given = b.array(rest)
        rest = b.compute(given.shape, lambda i: Cast(dtype, Inside(Cast("i64", given.at(i)), index(1 << 62), row)))
    powers, factors = base, []
    for bit in range(min(6, DTYPES[dtype].bits - 1)):
        is_set = apply(b, "ne", apply(b, "and", apply(b, "shr", rest, number(bit)), number(1)), number(0))
        factors.append(choose(b, is_set, powers, number_as(b, dtype, 1)))
        powers = apply(b, "mul", powers, powers)
    zero = apply(b, "and", apply(b, "eq", base, number(0)), apply(b, "ne", rest, number(0)))
    return choose(b, zero, number_as(b, dtype, 0), reduce(lambda s, t: apply(b, "mul", s, t), factors))


def converted(b: Builder, dtype: str, x: Operand) -> Operand:
    """`x.astype(dtype)`, `(cast dtype x)`."""
    if isinstance(x, Array):
        return x if x.dtype == dtype else b.compute(x.shape, lambda i: Cast(dtype, x.at(i)))
    return cast_scalar(b, dtype, x)


def floating(b: Builder, x: Array) -> Array:
    """Integers as float64."""
    return b.array(converted(b, "f64", x)) if DTYPES[x.dtype].kind in ("bool", "int", "uint") else x


def in_type(b: Builder, name: str, make: Callable[..., Operand], operands: Sequence[Operand], dtype: str) -> Operand:
    """`np.add(x, y, dtype=…)`: the operands are converted, and the function is computed in that type. E310 for an
    operand that NumPy does not convert, E304 where the function has no results of the type."""
    for x in operands:
        kind = dtype_of(x)
        if not (is_same_kind("f64" if kind == WEAK_FLOAT else kind, dtype) or kind == WEAK_INT):
            given = "a decimal" if kind == WEAK_FLOAT else spell(kind)
            b.fail("E310", f"np.{name} in {spell(dtype)} does not take {given}",
                   f"convert it: .astype(np.{DTYPES[dtype].numpy})")
    made = make(b, *[converted(b, dtype, x) for x in operands])
    if dtype_of(made) not in (dtype, WEAK_INT, WEAK_FLOAT):
        b.fail("E304", f"np.{name} has no results of {spell(dtype)}: of such elements they are {spell(dtype_of(made))}",
               "leave out dtype, and convert the result with .astype")
    return converted(b, dtype, made)


def viewed(b: Builder, dtype: str, x: Operand) -> Operand:
    """`x.view(dtype)`: the same bits as another type of the same size. E312 for one of another size."""
    def bits(term: Term) -> Term:
        expr = b.typing.default(term)
        if DTYPES[expr.dtype].bits != DTYPES[dtype].bits or "bool" in (dtype, expr.dtype):
            b.fail("E312", f"the bits of {spell(expr.dtype)} cannot be read as {spell(dtype)}",
                   "both need the same size, and neither may be bool")
        return Value(dtype, b.pos, expr=expr if expr.dtype == dtype else Bitcast(dtype, expr))
    return mapped(b, bits, x)


def cast_scalar(b: Builder, dtype: str, x: Term) -> Term:
    """A scalar of another type; a number becomes a literal of it."""
    number = number_of(x)
    if isinstance(number, int) and dtype in DTYPES and (x.weak or dtype != "bool"):
        return number_as(b, dtype, number)
    return x if x.kind == dtype else b.typing.cast(dtype, x, b.pos)


def number_as(b: Builder, dtype: str, number: int) -> Term:
    """An integer as a literal of a type."""
    if dtype == "bool":
        return Value("bool", b.pos, expr=TRUE if number else FALSE)
    return Value(dtype, b.pos, expr=b.typing.literal(Literal(WEAK_INT, b.pos, value=int(number)), dtype))


def choose(b: Builder, cond: Operand, x: Operand, y: Operand) -> Operand:
    """`np.where(cond, x, y)`. A number is chosen if it is not 0."""
    test = truth(b, cond)
    if isinstance(known := number_of(test), bool) and not isinstance(x, Array) and not isinstance(y, Array):
        return x if known else y
    x, y = numbers_as_floats(b, (x, y))
    return mapped(b, lambda c, s, t: b.typing.choose(b.typing.condition(c, b.typing.words.where), s, t, b.pos),
                  test, x, y)


def truth(b: Builder, x: Operand) -> Operand:
    """x as a bool: is it not 0?"""
    if dtype_of(x) == "bool" or b.lang != "python":
        return x
    return apply(b, "ne", x, Literal(WEAK_INT, b.pos, value=0))


def logical(b: Builder, fn: str, *operands: Operand) -> Operand:
    """`np.logical_and` and its like: on what is not 0."""
    return apply(b, fn, *[truth(b, x) for x in operands])


def round_to(b: Builder, x: Operand, decimals: int) -> Operand:
    """`np.round(x, decimals)`: halves to even. Integers stay as they are."""
    if is_whole(dtype_of(x)) and decimals >= 0:
        return x
    if decimals == 0:
        return apply(b, "round", x)
    factor = Literal(WEAK_FLOAT, b.pos, value=10.0 ** abs(decimals))
    before, after = ("mul", "div") if decimals > 0 else ("div", "mul")
    found = apply(b, after, apply(b, "round", apply(b, before, x, factor)), factor)
    return converted(b, dtype_of(x), found) if is_whole(dtype_of(x)) else found


def variadic(b: Builder, fn: str, operands: tuple[Operand, ...]) -> Operand:
    """A function of the Lisp body language on any number of operands, with its rules for one of them."""
    if fn in COMPARISONS:
        pairs = ([(x, y) for n, x in enumerate(operands) for y in operands[n + 1:]] if fn == "ne"
                 else list(pairwise(operands)))
        return reduce(lambda x, y: apply(b, "and", x, y), [apply(b, fn, x, y) for x, y in pairs])
    if len(operands) > 1:
        return reduce(lambda x, y: apply(b, fn, x, y), operands)
    if fn in ("sub", "div"):
        one = Literal(WEAK_INT, b.pos, value=1)
        return apply(b, "neg", *operands) if fn == "sub" else apply(b, "div", one, *operands)
    return operands[0]
