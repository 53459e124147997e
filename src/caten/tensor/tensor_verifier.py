"""The verifier of the tensor level: names are defined before use, types agree, reads are in bounds."""
from __future__ import annotations

from ..core.dtypes import DTYPES
from ..core.expr import Var
from ..core.monoids import is_monoid
from ..core.node import Node
from ..errors import CatenError, Diagnostic
from ..loop import verifier as loop_level
from .lower import lower
from .values import Axis, Compute, Define, Nest, Read, Reduce, TensorProgram


def verify(program: TensorProgram) -> None:
    """Raise CatenError (E470, E471: a compiler bug or a faulty hand-written text) for every broken rule. Bounds of
    reads are checked on the lowered loops."""
    loop_level.arrays_are_sound(program)
    problems: list[Diagnostic] = []

    def wrong(message: str) -> None:
        problems.append(Diagnostic("E471", message))

    known = {b.name: (b.type, len(b.shape)) for b in program.buffers.values()}
    declared = {c.declares()[0] for c in program.params if hasattr(c, "declares")}
    for d in program.definitions:
        value = d.value
        if isinstance(value, (Compute, Reduce)):
            over = value.over if isinstance(value, Reduce) else ()
            problems += _names(d, (*value.axes, *over), declared)
            problems += _reads(d, value, known)
            if value.expr.dtype != value.type:
                wrong(f"{d.name}: the expression is {value.expr.dtype or 'of unknown type'}, declared {value.type}")
            if isinstance(value, Reduce) and value.type in DTYPES and not is_monoid(value.fn, value.type):
                wrong(f"{d.name}: elements of {value.type} cannot be reduced by {value.fn}")
            if d.name in known and known[d.name] != (value.type, len(value.axes)):
                dtype, rank = known[d.name]
                wrong(f"{d.name}: {value.type} of rank {len(value.axes)}, declared {dtype} of rank {rank}")
            known.setdefault(d.name, (value.type, len(value.axes)))
        elif isinstance(value, Nest):
            problems += [Diagnostic("E470", f"{d.name}: writes '{out}', which is not defined")
                         for out in value.outs if out not in known]
    if problems:
        raise CatenError(*problems)
    loop_level.verify(lower(program))


def _names(d: Define, axes: tuple[Axis, ...], declared: set[str]) -> list[Diagnostic]:
    """Every variable is a parameter or an axis. The bounds of an axis use outer axes only."""
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
    return [Diagnostic("E470", f"{d.name}: '{n.name}' is not bound here")
            for n in e.unique() if isinstance(n, Var) and n.name not in bound]


def _reads(d: Define, value: Node, known: dict[str, tuple[str, int]]) -> list[Diagnostic]:
    problems = []
    for n in value.unique():
        if not isinstance(n, Read):
            continue
        if n.buffer not in known:
            problems.append(Diagnostic("E470", f"{d.name}: reads '{n.buffer}', which is not defined before"))
        elif known[n.buffer] != (n.type, len(n.index)):
            message = f"{d.name}: {n!r} does not agree with the type and rank of '{n.buffer}'"
            problems.append(Diagnostic("E471", message))
    return problems
