"""Plans of sums, and of maxima and other reductions: along memory, across it, and of a few elements each."""
from __future__ import annotations

from math import prod
from typing import Any

from ...core.dtypes import DTYPES
from ...frozen import frozen
from ...loop.statements import Aref, LoopProgram
from ..analysis.classify import Chain, along_memory, computes_much, contiguous_loop, contraction, is_gathered, reduction
from .parameters import Parameter
from .plan import Axis, Family, Given, NotApplicable, Plan, Version, axes_of

TREE = Parameter("sums.tree", (0, 1), 1, what="are partial sums added up as a tree?")
BLOCK = Parameter("sums.block", (1 << 14, 1 << 16, 1 << 18), 1 << 16, what="elements of a long sum that one thread adds up at a time")
APART = Parameter("sums.apart", (0, 1 << 16, 1 << 18), what="elements between streams that are summed together; 0: one stream")
VECTORS = Parameter("sums.vectors", (1, 2, 4, 6, 8), 4, what="vectors of partial sums along memory, to hide the latency of an addition")
COLUMN_VECTORS = Parameter("columns.vectors", (1, 2, 4, 6, 8), 2, what="vectors of results that a sum across memory keeps in registers")
COLUMN_ROWS = Parameter("columns.rows", (4, 8, 16), 8, what="rows that are summed side by side")
COLUMNS_APART = Parameter("columns.apart", (0, 16, 64), what="rows between streams that are summed together; 0: rows side by side alone")
COLUMN_BLOCK = Parameter("columns.block", (1 << 11, 1 << 13, 1 << 15), what="bytes of results that one thread sums")

FAR, FAR_ROWS = 1 << 18, 64     # elements and rows between streams, where they pay
STREAMS = 4                     # of memory that are summed together: of one array four, of two two each
BLOCK_BYTES = 8192              # of results that one thread of several sums across memory, which stay in its first cache
SHORTER = 4                     # times, blocks where there would be one
SHORT_ROW = 8                   # vectors
FEW_VECTORS = 2                 # of results: more read rows in too many short pieces
MOST_TERMS = 32                 # of a sum that is written out


@frozen
class Sum:
    """`dtype`: of the result; `kept` and `summed`: the loops, from the outermost. `along`: is memory read along the innermost summed loop? `row`: the
    kept loop along which results are neighbours, if there is one. `gathers`: what is read moves with it, and not from neighbour to neighbour.
    `computes`: is there an elementary function of every element?"""

    dtype: str
    lanes: int
    kept: tuple[Axis, ...]
    summed: tuple[Axis, ...]
    along: bool
    row: Axis | None = None
    gathers: str = ""
    computes: bool = False


@frozen
class SumAlong(Plan):
    """`vectors` of partial sums along the innermost summed loop, added up at its end: as a tree, where that is asked for. What is left is
    vectors with masks (`masked`: all vectors have them, in one loop). One long sum, where threads may share it, is cut into blocks of `block`
    elements, which do not hang on how many threads there are, or read in streams `apart` elements apart (0: one)."""

    lanes: int
    vectors: int
    tree: bool = True
    block: int = 0
    apart: int = 0
    masked: bool = False


@frozen
class SumAcross(Plan):
    """`rows` at once are added to `vectors` of neighbouring results in registers, `block` of these at a time; `apart`: streams so many rows apart (0:
    none) are added together first."""

    lanes: int
    vectors: int
    rows: int
    block: int
    apart: int = 0


@frozen
class ColumnSum(Plan):
    """The only column, summed like a row."""

    sums: SumAlong


@frozen
class RowByRow(Plan):
    """Rows that never fill a vector are added one after the other, as they lie in memory, of which C compilers keep the sums in registers."""


@frozen
class Held(Plan):
    """As it is written, with the sum in a register, of which C compilers make vectors of neighbouring rows."""


@frozen
class Lanes(Plan):
    """The iterations of the innermost kept loop as lanes, each of which adds up a sum of its own."""

    lanes: int


