"""Linear recurrences along an axis, as loop nests that are known: gradients of running products have them.

    h[j] = b[j] + a[j] · h[j - 1]
    h[j] = b[j] + a[j + 1] · h[j + 1]          `down`, and `is_shifted`: the factor is that of the step before

The gradient of a recurrence is one in the other direction: b̄[j] = h̄[j] + a[j + 1] · b̄[j + 1] and
ā[j] = b̄[j] · h[j - 1]. So it has derivatives of every order, and nothing is divided by: zeros among the factors are
like all other numbers.

After Martin and Cundy, Parallelizing Linear Recurrent Neural Nets over Sequence Length (2018), section 2.
"""
from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

from ..core.expr import Expr, Op, Var, index
from ..core.node import Node
from ..core.text import show
from ..core.unique_names import Names
from ..frozen import frozen
from ..loop.affine import canonical
from ..loop.statements import Aref, For, If, Setf, Stmt
from ..tensor.values import Nest, Out

ZERO, ONE = index(0), index(1)


@frozen
class Recurrence:
    """`factors` and `terms`: the arrays a and b, of the shape and type of the result. `along`: the axis of the
    steps."""

    factors: str
    terms: str
    type: str
    shape: tuple[Expr, ...]
    along: int
    direction: str
    is_shifted: bool

    def nest(self, fresh: Callable[[str], str], is_guarded: bool) -> Nest:
        """The loops. `is_guarded`: there may be no element. `fresh`: a free name from a wanted one."""
        result = fresh("h")
        names = [fresh("i") for _ in self.shape]
        inside = [fresh("j") for _ in self.shape[self.along + 1:]]
        step = Var(names[self.along], "i64")
        first = ZERO if self.direction == "up" else canonical(self.shape[self.along] - 1)
        here = step if self.direction == "up" else canonical(first - step)
        before = canonical(here - 1 if self.direction == "up" else here + 1)

        def read(name: str, at: Expr, after: list[str]) -> Aref:
            outer = [Var(n, "i64") for n in names[:self.along]]
            return Aref(name, (*outer, at, *[Var(n, "i64") for n in after]), self.type)

        def loops(over: list[str], extents: tuple[Expr, ...], body: Stmt) -> Stmt:
            for name, extent in reversed(list(zip(over, extents, strict=True))):
                body = For(name, ZERO, extent, ONE, "serial", (body,))
            return body
        trailing = self.shape[self.along + 1:]
        after = names[self.along + 1:]
        begun = loops(inside, trailing, Setf(read(result, first, inside), read(self.terms, first, inside)))
        carried = read(self.factors, before if self.is_shifted else here, after) * read(result, before, after)
        step_of_all = loops(after, trailing, Setf(read(result, here, after), read(self.terms, here, after) + carried))
        stmts: tuple[Stmt, ...] = (begun, For(step.name, ONE, self.shape[self.along], ONE, "serial", (step_of_all,)))
        if is_guarded:
            stmts = If(Op("lt", (ZERO, self.shape[self.along])), stmts),
        for name, extent in reversed(list(zip(names[:self.along], self.shape, strict=False))):
            stmts = For(name, ZERO, extent, ONE, "serial", stmts),
        return Nest(stmts, (Out(result, self.type, self.shape),))


def recurrence_of(nest: Nest) -> Recurrence | None:
    """The recurrence whose loops a nest has; None where it has others."""
    stores = [n for s in nest.stmts for n in s.walk() if isinstance(n, Setf)]
    if len(nest.outs) != 1 or len(stores) != 2 or not isinstance(stores[0].value, Aref):
        return None
    (out,), terms = nest.outs, stores[0].value.buffer
    read = dict.fromkeys([n.buffer for n in stores[1].value.unique() if isinstance(n, Aref)])
    factors = [name for name in read if name not in (out.name, terms)] or [terms]       # both may be one array
    is_guarded = any(isinstance(n, If) for s in nest.stmts for n in s.walk())
    own = _plain(nest)
    for along, direction, is_shifted in product(range(len(out.shape)), ("up", "down"), (False, True)):
        found = Recurrence(factors[0], terms, out.type, out.shape, along, direction, is_shifted)
        if _plain(found.nest(Names({factors[0], terms}).fresh, is_guarded)) == own:
            return found
    return None


def _plain(nest: Nest) -> tuple[Stmt, ...]:
    """The statements with numbers as names, and the operands of sums and products in order."""
    declared = [*[out.name for out in nest.outs], *[n.name for s in nest.stmts for n in s.walk() if isinstance(n, For)]]
    names = {name: f"({number})" for number, name in enumerate(declared)}

    def go(n: Node) -> Any:
        new: Any = n.map(go)
        match new:
            case Var(name=name) | For(name=name) if name in names:
                return new.replace(name=names[name])
            case Aref(buffer=name, index=at):
                return new.replace(buffer=names.get(name, name), index=tuple([canonical(i) for i in at]))
            case Op("add" | "mul", args) if new.dtype != "i64":
                return new.replace(args=tuple(sorted(args, key=show)))
        return new
    return tuple([go(s) for s in nest.stmts])
