"""vectorize: turn the iterations of a loop into the lanes of vectors."""
from __future__ import annotations

from functools import reduce

from ...core.dtypes import DTYPES, is_complex
from ...core.expr import Bitcast, Cast, Const, Expr, Op, Var, index, number
from ...core.monoids import identity, is_monoid
from ...core.node import substitute
from ...core.unique_names import Names
from ...loop.accesses import LANE, conjuncts, lane_of, stride_in
from ...loop.affine import canonical
from ...loop.context import Context
from ...loop.dependence import obstacle_to_any_order
from ...loop.early_exit import leaving_condition
from ...loop.effects import reads, writes, written
from ...loop.statements import (
    ZERO,
    Aref,
    Fold,
    For,
    If,
    Incf,
    Lanes,
    Let,
    Local,
    LoopProgram,
    Prefetch,
    Prefix,
    Ramp,
    Ref,
    Setf,
    Shuffle,
    Splat,
    Stmt,
    Vref,
    is_const,
)
from ..analysis.access_bounds import is_inside, is_shown_inside, shapes
from ..analysis.classify import fastest_axis, is_indirect
from ..analysis.complex_vectors import is_in_parts
from ..analysis.loop_queries import (
    context_at,
    enclosing,
    find,
    locals_in,
    loops_in,
    mentions,
    reads_memory,
    refusal,
    replaced,
)
from ..analysis.running_totals import only_accumulated, running_totals
from ..analysis.strided_loads import apart, is_zero_without
from ..normalize import tidied
from ..step_results import Vectorized

MAX_LANES = 64
STACK_BYTES = 16384


def vectorize(program: LoopProgram, loop: str) -> tuple[LoopProgram, Vectorized]:
    """Turn a loop of 2, 4, 8 … iterations into operations on vectors of that many lanes. Accesses that are contiguous
    in LOOP become vector loads and stores, loop-invariant values are broadcast (`splat`), conditions become masks, and
    a sum into one element adds up the lanes. A running total, a scalar that the loop accumulates into and reads, is the
    prefix of a vector and what the iterations before have added up. A loop inside that an iteration may leave (`break`)
    ends when all lanes have left it.

        (vectorize ji)
        (for ji 0 8 1 serial
          (if (< (+ j ji) N)                  ->   (setf (vref A 8 (j) -1 (< (ramp 8 j 1) (splat 8 N))) (splat 8 x)))
            ((setf (aref A (+ j ji)) x))))
    """
    step = f"vectorize {loop}"
    found = find(program, loop, step)
    extent = canonical(found.hi - found.lo)
    if not is_const(extent) or not is_const(found.step, 1):
        raise refusal("E513", step, f"its range from {found.lo} to {found.hi} by {found.step} has no constant length",
                      f"(split {loop} 8) and vectorize the inner loop")
    lanes = int(extent.value)
    if lanes < 2 or lanes > MAX_LANES or lanes & (lanes - 1):
        raise refusal("E513", step, f"{lanes} iterations are not 2, 4, 8 … {MAX_LANES} lanes",
                      f"(split {loop} 8) and vectorize the inner loop")
    if found.mark == "parallel":
        raise refusal("E513", step, "the loop is parallel", f"(split {loop} 8) and vectorize the inner loop")
    if not is_in_parts(found) or any(is_complex(local.type) for local in locals_in(found)):
        raise refusal("E513", step, "complex numbers have no vector form, only their parts")
    context = context_at(program, found)
    reason, only_adds = obstacle_to_any_order(only_accumulated(found, running_totals(found)), context)
    if reason is not None and not only_adds:
        raise refusal("E513", step, reason)
    widening = _Widening(program, found, lanes, context.inside(found), step)
    body = tidied(widening.list_of(found.body, None))
    masks = tuple([local.name for local in locals_in(body) if local.name in widening.masks])
    return replaced(program, found, *body), Vectorized(masks)