@frozen
class Terms(Plan):
    """Vectors lie across the results, each in a register while all its terms are added, which are written out where they are few (`unrolled`)."""

    lanes: int
    unrolled: bool = False


# -- planners -------------------------------------------------------------------------------------------------------------------------------------
def few_elements(s: Sum, given: Given) -> Version:
    """Of rows that never fill a vector: each in a lane where much is computed, else as they are written."""
    last = s.summed[-1]
    if not s.along or last.count is None or last.count >= s.lanes:
        raise NotApplicable(f"'{last.name}' fills vectors, or memory is not read along it")
    return Version(_lanes(s) if s.computes else Held())


def few_terms(s: Sum, given: Given) -> Version:
    """Of a window, or a short list of terms."""
    terms = prod([MOST_TERMS + 1 if axis.count is None else axis.count for axis in s.summed])
    if s.along or s.row is None:
        raise NotApplicable("it sums along memory, or no loop steps through neighbouring results")
    if not 1 <= terms <= MOST_TERMS:
        raise NotApplicable(f"sums of {terms} terms are not written out")
    if s.gathers:
        raise NotApplicable(f"the elements of {s.gathers} that '{s.row.name}' steps through are no neighbours")
    return Version(Terms(s.lanes, unrolled=True))


def short_rows(s: Sum, given: Given) -> Version:
    """For rows that do not fill a vector, each in a lane."""
    last = s.summed[-1]
    if not s.along or not last.size:
        raise NotApplicable(f"memory is not read along '{last.name}', or its end is no size")
    return Version(_lanes(s), ("<", last.size, str(s.lanes)), "w")


def rows_of_few_vectors(s: Sum, given: Given) -> Version:
    """For rows of few vectors, and not of whole groups of them: to add up the lanes is most of the work, and is done once for all of a row."""
    last, longest, whole = s.summed[-1], SHORT_ROW * s.lanes, given(VECTORS) * s.lanes
    if not s.along or not s.kept or not given.masks_are_cheap:
        raise NotApplicable("memory is not read along rows, or vectors have no masks")
    plan = SumAlong(s.lanes, 1, tree=False, masked=True)
    if last.count is not None and s.lanes < last.count <= longest and last.count % whole:
        return Version(plan)
    if not last.size:
        raise NotApplicable(f"'{last.name}' has another length, or its end is no size")
    return Version(plan, ("and", ("<=", last.size, str(longest)), ("<", "0", ("mod", last.size, str(whole)))), "m")


def rows(s: Sum, given: Given) -> Version:
    """Sums along memory."""
    if not s.along:
        raise NotApplicable("memory is not read along the summed loop")
    return Version(_along(s, given))


def few_columns(s: Sum, given: Given) -> Version:
    """Sums across memory of rows that never fill a vector."""
    if s.row is None or s.row.count is None or s.row.count >= s.lanes:
        raise NotApplicable("the rows may fill a vector")
    return Version(RowByRow())


def one_column(s: Sum, given: Given) -> Version:
    """For one column, which is summed like a row."""
    if s.row is None or not s.row.size:
        raise NotApplicable("no loop to a size steps through neighbouring results")
    return Version(ColumnSum(sum_along(given, s.lanes, long=given.threads and s.kept == (s.row,) and len(s.summed) == 1)), ("=", s.row.size, "1"))


def few_vectors(s: Sum, given: Given) -> Version:
    """For columns that fill so few vectors that each stays in a register from the first row to the last."""
    if s.row is None or not s.row.size or not given.masks_are_cheap:
        raise NotApplicable("no loop to a size steps through neighbouring results, or vectors have no masks")
    return Version(Terms(s.lanes), ("<=", s.row.size, str(FEW_VECTORS * s.lanes)), "v")


