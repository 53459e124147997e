"""Plans of convolutions, and of products over the pixels of images.

Windows are packed (im2col; Chellapilla et al., High Performance Convolutional Neural Networks for Document Processing,
2006), and then multiplied like matrices.
"""
from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import Any

from ...frozen import frozen
from .packed_products import (
    AHEAD,
    DEPTH,
    last_unknown,
    outer_depth,
    panel_rows_of,
    trip_count_of,
    unrolls_inner,
)
from .parameters import Parameter
from .plan import Axis, NotApplicable, Plan, PlanContext, Version, both, version_if
from .product import ROWS, VECTORS, Product, area_at_most, at_least, at_most, extent, iterations, register_rows

WIDTH = Parameter("convolution.width", (4, 8, 16), 8, what="pixels of an image line in a tile of several lines")
LARGER = 4                      # than the result are windows that are images
NARROW_TILES = 4                # an image is small if a line is shorter than so many register tiles
FILTERS = 64                    # of a panel if threads share the filters of a convolution, and of weights
FEW_PIXELS = 1024               # most pixels of such a convolution
DEEPER = 2                      # times the depth of the sum: tiles across edges of the image are added slowly
MANY_CHANNELS = 12              # fewest for sums that are so long that the results may be transposed
FEWEST_CHANNELS = 6             # where that saves a tenth of the products
PANEL_FILTERS = 128             # of which the packed block fits L2; half of them if threads share the panels
LINES = 2                       # of an image in a tile of pixels
FEWEST_PIXELS = 8               # with fewer, loading the filters takes as long as the products
SPARE = 2                       # registers for what is broadcast
MOST_PIXELS = 2048              # whose results for a panel of filters do not need much memory
IMAGES = 4                      # whose results are kept at once: filters are packed once for all of them
MOST_COLUMNS = 1024             # of lines that are packed whole
MOST_FILTERS = 64               # for which copying a window counts beside multiplying it
FEWER_TILES = (10, 9)           # narrow tiles must save so much: they are packed in short vectors
FILTER_ROWS = 4                 # of a tile that reads windows in place: it loads a vector of pixels for so many
FEWEST_REGISTERS = 16           # for two lines of these, and twice as many registers for four
COPYING = 1                     # filters that are multiplied while a window is copied, but for the halo of the lines
PIECE = 6                       # filters that are multiplied while a line of a tile is copied
ONE_VECTOR = 125                # percent of the time that a pixel takes in a tile of one vector of pixels, not two
MOST_TAPS = 64                  # of weights: more are the pixels of an image, and the windows are not as large
IMAGE_LINES = 64                # that are packed at once where windows are as large as images
FULL_HEIGHT = 8                 # most filters of a tile of taps
LATENCY = 8                     # of a multiply-add, in half cycles
TAP_LINES = 32                  # of an image that are added up before the lanes of the accumulators are
BLOCK_LINES, BLOCK_WIDTH = 16, 64       # of pixels that are transposed at once: all taps read them from L2
FULL_TILE = 75                  # percent of a tile of weights that filters, and that channels fill
FULL_LINE = 65                  # percent of vectors that the pixels of a line fill
USUAL_WINDOW = 3                # assumed extent of a window if it is unknown


