"""The work of a program as formulas over its sizes: floating-point operations, steps of an interpreter, bytes.

The formulas are for the nest as written (an op program, or a loop program without a schedule): padding and packing,
which a schedule adds, are not useful work. Of two branches the longer one counts. If a range depends on outer loops
and the sum has no closed form, its first value counts. A loop in blocks is the loop."""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise

from ..core.dtypes import DTYPES, is_complex, is_float, is_packed
from ..core.expr import Const, Expr, Op, Var, index
from ..core.node import Node, contains, substitute
from ..core.program import Program
from ..core.size_formula import evaluate
from ..errors import CatenError
from ..loop.affine import canonical
from ..loop.statements import Aref, For, If, Incf, Kernel, Let, Setf, Stmt, Vref, statements_in

# Floating-point operations of an operator; 1 for all others.
COUNTS: dict[str, int] = {"fma": 2, "where": 0, "conj": 0, "real": 0, "imag": 0, "complex": 0}
# (operator, element type) -> what it counts; "setf" is a store.
Cost = Callable[[str, str], int]


MOST_DEPTH = 64                # depth above which equal terms of a formula are combined
# The highest degree of a polynomial: nested loops, each with a range that depends on the next outer loop.
MOST = 6


def flops(program: Program) -> Expr:
    """Floating-point operations of a call: fused multiply-add 2, other operators 1, comparisons and casts 0."""
    return _work(program, _flops)


def steps(program: Program) -> Expr:
    """Operators of every type, and stores, of a call: the work of an interpreter."""
    return _work(program, lambda fn, dtype: 1)


def at(work: Expr, sizes: Mapping[str, int]) -> int:
    """The value of a formula at these sizes; 0 if it is unknown, because a range is read from an array."""
    try:
        return int(evaluate(work, sizes))
    except CatenError:
        return 0


def _flops(fn: str, dtype: str) -> int:
    return COUNTS.get(fn, 1) if fn != "setf" and (is_float(dtype) or is_complex(dtype)) else 0


def _work(program: Program, cost: Cost) -> Expr:
    bodies = [k.body for k in program.all(Kernel)] or [getattr(program, "body", ())]
    total: Expr = index(0)
    for body in bodies:
        total = plus(total, _statements(body, cost))
    return total


def bytes_moved(program: Program) -> Expr:
    """Compulsory memory traffic in bytes: every array read is loaded once, every array written is stored once."""
    total: Expr = index(0)
    for buffer in program.buffers.values():
        size: Expr = index(DTYPES[buffer.type].bytes * (2 if buffer.access == "inout" else 1))
        for extent in buffer.shape:
            size = times(size, extent)
        total = _short(plus(total, Op("floordiv", (size + 1, index(2))) if is_packed(buffer.type) else size))
    return total


def _statements(body: tuple[Stmt, ...], cost: Cost) -> Expr:
    total: Expr = index(0)
    for stmt in reversed(body):
        if isinstance(stmt, Let):                          # a name in a later range stands for its value
            total = substitute(total, {Var(stmt.name, stmt.type): stmt.value})
        total = _short(plus(_statement(stmt, cost), total))
    return total


def _short(total: Expr) -> Expr:
    """Combine equal terms of a deep formula, which may come from hundreds of statements. A short one keeps its
    spelling, which `_degree` knows."""
    return canonical(total) if total.depth > MOST_DEPTH else total


def _statement(stmt: Stmt, cost: Cost) -> Expr:
    of = partial(_expression, cost=cost, memo={})
    match stmt:
        case For(name=name, lo=lo, hi=hi, step=step, body=body):
            return plus(index(of(lo) + of(hi)), _sum(name, lo, hi, step, _statements(body, cost)))
        case If(cond=cond, then=then, otherwise=otherwise):
            branch, other = _statements(then, cost), _statements(otherwise, cost)
            return plus(index(of(cond)), branch if other == index(0) else other if branch == index(0)
                        else Op("max", (branch, other)))
        case Let(value=value):
            return index(of(value))
        case Setf(ref=ref, value=value) | Incf(ref=ref, value=value):
            own = cost(stmt.fn if isinstance(stmt, Incf) else "setf", ref.dtype) * ref.lanes
            inside = sum([of(i) for i in ref.index]) if isinstance(ref, Aref | Vref) else 0
            return index(of(value) + inside + own)
        case _:
            return index(0)


