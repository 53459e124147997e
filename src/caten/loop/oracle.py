"""Turns a program into one that computes in float64 and carries a rounding bound with every float: the reference that results are compared with.

For an output C of the program the new one has C in float64, `C__bound` (float64; zero-filled by the caller) for the error that the declared type
may have made, and `C__loose` (uint8; zero-filled) for elements where a decision lay within the bound of its edge, so that any value passes.
Integers keep their types. A sum by `incf` carries Σ|x| beside it, so its bound holds in any order of summation: after n terms n · u · Σ|x|.

A decision on a float that lies within the bound of its edge is taken both ways: the branch that is not taken widens the bounds of what it would
write. No check speaks for what that branch accesses: its indices are looked at one by one, and what is outside reads as 0 and is not written.
"""
from __future__ import annotations

import struct
from dataclasses import dataclass, replace

from ..core.dtypes import DTYPES
from ..core.expr import FALSE, TRUE, Bitcast, Cast, Const, Expr, Op, Var, index, number
from ..core.node import Node
from ..core.program import At, Buffer, Case, Opt, Program, Reference, Schedule, Signature
from ..core.scalars import OPERATORS
from ..errors import error
from .comparison import Comparison, check, widened
from .context import ends_in_failure
from .effects import reads
from .interpret import statements
from .rounding import EXACT, LIMITS, apart, both, choose, either, greater, leaves_domain, negated, plus, propagated, reaches, rounding, size
from .statements import Aref, Fail, For, If, Incf, Kernel, Let, Local, LoopProgram, Setf, Stmt, dotimes

__all__ = ["Comparison", "bounded", "check", "widened"]

WIDE = {"f32": "f64", "f64": "f64", "c64": "c128", "c128": "c128"}

INFINITE = number(float("inf"), "f64")


@dataclass(frozen=True)
class Tracked:
    """A value with the bound of its error, and whether a decision at its edge makes it arbitrary."""

    value: Expr
    bound: Expr = EXACT
    loose: Expr = FALSE


@dataclass(frozen=True)
class Where:
    """The decisions around a statement: `taken`: it is executed; `unsure`: a decision was at its edge, so that it may or may not be."""

    taken: Expr = TRUE
    unsure: Expr = FALSE


def bounded(program: Program) -> LoopProgram:
    """The program in float64 with bounds. It starts from the assumption that every array is exact; a store that contradicts it is noted, and the
    translation is repeated until none does."""
    inexact: frozenset[str] = frozenset()
    unsure: frozenset[str] = frozenset()
    while True:
        attempt = _Translation(program, inexact, unsure)
        body = attempt.block(statements(program), Where())
        if attempt.inexact <= inexact and attempt.unsure <= unsure:
            return attempt.program(body)
        inexact, unsure = inexact | attempt.inexact, unsure | attempt.unsure


