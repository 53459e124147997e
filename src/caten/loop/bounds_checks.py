"""Bounds checks: each access of a body is proven in bounds, refused, or checked at run time as early as possible.

An index that is affine in the loops becomes a condition on the sizes, checked once at entry. One that depends on data
or on a condition becomes a guard `(if (not inside) ((fail n)))`, hoisted out of the loops on which it does not depend.
A loaded index gets a name first, so that the checked value is the value used.
"""
from __future__ import annotations

from typing import Any

from ..core.expr import Cast, Expr, Op, Var, index, number
from ..core.node import substitute
from .accesses import below, is_inside, is_outside
from .affine import constant, text_of
from .check_hoisting import REMEDY, Conditions, Frame, Site
from .context import Context
from .effects import reads, writes
from .entry_checks import entry_rows, overflowing, scalars_in_indices
from .integer_sets import Constraint
from .run_time_checks import CheckRows, body_text, from_end, negated_text
from .simplify import statement_field
from .statements import Aref, For, If, Incf, Let, Local, Setf, Stmt

FURTHEST = 1 << 61             # greatest bound and step of a loop


def add_checks(op: Any) -> Any:
    """The program with `ensure` and `check` facts and guards: a call that would access outside an array fails instead.
    Raises CatenError E400 for an access always out of bounds, E401 for a step of 0, E402 for a condition that
    contradicts bound sizes."""
    checks = _Walk(op)
    field_of = {id(c): f for c in op.clauses if (f := statement_field(c))}
    bodies = [getattr(c, field_of[id(c)]) for c in op.clauses if id(c) in field_of]
    for body in bodies:
        for cond, text in entry_rows(op, scalars_in_indices(body)):
            checks.ensure(cond, text)
    checks.refuse_contradictions()
    while True:
        checks.start()
        new = [checks.block(body, Context.of(checks.program), ()) for body in bodies]
        if not checks.again:
            break
    done = iter(new)
    clauses = [c.replace(**{field_of[id(c)]: next(done)}) if id(c) in field_of else c for c in op.clauses]
    at = next((k for k, c in enumerate(op.clauses) if id(c) in field_of), len(clauses))
    return op.replace(clauses=(*clauses[:at], *checks.facts(), *clauses[at:]))


class _Walk(CheckRows):
    """The walk that inserts the checks."""

    def block(self, stmts: tuple[Stmt, ...], context: Context, frames: tuple[Frame, ...]) -> tuple[Stmt, ...]:
        done: list[Stmt] = []
        held: dict[Expr, Var] = {}
        for stmt in stmts:
            before: list[Stmt] = []
            new = self.statement(stmt, context, frames, before, held)
            for read in [read for read in held if not reads(read).isdisjoint(writes(new))]:
                del held[read]
            for part in (*before, new):
                done.append(part)
                context = context.after(part)
        return tuple(done)

    def statement(self, stmt: Stmt, context: Context, frames: tuple[Frame, ...], before: list[Stmt],
                  held: dict[Expr, Var]) -> Stmt:
        site = _Accesses(self, frames, before, context, held)
        match stmt:
            case For(name, lo, hi, step, mark, body):
                loop = For(name, site.expr(lo), site.expr(hi), site.expr(step), mark, body)
                self.check_step(loop, site)
                self.depths[name] = len(frames) + 1
                frame = Frame(loop, site.known(), before, held)
                body = self.block(body, site.known().inside(loop), (*frames, frame))
                self.check_range(loop, site)
                return loop.replace(lo=held.get(loop.lo, loop.lo), hi=held.get(loop.hi, loop.hi), body=body)
            case If(cond, then, otherwise):
                test = site.expr(cond)
                frame = Frame(If(test, then, otherwise), site.known(), before, held)
                yes = self.block(then, site.known().given(test), (*frames, frame))
                return If(test, yes, self.block(otherwise, site.known().given(test, False), (*frames, frame)))
            case Let(name, dtype, value):
                self.depths[name] = len(frames)
                new = site.expr(value)
                if dtype == "i64" and not reads(new):
                    self.lets[name] = self.expanded(site.known().linear(new))
                return Let(name, dtype, new)
            case Local(name, _, shape):
                self.shapes[name] = shape
                self.depths[name] = len(frames)
                return stmt
            case Setf(ref, value):
                return Setf(site.place(ref), site.expr(value), stmt.how)
            case Incf(ref, value, fn):
                return Incf(site.place(ref), site.expr(value), fn)
        return stmt

    def check_step(self, loop: For, site: Site) -> None:
        """A step of 0 never ends: an error if it is constant, a failing call if it is computed."""
        step = site.known().linear(loop.step)
        if step.is_constant:
            if step.constant == 0:
                raise self.error("E401", loop.name, f"the step of the loop over {loop.name} is 0",
                                 "a step is positive or negative")
            return
        cond = Op("ne", (loop.step, index(0)))
        if not site.known().proves(cond):
            text = f"the step {body_text(loop.step)} of the loop over {loop.name} is 0"
            site.check([(cond, None, constant(0))], (), self.spot(loop.name) + text, text, loop.step, loop.name)

    def check_range(self, loop: For, site: Site) -> None:
        """Check that start, end and step of a loop lie within ±2^61, so that no sum of them wraps around."""
        for what, value in (("start", loop.lo), ("end", loop.hi), ("step", loop.step)):
            known = site.known()
            lo, hi = known.interval(known.linear(value))
            if lo >= -FURTHEST and hi <= FURTHEST:
                continue
            cond = (index(-FURTHEST) <= value) & (value <= index(FURTHEST))
            if not known.proves(cond):
                text = f"the {what} {body_text(value)} of the loop over {loop.name} is outside [-2^61, 2^61]"
                site.check([(cond, None, constant(0))], (), self.spot(loop.name) + text, text, value, loop.name)


