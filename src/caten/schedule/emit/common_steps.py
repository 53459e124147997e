"""Steps that several plans share: vector loops, masked tails, register accumulators and multiply-adds."""
from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ...core.dtypes import is_float
from ...core.expr import Const, Op, index
from ...core.text import form_of
from ...loop.affine import canonical
from ...loop.effects import writes
from ...loop.statements import Aref, If, Incf, Setf, Stmt, Vref, statements_in
from ..analysis.classify import Chain, is_compute_bound, is_indirect
from ..analysis.loop_queries import enclosing, loops_in, mentions, trip_count
from ..draft import Draft
from ..plans.plan import NotApplicable, PlanContext
from ..step_results import Split, Staged

EPILOGUE = ("start", "finish")                # what nests over a tile do that evaluate the caller's expressions
LINEAR = ("add", "sub", "mul", "neg")         # operators of a linear index


def vectorize_loop(draft: Draft, name: str, lanes: int) -> None:
    """Turn a loop into vectors, unrolled over several vectors."""
    if draft.loop(name).hi == Const(lanes, "i64") and draft.loop(name).lo == index(0):
        draft.take("vectorize", name)
        return
    outer, inner = draft.split_exactly(name, lanes)
    draft.take("vectorize", inner)
    draft.take("unroll", outer)


def vectorize_copy(draft: Draft, name: str, lanes: int) -> None:
    """Turn a contiguous copy loop into vectors with a scalar tail."""
    draft.take("vectorize", draft.split(name, lanes).inner)


def vectorize_tile(draft: Draft, group: str, lane: str, *tiles: Staged) -> None:
    """Vectorise the loop `lane` and unroll `group`, in the nest and in the loops over the elements of its tiles."""
    for name in (lane, *[name for tile in tiles for name in tile.over(lane)]):
        draft.take("vectorize", name)
    if group:
        unroll_tile(draft, group, *tiles)


def unroll_tile(draft: Draft, group: str, *tiles: Staged) -> None:
    """Unroll the loop `group`, and the loops over the elements of its tiles."""
    draft.take("unroll", group)
    does = {nest.loops[group]: nest.does for tile in tiles for nest in tile.nests if group in nest.loops}
    for name in does:
        draft.take("unroll", name, *(["full"] if does[name] == "halve" else []))


def vectorize_masked(draft: Draft, loop: str, lanes: int, context: PlanContext) -> str:
    """Turn a tail into masked vectors, or into shorter ones if masks are expensive for small elements. Returns the loop
    over them. NotApplicable if masks are expensive for all elements."""
    if context.has_masks_for_wider_elements(lanes):
        shorter = in_shorter_vectors(draft, loop, lanes)
        for tail in shorter:
            draft.take("vectorize", tail.inner)
        return shorter[0].outer
    outer, lane = pad_masked(draft, loop, lanes, context)
    draft.take("vectorize", lane)
    return outer


