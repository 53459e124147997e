"""Outer loops around passes: how a group of maps and reductions becomes one loop nest.

    softmax:   for i:  top = -inf;  for j: top = max(top, X[i, j])                   pass 1
                       s = 0;       for j: e = exp(X[i, j] - top); Y[i, j] = e; s += e      pass 2
                                    for j: Y[i, j] = Y[i, j] / s                     pass 3

In an iteration of the outer loops, members with a loop of the same extent share it if each reads the others at this
loop's index; what needs a complete reduction, or other elements, is in a later pass. A value that a later pass reads is
kept in a scalar or an array of one iteration; if an output of the same shape is stored later, in its memory.

A product of a row and a matrix that is kept has a pass of its own, so that several of its sums are computed at once.

A scan is an accumulator that its loop stores in every iteration, and that the other members of the loop read. A scan
from the end has a loop from the end:

    down:      s = 0;  for j: s += X[i, N-1-j];  Y[i, N-1-j] = s
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..core.dtypes import is_integer
from ..core.expr import TRUE, Const, Expr, Op, Var
from ..core.monoids import identity
from ..loop.affine import canonical
from ..loop.context import MOST_NODES as MOST_RECORDED
from ..loop.statements import ONE, ZERO, Aref, For, If, Incf, Let, Local, Setf, Stmt
from .fusion import is_product
from .index_maps import axes_of, cost
from .kernels import Group, Member
from .loop_builder import LoopBuilder, Storage
from .values import Axis, Read, Reduce, Scan, Value, reads_of

SHORT_SUM = 16                  # terms: a sum of fewer fills no vector


@dataclass
class Loop:
    """A loop that members share. `axes`: which axis of each member it is."""

    extent: Expr
    axes: dict[str, Axis]
    steps: list[Loop | Member] = field(default_factory=list)
    var: Var | None = None
    begins: list[Member] = field(default_factory=list)          # reduces whose reduced axes begin here, and scans
    is_down: bool = False                                       # from the last index to the first?


class Passes:
    """The statements of a group."""

    def __init__(self, lowering: LoopBuilder, group: Group) -> None:
        self.lowering, self.group = lowering, group
        self.members = {m.name: m for m in group.members}
        self.readers: dict[str, list[tuple[Member, Read]]] = {}
        for m in group.members:
            for r in reads_of(m.value):
                if r.buffer in self.members:
                    self.readers.setdefault(r.buffer, []).append((m, r))
        self.alone: frozenset[str] = frozenset()                 # members whose pass no reader shares
        self.arrange_all()
        self.alone = frozenset([m.name for m in group.members if self.may_be_alone(m)])
        if self.alone:
            self.arrange_all()
        self.bound: dict[str, dict[str, Expr]] = {m.name: {} for m in group.members}
        self.values: dict[str, Var | Aref] = {}                  # members in scope, by `let` or as a scalar
        self.buffers: dict[str, tuple[str, tuple[Axis, ...]]] = {}      # member -> array of one iteration, its axes
        self.aliases: dict[str, Member] = {}

    # -- which loops, in which order ----------------------------------------------------------------------------------

    def arrange_all(self) -> None:
        """The passes of the group."""
        self.path: dict[str, tuple[Loop, ...]] = {}              # the loops around each member's element
        self.order: dict[str, int] = {}                          # when its store happens
        self.root = Loop(ONE, {})
        self.arrange([(m, m.inner) for m in self.group.members], self.root, ())

    def arrange(self, items: Sequence[tuple[Member, tuple[Axis, ...]]], scope: Loop, path: tuple[Loop, ...]) -> None:
        """The passes of one scope: scalars first, then a loop for each extent, level by level."""
        rest, level = {m.name: axes for m, axes in items}, dict[str, int]()
        for m, axes in items:
            level[m.name] = max([level[r.buffer] + (not self._together(m, axes, r, rest[r.buffer]))
                                 for r in reads_of(m.value) if r.buffer in level], default=0)
            if len(axes) == len(getattr(m.value, "over", ())):
                self.path[m.name] = path
        for n in range(max(level.values(), default=-1) + 1):
            here = [(m, axes) for m, axes in items if level[m.name] == n]
            for m, axes in here:
                if not axes:
                    self.order[m.name] = len(self.order)
                    scope.steps.append(m)
            loops: dict[Expr, list[tuple[Member, tuple[Axis, ...]]]] = {}
            for m, axes in here:
                if axes:
                    loops.setdefault(axes[0].extent, []).append((m, axes))
            for extent, inside in loops.items():
                loop = Loop(extent, {m.name: axes[0] for m, axes in inside})
                loop.begins = [m for m, axes in inside if _begins(m, axes)]
                loop.is_down = any(isinstance(m.value, Scan) and m.value.direction == "down" for m in loop.begins)
                scope.steps.append(loop)
                self.arrange([(m, axes[1:]) for m, axes in inside], loop, (*path, loop))

    def _together(self, m: Member, axes: tuple[Axis, ...], read: Read, theirs: tuple[Axis, ...]) -> bool:
        """May a member be in the same pass as one that it reads?"""
        other = self.members[read.buffer].value
        if not theirs:
            return not (isinstance(other, Reduce) and other.over)
        if not axes or theirs[0] not in other.axes or read.buffer in self.alone:
            return False
        return theirs[0].extent is axes[0].extent and read.index[other.axes.index(theirs[0])] is axes[0].var

    def may_be_alone(self, m: Member) -> bool:
        """Is a member a product that is kept, in an array of which the group reads no old element?"""
        if self.lowering.on_device or not is_matrix_vector(m.value) or (
                m.name not in self.group.stored and self.is_local(m)):
            return False
        home = self.lowering.array(m.name)
        return not any(self.lowering.array(r.buffer) == home for x in self.group.members for r in reads_of(x.value)
                       if r.buffer not in self.members)

    # -- where values are kept ----------------------------------------------------------------------------------------

    def is_local(self, m: Member) -> bool:
        """Are all readers in the iteration that makes the element?"""
        own = self.path[m.name]
        return all(self.leaf_path(r)[:len(own)] == own for r, _ in self.readers.get(m.name, []))

    def leaf_path(self, m: Member) -> tuple[Loop, ...]:
        """The loops around the expression of a member."""
        if not isinstance(m.value, Reduce):
            return self.path[m.name]
        found = self.path[m.name]
        at = self.root if not found else found[-1]
        for axis in m.value.over:
            at = next(s for s in at.steps if isinstance(s, Loop) and s.axes.get(m.name) is axis)
            found = (*found, at)
        return found

    def array_of_iteration(self, m: Member) -> None:
        """Keep the elements of an iteration of the loops that the member shares with all its readers."""
        own = self.path[m.name]
        shared = min([_common(own, self.leaf_path(r)) for r, _ in self.readers[m.name]])
        alias = next((w for w in self.group.members if w.name in self.group.stored and self.may_keep(m, w)), None)
        if alias is not None:
            self.aliases[m.name] = alias
            return
        inner = [a for a in m.inner if a in m.value.axes][shared:]
        name = self.lowering.names.fresh(self.lowering.wanted(m.name))
        self.buffers[m.name] = name, tuple(inner)
        scope = own[shared - 1] if shared else self.root
        self.declared.setdefault(id(scope), []).append(
            Local(name, m.value.type, tuple([a.extent for a in inner]), "scratch"))

    def may_keep(self, m: Member, w: Member) -> bool:
        """May the elements of `m` be where those of `w` will be stored?"""
        if w is m or w.value.type != m.value.type or isinstance(w.value, Reduce) or (
                [a.extent for a in w.inner] != [a.extent for a in m.inner if a in m.value.axes]):
            return False
        if [a.extent for a in w.outer] != [a.extent for a in m.outer] or w in self.aliases.values():
            return False
        target = self.lowering.array(w.name)
        if any(self.lowering.array(r.buffer) == target for x in self.group.members for r in reads_of(x.value)
               if r.buffer not in self.members):
            return False
        return all((x is w and self._reads_own(m, w, r)) or (
            self.order[x.name] < self.order[w.name] and self._reads_this_iteration(m, x, w, r))
                   for x, r in self.readers[m.name])

    def _reads_this_iteration(self, m: Member, x: Member, w: Member, read: Read) -> bool:
        """Does `x` read, of `m`, elements that no earlier iteration of the loops that it shares with `w` has stored
        to?"""
        around = self.leaf_path(x)
        inner = [a for a in m.inner if a in m.value.axes]
        for loop in around[:_common(around, self.path[w.name])]:
            own = w.inner.index(loop.axes[w.name])
            if read.index[m.value.axes.index(inner[own])] is not loop.axes[x.name].var:
                return False
        return True

    def _reads_own(self, m: Member, w: Member, read: Read) -> bool:
        """Does `w` read, of `m`, the element that its own takes the place of?"""
        inner = [a for a in m.inner if a in m.value.axes]
        pairs = [*zip(m.outer, w.outer, strict=True), *zip(inner, w.inner, strict=True)]
        return all(read.index[m.value.axes.index(a)] is b.var for a, b in pairs)

    # -- statements ---------------------------------------------------------------------------------------------------

    def statements(self) -> tuple[Stmt, ...]:
        """The nest of the group."""
        self.declared: dict[int, list[Stmt]] = {}
        self.hoisted: dict[int, list[Stmt]] = {}                 # before the present loop of a scope
        self.invariant: dict[tuple[int, Expr], Var] = {}
        for m in self.group.members:
            if m.name not in self.group.stored and not self.is_local(m):
                self.array_of_iteration(m)
        last = next(m for m in reversed(self.group.members) if m.name in self.group.stored)
        names = dict(zip(last.value.axes, self.lowering.axis_names(last.name, last.value), strict=False))
        ranges = [(names[a], a.extent) for a in last.outer]

        def body(index: tuple[Expr, ...]) -> tuple[Stmt, ...]:
            for m in self.group.members:
                self.bound[m.name] = {a.name: i for a, i in zip(m.outer, index, strict=True)} | {
                    a.name: ZERO for a in m.single}
            return tuple(self.scope(self.root))
        made = self.lowering.loops(ranges, body)
        for m in self.group.members:
            if m.name not in self.group.stored:
                self.lowering.storage[m.name] = self.storage(m)
        return made

    def storage(self, m: Member) -> Storage:
        """Where a member is that is not stored."""
        if m.name in self.aliases:
            return Storage("output", self.lowering.array(self.aliases[m.name].name))
        if m.name in self.buffers:
            return Storage("row", self.buffers[m.name][0])
        value = self.values[m.name]
        return Storage("register", value.buffer if isinstance(value, Aref) else value.name)

    def scope(self, loop: Loop) -> list[Stmt]:
        stmts = list(self.declared.get(id(loop), []))
        for step in loop.steps:
            if isinstance(step, Member):
                stmts += self.noted(step, self.leaf(step))
                continue
            for m in step.begins:
                stmts += self.noted(m, self.begin(m))
            made = self.loop(step)
            stmts += [*self.hoisted.pop(id(loop), []), made]
            for m in step.begins:
                stmts += self.noted(m, self.end(m)) if isinstance(m.value, Reduce) else ()
        return stmts

    def noted(self, m: Member, stmts: Iterator[Stmt]) -> Iterator[Stmt]:
        """The statements of a member."""
        for s in stmts:
            self.lowering.made_for[s] = (m.name,)
            yield s

    def loop(self, loop: Loop) -> Stmt:
        first, axis = next(iter(loop.axes.items()))
        value = self.members[first].value
        names = dict(zip(axes_of(value), self.lowering.axis_names(first, value), strict=True))
        name = self.lowering.names.fresh(names[axis])
        self.lowering.made_for[name] = tuple(loop.axes)
        loop.var = Var(name, "i64")
        at = canonical(loop.extent - 1 - loop.var) if loop.is_down else loop.var
        for member, own in loop.axes.items():
            self.bound[member][own.name] = at
        return For(name, ZERO, loop.extent, ONE, "serial", tuple(self.scope(loop)))

    def begin(self, m: Member) -> Iterator[Stmt]:
        """Declare the accumulator of a reduce or scan."""
        assert isinstance(m.value, Reduce | Scan)
        if m.name in self.alone:
            (acc,) = self.places(m)
        else:
            acc = Aref(self.lowering.names.fresh(self.lowering.wanted(m.name)), (), m.value.type)
            yield Local(acc.buffer, acc.type, (), "register")
        self.values[m.name] = acc
        yield Setf(acc, identity(m.value.fn, acc.type))

    def end(self, m: Member) -> Iterator[Stmt]:
        """Store the total."""
        for ref in self.places(m):
            if ref != self.values[m.name]:
                yield Setf(ref, self.values[m.name])

    def leaf(self, m: Member) -> Iterator[Stmt]:
        """One element of a map, or one accumulation."""
        if isinstance(m.value, Reduce | Scan):
            acc = self.values[m.name]
            assert isinstance(acc, Aref)
            if isinstance(m.value, Scan) and m.value.mode == "exclusive":
                before = Var(self.lowering.names.fresh(self.lowering.wanted(m.name)), m.value.type)
                yield Let(before.name, m.value.type, acc)
                self.values[m.name] = before
            add = Incf(acc, self.expr(m, m.value.expr), m.value.fn)
            yield add if m.value.cond is TRUE else If(self.expr(m, m.value.cond), (add,))
            for ref in self.places(m) if isinstance(m.value, Scan) else ():
                yield Setf(ref, self.values[m.name])
            return
        value, places = self.expr(m, m.value.expr), self.places(m)
        if self.readers.get(m.name) and any(self.leaf_path(r)[:len(self.path[m.name])] == self.path[m.name]
                                            for r, _ in self.readers[m.name]):
            name = self.lowering.names.fresh(self.lowering.wanted(m.name))
            yield Let(name, m.value.type, value)
            value = self.values[m.name] = Var(name, m.value.type)
        for ref in places:
            yield self.lowering.store(ref, value, accumulates=bool(self.path[m.name]))

    def places(self, m: Member) -> list[Aref]:
        """The elements of arrays that hold the present element of a member."""
        index = tuple([self.bound[m.name][a.name] for a in m.value.axes])
        found = []
        if m.name in self.group.stored:
            found.append(Aref(self.lowering.array(m.name), index, m.value.type))
        elif m.name in self.aliases or m.name in self.buffers:
            found.append(self.kept(m, dict(zip([a.name for a in m.value.axes], index, strict=True))))
        return found

    def kept(self, m: Member, at: Mapping[str, Expr]) -> Aref:
        """An element that an earlier pass has kept; `at`: its index by the names of the member's axes."""
        if m.name in self.group.stored:
            return Aref(self.lowering.array(m.name), tuple([at[a.name] for a in m.value.axes]), m.value.type)
        if m.name in self.aliases:
            w = self.aliases[m.name]
            theirs = dict(zip((*w.outer, *w.inner), (*m.outer, *m.inner), strict=False))
            return Aref(self.lowering.array(w.name), tuple([at[theirs[a].name] if a in theirs else ZERO
                                                            for a in w.value.axes]), m.value.type)
        name, axes = self.buffers[m.name]
        return Aref(name, tuple([at[a.name] for a in axes]), m.value.type)

    def expr(self, m: Member, e: Expr) -> Expr:
        """An expression of a member in terms of loops, scalars and arrays."""
        found: dict[Expr, Expr] = {}
        for r in sorted(reads_of(e), key=lambda r: r.depth):         # those inside of indices first
            u = self.members.get(r.buffer)
            if u is None:
                continue
            index = [self.lowering.expr(i, self.bound[m.name], found) for i in r.index]
            own = self.path[u.name]
            if self.leaf_path(m)[:len(own)] == own and r.buffer in self.values:
                found[r] = self.values[r.buffer]
            else:
                found[r] = self.kept(u, dict(zip([a.name for a in u.value.axes], index, strict=True)))
        return self.invariants(m, self.lowering.expr(e, self.bound[m.name], found))

    def invariants(self, m: Member, e: Expr) -> Expr:
        """The expression with names for the parts that do not change in the loops around it (loop-invariant code
        motion). Only scalars are read early. Conditions on indices have none, and an index has none where its value is
        too long: both are what it takes to show that accesses are inside, and lanes of a vector have no names."""
        path = self.leaf_path(m)
        depth = {v.name: n + 1 for n, loop in enumerate(path) if (v := loop.var) is not None}
        depth |= {v.buffer if isinstance(v, Aref) else v.name: len(self.path[name]) for name, v in self.values.items()}
        scopes = [self.root, *path]

        def level(n: Expr) -> int:
            """How many of these loops an expression depends on; all of them if it reads an array."""
            if isinstance(n, Aref):
                return depth.get(n.buffer, len(path)) if not n.index else len(path)
            if isinstance(n, Var):
                return depth.get(n.name, 0)
            return max([level(c) for c in n.children if isinstance(c, Expr)], default=0)

        def go(n: Expr) -> Expr:
            at = level(n)
            if n.dtype == "bool" and all(not isinstance(c, Aref) and (is_integer(c.dtype) or c.dtype == "bool")
                                         for c in n.unique() if isinstance(c, Expr)):
                return n
            too_long = is_integer(n.dtype) and n.written_out > MOST_RECORDED
            if at < len(path) and isinstance(n, Op) and not too_long and cost(n) and any(
                    isinstance(c, Aref | Var) for c in n.unique()):
                key = id(scopes[at]), n
                if key not in self.invariant:
                    self.invariant[key] = Var(self.lowering.names.fresh("invariant"), n.dtype)
                    self.hoisted.setdefault(id(scopes[at]), []).append(Let(self.invariant[key].name, n.dtype, n))
                return self.invariant[key]
            new: Expr = n if at < len(path) and not too_long else n.map(go)
            return new
        return go(e) if path else e


def _begins(m: Member, rest: tuple[Axis, ...]) -> bool:
    """Does an accumulator of a member begin before the first of the loops that are left of it?"""
    return (isinstance(m.value, Reduce) and rest == m.value.over) or (
        isinstance(m.value, Scan) and rest == (m.value.scanned,))


def is_matrix_vector(value: Value) -> bool:
    """Is it a product whose sums are long? If it is kept, it has a pass of its own, since several sums at once pay more
    than a loop that its readers share."""
    return isinstance(value, Reduce) and is_product(value) and not all(
        isinstance(a.extent, Const) and int(a.extent.value) < SHORT_SUM for a in value.over)


def _common(a: tuple[Loop, ...], b: tuple[Loop, ...]) -> int:
    """How many loops two paths have in common."""
    n = 0
    while n < min(len(a), len(b)) and a[n] is b[n]:
        n += 1
    return n