class _Accesses(Site):
    """Makes the accesses of one statement safe."""

    def __init__(self, checks: CheckRows, frames: tuple[Frame, ...], before: list[Stmt], context: Context,
                 held: dict[Expr, Var]):
        super().__init__(checks, frames, before, context, held)
        self.named: dict[tuple[Expr, Conditions], Var] = {
            (read, ()): name for frame in frames for read, name in frame.held.items()
            if reads(read).isdisjoint(writes(frame.stmt))}
        self.named |= {(read, ()): name for read, name in held.items()}

    def expr(self, expr: Any, conditions: Conditions = ()) -> Any:
        """The expression with its reads checked and loaded indices named."""
        if not reads(expr):
            return expr
        match expr:
            case Op("where", (cond, a, b)):
                test = self.expr(cond, conditions)
                return Op("where", (test, self.expr(a, (*conditions, (test, True))),
                                    self.expr(b, (*conditions, (test, False)))))
            case Aref():
                return self.place(expr, conditions)
        return expr.map(lambda child: self.expr(child, conditions))

    def place(self, ref: Any, conditions: Conditions = ()) -> Any:
        written, shape = text_of(ref), self.checks.shapes[ref.buffer]
        said = _said(ref, shape)
        ref = ref.map(lambda child: self.expr(child, conditions))
        for axis, (position, extent) in enumerate(zip(ref.index, shape, strict=True)):
            if reads(position):
                position = self.with_known_names(position, conditions)
                ref = ref.replace(index=(*ref.index[:axis], position, *ref.index[axis + 1:]))
            if is_inside(self.known(None, conditions), position, extent):
                continue
            if any(reads(a) for a in self.known(None, conditions).linear(position).atoms()):
                position = self.name_loads(position, conditions)
            ref = ref.replace(index=(*ref.index[:axis], position, *ref.index[axis + 1:]))
            self.check_index(written, *said[axis], position, extent, conditions)
        return ref

    def with_known_names(self, position: Expr, conditions: Conditions) -> Expr:
        """The index with the existing names for its loads."""
        for (read, under), name in self.named.items():
            if under == conditions[:len(under)]:
                position = substitute(position, {read: name})
        return position

    def name_loads(self, position: Expr, conditions: Conditions) -> Expr:
        """The index with a name for each value that it loads, so that nothing is loaded again after the check."""
        while reads(position):
            load = next(n for n in position.unique() if isinstance(n, Aref) and not any(reads(i) for i in n.index))
            read: Expr = next((n for n in position.unique() if isinstance(n, Cast) and n.arg is load
                               and n.type == "i64"), load)
            if (read, conditions) not in self.named:
                depth = self.hoisting_depth(load, conditions)
                let = Let(self.checks.fresh("ix"), read.dtype, _guarded(read, conditions))
                self.checks.depths[let.name] = depth
                self.insert(depth, let)
                self.named[read, conditions] = Var(let.name, read.dtype)
                if not conditions:
                    held = self.held if depth == len(self.frames) else self.frames[depth].held
                    held[read] = self.named[read, conditions]
            position = substitute(position, {read: self.named[read, conditions]})
        return position

    def hoisting_depth(self, load: Aref, conditions: Conditions) -> int:
        """The outermost depth for a load: hoisted while it stays in bounds, its array unwritten and its index
        defined."""
        depth = len(self.frames)
        while depth and not conditions:
            frame = self.frames[depth - 1]
            if (not isinstance(frame.stmt, For) or load.buffer in writes(frame.stmt)
                or not self.available(load, depth - 1)):
                break
            context = self.known(depth - 1)
            if not all(is_inside(context, i, n)
                       for i, n in zip(load.index, self.checks.shapes[load.buffer], strict=True)):
                break
            depth -= 1
        return depth

    def check_index(self, written: str, what: str, inside: str, position: Expr, extent: Expr,
                    conditions: Conditions) -> None:
        """Refuse an index that is always out of bounds; check one that may be. `what`: the index as the body has it;
        `inside`: where it has to be."""
        checks, known = self.checks, self.known(None, conditions)
        spot = checks.spot(written)
        if is_outside(known, position, extent) and not is_inside(known, position, extent) and not _never_runs(
                known, extent):
            raise checks.error("E400", written, f"{what} is outside {inside} whenever it runs", REMEDY)
        if not checks.guards_indices:
            return
        if products := [p for p in overflowing(known, position) if self.at_entry(p)]:
            for product in products:
                checks.ensure(product, f"{spot}{what} is too large to compute")
            checks.again = True
            return
        low, high = below(known, position, extent)
        sides = ((index(0) <= position, low, constant(0)), (position < extent, high, known.linear(extent).shifted(-1)))
        # a proof from loaded values may be out of the verifier's reach after further checks: use ranges alone
        shown = ((lambda form: known.interval(form)[0] >= 0) if any(reads(cond) for cond, _ in conditions)
                 else known.is_nonnegative)
        self.check([(cond, form, end) for cond, form, end in sides if not shown(form)], conditions,
                   f"{spot}{what} is outside {inside}", what, extent, written)


