"""Late division: a contraction of quotients by a softmax sum is divided once, after the sum (rule A).

    O[i, j] = sum over p of E[i, p] / s[i] * V[p, j]      ->      O[i, j] = (sum over p of E[i, p] * V[p, j]) / s[i]

A factor that does not depend on the summed axes leaves the sum. This costs two more roundings, and differs where s is 0
or infinite. So it is done only where s is a sum over exp(x - max x), which is at least 1 or NaN by its form, and only
if sums may be reassociated. FlashAttention (Dao et al. 2022) divides late for the same reason: the division is not in
the innermost loop, and a running result can be rescaled.
"""
from __future__ import annotations

from collections.abc import Iterator

from ..core.expr import TRUE, Const, Expr, Op, index, number
from ..core.program import InOrder
from ..core.unique_names import Names
from .fusion import is_contraction
from .fusion_requests import values_asked_for
from .products import Values, factors, is_free_of, is_softmax_sum, product, values_of
from .values import Compute, Define, FusedKernel, Named, Read, Reduce, TensorProgram, operands_of


def divided_late(program: TensorProgram) -> TensorProgram:
    """The program with divisions by softmax sums after the contractions that read the quotients."""
    if program.first(InOrder) is not None or program.first(FusedKernel) is not None:
        return program
    values, names, asked = values_of(program), Names.of(program), values_asked_for(program)
    clauses: list[object] = []
    for clause in program.clauses:
        made = _divided(clause, values, asked, names) if isinstance(clause, Define) else None
        clauses += made or (clause,)
        if made is not None:
            named = next((n for n in program.all(Named) if n.value == made[1].name), None)
            clauses += [Named(made[0].name, named.name, named.axes)] if named is not None else []
    if len(clauses) == len(program.clauses):
        return program
    return _used(program.replace(clauses=tuple(clauses)))


def _divided(define: Define, values: Values, asked: frozenset[str], names: Names) -> tuple[Define, Define] | None:
    """A contraction and the map that divides it, if a division may leave the sum. `asked`: values that requests to
    fusion name, and which stay as they are."""
    value = define.value
    if not isinstance(value, Reduce) or not is_contraction(value) or value.cond is not TRUE:
        return None
    parts = factors(value.expr, {name: v for name, v in values.items() if name not in asked})
    outside = [e for e, divides in parts if divides and isinstance(e, Read) and is_free_of(e, value.over)
               and is_softmax_sum(e, values)]
    inside = [(e, divides) for e, divides in parts if e not in outside]
    if not outside or not inside or inside[0][1]:
        return None
    inner = names.fresh(f"{define.name}_sum")
    whole: Expr = Read(inner, tuple([a.var for a in value.axes]), value.type)
    for e in outside:
        whole = Op("div", (whole, e))
    for extent in _may_be_empty(value):
        whole = Op("where", (Op("lt", (index(0), extent)), whole, number(0.0, value.type)))
    return (Define((inner,), value.replace(expr=product(inside))),
            Define(define.names, Compute(value.type, value.axes, whole)))


def _may_be_empty(value: Reduce) -> Iterator[Expr]:
    """The extents of summed axes that may be 0 while there are elements: a sum of nothing is 0, not 0 / 0."""
    own = {a.extent for a in value.axes}
    for axis in value.over:
        if axis.extent not in own and not (isinstance(axis.extent, Const) and axis.extent.value > 0):
            yield axis.extent


def _used(program: TensorProgram) -> TensorProgram:
    """The program without maps that nothing reads."""
    needed, unused = set(program.results), set[Define]()
    for d in reversed(program.definitions):
        if isinstance(d.value, Compute) and d.name not in needed:
            unused.add(d)
        else:
            needed.update(operands_of(d.value))
    return program.replace(clauses=tuple([c for c in program.clauses if c not in unused]))
