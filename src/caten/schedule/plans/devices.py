"""Plans for devices that run threads in groups: every statement a kernel, every kernel a nest of groups and threads.

A map gives every element a thread, a sum along memory a group of threads to every row, a sum across it a thread to every column; passes over a row,
one after the other, are one group's work; copies that turn rows into columns go through shared tiles, and so do both operands of a matrix product.
What fits none of these runs as it was written, in one thread.
"""
from __future__ import annotations

from ...core.dtypes import is_complex
from ...core.expr import Const
from ...frozen import frozen
from ...loop.affine import canonical
from ...loop.dependence import carried_dependence, find_loop
from ...loop.statements import For, LoopProgram
from ..analysis.classify import Chain, along_memory, contraction, reduction
from .plan import Family, Given, NotApplicable, Plan, Version
from .transposes import transposed

FEW = 32                        # loops of fewer iterations are not worth a group


@frozen
class Group:
    """What a group of threads is for. `outside`: how many loops, from the outermost, choose the group's row; `free`: the loops whose iterations may
    run in any order."""

    outside: int = 0
    free: tuple[str, ...] = ()


@frozen
class SharedTiles(Plan):
    """Tiles of `rows` × `columns` of the result for a group, `depth` products at a time from shared memory, of which a thread has `height` rows in
    registers; `across` threads share its columns."""

    rows: int = 64
    columns: int = 64
    depth: int = 16
    height: int = 4
    across: int = 16


@frozen
class SharedTurn(Plan):
    """Tiles of `size` × `size` elements are read row by row into shared memory and stored from there, `columns` at once."""

    size: int = 32
    columns: int = 8


@frozen
class GroupRows(Plan):
    """A group of `threads` for every row, which `outside` loops choose."""

    outside: int
    threads: int


@frozen
class GroupSum(Plan):
    """Every group of `threads` adds up a `part` of so many elements, and one thread the parts."""

    threads: int
    part: int = 1 << 14


@frozen
class Elements(Plan):
    """A thread for every iteration of the loops in `free`, groups of so many `threads` of neighbours. `outermost`: what is inside the outermost loop
    is one thread's, whatever it is."""

    free: tuple[str, ...]
    threads: int
    outermost: bool = False


def shared_turn(seen: object, given: Given) -> Version:
    """Turned in shared memory, so that what is read and what is stored lies in a row."""
    return Version(SharedTurn())


def shared_tiles(seen: object, given: Given) -> Version:
    """Both operands by way of shared memory, the result in registers."""
    return Version(SharedTiles())


def one_sum(group: Group, given: Given) -> Version:
    """A sum into one place, by as many groups as it has parts."""
    return Version(GroupSum(given.machine.group_threads))


def rows(group: Group, given: Given) -> Version:
    """A row for each group."""
    return Version(GroupRows(group.outside, given.machine.group_threads))


def elements(group: Group, given: Given) -> Version:
    """An element for each thread."""
    return Version(Elements(group.free, given.machine.group_threads))


def outermost(group: Group, given: Given) -> Version:
    """A thread for every iteration of the outermost loop."""
    return Version(Elements(group.free, given.machine.group_threads, outermost=True))


def product(program: LoopProgram, chain: Chain, given: Given) -> Group:
    """A perfect nest as a product."""
    c = contraction(program, chain)
    if c is None or is_complex(c.out.dtype):
        raise NotApplicable("it is no product of real numbers")
    return Group()


def long_sum(program: LoopProgram, chain: Chain, given: Given) -> Group:
    """A sum into one place."""
    total = reduction(chain) if chain.is_leaf else None
    if total is None or total.kept:
        raise NotApplicable("it is no sum into one place")
    return Group()


def row_sums(program: LoopProgram, chain: Chain, given: Given) -> Group:
    """Sums along memory, a row each."""
    total = reduction(chain) if chain.is_leaf else None
    if total is None or not total.kept or chain.names != (*total.kept, *total.summed[:1]) or not along_memory(program, chain, total):
        raise NotApplicable("it is no sum of rows")
    return Group(len(total.kept))


def passes(program: LoopProgram, chain: Chain, given: Given) -> Group:
    """Loops of unknown length, or of a long one, that pass over a row one after the other."""
    extents = [canonical(s.hi - s.lo) for s in chain.body if isinstance(s, For)]
    if chain.is_leaf or not extents or not all(not isinstance(n, Const) or n.value >= FEW for n in extents):
        raise NotApplicable("there are no long loops inside")
    return Group(len(chain.names))


def independent(program: LoopProgram, chain: Chain, given: Given) -> Group:
    """Loops whose iterations may run in any order."""
    free = tuple([name for name in chain.names if carried_dependence(*find_loop(program, name)) is None])
    if not free:
        raise NotApplicable("no loop's iterations may run in any order")
    return Group(free=free)


def outermost_independent(program: LoopProgram, chain: Chain, given: Given) -> Group:
    """The outermost loop alone, where its iterations may run in any order."""
    name = chain.names[0]
    if carried_dependence(*find_loop(program, name)) is not None:
        raise NotApplicable(f"the iterations of '{name}' may not run in any order")
    return Group(free=(name,))


FAMILIES: tuple[Family, ...] = (
    Family("transposes on devices", "Copies that turn rows into columns.", transposed, (shared_turn,)),
    Family("products on devices", "Sums of products of two arrays.", product, (shared_tiles,)),
    Family("long sums on devices", "Sums into one place.", long_sum, (one_sum,)),
    Family("sums of rows on devices", "Sums of elements that are neighbours in memory.", row_sums, (rows,)),
    Family("passes on devices", "Rows that several loops pass over, one after the other.", passes, (rows,)),
    Family("elements on devices", "Loops whose iterations may run in any order.", independent, (elements,)),
    Family("outermost loops on devices", "The same of the outermost loop alone, where what is inside is not perfectly nested.",
           outermost_independent, (outermost,)),
)
