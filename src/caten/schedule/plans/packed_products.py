"""Plans of products and convolutions whose operands are packed.

Panels of both operands are copied, so that the micro-kernel reads them contiguously, and a register tile of the result
is kept (Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication, 2008). Convolutions pack their
windows (im2col; Chellapilla et al., High Performance Convolutional Neural Networks for Document Processing, 2006).
"""
from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

from ...core.dtypes import DTYPES
from ...frozen import frozen
from .parameters import Parameter
from .plan import Axis, NotApplicable, Plan, PlanContext, Version, both
from .product import ROWS, SMALL_BATCH, VECTORS, Product, at_least, batch_size, iterations, register_rows

DEPTH = Parameter("gemm.depth", (64, 128, 256, 512, 1024), 256, what="block of the sum per visit of a tile (kc)")
QUARTERS = Parameter("gemm.quarters", (1, 2, 3), 2,
                     what="quarters of the last private cache that the packed left panel fills (mc)")
PANELS = Parameter("gemm.panels", (8, 16, 32, 64, 128), 32,
                   what="register tiles along the columns of a packed right panel (nc)")
AHEAD = Parameter("gemm.ahead", (1, 2, 4, 8, 16), 4, what="prefetch distance of packing in rows")
ORDER = Parameter("gemm.order", (0, 1), 0, what="which loop over register tiles is outside: columns (0) or rows (1)")
UNROLL = Parameter("gemm.unroll", (1, 2, 4), 1, what="unroll factor of the sum in the micro-kernel")
STEPS = Parameter("gemm.steps", (1, 8, 32), 8, what="longest inner sum that is fully unrolled")
WIDTH = Parameter("convolution.width", (4, 8, 16), 8, what="pixels of an image line in a tile of several lines")
SMALL_PRODUCT = 1 << 24         # multiplications of a product whose threads do not wait for each other
PANEL_TILES = 2                 # register tiles of the panels of columns that they share
PANEL_ROWS = 256                # of the panels that each of them packs: every thread needs memory for them
NARROW_TILES = 4                # an image is small if a line is shorter than so many register tiles
FILTERS = 64                    # of a panel if threads share the filters of a convolution
FEW_PIXELS = 1024               # most pixels of such a convolution
DEEPER = 2                      # times the depth of the sum: tiles across edges of the image are added slowly
USUAL_WINDOW = 3                # assumed extent of a window if it is unknown


# -- plans -------------------------------------------------------------------------------------------------------------
@frozen
class PackedGemm(Plan):
    """A GEMM with both operands packed. The register tile is `rows` × `columns`; the sum is blocked by `depth` (kc),
    the rows by `panel_rows` (mc), the columns by `panel_columns` (nc; 0: not blocked). `prefetch`: distance in rows
    while packing. `rows_outer`: the loop over row tiles is outside of that over column tiles. `unroll`: of the sum.
    `unroll_inner`: the innermost constant loop of the sum is fully unrolled. `pack_along_sum`: A is contiguous along
    the sum and is packed in that direction. `transpose_right`: so is B, and is transposed in registers where it is
    packed. `parallel_product`: threads share each product of a batch. `parallel_panels`: they share the panels of
    columns, and each packs its own."""

    rows: int
    columns: int
    lanes: int
    depth: int
    panel_rows: int
    panel_columns: int
    prefetch: int
    rows_outer: bool = False
    unroll: int = 1
    unroll_inner: bool = False
    pack_along_sum: bool = False
    transpose_right: bool = False
    parallel_product: bool = False
    parallel_panels: bool = False


@frozen
class PackedConvolution(Plan):
    """A packed GEMM whose columns are pixels: the register tile is `rows` (filters) × `lines` × `width` pixels.
    `constant_window`: the length of a window's row is constant. `transpose_left`: the filters are transposed while they
    are packed. `parallel_filters`: threads share the panels of filters, not the pixels. The other fields are those of
    `PackedGemm`."""

    rows: int
    lines: int
    width: int
    lanes: int
    depth: int
    panel_rows: int
    prefetch: int
    constant_window: bool = False
    unroll_inner: bool = False
    transpose_left: bool = False
    parallel_filters: bool = False


# -- planners ----------------------------------------------------------------------------------------------------------
def pointwise_convolution(p: Product, context: PlanContext) -> Version:
    """For windows of one pixel (1 × 1 convolution): the sum runs over channels alone, so it is as deep as in a GEMM."""
    sizes = [axis.size for axis in p.sums[1:] if axis.count is None]
    if not p.has_windows or not sizes or not all(sizes) or len(sizes) < len(p.sums[1:]):
        raise NotApplicable("there are no windows whose extents are all sizes of the call")
    inner = replace(p, sums=p.sums[:1], has_windows=False, is_2d=True)
    return Version(_packed_convolution(inner, context), both(*[("=", size, "1") for size in sizes]), "p")


