"""Plans of contractions: matrix products (GEMM), batches of them, and convolutions.

The general plan packs panels of both operands, so that the micro-kernel reads them contiguously, and keeps a register
tile of the result (Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication, 2008). The other plans are
for calls in which packing does not pay. An operand that fits a cache is used in place. A skinny GEMM with few columns
has its vector lanes along the sum, since a register tile would leave most lanes empty. With few rows, each operand
element is used only a few times and is read in order. Convolutions pack their windows (im2col; Chellapilla et al., High
Performance Convolutional Neural Networks for Document Processing, 2006).
"""
from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

from ...core.dtypes import DTYPES, is_float
from ...core.program import Machine
from ...frozen import frozen
from ...loop.statements import LoopProgram
from ..analysis.classify import Chain, contiguous_loop, contraction
from ..analysis.loop_queries import mentions
from .parameters import Parameter
from .plan import Axis, NestKind, NotApplicable, Plan, PlanContext, Version, axes_of, both, nonempty
from .reductions import JAMMED, RowPerLane, SingleColumn, column_reduction, row_reduction

ROWS = Parameter("gemm.rows", (2, 3, 4, 5, 6, 8, 10, 12, 14), what="rows of the register tile")
VECTORS = Parameter("gemm.vectors", (1, 2, 3, 4), 2, what="vectors per row of the register tile")
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
DOTS = Parameter("dots.columns", (4, 12, 24, 40, 64), 40, what="most columns of a skinny GEMM computed as dot products")
DOT_ROWS = Parameter("dots.rows", (2, 4, 6, 8), what="rows of a tile of dot products")
FEW_ROWS = Parameter("narrow.rows", (1, 2, 3, 5, 9), 2, what="fewest rows for which packing the right operand pays")

RESULT_BYTES = 2048             # of results per block if several threads work; one thread takes as many as L1 holds
LONG_SUM = 192                  # shortest sum for dot products with up to `dots.columns` columns
SKINNY_COLUMNS, MEDIUM_SUM = 16, 48     # so few columns are dot products from this length of the sum on
MIN_COLUMNS = 3                 # would leave most lanes of a result vector empty
DOT_COLUMNS = (4, 2)            # widths of tiles of dot products
ROW_COLUMNS = (8, 2)            # for a single row: so many streams keep the memory busy
SHORT_ROWS = 16                 # most rows for dot products of any width, if B is contiguous along the sum
STREAM_DEPTH = 8                # rows of B that are read at a time in order
STREAM_SUM = 128                # shortest sum for that: the results are copied
STREAM_TILE = 4                 # rows of the result of a tile then
STREAM_BLOCK = 1024             # columns of the result that stay in the last private cache
SHARED_STREAM_BLOCK = 128       # in L1 if several threads work: so each has some
TRANSPOSE_ROWS = 24             # fewest rows that pay for transposing B
REST_ROWS = 3                   # rows of the second tile: a single row of accumulators would wait for its latency
TILE_VECTORS = 2                # vectors per row of an unpacked tile
ROW_VECTORS = 4                 # vectors of a single row: fewer accumulators would wait for each other
WIDE_COLUMNS = 512              # from which an outer product is computed row by row, whatever the number of rows
L2_ROWS = 24                    # most rows for which B may stay in the last private cache: it is read few times
TRANSPOSED_SUM = 48             # shortest sum for which not having to transpose B pays
SMALL_BATCH = 4                 # from so many products on, each thread computes its own
SMALL_PRODUCT = 1 << 24         # multiplications of a product whose threads do not wait for each other
PANEL_TILES = 2                 # register tiles of the panels of columns that they share
PANEL_ROWS = 256                # of the panels that each of them packs: every thread needs memory for them
SMALL_ROWS = 32                 # a product with B in cache and so few rows is work for one thread
NARROW_TILES = 4                # an image is small if a line is shorter than so many register tiles
FILTERS = 64                    # of a panel if threads share the filters of a convolution
FEW_PIXELS = 1024               # most pixels of such a convolution
DEEPER = 2                      # times the depth of the sum: tiles across edges of the image are added slowly
USUAL_WINDOW = 3                # assumed extent of a window if it is unknown


@frozen
class Product:
    """C[batch, rows, columns] += A[batch, rows, sums] · B[batch, sums, columns]. `dtype`: of C. `lanes`: of vectors of
    all operands. `left_along`, `right_along`: the loops in which A and B are contiguous. `has_windows`: B is read in
    windows (convolution). `is_2d`: the windows move in two dimensions."""

    dtype: str
    lanes: int
    batch: tuple[Axis, ...]
    rows: tuple[Axis, ...]
    columns: tuple[Axis, ...]
    sums: tuple[Axis, ...]
    left_along: str | None = None
    right_along: str | None = None
    has_windows: bool = False
    is_2d: bool = False

    @property
    def is_single(self) -> bool:
        """Is it one product of two matrices?"""
        return not self.batch and len(self.rows) == len(self.columns) == len(self.sums) == 1


