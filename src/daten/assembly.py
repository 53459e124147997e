"""A graph as one program of values: the values of all its operators, over the arrays that are there. Its sizes are
those of extents.py."""
from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from caten.core.expr import Expr, Op, Var, number
from caten.core.node import Node, substitute
from caten.core.program import Buffer, Check, Ensure, Opt, Outputs, Scalar, Size, Target
from caten.core.text import Text
from caten.frontend.arrays.reshaping import indices_before
from caten.loop.affine import canonical, text_of
from caten.loop.context import Context
from caten.loop.statements import Aref, Fail
from caten.tensor.canonical_values import canonical_values
from caten.tensor.index_maps import renamed, with_reads
from caten.tensor.unit_axes import without_unit_axes
from caten.tensor.values import (
    Compute,
    FailIf,
    Inside,
    Nest,
    Out,
    Output,
    Read,
    TensorProgram,
    Value,
    ValueTable,
    names_in,
    reads_of,
    shapes_of,
)

from .extents import GraphExtents, Meanings, Recipe
from .graph import Call, Constant, Ref
from .settings import options
from .templates import INDEXING, Barrier, ByHand, Reshape, Template

NAMES = re.compile(r"(in|out|size)\d+_*")             # of the arrays and sizes of a graph


def assembled(wanted: Sequence[Ref], calls: Sequence[Call], leaves: Sequence[Ref],
              meanings: Meanings | None = None, fixes_images: bool = False) -> tuple[TensorProgram, Recipe]:
    """The program that computes results of operators, and for which extents it is. `meanings`: of the extents, in a
    function that is traced once for many sizes. `fixes_images`: it is for images of these extents alone."""
    taken = names_of_nests(calls)
    suffix = "_" * max([len(name) - len(name.rstrip("_")) + 1 for name in taken if NAMES.fullmatch(name)], default=0)
    extents = GraphExtents(leaves, calls, suffix, meanings, fixes_images)
    return _Assembling(leaves, calls, extents, taken, suffix).program(wanted), extents.recipe()


def said(operator: str, text: str, sizes: Mapping[Expr, Expr]) -> str:
    """The message of a check of an operator in a graph: with the operator's name, and the graph's sizes."""
    names = {v.name: e for v, e in sizes.items() if isinstance(v, Var) and not isinstance(e, Read)}
    of_graph = re.sub(r"[A-Za-z]\w*", lambda m: text_of(names[m[0]]) if m[0] in names else m[0], text)
    return f"{'x[…]' if operator in INDEXING else operator}: {of_graph}"


def names_of_nests(calls: Sequence[Call]) -> frozenset[str]:
    """What the loops of operators declare: no array, size or value of the graph may have such a name."""
    programs = {id(c.template): c.template.program for c in calls if isinstance(c.template, Template)}
    return frozenset().union(*[names_in(d.value) for program in programs.values() for d in program.definitions
                               if isinstance(d.value, Nest)])


