"""`np.pad`: constants, elements, ramps and statistics before and after the elements of an array."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core.dtypes import DTYPES, is_complex
from ...core.expr import Cast, Expr, Op, index
from ...loop.affine import canonical
from ..typing import WEAK_INT, Literal
from .argument_binding import as_extent
from .array_reductions import mean, reduced
from .builder import Builder
from .elementwise_functions import apply, converted, term_of
from .fourier import Numpy
from .handles import ONE, ZERO, Array, Indices, Operand, dtype_of, is_whole, shape_of, size_term, spelled
from .joining import concatenate
from .numpy_promotion import as_truth
from .selection import pieces, select
from .views import flip

Widths = Sequence[tuple[Expr, Expr]]
STATISTICS = ("maximum", "minimum", "mean", "median")
MODES = ("constant", "edge", "reflect", "symmetric", "wrap", "linear_ramp", *STATISTICS, "empty")


def pad(numpy: Numpy, b: Builder, x: Array, widths: Any, mode: str, constant_values: Any, end_values: Any,
        stat_length: Any, reflect_type: str) -> Array:
    """What a mode puts around the elements. Widths, values and lengths are given for all axes and sides, as a pair for
    all axes, or as a pair for each axis. E322 for other ones, E323 for an axis that is too short."""
    if mode not in MODES:
        b.fail("E327", f"np.pad with the mode '{mode}' is not supported yet", f"there are {', '.join(MODES)}")
    known = pairs_of(b, widths, x.rank, as_extent, "widths", "numbers and sizes that are known at entry")

    def numbers(written: Any, what: str) -> list[tuple[Any, Any]]:
        return pairs_of(b, written, x.rank, _number, what, "numbers")
    if mode in ("constant", "empty"):
        return with_constants(b, x, known, numbers(constant_values if mode == "constant" else 0, "constants"))
    if mode == "linear_ramp":
        return _by_axes(b, x, known, _ramps(numbers(end_values, "end values")))
    if mode in STATISTICS:
        lengths = [(None, None)] * x.rank if stat_length is None else pairs_of(
            b, stat_length, x.rank, _length, "stat_length", "1 element or more")
        return _by_axes(b, x, known, _statistics(numpy, mode, lengths))
    if reflect_type not in ("even", "odd"):
        b.fail("E322", f"np.pad has the reflect_type 'even' and 'odd', not '{reflect_type}'")
    if reflect_type == "odd" and mode in ("reflect", "symmetric"):
        return _by_axes(b, x, known, _turned(mode))
    return with_elements(b, x, known, mode)


def pairs_of(b: Builder, written: Any, rank: int, read: Callable[[Builder, Any], Any], what: str,
             wanted: str) -> list[tuple[Any, Any]]:
    """A value or a pair for all axes, or for each axis a pair, or a value in a list. `read`: reads one, or None."""
    parts = written if isinstance(written, tuple | list) else [written]
    if not any(isinstance(part, tuple | list) for part in parts):
        parts = [parts]
    if len(parts) == 1:
        parts = [*parts] * rank
    lengths = {len(part) if isinstance(part, tuple | list) else 0 for part in parts}
    if len(parts) != rank or not (lengths <= {1} or lengths <= {2}):
        b.fail("E322", f"the {what} of np.pad are a number, a pair, or a pair for each of {rank} axes",
               "((before, after), …)")
    found = [(read(b, part[0]), read(b, part[-1])) for part in parts]
    if any(side is None for pair in found for side in pair):
        b.fail("E322", f"the {what} of np.pad are {wanted}")
    return found


def _number(b: Builder, written: Any) -> Operand | None:
    found = term_of(written, b.pos)
    return None if found is None or isinstance(found, Array) else found


def _length(b: Builder, written: Any) -> int | None:
    return written if isinstance(written, int) and not isinstance(written, bool) and written > 0 else None


def with_constants(b: Builder, x: Array, widths: Widths, values: Sequence[tuple[Operand, Operand]]) -> Array:
    """Constants before and after the elements, in the corners those of the later axis."""
    fillers = [(_filler(b, x, before), _filler(b, x, after)) for before, after in values]
    shape = [canonical(before + extent + after) for (before, after), extent in zip(widths, x.shape, strict=True)]
    axes = list(range(x.rank))
    if len({each for pair in fillers for each in pair}) <= 1:            # where any order of the axes has one meaning
        axes.reverse()

    def element(i: Indices) -> Expr:
        inner = x.at([at - before if before is not ZERO else at for at, (before, _) in zip(i, widths, strict=True)])
        for n in axes:
            (before, _), (low, high) = widths[n], fillers[n]
            inner = pieces(i[n], [(low, before), (inner, canonical(before + x.shape[n])), (high, shape[n])])
        return inner

    return b.compute(shape, element)


def _filler(b: Builder, x: Array, value: Operand) -> Expr:
    """A constant in the type of the elements."""
    if not isinstance(value, Array):
        value = as_truth(value, x.dtype)
    given = dtype_of(value)
    if x.dtype != "bool" and DTYPES[x.dtype].kind in ("int", "uint") and given != WEAK_INT and given != x.dtype:
        return b.typing.default(b.term(converted(b, x.dtype, value), ()))         # without the fraction, as in NumPy
    return b.typing.settle(b.term(value, ()), x.dtype, "the constant")


def with_elements(b: Builder, x: Array, widths: Widths, mode: str) -> Array:
    """`edge`: the outermost elements; `wrap`: those of the other end; `reflect` and `symmetric`: mirrored, without and
    with the outermost one. A width beyond one length of the axis goes on in the same way, by a remainder."""
    _long_enough(b, x, widths, "edge")
    whole = [canonical(before + extent + after) for (before, after), extent in zip(widths, x.shape, strict=True)]
    mirrored = {"symmetric": 1, "reflect": 0}.get(mode)

    def element(i: Indices) -> Expr:
        def along(n: int, at: tuple[Expr, ...]) -> Expr:
            if n == x.rank:
                return x.at(at)
            (before, after), extent, here = widths[n], x.shape[n], i[n]
            if mirrored is not None:
                low, high = before - here - mirrored, before + extent * 2 - here - 2 + mirrored
            elif mode == "edge":
                low, high = ZERO, extent - 1
            else:
                low, high = here - before + extent, here - before - extent
            if mode != "edge" and not b.sizes.proves(_least(before, mode) <= extent):
                low = _periodic(here - before, extent, mirrored)
            if mode != "edge" and not b.sizes.proves(_least(after, mode) <= extent):
                high = _periodic(here - before, extent, mirrored)
            parts = [(low, before)] if before is not ZERO else []
            parts.append((here - before, canonical(before + extent)))
            parts += [(high, whole[n])] if after is not ZERO else []
            return pieces(here, [(along(n + 1, (*at, canonical(position))), stop) for position, stop in parts])
        return along(0, ())

    return b.compute(whole, element)


def _least(width: Expr, mode: str) -> Expr:
    """The extent of which a width adds at most one length."""
    return canonical(width + 1) if mode == "reflect" else width


def _periodic(at: Expr, extent: Expr, mirrored: int | None) -> Expr:
    """Which element stands at a place, counted from the first element, perhaps below 0: the elements, or these and
    their mirror image, are repeated."""
    if mirrored is None:
        return Op("mod", (at, extent))
    last = canonical(extent * 2 - 2 + mirrored)              # and the first are images of each other
    place = Op("mod", (at, canonical(Op("max", (canonical(last + mirrored), ONE)))))
    nearer = Op("min", (place, canonical(last - place)))
    return Op("max", (Op("min", (nearer, canonical(extent - 1))), ZERO))       # as it is, and seen to be an element


def _long_enough(b: Builder, x: Array, widths: Widths, mode: str) -> None:
    for n, (extent, sides) in enumerate(zip(x.shape, widths, strict=True)):
        for width in sides:
            least = {"wrap": width, "symmetric": width, "reflect": canonical(width + 1)}.get(mode, ONE)
            if width is not ZERO:
                b.require(least <= extent, "E323", f"axis {n} of {spelled(x.shape)} is too short for this padding")


# Modes that are applied to one axis after the other: what a side gets, from the array, the axis, the width, and whether
# it is the side behind the elements.
Side = Callable[[Builder, Array, int, Expr, bool], Array]


def _by_axes(b: Builder, x: Array, widths: Widths, side: Side) -> Array:
    _long_enough(b, x, widths, "edge")
    for axis, (before, after) in enumerate(widths):
        parts = [*([side(b, x, axis, before, False)] if before is not ZERO else []), x,
                 *([side(b, x, axis, after, True)] if after is not ZERO else [])]
        x = concatenate(b, [b.array(converted(b, x.dtype, part)) for part in parts], axis)
    return x


def _part(b: Builder, x: Array, axis: int, part: slice) -> Array:
    return select(b, x, (*[slice(None)] * axis, part))


def _outermost(b: Builder, x: Array, axis: int, behind: bool) -> Array:
    return _part(b, x, axis, slice(-1, None) if behind else slice(0, 1))


def _ramps(ends: Sequence[tuple[Operand, Operand]]) -> Side:
    """From the outermost element to the end value, which is the last number on the side; of integers rounded down."""
    def side(b: Builder, x: Array, axis: int, width: Expr, behind: bool) -> Array:
        dtype = "c128" if is_complex(x.dtype) else "f64"
        edge = converted(b, dtype, _outermost(b, x, axis, behind))
        end = converted(b, dtype, ends[axis][behind])
        shape = [width if n == axis else ONE for n in range(x.rank)]
        places = b.compute(shape, lambda i: Cast("f64", canonical(width - 1 - i[axis]) if behind else i[axis]))
        step = apply(b, "div", apply(b, "sub", edge, end), converted(b, "f64", size_term(width, b.pos)))
        made = apply(b, "add", apply(b, "mul", places, step), end)
        return b.array(apply(b, "floor", made) if is_whole(x.dtype) else made)
    return side


def _statistics(numpy: Numpy, mode: str, lengths: Sequence[tuple[int | None, int | None]]) -> Side:
    """A statistic of the outermost elements, as many as are given, or of all; of integers rounded."""
    def side(b: Builder, x: Array, axis: int, width: Expr, behind: bool) -> Array:
        length = lengths[axis][behind]
        part = x if length is None else _part(b, x, axis, slice(-length, None) if behind else slice(0, length))
        if mode in ("maximum", "minimum"):
            found: Operand = reduced(b, mode[:3], part, axis, True)
        else:
            found = mean(b, part, axis, None, True) if mode == "mean" else numpy(
                b, "median", part, axis=axis, keepdims=True)
            found = apply(b, "round", found) if is_whole(x.dtype) else found
        one = b.array(found)
        if one.rank < x.rank:                                # an operator that leaves the axis out
            one = b.view(one, [ONE if n == axis else extent for n, extent in enumerate(x.shape)],
                         lambda i: [at for n, at in enumerate(i) if n != axis])
        shape = [width if n == axis else extent for n, extent in enumerate(shape_of(one))]
        return b.view(one, shape, lambda i: [ZERO if n == axis else at for n, at in enumerate(i)])
    return side


def _turned(mode: str) -> Side:
    """Mirrored at the outermost element in place and value."""
    def side(b: Builder, x: Array, axis: int, width: Expr, behind: bool) -> Array:
        _long_enough(b, x, [(width, ZERO) if n == axis else (ZERO, ZERO) for n in range(x.rank)], mode)
        skipped = index(int(mode == "reflect"))
        extent = x.shape[axis]
        first = canonical(extent - width - skipped) if behind else skipped
        shape = [width if n == axis else each for n, each in enumerate(x.shape)]
        part = b.view(x, shape, lambda i: [at + first if n == axis else at for n, at in enumerate(i)])
        twice = apply(b, "mul", _outermost(b, x, axis, behind), Literal(WEAK_INT, b.pos, value=2))
        return b.array(apply(b, "sub", twice, flip(b, part, axis)))
    return side
