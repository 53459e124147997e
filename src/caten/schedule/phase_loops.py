"""Loops over phases: the gradient of windows with a step is a sum of other taps for each remainder of the step.

In Σ_q y[m + (i + 1) / 2 - q] · w[2 · q + (i + 1) mod 2], with a phase i below 2, it is only known in each iteration of
the loop over i which taps there are. As nests of their own, one for each phase, these are sums over windows without a
step: vectors of y begin wherever a tap does. (Products of matrices stay in the loop: tiles are packed for each phase.)
"""
from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import prod

from ..core.expr import Const, Op
from ..loop.statements import Aref, LoopProgram, Setf
from .analysis.classify import Chain, Reduction, chain_of, contraction, outermost, reduction, under
from .analysis.loop_queries import trip_count
from .draft import Draft
from .step_results import Unrolled

MOST_PHASES = 16                # nests that one becomes


def unroll_phases(draft: Draft) -> None:
    """Unroll the outer loops over phases of sums, together with those of the nests before that begin these."""
    for nests in tuple(_of_phases(draft.program)):
        draft.attempt(partial(_unroll_nests, nests=nests), f"the step 'unroll phases {' '.join(nests[-1][1])}'")


def _unroll_nests(draft: Draft, nests: list[tuple[Chain, tuple[str, ...]]]) -> None:
    for chain, phases in nests:
        if chain.names[:len(phases)] != phases:
            draft.take("reorder", *phases, *[name for name in chain.names if name not in phases])
    first, *others = [phases for _, phases in nests]
    for other in others:
        for one, two in zip(first, other, strict=True):
            draft.take("merge", one, two)
    _unroll(draft, first)


def _unroll(draft: Draft, phases: tuple[str, ...]) -> None:
    """Unroll nested loops."""
    if phases:
        made = draft.take("unroll", phases[0], "full")
        assert isinstance(made, Unrolled)
        for copies in ({}, *made.iterations):
            _unroll(draft, tuple([copies.get(name, name) for name in phases[1:]]))


def _of_phases(program: LoopProgram) -> Iterator[list[tuple[Chain, tuple[str, ...]]]]:
    """For each sum with loops over phases: the nest directly before that sets its results, if there is one, and that
    which adds to them, each with its loops over phases."""
    for kernel in program.kernels:
        nests = [chain_of(nest) for nest in outermost(kernel.body)]
        for before, chain in zip([None, *nests], nests, strict=False):
            total = reduction(chain)
            phases = _phases(chain, total) if total is not None and chain.is_leaf else ()
            if total is None or not phases or _product_of_one(program, chain, phases):
                continue
            begun = _along(before, total.out, phases) if before is not None else ()
            yield [*([(before, begun)] if before is not None and len(begun) == len(phases) else []), (chain, phases)]


def _phases(chain: Chain, total: Reduction) -> tuple[str, ...]:
    """The short loops over results that decide what is summed: their variables are divided by a number, or beside that
    of a sum in a condition, where windows move along the results, too."""
    conds, _ = under(chain.body)
    nodes = [n for stmt in chain.body for n in stmt.unique()]
    places = [i.variables for n in nodes if isinstance(n, Aref) for i in n.index]
    alone = {n.args[0].variables for n in nodes if isinstance(n, Op) and n.fn in ("floordiv", "mod")
             and isinstance(n.args[1], Const)}

    def moves(tap: str, phase: str) -> bool:
        return any(tap in place and not place.isdisjoint({*total.kept} - {phase}) for place in places)
    for cond in conds:
        match [*(cond.variables - {*total.summed})], [*(cond.variables & {*total.summed})]:
            case [phase], [tap] if moves(tap, phase):
                alone.add(frozenset((phase,)))
    found = [loop for loop in chain.loops if loop.name in total.kept and frozenset((loop.name,)) in alone
             and isinstance(loop.hi, Const)]
    counts = [trip_count(loop) or MOST_PHASES + 1 for loop in found]
    return tuple([loop.name for loop in found]) if prod(counts) <= MOST_PHASES else ()


def _product_of_one(program: LoopProgram, chain: Chain, phases: tuple[str, ...]) -> bool:
    """Is the sum of one phase a product of matrices?"""
    loops = tuple([loop for loop in chain.loops if loop.name not in phases])
    return bool(loops) and contraction(program, Chain(loops, chain.body)) is not None


def _along(chain: Chain, out: Aref, phases: tuple[str, ...]) -> tuple[str, ...]:
    """The loops of a nest that sets results, along the axes of those over phases."""
    match chain.body:
        case (Setf(ref=Aref(buffer=name, index=places)),) if name == out.buffer:
            own = {str(place): str(there) for place, there in zip(out.index, places, strict=True)}
            return tuple([own[phase] for phase in phases if own.get(phase) in chain.names])
    return ()
