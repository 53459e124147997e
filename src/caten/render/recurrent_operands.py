"""In a chain of minima or maxima, what the previous iteration stored comes last.

    D[i, j] = min(min(D[i - 1, j], D[i, j - 1]), D[i - 1, j - 1])
->  D[i, j] = min(min(D[i - 1, j], D[i - 1, j - 1]), D[i, j - 1])

The next iteration then waits for one operation and not for two: the others are computed while it waits. So recurrences
of dynamic programming take as long as their shortest chain. The order of these operators makes no difference, but C
compilers keep it.
"""
from __future__ import annotations

from collections.abc import Iterator, Set
from functools import reduce

from ..core.expr import Expr, Op, Var
from ..core.node import substitute
from ..loop.affine import canonical
from ..loop.statements import Aref, For, If, Incf, Kernel, Let, LoopProgram, Setf, Stmt

CHAINS = frozenset(("min", "max"))


def with_recurrent_operands_last(program: LoopProgram) -> LoopProgram:
    """The program with its chains in this order."""
    return program.replace(clauses=tuple([c.replace(body=_statements(c.body)) if isinstance(c, Kernel) else c
                                          for c in program.clauses]))


def _statements(stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    return tuple([_in_branches(s) if isinstance(s, If) else _loop(s) if isinstance(s, For) else s for s in stmts])


def _in_branches(stmt: If) -> If:
    return stmt.replace(then=_statements(stmt.then), otherwise=_statements(stmt.otherwise))


def _loop(loop: For) -> For:
    loop = loop.replace(body=_statements(loop.body))
    own = list(_own(loop.body))
    if not any(isinstance(n, Op) and n.fn in CHAINS for s in own for n in s.unique()):
        return loop
    stored = {_place(s.ref) for s in own if isinstance(s, Setf | Incf) and isinstance(s.ref, Aref)}
    following = {Var(loop.name, "i64"): Var(loop.name, "i64") + loop.step}
    late = {n for s in own for n in s.unique() if isinstance(n, Aref) and _place(substitute(n, following)) in stored}
    return loop.replace(body=_in_order(loop.body, late)) if late else loop


def _place(element: Aref) -> tuple[str, tuple[Expr, ...]]:
    return element.buffer, tuple([canonical(i) for i in element.index])


def _own(stmts: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """The statements of a loop's body that are in no other loop."""
    for s in stmts:
        if isinstance(s, If):
            yield from _own((*s.then, *s.otherwise))
        elif not isinstance(s, For):
            yield s


def _in_order(stmts: tuple[Stmt, ...], late: Set[Expr]) -> tuple[Stmt, ...]:
    """Statements with these elements last in each chain of their values."""
    made: list[Stmt] = []
    for s in stmts:
        match s:
            case If():
                s = s.replace(then=_in_order(s.then, late), otherwise=_in_order(s.otherwise, late))
            case Setf() | Incf() | Let():
                s = s.replace(value=_Ordering(late).ordered(s.value))
        made.append(s)
    return tuple(made)


class _Ordering:
    """Of one value, whose parts may be shared: each is looked at once."""

    def __init__(self, late: Set[Expr]) -> None:
        self.late = late
        self.made: dict[Expr, Expr] = {}
        self.is_late: dict[Expr, bool] = {}

    def ordered(self, expr: Expr) -> Expr:
        """The expression in which these elements are last in each chain."""
        if expr not in self.made:
            self.made[expr] = self._ordered(expr) if isinstance(expr, Op) and self.waits(expr) else expr
        return self.made[expr]

    def waits(self, expr: Expr) -> bool:
        """Is one of these elements in it?"""
        if expr not in self.is_late:
            self.is_late[expr] = expr in self.late or any(
                self.waits(c) for c in expr.children if isinstance(c, Expr))
        return self.is_late[expr]

    def _ordered(self, expr: Op) -> Expr:
        new: Expr = expr.map(lambda child: self.ordered(child) if isinstance(child, Expr) else child)
        if expr.fn not in CHAINS:
            return new
        operands = _operands(expr, expr.fn)
        last = [x for x in operands if self.waits(x)]
        if len(operands) == 2 or len(last) == len(operands):
            return new
        return reduce(lambda x, y: Op(expr.fn, (x, y)),
                      [self.ordered(x) for x in (*[x for x in operands if x not in last], *last)])


def _operands(expr: Expr, fn: str) -> list[Expr]:
    """The operands of a chain of one operator, from left to right, each once: a second time makes no difference."""
    found: dict[Expr, None] = {}
    seen: set[Expr] = set()

    def go(part: Expr) -> None:
        if part in seen:
            return
        seen.add(part)
        if isinstance(part, Op) and part.fn == fn:
            for arg in part.args:
                go(arg)
        else:
            found[part] = None

    go(expr)
    return list(found)
