"""Plans of contractions: matrix products (GEMM), batches of them, and convolutions.

The general plans pack both operands (`packed_products`, `convolutions`). The plans here are for calls in which packing
does not pay. An operand that fits a cache is used in place. A skinny GEMM with few columns has its vector lanes along
the sum, since a register tile would leave most lanes empty. With few rows, each operand element is used only a few
times and is read in order.
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
from .convolutions import (
    convolution,
    few_filters,
    few_pixels,
    few_pixels_in_wide_tiles,
    filters_in_vectors,
    narrow_tiles,
    pointwise_convolution,
    small_images,
    tap_by_tap,
    taps_at_once,
    wide_tiles,
)
from .packed_products import long_last_sum, packed, small_batch, small_product
from .parameters import Parameter
from .plan import (
    Axis,
    NestKind,
    NotApplicable,
    Plan,
    PlanContext,
    Version,
    axes_of,
    both,
    decided,
    nonempty,
    version_if,
)
from .product import (
    SMALL_BATCH,
    VECTORS,
    Product,
    area_at_most,
    at_least,
    at_most,
    batch_size,
    extent,
    register_rows,
)
from .reductions import JAMMED, RowPerLane, ScalarAccumulator, SingleColumn, column_reduction, row_reduction

DOTS = Parameter("dots.columns", (4, 12, 24, 40, 64), what="most columns of a skinny GEMM computed as dot products")
DOT_ROWS = Parameter("dots.rows", (2, 4, 6, 8), what="rows of a tile of dot products")
FEW_ROWS = Parameter("narrow.rows", (1, 2, 3, 5, 9), 2, what="fewest rows for which packing the right operand pays")
RESULT_BYTES = 2048             # of results per block if several threads work; one thread takes as many as L1 holds
LONG_SUM = 192                  # shortest sum for dot products of more columns than lanes, up to `dots.columns`
MEDIUM_SUM = 48                 # and of columns that leave lanes empty
MIN_COLUMNS = 3                 # would leave most lanes of a result vector empty
DOT_COLUMNS = (4, 2)            # widths of tiles of dot products
REST_DOT_ROWS = 2               # rows of the second tile of dot products, if the first has more
SKINNY, SKINNY_COPIED = (3, 4), (5, 8)  # the part of a vector up to which columns are dot products; if B is copied
ROW_COLUMNS = (8, 2)            # for a single row: so many streams keep the memory busy
SHORT_ROWS = 16                 # most rows for dot products of any width, if B is contiguous along the sum
STREAM_DEPTH = 8                # rows of B that are read at a time in order
STREAM_COLUMNS = 32             # from which a row of B is read in pieces otherwise
STREAM_SUM = 128                # shortest sum for that: the results are copied
STREAM_TILE = 4                 # rows of the result of a tile then
STREAM_BLOCK = 1024             # columns of the result that stay in the last private cache
SHARED_STREAM_BLOCK = 128       # in L1 if several threads work: so each has some
BALANCED_STREAM_BLOCK = 64      # where so few columns are shared that a block more or less for a thread counts
BALANCED_COLUMNS = 512          # the most of these
TRANSPOSE_ROWS = 24             # fewest rows that pay for transposing B
THREE = 3                       # vectors of columns that one tile holds
THREE_SUM = 32                  # shortest sum for that
REST_ROWS = 3                   # rows of the second tile: a single row of accumulators would wait for its latency
TILE_VECTORS = 2                # vectors per row of an unpacked tile
ROW_VECTORS = 4                 # vectors of a single row: fewer accumulators would wait for each other
L2_ROWS, L2_COLUMNS = 128, 128  # up to which B may stay in the last private cache: it is read few times, or in order
SHARED_L2_ROWS = 24             # of these if several threads work: they share whole tiles of rows, and one has the rest
TRANSPOSED_SUM, FLAT_COLUMNS = 48, 24          # shortest sum and most columns for which not transposing B pays
TINY_SUMS, TINY_COLUMNS = 8, 4  # of a matrix that C compilers unroll and keep in registers
ROW_BYTES = (16, 32)            # of shorter vectors
SMALL_ROWS = 32                 # a product with B in cache and so few rows is work for one thread


# -- plans -------------------------------------------------------------------------------------------------------------
@frozen
class UnpackedGemm(Plan):
    """A GEMM with operands in place. Rows that do not fill a tile of the first height are covered by tiles of the next
    height, then one by one; columns likewise by `widths`, then by masked vectors of `masked` lanes (0: one by one).
    `row_widths`: the widths for single rows. `lanes_along`: lanes lie along the `columns` or the `sum`.
    `masked_vectors`: of a tile (0: as many as there are accumulators for, two at most). `transpose_right`: B is copied
    first, to be contiguous along the lanes. `transposed`: Cᵀ = Bᵀ · Aᵀ is computed. `columns_outer`: the loop over
    columns is outside that over rows, so that B is read once."""

    heights: tuple[int, ...]
    widths: tuple[int, ...]
    lanes: int
    lanes_along: str
    row_widths: tuple[int, ...] = ()
    masked: int = 0
    transpose_right: bool = False
    transposed: bool = False
    columns_outer: bool = False
    masked_vectors: int = 0


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


# -- planners ----------------------------------------------------------------------------------------------------------
def tiny_matrix(p: Product, context: PlanContext) -> Version:
    """For a matrix of known size that fits some registers, times many vectors (a rotation, a colour transform), and for
    many products of square matrices whose rows are short vectors: C compilers unroll these loops."""
    columns, sums, rows = [prod(axis.count or TINY_SUMS + 1 for axis in side) for side in (p.columns, p.sums, p.rows)]
    row = columns * DTYPES[p.dtype].bytes
    is_small = (columns == sums == rows and row in ROW_BYTES if p.batch
                else columns <= TINY_COLUMNS and row < max(ROW_BYTES))
    if not is_small or sums > TINY_SUMS or max(columns, sums) >= p.lanes:
        raise NotApplicable("the matrices are not of known sizes, or too large to be unrolled, or no square ones")
    return Version(ScalarAccumulator())


def short_dots(p: Product, context: PlanContext) -> Version:
    """For one column and a sum shorter than a vector: one row in each lane."""
    columns, summed = _single_column(p)
    if not summed.size:
        raise NotApplicable("the extent of the sum is no size")
    short = both(_is_one(columns), at_most(summed, p.lanes - 1))
    return Version(SingleColumn(RowPerLane(p.lanes)), nonempty((summed,), short), "b")


def matrix_vector(p: Product, context: PlanContext) -> Version:
    """GEMV: one column, for which several rows are reduced at once."""
    rows, (columns, summed) = p.rows[-1], _single_column(p)
    plan = replace(row_reduction(context, p.lanes), rows=context.value(JAMMED))
    conds = [at_least(axis, count) for axis, count in ((summed, p.lanes), (rows, plan.rows)) if axis.size]
    return Version(SingleColumn(plan), both(_is_one(columns), *conds), "g")


def few_columns(p: Product, context: PlanContext) -> Version:
    """Skinny GEMM and GEMV: with few columns, or one, each result is a dot product whose lanes lie along the sum. If B
    is not contiguous along the sum, it is transposed first, which is cheap."""
    rows, columns, summed = p.rows[-1], p.columns[-1], p.sums[-1]
    if not p.is_single or not columns.size or not summed.size:
        raise NotApplicable("it is not one product, or the extents of the columns and of the sum are no sizes")
    if p.left_along != summed.name:
        raise NotApplicable("the left operand is not contiguous along the sum")
    contiguous = p.right_along == summed.name
    few, (part, of) = _dot_columns(p, context), SKINNY if contiguous else SKINNY_COPIED
    cond: Any = ("or", ("and", at_most(columns, min(few, p.lanes * part // of)), at_least(summed, MEDIUM_SUM)),
                 ("and", ("and", at_least(columns, p.lanes + 1), at_most(columns, few)), at_least(summed, LONG_SUM)))
    if rows.size:
        short = ("and", at_most(rows, SHORT_ROWS), at_least(summed, MEDIUM_SUM))
        cond = ("or", short, cond) if contiguous else ("and", at_least(rows, TRANSPOSE_ROWS), cond)
    full_vector = ("and", at_most(columns, MIN_COLUMNS), at_least(summed, p.lanes))     # shorter sums fill no vector
    cond = nonempty((rows, summed), ("or", ("or", at_most(columns, 1), full_vector), cond))
    heights = (_dot_rows(context), *([REST_DOT_ROWS] if contiguous and _dot_rows(context) > REST_DOT_ROWS else []))
    plan = UnpackedGemm(heights, DOT_COLUMNS, p.lanes, "sum", ROW_COLUMNS if contiguous else DOT_COLUMNS,
                        transpose_right=not contiguous)
    return Version(plan, cond, "c")


def several_rows(p: Product, context: PlanContext) -> Version:
    """For several rows where the right operand is of a known size (the weights of a layer) and contiguous along the
    sum: each result is a dot product, and the right operand is read once for all rows."""
    rows, columns, summed = p.rows[-1], p.columns[-1], p.sums[-1]
    if not p.is_single or p.left_along != summed.name or p.right_along != summed.name:
        raise NotApplicable("it is not one product, or the operands are not contiguous along the sum")
    if columns.count is None or summed.count is None or columns.count <= _dot_columns(p, context) or (
            summed.count < MEDIUM_SUM):
        raise NotApplicable("the right operand is not of a known size, has few columns, or the sum is short")
    if rows.count is not None and not 2 <= rows.count <= SHORT_ROWS:
        raise NotApplicable("there is one row, or there are too many")
    heights = tuple([h for h in _halves(_dot_rows(context)) if rows.count is None or h <= rows.count])
    plan = UnpackedGemm(heights, DOT_COLUMNS, p.lanes, "sum", DOT_COLUMNS, columns_outer=True)
    return Version(plan, ("and", at_least(rows, 2), at_most(rows, SHORT_ROWS)) if rows.count is None else None, "y")


def streamed_in_small_blocks(p: Product, context: PlanContext) -> Version:
    """`streamed_right` for few columns that several threads share, in blocks of half as many."""
    columns = p.columns[-1]
    if not context.machine.threads:
        raise NotApplicable("no threads share it")
    version, few = _streamed(p, context, BALANCED_STREAM_BLOCK), decided(at_most(columns, BALANCED_COLUMNS))
    if few is False:
        raise NotApplicable("it has many columns")
    conds = [cond for cond in (version.when, few) if cond is not None and cond is not True]
    return replace(version, when=both(*conds) if conds else None, ending="n")


def streamed_right(p: Product, context: PlanContext) -> Version:
    """For some rows, and a right operand that fits no cache and is contiguous along the columns: it is read once and in
    order, a few of its rows at a time, and added to blocks of the result, which stay in a cache."""
    if not context.machine.threads:
        return _streamed(p, context, STREAM_BLOCK)
    if decided(at_most(p.columns[-1], BALANCED_COLUMNS)) is True:
        raise NotApplicable("threads share so few columns in smaller blocks")
    return _streamed(p, context, SHARED_STREAM_BLOCK)


def _streamed(p: Product, context: PlanContext, block: int) -> Version:
    rows, columns, summed = p.rows[-1], p.columns[-1], p.sums[-1]
    if not (p.is_single and context.masks_are_cheap(p.lanes) and p.right_along == columns.name and is_float(p.dtype)):
        raise NotApplicable("vectors have no masks, or it is not one product with a right operand of rows")
    width, few = context.value(VECTORS) * p.lanes, context.value(FEW_ROWS)
    shared, cache = context.machine.threads, context.machine.cache_bytes
    most = (cache[0] if shared else cache[-1] // 2) // (max(block, SHARED_STREAM_BLOCK) * DTYPES[p.dtype].bytes)
    if not all(axis.size or axis.count for axis in (rows, columns, summed)):
        raise NotApplicable("the extents are no sizes")
    large: Any = _larger_than(summed, columns, _l2_elements(context.machine, p.dtype))
    if not shared:                              # few rows compute too little while short pieces of rows are fetched
        large = ("or", large, both(at_most(rows, register_rows(context.machine) - 1), at_least(columns, STREAM_COLUMNS),
                                   _larger_than(summed, columns, _l1_elements(context.machine, p.dtype))))
    cond = both(at_least(summed, STREAM_SUM), large, at_least(rows, few), at_most(rows, most))
    return version_if(StreamedGemm(STREAM_TILE, width, p.lanes, STREAM_DEPTH, block // width), cond, "w",
                      "the right operand fits a cache, the sum is short, or there are too few rows or too many")


def few_columns_transposed(p: Product, context: PlanContext) -> Version:
    """Skinny GEMM with A contiguous along the rows: Cᵀ = Bᵀ · Aᵀ, with lanes along the rows and strided stores."""
    rows, columns, summed = _unpacked_axes(p, context)
    if p.batch or not context.masks_are_cheap(p.lanes) or p.left_along != rows.name:
        raise NotApplicable("the left operand is not contiguous along the rows, or vectors have no masks")
    height = register_rows(context.machine)
    cond: Any = at_most(columns, height)
    if p.right_along != columns.name:
        cond = ("or", cond, ("and", ("and", at_most(columns, FLAT_COLUMNS), at_least(summed, TRANSPOSED_SUM)),
                             area_at_most(summed, rows, _l2_elements(context.machine, p.dtype))))
    plan = _unpacked_plan(p, (height, REST_ROWS), transposed=True)
    return Version(plan, nonempty((columns, summed), cond), "t")


def right_fits_cache(p: Product, context: PlanContext) -> Version:
    """For a right operand that about fits L1, or, with few rows or few columns, half of L2: it is used in place. A
    single vector of columns is read in order, from whatever cache."""
    rows, columns, summed = _unpacked_axes(p, context)
    contiguous = p.right_along == columns.name
    if p.batch or not context.masks_are_cheap(p.lanes):
        raise NotApplicable("vectors have no masks, or it is not one product")
    in_l1, in_l2 = [area_at_most(summed, columns, most(context.machine, p.dtype))
                    for most in (_l1_elements, _l2_elements)]
    few: Any = at_most(columns, L2_COLUMNS)
    short = at_most(rows, SHARED_L2_ROWS if context.machine.threads else L2_ROWS)
    cond: Any = ("or", in_l1, ("and", ("or", short, few) if contiguous else few, in_l2))
    if contiguous:
        cond = ("or", cond, at_most(columns, p.lanes))
    plan = _unpacked_plan(p, (register_rows(context.machine), REST_ROWS), transpose_right=not contiguous)
    return Version(plan, nonempty((rows, summed), cond), "e")


def three_vectors(p: Product, context: PlanContext) -> Version:
    """For three vectors of columns, of a right operand that fits half of L2: one register tile holds them. With a tile
    of two vectors and another of one, the left operand would be read twice, and these loads would limit the second
    tile."""
    rows, columns, summed = _unpacked_axes(p, context)
    if p.batch or not context.masks_are_cheap(p.lanes) or context.machine.registers < 32:
        raise NotApplicable("vectors have no masks, there are too few registers, or it is not one product")
    plan = UnpackedGemm((register_rows(context.machine), REST_ROWS), (), p.lanes, "columns", (), p.lanes,
                        p.right_along != columns.name, masked_vectors=THREE)
    cond = decided(both(at_least(columns, 2 * p.lanes + 1), at_most(columns, THREE * p.lanes),
                        at_least(summed, THREE_SUM),
                        area_at_most(summed, columns, _l2_elements(context.machine, p.dtype))))
    if cond is False:
        raise NotApplicable("there are fewer columns or more, or the right operand does not fit half of L2")
    return Version(plan, nonempty((rows, summed), cond) if cond is not True else None, "x")


def whole_tiles(p: Product, context: PlanContext) -> Version:
    """For operands in cache whose sizes are multiples of the tile, in batches or without masks: no tails."""
    rows, columns, summed = _unpacked_axes(p, context)
    if (context.masks_are_cheap(p.lanes) and not p.batch) or p.right_along != columns.name:
        raise NotApplicable("other plans handle tails, or the right operand is not contiguous along the columns")
    height = 1 << register_rows(context.machine).bit_length() - 1       # sizes are multiples of these more often
    plan = replace(_unpacked_plan(p, (height,)), row_widths=(), masked=0)
    whole = ("and", ("=", ("mod", columns.size, str(plan.widths[0])), "0"), ("=", ("mod", rows.size, str(height)), "0"))
    in_l1 = area_at_most(summed, columns, _l1_elements(context.machine, p.dtype))
    return Version(plan, ("and", in_l1, whole), "d")


def batch_fits_cache(p: Product, context: PlanContext) -> Version:
    """For batches of products whose right operands about fit L1."""
    rows, columns, summed = _unpacked_axes(p, context)
    count = batch_size(p)
    if count is None or not context.masks_are_cheap(p.lanes) or p.right_along != columns.name:
        raise NotApplicable("the batch size is no size of the call, vectors have no masks, or the right operand is not "
                            "contiguous along the columns")
    cond: Any = area_at_most(summed, columns, _l1_elements(context.machine, p.dtype))
    if context.machine.threads:                                     # a small batch of large products is shared instead
        cond = ("and", cond, ("or", ("<=", str(SMALL_BATCH), count), at_most(rows, SMALL_ROWS)))
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


# -- their parts -------------------------------------------------------------------------------------------------------
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


def _dot_columns(p: Product, context: PlanContext) -> int:
    """The most columns that are computed as dot products: the last vector of more columns would be half full."""
    return context.value(DOTS, p.lanes + p.lanes // 2)


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


def _larger_than(one: Axis, other: Axis, count: int) -> Any:
    """The condition that two nested loops have more iterations."""
    return ("<", str(count), ("*", extent(one), extent(other)))


def _single_column(p: Product) -> tuple[Axis, Axis]:
    """The columns and the sum of a product that may have a single column, and is then a sum of rows."""
    if not p.is_single or not p.columns[-1].size or p.columns[-1].count is not None:
        raise NotApplicable("it is not one product, or the number of columns is known, or no size")
    if p.left_along != p.sums[-1].name:
        raise NotApplicable("the left operand is not contiguous along the sum")
    return p.columns[-1], p.sums[-1]


def _is_one(axis: Axis) -> Any:
    return "=", axis.size, "1"


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
                   contiguous_loop(program, c.right, (*c.columns, *c.sums)), tuple([axes[n] for n in c.moving]),
                   len(c.columns) > 1 and any(mentions(i, c.columns[-2:-1]) for i in moved))


PRODUCTS = NestKind(
    "products", "Contractions of two arrays: GEMM, GEMV, batched products, convolutions.", match_product,
    (tiny_matrix, short_dots, matrix_vector, several_rows, few_columns, few_columns_transposed,
     streamed_in_small_blocks, streamed_right, three_vectors, right_fits_cache, whole_tiles, batch_fits_cache,
     few_rows, pointwise_convolution, small_images, small_batch, filters_in_vectors, few_filters,
     few_pixels_in_wide_tiles, few_pixels, taps_at_once, tap_by_tap, narrow_tiles, wide_tiles, convolution,
     small_product, long_last_sum, packed))
