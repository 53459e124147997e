"""Plans of reductions (sums, maxima and so on): along rows, along columns, and short ones."""
from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

from ...core.dtypes import DTYPES, is_float
from ...frozen import frozen
from ...loop.statements import Aref, LoopProgram
from ..analysis.classify import (
    Chain,
    contiguous_loop,
    contraction,
    is_compute_bound,
    is_gathered,
    is_indirect,
    reduces_contiguously,
    reduction,
    shares_operand,
)
from ..analysis.loop_queries import mentions
from .parameters import Parameter
from .plan import Axis, NestKind, NotApplicable, Plan, PlanContext, Version, axes_of, both

JAMMED = Parameter("matvec.rows", (2, 4, 6, 8, 12), 8, what="rows of a matrix-vector product at once (unroll-and-jam)")
TREE = Parameter("sums.tree", (0, 1), 1, what="are partial sums added as a tree?")
BLOCK = Parameter("sums.block", (1 << 14, 1 << 16, 1 << 18), 1 << 16, what="elements per block of a long sum")
APART = Parameter("sums.apart", (0, 1 << 16, 1 << 18), what="elements between streams summed together; 0: one stream")
VECTORS = Parameter("sums.vectors", (1, 2, 4, 6, 8), 4, what="vector accumulators, to hide the latency of an addition")
COLUMN_VECTORS = Parameter("columns.vectors", (1, 2, 4, 6, 8), 2, what="result vectors in registers of a column sum")
COLUMN_ROWS = Parameter("columns.rows", (4, 8, 16), 8, what="rows added at once (unroll-and-jam)")
COLUMNS_APART = Parameter("columns.apart", (0, 16, 64), what="rows between streams added together; 0: one stream")
COLUMN_BLOCK = Parameter("columns.block", (1 << 11, 1 << 13, 1 << 15), what="bytes of results per thread and block")

FAR, FAR_ROWS = 1 << 18, 64     # elements and rows between streams if several streams pay
STREAMS = 4                     # read together: four of one array, or two each of two arrays
BLOCK_BYTES = 8192              # of results per block of a column sum, which stay in L1
SHORT_BLOCK = 4                 # divisor of the block size if there would be a single block
SHORT_ROW = 8                   # vectors of the longest row with masked vectors only
RESULT_VECTORS = 2              # most result vectors kept in registers: more would read rows in too short pieces
STRIP_VECTORS = 8               # result vectors in registers, if rows are read from L2
UNROLLED_ROW = 8                # from so many floats of a row on, adding the lanes of a vector pays
FEW_OVER = 2                    # floats after a vector that do not pay for another one, under a mask
UNROLLED_TERMS = 32             # longest sum that is fully unrolled


@frozen
class Sum:
    """A reduction as planners see it. `dtype`: of the result. `kept`, `summed`: the loops, outermost first.
    `contiguous`: is memory contiguous along the innermost summed loop? `row`: the kept loop in which the results are
    contiguous, if any. `gathers`: an access that is not contiguous in `row`. `compute_bound`: does every element take
    an elementary function? `shared`: is an array read that does not move with the innermost kept loop (the vector of a
    matrix-vector product)? `along`: the summed loops that move all arrays along the lines that `row` runs along, if at
    all: that along the line of a window, whose neighbours read most of the same elements. `indirect`: an access along
    the innermost summed loop whose index is read from memory, so that no vector loads it."""

    dtype: str
    lanes: int
    kept: tuple[Axis, ...]
    summed: tuple[Axis, ...]
    contiguous: bool
    row: Axis | None = None
    gathers: str = ""
    compute_bound: bool = False
    shared: bool = False
    along: tuple[Axis, ...] = ()
    indirect: str = ""


@frozen
class RowReduction(Plan):
    """A reduction with lanes along the innermost summed loop: `vectors` accumulators, added at its end, as a `tree` or
    in order; scalars, if `lanes` is 1. The tail is masked; `masked`: one loop of masked vectors and no tail. One long
    sum is cut into blocks of `block` elements, so that the result does not depend on the number of threads.
    `stream_distance`: several streams so many elements apart are read together (0: one). `rows`: so many are reduced at
    once, with one accumulator each, and the rest one by one (0: all are)."""

    lanes: int
    vectors: int
    tree: bool = True
    block: int = 0
    stream_distance: int = 0
    masked: bool = False
    rows: int = 0


