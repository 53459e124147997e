"""The kernels of a program of values: the values that each computes."""
from __future__ import annotations

from ..core.expr import Expr
from ..frozen import frozen
from .index_maps import axes_of, loops_of, replaced
from .values import Axis, Compute, Indexed, Nest, Scan, operands_of, reads_of

MOST_OF_ONE, MOST_DEEP = 2048, 96          # nodes and levels of the maps of a group as one


@frozen
class Member:
    """A value in a group: which of its axes are the group's outer loops, in their order."""

    name: str
    value: Indexed
    outer: tuple[Axis, ...] = ()

    @property
    def inner(self) -> tuple[Axis, ...]:
        """The other axes, the reduced or scanned ones last. Of a map without outer loops, those with several elements:
        other members have no loops for the rest."""
        if isinstance(self.value, Compute) and not self.outer:
            return loops_of(self.value)
        last = (self.value.scanned,) if isinstance(self.value, Scan) else ()
        return (*[a for a in axes_of(self.value) if a not in self.outer and a not in last], *last)

    @property
    def single(self) -> tuple[Axis, ...]:
        """The axes that are no loop, outer or inner: each has one element."""
        return tuple([a for a in self.value.axes if a not in self.outer and a not in self.inner])


@frozen
class Group:
    """Values that share a kernel, each after those that it reads. `stored`: the members that outputs or other groups
    read. `blocked`: which of the outer loops runs over blocks of rows (`blocks_of_rows`)."""

    members: tuple[Member, ...]
    stored: frozenset[str]
    blocked: int | None = None

    @property
    def last(self) -> Member:
        """The member after all others."""
        return self.members[-1]


@frozen
class NestKernel:
    """A loop nest that is a kernel by itself, with the names of its results."""

    names: tuple[str, ...]
    nest: Nest


def names_of(k: Group | NestKernel) -> tuple[str, ...]:
    """The values that a kernel defines."""
    return k.names if isinstance(k, NestKernel) else tuple([m.name for m in k.members])


def reads_of_kernel(k: Group | NestKernel) -> tuple[str, ...]:
    """The parameters and values that a kernel reads from memory."""
    if isinstance(k, NestKernel):
        return operands_of(k.nest)
    own = set(names_of(k))
    return tuple(dict.fromkeys([name for m in k.members for name in operands_of(m.value) if name not in own]))


def as_one_map(k: Group) -> Compute | None:
    """The maps of a group as one, whose parts are shared; None if there are others, of which a part is stored, or which
    read other elements than their own, and if they would be too long."""
    last = k.last.value
    if not isinstance(last, Compute) or len(k.members) == 1:
        return last if isinstance(last, Compute) else None
    whole: dict[str, Expr] = {}
    own = tuple([a.var for a in last.axes])
    for m in k.members:
        if not isinstance(m.value, Compute) or m.value.axes != last.axes or (m is not k.last and m.name in k.stored):
            return None
        if any(r.buffer in whole and r.index != own for r in reads_of(m.value)):
            return None
        whole[m.name] = replaced(m.value.expr, lambda r: whole.get(r.buffer, r))
        if whole[m.name].written_out > MOST_OF_ONE or whole[m.name].depth > MOST_DEEP:
            return None
    return last.replace(expr=whole[k.last.name])
