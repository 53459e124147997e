"""Plans for GPUs: every statement becomes a kernel, every kernel a grid of blocks of threads.

A map has one thread per element, a row reduction one block per row, a column reduction one thread for some rows of a
column. Passes over a row are one block's work. Transposes and both operands of a matrix product go through tiles in
shared memory. Everything else runs as written, in one thread.
"""
from __future__ import annotations

from ...core.dtypes import is_complex
from ...frozen import frozen
from ...loop.dependence import carried_dependence, find_loop
from ...loop.statements import For, LoopProgram
from ..analysis.classify import Chain, contraction, reduces_contiguously, reduction
from ..analysis.loop_queries import trip_count
from .plan import NestKind, NotApplicable, Plan, PlanContext, Version
from .transposes import match_transpose

MIN_ITERATIONS = 32             # shorter loops are not worth a block
LONG_COLUMN = 1024              # rows, from which on columns are worth a second kernel


@frozen
class GridNest:
    """A nest as GPU planners see it. `row_loops`: how many of the outermost loops choose the row of a block.
    `independent`: the loops whose iterations may run in any order."""

    row_loops: int = 0
    independent: tuple[str, ...] = ()


@frozen
class SharedGemm(Plan):
    """A GEMM with operand tiles in shared memory. A block computes `rows` × `columns` results, `depth` products at a
    time. A thread has `thread_rows` rows of them in registers; `threads_across` threads share the columns."""

    rows: int = 64
    columns: int = 128
    depth: int = 16
    thread_rows: int = 4
    threads_across: int = 16


@frozen
class SharedTranspose(Plan):
    """A transpose in tiles of `size` × `size` elements, read row by row into shared memory and stored from there,
    `columns` at once. Loads and stores are both coalesced."""

    size: int = 32
    columns: int = 8


@frozen
class GroupPerRow(Plan):
    """A block of `threads` for every row, which the `row_loops` outermost loops choose."""

    row_loops: int
    threads: int


@frozen
class GroupReduction(Plan):
    """A single long sum in two kernels: each block of `threads` adds `block` elements, then the partial sums are
    added."""

    threads: int
    block: int = 1 << 14


@frozen
class ColumnsInBlocks(Plan):
    """Reductions across memory in two kernels: a thread adds `block` rows of a column, then the partial sums are
    added. Blocks of `threads` neighbouring columns."""

    threads: int
    block: int = 256


@frozen
class ThreadPerElement(Plan):
    """A thread for every iteration of `loops`, in blocks of `threads` neighbours. `outermost`: only the outermost loop
    is parallel; a thread runs everything inside it."""

    loops: tuple[str, ...]
    threads: int
    outermost: bool = False


def shared_transpose(matched: object, context: PlanContext) -> Version:
    """Through shared memory, so that loads and stores are coalesced."""
    return Version(SharedTranspose())


def shared_gemm(matched: object, context: PlanContext) -> Version:
    """Operands in shared memory, the result in registers."""
    return Version(SharedGemm())


def long_reduction(nest: GridNest, context: PlanContext) -> Version:
    """A reduction to one element by several blocks."""
    return Version(GroupReduction(context.machine.group_threads))


def long_columns(nest: GridNest, context: PlanContext) -> Version:
    """Blocks of rows at once, since there may be few columns."""
    return Version(ColumnsInBlocks(context.machine.group_threads))


def group_per_row(nest: GridNest, context: PlanContext) -> Version:
    """A block per row."""
    return Version(GroupPerRow(nest.row_loops, context.machine.group_threads))


def thread_per_element(nest: GridNest, context: PlanContext) -> Version:
    """A thread per element."""
    return Version(ThreadPerElement(nest.independent, context.machine.group_threads))


def outermost_loop(nest: GridNest, context: PlanContext) -> Version:
    """A thread per iteration of the outermost loop."""
    return Version(ThreadPerElement(nest.independent, context.machine.group_threads, outermost=True))


def match_product(program: LoopProgram, chain: Chain, context: PlanContext) -> GridNest:
    """A perfect nest as a product."""
    c = contraction(program, chain)
    if c is None or is_complex(c.out.dtype):
        raise NotApplicable("it is not a product of real numbers")
    return GridNest()


def match_long_reduction(program: LoopProgram, chain: Chain, context: PlanContext) -> GridNest:
    """A reduction to one element."""
    total = reduction(chain) if chain.is_leaf else None
    if total is None or total.kept:
        raise NotApplicable("it is not a reduction to one element")
    return GridNest()


def match_row_reduction(program: LoopProgram, chain: Chain, context: PlanContext) -> GridNest:
    """Reductions of contiguous rows."""
    total = reduction(chain) if chain.is_leaf else None
    if total is None or not total.kept or chain.names != (*total.kept, *total.summed[:1]) \
            or not reduces_contiguously(program, chain, total):
        raise NotApplicable("it is not a reduction of rows")
    return GridNest(len(total.kept))


def match_columns(program: LoopProgram, chain: Chain, context: PlanContext) -> GridNest:
    """Reductions across contiguous memory, of many rows."""
    total = reduction(chain) if chain.is_leaf else None
    if total is None or not total.kept or len(total.summed) != 1:
        raise NotApplicable("it is not a reduction of columns")
    count = trip_count(chain.loops[chain.names.index(total.summed[0])])
    if count is not None and count < LONG_COLUMN:
        raise NotApplicable("the columns are short")
    return GridNest(independent=total.kept)


def match_passes(program: LoopProgram, chain: Chain, context: PlanContext) -> GridNest:
    """Inner loops of unknown or large trip counts, which pass over a row in turn."""
    counts = [trip_count(s) for s in chain.body if isinstance(s, For)]
    if chain.is_leaf or not counts or not all(n is None or n >= MIN_ITERATIONS for n in counts):
        raise NotApplicable("there are no long loops inside")
    return GridNest(len(chain.names))


def independent_loops(program: LoopProgram, chain: Chain) -> tuple[str, ...]:
    """The loops of a nest that carry no dependence."""
    return tuple([name for name in chain.names if carried_dependence(*find_loop(program, name)) is None])


def match_independent(program: LoopProgram, chain: Chain, context: PlanContext) -> GridNest:
    """Loops that carry no dependence."""
    free = independent_loops(program, chain)
    if not free:
        raise NotApplicable("every loop carries a dependence")
    return GridNest(independent=free)


def match_outermost(program: LoopProgram, chain: Chain, context: PlanContext) -> GridNest:
    """An outermost loop that carries no dependence."""
    name = chain.names[0]
    if carried_dependence(*find_loop(program, name)) is not None:
        raise NotApplicable(f"'{name}' carries a dependence")
    return GridNest(independent=(name,))


KINDS: tuple[NestKind, ...] = (
    NestKind("transposes on devices", "Copies that swap rows and columns.", match_transpose, (shared_transpose,)),
    NestKind("products on devices", "Contractions of two arrays.", match_product, (shared_gemm,)),
    NestKind("long sums on devices", "Reductions to one element.", match_long_reduction, (long_reduction,)),
    NestKind("sums of rows on devices", "Reductions along contiguous memory.", match_row_reduction, (group_per_row,)),
    NestKind("sums of columns on devices", "Reductions across contiguous memory.", match_columns, (long_columns,)),
    NestKind("passes on devices", "Rows that several loops pass over in turn.", match_passes, (group_per_row,)),
    NestKind("elements on devices", "Loops that carry no dependence.", match_independent, (thread_per_element,)),
    NestKind("outermost loops on devices", "Imperfect nests whose outermost loop carries no dependence.",
             match_outermost, (outermost_loop,)),
)
