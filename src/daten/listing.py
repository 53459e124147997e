"""The instruction listing: what runs for a graph, one kernel a line."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from caten import driver
from caten.compiler import Compilation
from caten.core.dtypes import DTYPES
from caten.core.expr import Expr
from caten.core.program import Opt, Program
from caten.core.size_formula import evaluate
from caten.core.text import read as read_text
from caten.runtime import work_formulas
from caten.tensor.fused_text import fused
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
    yield from listing.lines()
    yield from listing.summary(Compilation([made.program], options()))


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

    def summary(self, build: Compilation) -> Iterator[str]:
        """Instructions, bytes between kernels before and after planning, floating-point operations."""
        before, after = self.memory(build)
        work = operations(build.programs[0], self.sizes)
        yield (f"; {len(self.kernels)} instructions, {len(self.between)} arrays between them: {before:,} bytes, in "
               f"{after:,} bytes of memory; {work:,} floating-point operations")

    def memory(self, build: Compilation) -> tuple[int, int]:
        """The bytes of the arrays between kernels, and of the memory in which they are, with what kernels need
        themselves, after planning."""
        rendered = build.rendered
        entry = rendered.manifest if "scratch_bytes" in rendered.manifest else rendered.manifest["ops"][0]
        (formula,) = read_text(str(entry["scratch_bytes"]))
        return sum(map(self.bytes, self.between)), int(evaluate(formula, self.sizes))

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
