"""Symbolic execution of statements: what each array holds afterwards, as values.

Loops are executed once, with their variables as symbols. A scalar becomes an expression over the loops around it. An
accumulation becomes a `reduce` over the loops that its target does not depend on. An array that a loop writes, one
element in each iteration, is a value when the loop ends: where no iteration wrote, it holds what it held before.

Sequential semantics is kept by one rule. If two accesses of an array, one of them a store, have loops in common, both
must index the array by each of these loops, at the same position: then each iteration meets only its own elements, and
meets them in program order. Accumulations need no order: what a loop reads of its own accumulation is a `scan`, and an
accumulation at an index that is computed is a `scatter`. Scalars that a loop sets where an element is greater or less
than all before are reductions, too: the extreme, and the least or greatest index where it is (`kept_extremes`). All
else raises DoesNotFit, and stays a nest.

A run-time check inside loops becomes a condition for the whole call (`checks_as_values`). An index that is in bounds
only because of such a check is `(inside index N row)`.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from ..core.expr import TRUE, Cast, Const, Expr, Op, Var
from ..core.monoids import identity, is_monoid
from ..core.node import Node, kept, substitute
from ..frozen import frozen
from ..loop import constant_folding
from ..loop.accesses import is_inside
from ..loop.affine import canonical
from ..loop.context import Context
from ..loop.simplify import simplify
from ..loop.statements import ONE, ZERO, Aref, Fail, For, If, Incf, Let, Local, Setf, Stmt
from .checks_as_values import Guard, compared, failing, guard
from .index_maps import CHEAP, cost
from .invariants import is_total
from .kept_extremes import Extreme
from .loop_directions import upward
from .loop_splitting import conjunction, within
from .values import Compute, Inside, Nest, Read, Reduce, Scan, Scatter, ValueTable, reads_of, shapes_of

LARGE = 96             # nodes of an expression, written out, from which on what has a name is a value of its own
MOST_TERMS = 4096      # a larger expression stays a nest


class DoesNotFit(Exception):
    """These statements have no index notation: `why`, and the access or statement that keeps them. Never leaves the
    tensor level."""

    def __init__(self, why: str, at: Node | None = None) -> None:
        super().__init__(why)
        self.why, self.at = why, at


@frozen
class Array:
    """An array: its type and shape, the loops around its declaration, and the value that it holds (empty: none yet).
    The leading axes of that value are the loops of `lead`."""

    type: str
    shape: tuple[Expr, ...]
    loops: tuple[str, ...] = ()
    value: str = ""
    lead: tuple[str, ...] = ()


@frozen
class Pending:
    """An accumulation whose loops are not all complete: it ends with the loop at `depth`. `totals`: its reduces.
    `over`: the loops over which it accumulates. `cond`, `value`: of the last accumulation."""

    fn: str
    depth: int
    totals: tuple[Expr, ...]
    ref: Aref
    over: tuple[str, ...]
    cond: Expr
    value: Expr


@frozen
class Scalar:
    """A scalar variable, declared inside `depth` loops."""

    type: str
    depth: int
    value: Expr | None = None


@frozen
class Element:
    """The element of an array that an iteration writes: its value so far, and the loops around the first store."""

    ref: Aref
    loops: tuple[str, ...]
    value: Expr


@dataclass
class State:
    """What variables hold."""

    arrays: dict[str, Array]
    scalars: dict[str, Scalar] = field(default_factory=dict)
    names: dict[str, Expr] = field(default_factory=dict)               # of `let`
    elements: dict[str, Element] = field(default_factory=dict)
    pending: dict[str, Pending] = field(default_factory=dict)
    guards: tuple[Guard, ...] = ()                                     # the run-time checks so far
    sizes: tuple[tuple[int, Expr], ...] = ()                           # of sizes: a row, and what must hold

    def copy(self) -> State:
        """An independent state."""
        return State(dict(self.arrays), dict(self.scalars), dict(self.names), dict(self.elements), dict(self.pending),
                     self.guards, self.sizes)


@frozen
class Access:
    """A load or store: the loops around it and its index. `fn`: that of an accumulation."""

    loops: tuple[str, ...]
    index: tuple[Expr, ...]
    is_store: bool
    fn: str = ""


class Execution:
    """Executes statements one after the other; `state` is what variables hold after them. `checks`: are run-time checks
    values?"""

    def __init__(self, table: ValueTable, context: Context, state: State, checks: bool = True) -> None:
        self.checks = checks
        self.table, self.entry, self.context, self.state = table, context, context, state
        self.loops: list[For] = []
        self.conds: list[Expr] = []
        self.arms: list[Expr] = []                                 # the conditions of the choices around a read
        self.row_of: dict[Expr, int] = {}                          # what is compared -> its check
        self.accesses: dict[str, list[Access]] = {}
        self.loops_around: dict[str, tuple[str, ...]] = {}         # of the declarations of variables
        self.domains: dict[str, tuple[Expr, Expr]] = {}            # loop -> its extent as an axis, and its condition
        self.down: set[str] = set()                                # loops from the last index to the first
        self.before: dict[str, Var] = {}           # accumulator -> what it holds before this iteration, until the scan
        self.scatters: dict[str, Scatter] = {}                     # arrays that the present loops scatter to
        self.spec_names: dict[str, tuple[str, tuple[str, ...]]] = {}       # value -> what the spec calls it

    def leave_loops(self) -> None:
        """Forget what is around the present statement: one that does not fit ends inside its loops."""
        self.loops, self.conds, self.arms, self.context = [], [], [], self.entry

    def run(self, stmts: Sequence[Stmt]) -> None:
        """Execute statements outside all loops. Raises DoesNotFit."""
        self.leave_loops()
        for s in stmts:
            self.accesses, self.before, self.scatters = {}, {}, {}
            self.statement(s)
            self.close_elements(0)
            self.check_accesses()

    # -- statements ----------------------------------------------------------------------------------------------------

    def block(self, stmts: Sequence[Stmt]) -> None:
        for s in stmts:
            self.statement(s)

    def statement(self, s: Stmt) -> None:
        match s:
            case For():
                self.loop(s)
            case If(cond, (Fail(row),), ()) if self.checks:
                self.check(row, self.value(cond))
            case If(cond, then, otherwise):
                self.branch(self.value(cond), then, otherwise)
            case Let(name, _, value):
                self.state.names[name] = self.short(self.value(value), name)
            case Local(name, dtype, (), _):
                self.state.scalars[name] = Scalar(dtype, len(self.loops))
                self.loops_around[name] = self.names_of_loops()
            case Local(name, dtype, shape, _):
                if any(n for e in shape for n in e.variables if n in self.domains):
                    raise DoesNotFit(f"the shape of '{name}' depends on a loop", s)
                self.state.arrays[name] = Array(dtype, shape, self.names_of_loops())
                self.loops_around[name] = self.names_of_loops()
            case Setf(Aref() as ref, value, ""):
                self.assign(ref, self.value(value))
            case Incf(Aref() as ref, value, fn):
                self.accumulate(ref, self.value(value), fn)
            case Fail():
                raise DoesNotFit("a run-time check may end the call between two iterations", s)
            case _:
                raise DoesNotFit("the statement has no index notation", s)

    def loop(self, s: For) -> None:
        s, is_down = upward(s, frozenset(self.names_of_loops()))
        if is_down:
            self.down.add(s.name)
        if (s.lo, s.hi, s.step) == (ZERO, ONE, ONE):                        # its axis would be in the way: g · O + o
            self.block(substitute(s.body, {Var(s.name, "i64"): ZERO}))
            return
        if s.step is not ONE:
            raise DoesNotFit(f"the step of the loop over '{s.name}' is neither 1 nor -1", s)
        if any(isinstance(n, Aref) for b in (s.lo, s.hi) for n in b.unique()):
            raise DoesNotFit(f"a bound of the loop over '{s.name}' is loaded from an array", s)
        self.domains[s.name] = self.domain(s)
        self.loops.append(s)
        context, self.context = self.context, self.context.inside(s)
        carried = self.carry(s)
        self.block(s.body)
        self.put_scans()
        self.put_extremes(s, carried)
        self.loops.pop()
        self.context = context
        self.close(len(self.loops))

    def domain(self, s: For) -> tuple[Expr, Expr]:
        """The extent of the axis that a loop becomes, which counts from 0 and depends on no loop, and the condition
        under which the loop has an iteration there."""
        var, lo, hi = Var(s.name, "i64"), self.plain(s.lo), self.plain(s.hi)
        self.is_complete(lo, hi)
        is_closed = not hi.variables & self.domains.keys()
        extent = hi if is_closed else self.extent_of_axis(s)
        conds = [c for c in (Op("le", (lo, var)) if lo is not ZERO else TRUE,
                             TRUE if is_closed else Op("lt", (var, hi))) if c is not TRUE]
        if not self.entry.proves(Op("le", (ZERO, extent))):
            extent = Op("max", (extent, ZERO)) if not isinstance(extent, Const) else ZERO
        if lo is not ZERO and not self.context.proves(Op("le", (ZERO, lo))):
            raise DoesNotFit(f"the loop over '{s.name}' may begin below 0", s)
        return extent, conjunction(conds)

    def extent_of_axis(self, s: For) -> Expr:
        """A bound of a loop whose end depends on outer loops: the extent of an axis that it indexes."""
        for n in s.walk():
            shape = self.shape_of(n.buffer) if isinstance(n, Aref) else ()
            if isinstance(n, Aref) and len(shape) == len(n.index):
                for at, extent in zip(n.index, shape, strict=True):
                    if isinstance(at, Var) and at.name == s.name and not extent.variables & self.domains.keys():
                        return extent
        raise DoesNotFit(f"the end of the loop over '{s.name}' depends on another loop", s)

    def shape_of(self, name: str) -> tuple[Expr, ...]:
        array = self.state.arrays.get(name)
        return () if array is None else array.shape

    def branch(self, cond: Expr, then: Sequence[Stmt], otherwise: Sequence[Stmt]) -> None:
        """Execute both branches; what they set depends on the condition."""
        before = self.state
        self.state = before.copy()
        with self.given(cond):
            self.block(then)
        yes, self.state = self.state, before.copy()
        self.state.arrays = yes.arrays           # completed loops of the first branch respect the condition themselves
        self.state.guards, self.state.sizes = yes.guards, yes.sizes
        with self.given(Op("not", (cond,))):
            self.block(otherwise)
        no = self.state
        no.pending = {name: _both_pending(before.pending.get(name), yes.pending.get(name), no.pending.get(name))
                      for name in dict.fromkeys((*yes.pending, *no.pending))}
        for name, scalar in no.scalars.items():
            other = yes.scalars.get(name, scalar)
            no.scalars[name] = replace(scalar, value=_chosen(cond, other.value, scalar.value))
        for name, scalar in yes.scalars.items():
            no.scalars.setdefault(name, scalar)
        no.names = {**yes.names, **no.names}
        for name in dict.fromkeys((*yes.elements, *no.elements)):
            a, b = yes.elements.get(name), no.elements.get(name)
            known = a or b
            assert known is not None
            if a is not None and b is not None and a.ref is not b.ref:
                raise DoesNotFit("the branches of a condition set different elements", a.ref)
            if known.loops == self.names_of_loops() or name in before.elements:
                values = [x.value if x is not None else self.content(known.ref) for x in (a, b)]
                no.elements[name] = replace(known, value=_where(cond, *values))
            else:
                raise DoesNotFit("a loop inside a branch sets the elements", known.ref)

    @contextmanager
    def given(self, cond: Expr) -> Iterator[None]:
        self.conds.append(cond)
        yield
        self.conds.pop()

    def check(self, row: int, cond: Expr) -> None:
        """The call fails if `cond` holds in an iteration of the loops around."""
        self.is_complete(cond, *self.conds)
        parts = failing(cond)
        for e in compared(parts):
            self.row_of.setdefault(canonical(e), row)
        loops = {x.name: self.domains[x.name] for x in self.loops}
        context = self.entry
        known, tested = list[Expr](), list[Expr]()
        for extent, _ in loops.values():
            runs = Op("lt", (ZERO, extent))
            if runs not in tested:                                  # loops with one extent have one condition
                (known if context.proves(runs) else tested).append(runs)
                context = context.given(runs)
        self.state.guards = (*self.state.guards, guard(row, [*self.conds, *parts], loops, known))

    # -- stores --------------------------------------------------------------------------------------------------------

    def assign(self, ref: Aref, value: Expr) -> None:
        scalar = self.state.scalars.get(ref.buffer)
        if scalar is not None:
            if scalar.depth != len(self.loops) or ref.buffer in self.state.pending:
                raise DoesNotFit(f"'{ref.buffer}' is carried from iteration to iteration", ref)
            self.state.scalars[ref.buffer] = replace(scalar, value=self.short(value, ref.buffer))
            return
        self.open(self.plain_place(ref), value)

    def open(self, ref: Aref, value: Expr) -> None:
        """Set an element that belongs to this iteration alone."""
        own = [x.name for x in self.loops]
        array = self.array(ref.buffer)
        if ref.buffer in self.state.pending or ref.buffer in self.scatters:
            raise DoesNotFit("the element is set in the loop that accumulates it", ref)
        if not set(own) - set(array.loops) <= set(_bare(ref)):
            raise DoesNotFit("several iterations set the same element", ref)
        known = self.state.elements.get(ref.buffer)
        if known is not None and known.ref is not ref:
            self.complete(known.ref, known.value)
        elif known is not None and len(own) > len(known.loops):
            raise DoesNotFit("an inner loop sets the element again", ref)
        self.note(ref, is_store=True)
        self.state.elements[ref.buffer] = Element(ref, tuple(own), self.short(value, ref.buffer, _bare(ref)))

    def accumulate(self, ref: Aref, value: Expr, fn: str) -> None:
        """`ref ∘= value` in the loops around: over those that the element does not depend on, a reduce."""
        if not is_monoid(fn, ref.dtype):
            raise DoesNotFit(f"'{fn}' is no reduction of {ref.dtype}", ref)
        scalar = self.state.scalars.get(ref.buffer)
        names = [x.name for x in self.loops]
        if scalar is not None:
            over = names[scalar.depth:]
            kept = tuple(names[:scalar.depth])
        else:
            try:
                ref = self.plain_place(ref)
            except DoesNotFit:
                self.scatter(ref, value, fn)
                return
            array = self.array(ref.buffer)
            bare = _bare(ref)
            over = [n for n in names if n not in bare and n not in array.loops]
            kept = tuple([n for n in names if n not in over])
        if not over:
            now = self.now(ref)
            self.assign(ref, Op(fn, (now, value)))
            return
        depth = names.index(over[0])
        element = self.state.elements.get(ref.buffer)
        if element is not None and (element.ref is not ref or len(element.loops) > depth):
            raise DoesNotFit("the loop that accumulates the element sets it, too, or another one", ref)
        self.note(ref, is_store=True, fn=fn)
        total = self.total(ref, kept, tuple(over), fn, value)
        cond = within(conjunction([self.domains[n][1] for n in (*kept, *over)]), conjunction(self.conds))
        known = self.state.pending.get(ref.buffer)
        if known is not None and (known.fn, known.depth, known.ref) != (fn, depth, ref):
            raise DoesNotFit("different accumulations of the array share a loop", ref)
        totals = (*known.totals, total) if known is not None else (total,)
        self.state.pending[ref.buffer] = Pending(fn, depth, totals, ref, tuple(over), cond, value)

    def total(self, ref: Aref, kept: tuple[str, ...], over: tuple[str, ...], fn: str, value: Expr) -> Read:
        """The reduce of one accumulation, read at the loops around it."""
        shape = self.shape_of(ref.buffer) if ref.buffer not in self.state.scalars else ()
        extents = {n: self.domains[n][0] for n in (*kept, *over)}
        conds = [self.domains[n][1] for n in (*kept, *over)]
        for at, extent in zip(ref.index, shape, strict=True) if shape else ():
            if isinstance(at, Var) and at.name in kept:                      # the axes of the array
                if not self.is_equal(extents[at.name], extent):
                    conds.append(Op("lt", (at, extents[at.name])))
                extents[at.name] = extent
        cond = within(conjunction(conds), conjunction(self.conds))
        self.is_complete(cond, value)
        used = self.loops_in(value, cond)
        order = [i.name for i in ref.index if isinstance(i, Var) and i.name in kept]
        kept_used = [n for n in kept if n in used or n in order]
        if order and set(order) == set(kept_used):
            kept_used = order                                    # the axes in the order of the array
        unused = [n for n in kept if n not in kept_used]
        if unused and not self.is_inside_without(unused, value, cond):
            empty = dict.fromkeys([extents[n] for n in unused if not self.entry.proves(Op("le", (ONE, extents[n])))])
            cond = conjunction([cond, *[Op("lt", (ZERO, e)) for e in empty
                                        if e not in [extents[n] for n in (*kept_used, *over)]]])
        axes = self.table.axis_names.axes([extents[n] for n in kept_used])
        reduced = self.table.axis_names.over([extents[n] for n in over])
        new = {Var(n, "i64"): a.var for n, a in zip((*kept_used, *over), (*axes, *reduced), strict=True)}
        reduce = Reduce(ref.dtype, axes, reduced, fn, substitute(cond, new), substitute(value, new))
        (name,) = self.table.define(reduce)
        self.call(name, ref.buffer, (*kept_used, *over))
        return Read(name, tuple([Var(n, "i64") for n in kept_used]), ref.dtype)

    def is_inside_without(self, unused: Sequence[str], value: Expr, cond: Expr) -> bool:
        """Are all reads in bounds, even where these loops have no iteration?"""
        context = self.entry
        for loop in self.loops:
            context = context if loop.name in unused else context.inside(loop)
        context = context.given(cond)
        shapes = self.shapes(value)
        return all(r.buffer in shapes and all(is_inside(context, i, extent) for i, extent in zip(
            r.index, shapes[r.buffer], strict=True)) for r in reads_of(value))

    def close(self, depth: int) -> None:
        """A loop has ended, and `depth` loops are around: complete accumulations and arrays."""
        for name, p in list(self.state.pending.items()):
            if p.depth == depth:
                del self.state.pending[name]
                self.finish(name, p)
        self.close_elements(depth)
        for name, scatter in list(self.scatters.items()):
            if depth > len(self.array(name).loops):
                continue
            del self.scatters[name]
            self.state.arrays[name] = replace(self.array(name), value=self.table.define(scatter)[0])

    # -- scans and scatters --------------------------------------------------------------------------------------------

    def scatter(self, ref: Aref, value: Expr, fn: str) -> None:
        """`ref ∘= value` at an index that is computed: the array as it is before the loops, and all they add to it. Of
        an array of each iteration of the loops around its declaration, these are the leading axes."""
        name, array, loops = ref.buffer, self.array(ref.buffer), self.names_of_loops()
        lead = array.loops
        if len(loops) <= len(lead) or not array.value or array.lead != lead:
            raise DoesNotFit("the index of the accumulation is computed, and the array is local", ref)
        if name in self.scatters or name in self.state.elements or name in self.state.pending:
            raise DoesNotFit("different accumulations of the array share a loop", ref)
        index = tuple([canonical(self.value(i)) for i in ref.index])
        self.note(Aref(name, index, ref.type), is_store=True, fn=fn)
        cond = within(conjunction([self.domains[n][1] for n in loops]), conjunction(self.conds))
        self.is_complete(cond, value, *index)
        inside = self.within_bounds(Aref(name, index, ref.type)).index
        if inside != index and any(map(self.gathers, index)):         # it would be stored, for the check reads it, too
            raise DoesNotFit("an index that is gathered and checked costs less in the loop that scatters", ref)
        axes = self.table.axis_names.axes([self.domains[n][0] for n in loops])
        new = {Var(n, "i64"): a.var for n, a in zip(loops, axes, strict=True)}
        shape = (*[self.domains[n][0] for n in lead], *array.shape)
        self.scatters[name] = Scatter(array.type, array.value, shape, axes, fn, tuple([
            canonical(substitute(i, new)) for i in (*[Var(n, "i64") for n in lead], *inside)]),
            substitute(cond, new), substitute(value, new))

    def gathers(self, e: Expr) -> bool:
        """Is an index of a read in an expression read itself, also in the values that it reads?"""
        return any(any(map(reads_of, r.index)) or (
            isinstance(made := self.table.values.get(r.buffer), Compute) and self.gathers(made.expr))
            for r in reads_of(e))

    def running(self, ref: Aref) -> Expr:
        """What an accumulator holds in the loop that accumulates, behind the accumulation."""
        p = self.state.pending[ref.buffer]
        if p.ref is not Aref(ref.buffer, tuple([canonical(i) for i in ref.index]), ref.type) or len(p.totals) > 1:
            raise DoesNotFit("it is read in the loop that accumulates it, another element or more than once", ref)
        return _combined(p.fn, self.start(ref), [self.scan(ref.buffer, p, "inclusive")], ref.dtype)

    def start(self, ref: Aref) -> Expr:
        """What an accumulator holds before the loops that accumulate."""
        scalar = self.state.scalars.get(ref.buffer)
        element = self.state.elements.get(ref.buffer)
        start = scalar.value if scalar is not None else element.value if element is not None else self.content(ref)
        if start is None:
            raise DoesNotFit("it is accumulated before it is set", ref)
        return start

    def scan(self, name: str, p: Pending, mode: str) -> Read:
        """The scan of an accumulation over one loop, read at the loops around it."""
        (loop, *more), around = p.over, self.names_of_loops()
        inside = [s for s in self.loops if s.name == loop]
        if more or not inside or _count(inside[0], name) != 1:
            raise DoesNotFit("it is read in the loops that accumulate it, and these are several", p.ref)
        self.is_complete(p.cond, p.value)
        used = self.loops_in(p.cond, p.value, *p.ref.index) | {loop}
        order = _order_of_store(inside[0], used) or tuple([n for n in around if n in used])
        axes = self.table.axis_names.axes([self.domains[n][0] for n in order])
        new = {Var(n, "i64"): a.var for n, a in zip(order, axes, strict=True)}
        (made,) = self.table.define(Scan(
            p.ref.dtype, axes, axes[order.index(loop)].name, p.fn, mode, "down" if loop in self.down else "up",
            substitute(p.cond, new), substitute(p.value, new)))
        self.call(made, name, order)
        return Read(made, tuple([Var(n, "i64") for n in order]), p.ref.dtype)

    def is_carried(self, ref: Aref) -> bool:
        """Does a loop around a read accumulate into what is read, behind the read?"""
        scalar, array = self.state.scalars.get(ref.buffer), self.state.arrays.get(ref.buffer)
        own = frozenset(_bare(ref)) | frozenset(array.loops if array is not None else ())
        loops = self.loops if scalar is None else self.loops[scalar.depth:]
        return any(_count(s, ref.buffer) for s in loops if s.name not in own)

    def put_scans(self) -> None:
        """Put scans in the place of what accumulators hold before each iteration, where the last loop ends them."""
        ended = {n: p for n, p in self.state.pending.items() if n in self.before and p.depth == len(self.loops) - 1}
        new: dict[Expr, Expr] = {}
        for name, p in ended.items():
            if len(p.totals) > 1:
                raise DoesNotFit("it is read in the loop that accumulates it, more than once", p.ref)
            new[self.before[name]] = _combined(p.fn, self.start(p.ref), [self.scan(name, p, "exclusive")], p.ref.dtype)
        if not new:
            return
        for name in ended:
            del self.before[name]
        state = self.state
        state.elements = {n: replace(e, value=substitute(e.value, new)) for n, e in state.elements.items()}
        state.names = {n: substitute(e, new) for n, e in state.names.items()}
        state.scalars = {n: s if s.value is None else replace(s, value=substitute(s.value, new))
                         for n, s in state.scalars.items()}

    # -- extremes ------------------------------------------------------------------------------------------------------

    def carry(self, loop: For) -> dict[str, Scalar]:
        """The scalars that a loop, the innermost one now, sets and does not declare, as they are before it. In the loop
        they hold names in the place of what the iteration before has left. (What they are before it is such a name of
        the loop around, if that carries them, too.)"""
        found, names = {}, {n.ref.buffer for n in loop.walk() if isinstance(n, Setf)}
        for name, scalar in self.state.scalars.items():
            if name in names and scalar.depth == len(self.loops) - 1 and scalar.value is not None and not _count(
                    loop, name):
                found[name] = scalar
                self.before[name] = Var(f"({name} {loop.name})", scalar.type)
        for name, scalar in found.items():
            self.state.scalars[name] = replace(scalar, depth=len(self.loops), value=self.before[name])
        return found

    def put_extremes(self, loop: For, carried: dict[str, Scalar]) -> None:
        """Put reductions in the place of the scalars that a loop carries: the extreme of an element, and what other
        scalars keep of the iteration that has it."""
        after = {self.before[n]: value for n in carried if (value := self.state.scalars[n].value) is not None}
        waiting = {v.name for v in after}
        if any(waiting & e.variables for x in self.state.elements.values() for e in (x.value, x.ref)):
            raise DoesNotFit("what an iteration stores depends on what the iteration before has left", loop)
        names = {self.before.pop(n): n for n in carried}
        self.state.scalars |= carried
        self.before |= {n: x.value for n, x in carried.items() if isinstance(x.value, Var) and x.value.name[0] == "("}
        changed = {v: e for v, e in after.items() if e is not v}
        if not changed:
            return
        extreme = Extreme.of(changed)
        if extreme is None or any(isinstance(n, Read) for e in extreme.kept.values() for n in e.unique()):
            name = names[next(iter(changed))]
            raise DoesNotFit(f"'{name}' is carried from iteration to iteration",
                             Aref(name, (), self.state.scalars[name].type))
        best = names[extreme.best]
        start, index = carried[best].value, Var(loop.name, "i64")
        assert start is not None
        key = self.short(extreme.key, best)
        kept, over = self.names_of_loops()[:-1], (loop.name,)
        with self.given(conjunction(extreme.conds)):
            top = self.total(Aref(best, (), key.dtype), kept, over, extreme.fn, substitute(
                extreme.reduced, {extreme.key: key}))
            taken = extreme.is_taken(top, start)
            at: Expr = index
            if extreme.is_last or any(index.name in e.variables for e in extreme.kept.values()):
                fn = "max" if extreme.is_last != (loop.name in self.down) else "min"
                name = next((names[v] for v, e in extreme.kept.items() if index.name in e.variables), best)
                with self.given(extreme.is_at(key, top)):
                    at = self.total(Aref(name, (), "i64"), kept, over, fn, index)
                if extreme.is_last:                    # an equal element may be the identity element itself
                    taken = Op("and", (taken, Op("ne", (at, identity(fn, "i64")))))
        taken = simplify(taken, self.context)
        first = ZERO if self.always_runs(loop) and not extreme.conds and extreme.begins_neutrally(start) else None
        for v, e in extreme.kept.items():
            before, value = carried[names[v]].value, substitute(e, {index: at})
            assert before is not None
            if first is None or extreme.is_last or constant_folding.fold(substitute(e, {index: first})) is not before:
                value = _where(taken, value, before)
            self.state.scalars[names[v]] = replace(carried[names[v]], value=self.short(value, names[v]))
        self.state.scalars[best] = replace(carried[best], value=top if start is identity(extreme.fn, key.dtype)
                                           else _where(taken, top, start))

    def always_runs(self, loop: For) -> bool:
        """Does a loop run from 0 up, at least once, wherever it is?"""
        extent, cond = self.domains[loop.name]
        return (cond is TRUE and not self.conds and loop.name not in self.down
                and self.entry.proves(Op("le", (ONE, extent))))

    def is_complete(self, *exprs: Expr) -> None:
        """A value may be made of these expressions: none has an accumulator whose scan is not known yet."""
        waiting = {v.name for v in self.before.values()}
        if waiting and any(waiting & e.variables for e in exprs):
            raise DoesNotFit("what it holds before each iteration decides how it goes on")

    def finish(self, name: str, p: Pending) -> None:
        """The accumulation is complete."""
        scalar = self.state.scalars.get(name)
        around = self.names_of_loops()
        if scalar is not None:
            if scalar.value is None:
                raise DoesNotFit(f"'{name}' is accumulated before it is set", p.ref)
            self.state.scalars[name] = replace(scalar, value=_combined(p.fn, scalar.value, p.totals, scalar.type))
            return
        inner = [n for n in _bare(p.ref) if n not in around]
        if not inner:
            now = self.now(p.ref)
            self.state.elements[name] = Element(p.ref, self.state.elements[name].loops if name in self.state.elements
                                                else around, _combined(p.fn, now, p.totals, p.ref.dtype))
        else:
            self.complete(p.ref, _combined(p.fn, self.content(p.ref), p.totals, p.ref.dtype))

    def close_elements(self, depth: int) -> None:
        """Elements of ended loops: their arrays have new values."""
        for name, element in list(self.state.elements.items()):
            if len(element.loops) > depth or depth == 0:
                del self.state.elements[name]
                self.complete(element.ref, element.value)

    def complete(self, ref: Aref, value: Expr) -> None:
        """Every iteration of the loops that index `ref` has set its element: the new value of the whole array."""
        array = self.array(ref.buffer)
        lead = array.loops
        axes = self.table.axis_names.axes([*[self.domains[n][0] for n in lead], *array.shape])
        own = axes[len(lead):]
        new = {Var(n, "i64"): a.var for n, a in zip(lead, axes, strict=False)}
        conds = [*self.conds, *[self.domains[n][1] for n in lead]]
        names = list(lead)
        for at, axis in zip(ref.index, own, strict=True):
            if isinstance(at, Var) and at.name in self.domains and Var(at.name, "i64") not in new:
                new[at] = axis.var
                names.append(at.name)
                extent, cond = self.domains[at.name]
                conds.append(cond)
                if not self.is_equal(extent, axis.extent):
                    conds.append(Op("lt", (at, extent)))
            elif isinstance(axis.extent, Const) and axis.extent.value == 1:
                names.append("")
            else:
                # a choice for each element of the array would cost more
                raise DoesNotFit("one row of the array is set, not all of it", ref)
        whole = conjunction(conds)
        self.is_complete(whole, value)
        if self.loops_in(whole, value) - {v.name for v in new}:
            raise DoesNotFit("the element depends on a loop that does not index it", ref)
        cond, made = substitute(whole, new), substitute(value, new)
        if cond is not TRUE:
            if not array.value:
                raise DoesNotFit("only a part of the elements is set", ref)
            made = _where(cond, made, Read(array.value, tuple([a.var for a in axes]), array.type))
        (name,) = self.table.define(Compute(array.type, axes, made))
        self.call(name, ref.buffer, tuple([n or a.name for n, a in zip(names, axes, strict=True)]))
        self.state.arrays[ref.buffer] = replace(array, value=name, lead=lead)

    # -- reads ---------------------------------------------------------------------------------------------------------

    def value(self, e: Expr) -> Expr:
        """An expression with what variables hold in the place of their names."""
        if not self.state.names.keys() & e.variables and not any(isinstance(n, Aref) for n in e.unique()):
            return e
        return self._value(e, {})

    def _value(self, e: Expr, memo: dict[Expr, Expr]) -> Expr:
        def go(n: Expr) -> Expr:
            if n not in memo:
                match n:
                    case Var(name) if name in self.state.names:
                        memo[n] = self.state.names[name]
                    case Aref():
                        memo[n] = self.now(Aref(n.buffer, tuple([go(i) for i in n.index]), n.type))
                    case Op("where", (cond, yes, no)) if self.state.guards:
                        test = go(cond)
                        memo[n] = Op("where", (test, self.arm(test, yes, memo),
                                               self.arm(Op("not", (test,)), no, memo)))
                    case _:
                        new: Expr = n.map(go)
                        memo[n] = (constant_folding.fold(new) if isinstance(new, Cast) and isinstance(new.arg, Const)
                                   else new)
            return memo[n]
        return go(e)

    def arm(self, cond: Expr, e: Expr, memo: dict[Expr, Expr]) -> Expr:
        """One arm of a choice: what it reads may be in bounds because of the condition."""
        if not any(isinstance(n, Aref) and n.index for n in e.unique()):
            return self._value(e, memo)
        self.arms.append(cond)
        made = self._value(e, dict(memo))
        self.arms.pop()
        return made

    def now(self, ref: Aref) -> Expr:
        """What a variable or element holds now."""
        if ref.buffer in self.state.pending:
            return self.running(ref)
        if ref.buffer in self.scatters:
            raise DoesNotFit("it is read in the loop that accumulates it", ref)
        if self.is_carried(ref):
            return self.before.setdefault(ref.buffer, Var(f"({ref.buffer})", ref.type))
        scalar = self.state.scalars.get(ref.buffer)
        if scalar is not None:
            if scalar.value is None:
                raise DoesNotFit(f"'{ref.buffer}' is read before it is set", ref)
            self.note(ref, is_store=False)
            return scalar.value
        ref = Aref(ref.buffer, tuple([self.decided(canonical(i)) for i in ref.index]), ref.type)
        self.note(ref, is_store=False)
        element = self.state.elements.get(ref.buffer)
        if element is not None and element.ref is ref:
            return element.value
        if element is not None:
            del self.state.elements[ref.buffer]
            self.complete(element.ref, element.value)
        return self.content(self.within_bounds(ref))

    def decided(self, i: Expr) -> Expr:
        """An index without the choices that a proof decides: where a loop counts from 0, `i` and not `(where (< i 0)
        (+ i N) i)`."""
        if any(isinstance(n, Op) and n.fn == "where" for n in i.unique()):
            return canonical(simplify(i, self.context))
        return i

    def within_bounds(self, ref: Aref) -> Aref:
        """The element with an `inside` for each index that only a run-time check keeps in bounds."""
        if not self.state.guards:
            return ref
        context = self.context
        for cond in (*self.conds, *self.arms):
            context = context.given(cond)
        index = list(ref.index)
        for n, (i, extent) in enumerate(zip(ref.index, self.shape_of(ref.buffer), strict=True)):
            if not is_inside(context, i, extent):
                row = self.row_of.get(i, 0)
                index[n] = Inside(i, extent, row)
                self.check_extent(row, extent)
        return ref.replace(index=tuple(index))

    def check_extent(self, row: int, extent: Expr) -> None:
        """Of an axis without elements every index is outside: where it is certainly indexed, that is a condition on the
        sizes. Then it is known that there is an element at the nearest index inside."""
        loops = [self.domains[x.name] for x in self.loops]
        needed = Op("le", (ONE, extent))
        if row == 0 or self.conds or self.arms or any(cond is not TRUE for _, cond in loops):
            return
        if not self.entry.proves(needed):
            for n, _ in loops:
                if not self.entry.proves(Op("le", (ONE, n))):
                    needed = Op("or", (needed, Op("le", (n, ZERO))))
            self.state.sizes = tuple(dict.fromkeys([*self.state.sizes, (row, needed)]))

    def content(self, ref: Aref) -> Read:
        """An element as the ended loops left it."""
        array = self.array(ref.buffer)
        if not array.value:
            raise DoesNotFit(f"'{ref.buffer}' is read before it is set", ref)
        return Read(array.value, (*[Var(n, "i64") for n in array.lead], *ref.index), ref.dtype)

    def array(self, name: str) -> Array:
        array = self.state.arrays.get(name)
        if array is None:
            raise DoesNotFit(f"'{name}' is declared in a nest")
        return array

    def short(self, value: Expr, name: str, order: Sequence[str] = ()) -> Expr:
        """What has a name is a value of its own if it is large or costs much: it may be used several times. `order`:
        the order of its axes, if it has all of these."""
        if value.written_out > MOST_TERMS:
            raise DoesNotFit(f"the expression of '{name}' has {value.written_out} nodes, more than {MOST_TERMS}")
        if (value.written_out <= LARGE and cost(value) <= CHEAP) or any(
                v.name in value.variables for v in self.before.values()):
            return value
        used = self.loops_in(value)
        kept = [n for n in order if n in used] if used <= set(order) else [x.name for x in self.loops if x.name in used]
        if len(kept) < len(self.loops) and not is_total(value, {n: self.domains[n][0] for n in kept},
                                                        self.shapes(value)):
            return value                             # an access may be in bounds only where all loops run
        if (not kept and value.written_out <= LARGE) or self.conds or any(self.domains[n][1] is not TRUE for n in kept):
            return value
        axes = self.table.axis_names.axes([self.domains[n][0] for n in kept])
        new = {Var(n, "i64"): a.var for n, a in zip(kept, axes, strict=True)}
        (made,) = self.table.define(Compute(value.dtype, axes, substitute(value, new)))
        self.call(made, name, tuple(kept))
        return Read(made, tuple([Var(n, "i64") for n in kept]), value.dtype)

    def shapes(self, value: Expr) -> dict[str, tuple[Expr, ...]]:
        """The shapes of the arrays and values that an expression reads, but for those that nests write."""
        found: dict[str, tuple[Expr, ...]] = {}
        for read in reads_of(value):
            made = self.table.values.get(read.buffer)
            if made is not None and not isinstance(made, Nest):
                found[read.buffer] = shapes_of(made)[0]
            elif made is None and read.buffer in self.state.arrays:
                found[read.buffer] = self.shape_of(read.buffer)
        return found

    # -- sequential semantics ------------------------------------------------------------------------------------------

    def note(self, ref: Aref, is_store: bool, fn: str = "") -> None:
        self.accesses.setdefault(ref.buffer, []).append(Access(self.names_of_loops(), ref.index, is_store, fn))

    def check_accesses(self) -> None:
        """The rule of the module's docstring, for all pairs. Raises DoesNotFit."""
        for name, found in self.accesses.items():
            distinct = list(dict.fromkeys(found))
            for a in distinct:
                for b in distinct if a.is_store else ():
                    if not self.is_apart(name, a, b):
                        what = "sets" if b.is_store else "reads"
                        raise DoesNotFit(f"an iteration {what} an element that another one sets", Aref(name, b.index))

    def is_apart(self, name: str, store: Access, other: Access) -> bool:
        """Does each iteration of the common loops meet its own elements only? Accumulations commute."""
        if store.fn and store.fn == other.fn and store.index == other.index:
            return True
        for a, b in zip(store.loops, other.loops, strict=False):
            if a != b:
                break
            if a in self.loops_around.get(name, ()):
                continue
            at = [n for n, i in enumerate(store.index) if isinstance(i, Var) and i.name == a]
            if not at or not any(isinstance(i := other.index[n], Var) and i.name == a for n in at):
                return False
        return True

    # -- helpers -------------------------------------------------------------------------------------------------------

    def names_of_loops(self) -> tuple[str, ...]:
        return tuple([x.name for x in self.loops])

    def loops_in(self, *exprs: Expr) -> set[str]:
        return {n for e in exprs for n in e.variables if n in self.domains}

    def plain_place(self, ref: Aref) -> Aref:
        """A place whose index is not loaded: canonical, each loop variable alone at one position or nowhere."""
        index = tuple([self.plain(i, ref) for i in ref.index])
        bare = [i.name for i in index if isinstance(i, Var) and i.name in self.domains]
        rest = [i for i in index if not (isinstance(i, Var) and i.name in self.domains)]
        if len(set(bare)) != len(bare) or any(i.variables & self.domains.keys() for i in rest):
            raise DoesNotFit("an index of a store is not one loop by itself", ref)
        return Aref(ref.buffer, index, ref.type)

    def plain(self, e: Expr, of: Aref | None = None) -> Expr:
        """An index without loads, in its canonical form."""
        made = self.value(e)
        if any(isinstance(n, Aref | Read) for n in made.unique()):
            raise DoesNotFit("an index of a store, or a bound of a loop, is loaded", of)
        return canonical(made)

    def is_equal(self, a: Expr, b: Expr) -> bool:
        """Are two extents equal in every call? Inside an empty loop anything could be shown."""
        return canonical(a) is canonical(b) or self.entry.proves(Op("eq", (a, b)))

    def call(self, value: str, name: str, axes: tuple[str, ...]) -> None:
        """Note what the spec calls a value and its axes, without the numbers that make names unique."""
        self.spec_names.setdefault(value, (name, tuple([self.without_number(a) for a in axes])))

    def without_number(self, name: str) -> str:
        base, _, number = name.rpartition("_")
        return base if number.isdigit() and base in self.table.names.taken else name