# -- plans ------------------------------------------------------------------------------------------------------------
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


@frozen
class UnpackedGemm(Plan):
    """A GEMM with operands in place. Rows that do not fill a tile of the first height are covered by tiles of the next
    height, then one by one; columns likewise by `widths`, then by masked vectors of `masked` lanes (0: one by one).
    `row_widths`: the widths for single rows. `lanes_along`: lanes lie along the `columns` or the `sum`.
    `transpose_right`: B is copied first, to be contiguous along the lanes. `transposed`: Cᵀ = Bᵀ · Aᵀ is computed.
    `columns_outer`: the loop over columns is outside that over rows, so that B is read once."""

    heights: tuple[int, ...]
    widths: tuple[int, ...]
    lanes: int
    lanes_along: str
    row_widths: tuple[int, ...] = ()
    masked: int = 0
    transpose_right: bool = False
    transposed: bool = False
    columns_outer: bool = False


@frozen
class StreamedGemm(Plan):
    """A GEMM that reads B in place and in order, `depth` rows at a time, and adds to blocks of `block` tiles of
    `columns` columns of the result, which are packed as the rows of A are. `rows`: of a register tile; the rows that
    fill none are computed one by one, and columns by masked vectors."""

    rows: int
    columns: int
    lanes: int
    depth: int
    block: int


# -- planners ---------------------------------------------------------------------------------------------------------
def short_dots(p: Product, context: PlanContext) -> Version:
    """For one column and a sum shorter than a vector: one row in each lane."""
    columns, summed = _single_column(p)
    if not summed.size:
        raise NotApplicable("the extent of the sum is no size")
    short = both(_is_one(columns), _at_most(summed, p.lanes - 1))
    return Version(SingleColumn(RowPerLane(p.lanes)), nonempty((summed,), short), "b")


def matrix_vector(p: Product, context: PlanContext) -> Version:
    """GEMV: one column, for which several rows are reduced at once."""
    rows, (columns, summed) = p.rows[-1], _single_column(p)
    plan = replace(row_reduction(context, p.lanes), rows=context.value(JAMMED))
    conds = [_at_least(axis, count) for axis, count in ((summed, p.lanes), (rows, plan.rows)) if axis.size]
    return Version(SingleColumn(plan), both(_is_one(columns), *conds), "g")


def few_columns(p: Product, context: PlanContext) -> Version:
    """Skinny GEMM and GEMV: with few columns, or one, each result is a dot product whose lanes lie along the sum. If B
    is not contiguous along the sum, it is transposed first, which is cheap."""
    rows, columns, summed = p.rows[-1], p.columns[-1], p.sums[-1]
    if not p.is_single or not columns.size or not summed.size:
        raise NotApplicable("it is not one product, or the extents of the columns and of the sum are no sizes")
    if p.left_along != summed.name:
        raise NotApplicable("the left operand is not contiguous along the sum")
    few = context.value(DOTS)
    cond: Any = ("or", ("and", _at_most(columns, min(few, SKINNY_COLUMNS)), _at_least(summed, MEDIUM_SUM)),
                 ("and", _at_most(columns, few), _at_least(summed, LONG_SUM)))
    contiguous = p.right_along == summed.name
    if rows.size:
        short = ("and", _at_most(rows, SHORT_ROWS), _at_least(summed, MEDIUM_SUM))
        cond = ("or", short, cond) if contiguous else ("and", _at_least(rows, TRANSPOSE_ROWS), cond)
    full_vector = ("and", _at_most(columns, MIN_COLUMNS), _at_least(summed, p.lanes))     # shorter sums fill no vector
    cond = nonempty((rows, summed), ("or", ("or", _at_most(columns, 1), full_vector), cond))
    plan = UnpackedGemm((_dot_rows(context),), DOT_COLUMNS, p.lanes, "sum", ROW_COLUMNS if contiguous else DOT_COLUMNS,
                        transpose_right=not contiguous)
    return Version(plan, cond, "c")