# -- plans -------------------------------------------------------------------------------------------------------------
@frozen
class PackedConvolution(Plan):
    """A packed GEMM whose columns are pixels: the register tile is `rows` (filters) × `lines` × `width` pixels.
    `outside`: so many of the loops of the sum are around its blocks: where windows are as large as images, the batch.
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
    outside: int = 0


@frozen
class ConvolutionOverFilters(Plan):
    """A packed GEMM whose columns are filters: the register tile is `lines` × `width` pixels × `filters`, so that the
    lanes of vectors are filters, and images of any width fill them. The pixels under a tile are packed with their halo,
    each once; the filters, in panels of `panel_filters`, which threads share, are transposed while they are packed. All
    results of a panel are accumulated [pixels][filters] for up to `images` images, and transposed at the end. `depth`:
    block of channels per visit of a tile."""

    lines: int
    width: int
    filters: int
    lanes: int
    depth: int
    panel_filters: int
    images: int


@frozen
class DirectConvolution(Plan):
    """A convolution that copies each line of the image once for a row of tiles, not each window: a vector of pixels
    begins wherever a window does. The register tile is `rows` (filters) × `lines` × `width` pixels. `depth`: block of
    channels per visit of a tile. `unroll_inner`: the innermost loop of the window is fully unrolled."""

    rows: int
    lines: int
    width: int
    lanes: int
    depth: int
    unroll_inner: bool = False


@frozen
class TapsAtOnce(Plan):
    """The gradient of weights with lanes along the lines of images, along which it is summed: a register tile is a
    vector of partial sums for each of `rows` filters × the taps of a window row. Vectors of the image begin wherever a
    tap does, and are loaded once for all filters. `lines`: of an image so many are copied, with their halo, and summed
    in one visit of a tile."""

    rows: int
    lines: int
    lanes: int


@frozen
class TapByTap(Plan):
    """The gradient of weights as a sum of outer products, one for each pixel: a register tile is `rows` filters ×
    `lanes` channels of one tap. Blocks of `lines` × `width` pixels are transposed with their halo, so that the lanes of
    vectors are channels, once for all taps, and so are the filters. The results of `panel_rows` filters × `lanes`
    channels are accumulated [filters][taps][channels], and stored at the end. No `lines`: of a signal."""

    rows: int
    lanes: int
    panel_rows: int
    lines: int | None
    width: int


# -- planners ----------------------------------------------------------------------------------------------------------
def pointwise_convolution(p: Product, context: PlanContext) -> Version:
    """For windows of one pixel (1 × 1 convolution): the sum runs over channels alone, so it is as deep as in a GEMM."""
    sizes = [axis.size for axis in p.sums[1:] if axis.count is None]
    if not p.has_windows or not sizes or not all(sizes) or len(sizes) < len(p.sums[1:]):
        raise NotApplicable("there are no windows whose extents are all sizes of the call")
    inner = replace(p, sums=p.sums[:1], moving=(), is_2d=True)
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


def convolution(p: Product, context: PlanContext) -> Version:
    """For convolutions: the windows under a register tile are packed next to each other (im2col), with zeros for the
    halo, so that the micro-kernel has no edge conditions."""
    if not p.has_windows:
        raise NotApplicable("no operand is read in windows")
    return Version(_windows(p, context))


def filters_in_vectors(p: Product, context: PlanContext) -> Version:
    """For convolutions with many channels and filters, of images that tiles of pixels in the lanes of vectors would not
    cover better: 7, 14 or 28 pixels a line leave lanes empty there."""
    filters, channels, line, column = _windows_of_lines(p)
    vectors, lanes = context.value(VECTORS), context.lanes([p.dtype])
    pixels = (context.machine.registers - vectors - SPARE) // vectors
    if pixels < FEWEST_PIXELS or p.lanes < lanes:
        raise NotApplicable("there are too few registers, or an operand has other elements than the result")
    tall = _windows(p, context)
    panel = PANEL_FILTERS // (2 if context.uses_threads else 1)
    plan = ConvolutionOverFilters(LINES, pixels // LINES, vectors * lanes, lanes, DEEPER * tall.depth, panel, IMAGES)
    work = _rounded(filters, plan.filters, plan.lines * plan.width, _tiles(line, column, plan))
    others = [_rounded(filters, other.rows, other.lines * other.width, _tiles(line, column, other))
              for other in (tall, *([_wider(tall)] if tall.lines % 2 == 0 else []))]
    many = (at_least(filters, 2 * panel if context.uses_threads else plan.filters),
            area_at_most(line, column, MOST_PIXELS))
    clearly = [("<=", ("*", work, "10"), ("*", other, "9")) for other in others]
    enough = ("or", at_least(channels, MANY_CHANNELS), both(at_least(channels, FEWEST_CHANNELS), *clearly))
    return version_if(plan, both(*many, enough, *[("<=", work, other) for other in others]), "v",
                      "there are few channels or filters, many pixels, or tiles of pixels cover the image better")


def few_filters(p: Product, context: PlanContext) -> Version:
    """For few filters, with which windows are multiplied in less time than it takes to copy each, if tiles of copied
    windows would not cover filters and image better. (Each condition is one of a single size: what is known of products
    of sizes makes all proofs about other versions slow.)"""
    filters, _, line, column = _windows_of_lines(p)
    tall, lanes = _windows(p, context), context.lanes([p.dtype])
    if context.machine.registers < FEWEST_REGISTERS or not context.masks_are_cheap(lanes) or p.lanes < lanes:
        raise NotApplicable("there are too few registers, vectors have no masks, or an operand has other elements than "
                            "the result")
    lines = context.machine.registers // FEWEST_REGISTERS * LINES
    plan = DirectConvolution(FILTER_ROWS, lines, lanes, lanes, DEEPER * tall.depth, tall.unroll_inner)
    fits = [at_most(filters, MOST_FILTERS), at_most(column, MOST_COLUMNS), at_least(line, 2 * plan.lines),
            ("<=", _whole(filters, plan.rows), ("+", _whole(filters, tall.rows), str(COPYING)))]
    if plan.width > tall.width:
        fits.append(("<=", ("*", _whole(column, plan.width), "8"), ("*", _whole(column, tall.width), "9")))
    return version_if(plan, both(*fits), "d",
                      "there are many filters, long lines, or tiles of windows cover filters and image better")


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


def taps_at_once(p: Product, context: PlanContext) -> Version:
    """For gradients of weights with few filters or channels, of images whose lines fill vectors: no element is packed
    but for the lines."""
    filters, column, lanes = p.rows[-1], p.sums[-1], context.lanes([p.dtype])
    if not _is_of_images(p) or not p.is_2d or p.columns[-2:] != p.moving[-2:] or p.lanes < lanes:
        raise NotApplicable("it is no gradient of weights of several lines")
    if p.left_along != column.name or p.right_along != column.name or not (column.size or column.count):
        raise NotApplicable("images are not contiguous along their lines, or the extent of these is no size")
    free, count, taps = context.machine.registers - SPARE, filters.count or MOST_FILTERS, p.columns[-1].count or 1
    heights = [n for n in range(1, min(FULL_HEIGHT, count) + 1) if n * taps + min(n, taps) < free]
    if not heights:
        raise NotApplicable("the taps of a window row do not fit the registers")
    rows = max(heights, key=lambda n: (-_time_of_taps(count, n, taps), n))
    when = _is_full(column, lanes, FULL_LINE)
    if (channels := _channels(p)) is not None:
        tile = ((filters, _weight_rows(p, context)), (channels, lanes))
        when = both(when, reduce(lambda a, b: ("or", a, b), [_is_not_full(axis, n, FULL_TILE) for axis, n in tile]))
    return version_if(TapsAtOnce(rows, TAP_LINES, lanes), when, "i",
                      "lines leave lanes empty, or there are many filters and channels")


def tap_by_tap(p: Product, context: PlanContext) -> Version:
    """For gradients of weights with enough channels for the lanes of a vector, however long the lines of images are."""
    channels, lanes = _channels(p), context.lanes([p.dtype])
    if not _is_of_images(p) or channels is None or p.columns[-1] not in p.moving:
        raise NotApplicable("it is no gradient of weights, or they have no channels, or these are in lanes as they are")
    rows, lines, width = _weight_rows(p, context), BLOCK_LINES, BLOCK_WIDTH
    plan = TapByTap(rows, lanes, max(1, FILTERS // rows) * rows, *((lines, width) if len(p.moving) > 1 else
                                                                  (None, lines * width)))
    return version_if(plan, at_least(channels, lanes * FULL_TILE // 100), "t", "there are few channels")


def wide_tiles(p: Product, context: PlanContext) -> Version:
    """For convolutions of images that fewer register tiles cover if these have half as many lines, of twice the
    width: 14 × 14 pixels are 7 tiles of 2 × 16, but 8 of 4 × 8."""
    tall, line, column = _tall_tiles(p, context)
    wide = _wider(tall)
    return Version(wide, ("<", _tiles(line, column, wide), _tiles(line, column, tall)), "h")


def narrow_tiles(p: Product, context: PlanContext) -> Version:
    """For convolutions with many filters, of images that clearly fewer register tiles cover if these have twice as many
    lines, of half the width: 28 × 28 pixels are 49 tiles of 4 × 4, but 56 of 2 × 8."""
    tall, line, column = _tall_tiles(p, context)
    filters, narrow = p.rows[-1], replace(tall, lines=2 * tall.lines, width=tall.width // 2)
    if not filters.size or 2 * narrow.width < narrow.lanes:
        raise NotApplicable("the number of filters is no size, or lines are copied less than half a vector at a "
                            "time")
    (more, less), tiles = FEWER_TILES, [_tiles(line, column, plan) for plan in (narrow, tall)]
    cond = both(at_least(filters, MOST_FILTERS + 1), ("<=", ("*", tiles[0], str(more)), ("*", tiles[1], str(less))))
    return version_if(narrow, cond, "a", "there are few filters, or narrow tiles do not cover the image better")


# -- their parts -------------------------------------------------------------------------------------------------------
def _tall_tiles(p: Product, context: PlanContext) -> tuple[PackedConvolution, Axis, Axis]:
    """The plan of a convolution with register tiles of an even number of lines, and the lines and columns."""
    if not p.has_windows:
        raise NotApplicable("no operand is read in windows")
    tall = _windows(p, context)
    if tall.lines % 2:
        raise NotApplicable("a register tile is one line")
    *_, line, column = p.columns
    if not line.size or not column.size:
        raise NotApplicable(f"the extents of '{line.name}' and '{column.name}' are no sizes")
    return tall, line, column


def _windows_of_lines(p: Product) -> tuple[Axis, Axis, Axis, Axis]:
    """The filters, channels, lines and columns of a convolution with windows of several lines, of known extents."""
    if not p.is_2d or not p.has_windows or p.batch or len(p.rows) > 1 or len(p.sums) < 3:
        raise NotApplicable("no operand is read in windows of several lines, or there are groups of filters")
    filters, channels, (*_, line, column) = p.rows[-1], p.sums[0], p.columns
    if not all(axis.size for axis in (filters, channels, line, column)):
        raise NotApplicable("its extents are no sizes")
    if p.left_along != p.sums[-1].name or any(axis.count is None for axis in p.sums[1:]):
        raise NotApplicable("the filters do not follow each other in memory, or their extents are unknown")
    return filters, channels, line, column


def _wider(tall: PackedConvolution) -> PackedConvolution:
    """The plan with tiles of half as many lines, of twice the width."""
    return replace(tall, lines=tall.lines // 2, width=2 * tall.width)


def _is_full(axis: Axis, at_once: int, percent: int) -> Any:
    """The condition that a loop fills that much of tiles, in percent."""
    return ("<=", ("*", _whole(axis, at_once), str(percent)), ("*", extent(axis), "100"))


def _is_not_full(axis: Axis, at_once: int, percent: int) -> Any:
    """The opposite of `_is_full`."""
    return ("<", ("*", extent(axis), "100"), ("*", _whole(axis, at_once), str(percent)))


def _channels(p: Product) -> Axis | None:
    """The channels of weights of which this is the gradient; None if there are none, or their number is no size."""
    channels = [axis for axis in p.columns if axis not in p.moving]
    return channels[-1] if channels and (channels[-1].size or channels[-1].count) else None


def _weight_rows(p: Product, context: PlanContext) -> int:
    """The filters of a register tile of weights. Their number is even: they are transposed in registers."""
    rows, count = max(2, context.machine.registers // 2), p.rows[-1].count
    return rows if count is None else -(-count // (2 * -(-count // rows))) * 2


def _whole(axis: Axis, at_once: int) -> Any:
    """An extent, rounded up to a multiple."""
    return ("*", ("floordiv", ("+", extent(axis), str(at_once - 1)), str(at_once)), str(at_once))


def _rounded(filters: Axis, at_once: int, pixels: int, tiles: Any) -> Any:
    """The products of a pixel and a filter that register tiles compute, those outside the image and the filters among
    them."""
    groups = ("floordiv", ("+", filters.size, str(at_once - 1)), str(at_once))
    return ("*", ("*", groups, tiles), str(at_once * pixels))


def _tiles(line: Axis, column: Axis, plan: PackedConvolution | ConvolutionOverFilters) -> Any:
    """The number of register tiles that cover an image."""
    lines, columns = [("floordiv", ("+", axis.size, str(extent - 1)), str(extent))
                      for axis, extent in ((line, plan.lines), (column, plan.width))]
    return ("*", lines, columns)


def _windows(p: Product, context: PlanContext) -> PackedConvolution:
    follow = p.left_along == p.sums[-1].name and all(axis.count is not None for axis in p.sums[1:])
    return _for_few_pixels(p, replace(_packed_convolution(p, context), transpose_left=follow))


def _for_few_pixels(p: Product, plan: PackedConvolution) -> PackedConvolution:
    """The plan with the register tile that covers an image of constant extents fastest: 3 × 3 weights, of which the
    gradient is a convolution with windows as large as images, are one vector of 4 × 4."""
    if plan.lines == 1 or p.columns[-2].count is None or p.columns[-1].count is None:
        return plan
    lines, columns = p.columns[-2].count, p.columns[-1].count
    filters = p.rows[-1].count or MOST_FILTERS

    def time(tile: tuple[int, int]) -> int:
        pieces, pixels = -(-lines // tile[0]) * -(-columns // tile[1]) * tile[0], tile[0] * tile[1]
        rows = plan.rows * plan.lines * plan.width // pixels
        products = pieces * tile[1] // plan.lanes * -(-filters // rows) * rows
        return products * (ONE_VECTOR if pixels == plan.lanes else 100) + pieces * 100 * PIECE
    pixels = plan.lines * plan.width
    tiles = [(n // width, width) for n in (pixels, plan.lanes) for width in (plan.width, plan.width // 2)
             if width and n >= width]
    best = min(tiles, key=time)
    fewer = pixels // (best[0] * best[1])
    return replace(plan, lines=best[0], width=best[1], rows=plan.rows * fewer)


def _packed_convolution(p: Product, context: PlanContext) -> PackedConvolution:
    value, lanes, outside = context.value, context.lanes([p.dtype]), _loops_outside(p)
    window = p.sums[outside + 1:]
    rows, depth = value(ROWS, register_rows(context.machine)), value(DEPTH)
    width, columns = value(WIDTH), value(VECTORS) * lanes
    unknown = sum([axis.count is None for axis in window])
    if _is_of_images(p):
        deep = IMAGE_LINES if unknown else depth
    else:
        deep = outer_depth(depth, trip_count_of(window) * USUAL_WINDOW ** unknown)
    several = len(p.columns) > 1 and columns > width and p.is_2d
    return PackedConvolution(
        rows, columns // width if several else 1, width if several else columns, lanes, deep,
        panel_rows_of(context, p.dtype, rows, depth), value(AHEAD), bool(window) and window[-1].count is not None,
        unrolls_inner(window, context), outside=outside)


def _time_of_taps(filters: int, at_once: int, taps: int) -> int:
    """Half cycles for a vector of a line, of tiles of so many filters × taps: two multiply-adds or two loads per
    cycle, and each accumulator waits for its latency."""
    return -(-filters // at_once) * max(at_once * taps, at_once + taps, LATENCY)


def _is_of_images(p: Product) -> bool:
    """Are the windows as large as images, and the pixels of the result few: is it the gradient of weights?"""
    return (p.has_windows and all(axis.count is not None for axis in p.moving) and _last_of_image(p) > 0
            and trip_count_of(p.moving) <= MOST_TAPS)


def _last_of_image(p: Product) -> int:
    """The last loop of the sum that may be over an image: of unknown extent, or all windows are far larger than the
    result. 0 if there is none behind the first."""
    known = p.sums[-len(p.moving):] if len(p.moving) < len(p.sums) else ()
    if known and all(axis.count is not None for axis in known) and (
            trip_count_of(known) >= LARGER * trip_count_of(p.moving)):
        return len(p.sums) - 1
    return last_unknown(p.sums)


def _loops_outside(p: Product) -> int:
    """The loops of the sum around its blocks: but for the lines and columns of an image, or the elements of a signal,
    if windows are as large."""
    return max(0, _last_of_image(p) - p.is_2d) if _is_of_images(p) else 0
