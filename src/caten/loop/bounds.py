"""Run-time checks: every access of a spec's body is proven in bounds, refused, or checked as early as it can be.

An index that is affine in the loops becomes a condition on the sizes, checked once at entry; one that depends on data or on a condition becomes a
guard `(if (not inside) ((fail n)))`, hoisted out of the loops that it does not depend on. A loaded index gets a name first: what is used is what
was checked.
"""
from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..core.expr import TRUE, Cast, Const, Expr, Op, Var, index, number
from ..core.node import Node, substitute
from ..core.program import At, Buffer, Check, Ensure, Param, Program, Source, Unchecked
from ..errors import CatenError, Place, error
from .accesses import below, is_inside, is_outside
from .affine import Linear, constant, expression, text_of
from .context import Context
from .effects import reads, writes
from .entry import comparison, entry_rows, overflowing
from .simplify import statement_field
from .statements import Aref, Fail, For, If, Incf, Let, Local, Setf, Stmt

_REMEDY = "correct the bounds of the loops, the index, or the shape"

# A condition, the form that is ≥ 0 exactly when it holds, and what the index is there: the form itself (0), or this minus the form.
Need = tuple[Expr, Linear | None, Linear]
Conditions = tuple[tuple[Expr, bool], ...]      # of the `where`s around an access


def add_checks(op: Any) -> Any:
    """The program with `ensure` and `check` facts and guards, so that a call that would leave an array fails instead. Raises CatenError E400
    where an access is outside whenever it runs, E401 for a step of 0, E402 for a condition that the bound sizes contradict."""
    checks = _Checks(op)
    field_of = {id(c): f for c in op.clauses if (f := statement_field(c))}
    bodies = [getattr(c, field_of[id(c)]) for c in op.clauses if id(c) in field_of]
    for body in bodies:
        for cond, text in entry_rows(op, body):
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


@dataclass(frozen=True)
class _Frame:
    """A loop or branch around a statement: what is known before it, and what is put there."""

    stmt: For | If
    context: Context
    before: list[Stmt] = field(default_factory=list)


