"""Fusion: which values share a kernel. One sweep over values, from the outputs to the inputs.

1. Expand: a map is computed by its readers if that costs little (`_is_inlined`).
2. Epilogues: a map that reads a contraction element by element, and is its only reader, belongs to its kernel.
3. Group: a value joins the group of its readers if they read it identically along some axes. These are the `outer`
   loops of the kernel: an iteration computes its elements of all members, so what they exchange is as large as one
   iteration. No cycle can arise: a value joins the reader's group that runs first.

The shape of the algorithm is that of tinygrad's `rangeify`; groups that share only their outer loops are those of
PyTorch Inductor's "outer loop fusion".
"""
from __future__ import annotations

from collections.abc import Sequence

from ..core.expr import Const, Expr, Op, Var
from ..core.node import kept
from ..frozen import frozen
from .index_maps import CHEAP, axes_of, cost, element, is_identity, is_once, is_small, with_reads
from .values import Axis, Compute, Nest, Read, Reduce, TensorProgram, Value, operands_of, reads_of

FREE = 2                 # of a map that a contraction computes while it packs an operand
MOST_COST = 512          # of the operators in a group
MOST_ARRAYS = 16         # that a group reads and writes


@frozen
class Member:
    """A value in a group: which of its axes are the group's outer loops, in their order."""

    name: str
    value: Compute | Reduce
    outer: tuple[Axis, ...] = ()

    @property
    def inner(self) -> tuple[Axis, ...]:
        """The other axes, the reduced ones last."""
        return tuple([a for a in axes_of(self.value) if a not in self.outer])


@frozen
class Group:
    """Values that share a kernel, each after those that it reads. `stored`: the members that outputs or other groups
    read."""

    members: tuple[Member, ...]
    stored: frozenset[str]

    @property
    def last(self) -> Member:
        """The member after all others."""
        return self.members[-1]


@frozen
class NestKernel:
    """A loop nest that is a kernel by itself, with the names of its results."""

    names: tuple[str, ...]
    nest: Nest


def kernels_of(program: TensorProgram) -> list[Group | NestKernel]:
    """The kernels of a program, each after those that it reads; otherwise in the order of the definitions."""
    return _Sweep(program).kernels()


@kept
def is_contraction(value: Value) -> bool:
    """Is it a sum of products whose two factors each vary along an axis that the other does not? Such a sum is worth
    tiling."""
    match value:
        case Reduce(fn="add", expr=Op("mul", (a, b))):
            axes = {x.name for x in value.axes}
            in_a, in_b = ({n.name for n in e.unique() if isinstance(n, Var)} & axes for e in (a, b))
            return bool(in_a - in_b) and bool(in_b - in_a)
    return False


class _Draft:
    """A group in the making. `outer` maps each member to the axes that are outer loops."""

    def __init__(self, number: int, name: str, value: Compute | Reduce) -> None:
        self.number = number                              # later numbers run earlier
        self.outer: dict[str, tuple[Axis, ...]] = {name: value.axes}
        self.contraction = ""
        self.cost = 0