@frozen
class ColumnReduction(Plan):
    """A reduction with lanes across the results: `rows` rows at once are added to `vectors` result vectors in
    registers, in blocks of `block` results. `stream_distance`: rows so far apart are added together first (0: none)."""

    lanes: int
    vectors: int
    rows: int
    block: int
    stream_distance: int = 0


@frozen
class RowByRow(Plan):
    """Narrow rows are added in order; C compilers keep their accumulators in registers."""


@frozen
class ScalarAccumulator(Plan):
    """Loops as written, with a scalar accumulator in a register; C compilers vectorise across rows."""


@frozen
class RowPerLane(Plan):
    """Outer-loop vectorisation: each lane reduces a row of its own."""

    lanes: int


@frozen
class SingleColumn(Plan):
    """A column reduction with one column, which is reduced like rows."""

    reduction: RowReduction | RowPerLane


@frozen
class VectorAccumulator(Plan):
    """A vector of results is the accumulator of all its terms, and stays in a register. `unrolled`: over all terms.
    `vectors`: so many are accumulated at once (0: one)."""

    lanes: int
    unrolled: bool = False
    vectors: int = 0


# -- planners ---------------------------------------------------------------------------------------------------------
def tiny_rows(s: Sum, context: PlanContext) -> Version:
    """For rows of constant length below a vector: one row per lane if compute-bound, otherwise a scalar accumulator."""
    last = s.summed[-1]
    if not s.contiguous or last.count is None or last.count >= s.lanes:
        raise NotApplicable(f"'{last.name}' fills vectors, or memory is not contiguous in it")
    return Version(_row_per_lane(s) if s.compute_bound else ScalarAccumulator())


def known_rows(s: Sum, context: PlanContext) -> Version:
    """For short rows of constant length where masked vectors take time (AVX2): C compilers unroll them, and may add
    integers in any order."""
    last, count = s.summed[-1], s.summed[-1].count
    if not s.contiguous or count is None or context.masks_are_free or s.compute_bound or len(s.summed) > 1:
        raise NotApplicable(f"'{last.name}' has no constant length, functions are computed, or masks are free")
    if count > SHORT_ROW * s.lanes or (is_float(s.dtype) and not count < UNROLLED_ROW
                                       and count - s.lanes not in range(1, FEW_OVER + 1)):
        raise NotApplicable(f"'{last.name}' fills vectors")
    return Version(ScalarAccumulator())


def few_terms(s: Sum, context: PlanContext) -> Version:
    """For a constant number of terms, such as a pooling window: fully unrolled, with lanes across the results."""
    terms = prod([UNROLLED_TERMS + 1 if axis.count is None else axis.count for axis in s.summed])
    if s.contiguous or s.row is None:
        raise NotApplicable("the sum is contiguous in memory, or the results are not contiguous in any loop")
    if not 1 <= terms <= UNROLLED_TERMS:
        raise NotApplicable(f"sums of {terms} terms are not unrolled")
    if s.gathers:
        raise NotApplicable(f"{s.gathers} is not contiguous in '{s.row.name}'")
    return Version(VectorAccumulator(s.lanes, unrolled=True))


def short_rows(s: Sum, context: PlanContext) -> Version:
    """For rows shorter than a vector: one row per lane."""
    last = s.summed[-1]
    if not s.contiguous or not last.size:
        raise NotApplicable(f"memory is not contiguous in '{last.name}', or its extent is no size")
    return Version(_row_per_lane(s), ("<", last.size, str(s.lanes)), "w")


def gathered_rows(s: Sum, context: PlanContext) -> Version:
    """For rows whose elements are gathered, at indices read from memory, as of a sparse matrix: several scalar
    accumulators."""
    if not s.contiguous or not s.indirect:
        raise NotApplicable("memory is not contiguous in the summed loop, or no index is read from it")
    if s.compute_bound:
        raise NotApplicable("functions are computed, in vectors of what is gathered")
    return Version(_row_reduction(replace(s, lanes=1), context))


def matrix_vector(s: Sum, context: PlanContext) -> Version:
    """For matrix-vector products: several rows at once are several streams from memory, and load the vector once."""
    if not s.contiguous or not s.shared or len(s.summed) != 1 or not context.machine.has_fma:
        raise NotApplicable("it is no sum of rows that share a vector")
    last, row = s.summed[-1], s.kept[-1]
    least = {last: s.lanes, row: context.value(JAMMED)}
    if any(axis.count is not None and axis.count < count for axis, count in least.items()):
        raise NotApplicable("the rows are short, or few")
    plan = replace(row_reduction(context, s.lanes), rows=least[row])
    conds = [("<=", str(count), axis.size) for axis, count in least.items() if axis.size and axis.count is None]
    return Version(plan, both(*conds) if conds else None, "g")


