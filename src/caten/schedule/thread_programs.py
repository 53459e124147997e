"""Checks of steps on GPU programs: most steps assume one thread, and are refused on loops with barriers."""
from __future__ import annotations

from collections.abc import Sequence

from ..loop.gpu_verifier import BOUND, has_barrier
from ..loop.statements import LoopProgram
from .analysis.loop_queries import locals_in, loops_in, refusal

KEEP_ORDER = ("stage", "unroll", "contract", "prefetch", "prefetch_at")       # these may change code between barriers
OF_BUFFERS = ("inline", "compute_at")


def check(program: LoopProgram, step: tuple[str, ...], names: Sequence[str]) -> None:
    """Raise E537 if a step changes a loop bound to blocks or threads, or reorders code around barriers. `names`: the
    loops of the step."""
    shown = f"{step[0]} {' '.join(names)}"
    for loop in [loop for loop in loops_in(program) if loop.name in names]:
        if loop.mark in BOUND and step[0] not in ("stage", "bind", "spread"):
            raise refusal("E537", shown, f"'{loop.name}' is bound to the {loop.mark} already",
                          "bind after the other steps on it")
        if step[0] not in KEEP_ORDER and has_barrier(loop):
            raise refusal("E537", shown, f"threads wait for each other inside '{loop.name}'",
                          "take this step before those that make barriers")
    if step[0] in OF_BUFFERS and any(n.space == "shared" and n.name == step[1] for n in locals_in(program)):
        raise refusal("E537", f"{step[0]} {step[1]}", "threads share it")
