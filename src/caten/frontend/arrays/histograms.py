"""`np.histogram` with bins of equal width or with edges, and `np.histogram_bin_edges`."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.dtypes import DTYPES
from ...core.expr import Cast, Expr, Op, index, number
from ...loop.affine import canonical
from ...tensor.values import Inside, Scatter
from ..typing import WEAK_FLOAT, Literal
from .argument_binding import as_array, as_extent
from .array_reductions import reduced
from .builder import Builder
from .elementwise_functions import apply, choose, converted, number_as, term_of, truth
from .fourier import Numpy
from .handles import ZERO, Array, Operand, shape_of, size_term, spelled
from .reshaping import ravel
from .selection import select


def histogram(numpy: Numpy, b: Builder, x: Array, bins: Any, limits: Any, density: bool | None,
              weights: Array | None) -> tuple[Operand, Operand]:
    """How many elements, or the sum of their weights, are between neighbouring edges, the last of which belongs to the
    last bin; and the edges. `density`: divided by the sum and by the widths."""
    are_bools = weights is not None and weights.dtype == "bool"
    if weights is not None:
        if are_bools:
            weights = b.array(converted(b, "i64", weights))
        b.same_shape(weights.shape, x.shape, "the array whose elements have weights")
        weights = ravel(b, weights)
    edges = bin_edges(numpy, b, x, bins, limits)
    x = ravel(b, x)
    x = x if DTYPES[x.dtype].kind == "float" else b.array(converted(b, "f64", x))
    first, last = (b.array(select(b, edges, at)) for at in (0, -1))
    at = b.array(numpy(b, "searchsorted", converted(b, x.dtype, edges), x, side="right"))
    inside = b.array(apply(b, "and", apply(b, "ge", x, first), apply(b, "le", x, last)))
    made = _counted(b, at, inside, canonical(edges.shape[0] - 1), weights)
    if are_bools:                                        # is a weight true?
        made = b.array(truth(b, made))
    if not density:
        return made, edges
    widths = apply(b, "sub", select(b, edges, slice(1, None)), select(b, edges, slice(None, -1)))
    total = reduced(b, "add", b.array(converted(b, "f64", made)), None, False)
    return apply(b, "div", apply(b, "div", made, converted(b, "f64", widths)), total), edges


def bin_edges(numpy: Numpy, b: Builder, x: Array, bins: Any, limits: Any) -> Array:
    """Edges that are given, or those of bins of equal width between limits, without which they are the least and the
    greatest element."""
    if DTYPES[x.dtype].kind == "complex":
        b.fail("E304", "np.histogram is not defined on complex numbers", "np.abs and np.real give real ones")
    if isinstance(bins, str):
        b.fail("E327", f"the number of bins of np.histogram is given, and not chosen by '{bins}'", "bins=10")
    count = as_extent(b, bins)
    if count is None:
        edges = as_array(b, bins)
        if edges is None or edges.rank != 1:
            b.fail("E322", "the bins of np.histogram are their number, or their edges along one axis")
        return edges
    b.require(count > ZERO, "E326", "np.histogram has one bin at least")
    dtype = x.dtype if DTYPES[x.dtype].kind == "float" else "f64"
    low, high = [converted(b, dtype, each) for each in (_limits(b, limits) or _extremes(b, x, dtype))]
    width = apply(b, "div", apply(b, "sub", high, low), converted(b, dtype, size_term(count, b.pos)))
    places = b.compute((canonical(count + 1),), lambda i: Cast(dtype, i[0]))
    inner = b.array(apply(b, "add", apply(b, "mul", places, width), low))
    top = b.array(high)
    return b.compute(inner.shape, lambda i: Op("where", (Op("eq", (i[0], count)), top.at(()), inner.at(i))))


def _limits(b: Builder, limits: Any) -> list[Operand] | None:
    if limits is None:
        return None
    given = [term_of(each, b.pos) for each in limits] if isinstance(limits, tuple | list) else []
    found = [each for each in given if each is not None and not shape_of(each)]
    if len(found) != 2 or len(given) != 2:
        b.fail("E322", "the range of np.histogram is two numbers", "range=(0.0, 1.0)")
    return _apart(b, *found)


def _extremes(b: Builder, x: Array, dtype: str) -> list[Operand]:
    """The least and the greatest element; 0 and 1 of none."""
    z = ravel(b, b.array(converted(b, dtype, x)))
    is_empty = term_of(b.compute((), lambda _: Op("eq", (z.shape[0], ZERO))), b.pos)
    assert is_empty is not None
    found = [choose(b, is_empty, number_as(b, dtype, n), reduced(b, fn, z, None, False))
             for n, fn in enumerate(("min", "max"))]
    return _apart(b, *found)


def _apart(b: Builder, low: Operand, high: Operand) -> list[Operand]:
    """Limits of some distance: of equal ones half of one at each side."""
    half, same = Literal(WEAK_FLOAT, b.pos, value=0.5), apply(b, "eq", low, high)
    return [choose(b, same, apply(b, fn, each, half), apply(b, "mul", each, Literal(WEAK_FLOAT, b.pos, value=1.0)))
            for fn, each in (("sub", low), ("add", high))]


def _counted(b: Builder, above: Array, inside: Array, bins: Expr, weights: Array | None) -> Array:
    """`above`: the number of edges that are not above an element, the number of its bin + 1."""
    dtype = "i64" if weights is None else weights.dtype
    zeros = b.compute((bins,), lambda _: b.typing.default(number_as(b, dtype, 0)))
    axes, at = b.axes(above.shape)
    bin_ = Op("min", (Op("sub", (above.at(at), index(1))), canonical(bins - 1)))
    row = b.check(f"a bin of np.histogram is outside {spelled((bins,))}", b.pos)
    value = number(1, dtype) if weights is None else weights.at(at)
    return Array(b.define(Scatter(dtype, zeros.name, (bins,), axes, "add", (Inside(bin_, bins, row),), inside.at(at),
                                  value)), dtype, (bins,))


BINS = "bins=10 range=None"
HISTOGRAMS: dict[str, tuple[str, Callable[..., Any]]] = {
    "histogram": (f"a:array {BINS} density:bool=None weights:array=None", histogram),
    "histogram_bin_edges": (f"a:array {BINS}", bin_edges)}
