"""Run-time checks as values: a guard inside loops becomes one condition for the whole call.

    (for i 0 N 1 serial (if (not (< (aref I i) V)) ((fail 6))) …)
->  (define v0 (reduce bool () ((p N)) or true (<= V (read I p))))   (fail-if (read v0) 6)

The loops around a guard on which it does not depend have no axis in the `reduce`: it is enough that they run.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..core.dtypes import is_integer
from ..core.expr import FALSE, TRUE, Expr, Op, Var, index
from ..core.monoids import identity
from ..core.node import substitute
from ..core.program import Check, Program
from ..frozen import frozen
from .loop_splitting import conjunction
from .values import Axis, Compute, FailIf, Read, Reduce, TensorProgram, Value, ValueTable, reads_of

MOST_TOGETHER = 16         # rows of one reduction
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")

Loops = tuple[tuple[str, Expr], ...]        # name and extent
Failure = tuple[int, Expr]                 # a row, and when it fails
NO_CHECK = identity("min", "i64")          # the row where no check fails


@frozen
class Failing:
    """A condition that a value tests, and the checks that fail where it holds, in order."""

    fails: Expr
    checks: tuple[FailIf, ...]


@frozen
class Guard:
    """The call fails with check `row` if in any iteration of the loops, an extent each, `cond` and then `fails` hold.
    `cond` reads no memory."""

    row: int
    loops: Loops
    cond: Expr
    fails: Expr


def guard(row: int, conds: Sequence[Expr], loops: Mapping[str, tuple[Expr, Expr]], runs: Iterable[Expr]) -> Guard:
    """A guard that fails where all conditions hold, each evaluated only where those before it hold. `loops`: the loops
    around, with the extents of their axes and the conditions under which they have an iteration there. `runs`: those of
    the conditions `0 < extent` that hold if the loops around run."""
    known = set(runs)
    used = {n for e in conds for n in e.variables if n in loops}
    used |= {n for n, (_, cond) in loops.items() if cond is not TRUE}
    used |= {m for n in used for m in loops[n][1].variables if m in loops}
    known |= {index(0) < loops[n][0] for n in used}
    running = dict.fromkeys([c for extent, _ in loops.values() if (c := index(0) < extent) not in known])
    plain = [c for c in conds if not reads_of(c)]
    return Guard(row, tuple([(n, loops[n][0]) for n in loops if n in used]),
                 conjunction([*[loops[n][1] for n in loops if n in used], *running, *plain]),
                 _lazily([c for c in conds if reads_of(c)]))


def failing(cond: Expr) -> list[Expr]:
    """The conditions that hold, one after the other, where a condition holds."""
    match cond:
        case Op("not", (a,)):
            return _failing_not(a)
        case Op("and", (a, b)):
            return [*failing(a), *failing(b)]
        case Op("where", (a, b, no)) if no is FALSE:
            return [*failing(a), *failing(b)]
    return [cond]


def _failing_not(cond: Expr) -> list[Expr]:
    match cond:
        case Op("not", (a,)):
            return failing(a)
        case Op("or", (a, b)):
            return [*_failing_not(a), *_failing_not(b)]
        case Op("and", (a, b)):
            return [Op("or", (_lazily(_failing_not(a)), _lazily(_failing_not(b))))]
        case Op("where", (a, b, no)) if no is TRUE:
            return [*failing(a), *_failing_not(b)]
        case Op("where", (a, yes, b)) if yes is TRUE:
            return [*_failing_not(a), *_failing_not(b)]
        case Op("lt", (a, b)) | Op("gt", (b, a)) if is_integer(a.dtype):
            return [Op("le", (b, a))]
        case Op("le", (a, b)) | Op("ge", (b, a)) if is_integer(a.dtype):
            return [Op("lt", (b, a))]
    return [Op("not", (cond,))]


def _lazily(conds: Sequence[Expr]) -> Expr:
    """Do all conditions hold? Each is evaluated only where those before it hold."""
    whole: Expr = TRUE
    for cond in reversed(conds):
        whole = cond if whole is TRUE else Op("where", (cond, whole, FALSE))
    return whole


def compared(conds: Iterable[Expr]) -> list[Expr]:
    """The numbers that conditions compare."""
    return [a for cond in conds for n in cond.unique() if isinstance(n, Op) and n.fn in COMPARISONS for a in n.args]


def define_checks(program: Program, guards: Sequence[Guard], table: ValueTable) -> list[tuple[FailIf, tuple[str, ...]]]:
    """Define what the guards of a program have to find out, and the checks, with the loops of each. Guards in the same
    loops are one reduction: if they have several messages, it finds the least row that fails."""
    texts = {c.row: c.text for c in program.all(Check)}
    together: dict[tuple[Loops, Expr], dict[str, Failure]] = {}
    for g in guards:
        rows = together.setdefault((g.loops, g.cond), {})
        text = texts.get(g.row, str(g.row))
        row, fails = rows.get(text, (g.row, g.fails))
        rows[text] = row, fails if fails is g.fails else Op("or", (fails, g.fails))
    found: dict[Expr, tuple[FailIf, tuple[str, ...]]] = {}
    for (loops, cond), rows in together.items():
        axes = table.axis_names.over([extent for _, extent in loops])
        new = {Var(n, "i64"): a.var for (n, _), a in zip(loops, axes, strict=True)}
        failures = [(row, substitute(fails, new)) for row, fails in rows.values()]
        for check in _defined(axes, substitute(cond, new), failures, table):
            found.setdefault(check.cond, (check, tuple([n for n, _ in loops])))
    return list(found.values())


def _defined(axes: tuple[Axis, ...], cond: Expr, failures: Sequence[Failure], table: ValueTable,
             ) -> Iterator[FailIf]:
    """The checks of failures in the same loops."""
    if not axes:
        for row, fails in failures:
            (name,) = table.define(Compute("bool", (), _lazily([c for c in (cond, fails) if c is not TRUE])))
            yield FailIf(Read(name, (), "bool"), row)
        return
    for start in range(0, len(failures), MOST_TOGETHER):
        some = failures[start:start + MOST_TOGETHER]
        if len(some) == 1:
            ((row, fails),) = some
            (name,) = table.define(Reduce("bool", (), axes, "or", cond, fails))
            yield FailIf(Read(name, (), "bool"), row)
            continue
        (name,) = table.define(Reduce("i64", (), axes, "min", cond, first_row(some)))
        for row, _ in some:
            yield FailIf(Op("eq", (Read(name, (), "i64"), index(row))), row)


def first_row(failures: Sequence[Failure]) -> Expr:
    """The row of the first failure whose condition holds, or `NO_CHECK`."""
    row: Expr = NO_CHECK
    for number, fails in reversed(failures):
        row = Op("where", (fails, index(number), row))
    return row


def failures_of(program: TensorProgram, name: str, value: Value) -> list[Failing]:
    """The conditions that a value tests for checks, in order (what `define_checks` has defined); none if it is read
    otherwise."""
    checks = [c for c in program.checks if any(r.buffer == name for r in reads_of(c.cond))]
    match value:
        case Reduce("bool", (), _, "or", _, fails) | Compute("bool", (), fails):
            return [Failing(fails, tuple(checks))] if checks and all(isinstance(c.cond, Read) for c in checks) else []
        case Reduce("i64", (), _, "min", _, rest) | Compute("i64", (), rest):
            found: list[Failing] = []
            while isinstance(rest, Op) and rest.fn == "where":
                fails, row, rest = rest.args
                own = tuple([c for c in checks
                             if isinstance(c.cond, Op) and c.cond.fn == "eq" and c.cond.args[1] is row])
                if not own:
                    return []
                found.append(Failing(fails, own))
            return found if rest is NO_CHECK and sum([len(f.checks) for f in found]) == len(checks) else []
    return []