def small_images(p: Product, context: PlanContext) -> Version:
    """For products over the pixels of small images: register tiles span several lines, as in a convolution."""
    if p.has_windows or len(p.columns) < 2 or len(p.sums) > 1:
        raise NotApplicable("the columns are not lines of images, or there is more than one sum")
    *_, line, column = p.columns
    width, columns = context.value(WIDTH), context.value(VECTORS) * context.lanes([p.dtype])
    if not line.size or not column.size:
        raise NotApplicable(f"the extents of '{line.name}' and '{column.name}' are no sizes")
    if columns <= width:
        raise NotApplicable("a register tile is no wider than one of its lines")
    small = ("and", ("<", column.size, str(NARROW_TILES * columns)), at_least(line, columns // width))
    return Version(_packed_convolution(replace(p, is_2d=True), context), small, "l")


def small_batch(p: Product, context: PlanContext) -> Version:
    """For small batches: threads share each product."""
    count = batch_size(p)
    if p.has_windows or not context.uses_threads or count is None:
        raise NotApplicable("no threads share it, or the batch size is no size of the call")
    return Version(replace(_packed_gemm(p, context), parallel_product=True), ("<", count, str(SMALL_BATCH)), "f")


def convolution(p: Product, context: PlanContext) -> Version:
    """For convolutions: the windows under a register tile are packed next to each other (im2col), with zeros for the
    halo, so that the micro-kernel has no edge conditions."""
    if not p.has_windows:
        raise NotApplicable("no operand is read in windows")
    return Version(_windows(p, context))


def few_pixels_in_wide_tiles(p: Product, context: PlanContext) -> Version:
    """For convolutions of small images with many filters, if wide tiles cover the image better."""
    few, wide = few_pixels(p, context), wide_tiles(p, context)
    assert isinstance(few.plan, PackedConvolution) and isinstance(wide.plan, PackedConvolution)
    return Version(replace(few.plan, lines=wide.plan.lines, width=wide.plan.width), both(few.when, wide.when), "q")


def few_pixels(p: Product, context: PlanContext) -> Version:
    """For convolutions of small images with many filters: threads share the filters, so that none waits for another
    one to pack, or has no pixels. Many filters read the packed windows, so these may be too large for L1."""
    filters, pixels = p.rows[-1], iterations((*p.batch, *p.columns))
    if not p.has_windows or not context.uses_threads or not filters.size or pixels is None:
        raise NotApplicable("no threads share it, or its extents are no sizes")
    plan = _windows(p, context)
    panel = max(1, FILTERS // plan.rows) * plan.rows
    cond = both(at_least(filters, 2 * panel), ("<=", pixels, str(FEW_PIXELS)))
    return Version(replace(plan, depth=DEEPER * plan.depth, panel_rows=panel, parallel_filters=True), cond, "o")


def wide_tiles(p: Product, context: PlanContext) -> Version:
    """For convolutions of images that fewer register tiles cover if these have half as many lines, of twice the
    width: 14 × 14 pixels are 7 tiles of 2 × 16, but 8 of 4 × 8."""
    if not p.has_windows:
        raise NotApplicable("no operand is read in windows")
    tall = _windows(p, context)
    if tall.lines % 2:
        raise NotApplicable("a register tile is one line")
    *_, line, column = p.columns
    if not line.size or not column.size:
        raise NotApplicable(f"the extents of '{line.name}' and '{column.name}' are no sizes")
    wide = replace(tall, lines=tall.lines // 2, width=2 * tall.width)
    return Version(wide, ("<", _tiles(line, column, wide), _tiles(line, column, tall)), "h")


def _tiles(line: Axis, column: Axis, plan: PackedConvolution) -> Any:
    """The number of register tiles that cover an image."""
    lines, columns = [("floordiv", ("+", axis.size, str(extent - 1)), str(extent))
                      for axis, extent in ((line, plan.lines), (column, plan.width))]
    return ("*", lines, columns)


def _windows(p: Product, context: PlanContext) -> PackedConvolution:
    follow = p.left_along == p.sums[-1].name and all(axis.count is not None for axis in p.sums[1:])
    return _for_few_pixels(p, replace(_packed_convolution(p, context), transpose_left=follow))


def _for_few_pixels(p: Product, plan: PackedConvolution) -> PackedConvolution:
    """The plan with the register tile that covers an image of constant extents with the fewest pixels outside: 3 × 3
    weights, of which the gradient is a convolution with windows as large as images, are one vector of 4 × 4."""
    if plan.lines == 1 or p.columns[-2].count is None or p.columns[-1].count is None:
        return plan
    lines, columns = p.columns[-2].count, p.columns[-1].count

    def covered(tile: tuple[int, int]) -> int:
        return -(-lines // tile[0]) * -(-columns // tile[1]) * tile[0] * tile[1]
    pixels = plan.lines * plan.width
    tiles = [(n // width, width) for n in (pixels, plan.lanes) for width in (plan.width, plan.width // 2)
             if width and n >= width]
    best = min(tiles, key=covered)
    fewer = pixels // (best[0] * best[1])
    return replace(plan, lines=best[0], width=best[1], rows=plan.rows * fewer)


def small_product(p: Product, context: PlanContext) -> Version:
    """For small products: threads share panels of columns, and each packs what it needs, so that none waits."""
    rows, columns, summed = p.rows[-1], p.columns[-1], p.sums[-1]
    if not p.is_single or not context.uses_threads or not all(axis.size for axis in (rows, columns, summed)):
        raise NotApplicable("no threads share it, or it is not one product whose extents are sizes")
    plan = _packed_gemm(p, context)
    panel = PANEL_TILES * plan.columns
    operations = ("*", ("*", rows.size, columns.size), summed.size)
    cond = both(at_least(columns, 2 * panel), ("<=", operations, str(SMALL_PRODUCT)))
    return Version(replace(plan, panel_rows=min(plan.panel_rows, PANEL_ROWS // plan.rows * plan.rows),
                           panel_columns=panel, parallel_panels=True), cond, "n")


def packed(p: Product, context: PlanContext) -> Version:
    """For all other products: both operands are packed."""
    return Version(_packed_gemm(p, context))


# -- their parts -------------------------------------------------------------------------------------------------------
def _panel_rows(context: PlanContext, dtype: str, rows: int, depth: int) -> int:
    """Rows of the packed left panel (mc) that fill its share of the last private cache."""
    panel = context.machine.cache_bytes[-1] * context.value(QUARTERS) // 4 // (depth * DTYPES[dtype].bytes)
    return max(1, panel // rows) * rows


def _outer_depth(depth: int, inner: int) -> int:
    """The block of the outer sum, a power of two, if `inner` iterations of constant loops are inside each of its
    steps."""
    return 1 << max(0, (depth // inner - 1).bit_length())


def _packed_gemm(p: Product, context: PlanContext) -> PackedGemm:
    value, lanes, inner, is_image = context.value, context.lanes([p.dtype]), p.sums[1:], len(p.columns) > 1
    rows, depth, columns = value(ROWS, register_rows(context.machine)), value(DEPTH), value(VECTORS) * lanes
    return PackedGemm(
        rows, columns, lanes, _outer_depth(depth, _trip_count(inner)), _panel_rows(context, p.dtype, rows, depth),
        0 if is_image else value(PANELS) * columns, value(AHEAD), not is_image and bool(value(ORDER)), value(UNROLL),
        _unrolls_inner(inner, context), not inner and p.left_along == p.sums[0].name,
        not inner and p.right_along == p.sums[0].name)


def _packed_convolution(p: Product, context: PlanContext) -> PackedConvolution:
    value, lanes, window = context.value, context.lanes([p.dtype]), p.sums[1:]
    rows, depth = value(ROWS, register_rows(context.machine)), value(DEPTH)
    width, columns = value(WIDTH), value(VECTORS) * lanes
    unknown = sum([axis.count is None for axis in window])
    outer_depth = _outer_depth(depth, _trip_count(window) * USUAL_WINDOW ** unknown)
    several = len(p.columns) > 1 and columns > width and p.is_2d
    return PackedConvolution(
        rows, columns // width if several else 1, width if several else columns, lanes, outer_depth,
        _panel_rows(context, p.dtype, rows, depth), value(AHEAD), bool(window) and window[-1].count is not None,
        _unrolls_inner(window, context))


def _unrolls_inner(inner: tuple[Axis, ...], context: PlanContext) -> bool:
    """Is the innermost constant loop of the sum short enough to unroll fully?"""
    return bool(inner) and inner[-1].count in range(2, context.value(STEPS) + 1)


def _trip_count(axes: tuple[Axis, ...]) -> int:
    """The product of the constant trip counts."""
    return prod([axis.count for axis in axes if axis.count is not None])
