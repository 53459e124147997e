"""What stands in front of a loop in C."""
from __future__ import annotations

from ..core.expr import Const
from ..core.rewrite import free_names
from ..loop.statements import For, Let, Local, Ref
from .estimate import THRESHOLD, in_float64, work
from .expressions import Expressions

MOST_COPIES = 64                # of a loop's body that the C compiler is asked for


def parallel(loop: For, pragma: str, expressions: Expressions) -> str:
    """The runtime's spelling of a parallel loop, with a condition on its work; empty where the work is known to be little."""
    total = work(loop)
    if isinstance(total, Const):
        return pragma if total.value > THRESHOLD else ""
    inside = {d.declares()[0] for d in loop.unique() if isinstance(d, (For, Let, Local))}
    if free_names(total) & inside or any(isinstance(n, Ref) for n in total.unique()):    # type: ignore[operator]   # it is a set
        return pragma
    return f"{pragma} if ({expressions.text(in_float64(total))} > {THRESHOLD})"


def copies(loop: For) -> int:
    """How many copies of its body a loop marked `unroll` becomes: all, where they are few."""
    if isinstance(loop.lo, Const) and isinstance(loop.hi, Const) and isinstance(loop.step, Const) and loop.step.value:
        count = len(range(loop.lo.value, loop.hi.value, loop.step.value))
        if count <= MOST_COPIES:
            return max(1, count)
    return 4


def advance(name: str, by: int) -> str:
    """`i++`, `i += 4`, `i -= 1`"""
    return f"{name}++" if by == 1 else f"{name} += {by}" if by > 0 else f"{name} -= {-by}"
