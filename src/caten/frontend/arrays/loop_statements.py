"""Statements of loops from what a body computes with: stores of elements and of parts of arrays, variables, choices.

In a loop over elements arrays are memory, which statements change in order. The evaluator makes values of what stands
between the statements, as outside of loops: an element or a part of an array is a view, arithmetic on it a map. A
statement computes them where it stands: maps become its expression, and a sum, such as `A[i] @ x`, becomes loops
before it.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce

from ...core.dtypes import DTYPES
from ...core.expr import FALSE, TRUE, Const, Expr, Op, Var, index
from ...core.monoids import identity
from ...core.node import Node, substitute
from ...core.program import At, Buffer, Param, Scalar, Size
from ...core.text import flat, form_of
from ...loop.affine import canonical, expression, linear, of_atom
from ...loop.context import Context
from ...loop.effects import reads
from ...loop.statements import Aref, For, If, Incf, Local, Setf, Stmt, dotimes
from ...tensor.index_maps import element
from ...tensor.inlining import inlined_statements
from ...tensor.plain_loops import plain_loops
from ...tensor.values import (
    Compute,
    Define,
    Inside,
    Output,
    Pieces,
    Read,
    Reduce,
    TensorProgram,
    ValueTable,
    operands_of,
    shapes_of,
    types_of,
)
from ..statement_forms import MAX_BYTES, space_of
from .builder import Builder
from .handles import Array, Indices, Operand, shape_of, spelled, spelled_extent
from .size_facts import SizeFacts, ceiling_quotient
from .slice_assignment import fits


class LoopFacts(SizeFacts):
    """What is known about sizes, and about the variables of the loops around a statement. Only conditions on sizes
    become conditions of the call."""

    def __init__(self, params: Sequence[Node]) -> None:
        super().__init__(params)
        self.sizes = {p.name for p in params if isinstance(p, Size)}

    def varies(self, e: Expr) -> bool:
        return any(isinstance(n, Read) or (isinstance(n, Var) and n.name not in self.sizes) for n in e.unique())

    def demand(self, cond: Expr, pos: int) -> bool:
        if not self.varies(cond):
            return super().demand(cond, pos)
        if self.proves(cond):
            return True
        if self.refutes(cond):
            return False
        at_entry = in_every_iteration(cond, self.around)
        if at_entry is None or self.varies(at_entry) or self.refutes(at_entry):
            raise NotInEveryIteration(flat(form_of(cond)), pos)
        super().demand(at_entry, pos)
        self.context = self.context.given(cond)
        return True


def in_every_iteration(cond: Expr, around: Sequence[tuple[For, Context] | None]) -> Expr | None:
    """A condition of the call with which a comparison holds in all iterations of the loops around it; None if there is
    none that the comparison follows from, and that follows from it. Its difference is least in a first or a last
    iteration."""
    empty: list[Expr] = []
    for each in reversed(around):
        if each is None:
            return None
        loop, outside = each
        var = Var(loop.name, "i64")
        if var not in cond.unique():
            continue
        if not (isinstance(cond, Op) and cond.fn in ("le", "lt", "ge", "gt") and isinstance(loop.step, Const)):
            return None
        left, right = cond.args if cond.fn in ("le", "lt") else cond.args[::-1]
        gap, step = linear(right) - linear(left), int(loop.step.value)
        slope = gap.coefficient(var)
        rest = expression(gap - slope.times(of_atom(var)))
        if any(var in e.unique() for e in (rest, expression(slope))):
            return None
        is_rising = outside.proves(expression(slope) >= 0)
        if not is_rising and not outside.proves(expression(slope) <= 0):
            return None
        length = canonical(loop.hi - loop.lo if step > 0 else loop.lo - loop.hi)
        last = canonical(loop.lo + (ceiling_quotient(length, index(abs(step))) - 1) * step)
        least = canonical(rest + expression(slope) * (loop.lo if is_rising == (step > 0) else last))
        cond = least >= 0 if cond.fn in ("le", "ge") else least > 0
        if outside.proves(cond):
            return TRUE
        if outside.refutes(cond):
            return None
        if not outside.proves(length > 0):
            empty.append(canonical(length) <= 0)
    return reduce(lambda x, y: Op("or", (x, y)), [*empty, cond])


class NotInEveryIteration(Exception):
    """A condition that must hold in each iteration of a loop, and is not known to."""

    def __init__(self, cond: str, pos: int = 0) -> None:
        super().__init__(cond, pos)
        self.cond, self.pos = cond, pos


@dataclass
class Block:
    """A list of statements. `is_branch`: of an `if`, whose variables are declared before it."""

    is_branch: bool = False
    stmts: list[Stmt] = field(default_factory=list)


class LoopStatements:
    """The statements so far, in nested blocks. `memory`: the type and shape of each array in memory."""

    def __init__(self, builder: Builder, params: Sequence[Node], table: ValueTable) -> None:
        self.builder, self.table, self.params = builder, table, tuple(params)
        self.memory: dict[str, tuple[str, tuple[Expr, ...]]] = {
            p.name: (p.type, tuple([canonical(e) for e in p.shape])) for p in params if isinstance(p, Buffer)}
        self.marks: dict[Node, int] = {}
        self.parts: dict[str, int] = {}                     # local arrays of statements over whole arrays
        self.places: dict[Expr, str] = {}                   # what is read to check an index into so many elements
        self.blocks = [Block()]

    @property
    def fresh(self) -> Callable[[str], str]:
        """A name that is free, from the one that is wanted."""
        return self.table.names.fresh

    def add(self, *stmts: Stmt) -> None:
        self.blocks[-1].stmts += stmts

    def nested(self, run: Callable[[], None], is_branch: bool) -> tuple[Stmt, ...]:
        """The statements that `run` adds, in a block of their own."""
        self.blocks.append(Block(is_branch))
        try:
            run()
        finally:
            block = self.blocks.pop()
        return tuple(block.stmts)

    def mark(self, node: Node, pos: int) -> None:
        """Remember where a loop or an access was written."""
        self.marks.setdefault(node, pos)

    def positions(self) -> tuple[At, ...]:
        """Of loops and accesses, in the source."""
        spot = self.builder.typing.spot
        return tuple([At.of(spot(pos).line, spot(pos).column, node) for node, pos in self.marks.items()])

    def positions_of_parts(self) -> tuple[At, ...]:
        """Of the statements over whole arrays that set local arrays."""
        spot = self.builder.typing.spot
        return tuple([At.of_array(spot(pos).line, spot(pos).column, name) for name, pos in self.parts.items()])

    # declarations

    def local(self, wanted: str, dtype: str, shape: tuple[Expr, ...], b: Builder) -> str:
        """A new variable or array of the body, declared outside the branches of an `if`: as large as it can become."""
        shape = tuple([self.most(extent, b) for extent in shape])
        if math.prod([e.value if isinstance(e, Const) else 1 for e in shape]) * DTYPES[dtype].bytes > MAX_BYTES:
            b.fail("E313", f"an array of the shape {spelled(shape)} takes more than 2^46 bytes")
        name = self.fresh(wanted)
        self.memory[name] = dtype, shape
        home = next(block for block in reversed(self.blocks) if not block.is_branch)
        home.stmts.append(Local(name, dtype, shape, space_of(dtype, shape)))
        return name

    def most(self, extent: Expr, b: Builder) -> Expr:
        """An extent that is known at entry and at least as large in every iteration. E313 if there is none."""
        facts = self.builder.sizes
        if not facts.varies(extent):
            return extent
        known = dict.fromkeys([e for _, shape in self.memory.values() for e in shape if not facts.varies(e)])
        found = next((e for e in known if facts.proves(Op("le", (extent, e)))), None)
        if found is None:
            b.fail("E313", f"an array of {spelled_extent(extent)} elements along an axis would have another size in "
                   "each iteration", "take the elements that are needed, or an array as large as it can become")
        return found

    # expressions

    def expression(self, e: Expr, inner: list[Stmt] | None = None) -> Expr:
        """A formula over memory: maps are part of it. Sums and their like are computed by statements before it. `inner`
        gets the statements for one element, where an array would have another size in each iteration."""
        parts: dict[str, str] = {}
        memo: dict[Expr, Expr] = {}

        def go(n: Expr) -> Expr:
            if n not in memo:
                match n:
                    case Inside(index=i):
                        memo[n] = go(i)
                    case Pieces() if n.is_check and isinstance(n.at, Inside):
                        memo[n] = self.after_check(go(n.at.index), go(n.at.extent), go(n.arms[0]))
                    case Pieces():
                        memo[n] = go(n.choice)
                    case Read(name, index) if name in self.table.values:
                        value = self.table.values[name]
                        if inner is not None and isinstance(value, Reduce) and any(
                                map(self.builder.sizes.varies, shapes_of(value)[0])):
                            memo[n] = self.total(name, value, index, inner)
                        elif isinstance(value, Compute):
                            memo[n] = go(element(value, index))
                            if isinstance(memo[n], Aref):
                                self.mark(memo[n], self.builder.positions.get(name, 0))
                        else:
                            if name not in parts:
                                parts[name] = self.part(name)
                            memo[n] = Aref(parts[name], tuple([go(i) for i in index]), n.dtype)
                    case Read(name, index):
                        memo[n] = Aref(name, tuple([canonical(go(i)) for i in index]), n.dtype)
                    case _:
                        memo[n] = n.map(go)
            return memo[n]
        return go(e)

    def after_check(self, at: Expr, extent: Expr, e: Expr) -> Expr:
        """An expression after an access that is outside of its array if an index is outside of an axis."""
        if self.builder.sizes.varies(extent) or reads(extent):
            at = Op("where", (Op("and", (Op("le", (index(0), at)), Op("lt", (at, extent)))), index(0), index(1)))
            extent = index(1)
        if extent not in self.places:
            name = self.places[extent] = self.fresh("places")
            self.memory[name] = "bool", (extent,)
            each = Var(self.fresh("place"), "i64")
            self.blocks[0].stmts[:0] = [Local(name, "bool", (extent,), space_of("bool", (extent,))),
                                        dotimes(each.name, extent, Setf(Aref(name, (each,), "bool"), FALSE))]
        place = Aref(self.places[extent], (at,), "bool")
        return Op("where", (place, e, e))

    def total(self, name: str, value: Reduce, index: Sequence[Expr], inner: list[Stmt]) -> Expr:
        """One element of a reduction, computed by the statements that `inner` gets."""
        over = [Var(self.fresh(f"{name}_{a.name}"), "i64") for a in value.over]
        names: dict[Expr, Expr] = {a.var: i for a, i in zip(value.axes, index, strict=True)}
        names |= {a.var: v for a, v in zip(value.over, over, strict=True)}
        stmts: list[Stmt] = []
        total = Aref(self.fresh(f"{name}_sum"), (), value.type)
        cond, e = self.expression(substitute(value.cond, names)), self.expression(substitute(value.expr, names), stmts)
        stmts.append(Incf(total, e, value.fn))
        body: tuple[Stmt, ...] = tuple(stmts) if cond is TRUE else (If(cond, tuple(stmts)),)
        for v, a in reversed(list(zip(over, value.over, strict=True))):
            body = (dotimes(v.name, self.expression(substitute(a.extent, names)), *body),)
        self.memory[total.buffer] = value.type, ()
        inner += [Local(total.buffer, value.type, (), "register"), Setf(total, identity(value.fn, value.type)), *body]
        return total

    def computed(self, wanted: str, name: str) -> str | None:
        """The local array, called as it is wanted, for a value that is no map; None for other arrays, which `store`
        copies."""
        value = self.table.values.get(name)
        if value is None or isinstance(value, Compute) or any(map(self.builder.sizes.varies, shapes_of(value)[0])):
            return None
        return self.part(name, wanted)

    def part(self, name: str, wanted: str = "") -> str:
        """The local array that holds a value which is no map, computed by loops here."""
        value, table = self.table.values[name], self.table
        b = self.builder.at(self.builder.positions.get(name, 0))
        definitions = table.needed([name])
        dtype, shape = types_of(value)[0], shapes_of(value)[0]
        local = self.local(wanted or name, dtype, shape, b)
        self.parts[local] = b.pos
        shape = self.memory[local][1]
        program = TensorProgram("part", (
            *[p for p in self.params if isinstance(p, Param) and not isinstance(p, Buffer)],
            *self.variables(definitions),
            *[self.buffer(operand) for operand in self.arrays(definitions)],
            Buffer(local, dtype, shape, tuple(range(len(shape))), "out"),
            *definitions, Output(local, name)))
        self.add(*inlined_statements(plain_loops(program), self.fresh, {}, {}))
        return local

    def variables(self, definitions: Sequence[Define]) -> list[Node]:
        """The variables of loops that definitions have in their formulas, as parameters."""
        known = {p.name for p in self.params if hasattr(p, "name")}
        found = {n for d in definitions for n in self.free(d.value) if n.name not in known}
        return [Size(v.name) if v.dtype == "i64" else Scalar(v.name, v.dtype)
                for v in sorted(found, key=lambda v: v.name)]

    def free(self, value: Node) -> set[Var]:
        """The variables of a value that are not its axes."""
        axes = {a.name for role in ("axes", "over") for a in getattr(value, role, ())}
        return {n for n in value.unique() if isinstance(n, Var) and n.name not in axes}

    def arrays(self, definitions: Sequence[Define]) -> list[str]:
        """What definitions read in memory."""
        own = {name for d in definitions for name in d.names}
        return [name for name in dict.fromkeys([o for d in definitions for o in operands_of(d.value)])
                if name not in own]

    def buffer(self, name: str) -> Buffer:
        """An array in memory as a parameter."""
        given = next((p for p in self.params if isinstance(p, Buffer) and p.name == name), None)
        dtype, shape = self.memory[name]
        return Buffer(name, dtype, shape, tuple(range(len(shape))) if given is None else given.order, "in")

    # statements

    def store(self, b: Builder, target: Array, value: Operand, fn: str = "", at: Builder | None = None) -> str:
        """`target = value`, for all elements of a part of an array in memory, whose name it returns. `fn`: combine them
        with the old ones. The value, which is written at `at`, is computed before it is stored."""
        fits(b, target.shape, shape_of(value))
        axes, new = self.loops(target)
        place = self.expression(target.at(axes))
        match place:
            case Op("where", (check, Aref(index=(first, *others)) as checked, _)):
                place = checked.replace(index=(Op("where", (check, first, first)), *others))
        if not isinstance(place, Aref):
            b.fail("E244", "only elements of an array can be assigned", "assign the array, or its elements one by one")
        self.mark(place, b.pos)
        term, what = (at or b).broadcast_term(value, axes, target.shape), f"'{place.buffer}'"
        settled = (b.typing.stored_wide if fn else b.typing.stored)(term, place.dtype, what)
        inner: list[Stmt] = []
        expr = self.expression(settled, inner)
        if axes and any(isinstance(n, Aref) and n.buffer == place.buffer and n is not place
                        for part in (expr, *inner) for n in part.unique()):
            copy = Aref(self.local(f"{place.buffer}_new", expr.dtype, tuple(target.shape), b), axes, expr.dtype)
            self.add(*new(*inner, Setf(copy, expr)))
            inner = []
            axes, new = self.loops(target)
            expr = copy.replace(index=axes)
            place = substitute(place, dict(zip(copy.index, axes, strict=True)))
        self.add(*new(*inner, Incf(place, expr, fn) if fn else Setf(place, expr)))
        return place.buffer

    def loops(self, of: Array) -> tuple[Indices, Callable[..., tuple[Stmt, ...]]]:
        """Indices of the elements of an array, and the loops over them around statements."""
        axes = tuple([Var(self.fresh(f"{of.root.name}_{n}"), "i64") for n in range(of.rank)])

        def around(*stmts: Stmt) -> tuple[Stmt, ...]:
            for axis, extent in reversed(list(zip(axes, of.shape, strict=True))):
                stmts = (dotimes(axis.name, self.expression(extent), *stmts),)
            return stmts
        return axes, around

    def loop(self, wanted: str, bounds: tuple[Expr, Expr, Expr], pos: int, body: Callable[[Var], None]) -> None:
        """A loop: its start, end and step, and what adds the statements of an iteration."""
        var = Var(self.fresh(wanted), "i64")
        self.mark(var, pos)
        lo, hi, step = [self.expression(e) for e in bounds]
        facts, before = self.builder.sizes, self.builder.sizes.context
        facts.context = before.inside(For(var.name, lo, hi, step, "serial", ())) if not any(
            isinstance(n, Aref) for e in (lo, hi, step) for n in e.unique()) else before
        facts.around.append((For(var.name, lo, hi, step, "serial", ()), before))
        try:
            stmts = self.nested(lambda: body(var), is_branch=False)
        finally:
            facts.context = before
            facts.around.pop()
        self.add(For(var.name, lo, hi, step, "serial", stmts))

    def choice(self, cond: Expr, arms: Sequence[Callable[[], None]]) -> None:
        """`if`: what adds the statements where a condition over memory holds, and where it does not."""
        facts, before = self.builder.sizes, self.builder.sizes.context
        made = []
        for holds, arm in zip((True, False), arms, strict=True):
            facts.context = given(before, cond, holds)
            facts.around.append(None)
            try:
                made.append(self.nested(arm, is_branch=True))
            finally:
                facts.context = before
                facts.around.pop()
        if any(made):
            self.add(If(cond, *made))


def given(context: Context, cond: Expr, holds: bool) -> Context:
    """What is known where a condition holds, or does not: nothing new if it depends on memory."""
    return context if any(isinstance(n, Aref) for n in cond.unique()) else context.given(cond, holds)
