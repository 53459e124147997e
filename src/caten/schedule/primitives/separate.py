"""separate: split a kernel into one kernel for each of its statements."""
from __future__ import annotations

from ...core.node import Node
from ...core.unique_names import Names
from ...errors import did_you_mean, error
from ...loop.context import ends_in_failure
from ...loop.effects import reads, written
from ...loop.statements import Aref, If, Kernel, Let, Local, LoopProgram, Stmt, Vref
from ..analysis.loop_queries import mentions, refusal
from ..loop_names import renamed
from ..step_results import Separated


def separate(program: LoopProgram, kernel: str) -> tuple[LoopProgram, Separated]:
    """Split a kernel into kernels that run one after the other, one for each statement. A local array that several of
    them use becomes a global one. Use it for devices, which launch every kernel separately. The first kernel keeps the
    name.

        (separate k)
        (kernel k                                               (local T f32 (N) global)
          (local T f32 (N) scratch)                             (kernel k
          (for i 0 N 1 serial (setf (aref T i) x))       ->       (for i 0 N 1 serial (setf (aref T i) x)))
          (for j 0 N 1 serial (incf (aref s) (aref T j))))      (kernel k_2
                                                                  (for j 0 N 1 serial (incf (aref s) (aref T j))))
    """
    step = f"separate {kernel}"
    known = [k.name for k in program.kernels]
    if kernel not in known:
        raise error("E501", f"{step}: there is no kernel '{kernel}'; the kernels are: {', '.join(known)}",
                    hint=did_you_mean(kernel, known))
    found = next(k for k in program.kernels if k.name == kernel)
    parts = [s for s in found.body if not isinstance(s, Let | Local)]
    if len(parts) < 2:
        raise refusal("E535", step, "it has one statement")
    checks = [s for s in parts[:-1] if isinstance(s, If) and (ends_in_failure(s.then) or ends_in_failure(s.otherwise))]
    if checks:
        raise refusal("E535", step, "a check in it guards the statements that follow")
    shared = _between(program, found, parts, step)
    names = Names([*known, ""])
    every, given = Names.of(program), set[str]()
    kernels: list[Kernel] = []
    for part in parts:
        declared = _declared(found, part, shared)
        # names are unique in a program
        again = {s.name: every.fresh(s.name) for s in declared if isinstance(s, Let) and s.name in given}
        given |= {s.name for s in declared if isinstance(s, Let)}
        kernels.append(Kernel(names.fresh(kernel) if kernels else kernel, renamed((*declared, part), again)))
    clauses: list[Node] = []
    for clause in program.clauses:
        clauses += [*[local.replace(space="global") for local in shared], *kernels] if clause is found else [clause]
    return program.replace(clauses=tuple(clauses)), Separated(tuple([k.name for k in kernels]))


def _between(program: LoopProgram, kernel: Kernel, parts: list[Stmt], step: str) -> list[Local]:
    """The arrays that more than one statement uses."""
    shared = []
    for stmt in kernel.body:
        if isinstance(stmt, Local) and sum(_uses(p, stmt.name) for p in parts) > 1:
            if not all(e.variables <= {*program.sizes} for e in stmt.shape):
                raise refusal("E535", step, f"the extents of '{stmt.name}' are not known before the kernel runs")
            shared.append(stmt)
        if isinstance(stmt, Let) and not reads(stmt).isdisjoint(written(kernel.body)):
            raise refusal("E535", step, f"'{stmt.name}' is read from an array that the kernel writes")
    return shared


def _declared(kernel: Kernel, part: Stmt, shared: list[Local]) -> list[Stmt]:
    """The values and arrays that a statement needs."""
    needed: list[Stmt] = []
    for stmt in reversed(kernel.body[:kernel.body.index(part)]):
        if isinstance(stmt, Let) and mentions((*needed, part), (stmt.name,)):
            needed.insert(0, stmt)
        if isinstance(stmt, Local) and stmt not in shared and _uses(part, stmt.name):
            needed.insert(0, stmt)
    return needed


def _uses(part: Stmt, name: str) -> bool:
    """Does a statement read, write or prefetch an array?"""
    return any(isinstance(n, Aref | Vref) and n.buffer == name for n in part.unique())
