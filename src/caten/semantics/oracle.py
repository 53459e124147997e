"""The float64 oracle: translate a program into one that computes in float64 and carries a rounding bound with every
float.

For an output C the new program has C in float64, `C__bound` (float64, zero-filled by the caller) for the possible error
in the declared type, and `C__loose` (uint8, zero-filled) for elements that depend on an unsure decision, where any
value passes. Integers keep their types. A sum by `incf` also carries Σ|x|, split by the sign of x, so its bound holds
for any order of summation: n · u · Σ|x| after n terms.

A decision on a float is unsure if the error bound may change it. Both branches are then run: the one not taken widens
the bounds of what it would write. No check protects its accesses, so each index is tested: out of bounds it reads 0 and
writes nothing.
"""
from __future__ import annotations

from dataclasses import replace

from ..core.dtypes import DTYPES
from ..core.expr import FALSE, TRUE, Cast, Const, Expr, Op, Var, index, number
from ..core.node import Node
from ..core.program import At, Attribute, Buffer, Case, Fusion, Opt, Program, Reference, Schedule, Signature
from ..errors import error
from ..frozen import frozen
from ..loop.context import ends_in_failure
from ..loop.statements import Aref, Fail, For, If, Incf, Kernel, Let, Local, LoopProgram, Setf, Stmt, dotimes
from .error_tracking import WIDE, Tracked, Tracking, outweighs
from .interpret import statements
from .rounding_bounds import (
    EXACT,
    GREATEST,
    INFINITE,
    LIMITS,
    apart,
    both,
    choose,
    either,
    finite_part_size,
    greater,
    is_finite,
    negated,
    plus,
)

SUMS = ("__above", "__below")        # companions of an accumulator: the magnitudes of its positive and negative terms


@frozen
class Where:
    """The decisions around a statement. `taken`: it runs. `unsure`: it may or may not run."""

    taken: Expr = TRUE
    unsure: Expr = FALSE


def bounded(program: Program, fast: bool = False) -> LoopProgram:
    """The program in float64 with bounds. `fast`: functions use their fast forms. A fixpoint: all arrays are assumed
    exact, a store that contradicts this is noted, and the translation repeats until nothing changes."""
    inexact: frozenset[str] = frozenset()
    unsure: frozenset[str] = frozenset()
    while True:
        attempt = _Translation(program, inexact, unsure, fast)
        body = attempt.block(statements(program), Where())
        if attempt.inexact <= inexact and attempt.unsure <= unsure:
            return attempt.program(body)
        inexact, unsure = inexact | attempt.inexact, unsure | attempt.unsure