class _Sweep:
    def __init__(self, program: TensorProgram) -> None:
        self.order = {name: n for n, d in enumerate(program.definitions) for name in d.names}
        self.definitions = program.definitions
        self.outputs = {o.value for o in program.outputs}
        self.opaque = {name for d in self.definitions if isinstance(d.value, Nest) for name in operands_of(d.value)}
        self.values: dict[str, Value] = {}                # expanded, of those that are kept
        self.inlined: dict[str, Compute] = {}
        self.expand()
        self.readers: dict[str, list[tuple[str, Read]]] = {}
        for name, value in self.values.items():
            for r in reads_of(value) if not isinstance(value, Nest) else ():
                self.readers.setdefault(r.buffer, []).append((name, r))
        self.ends = {name: r.buffer for name, value in self.values.items() if isinstance(value, Compute)
                     for r in reads_of(value) if self.is_epilogue(name, value, r)}
        self.group_of: dict[str, _Draft] = {}
        self.drafts: list[_Draft] = []
        self.group()

    # -- expand --------------------------------------------------------------------------------------------------------

    def expand(self) -> None:
        """Substitute the maps that their readers compute."""
        values = {d.name: d.value for d in self.definitions}
        uses: dict[str, list[tuple[Value, Read]]] = {}
        for d in self.definitions:
            for r in reads_of(d.value) if not isinstance(d.value, Nest) else ():
                uses.setdefault(r.buffer, []).append((d.value, r))
        self.is_sum = {name: isinstance(v, Reduce) for name, v in values.items()}
        for d in self.definitions:
            if isinstance(d.value, Nest):
                for name in d.names:
                    self.values[name] = d.value
                continue
            value = with_reads(d.value, self.element)
            if isinstance(value, Compute) and self.is_inlined(d.name, value, uses.get(d.name, [])):
                self.inlined[d.name] = value
            else:
                self.values[d.name] = value

    def element(self, read: Read) -> Expr:
        """What a reader computes in the place of a read."""
        value = self.inlined.get(read.buffer)
        return read if value is None else element(value, read.index)

    def is_inlined(self, name: str, value: Compute, uses: Sequence[tuple[Value, Read]]) -> bool:
        """Do the readers of a map compute it?"""
        if name in self.outputs or name in self.opaque or not is_small(value.expr):
            return False
        each = cost(value.expr)
        if each == 0:
            return True
        reads = reads_of(value)
        wide = sum([len(r.index) >= len(value.axes) for r in reads])
        for reader, _ in uses:
            if is_contraction(reader) and (each > FREE or wide > 1 or any(self.is_sum.get(r.buffer) for r in reads)):
                return False
        if any(is_contraction(self.values.get(r.buffer, value)) for r in reads) and any(
                is_contraction(reader) or isinstance(reader, Reduce) or len(uses) > 1 for reader, _ in uses):
            return False
        if len(uses) == 1:
            return each <= CHEAP or is_once(uses[0][1].index, uses[0][0])
        return each <= CHEAP and wide <= 1

    def is_epilogue(self, name: str, value: Compute, read: Read) -> bool:
        """Does a map finish a contraction: does it alone read it, element by element?"""
        source = self.values.get(read.buffer)
        return (source is not None and is_contraction(source) and is_identity(read, value)
                and axes_of(source)[:len(value.axes)] == value.axes and read.buffer not in self.outputs | self.opaque
                and {reader for reader, _ in self.readers[read.buffer]} == {name}
                and all(is_identity(r, value) for _, r in self.readers[read.buffer])
                and not any(is_contraction(self.values.get(r.buffer, value)) for r in reads_of(value) if r is not read))

    # -- group ---------------------------------------------------------------------------------------------------------

    def group(self) -> None:
        for name in reversed(self.values):
            value = self.values[name]
            if isinstance(value, Nest):
                continue
            assert isinstance(value, Compute | Reduce)
            users = self.readers.get(name, [])
            chosen: _Draft | None = None
            if users and name not in self.opaque and all(user in self.group_of for user, _ in users):
                first = max([self.group_of[user] for user, _ in users], key=lambda g: g.number)
                if self.joins(name, value, [(u, r) for u, r in users if self.group_of[u] is first], first):
                    chosen = first
            if chosen is None:
                chosen = _Draft(len(self.drafts), name, value)
                self.drafts.append(chosen)
                if is_contraction(value):
                    chosen.contraction = name
            self.group_of[name] = chosen
            chosen.cost += sum([cost(e) for e in value.children if isinstance(e, Expr)])

    def joins(self, name: str, value: Compute | Reduce, users: Sequence[tuple[str, Read]], g: _Draft) -> bool:
        """Add a value to the group of its readers, if it fits there."""
        if self.ends.get(users[0][0]) == name:
            if len(g.outer) > 1:
                return False
            g.outer[name], g.contraction = value.axes, name
            return True
        if name in self.ends or is_contraction(value) or g.contraction or any(
                is_contraction(self.values[u]) for u, _ in users):
            return False
        own: dict[int, Axis] | None = None
        for user, read in users:
            at = {}
            for n, axis in enumerate(g.outer[user]):
                position = next((p for p, i in enumerate(read.index) if i is axis.var), None)
                if position is not None and value.axes[position].extent is axis.extent:
                    at[n] = value.axes[position]
            own = at if own is None else {n: a for n, a in own.items() if at.get(n) is a}
        assert own is not None
        if not own and (value.axes or not all(v.axes == () for m in g.outer
                                              if isinstance(v := self.values[m], Compute | Reduce))):
            return False
        if len(set(own.values())) != len(own) or g.cost > MOST_COST or not self.pays(value, g, own):
            return False
        kept_loops = sorted(own)
        for member, outer in g.outer.items():
            g.outer[member] = tuple([outer[n] for n in kept_loops])
        g.outer[name] = tuple([own[n] for n in kept_loops])
        return True

    def pays(self, value: Compute | Reduce, g: _Draft, own: dict[int, Axis]) -> bool:
        """Is a larger group worth its smaller number of outer loops?"""
        arrays = {r.buffer for m in g.outer for r in reads_of(self.values[m])} | {r.buffer for r in reads_of(value)}
        return len(arrays) + len(g.outer) <= MOST_ARRAYS and not (own and all(
            isinstance(a.extent, Const) and a.extent.value == 1 for a in own.values()))

    # -- result --------------------------------------------------------------------------------------------------------

    def kernels(self) -> list[Group | NestKernel]:
        """Groups and nests in the order of the last definition in each."""
        found: list[tuple[int, Group | NestKernel]] = []
        for g in self.drafts:
            names = sorted(g.outer, key=self.order.__getitem__)
            stored = frozenset([n for n in names if n in self.outputs or n in self.opaque
                                or any(self.group_of.get(u) is not g for u, _ in self.readers.get(n, []))])
            members: list[Member] = []
            for n in names:
                value = self.values[n]
                assert isinstance(value, Compute | Reduce)
                members.append(Member(n, value, g.outer[n]))
            found.append((self.order[names[-1]], Group(tuple(members), stored)))
        for d in self.definitions:
            if isinstance(d.value, Nest):
                at = self.order[d.names[0]] if d.names else self.definitions.index(d)
                found.append((at, NestKernel(d.names, d.value)))
        return self.in_order(found)

    def in_order(self, found: list[tuple[int, Group | NestKernel]]) -> list[Group | NestKernel]:
        """Each kernel after those that it reads; among these, the one that was written first."""
        made_by = {name: k for _, k in found for name in names_of(k)}
        order: list[Group | NestKernel] = []
        done: set[int] = set()
        stack = [(k, False) for _, k in sorted(found, key=lambda each: -each[0])]
        while stack:
            k, is_ready = stack.pop()
            if id(k) in done:
                continue
            if is_ready:
                done.add(id(k))
                order.append(k)
                continue
            stack.append((k, True))
            needed = {id(made_by[n]): made_by[n] for n in reads_of_kernel(k) if n in made_by and made_by[n] is not k}
            earlier = sorted(needed.values(), key=lambda e: -self.order[names_of(e)[-1]])
            stack += [(e, False) for e in earlier if id(e) not in done]
        return order


def names_of(k: Group | NestKernel) -> tuple[str, ...]:
    """The values that a kernel defines."""
    return k.names if isinstance(k, NestKernel) else tuple([m.name for m in k.members])


def reads_of_kernel(k: Group | NestKernel) -> tuple[str, ...]:
    """The parameters and values that a kernel reads from memory."""
    if isinstance(k, NestKernel):
        return operands_of(k.nest)
    own = set(names_of(k))
    return tuple(dict.fromkeys([r.buffer for m in k.members for r in reads_of(m.value) if r.buffer not in own]))
