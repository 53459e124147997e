"""What makes a text of the tensor level well formed: names defined before they are read, types agreeing, reads in bounds."""
from __future__ import annotations

from ..core.dtypes import DTYPES
from ..core.expr import Var
from ..core.monoids import is_monoid
from ..core.node import Node
from ..errors import CatenError, Diagnostic
from ..loop import level as loop_level
from .lower import lower
from .values import Axis, Compute, Define, Nest, Read, Reduce, TensorProgram


def verify(program: TensorProgram) -> None:
    """Raises CatenError (E470 and E471: a fault of the compiler, or of a text written by hand) for every rule that is broken. Reads are
    checked for bounds on the lowered loops."""
    loop_level.arrays_are_sound(program)
    problems: list[Diagnostic] = []
    known = {b.name: (b.type, len(b.shape)) for b in program.buffers.values()}
    declared = {c.declares()[0] for c in program.params if hasattr(c, "declares")}
    for d in program.definitions:
        value = d.value
        if isinstance(value, (Compute, Reduce)):
            over = value.over if isinstance(value, Reduce) else ()
            problems += _names(d, (*value.axes, *over), declared)
            problems += _reads(d, value, known)
            if value.expr.dtype != value.type:
                problems.append(Diagnostic("E471", f"{d.name}: the expression is {value.expr.dtype}, the value is declared {value.type}"))
            if isinstance(value, Reduce) and value.type in DTYPES and not is_monoid(value.fn, value.type):
                problems.append(Diagnostic("E471", f"{d.name}: elements of {value.type} cannot be combined by {value.fn}"))
            if d.name in known and known[d.name] != (value.type, len(value.axes)):
                problems.append(Diagnostic("E471", f"{d.name}: has {len(value.axes)} axes of {value.type}, the parameter is declared otherwise"))
            known.setdefault(d.name, (value.type, len(value.axes)))
        elif isinstance(value, Nest):
            problems += [Diagnostic("E470", f"{d.name}: writes '{out}', which is not defined") for out in value.outs if out not in known]
    if problems:
        raise CatenError(*problems)
    loop_level.verify(lower(program))


def _names(d: Define, axes: tuple[Axis, ...], declared: set[str]) -> list[Diagnostic]:
    """Every variable is a parameter or an axis; the bounds of an axis use the axes before it only."""
    bound, problems = set(declared), []
    for axis in axes:
        for side in (axis.lo, axis.hi):
            problems += _unbound(d, side, bound)
        if axis.name in bound - declared:
            problems.append(Diagnostic("E470", f"{d.name}: the axis '{axis.name}' is named twice"))
        bound.add(axis.name)
    value = d.value
    assert isinstance(value, (Compute, Reduce))
    for e in (value.expr, *((value.cond,) if isinstance(value, Reduce) else ())):
        problems += _unbound(d, e, bound)
    return problems


def _unbound(d: Define, e: Node, bound: set[str]) -> list[Diagnostic]:
    return [Diagnostic("E470", f"{d.name}: '{n.name}' is not bound here") for n in e.unique() if isinstance(n, Var) and n.name not in bound]


def _reads(d: Define, value: Node, known: dict[str, tuple[str, int]]) -> list[Diagnostic]:
    problems = []
    for n in value.unique():
        if not isinstance(n, Read):
            continue
        if n.buffer not in known:
            problems.append(Diagnostic("E470", f"{d.name}: reads '{n.buffer}', which is not defined before"))
        elif known[n.buffer] != (n.type, len(n.index)):
            problems.append(Diagnostic("E471", f"{d.name}: {n!r} does not agree with the type and rank of '{n.buffer}'"))
    return problems
