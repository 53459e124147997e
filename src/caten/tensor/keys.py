"""The axis of keys of a group in blocks of rows: the one that the last contraction sums, and in which the values before
it are as wide as their rows.

    S[i, j] = Q[i, p] K[j, p]  |  max over p of S[i, p]  |  O[i, k] = E[i, p] V[p, k]         keys:  j, p, p

A condition such as j <= i, outside of which a score is -inf, ends the keys of a block at those of its last row: the
others add nothing to a maximum (-inf), nor to a sum (0). That skips products 0 * V, which would be NaN where V is
infinite or NaN.
"""
from __future__ import annotations

from collections.abc import Mapping

from ..core.expr import Const, Expr, Op, Var
from ..core.node import substitute
from ..loop.affine import canonical, expression, linear
from .fusion import is_contraction
from .index_maps import axes_of
from .kernels import Group, Member
from .loop_splitting import conjuncts
from .products import shift_of
from .values import Axis, Compute, Read, Reduce, reads_of

ROW = Var("(row)", "i64")                           # no name of a program
LEAST = {"max": float("-inf"), "add": 0.0}          # what adds nothing


def key_axes(group: Group) -> dict[str, Axis]:
    """The axis of keys of each value that has one. Empty if the last contraction sums several axes, or if a value reads
    another at other keys."""
    values = {m.name: m.value for m in group.members}
    last = [m for m in group.members if is_contraction(m.value)][-1]
    assert isinstance(last.value, Reduce)
    found = {last.name: last.value.over[0]}
    if len(last.value.over) != 1:
        return {}
    edges = [(m.name, r) for m in group.members for r in reads_of(m.value) if r.buffer in values]
    while True:
        known = len(found)
        for reader, read in edges:
            name, own = read.buffer, values[read.buffer].axes
            if name not in found and reader in found:
                at = next((a for a, i in zip(own, read.index, strict=True) if i is found[reader].var), None)
                if at is not None:
                    found[name] = at
            elif found.get(name) in own:
                key = read.index[own.index(found[name])]
                axis = next((a for a in axes_of(values[reader]) if a.var is key), None)
                if axis is None or found.setdefault(reader, axis) is not axis:
                    return {}
        if len(found) == known:
            break
    return found if len({a.extent for a in found.values()}) == 1 else {}


def last_key(group: Group, keys: Mapping[str, Axis]) -> Expr | None:
    """The greatest key that a row needs, in terms of the row (`ROW`), if a condition ends the keys and no reduction
    over keys has anything to add beyond it."""
    beyond = _Beyond(group, keys)
    for m in group.members:
        if m.name not in keys:
            continue
        assert isinstance(m.value, Compute | Reduce)
        found = beyond.value(m, m.value.expr)
        if isinstance(m.value, Compute):
            beyond.known[m.name] = found
        elif keys[m.name] in m.value.over and (found is None or found != LEAST.get(m.value.fn)):
            return None
    return next(iter(beyond.bounds)) if len(beyond.bounds) == 1 else None


class _Beyond:
    """What values are beyond the last key, where they are constants there (`known`), if no maximum is infinite: a row
    whose maximum is infinite or NaN has a NaN among the keys before. `bounds`: the last keys that conditions give."""

    def __init__(self, group: Group, keys: Mapping[str, Axis]) -> None:
        self.row = group.blocked or 0
        self.keys, self.known, self.bounds = keys, dict[str, float | None](), set[Expr]()
        self.tops = {m.name for m in group.members if isinstance(m.value, Reduce) and m.value.fn == "max"}

    def value(self, m: Member, e: Expr) -> float | None:
        """The constant value of an expression of a member beyond the last key."""
        key = self.keys[m.name]
        match e:
            case Read(buffer, index):
                return self.known.get(buffer) if key.var in index else None
            case Op("where", (cond, yes, Const(float() as value))):
                bounds = {b for part in conjuncts(cond) if (b := _bound(part, m.outer[self.row], key)) is not None}
                self.bounds |= bounds
                return value if bounds or self.value(m, yes) == value else None
            case Op("exp") if (shift := shift_of(e)) is not None and shift[1].buffer in self.tops:
                return 0.0 if self.value(m, shift[0]) == LEAST["max"] else None
            case Op("mul", (a, b)):
                return 0.0 if 0.0 in (self.value(m, a), self.value(m, b)) else None
            case Op("div", (a, b)) if key.name not in b.variables:
                return 0.0 if self.value(m, a) == 0.0 else None
        return None


def _bound(cond: Expr, row: Axis, key: Axis) -> Expr | None:
    """The greatest key for which a condition may hold, if that grows with the row."""
    if not isinstance(cond, Op) or cond.fn not in ("lt", "le", "gt", "ge") or cond.args[0].dtype != "i64":
        return None
    small, large = reversed(cond.args) if cond.fn in ("gt", "ge") else cond.args
    more = (linear(large) - linear(small)).shifted(-1 if cond.fn in ("lt", "gt") else 0)        # at least 0
    if more.terms.get((key.var,)) != -1 or more.terms.get((row.var,)) != 1:
        return None
    bound = expression(more + linear(key.var))
    if key.name in bound.variables or any(isinstance(n, Read) for n in bound.unique()):
        return None
    return canonical(substitute(bound, {row.var: ROW}))
