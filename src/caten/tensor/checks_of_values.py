"""The checks of a body over whole arrays: what every call must satisfy at entry, and a proof that all its accesses are
in bounds then."""
from __future__ import annotations

from collections.abc import Sequence

from ..core.expr import TRUE, Expr, Op, Var
from ..core.program import Scalar
from ..frontend.op import OpProgram
from ..loop.accesses import is_inside
from ..loop.bounds_checks import FURTHEST
from ..loop.context import Context
from ..loop.entry_checks import entry_rows
from ..loop.run_time_checks import CheckRows
from ..loop.statements import ONE, ZERO, For
from .plain_loops import unchecked
from .values import Axis, Define, Nest, Pieces, Read, Reduce, Scatter, TensorProgram, shapes_of

Extents = tuple[Expr, ...]


def checked_values(values: TensorProgram) -> OpProgram | None:
    """The operator with its checks at entry, if they imply that every access is in bounds; else None. Raises CatenError
    E402 for a condition that contradicts bound sizes."""
    values = unchecked(values)
    rows = CheckRows(values)
    for cond, text in entry_rows(values, _scalars_in_indices(values)):
        rows.ensure(cond, text)
    rows.refuse_contradictions()
    proofs = _Proofs(values, Context.of(rows.program))
    if rows.guards_indices and not all(map(proofs.covers, values.definitions)):
        return None
    clauses = values.clauses
    at = next(n for n, c in enumerate(clauses) if isinstance(c, Define))
    return OpProgram(values.name, (*clauses[:at], *rows.facts(), *clauses[at:]))


def _scalars_in_indices(values: TensorProgram) -> set[str]:
    """The scalars on which an index or an extent depends, also through values without axes."""
    scalars = {s.name for s in values.all(Scalar)}
    if not scalars:
        return set()
    sources = {d.name: d.value for d in values.definitions if shapes_of(d.value)[0] == ()}
    roots: list[Expr] = []
    for n in (n for d in values.definitions for n in d.value.unique()):
        roots += n.index if isinstance(n, Read | Scatter) else (n.extent,) if isinstance(n, Axis) else ()
    found: set[str] = set()
    while roots:
        nodes = roots.pop().unique()
        names = {n.name if isinstance(n, Var) else n.buffer for n in nodes if isinstance(n, Var | Read)}
        roots += [e for name in names - found if name in sources for e in sources[name].children if isinstance(e, Expr)]
        found |= names
    return found & scalars


class _Proofs:
    """Proofs that accesses are in bounds. Equal accesses of several values are proven once."""

    def __init__(self, values: TensorProgram, context: Context) -> None:
        self.entry = context
        self.shapes: dict[str, Extents] = {b.name: b.shape for b in values.buffers.values()}
        for d in values.definitions:
            self.shapes |= zip(d.names, shapes_of(d.value), strict=True)
        self.known: dict[tuple[object, ...], bool] = {}

    def covers(self, d: Define) -> bool:
        """Is every access of a definition in bounds? False for loops with an order, whose accesses have not been
        looked at."""
        value = d.value
        if isinstance(value, Nest):
            return False
        axes: tuple[Axis, ...] = (*getattr(value, "axes", ()), *(value.over if isinstance(value, Reduce) else ()))
        context = self.entry
        for axis in axes:
            least, most = context.interval(context.linear(axis.extent))
            if least < -FURTHEST or most > FURTHEST:
                return False
            context = context.inside(For(axis.name, ZERO, axis.extent, ONE, "serial", ()))
        cond: Expr = getattr(value, "cond", TRUE)
        walk = _Walk(self, axes, context)
        if not walk.expr(cond, ()):
            return False
        given = () if cond is TRUE else ((cond, True),)
        if isinstance(value, Scatter) and not (all(walk.expr(i, given) for i in value.index)
                                               and walk.inside(value.index, value.shape, given)):
            return False
        expr: Expr = getattr(value, "expr", TRUE)
        return walk.expr(expr, given)


Given = tuple[tuple[Expr, bool], ...]


class _Walk:
    """The accesses of one value, each under the conditions of the choices around it."""

    def __init__(self, proofs: _Proofs, axes: tuple[Axis, ...], context: Context) -> None:
        self.proofs, self.axes, self.context = proofs, axes, context
        self.done: dict[tuple[Expr, Given], bool] = {}

    def expr(self, e: Expr, given: Given) -> bool:
        """Are all reads of an expression in bounds?"""
        if (e, given) not in self.done:
            self.done[e, given] = self.reads(e, given)
        return self.done[e, given]

    def reads(self, e: Expr, given: Given) -> bool:
        match e:
            case Op("where", (cond, yes, no)):
                return (self.expr(cond, given) and self.expr(yes, (*given, (cond, True)))
                        and self.expr(no, (*given, (cond, False))))
            case Pieces():
                return self.expr(e.choice, given)
            case Read(buffer, index):
                return (all(self.expr(i, given) for i in index)
                        and self.inside(index, self.proofs.shapes[buffer], given))
        return all(self.expr(c, given) for c in e.children if isinstance(c, Expr))

    def inside(self, index: Sequence[Expr], shape: Extents, given: Given) -> bool:
        """Is the index inside the shape?"""
        key = (self.axes, given, tuple(index), shape)
        if key not in self.proofs.known:
            context = self.context
            for cond, holds in given:
                context = context.given(cond, holds)
            self.proofs.known[key] = all(is_inside(context, i, extent) for i, extent in zip(index, shape, strict=True))
        return self.proofs.known[key]
