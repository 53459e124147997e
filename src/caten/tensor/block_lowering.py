"""Lowering of a group in blocks of rows: a loop over blocks around the nests of one block.

    for b 0 ceil(T / 64):
      S, s, O' : arrays of 64 rows
      S = Q K^T for the rows of the block  |  max, exp, sum of each row  |  O' = S V  |  O = O' / s for these rows

The values of one block are a program of values by itself: the outer axes but that of the rows are loop variables, the
axis of the rows has as many elements as the block. It is lowered like any other. If the reductions over keys are a
cascade, the running form (`cascade`) takes the place of this one where the rows of the intermediate results would not
stay in cache: a condition on the number of keys chooses.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

from ..core.dtypes import DTYPES
from ..core.expr import Const, Expr, Op, Var, index
from ..core.monoids import identity
from ..core.node import Node, substitute
from ..core.program import Bind, Buffer, Fusion, InOrder, Target
from ..core.unique_names import Names
from ..loop.affine import canonical, expression, linear
from ..loop.statements import ONE, ZERO, Aref, For, If, Local, Setf, Stmt
from .blocks_of_rows import Blocks
from .cascade import Cascade, cascade_of, ends, step
from .fusion_requests import requests_of
from .index_maps import axes_of
from .kernels import Group, Member
from .keys import ROW, key_axes, last_key
from .loop_builder import LoopBuilder, count_of_blocks
from .values import Axis, Compute, Define, FailIf, FusedKernel, Named, Output, Read, Reduce, TensorProgram, shapes_of

CACHE = 1 << 20                                     # bytes of the last private cache, if the machine is not known
ROWS, KEYS = Var("(rows)", "i64"), Var("(keys)", "i64")      # of the present block; no names of a program
Lower = Callable[[TensorProgram], tuple[Stmt, ...]]


class BlockLowering:
    """The statements of a group in blocks. `lower`: makes the statements of a program of values."""

    def __init__(self, builder: LoopBuilder, group: Group, blocks: Blocks, lower: Lower) -> None:
        assert group.blocked is not None
        self.builder, self.group, self.blocks, self.lower = builder, group, blocks, lower
        self.row = group.blocked
        self.keys = key_axes(group)
        target = builder.program.first(Target)
        self.machine = target.machine if target is not None else None
        whole = builder.program.first(InOrder) is not None or any(
            m.name in group.stored and self.keys.get(m.name) in m.value.axes for m in group.members)
        self.last_key = last_key(group, self.keys) if self.keys and not whole else None
        self.requests = requests_of(builder.program)
        self.rows = self.requests.rows or blocks.rows_of(self.machine, self.last_key is None)
        names = {m.name for m in group.members}
        self.asked_whole = not names.isdisjoint(self.requests.whole)
        asked = [count for value, count in self.requests.online if value in names]
        self.asked_online, self.columns = bool(asked), next(iter(asked), blocks.columns)
        # array -> the value that it gets, in the order of the members: names are given in this order
        self.stored = {builder.array(m.name): m.name for m in group.members if m.name in group.stored}
        self.fixed: list[Expr] = []                   # the loops around the blocks
        self.first_row: Expr = ZERO                   # of the block
        self.present: Expr = ZERO                     # how many rows it has

    def statements(self) -> tuple[Stmt, ...]:
        """The nest of the group, or two behind a condition."""
        program = self.builder.program
        cascade = cascade_of(self.group, self.keys) if program.first(InOrder) is None and self.keys else None
        if cascade is None or self.asked_whole:
            return self.nest(self.whole)
        if self.asked_online:
            return self.nest(lambda: self.running(cascade))
        most = self.most_keys()
        extent = self.extent_of_keys
        match extent:
            case Var(name):
                extent = next((index(b.value) for b in program.all(Bind) if b.name == name), extent)
        if isinstance(extent, Const):
            return self.nest(self.whole if int(extent.value) <= most else lambda: self.running(cascade))
        return (If(Op("le", (extent, index(most))), self.nest(self.whole),
                   self.nest(lambda: self.running(cascade))),)

    @property
    def extent_of_keys(self) -> Expr:
        """The number of keys."""
        return next(iter(self.keys.values())).extent

    def most_keys(self) -> int:
        """How many keys a block may have for its rows to stay in cache."""
        cache = self.machine.cache_bytes[-1:] if self.machine is not None else ()
        most = self.blocks.bytes if self.blocks.bytes is not None else (cache[0] if cache else CACHE) // 2
        widest = max([DTYPES[m.value.type].bytes for m in self.group.members if m.name in self.keys])
        return most // (self.rows * widest)

    # -- loops over blocks ---------------------------------------------------------------------------------------------

    def nest(self, body: Callable[[], tuple[Stmt, ...]]) -> tuple[Stmt, ...]:
        """Loops over the outer axes, that over blocks innermost."""
        last = self.group.last
        names = dict(zip(last.value.axes, self.builder.axis_names(last.name, last.value), strict=False))
        rows = last.outer[self.row]
        others = [a for a in last.outer if a is not rows]
        loops = [self.builder.names.fresh(names[a]) for a in others]
        block = self.builder.names.fresh(f"{names[rows]}_block")
        self.fixed = [Var(f"({name})", "i64") for name in loops]         # a member may have an axis of the loop's name
        size = index(self.rows)
        self.first_row = Op("mul", (size, Var(block, "i64")))
        self.present = Op("min", (Op("sub", (rows.extent, self.first_row)), size))
        around: dict[Expr, Expr] = {v: Var(name, "i64") for v, name in zip(self.fixed, loops, strict=True)}
        stmts: tuple[Stmt, ...] = (For(block, ZERO, count_of_blocks(rows.extent, self.rows), ONE, "serial",
                                       bounded(body(), around, around)),)
        for name, axis in reversed(list(zip(loops, others, strict=True))):
            stmts = (For(name, ZERO, axis.extent, ONE, "serial", stmts),)
        return stmts

    def keys_of_block(self) -> Expr | None:
        """How many keys the rows of the block need, if these are not all."""
        if self.last_key is None:
            return None
        row = Op("add", (self.first_row, index(self.rows - 1)))          # beyond the last row are no keys
        wanted = linear(substitute(self.last_key, {ROW: row})).shifted(1)
        many: Expr = expression(wanted)
        if wanted.constant < 1 or len(wanted.terms) > 1:
            many = Op("max", (many, ONE))
        return Op("min", (self.extent_of_keys, many))

    def whole(self) -> tuple[Stmt, ...]:
        """All keys of a block at once."""
        ending = self.keys_of_block()
        part = _Part(self, self.group.members, {} if ending is None else self.keys)
        made = part.statements(self.stored)
        extents, capacities = dict[Expr, Expr]({ROWS: self.present}), dict[Expr, Expr]({ROWS: index(self.rows)})
        if ending is not None:
            extents[KEYS], capacities[KEYS] = ending, self.extent_of_keys
        return bounded(made, extents, capacities)

    def running(self, cascade: Cascade) -> tuple[Stmt, ...]:
        """The keys of a block in blocks of their own, with running results."""
        fresh, columns = self.builder.names.fresh, self.columns
        state = {m.name: f"({m.name} so far)" for m in cascade.states}
        states = {Member(state[m.name], m.value, m.outer): fresh(self.builder.wanted(m.name)) for m in cascade.states}
        arrays = dict(zip(state, states.values(), strict=True))
        stmts = self.begun(states)
        number = fresh("key_block")
        ending = self.keys_of_block() or self.extent_of_keys
        members, results = step(cascade, state, fresh)
        keys = self.keys | {m.name: m.value.over[0] for m in members if isinstance(m.value, Reduce)
                            and m.name not in self.keys}
        part = _Part(self, members, keys, states, Op("mul", (index(columns), Var(number, "i64"))))
        present = Op("min", (Op("sub", (ending, part.first_key)), index(columns)))
        body = bounded(part.statements({arrays[name]: value for name, value in results.items()}),
                       {KEYS: present}, {KEYS: index(columns)})
        stmts.append(For(number, ZERO, count_of_blocks(ending, columns), ONE, "serial", body))
        end = _Part(self, ends(cascade, state), {}, states)
        stmts += end.statements(self.stored)
        return bounded(stmts, {ROWS: self.present}, {ROWS: index(self.rows)})

    def begun(self, states: Mapping[Member, str]) -> list[Stmt]:
        """The arrays of running results, with what they are before the first block."""
        part, stmts = _Part(self, tuple(states), {}), list[Stmt]()
        for m, array in states.items():
            value = part.local(m)
            stmts.append(Local(array, value.type, shapes_of(value)[0], "scratch"))
        for m, array in states.items():
            assert isinstance(m.value, Reduce)
            value, start = part.local(m), identity(m.value.fn, m.value.type)
            stmts += self.builder.loops([(a.name, a.extent) for a in value.axes], partial(_set, array, start))
        return stmts


class _Part:
    """A part of the work of a block, as a program of values. `keys`: the axes that are those of a block of keys, from
    `first_key` on. `states`: running results, in arrays of the block."""

    def __init__(self, of: BlockLowering, members: Sequence[Member], keys: Mapping[str, Axis],
                 states: Mapping[Member, str] = MappingProxyType({}), first_key: Expr = ZERO) -> None:
        self.of, self.builder, self.members, self.keys = of, of.builder, members, keys
        self.states, self.first_key = states, first_key
        self.known = {m.name: m for m in (*members, *states)}

    def row(self, m: Member) -> Axis:
        """The axis of a member that is the rows."""
        return m.outer[self.of.row]

    def fixed(self, m: Member) -> dict[Axis, Expr]:
        """The axes of a member that are loops around the block."""
        return dict(zip([a for a in m.outer if a is not self.row(m)], self.of.fixed, strict=True))

    def local(self, m: Member) -> Compute | Reduce:
        """A member for one block."""
        fixed, row, key = self.fixed(m), self.row(m), self.keys.get(m.name)
        whole: dict[Expr, Expr] = {a.var: loop for a, loop in fixed.items()}
        whole[row.var] = Op("add", (self.of.first_row, row.var))
        if key is not None and self.first_key is not ZERO:
            whole[key.var] = Op("add", (self.first_key, key.var))

        def axes(given: tuple[Axis, ...]) -> tuple[Axis, ...]:
            return tuple([a.replace(extent=ROWS) if a is row else a.replace(extent=KEYS) if a is key else a
                          for a in given if a not in fixed])

        def expr(e: Expr) -> Expr:
            memo: dict[Expr, Expr] = {}

            def go(n: Expr) -> Expr:
                if n not in memo:
                    new: Expr = whole[n] if n in whole else self.read(n, go) if isinstance(n, Read) else n.map(go)
                    memo[n] = new
                return memo[n]
            return go(e)
        value = m.value
        assert isinstance(value, Compute | Reduce)
        if isinstance(value, Reduce):
            return value.replace(axes=axes(value.axes), over=axes(value.over), cond=expr(value.cond),
                                 expr=expr(value.expr))
        return value.replace(axes=axes(value.axes), expr=expr(value.expr))

    def read(self, read: Read, go: Callable[[Expr], Expr]) -> Read:
        """A read in a member of the block: of the block's own values at their place in the block."""
        u = self.known.get(read.buffer)
        if u is None:
            return read.replace(buffer=self.builder.array(read.buffer),
                                index=tuple([canonical(go(i)) for i in read.index]))
        fixed, here = self.fixed(u), (self.row(u), self.keys.get(u.name))
        index = tuple([i if a in here else canonical(go(i))
                       for a, i in zip(u.value.axes, read.index, strict=True) if a not in fixed])
        return read.replace(buffer=self.states.get(u, _inner(u.name)), index=index)

    def statements(self, stored: Mapping[str, str]) -> tuple[Stmt, ...]:
        """The statements. `stored`: array -> the value that it gets."""
        program, builder = self.of.builder.program, self.of.builder
        local = {m.name: self.local(m) for m in self.members}
        own = {array: shapes_of(self.local(m))[0] for m, array in self.states.items()}
        without = Define | FailIf | Fusion | FusedKernel | Output | Named
        clauses: list[Node] = [c for c in program.clauses if not isinstance(c, without)]
        clauses += [Buffer(array, *builder.plan.scratch[name], _order(builder.plan.scratch[name][1]), "in")
                    for name, array in builder.arrays.items()]
        clauses += [Buffer(array, m.value.type, own[array], _order(own[array]), "inout")
                    for m, array in self.states.items()]
        elements: dict[str, Callable[[tuple[Expr, ...]], Aref]] = {}
        for array, name in stored.items():
            if array not in own:
                rows, shape = builder.names.fresh(f"{array}_rows"), shapes_of(local[name])[0]
                clauses.append(Buffer(rows, local[name].type, shape, _order(shape), "out"))
                elements[rows] = partial(self.element, array, self.known[name])
                array = rows
            clauses.append(Output(array, _inner(name)))
        taken = Names({c.name for c in clauses if isinstance(c, Buffer)})
        clauses += [self.named(m, taken.fresh(builder.wanted(m.name))) for m in self.members]
        clauses += [Define((_inner(name),), value) for name, value in local.items()]
        return renamed_elements(self.of.lower(TensorProgram(program.name, tuple(clauses))), elements)

    def named(self, m: Member, name: str) -> Named:
        """The name of a member, and of the axes that it has in a block."""
        named = self.builder.spec_names.get(m.name)
        fixed, axes = self.fixed(m), axes_of(m.value)
        names = () if named is None else tuple([name for n, name in enumerate(named.axes)
                                                if n >= len(axes) or axes[n] not in fixed])
        return Named(_inner(m.name), name, names)

    def element(self, array: str, m: Member, at: tuple[Expr, ...]) -> Aref:
        """The element of an array that is an element of a member of the block."""
        fixed, rest, found = self.fixed(m), iter(at), list[Expr]()
        for a in m.value.axes:
            i = fixed[a] if a in fixed else next(rest)
            found.append(canonical(Op("add", (self.of.first_row, i))) if a is self.row(m) else i)
        return Aref(array, tuple(found), m.value.type)


