"""Plans of products whose operands are packed.

Panels of both operands are copied, so that the micro-kernel reads them contiguously, and a register tile of the result
is kept (Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication, 2008).
"""
from __future__ import annotations

from dataclasses import replace
from math import prod

from ...core.dtypes import DTYPES
from ...frozen import frozen
from .parameters import Parameter
from .plan import Axis, NotApplicable, Plan, PlanContext, Version, both
from .product import ROWS, SMALL_BATCH, VECTORS, Product, at_least, batch_size, register_rows

DEPTH = Parameter("gemm.depth", (64, 128, 256, 512, 1024), 256, what="block of the sum per visit of a tile (kc)")
QUARTERS = Parameter("gemm.quarters", (1, 2, 3), 2,
                     what="quarters of the last private cache that the packed left panel fills (mc)")
PANELS = Parameter("gemm.panels", (8, 16, 32, 64, 128), 32,
                   what="register tiles along the columns of a packed right panel (nc)")
AHEAD = Parameter("gemm.ahead", (1, 2, 4, 8, 16), 4, what="prefetch distance of packing in rows")
ORDER = Parameter("gemm.order", (0, 1), 0, what="which loop over register tiles is outside: columns (0) or rows (1)")
UNROLL = Parameter("gemm.unroll", (1, 2, 4), 1, what="unroll factor of the sum in the micro-kernel")
STEPS = Parameter("gemm.steps", (1, 8, 32), 8, what="longest inner sum that is fully unrolled")
SMALL_PRODUCT = 1 << 24         # multiplications of a product whose threads do not wait for each other
PANEL_TILES = 2                 # register tiles of the panels of columns that they share
PANEL_ROWS = 256                # of the panels that each of them packs: every thread needs memory for them
LONG_SUM = 64                   # shortest innermost loop of a sum of several of which blocks are packed by themselves
LINES = 16                      # of shorter ones that are packed at once


# -- plans -------------------------------------------------------------------------------------------------------------
@frozen
class PackedGemm(Plan):
    """A GEMM with both operands packed. The register tile is `rows` × `columns`; the sum is blocked by `depth` (kc),
    the rows by `panel_rows` (mc), the columns by `panel_columns` (nc; 0: not blocked). `prefetch`: distance in rows
    while packing. `rows_outer`: the loop over row tiles is outside of that over column tiles. `unroll`: of the sum.
    `unroll_inner`: the innermost constant loop of the sum is fully unrolled. `pack_along_sum`: A is contiguous along
    the sum and is packed in that direction. `transpose_right`: so is B, and is transposed in registers where it is
    packed. `parallel_product`: threads share each product of a batch. `parallel_panels`: they share the panels of
    columns, and each packs its own. `outside`: so many of the loops of the sum are around its blocks, which are of the
    next one."""

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
    outside: int = 0


# -- planners ----------------------------------------------------------------------------------------------------------
def small_batch(p: Product, context: PlanContext) -> Version:
    """For small batches: threads share each product."""
    count = batch_size(p)
    if p.has_windows or not context.uses_threads or count is None:
        raise NotApplicable("no threads share it, or the batch size is no size of the call")
    return Version(replace(_packed_gemm(p, context), parallel_product=True), ("<", count, str(SMALL_BATCH)), "f")


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


def long_last_sum(p: Product, context: PlanContext) -> Version:
    """For sums over several axes of which the innermost is long: blocks of that one are packed, with the others around
    them, so that they fit the caches however long it is."""
    last = last_unknown(p.sums)
    if last < 1 or not p.sums[last].size:
        raise NotApplicable("the sum has not several axes, or their extents are known, or no sizes")
    return Version(_packed_gemm(p, context, outside=last), at_least(p.sums[last], LONG_SUM), "k")


def packed(p: Product, context: PlanContext) -> Version:
    """For all other products: both operands are packed."""
    return Version(_packed_gemm(p, context, outside=max(0, last_unknown(p.sums) - 1)))


# -- their parts -------------------------------------------------------------------------------------------------------
def panel_rows_of(context: PlanContext, dtype: str, rows: int, depth: int) -> int:
    """Rows of the packed left panel (mc) that fill its share of the last private cache."""
    panel = context.machine.cache_bytes[-1] * context.value(QUARTERS) // 4 // (depth * DTYPES[dtype].bytes)
    return max(1, panel // rows) * rows


def outer_depth(depth: int, inner: int) -> int:
    """The block of the outer sum, a power of two, if `inner` iterations of constant loops are inside each of its
    steps."""
    return 1 << max(0, (depth // inner - 1).bit_length())


def _packed_gemm(p: Product, context: PlanContext, outside: int = 0) -> PackedGemm:
    value, lanes, is_image = context.value, context.lanes([p.dtype]), len(p.columns) > 1
    rows, depth, columns = value(ROWS, register_rows(context.machine)), value(DEPTH), value(VECTORS) * lanes
    blocked, *inner = p.sums[outside:]
    return PackedGemm(
        rows, columns, lanes, depth_of_block(depth, tuple(inner)), panel_rows_of(context, p.dtype, rows, depth),
        0 if is_image else value(PANELS) * columns, value(AHEAD), not is_image and bool(value(ORDER)), value(UNROLL),
        unrolls_inner(tuple(inner), context), not inner and p.left_along == blocked.name,
        not inner and p.right_along == blocked.name, outside=outside)


def last_unknown(sums: tuple[Axis, ...]) -> int:
    """Which loop of a sum is the innermost of unknown extent; -1 if there is none."""
    return max([n for n, axis in enumerate(sums) if axis.count is None], default=-1)


def depth_of_block(depth: int, inner: tuple[Axis, ...]) -> int:
    """The block of a loop of the sum with these in each of its steps: few steps if they are of unknown extents."""
    return min(LINES if last_unknown(inner) >= 0 else depth, outer_depth(depth, trip_count_of(inner)))


def unrolls_inner(inner: tuple[Axis, ...], context: PlanContext) -> bool:
    """Is the innermost constant loop of the sum short enough to unroll fully?"""
    return bool(inner) and inner[-1].count in range(2, context.value(STEPS) + 1)


def trip_count_of(axes: tuple[Axis, ...]) -> int:
    """The product of the constant trip counts."""
    return prod([axis.count for axis in axes if axis.count is not None])
