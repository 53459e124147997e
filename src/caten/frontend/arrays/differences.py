"""Differences between neighbours, and sums over them: `np.gradient`, `np.diff`, `np.ediff1d`, `np.trapezoid`."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.expr import Op, index
from ..typing import WEAK_FLOAT, Literal
from .argument_binding import as_operand
from .array_reductions import total
from .axis_arguments import axes_of, axis_of
from .builder import Builder
from .elementwise_functions import apply, converted, floating, term_of
from .fourier import Numpy
from .handles import ONE, Array, Operand, shape_of, spelled
from .joining import concatenate
from .reshaping import ravel
from .selection import select
from .views import broadcast_to, moveaxis


def gradient(numpy: Numpy, b: Builder, x: Array, spacing: tuple[Any, ...], axis: Any, edge_order: int) -> Any:
    """Along one axis; along several, or (None) all of more than one, a list. `spacing`: the distance, or the places of
    the elements, for all axes or for each."""
    if edge_order not in (1, 2):
        b.fail("E326", f"the edge_order of np.gradient is 1 or 2, and not {edge_order}")
    axes = axes_of(b, axis, x.rank)
    gaps = list(spacing) * len(axes) if len(spacing) == 1 else [*spacing] or [1.0] * len(axes)
    operands = [found for gap in gaps if (found := as_operand(b, gap)) is not None and len(shape_of(found)) < 2]
    if len(gaps) != len(axes) or len(operands) != len(gaps):
        b.fail("E327", "the distances of np.gradient are one number, or for each axis a number or the places of its "
                       "elements")
    made = [_slope(b, floating(b, x), gap, n, edge_order) for gap, n in zip(operands, axes, strict=True)]
    return made[0] if len(axes) == 1 else made


def _slope(b: Builder, x: Array, gap: Operand, axis: int, edge_order: int) -> Array:
    """Central differences, one-sided at both ends, in the type of x. `edge_order`: 2 takes three elements there."""
    b.require(Op("le", (index(edge_order + 1), x.shape[axis])), "E323",
              f"axis {axis} of {spelled(x.shape)} is too short for np.gradient: it needs {edge_order + 1} elements")
    z = moveaxis(b, x, axis, -1)
    if isinstance(gap, Array) and gap.rank:
        b.same_shape(gap.shape, (x.shape[axis],), f"axis {axis} of the array")
        parts = _between_places(b, z, floating(b, gap), edge_order)
    else:
        parts = _at_equal_distances(b, z, gap, edge_order)
    made = b.array(converted(b, x.dtype, concatenate(b, parts, -1)))
    return moveaxis(b, made, -1, axis)


def _part(b: Builder, x: Array, *bounds: int | None) -> Array:
    return select(b, x, (Ellipsis, slice(*bounds)))


def _at_equal_distances(b: Builder, z: Array, gap: Operand, edge_order: int) -> list[Array]:
    """What is at the first place, between, and at the last one."""
    def times(operand: Operand, factor: float) -> Operand:
        return apply(b, "mul", operand, Literal(WEAK_FLOAT, b.pos, value=factor))

    def difference(after: Operand, before: Operand, width: Operand) -> Array:
        return b.array(apply(b, "div", apply(b, "sub", after, before), width))
    twice = times(gap, 2.0)
    inner = difference(_part(b, z, 2, None), _part(b, z, None, -2), twice)
    if edge_order == 1:
        return [difference(_part(b, z, 1, 2), _part(b, z, 0, 1), gap), inner,
                difference(_part(b, z, -1, None), _part(b, z, -2, -1), gap)]
    first, second, third = [_part(b, z, n, n + 1) for n in range(3)]
    last, next_to_last, before = _part(b, z, -1, None), _part(b, z, -2, -1), _part(b, z, -3, -2)
    return [difference(times(second, 4.0), apply(b, "add", times(first, 3.0), third), twice), inner,
            difference(apply(b, "add", times(last, 3.0), before), times(next_to_last, 4.0), twice)]


def _between_places(b: Builder, z: Array, places: Array, edge_order: int) -> list[Array]:
    """The slope of the parabola through three neighbours, or of the line through the two outermost elements."""
    gaps = b.array(apply(b, "sub", _part(b, places, 1, None), _part(b, places, None, -1)))
    slopes = b.array(apply(b, "div", apply(b, "sub", _part(b, z, 1, None), _part(b, z, None, -1)), gaps))

    def weighted(near: Array, far: Array, near_gap: Array, far_gap: Array, sign: str) -> Array:
        """near + or - (far - near) · near_gap / (near_gap + far_gap)."""
        share = apply(b, "div", near_gap, apply(b, "add", near_gap, far_gap))
        return b.array(apply(b, sign, near, apply(b, "mul", apply(b, "sub", far, near), share)))
    left, right = [(_part(b, each, None, -1), _part(b, each, 1, None)) for each in (slopes, gaps)]
    inner = weighted(left[0], left[1], right[0], right[1], "add")
    if edge_order == 1:
        return [_part(b, slopes, 0, 1), inner, _part(b, slopes, -1, None)]
    ends = [((0, 1), (1, 2)), ((-1, None), (-2, -1))]
    first, last = [weighted(_part(b, slopes, *near), _part(b, slopes, *far), _part(b, gaps, *near),
                            _part(b, gaps, *far), "sub") for near, far in ends]
    return [first, inner, last]


def trapezoid(numpy: Numpy, b: Builder, y: Array, x: Array | None, dx: Any, axis: Any) -> Operand:
    """`x`: where the points are, for all rows or for each."""
    place = axis_of(b, axis, y.rank)
    y = moveaxis(b, y, place, -1)
    points = None if x is None else x if x.rank < 2 else moveaxis(b, x, place, -1)
    gaps: Any = term_of(dx, b.pos) if points is None else numpy(b, "diff", points, axis=-1)
    pairs = apply(b, "add", select(b, y, (Ellipsis, slice(1, None))), select(b, y, (Ellipsis, slice(None, -1))))
    half = apply(b, "div", pairs, Literal(WEAK_FLOAT, b.pos, value=2.0))
    return total(b, "add", b.array(apply(b, "mul", gaps, half)), -1, None, False)


def diff(numpy: Numpy, b: Builder, x: Array, n: int, axis: Any, prepend: Operand | None,
          append: Operand | None) -> Operand:
    """Of bools whether neighbours differ. What is put before and behind has its own type, as an array has."""
    if n < 0:
        b.fail("E326", f"np.diff is taken 0 times or more, not {n}")
    place = axis_of(b, axis, x.rank)
    if n == 0:                                               # as in NumPy, whatever is put before and behind
        return x
    edges: list[list[Array]] = []
    for edge in (prepend, append):
        if edge is not None and not shape_of(edge):
            edge = broadcast_to(b, b.array(edge), tuple([
                ONE if at == place else extent for at, extent in enumerate(x.shape)]))
        edges.append([] if edge is None else [b.array(edge)])
    before, after = edges
    z = concatenate(b, [*before, x, *after], place) if before or after else x
    for _ in range(n):
        upper, lower = (select(b, z, (*[slice(None)] * place, part)) for part in (slice(1, None), slice(None, -1)))
        z = b.array(apply(b, "ne" if z.dtype == "bool" else "sub", upper, lower))
    return z


def ediff1d(numpy: Numpy, b: Builder, x: Array, to_end: Array | None, to_begin: Array | None) -> Operand:
    change = b.array(diff(numpy, b, ravel(b, x), 1, 0, None, None))
    return concatenate(b, [b.array(converted(b, x.dtype, ravel(b, each))) if each is not change else each
                           for each in (to_begin, change, to_end) if each is not None], 0)


# By their names: the signature, and what makes the result.
DIFFERENCES: dict[str, tuple[str, Callable[..., Any]]] = {
    "gradient": ("f:array *varargs axis=None edge_order:int=1", gradient),
    "trapezoid": ("y:array x:array=None dx:operand=1.0 axis=-1", trapezoid),
    "diff": ("a:array n:int=1 axis=-1 prepend:operand=None append:operand=None", diff),
    "ediff1d": ("ary:array to_end:array=None to_begin:array=None", ediff1d)}
