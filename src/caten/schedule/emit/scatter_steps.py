"""Steps of scatters."""
from __future__ import annotations

from ..analysis.classify import Chain, contiguous_loop, stored
from ..draft import Draft
from ..plans.plan import NotApplicable, PlanContext
from ..plans.scatters import ScatterRows
from .common_steps import reorder
from .vector_loops import vectorize_row


def emit_scatter_rows(draft: Draft, chain: Chain, plan: ScatterRows, context: PlanContext) -> None:
    """Move blocks of columns outermost, and vectorise the loop along them."""
    refs = stored(chain)
    row = contiguous_loop(draft.program, refs[0], chain.names) if refs else None
    if row is None:                                      # the condition of a copy may have simplified it away
        raise NotApplicable(f"'{chain.names[0]}' is no longer a scatter")
    others = tuple([n for n in chain.names if n != row])
    reorder(draft, chain, (row, *others))
    outer, inner = draft.split_whole(row, plan.block, "min")
    draft.take("reorder", *others, inner)
    if context.threads:
        draft.parallelize(outer)
    vectorize_row(draft, inner, (), plan.lanes, 1, context)
