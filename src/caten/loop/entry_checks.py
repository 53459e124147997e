"""Entry checks: every call is checked at entry for sizes and scalars in range, bindings, conditions, and arrays that
fit in memory.

Index arithmetic is proven from these checks, so wrap-around must not fool them: products are compared by division.
"""
from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import or_

from ..core.dtypes import DTYPES, is_integer
from ..core.expr import Const, Expr, Op, Var, index, number
from ..core.program import Bind, Buffer, Program, Require, Scalar, Size
from .affine import Linear, canonical, expression, linear, text_of
from .context import Context
from .statements import Aref, For, Incf, Let, Local, Setf, Stmt, Vref
from .value_ranges import GREATEST_BYTES, GREATEST_SIZE

Row = tuple[Expr, str]              # a condition, and the message if it fails
GREATEST_SCALAR = (1 << 31) - 1


def entry_rows(program: Program, reaching: set[str]) -> Iterator[Row]:
    """The checked conditions in order. Each may rely on those before it. `reaching`: the names on which an index or a
    loop depends."""
    bound = {b.name for b in program.all(Bind)}
    for size in program.all(Size):
        if size.name not in bound:
            var = Var(size.name, "i64")
            yield (index(0) <= var) & (var <= index(GREATEST_SIZE)), f"the size {size.name} is outside [0, 2^40]"
    for bind in program.all(Bind):
        yield Op("eq", (Var(bind.name, "i64"),
                        index(bind.value))), f"the size {bind.name} is not {bind.value}, for which this was compiled"
    for scalar in program.all(Scalar):
        if (scalar.name in reaching and is_integer(scalar.type) and DTYPES[scalar.type].bits >= 32
            and scalar.type != "i32"):
            var = Var(scalar.name, scalar.type)
            least = [number(-GREATEST_SCALAR - 1, scalar.type) <= var] if scalar.type == "i64" else []
            conds = [*least, var <= number(GREATEST_SCALAR, scalar.type)]
            yield (conds[0] if len(conds) == 1 else conds[0] & conds[1],
                   f"the argument {scalar.name}, which an index or a loop depends on, is outside [-2^31, 2^31)")
    context = Context({s.name: (0, GREATEST_SIZE) for s in program.all(Size)} | {b.name: (b.value, b.value)
                                                                                 for b in program.all(Bind)})
    for required in program.all(Require):
        for product in overflowing(context, required.cond):
            yield product, f"the condition {text_of(required.cond)} is not computable: a product is too large"
        yield required.cond, f"the condition {text_of(required.cond)} does not hold"
        context = context.given(required.cond)
    for buffer in program.all(Buffer):
        yield from array_rows(context, buffer)
        yield from stride_rows(buffer)
        context = context.holding_array(buffer.type, buffer.shape)


def array_rows(context: Context, buffer: Buffer) -> Iterator[Row]:
    """No extent is negative, and the byte size is at most 2^62."""
    factors: list[Expr] = []
    count = Linear({}, DTYPES[buffer.type].bytes)
    for extent in buffer.shape:
        form = linear(extent)
        for product in overflowing(context, extent):
            yield product, f"the array {buffer.name} is too large"
        if not context.is_nonnegative(form):
            yield index(0) <= extent, f"the array {buffer.name} has the negative extent {text_of(extent)}"
        count = count.times(form)
        factors.append(canonical(extent))
    if context.interval(count)[1] > GREATEST_BYTES and not context.is_nonnegative(Linear({}, GREATEST_BYTES) - count):
        yield at_most(factors, GREATEST_BYTES // DTYPES[buffer.type].bytes), f"the array {buffer.name} is too large"


def stride_rows(buffer: Buffer) -> Iterator[Row]:
    """The strides of a call keep all elements within 2^60 bytes of the first, and rows of a written array apart.
    Strides may be negative. Those of an empty array, and of an axis of extent 1, are not checked."""
    given = [(axis, s) for axis, s in enumerate(buffer.strides) if isinstance(s, Var)]
    furthest = (GREATEST_BYTES >> 2) // DTYPES[buffer.type].bytes // max(len(given), 1)
    for axis, stride in given:
        unused = reduce(or_, [e <= index(axis == n) for n, e in enumerate(buffer.shape)])
        most = index(furthest) // Op("max", (canonical(buffer.shape[axis] - index(1)), index(1)))
        yield (unused | ((Op("neg", (most,)) <= stride) & (stride <= most)),
               f"the stride {stride.name} of the array {buffer.name} is too large for axis {axis}")
        if buffer.access != "in":
            row = buffer.shape[buffer.order[-1]]
            yield (unused | (row <= stride) | (stride <= Op("neg", (row,))),
                   f"the stride {stride.name} of the array {buffer.name}, which is written, is smaller than a row: "
                   "elements would share memory")


def at_most(factors: list[Expr], limit: int) -> Expr:
    """The product of nonnegative factors is at most `limit`, by division. If one factor is 0, the others must fit."""
    varying = [f for f in factors if not isinstance(f, Const)]
    for f in factors:
        if isinstance(f, Const):
            limit //= max(f.value, 1)
    *others, last = varying or [index(1)]
    room: Expr = index(limit)
    for f in others:
        room = room // Op("max", (f, index(1)))
    return last <= room


def overflowing(context: Context, expr: Expr) -> list[Expr]:
    """Conditions under which no product in an expression over sizes overflows, without those known to hold."""
    found: dict[Expr, None] = {}
    for node in expr.unique():
        if isinstance(node, Op) and node.fn == "mul" and node.dtype == "i64":
            for m in linear(node).terms:
                form = Linear({m: 1})
                if (len(m) > 1 and context.interval(form)[1] > GREATEST_BYTES
                    and min(context.atom_range(a)[0] for a in m) >= 0):
                    cond = at_most([*m], GREATEST_BYTES >> 2)
                    if not context.proves(cond):
                        found[cond] = None
    return list(found)


def scalars_in_indices(stmts: tuple[Stmt, ...]) -> set[str]:
    """The names on which an index, a loop bound, a step or an extent depends, also through names and scalars. Values
    that only become elements or decide conditions do not count. Loaded indices are checked where they are used."""
    roots: list[Expr] = []
    sources: dict[str, list[Expr]] = {}                    # a name or a scalar local -> what it gets its values from

    def visit(stmt: Stmt) -> None:
        for node in stmt.children:
            if isinstance(node, Stmt):
                visit(node)
            else:
                roots.extend(i for e in node.unique() if isinstance(e, Aref | Vref) for i in e.index)
        match stmt:
            case For(_, lo, hi, step):
                roots.extend((lo, hi, step))
            case Local(_, _, shape):
                roots.extend(shape)
            case Let(name, _, value) | Setf(Aref(name, ()), value) | Incf(Aref(name, ()), value):
                sources.setdefault(name, []).append(value)

    for stmt in stmts:
        visit(stmt)
    found: set[str] = set()
    while roots:
        new = {n.name if isinstance(n, Var) else n.buffer
               for n in roots.pop().unique() if isinstance(n, Var) or (isinstance(n, Aref) and not n.index)}
        roots.extend(value for name in new - found for value in sources.get(name, ()))
        found |= new
    return found


def comparison(form: Linear) -> Expr:
    """form ≥ 0 as `smaller <= greater` without negative coefficients."""
    more = Linear({m: c for m, c in form.terms.items() if c > 0}, max(form.constant, 0))
    less = Linear({m: -c for m, c in form.terms.items() if c < 0}, max(-form.constant, 0))
    if less.constant == 1 and more.terms:
        return expression(less.shifted(-1)) < expression(more)
    return expression(less) <= expression(more)
