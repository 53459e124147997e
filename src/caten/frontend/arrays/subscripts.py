"""What stands between the brackets of `x[1:, None, ::-1, k]`: for each axis an index or a range, in affine form."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from ...core.expr import Cast, Const, Expr, Op, index
from ...frozen import frozen
from ...loop.affine import canonical
from ..typing import WEAK_INT, Literal, Term
from .argument_binding import as_array
from .builder import Builder
from .handles import ONE, ZERO, Array, dtype_of, is_one, is_whole, spelled, spelled_extent
from .size_facts import ceiling_quotient


@frozen
class At:
    """One element of an axis."""

    index: Expr


@frozen
class Range:
    """`count` elements of an axis from `start` on, in steps of `step`, a positive number or size. `is_down`: counts
    down."""

    start: Expr
    count: Expr
    step: Expr = ONE
    is_down: bool = False


@frozen
class Gathered:
    """The elements that an array of integers names."""

    index: Array


@frozen
class Listed:
    """The elements that a list of numbers names."""

    indices: tuple[Expr, ...]


@frozen
class Masked:
    """The elements where an array of bools is true."""

    mask: Array


class New:
    """A new axis of extent 1."""


Item = At | Range | Gathered | Listed | Masked | New


def items_of(b: Builder, x: Array, written: Any) -> list[Item]:
    """An item for each axis of x, and for each new axis."""
    parts = list(written) if isinstance(written, tuple) else [written]
    used = sum([_axes_of(part) for part in parts])
    if sum([part is Ellipsis for part in parts]) > 1:
        b.fail("E323", "only one '...' can stand in an index")
    if used > x.rank:
        axes = f"{x.rank} {'axis' if x.rank == 1 else 'axes'}"
        b.fail("E307", f"{spelled(x.shape)} has {axes}, but {used} {'index is' if used == 1 else 'indices are'} given")
    if Ellipsis not in parts:
        parts.append(Ellipsis)
    items: list[Item] = []
    axis = 0
    for part in parts:
        if part is None:
            items.append(New())
        elif part is Ellipsis:
            items += [Range(ZERO, extent) for extent in x.shape[axis:axis + x.rank - used]]
            axis += x.rank - used
        else:
            items.append(_item(b, part, x, axis))
            axis += _axes_of(part)
    return items


def _axes_of(part: Any) -> int:
    """How many axes a part of an index uses."""
    if part is None or part is Ellipsis:
        return 0
    return part.rank if isinstance(part, Array) and part.dtype == "bool" else 1


def _item(b: Builder, part: Any, x: Array, axis: int) -> Item:
    extent = x.shape[axis]
    match part:
        case slice():
            return range_of(b, part, extent)
        case bool():
            pass
        case int() | Literal(kind="int?"):
            return At(element_of(b, index(part if isinstance(part, int) else int(part.value)), extent, x, axis))
        case Term(kind="int?"):
            return At(element_of(b, b.typing.default(part), extent, x, axis))
        case Array(dtype="bool"):
            return Masked(part)
        case Array() | Term() if is_whole(dtype_of(part)):
            return Gathered(b.array(part))
        case list() | tuple() if part and all(isinstance(each, int | Literal) for each in part):
            return Listed(tuple([element_of(b, b.typing.default(_number(each)), extent, x, axis) for each in part]))
        case list() if part and (made := as_array(b, part)) is not None and made.rank == 1 and is_whole(made.dtype):
            return Gathered(made)                              # some of them are computed: [k, p]
    b.fail("E306", "an index is an integer, a slice, an array of integers, None or '...'",
           "convert numbers with .astype(np.int64)")


def _number(value: int | Literal) -> Literal:
    return Literal(WEAK_INT, 0, value=value) if isinstance(value, int) else value


def element_of(b: Builder, at: Expr, extent: Expr, x: Array, axis: int) -> Expr:
    """An index that is known at entry, counted from 0; a condition that it is inside. E323 if it never is."""
    number = canonical(at)
    if b.sizes.varies(number):                         # the access is checked where it is made
        if b.lang == "lisp" or b.sizes.proves(number >= ZERO):
            return number
        return canonical(extent + number) if b.sizes.proves(number < ZERO) else index_in(b, number, extent)
    message = (f"the index {spelled_extent(number)} is outside axis {axis} of {spelled(x.shape)}")
    if b.sizes.proves(number < ZERO):
        number = canonical(extent + number)
    b.require(number >= ZERO, "E323", message)
    b.require(number < extent, "E323", message)
    return number


def range_of(b: Builder, part: slice, extent: Expr) -> Range:
    """The elements of a slice, without what lies outside, as in numpy. Of bounds that are computed from sizes, that
    nothing does becomes a condition: they are meant to be inside, and extents that are minima of several sizes are in
    the way of plans. So it does in a loop: the number of elements is that of every iteration."""
    step, is_down = _step(b, part.step)
    last = canonical(extent - ONE)
    start = (last if is_down else ZERO) if part.start is None else _bound(b, part.start, extent)
    stop = (index(-1) if is_down else extent) if part.stop is None else _bound(b, part.stop, extent)
    low, high = (canonical(stop + ONE), canonical(start + ONE)) if is_down else (start, stop)
    is_computed = any(isinstance(each, Term) for each in (part.start, part.stop))
    if b.lang == "lisp" or is_computed or is_one(canonical(high - low)) or any(map(b.sizes.varies, (start, stop))):
        if b.sizes.refutes(low <= high) or b.sizes.refutes(high >= ZERO) or b.sizes.refutes(low <= extent):
            return Range(ZERO, ZERO, step, is_down)
        low = low if b.sizes.demand(low >= ZERO, b.pos) else ZERO
        high = high if b.sizes.demand(high <= extent, b.pos) else extent
        b.sizes.demand(low <= high, b.pos)
        length = canonical(high - low)
    else:
        lows, highs = _greatest(b, [low, ZERO]), _least(b, [high, extent])
        low, high = reduce(_max, lows), reduce(_min, highs)
        differences = _least(b, [canonical(y - x) for x in lows for y in highs])
        length = reduce(_max, _greatest(b, [reduce(_min, differences), ZERO]))
    if length is ZERO:
        return Range(ZERO, ZERO, step, is_down)
    return Range(canonical(high - ONE) if is_down else low, ceiling_quotient(length, step), step, is_down)


def _step(b: Builder, written: Any) -> tuple[Expr, bool]:
    """The width of a step, and whether it counts down. Of one that is computed from sizes that is known by what it is
    made of, `-N`, or else it counts up; that it is not 0 becomes a condition. E323 for 0."""
    if written is None:
        return ONE, False
    if isinstance(written, Term) and written.kind == WEAK_INT:
        step = canonical(b.typing.default(written))
    elif isinstance(written, int) and not isinstance(written, bool):
        step = index(written)
    else:
        b.fail("E326", "the step of a slice is a number or a size that is known at entry",
               "an attribute or the extent of an array is one")
    is_down = b.sizes.proves(step <= ZERO)
    width = canonical(ZERO - step) if is_down else step
    b.require(width > ZERO, "E323", "the step of this slice is 0", "a negative step counts down")
    return width, is_down


def _least(b: Builder, values: Sequence[Expr]) -> list[Expr]:
    """The values of which the least is always the least of all."""
    return _kept(values, lambda x, y: b.sizes.proves(x <= y))


def _greatest(b: Builder, values: Sequence[Expr]) -> list[Expr]:
    return _kept(values, lambda x, y: b.sizes.proves(x >= y))


def _kept(values: Sequence[Expr], is_enough: Callable[[Expr, Expr], bool]) -> list[Expr]:
    """The values without those in whose place another one is enough."""
    kept: list[Expr] = []
    for value in values:
        if not any(is_enough(other, value) for other in kept):
            kept = [*[other for other in kept if not is_enough(value, other)], value]
    return kept


def _min(x: Expr, y: Expr) -> Expr:
    return canonical(Op("min", (x, y)))


def _max(x: Expr, y: Expr) -> Expr:
    return canonical(Op("max", (x, y)))


def _bound(b: Builder, written: Any, extent: Expr) -> Expr:
    """The start or the end of a slice, counted from the beginning."""
    if isinstance(written, int) and not isinstance(written, bool):
        value: Expr = index(written)
    elif isinstance(written, Term) and written.kind == WEAK_INT:
        value = canonical(b.typing.default(written))
    else:
        b.fail("E326", "the bounds of a slice are numbers and sizes that are known at entry",
               "an index may be an element of an array, a bound may not")
    if b.sizes.proves(value < ZERO) or (not isinstance(value, Const) and b.sizes.proves(value <= ZERO)):
        return canonical(extent + value)
    if not isinstance(value, Const) and not b.sizes.proves(value >= ZERO):
        b.sizes.demand(value >= ZERO, b.pos)                 # a number of either sign would count from either end
    return value


def index_in(b: Builder, element: Expr, extent: Expr) -> Expr:
    """An element of an array of integers as an index, which counts from the end if it is negative."""
    wide = element if element.dtype == "i64" else Cast("i64", element)
    if element.dtype.startswith("u") or b.is_never_negative(element):
        return wide
    return Op("where", (wide < 0, canonical(wide + extent), wide))
