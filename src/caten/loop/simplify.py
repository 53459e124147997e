"""Simpler programs of the same meaning: canonical indices, folded constants, and whatever a proof decides.

Integers are exact, in their own width; what a proof concludes holds only for arithmetic that does not wrap, and the context sees to that. Of floats
only identities are used that hold for every value, NaN, infinities and signed zeros included: x·1 = x, x/1 = x, x - (+0) = x, x + (-0) = x.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from math import copysign
from typing import Any, TypeVar

from ..core.dtypes import is_float, is_integer
from ..core.expr import FALSE, TRUE, Const, Expr, Op, Var
from ..core.node import Node, substitute
from ..core.program import Program
from .affine import Linear, canonical, expression, text_of, without
from .context import Context
from .effects import reads
from .fold import fold
from .statements import For, If, Incf, Ref, Stmt

P = TypeVar("P", bound=Program)

__all__ = ["canonical", "simplify", "simplify_program", "simplify_statements"]


def simplify(node: Any, context: Context | None = None) -> Any:
    """A simpler expression or statement of the same meaning where the context holds. A statement that does nothing gives `()`, one that
    is replaced by several gives a tuple."""
    known = context or Context()
    if isinstance(node, Stmt):
        done = simplify_statements((node,), known)
        return done[0] if len(done) == 1 else done
    return _expression(node, known)


def simplify_program(program: P) -> P:
    """Every kernel (or body) simplified under what holds at entry. What this made before is simple."""
    if "_is_simple" in program.__dict__:
        return program
    context = Context.of(program)
    clauses = []
    for clause in program.clauses:
        field = statement_field(clause)
        clauses.append(clause.replace(**{field: simplify_statements(getattr(clause, field), context)}) if field else clause)
    simple = program.replace(clauses=tuple(clauses))
    simple.__dict__["_is_simple"] = True
    return simple


def statement_field(clause: Node) -> str:
    """The field of a clause that holds its statements; empty where there is none."""
    return next((f for f in clause._fields if clause._types[f] == "tuple[Stmt, ...]" and not isinstance(clause, Stmt)), "")


def simplify_statements(stmts: tuple[Stmt, ...], context: Context) -> tuple[Stmt, ...]:
    """A simpler list of statements."""
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
            idle = fn in ("add", "or", "xor") and isinstance(new, Const) and new.value == 0 and (is_integer(new.dtype) or new.dtype == "bool")
            return () if idle else (Incf(_expression(ref, context), new, fn),)
        case _:
            return (stmt.map(lambda child: _expression(child, context) if isinstance(child, Expr) else child),)


def _loop(loop: For, context: Context) -> tuple[Stmt, ...]:
    lo, hi, step = _expression(loop.lo, context), _expression(loop.hi, context), _expression(loop.step, context)
    inside = context.inside(loop)
    if inside.unreachable or (isinstance(step, Const) and context.proves((hi <= lo) if step.value > 0 else (hi >= lo))):
        return ()
    if isinstance(step, Const) and context.proves((lo < hi) & (hi <= lo + step) if step.value > 0 else (lo > hi) & (hi >= lo + step)):
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
                return _expression(a if test.value else b, context)         # type: ignore[no-any-return]   # expressions stay expressions
            if test.lanes > 1:
                return Op("where", (test, _expression(a, context), _expression(b, context)))
            yes, no = _expression(a, context.given(test)), _expression(b, context.given(test, False))
            return yes if yes is no else Op("where", (test, yes, no))
        case Op("and" | "or", (a, b)) if expr.dtype == "bool" and expr.lanes == 1:
            left = _expression(a, context)
            right = _expression(b, context.given(left, expr.fn == "and"))
            return _logic(expr.fn, left, right)
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
        if is_float(inner.dtype):
            return _float(inner)
        if inner.dtype == "bool":
            return _bool(inner)
    return inner


def _position(index: Expr, context: Context) -> Expr:
    """An index. Where a condition alone says which iteration of a loop it is, the loop's name stays: that no two iterations touch the element is seen
    from the name, and would else have to be proven from the condition, which a vector has as a mask."""
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


def _logic(fn: str, a: Expr, b: Expr) -> Expr:
    unit, zero = (TRUE, FALSE) if fn == "and" else (FALSE, TRUE)
    if zero in (a, b):
        return zero
    return a if b is unit or a is b else b if a is unit else Op(fn, (a, b))


def _bool(expr: Op) -> Expr:
    match expr:
        case Op("not", (Op("not", (a,)),)):
            return a                                    # not not a = a
        case Op("not", (Op(fn, (a, b)),)) if fn in NEGATED and (is_integer(a.dtype) or fn in ("eq", "ne")):
            return Op(NEGATED[fn], (a, b))             # not a < b is a >= b; with NaN only = and /= are each other's negation
    return expr


NEGATED = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq"}


def _float(expr: Op) -> Expr:
    match expr:
        case Op("mul", (x, Const(value=one))) | Op("mul", (Const(value=one), x)) | Op("div", (x, Const(value=one))) if one == 1:
            return x                                    # x * 1 = x, x / 1 = x
        case Op("sub", (x, Const(value=float() as zero))) if zero == 0 and copysign(1, zero) > 0:
            return x                                    # x - (+0) = x
        case Op("add", (x, Const(value=float() as zero))) | Op("add", (Const(value=float() as zero), x)) if zero == 0 and copysign(1, zero) < 0:
            return x                                    # x + (-0) = x
        case Op("neg", (Op("neg", (x,)),)):
            return x                                    # -(-x) = x
        case Op("min" | "max", (x, y)) if x is y:
            return x                                    # max(x, x) = x
        case Op("pow", (x, Const(value=power))) if power in _POWERS:
            return _POWERS[power](x)
    return expr


# Powers that a few operators compute as well as `pow`: within an ULP, and the same of NaN, infinities and signed zeros.
_POWERS: dict[Any, Callable[[Any], Expr]] = {1: lambda x: x, 2: lambda x: x * x, 3: lambda x: x * x * x, -1: lambda x: Const(1.0, x.dtype) / x}


def _integer(expr: Op, context: Context) -> Expr:
    """An operator on integers whose operands are simple."""
    match expr:
        case Op("add" | "sub" | "mul" | "neg"):
            normal = canonical(expr)               # (a + b) · (a + b) of elements would be three products
            return normal if normal.written_out <= expr.written_out or (expr.dtype == "i64" and not reads(expr)) else expr
        case Op("lt" | "le" | "gt" | "ge" | "eq" | "ne"):
            return TRUE if context.proves(expr) else FALSE if context.refutes(expr) else expr
        case Op("not", (Op("not", (a,)),)):
            return a
        case Op("min" | "max" as fn, (a, b)):
            if a is b or context.proves((a <= b) if fn == "min" else (a >= b)):
                return a
            if context.proves((b <= a) if fn == "min" else (b >= a)):
                return b
            return _flat_extreme(fn, a, b)
        case Op("floordiv" | "mod", (a, b)):
            return _divided(expr, context.linear(a), context.linear(b), context)
    return expr


def _flat_extreme(fn: str, a: Expr, b: Expr) -> Expr:
    """min(min(a, b), a) = min(a, b)."""
    for whole, part in ((a, b), (b, a)):
        if isinstance(whole, Op) and whole.fn == fn and part in whole.args:
            return whole
    return Op(fn, tuple(sorted((a, b), key=text_of)))


def _divided(expr: Op, form: Linear, divisor: Linear, context: Context) -> Expr:
    """With e = d·w + r: ⌊e/d⌋ = w + ⌊r/d⌋ and e mod d = r mod d, where 0 ≤ r < d settles either."""
    if divisor.is_constant and divisor.constant > 0:
        d = divisor.constant
        whole = Linear({m: c // d for m, c in form.terms.items() if c % d == 0}, form.constant // d)
        rest = form.plus(whole, -d)
        lo, hi = context.interval(rest)
        if rest.terms and lo // d == hi // d:
            whole = whole.shifted(lo // d)
            rest = rest.shifted(-d * (lo // d))
    elif len(divisor.terms) == 1 and divisor == Linear({(m := next(iter(divisor.terms))): 1}) and context.is_nonnegative(divisor.shifted(-1)):
        whole = Linear({}, form.terms.get(m, 0))
        for n, c in form.terms.items():
            if len(n) > len(m) and all(n.count(a) >= m.count(a) for a in m):
                whole = whole + Linear({reduce(without, m, n): c})
        rest = form - whole.times(divisor)
    else:
        return expr
    is_quotient = expr.fn == "floordiv"
    room = divisor.shifted(-1) - rest
    if context.is_nonnegative(rest) and context.is_nonnegative(room):
        if not is_quotient and not whole.terms and not whole.constant:
            return expr.args[0]                         # as it is written: a remainder of what was loaded is seen to be small as a remainder alone
        return expression(whole if is_quotient else rest, expr.dtype)
    if not whole.terms and not whole.constant:
        return expr
    inner = Op(expr.fn, (expression(rest, expr.dtype), expr.args[1]))
    return canonical(Op("add", (expression(whole, expr.dtype), inner))) if is_quotient else inner
