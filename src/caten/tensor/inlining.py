"""Inlining of a program of values into another one: its values, over the caller's arrays, sizes and scalars."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..core.expr import Expr, Var
from ..core.node import Node
from ..core.unique_names import Names
from ..loop.affine import canonical
from ..loop.statements import Address, Aref, For, Let, Local, Stmt, Vref
from .values import Axis, Nest, Out, Read, Scan, Scatter, TensorProgram, Value, ValueTable, operands_of


def inline(program: TensorProgram, table: ValueTable, arrays: Mapping[str, str],
           numbers: Mapping[Expr, Expr]) -> dict[str, str]:
    """Define the values of a program in a table. `arrays`: the array for each buffer of the program, "" if the buffer
    holds nothing at first. `numbers`: the expression for each size and scalar. Returns the names in the table for those
    in the program."""
    names = dict(arrays)
    for d in program.definitions:
        key = _nest_of(d.value, names, numbers) if isinstance(d.value, Nest) else None
        results = table.nests.get(key) if key is not None else None
        if results is None:
            results = table.define(_Inlined(names, numbers).value(d.value, table))
        if key is not None:
            table.nests[key] = results
        names |= dict(zip(d.names, results, strict=True))
    return names


def _nest_of(value: Nest, names: Mapping[str, str], numbers: Mapping[Expr, Expr]) -> tuple[object, ...]:
    """What tells a nest with what it reads. The names that it declares are others each time, but the same nest over the
    same arrays and sizes, such as the sort that two quantiles are taken from, is one value."""
    read = value.variables
    return (value, tuple([names.get(name, name) for name in operands_of(value)]),
            frozenset([(of, by) for of, by in numbers.items() if of.variables <= read]))


def inlined_statements(stmts: tuple[Stmt, ...], fresh: Callable[[str], str], arrays: Mapping[str, str],
                       numbers: Mapping[Node, Expr]) -> tuple[Stmt, ...]:
    """Statements over other arrays, sizes and scalars. `fresh`: a name that is free, from the one that they declare."""
    inlined = _Inlined(arrays, numbers)
    inlined.declare([n for s in stmts for n in s.walk()], fresh)
    return tuple([inlined.go(s) for s in stmts])


class _Inlined:
    """One value in terms of the caller. Its axes get the table's names; what a nest declares gets names that the
    caller does not use."""

    def __init__(self, arrays: Mapping[str, str], numbers: Mapping[Any, Expr]) -> None:
        self.arrays, self.numbers = dict(arrays), dict(numbers)
        self.names: dict[str, str] = {}                      # of axes, loops, lets and locals
        self.memo: dict[Node, Any] = {}

    def value(self, value: Value, table: ValueTable) -> Value:
        fresh = table.axis_names
        for role, make in (("axes", fresh.axes), ("over", fresh.over)):
            old: Sequence[Axis] = getattr(value, role, ())
            self.names |= {a.name: b.name for a, b in zip(old, make([a.extent for a in old]), strict=True)}
        if isinstance(value, Nest):
            self.declare(value.walk(), Names(table.names.taken).fresh)
        inlined: Value = self.go(value)
        return inlined

    def declare(self, nodes: Iterable[Node], fresh: Callable[[str], str]) -> None:
        """Fresh names for what statements declare."""
        for n in nodes:
            if isinstance(n, For | Let | Local | Out) and n.name not in self.names:
                self.names[n.name] = fresh(n.name)

    def go(self, n: Node) -> Any:
        if n not in self.memo:
            self.memo[n] = self.changed(n)
        return self.memo[n]

    def changed(self, n: Node) -> Any:
        if n in self.numbers:
            return self.numbers[n]
        new = n.map(self.go)
        match new:
            case Axis(name=name) | Var(name=name) | For(name=name) | Let(name=name) | Local(name=name) if (
                    name in self.names):
                return new.replace(name=self.names[name])
            case Scan(axis=name):
                return new.replace(axis=self.names[name])
            case Scatter(source=source):
                return new.replace(source=self.arrays.get(source, source))
            case Out(name=name, source=source):
                return new.replace(name=self.names.get(name, name), source=self.arrays.get(source, source))
            case Read(buffer=name, index=index):
                return new.replace(buffer=self.arrays.get(name, name), index=tuple([canonical(i) for i in index]))
            case Aref(buffer=name) | Vref(buffer=name) | Address(buffer=name):
                return new.replace(buffer=self.names.get(name) or self.arrays.get(name, name))
        return new