def _both_pending(before: Pending | None, yes: Pending | None, no: Pending | None) -> Pending:
    """An accumulation after a branch: the totals of both arms."""
    first, second = yes or no, no or yes
    assert first is not None
    assert second is not None
    if (first.fn, first.depth, first.ref) != (second.fn, second.depth, second.ref):
        raise DoesNotFit("the branches of a condition accumulate differently", first.ref)
    if yes is None or no is None:
        return first
    return replace(yes, totals=(*yes.totals, *no.totals[len(before.totals) if before is not None else 0:]))


@kept
def _accumulators(loop: For) -> dict[str, int]:
    """The variables that a loop accumulates into, and by how many statements."""
    found: dict[str, int] = {}
    for n in loop.walk():
        if isinstance(n, Incf):
            found[n.ref.buffer] = found.get(n.ref.buffer, 0) + 1
    return found


def _count(loop: For, name: str) -> int:
    return _accumulators(loop).get(name, 0)


def _order_of_store(loop: For, names: set[str]) -> tuple[str, ...]:
    """These loops in the order in which a store in a loop has them as indices."""
    for n in loop.walk():
        if isinstance(n, Setf) and isinstance(n.ref, Aref):
            order = tuple([i.name for i in n.ref.index if isinstance(i, Var) and i.name in names])
            if set(order) == names and len(order) == len(names):
                return order
    return ()


def _bare(ref: Aref) -> list[str]:
    return [i.name for i in ref.index if isinstance(i, Var)]


def _where(cond: Expr, yes: Expr, no: Expr) -> Expr:
    return yes if yes is no else Op("where", (cond, yes, no))


def _chosen(cond: Expr, yes: Expr | None, no: Expr | None) -> Expr | None:
    """A scalar after a branch; None if one branch does not set it."""
    return None if yes is None or no is None else _where(cond, yes, no)


def _combined(fn: str, start: Expr, totals: Sequence[Expr], dtype: str) -> Expr:
    """The start value and the totals of accumulations in one expression."""
    value: Expr | None = None if start is identity(fn, dtype) else start
    for total in totals:
        value = total if value is None else Op(fn, (value, total))
    assert value is not None
    return value
