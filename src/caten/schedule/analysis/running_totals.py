"""Running totals: accumulators that a loop both accumulates into and reads, once accumulated (inclusive) or before."""
from __future__ import annotations

from ...core.dtypes import DTYPES, is_short
from ...core.expr import Var
from ...core.monoids import identity, is_monoid
from ...core.node import substitute
from ...frozen import frozen
from ...loop.effects import reads, writes, written
from ...loop.statements import Aref, For, Incf, Let


@frozen
class RunningTotal:
    """`acc` accumulates by `fn` in one statement of the loop. `before`: the `let` names that hold it before."""

    acc: Aref
    fn: str
    before: tuple[str, ...]


def running_totals(loop: For) -> tuple[RunningTotal, ...]:
    """The running totals of a loop: scalars that one statement directly in the loop accumulates into, no other one
    writes, and others read. Those before that statement only give it a name (`let`) that is used behind it."""
    found = []
    for n, stmt in enumerate(loop.body):
        if not isinstance(stmt, Incf) or not isinstance(stmt.ref, Aref) or stmt.ref.index:
            continue
        acc, first, rest = stmt.ref, loop.body[:n], loop.body[n + 1:]
        if acc.buffer in reads(stmt.value) | written(first) | written(rest) or not _has_prefix(stmt.fn, acc.dtype):
            continue
        early = [s for s in first if acc.buffer in reads(s)]
        names = tuple([s.name for s in early if isinstance(s, Let) and s.value is acc])
        used = {v.name for s in (*[s for s in first if s not in early], stmt) for v in s.unique() if isinstance(v, Var)}
        if len(names) == len(early) and not used & set(names) and (names or any(acc.buffer in reads(s) for s in rest)):
            found.append(RunningTotal(acc, stmt.fn, names))
    return tuple(found)


def only_accumulated(loop: For, totals: tuple[RunningTotal, ...]) -> For:
    """The loop as if it did not read its running totals: what hinders vectors then hinders them in any case."""
    body = []
    for stmt in loop.body:
        values = {t.acc: identity(t.fn, t.acc.dtype) for t in totals if t.acc.buffer not in writes(stmt)}
        body.append(substitute(stmt, values))
    return loop.replace(body=tuple(body))


def _has_prefix(fn: str, dtype: str) -> bool:
    """Is there a prefix of vectors: numbers that are combined in their own type?"""
    row = DTYPES[dtype]
    return is_monoid(fn, dtype) and row.kind in ("int", "uint", "float") and row.bits >= 8 and not is_short(dtype)
