"""Indices that are checked (`inside`), without their checks: of accesses, which loops and passes check again, and of
numbers, whose check is all that they have. `np.arange(N)[k]` is such a number: k, in [0, N)."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.expr import Expr, Op, index
from ..core.node import Node
from ..core.program import Target
from .index_maps import axes_of
from .values import Compute, Define, Inside, Named, Nest, Pieces, Read, TensorProgram, ValueTable


def unchecked(program: TensorProgram) -> TensorProgram:
    """The program with indices as they are, without what checks them."""
    return _changed(program, stripping())


def unchecked_accesses(program: TensorProgram) -> TensorProgram:
    """The same, but an index that is checked and used as a number, an element of `np.arange(N)`, stays so. Not for
    devices: their threads check accesses only, and the values would become loops."""
    return unchecked(program) if _is_for_device(program) else _with_numbers(program, lambda n: n)


def with_places(program: TensorProgram) -> TensorProgram:
    """The program with elements of arrays of places, 0 to N - 1, for indices that are checked and used as numbers:
    loops check accesses. Not for devices."""
    if _is_for_device(program):
        return program
    table, strip = ValueTable(program), stripping()
    made: dict[Expr, Define] = {}

    def place(n: Inside) -> Expr:
        if n.extent not in made:
            axes = table.axis_names.axes((n.extent,))
            made[n.extent] = Define((table.names.fresh("places"),), Compute("i64", axes, axes[0].var))
        return Read(made[n.extent].name, (strip(n.index),), "i64")
    whole = _with_numbers(program, place)
    if not made:
        return program
    named = [Named(d.name, d.name, tuple([a.name for a in axes_of(d.value)])) for d in made.values()]
    return whole.replace(clauses=(*named, *made.values(), *whole.clauses))


def _is_for_device(program: TensorProgram) -> bool:
    target = program.first(Target)
    return target is not None and bool(target.machine.groups)


def _with_numbers(program: TensorProgram, number: Callable[[Inside], Expr]) -> TensorProgram:
    """The program with what `number` makes of checked indices that are used as numbers; all others are stripped."""
    memo: dict[Node, Node] = {}
    strip = stripping()

    def go(n: Node) -> Any:
        if n not in memo:
            match n:
                case Inside():
                    memo[n] = number(n)
                case Read():
                    memo[n] = strip(n)
                case Pieces() if n.is_check:
                    at, e = go(n.at), go(n.arms[0])
                    memo[n] = n.replace(at=at, arms=(e,)) if isinstance(at, Inside) else evaluated(at, e)
                case Pieces():
                    at = strip(n.at) if _check_each_other(strip(n)) else go(n.at)
                    memo[n] = n.replace(at=at, arms=tuple(map(go, n.arms)), bounds=tuple(map(strip, n.bounds)))
                case _:
                    memo[n] = n.map(go)
        return memo[n]

    def changed(value: Node) -> Any:
        parts = {} if isinstance(value, Nest) else {
            name: go(getattr(value, name)) for name in ("cond", "expr") if hasattr(value, name)}
        return strip(value).replace(**parts)
    return _changed(program, changed)


def _check_each_other(n: Pieces) -> bool:
    """Are indices before the first piece and behind the last one outside of what these read? Those of `np.stack` are
    the same for each index."""
    return all(any(isinstance(r, Read) and any(n.at in i.unique() for i in r.index) for r in arm.unique())
               for arm in (n.arms[0], n.arms[-1]))


def _changed(program: TensorProgram, change: Callable[[Node], Any]) -> TensorProgram:
    """The program with its values changed."""
    return program.replace(clauses=tuple([c.map(change) if isinstance(c, Define) else c for c in program.clauses]))


def stripping() -> Callable[[Node], Any]:
    """A function that gives expressions and values with indices as they are."""
    memo: dict[Node, Any] = {}

    def go(n: Node) -> Any:
        if n not in memo:
            match n:
                case Inside():
                    memo[n] = go(n.index)
                case Pieces() if n.is_check:
                    memo[n] = go(n.arms[0])
                case _:
                    memo[n] = n.map(go)
        return memo[n]
    return go


def evaluated(at: Expr, e: Expr) -> Expr:
    """An expression that is computed after a number, whatever this is: its accesses are checked."""
    return Op("where", (Op("lt", (at, index(0))), e, e))
