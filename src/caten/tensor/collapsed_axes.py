"""Adjacent axes that `~` stands for as one axis, where every array has all of them in the order of memory.

    (buffer x f32 (A B C) …)
    (define v0 (reduce f32 ((i A) (j B)) ((p C)) add true (read x i j p)))
->  (buffer x f32 (A C) …)                                      this A is the A · B of the caller
    (define v0 (reduce f32 ((i A)) ((p C)) add true (read x i p)))

So calls of an operator with arrays of two, three and four axes are calls of one kernel. A size whose axes cannot be one
(an index that is more than a place in its array, a value that depends on the extent) stays.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..core.expr import Expr, Var
from ..core.node import Node
from ..core.program import AnyAxes, Bind, Buffer, Collapsed, Fusion, Program, Require, Scalar, Schedule, Size
from .values import (
    Axis,
    AxisNames,
    Compute,
    Define,
    FailIf,
    Named,
    Output,
    Read,
    Reduce,
    Scan,
    Value,
    shapes_of,
    types_of,
)

Sizes = dict[str, tuple[str, ...]]           # a size, and those of the caller whose product it is


class _Stays(Exception):
    """An axis is needed as it is."""


def collapsed(program: Program) -> tuple[Program, Sizes]:
    """The program with as few axes as possible for `~`, the fact of what they are, and the product that each of these
    sizes is. Without such axes, or where the user asks for the loops of the spec: the program, and nothing."""
    fact = program.first(AnyAxes)
    if fact is None or program.first(Output) is None or program.first(Schedule) or program.first(Fusion):
        return program, {}
    sizes: Sizes = {name: (name,) for name in fact.names}
    while (step := next(_merged(program, tuple(sizes)), None)) is not None:
        program, first, second = step
        sizes[first] += sizes.pop(second)
    kept = {name: group for name, group in sizes.items() if _is_free(program, name)}
    if not kept:
        return program, {}
    named = [_renamed(n, program) for n in program.all(Named)]
    return program.without(AnyAxes, Named).adding(Collapsed(tuple(kept)), *named), kept


def _merged(program: Program, sizes: Sequence[str]) -> Iterator[tuple[Program, str, str]]:
    """The program with two sizes as one, and which these were; for each pair of adjacent axes with which it can be."""
    pairs = dict.fromkeys([(a.name, b.name) for buffer in program.all(Buffer)
                           for a, b in zip(buffer.shape, buffer.shape[1:], strict=False)
                           if isinstance(a, Var) and isinstance(b, Var)])
    for first, second in pairs:
        if first in sizes and second in sizes and first != second:
            try:
                yield _Collapse(program, (first, second)).program, first, second
            except _Stays:
                continue


def _is_free(program: Program, size: str) -> bool:
    """Is a size the extent of whole axes, each index of which is only a place in arrays along this size?"""
    try:
        _Collapse(program, (size,))
    except _Stays:
        return False
    return True


class _Collapse:
    """A program with adjacent axes of these sizes as one axis of the first size; with one size, it is only checked that
    its axes can be anything. Raises _Stays."""

    def __init__(self, program: Program, sizes: tuple[str, ...]) -> None:
        self.sizes = sizes
        self.shapes: dict[str, tuple[Expr, ...]] = {b.name: b.shape for b in program.all(Buffer)}
        names = _axis_names(program)
        clauses: list[Node] = []
        for clause in program.clauses:
            match clause:
                case Size(name=name):
                    clauses += [clause] if name not in sizes[1:] else []
                case Buffer(shape=shape, order=order):
                    if self.places(shape) and (list(order) != sorted(order) or clause.strides or clause.seen):
                        raise _Stays
                    if (kept := self.shorter(shape)) != shape:
                        clause = clause.replace(shape=kept, order=tuple(range(len(kept))))
                    clauses.append(clause)
                case Define(value=Compute() | Reduce() | Scan() as value):
                    self.shapes[clause.name] = shapes_of(value)[0]
                    clauses.append(clause.replace(value=self.value(value, names)))
                case Define(value=value):
                    self.refuse_in(clause)
                    self.shapes |= dict(zip(clause.names, shapes_of(value), strict=True)) if types_of(value) else {}
                    if any(self.places(self.shapes[name]) for name in clause.names):
                        raise _Stays
                    clauses.append(clause)
                case Bind(name=name) if name in sizes:
                    raise _Stays
                case Require() | FailIf():
                    self.refuse_in(clause)
                    clauses.append(clause)
                case _:
                    clauses.append(clause)
        self.program = program.replace(clauses=tuple(clauses))

    def refuse_in(self, node: Node) -> None:
        if any(isinstance(n, Var) and n.name in self.sizes for n in node.unique()):
            raise _Stays

    def places(self, shape: Sequence[Expr]) -> list[int]:
        """Where the axes start in a shape. They may not be there in part, or in a formula."""
        names = [e.name if isinstance(e, Var) else None for e in shape]
        for e in shape:
            if not isinstance(e, Var):
                self.refuse_in(e)
        found = [n for n, name in enumerate(names) if name == self.sizes[0]]
        if any(tuple(names[n:n + len(self.sizes)]) != self.sizes for n in found) or any(
                names.count(size) != len(found) for size in self.sizes):
            raise _Stays
        return found

    def shorter(self, shape: Sequence[Expr]) -> tuple[Expr, ...]:
        """A shape with the first of the sizes for all of them."""
        gone = {n + k for n in self.places(shape) for k in range(1, len(self.sizes))}
        return tuple([e for n, e in enumerate(shape) if n not in gone])

    def value(self, value: Compute | Reduce | Scan, names: AxisNames) -> Value:
        """A value with its axes, by their canonical names."""
        over = value.over if isinstance(value, Reduce) else ()
        chosen = [[axes[n:n + len(self.sizes)] for n in self.places([a.extent for a in axes])]
                  for axes in (value.axes, over)]
        runs = [tuple([a.name for a in run]) for run in (*chosen[0], *chosen[1])]
        if isinstance(value, Scan) and any(value.axis in run for run in runs):
            raise _Stays
        gone = {name for run in runs for name in run[1:]}
        kept = names.axes([a.extent for a in value.axes if a.name not in gone])
        summed = names.over([a.extent for a in over if a.name not in gone])
        new = dict(zip([a.name for a in (*value.axes, *over) if a.name not in gone], (*kept, *summed), strict=True))
        index = _Index(self, runs, new)
        changes: dict[str, object] = {"axes": kept, "expr": index.go(value.expr)}
        if not isinstance(value, Compute):
            changes["cond"] = index.go(value.cond)
        if isinstance(value, Reduce):
            changes["over"] = summed
        if isinstance(value, Scan):
            changes["axis"] = new[value.axis].name
        made: Value = value.replace(**changes)
        return made


class _Index:
    """Expressions of a value whose `runs` of axes become one axis each. `new`: the other axes, and the first of each
    run, as they are then."""

    def __init__(self, whole: _Collapse, runs: Sequence[tuple[str, ...]], new: dict[str, Axis]) -> None:
        self.whole, self.runs, self.new = whole, set(runs), new
        self.bound = {name for run in runs for name in run} | set(whole.sizes)
        self.memo: dict[Node, Node] = {}

    def go(self, e: Node) -> Node:
        if e not in self.memo:
            self.memo[e] = self._gone(e)
        return self.memo[e]

    def _gone(self, e: Node) -> Node:
        if isinstance(e, Var):
            if e.name in self.bound:
                raise _Stays
            return self.new[e.name].var if e.name in self.new else e
        if not isinstance(e, Read):
            return e.map(self.go)
        places = self.whole.places(shape := self.whole.shapes[e.buffer])
        count, made = len(self.whole.sizes), dict[int, Node]()
        for n in places:
            run = tuple([i.name if isinstance(i, Var) else "" for i in e.index[n:n + count]])
            if run not in self.runs:
                raise _Stays
            made[n] = self.new[run[0]].var
        gone = {n + k for n in places for k in range(1, count)}
        return e.replace(index=tuple([made[n] if n in made else self.go(e.index[n])
                                      for n in range(len(shape)) if n not in gone]))


def _axis_names(program: Program) -> AxisNames:
    return AxisNames([p.declares()[0] for p in program.params if isinstance(p, Buffer | Scalar | Size)])


def _renamed(named: Named, program: Program) -> Named:
    """The name of a value in the spec, with the canonical names of its axes: those of the spec count all axes."""
    value = next((d.value for d in program.all(Define) if d.name == named.value), None)
    if not isinstance(value, Compute | Reduce | Scan):
        return named
    over, names = value.over if isinstance(value, Reduce) else (), _axis_names(program)
    axes = (*names.axes([a.extent for a in value.axes]), *names.over([a.extent for a in over]))
    return named.replace(axes=tuple([a.name for a in axes]))