class _Checks:
    """The rows so far, and the walk that finds where they are needed."""

    def __init__(self, program: Program):
        self.original = program
        self.rows: list[tuple[Expr | None, str]] = []         # row n - 1: the condition of an `ensure`, None for a guard in the body
        self.kept = 0
        self.again = False
        self.ensured: list[Expr] = []
        self.shapes: dict[str, tuple[Expr, ...]] = {b.name: b.shape for b in program.all(Buffer)}
        self.entry_names = {p.declares()[0] for p in program.all(Param) if hasattr(p, "declares") and not isinstance(p, Buffer)}
        self.names = {n.declares()[0] for n in program.unique() if hasattr(n, "declares")}
        self.places = {a.what: a for a in reversed(program.all(At))}
        source = program.first(Source)
        self.file = source.file if source is not None else ""
        self.guards_indices = program.first(Unchecked) is None
        self.depths: dict[str, int] = {}
        self.lets: dict[str, Linear] = {}
        self.taken: set[str] = set()

    # rows

    @property
    def program(self) -> Program:
        """The program with the conditions found so far."""
        return self.original.adding(*[Ensure(n, cond) for n, (cond, _) in enumerate(self.rows, 1) if cond is not None])

    def facts(self) -> list[Node]:
        return [f for n, (cond, text) in enumerate(self.rows, 1) for f in ((Ensure(n, cond),) if cond is not None else ()) + (Check(n, text),)]

    def ensure(self, cond: Expr, text: str) -> None:
        if not any(known is cond for known, _ in self.rows):
            self.rows.append((cond, text))
            self.ensured.append(cond)

    def refuse_contradictions(self) -> None:
        """E402 where the bound sizes alone decide that no call can succeed."""
        context = Context()
        for cond, text in self.rows:
            if cond is not None:
                if context.refutes(cond):
                    raise self.error("E402", text_of(cond), f"every call would fail: {text}", "change the -D binding or the condition")
                context = context.given(cond)

    def start(self) -> None:
        """Begin a walk: forget what the one before put into the body."""
        self.rows = [row for row in self.rows if row[0] is not None]
        self.again, self.ensured, self.depths, self.lets, self.taken = False, [], {}, {}, set()

    # the walk

    def block(self, stmts: tuple[Stmt, ...], context: Context, frames: tuple[_Frame, ...]) -> tuple[Stmt, ...]:
        done: list[Stmt] = []
        for stmt in stmts:
            before: list[Stmt] = []
            new = self.statement(stmt, context, frames, before)
            for part in (*before, new):
                done.append(part)
                context = context.after(part)
        return tuple(done)

    def statement(self, stmt: Stmt, context: Context, frames: tuple[_Frame, ...], before: list[Stmt]) -> Stmt:
        site = _Site(self, frames, before, context)
        match stmt:
            case For(name, lo, hi, step, mark, body):
                loop = For(name, site.expr(lo), site.expr(hi), site.expr(step), mark, body)
                self.step(loop, site)
                self.depths[name] = len(frames) + 1
                frame = _Frame(loop, site.known(), before)
                return loop.replace(body=self.block(body, site.known().inside(loop), (*frames, frame)))
            case If(cond, then, otherwise):
                test = site.expr(cond)
                frame = _Frame(If(test, then, otherwise), site.known(), before)
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

    def step(self, loop: For, site: _Site) -> None:
        """A step of 0 never ends: an error where it is written, a failing call where it is computed."""
        step = site.known().linear(loop.step)
        if step.is_constant:
            if step.constant == 0:
                raise self.error("E401", loop.name, f"the step of the loop over {loop.name} is 0", "a step is positive or negative")
            return
        cond = Op("ne", (loop.step, index(0)))
        if not site.known().proves(cond):
            text = f"the step {told(loop.step)} of the loop over {loop.name} is 0"
            site.check([(cond, None, constant(0))], (), self.spot(loop.name) + text, text, loop.step, loop.name)

    # naming things

    def expanded(self, form: Linear) -> Linear:
        """With named values in place of their names."""
        for _ in range(32):
            named = next((a for a in form.atoms() if isinstance(a, Var) and a.name in self.lets), None)
            if named is None:
                return form
            form = form.replace(named, self.lets[named.name])
        return form

    def fresh(self, stem: str) -> str:
        name, n = stem, 1
        while name in self.names or name in self.taken:
            n += 1
            name = f"{stem}_{n}"
        self.taken.add(name)
        return name

    def spot(self, what: str) -> str:
        """`gemm.toml:8:17: `, or nothing where the position is not known."""
        at = self.places.get(what)
        return f"{os.path.basename(self.file)}:{at.line}:{at.column}: " if at is not None else ""

    def error(self, code: str, what: str, message: str, hint: str) -> CatenError:
        at = self.places.get(what)
        return error(code, message, Place(self.file, at.line, at.column) if at is not None else None, hint=hint)