def in_shorter_vectors(draft: Draft, loop: str, lanes: int) -> tuple[Split, ...]:
    """Split a tail into vectors of half as many lanes, and what is left of it into those of a quarter."""
    half = draft.split(loop, lanes // 2)
    return (half, draft.split(half.tail, lanes // 4)) if half.tail else (half,)


def pad_masked(draft: Draft, loop: str, lanes: int, context: PlanContext) -> tuple[str, str]:
    """Split a tail into vectors, the last one with lanes beyond its end. Returns the loop over the vectors, and that
    over the lanes. NotApplicable if masks are expensive."""
    if not context.masks_are_cheap(lanes):
        raise NotApplicable(f"the tail '{loop}' stays scalar: vectors have no masks")
    check_indices(draft, loop)
    return draft.split_whole(loop, lanes, "pad")


def split_overlapped(draft: Draft, loop: str, lanes: int, context: PlanContext) -> Split | None:
    """Split the loop over a row into vectors of which the last one begins early enough to be whole: a few elements are
    computed again, in less time than a masked store or scalars take. Rows shorter than a vector stay as they are. None
    where masks are free, there is one row, or an iteration must not run again."""
    if context.masks_are_free or not enclosing(draft.program, draft.loop(loop)):
        return None
    return draft.result_of(partial(_split_overlapped, loop=loop, lanes=lanes), f"the step 'split overlapped {loop}'")


def _split_overlapped(draft: Draft, loop: str, lanes: int) -> Split:
    found = draft.loop(loop)
    long_enough = form_of(Op("le", (index(lanes), canonical(found.hi - found.lo))))
    if not draft.is_always(loop, long_enough):
        loop = draft.specialize(loop, long_enough, "v")[loop]
    return draft.split(loop, lanes, "overlap")


def vectorize_whole(draft: Draft, tiles: Split) -> None:
    """Vectorise a loop and its overlapping tail."""
    for name in (tiles.tail, tiles.inner):
        if name:
            draft.take("vectorize", name)


def check_indices(draft: Draft, loop: str) -> None:
    """Check that all indices are linear in the loop: only those are proven to be in bounds under a lane mask. An index
    that is itself read from memory is another one for each lane."""
    for ref in [n for n in draft.loop(loop).unique() if isinstance(n, Aref) and not is_indirect(n, loop)]:
        others = [n for i in ref.index for n in i.walk() if isinstance(n, Op) and n.fn not in LINEAR]
        if any(loop in n.variables for n in others):
            raise NotApplicable(f"the index of {ref} is not linear in '{loop}'")


def use_fma(draft: Draft, loop: str, out: Aref, context: PlanContext) -> None:
    """Contract sums of products to multiply-adds, if the machine has them."""
    if context.machine.has_fma and is_float(out.dtype) and any(map(_adds_product, statements_in((draft.loop(loop),)))):
        draft.take("contract", loop)


def _adds_product(stmt: Stmt) -> bool:
    """Does a statement add a product to something, or subtract one?"""
    match stmt:
        case Incf(value=Op("mul") | Op("neg", (Op("mul"),)), fn="add"):
            return True
    return False


def split_tiles(draft: Draft, loop: str, factor: int, lanes: int = 1) -> Split:
    """Strip-mine a loop by `factor`, or by less if it is known to be shorter. A factor above `lanes` stays a multiple
    of `lanes`."""
    count = trip_count(draft.loop(loop))
    while count is not None and factor > max(1, count):
        factor //= 2
        factor -= factor % lanes if factor > lanes else 0
    return draft.split(loop, factor)


def reorder(draft: Draft, chain: Chain, names: tuple[str, ...]) -> None:
    """Reorder the loops of a chain, unless they are in this order."""
    if names != chain.names:
        draft.take("reorder", *names)


# -- accumulators ------------------------------------------------------------------------------------------------------
def accumulate(draft: Draft, loop: str, buffer: str, *axes: str, how: str = "accumulate",
               keep_conditions: bool = False, space: str = "register",
               finish: Callable[[Draft, Staged], None] | None = None) -> Staged:
    """Keep accumulators in registers, or in another `space`. If an earlier nest only sets the result, the first sum
    replaces it. If a later one maps each result, and `finish` vectorises that, it is applied to the accumulators.
    Otherwise the result is staged as `how` says. So it is if conditions would stay around the sum, unless
    `keep_conditions`."""
    first = partial(_start_from_first_sum, loop=loop, buffer=buffer, axes=axes, keep_conditions=keep_conditions,
                    space=space)
    made = None
    if finish is not None:
        made = draft.result_of(partial(_finish, begin=first, finish=finish), f"the epilogue of '{buffer}'")
    return made or draft.result_of(partial(first, how="begin"), f"the step 'start from first sum {loop} {buffer}'") \
        or draft.stage(loop, buffer, how, space, *axes)


def _finish(draft: Draft, begin: Callable[..., Staged], finish: Callable[[Draft, Staged], None]) -> Staged:
    staged = begin(draft, how="finish")
    finish(draft, staged)
    return staged


def no_scalar_functions(draft: Draft, sums: Staged) -> None:
    """Raise NotApplicable for an epilogue that computes functions of one accumulator at a time: the nest behind
    computes them in vectors."""
    stores = [n for kernel in draft.program.kernels for n in kernel.unique() if isinstance(n, Setf)]
    if any(is_compute_bound((store,)) and any(isinstance(n, Aref) and n.buffer == sums.tile for n in store.unique())
           for store in stores):
        raise NotApplicable("its functions would be computed for one element at a time")


def vectorize_epilogue(draft: Draft, sums: Staged, column: str, lanes: int, context: PlanContext) -> None:
    """Vectorise the nests that apply an epilogue to tiles, along the loop `column`."""
    for nest in sums.nests:
        if nest.does in EPILOGUE and trip_count(draft.loop(nest.loops[column])) is not None:
            vectorize_loop(draft, nest.loops[column], lanes)
    vectorize_edges(draft, sums, column, lanes, context, *EPILOGUE)


def unroll_usual(draft: Draft, axis: str, made: Staged, *does: str) -> None:
    """Unroll a loop over a register tile, and its copies in the usual nests with these roles. (Where no tile is whole,
    these stop at the edge, and stay loops.)"""
    draft.take("unroll", axis)
    for name in made.usual(axis, *does):
        draft.try_steps(("unroll", name))


def vectorize_edges(draft: Draft, made: Staged, axis: str, lanes: int, context: PlanContext, *does: str) -> None:
    """Vectorise the nests with these roles for tiles at the edge of an array, with masks or a scalar tail, where they
    are no vectors yet."""
    left = {loop.name for loop in loops_in(draft.program)}
    for name in [nest.loops[axis] for nest in made.nests if nest.is_edge and nest.does in does]:
        if name not in left:
            continue
        if trip_count(draft.loop(name)) is not None and draft.attempt(partial(vectorize_loop, name=name, lanes=lanes)):
            continue
        if not draft.attempt(partial(vectorize_masked, loop=name, lanes=lanes, context=context)):
            draft.attempt(partial(vectorize_copy, name=name, lanes=lanes))


def prefetch_operands(draft: Draft, sums: Staged, row: str, tiles: str) -> None:
    """Prefetch what the epilogue in the next iteration of the loop `tiles` reads, in arrays of as many elements as the
    result: each is read once, from memory. `row`: the loop over the rows of a tile, whose columns are vectors."""
    for nest in sums.usual_nests(*EPILOGUE):
        loop = draft.loop(nest.loops[row])
        for buffer in dict.fromkeys([n.buffer for n in loop.unique() if isinstance(n, Vref)
                                     and n.buffer not in writes(loop) and mentions(n, (loop.name,))]):
            draft.try_steps(("prefetch", tiles, buffer, 1))


def _start_from_first_sum(draft: Draft, loop: str, buffer: str, axes: tuple[str, ...], keep_conditions: bool,
                          space: str, how: str) -> Staged:
    staged = draft.stage(loop, buffer, how, space, *axes)
    if not keep_conditions and any(isinstance(n, If) for n in draft.loop(loop).unique()):
        raise NotApplicable(f"a condition would be evaluated in every iteration of '{loop}'")
    return staged


def unroll_and_jam(draft: Draft, *loops: str) -> None:
    """Move short loops into the loops inside them, unrolled, the first one outermost."""
    for loop in loops:
        draft.take("unroll", loop)
        draft.jam(loop)


def vectorize_sum(draft: Draft, total: Aref, lanes: int, k: str, context: PlanContext) -> None:
    """Add up the terms of the sum over `k` in a vector accumulator, whose lanes are then added to the scalar `total`.
    With masks, the terms after the last full vector go into the same accumulator."""
    made = draft.split(k, lanes, *(["pad"] if context.masks_are_cheap(lanes) else []))
    outer, lane = made.outer, made.inner
    sums = draft.stage(outer, total.buffer, "partial", "register", lane)
    use_fma(draft, outer, total, context)
    vectorize_padded(draft, outer, lane, sums)


def vectorize_padded(draft: Draft, outer: str, lane: str, *sums: Staged) -> None:
    """Vectorise the lanes of a loop that was split with `pad`, and of its partial sums. Only the last vector has a
    mask."""
    if any(isinstance(n, If) for n in draft.loop(lane).body) and trip_count(draft.loop(outer)) != 1:
        draft.take("vectorize", draft.partition(outer).copies[lane])
    vectorize_tile(draft, "", lane, *sums)


def stage_partial_sums(draft: Draft, outer: str, buffer: str, loops: tuple[str, ...], tree: bool) -> Staged:
    """Keep partial sums in registers, added as a `tree` unless a condition decides which of them exist."""
    made = draft.result_of(lambda d: d.stage(outer, buffer, "tree", "register", *loops),
                           f"the step 'stage tree {outer} {buffer}'") if tree else None
    return made or draft.stage(outer, buffer, "partial", "register", *loops)
