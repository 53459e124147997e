"""bind: map the iterations of a loop to the thread groups or threads of a device."""
from __future__ import annotations

from ...core.expr import Const
from ...core.program import Target
from ...loop.dependence import carried_dependence
from ...loop.gpu_verifier import MOST_THREADS, block_of, data_race, is_bound, structure_fault
from ...loop.statements import Kernel, LoopProgram
from ..analysis.loop_queries import arrays_for_each_thread, context_at, find, loops_in, refusal, replaced
from ..step_results import NOTHING, Made

MARKS = ("grid", "block")


def bind(program: LoopProgram, loop: str, mark: str) -> tuple[LoopProgram, Made]:
    """Map each iteration of a loop to a thread group (`grid`), or to a thread of every group (`block`, a loop of
    constant length).

    The kernel then is one nest: grid loops outermost, up to three block loops inside, and in those the code of one
    thread. Consecutive iterations of the innermost block loop are neighbouring threads.
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
        raise refusal("E534", step, "it is not the outermost loop of its kernel, or not all there is in it",
                      "separate the kernel before")
    wrong = structure_fault(kernel)
    if wrong is not None:
        raise refusal("E534", step, wrong[1])
    context = context_at(program, found)
    reason = carried_dependence(new, context) if mark == "grid" else data_race(new, context)
    if reason is not None:
        raise refusal("E534", step, reason)
    if wide := arrays_for_each_thread(kernel):
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
        raise refusal("E534", step, "the target has no groups of threads",
                      "take a runtime for a device, such as opencl")
    most = target.machine.group_threads if target is not None else MOST_THREADS
    if threads > most:
        raise refusal("E534", step, f"a group would have {threads} threads, and {most} are the most")


