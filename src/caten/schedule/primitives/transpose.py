"""transpose: transpose a small block in vector registers."""
from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ...core.dtypes import DTYPES, is_packed
from ...core.expr import Const, Expr, Var
from ...core.node import substitute
from ...loop.accesses import stride_in
from ...loop.affine import canonical
from ...loop.statements import Aref, For, LoopProgram, Setf, Transpose, Vref, is_const
from ..analysis.classify import fastest_axis
from ..analysis.loop_queries import Refusing, find, mentions, reads_memory, refusal, replaced
from ..normalize import tidied
from ..step_results import NOTHING, Made

MAX_COUNT = 64


def transpose(program: LoopProgram, outer: str, inner: str) -> tuple[LoopProgram, Made]:
    """Turn two loops around one copy into a statement that transposes the block in vector registers. Both loops have
    constant even lengths; the copy reads contiguously along one of them and stores contiguously along the other.

        (transpose i j)
        (for i 0 8 1 serial
          (for j 0 16 1 serial                               ->   (transpose (vref T 8 (p q)) 0 (vref A 16 (q p)) 0)
            (setf (aref T (+ p j) (+ q i)) (aref A (+ q i) (+ p j)))))
    """
    step = f"transpose {outer} {inner}"
    refuse = partial(refusal, "E517", step)
    loops = {name: find(program, name, step) for name in (outer, inner)}
    match loops[outer].body:
        case (For(name=name, body=(Setf(ref=Aref() as ref, value=Aref() as value),)),) if name == inner:
            pass
        case _:
            raise refuse(f"'{outer}' does not hold just '{inner}', and that just a copy from one array to another")
    counts = {name: _count(loop, refuse) for name, loop in loops.items()}
    if ref.buffer == value.buffer:
        raise refuse(f"{ref.buffer} is copied into itself")
    if DTYPES[ref.dtype].bytes > 8 or is_packed(ref.dtype):
        raise refuse(f"the elements of {ref.buffer} have more than 8 bytes, or share one")
    if mentions((loops[inner].lo,), (outer,)):
        raise refuse(f"the range of '{inner}' depends on '{outer}'")
    to, of = [{name: _axis(place, name, refuse) for name in loops} for place in (ref, value)]
    down, across = [next((n for n in loops if axes[n] == fastest_axis(program, place)), "")
                    for place, axes in ((ref, to), (value, of))]
    if {down, across} != set(loops) or to[down] == to[across] or of[down] == of[across]:
        raise refuse(f"{value} is not contiguous in one of the loops and {ref} in the other")
    first = starts(loops)
    block, rows = [Vref(place.buffer, counts[along], substitute(place.index, first), axes[along], None, place.dtype)
                   for place, along, axes in ((ref, down, to), (value, across, of))]
    return replaced(program, loops[outer], *tidied((Transpose(block, to[across], rows, of[down]),))), NOTHING


def starts(loops: Mapping[str, For]) -> dict[Var, Expr]:
    """The variables of loops, each with its first value."""
    return {Var(name, "i64"): loop.lo for name, loop in loops.items()}


def _count(loop: For, refuse: Refusing) -> int:
    extent = canonical(loop.hi - loop.lo)
    if loop.mark == "parallel":
        raise refuse(f"'{loop.name}' is parallel")
    if not isinstance(extent, Const) or not is_const(loop.step, 1):
        raise refuse(f"the range of '{loop.name}' from {loop.lo} to {loop.hi} by {loop.step} has no constant length; "
                     "split it first")
    if extent.value not in range(2, MAX_COUNT + 1, 2):
        raise refuse(f"the {extent.value} iterations of '{loop.name}' are not 2, 4, 6 … {MAX_COUNT}")
    return int(extent.value)


def _axis(place: Aref, name: str, refuse: Refusing) -> int:
    """The axis of an access in which a loop has stride 1. E517 unless it is the only axis that depends on the loop."""
    if any(reads_memory(i) for i in place.index):
        raise refuse(f"the index of {place} reads memory")
    strides = [stride_in(i, name) for i in place.index]
    if sum(s != 0 for s in strides) != 1 or 1 not in strides:
        raise refuse(f"'{name}' does not move {place} by one along one axis")
    return strides.index(1)