def renamed_elements(stmts: Sequence[Stmt], elements: Mapping[str, Callable[[tuple[Expr, ...]], Aref]],
                     ) -> tuple[Stmt, ...]:
    """Statements whose accesses to some arrays are to elements of others."""
    def go(n: Node) -> Node:
        new: Node = n.map(go)
        return elements[new.buffer](new.index) if isinstance(new, Aref) and new.buffer in elements else new
    return tuple([go(s) for s in stmts])                # type: ignore[misc]


def bounded(stmts: Sequence[Stmt], extents: Mapping[Expr, Expr], capacities: Mapping[Expr, Expr]) -> tuple[Stmt, ...]:
    """Statements with extents in the place of their names; arrays have room for `capacities`."""
    def go(n: Node) -> Node:
        if isinstance(n, Local):
            return substitute(n, capacities)
        return substitute(n, extents) if isinstance(n, Expr) else n.map(go)
    return tuple([go(s) for s in stmts])                # type: ignore[misc]


def _set(array: str, start: Const, at: tuple[Expr, ...]) -> tuple[Stmt, ...]:
    return (Setf(Aref(array, at, start.dtype), start),)


def _inner(name: str) -> str:
    """The name of a member in the program of a block: other than those of the arrays that it reads."""
    return f"({name})"


def _order(shape: Sequence[Expr]) -> tuple[int, ...]:
    return tuple(range(len(shape)))
