"""Recognise accumulations: every spelling of `x = x + e` becomes one form, `incf`, before raising and scheduling.

    (setf s (+ s e))   (setf s (+ e s))   (setf s (- s e))        ->   (incf s e), (incf s (neg e))
    (setf t (max t e))   (if (> e t) ((setf t e)))                ->   (incf t e max)
    (setf s e0) (for p 1 N … (incf s e))                          ->   (setf s 0) (for p 0 N … (incf s e))
                                                                       if e at p = 0 is e0
    (for p 0 N … (if (= p 0) ((setf s e)) ((incf s e))))          ->   (setf s 0) (for p 0 N … (incf s e))

The identity element of the monoid replaces the first value. A comparison ignores a NaN e, which `max` would take; that
maximum therefore uses the identity element for NaN. Where float sums may not be reassociated, they keep the form `(setf
s (+ s e))`, which no schedule step reorders.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..core.dtypes import DTYPES
from ..core.expr import Const, Expr, Op, Var
from ..core.monoids import identity, is_monoid
from ..core.node import substitute
from ..core.program import Buffer, InOrder
from ..core.scalars import EXCHANGED, NEGATED
from ..core.unique_names import Names
from .affine import canonical
from .bound_tightening import tighten_bounds
from .context import Context
from .effects import reads, writes
from .first_iterations import Accumulating, FirstIteration, without_lets
from .forwarding import forward_scalars
from .simplify import statement_field
from .statements import ONE, Aref, For, If, Incf, Let, Setf, Stmt


def normalise(op: Any) -> Any:
    """The program with every accumulation as `incf`. At -O0 it is returned unchanged."""
    if op.opt == 0:
        return op
    stores = [_name(n.ref) for clause in op.clauses for n in clause.walk() if isinstance(n, Setf | Incf)]
    outputs = {b.name: stores.count(b.name) for b in op.all(Buffer) if b.access == "out"}
    pass_ = _Pass(op.first(InOrder) is not None, op.opt < 2, outputs, frozenset(op.sizes), Names.of(op))
    clauses = []
    for clause in op.clauses:
        field = statement_field(clause)
        clauses.append(clause.replace(**{field: pass_.block(getattr(clause, field), Context.of(op))}) if field
                       else clause)
    return op.replace(clauses=tuple(clauses))


class _Pass:
    """The pass over one body."""

    def __init__(self, in_order: bool, plain: bool, stores: Mapping[str, int], sizes: frozenset[str], names: Names):
        self.in_order = in_order                  # float sums keep the written order
        self.plain = plain                        # -O1: every operation stays
        self.stores = stores                      # for each output, which is zero-filled, how many statements write it
        self.sizes = sizes
        self.names = names
        self.made: set[Expr] = set()              # conditions under which a loop runs

    def may_reorder(self, fn: str, dtype: str) -> bool:
        """True if accumulations by this operator may run in any order."""
        rounds = fn in ("add", "mul") and DTYPES[dtype].kind in ("float", "complex")
        return is_monoid(fn, dtype) and not (rounds and self.in_order)

    def block(self, stmts: Sequence[Stmt], context: Context) -> tuple[Stmt, ...]:
        """Normalise a list of statements."""
        done: list[Stmt] = []
        for stmt in forward_scalars(stmts):
            for new in self.statement(stmt, context, done):
                if isinstance(new, For) and (longer := self.from_the_first(done, new, context)) is not None:
                    done, new = longer
                done.append(new)
            context = context.after(stmt)
        return tuple(done)

    def statement(self, stmt: Stmt, context: Context, before: Sequence[Stmt]) -> tuple[Stmt, ...]:
        match stmt:
            case Setf(ref=Aref(index=()) as ref, value=value) if value is ref:
                return ()
            case For():
                loop = stmt.replace(body=self.block(stmt.body, context.inside(stmt)))
                return self.without_first(self.hoisted(tighten_bounds(loop, self.sizes, context)), context, before)
            case If(cond=cond, then=then, otherwise=otherwise):
                made = If(cond, self.block(then, context.given(cond)),
                          self.block(otherwise, context.given(cond, False)))
                return (self.extreme(made) or made,)
            case Setf(ref=Aref() as ref, value=value):
                return (self.accumulated(ref, value) or stmt,)
            case Incf(Aref() as ref, value, fn) if is_monoid(fn, ref.dtype) and not self.may_reorder(fn, ref.dtype):
                return (Setf(ref, Op(fn, (ref, value))),)
        return (stmt,)

    # one statement

    def accumulated(self, ref: Aref, value: Expr) -> Stmt | None:
        """`ref = value` as an accumulation, or None."""
        match value:
            case Op(fn="where", args=(cond, a, b)) if ref in (a, b) and not _reads_array_of(cond, ref):
                inner = self.accumulated(ref, b if a is ref else a)
                return None if inner is None else If(Op("not", (cond,)) if a is ref else cond, (inner,))
            case Op(fn="where", args=(cond, a, b)) if ref in (a, b):
                return self.extreme(If(cond, (Setf(ref, a),)) if b is ref else If(cond, (), (Setf(ref, b),)))
            case Op(fn=fn) if self.may_reorder(fn := "add" if fn == "sub" else fn, ref.dtype):
                parts = list(_operands(value, fn, False))
                rest = [part for part in parts if part != (ref, False)]
                regrouped = len(rest) > 1 and DTYPES[ref.dtype].kind in ("float", "complex")
                if (len(rest) == len(parts) - 1 and rest and not (regrouped and self.plain)
                    and not any(_reads_array_of(part, ref) for part, _ in rest)):
                    return Incf(ref, _combined(fn, rest), fn)
        return None

    def extreme(self, stmt: If) -> Stmt | None:
        """`if (e > t) t = e` as a maximum (or minimum), or None."""
        match stmt:
            case If(cond=cond, then=(Setf(ref=Aref() as ref, value=value),), otherwise=()):
                negated = False
            case If(cond=cond, then=(), otherwise=(Setf(ref=Aref() as ref, value=value),)):
                negated = True
            case _:
                return None
        while isinstance(cond, Op) and cond.fn == "not":
            (cond,), negated = cond.args, not negated
        if not isinstance(cond, Op) or cond.fn not in EXCHANGED or (negated and DTYPES[ref.dtype].kind == "float"):
            return None                           # not e <= t holds for NaN
        a, b = cond.args
        fn = cond.fn if b is ref else EXCHANGED[cond.fn]
        fn = NEGATED[fn] if negated else fn
        chosen = "max" if fn in ("gt", "ge") else "min"
        if {a, b} != {ref, value} or not is_monoid(chosen, ref.dtype) or _reads_array_of(value, ref):
            return None
        if DTYPES[ref.dtype].kind == "float":
            value = Op("where", (Op("eq", (value, value)), value, identity(chosen, ref.dtype)))
        return Incf(ref, value, chosen)

    # loops with a peeled first iteration

    def from_the_first(self, before: list[Stmt], loop: For, context: Context) -> tuple[list[Stmt], For] | None:
        """Extend an accumulating loop by the iteration before its first one, if the statements before it hold that
        iteration's value. Returns the statements before the loop, with identity elements, and the loop."""
        incfs = [s for s in loop.body if isinstance(s, Incf)]
        start = canonical(loop.lo - ONE)
        if loop.step is not ONE or not incfs or not all(isinstance(s, Incf | Let) for s in loop.body):
            return None
        lets = {Var(s.name, s.type): s.value for s in loop.body if isinstance(s, Let)}
        used = {n for s in loop.body for e in s.children for n in e.unique()}
        if not lets.keys() <= used:               # an extra iteration may read out of bounds
            return None
        rest = list(before)
        for incf in incfs:
            at = next((n for n in reversed(range(len(rest))) if isinstance(s := rest[n], Setf) and s.ref is incf.ref),
                      None)
            if at is None or not self.may_reorder(incf.fn, incf.ref.dtype) or not _is_alone(incf, loop):
                return None
            first = substitute(without_lets(incf.value, lets), {Var(loop.name, "i64"): start})
            setf = rest[at]
            assert isinstance(setf, Setf)
            between = rest[at + 1:]
            if (canonical(first) is not canonical(setf.value) or not _places(first) <= _places(setf.value)
                or any(_order_matters(s, setf) for s in between)):
                return None
            rest[at] = Setf(incf.ref, identity(incf.fn, incf.ref.dtype))
        longer = loop.replace(lo=start)
        return (rest, longer) if context.proves(Op("lt", (start, loop.hi))) else None

    def without_first(self, loop: Stmt, context: Context, before: Sequence[Stmt]) -> tuple[Stmt, ...]:
        """Move what the loop does in its first iteration alone before the loop."""
        if not isinstance(loop, For) or loop.step is not ONE:
            return (loop,)
        found = FirstIteration(loop, context, Accumulating(self.accumulated, self.may_reorder, self.names))
        if not found.begun:
            return (loop,)
        runs = Op("lt", (loop.lo, loop.hi))
        fills = all(self.stores.get(_name(s.ref)) == times and isinstance(s.value, Const) and s.value.value == 0
                    for s, times, _ in found.begun)                              # outputs are zero-filled
        alike = runs.variables <= self.sizes and not reads(runs)                 # loop-invariant
        shorter = loop.replace(body=found.body)
        if all(not around and _holds(before, s) for s, _, around in found.begun):
            return (shorter,)
        made = (*found.stores(), shorter)
        if context.proves(runs) or (fills and alike):
            return made
        self.made.add(runs)
        return (If(runs, made),)

    def hoisted(self, loop: For) -> Stmt:
        """Move a condition that this pass made out of a loop that consists of it and does not change it."""
        match loop.body:
            case (If(cond, then, ()),) if cond in self.made and loop.name not in cond.variables and not reads(cond):
                return If(cond, (loop.replace(body=then),))
        return loop


