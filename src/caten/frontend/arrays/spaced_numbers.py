"""Numbers at equal distances or of equal quotients: `np.linspace`, `np.logspace`, `np.geomspace`."""
from __future__ import annotations

import math
from typing import Any

from ...core.dtypes import DTYPES, is_complex, is_float
from ...core.expr import Cast, Expr, Op, index
from ...loop.affine import canonical
from ..typing import WEAK_FLOAT, WEAK_INT, Literal, Term
from .argument_binding import as_extent
from .builder import Builder
from .creation import ramp
from .elementwise_functions import apply, choose, converted, number_of, term_of
from .fourier import Numpy
from .handles import ONE, ZERO, Array, Operand, constant_of, dtype_of, is_whole, shape_of, size_term
from .views import expand_dims, moveaxis


def linspace(numpy: Numpy, b: Builder, start: Operand, stop: Operand, num: Any, endpoint: bool, retstep: bool,
             dtype: str | None, axis: Any) -> Any:
    """`num` numbers, a number or a size, from start to stop at equal distances, of arrays along a new axis. `retstep`:
    and the distance. Of numbers alone they have the floating-point type of the signature."""
    points, gaps = _counts(b, "linspace", num, endpoint)
    if isinstance(start, Term) and isinstance(stop, Term) and (dtype is None or is_float(dtype)):
        made, step = _of_numbers(b, start, stop, points, gaps, dtype)
    else:
        kind = _kind(b, "linspace", start, stop)
        low, high = [b.array(converted(b, kind, each)) for each in (start, stop)]
        made, step = _between(b, low, high, points, gaps, endpoint)
        made = _in_type(b, moveaxis(b, made, 0, axis), dtype)
    return (made, step) if retstep else made


def logspace(numpy: Numpy, b: Builder, start: Operand, stop: Operand, num: Any, endpoint: bool, base: Operand | float,
             dtype: str | None, axis: Any) -> Array:
    """Powers of a base whose exponents are at equal distances."""
    of = term_of(base, b.pos)
    assert of is not None
    if shape_of(of):
        b.fail("E327", "the base of np.logspace is one number", "base ** np.linspace(…) takes an array")
    exponents = linspace(numpy, b, start, stop, num, endpoint, False, None, axis)
    return _in_type(b, b.array(apply(b, "pow", converted(b, dtype_of(exponents), of), exponents)), dtype)


def geomspace(numpy: Numpy, b: Builder, start: Operand, stop: Operand, num: Any, endpoint: bool, dtype: str | None,
              axis: Any) -> Array:
    """Numbers whose quotients are equal, from start to stop, which have the same sign."""
    points, gaps = _counts(b, "geomspace", num, endpoint)
    kind = _kind(b, "geomspace", start, stop)
    if is_complex(kind):
        b.fail("E304", "np.geomspace is not defined on complex numbers", "np.exp of np.linspace is")
    known = [number_of(each) for each in (start, stop)]
    if 0 in known or (None not in known and math.prod([each or 0 for each in known]) < 0):
        b.fail("E326", "the ends of np.geomspace have the same sign, and neither is 0")
    low, high = [b.array(converted(b, kind, each)) for each in (start, stop)]
    sign = apply(b, "sign", low)
    first, last = [b.array(apply(b, "log10", apply(b, "mul", sign, each))) for each in (low, high)]
    exponents, _ = _between(b, first, last, points, gaps, endpoint)
    made = apply(b, "pow", Literal(WEAK_FLOAT, b.pos, value=10.0), exponents)
    place = _places(b, points, exponents.rank - 1, "i64")
    made = _at(b, place, ZERO, low, apply(b, "mul", sign, made))
    made = _last(b, place, gaps, high, made) if endpoint else made
    return _in_type(b, moveaxis(b, b.array(made), 0, axis), dtype)


def _counts(b: Builder, name: str, num: Any, endpoint: bool) -> tuple[Expr, Expr]:
    """How many numbers there are, and how many distances are between start and stop."""
    if isinstance(num, int) and num < 0:
        b.fail("E326", f"the number of elements of np.{name} is not negative")
    points = as_extent(b, num)
    if points is None:
        b.fail("E326", f"the number of elements of np.{name} is a number, or arithmetic over sizes")
    return points, canonical(points - 1 if endpoint else points)


