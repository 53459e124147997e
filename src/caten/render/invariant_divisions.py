"""Integer divisions before the loops in which they do not change (loop-invariant code motion).

A division by a size takes tens of cycles, and C compilers leave it in the loop: it is under a condition, for the
divisor may be 0. (The quotient is 0 then, so it may be computed where it is not needed.) This comes after all proofs,
for which a name would hide that an index is a quotient.
"""
from __future__ import annotations

from collections.abc import Iterator

from ..core.expr import Expr, Op, Var
from ..core.node import substitute
from ..core.unique_names import Names
from ..loop.statements import For, If, Kernel, Let, LoopProgram, Ref, Stmt
from .guarded_divisions import is_division


def with_invariant_divisions(program: LoopProgram) -> LoopProgram:
    """The program with a name for each integer division by what is not constant that a loop repeats: in the body of the
    innermost loop whose variable it reads, or, if it reads sizes alone, around the outermost loop."""
    if not any(is_division(n) for kernel in program.kernels for n in kernel.unique()):
        return program
    moving = _Moving(program)
    return program.replace(clauses=tuple([c.replace(body=moving.statements(c.body, frozenset()))
                                          if isinstance(c, Kernel) else c for c in program.clauses]))


class _Moving:
    def __init__(self, program: LoopProgram) -> None:
        self.names = Names.of(program)
        self.local = {n.name for kernel in program.kernels for n in kernel.unique() if isinstance(n, For | Let)}

    def statements(self, stmts: tuple[Stmt, ...], around: frozenset[str]) -> tuple[Stmt, ...]:
        """Statements inside the loops `around`, after names for the divisions that loops among them repeat. None are
        between two parallel loops, which threads share as one."""
        named: dict[Expr, Expr] = {}
        lets: list[Stmt] = []
        if not (around and len(stmts) == 1 and isinstance(stmts[0], For) and stmts[0].mark == "parallel"):
            for n in sorted(dict.fromkeys(self._repeated(stmts, around)), key=lambda n: n.depth):
                name = self.names.fresh("quotient" if n.fn in ("floordiv", "truncdiv") else "rest")
                lets.append(Let(name, n.dtype, substitute(n, named)))
                named[n] = Var(name, n.dtype)
        return (*lets, *[self._inside(s, around) for s in (substitute(stmts, named) if named else stmts)])

    def _inside(self, stmt: Stmt, around: frozenset[str]) -> Stmt:
        match stmt:
            case For():
                return stmt.replace(body=self.statements(stmt.body, around | {stmt.name}))
            case If():
                return stmt.replace(then=self.statements(stmt.then, around),
                                    otherwise=self.statements(stmt.otherwise, around))
        return stmt

    def _repeated(self, stmts: tuple[Stmt, ...], around: frozenset[str]) -> Iterator[Op]:
        """The divisions in the loops among statements that read sizes and the variables of loops around them alone."""
        for loop in [s for s in stmts if isinstance(s, For)]:
            for n in loop.unique():
                if (isinstance(n, Op) and is_division(n) and n.lanes == 1 and n.variables & self.local <= around
                        and not any(isinstance(c, Ref) for c in n.unique())):
                    yield n