def _expression(expr: Expr, cost: Cost, memo: dict[Node, int]) -> int:
    """The cost of one evaluation of an expression; a part that occurs twice counts twice."""
    if expr not in memo:
        own = cost(expr.fn, expr.dtype) * expr.lanes if isinstance(expr, Op) else 0
        memo[expr] = own + sum([_expression(c, cost, memo) for c in expr.children if isinstance(c, Expr)])
    return memo[expr]


def _sum(name: str, lo: Expr, hi: Expr, step: Expr, each: Expr) -> Expr:
    """The sum of `each` over the values of a loop variable."""
    if each == index(0):
        return index(0)
    count = _trips(lo, hi, step)
    var = next((n for n in each.walk() if isinstance(n, Var) and n.name == name), None)
    if var is None:
        return times(count, each)
    first = substitute(each, {var: lo})
    degree = _degree(each, var)
    if degree is None:
        whole = _sum_over_blocks(var, count, each)
        return times(count, first) if whole is None else whole
    # Newton's forward differences: Σ_{k<n} f(k) = Σ_d C(n, d + 1)·Δᵈf(0) for a polynomial f
    values = [substitute(each, {var: plus(lo, times(index(k), step))}) for k in range(degree + 1)]
    total: Expr = index(0)
    for d in range(degree + 1):
        total = plus(total, times(_choose(count, d + 1), values[0]))
        values = [minus(b, a) for a, b in pairwise(values)]
    return total


def _sum_over_blocks(block: Expr, count: Expr, each: Expr) -> Expr | None:
    """The sum over blocks of a loop of `extent` iterations, `size` each but for the last: it is linear in the length
    of a block, and Σ min(extent - size · block, size) = extent."""
    lengths = [n for n in each.unique() if isinstance(n, Op) and n.fn == "min" and contains(n, block)]
    if len(lengths) != 1:
        return None
    length = lengths[0]
    for left, size in (length.args, length.args[::-1]):
        extent, of_length = canonical(left + size * block), Var("(length)", "i64")
        inner = substitute(each, {length: of_length})
        if (not contains(size, block) and not contains(extent, block) and not contains(inner, block)
                and canonical(count) is canonical((extent + size - 1) // size) and _degree(inner, of_length) == 1):
            without = substitute(inner, {of_length: index(0)})
            each_one = canonical(substitute(inner, {of_length: index(1)}) - without)
            return plus(times(count, without), times(each_one, extent))
    return None


def _choose(n: Expr, k: int) -> Expr:
    """The binomial coefficient C(n, k) = n (n - 1) … (n - k + 1) / k!, in the form that `_degree` recognises."""
    if k == 1:
        return n
    product: Expr = n
    for j in range(1, k):
        product = Op("mul", (product, Op("sub", (n, index(j)))))
    return Op("floordiv", (product, index(math.factorial(k))))


def _trips(lo: Expr, hi: Expr, step: Expr) -> Expr:
    """The trip count of a loop with lo ≤ hi (or a negative step with lo ≥ hi): ceil((hi - lo) / step)."""
    if isinstance(step, Const) and step.value == 1:
        return minus(hi, lo)
    if isinstance(step, Const) and step.value == -1:
        return minus(lo, hi)
    # ceil(a / b) = -floor(-a / b), for either sign of b
    return Op("neg", (Op("floordiv", (minus(lo, hi), step)),))


def _degree(expr: Expr, var: Expr) -> int | None:
    """The degree of a polynomial in `var`; None if it exceeds MOST or is no polynomial."""
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
    return {k.name: tuple([_trips(n.lo, n.hi, n.step) for n in statements_in(k.body) if isinstance(n, For)
                           and n.mark == "parallel"])
            for k in program.all(Kernel)}