class _Site:
    """One statement while its accesses are looked at; `before` is where lets and guards go."""

    def __init__(self, checks: _Checks, frames: tuple[_Frame, ...], before: list[Stmt], context: Context):
        self.checks, self.frames, self.before, self.context = checks, frames, before, context
        self.named: dict[tuple[Expr, Conditions], Var] = {}

    def known(self, depth: int | None = None, conditions: Conditions = ()) -> Context:
        """What is known before the statement (or before the frame at `depth`), with all that was put in place meanwhile."""
        at = len(self.frames) if depth is None else depth
        context = self.context if at == len(self.frames) else self.frames[at].context
        for cond in self.checks.ensured:
            context = context.given(cond)
        for inserted in (*[f.before for f in self.frames[:at]], self.before if at == len(self.frames) else self.frames[at].before):
            for stmt in inserted:
                context = context.after(stmt)
        for cond, holds in conditions:
            context = context.given(cond, holds)
        return context

    def expr(self, expr: Any, conditions: Conditions = ()) -> Any:
        """The expression with loaded indices named, after checks of its reads."""
        if not reads(expr):
            return expr
        match expr:
            case Op("where", (cond, a, b)):
                test = self.expr(cond, conditions)
                return Op("where", (test, self.expr(a, (*conditions, (test, True))), self.expr(b, (*conditions, (test, False)))))
            case Aref():
                return self.place(expr, conditions)
        return expr.map(lambda child: self.expr(child, conditions))

    def place(self, ref: Any, conditions: Conditions = ()) -> Any:
        written, as_written = text_of(ref), [told(i) for i in ref.index]
        ref = ref.map(lambda child: self.expr(child, conditions))
        shape = self.checks.shapes[ref.buffer]
        for axis, (position, extent) in enumerate(zip(ref.index, shape, strict=True)):
            if reads(position):
                position = self.renamed(position, conditions)
                ref = ref.replace(index=(*ref.index[:axis], position, *ref.index[axis + 1:]))
            if is_inside(self.known(None, conditions), position, extent):
                continue
            if any(reads(a) for a in self.known(None, conditions).linear(position).atoms()):
                position = self.steady(position, conditions)
            ref = ref.replace(index=(*ref.index[:axis], position, *ref.index[axis + 1:]))
            self.index(written, axis, as_written[axis], position, extent, conditions)
        return ref

    def renamed(self, position: Expr, conditions: Conditions) -> Expr:
        """The index with the names that its loads have already."""
        for (read, under), name in self.named.items():
            if under == conditions[:len(under)]:
                position = substitute(position, {read: name})
        return position

    def steady(self, position: Expr, conditions: Conditions) -> Expr:
        """The index with names for the values that it loads, so that nothing is loaded again after the check."""
        while reads(position):
            load = next(n for n in position.unique() if isinstance(n, Aref) and not any(reads(i) for i in n.index))
            read: Expr = next((n for n in position.unique() if isinstance(n, Cast) and n.arg is load and n.type == "i64"), load)
            if (read, conditions) not in self.named:
                depth = self.liftable(load, conditions)
                let = Let(self.checks.fresh("ix"), read.dtype, _guarded(read, conditions))
                self.checks.depths[let.name] = depth
                self.insert(depth, let)
                self.named[read, conditions] = Var(let.name, read.dtype)
            position = substitute(position, {read: self.named[read, conditions]})
        return position

    def liftable(self, load: Aref, conditions: Conditions) -> int:
        """How far out a load may be made: past loops that neither write its array nor bind its index, where it is in bounds all the same."""
        depth = len(self.frames)
        while depth and not conditions:
            frame = self.frames[depth - 1]
            if not isinstance(frame.stmt, For) or load.buffer in writes(frame.stmt) or not self.available(load, depth - 1):
                break
            context = self.known(depth - 1)
            if not all(is_inside(context, i, n) for i, n in zip(load.index, self.checks.shapes[load.buffer], strict=True)):
                break
            depth -= 1
        return depth

    def available(self, expr: Expr, depth: int) -> bool:
        """Do all names of an expression have their values before the frame at `depth`?"""
        names = [n.name if isinstance(n, Var) else n.buffer for n in expr.unique() if isinstance(n, Var | Aref)]
        return all(self.checks.depths.get(n, 0) <= depth for n in names)

    def insert(self, depth: int, stmt: Stmt) -> None:
        (self.before if depth == len(self.frames) else self.frames[depth].before).append(stmt)

    def index(self, written: str, axis: int, said: str, position: Expr, extent: Expr, conditions: Conditions) -> None:
        """Refuse an index that is outside whenever it is used, check one that may be; `said`: the index as the body has it."""
        checks, known = self.checks, self.known(None, conditions)
        name, spot = told(written), checks.spot(written)
        what = f"{name}: index {axis + 1} (= {said})"
        if is_outside(known, position, extent):
            raise checks.error("E400", written, f"{what} is outside [0, {told(extent)}) whenever it runs", _REMEDY)
        if not checks.guards_indices:
            return
        if products := [p for p in overflowing(known, position) if self.at_entry(p)]:
            for product in products:
                checks.ensure(product, f"{spot}{what} is too large to compute")
            checks.again = True
            return
        low, high = below(known, position, extent)
        sides = ((index(0) <= position, low, constant(0)), (position < extent, high, known.linear(extent).shifted(-1)))
        self.check([(cond, form, end) for cond, form, end in sides if not known.is_nonnegative(form)], conditions,
                   f"{spot}{what} is outside [0, {told(extent)})", what, extent, written)

    def at_entry(self, cond: Expr) -> bool:
        return all(n.name in self.checks.entry_names for n in cond.unique() if isinstance(n, Var)) and not reads(cond)

    def check(self, needs: list[Need], conditions: Conditions, text: str, what: str, extent: Expr, written: str) -> None:
        """See to it that the call fails unless the needs are met whenever this statement runs, each as far out as that can be said exactly;
        those that land at one place share a row."""
        placed: dict[int, Expr] = {}
        for need in needs:
            depth, needed = next(found for depth in range(self.outermost(conditions), len(self.frames) + 1)
                                 if (found := self.placed(need, depth, what, extent, written)) is not None)
            placed[depth] = needed if depth not in placed else placed[depth] & needed
        for depth, needed in placed.items():
            if depth < 0:
                self.checks.ensure(needed, text)
            else:
                self.checks.rows.append((None, text))
                self.insert(depth, If(Op("not", (_implication(conditions, needed),)), (Fail(len(self.checks.rows)),)))

    def placed(self, need: Need, depth: int, what: str, extent: Expr, written: str) -> tuple[int, Expr] | None:
        """The condition to check before the frame at `depth` (-1: at entry), or None. Raises E400 where it fails whenever it matters."""
        worst = self.at_depth(need[0], need[1], depth)
        if worst is None:
            return None
        runs, holds, value = worst
        if value is not None and self.known(depth).given(runs).refutes(holds):
            reached = expression(need[2] - value if need[2].terms or need[2].constant else value)
            raise self.checks.error("E400", written, f"{what} reaches {told(reached)}, outside [0, {told(extent)})", _REMEDY)
        needed = _implied(self.known(depth), runs, holds)
        if depth < len(self.frames) and need[1] is not None and not self.known().given(needed).is_nonnegative(need[1]):
            return None                                         # true, but the verifier would not see it: check closer to the access
        return (-1 if depth == 0 and self.at_entry(needed) else depth), needed

    def outermost(self, conditions: Conditions) -> int:
        """The outermost frame that only loops separate from the statement, whose body always runs."""
        depth = len(self.frames)
        while depth and not conditions and isinstance(self.frames[depth - 1].stmt, For):
            depth -= 1
        return depth

    def at_depth(self, cond: Expr, form: Linear | None, depth: int) -> tuple[Expr, Expr, Linear | None] | None:
        """Conditions before the frame at `depth`: that the statement runs at its worst iteration, and that `cond` holds there, and the least
        value of `form`; None where this cannot be said exactly."""
        loops = [(f.stmt, f.context) for f in self.frames[depth:] if isinstance(f.stmt, For)]
        if not loops:
            return TRUE, cond, form
        found = self.worst(form, loops)
        runs = None if found is None else self.reached(found[0], loops)
        if found is None or runs is None:
            return None
        value = found[1]
        holds = cond if value is None else comparison(value)
        if not self.available(holds, depth) or not all(self.available(r, depth) for r in runs):
            return None
        known = self.known(depth)
        if value is not None and not known.fits(value):
            return None
        total: Expr = TRUE
        for part in runs:
            if not known.given(total).proves(part):
                total = part if total is TRUE else total & part
        return total, holds, value

    def worst(self, form: Linear | None, loops: list[tuple[For, Context]]) -> tuple[dict[Expr, Linear], Linear | None] | None:
        """The iteration at which `form` is least, and its value there, from the innermost loop outwards."""
        worst: dict[Expr, Linear] = {}
        value = None if form is None else self.checks.expanded(form)
        inside = self.known()
        for loop, context in reversed(loops):
            var = Var(loop.name, "i64")
            if value is None or var not in value.atoms():
                continue
            factor = value.coefficient(var)
            rising = inside.is_nonnegative(factor)
            ends = _ends(loop, context) if rising or inside.is_nonnegative(factor.scaled(-1)) else None
            if ends is None:
                return None
            worst[var] = self.checks.expanded(ends[0] if rising else ends[1])
            value = value.replace(var, worst[var])
        return worst, value

    def reached(self, worst: dict[Expr, Linear], loops: list[tuple[For, Context]]) -> list[Expr] | None:
        """Conditions under which that iteration runs; None where it may not although others do."""
        runs: list[Expr] = []
        fixed: list[tuple[Expr, Linear]] = []                   # outer variables at the worst iteration
        names = {loop.name for loop, _ in loops}
        inside = self.known()
        for loop, context in loops:
            step = context.linear(loop.step)
            if not step.is_constant:
                return None
            span = self.checks.expanded(context.linear(loop.hi)) - self.checks.expanded(context.linear(loop.lo))
            room = general = span.scaled(1 if step.constant > 0 else -1).shifted(-1)
            for var, at in fixed:
                room = room.replace(var, at)
            if room != general and not inside.is_nonnegative(room):
                return None
            if any(isinstance(n, Var) and n.name in names for n in _names(room)):
                return None
            runs.append(comparison(room))
            here = Var(loop.name, "i64")
            if here in worst:
                value = worst[here]
                for var, at in fixed:
                    value = value.replace(var, at)
                fixed.append((here, value))
        return runs


