"""fuse: collapse two nested loops into one (loop fusion of two neighbouring loops is `merge`)."""
from __future__ import annotations

from ...core.expr import Expr, Op, Var, index
from ...core.unique_names import Names
from ...loop.affine import Linear, canonical
from ...loop.context import Context
from ...loop.dependence import obstacle_to_parallel
from ...loop.statements import ONE, ZERO, For, If, Let, Local, LoopProgram, Stmt, is_const
from ..analysis.loop_queries import context_at, find, mentions, reads_memory, refusal, replaced
from ..loop_names import with_value
from ..normalize import normal, tidied
from ..step_results import OneLoop

GREATEST_COUNT = 1 << 62              # of iterations of the fused loop


def fuse(program: LoopProgram, outer: str, inner: str, name: str = "") -> tuple[LoopProgram, OneLoop]:
    """Collapse a loop and the only loop inside it into one loop over all pairs of iterations. It is named after both,
    or gets the NAME. The old variables are the quotient and the remainder of the new one. The loop is parallel if one
    of the two was and both may be. If only the arrays in the body limit the product of the two extents, a check before
    the loop keeps it in range.

        (fuse i j)
        (for i 0 M 1 serial                         (for ij 0 (* M N) 1 serial
          (for j 0 N 1 serial                 ->      (setf (aref A (floordiv ij N) (mod ij N)) 0.0))
            (setf (aref A i j) 0.0)))
    With several statements in the body, `let` defines the old variables.
        (for i 0 M 1 serial                         (for ij 0 (* M N) 1 serial
          (for j 0 N 1 serial                         (let i i64 (floordiv ij N))
            (setf (aref A i j) 0.0)           ->      (let j i64 (mod ij N))
            (setf (aref B i j) 0.0)))                 (setf (aref A i j) 0.0)
                                                      (setf (aref B i j) 0.0))
    """
    step = f"fuse {outer} {inner}"
    one, two = find(program, outer, step), find(program, inner, step)
    _check(one, two, step)
    context = context_at(program, one)
    # if the outer loop does not run, the number of inner iterations does not matter
    extents = [_extent(one, context, by=two), _extent(two, context.inside(one))]
    count = context.linear(extents[0]).times(context.linear(extents[1]))
    fits = context.fits(count)
    if not fits and not _fits_inside(two.body, context.inside(one).inside(two), count):
        raise refusal("E522", step,
                      f"the number of iterations, {extents[0]} · {extents[1]}, is not known to be below 2^63",
                      "bound the sizes by a condition in the signature, or split one of the loops and fuse the parts")
    mark = _mark(program, one, two, step)
    names = Names.of(program)
    if name in names:
        raise refusal("E522", step, f"the name {name} must be new to the program")
    both = Var(name or names.fresh(outer + inner), "i64")
    values = {one: canonical(both // extents[1] + one.lo), two: canonical(both % extents[1] + two.lo)}
    body = two.body
    if len(body) == 1:
        for loop, value in values.items():
            body = with_value(body, loop, value)
    else:
        body = (*[Let(loop.name, "i64", value) for loop, value in values.items()], *body)
    fused: tuple[Stmt, ...] = (For(both.name, ZERO, normal(extents[0] * extents[1]), ONE, mark, body),)
    made = tidied(fused)
    if not fits:
        room = Op("le", (extents[0], index(GREATEST_COUNT) // Op("max", (extents[1], ONE))))
        made = (If(room, made),)
    return replaced(program, one, *made), OneLoop(both.name)


def _check(one: For, two: For, step: str) -> None:
    if one.body != (two,):
        inside = (f"'{one.name}' holds more than '{two.name}'" if two in one.body else
                  f"'{two.name}' is not directly inside '{one.name}'")
        raise refusal("E522", step, inside,
                      "reorder or fission first: both loops must follow each other without a statement between them")
    for loop in (one, two):
        if not is_const(loop.step, 1):
            raise refusal("E522", step, f"the step of '{loop.name}' is {loop.step}, not 1")
    if mentions((two.lo, two.hi), (one.name,)):
        raise refusal("E522", step, f"the range of '{two.name}' depends on '{one.name}'",
                      "split with the tail pad or cut, whose ranges do not")
    if reads_memory(two.lo) or reads_memory(two.hi):
        raise refusal("E522", step, f"the range of '{two.name}' reads memory")


def _fits_inside(stmts: tuple[Stmt, ...], context: Context, count: Linear) -> bool:
    """Is the number below 2^63 whenever these statements have an effect?"""
    for stmt in stmts:
        match stmt:
            case Let() | Local():
                pass
            case For(body=body):
                inside = context.inside(stmt)
                if not inside.fits(count) and not _fits_inside(body, inside, count):
                    return False
            case _:
                return False
        context = context.after(stmt)
    return True


def _extent(loop: For, context: Context, by: For | None = None) -> Expr:
    """The number of iterations of a loop. It may be negative if the extent of `by`, the other factor, is not: then the
    product is not positive, either."""
    extent = canonical(loop.hi - loop.lo)
    known = [extent] if by is None else [extent, by.hi - by.lo]
    return extent if any(context.is_nonnegative(context.linear(e)) for e in known) else Op("max", (extent, ZERO))


def _mark(program: LoopProgram, one: For, two: For, step: str) -> str:
    """Parallel where one of them is, and the other may be."""
    if "parallel" not in (one.mark, two.mark):
        return "serial"
    other = two if one.mark == "parallel" else one
    reason = obstacle_to_parallel(program, other.name)
    if reason is not None:
        raise refusal("E522", step, f"one of them is parallel, and the other may not be: {reason}")
    return "parallel"
