"""Plans of scatters: nests that accumulate at an index that is loaded, along rows of the target."""
from __future__ import annotations

from ...frozen import frozen
from ...loop.effects import reads
from ...loop.statements import Aref, Incf, LoopProgram
from ..analysis.classify import Chain, contiguous_loop, stored, stores_in
from .maps import ScalarLoops
from .parameters import Parameter
from .plan import Axis, NestKind, NotApplicable, Plan, PlanContext, Version, axes_of

BLOCK = Parameter("scatters.block", (32, 64, 256), 64, what="elements of a row that one thread accumulates")


@frozen
class RowScatter:
    """Rows of values are added to rows of a target, which a loaded index chooses. `row`: the loop along them."""

    lanes: int
    row: Axis


@frozen
class ScatterRows(Plan):
    """Threads share blocks of `block` columns, and each adds all rows, in order: two threads never meet in an element,
    and results do not depend on their number. Rows are vectors of `lanes`, with a masked tail."""

    lanes: int
    block: int


def short_rows(s: RowScatter, context: PlanContext) -> Version:
    """For rows shorter than a vector."""
    if not s.row.size:
        raise NotApplicable("the length of a row is no size")
    return Version(ScalarLoops(parallel_rows=True), ("<", s.row.size, str(s.lanes)), "w")


def scatter_rows(s: RowScatter, context: PlanContext) -> Version:
    """For all other rows."""
    return Version(ScatterRows(s.lanes, context.value(BLOCK)))


def match_row_scatter(program: LoopProgram, chain: Chain, context: PlanContext) -> RowScatter:
    """A perfect nest of one accumulation: an index of its element is loaded, and it is contiguous in a loop."""
    if not context.uses_threads:
        raise NotApplicable("no threads share its columns, and whole rows are one stream")
    lanes, stores = context.vector_lanes(chain.body), stores_in(chain.body)
    if len(stores) != 1 or not isinstance(stores[0], Incf) or len(chain.loops) < 2:
        raise NotApplicable("it does not accumulate once, in rows")
    (out,) = stored(chain)
    if not any(reads(i) for i in out.index):
        raise NotApplicable(f"no index of {out} is loaded")
    name = contiguous_loop(program, out, chain.names)
    if name is None:
        raise NotApplicable(f"{out} is contiguous in no loop")
    others = [n for n in {n for s in chain.body for n in s.unique() if isinstance(n, Aref)}
              if name in n.variables and contiguous_loop(program, n, (name,)) is None]
    if others:
        raise NotApplicable(f"{others[0]} is not contiguous in '{name}'")
    return RowScatter(lanes, next(a for a in axes_of(chain) if a.name == name))


SCATTERS = NestKind(
    "scatters", "Rows that are added to rows of a target at indices that are loaded (the gradient of an embedding).",
    match_row_scatter, (short_rows, scatter_rows))
