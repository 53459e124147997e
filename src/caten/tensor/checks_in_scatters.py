"""Checks of indices in the loop of a scatter: it waits for its own stores, so a comparison costs little there, while a
pass before it would load the indices once more.

    (define v0 (reduce bool () ((p N)) or true (<= B (read x p))))   (fail-if (read v0) 6)
    (define v1 (scatter i64 h (B) ((i N)) add ((inside (read x i) B 6)) true 1))
->  (for i 0 N 1 serial (if (<= B (aref x i)) ((fail 6))) (incf (aref h (aref x i)) 1))

That is so if the check is one of its indices, the loops of the check are the outer loops of the scatter, and it reads
nothing that the scatter does not read. Another check stays a reduction, and the scatter is at the nearest indices
inside. Where several indices are outside, the loop finds one of them, not always that of the least row.
"""
from __future__ import annotations

from collections.abc import Sequence

from ..core.expr import FALSE, TRUE, Op
from ..core.node import substitute
from ..frozen import frozen
from .checks_as_values import Failure, failures_of
from .kernels import Group, NestKernel, reads_of_kernel
from .values import Indexed, Inside, Reduce, Scatter, TensorProgram, reads_of


@frozen
class CheckInLoop:
    """What makes the call fail in an iteration of the first `depth` loops of a scatter: rows of checks, each with a
    condition over the axes of the scatter. They are tested one after the other. `value`: the reduction that they make
    needless."""

    value: str
    depth: int
    failures: tuple[Failure, ...]


def checks_in_scatters(program: TensorProgram, kernels: Sequence[Group | NestKernel]) -> dict[str, list[CheckInLoop]]:
    """The checks that each scatter makes in its loops."""
    members = [m for k in kernels if isinstance(k, Group) for m in k.members]
    found: dict[str, list[CheckInLoop]] = {
        m.name: [] for m in members if isinstance(m.value, Scatter) and _rows_of(m.value)}
    if found:
        needed = {name for k in kernels for name in reads_of_kernel(k)} | {o.value for o in program.outputs}
        alone = [k.last for k in kernels if isinstance(k, Group) and len(k.members) == 1 and k.last.name not in needed]
        for m in members:
            made = [in_loops_of(m.value, check.name, check.value, program) for check in alone if m.name in found]
            found.get(m.name, []).extend([check for check in made if check is not None])
    return found


def in_loops_of(scatter: Indexed, name: str, value: Indexed, program: TensorProgram) -> CheckInLoop | None:
    """The failures that a reduction finds, in the loops of a scatter, if these are its loops."""
    failures = failures_of(program, name, value)
    if (not failures or any(len(f.checks) > 1 for f in failures) or not isinstance(value, Reduce)
            or not isinstance(scatter, Scatter) or len(value.over) > len(scatter.axes)):
        return None
    loops = list(zip(value.over, scatter.axes, strict=False))
    read = {r.buffer for r in reads_of(scatter)}
    if any(p.extent is not a.extent for p, a in loops) or any(r.buffer not in read for r in reads_of(value)):
        return None
    if _rows_of(scatter).isdisjoint([f.checks[0].row for f in failures]):
        return None
    new = {p.var: a.var for p, a in loops}
    return CheckInLoop(name, len(loops), tuple([(f.checks[0].row, substitute(
        f.fails if value.cond is TRUE else Op("where", (value.cond, f.fails, FALSE)), new)) for f in failures]))


def _rows_of(scatter: Scatter) -> set[int]:
    """The checks of its indices."""
    return {n.row for i in scatter.index for n in i.unique() if isinstance(n, Inside)}
