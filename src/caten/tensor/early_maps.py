"""Maps that finish a contraction, but whose elements have other places than its results: the map comes first.

    y[b] = tanh(t[b mod 2, b // 2])      ->      s[φ, q] = tanh(t[φ, q]),  y[b] = s[b mod 2, b // 2]

The map is computed with the contraction, in vectors, and what remains is a view, which readers of y take as it is, or a
copy. Between remainders of an index, nothing is in vectors. Not where the map reads another array at the places of y.
"""
from __future__ import annotations

from collections.abc import Mapping

from ..core.dtypes import is_float
from ..core.expr import Expr, Op, Var, number
from ..core.node import Node, substitute
from ..core.program import InOrder
from ..core.unique_names import Names
from .fusion import is_contraction
from .fusion_requests import values_asked_for
from .products import values_of
from .values import Compute, Define, FusedKernel, Inside, Read, Reduce, TensorProgram, Value, operands_of, reads_of


def with_early_maps(program: TensorProgram) -> TensorProgram:
    """The program with maps before the places of their elements."""
    if program.first(InOrder) is not None or program.first(FusedKernel) is not None:
        return program
    values, names = values_of(program), Names.of(program)
    stored = values_asked_for(program) | frozenset(program.results)
    readers: dict[str, set[str]] = {}
    for d in program.definitions:
        for name in operands_of(d.value):
            readers.setdefault(name, set()).add(d.name)
    clauses: list[Node] = []
    for clause in program.clauses:
        found = _finished(clause.value, values) if isinstance(clause, Define) else None
        if found is None or found[0].buffer in stored or len(readers[found[0].buffer]) > 1:
            clauses.append(clause)
            continue
        (source, early), name = found, names.fresh("v")
        assert isinstance(clause, Define)
        clauses += [Define((name,), early), clause.replace(value=clause.value.replace(
            expr=source.replace(buffer=name, type=early.type)))]
    return program.replace(clauses=tuple(clauses)) if len(clauses) > len(program.clauses) else program


def _finished(value: Value, values: Mapping[str, Value]) -> tuple[Read, Compute] | None:
    """The only element of a contraction that a map reads, at parts of its axes, and the map over its axes."""
    if not isinstance(value, Compute) or isinstance(value.expr, Read) or not is_float(value.type):
        return None
    found = {r: made for r in reads_of(value)
             if isinstance(made := values.get(r.buffer), Reduce) and is_contraction(made)}
    for source, made in found.items() if len(found) == 1 else ():
        early = _early(value, source, made) if any(isinstance(i, Op) for i in source.index) else None
        if early is not None:
            return source, early
    return None


def _early(value: Compute, source: Read, made: Reduce) -> Compute | None:
    """The map over the axes of the contraction; None where it depends on the places of its elements."""
    along = {i: a for i, a in zip(source.index, made.axes, strict=True) if isinstance(i, Var)}
    new: dict[Expr, Expr] = {a.var: along[a.var].var for a in value.axes
                             if a.var in along and along[a.var].extent is a.extent}
    rest = substitute(value.expr, {source: number(0.0, source.dtype)})
    others = {a.name for a in value.axes if a.var not in new}
    if not others.isdisjoint(rest.variables) or any(isinstance(n, Inside) for n in rest.unique()):
        return None
    new[source] = source.replace(index=tuple([a.var for a in made.axes]))
    return Compute(value.type, made.axes, substitute(value.expr, new))
