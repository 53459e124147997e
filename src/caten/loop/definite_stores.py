"""Definite assignment: the elements that a body certainly sets. Each store is described from outside its loops and
conditions.

A store counts if only loops and conditions over unchanged values enclose it, or if both arms of a condition make it.
Its index is a form over what is known outside and over iteration numbers, whose names contain a dot.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from ..core.dtypes import is_integer
from ..core.expr import Expr, Var
from ..core.node import substitute
from ..frozen import frozen
from .affine import Linear, constant, expression, of_atom
from .context import Context
from .effects import reads, written
from .statements import Aref, For, If, Let, Setf, Stmt

MOST_NODES = 64                # of a substituted value

Values = Mapping[Expr, Linear]


@frozen
class Count:
    """The number of an iteration, from 0. `limits` are ≥ 0 for iterations that run. `last`: the greatest, if simple."""

    var: Var
    limits: tuple[Linear, ...]
    last: Linear | None


@frozen
class Store:
    """For all iterations `counts`, where the guards hold (or do not), element `index` of the buffer is set."""

    buffer: str
    index: tuple[Linear, ...]
    counts: tuple[Count, ...] = ()
    guards: tuple[tuple[Expr, bool], ...] = ()

    def replaced(self, values: Values) -> Store:
        """Substitute values for names."""
        def new(form: Linear) -> Linear:
            return replaced(form, values)
        return Store(self.buffer, tuple(map(new, self.index)),
                     tuple([Count(c.var, tuple(map(new, c.limits)), None if c.last is None else new(c.last))
                            for c in self.counts]),
                     tuple([(_in_expression(cond, values), holds) for cond, holds in self.guards]))

    def exprs(self) -> Iterable[Expr]:
        """The atoms of its forms, and its conditions."""
        for form in (*self.index, *[f for c in self.counts for f in c.limits]):
            yield from form.atoms()
        for cond, _ in self.guards:
            yield cond

    def given(self, cond: Expr, holds: bool) -> Store:
        return Store(self.buffer, self.index, self.counts, (*self.guards, (cond, holds)))

    def named_by_depth(self) -> Store:
        """The store with its iteration numbers named by nesting depth: equal for loops that differ in name only."""
        names = {c.var: Var(f"{n}.", "i64") for n, c in enumerate(self.counts)}
        new = self.replaced({old: of_atom(name) for old, name in names.items()})
        return Store(new.buffer, new.index, tuple([Count(names[c.var], c.limits, c.last) for c in new.counts]),
                     new.guards)


def replaced(form: Linear, values: Values) -> Linear:
    """The form with values for names, also inside its atoms."""
    total = constant(form.constant)
    for m, c in form.terms.items():
        part = constant(c)
        for atom in m:
            part = part.times(values[atom] if atom in values else of_atom(_in_expression(atom, values)))
        total = total + part
    return total


def _in_expression(expr: Expr, values: Values) -> Expr:
    if not any(n in values for n in expr.unique() if isinstance(n, Expr)):
        return expr
    new: Expr = substitute(expr, {name: expression(form, name.dtype) for name, form in values.items()})
    return new


def inside(stores: Iterable[Store], loop: For, context: Context, before: Var | None = None) -> list[Store]:
    """The stores of a loop body as seen before the loop, where `context` holds, or from an iteration: those of all
    `before` it."""
    lo, hi, step = context.linear(loop.lo), context.linear(loop.hi), context.linear(loop.step)
    if not step.is_constant or step.constant == 0:
        return []
    by, count = step.constant, Var(loop.name + ".w", "i64")
    at = lo + of_atom(count).scaled(by)
    end = hi if before is None else of_atom(before)
    limit = (end - at).shifted(-1) if by > 0 else (at - end).shifted(-1)
    room = (end - lo).scaled(1 if by > 0 else -1).shifted(-1)
    last = room if abs(by) == 1 else constant(room.constant // abs(by)) if room.is_constant else None
    found = [s.replaced({Var(loop.name, "i64"): at}) for s in stores]
    return [Store(s.buffer, s.index, (Count(count, (limit,), last), *s.counts), s.guards) for s in found]


def _is_short(expr: Expr) -> bool:
    """True if the expression is short when written out."""
    return next(islice(expr.walk(), MOST_NODES, None), None) is None


class Stores:
    """Collects the stores of a body to the `buffers`. `stable`: memory that the body does not change. `within`: for
    each loop, the stores of one iteration. `possible`: every store, definite or not, with its context."""

    def __init__(self, body: tuple[Stmt, ...], buffers: Iterable[str], memory: Iterable[str]):
        self.buffers = frozenset(buffers)
        self.stable = frozenset(memory) - written(body)
        self.within: dict[str, list[Store]] = {}
        self.possible: list[tuple[Context, Aref]] = []
        self.lets: dict[Expr, Linear] = {}
        self.conditions: dict[Expr, Expr] = {}

    def block(self, stmts: Sequence[Stmt], context: Context, names: frozenset[str]) -> list[Store]:
        """The definite stores of a list of statements. `names`: those visible outside the list."""
        found: list[Store] = []
        for stmt in stmts:
            found += self.statement(stmt, context, names)
            context = context.after(stmt)
        return [s for s in found if all(self.is_steady(e, names) for e in s.exprs())]

    def statement(self, stmt: Stmt, context: Context, names: frozenset[str]) -> list[Store]:
        match stmt:
            case Setf(Aref(buffer, index) as ref) if buffer in self.buffers:
                self.possible.append((context, ref))
                store = Store(buffer, tuple([context.linear(i) for i in index])).replaced(self.lets)
                return [store] if all(self.is_steady(e) for e in store.exprs()) else []
            case Let(name, dtype, value):
                form = replaced(context.linear(value), self.lets) if is_integer(dtype) else None
                if form is not None and all(self.is_steady(a) and _is_short(a) for a in form.atoms()):
                    self.lets[Var(name, dtype)] = form
                elif dtype == "bool" and self.is_steady(value) and _is_short(condition := self.condition(value)):
                    self.conditions[Var(name, dtype)] = condition
            case For(name, _, _, _, _, body):
                new = self.block(body, context.inside(stmt), names | {name})
                self.within[name] = new
                return [s.replaced(self.lets) for s in inside(new, stmt, context)]
            case If(cond, then, otherwise):
                cond = self.condition(cond)
                yes = self.block(then, context.given(cond), names)
                no = self.block(otherwise, context.given(cond, False), names)
                both = {s.named_by_depth() for s in no}
                sure = [s for s in yes if s.named_by_depth() in both]
                if self.is_steady(cond):
                    sure += [s.given(cond, True) for s in yes] + [s.given(cond, False) for s in no]
                return sure
        return []

    def condition(self, cond: Expr) -> Expr:
        """The condition with values substituted for its names."""
        new: Expr = substitute(cond, {**self.conditions,
                                      **{name: expression(form, name.dtype) for name, form in self.lets.items()}})
        return new

    def is_steady(self, expr: Expr, names: frozenset[str] | None = None) -> bool:
        """True if the expression has one value throughout: unchanged memory, `names` and iteration numbers only."""
        return reads(expr) <= self.stable and (names is None or all("." in n or n in names for n in expr.variables))


