"""Lowering of values to loop nests: `(tensor …)` -> `(loop …)`.

A kernel of one reduce, or of a reduce and the map that reads it element by element, is

    accumulated in place       C = C + R       ->  for i, p: C[i] += …
    initialised, then added    C = x + R       ->  for i: C[i] = x;  for i, p: C[i] += …
    (products)                 C = f(R)        ->  for i: C[i] = 0;  for i, p: C[i] += …;  for i: C[i] = f(C[i])
    (products)                 C = f(C, R)     ->  for i, p: T[i] += …;  for i: C[i] = f(C[i], T[i])

where a product is a contraction, or on a CPU a matrix-vector product.

A scatter accumulates into the array of its source, or into a copy (`scatter_lowering`). All others are outer loops
around passes (`passes_over_rows`), a long scan in blocks (`long_scans`), or loops over blocks of rows
(`block_lowering`).
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..core.expr import TRUE, Expr, Op, Var
from ..core.monoids import identity
from ..core.node import Node, contains, kept
from ..core.program import InOrder, Schedule, Target
from ..core.unique_names import Names
from ..loop.bound_tightening import tighten_bounds
from ..loop.context import Context
from ..loop.effects import reads
from ..loop.renaming import renamed_arrays
from ..loop.simplify import simplify
from ..loop.statements import (
    ONE,
    ZERO,
    Address,
    Aref,
    Assume,
    Fail,
    For,
    If,
    Incf,
    Kernel,
    Local,
    LoopProgram,
    Setf,
    Stmt,
)
from .before_fusion import ready_for_fusion
from .block_lowering import BlockLowering
from .blocks_of_rows import BLOCKS, Blocks, joined
from .call_kernels import is_call, kernels_around_calls
from .checks_in_scatters import checks_in_scatters
from .element_ranges import element_ranges
from .extreme_search import may_search_in_blocks, searched_in_blocks
from .fusion import is_contraction, is_product, kernels_of
from .index_maps import is_identity
from .inlining import inlined_statements
from .kernels import Group, Member, NestKernel, as_one_map, names_of, reads_of_kernel
from .long_scans import in_blocks, shares_scans
from .loop_builder import LoopBuilder, Storage
from .loop_splitting import Part, conjunction, conjuncts, parts_of
from .nearest_indices import with_nearest_indices
from .passes_over_rows import Passes
from .repeated_kernels import with_repeats
from .scatter_lowering import ScatterLowering
from .unit_axes import mapped_over
from .values import Compute, Define, FailIf, FusedKernel, Named, Output, Read, Reduce, Scatter, TensorProgram, reads_of


def lower(program: TensorProgram, blocks: Blocks | None = None) -> LoopProgram:
    """Lower a tensor program to the loop level: same parameters and facts, and one kernel, or several around calls of C
    functions, or if some are equal but for their arrays. `blocks`: contractions may share a loop over blocks of rows,
    of these sizes, unless the text has the kernels."""
    if blocks is not None:
        program = ready_for_fusion(program)
    lowering = Lowering(program, blocks)
    clauses = tuple([c for c in program.clauses if not isinstance(c, Define | FailIf | FusedKernel | Output | Named)])
    name, parts, target = _c_name(program.name), lowering.parts(), program.first(Target)
    whole = (*lowering.locals, *[s for part in parts for s in part])
    kernels: tuple[Node, ...] = (Kernel(name, whole),)
    if any(map(is_call, whole)):
        kernels = kernels_around_calls(name, whole)
    elif target is not None and not lowering.on_device and program.opt > 0 and program.first(Schedule) is None:
        kernels = with_repeats(name, parts, lowering.locals, program.buffers)
    return LoopProgram(program.name, (*clauses, *kernels))


def _c_name(name: str) -> str:
    return "".join([c if c.isalnum() else "_" for c in name]).lower()


class Lowering(LoopBuilder):
    """The statements of a program. `names`: those that are taken, if it is a part of another one."""

    def __init__(self, program: TensorProgram, blocks: Blocks | None = None, names: Names | None = None) -> None:
        kernels = kernels_of(program)
        super().__init__(program, kernels if blocks is None else joined(kernels, program, blocks), names)
        self.context = Context.of(program)
        self.nested: set[str] = set()                    # names that the nests so far declare
        self.blocks, self.is_part = blocks, names is not None
        self.shares_scans = blocks is not None and shares_scans(program)
        self.searches_in_blocks = blocks is not None and may_search_in_blocks(program)
        self.is_apart = is_contraction if self.on_device else is_product        # starting a kernel takes long there
        self.in_scatters = checks_in_scatters(program, self.kernels)
        self.in_loops = {check.value for checks in self.in_scatters.values() for check in checks}
        self.tested = {r.buffer for c in program.checks for r in reads_of(c.cond)} - {
            name for k in self.kernels for name in reads_of_kernel(k)}         # scalars of checks, and of nothing else

    @property
    def locals(self) -> tuple[Local, ...]:
        """The arrays between kernels, and scalars."""
        return tuple([self.local(name) for name in self.plan.scratch if name not in self.tested])

    def local(self, name: str) -> Local:
        """The declaration of an array between kernels, or of a scalar."""
        dtype, shape = self.plan.scratch[name]
        return Local(self.arrays[name], dtype, shape, "scratch" if shape else "register")

    @property
    def lowered(self) -> dict[int, Group | NestKernel]:
        """The kernels that have statements of their own, by their numbers: the others are checks that scatters make in
        their loops."""
        return {n: k for n, k in enumerate(self.kernels) if self.in_loops.isdisjoint(names_of(k))}

    def parts(self) -> list[tuple[Stmt, ...]]:
        """The statements of each kernel of `lowered`, in order, and those that copy outputs at the end."""
        parts: list[tuple[Stmt, ...]] = []
        ranges = [] if self.on_device or self.is_part else element_ranges(self.program, self.context)
        checked: set[str] = set()                        # values whose checks have not failed by now
        for n, k in self.lowered.items():
            self.number = n
            read = reads_of_kernel(k) if isinstance(k, Group) else ()
            stmts: list[Stmt] = [Assume(Address(self.array(r.array), "read", r.type), r.least, r.end) for r in ranges
                                 if r.check in checked and r.array in read]
            for at, source, copy in self.plan.copies:
                if at == n:
                    stmts += self.copy(source, self.arrays[copy], *self.plan.scratch[copy])
            made = self.nest(k) if isinstance(k, NestKernel) else self.group(k)
            stmts += made if isinstance(k, NestKernel) or self.is_part else self.checked(self.tightened(made), stmts)
            checked.update(names_of(k))
            stmts += [If(self.expr(c.cond, {}), (Fail(c.row),)) for c in self.program.checks
                      if any(r.buffer in names_of(k) for r in reads_of(c.cond))]
            parts.append((*[self.local(name) for name in names_of(k) if name in self.tested], *stmts))
        for value, name in self.plan.late:
            buffer = self.program.buffers[name]
            parts.append(self.copy(self.array(value), name, buffer.type, buffer.axes))
        return parts

    def statements(self) -> tuple[Stmt, ...]:
        """The statements of the program, with what they declare in front."""
        return (*self.locals, *[s for part in self.parts() for s in part])

    def statements_of(self, part: TensorProgram) -> tuple[Stmt, ...]:
        """The statements of a program that is a part of this one."""
        return Lowering(part, names=self.names).statements()

    def tightened(self, stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """The nests of a group with conditions as bounds of their loops."""
        sizes = frozenset(self.program.sizes)
        return tuple([s.replace(then=self.tightened(s.then), otherwise=self.tightened(s.otherwise))
                      if isinstance(s, If) else tighten(s, self.context, sizes) for s in stmts])

    def checked(self, stmts: tuple[Stmt, ...], before: Sequence[Stmt]) -> tuple[Stmt, ...]:
        """The statements of a group, with checked indices in bounds. `before`: the statements in front of them."""
        shapes = {b.name: b.axes for b in self.program.buffers.values()}
        shapes |= {self.arrays[name]: shape for name, (_, shape) in self.plan.scratch.items()}
        return with_nearest_indices(stmts, Context.of(self.program).through(before), shapes, self.names)

    # -- nests ---------------------------------------------------------------------------------------------------------

    def nest(self, k: NestKernel) -> tuple[Stmt, ...]:
        """The statements of a nest, over the arrays that hold its values."""
        before: list[Stmt] = []
        names: dict[str, str] = {}
        for out, result in zip(k.nest.outs, k.names, strict=True):
            target = self.array_of_result(result)
            if out.source and self.array(out.source) != target:
                before += self.copy(self.array(out.source), target, out.type, out.shape)
            names[out.name] = target
        read = {n: self.array(n) for n in {*self.plan.home, *self.program.buffers} if self.array(n) != n}
        own = {out.name for out in k.nest.outs}
        stmts = renamed_arrays(k.nest.stmts, {n: a for n, a in read.items() if n not in own} | names)
        return (*before, *inlined_statements(stmts, self.name_in_nest, {}, {}))

    def name_in_nest(self, wanted: str) -> str:
        """The name of what a nest declares: its own, unless another nest has it."""
        name = self.names.fresh(wanted) if wanted in self.nested else wanted
        self.nested.add(name)
        return name

    def array_of_result(self, name: str) -> str:
        home = self.plan.home[name]
        return self.arrays.get(home, home)

    def copy(self, source: str, target: str, dtype: str, shape: Sequence[Expr]) -> tuple[Stmt, ...]:
        """Loops that copy an array."""
        def store(index: tuple[Expr, ...]) -> tuple[Stmt, ...]:
            return (Setf(Aref(target, index, dtype), Aref(source, index, dtype)),)
        return self.loops([(f"{target}_{n}", e) for n, e in enumerate(shape)], store)

    # -- groups --------------------------------------------------------------------------------------------------------

    def group(self, k: Group) -> tuple[Stmt, ...]:
        """The statements of a group."""
        if k.blocked is not None:
            return BlockLowering(self, k, self.blocks or BLOCKS, self.statements_of).statements()
        match k.members:
            case (Member(value=Scatter() as scatter) as m,):
                return self.scatter(m, scatter)
            case (Member(value=Reduce() as reduce) as m,):
                read = Read(m.name, tuple([a.var for a in reduce.axes]), reduce.type)
                return self.total(m, Compute(reduce.type, reduce.axes, read), read, reduce, range(len(reduce.axes)))
            case (Member(value=Reduce() as reduce) as first, Member(value=Compute() as value) as m):
                read = Read(first.name, tuple([a.var for a in reduce.axes]), reduce.type)
                over = mapped_over(value, reduce.axes)
                if (over is not None and [r for r in reads_of(over.value) if r.buffer == first.name] == [read]
                        and first.outer == reduce.axes and first.name not in k.stored
                        and m.outer == tuple([value.axes[n] for n in over.kept])):
                    return self.total(m, over.value, read, reduce, over.kept)
        if (whole := as_one_map(k)) is not None:
            parts = parts_of(whole.expr, whole.axes, self.program.sizes, lambda e: simplify(e, self.context))
            if len(parts) > 1 and not any(self._keeps(k.last, part) for part in parts):
                return tuple([s for part in parts for s in self.part(k.last, whole, part)])
        stmts = Passes(self, k).statements()
        if self.searches_in_blocks and not self.is_part:
            stmts = searched_in_blocks(stmts, self.program, self.names.fresh)
        return in_blocks(stmts, self.program, self.names.fresh) if self.shares_scans and not self.is_part else stmts

    def scatter(self, m: Member, value: Scatter) -> tuple[Stmt, ...]:
        """Accumulations into the elements that the index chooses."""
        target = self.array(m.name)
        source = self.array(value.source)
        before = () if source == target else self.copy(source, target, value.type, value.shape)
        return (*before, *ScatterLowering(self, m, value, self.in_scatters.get(m.name, [])).statements())

    def _keeps(self, m: Member, part: Part) -> bool:
        """Do the elements of a part stay what they are?"""
        return isinstance(part.expr, Read) and self.array(part.expr.buffer) == self.array(m.name)

    def part(self, m: Member, value: Compute, part: Part) -> tuple[Stmt, ...]:
        """Loops that set a part of an array."""
        names = [self.names.fresh(name) for name in self.axis_names(m.name, value)]
        index = tuple([Var(name, "i64") for name in names])
        ref = Aref(self.array(m.name), index, value.type)
        stmts: tuple[Stmt, ...] = (self.store(ref, self.expr(part.expr, {a.name: i for a, i in zip(value.axes, index,
                                                                                           strict=True)})),)
        for name, (lo, hi) in reversed(list(zip(names, part.ranges, strict=True))):
            stmts = (For(name, lo, hi, ONE, "serial", stmts),)
        return stmts

    def start_of(self, e: Expr, total: Read, reduce: Reduce) -> Expr | None:
        """Where the accumulation of a reduce starts so that it ends at the expression; None if it does not. Where
        floats are accumulated as written, only x + Σ starts at x."""
        if e is total:
            return identity(reduce.fn, reduce.type)
        match e:
            case Op(fn, (x, other)) if fn == reduce.fn and other is total and not contains(x, total):
                return x
            case Op(fn, (other, x)) if fn == reduce.fn and other is total and not contains(x, total):
                return x if self.program.first(InOrder) is None else None
        return None

    def total(self, m: Member, value: Compute, total: Read, reduce: Reduce, kept: Sequence[int]) -> tuple[Stmt, ...]:
        """A reduce and the map that reads it. `kept`: the axes of the array that are theirs; the others are at 0."""
        target = self.array(m.name)
        guard, value, reduce = self.guarded(target, value, reduce)
        every = self.axis_names(m.name, m.value)
        named = [every[n] for n in kept]
        summed = self.axis_names(total.buffer, reduce)[len(reduce.axes):]

        def at(index: tuple[Expr, ...], dtype: str = "", name: str = "") -> Aref:
            places = dict(zip(kept, index, strict=True))
            whole = tuple([places.get(n, ZERO) for n in range(len(m.value.axes))])
            return Aref(name or target, index if name else whole, dtype or value.type)

        def each(make: Callable[[Aref, Mapping[str, Expr]], tuple[Stmt, ...]], dtype: str = "", name: str = "",
                 ) -> tuple[Stmt, ...]:
            def body(index: tuple[Expr, ...]) -> tuple[Stmt, ...]:
                names = {a.name: i for a, i in zip(value.axes, index, strict=True)}
                stmts = make(at(index, dtype, name), names)
                return stmts if guard is TRUE else (If(self.expr(guard, names), stmts),)
            return self.loops(list(zip(named, [a.extent for a in value.axes], strict=True)), body)

        def accumulate(dtype: str = "", name: str = "") -> tuple[Stmt, ...]:
            return each(lambda ref, names: self.over(reduce, summed, names, ref), dtype, name)

        old = [r for r in reads_of(value) if self.array(r.buffer) == target and r is not total]
        mine = old[0] if len(old) == 1 and is_identity(old[0], value) and old[0].type == value.type else None
        changes = target in {self.array(r.buffer) for r in reads_of(reduce)}
        if reduce.type == value.type and not changes:
            starts = self.start_of(value.expr, total, reduce)
            if mine is not None and starts is mine:
                self.storage[total.buffer] = Storage("output", target)
                return accumulate()
            if starts is not None and (not old or (mine is not None and is_contraction(reduce))):
                self.storage[total.buffer] = Storage("output", target)
                begin = each(lambda ref, names: (self.store(ref, self.expr(starts, names)),))
                return (*begin, *accumulate())
            if not old and self.is_apart(reduce):
                self.storage[total.buffer] = Storage("output", target)
                begin = each(lambda ref, names: (Setf(ref, identity(reduce.fn, value.type)),))
                middle = accumulate()
                end = each(lambda ref, names: (self.store(ref, self.expr(value.expr, names, {total: ref})),))
                return (*begin, *middle, *end)
        if self.is_apart(reduce) and not changes:
            own = self.names.fresh(self.wanted(total.buffer))
            self.storage[total.buffer] = Storage("scratch", own)
            local = Local(own, reduce.type, tuple([a.extent for a in value.axes]), "scratch")
            zero = each(lambda ref, names: (Setf(ref, identity(reduce.fn, reduce.type)),), reduce.type, own)
            middle = accumulate(reduce.type, own)
            end = each(lambda ref, names: (self.store(ref, self.expr(
                value.expr, names, {total: Aref(own, tuple(names.values()), reduce.type)})),))
            return (local, *zero, *middle, *end)

        def whole(ref: Aref, names: Mapping[str, Expr]) -> tuple[Stmt, ...]:
            acc = Aref(self.names.fresh(self.wanted(total.buffer)), (), reduce.type)
            self.storage[total.buffer] = Storage("register", acc.buffer)
            return (Local(acc.buffer, acc.type, (), "register"), Setf(acc, identity(reduce.fn, reduce.type)),
                    *self.over(reduce, summed, names, acc),
                    self.store(ref, self.expr(value.expr, names, {total: acc})))
        return each(whole)

    def guarded(self, target: str, value: Compute, reduce: Reduce) -> tuple[Expr, Compute, Reduce]:
        """The condition outside which the elements stay as they are, with the map and the reduce inside it."""
        match value.expr:
            case Op("where", (cond, yes, Read(buffer) as old)) if (
                    self.array(buffer) == target and is_identity(old, value) and not reads_of(cond)):
                known = set(conjuncts(cond))
                rest = [c for c in conjuncts(reduce.cond) if c not in known]
                return cond, value.replace(expr=yes), reduce.replace(cond=conjunction(rest))
        return TRUE, value, reduce

    def over(self, reduce: Reduce, names: Sequence[str], bound: Mapping[str, Expr], target: Aref) -> tuple[Stmt, ...]:
        """The loops over the reduced axes around one accumulation."""
        def leaf(index: tuple[Expr, ...]) -> tuple[Stmt, ...]:
            inside = {**bound, **{a.name: i for a, i in zip(reduce.over, index, strict=True)}}
            add = Incf(target, self.expr(reduce.expr, inside), reduce.fn)
            return (add,) if reduce.cond is TRUE else (If(self.expr(reduce.cond, inside), (add,)),)
        return self.loops(list(zip(names, [a.extent for a in reduce.over], strict=True)), leaf)


def tighten(stmt: Stmt, context: Context, outer: frozenset[str], loops: frozenset[str] = frozenset()) -> Stmt:
    """A nest with conditions as bounds of its loops; those that depend on no loop are around it."""
    if not isinstance(stmt, For) or not _has_conditions(stmt):
        return stmt
    loop = tighten_bounds(stmt, outer | loops, context)
    within, names = context.inside(loop), loops | {loop.name}
    body = tuple([tighten(s, within, outer, names) for s in loop.body])
    if any(a is not b for a, b in zip(body, loop.body, strict=True)):
        loop = loop.replace(body=body)
    match loop.body:
        case (If(cond, then, ()),) if not reads(cond) and cond.variables <= outer:
            return If(cond, (loop.replace(body=then),))
    return loop


@kept
def _has_conditions(stmt: Stmt) -> bool:
    return isinstance(stmt, If) or any(_has_conditions(s) for s in stmt.children if isinstance(s, Stmt))
