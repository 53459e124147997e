"""The graph of a program's values, before and after fusion: what the pictures and the page show."""
from __future__ import annotations

from collections.abc import Sequence

from ..core.text import flat, form_of
from ..frozen import frozen
from ..tensor.before_fusion import ready_for_fusion
from ..tensor.blocks_of_rows import boundaries
from ..tensor.boundaries import told
from ..tensor.fused_text import kernel_nodes
from ..tensor.values import TensorProgram, names_in_spec, operands_of, shapes_of, types_of


@frozen
class Vertex:
    """A parameter or value. `title`: its names; `type`: `f32 (M N)`; `text`: its definition, empty for a parameter.
    `kernel`: the one that computes it; empty if its readers do."""

    name: str
    title: str
    type: str
    text: str = ""
    kernel: str = ""

    @property
    def is_parameter(self) -> bool:
        return not self.text


@frozen
class Edge:
    """`reader` reads `source`. `why`: the reason for which they do not share a kernel; empty if they do."""

    source: str
    reader: str
    why: str = ""


@frozen
class Kernel:
    """A kernel: its name, its form, its outer loops, and its members."""

    name: str
    form: str
    outer: str
    members: tuple[str, ...]


@frozen
class Graph:
    """`outputs`: pairs of a parameter and the value that it holds after the call."""

    name: str
    vertices: tuple[Vertex, ...]
    edges: tuple[Edge, ...]
    kernels: tuple[Kernel, ...]
    outputs: tuple[tuple[str, str], ...]


def graph_of(program: TensorProgram) -> Graph:
    """The graph of a program."""
    program = ready_for_fusion(program)
    called = names_in_spec(program)
    kernels = [Kernel(k.name, k.form, ", ".join([f"{a.name} {flat(form_of(a.extent))}" for a in k.outer]),
                      tuple([name for d in k.definitions for name in d.names])) for k in kernel_nodes(program)]
    kernel_of = {name: k.name for k in kernels for name in k.members}
    read = {name for d in program.definitions for name in operands_of(d.value)}
    vertices = [Vertex(b.name, b.name, _type(b.type, b.axes)) for b in program.buffers.values() if b.name in read]
    edges: list[Edge] = []
    reasons = {(b.source, b.reader): told(b.why, b.source, b.reader) for b in boundaries(program)}
    for d in program.definitions:
        for name, dtype, shape in zip(d.names, types_of(d.value), shapes_of(d.value), strict=True):
            title = f"{name} {called[name]}" if name in called else name
            vertices.append(Vertex(name, title, _type(dtype, shape), flat(form_of(d.value)), kernel_of.get(name, "")))
            edges += [Edge(source, name, reasons.get((source, name), "")) for source in operands_of(d.value)]
    return Graph(program.name, tuple(vertices), tuple(edges), tuple(kernels),
                 tuple([(o.name, o.value) for o in program.outputs]))


def _type(dtype: str, shape: Sequence[object]) -> str:
    return f"{dtype} ({' '.join([flat(form_of(e)) for e in shape])})"