def several_rows(p: Product, context: PlanContext) -> Version:
    """For several rows where the right operand is of a known size (the weights of a layer) and contiguous along the
    sum: each result is a dot product, and the right operand is read once for all rows."""
    rows, columns, summed = p.rows[-1], p.columns[-1], p.sums[-1]
    if not p.is_single or p.left_along != summed.name or p.right_along != summed.name:
        raise NotApplicable("it is not one product, or the operands are not contiguous along the sum")
    if columns.count is None or summed.count is None or columns.count <= context.value(DOTS) or (
            summed.count < MEDIUM_SUM):
        raise NotApplicable("the right operand is not of a known size, has few columns, or the sum is short")
    if rows.count is not None and not 2 <= rows.count <= SHORT_ROWS:
        raise NotApplicable("there is one row, or there are too many")
    heights = tuple([h for h in _halves(_dot_rows(context)) if rows.count is None or h <= rows.count])
    plan = UnpackedGemm(heights, DOT_COLUMNS, p.lanes, "sum", DOT_COLUMNS, columns_outer=True)
    return Version(plan, ("and", _at_least(rows, 2), _at_most(rows, SHORT_ROWS)) if rows.count is None else None, "y")


def streamed_right(p: Product, context: PlanContext) -> Version:
    """For some rows, and a right operand that fits no cache and is contiguous along the columns: it is read once and in
    order, a few of its rows at a time, and added to blocks of the result, which stay in a cache."""
    rows, columns, summed = p.rows[-1], p.columns[-1], p.sums[-1]
    if not (p.is_single and context.masks_are_cheap(p.lanes) and p.right_along == columns.name and is_float(p.dtype)):
        raise NotApplicable("vectors have no masks, or it is not one product with a right operand of rows")
    width, few = context.value(VECTORS) * p.lanes, context.value(FEW_ROWS)
    shared, cache = context.machine.threads, context.machine.cache_bytes
    block = SHARED_STREAM_BLOCK if shared else STREAM_BLOCK
    most = (cache[0] if shared else cache[-1] // 2) // (block * DTYPES[p.dtype].bytes)
    fits = (_l2_elements if shared else _l1_elements)(context.machine, p.dtype)
    conds: list[Any] = []
    if columns.count is not None and summed.count is not None:
        if columns.count * summed.count <= fits or summed.count < STREAM_SUM:
            raise NotApplicable("the right operand fits a cache, or the sum is short")
    elif columns.size and summed.size:
        conds += [_at_least(summed, STREAM_SUM), ("<", str(fits), ("*", summed.size, columns.size))]
    else:
        raise NotApplicable("the extents of the columns and of the sum are no sizes")
    if rows.count is not None and not few <= rows.count <= most:
        raise NotApplicable("there are too few rows, or too many")
    if rows.count is None:
        conds += [_at_least(rows, few), _at_most(rows, most)]
    plan = StreamedGemm(STREAM_TILE, width, p.lanes, STREAM_DEPTH, block // width)
    return Version(plan, both(*conds) if conds else None, "w")


def few_columns_transposed(p: Product, context: PlanContext) -> Version:
    """Skinny GEMM with A contiguous along the rows: Cᵀ = Bᵀ · Aᵀ, with lanes along the rows and strided stores."""
    rows, columns, summed = _unpacked_axes(p, context)
    if p.batch or not context.masks_are_cheap(p.lanes) or p.left_along != rows.name:
        raise NotApplicable("the left operand is not contiguous along the rows, or vectors have no masks")
    height = register_rows(context.machine)
    cond: Any = _at_most(columns, height)
    if p.right_along != columns.name:
        cond = ("or", cond, ("and", ("and", _at_most(columns, L2_ROWS), _at_least(summed, TRANSPOSED_SUM)),
                             _area_at_most(summed, rows, _l2_elements(context.machine, p.dtype))))
    plan = _unpacked_plan(p, (height, REST_ROWS), transposed=True)
    return Version(plan, nonempty((columns, summed), cond), "t")


def right_fits_cache(p: Product, context: PlanContext) -> Version:
    """For a right operand that about fits L1, or, with few rows, half of L2: it is used in place."""
    rows, columns, summed = _unpacked_axes(p, context)
    contiguous = p.right_along == columns.name
    if p.batch or not context.masks_are_cheap(p.lanes):
        raise NotApplicable("vectors have no masks, or it is not one product")
    cond: Any = _area_at_most(summed, columns, _l1_elements(context.machine, p.dtype))
    if contiguous:
        in_l2 = _area_at_most(summed, columns, _l2_elements(context.machine, p.dtype))
        cond = ("or", cond, ("and", _at_most(rows, L2_ROWS), in_l2))
        cond = ("and", ("or", _at_least(summed, 2), ("<", columns.size, str(WIDE_COLUMNS))), cond)
    plan = _unpacked_plan(p, (register_rows(context.machine), REST_ROWS), transpose_right=not contiguous)
    return Version(plan, nonempty((rows, summed), cond), "e")


def whole_tiles(p: Product, context: PlanContext) -> Version:
    """For operands in cache whose sizes are multiples of the tile, in batches or without masks: no tails."""
    rows, columns, summed = _unpacked_axes(p, context)
    if (context.masks_are_cheap(p.lanes) and not p.batch) or p.right_along != columns.name:
        raise NotApplicable("other plans handle tails, or the right operand is not contiguous along the columns")
    height = 1 << register_rows(context.machine).bit_length() - 1       # sizes are multiples of these more often
    plan = replace(_unpacked_plan(p, (height,)), row_widths=(), masked=0)
    whole = ("and", ("=", ("mod", columns.size, str(plan.widths[0])), "0"), ("=", ("mod", rows.size, str(height)), "0"))
    in_l1 = _area_at_most(summed, columns, _l1_elements(context.machine, p.dtype))
    return Version(plan, ("and", in_l1, whole), "d")


def batch_fits_cache(p: Product, context: PlanContext) -> Version:
    """For batches of products whose right operands about fit L1."""
    rows, columns, summed = _unpacked_axes(p, context)
    count = _batch_size(p)
    if count is None or not context.masks_are_cheap(p.lanes) or p.right_along != columns.name:
        raise NotApplicable("the batch size is no size of the call, vectors have no masks, or the right operand is not "
                            "contiguous along the columns")
    cond: Any = _area_at_most(summed, columns, _l1_elements(context.machine, p.dtype))
    if context.machine.threads:                                     # a small batch of large products is shared instead
        cond = ("and", cond, ("or", ("<=", str(SMALL_BATCH), count), _at_most(rows, SMALL_ROWS)))
    return Version(_unpacked_plan(p, (register_rows(context.machine),)), nonempty((rows, summed), cond), "e")


def few_rows(p: Product, context: PlanContext) -> Version:
    """For few rows, where packing does not pay, and for outer products, which are bound by the bandwidth of the
    result."""
    rows, columns, summed = p.rows[-1], p.columns[-1], p.sums[-1]
    if not p.is_single or p.right_along != columns.name or not rows.size:
        raise NotApplicable("it is not one product, the right operand is not contiguous along the columns, or the "
                            "number of rows is no size")
    cond: Any = ("<", rows.size, str(context.value(FEW_ROWS)))
    if summed.size:
        cond = ("or", cond, ("<", summed.size, "2"))
    block = RESULT_BYTES if context.machine.threads else context.machine.cache_bytes[0]
    return Version(column_reduction(context, p.dtype, p.lanes, block), cond, "r")


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
    small = ("and", ("<", column.size, str(NARROW_TILES * columns)), _at_least(line, columns // width))
    return Version(_packed_convolution(replace(p, is_2d=True), context), small, "l")


def small_batch(p: Product, context: PlanContext) -> Version:
    """For small batches: threads share each product."""
    count = _batch_size(p)
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
    filters, pixels = p.rows[-1], _count((*p.batch, *p.columns))
    if not p.has_windows or not context.uses_threads or not filters.size or pixels is None:
        raise NotApplicable("no threads share it, or its extents are no sizes")
    plan = _windows(p, context)
    panel = max(1, FILTERS // plan.rows) * plan.rows
    cond = both(_at_least(filters, 2 * panel), ("<=", pixels, str(FEW_PIXELS)))
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
    cond = both(_at_least(columns, 2 * panel), ("<=", operations, str(SMALL_PRODUCT)))
    return Version(replace(plan, panel_rows=min(plan.panel_rows, PANEL_ROWS // plan.rows * plan.rows),
                           panel_columns=panel, parallel_panels=True), cond, "n")


def packed(p: Product, context: PlanContext) -> Version:
    """For all other products: both operands are packed."""
    return Version(_packed_gemm(p, context))


# -- their parts ------------------------------------------------------------------------------------------------------
def register_rows(machine: Machine) -> int:
    """The rows of a register tile. Its accumulators fill the registers but for two vectors of B and a broadcast element
    of A. 16 registers: 6 rows of 2 vectors, 12 accumulators. 32 registers: 8 rows, 16 accumulators, enough to hide the
    latency of two multiply-adds per cycle; more rows would read more streams and waste more in the tail."""
    return 2 if machine.registers < 16 else 6 if machine.registers < 32 else 8


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


def _unpacked_plan(p: Product, heights: tuple[int, ...], transpose_right: bool = False,
                   transposed: bool = False) -> UnpackedGemm:
    return UnpackedGemm(heights, (TILE_VECTORS * p.lanes,), p.lanes, "columns", (ROW_VECTORS * p.lanes,), p.lanes,
                        transpose_right, transposed)


def _unpacked_axes(p: Product, context: PlanContext) -> tuple[Axis, Axis, Axis]:
    """The row, column and sum axes of a plain or batched product that may be computed without packing."""
    axes = p.rows[-1], p.columns[-1], p.sums[-1]
    if len(p.rows) + len(p.columns) + len(p.sums) > 3 or not all(axis.size for axis in axes):
        raise NotApplicable("it has more axes than a matrix product, or their extents are no sizes")
    if not is_float(p.dtype) or not context.machine.has_fma:
        raise NotApplicable("the machine has no multiply-adds for it")
    return axes


def _dot_rows(context: PlanContext) -> int:
    """The rows of a tile of dot products."""
    return context.value(DOT_ROWS, 6 if context.machine.registers >= 32 else 2)


def _halves(count: int) -> tuple[int, ...]:
    """A height, and half of it, and so on, down to two rows."""
    return (count, *_halves(count // 2)) if count > 1 else ()


def _l1_elements(machine: Machine, dtype: str) -> int:
    """The most elements of an operand that about fits L1: twice as many as L1 holds."""
    return 2 * machine.cache_bytes[0] // DTYPES[dtype].bytes


def _l2_elements(machine: Machine, dtype: str) -> int:
    """The most elements of an operand that fits half of the last private cache."""
    return machine.cache_bytes[-1] // 2 // DTYPES[dtype].bytes


def _single_column(p: Product) -> tuple[Axis, Axis]:
    """The columns and the sum of a product that may have a single column, and is then a sum of rows."""
    if not p.is_single or not p.columns[-1].size or p.columns[-1].count is not None:
        raise NotApplicable("it is not one product, or the number of columns is known, or no size")
    if p.left_along != p.sums[-1].name:
        raise NotApplicable("the left operand is not contiguous along the sum")
    return p.columns[-1], p.sums[-1]


def _is_one(axis: Axis) -> Any:
    return "=", axis.size, "1"


def _batch_size(p: Product) -> Any:
    """The number of products as a condition spells it; None for one product, or if sizes do not give the number."""
    return _count(p.batch)


def _count(axes: tuple[Axis, ...]) -> Any:
    """The number of iterations of nested loops as a condition spells it; None without loops, or if sizes do not give
    the number."""
    if not axes or not all(axis.size for axis in axes):
        return None
    count: Any = axes[0].size
    for axis in axes[1:]:
        count = ("*", count, axis.size)
    return count


def _trip_count(axes: tuple[Axis, ...]) -> int:
    """The product of the constant trip counts."""
    return prod([axis.count for axis in axes if axis.count is not None])


def _at_most(axis: Axis, count: int) -> Any:
    return ("<=", axis.size, str(count))


def _at_least(axis: Axis, count: int) -> Any:
    return ("<=", str(count), axis.size)


def _area_at_most(one: Axis, other: Axis, count: int) -> Any:
    return ("<=", ("*", one.size, other.size), str(count))


def match_product(program: LoopProgram, chain: Chain, context: PlanContext) -> Product:
    """A perfect nest as a product."""
    c = contraction(program, chain)
    if c is None:
        raise NotApplicable("it is not a product")
    axes = {loop.name: axis for loop, axis in zip(chain.loops, axes_of(chain), strict=True)}
    batch, rows, columns, sums = [tuple([axes[n] for n in names]) for names in (c.batch, c.rows, c.columns, c.sums)]
    moved = [i for i in c.right.index if mentions(i, c.sums)]
    return Product(c.out.dtype, context.vector_lanes(chain.body), batch, rows, columns, sums,
                   contiguous_loop(program, c.left, (*c.rows, *c.sums)),
                   contiguous_loop(program, c.right, (*c.columns, *c.sums)), any(mentions(i, c.columns) for i in moved),
                   len(c.columns) > 1 and any(mentions(i, c.columns[-2:-1]) for i in moved))


PRODUCTS = NestKind(
    "products", "Contractions of two arrays: GEMM, GEMV, batched products, convolutions.", match_product,
    (short_dots, matrix_vector, several_rows, few_columns, few_columns_transposed, streamed_right, right_fits_cache,
     whole_tiles, batch_fits_cache, few_rows, pointwise_convolution, small_images, small_batch,
     few_pixels_in_wide_tiles, few_pixels, wide_tiles, convolution, small_product, packed))
