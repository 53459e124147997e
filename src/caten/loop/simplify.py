"""Simplification: canonical indices, folded constants, and conditions that a proof decides.

Integers are exact in their own width. Proofs hold only for arithmetic that does not wrap; the context ensures that.
Float rules hold for every value, NaN, infinities and signed zeros included: x·1 = x, x/1 = x, x - (+0) = x, x + (-0) =
x.
"""
from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any, TypeVar, cast

from ..core.dtypes import is_complex, is_float, is_integer
from ..core.expr import FALSE, TRUE, Const, Expr, Op, Var
from ..core.identities import EXTREMA, FLOATS, LOGIC, NEGATIONS, PARTS
from ..core.node import Node, contains, idempotent_for, kept, substitute
from ..core.program import Program
from . import operation_count
from .affine import Linear, canonical, expression, key_of, of_atom, without
from .constant_folding import fold
from .context import Context
from .effects import reads, written
from .statements import For, If, Incf, Kernel, Ref, Repeat, Stmt

P = TypeVar("P", bound=Program)

__all__ = ["canonical", "simplify", "simplify_program", "simplify_statements"]


def simplify(node: Any, context: Context | None = None) -> Any:
    """A simpler expression or statement of the same meaning where the context holds. A statement without effect gives
    `()`; one that is replaced by several gives a tuple."""
    known = context or Context()
    if isinstance(node, Stmt):
        done = simplify_statements((node,), known)
        return done[0] if len(done) == 1 else done
    return _expression(node, known)


@idempotent_for(operation_count.current)
def simplify_program(program: P) -> P:
    """Simplify every kernel (or body) under the context at entry."""
    context = Context.of(program)
    clauses = []
    for clause in program.clauses:
        field = statement_field(clause)
        clauses.append(clause.replace(**{field: simplify_statements(getattr(clause, field), context)}) if field
                       else clause)
    used = {k.name: reads(k) | written(k.body) for k in clauses if isinstance(k, Kernel)}
    return program.replace(clauses=tuple([_over_used(c, used) if isinstance(c, Kernel | Repeat) else c
                                          for c in clauses]))


def _over_used(run: Kernel | Repeat, used: Mapping[str, frozenset[str]]) -> Kernel | Repeat:
    """A run of a kernel, without arrays that the kernel no longer uses."""
    own = used.get(run.kernel if isinstance(run, Repeat) else run.name, frozenset())
    starts = tuple([s for s in run.starts if s.array in own])
    if isinstance(run, Kernel):
        return run.replace(starts=starts)
    return run.replace(starts=starts, arrays=tuple([(old, new) for old, new in run.arrays if old in own]))


def statement_field(clause: Node) -> str:
    """The field of a clause that holds its statements; empty if there is none."""
    return next((f for f in clause._fields if clause._types[f] == "tuple[Stmt, ...]" and not isinstance(clause, Stmt)),
                "")


def simplify_statements(stmts: tuple[Stmt, ...], context: Context) -> tuple[Stmt, ...]:
    """Simplify a list of statements."""
    done: list[Stmt] = []
    for stmt in stmts:
        if context.unreachable:
            break
        new = _statement(stmt, context)
        done.extend(new)
        for part in new:
            context = context.after(part)
    return tuple(done)


def _statement(stmt: Stmt, context: Context) -> tuple[Stmt, ...]:
    match stmt:
        case For():
            return _loop(stmt, context)
        case If(cond, then, otherwise):
            test = _expression(cond, context)
            if isinstance(test, Const):
                return simplify_statements(then if test.value else otherwise, context)
            yes = simplify_statements(then, context.given(test))
            no = simplify_statements(otherwise, context.given(test, False))
            return () if not yes and not no else (If(test, yes, no),)
        case Incf(ref, value, fn):
            new = _expression(value, context)
            idle = (fn in ("add", "or", "xor") and isinstance(new, Const) and new.value == 0
                    and (is_integer(new.dtype) or new.dtype == "bool"))
            return () if idle else (Incf(_expression(ref, context), new, fn),)
        case _:
            return (stmt.map(lambda child: _expression(child, context) if isinstance(child, Expr) else child),)


