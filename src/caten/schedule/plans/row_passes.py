"""Plans of rows that several loops pass over in turn (softmax, layer norm), and of outer-loop vectorisation."""
from __future__ import annotations

from collections.abc import Iterable

from ...core.expr import Const, Expr, Op, Var
from ...core.program import Buffer
from ...frozen import frozen
from ...loop.effects import reads
from ...loop.statements import Aref, For, Let, LoopProgram
from ...mathematics.elementary.elementary_table import FORMS
from ..analysis.classify import Chain, chain_of, contiguous_loop, is_compute_bound, is_gathered, outermost, stored
from ..analysis.loop_queries import loops_in, mentions, trip_count
from ..analysis.running_totals import running_totals
from .maps import OuterLoopVectors, ScalarLoops
from .parameters import Parameter
from .plan import Axis, NestKind, NotApplicable, Plan, PlanContext, Version, axes_of, both, version_if

AHEAD = Parameter("rows.ahead", (0, 1), what="does a pass over a row prefetch the next row?")
STRIP = Parameter("rows.strip", (1, 2, 4, 8), what="vectors of columns in a strip, which all passes work on together")

ROWS = Parameter("rows.together", (1, 2, 4, 8), 4, what="short rows that are worked on together")

ROW_BYTES = 512                         # of rows that are worked on together: prefetchers follow one row better
CACHED_ROW_BYTES = 2048                 # of those in local arrays, which are in cache
WRITTEN_OUT = 8                         # iterations that C compilers write out
STRIP_BYTES, MOST_VECTORS = 512, 8      # of a strip: eight cache lines in each row
STRIPS = 4                              # so many are work for several threads
FEW_ROWS = 32                           # so few vectors stay in the nearest cache


@frozen
class RowPasses:
    """Loops over rows (`outside`) around loops that each pass once over a row of `length` elements. `gathers`: would
    outer-loop vectors read memory that is not contiguous? `few_rows`: are the loops inside short, by their constant
    trip counts? `stored_between`: does a pass store what a later one reads? `running`: do all passes store
    running totals, and little else? `pairs`: do they read complex numbers of two float64, and compute little?
    `contiguous`: is each access contiguous along a row, or the same for all of it, at
    indices that are not computed for the row? `in_cache`: are all arrays local ones?"""

    lanes: int
    outside: tuple[Axis, ...]
    length: str
    compute_bound: bool
    gathers: bool = False
    few_rows: bool = False
    stored_between: bool = False
    running: bool = False
    pairs: bool = False
    contiguous: bool = False
    in_cache: bool = False


@frozen
class RowsAtOnce(Plan):
    """Several rows at once: each pass works on vectors along so many rows in turn, the last vector masked, and the rest
    of the rows one by one. What one row waits for, another one does meanwhile."""

    lanes: int
    rows: int


@frozen
class RowPrefetch(Plan):
    """The pass `loop` prefetches the next row of `arrays`, which the nest reads but does not write."""

    loop: str
    arrays: tuple[str, ...]


def rows_of_one_element(p: RowPasses, context: PlanContext) -> Version:
    """For rows of one element: the rows are the lanes."""
    if not context.threads:
        raise NotApplicable("the nest around it has plans for them")
    return Version(OuterLoopVectors(p.lanes, len(p.outside), single_pass=True), ("=", p.length, "1"), "one")


def rows_at_once(p: RowPasses, context: PlanContext) -> Version:
    """For rows of one to a few vectors: several rows at once. Adding up the lanes of a vector, dividing, and reading
    again what a mask has just stored take long to end, and a single row waits for each of them. Longer rows have enough
    to do meanwhile, and hardware prefetchers follow one row better than several."""
    if not p.contiguous or not context.masks_are_cheap(p.lanes):
        raise NotApplicable("an access is not contiguous along the rows, or masks are expensive")
    least = p.lanes
    most = p.lanes * (CACHED_ROW_BYTES if p.in_cache else ROW_BYTES) // context.machine.vector_bytes
    if p.compute_bound:                                # the rows would be the lanes
        least = least * 7 // 8 if context.masks_are_free else least * 7 // 4
    return version_if(RowsAtOnce(p.lanes, context.value(ROWS)),
                      both(("<=", str(least), p.length), ("<", p.length, str(most))), "r")


