"""New arrays: arange, zeros, full, eye, tri, tril, array."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...core.dtypes import DTYPES, is_integer
from ...core.expr import FALSE, TRUE, Expr, Op, index
from ...loop.affine import canonical
from ..typing import WEAK_FLOAT, WEAK_INT, Literal, Term
from .argument_binding import described
from .array_scans import scanned
from .builder import Builder
from .elementwise_functions import cast_scalar, converted, number_as, number_of, term_of
from .handles import ZERO, Array, Indices, Operand, owned, shape_of, size_term, spelled
from .joining import stack
from .selection import pieces
from .size_facts import ceiling_quotient
from .views import broadcast_to, diagonal, expand_dims, flip

MOST_NUMBERS = 1024            # of an array that is written out
TRUTH = (FALSE, TRUE)


def full(b: Builder, shape: Sequence[Expr], value: Operand, dtype: str | None = None) -> Array:
    """One number everywhere, or the elements of an array that is repeated. Without `dtype`, decimals have the
    floating-point type of the signature."""
    if isinstance(value, Array):
        made = value if dtype is None else b.array(converted(b, dtype, value))
        return owned(broadcast_to(b, made, tuple(_not_negative(b, shape))))
    rounds = dtype is not None and DTYPES[dtype].kind in ("int", "uint") and value.kind == WEAK_FLOAT
    if dtype == "bool" or (rounds and b.lang == "python"):
        value = cast_scalar(b, dtype or "bool", value)
    expr = b.typing.settle(value, dtype, "this value") if dtype and value.weak else b.typing.default(value)
    if dtype and expr.dtype != dtype:
        expr = b.typing.default(cast_scalar(b, dtype, value))
    return b.compute(_not_negative(b, shape), lambda _: expr)


def _not_negative(b: Builder, shape: Sequence[Expr]) -> Sequence[Expr]:
    """A shape that is given. E324 for an extent that is negative; one that may be is a condition of the call. One that
    differs between the iterations of a loop is refused elsewhere."""
    for extent in [e for e in shape if not b.sizes.varies(e)]:
        b.require(extent >= ZERO, "E324", f"{spelled(shape)} is no shape: an extent is negative")
    return shape


def zeros(b: Builder, shape: Sequence[Expr], dtype: str | None = None, number: int = 0) -> Array:
    """0, or another number, everywhere."""
    if dtype == "bool":
        return b.compute(_not_negative(b, shape), lambda _: TRUTH[number])
    return full(b, shape, Literal(WEAK_FLOAT if dtype is None else WEAK_INT, b.pos, value=number), dtype)


def ramp(b: Builder, count: Expr, element: Any, dtype: str | None) -> Array:
    """The array of element(i), where i is a weak integer."""
    def expr(i: Indices) -> Expr:
        term = element(size_term(i[0], b.pos))
        return b.typing.settle(term, dtype, "this value") if dtype else b.typing.default(term)

    return b.compute((count,), expr)


def arange(b: Builder, start: Operand, stop: Operand, step: Operand, dtype: str | None) -> Array:
    """start, start + step, … below stop. Of decimals, all three are numbers that are known."""
    by = number_of(step)
    if by is None or isinstance(by, bool) or by == 0:
        b.fail("E326", "the step of np.arange is a number other than 0 that is known when the body is compiled")
    lo, hi = number_of(start), number_of(stop)
    if lo is not None and hi is not None and math.isfinite(lo) and math.isfinite(hi) and math.isfinite(by):
        count: Expr = index(max(0, math.ceil((hi - lo) / by)))
    elif isinstance(start, Term) and isinstance(stop, Term) and isinstance(by, int) and {start.kind,
                                                                                        stop.kind} == {WEAK_INT}:
        low, high = b.typing.default(start), b.typing.default(stop)
        length = canonical(high - low if by > 0 else low - high)
        count = ceiling_quotient(length, index(abs(by))) if b.sizes.demand(length >= ZERO, b.pos) else ZERO
    else:
        b.fail("E326", "the bounds of np.arange are numbers and sizes that are known at entry")

    def element(i: Term) -> Term:
        scaled = i if by == 1 else b.typing.apply("mul", [i, _scalar(step)], b.pos)
        return scaled if lo == 0 else b.typing.apply("add", [_scalar(start), scaled], b.pos)

    whole = all(isinstance(x, Term) and x.kind == WEAK_INT for x in (start, stop, step))
    if whole and (dtype is None or is_integer(dtype)):
        made = b.compute((count,), lambda i: canonical(b.typing.default(element(size_term(i[0], b.pos)))))
        return _as(b, made, dtype)
    decimal = any(isinstance(number_of(x), float) for x in (start, stop, step))
    return ramp(b, count, element, dtype or (b.typing.storage(WEAK_FLOAT) if decimal else None))


def _as(b: Builder, x: Array, dtype: str | None) -> Array:
    return x if dtype is None else b.array(converted(b, dtype, x))


def _scalar(x: Operand) -> Term:
    assert isinstance(x, Term)
    return x


def eye(b: Builder, rows: Expr, columns: Expr, k: int, dtype: str | None, below: bool = False) -> Array:
    """1 where the column is the row + k, else 0. `below`: 1 left of that, too."""
    made = dtype or b.typing.storage(WEAK_FLOAT)
    yes, no = [b.typing.default(number_as(b, made, n)) for n in (1, 0)]
    fn = "ge" if below else "eq"
    shape = (rows, columns) if below else _not_negative(b, (rows, columns))
    return b.compute(shape, lambda i: Op("where", (Op(fn, (canonical(i[0] + k), i[1])), yes, no)))


def vander(b: Builder, x: Array, columns: Expr | None, increasing: bool) -> Array:
    """The powers of each element: from the highest down, or `increasing`."""
    if x.rank != 1:
        b.fail("E330", f"np.vander takes an array with one axis, not one of the shape {spelled(x.shape)}")
    count = columns or x.shape[0]
    base = b.array(converted(b, b.typing.join_kinds(x.dtype, "i64", b.pos, "np.vander"), x))
    one = b.typing.default(number_as(b, base.dtype, 1))
    factors = b.compute((x.shape[0], count), lambda i: Op("where", (Op("eq", (i[1], ZERO)), one, base.at(i[:1]))))
    powers = scanned(b, "mul", factors, 1)
    return powers if increasing else flip(b, powers, 1)


def meshgrid(b: Builder, arrays: Sequence[Array], indexing: str, sparse: bool, copy: bool) -> list[Array]:
    """Each array of one axis along its axis of a grid; the first two axes are exchanged under `xy`. `sparse`: the other
    axes of each have one element."""
    if indexing not in ("xy", "ij"):
        b.fail("E322", f"np.meshgrid has the indexing 'xy' and 'ij', not '{indexing}'")
    for x in arrays:
        if x.rank != 1:
            b.fail("E330", f"np.meshgrid takes arrays with one axis, not one of the shape {spelled(x.shape)}")
    places = list(range(len(arrays)))
    if indexing == "xy" and len(arrays) > 1:
        places[:2] = 1, 0
    shape = [arrays[n].shape[0] for n in places]
    if sparse:
        return [expand_dims(b, x, tuple([axis for axis in range(len(arrays)) if axis != place])) if len(arrays) > 1
                else x for x, place in zip(arrays, places, strict=True)]

    def along(x: Array, axis: int) -> Array:
        return b.compute(shape, lambda i: x.at((i[axis],)))
    return [along(x, places[n]) for n, x in enumerate(arrays)]


def triangle(b: Builder, x: Array, k: int, lower: bool) -> Array:
    """`np.tril` and `np.triu`: 0 on the other side of the diagonal k."""
    if x.rank < 2:
        b.fail("E330", f"a matrix is needed here, but the array has the shape {spelled(x.shape)}")
    zero = b.typing.default(number_as(b, x.dtype, 0))
    fn = "le" if lower else "ge"
    return b.compute(x.shape, lambda i: Op("where", (Op(fn, (i[-1], canonical(i[-2] + k))), x.at(i), zero)))


def diagonal_matrix(b: Builder, x: Array, k: int) -> Array:
    """`np.diag`: the matrix with a vector on its diagonal k, or a vector of the diagonal k of a matrix."""
    if x.rank == 2:
        return diagonal(b, x, k)
    if x.rank != 1:
        b.fail("E330", f"a vector or a matrix is needed here, but the array has the shape {spelled(x.shape)}")
    zero, side = b.typing.default(number_as(b, x.dtype, 0)), canonical(x.shape[0] + abs(k))
    return b.compute([side, side], lambda i: Op("where", (
        Op("eq", (i[1], canonical(i[0] + k))), x.at((i[0] if k >= 0 else i[1],)), zero)))


def array(b: Builder, written: Any, dtype: str | None) -> Array:
    """`np.array`: a copy of an array, or nested lists of numbers written out. Of scalars that are no numbers too."""
    if isinstance(written, Array | Term):
        return owned(_as(b, b.array(written), dtype))
    if _holds_arrays(b, written):
        return _as(b, stack(b, [array(b, part, None) for part in written]), dtype)
    shape = _nested(b, written)
    if math.prod(shape) > MOST_NUMBERS:
        b.fail("E322", f"an array that is written out has at most {MOST_NUMBERS} numbers")
    terms = _flat(b, written)
    if not terms:
        return zeros(b, [index(n) for n in shape], dtype)
    kind = b.typing.join(terms, "np.array")
    made = dtype or b.typing.storage(kind)
    exprs = [b.typing.default(cast_scalar(b, made, t)) for t in terms]

    def element(i: Indices) -> Expr:
        return _written_out(exprs, shape, i)

    return b.compute([index(n) for n in shape], element)


def _written_out(exprs: Sequence[Expr], shape: Sequence[int], i: Indices) -> Expr:
    if not shape:
        return exprs[0]
    width = len(exprs) // shape[0]
    return pieces(i[0], [(_written_out(exprs[n * width:(n + 1) * width], shape[1:], i[1:]), index(n + 1))
                         for n in range(shape[0])])


def _nested(b: Builder, written: Any) -> tuple[int, ...]:
    """The shape of nested lists."""
    if not isinstance(written, tuple | list):
        return ()
    shapes = {_nested(b, part) for part in written}
    if len(shapes) > 1:
        b.fail("E320", f"the parts of this list have different shapes, {' and '.join(map(str, sorted(shapes)))}")
    return (len(written), *(shapes.pop() if shapes else ()))


def _flat(b: Builder, written: Any) -> list[Term]:
    if isinstance(written, tuple | list):
        return [term for part in written for term in _flat(b, part)]
    term = term_of(written, b.pos)
    if term is None:
        b.fail("E322", f"np.array takes numbers and arrays in lists, not {described(written)}")
    return [b.term(term, ())]


def _holds_arrays(b: Builder, written: Any) -> bool:
    """Are there arrays with axes in a list?"""
    if isinstance(written, tuple | list):
        return any(_holds_arrays(b, part) for part in written)
    return isinstance(written, Array) and bool(written.rank)


def like(x: Operand) -> tuple[tuple[Expr, ...], str | None]:
    """The shape and the type of what `np.zeros_like` is given."""
    return shape_of(x), x.dtype if isinstance(x, Array) else x.kind if x.kind in DTYPES else None