def _loop(loop: For, context: Context) -> tuple[Stmt, ...]:
    lo, hi, step = _expression(loop.lo, context), _expression(loop.hi, context), _expression(loop.step, context)
    inside = context.inside(loop)
    if inside.unreachable or (isinstance(step, Const) and context.proves((hi <= lo) if step.value > 0 else (hi >= lo))):
        return ()
    if isinstance(step, Const) and context.proves((lo < hi) & (hi <= lo + step) if step.value > 0
                                                  else (lo > hi) & (hi >= lo + step)):
        body = substitute(loop.body, {Var(loop.name, "i64"): lo})
        return simplify_statements(body, context)
    body = simplify_statements(loop.body, inside)
    return (For(loop.name, lo, hi, step, loop.mark, body),) if body else ()


def _expression(expr: Any, context: Context) -> Any:
    key = ("simplify", expr)
    known = context.memo.get(key)
    if known is None:
        known = context.memo[key] = _simpler(expr, context)
    return known


def _simpler(expr: Expr, context: Context) -> Expr:
    match expr:
        case Const():
            return expr
        case Var():
            return _only_value(expr, context) or expr
        case Op("where", (cond, a, b)):
            test = _expression(cond, context)
            if isinstance(test, Const):
                chosen: Expr = _expression(a if test.value else b, context)
                return chosen
            if test.lanes > 1:
                return Op("where", (test, _expression(a, context), _expression(b, context)))
            yes, no = _chosen(a, context, test, True), _chosen(b, context, test, False)
            return yes if yes is no else Op("where", (test, yes, no))
        case Op("and" | "or", (a, b)) if expr.dtype == "bool" and expr.lanes == 1:
            left = _expression(a, context)
            # Both are computed: a condition around a read in the second one stays.
            right = _expression(b, context if reads(b) else context.given(left, expr.fn == "and"))
            return LOGIC.once(Op(expr.fn, (left, right)))
    part = _position if isinstance(expr, Ref) else _expression
    inner: Expr = expr.map(lambda child: part(child, context) if isinstance(child, Expr) else child)
    if expr.lanes > 1 or isinstance(inner, Ref):
        return inner
    folded = fold(inner)
    if folded is not inner:
        return folded
    if isinstance(inner, Op):
        if is_integer(inner.args[-1].dtype):
            return _integer(inner, context)
        if is_complex(inner.args[-1].dtype) and (parts := PARTS.once(inner)) is not inner:
            return cast(Expr, _expression(parts, context))
        if is_float(inner.dtype):
            return FLOATS.once(inner)
        if inner.dtype == "bool":
            return NEGATIONS.once(inner)
    return inner


def _chosen(expr: Expr, context: Context, test: Expr, holds: bool) -> Expr:
    """Simplify an operand of `where`. What holds where it is chosen does not help if the sum that comes of it may wrap
    elsewhere: with min(a + 1, N - 1) + N as a + 1 + N, nobody could show any more that an index is inside."""
    if not _tells(test) and not contains(expr, test):
        alike: Expr = _expression(expr, context)           # of a chain of n such choices once, and not 2ⁿ times
        return alike
    simple: Expr = _expression(expr, context.given(test, holds))
    if _may_wrap(simple, context):
        plain: Expr = _expression(expr, context)
        return simple if _may_wrap(plain, context) else plain
    return simple


@kept
def _tells(cond: Expr) -> bool:
    """Does a condition tell of integers, and not of floats or elements that are true alone?"""
    return any(isinstance(n, Op) and n.fn in ("lt", "le", "gt", "ge", "eq", "ne") and is_integer(n.args[0].dtype)
               for n in cond.unique())


