"""The instruction listing: what runs for a graph, one kernel a line."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from caten import driver
from caten.core.dtypes import DTYPES
from caten.core.expr import Expr
from caten.core.program import Opt, Program
from caten.core.size_formula import evaluate
from caten.loop.statements import LoopProgram
from caten.render.scratch_memory import ALIGNMENT, layout, scratch_bytes
from caten.runtime import work_formulas
from caten.tensor.before_fusion import ready_for_fusion
from caten.tensor.blocks_of_rows import BLOCKS, joined
from caten.tensor.fused_text import fused
from caten.tensor.fusion import kernels_of
from caten.tensor.loop_builder import LoopBuilder
from caten.tensor.values import (
    Define,
    FusedKernel,
    Output,
    Reduce,
    TensorProgram,
    Value,
    operands_of,
    reads_of,
    shapes_of,
    types_of,
)

from .lowering import Lowered
from .settings import options


def listed(made: Lowered) -> Iterator[str]:
    """The instructions of a program, and a summary."""
    whole = fused(made.program)
    listing = Listing(whole, whole.all(FusedKernel), made.sizes)
    memory = Memory(made.program, made.sizes)
    for line, kernel in zip(listing.lines(), listing.kernels, strict=True):
        shared = "".join([f"  ; {text}" for name in listing.operands(kernel)[0] for text in memory.shared(name)])
        yield f"{line}{shared}"
    yield from listing.summary(memory, made.program)


class Memory:
    """Where the arrays between kernels are in the scratch memory of a call: `places`, start and size in bytes by the
    names of the values. `homes`: the array of each value; one that is made in place has that of another. `between`: the
    bytes of the places; `total`: those of all scratch memory."""

    def __init__(self, program: TensorProgram, sizes: Mapping[str, int]) -> None:
        values = ready_for_fusion(program)
        builder = LoopBuilder(values, joined(kernels_of(values), values, BLOCKS))
        loops = driver.advance(program, "loop", options())
        assert isinstance(loops, LoopProgram)
        slots = layout(loops).slots
        self.homes = {name: builder.array(name) for d in values.definitions for name in d.names}
        self.places: dict[str, tuple[int, int]] = {}
        for name, home in self.homes.items():
            if home in slots and home in builder.arrays.values():
                slot, local = slots[home], slots[home].local
                size = prod([int(evaluate(e, sizes)) for e in local.shape]) * DTYPES[local.type].bytes
                self.places[name] = int(evaluate(slot.offset, sizes)), size
        self.total = int(evaluate(scratch_bytes(loops), sizes))
        ends: dict[int, int] = {}
        for start, size in self.places.values():
            ends[start] = max(ends.get(start, 0), -(-size // ALIGNMENT) * ALIGNMENT)
        self.between = sum(ends.values())

    @property
    def inside(self) -> int:
        """The bytes that kernels need themselves, for packed operands say, beyond those of the arrays between them."""
        return max(0, self.total - self.between)

    def shared(self, name: str) -> Iterator[str]:
        """Whose memory a value takes: that of the last one before it."""
        names = list(self.homes)
        before = names[:names.index(name)]
        if same := [other for other in before if self.homes[other] == self.homes[name]]:
            yield f"{name} in place of {same[-1]}"
        elif name in self.places and (there := [other for other in before if other in self.places
                                                and self.places[other][0] == self.places[name][0]]):
            yield f"{name} in the memory of {there[-1]}"


class Listing:
    """The kernels of a program with what they read and make. `sizes`: the numbers of its sizes; `kinds`: type and shape
    of each array and value."""

    def __init__(self, program: TensorProgram, kernels: Sequence[FusedKernel], sizes: Mapping[str, int]) -> None:
        self.kernels, self.sizes = kernels, sizes
        self.outputs: dict[str, str] = {}
        for o in program.all(Output):
            self.outputs.setdefault(o.value, o.name)
        self.kinds = {b.name: (b.type, b.shape) for b in program.buffers.values()}
        for k in kernels:
            for d in k.definitions:
                for name, dtype, shape in zip(d.names, types_of(d.value), shapes_of(d.value), strict=True):
                    self.kinds[name] = dtype, shape
        self.made = {name: n for n, k in enumerate(kernels) for d in k.definitions for name in d.names}
        self.read = {name for n, k in enumerate(kernels) for d in k.definitions for name in operands_of(d.value)
                     if self.made.get(name, n) != n}
        self.read |= {r.buffer for check in program.checks for r in reads_of(check.cond)}
        self.between = [name for name in self.read if name in self.made and name not in self.outputs]

    def lines(self) -> Iterator[str]:
        """One instruction a line: results <- kernel(operands)."""
        for n, k in enumerate(self.kernels):
            stored, read = self.operands(k)
            yield (f"%{n} {', '.join(map(self.spelled, stored))} <- {k.form}{_sums(k.definitions)}"
                   f"({', '.join(map(self.spelled, read))})")

    def operands(self, kernel: FusedKernel) -> tuple[list[str], list[str]]:
        """What a kernel leaves for others or as a result, and what it reads."""
        own = [name for d in kernel.definitions for name in d.names]
        stored = [name for name in own if name in self.outputs or name in self.read]
        return stored, list(dict.fromkeys([name for d in kernel.definitions for name in operands_of(d.value)
                                           if name not in own]))

    def summary(self, memory: Memory, program: Program) -> Iterator[str]:
        """Instructions, bytes between kernels before and after planning, floating-point operations."""
        before = [size for _, size in memory.places.values()]
        yield (f"; {len(self.kernels)} instructions, {len(before)} arrays between them: {sum(before):,} bytes, in "
               f"{memory.between:,} bytes of memory; {memory.inside:,} bytes inside of kernels; "
               f"{operations(program, self.sizes):,} floating-point operations")

    def spelled(self, name: str) -> str:
        """A name with its type and shape."""
        dtype, shape = self.kinds[name]
        extents = " ".join([str(self.extent(e)) for e in shape])
        shown = self.outputs.get(name, name)
        return f"{shown}{{{DTYPES[dtype].numpy}}}[{extents}]"

    def bytes(self, name: str) -> int:
        """The bytes of an array."""
        dtype, shape = self.kinds[name]
        return prod([self.extent(e) for e in shape]) * DTYPES[dtype].bytes

    def extent(self, e: Expr) -> int:
        """An extent as a number."""
        return int(evaluate(e, self.sizes))


def operations(program: Program, sizes: Mapping[str, int]) -> int:
    """The floating-point operations of a program as it is written: no schedule adds to them."""
    loops = driver.advance(program.without(Opt).adding(Opt(0)), "loop", options())
    return work_formulas.at(work_formulas.flops(loops), sizes)


def _sums(definitions: Sequence[Define]) -> str:
    """The reductions of a kernel, such as .add.max."""
    values: list[Value] = [d.value for d in definitions]
    return "".join([f".{v.fn}" for v in values if isinstance(v, Reduce)])