def _reads_array_of(expr: Expr, ref: Aref) -> bool:
    """True if the expression reads the element, or another of its array."""
    return ref.buffer in reads(expr)


def _order_matters(a: Stmt, b: Stmt) -> bool:
    """True if the order of the two statements matters."""
    return bool(writes(a) & (reads(b) | writes(b)) or writes(b) & reads(a))


def _places(expr: Expr) -> set[Expr]:
    """The elements that an expression reads, also those that cancel out."""
    return {canonical(n) for n in expr.unique() if isinstance(n, Aref)}


def _name(ref: Any) -> str:
    return str(ref.buffer)


def _operands(expr: Expr, fn: str, negated: bool) -> Iterator[tuple[Expr, bool]]:
    """The operands that an operator combines, flattened; for a sum, whether each is subtracted."""
    match expr:
        case Op(fn=same, args=(a, b)) if same == fn:
            yield from _operands(a, fn, negated)
            yield from _operands(b, fn, negated)
        case Op(fn="sub", args=(a, b)) if fn == "add":
            yield from _operands(a, fn, negated)
            yield from _operands(b, fn, not negated)
        case _:
            yield expr, negated


def _combined(fn: str, parts: Sequence[tuple[Expr, bool]]) -> Expr:
    (value, negated), *others = parts
    if negated:
        value = Op("neg", (value,))
    for other, subtracted in others:
        value = Op("sub" if subtracted else fn, (value, other))
    return value


def _holds(before: Sequence[Stmt], setf: Setf) -> bool:
    """True if the element still has this value behind the statements."""
    for stmt in reversed(before):
        if stmt is setf:
            return True
        if _order_matters(stmt, setf):
            return False
    return False


def _is_alone(incf: Incf, loop: For) -> bool:
    """True if the element is loop-invariant and its array occurs nowhere else in the loop."""
    own = {n.name for n in loop.walk() if isinstance(n, For | Let)}
    indices: tuple[Expr, ...] = incf.ref.index
    uses = [n for n in loop.walk() if isinstance(n, Aref) and n.buffer == _name(incf.ref)]
    moved = any((isinstance(n, Var) and n.name in own) or isinstance(n, Aref) for i in indices for n in i.unique())
    return len(uses) == 1 and uses[0] is incf.ref and not moved