class _Translation:
    """One pass over the program under assumptions on which arrays are inexact or unsure."""

    def __init__(self, source: Program, inexact: frozenset[str], unsure: frozenset[str]):
        self.source = source
        self.assumed_inexact, self.assumed_unsure = inexact, unsure
        self.inexact: set[str] = set()
        self.unsure: set[str] = set()
        self.outputs = {b.name: b for b in source.all(Buffer) if b.access != "in"}
        self.inputs = {b.name for b in source.all(Buffer) if b.access == "in"}
        added = [as_sum(node) for top in statements(source) for node in top.walk()]
        self.sums = {s.ref.buffer for s in added if s is not None and isinstance(s.ref, Aref) and s.ref.dtype in WIDE}
        self.lets: dict[str, Tracked] = {}
        self.count = 0
        self.out: list[Stmt] = []
        self.memo: dict[Expr, Tracked] = {}
        self.doubtful = False                       # may what is translated be a side that the exact run does not take?
        self.shapes = {n.name: n.shape for n in source.unique() if isinstance(n, (Buffer, Local))}

    def program(self, body: tuple[Stmt, ...]) -> LoopProgram:
        params: list[Node] = []
        extra: list[Node] = []
        prologue: list[Stmt] = []
        for param in self.source.params:
            if not isinstance(param, Buffer) or param.name not in self.outputs:
                params.append(param)
                continue
            plain = param.replace(strides=(), access="inout")         # one kind for all three: an `out` buffer would be passed after the others
            params.append(plain.replace(type=WIDE.get(param.type, param.type)))
            if param.type in WIDE:
                extra.append(plain.replace(name=f"{param.name}__bound", type="f64"))
            extra.append(plain.replace(name=f"{param.name}__loose", type="u8"))
            if param.name in self.sums:
                prologue += [Local(f"{param.name}__sum", "f64", param.shape, "scratch"), self.initial_sum(param)]
        facts = [f for f in self.source.facts if not isinstance(f, (At, Case, Reference, Schedule, Signature, Opt))]
        shared = [s for c in self.source.all(Local) for s in self.local(c)]           # of a loop program, which may be translated too
        return LoopProgram(self.source.name, (*params, *extra, *facts, Opt(0), *shared, Kernel(self.source.name, (*prologue, *body))))

    def initial_sum(self, buffer: Buffer) -> Stmt:
        """Σ|x| starts with what the array holds, where it is an input."""
        names = [f"{buffer.name}__axis{n}" for n in range(len(buffer.shape))]
        at = tuple(Var(n, "i64") for n in names)
        start = size(Aref(buffer.name, at, WIDE[buffer.type])) if buffer.access == "inout" else EXACT
        stmt: Stmt = Setf(Aref(f"{buffer.name}__sum", at, "f64"), start)
        for name, extent in reversed(list(zip(names, buffer.shape, strict=True))):
            stmt = dotimes(name, extent, stmt)
        return stmt

    # Names.

    def named(self, value: Expr) -> Expr:
        """A value computed now, under a name of its own."""
        if isinstance(value, (Const, Var)):
            return value
        self.count += 1
        var = Var(f"q__{self.count}", value.dtype)
        self.out.append(Let(var.name, value.dtype, value))
        return var

    # Statements.

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
        """A check, and what relies on it: where a side is not taken, the check does not fail the call but ends the side."""
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
        space = "scratch" if stmt.space in ("register", "stack") and stmt.shape else stmt.space       # float64 and bounds need more room
        whole = stmt.replace(type=WIDE.get(stmt.type, stmt.type), space=space)
        return (whole, *([whole.replace(name=f"{name}__bound", type="f64")] if name in self.assumed_inexact else []),
                *([whole.replace(name=f"{name}__loose", type="u8")] if name in self.assumed_unsure else []),
                *([whole.replace(name=f"{name}__sum", type="f64")] if name in self.sums else []))

    def let(self, name: str, dtype: str, tracked: Tracked) -> None:
        value = tracked.value
        self.out.append(Let(name, WIDE.get(dtype, dtype), value))
        self.lets[name] = Tracked(Var(name, WIDE.get(dtype, dtype)), self.named(tracked.bound), self.named(tracked.loose))

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
        """place ± x, with the bound of any order of summation."""
        assert isinstance(stmt.ref, Aref)
        place = self.place(stmt.ref)
        old, x = self.value(stmt.ref), self.value(stmt.value)
        total = self.named(self.held(Aref(f"{stmt.ref.buffer}__sum", place.index, "f64"), place) + size(x.value))
        result = self.named(Op(stmt.fn, (old.value, x.value)))
        factor = 4.0 if DTYPES[stmt.ref.dtype].kind == "complex" else 1.0
        bound = plus(plus(old.bound, x.bound), total * (factor * DTYPES[stmt.ref.dtype].unit_roundoff))
        self.store(stmt.ref, self.limited(Tracked(result, bound, either(old.loose, x.loose)), stmt.ref.dtype), where, total)

    def place(self, ref: Aref) -> Aref:
        return ref.replace(index=tuple(self.value(i).value for i in ref.index), type=WIDE.get(ref.dtype, ref.dtype))

    def store(self, ref: Aref, new: Tracked, where: Where, total: Expr | None = None) -> None:
        """place = new; where the decision to do so is unsure, the bound grows to hold both the old and the new value."""
        name, is_float = ref.buffer, ref.dtype in WIDE
        place = self.place(ref)
        for i in ref.index:
            new = replace(new, loose=either(new.loose, self.value(i).loose))
        value, bound, loose = new.value, new.bound, new.loose
        total = size(value) if total is None else total
        if where.unsure is not FALSE:
            old = self.value(ref)
            value, loose = self.named(value), self.named(loose)
            bound = choose(where.unsure, plus(greater(old.bound, bound), apart(value, old.value)), bound) if is_float else EXACT
            differs = FALSE if is_float else Op("ne", (value, old.value))
            loose = either(loose, both(where.unsure, either(old.loose, differs)))
            value = choose(where.taken, value, old.value)
            if name in self.sums:
                total = choose(where.unsure, Op("max", (total, self.held(Aref(f"{name}__sum", place.index, "f64"), place))), total)
        value, bound, loose = self.named(value), self.named(bound), self.named(loose)
        total = self.named(total) if name in self.sums else EXACT
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
            stored.append(Setf(Aref(f"{name}__sum", place.index, "f64"), total))
        inside = self.inside(place)
        self.out.extend(stored if inside is TRUE else [If(inside, tuple(stored))])

    # Expressions.

    def value(self, expr: Expr) -> Tracked:
        if expr not in self.memo:
            self.memo[expr] = self.compute(expr)
        return self.memo[expr]

    def is_exact(self, expr: Expr) -> bool:
        """Is there neither a float nor an unsure integer in it?"""
        return all(not isinstance(n, Expr) or (n.dtype not in WIDE and not (isinstance(n, Aref) and n.buffer in self.assumed_unsure)
                                               and not (isinstance(n, Var) and n.name in self.lets and self.lets[n.name].loose is not FALSE))
                   for n in expr.unique())

    def compute(self, expr: Expr) -> Tracked:
        if self.is_exact(expr) and not (self.doubtful and reads(expr)):
            return Tracked(expr)
        match expr:
            case Const(value, dtype):
                return Tracked(Const(rounded_constant(value, dtype), WIDE[dtype]))
            case Var(name, dtype):
                return self.lets.get(name) or Tracked(self.named(Cast(WIDE[dtype], expr)) if dtype != WIDE[dtype] else expr)
            case Aref():
                return self.load(expr)
            case Cast(target, arg):
                return self.cast(target, arg)
            case Bitcast(target, arg):
                return self.bitcast(target, arg)
            case Op("where", (cond, then, otherwise)):
                return self.where(self.value(cond), then, otherwise)
            case Op(fn, args):
                return self.operator(fn, tuple(self.value(a) for a in args), args[-1].dtype)
        raise error("E485", f"the oracle does not know ({expr.head} …)")

    def load(self, ref: Aref) -> Tracked:
        name, indices = ref.buffer, tuple(self.value(i) for i in ref.index)
        at = tuple(i.value for i in indices)
        loose: Expr = FALSE
        for i in indices:
            loose = either(loose, i.loose)
        wide = WIDE.get(ref.dtype, ref.dtype)
        held = ref.dtype if name in self.inputs else wide
        place = Aref(name, at, held)
        value = self.held(place, place)
        value = self.named(value if held == wide else Cast(wide, value))
        bound = self.named(self.held(Aref(f"{name}__bound", at, "f64"), place)) if name in self.assumed_inexact and ref.dtype in WIDE else EXACT
        if name in self.assumed_unsure:
            loose = either(loose, Op("ne", (self.held(Aref(f"{name}__loose", at, "u8"), place), number(0, "u8"))))
        return Tracked(value, bound, self.named(loose))

    def held(self, ref: Aref, place: Aref) -> Expr:
        """What an array holds at a place; 0 where that is outside. `ref`: the place itself, or the same one in an array beside it."""
        return choose(self.inside(place), ref, number(0, ref.dtype))

    def inside(self, place: Aref) -> Expr:
        """Is a place inside its array? Always, where the checks of the program have seen to it."""
        if not self.doubtful:
            return TRUE
        asked = Aref(f"{place.buffer}__inside", place.index, "bool")
        if asked not in self.memo:
            within: Expr = TRUE
            for at, extent in zip(place.index, self.shapes[place.buffer], strict=True):
                end = self.value(extent).value
                if not (isinstance(at, Const) and isinstance(end, Const) and 0 <= at.value < end.value):
                    within = both(within, both(index(0) <= at, at < end))
            self.memo[asked] = Tracked(self.named(within))
        return self.memo[asked].value

    def operator(self, fn: str, args: tuple[Tracked, ...], dtype: str) -> Tracked:
        """`dtype`: the declared type of the operands."""
        values, bounds = tuple(a.value for a in args), tuple(a.bound for a in args)
        result = self.named(Op(fn, values))
        loose = self.named(decided(fn, args))
        if dtype not in WIDE or fn in ("isnan", "isinf"):
            return Tracked(result, EXACT, loose)
        if OPERATORS[fn].gives == "bool":
            distance = values[0] - values[1]
            return Tracked(result, EXACT, self.named(either(loose, reaches(distance, self.named(plus(*bounds))))))
        error_of_operands = propagated(fn, values, bounds, result)
        bound = plus(error_of_operands, rounding(fn, result, dtype))
        loose = either(loose, leaves_domain(fn, values, bounds))
        gives = OPERATORS[fn].result_type((dtype,))
        return self.limited(Tracked(result, bound, loose), gives)

    def limited(self, tracked: Tracked, dtype: str) -> Tracked:
        """As the declared type would hold it: infinite beyond its greatest number; there is no bound within reach of that edge."""
        if dtype not in LIMITS or tracked.bound is EXACT:
            return Tracked(tracked.value, self.named(tracked.bound), self.named(tracked.loose))
        greatest = number(LIMITS[dtype][0], "f64")
        bound = self.named(tracked.bound)
        magnitude = self.named(size(tracked.value))
        inside = self.named(Op("le", (magnitude, greatest)))
        value = choose(inside, tracked.value, tracked.value * INFINITE)
        edge = both(greatest < magnitude + bound, negated(greatest < magnitude - bound))
        return Tracked(self.named(value), self.named(choose(edge, INFINITE, choose(inside, bound, EXACT))), self.named(tracked.loose))

    def where(self, cond: Tracked, then: Expr, otherwise: Expr) -> Tracked:
        """Only the chosen arm is evaluated; both where the condition is at its edge."""
        test, unsure = self.named(cond.value), self.named(cond.loose)
        outer, self.doubtful = self.doubtful, self.doubtful or unsure is not FALSE
        x = self.arm(then, either(test, unsure))
        y = self.arm(otherwise, either(negated(test), unsure))
        self.doubtful = outer
        value = self.named(choose(test, x.value, y.value))
        bound = choose(test, x.bound, y.bound)
        loose = choose(test, x.loose, y.loose)
        if unsure is not FALSE and then.dtype in WIDE:
            bound = choose(unsure, plus(greater(x.bound, y.bound), apart(x.value, y.value)), bound)
            loose = either(loose, both(unsure, either(x.loose, y.loose)))
        elif unsure is not FALSE:
            loose = either(loose, both(unsure, either(either(x.loose, y.loose), Op("ne", (x.value, y.value)))))
        return Tracked(value, self.named(bound), self.named(loose))

    def arm(self, expr: Expr, guard: Expr) -> Tracked:
        """An arm that reads arrays is computed under its condition only, into locals."""
        if not any(isinstance(n, Aref) for n in expr.unique()):
            return self.value(expr)
        outer, outer_memo = self.out, self.memo
        self.out, self.memo = [], dict(outer_memo)
        inner = self.value(expr)
        self.count += 1
        name, dtype = f"q__{self.count}", WIDE.get(expr.dtype, expr.dtype)
        slots = [(Aref(name, (), dtype), inner.value), (Aref(f"{name}__bound", (), "f64"), inner.bound),
                 (Aref(f"{name}__loose", (), "bool"), inner.loose)]
        kept = [(slot, v) for slot, v in slots if v not in (EXACT, FALSE) or slot.buffer == name]
        body = (*self.out, *[Setf(slot, v) for slot, v in kept])
        self.out, self.memo = outer, outer_memo
        for slot, _ in kept:
            self.out.append(Local(slot.buffer, slot.dtype, (), "register"))
            self.out.append(Setf(slot, number(0, slot.dtype)))
        self.out.append(If(guard, body))
        read = {slot.buffer: self.named(slot) for slot, _ in kept}
        return Tracked(read[name], read.get(f"{name}__bound", EXACT), read.get(f"{name}__loose", FALSE))

    def cast(self, target: str, arg: Expr) -> Tracked:
        x = self.value(arg)
        if arg.dtype not in WIDE:
            narrow = Cast(target, x.value)
            return Tracked(self.named(narrow if target == WIDE.get(target, target) else Cast(WIDE[target], narrow)), EXACT, x.loose)
        if target in WIDE:
            value: Expr = x.value if x.value.dtype == WIDE[target] else Cast(WIDE[target], x.value)
            narrows = DTYPES[target].unit_roundoff > DTYPES[arg.dtype].unit_roundoff
            if narrows:
                value = Cast(WIDE[target], Cast(target, value))
            value = self.named(value)
            moved = Op("where", (Op("eq", (x.bound, EXACT)), EXACT, x.bound + size(value) * (2 * DTYPES[target].unit_roundoff)))
            return Tracked(value, x.bound if x.bound is EXACT or not narrows else self.named(moved), x.loose)
        if target == "bool":
            return Tracked(self.named(Cast(target, x.value)), EXACT, self.named(either(x.loose, reaches(x.value, x.bound))))
        jump = FALSE if x.bound is EXACT else Op("ne", (Cast(target, x.value - x.bound), Cast(target, x.value + x.bound)))
        return Tracked(self.named(Cast(target, x.value)), EXACT, self.named(either(x.loose, jump)))

    def bitcast(self, target: str, arg: Expr) -> Tracked:
        x = self.value(arg)
        held = x.value if arg.dtype == x.value.dtype else Cast(arg.dtype, x.value)
        value: Expr = Bitcast(target, held)
        if target in WIDE and target != WIDE[target]:
            value = Cast(WIDE[target], value)
        return Tracked(self.named(value), EXACT, self.named(either(x.loose, FALSE if x.bound is EXACT else x.bound > EXACT)))


