"""Kernels around calls of C functions: each call is a kernel of its own.

The statements between two calls are one kernel. Arrays that were local to all of them are declared between the
kernels, in the memory that the call allocates.
"""
from __future__ import annotations

from collections.abc import Sequence

from ..core.node import Node
from ..loop.statements import ExternCall, Kernel, Local, Stmt


def is_call(stmt: Stmt) -> bool:
    """Does a statement call a C function?"""
    return any(isinstance(n, ExternCall) for n in stmt.unique())


def kernels_around_calls(name: str, stmts: Sequence[Stmt]) -> tuple[Node, ...]:
    """The kernels of a list of statements, and before them the arrays that they share. `name`: that of the first."""
    shared = {s.name: s for n, s in enumerate(stmts) if isinstance(s, Local)
              and any(is_call(later) for later in stmts[n:])}
    parts: list[list[Stmt]] = [[]]
    for stmt in stmts:
        if is_call(stmt):
            parts += [[stmt], []]
        elif not isinstance(stmt, Local) or stmt.name not in shared:
            parts[-1].append(stmt)
    kernels = [part for part in parts if part]
    return (*[s.replace(space="global") for s in shared.values()],
            *[Kernel(name if n == 1 else f"{name}_{n}", tuple(part)) for n, part in enumerate(kernels, 1)])