def _kind(b: Builder, name: str, start: Operand, stop: Operand) -> str:
    """The type in which numbers between these are computed."""
    kinds = dtype_of(start), dtype_of(stop)
    kind = kinds[0] if kinds[0] == kinds[1] else b.typing.join_kinds(*kinds, b.pos, f"np.{name}")
    if kind in (WEAK_INT, WEAK_FLOAT):
        return "f64"
    return "f64" if is_whole(kind) or kind == "bool" else kind


def _parts(b: Builder, gaps: Expr) -> Term:
    """By what the distance from start to stop is divided."""
    if (number := constant_of(gaps)) is not None:
        return Literal(WEAK_FLOAT, b.pos, value=float(max(number, 1)))
    found = converted(b, "f64", size_term(canonical(Op("max", (gaps, ONE))), b.pos))
    assert isinstance(found, Term)
    return found


def _of_numbers(b: Builder, start: Term, stop: Term, points: Expr, gaps: Expr,
                dtype: str | None) -> tuple[Array, Operand]:
    number = constant_of(gaps)
    width = apply(b, "div", apply(b, "sub", stop, start), _parts(b, gaps))
    assert isinstance(width, Term)
    dtype = dtype or b.typing.storage(WEAK_FLOAT)
    made = ramp(b, points, lambda i: b.typing.apply("add", [b.typing.apply("mul", [i, width], b.pos), start], b.pos),
                dtype if number is not None else None)
    return made if number is not None else b.array(converted(b, dtype, made)), _step(b, width, gaps)


def _between(b: Builder, low: Array, high: Array, points: Expr, gaps: Expr, endpoint: bool) -> tuple[Array, Operand]:
    """Along a new first axis; the last number is exact if it is the end."""
    parts = converted(b, low.dtype, _parts(b, gaps))
    width = b.array(apply(b, "div", apply(b, "sub", high, low), parts))
    made = apply(b, "add", apply(b, "mul", _places(b, points, width.rank, low.dtype), width), low)
    if endpoint:
        made = _last(b, _places(b, points, width.rank, "i64"), gaps, high, made)
    return b.array(made), _step(b, width, gaps)


def _places(b: Builder, points: Expr, rank: int, dtype: str) -> Array:
    """0, 1, … along an axis before others."""
    made = b.compute((points,), lambda i: i[0] if dtype == "i64" else Cast(dtype, i[0]))
    return expand_dims(b, made, tuple(range(1, rank + 1))) if rank else made


def _at(b: Builder, place: Array, at: Expr, value: Operand, otherwise: Operand) -> Operand:
    return choose(b, apply(b, "eq", place, size_term(at, b.pos)), value, otherwise)


def _last(b: Builder, place: Array, gaps: Expr, value: Operand, otherwise: Operand) -> Operand:
    """The last of several numbers."""
    if constant_of(gaps) in (0, -1):
        return otherwise
    return _at(b, place, canonical(Op("max", (gaps, ONE))), value, otherwise)


def _step(b: Builder, width: Operand, gaps: Expr) -> Operand:
    """NaN if there is none."""
    nan = Literal(WEAK_FLOAT, b.pos, value=math.nan)
    if (number := constant_of(gaps)) is not None:
        return width if number > 0 else apply(b, "mul", width, nan) if isinstance(width, Array) else nan
    is_none = term_of(b.compute((), lambda _: Op("lt", (gaps, index(1)))), b.pos)
    assert is_none is not None
    return choose(b, is_none, nan, width)


def _in_type(b: Builder, x: Array, dtype: str | None) -> Array:
    """Integers are rounded down."""
    if dtype is None:
        return x
    return b.array(converted(b, dtype, apply(b, "floor", x) if DTYPES[dtype].kind in ("int", "uint") else x))


# By their names: the signature, and what makes the result.
SPACED: dict[str, tuple[str, Any]] = {
    "linspace": ("start:operand stop:operand num=50 endpoint:bool=True retstep:bool=False dtype:dtype=None axis=0",
                 linspace),
    "logspace": ("start:operand stop:operand num=50 endpoint:bool=True base:operand=10.0 dtype:dtype=None axis=0",
                 logspace),
    "geomspace": ("start:operand stop:operand num=50 endpoint:bool=True dtype:dtype=None axis=0", geomspace)}