class _Translation(Tracking):
    """One pass over the program, under assumptions about which arrays are inexact or unsure."""

    def __init__(self, source: Program, inexact: frozenset[str], unsure: frozenset[str], fast: bool):
        shapes = {n.name: n.shape for n in source.unique() if isinstance(n, (Buffer, Local))}
        super().__init__(shapes, [b.name for b in source.all(Buffer) if b.access == "in"], inexact, unsure, fast)
        self.source = source
        self.inexact: set[str] = set()
        self.unsure: set[str] = set()
        self.outputs = {b.name: b for b in source.all(Buffer) if b.access != "in"}
        added = [as_sum(node) for top in statements(source) for node in top.walk()]
        self.sums = {s.ref.buffer for s in added if s is not None and isinstance(s.ref, Aref) and s.ref.dtype in WIDE}

    def program(self, body: tuple[Stmt, ...]) -> LoopProgram:
        params: list[Node] = []
        extra: list[Node] = []
        prologue: list[Stmt] = []
        for param in self.source.params:
            if not isinstance(param, Buffer) or param.name not in self.outputs:
                params.append(param)
                continue
            plain = param.replace(strides=(), access="inout")      # `out` would change the argument order
            params.append(plain.replace(type=WIDE.get(param.type, param.type)))
            if param.type in WIDE:
                extra.append(plain.replace(name=f"{param.name}__bound", type="f64"))
            extra.append(plain.replace(name=f"{param.name}__loose", type="u8"))
            if param.name in self.sums:
                prologue += [*[Local(f"{param.name}{s}", "f64", param.shape, "scratch") for s in SUMS],
                             *self.initial_sums(param)]
        without = (At, Attribute, Case, Fusion, Reference, Schedule, Signature, Opt)
        facts = [f for f in self.source.facts if not isinstance(f, without)]
        shared = [s for c in self.source.all(Local) for s in self.local(c)]           # of a loop program
        return LoopProgram(self.source.name, (*params, *extra, *facts, Opt(0), *shared,
                                              Kernel(self.source.name, (*prologue, *body))))

    def initial_sums(self, buffer: Buffer) -> tuple[Stmt, ...]:
        """The sums of an inout array start with its elements."""
        names = [f"{buffer.name}__axis{n}" for n in range(len(buffer.shape))]
        at = tuple(Var(n, "i64") for n in names)
        held = Aref(buffer.name, at, WIDE[buffer.type])
        start = signed(choose(is_finite(held), held, EXACT) if buffer.type in LIMITS
                       else held) if buffer.access == "inout" else (EXACT, EXACT)
        stmts: tuple[Stmt, ...] = tuple([Setf(Aref(f"{buffer.name}{s}", at, "f64"), v)
                                         for s, v in zip(SUMS, start, strict=True)])
        for name, extent in reversed(list(zip(names, buffer.shape, strict=True))):
            stmts = (dotimes(name, extent, *stmts),)
        return stmts

    def block(self, stmts: tuple[Stmt, ...], where: Where) -> tuple[Stmt, ...]:
        outer, outer_memo, outer_doubt = self.out, self.memo, self.doubtful
        self.out, self.doubtful = [], where.unsure is not FALSE
        for at, stmt in enumerate(stmts, 1):
            self.memo = {}
            if self.doubtful and isinstance(stmt, If) and ends_in_failure(stmt.then):
                self.guarded(stmt, stmts[at:], where)
                break
            self.statement(stmt, where)
        done, self.out, self.memo, self.doubtful = tuple(self.out), outer, outer_memo, outer_doubt
        return done

    def guarded(self, check: If, rest: tuple[Stmt, ...], where: Where) -> None:
        """A check and the statements that rely on it. In a branch not taken, it ends the branch instead of failing the
        call."""
        cond = self.value(check.cond)
        test, loose = self.named(cond.value), self.named(cond.loose)
        self.branch(Tracked(test, EXACT, loose), check.then, check.otherwise, where)
        self.out.append(If(either(negated(test), loose), self.block(rest, where)))

    def statement(self, stmt: Stmt, where: Where) -> None:
        added = as_sum(stmt)
        match stmt:
            case Local():
                self.out.extend(self.local(stmt))
            case Let(name, dtype, value):
                self.let(name, dtype, self.value(value))
            case For(name, lo, hi, step, mark, body):
                bounds = [self.value(e) for e in (lo, hi, step)]
                loose = self.named(either(either(bounds[0].loose, bounds[1].loose), bounds[2].loose))
                inner = self.block(body, replace(where, unsure=either(where.unsure, loose)))
                lo, hi, step = (b.value for b in bounds)
                loop = For(name, lo, hi, step, mark, inner)
                may_not_end = self.doubtful and not isinstance(step, Const)
                self.out.append(If(Op("ne", (step, index(0))), (loop,)) if may_not_end else loop)
            case If(cond, then, otherwise):
                self.branch(self.value(cond), then, otherwise, where)
            case Fail():
                self.out.append(stmt if where.taken is TRUE else If(where.taken, (stmt,)))
            case _ if added is not None and added.ref.dtype in WIDE:
                self.add(added, where)
            case Incf(ref, value, fn):
                assert isinstance(ref, Aref)
                self.store(ref, self.operator(fn, (self.value(ref), self.value(value)), ref.dtype), where)
            case Setf(ref, value):
                assert isinstance(ref, Aref)
                self.store(ref, self.value(value), where)
            case _:
                raise error("E485", f"the oracle does not know ({stmt.head} …)")

    def local(self, stmt: Local) -> tuple[Stmt, ...]:
        name = stmt.name
        space = "scratch" if stmt.space in ("register", "stack") and stmt.shape else stmt.space   # more room
        whole = stmt.replace(type=WIDE.get(stmt.type, stmt.type), space=space)
        return (whole, *([whole.replace(name=f"{name}__bound", type="f64")] if name in self.assumed_inexact else []),
                *([whole.replace(name=f"{name}__loose", type="u8")] if name in self.assumed_unsure else []),
                *[whole.replace(name=f"{name}{s}", type="f64") for s in SUMS if name in self.sums])

    def let(self, name: str, dtype: str, tracked: Tracked) -> None:
        value = tracked.value
        self.out.append(Let(name, WIDE.get(dtype, dtype), value))
        self.lets[name] = Tracked(Var(name, WIDE.get(dtype, dtype)), self.named(tracked.bound),
                                  self.named(tracked.loose), tracked.factors)

    def branch(self, cond: Tracked, then: tuple[Stmt, ...], otherwise: tuple[Stmt, ...], where: Where) -> None:
        if cond.loose is FALSE:
            self.out.append(If(cond.value, self.block(then, where), self.block(otherwise, where)))
            return
        test, loose = self.named(cond.value), self.named(cond.loose)
        unsure = self.named(either(where.unsure, loose))
        for holds, body in ((test, then), (negated(test), otherwise)):
            if body:
                taken = self.named(both(where.taken, holds))
                self.out.append(If(either(holds, loose), self.block(body, Where(taken, unsure))))

    def add(self, stmt: Incf, where: Where) -> None:
        """ref ± x, with the bound for any order of summation."""
        assert isinstance(stmt.ref, Aref)
        place = self.place(stmt.ref)
        old, x = self.value(stmt.ref), self.value(stmt.value)
        term = self.named(x.whole if stmt.fn == "add" else EXACT - x.whole) if stmt.ref.dtype in LIMITS else x.value
        sums = self.sums_beside(stmt.ref.buffer, place, term)
        total = self.named(Op("fmin", (sums[0] + sums[1], GREATEST)))
        result = self.named(Op(stmt.fn, (old.value, x.value)))
        factor = 4.0 if DTYPES[stmt.ref.dtype].kind == "complex" else 1.0
        bound = self.named(plus(plus(old.bound, x.bound), total * (factor * DTYPES[stmt.ref.dtype].unit_roundoff)))
        if stmt.ref.dtype in LIMITS:
            surely = either(Op("ne", (old.value, old.value)), Op("ne", (x.value, x.value)))              # NaN
            bound = choose(either(surely, negated(overflows_in_some_order(stmt.ref.dtype, sums, result, bound))), bound,
                           INFINITE)
        self.store(stmt.ref, self.limited(Tracked(result, bound, either(old.loose, x.loose)), stmt.ref.dtype), where,
                   sums)

    def sums_beside(self, name: str, place: Aref, term: Expr) -> tuple[Expr, Expr]:
        """The sums of the positive and of the negative terms, with one more term."""
        above, below = (self.held(Aref(f"{name}{s}", place.index, "f64"), place) for s in SUMS)
        up, down = signed(self.named(term))
        return self.named(above + up), self.named(below + down)

    def place(self, ref: Aref) -> Aref:
        return ref.replace(index=tuple(self.value(i).value for i in ref.index), type=WIDE.get(ref.dtype, ref.dtype))

    def store(self, ref: Aref, new: Tracked, where: Where, sums: tuple[Expr, Expr] | None = None) -> None:
        """ref = new. If the decision is unsure, the bound grows to hold both the old and the new value."""
        name, is_float = ref.buffer, ref.dtype in WIDE
        place = self.place(ref)
        for i in ref.index:
            new = replace(new, loose=either(new.loose, self.value(i).loose))
        value, bound, loose = new.value, new.bound, new.loose
        if name not in self.sums:
            sums = EXACT, EXACT
        elif sums is None:
            value = self.named(value)
            sums = signed(choose(is_finite(value), value, EXACT) if ref.dtype in LIMITS else value)
        if where.unsure is not FALSE:
            old = self.value(ref)
            value, loose = self.named(value), self.named(loose)
            bound = choose(where.unsure, plus(greater(old.bound, bound), apart(value, old.value)),
                           bound) if is_float else EXACT
            differs = FALSE if is_float else Op("ne", (value, old.value))
            loose = either(loose, both(where.unsure, either(old.loose, differs)))
            value = choose(where.taken, value, old.value)
            if name in self.sums:
                before = [self.held(Aref(f"{name}{s}", place.index, "f64"), place) for s in SUMS]
                above, below = (choose(where.unsure, Op("max", (v, b)), v) for v, b in zip(sums, before, strict=True))
                sums = above, below
        value, bound, loose = self.named(value), self.named(bound), self.named(loose)
        sums = self.named(sums[0]), self.named(sums[1])
        if bound is not EXACT:
            self.inexact.add(name)
        if loose is not FALSE:
            self.unsure.add(name)
        stored = [Setf(place, value)]
        if is_float and name in self.assumed_inexact:
            stored.append(Setf(Aref(f"{name}__bound", place.index, "f64"), bound))
        if name in self.assumed_unsure:
            stored.append(Setf(Aref(f"{name}__loose", place.index, "u8"), Cast("u8", loose)))
        if name in self.sums:
            stored += [Setf(Aref(f"{name}{s}", place.index, "f64"), v) for s, v in zip(SUMS, sums, strict=True)]
        inside = self.inside(place)
        self.out.extend(stored if inside is TRUE else [If(inside, tuple(stored))])


