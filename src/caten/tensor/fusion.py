"""Fusion: which values share a kernel. One sweep over values, from the outputs to the inputs.

1. Expand: a map is computed by its readers if that costs little (`why_kept`).
2. Epilogues: a map that reads a contraction element by element, and is its only reader, belongs to its kernel.
3. Group: a value joins the group of its readers if they read it identically along some axes. These are the `outer`
   loops of the kernel: an iteration computes its elements of all members, so what they exchange is as large as one
   iteration. No cycle can arise: a value joins the reader's group that runs first. A scan shares a kernel with maps
   only, its axis is in the iteration; a scatter shares none. On one thread, passes over a vector are a group without
   outer loops.

What is not computed by its readers, or does not join them, has a reason (`boundaries`).

The shape of the algorithm is that of tinygrad's `rangeify`; groups that share only their outer loops are those of
PyTorch Inductor's "outer loop fusion".
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..core.expr import Const, Expr, Op, Var
from ..core.node import Node, kept
from ..core.program import Target
from ..core.scalars import COMPARISONS
from . import boundaries as why
from .boundaries import Boundary, Limit, Reason
from .fusion_requests import NO_REQUESTS, requests_of
from .index_maps import (
    CHEAP,
    MOST_NODES,
    Uses,
    axes_of,
    cost,
    cost_of_each,
    element,
    has_costly_function,
    is_identity,
    is_once,
    is_small,
    loops_of,
    uses_of,
    with_reads,
)
from .kernel_order import in_order
from .kernels import Group, Member, NestKernel
from .request_checks import Decided, check_requests
from .values import (
    Along,
    Axis,
    Compute,
    FusedKernel,
    Indexed,
    Nest,
    Pieces,
    Read,
    Reduce,
    Scan,
    Scatter,
    TensorProgram,
    Value,
    operands_of,
    reads_of,
    whole_operands_of,
)

BLOCKS = "blocks"        # the form of a kernel that runs over blocks of rows
FREE = 2                 # of a map that a contraction computes while it packs an operand
MOST_COST = 512          # of the operators in a group
MOST_ARRAYS = 16         # that a group reads and writes


def kernels_of(program: TensorProgram) -> list[Group | NestKernel]:
    """The kernels of a program, each after those that it reads; otherwise in the order of the definitions. Where a text
    has them (`caten ir --fused`), those."""
    return _as_written(program) if program.first(FusedKernel) is not None else _Sweep(program).kernels()


def _as_written(program: TensorProgram) -> list[Group | NestKernel]:
    found = program.all(FusedKernel)
    kernels: list[Group | NestKernel] = []
    for k in found:
        needed = set(program.results) | {name for other in found if other is not k for d in other.definitions
                                        for name in operands_of(d.value)}
        along = {step.value: step.axes for step in k.steps if isinstance(step, Along)}
        members: list[Member] = []
        for d in k.definitions:
            if isinstance(d.value, Nest):
                kernels.append(NestKernel(d.names, d.value))
                continue
            assert isinstance(d.value, Indexed)
            own = {a.name: a for a in d.value.axes}
            outer = tuple([own[n] for n in along.get(d.name, tuple([a.name for a in k.outer]))])
            members.append(Member(d.name, d.value, outer))
        if members:
            rows = axis_of_rows(members) if k.form == BLOCKS else None
            kernels.append(Group(tuple(members), frozenset([m.name for m in members]) & needed, rows))
    return kernels


def misaligned(group: Group) -> tuple[Member, Read, int] | None:
    """A read that keeps values from sharing a kernel, with its reader and the axis that is not read at the index of the
    outer loop; None if the outer loops are legal."""
    members = {m.name: m for m in group.members}
    for m in group.members:
        for r in reads_of(m.value):
            if (u := members.get(r.buffer)) is None:
                continue
            for theirs, own in zip(u.outer, m.outer, strict=True):
                axis = u.value.axes.index(theirs)
                if r.index[axis] is not own.var or theirs.extent is not own.extent:
                    return m, r, axis
    return None


def boundaries_of(program: TensorProgram) -> list[Boundary]:
    """Where one kernel stores what another one reads, and why, in the order of the definitions. Of kernels that a text
    has, the reasons are not known."""
    return [] if program.first(FusedKernel) is not None else _Sweep(program).boundaries()


def computed_by_readers(program: TensorProgram) -> dict[str, Compute]:
    """The maps that no kernel computes by itself, for their readers do; each with all that it needs."""
    return {} if program.first(FusedKernel) is not None else _Sweep(program).inlined


def why_stored(value: Compute, uses: Sequence[tuple[Value, Read]], values: Mapping[str, Value],
               readers: Mapping[str, Uses]) -> Reason | None:
    """Why it costs less to store a map than to compute it in its readers; None if it does not. `uses`: its readers, and
    where they read it. `values`: the other values, and `readers`: what reads each."""
    each = cost(value.expr)
    packed = any(is_contraction(reader) for reader, _ in uses)
    if is_mask_of_product(value, uses):
        return why.COMPARES
    if is_divided_again(value, uses):
        return why.REMAINDERS
    reads = reads_of(value)
    wide = sum([len(r.index) >= len(value.axes) for r in reads])
    if packed and each > FREE:
        return Limit("an operand of a contraction costs", each, FREE)
    if packed and wide > 1:
        return why.SEVERAL_ARRAYS
    if packed and chooses_between_elements(value):
        return why.BORDER
    if packed and isinstance(value.expr, Op) and value.expr.fn in ("real", "imag"):
        return why.PARTS
    if each == 0:
        return None
    sources = [values[r.buffer] for r in reads if r.buffer in values]
    if packed and any(isinstance(source, Reduce) for source in sources):
        return why.OF_REDUCTION
    if len(uses) > 1 and any(is_contraction(values[r.buffer]) and len(readers.get(r.buffer, ())) < 2
                             for r in reads if r.buffer in values):
        return why.READS_CONTRACTION                  # in the place of the contraction, which nothing else needs
    again = cost_of_each(value)                       # loops compute the rest before them
    if again > CHEAP and not (len(uses) == 1 and is_once(uses[0][1].index, uses[0][0])):
        return Limit("it is read several times, and costs", again, CHEAP)
    return why.SEVERAL_READERS if len(uses) != 1 and wide > 1 else None


def is_mask_of_product(value: Compute, uses: Sequence[tuple[Value, Read]]) -> bool:
    """Does an operand of a contraction compare what it reads, or its axes (a triangle)? It would be compared again for
    each tile."""
    axes = {axis.name for axis in value.axes}
    return any(is_contraction(reader) for reader, _ in uses) and any(isinstance(n, Op) and n.fn in COMPARISONS and (
        len(n.variables & axes) > 1 or any(isinstance(m, Read) for m in n.unique())) for n in value.expr.unique())


def is_divided_again(value: Compute, uses: Sequence[tuple[Value, Read]]) -> bool:
    """Does a map that others read several times choose between elements of arrays by a remainder of an index, as zeros
    between elements do? It would be divided again for each term of a sum, which then is not computed in vectors."""
    return not (len(uses) == 1 and is_once(uses[0][1].index, uses[0][0])) and any(
        isinstance(n, Op) and n.fn == "where" and is_varying_remainder(n.args[0], {a.name for a in value.axes})
        and any(isinstance(r, Read) for r in n.unique()) for n in value.expr.unique())


def is_varying_remainder(cond: Expr, axes: set[str]) -> bool:
    """Does a condition have a remainder of an index along these axes?"""
    return any(isinstance(n, Op) and n.fn == "mod" and n.dtype == "i64" and n.args[0].variables & axes
               for n in cond.unique())


@kept
def is_contraction(value: Value) -> bool:
    """Is it a sum of products whose two factors each vary along an axis that the other does not? Such a sum is worth
    tiling."""
    a, b = axes_of_factors(value)
    return bool(a - b) and bool(b - a)


@kept
def is_product(value: Value) -> bool:
    """Is it a contraction, or a matrix-vector product: a sum of products whose factors vary along different axes of
    the result?"""
    a, b = axes_of_factors(value)
    return a != b


@kept
def has_window(value: Value) -> bool:
    """Is it a sum of products over a window of unknown extent along its last axis, as a depthwise convolution is? Its
    vectors lie along this axis, however long the window is."""
    if not isinstance(value, Reduce) or not value.axes or not is_product(value):
        return False
    window = {a.name for a in value.over if not isinstance(a.extent, Const)}
    return any(r.index and value.axes[-1].name in r.index[-1].variables and not window.isdisjoint(r.index[-1].variables)
               for r in reads_of(value))


def axes_of_factors(value: Value) -> tuple[frozenset[str], frozenset[str]]:
    """The axes of a sum of products along which its two factors vary; none if it is no such sum. An axis over the
    elements of groups is two: that of the groups (i / n), and that within each (i mod n)."""
    match value:
        case Reduce(fn="add", expr=Op("mul", (a, b))):
            axes = {x.name for x in value.axes}
            of_a, of_b = _axes_within(a, axes), _axes_within(b, axes)
            return of_a, of_b
    return frozenset(), frozenset()


def _axes_within(factor: Expr, axes: set[str]) -> frozenset[str]:
    found: set[str] = set()
    seen: set[Node] = set()
    todo: list[Node] = [factor]
    while todo:
        e = todo.pop()
        match e:
            case Op(fn="floordiv", args=(Var() as axis, Const(1))):
                todo.append(axis)
            case Op(fn="mod", args=(Var(), Const(1))):
                pass
            case Op(fn="floordiv" | "mod" as fn, args=(Var(name=name), by)) if name in axes and not by.variables & axes:
                found.add(f"{name} {fn}")
            case Var(name=name) if name in axes:
                found |= {f"{name} floordiv", f"{name} mod"}
            case _:
                todo += [child for child in e.children if child not in seen]
                seen.update(e.children)
    return frozenset(found)


def axis_of_rows(members: Sequence[Member]) -> int | None:
    """Which outer loop of several contractions may run over blocks of rows: the last that is no batch of any. None if
    there is only one of them, or no such loop."""
    sums = [m for m in members if is_contraction(m.value)]
    if len(sums) < 2:
        return None
    rows = [n for n, axes in enumerate(zip(*[m.outer for m in sums], strict=True))
            if all(a in _row_axes(m.value) for a, m in zip(axes, sums, strict=True))]
    return rows[-1] if rows else None


def _row_axes(value: Indexed) -> tuple[Axis, ...]:
    """The axes of a contraction along which only one of its factors varies: its rows and columns. The others are
    batches."""
    match value.expr:
        case Op("mul", (a, b)):
            return tuple([x for x in value.axes if (x.name in a.variables) != (x.name in b.variables)])
    return ()


class _Draft:
    """A group in the making. `outer` maps each member to the axes that are outer loops."""

    def __init__(self, number: int, name: str, value: Indexed) -> None:
        self.number = number                              # later numbers run earlier
        self.outer: dict[str, tuple[Axis, ...]] = {name: independent(value)}
        self.contraction = ""
        self.cost = 0


def passes_over_vectors(program: TensorProgram) -> bool:
    """May the passes over a vector share a kernel? Not where threads share each of them."""
    target = program.first(Target)
    return target is not None and not target.machine.threads and not target.machine.groups


def chooses_between_elements(value: Indexed) -> bool:
    """Does a value read under conditions, at indices that are not its axes?"""
    return (any(isinstance(n, Pieces) or (isinstance(n, Op) and n.fn == "where") for n in value.unique())
            and any(not isinstance(i, Var | Const) for r in reads_of(value) for i in r.index))


def independent(value: Indexed) -> tuple[Axis, ...]:
    """The axes along which the elements of a value do not depend on each other."""
    return value.others if isinstance(value, Scan) else () if isinstance(value, Scatter) else value.axes


class _Sweep:
    def __init__(self, program: TensorProgram) -> None:
        self.order = {name: n for n, d in enumerate(program.definitions) for name in d.names}
        self.program, self.definitions = program, program.definitions
        self.requests = requests_of(program)
        self.passes_over_vectors = passes_over_vectors(program)
        self.outputs = set(program.results)
        self.opaque = {name: why.SCATTER if isinstance(d.value, Scatter) else why.NEST
                       for d in self.definitions for name in whole_operands_of(d.value)}
        self.values: dict[str, Value] = {}                # expanded, of those that are kept
        self.inlined: dict[str, Compute] = {}
        self.kept: dict[str, Reason] = {}                 # why the readers of a map do not compute it
        self.apart: dict[str, Reason] = {}                # why a value has not joined the group of its readers
        self.expand()
        self.readers: dict[str, list[tuple[str, Read]]] = {}
        for name, value in self.values.items():
            for r in reads_of(value) if not isinstance(value, Nest) else ():
                self.readers.setdefault(r.buffer, []).append((name, r))
        self.ends = {name: r.buffer for name, value in self.values.items() if isinstance(value, Compute)
                     for r in reads_of(value) if self.is_epilogue(name, value, r)}
        self.group_of: dict[str, _Draft] = {}
        self.drafts: list[_Draft] = []
        self.siblings: dict[tuple[tuple[Axis, ...], tuple[Axis, ...], Read], str] = {}
        self.group()
        if self.requests is not NO_REQUESTS:
            check_requests(program, self.requests, Decided(
                self.values, self.inlined, self.kept, self.apart, self.readers,
                {name: g.number for name, g in self.group_of.items()}))

    # -- expand --------------------------------------------------------------------------------------------------------

    def expand(self) -> None:
        """Substitute the maps that their readers compute."""
        values = {d.name: d.value for d in self.definitions}
        self.uses = uses = uses_of([d.value for d in self.definitions])
        self.known: dict[str, Value] = dict(values)                     # expanded, as far as the loop below is
        for d in self.definitions:
            if isinstance(d.value, Nest):
                for name in d.names:
                    self.values[name] = d.value
                continue
            value = with_reads(d.value, self.element)
            if isinstance(value, Compute):
                reason = self.why_kept(d.name, value, uses.get(d.name, []))
                if reason is None:
                    self.inlined[d.name] = value
                    continue
                self.kept[d.name] = reason
            self.values[d.name] = self.known[d.name] = value

    def element(self, read: Read) -> Expr:
        """What a reader computes in the place of a read."""
        value = self.inlined.get(read.buffer)
        return read if value is None else element(value, read.index)

    def why_kept(self, name: str, value: Compute, uses: Sequence[tuple[Value, Read]]) -> Reason | None:
        """Why the readers of a map do not compute it; None if they do."""
        if name in self.outputs:
            return why.OUTPUT
        if name in self.opaque:
            return self.opaque[name]
        if not is_small(value.expr):
            return Limit("the nodes of the expression are", value.expr.written_out, MOST_NODES)
        if name in self.requests.inline:
            return None
        if name in self.requests.keep:
            return why.KEPT
        if any(name in pair for pair in self.requests.apart):
            return why.APART
        return why_stored(value, uses, self.known, self.uses)

    def is_epilogue(self, name: str, value: Compute, read: Read) -> bool:
        """Does a map finish a contraction: does it alone read it, element by element?"""
        source = self.values.get(read.buffer)
        if read.buffer in self.requests.keep or self.requests.is_apart(name, read.buffer):
            return False
        return (source is not None and is_contraction(source) and is_identity(read, value)
                and axes_of(source)[:len(value.axes)] == value.axes
                and read.buffer not in self.outputs and read.buffer not in self.opaque
                and {reader for reader, _ in self.readers[read.buffer]} == {name}
                and all(is_identity(r, value) for _, r in self.readers[read.buffer])
                and not any(is_contraction(self.values.get(r.buffer, value)) for r in reads_of(value) if r is not read))

    # -- group ---------------------------------------------------------------------------------------------------------

    def group(self) -> None:
        for name in reversed(self.values):
            value = self.values[name]
            if isinstance(value, Nest):
                continue
            assert isinstance(value, Indexed)
            users = self.readers.get(name, [])
            chosen: _Draft | None = None
            if users and name not in self.opaque and all(user in self.group_of for user, _ in users):
                first = max([self.group_of[user] for user, _ in users], key=lambda g: g.number)
                reason = self.why_apart(name, value, [(u, r) for u, r in users if self.group_of[u] is first], first)
                if reason is None:
                    chosen = first
                else:
                    self.apart[name] = reason
            if chosen is None:
                chosen = _Draft(len(self.drafts), name, value)
                self.drafts.append(chosen)
                if is_contraction(value):
                    chosen.contraction = name
            self.group_of[name] = chosen
            chosen.cost += sum([cost(e) for e in value.children if isinstance(e, Expr)])
            if isinstance(value, Reduce) and value.axes and not is_contraction(value):
                if name not in self.requests.keep:
                    self.merge_readers(name, value, chosen)
                self.merge_siblings(name, value, chosen)

    def merge_siblings(self, name: str, value: Reduce, g: _Draft) -> None:
        """Merge the group of a reduction into that of another one over the same axes that reads an element of an array
        which it reads, too (the mean and the mean square)."""
        for r in reads_of(value):
            other = self.siblings.setdefault((value.axes, value.over, r), name)
            into = self.group_of[other]
            if into is not g and into.outer[other] == g.outer[name] and self.may_merge(g, into):
                self.merge(g.outer, g, into)
                return

    def merge_readers(self, name: str, value: Reduce, into: _Draft) -> None:
        """Merge other groups that read a reduction into its group, if each reads it at the index of the same loops, and
        reads an array again that the reduction reads (the mean and the standard deviation of rows, whichever is
        returned first), or only goes on with numbers of these loops, by cheap arithmetic. (Logarithms of all rows
        take less time in vectors of a kernel of their own.)"""
        outer, read = into.outer[name], {r.buffer for r in reads_of(value)}
        groups = [self.group_of.get(user) for user, _ in self.readers.get(name, [])]
        for g in dict.fromkeys([each for each in groups if each is not None]):
            if g is into or self.awaits_contraction(g) or not self.may_merge(g, into, name):
                continue
            own = [self.alignment(value, g, user, r) for user, r in self.readers[name] if self.group_of.get(user) is g]
            loops = list(own[0])
            members = [self.reader(m) for m in g.outer]
            if outer and all(tuple(at.values()) == outer and list(at) == loops for at in own) and (
                    read & {r.buffer for m in members for r in reads_of(m)}
                    or all(isinstance(m, Compute) and len(m.axes) == len(outer) and not has_costly_function(m.expr)
                           for m in members)):
                self.merge({m: tuple([axes[n] for n in loops]) for m, axes in g.outer.items()}, g, into)

    def merge(self, members: Mapping[str, tuple[Axis, ...]], g: _Draft, into: _Draft) -> None:
        """Move the members of a group, with the axes that the outer loops of another one are, to that."""
        into.outer |= members
        into.cost += g.cost
        self.group_of |= dict.fromkeys(members, into)
        g.outer, g.cost = {}, 0

    def may_merge(self, g: _Draft, into: _Draft, shared: str = "") -> bool:
        """Do the readers of a group run later than another group, and what it reads earlier, and are both together
        small enough? `shared`: a value of the other group that this one reads in the same iteration."""
        members = {*g.outer, *into.outer}
        read = [self.group_of[r.buffer] for m in g.outer for r in reads_of(self.values[m])
                if r.buffer in self.group_of and r.buffer != shared]
        return (all(self.group_of[u] is g or self.group_of[u].number < into.number
                    for m in g.outer for u, _ in self.readers.get(m, []) if u in self.group_of)
                and not any(u not in self.group_of for m in g.outer for u, _ in self.readers.get(m, []))
                and all(other is g or other.number > into.number for other in read)
                and not g.contraction and not into.contraction
                and self.arrays_of(members, min([len(o) for d in (g, into) for o in d.outer.values()])) <= MOST_ARRAYS
                and g.cost + into.cost <= MOST_COST
                and not any(isinstance(self.values[m], Scan | Scatter) for m in members)
                and not any(self.requests.is_apart(a, b) for a in g.outer for b in into.outer))

    def arrays_of(self, members: set[str], loops: int) -> int:
        """The arrays that a group reads and writes, rows of its own among them. A member that only the group reads, one
        element in each iteration of the outer loops, is in a register; and so will be a map that may join next."""
        read = {r.buffer for m in members for r in reads_of(self.values[m])} - members
        read -= {name for name in read if self.may_join(name, members, loops)}
        written = [m for m in members if len(self.reader(m).axes) > loops or m in self.outputs or m in self.opaque
                   or any(user not in members for user, _ in self.readers.get(m, []))]
        return len(read) + len(written)

    def may_join(self, name: str, members: set[str], loops: int) -> bool:
        """Does no other group read a map, one element in each iteration of the outer loops? Readers are grouped before
        what they read, so it may join. The frontier of a deep graph of maps, such as a sorting network, is wide."""
        value = self.values.get(name)
        return (isinstance(value, Compute) and len(value.axes) == loops and name not in self.outputs
                and name not in self.opaque and name not in self.group_of and name not in self.ends
                and all(user in members or user not in self.group_of for user, _ in self.readers.get(name, []))
                and all(isinstance(i, Var) for _, r in self.readers.get(name, []) for i in r.index))

    def why_apart(self, name: str, value: Indexed, users: Sequence[tuple[str, Read]], g: _Draft) -> Reason | None:
        """Add a value to the group of its readers. If it does not fit there: why."""
        if name in self.requests.keep:
            return why.KEPT
        if self.requests.apart and any(self.requests.is_apart(name, m) for m in g.outer):
            return why.APART
        asked = bool(self.requests.together) and any(self.requests.is_together(name, m) for m in g.outer)
        if self.ends.get(users[0][0]) == name:
            if len(g.outer) == 1:
                g.outer[name], g.contraction = value.axes, name
                return None
            if not asked:
                return why.OTHER_MEMBERS
        elif not asked and (name in self.ends or is_contraction(value) or g.contraction or self.awaits_contraction(g)
                            or any(is_contraction(self.values[u]) for u, _ in users)):
            return why.CONTRACTION
        others = [v for v in (value, *[self.values[m] for m in g.outer]) if not isinstance(v, Compute)]
        if any(isinstance(v, Scatter) for v in others):
            return why.SCATTER
        if len(others) > 1 and any(isinstance(v, Scan) for v in others):
            return why.SCAN
        shares_scan = isinstance(value, Scan) and all(is_identity(r, self.values[u]) for u, r in users)
        is_pass = self.passes_over_vectors and self.is_pass(name, value, users, g)
        own: dict[int, Axis] | None = None
        for user, read in users:
            at = self.alignment(value, g, user, read)
            before, own = own, at if own is None else {n: a for n, a in own.items() if at.get(n) is a}
            if not own and value.axes and not shares_scan and not is_pass:
                lost = value.axes.index(next(iter(before.values()))) if before else 0
                return why.misread(read, lost, self.reader(user))
        assert own is not None
        if not own and not shares_scan and not is_pass and not all(self.reader(m).axes == () for m in g.outer):
            return why.ONE_VALUE
        if len(set(own.values())) != len(own):
            return why.DIAGONAL
        if not asked and any(has_window(v) and len(own) < len(v.axes) for v in (value, *map(self.reader, g.outer))):
            return why.WINDOW
        reason = None if asked else self.why_not_worth(name, value, g, own)
        if reason is not None:
            return reason
        kept_loops = sorted(own)
        for member, outer in g.outer.items():
            g.outer[member] = tuple([outer[n] for n in kept_loops])
        g.outer[name] = tuple([own[n] for n in kept_loops])
        return None

    def is_pass(self, name: str, value: Indexed, users: Sequence[tuple[str, Read]], g: _Draft) -> bool:
        """May a value join passes over a vector, which have no outer loop? They begin with a map that reads a value
        without axes, and go on with what only they read: reductions of all elements, and maps of single ones. None of
        them chooses between elements at other indices, such as shifted ones: in vectors of one loop with others, the
        verifier cannot show all such accesses to be in bounds. In a larger group that has outer loops, more is in
        registers than would be in such passes. Over several axes, a loop that stores and sums up would fill no vectors
        if the last axis is short."""
        members = [self.reader(m) for m in g.outer]
        if (len(users) < len(self.readers[name]) or not isinstance(value, Compute | Reduce)
                or (isinstance(value, Reduce) and value.axes) or (len(members) > 1 and any(g.outer.values()))
                or any(isinstance(v, Reduce) and v.axes for v in members)
                or any(map(chooses_between_elements, (value, *members)))):
            return False
        loops = {tuple([a.extent for a in loops_of(v)]) for v in (value, *members)} - {()}
        return len(loops) <= 1 and all(len(each) == 1 for each in loops) and all(
            r.index[value.axes.index(a)] is b.var for u, r in users
            for a, b in zip(loops_of(value) if value.axes else (), loops_of(self.reader(u)), strict=False))

    def awaits_contraction(self, g: _Draft) -> bool:
        """Is a group so far only a map that finishes a contraction? It runs while the sums are in registers, and what
        else it reads is there before."""
        return len(g.outer) == 1 and next(iter(g.outer)) in self.ends

    def alignment(self, value: Indexed, g: _Draft, user: str, read: Read) -> dict[int, Axis]:
        """The outer loops of a group at which a member reads a value, each with the axis that it indexes."""
        at, free = {}, independent(value)
        for n, axis in enumerate(g.outer[user]):
            position = next((p for p, i in enumerate(read.index) if i is axis.var), None)
            if position is not None and value.axes[position].extent is axis.extent and value.axes[position] in free:
                at[n] = value.axes[position]
        return at

    def reader(self, name: str) -> Indexed:
        value = self.values[name]
        assert isinstance(value, Indexed)
        return value

    def why_not_worth(self, name: str, value: Indexed, g: _Draft, own: dict[int, Axis]) -> Reason | None:
        """Why a larger group is not worth its smaller number of outer loops; None if it is."""
        if g.cost > MOST_COST:
            return Limit("the operators of the kernel cost", g.cost, MOST_COST)
        if (arrays := self.arrays_of({*g.outer, name}, len(own))) > MOST_ARRAYS:
            return Limit("the arrays of the kernel are", arrays, MOST_ARRAYS)
        if own and all(isinstance(a.extent, Const) and a.extent.value == 1 for a in own.values()):
            return why.EXTENT_ONE
        return None

    # -- result --------------------------------------------------------------------------------------------------------

    def kernels(self) -> list[Group | NestKernel]:
        """Groups and nests in the order of the last definition in each."""
        found: list[tuple[int, Group | NestKernel]] = []
        for g in [g for g in self.drafts if g.outer]:
            names = sorted(g.outer, key=self.order.__getitem__)
            stored = frozenset([n for n in names if n in self.outputs or n in self.opaque
                                or any(self.group_of.get(u) is not g for u, _ in self.readers.get(n, []))])
            members: list[Member] = []
            for n in names:
                value = self.values[n]
                assert isinstance(value, Indexed)
                members.append(Member(n, value, g.outer[n]))
            group = Group(tuple(members), stored)
            assert misaligned(group) is None, "members of a kernel need each other at other indices"
            found.append((self.order[names[-1]], group))
        for d in self.definitions:
            if isinstance(d.value, Nest):
                at = self.order[d.names[0]] if d.names else self.definitions.index(d)
                found.append((at, NestKernel(d.names, d.value)))
        return in_order(self.program, found)

    def boundaries(self) -> list[Boundary]:
        """Every pair of a stored value and a reader in another kernel, once."""
        found: dict[tuple[str, str], Boundary] = {}
        for name, value in self.values.items():
            reads: list[tuple[str, Reason]]
            if isinstance(value, Nest):
                reads = [(source, why.NEST) for source in operands_of(value) if source in self.values]
            else:
                reads = [(source, self.opaque[source]) for source in whole_operands_of(value) if source in self.values]
                reads += [(r.buffer, self.why_boundary(r, name)) for r in reads_of(value) if r.buffer in self.values
                          and self.group_of.get(r.buffer) is not self.group_of[name]]
            for source, reason in reads:
                found.setdefault((source, name), Boundary(source, name, reason))
        return sorted(found.values(), key=lambda b: (self.order[b.source], self.order[b.reader]))

    def why_boundary(self, read: Read, user: str) -> Reason:
        """Why a value is not in the kernel of one of its readers."""
        source, reader = read.buffer, self.reader(user)
        value = self.values[source]
        if isinstance(value, Nest) or source in self.opaque:
            return self.opaque.get(source, why.NEST)
        if isinstance(value, Scatter):
            return why.SCATTER
        kept_for = self.kept.get(source, why.OUTPUT)
        if is_contraction(reader) and kept_for is not why.OUTPUT:
            return kept_for
        first = max([self.group_of[u] for u, _ in self.readers[source]], key=lambda g: g.number)
        if self.group_of[user] is first:
            return self.apart[source]
        assert isinstance(value, Indexed)
        if value.axes and not self.alignment(value, self.group_of[user], user, read):
            return why.misread(read, 0, reader)
        return why.FIRST_READER