def medium_rows(s: Sum, context: PlanContext) -> Version:
    """For rows of few vectors that do not fill all accumulators: one accumulator and masked vectors, since adding its
    lanes is most of the work."""
    last, longest, whole = s.summed[-1], SHORT_ROW * s.lanes, context.value(VECTORS) * s.lanes
    if not s.contiguous or not s.kept or not context.masks_are_cheap(s.lanes) or s.shared:
        raise NotApplicable("memory is not contiguous along rows, they share a vector, or vectors have no masks")
    plan = RowReduction(s.lanes, 1, tree=False, masked=True)
    if last.count is not None and s.lanes < last.count <= longest and last.count % whole:
        return Version(plan)
    if not last.size:
        raise NotApplicable(f"'{last.name}' has another length, or its extent is no size")
    return Version(plan, ("and", ("<=", last.size, str(longest)), ("<", "0", ("mod", last.size, str(whole)))), "m")


def rows(s: Sum, context: PlanContext) -> Version:
    """For all other rows: several vector accumulators."""
    if not s.contiguous:
        raise NotApplicable("memory is not contiguous in the summed loop")
    return Version(_row_reduction(s, context))


def few_columns(s: Sum, context: PlanContext) -> Version:
    """For a constant number of columns below a vector."""
    if s.row is None or s.row.count is None or s.row.count >= s.lanes:
        raise NotApplicable("the rows may fill a vector")
    return Version(RowByRow())


def single_column(s: Sum, context: PlanContext) -> Version:
    """For one column: it is reduced like a row. It is not cut into blocks for threads: these need scratch memory for
    partial sums in every call, and products with a matrix of one column are rarely long."""
    if s.row is None or not s.row.size:
        raise NotApplicable("the results are not contiguous in a loop up to a size")
    long = context.threads and s.kept == (s.row,) and len(s.summed) == 1 and not s.shared
    return Version(SingleColumn(row_reduction(context, s.lanes, long=long)), ("=", s.row.size, "1"))


def narrow_columns(s: Sum, context: PlanContext) -> Version:
    """For so few columns that all accumulators stay in registers from the first row to the last."""
    if s.row is None or not s.row.size or not context.masks_are_cheap(s.lanes):
        raise NotApplicable("the results are not contiguous in a loop up to a size, or vectors have no masks")
    return Version(VectorAccumulator(s.lanes), ("<=", s.row.size, str(RESULT_VECTORS * s.lanes)), "v")


