"""A graph as one program of values: the values of all its operators, over the arrays that are there.

Extents become sizes: equal extents of the arrays one size, 1 the number. Where two extents are equal in this graph and
not by their formulas, the program requires it. So a graph is compiled once for all sizes with these equalities. An
extent that is a number in an operator, or that is split by a reshape into extents that are no sizes of the graph, is
that number in the program, which is then for this number alone.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

from caten.core.expr import Const, Expr, Op, Var, index, number
from caten.core.node import Node, substitute
from caten.core.program import Buffer, Check, Ensure, Opt, Outputs, Scalar, Size, Target
from caten.core.size_formula import evaluate
from caten.core.text import Text
from caten.frontend.arrays.handles import product_of
from caten.frontend.arrays.reshaping import indices_before
from caten.loop.affine import canonical, expression, linear, of_atom, text_of
from caten.loop.context import Context
from caten.tensor.canonical_values import canonical_values
from caten.tensor.index_maps import renamed, with_reads
from caten.tensor.values import (
    Compute,
    FailIf,
    Inside,
    Nest,
    Output,
    Read,
    TensorProgram,
    Value,
    ValueTable,
    shapes_of,
)

from .graph import Call, Constant, Ref, Shape, in_order
from .templates import Reshape, Template, in_solvable_order

Key = tuple[object, ...]
MOST_WAYS = 64                                              # to see the extents of a reshape as sizes
Fixed = frozenset[int]                                      # extents that are numbers in a program


def leaves_of(wanted: Sequence[Ref]) -> tuple[list[Call], list[Ref]]:
    """The operators to run, in order, and the arrays that they read."""
    calls = list(in_order(wanted))
    found: dict[int, Ref] = {}
    for call in calls:
        for r in call.inputs:
            if r.array is not None:
                found.setdefault(id(r.array), r)
    return calls, list(found.values())


def key_of(wanted: Sequence[Ref], calls: Sequence[Call], leaves: Sequence[Ref]) -> Key:
    """What the program of a graph depends on, beside its fixed extents: its operators and how they are connected, the
    element types of the arrays, and which of their extents are equal."""
    numbers: dict[int, int] = {id(call): n for n, call in enumerate(calls)}
    arrays = {id(r.array): n for n, r in enumerate(leaves)}
    extents = extents_of(leaves)

    def named(r: Ref) -> Key:
        if isinstance(r.node, Constant):
            return "c", repr(r.node.value), r.node.dtype
        return ("a", arrays[id(r.array)]) if r.array is not None else ("v", numbers[id(r.node)], r.index)

    def operator(call: Call) -> object:
        if isinstance(call.template, Reshape):
            return tuple([("e", extents[e]) if e in extents else e for e in call.template.shape])
        return id(call.template)
    shapes = tuple([(r.dtype, tuple([extents[e] for e in r.shape])) for r in leaves])
    return shapes, tuple([(operator(call), *map(named, call.inputs)) for call in calls]), tuple(map(named, wanted))


def extents_of(leaves: Sequence[Ref]) -> dict[int, int]:
    """The different extents of arrays, each with its number."""
    extents: dict[int, int] = {1: 0}
    for r in leaves:
        for e in r.shape:
            extents.setdefault(e, len(extents))
    return extents


def assembled(wanted: Sequence[Ref], calls: Sequence[Call], leaves: Sequence[Ref]) -> tuple[TensorProgram, Fixed]:
    """The program that computes results of operators, and the extents that are numbers in it."""
    fixed: Fixed = frozenset()
    while True:
        work = _Assembling(leaves, calls, fixed)
        program = work.program(wanted)
        if work.fixed <= fixed:
            return program, fixed
        fixed |= work.fixed


def groups_of(old: Shape, new: Shape) -> Iterator[tuple[slice, slice]]:
    """Consecutive axes of two shapes of as many elements whose products are equal, as few as possible."""
    if 0 in old:
        yield slice(0, len(old)), slice(0, len(new))
        return
    i = j = 0
    while i < len(old) or j < len(new):
        start, left, right = (i, j), 1, 1
        while i == start[0] < len(old) or j == start[1] < len(new) or left != right:
            if j == len(new) or (i < len(old) and (i == start[0] or left < right)):
                left, i = left * old[i], i + 1
            else:
                right, j = right * new[j], j + 1
        yield slice(start[0], i), slice(start[1], j)


class _Assembling:
    """One attempt. `fixed`: found on the way, the extents that have to be numbers."""

    def __init__(self, leaves: Sequence[Ref], calls: Sequence[Call], numbers: Fixed) -> None:
        self.calls, self.fixed = calls, set[int]()
        self.sizes: dict[int, Expr] = {e: index(e) if e == 1 or e in numbers else Var(f"size{n - 1}", "i64")
                                       for e, n in extents_of(leaves).items()}
        self.extent_of = {e.name: n for n, e in self.sizes.items() if isinstance(e, Var)}
        self.names: dict[tuple[int, int], str] = {}            # (node, result) -> array or value
        self.extents: dict[str, tuple[Expr, ...]] = {}
        self.buffers: list[Buffer] = []
        for n, r in enumerate(leaves):
            shape = tuple([self.sizes[e] for e in r.shape])
            self.buffers.append(Buffer(f"in{n}", r.dtype, shape, tuple(range(len(shape))), "in"))
            self.extents[f"in{n}"] = shape
        self.arrays = {id(r.array): f"in{n}" for n, r in enumerate(leaves)}
        self.facts: list[Node] = [Size(e.name) for e in self.sizes.values() if isinstance(e, Var)]
        programs = [c.template.program for c in calls if isinstance(c.template, Template)]
        target = next((f for program in programs for f in program.all(Target)), None)
        base = TensorProgram("Graph", (*self.buffers, *self.facts, *([target] if target is not None else []), Opt(2)))
        self.base, self.context = base, Context.of(base)
        self.table = ValueTable(base)
        self.checks: list[FailIf] = []
        self.ensured: list[Node] = []
        self.row = 0
        self.constants: dict[str, Expr] = {}

    def program(self, wanted: Sequence[Ref]) -> TensorProgram:
        """The whole."""
        for call in self.calls:
            if isinstance(call.template, Reshape):
                self.add_reshape(call)
            else:
                self.add(call, call.template)
        results, outputs = list[Buffer](), list[Output]()
        for n, r in enumerate(wanted):
            name = self.name(r)
            shape = self.extents[name]
            results.append(Buffer(f"out{n}", r.dtype, shape, tuple(range(len(shape))), "out"))
            if name in self.arrays.values() or name in {o.value for o in outputs}:
                axes = self.table.axis_names.axes(shape)
                copy = Read(name, tuple([a.var for a in axes]), r.dtype)
                name = self.table.define(Compute(r.dtype, axes, copy))[0]
            outputs.append(Output(f"out{n}", name))
        return canonical_values(self.base.replace(clauses=(
            Outputs(tuple([b.name for b in results])), *self.base.clauses, *results, *self.ensured,
            *self.table.definitions, *self.checks, *outputs)))

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
        name = self.name(source)
        old, new = self.extents[name], list[Expr]()
        for ours, theirs in groups_of(source.shape, call.shapes[0]):
            new += self.reshaped(old[ours], call.shapes[0][theirs])
        axes = self.table.axis_names.axes(new)
        read = Read(name, tuple(indices_before(old, new, tuple([a.var for a in axes]))), source.dtype)
        self.names[id(call), 0] = made = self.table.define(Compute(source.dtype, axes, read))[0]
        self.extents[made] = tuple(new)

    def reshaped(self, old: Sequence[Expr], shape: Sequence[int]) -> Sequence[Expr]:
        """The extents of a reshaped group of axes: sizes of the graph where these are equal by their formulas, numbers
        elsewhere."""
        if len(shape) == 1:
            return [canonical(product_of(old))]
        total = linear(product_of(old))
        names = sorted({name for e in old for name in e.variables})
        known = dict.fromkeys([index(1), *old, *[Var(name, "i64") for name in names]])
        ways = [[e for e in known if self.value(e) == wanted] + [index(wanted)] for wanted in shape]
        for chosen in product(*ways) if prod(map(len, ways)) <= MOST_WAYS else ():
            if linear(product_of(chosen)) == total:
                return chosen
        self.fix(*old)
        return [index(e) for e in shape]

    def value(self, e: Expr) -> int:
        """The number that a formula over extents is in this graph."""
        return int(evaluate(e, self.extent_of))

    def fix(self, *formulas: Expr) -> None:
        """The extents of these formulas have to be numbers."""
        self.fixed |= {self.extent_of[name] for e in formulas for name in e.variables if name in self.extent_of}

    def add(self, call: Call, template: Template) -> None:
        """The values of one operator."""
        program = template.program
        names: dict[str, str] = {}
        sizes: dict[Expr, Expr] = {}
        scalars = {s.name: s.type for s in program.all(Scalar)}
        numbers = template.sizes([(r.dtype, r.shape) for r in call.inputs])
        formulas: list[tuple[str, Expr, Expr]] = []
        for name, r, shape in zip(template.inputs, call.inputs, template.input_shapes, strict=True):
            names[name] = self.name(r)
            if name in scalars:
                sizes[Var(name, scalars[name])] = self.constants.get(names[name],
                                                                     Read(names[name], (), scalars[name]))
            for own, extent in zip(shape, self.extents[names[name]], strict=True):
                if not isinstance(own, Var) or sizes.setdefault(own, extent) is not extent:
                    formulas.append((name, extent, own))
        for name, extent, own in in_solvable_order(formulas, [v.name for v in sizes if isinstance(v, Var)]):
            for unknown in own.variables - {v.name for v in sizes if isinstance(v, Var)}:
                self.solve(unknown, substitute(own, sizes), extent, sizes, numbers)
            left, right = canonical(substitute(own, sizes)), canonical(extent)
            if isinstance(left, Const) or isinstance(right, Const):
                self.fix(left, right)
            self.require(Op("eq", (left, right)), f"{program.name}: an extent of {name} differs")
        texts = {c.row: c.text for c in program.all(Check)}
        rows = {row: self.new_row(texts.get(row, "")) for row in dict.fromkeys([c.row for c in program.checks])}
        for ensure in program.all(Ensure):
            self.require(substitute(ensure.cond, sizes), texts.get(ensure.row, ""), rows.get(ensure.row))
        for d in program.definitions:
            value = self.placed(renamed(d.value, names), sizes, rows)
            made = self.table.define(value)
            for own_name, new, extents in zip(d.names, made, shapes_of(value), strict=True):
                names[own_name], self.extents[new] = new, extents
        self.checks += [c.renamed(names).replace(row=rows[c.row]) for c in program.checks]
        outputs = {o.name: o.value for o in program.outputs}
        for n, name in enumerate(template.outputs):
            self.names[id(call), n] = names[outputs[name]]

    def solve(self, unknown: str, own: Expr, extent: Expr, sizes: dict[Expr, Expr], numbers: dict[str, int]) -> None:
        """A size of an operator from an extent: N from 2 · N = extent."""
        var = Var(unknown, "i64")
        form = linear(own)
        factor = form.coefficient(var)
        found = (linear(extent) - (form - factor.times(of_atom(var)))).quotient(factor)
        if found is None:
            self.fix(extent, expression(factor))
        sizes[var] = index(numbers[unknown]) if found is None else expression(found)

    def placed(self, value: Value, sizes: dict[Expr, Expr], rows: dict[int, int]) -> Value:
        """A value of a template with the sizes, numbers and checks of the graph."""
        if self.constants and not isinstance(value, Nest):
            value = with_reads(value, lambda r: self.constants.get(r.buffer, r))
        made: Value = substitute(value, sizes)
        inside = {n: n.replace(row=rows.get(n.row, 0)) for n in made.unique() if isinstance(n, Inside) and n.row}
        return substitute(made, inside) if inside else made

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