def _never_runs(known: Context, extent: Expr) -> bool:
    """Do the assumptions exclude each other? Then an access is outside, and inside, of an array of this extent: in the
    second iteration of a loop over N where N·N = N."""
    form = known.linear(extent)
    return known.excludes((Constraint(form.shifted(-1)),)) and known.excludes((Constraint(form.scaled(-1)),))


def _said(ref: Any, shape: tuple[Expr, ...]) -> list[tuple[str, str]]:
    """Each index of an access in the words of a message, and where it has to be. One that counts from the end where it
    is negative is said as it is written, and the access by its array then."""
    ends = [from_end(i, extent) for i, extent in zip(ref.index, shape, strict=True)]
    name = body_text(ref) if ends == [None] * len(ends) else ref.buffer
    return [(f"{name}: index {n} (= {body_text(i if end is None else end)})",
             f"[{0 if end is None else negated_text(extent)}, {body_text(extent)})")
            for n, (i, end, extent) in enumerate(zip(ref.index, ends, shape, strict=True), 1)]


def _guarded(read: Expr, conditions: Conditions) -> Expr:
    """The read, made only where its conditions hold."""
    for cond, holds in reversed(conditions):
        zero = number(0, read.dtype)
        read = Op("where", (cond, read, zero) if holds else (cond, zero, read))
    return read