class _Widening:
    """Turns the statements of a loop body into vector statements. A value becomes a vector of `lanes`, or stays a
    scalar if all lanes have the same."""

    def __init__(self, program: LoopProgram, loop: For, lanes: int, context: Context, step: str) -> None:
        self.var, self.lo, self.lanes, self.step, self.context = Var(loop.name, "i64"), loop.lo, lanes, step, context
        self.program, self.shapes = program, shapes(program)
        self.wide: set[str] = set()                                   # locals that have one value for each lane
        self.masks: list[str] = []                                    # those of them that are new
        self.names: Names | None = None                               # that the program has
        self.written = writes(loop)
        self.totals = {t.acc.buffer: t for t in running_totals(loop)}
        self.stored = {s.ref for s in loop.unique() if isinstance(s, Setf | Incf)}
        self.at_once = tuple([outer.name for outer in enclosing(program, loop) if outer.mark != "serial"])
        self.registers = {n.name for n in locals_in(program) if n.space == "register"}
        self.own_masks: dict[str, Expr] = {}                          # of locals that are declared under one
        # of the statement in hand: values by expression and mask, and whether an expression is another under a mask
        self.values: dict[Expr, dict[Expr | None, Expr]] = {}
        self.masked: dict[Expr, bool] = {}

    # statements -----------------------------------------------------------------------------------------------------
    def list_of(self, stmts: tuple[Stmt, ...], mask: Expr | None) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        for n, stmt in enumerate(stmts):
            if isinstance(stmt, Let) and self.is_index(stmt.value, stmts[n + 1:]):
                rest = substitute(stmts[n + 1:], {Var(stmt.name, stmt.type): stmt.value})      # strides stay visible
                return (*out, *self.list_of(rest, mask))
            if isinstance(stmt, Let) and any(stmt.name in t.before for t in self.totals.values()):
                continue                                              # its value comes with the accumulation
            if isinstance(stmt, Incf) and stmt.ref.buffer in self.totals:
                rest = stmts[n + 1:]
                now, made = self.running_total(stmt, is_read=any(stmt.ref.buffer in reads(s) for s in rest))
                return (*out, *made, *self.list_of(substitute(rest, {stmt.ref: now}), mask))
            out.extend(self.statement(stmt, mask))
        return tuple(out)

    def running_total(self, stmt: Incf, is_read: bool) -> tuple[Aref, tuple[Stmt, ...]]:
        """A local that has a running total in each lane, and the statements that set it, if it is read, and
        accumulate."""
        total, dtype = self.totals[stmt.ref.buffer], stmt.ref.dtype
        self.names = self.names or Names.of(self.program)
        names = [self.names.fresh(f"{stmt.ref.buffer}_{what}") for what in ("prefix", "now")]
        self.wide |= {*names, *total.before}
        self.begin()
        prefix, start = self.own(names[0], dtype), Splat(self.lanes, stmt.ref)
        at_first = Op("lt", (Ramp(self.lanes, ZERO, index(1)), Splat(self.lanes, index(1))))
        shifted = Shuffle(prefix, (0, *range(self.lanes - 1)))
        before = Op("where", (at_first, Splat(self.lanes, identity(stmt.fn, dtype)), shifted))
        values: dict[str, Expr] = {names[0]: Prefix(stmt.fn, self.vector(stmt.value, None))}
        if is_read:
            values[names[1]] = Op(stmt.fn, (start, prefix))
        values |= dict.fromkeys(total.before, Op(stmt.fn, (start, before)))
        made: list[Stmt] = []
        for name, value in values.items():
            made += [Local(name, dtype, (index(self.lanes),), "register"), Setf(self.own(name, dtype), value)]
        last = Aref(names[0], (index(self.lanes - 1),), dtype)
        return Aref(names[1], (), dtype), (*made, stmt.replace(value=last))

    def begin(self) -> None:
        """Forget the values of the statement before: a local may have become wide."""
        self.values, self.masked = {}, {}

    def statement(self, stmt: Stmt, mask: Expr | None) -> tuple[Stmt, ...]:
        self.begin()
        match stmt:
            case For(lo=lo, hi=hi, step=step):
                if self.varies(lo) or self.varies(hi) or self.varies(step):
                    raise self.refuse(f"the range of '{stmt.name}' depends on it")
                if mask is not None and any(reads_memory(e) for e in (lo, hi, step)):
                    raise self.refuse(f"the range of '{stmt.name}' reads memory under a condition")
                outer, self.context = self.context, self.context.inside(stmt)
                going = self.going(stmt, mask)
                body = self.list_of(stmt.body, mask)
                self.context = outer
                return (stmt.replace(body=body if going is None else (If(going, body),)),)
            case If():
                return self.choice(stmt, mask)
            case Let(name=name, type=dtype, value=value):
                wide = self.value(value, mask)
                if wide.lanes == 1:
                    return (stmt.replace(value=wide),)
                self.wide.add(name)
                return Local(name, dtype, (index(self.lanes),), "register"), Setf(self.own(name, dtype), wide)
            case Setf(ref=ref, value=Op(fn="complex", args=parts)):
                place, flipped = self.place(ref, mask)
                if place.lanes == 1:
                    raise self.refuse(f"{ref} is the same place in every iteration")
                return (Setf(place, Op("complex", tuple([self.flip(self.vector(p, mask), flipped) for p in parts]))),)
            case Setf(ref=ref, value=value):
                place, flipped = self.place(ref, self.needed(mask, ref))
                if place.lanes == 1:
                    raise self.refuse(f"{ref} is the same place in every iteration")
                vector = self.flip(self.vector(value, mask), flipped)
                return (self.chosen(place, vector) if self.is_register(place, ref) else Setf(place, vector),)
            case Incf(ref=ref, value=value, fn=fn):
                place, flipped = self.place(ref, self.needed(mask, ref))
                if place.lanes > 1:
                    vector = self.flip(self.vector(value, mask), flipped)
                    if self.is_register(place, ref):
                        return (self.chosen(place, Op(fn, (place.replace(mask=None), vector))),)
                    return (Incf(place, vector, fn),)
                return (self.reduction(stmt, mask),)
            case Local(name=name, shape=shape, space=space):
                self.wide.add(name)
                if mask is not None:
                    self.own_masks[name] = mask
                shape = (*shape, index(self.lanes))
                large = space == "stack" and self.is_large(shape, stmt.type)
                return (stmt.replace(shape=shape, space="scratch" if large else space),)
            case Prefetch():
                return (substitute(stmt, {self.var: self.lo}),)
        raise self.refuse(f"({stmt.head} …) has no vector form")

    def going(self, loop: For, mask: Expr | None) -> Expr | None:
        """The condition that a loop inside, which each lane may leave (`break`), has something to do for some lane: as
        the guard of its body, where it ends the loop."""
        guard = leaving_condition(loop)
        if guard is None or not self.varies(guard) or loops_in(loop.body):
            return None
        return Fold("or", both(mask, self.value(guard, mask)))

    def choice(self, stmt: If, mask: Expr | None) -> tuple[Stmt, ...]:
        cond = self.value(stmt.cond, mask)
        if cond.lanes == 1:
            return (If(cond, self.list_of(stmt.then, mask), self.list_of(stmt.otherwise, mask)),)
        same = [part for part in conjuncts(stmt.cond) if not self.varies(part) and not reads(part)]
        # a condition that all lanes share becomes a branch: without it, masked stores would write back old values
        if same and not stmt.otherwise:
            some = [part for part in conjuncts(stmt.cond) if part not in same]
            return (If(reduce(both, same), self.choice(If(reduce(both, some), stmt.then, ()), mask), ()),)
        before: tuple[Stmt, ...] = ()
        loaded = [part for part in conjuncts(cond) if _is_loaded(part, writes(stmt))]
        if loaded:                                                    # the arms may write what it reads
            self.names = self.names or Names.of(self.program)
            name = self.names.fresh(f"{self.var.name}_mask")
            self.wide.add(name)
            self.masks.append(name)
            local = Local(name, "bool", (index(self.lanes),), "register")
            before = local, Setf(self.own(name, "bool"), reduce(both, loaded))
            cond = reduce(both, [part for part in conjuncts(cond) if part not in loaded] + [self.own(name, "bool")])
        then = self.list_of(stmt.then, both(mask, cond))
        otherwise = self.list_of(stmt.otherwise, both(mask, Op("not", (cond,)))) if stmt.otherwise else ()
        return (*before, *then, *otherwise)

    def reduction(self, stmt: Incf, mask: Expr | None) -> Incf:
        """Accumulate all lanes into one element."""
        if not is_monoid(stmt.fn, stmt.ref.dtype):
            raise self.refuse(
                f"{stmt.ref} is the same element in every iteration, and its operator {stmt.fn} "
                "has no identity element")
        if mask is not None and not self.is_inside(stmt.ref):
            raise self.refuse(f"{stmt.ref} exists only where the conditions of some lane hold")
        value = self.vector(stmt.value, mask)
        if mask is not None and not (stmt.fn == "add" and _is_zero_elsewhere(value, mask)):
            value = Op("where", (mask, value, Splat(self.lanes, identity(stmt.fn, stmt.ref.dtype))))
        return Incf(stmt.ref, Fold(stmt.fn, value), stmt.fn)

    # values ---------------------------------------------------------------------------------------------------------
    def value(self, expr: Expr, mask: Expr | None) -> Expr:
        """An expression for all lanes of which a mask says that they are needed. Values share parts: each part is made
        once, and once for each mask that matters to it, if it is not made for more lanes."""
        needed = mask if mask is not None and self.matters(expr) else None
        made = self.values.setdefault(expr, {})
        found = made.get(needed)
        if found is None and needed is not None and made:
            lanes = set(conjuncts(needed))
            found = next((v for m, v in made.items() if m is None or lanes.issuperset(conjuncts(m))), None)
        if found is None:
            found = self._value(expr, needed)
        made[needed] = found
        return found

    def matters(self, expr: Expr) -> bool:
        """Is a value another one under a mask? Some element may be read only where the conditions of its lane hold, or
        lies apart from the next."""
        found = self.masked.get(expr)
        if found is None:
            found = self.masked[expr] = any(map(self.matters, [c for c in expr.children if isinstance(c, Expr)])) or (
                isinstance(expr, Ref) and not self.is_free(expr))
        return found

    def is_free(self, ref: Ref) -> bool:
        """May an element be read in every lane, by one load?"""
        if not isinstance(ref, Aref) or not self.varies(ref):
            return ref.buffer not in self.written and self.is_inside(ref)
        return self.may_be_read(ref) and self.spread(ref, None) is None

    def _value(self, expr: Expr, mask: Expr | None) -> Expr:
        if not self.varies(expr):
            if any(n.lanes > 1 for n in expr.unique() if isinstance(n, Expr)):
                raise self.refuse(f"{expr} is a vector already")
            return expr if mask is None else self.common(expr, mask)
        if expr.dtype == "i64":
            stride = stride_in(expr, self.var.name)
            if stride is not None and not self.holds_wide(expr):
                return Ramp(self.lanes, canonical(substitute(expr, {self.var: self.lo})), index(stride))
        match expr:
            case Var(name=name, type=dtype):
                return self.own(name, dtype)
            case Op(fn="real" | "imag" as fn, args=(Aref() as ref,)) if is_complex(ref.dtype):
                place, flipped = self.place(ref, mask if mask is not None and not self.may_be_read(ref) else None)
                return self.flip(Op(fn, (place,)), flipped)
            case Aref() if (spread := self.spread(expr, mask)) is not None:
                return spread
            case Aref() if self.gathers(expr):
                return self.gathered(expr, mask)
            case Aref():
                place, flipped = self.place(expr, mask if mask is not None and not self.may_be_read(expr) else None)
                return self.flip(place, flipped)
            case Op(fn="where", args=(cond, yes, no)):
                test = self.vector(cond, mask)
                chosen, other = self.vector(yes, both(mask, test)), self.vector(no, both(mask, Op("not", (test,))))
                masked = _is_zero(other) and _is_zero_elsewhere(chosen, test)
                return chosen if masked else Op("where", (test, chosen, other))
            case Op(fn=fn, args=args):
                return Op(fn, tuple([self.vector(a, mask) for a in args]))
            case Cast(type=dtype, arg=arg):
                return Cast(dtype, self.vector(arg, mask))
            case Bitcast(type=dtype, arg=arg):
                return Bitcast(dtype, self.vector(arg, mask))
        raise self.refuse(f"{expr} is a vector already")

    def common(self, expr: Expr, mask: Expr) -> Expr:
        """A scalar that lanes share, if a mask says that they need it. What is read out of bounds otherwise is read
        under those conditions of the mask that all lanes share."""
        reading = [ref for ref in expr.unique() if isinstance(ref, Ref)]
        refused = [ref for ref in reading if ref.buffer in self.written]
        outside = [ref for ref in reading if not self.is_inside(ref)]
        if not refused and not outside:
            return expr
        lanes = [lane_of(part) for part in conjuncts(mask)]
        shared = [cond for cond in lanes if cond is not None and not mentions(cond, (LANE.name,)) and not (
            self.varies(cond) or reads_memory(cond))]
        if not refused and shared:
            test = reduce(both, shared)
            context = self.context.given(test)
            shapes = [(ref, self.shapes.get(ref.buffer)) for ref in outside]
            if all(shape is not None and is_inside(ref, shape, context) for ref, shape in shapes):
                return Op("where", (test, expr, number(0, expr.dtype)))
        raise self.refuse(f"{[*refused, *outside][0]} is read only where the conditions of some lane hold")

    def vector(self, expr: Expr, mask: Expr | None) -> Expr:
        value = self.value(expr, mask)
        return value if value.lanes > 1 else Splat(self.lanes, value)

    def gathers(self, ref: Aref) -> bool:
        """Is an index of a load itself read from memory, at a place that is known for each lane?"""
        return (ref.buffer not in self.wide and not is_complex(ref.dtype) and DTYPES[ref.dtype].bits >= 32
                and is_indirect(ref, self.var.name) and not any(self.holds_wide(i) for i in ref.index))

    def gathered(self, ref: Aref, mask: Expr | None) -> Expr:
        """The elements at indices that differ from lane to lane, each by a load of its own; lanes whose conditions
        fail, and whose element may not exist, are 0."""
        conds: list[Expr] = []
        may_fail = not all(self.may_be_read(n) for n in ref.unique() if isinstance(n, Aref))
        for part in conjuncts(mask) if mask is not None and may_fail else ():
            cond = lane_of(part)
            if cond is None:
                raise self.refuse(f"{ref} is read only where the conditions of some lane hold")
            conds.append(cond)

        def lane(n: int) -> Expr:
            element: Expr = substitute(ref, {self.var: canonical(self.lo + n)})
            holding = [substitute(cond, {LANE: index(n)}) for cond in conds]
            context = reduce(Context.given, holding, self.context)
            for read in [part for part in element.unique() if isinstance(part, Aref)]:
                if (shape := self.shapes.get(read.buffer)) is None or not is_inside(read, shape, context):
                    raise self.refuse(f"{read} is not shown to be in bounds")
            for cond in holding:
                element = Op("where", (cond, element, number(0, ref.dtype)))
            return element
        return Lanes(tuple([lane(n) for n in range(self.lanes)]))

    def place(self, ref: Ref, mask: Expr | None) -> tuple[Ref, bool]:
        """The vector access of all lanes, and whether the lanes lie in memory in reverse order."""
        if isinstance(ref, Vref):
            raise self.refuse(f"{ref} is a vector already")
        assert isinstance(ref, Aref)
        if ref.buffer in self.wide:
            if any(self.varies(i) for i in ref.index):
                raise self.refuse(f"{ref} takes elements of a local array that differ by iteration")
            return Vref(ref.buffer, self.lanes, (*ref.index, ZERO), -1, mask, ref.type), False
        if not any(self.varies(i) for i in ref.index):
            return ref, False
        strides = [stride_in(i, self.var.name) for i in ref.index]
        moving = [axis for axis, stride in enumerate(strides) if stride != 0]
        if any(self.varies(i) and strides[axis] in (None, 0) for axis, i in enumerate(ref.index)):
            raise self.refuse(f"{ref} gathers: an index is not a linear function of {self.var.name}")
        if len(moving) != 1 or strides[moving[0]] not in (1, -1):
            raise self.refuse(f"{ref} is not contiguous in {self.var.name}")
        flipped = strides[moving[0]] == -1
        first = canonical(self.lo + (self.lanes - 1)) if flipped else self.lo
        where = tuple([canonical(substitute(i, {self.var: first})) if axis in moving else i
                       for axis, i in enumerate(ref.index)])
        axis = -1 if moving[0] == len(ref.index) - 1 else moving[0]
        lanes = None if mask is None else self.flip(mask, flipped)
        return Vref(ref.buffer, self.lanes, where, axis, lanes, ref.type), flipped

    def spread(self, ref: Aref, mask: Expr | None) -> Expr | None:
        """A load with stride 2, 3 or 4; None for other accesses."""
        shape = self.shapes.get(ref.buffer)
        if ref.buffer in self.wide or shape is None or not ref.index:
            return None
        if fastest_axis(self.program, ref) != len(ref.index) - 1:
            return None
        step = stride_in(ref.index[-1], self.var.name)
        if step is None or step < 2 or any(self.varies(i) for i in ref.index[:-1]) or self.holds_wide(ref.index[-1]):
            return None
        first = ref.replace(index=tuple([canonical(substitute(i, {self.var: self.lo})) for i in ref.index]))
        return apart(ref, first, step, self.lanes, mask, shape, self.context)

    def chosen(self, place: Ref, vector: Expr) -> Setf:
        """Set a whole register; lanes where the mask fails keep their values."""
        assert isinstance(place, Vref)
        assert place.mask is not None
        whole = place.replace(mask=None)
        return Setf(whole, Op("where", (place.mask, vector, whole)))

    # predicates -----------------------------------------------------------------------------------------------------
    def varies(self, expr: Expr) -> bool:
        """Can it differ from lane to lane?"""
        return mentions(expr, (self.var.name,)) or self.holds_wide(expr)

    def holds_wide(self, expr: Expr) -> bool:
        """Does it read a local that has one value for each lane?"""
        return any((isinstance(n, Var) and n.name in self.wide)
                   or (isinstance(n, Aref | Vref) and n.buffer in self.wide) for n in expr.unique())

    def is_index(self, value: Expr, rest: tuple[Stmt, ...]) -> bool:
        """Does it grow by a constant from lane to lane, and mean the same in the statements that follow?"""
        if stride_in(value, self.var.name) in (None, 0) or self.holds_wide(value):
            return False
        return reads(value).isdisjoint(written(rest))

    def own(self, name: str, dtype: str) -> Vref:
        return Vref(name, self.lanes, (ZERO,), -1, None, dtype)

    def flip(self, vector: Expr, flipped: bool) -> Expr:
        return backwards(vector) if flipped else vector

    def is_inside(self, ref: Ref) -> bool:
        shape = self.shapes.get(ref.buffer)
        return shape is not None and is_inside(ref, shape, self.context)

    def may_be_read(self, ref: Aref) -> bool:
        """May lanes whose conditions fail read it, too? It must be in bounds, and no concurrent iteration may write it:
        the loop does not write the array, or writes this very element, and concurrent outer iterations have other
        ones."""
        shape = self.shapes.get(ref.buffer)
        if shape is None or not is_shown_inside(ref, shape, self.context):
            return False
        own = ref in self.stored and all(any(mentions(i, (name,)) for i in ref.index) for name in self.at_once)
        return ref.buffer not in self.written or ref.buffer in self.wide or own

    def needed(self, mask: Expr | None, ref: Ref) -> Expr | None:
        """The mask of a store. None for a local that is declared under the same mask: nobody reads the other lanes."""
        is_own = mask is not None and self.own_masks.get(ref.buffer) is mask
        return None if is_own and self.is_inside(ref) else mask

    def is_register(self, place: Ref, ref: Ref) -> bool:
        """Is it a masked access to an array in registers, which has an element for every lane?"""
        masked = isinstance(place, Vref) and place.mask is not None
        return masked and place.buffer in self.registers and self.is_inside(ref)

    def is_large(self, shape: tuple[Expr, ...], dtype: str) -> bool:
        total = DTYPES[dtype].bytes
        for n in shape:
            total *= n.value if isinstance(n, Const) else STACK_BYTES
        return total > STACK_BYTES

    def refuse(self, reason: str) -> Exception:
        return refusal("E513", self.step, reason)


