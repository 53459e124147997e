"""The checks of a body over whole arrays: what every call must satisfy at entry, a proof for each access that is in
bounds then, and run-time checks for the others.

    (define v0 (compute f32 ((i T)) (read X (inside (read k i) M 0))))
->  (define v0 (compute f32 ((i T)) (read X (inside (read k i) M 6))))
    (define v1 (reduce bool () ((p T)) or true (or (< (read k p) 0) (<= M (read k p)))))   (fail-if (read v1) 6)

The checks in loops do the same for loop nests (`loop.bounds_checks`).
"""
from __future__ import annotations

from collections.abc import Mapping

from ..core.expr import TRUE, Expr, Op, Var
from ..core.program import Ensure, Scalar, Target
from ..frontend.op import OpProgram
from ..loop.accesses import below, is_inside, is_outside
from ..loop.affine import canonical, text_of
from ..loop.bounds_checks import FURTHEST
from ..loop.context import Context
from ..loop.entry_checks import entry_rows, overflowing
from ..loop.run_time_checks import CheckRows, body_text, from_end, negated_text
from ..loop.statements import ONE, ZERO, Aref, For
from .checked_indices import stripping, unchecked_accesses
from .checks_as_values import Guard, define_checks, guard
from .index_maps import replaced
from .values import (
    Axis,
    Define,
    FailIf,
    Inside,
    Named,
    Nest,
    Output,
    Pieces,
    Read,
    Reduce,
    Scatter,
    TensorProgram,
    Value,
    ValueTable,
    reads_of,
    shapes_of,
)

Extents = tuple[Expr, ...]
Given = tuple[tuple[Expr, bool], ...]


def checked_values(values: TensorProgram) -> OpProgram | None:
    """The operator with its checks. None where only its loops can have them: for loops with an order, for a scatter
    whose places are computed, on devices, whose threads make their own checks. Raises CatenError E402 for a condition
    that contradicts bound sizes."""
    values = unchecked_accesses(values)
    rows = CheckRows(values)
    for cond, text in entry_rows(values, _scalars_in_indices(values)):
        rows.ensure(cond, text)
    rows.refuse_contradictions()
    facts = values.without(Define, FailIf, Output, Named).clauses
    if not rows.guards_indices:
        return OpProgram(values.name, (*facts, *rows.facts(), *values.all(Named), *values.definitions, *values.outputs))
    checks = _Checks(values, rows)
    try:
        made = tuple([d.replace(value=checks.value(d.value)) for d in values.definitions])
    except _NeedsLoops:
        return None
    target = values.first(Target)
    if checks.guards and target is not None and target.machine.groups:
        return None
    found = TensorProgram(values.name, (*facts, *rows.facts(), *checks.sizes))
    table = ValueTable(values)
    guards = [f for f, _ in define_checks(found, checks.guards, table)]
    return OpProgram(values.name, (*found.clauses, *values.all(Named), *made, *table.definitions, *guards,
                                   *values.outputs))


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


class _NeedsLoops(Exception):
    """The checks of loops are wanted."""


