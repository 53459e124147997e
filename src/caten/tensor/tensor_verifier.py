"""The verifier of the tensor level: names are defined once and before use, types and ranks agree, outputs have the type
and shape of their parameters. In a kernel, members are read at the indices of the outer loops."""
from __future__ import annotations

from ..core.dtypes import DTYPES
from ..core.expr import Expr, Op, Var
from ..core.monoids import is_monoid
from ..core.node import Node
from ..core.unique_names import declared_names
from ..errors import CatenError, Diagnostic
from ..loop import verifier as loop_level
from ..loop.affine import canonical, text_of
from ..loop.context import Context
from ..loop.statements import Aref, Vref
from .kernel_verifier import verify_kernels
from .lower import lower
from .values import (
    Axis,
    Compute,
    Define,
    Indexed,
    Inside,
    Nest,
    Pieces,
    Read,
    Reduce,
    Scan,
    Scatter,
    TensorProgram,
    operands_of,
    reads_of,
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
        self.context = Context.of(program)
        self.known = {b.name: (b.type, b.axes) for b in program.buffers.values()}
        self.declared = {c.declares()[0] for c in program.params if hasattr(c, "declares")}
        self.in_nests = {name for d in program.definitions if isinstance(d.value, Nest)
                         for s in d.value.stmts for name in declared_names(s)}
        for d in program.definitions:
            self.definition(d)
        for check in program.checks:
            self.nodes(f"check {check.row}", check.cond)
            self.unbound(f"check {check.row}", check.cond, self.declared)
            if check.cond.dtype != "bool" or len(reads_of(check.cond)) != 1 or reads_of(check.cond)[0].index:
                self.say("E471", f"check {check.row}: the condition is no bool that depends on one value without axes")
        done: set[str] = set()
        for output in program.outputs:
            if output.name in done:
                self.say("E470", f"the output {output.name} is set twice")
            done.add(output.name)
            self.output(program, output.name, output.value)

    def say(self, code: str, message: str) -> None:
        self.found.append(Diagnostic(code, message))

    def definition(self, d: Define) -> None:
        name, value = ", ".join(d.names), d.value
        if isinstance(value, Indexed):
            over = value.over if isinstance(value, Reduce) else ()
            self.names(name, value, (*value.axes, *over))
            self.nodes(name, value)
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
            for out in value.outs:
                for extent in out.shape:
                    self.extent(name, extent)
                if out.source in self.known:
                    self.agrees(f"{name}: '{out.name}' begins as '{out.source}'", self.known[out.source],
                                (out.type, out.shape))
                elif out.source in self.in_nests:
                    self.say("E470", f"{name}: '{out.name}' begins as '{out.source}', which is not defined before")
        if len(d.names) != len(types_of(value)):
            self.say("E471", f"{name}: {len(d.names)} names for {len(types_of(value))} results")
        for each, dtype, shape in zip(d.names, types_of(value), shapes_of(value), strict=False):
            if each in self.known or each in self.declared or each in self.in_nests:
                self.say("E470", f"{each} is defined twice")
            self.known[each] = (dtype, shape)

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
            self.extent(name, extent)
        if value.source not in self.known:
            self.say("E470", f"{name}: reads '{value.source}', which is not defined before")
        else:
            self.agrees(f"{name}: '{value.source}'", self.known[value.source], (value.type, value.shape))
        if len(value.index) != len(value.shape) or any(i.dtype != "i64" for i in value.index):
            self.say("E471", f"{name}: the index is not one i64 for each axis of '{value.source}'")

    def output(self, program: TensorProgram, name: str, value: str) -> None:
        buffer = program.buffers.get(name)
        if buffer is None or value not in self.known:
            self.say("E470", f"the output {name}: '{value if buffer else name}' is not defined")
        else:
            self.agrees(name, self.known[value], (buffer.type, buffer.axes))

    def agrees(self, what: str, found: tuple[str, tuple[Expr, ...]], declared: tuple[str, tuple[Expr, ...]]) -> None:
        """Two arrays have the same type and, in every call, the same shape."""
        (dtype, shape), (other, axes) = found, declared
        if dtype != other or len(shape) != len(axes) or not all(map(self.is_equal, shape, axes)):
            kinds = [f"{t} ({' '.join([text_of(e) for e in extents])})" for t, extents in (found, declared)]
            self.say("E471", f"{what}: {kinds[0]}, declared {kinds[1]}")

    def is_equal(self, a: Expr, b: Expr) -> bool:
        return a.dtype == b.dtype == "i64" and (canonical(a) is canonical(b) or self.context.proves(Op("eq", (a, b))))

    def extent(self, name: str, e: Expr) -> None:
        """It depends on sizes alone."""
        self.unbound(name, e, self.declared)
        if e.dtype != "i64" or any(isinstance(n, Read | Aref) for n in e.unique()):
            self.say("E471", f"{name}: the extent {text_of(e)} is no i64 over sizes")

    def names(self, name: str, value: Indexed, axes: tuple[Axis, ...]) -> None:
        """Every variable is a parameter or an axis. Extents use parameters only."""
        bound = set(self.declared)
        for axis in axes:
            self.extent(name, axis.extent)
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

    def nodes(self, name: str, value: Node) -> None:
        """Reads agree with what they read; checked indices are integers, and pieces have a bound between two."""
        for n in value.unique():
            if isinstance(n, Aref | Vref):
                self.say("E470", f"{name}: {n!r} is an access of the loop level: a value is read by (read …)")
            elif isinstance(n, Pieces):
                if len(n.arms) != len(n.bounds) + 1:
                    self.say("E471", f"{name}: {len(n.arms)} pieces with {len(n.bounds)} bounds between them")
            elif isinstance(n, Inside):
                if {n.index.dtype, n.extent.dtype} != {"i64"}:
                    self.say("E471", f"{name}: {n!r}: an index and its extent are i64")
            elif isinstance(n, Read):
                self.read(name, n)

    def read(self, name: str, read: Read) -> None:
        if read.buffer not in self.known:
            self.say("E470", f"{name}: reads '{read.buffer}', which is not defined before")
        elif self.known[read.buffer][0] != read.type or len(self.known[read.buffer][1]) != len(read.index):
            self.say("E471", f"{name}: {read!r} does not agree with the type and rank of '{read.buffer}'")
