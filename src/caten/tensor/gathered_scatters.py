"""Scatters by add whose index can be inverted, as sums: a transposed convolution is a convolution, and the filters of a
grouped one are an axis.

    y[2 · i + p] += x[i] · w[p]      ->      y[b] = t[b mod 2, b // 2],  t[φ, q] = Σ_p x[q - p] · w[2 · p + φ]
    y[C · g + c] += e(g, c)          ->      y[b] += e(b // C, b mod C)

A sum has its results in registers and shares no memory among threads, and it may be a product. Not where most of its
terms would be skipped, as for the places between elements, not for a step that is not known, and not where what is
added to is an array of the caller, of which a part may stay as it is. This is done after gradients are taken, for those
of a scatter are simpler.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..core.expr import Const, Expr, Op, Var, index
from ..core.node import substitute
from ..core.program import Fusion, InOrder
from ..core.unique_names import Names
from ..loop.affine import canonical, linear
from ..loop.context import Context
from .canonical_values import canonical_values
from .gathering import Gathering
from .index_inversion import digits, is_one
from .phases import in_phases
from .products import values_of
from .values import (
    Axis,
    AxisNames,
    Compute,
    Define,
    FusedKernel,
    Inside,
    Read,
    Reduce,
    Scatter,
    TensorProgram,
    Value,
    reads_of,
)


def with_gathered_scatters(program: TensorProgram) -> TensorProgram:
    """The program with sums in the place of scatters, in canonical form; but what requests to fusion name keeps its
    names."""
    if program.first(InOrder) is not None or program.first(FusedKernel) is not None or not any(
            isinstance(d.value, Scatter) for d in program.definitions):
        return program
    scatters = _Scatters(program)
    made = program.replace(clauses=tuple([n for clause in program.clauses for n in (
        scatters.gathered(clause) if isinstance(clause, Define) else (clause,))]))
    return made if made is program or program.first(Fusion) is not None else canonical_values(made)


class _Scatters:
    def __init__(self, program: TensorProgram) -> None:
        self.names, self.context = Names.of(program), Context.of(program)
        self.values = values_of(program)
        self.axis_names = AxisNames(self.names.taken)
        self.made: list[Define] = []

    def define(self, value: Value) -> str:
        name = self.names.fresh("v")
        self.made.append(Define((name,), value))
        return name

    def gathered(self, d: Define) -> tuple[Define, ...]:
        """The definitions that a scatter becomes; it itself where it stays."""
        value = d.value
        if not isinstance(value, Scatter) or value.fn != "add" or any(
                isinstance(n, Inside) or reads_of(n) for n in value.index) or value.source not in self.values:
            return (d,)
        element = self.axis_names.axes(value.shape)
        if not _is_dense(value, element):
            return (d,)
        self.made = []
        total = Gathering(self.axis_names, self.context, self.define).total(
            value.index, value.axes, element, value.cond, value.expr, value.type)
        if total is None or any(_skips(new.value) for new in self.made):
            return (d,)
        at = tuple([a.var for a in element])
        sum_: Expr = Read(total, at, value.type)
        if not _is_zero(self.values[value.source]):
            sum_ = Op("add", (Read(value.source, at, value.type), sum_))
        return (*self.made, Define(d.names, Compute(value.type, element, sum_)))


def _is_dense(value: Scatter, element: Sequence[Axis]) -> bool:
    """Is something added to most elements, and by few iterations of the loops to each? So it is if the loops go through
    each axis one by one, each for itself or one of them in a window, and if the step of windows is a known number."""
    ones: dict[Expr, Expr] = {a.var: index(0) for a in value.axes if is_one(a.extent)}
    phased = in_phases([canonical(substitute(i, ones)) for i in value.index], value.axes, element, value.expr)
    phases = len(phased.dimensions) if phased is not None else 0
    at, axes = (phased.at[phases:], phased.axes[phases:]) if phased is not None else (value.index, value.axes)
    others = {a.var: a for a in axes if a.var not in ones}
    return all(_goes_through(canonical(substitute(e, ones)), others) for e in at)


def _goes_through(e: Expr, axes: Mapping[Var, Axis]) -> bool:
    form = linear(e)
    names = {v.name for v in axes}
    if any(isinstance(atom, Op) and atom.variables & names for m in form.terms for atom in m):
        return False
    parts = {v: form.coefficient(v) for v in axes if v.name in e.variables}
    is_window = len(parts) <= 2 and all(c.is_constant and abs(c.constant) == 1 for c in parts.values())
    return is_window or bool(digits(parts, axes))


def _is_zero(value: Value) -> bool:
    return isinstance(value, Compute) and isinstance(value.expr, Const) and value.expr.value == 0


def _skips(value: Value) -> bool:
    """Has a sum conditions under which it has only some of its terms, those of a remainder?"""
    cond = value.cond if isinstance(value, Reduce) else value.expr if isinstance(value, Compute) else None
    return cond is not None and any(isinstance(n, Op) and n.fn == "eq" and n.args[0].dtype == "i64"
                                    for n in cond.unique())
