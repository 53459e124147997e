"""The verifier of the tensor level: names are defined once and before use, types and ranks agree, outputs have the type
and shape of their parameters. In a kernel, members are read at the indices of the outer loops."""
from __future__ import annotations

from ..core.dtypes import DTYPES
from ..core.expr import Var
from ..core.monoids import is_monoid
from ..core.node import Node
from ..errors import CatenError, Diagnostic
from ..loop import verifier as loop_level
from .kernel_verifier import verify_kernels
from .lower import lower
from .values import (
    Axis,
    Compute,
    Define,
    Indexed,
    Nest,
    Read,
    Reduce,
    Scan,
    Scatter,
    TensorProgram,
    operands_of,
    shapes_of,
    types_of,
)


def verify(program: TensorProgram) -> None:
    """Raise CatenError (E470 … E472: a compiler bug or a faulty hand-written text) for every broken rule. Bounds of
    reads are checked on the lowered loops."""
    loop_level.arrays_are_sound(program)
    problems = _Problems(program).found or list(verify_kernels(program))
    if problems:
        raise CatenError(*problems)
    loop_level.verify(lower(program))


class _Problems:
    def __init__(self, program: TensorProgram) -> None:
        self.found: list[Diagnostic] = []
        self.known = {b.name: (b.type, len(b.axes)) for b in program.buffers.values()}
        self.declared = {c.declares()[0] for c in program.params if hasattr(c, "declares")}
        for d in program.definitions:
            self.definition(d)
        for output in program.outputs:
            self.output(program, output.name, output.value)

    def say(self, code: str, message: str) -> None:
        self.found.append(Diagnostic(code, message))

    def definition(self, d: Define) -> None:
        name, value = ", ".join(d.names), d.value
        if isinstance(value, Indexed):
            over = value.over if isinstance(value, Reduce) else ()
            self.names(name, value, (*value.axes, *over))
            self.reads(name, value)
            if value.expr.dtype != value.type:
                self.say("E471", f"{name}: the expression is {value.expr.dtype or 'of unknown type'}, declared "
                                 f"{value.type}")
            if isinstance(value, Reduce | Scan | Scatter) and value.type in DTYPES and not is_monoid(
                    value.fn, value.type):
                self.say("E471", f"{name}: elements of {value.type} cannot be reduced by {value.fn}")
            if isinstance(value, Scan):
                self.scan(name, value)
            elif isinstance(value, Scatter):
                self.scatter(name, value)
        elif isinstance(value, Nest):
            for operand in operands_of(value):
                if operand not in self.known:
                    self.say("E470", f"{name}: reads '{operand}', which is not defined before")
        if len(d.names) != len(types_of(value)):
            self.say("E471", f"{name}: {len(d.names)} names for {len(types_of(value))} results")
        for each, dtype, shape in zip(d.names, types_of(value), shapes_of(value), strict=False):
            if each in self.known or each in self.declared:
                self.say("E470", f"{each} is defined twice")
            self.known[each] = (dtype, len(shape))

    def scan(self, name: str, value: Scan) -> None:
        """It is along one of its axes, in a known way."""
        if all(a.name != value.axis for a in value.axes):
            self.say("E470", f"{name}: the scan is along '{value.axis}', which is none of its axes")
        for word, known in ((value.mode, ("inclusive", "exclusive")), (value.direction, ("up", "down"))):
            if word not in known:
                self.say("E471", f"{name}: a scan is {known[0]} or {known[1]}, not '{word}'")

    def scatter(self, name: str, value: Scatter) -> None:
        """Source, shape and index agree."""
        for extent in value.shape:
            self.unbound(name, extent, self.declared)
        if value.source not in self.known:
            self.say("E470", f"{name}: reads '{value.source}', which is not defined before")
        elif self.known[value.source] != (value.type, len(value.shape)):
            self.say("E471", f"{name}: '{value.source}' does not have the type and rank of the result")
        if len(value.index) != len(value.shape) or any(i.dtype != "i64" for i in value.index):
            self.say("E471", f"{name}: the index is not one i64 for each axis of '{value.source}'")

    def output(self, program: TensorProgram, name: str, value: str) -> None:
        buffer = program.buffers.get(name)
        if buffer is None or value not in self.known:
            self.say("E470", f"the output {name}: '{value if buffer else name}' is not defined")
        elif self.known[value] != (buffer.type, len(buffer.axes)):
            dtype, rank = self.known[value]
            self.say("E471", f"{name}: {dtype} of rank {rank}, declared {buffer.type} of rank {len(buffer.axes)}")

    def names(self, name: str, value: Indexed, axes: tuple[Axis, ...]) -> None:
        """Every variable is a parameter or an axis. Extents use parameters only."""
        bound = set(self.declared)
        for axis in axes:
            self.unbound(name, axis.extent, self.declared)
            if axis.name in bound:
                self.say("E470", f"{name}: the axis '{axis.name}' is named twice")
            bound.add(axis.name)
        index = value.index if isinstance(value, Scatter) else ()
        for e in (value.expr, *(() if isinstance(value, Compute) else (value.cond,)), *index):
            self.unbound(name, e, bound)

    def unbound(self, name: str, e: Node, bound: set[str]) -> None:
        for n in e.unique():
            if isinstance(n, Var) and n.name not in bound:
                self.say("E470", f"{name}: '{n.name}' is not bound here")

    def reads(self, name: str, value: Node) -> None:
        for n in value.unique():
            if not isinstance(n, Read):
                continue
            if n.buffer not in self.known:
                self.say("E470", f"{name}: reads '{n.buffer}', which is not defined before")
            elif self.known[n.buffer] != (n.type, len(n.index)):
                self.say("E471", f"{name}: {n!r} does not agree with the type and rank of '{n.buffer}'")
