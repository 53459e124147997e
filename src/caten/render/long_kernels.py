"""The versions of a long kernel, as functions of their own: a C compiler takes longer for one long function than for
its parts, and can make them at once."""
from __future__ import annotations

from collections.abc import Iterator

from ..core.expr import Const, Expr
from ..frozen import frozen
from ..loop.statements import Fail, If, Kernel, Let, Local, Stmt

LONG = 300                       # statements of a kernel that is taken apart
LEAST = 15                       # of a version that is worth a call


@frozen
class Version:
    """What a kernel runs under a condition (None: in all other cases)."""

    condition: Expr | None
    body: tuple[Stmt, ...]


@frozen
class Call:
    """The C function of a version, and the names of its arguments."""

    function: str
    arguments: tuple[str, ...]


def versions(kernel: Kernel) -> list[Version]:
    """The versions of a kernel that are functions of their own; none if it is short, may fail, or has locals that
    several of them could use."""
    branches = [s for s in kernel.body if isinstance(s, If)]
    if not branches or any(isinstance(s, (Let, Local)) for s in kernel.body):
        return []
    stmts = list(_statements(kernel.body))
    if len(stmts) < LONG or any(isinstance(s, Fail) for s in stmts):
        return []
    return [v for s in branches for v in _arms(s) if len(list(_statements(v.body))) >= LEAST]


def _arms(branch: If) -> Iterator[Version]:
    yield Version(branch.cond, branch.then)
    match branch.otherwise:
        case (If(cond=cond) as inner,) if not isinstance(cond, Const):
            yield from _arms(inner)
        case rest if rest:
            yield Version(None, rest)


def _statements(stmts: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """These statements and all in them."""
    stack = list(stmts)
    while stack:
        stmt = stack.pop()
        yield stmt
        stack += [c for c in stmt.children if isinstance(c, Stmt)]