class _Assembling:
    def __init__(self, leaves: Sequence[Ref], calls: Sequence[Call], graph: GraphExtents, taken: frozenset[str],
                 suffix: str) -> None:
        self.calls, self.graph, self.suffix = calls, graph, suffix
        self.names: dict[tuple[int, int], str] = {}            # (node, result) -> array or value
        self.extents: dict[str, tuple[Expr, ...]] = {}
        self.buffers: list[Buffer] = []
        for n, (r, shape) in enumerate(zip(leaves, graph.of_leaves, strict=True)):
            self.buffers.append(Buffer(f"in{n}{suffix}", r.dtype, shape, tuple(range(len(shape))), "in"))
            self.extents[f"in{n}{suffix}"] = shape
        self.arrays = {id(r.array): f"in{n}{suffix}" for n, r in enumerate(leaves)}
        self.facts: list[Node] = [Size(v.name) for v in graph.sizes]
        programs = [c.template.program for c in calls if isinstance(c.template, Template)]
        target = next((f for program in programs for f in program.all(Target)), None)
        facts = (*self.facts, *([target] if target is not None else []), Opt(options().opt))
        base = TensorProgram("Graph", (*self.buffers, *facts))
        self.base, self.context = base, Context.of(base)
        self.table = ValueTable(base)
        self.table.names.taken.update(taken)
        self.checks: list[FailIf] = []
        self.ensured: list[Node] = []
        self.row = 0
        self.constants: dict[str, Expr] = {}

    def program(self, wanted: Sequence[Ref]) -> TensorProgram:
        """The whole."""
        for call in self.calls:
            if isinstance(call.template, Reshape):
                self.add_reshape(call)
            elif isinstance(call.template, ByHand):
                self.names |= {(id(call), n): self.name(r) for n, r in enumerate(call.inputs[:len(call.shapes)])}
            elif isinstance(call.template, Barrier):
                self.add_barrier(call)
            else:
                self.add(call, call.template)
        results, outputs = list[Buffer](), list[Output]()
        for n, r in enumerate(wanted):
            name = self.name(r)
            shape = self.extents[name]
            results.append(Buffer(f"out{n}{self.suffix}", r.dtype, shape, tuple(range(len(shape))), "out"))
            if name in self.arrays.values() or name in {o.value for o in outputs}:
                axes = self.table.axis_names.axes(shape)
                copy = Read(name, tuple([a.var for a in axes]), r.dtype)
                name = self.table.define(Compute(r.dtype, axes, copy))[0]
            outputs.append(Output(f"out{n}{self.suffix}", name))
        whole = self.base.replace(clauses=(
            Outputs(tuple([b.name for b in results])), *self.base.clauses, *results, *self.ensured,
            *self.table.definitions, *self.checks, *outputs))
        return canonical_values(without_unit_axes(whole, self.table.axis_names))

    def name(self, r: Ref) -> str:
        """What an array or a value is called."""
        if isinstance(r.node, Constant):
            value = number(r.node.value, r.node.dtype)          # type: ignore[arg-type]   # of the kind of the type
            name = self.table.define(Compute(r.node.dtype, (), value))[0]
            self.constants[name], self.extents[name] = value, ()
            return name
        return self.arrays[id(r.array)] if r.array is not None else self.names[id(r.node), r.index]

    def add_reshape(self, call: Call) -> None:
        """The value of a reshape: a read at other indices."""
        source = call.inputs[0]
        name, new = self.name(source), self.graph.results[id(call), 0]
        axes = self.table.axis_names.axes(new)
        read = Read(name, tuple(indices_before(self.extents[name], new, tuple([a.var for a in axes]))), source.dtype)
        self.names[id(call), 0] = made = self.table.define(Compute(source.dtype, axes, read))[0]
        self.extents[made] = new

    def add_barrier(self, call: Call) -> None:
        """A nest of no statements, which begins with what the arrays hold."""
        outs: list[Out] = []
        for n, r in enumerate(call.inputs):
            source = self.name(r)
            outs.append(Out(self.table.names.fresh(f"barrier{n}"), r.dtype, self.extents[source], source))
        made = self.table.define(Nest((), tuple(outs)))
        for n, (name, out) in enumerate(zip(made, outs, strict=True)):
            self.names[id(call), n], self.extents[name] = name, out.shape

    def add(self, call: Call, template: Template) -> None:
        """The values of one operator."""
        program, found = template.program, self.graph.of_calls[id(call)]
        names: dict[str, str] = {}
        sizes = dict(found.sizes)
        scalars = {s.name: s.type for s in program.all(Scalar)}
        for name, r in zip(template.inputs, call.inputs, strict=True):
            names[name] = self.name(r)
            if name in scalars:
                sizes[Var(name, scalars[name])] = self.constants.get(names[name],
                                                                     Read(names[name], (), scalars[name]))
        for formula, extent, name in found.equal:
            self.require(Op("eq", (canonical(formula), canonical(extent))),
                         f"{program.name}: an extent of {name} differs")
        texts = {c.row: said(program.name, c.text, sizes) for c in program.all(Check)}
        failing = [c.row for c in program.checks] + [
            n.row for d in program.definitions for n in d.value.unique() if isinstance(n, Inside | Fail) and n.row]
        rows = {row: self.new_row(texts.get(row, "")) for row in dict.fromkeys(failing)}
        for ensure in program.all(Ensure):
            cond = substitute(ensure.cond, sizes)
            if reads_of(cond):                               # a scalar of the operator is an array of the graph
                failed = self.table.define(Compute("bool", (), Op("not", (cond,))))[0]
                row = rows.get(ensure.row) or self.new_row(texts.get(ensure.row, ""))
                self.checks.append(FailIf(Read(failed, (), "bool"), row))
            else:
                self.require(cond, texts.get(ensure.row, ""), rows.get(ensure.row))
        for d in program.definitions:
            value = self.placed(renamed(d.value, names), sizes, rows)
            made = self.table.define(value)
            for own_name, new, extents in zip(d.names, made, shapes_of(value), strict=True):
                names[own_name], self.extents[new] = new, tuple([canonical(e) for e in extents])
        self.checks += [c.renamed(names).replace(row=rows[c.row]) for c in program.checks]
        outputs = {o.name: o.value for o in program.outputs}
        for n, name in enumerate(template.outputs):
            self.names[id(call), n] = names[outputs[name]]

    def placed(self, value: Value, sizes: dict[Expr, Expr], rows: dict[int, int]) -> Value:
        """A value of a template with the sizes, numbers and checks of the graph."""
        if self.constants and not isinstance(value, Nest):
            value = with_reads(value, lambda r: self.constants.get(r.buffer, r))
        if isinstance(value, Nest):                          # whose statements read numbers as they read arrays
            sizes = {v: Aref(e.buffer, (), e.type) if isinstance(e, Read) else e for v, e in sizes.items()}
        made: Value = substitute(value, sizes)
        checked = {n: n.replace(row=rows[n.row]) for n in made.unique() if isinstance(n, Inside | Fail) and n.row}
        return substitute(made, checked) if checked else made

    def require(self, cond: Expr, text: str, row: int | None = None) -> None:
        """A condition on sizes that must hold at the call, if it is not known to; `row`: its number, if it has one."""
        if self.context.proves(cond) or any(isinstance(e, Ensure) and e.cond is cond for e in self.ensured):
            return
        number = row if row is not None else self.new_row(text or f"the condition {text_of(cond)} does not hold")
        self.ensured.append(Ensure(number, cond))

    def new_row(self, text: str) -> int:
        self.row += 1
        self.ensured.append(Check(self.row, Text(text)))
        return self.row
