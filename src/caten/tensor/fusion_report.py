"""What fusion has made of a program, in English: `caten schedule --explain`.

    kernel k0, rows, outer loops i (M): v0 (top), v1 (e), v2 (s), v3 (Y)
      pass over j (N): v1, v2
      v1 (e) is kept where 'Y' is stored later; 12 M N bytes are not stored and loaded
    v3 | v4: v4 reads axis 0 of v3 at its own axis 1 (transposed)
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..core.dtypes import DTYPES
from ..core.expr import Const, Expr, Op, Var, index
from ..core.node import Node, substitute
from ..core.program import Bind
from ..core.text import flat, form_of
from ..loop.affine import canonical
from .before_fusion import ready_for_fusion
from .blocks_of_rows import BLOCKS, boundaries, joined
from .boundaries import line_of
from .fused_text import kernel_node
from .fusion import computed_by_readers, kernels_of
from .kernels import Group, Member, names_of
from .loop_builder import Storage
from .lower import Lowering
from .values import Axis, FusedKernel, Pass, TensorProgram, names_in_spec, operands_of, reads_of, shapes_of, types_of

PLACES = {
    "register": "is in the register '{}'",
    "output": "is kept where '{}' is stored later",
    "row": "is kept in '{}', memory for one iteration of the outer loops",
    "scratch": "is in the scratch memory '{}'",
}


def explained(program: TensorProgram) -> Iterator[str]:
    """One line for each kernel, pass, and value; then one for each boundary."""
    program = ready_for_fusion(program)
    report = _Report(program)
    yield from report.kernels()
    yield from report.inlined()
    yield from map(line_of, boundaries(program))


class _Report:
    def __init__(self, program: TensorProgram) -> None:
        self.program, self.names = program, names_in_spec(program)
        self.found = joined(kernels_of(program), program, BLOCKS)
        self.lowering = Lowering(program, BLOCKS)
        self.lowering.parts()
        self.sizes = {Var(b.name, "i64"): index(b.value) for b in program.all(Bind)}
        self.readers: dict[str, list[str]] = {}
        for d in program.definitions:
            for operand in operands_of(d.value):
                self.readers.setdefault(operand, []).extend(d.names)

    def called(self, value: str) -> str:
        """A value, with what the spec calls it."""
        return f"{value} ({self.names[value]})" if value in self.names else value

    def kernels(self) -> Iterator[str]:
        for n, k in enumerate(self.found):
            node = kernel_node(f"k{n}", k, self.lowering)
            checking = [name for name, checks in self.lowering.in_scatters.items()
                        for check in checks if check.value in names_of(k)]
            if checking:
                yield f"{self.called(*names_of(k))} is a check in the loops of {', '.join(map(self.called, checking))}"
                continue
            outer = f", outer loops {_loops(node.outer)}" if node.outer else ""
            members = ", ".join([self.called(name) for d in node.definitions for name in d.names])
            yield f"kernel {node.name}, {node.form}{outer}: {members}"
            yield from self.passes(node.steps, 1)
            if isinstance(k, Group):
                for m in k.members:
                    yield f"  {self.called(m.name)} {self.place(k, m)}"
            else:
                for name in k.names:
                    yield f"  {self.called(name)} {self.stored(self.lowering.array_of_result(name))}"

    def passes(self, steps: Sequence[Node], depth: int) -> Iterator[str]:
        for step in steps:
            if isinstance(step, Pass):
                inside = FusedKernel("", (), "", step.steps).definitions
                yield f"{'  ' * depth}pass over {_loops(step.axes)}: {', '.join([d.name for d in inside])}"
                yield from self.passes(step.steps, depth + 1)

    def place(self, k: Group, m: Member) -> str:
        """Where a member lives, and what that saves."""
        if m.name in k.stored:
            return self.stored(self.lowering.array(m.name))
        if k.blocked is not None:
            return f"is in memory for the rows of a block; {self.saved(m.name, len(self.readers[m.name]))}"
        storage = self.lowering.storage.get(m.name, Storage("register", m.name))
        own = {x.name: reads_of(x.value) for x in k.members}
        readers = sum([any(r.buffer == m.name for r in reads) for reads in own.values()])
        saved = "" if storage.kind == "scratch" else f"; {self.saved(m.name, readers)}"
        return PLACES[storage.kind].format(storage.name) + saved

    def stored(self, array: str) -> str:
        what = "the output" if array in self.program.buffers else "the scratch memory"
        return f"is stored in {what} '{array}'"

    def saved(self, value: str, readers: int) -> str:
        """The bytes that are neither stored, nor loaded by each of the readers."""
        found = next(d.value for d in self.program.definitions if value in d.names)
        (shape,), (dtype,) = shapes_of(found), types_of(found)
        total: Expr = index((1 + readers) * DTYPES[dtype].bytes)
        for extent in shape:
            total = Op("mul", (total, extent))
        total = canonical(total)
        known = canonical(substitute(total, self.sizes))
        figure = f" = {known.value:,}" if isinstance(known, Const) and known is not total else ""
        return f"{_product(total)}{figure} bytes are not stored and loaded"

    def inlined(self) -> Iterator[str]:
        for name in computed_by_readers(self.program):
            readers = self.readers.get(name, [])
            yield (f"{self.called(name)} is computed by {', '.join(readers)}; {self.saved(name, len(readers))}"
                   if readers else f"{self.called(name)} is not needed")


def _loops(axes: Sequence[Axis]) -> str:
    return ", ".join([f"{a.name} ({_product(a.extent)})" for a in axes])


def _product(e: Expr) -> str:
    """A product of sizes as `8 M N`; other expressions as they are printed."""
    match e:
        case Op("mul", (a, b)) if _is_plain(a) and _is_plain(b):
            return f"{_product(a)} {_product(b)}"
        case Const(value):
            return f"{value:,}"
    return flat(form_of(e))


def _is_plain(e: Expr) -> bool:
    return isinstance(e, Const | Var) or (isinstance(e, Op) and e.fn == "mul" and all(_is_plain(a) for a in e.args))