def backwards(vector: Expr) -> Expr:
    """The lanes from the last to the first."""
    match vector:
        case Splat():
            return vector
        case Ramp(count=count, base=base, step=step):
            return Ramp(count, canonical(base + step * (count - 1)), canonical(-step))
        case Op(fn=fn, args=args) if not is_complex(args[0].dtype):
            return Op(fn, tuple([backwards(a) for a in args]))
    return Shuffle(vector, tuple(range(vector.lanes - 1, -1, -1)))


def both(mask: Expr | None, cond: Expr) -> Expr:
    """The mask (None: every lane) narrowed by a condition."""
    return cond if mask is None else Op("and", (mask, cond))


def _is_loaded(cond: Expr, changed: frozenset[str]) -> bool:
    """Does a vector condition read vectors, or elements that the arms write?"""
    return any(isinstance(n, Vref) or (isinstance(n, Aref) and n.buffer in changed) for n in cond.unique())


def _is_zero_elsewhere(vector: Expr, test: Expr) -> bool:
    """Is it a masked load that gives 0 in lanes where `test` fails?"""
    match vector:
        case Op(fn="where", args=(_, chosen, other)) if _is_zero(other):
            return _is_zero_elsewhere(chosen, test)
    if isinstance(vector, Vref) and vector.mask is not None:
        return all(part in conjuncts(vector.mask) for part in conjuncts(test))
    return is_zero_without(vector, test)


def _is_zero(vector: Expr) -> bool:
    match vector:
        case Splat(arg=Const(value=value)):
            return repr(value) in ("0", "0.0", "False")
    return False
