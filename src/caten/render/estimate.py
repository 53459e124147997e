"""A rough count of the operations in a loop, to decide at run time whether waking other threads pays."""
from __future__ import annotations

from ..core.expr import Cast, Const, Expr, Op, Var, index, number
from ..core.node import substitute
from ..core.scalars import OPERATORS
from ..loop.statements import For, If, Let, Ref, Stmt
from .flatten import folded, plus, times

THRESHOLD = 1 << 15       # operations below which a parallel loop stays on one thread: some ten microseconds, a few times what waking them costs
FUNCTION = 16             # operations that a function of the C library counts as
UNKNOWN = 16              # trips of a loop whose range is read from an array


def operations(stmts: tuple[Stmt, ...]) -> Expr:
    """Operations of a list of statements, as a formula over what is known outside; inner ranges count as at the start of the outer ones."""
    total: Expr = index(0)
    for stmt in reversed(stmts):
        match stmt:
            case Let(name=name, type=dtype, value=value):
                total = plus(substitute(total, {Var(name, dtype): value}), index(_size(value)))
            case For(name=name, lo=lo, body=body):
                inside = substitute(operations(body), {Var(name, "i64"): lo})
                total = plus(times(trips(stmt), inside), total)
            case If(cond=cond, then=then, otherwise=otherwise):
                total = plus(plus(operations(then), operations(otherwise)), plus(index(_size(cond)), total))
            case _:
                total = plus(index(1 + sum(_size(c) for c in stmt.children if isinstance(c, Expr))), total)
    return total


def trips(loop: For) -> Expr:
    """How often its body runs."""
    if not isinstance(loop.step, Const) or any(isinstance(n, Ref) for e in (loop.lo, loop.hi) for n in e.unique()):
        return index(UNKNOWN)
    extent = loop.hi if loop.lo is index(0) else loop.hi - loop.lo
    count = folded(extent if loop.step.value == 1 else extent // loop.step)
    assert isinstance(count, Expr)
    return count


def in_float64(expr: Expr) -> Expr:
    """The formula computed in float64, where it cannot wrap around."""
    match expr:
        case Const(value=value):
            return number(value, "f64")
        case Op(fn="floordiv", args=(x, y)):
            return Op("div", (in_float64(x), in_float64(y)))
        case Op(fn="add" | "sub" | "mul" | "max" | "min" as fn, args=(x, y)):
            return Op(fn, (in_float64(x), in_float64(y)))
    return Cast("f64", expr)


def _size(expr: Expr) -> int:
    own = 0
    if isinstance(expr, Op):
        own = FUNCTION if OPERATORS[expr.fn].libm and OPERATORS[expr.fn].ulp > 0.5 else 1
    elif isinstance(expr, Ref):
        own = 1
    return own + sum(_size(c) for c in expr.children if isinstance(c, Expr))