def as_sum(stmt: object) -> Incf | None:
    """The statement as place ± x: an `incf`, or a `setf` that spells one."""
    match stmt:
        case Incf(Aref(), _, "add" | "sub"):
            return stmt
        case Setf(Aref() as ref, Op("add" | "sub" as fn, (first, x))) if first is ref:
            return Incf(ref, x, fn)
        case Setf(Aref() as ref, Op("add", (x, second))) if second is ref:
            return Incf(ref, x, "add")
    return None


def decided(fn: str, args: tuple[Tracked, ...]) -> Expr:
    """Is the result of an operator arbitrary, because an operand is? A conjunction is not, where the other operand is surely false."""
    loose: Expr = FALSE
    if fn in ("and", "or") and args[0].value.dtype == "bool" and any(a.loose is not FALSE for a in args):
        x, y = args
        open_x, open_y = (x.value, y.value) if fn == "and" else (negated(x.value), negated(y.value))
        return either(both(x.loose, either(y.loose, open_y)), both(y.loose, either(x.loose, open_x)))
    for a in args:
        loose = either(loose, a.loose)
    return loose


def rounded_constant(value: float | complex, dtype: str) -> float | complex:
    """A literal as its declared type holds it."""
    if isinstance(value, complex):
        parts = [rounded_constant(p, "f32" if dtype == "c64" else "f64") for p in (value.real, value.imag)]
        return complex(*parts)
    if dtype not in ("f32", "c64"):
        return value
    try:
        single: float = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
    return single


