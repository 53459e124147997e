"""How much work a program is: floating-point operations and bytes, as formulas over its sizes.

Counted on the nest as written (an op program, or a loop program without a schedule), so that padding and packing, which
a schedule adds, are not taken for useful work. A branch counts as taken; where a range depends on outer loops in a way
that has no closed form, its first value counts."""
from __future__ import annotations

import math
from itertools import pairwise

from ..core.dtypes import DTYPES, is_complex, is_float, is_packed
from ..core.expr import Const, Expr, Op, Var, index
from ..core.node import Node, contains, substitute
from ..core.program import Program
from ..loop.affine import canonical
from ..loop.statements import Aref, For, If, Incf, Kernel, Let, Setf, Stmt, Vref

# Operations that one operator counts as; any other one on floats counts as one.
COUNTS: dict[str, int] = {"fma": 2, "where": 0, "conj": 0, "real": 0, "imag": 0}


MOST_DEPTH = 64                # of a formula, before equal terms are put together
# The degree of the greatest polynomial: loops of which each one's range depends on the one outside.
MOST = 6


def flops(program: Program) -> Expr:
    """Floating-point operations of a call: fused multiply-add 2, other operators 1, comparisons and casts 0."""
    bodies = [k.body for k in program.all(Kernel)] or [getattr(program, "body", ())]
    total: Expr = index(0)
    for body in bodies:
        total = plus(total, _statements(body))
    return total


def bytes_moved(program: Program) -> Expr:
    """Compulsory memory traffic in bytes: each array that is read, once, and each that is written, once."""
    total: Expr = index(0)
    for buffer in program.buffers.values():
        size: Expr = index(DTYPES[buffer.type].bytes * (2 if buffer.access == "inout" else 1))
        for extent in buffer.shape:
            size = times(size, extent)
        total = _short(plus(total, Op("floordiv", (size + 1, index(2))) if is_packed(buffer.type) else size))
    return total


def _statements(body: tuple[Stmt, ...]) -> Expr:
    total: Expr = index(0)
    for stmt in reversed(body):
        if isinstance(stmt, Let):                          # a name in a later range stands for its value
            total = substitute(total, {Var(stmt.name, stmt.type): stmt.value})
        total = _short(plus(_statement(stmt), total))
    return total


def _short(total: Expr) -> Expr:
    """As long as there are different terms, not statements, of which there may be hundreds. Polynomials in a loop's
    variable that are short stay as they are spelled, which `_degree` knows."""
    return canonical(total) if total.depth > MOST_DEPTH else total


def _statement(stmt: Stmt) -> Expr:
    match stmt:
        case For(name=name, lo=lo, hi=hi, step=step, body=body):
            return plus(index(_expression(lo) + _expression(hi)), _sum(name, lo, hi, step, _statements(body)))
        case If(cond=cond, then=then, otherwise=otherwise):
            branch, other = _statements(then), _statements(otherwise)
            return plus(index(_expression(cond)), branch if other == index(0) else other if branch == index(0)
                        else Op("max", (branch, other)))
        case Let(value=value):
            return index(_expression(value))
        case Setf(ref=ref, value=value):
            return index(_expression(value) + _inside(ref))
        case Incf(ref=ref, value=value, fn=fn):
            own = COUNTS.get(fn, 1) * ref.lanes if is_float(ref.dtype) or is_complex(ref.dtype) else 0
            return index(_expression(value) + _inside(ref) + own)
        case _:
            return index(0)


def _inside(ref: Expr) -> int:
    return sum([_expression(i) for i in ref.index]) if isinstance(ref, Aref | Vref) else 0


def _expression(expr: Expr, memo: dict[Node, int] | None = None) -> int:
    """Operations on floats in one evaluation of an expression; a part that occurs twice counts twice."""
    memo = {} if memo is None else memo
    if expr not in memo:
        own = 0
        if isinstance(expr, Op) and DTYPES[expr.dtype].kind in ("float", "complex"):
            own = COUNTS.get(expr.fn, 1) * expr.lanes
        memo[expr] = own + sum([_expression(c, memo) for c in expr.children if isinstance(c, Expr)])
    return memo[expr]


