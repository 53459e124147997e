"""The loops of a body over whole arrays: its values one after the other, as a spec with loops would have them. At -O0
they are what runs; the interpreter of loops and the float64 oracle read them, and bodies with loops that call such a
body hold them."""
from __future__ import annotations

from ..core.program import Fusion, InOrder, Param
from ..loop.statements import Stmt
from .canonical_values import canonical_values
from .checked_indices import unchecked, with_places
from .lower import lower
from .values import Define, Named, Output, TensorProgram


def plain_loops(program: TensorProgram) -> tuple[Stmt, ...]:
    """The loops of the values. Named values are arrays with their names. What is added to a sum is added behind it, as
    in the body. No index is checked: the accesses get their checks like those of all loops."""
    program = with_places(program)
    named = [("keep", n.name) for n in program.all(Named) if n.name not in program.buffers]
    clauses = [c for c in program.clauses if isinstance(c, Param | Define | Output | Named)]
    start = TensorProgram(program.name, (*clauses, InOrder(), *([Fusion(tuple(named))] if named else [])))
    return tuple([s for kernel in lower(unchecked(canonical_values(start))).kernels for s in kernel.body])
