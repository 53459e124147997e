"""widen: pad the rows of a tile against cache-set conflicts."""
from __future__ import annotations

from functools import partial

from ...core.node import substitute
from ...loop.affine import canonical
from ...loop.statements import LoopProgram
from ..analysis.loop_queries import local_array, refusal
from ..step_results import NOTHING, Made

SPACES = ("stack", "scratch", "shared")


def widen(program: LoopProgram, tile: str, cells: int) -> tuple[LoopProgram, Made]:
    """Pad every row of a local array by COUNT unused elements. Rows that lie a power of two apart compete for the same
    cache sets; padded rows do not.

        (widen T 16)
        (local T f32 (64 1024) scratch)    ->    (local T f32 (64 1040) scratch)
    """
    step = f"widen {tile} {cells}"
    found = local_array(program, tile, partial(refusal, "E528", step))
    if found.space not in SPACES or len(found.shape) < 2:
        raise refusal("E528", step, f"{found} has no rows in memory",
                      f"it takes two axes or more, in {' or '.join(SPACES)}")
    if cells < 1:
        raise refusal("E528", step, "it adds no cell")
    longer = found.replace(shape=(*found.shape[:-1], canonical(found.shape[-1] + cells)))
    return substitute(program, {found: longer}), NOTHING