def one_block(s: Sum, given: Given) -> Version:
    """For so few columns that one thread would sum them all: shorter blocks, which cost a little where memory is read past the caches."""
    if s.row is None or not s.row.size or not given.shares or s.kept != (s.row,):
        raise NotApplicable("no threads share neighbouring results")
    plan = _across(s, given)
    return Version(SumAcross(plan.lanes, plan.vectors, plan.rows, max(plan.block // SHORTER, s.lanes), plan.apart),
                   ("<=", s.row.size, str(plan.block)), "s")


def columns(s: Sum, given: Given) -> Version:
    """Sums across memory."""
    if s.row is None:
        raise NotApplicable("no loop steps through neighbouring results")
    return Version(_across(s, given))


def along(s: Sum, given: Given) -> Version:
    """Along the innermost summed loop, however it goes through memory."""
    if s.along:
        raise NotApplicable("it is a sum along memory")
    return Version(_along(s, given))


def sum_along(given: Given, lanes: int, long: bool = False) -> SumAlong:
    """The plan of a sum along memory. `long`: it is one sum, which threads may share."""
    return SumAlong(lanes, given(VECTORS), bool(given(TREE)), given(BLOCK) if long else 0,
                    given(APART, FAR if given.streams_pay else 0) if long else 0)


def _along(s: Sum, given: Given) -> SumAlong:
    return sum_along(given, s.lanes, long=given.threads and not s.kept and len(s.summed) == 1)


def _lanes(s: Sum) -> Lanes:
    if not s.kept or s.row != s.kept[-1]:
        raise NotApplicable("the results are no row of sums")
    return Lanes(s.lanes)


def _across(s: Sum, given: Given) -> SumAcross:
    """Threads share blocks of results; one alone takes as many as its first cache holds, for pieces of rows are short streams."""
    return across(given, s.dtype, s.lanes, given.machine.cache_bytes[0] if given.streams_pay else BLOCK_BYTES,
                  given(COLUMNS_APART, FAR_ROWS if given.streams_pay else 0))


def across(given: Given, dtype: str, lanes: int, block: int, apart: int = 0) -> SumAcross:
    """A sum of rows side by side, by default so many bytes of the results at a time."""
    return SumAcross(lanes, given(COLUMN_VECTORS), given(COLUMN_ROWS), given(COLUMN_BLOCK, block) // DTYPES[dtype].bytes, apart)


def sum_(program: LoopProgram, chain: Chain, given: Given) -> Sum:
    """A perfect nest as a sum into places that do not move with some of its loops."""
    lanes, total = given.vectors_of(chain.body), reduction(chain)
    if total is None:
        raise NotApplicable("it is no sum")
    axes = {axis.name: axis for axis in axes_of(chain)}
    row = contiguous_loop(program, total.out, total.kept)
    refs: Any = dict.fromkeys([n for s in chain.body for n in s.unique() if isinstance(n, Aref)])
    far = [ref for ref in refs if row is not None and is_gathered(program, ref, row)]
    return Sum(total.out.dtype, lanes, tuple([axes[n] for n in total.kept]), tuple([axes[n] for n in total.summed]),
               along_memory(program, chain, total), axes[row] if row is not None else None, str(far[0]) if far else "", computes_much(chain.body))


def _short_sum(program: LoopProgram, chain: Chain, given: Given) -> Sum:
    """A sum that is no product: those have plans of their own."""
    if contraction(program, chain) is not None:
        raise NotApplicable("it is a product")
    return sum_(program, chain, given)


SHORT_SUMS = Family("short sums", "Sums of a few elements each, as many in every call.", _short_sum, (few_elements, few_terms))
ROW_SUMS = Family("sums of rows", "Sums, maxima and the like of elements that are neighbours in memory.",
                  sum_, (short_rows, rows_of_few_vectors, rows))
COLUMN_SUMS = Family("sums of columns", "Sums of elements that lie apart, for results that are neighbours.",
                     sum_, (few_columns, one_column, few_vectors, one_block, columns))
OTHER_SUMS = Family("other sums", "Sums of elements that lie apart, for results that lie apart, too.", sum_, (along,))