def short_rows(p: RowPasses, context: PlanContext) -> Version:
    """For rows shorter than one vector: the rows are the lanes, and loads are strided. Two vectors, if compute-bound or
    if passes store what others read: a masked load waits for the masked store before it. Running totals stay scalar:
    processors add up several rows at once, without strided stores. Complex numbers of two float64 do as well: C
    compilers have both parts in one register, and strided vectors of them would be loads of each of them."""
    if p.length.isdigit() and int(p.length) <= min(WRITTEN_OUT, p.lanes - 1):
        raise NotApplicable("C compilers write so few iterations out")
    if p.running or p.pairs:
        return version_if(ScalarLoops(), ("<", p.length, str(p.lanes)), "w")
    vectors = 2 if p.compute_bound or p.stored_between else 1
    return version_if(OuterLoopVectors(p.lanes, len(p.outside)), ("<", p.length, str(p.lanes * vectors)), "w")


def gathers(p: RowPasses, context: PlanContext) -> Version:
    """For memory-bound loops whose lanes would gather: C compilers handle rows of constant length better."""
    if p.compute_bound or not p.gathers:
        raise NotApplicable("it is compute-bound, or the lanes read contiguous memory")
    return Version(ScalarLoops())


def outer_loop_vectors(p: RowPasses, context: PlanContext) -> Version:
    """For inner loops that are short or have no contiguous access."""
    return Version(OuterLoopVectors(p.lanes, len(p.outside), masked=context.masks_are_cheap(p.lanes) and not p.gathers))


def many_strips(p: RowPasses, context: PlanContext) -> Version:
    """For at least four full strips of columns, enough work for several threads: the strips are as wide as on one
    thread."""
    vectors, columns = _strip(p, context), p.outside[-1]
    if not context.uses_threads or vectors < 4 or not columns.size:
        raise NotApplicable("no threads share the strips, these are narrow, or the number of columns is no size")
    return Version(_in_strips(p, context, vectors), ("<=", str(STRIPS * vectors * p.lanes), columns.size), "v")