def _sum(name: str, lo: Expr, hi: Expr, step: Expr, each: Expr) -> Expr:
    """Σ each over the values of a loop variable."""
    if each == index(0):
        return index(0)
    count = _trips(lo, hi, step)
    var = next((n for n in each.walk() if isinstance(n, Var) and n.name == name), None)
    if var is None:
        return times(count, each)
    first = substitute(each, {var: lo})
    degree = _degree(each, var)
    if degree is None:
        return times(count, first)
    # Newton's forward differences: Σ_{k<n} f(k) = Σ_d C(n, d + 1)·Δᵈf(0) for a polynomial f
    values = [substitute(each, {var: plus(lo, times(index(k), step))}) for k in range(degree + 1)]
    total: Expr = index(0)
    for d in range(degree + 1):
        total = plus(total, times(_choose(count, d + 1), values[0]))
        values = [minus(b, a) for a, b in pairwise(values)]
    return total


def _choose(n: Expr, k: int) -> Expr:
    """The binomial coefficient C(n, k) = n (n - 1) … (n - k + 1) / k!, spelled so that `_degree` knows it again."""
    if k == 1:
        return n
    product: Expr = n
    for j in range(1, k):
        product = Op("mul", (product, Op("sub", (n, index(j)))))
    return Op("floordiv", (product, index(math.factorial(k))))


def _trips(lo: Expr, hi: Expr, step: Expr) -> Expr:
    """How often a loop runs, where it does not run backwards: ceil((hi - lo) / step)."""
    if isinstance(step, Const) and step.value == 1:
        return minus(hi, lo)
    if isinstance(step, Const) and step.value == -1:
        return minus(lo, hi)
    # ceil(a / b) = -floor(-a / b), for either sign of b
    return Op("neg", (Op("floordiv", (minus(lo, hi), step)),))


def _degree(expr: Expr, var: Expr) -> int | None:
    """The degree of a polynomial in `var`, at most MOST; None where it is none."""
    if expr is var:
        return 1
    if not contains(expr, var):
        return 0
    match expr:
        case Op(fn="add" | "sub", args=(a, b)):
            x, y = _degree(a, var), _degree(b, var)
            return None if x is None or y is None else max(x, y)
        case Op(fn="mul", args=(a, b)):
            x, y = _degree(a, var), _degree(b, var)
            return None if x is None or y is None or x + y > MOST else x + y
        case Op(fn="floordiv", args=(product, _)):          # a polynomial only as a binomial coefficient
            for k in range(2, MOST + 1):
                n: Expr = product
                for _ in range(k - 1):
                    n = n.args[0] if isinstance(n, Op) else n
                if expr is _choose(n, k):
                    x = _degree(n, var)
                    return None if x is None or x * k > MOST else x * k
    return None


def plus(a: Expr, b: Expr) -> Expr:
    """a + b, literals folded."""
    match a, b:
        case Const(value=x), Const(value=y):
            return index(x + y)
        case Const(value=0), _:
            return b
        case _, Const(value=0):
            return a
        case Op(fn="sub", args=(c, d)), _ if d is b:      # (c - b) + b = c
            return c
    return a + b


def minus(a: Expr, b: Expr) -> Expr:
    """a - b, literals folded."""
    match a, b:
        case Const(value=x), Const(value=y):
            return index(x - y)
        case _, Const(value=0):
            return a
        case Op(fn="add", args=(c, d)), _ if c is b:      # (b + d) - b = d
            return d
        case Op(fn="add", args=(c, d)), _ if d is b:      # (c + b) - b = c
            return c
        case _ if a is b:
            return index(0)
    return a - b


def times(a: Expr, b: Expr) -> Expr:
    """a * b, literals folded and in front."""
    match a, b:
        case Const(value=x), Const(value=y):
            return index(x * y)
        case (Const(value=0), _) | (_, Const(value=0)):
            return index(0)
        case Const(value=1), _:
            return b
        case _, Const(value=1):
            return a
        case _, Const():
            return times(b, a)
        case Const(value=x), Op(fn="mul", args=(Const(value=y), rest)):
            return times(index(x * y), rest)
        case _, Op(fn="mul", args=(Const() as c, rest)):
            return times(c, times(a, rest))
    return a * b


def parallel_extents(program: Program) -> dict[str, tuple[Expr, ...]]:
    """Kernel name -> the trip counts of its parallel loops, outermost first; empty for a serial kernel."""
    return {k.name: tuple([_trips(n.lo, n.hi, n.step) for s in k.body for n in s.walk() if isinstance(n, For)
                           and n.mark == "parallel"])
            for k in program.all(Kernel)}