def _names(form: Linear) -> Iterator[Expr]:
    """Every node inside the atoms of a form."""
    for atom in form.atoms():
        for node in atom.unique():
            if isinstance(node, Expr):
                yield node


def _ends(loop: For, context: Context) -> tuple[Linear, Linear] | None:
    """The least and the greatest value that a loop's variable takes, where it runs."""
    lo, hi, step = context.linear(loop.lo), context.linear(loop.hi), context.linear(loop.step)
    if not step.is_constant:
        return None
    s = step.constant
    if s == 1:
        return lo, hi.shifted(-1)
    if s == -1:
        return hi.shifted(1), lo
    span = (hi - lo).shifted(-1) if s > 0 else (lo - hi).shifted(-1)
    steps = context.linear(expression(span) // index(abs(s)))
    last = lo + steps.scaled(s)
    return (lo, last) if s > 0 else (last, lo)


def told(what: Node | str) -> str:
    """An expression as a body spells it: scalars by their names alone, `(- x)` for the negation."""
    text = what if isinstance(what, str) else text_of(what)
    return re.sub(r"\(aref (\w+)\)", r"\1", text).replace("(neg ", "(- ")


def _implied(context: Context, runs: Expr, holds: Expr) -> Expr:
    """runs → holds, without the parts of `runs` that change nothing: where they fail, `holds` does hold."""
    needed = holds
    for part in reversed(_parts(runs)):
        if not context.given(part, False).proves(needed):
            needed = _negated(part) | needed
    return needed


def _negated(cond: Expr) -> Expr:
    match cond:
        case Op("lt", (a, b)):
            return b <= a
        case Op("le", (a, b)):
            return b < a
    return Op("not", (cond,))


def _parts(cond: Expr) -> list[Expr]:
    match cond:
        case Op("and", (a, b)):
            return _parts(a) + _parts(b)
        case Const():
            return []
    return [cond]


def _guarded(read: Expr, conditions: Conditions) -> Expr:
    """A read that is made only where its conditions hold."""
    for cond, holds in reversed(conditions):
        zero = number(0, read.dtype)
        read = Op("where", (cond, read, zero) if holds else (cond, zero, read))
    return read


def _implication(conditions: Conditions, cond: Expr) -> Expr:
    """The conditions imply `cond`; one that reads memory is only looked at where those before it hold."""
    for given, holds in reversed(conditions):
        chosen = Op("where", (given, cond, TRUE) if holds else (given, TRUE, cond))
        cond = chosen if reads(cond) else (Op("not", (given,)) if holds else given) | cond
    return cond


__all__ = ["add_checks"]