def _may_wrap(expr: Expr, context: Context) -> bool:
    """Is it a sum or product of integers that is not shown to fit its type?"""
    return (isinstance(expr, Op) and expr.fn in ("add", "sub", "mul", "neg") and is_integer(expr.dtype)
            and expr.lanes == 1 and context.linear(expr) == of_atom(canonical(expr)))


def _position(index: Expr, context: Context) -> Expr:
    """Simplify an index. If only a condition fixes the iteration of a loop, the loop's name stays in the index: it
    shows directly that no two iterations touch the element."""
    simple: Expr = _expression(index, context)
    if simple is index or index.lanes > 1 or not is_integer(index.dtype):          # a mask
        return simple
    known = {n: _only_value(n, context) for n in index.unique() if isinstance(n, Var) and n.name not in context.bound}
    values = {n: value for n, value in known.items() if value is not None}
    alike: Expr = substitute(index, values)
    return canonical(index) if values and canonical(alike) is simple else simple


def _only_value(var: Var, context: Context) -> Const | None:
    lo, hi = context.ranges.get(var.name, (0, 1))
    return Const(lo, var.dtype) if lo == hi and is_integer(var.dtype) else None


def _integer(expr: Op, context: Context) -> Expr:
    """Simplify an integer operator with simple operands."""
    match expr:
        case Op("add" | "sub" | "mul" | "neg"):
            normal = canonical(expr)               # (a + b) · (a + b) of elements would be three products
            return (normal if normal.written_out <= expr.written_out or (expr.dtype == "i64" and not reads(expr))
                    else expr)
        case Op("lt" | "le" | "gt" | "ge" | "eq" | "ne"):
            return TRUE if context.proves(expr) else FALSE if context.refutes(expr) else expr
        case Op("not"):
            return NEGATIONS.once(expr)
        case Op("min" | "max" as fn, (a, b)):
            if context.proves((a <= b) if fn == "min" else (a >= b)):
                return a
            if context.proves((b <= a) if fn == "min" else (b >= a)):
                return b
            flat = EXTREMA.once(expr)
            return flat if flat is not expr else Op(fn, tuple(sorted((a, b), key=key_of)))
        case Op("floordiv" | "mod", (a, b)):
            return _divided(expr, context.linear(a), context.linear(b), context)
    return expr


def _divided(expr: Op, form: Linear, divisor: Linear, context: Context) -> Expr:
    """With e = d·w + r: ⌊e/d⌋ = w + ⌊r/d⌋ and e mod d = r mod d. 0 ≤ r < d decides either."""
    if divisor.is_constant and divisor.constant > 0:
        d = divisor.constant
        whole = Linear({m: c // d for m, c in form.terms.items() if c % d == 0}, form.constant // d)
        rest = form.plus(whole, -d)
        lo, hi = context.interval(rest)
        if rest.terms and lo // d == hi // d:
            whole = whole.shifted(lo // d)
            rest = rest.shifted(-d * (lo // d))
    elif (len(divisor.terms) == 1 and divisor == Linear({(m := next(iter(divisor.terms))): 1})
          and context.is_nonnegative(divisor.shifted(-1))):
        whole = Linear({}, form.terms.get(m, 0))
        for n, c in form.terms.items():
            if len(n) > len(m) and all(n.count(a) >= m.count(a) for a in m):
                whole = whole + Linear({reduce(without, m, n): c})
        rest = form - whole.times(divisor)
    else:
        return expr
    is_quotient = expr.fn == "floordiv"
    room = divisor.shifted(-1) - rest
    shows = context.is_nonnegative if whole.terms or whole.constant else context.shows_nonnegative
    if context.is_nonnegative(rest) and shows(room):
        if not is_quotient and not whole.terms and not whole.constant:
            return expr.args[0]                         # as written: the range of a loaded value's remainder shows
        return expression(whole if is_quotient else rest, expr.dtype)
    if not whole.terms and not whole.constant:
        return expr
    inner = Op(expr.fn, (expression(rest, expr.dtype), expr.args[1]))
    return canonical(Op("add", (expression(whole, expr.dtype), inner))) if is_quotient else inner
