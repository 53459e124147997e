"""Rows that several loops pass over, as steps."""
from __future__ import annotations

from ...loop.statements import Vref
from ..analysis.classify import Chain, outermost
from ..draft import Draft
from ..plans.plan import Given
from ..plans.rows import Ahead, LanesAcross
from .sweeps import lanes_of


def lanes_across(draft: Draft, chain: Chain, plan: LanesAcross, given: Given) -> None:
    """The iterations of the innermost loop of the chain as lanes."""
    for loop in outermost(chain.body) if plan.single else ():
        draft.take("unroll", loop.name, "full")
    lanes_of(draft, chain.names, plan.lanes, given)


def ask(draft: Draft, chain: Chain, plan: Ahead) -> None:
    """Ask for the next row of the arrays that are read in vectors by now, which only that pass does."""
    row = draft.loop(chain.names[-1])
    vectors = {n.buffer for n in row.unique() if isinstance(n, Vref)}
    for array in [array for array in plan.arrays if array in vectors]:
        draft.tries(("prefetch", row.name, array, 1))
