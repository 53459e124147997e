"""Steps for rows that several loops pass over in turn."""
from __future__ import annotations

from ...loop.statements import Vref
from ..analysis.classify import Chain, outermost
from ..draft import Draft
from ..plans.plan import PlanContext
from ..plans.row_passes import OuterLoopVectors, RowPrefetch
from .vector_loops import vectorize_outer_loop


def emit_outer_loop_vectors(draft: Draft, chain: Chain, plan: OuterLoopVectors, context: PlanContext) -> None:
    """Vectorise a loop that has loops inside it."""
    for loop in outermost(chain.body) if plan.single_pass else ():
        draft.take("unroll", loop.name, "full")
    vectorize_outer_loop(draft, chain.names[:plan.outer_loops], plan.lanes, context, plan.masked,
                         plan.vectors)


def emit_row_prefetch(draft: Draft, chain: Chain, plan: RowPrefetch) -> None:
    """Prefetch the next row of those arrays that are read in vectors by now."""
    row = draft.loop(chain.names[-1])
    vectors = {n.buffer for n in row.unique() if isinstance(n, Vref)}
    for array in [array for array in plan.arrays if array in vectors]:
        draft.try_steps(("prefetch", row.name, array, 1))
