"""Guards (conditions around stores): sinking them to the leaves of a nest, finding them, and removing them."""
from __future__ import annotations

from functools import reduce

from ...core.dtypes import is_complex, is_float
from ...core.expr import Expr, Op, Var, number
from ...core.node import substitute
from ...loop.accesses import conjuncts, stride_in
from ...loop.affine import canonical
from ...loop.context import Context, ends_in_failure
from ...loop.statements import Aref, For, If, Incf, Let, Local, Ref, Setf, Stmt, Vref
from .access_bounds import is_shown_inside
from .loop_queries import mentions, reads_memory


def below(index: Expr, bound: Expr, context: Context) -> tuple[Expr, ...]:
    """The conditions for index < bound that are not proven; (min a b) gives one for each operand."""
    match bound:
        case Op(fn="min", args=(a, b)):
            return (*below(index, a, context), *below(index, b, context))
    room = context.linear(bound) - context.linear(index)
    return () if context.interval(room)[0] > 0 else (Op("lt", (index, bound)),)


def guarded(stmts: tuple[Stmt, ...], conds: tuple[Expr, ...]) -> tuple[Stmt, ...]:
    """Put `conds` around every store. A list with declarations or checks, and a loop or condition that reads memory, is
    wrapped as a whole, so that nothing is read where the conditions fail."""
    if not conds or not stmts:
        return stmts
    if any(isinstance(s, Let | Local) or (isinstance(s, If) and ends_in_failure(s.then)) for s in stmts):
        return (wrapped(stmts, conds),)
    return tuple([_guarded(s, conds) for s in stmts])


def _guarded(stmt: Stmt, conds: tuple[Expr, ...]) -> Stmt:
    match stmt:
        case For() if not any(reads_memory(e) for e in (stmt.lo, stmt.hi, stmt.step)):
            return stmt.replace(body=guarded(stmt.body, conds))
        case If(otherwise=()) if not reads_memory(stmt.cond):
            return stmt.replace(then=guarded(stmt.then, conds))
    return wrapped((stmt,), conds)


def wrapped(stmts: tuple[Stmt, ...], conds: tuple[Expr, ...]) -> Stmt:
    """Wrap statements in one `if` per condition, the first one outermost."""
    assert conds
    for cond in reversed(conds):
        stmts = (If(cond, stmts),)
    return stmts[0]


def guards_of(stmts: tuple[Stmt, ...], ref: Ref) -> tuple[Expr, ...]:
    """The conditions under which `ref` is always used, outermost first."""
    first, *others = _guards(stmts, ref, ()) or [()]
    return tuple([cond for cond in first if all(cond in other for other in others)])


def _guards(stmts: tuple[Stmt, ...], ref: Ref, around: tuple[Expr, ...]) -> list[tuple[Expr, ...]]:
    """The conditions around each use."""
    found: list[tuple[Expr, ...]] = []
    for stmt in stmts:
        match stmt:
            case For(lo=lo, hi=hi, step=step, body=body):
                parts: tuple[Expr, ...] = (lo, hi, step)
                found += _guards(body, ref, around)
            case If(cond=cond, then=then, otherwise=otherwise):
                parts = (cond,)
                found += _guards(then, ref, (*around, cond)) + _guards(otherwise, ref, (*around, Op("not", (cond,))))
            case _:
                parts = tuple([c for c in stmt.children if isinstance(c, Expr)])
        found += [around for part in parts if any(n is ref for n in part.unique())]
    return found


def throughout(conds: tuple[Expr, ...], loops: list[For]) -> Expr | None:
    """The condition that `conds` hold in every iteration of nested loops: each is evaluated for its extreme iteration.
    None if that is unknown."""
    worst: list[Expr] = []
    for cond in conds:
        if not isinstance(cond, Op) or cond.fn not in ("lt", "le"):
            return None
        for loop in reversed(loops):
            stride = stride_in(cond.args[0] - cond.args[1], loop.name)
            if stride is None:
                return None
            if stride:
                cond = substitute(cond, {Var(loop.name, "i64"): canonical(loop.hi - 1) if stride > 0 else loop.lo})
        worst.append(cond)
    return reduce(lambda whole, cond: Op("and", (whole, cond)), worst)


