"""Check hoisting: place a run-time check as far out as it can be stated exactly, at the least or greatest index."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from ..core.expr import TRUE, Const, Expr, Op, Var, index
from ..frozen import frozen
from .affine import Linear, expression
from .context import Context
from .effects import reads, writes
from .entry_checks import comparison
from .run_time_checks import CheckRows, body_text
from .statements import Aref, Fail, For, If, Stmt

REMEDY = "correct the bounds of the loops, the index, or the shape"

# A condition, the form that is ≥ 0 exactly when it holds, and the index: the form itself (0), or this minus the form.
Need = tuple[Expr, Linear | None, Linear]
Conditions = tuple[tuple[Expr, bool], ...]      # of the enclosing `where`s


@frozen
class Frame:
    """An enclosing loop or branch: the context before it, the statements inserted there, and the names that hold there
    what memory contains."""

    stmt: For | If
    context: Context
    before: list[Stmt] = field(default_factory=list)
    held: dict[Expr, Var] = field(default_factory=dict)


class Site:
    """A statement whose accesses are checked. `before` receives its lets and guards, `held` the names of its loads."""

    def __init__(self, checks: CheckRows, frames: tuple[Frame, ...], before: list[Stmt], context: Context,
                 held: dict[Expr, Var]):
        self.checks, self.frames, self.before, self.context, self.held = checks, frames, before, context, held

    def known(self, depth: int | None = None, conditions: Conditions = ()) -> Context:
        """The context before the statement (or before the frame at `depth`), with everything inserted so far."""
        at = len(self.frames) if depth is None else depth
        context = self.context if at == len(self.frames) else self.frames[at].context
        for cond in self.checks.ensured:
            context = context.given(cond)
        for frame in self.frames[:at]:                       # but for what they say of memory that is written inside
            for stmt in frame.before:
                if reads(stmt).isdisjoint(writes(frame.stmt)):
                    context = context.after(stmt)
        for stmt in self.before if at == len(self.frames) else self.frames[at].before:
            context = context.after(stmt)
        for cond, holds in conditions:
            context = context.given(cond, holds)
        return context

    def available(self, expr: Expr, depth: int) -> bool:
        """True if all names of an expression are defined before the frame at `depth`."""
        names = [n.name if isinstance(n, Var) else n.buffer for n in expr.unique() if isinstance(n, Var | Aref)]
        return all(self.checks.depths.get(n, 0) <= depth for n in names)

    def insert(self, depth: int, stmt: Stmt) -> None:
        (self.before if depth == len(self.frames) else self.frames[depth].before).append(stmt)

    def at_entry(self, cond: Expr) -> bool:
        return all(n.name in self.checks.entry_names for n in cond.unique() if isinstance(n, Var)) and not reads(cond)

    def check(self, needs: list[Need], conditions: Conditions, text: str, what: str, extent: Expr,
              written: str) -> None:
        """Make the call fail unless the needs hold whenever this statement runs. Each check is hoisted as far as it
        stays exact; checks at the same depth share a row."""
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
        """The condition to check before the frame at `depth` (-1: at entry), or None. Raises E400 if it never holds."""
        worst = self.at_depth(need[0], need[1], depth)
        if worst is None:
            return None
        runs, holds, value = worst
        known = self.known(depth)
        if value is not None and known.given(runs).refutes(holds) and not known.refutes(runs):
            reached = expression(need[2] - value if need[2].terms or need[2].constant else value)
            raise self.checks.error("E400", written,
                                    f"{what} reaches {body_text(reached)}, outside [0, {body_text(extent)})",
                                    REMEDY)
        needed = _implied(known, runs, holds)
        if depth < len(self.frames) and need[1] is not None and not self.known().given(needed).is_nonnegative(need[1]):
            return None               # true, but not provable by the verifier: check closer to the access
        return (-1 if depth == 0 and self.at_entry(needed) else depth), needed

    def outermost(self, conditions: Conditions) -> int:
        """The outermost frame that is separated from the statement only by loops whose body always runs."""
        depth = len(self.frames)
        while depth and not conditions and isinstance(self.frames[depth - 1].stmt, For):
            depth -= 1
        return depth

    def at_depth(self, cond: Expr, form: Linear | None, depth: int) -> tuple[Expr, Expr, Linear | None] | None:
        """Before the frame at `depth`: the condition that the statement runs at its worst iteration, `cond` at that
        iteration, and the least value of `form`. None if these cannot be stated exactly."""
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

    def worst(self, form: Linear | None, loops: list[tuple[For, Context]]) -> tuple[dict[Expr, Linear],
                                                                                    Linear | None] | None:
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
        """Conditions under which that iteration runs; None if it may not run although others do."""
        runs: list[Expr] = []
        fixed: list[tuple[Expr, Linear]] = []   # outer variables at the worst iteration
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
    """The least and the greatest value of a loop variable, if the loop runs."""
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


def _implied(context: Context, runs: Expr, holds: Expr) -> Expr:
    """runs → holds, without the parts of `runs` that are not needed."""
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


def _implication(conditions: Conditions, cond: Expr) -> Expr:
    """The conditions imply `cond`. A condition that reads memory is evaluated only where those before it hold."""
    for given, holds in reversed(conditions):
        chosen = Op("where", (given, cond, TRUE) if holds else (given, TRUE, cond))
        cond = chosen if reads(cond) else (Op("not", (given,)) if holds else given) | cond
    return cond