def strips(s: Sum, context: PlanContext) -> Version:
    """For what fits L2: a strip of columns stays in registers from the first row to the last. From memory, the pieces
    of rows would be short streams."""
    apart = [axis for axis in s.summed if axis not in s.along]
    if s.row is None or not context.masks_are_cheap(s.lanes) or len(apart) > 1:
        raise NotApplicable("the results are not contiguous in any loop, there are several sums, or no masks")
    fits = context.machine.cache_bytes[-1] * 3 // 4 // DTYPES[s.dtype].bytes           # with what else is read
    vectors = context.vectors_of(s.row, s.lanes, STRIP_VECTORS // (2 if context.uses_threads else 1))
    if vectors < 2:
        raise NotApplicable("a strip is one vector")
    plan = VectorAccumulator(s.lanes, vectors=vectors)
    if not apart:                                           # neighbours read the same piece of a line
        return Version(plan)
    counts = s.row.count, apart[0].count
    if all(counts):
        if prod([n or 1 for n in counts]) > fits:
            raise NotApplicable("the array does not fit L2")
        return Version(plan)
    extents = [axis.size or axis.count for axis in (s.row, apart[0])]
    if not all(extents):
        raise NotApplicable("an extent is no size")
    return Version(plan, ("<=", ("*", *[str(e) for e in extents]), str(fits)), "f")


def single_block(s: Sum, context: PlanContext) -> Version:
    """For columns that would be one block, and so work for one thread: the blocks are shorter, at some bandwidth."""
    if s.row is None or not s.row.size or not context.uses_threads or s.kept != (s.row,):
        raise NotApplicable("no threads share contiguous results")
    plan = _column_reduction(s, context)
    short = max(plan.block // SHORT_BLOCK, s.lanes)
    return Version(ColumnReduction(plan.lanes, plan.vectors, plan.rows, short, plan.stream_distance),
                   ("<=", s.row.size, str(plan.block)), "s")


def columns(s: Sum, context: PlanContext) -> Version:
    """For all other columns: lanes across the results, in blocks."""
    if s.row is None:
        raise NotApplicable("the results are not contiguous in any loop")
    return Version(_column_reduction(s, context))


def strided(s: Sum, context: PlanContext) -> Version:
    """Lanes along the innermost summed loop, though its loads are strided."""
    if s.contiguous:
        raise NotApplicable("memory is contiguous in the summed loop")
    return Version(_row_reduction(s, context))


def row_reduction(context: PlanContext, lanes: int, long: bool = False) -> RowReduction:
    """The plan of a reduction along a row. `long`: it is a single sum, which threads may share."""
    return RowReduction(lanes, context.value(VECTORS), bool(context.value(TREE)), context.value(BLOCK) if long else 0,
                        context.value(APART, FAR if context.streams_pay else 0) if long else 0)


def _row_reduction(s: Sum, context: PlanContext) -> RowReduction:
    return row_reduction(context, s.lanes, long=context.threads and not s.kept and len(s.summed) == 1)


def _row_per_lane(s: Sum) -> RowPerLane:
    if not s.kept or s.row != s.kept[-1]:
        raise NotApplicable("the results are not contiguous in the innermost kept loop")
    return RowPerLane(s.lanes)


def _column_reduction(s: Sum, context: PlanContext) -> ColumnReduction:
    """Threads share blocks of results. A single thread takes as many as L1 holds: pieces of rows are short streams."""
    block, distance = (context.machine.cache_bytes[0], FAR_ROWS) if context.streams_pay else (BLOCK_BYTES, 0)
    return column_reduction(context, s.dtype, s.lanes, block, context.value(COLUMNS_APART, distance))


def column_reduction(context: PlanContext, dtype: str, lanes: int, block: int, distance: int = 0) -> ColumnReduction:
    """The plan of a reduction across rows. `block`: the default block size, in bytes of results."""
    return ColumnReduction(lanes, context.value(COLUMN_VECTORS), context.value(COLUMN_ROWS),
                           context.value(COLUMN_BLOCK, block) // DTYPES[dtype].bytes, distance)


def match_reduction(program: LoopProgram, chain: Chain, context: PlanContext) -> Sum:
    """A perfect nest as a reduction."""
    lanes, total = context.vector_lanes(chain.body), reduction(chain)
    if total is None:
        raise NotApplicable("it is not a reduction")
    axes = {axis.name: axis for axis in axes_of(chain)}
    row = contiguous_loop(program, total.out, total.kept)
    refs: Any = dict.fromkeys([n for s in chain.body for n in s.unique() if isinstance(n, Aref)])
    far = [ref for ref in refs if row is not None and is_gathered(program, ref, row)]
    kept, summed = [tuple([axes[n] for n in names]) for names in (total.kept, total.summed)]
    return Sum(total.out.dtype, lanes, kept, summed, reduces_contiguously(program, chain, total),
               axes[row] if row is not None else None, str(far[0]) if far else "", is_compute_bound(chain.body),
               is_float(total.out.dtype) and shares_operand(chain, total),
               tuple([axes[name] for name in total.summed
                      if row is not None and not any(_moves_apart(ref, name, row) for ref in refs)]),
               next((str(ref) for ref in refs if is_indirect(ref, total.summed[-1])), ""))


def _moves_apart(ref: Aref, name: str, row: str) -> bool:
    """Does an access move with a loop along another axis than with the row?"""
    return mentions(ref, (row,)) and any(mentions(i, (name,)) and not mentions(i, (row,)) for i in ref.index)


def match_short_reduction(program: LoopProgram, chain: Chain, context: PlanContext) -> Sum:
    """A reduction that is not a contraction: those have plans of their own."""
    if contraction(program, chain) is not None:
        raise NotApplicable("it is a product")
    return match_reduction(program, chain, context)


SHORT_SUMS = NestKind("short sums", "Reductions of few elements, a constant number of them.", match_short_reduction,
                      (tiny_rows, known_rows, few_terms))
ROW_SUMS = NestKind("sums of rows", "Reductions (sum, maximum and so on) along contiguous memory.", match_reduction,
                    (gathered_rows, short_rows, matrix_vector, medium_rows, rows))
COLUMN_SUMS = NestKind("sums of columns", "Reductions across rows, with contiguous results.", match_reduction,
                       (few_columns, single_column, narrow_columns, strips, single_block, columns))
OTHER_SUMS = NestKind("other sums", "Reductions of strided elements with results that are not contiguous.",
                      match_reduction, (strided,))