def shortened(loops: list[For], conds: tuple[Expr, ...], body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Put `body` in nested loops that end where `conds` cease to hold. A condition that is no loop bound stays around
    the body, or around the loops if it mentions none of them."""
    ends: dict[str, Expr] = {loop.name: loop.hi for loop in loops}
    around: list[Expr] = []
    rest: list[Expr] = []
    for cond in conds:
        name = next((loop.name for loop in reversed(loops) if mentions(cond, (loop.name,))), "")
        end = end_of(cond, name) if name else None
        if end is not None:
            ends[name] = Op("min", (ends[name], end))
        else:
            (rest if name else around).append(cond)
    body = (wrapped(body, tuple(rest)),) if rest else body
    for loop in reversed(loops):
        body = (For(loop.name, loop.lo, ends[loop.name], loop.step, "serial", body),)
    return (wrapped(body, tuple(around)),) if around else body


def end_of(cond: Expr, name: str) -> Expr | None:
    """The iteration in which a condition ceases to hold: (< (+ (* 2 i) a) b) does at (b - a - 1) div 2 + 1. None if
    unknown."""
    match cond:
        case Op(fn="lt" | "le" as fn, args=(a, b)):
            stride = stride_in(a - b, name)
            if stride is not None and stride > 0:
                room = b - a + Var(name, "i64") * stride + (stride - (fn == "lt"))
                return canonical(room if stride == 1 else room // stride)
    return None


def without_guards(stmts: tuple[Stmt, ...], guards: set[Expr], tile: str, known: dict[str, tuple[Expr, ...]],
                   context: Context, folded: frozenset[str] = frozenset()) -> tuple[Stmt, ...]:
    """Remove guards that the loads and stores of a tile repeat, around statements that write only the tile and read in
    bounds. Tile elements beyond the edge then hold values that are never stored. If a sum of floats reads out of
    bounds without its guards, only these reads keep them: elements beyond the edge are 0, and no lane has to keep its
    sum. Not if the guards mention one of the loops `folded`, along which the elements are added up."""
    out: list[Stmt] = []
    for stmt in stmts:
        match stmt:
            case For(body=body):
                out.append(stmt.replace(body=without_guards(body, guards, tile, known, context.inside(stmt), folded)))
            case If(cond=cond, then=then, otherwise=()):
                then = without_guards(then, guards, tile, known, context, folded)
                if guards.issuperset(conjuncts(cond)):
                    free = [_without_guard(s, cond, tile, known, context, folded) for s in then]
                    out.extend([s for s in free if s is not None] if None not in free else [If(cond, then)])
                else:
                    out.append(If(cond, then))
            case _:
                out.append(stmt)
    return tuple(out)


def _without_guard(stmt: Stmt, cond: Expr, tile: str, known: dict[str, tuple[Expr, ...]], context: Context,
                   folded: frozenset[str]) -> Stmt | None:
    """A statement without the guard `cond`, which its reads keep if they have to; None if it needs the guard."""
    if not isinstance(stmt, Setf | Incf) or not isinstance(stmt.ref, Aref) or stmt.ref.buffer != tile:
        return None
    outside = [ref for ref in stmt.unique() if isinstance(ref, Aref | Vref)
               and not is_shown_inside(ref, known[ref.buffer], context)]
    if not outside:
        return stmt
    if not isinstance(stmt, Incf) or stmt.fn != "add" or not _is_product_of_elements(stmt.value):
        return None
    apart = [ref for ref in outside if ref.variables.isdisjoint(cond.variables)]       # the guard says nothing of them
    if apart or stmt.ref in outside or mentions(cond, folded):
        return None
    return stmt.replace(value=substitute(stmt.value, {
        ref: Op("where", (cond, ref, number(0, ref.dtype))) for ref in outside}))


def _is_product_of_elements(value: Expr) -> bool:
    """Is it a product of floats that are read, so that elements which are 0 do no harm?"""
    match value:
        case Op(fn="mul", args=args):
            return all(_is_product_of_elements(a) for a in args)
        case Aref(index=at):
            return is_float(value.dtype) and not is_complex(value.dtype) and not any(reads_memory(i) for i in at)
    return False