class _Checks:
    """The run-time checks so far. `guards`: of indices; `sizes`: under which an axis has elements. Equal accesses of
    several values are proven once, and equal indices have one check."""

    def __init__(self, values: TensorProgram, rows: CheckRows) -> None:
        self.rows, self.entry = rows, Context.of(rows.program)
        self.shapes: dict[str, Extents] = {b.name: b.shape for b in values.buffers.values()}
        for d in values.definitions:
            self.shapes |= zip(d.names, shapes_of(d.value), strict=True)
        self.names = {n.value: n.name for n in values.all(Named)}
        self.known: dict[tuple[object, ...], bool] = {}
        self.row_of: dict[tuple[object, ...], int] = {}
        self.strip = stripping()
        self.guards: list[Guard] = []
        self.sizes: list[Ensure] = []

    def value(self, value: Value) -> Value:
        """A value with checked indices where they are not proven to be in bounds."""
        if isinstance(value, Nest):
            raise _NeedsLoops
        axes: tuple[Axis, ...] = (*getattr(value, "axes", ()), *(value.over if isinstance(value, Reduce) else ()))
        context = self.entry
        for axis in axes:
            least, most = context.interval(context.linear(axis.extent))
            if least < -FURTHEST or most > FURTHEST:
                raise _NeedsLoops
            context = context.inside(For(axis.name, ZERO, axis.extent, ONE, "serial", ()))
        cond: Expr = getattr(value, "cond", TRUE)
        walk = _Walk(self, axes, context)
        new: dict[str, object] = {"cond": walk.expr(cond, ())} if cond is not TRUE else {}
        given = () if cond is TRUE else ((self.strip(cond), True),)
        if isinstance(value, Scatter) and not (
                all(walk.expr(i, given) is i for i in value.index)
                and all(walk.proves(i, extent, given) for i, extent in zip(value.index, value.shape, strict=True))):
            raise _NeedsLoops
        expr: Expr = getattr(value, "expr", TRUE)
        return value.replace(expr=walk.expr(expr, given), **new)

    def row(self, at: Expr, extent: Expr, checked: Expr, what: str, walk: _Walk, given: Given) -> int:
        """The row of a check of an index. `checked`: the index, with checked indices inside. `what`: whose index it is,
        "" if it is a number."""
        axes, context = walk.axes, walk.given(given)
        key = (axes, given, at, extent)
        if key in self.row_of:
            return self.row_of[key]
        if not reads_of(at) or overflowing(context, at) or is_outside(context, at, extent):
            raise _NeedsLoops                            # a condition on sizes, or refused
        low, high = below(context, at, extent)
        written = from_end(checked, extent)              # -N ≤ x < N, and not what x is from the end
        least, number = (ZERO, checked) if written is None else (canonical(-extent), written)
        sides = [cond for cond, form in ((Op("lt", (number, least)), low), (Op("le", (extent, number)), high))
                 if not context.is_nonnegative(form)]
        self.rows.rows.append((None, self.text(at, extent, what)))
        row = self.row_of[key] = len(self.rows.rows)
        under = [(walk.expr(cond, given[:n]), holds) for n, (cond, holds) in enumerate(given)]
        conds = [cond if holds else Op("not", (cond,)) for cond, holds in under]
        fails = sides[0] if len(sides) == 1 else Op("or", (sides[0], sides[1]))
        loops: Mapping[str, tuple[Expr, Expr]] = {a.name: (a.extent, TRUE) for a in axes}
        self.guards.append(guard(row, [*conds, fails], loops, [
            Op("lt", (ZERO, a.extent)) for a in axes if self.entry.proves(Op("lt", (ZERO, a.extent)))]))
        if not given:
            self.demand_elements(row, extent, axes)
        return row

    def demand_elements(self, row: int, extent: Expr, axes: tuple[Axis, ...]) -> None:
        """Of an axis without elements every index is outside: where it is certainly indexed, that is a condition on the
        sizes."""
        needed = Op("le", (ONE, extent))
        if self.entry.proves(needed):
            return
        for a in axes:
            if not self.entry.proves(Op("le", (ONE, a.extent))):
                needed = Op("or", (needed, Op("le", (a.extent, ZERO))))
        self.sizes.append(Ensure(row, needed))

    def text(self, at: Expr, extent: Expr, what: str) -> str:
        """The message of a check, with the names of the spec. An index from the end is said as it is written."""
        low, written = "0", from_end(at, extent)
        if written is not None:
            at, low = written, negated_text(extent)

        def named(r: Read) -> Expr:
            return Aref(self.names.get(r.buffer, r.buffer), r.index, r.type)
        said = body_text(text_of(replaced(at, named)))
        return f"{f'{what} (= {said})' if what else said} is outside [{low}, {body_text(extent)})"


class _Walk:
    """The accesses of one value, each under the conditions of the choices around it."""

    def __init__(self, checks: _Checks, axes: tuple[Axis, ...], context: Context) -> None:
        self.checks, self.axes, self.context = checks, axes, context
        self.done: dict[tuple[Expr, Given], Expr] = {}

    def expr(self, e: Expr, given: Given) -> Expr:
        """The expression with checked indices."""
        if (e, given) not in self.done:
            self.done[e, given] = self.checked(e, given)
        return self.done[e, given]

    def checked(self, e: Expr, given: Given) -> Expr:
        if isinstance(e, Pieces) and e.is_check and isinstance(e.at, Inside):
            at, extent = self.checks.strip(e.at), e.at.extent
            if not reads_of(at) and not self.proves(at, extent, given):
                raise _NeedsLoops
            self.expr(e.at, given)
            return self.expr(e.arms[0], given)
        if not reads_of(e):
            return e
        match e:
            case Op("where", (cond, yes, no)):
                plain = self.checks.strip(cond)
                return e.replace(args=(self.expr(cond, given), self.expr(yes, (*given, (plain, True))),
                                       self.expr(no, (*given, (plain, False)))))
            case Pieces(at, arms, bounds):
                below_ = [Op("lt", (self.checks.strip(at), bound)) for bound in bounds]
                before = [(*given, *[(cond, False) for cond in below_[:n]]) for n in range(len(arms))]
                parts = [self.expr(arm, (*before[n], *[(c, True) for c in below_[n:n + 1]]))
                         for n, arm in enumerate(arms)]
                checked = any(isinstance(n, Inside) for n in at.unique())
                return e.replace(at=self.expr(at, given) if checked else at, arms=tuple(parts))
            case Inside(at, extent):                     # a number: the check is all that it needs
                number = self.expr(at, given)
                if reads_of(at) and not self.proves(at, extent, given):
                    self.checks.row(at, extent, number, "", self, given)
                return number
            case Read(buffer, at):
                extents = self.checks.shapes[buffer]
                new = tuple([self.expr(i, given) for i in at])
                called = self.checks.names.get(buffer, buffer)
                return e.replace(index=tuple([
                    i if self.proves(at[n], extents[n], given)
                    else Inside(i, extents[n], self.checks.row(at[n], extents[n], i, f"{called}: index {n + 1}", self,
                                                               given)) for n, i in enumerate(new)]))
        return e.map(lambda child: self.expr(child, given) if isinstance(child, Expr) else child)

    def given(self, conds: Given) -> Context:
        """What is known under the conditions."""
        context = self.context
        for cond, holds in conds:
            context = context.given(cond, holds)
        return context

    def proves(self, at: Expr, extent: Expr, given: Given) -> bool:
        """Is an index shown to be in bounds?"""
        key = (self.axes, given, at, extent)
        if key not in self.checks.known:
            self.checks.known[key] = is_inside(self.given(given), at, extent)
        return self.checks.known[key]


__all__ = ["checked_values"]
