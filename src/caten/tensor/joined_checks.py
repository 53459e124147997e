"""Checks over the same extents are one reduction: they look at their indices in one loop, not in one each.

    (define v0 (reduce bool () ((p N)) or true (<= V (read I p))))     (fail-if (read v0) 1)
    (define v1 (reduce bool () ((p N)) or true (<= W (read K p))))     (fail-if (read v1) 3)
->  (define v0 (reduce i64 () ((p N)) min true (where (<= V (read I p)) 1 (where (<= W (read K p)) 3 …))))
    (fail-if (= (read v0) 1) 1)    (fail-if (= (read v0) 3) 3)

The least number is that of the first check that fails, wherever in the arrays the indices are. A call reports what it
reported before: checks that are joined are one after the other and wait for the same values, so no other kernel runs
between them. In canonical form, checks come first, each after what it needs. A check that a scatter makes in its own
loop stays as it is.

It is one reduction, and not several in one loop, because planners give a reduction vectors and threads.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..core.expr import Expr, Op, Var, index
from ..core.node import Node, substitute
from ..core.program import Fusion
from ..frozen import frozen
from .checks_as_values import MOST_TOGETHER, Failing, failures_of, first_row
from .checks_in_scatters import in_loops_of
from .fusion_requests import names_in, values_asked_for
from .values import (
    Compute,
    Define,
    FailIf,
    FusedKernel,
    Named,
    Read,
    Reduce,
    Scatter,
    TensorProgram,
    Value,
    operands_of,
)


@frozen
class _Check:
    """A value that nothing but checks needs. `number`: its place among the definitions. `needs`: what it waits for."""

    number: int
    value: Reduce | Compute
    failing: list[Failing]
    needs: frozenset[str]


def with_joined_checks(program: TensorProgram) -> TensorProgram:
    """The program with one reduction for checks in a row that have the same extents."""
    if len(program.checks) < 2 or program.first(FusedKernel) is not None:
        return program
    runs = [run for run in _runs(program) if len(run) > 1]
    return _joined(program, runs) if runs else program


def _runs(program: TensorProgram) -> list[list[_Check]]:
    """The checks in their order, those that may be joined in one list: they are one after the other."""
    runs: list[list[_Check]] = []
    for check in _checks(program):
        if not runs or runs[-1][-1].number + 1 != check.number or not _may_join(runs[-1], check):
            runs.append([])
        runs[-1].append(check)
    return runs


def _checks(program: TensorProgram) -> Iterator[_Check]:
    """The values that checks alone need, whose conditions are known, and which no scatter tests in its loop."""
    defined = {name for d in program.definitions for name in d.names}
    asked = {name for fact in program.all(Fusion) for request in fact.requests for name in names_in(request)}
    needed = {name for d in program.definitions for name in operands_of(d.value)} | {
        o.value for o in program.outputs} | asked | values_asked_for(program)
    scatters = [d.value for d in program.definitions if isinstance(d.value, Scatter)]
    for n, d in enumerate(program.definitions):
        if not d.names or d.name in needed or not isinstance(d.value, Reduce | Compute) or d.value.axes:
            continue
        failing = failures_of(program, d.name, d.value)
        if failing and all(in_loops_of(scatter, d.name, d.value, program) is None for scatter in scatters):
            yield _Check(n, d.value, failing, frozenset(operands_of(d.value)) & defined)


def _may_join(run: Sequence[_Check], check: _Check) -> bool:
    """May a check be made in the loops of others that come before it?"""
    first, value = run[0].value, check.value
    if type(first) is not type(value) or check.needs != run[0].needs:
        return False
    if isinstance(first, Reduce) and isinstance(value, Reduce) and (
            [a.extent for a in first.over] != [a.extent for a in value.over]
            or substitute(value.cond, _renaming(value, first)) is not first.cond):
        return False
    rows = [f.checks[0].row for each in (*run, check) for f in each.failing]
    return rows == sorted(rows) and len(rows) <= MOST_TOGETHER


def _renaming(value: Reduce | Compute, first: Reduce | Compute) -> dict[Var, Var]:
    """The axes of the first check in the place of those of another one."""
    if isinstance(value, Compute) or isinstance(first, Compute):
        return {}
    return {a.var: b.var for a, b in zip(value.over, first.over, strict=True)}


def _joined(program: TensorProgram, runs: Sequence[Sequence[_Check]]) -> TensorProgram:
    """The program with each of these lists of checks as one value, in the place of the first."""
    values: dict[str, Value] = {}
    conds: dict[FailIf, Expr] = {}
    gone: set[str] = set()
    for run in runs:
        first = program.definitions[run[0].number].name
        gone.update([program.definitions[check.number].name for check in run[1:]])
        rows: dict[Expr, int] = {}                           # equal conditions of several checks are tested once
        for check in run:
            for each in check.failing:
                fails = substitute(each.fails, _renaming(check.value, run[0].value))
                row = rows.setdefault(fails, each.checks[0].row)
                conds |= dict.fromkeys(each.checks, Op("eq", (Read(first, (), "i64"), index(row))))
        least = first_row([(row, fails) for fails, row in rows.items()])
        value = run[0].value
        values[first] = (Compute("i64", (), least) if isinstance(value, Compute)
                         else Reduce("i64", (), value.over, "min", value.cond, least))
    clauses: list[Node] = []
    for c in program.clauses:
        match c:
            case Define(names=(name,)) if name in values:
                clauses.append(c.replace(value=values[name]))
            case FailIf() if c in conds:
                clauses.append(c.replace(cond=conds[c]))
            case Define(names=(name,)) | Named(value=name) if name in gone:
                pass
            case _:
                clauses.append(c)
    return program.replace(clauses=tuple(clauses))
