"""Axes of a tile that several loops share: pixels and the windows over them meet in the same elements (the halo)."""
from __future__ import annotations

from collections.abc import Sequence

from ...core.expr import Expr, Op, Var, index
from ...core.node import substitute
from ...frozen import frozen
from ...loop.accesses import stride_in
from ...loop.affine import canonical
from ...loop.statements import Aref, For, is_const
from ..normalize import normal
from .loop_queries import mentions

SUM = Var(" sum", "i64")              # no loop has this name


@frozen
class Halo:
    """The values of `position`, a sum of loop variables with constant factors, one of which is 1. `loop` counts them
    from 0, and has the name of the first of the loops. A loop whose factor is negative, as in gradients of
    convolutions, is counted from its last iteration."""

    loop: For
    position: Expr
    unit: Var
    rest: Expr                        # the sum without the variable whose factor is 1
    loops: tuple[For, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The loops that share the axis."""
        return tuple([loop.name for loop in self.loops])

    def of(self, expr: Expr) -> Expr | None:
        """An expression over the loops as one over `loop`; None if it depends on more than the sum of them."""
        if not mentions(expr, self.names):
            return expr
        made = normal(substitute(expr, {self.unit: Op("sub", (SUM, self.rest))}))
        return None if mentions(made, self.names) else substitute(made, {SUM: Var(self.loop.name, "i64")})

    def for_some(self, cond: Expr) -> Expr | None:
        """A condition over `loop` that holds wherever `cond` holds for one of the iterations that meet there, and
        perhaps elsewhere; None if there is none but the true one."""
        if (exact := self.of(cond)) is not None:
            return exact
        if not isinstance(cond, Op) or cond.fn not in ("lt", "le"):
            return None
        made = normal(substitute(cond, {self.unit: Op("sub", (SUM, self.rest))}))
        for loop in self.loops:
            stride = stride_in(made.args[0] - made.args[1], loop.name) if isinstance(made, Op) else None
            if stride is None:
                return None
            made = normal(substitute(made, {Var(loop.name, "i64"): loop.lo if stride > 0 else canonical(loop.hi - 1)}))
        return substitute(made, {SUM: Var(self.loop.name, "i64")})


def halo(ref: Aref, loops: Sequence[For]) -> Halo:
    """The axis that loops share in a tile of what they read. Raises ValueError with the reason if they have none."""
    names = tuple([loop.name for loop in loops])
    for loop in loops:
        if not is_const(loop.lo, 0) or not is_const(loop.step, 1):
            raise ValueError(f"'{loop.name}' does not count from 0 by 1")
    used = [i for i in ref.index if mentions(i, names)]
    factors = [stride for name in names if used and (stride := stride_in(used[0], name))]
    if len(factors) < len(loops) or 1 not in factors:
        raise ValueError(f"{ref} does not move with a sum of {' and '.join(names)}")
    ends = [canonical(Op("mul", (index(abs(f)), loop.hi - 1))) for f, loop in zip(factors, loops, strict=True)]
    scaled = [canonical(Op("mul", (index(f), Var(loop.name, "i64"))) + (end if f < 0 else 0))
              for f, loop, end in zip(factors, loops, ends, strict=True)]
    place = factors.index(1)
    rest = _total([term for n, term in enumerate(scaled) if n != place])
    axis = For(names[0], index(0), canonical(_total(ends) + 1), index(1), "serial", ())
    made = Halo(axis, canonical(_total(scaled)), Var(names[place], "i64"), rest, tuple(loops))
    if any(made.of(i) is None for i in used):
        raise ValueError(f"{ref} does not move with a sum of {' and '.join(names)} alone")
    return made


def _total(terms: Sequence[Expr]) -> Expr:
    total = terms[0]
    for term in terms[1:]:
        total = Op("add", (total, term))
    return total
