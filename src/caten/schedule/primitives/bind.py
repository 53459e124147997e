"""bind: give the iterations of a loop to the groups or threads of a device."""
from __future__ import annotations

from ...core.expr import Const
from ...core.program import Target
from ...loop.dependence import carried_dependence
from ...loop.groups import MOST_THREADS, block_of, is_bound, misplaced, race
from ...loop.statements import Kernel, LoopProgram
from ..analysis.nests import context_at, find, locals_in, loops_in, refusal, replaced
from ..made import NOTHING, Nothing

MARKS = ("grid", "block")


def bind(program: LoopProgram, loop: str, mark: str) -> tuple[LoopProgram, Nothing]:
    """Every iteration of a loop runs in a group of its own (`grid`), or in a thread of its own of each group (`block`: a constant number of them).

    A kernel is one nest then: grid loops, the outermost, then up to three block loops, then what one thread does. Of block loops the innermost has
    neighbouring threads.
        (bind io grid) (bind ii block)
        (for io 0 (floordiv (+ N 255) 256) 1 serial            (for io 0 (floordiv (+ N 255) 256) 1 grid
          (for ii 0 256 1 serial                         ->      (for ii 0 256 1 block
            (if (< (+ (* 256 io) ii) N) (…))))                     (if (< (+ (* 256 io) ii) N) (…))))
    """
    step = f"bind {loop} {mark}"
    found = find(program, loop, step)
    if found.mark in MARKS:
        raise refusal("E534", step, f"it is bound to the {found.mark} already")
    new = found.replace(mark=mark)
    made = replaced(program, found, new)
    kernel = next(k for k in made.kernels if new in loops_in(k))
    if not is_bound(kernel):
        raise refusal("E534", step, "it is not the outermost loop of its kernel, or not all there is in it", "separate the kernel before")
    wrong = misplaced(kernel)
    if wrong is not None:
        raise refusal("E534", step, wrong[1])
    context = context_at(program, found)
    reason = carried_dependence(new, context) if mark == "grid" else race(new, context)
    if reason is not None:
        raise refusal("E534", step, reason)
    wide = [n.name for n in locals_in(kernel) if (n.space == "scratch" or not all(isinstance(e, Const) for e in n.shape))]
    if wide:
        raise refusal("E534", step, f"every thread would need the array '{wide[0]}' for itself")
    _check_size(program, kernel, step)
    return made, NOTHING


def _check_size(program: LoopProgram, kernel: Kernel, step: str) -> None:
    """A group has as many threads as the machine allows."""
    target = program.first(Target)
    threads = 1
    for block in block_of(kernel):
        threads *= block.hi.value if isinstance(block.hi, Const) else 1
    if target is not None and not target.machine.groups:
        raise refusal("E534", step, "the target has no groups of threads", "take a runtime for a device, such as opencl")
    most = target.machine.group_threads if target is not None else MOST_THREADS
    if threads > most:
        raise refusal("E534", step, f"a group would have {threads} threads, and {most} are the most")