def signed(x: Expr) -> tuple[Expr, Expr]:
    """The positive and the negative part of a number, (0, 0) for NaN. For a complex number: its magnitude, 0."""
    if DTYPES[x.dtype].kind == "complex":
        return finite_part_size(x), EXACT
    return choose(x > EXACT, x, EXACT), choose(x < EXACT, EXACT - x, EXACT)


def overflows_in_some_order(dtype: str, sums: tuple[Expr, Expr], result: Expr, bound: Expr) -> Expr:
    """True if the order of summation, or fusing a product, decides whether the sum overflows: the terms of one sign
    together exceed the greatest number, unless the sum exceeds it by far."""
    greatest = number(LIMITS[dtype][0], "f64")
    above, below = sums
    most, least = Op("max", sums), Op("min", sums)
    right = choose(above > below, result > greatest, result < EXACT - greatest)
    sure = both(both(least + bound <= greatest, right), outweighs(most, least + bound, dtype))
    return both(most + bound > greatest, negated(sure))


def as_sum(stmt: object) -> Incf | None:
    """The statement as ref ± x: an `incf`, or a `setf` that spells one."""
    match stmt:
        case Incf(Aref(), _, "add" | "sub"):
            return stmt
        case Setf(Aref() as ref, Op("add" | "sub" as fn, (first, x))) if first is ref:
            return Incf(ref, x, fn)
        case Setf(Aref() as ref, Op("add", (x, second))) if second is ref:
            return Incf(ref, x, "add")
    return None
