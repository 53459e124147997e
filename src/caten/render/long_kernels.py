"""The versions of a long kernel, as functions of their own: a C compiler takes longer for one long function than for
its parts, and can make them at once."""
from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from ..core.expr import Const, Expr, Var
from ..core.node import Node, unique_in
from ..frozen import frozen
from ..loop.statements import Address, Aref, Fail, If, Kernel, Let, Local, Stmt, Vref
from .scratch_memory import is_in_scratch

LONG = 300                       # statements of a kernel that is taken apart
LEAST = 15                       # of a version that is worth a call


@frozen
class Version:
    """What a kernel runs under a condition (None: in all other cases). `arrays`: those of the kernel in scratch memory
    that it uses, which its function declares again."""

    condition: Expr | None
    body: tuple[Stmt, ...]
    arrays: tuple[Local, ...] = ()


@frozen
class Call:
    """The C function of a version, and the names of its arguments."""

    function: str
    arguments: tuple[str, ...]


def versions(kernel: Kernel) -> list[Version]:
    """The versions of the statements of a kernel that are functions of their own; none if it is short or may fail. What
    uses a value or an array on the stack that the kernel declares is none."""
    branches = [s for s in kernel.body if isinstance(s, If)]
    if not branches:
        return []
    stmts = list(_statements(kernel.body))
    if len(stmts) < LONG or any(isinstance(s, Fail) for s in stmts):
        return []
    declared = {s.name: s for s in kernel.body if isinstance(s, (Let, Local))}
    found = []
    for version in [v for branch in branches for v in _arms(branch)]:
        used = _used(version, declared)
        arrays = tuple([s for s in used if isinstance(s, Local) and is_in_scratch(s)])
        if len(arrays) == len(used) and len(list(_statements(version.body))) >= LEAST:
            found.append(replace(version, arrays=arrays))
    return found


def own_nodes(kernel: Kernel, calls: Collection[tuple[Stmt, ...]]) -> list[Node]:
    """What is in a kernel, but not in these versions of it."""
    parts: list[Node] = []
    for stmt in kernel.body:
        if isinstance(stmt, If) and any(v.body in calls for v in _arms(stmt)):
            for version in _arms(stmt):
                parts += [] if version.condition is None else [version.condition]
                parts += [] if version.body in calls else version.body
        else:
            parts.append(stmt)
    return list(unique_in(parts))


def _arms(branch: If) -> Iterator[Version]:
    yield Version(branch.cond, branch.then)
    match branch.otherwise:
        case (If(cond=cond) as inner,) if not isinstance(cond, Const):
            yield from _arms(inner)
        case rest if rest:
            yield Version(None, rest)


def _used(version: Version, declared: Mapping[str, Let | Local]) -> list[Let | Local]:
    """What a version uses of this, in the order in which it is declared."""
    nodes = unique_in([*version.body, *([] if version.condition is None else [version.condition])])
    names = {n.name if isinstance(n, Var) else n.buffer for n in nodes if isinstance(n, Var | Aref | Vref | Address)}
    return [s for name, s in declared.items() if name in names]


def _statements(stmts: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """These statements and all in them."""
    stack = list(stmts)
    while stack:
        stmt = stack.pop()
        yield stmt
        stack += [c for c in stmt.children if isinstance(c, Stmt)]
