"""Steps of scans."""
from __future__ import annotations

from ..analysis.classify import Chain
from ..draft import Draft
from ..plans.plan import PlanContext
from ..plans.scans import PrefixVectors


def emit_prefix_vectors(draft: Draft, chain: Chain, plan: PrefixVectors, context: PlanContext) -> None:
    """Vectorise the loop, with a scalar tail."""
    draft.take("vectorize", draft.split(chain.names[-1], plan.lanes).inner)
