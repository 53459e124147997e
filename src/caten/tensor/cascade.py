"""Cascades: reductions over the same keys, of which the later ones read the earlier ones, block by block (rule B).

    top = max x                            for each block of keys:
    s = sum exp(x - top)          ->         new = max(top, max x);  c = exp(top - new)
    o = sum exp(x - top) * V                 s = c s + sum exp(x - new);  o = c o + sum exp(x - new) V;  top = new

A term of a later reduction is a product of which one factor is exp(x - top), the others read no reduction. A greater
maximum then multiplies the whole sum by c = exp(top - new), which is at most 1: nothing overflows, and each block adds
the error of one exponential and two roundings to the usual bound of a sum.

Where all x so far are -inf, `new` is -inf too. Then c is 1, and the terms are taken from 0 instead of `new`: they are
0, and not the NaN of -inf + inf. If the maximum of all keys is -inf, the definition gives that NaN, and so does `ends`.

This is online softmax (Milakov and Gimelshein 2018), and with a contraction as the last reduction FlashAttention (Dao
et al. 2022). Deriving it from factors of terms follows the cascaded reductions of RedFuser.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping

from ..core.expr import Expr, Op, number
from ..core.monoids import identity
from ..frozen import frozen
from .index_maps import with_reads
from .kernels import Group, Member
from .products import Values, factors, is_free_of, opened, shifted_exponential
from .values import Axis, Compute, Read, Reduce, operands_of, reads_of


@frozen
class Cascade:
    """Reductions that may run block by block. `top`: the maximum. `sums`: the later ones. `before`: the values that
    they read, of a block of keys. `after`: the members that read the results."""

    top: Member
    sums: tuple[Member, ...]
    before: tuple[Member, ...]
    after: tuple[Member, ...]

    @property
    def states(self) -> tuple[Member, ...]:
        """The reductions that have a running result."""
        return (self.top, *self.sums)


def cascade_of(group: Group, keys: Mapping[str, Axis]) -> Cascade | None:
    """The cascade of the reductions over the keys of a group, if they are one."""
    values: Values = {m.name: m.value for m in group.members}
    totals = [m for m in group.members if isinstance(m.value, Reduce) and keys.get(m.name) in m.value.over]
    before = [m for m in group.members if m.name in keys and m not in totals]
    after = [m for m in group.members if m.name not in keys]
    if len(totals) < 2 or group.stored & {m.name for m in (*totals, *before)}:
        return None
    top, *sums = totals
    assert isinstance(top.value, Reduce)
    if top.value.fn != "max" or top.value.axes != top.outer:
        return None
    names = {m.name for m in (*totals, *after)}
    if not all(_is_rescaled(m, top, values, names) for m in sums):
        return None
    if any(r.buffer in names for e in top.value.children if isinstance(e, Expr)
           for r in reads_of(opened(e, values))):
        return None
    return Cascade(top, tuple(sums), tuple(before), tuple(after))


def _is_rescaled(m: Member, top: Member, values: Values, totals: set[str]) -> bool:
    """Is a reduction a sum of terms with the factor exp(x - top), and no other that reads a reduction?"""
    value = m.value
    if not isinstance(value, Reduce) or value.fn != "add" or value.type != top.value.type or len(value.over) != 1:
        return False
    found = 0
    for e, divides in factors(value.expr, values):
        read = shifted_exponential(e, value.over, values)
        if read is not None and read.buffer == top.name and not divides and read.index == tuple(
                [a.var for a in m.outer]):
            found += 1
        elif any(r.buffer in totals for r in reads_of(opened(e, values))):
            return False
    return found == 1 and not reads_of(value.cond) and is_free_of(value.cond, value.over)


def step(cascade: Cascade, state: Mapping[str, str], fresh: Callable[[str], str],
         ) -> tuple[tuple[Member, ...], dict[str, str]]:
    """What a block of keys does: its values, and for each reduction the value that its running result becomes.
    `state`: reduction -> the name of its running result."""
    top = cascade.top.value
    assert isinstance(top, Reduce)
    own, least = tuple([a.var for a in top.axes]), identity("max", top.type)
    old, part, new, origin, factor = (Read(name, own, top.type) for name in (
        state[cascade.top.name], *[fresh(name) for name in ("part", "new", "origin", "factor")]))

    def of_row(read: Read, fn: str, *args: Expr) -> Member:
        return Member(read.buffer, Compute(top.type, top.axes, Op(fn, args)), cascade.top.outer)

    def shifted(m: Member, name: str) -> Member:
        value = with_reads(m.value, lambda r: origin.replace(index=r.index) if r.buffer == cascade.top.name else r)
        assert isinstance(value, Compute | Reduce)
        return Member(name, value, m.outer)
    late = {cascade.top.name}
    for m in cascade.before:
        if not late.isdisjoint(operands_of(m.value)):
            late.add(m.name)
    made = [
        *[m for m in cascade.before if m.name not in late],
        Member(part.buffer, top, cascade.top.outer),
        of_row(new, "max", old, part),
        of_row(origin, "where", Op("eq", (new, least)), number(0.0, top.type), new),
        of_row(factor, "where", Op("eq", (old, new)), number(1.0, top.type),
               Op("exp", (Op("min", (Op("sub", (old, new)), number(0.0, top.type))),))),
        *[shifted(m, m.name) for m in cascade.before if m.name in late]]
    results = {cascade.top.name: new.buffer}
    for m in cascade.sums:
        term, total = fresh("part"), fresh("sum")
        before, more = (Read(name, tuple([a.var for a in m.value.axes]), top.type) for name in (state[m.name], term))
        rescaled = Op("mul", (factor.replace(index=tuple([a.var for a in m.outer])), before))
        made += [shifted(m, term),
                 Member(total, Compute(top.type, m.value.axes, Op("add", (rescaled, more))), m.outer)]
        results[m.name] = total
    return tuple(made), results


def ends(cascade: Cascade, state: Mapping[str, str]) -> tuple[Member, ...]:
    """The results after all blocks, under the names of the reductions, and the members that read them."""
    made: list[Member] = []
    for m in cascade.states:
        highest = Read(state[cascade.top.name], tuple([a.var for a in m.outer]), m.value.type)
        result: Expr = Read(state[m.name], tuple([a.var for a in m.value.axes]), m.value.type)
        if m is not cascade.top:
            is_least = Op("eq", (highest, identity("max", m.value.type)))
            result = Op("where", (is_least, Op("sub", (highest, highest)), result))
        made.append(Member(m.name, Compute(m.value.type, m.value.axes, result), m.outer))
    return (*made, *cascade.after)