def strips(p: RowPasses, context: PlanContext) -> Version:
    """For columns: all loops inside pass over a strip of several vectors, whose cache lines follow each other. With
    threads and fewer columns, strips of half the width give each thread some."""
    vectors = _strip(p, context)
    halved = context.uses_threads and vectors >= 4
    return Version(_in_strips(p, context, vectors // 2 if halved else vectors))


def _strip(p: RowPasses, context: PlanContext) -> int:
    """The vectors of a strip."""
    vectors = context.value(STRIP, min(MOST_VECTORS, STRIP_BYTES // context.machine.vector_bytes))
    vectors = context.vectors_of(p.outside[-1], p.lanes, vectors)
    if vectors < 2 or p.few_rows:
        raise NotApplicable("a strip is one vector, or the loops inside are short")
    return vectors


def _in_strips(p: RowPasses, context: PlanContext, vectors: int) -> OuterLoopVectors:
    return OuterLoopVectors(p.lanes, len(p.outside), masked=context.masks_are_cheap(p.lanes), vectors=vectors)


def match_passes(program: LoopProgram, chain: Chain, context: PlanContext) -> RowPasses:
    """A chain around loops with the same trip count, a size of the call."""
    return _match_passes(program, chain, context, Var)


def match_known_passes(program: LoopProgram, chain: Chain, context: PlanContext) -> RowPasses:
    """A chain around loops with the same constant trip count."""
    return _match_passes(program, chain, context, Const)


def _match_passes(program: LoopProgram, chain: Chain, context: PlanContext, bound: type[Expr]) -> RowPasses:
    inner = list(outermost(chain.body))
    if len({loop.hi for loop in inner}) != 1 or not all(
            isinstance(loop.hi, bound) and loop.lo == Const(0, "i64") for loop in inner):
        raise NotApplicable("the inner loops do not all count from 0 to the same size")
    chains = [chain_of(loop) for loop in inner]
    if not all(len(c.loops) == 1 and c.is_leaf for c in chains) or mentions(inner[0].hi, chain.names):
        raise NotApplicable("the inner loops hold further loops, or their length changes from row to row")
    written = {ref.buffer for ref in stored(chain)}
    between = any(reads(loop) & written for loop in inner[1:])
    compute_bound = is_compute_bound(chain.body)
    refs = [(ref, loop.name) for loop in inner for ref in loop.unique() if isinstance(ref, Aref)]
    of_row = {s.name for s in chain.body if isinstance(s, Let)}         # an index would be one of several in an array
    return RowPasses(_lanes(chain, context), axes_of(chain), str(inner[0].hi), compute_bound, stored_between=between,
                     running=not compute_bound and all(map(running_totals, inner)),
                     pairs=not compute_bound and any(ref.dtype == "c128" for ref, _ in refs),
                     in_cache=not any(isinstance(program.buffers.get(ref.buffer), Buffer) for ref, _ in refs),
                     contiguous=not any(is_gathered(program, ref, loop) or of_row & {name for i in ref.index
                                                                                     for name in i.variables}
                                        for ref, loop in refs))


def match_outer_loop(program: LoopProgram, chain: Chain, context: PlanContext) -> RowPasses:
    """A loop of the chain that may fill vectors, or half of one if masked, around loops that are short or would gather:
    the innermost whose lanes read contiguous memory, otherwise the innermost."""
    lanes, axes = _lanes(chain, context), axes_of(chain)
    least = lanes // 2 + 1 if context.masks_are_cheap(lanes) else lanes
    refs = {n for s in chain.body for n in s.unique() if isinstance(n, Aref)}
    found: list[RowPasses] = []
    for n in reversed(range(len(chain.loops))):
        inner = loops_in(chain.loops[n].body)
        if inner and not _is_short(axes[n].count, least) and all(
                _is_short(trip_count(loop), lanes) or _would_gather(program, refs, loop.name, axes[n].name)
                for loop in inner):
            gathers = any(is_gathered(program, ref, axes[n].name) for ref in refs)
            few_rows = all(_is_short(trip_count(loop), FEW_ROWS) for loop in inner)
            found.append(RowPasses(lanes, axes[:n + 1], "", is_compute_bound(chain.body), gathers, few_rows))
    if not found:
        raise NotApplicable("an inner loop may be vectorised, or the loops around them never fill a vector")
    return next((each for each in found if not each.gathers), found[0])


def _would_gather(program: LoopProgram, refs: Iterable[Aref], inner: str, outer: str) -> bool:
    """Would vectors along a loop gather, and those along one around it not? An access that is contiguous in the inner
    loop and does not move with the outer one is the same for all lanes."""
    along = [ref for ref in refs if contiguous_loop(program, ref, (inner,)) is not None]
    return not along or (not any(mentions(ref, (outer,)) for ref in along) and any(
        contiguous_loop(program, ref, (outer,)) is not None and mentions(ref, (inner,)) for ref in refs))


def match_columns(program: LoopProgram, chain: Chain, context: PlanContext) -> RowPasses:
    """A loop as `match_outer_loop` finds it, whose lanes read contiguous memory."""
    found = match_outer_loop(program, chain, context)
    if found.gathers:
        raise NotApplicable(f"some access is not contiguous in '{found.outside[-1].name}'")
    return found


def row_prefetch(program: LoopProgram, chain: Chain, context: PlanContext) -> RowPrefetch | None:
    """Which of several passes prefetches the next row: the last that reads arrays the nest does not write, since the
    whole present row is in cache by then. If the hardware prefetches, this pays only for compute-bound passes."""
    written, found, compute_bound = {ref.buffer for ref in stored(chain)}, None, False
    inner = list(outermost(chain.body))
    for loop in inner if len(inner) > 1 else []:
        arrays = [ref.buffer for ref in _row_reads(program, chain, loop) if ref.buffer not in written]
        if arrays:
            found = RowPrefetch(loop.name, tuple(dict.fromkeys(arrays)))
            compute_bound = any(isinstance(n, Op) and n.fn in FORMS for n in loop.unique())
    default = int(compute_bound or not context.machine.fetches_ahead)
    return found if found is not None and context.value(AHEAD, default) else None


def _row_reads(program: LoopProgram, chain: Chain, loop: For) -> list[Aref]:
    """The accesses of a pass that are contiguous along a row of a caller's array."""
    return [n for n in loop.walk() if isinstance(n, Aref) and isinstance(program.buffers.get(n.buffer), Buffer)
            and mentions(n, chain.names[-1:]) and contiguous_loop(program, n, (loop.name,)) is not None]


def _lanes(chain: Chain, context: PlanContext) -> int:
    lanes = context.lanes([n.dtype for s in chain.body for n in s.unique() if isinstance(n, Aref)])
    if lanes < 2:
        raise NotApplicable("the machine has no vectors of its elements")
    return lanes


def _is_short(count: int | None, lanes: int) -> bool:
    """Does a loop never fill a vector?"""
    return count is not None and count < lanes


PASSES = NestKind(
    "rows", "Rows that several loops pass over in turn (softmax, layer norm). Other calls are planned loop by loop.",
    match_passes, (rows_of_one_element, rows_at_once, short_rows), is_total=False)
KNOWN_PASSES = NestKind(
    "rows of constant length", "Rows of a constant length that several loops pass over in turn.", match_known_passes,
    (rows_at_once, short_rows))
COLUMNS = NestKind(
    "columns", "Loops whose iterations are contiguous in memory, around loops that are too short to vectorise or have "
    "no contiguous access (softmax or a running sum over columns, a median).", match_columns,
    (many_strips, strips, outer_loop_vectors))
SERIAL = NestKind("outer loops", "Loops around loops that are too short to vectorise or have no contiguous access.",
                  match_outer_loop, (gathers, outer_loop_vectors))
