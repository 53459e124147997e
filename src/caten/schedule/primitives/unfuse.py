"""unfuse: split one loop into two nested loops, the inverse of `fuse`."""
from __future__ import annotations

from typing import Any

from ...core.expr import Const, Expr, Op, Var
from ...core.node import Node
from ...core.text import flat
from ...core.unique_names import Names
from ...loop.affine import Linear, canonical, constant, expression, linear
from ...loop.context import Context
from ...loop.divisibility import is_multiple
from ...loop.statements import ONE, ZERO, For, LoopProgram, is_const
from ..analysis.loop_queries import context_at, find, refusal, replaced
from ..analysis.step_conditions import extent
from ..normalize import normal, tidied
from ..step_results import Split


def unfuse(program: LoopProgram, loop: str, count: Any, outer: str = "", inner: str = "") -> tuple[LoopProgram, Split]:
    """Make loop i two nested loops, `io` and `ii`, or with the two NAMEs. The inner one has EXTENT iterations: a size,
    a number, or an expression of them, which must divide the number of iterations of i. Quotients and remainders by
    EXTENT, or by a multiple of it, are then simpler: most are one of the new loops. Loop i counts in steps of 1, from 0
    or another multiple of EXTENT, as the loop over the second of two joined arrays does.

        (unfuse i N)
        (for i 0 (* M N) 1 serial                     (for io 0 M 1 serial
          (setf (aref A i)                    ->        (for ii 0 N 1 serial
                (aref B (mod i N) (floordiv i N))))       (setf (aref A (+ (* N io) ii)) (aref B ii io))))
    """
    step = f"unfuse {loop} {flat(count)}"
    found, new = find(program, loop, step), Names.of(program)
    try:
        by = canonical(extent(program, found, count))
    except ValueError as problem:
        raise refusal("E510", step, str(problem)) from None
    names = (outer, inner) if outer else (found.name + "o", found.name + "i")
    one, two = [new.fresh(name) for name in names]
    if outer and names != (one, two):
        raise refusal("E510", step, f"the names {outer} and {inner} must differ and be new to the program")
    if not is_const(found.step, 1):
        raise refusal("E510", step, f"it does not count in steps of 1, but in steps of {found.step}")
    context = context_at(program, found)
    length = context.linear(by)
    first, last = [_tiles(context, Context.of(program), bound, by) for bound in (found.lo, found.hi)]
    if first is None:
        raise refusal("E510", step, f"{flat(count)} is not known to divide its first iteration, {found.lo}")
    if last is None:
        raise refusal("E510", step, f"{flat(count)} is not known to divide its number of iterations, {found.hi}",
                      "split it: the last tile is then shorter")
    if not any(context.is_nonnegative(each) for each in (last - first, length)):  # (-2) · (-3) iterations would be none
        raise refusal("E510", step, f"{flat(count)} may be negative")
    mark = "parallel" if found.mark == "parallel" else "serial"
    loops = For(one, normal(expression(first)), normal(expression(last)), ONE, mark, (
        For(two, ZERO, by, ONE, "serial", ()),))
    inside = _Parts(found.name, Var(one, "i64"), Var(two, "i64"), by, context)
    body = tuple([inside.of(stmt) for stmt in found.body])
    made = tidied((loops.replace(body=(loops.body[0].replace(body=body),)),))
    return replaced(program, found, *made), Split(one, two)


def _tiles(context: Context, sizes: Context, bound: Expr, by: Expr) -> Linear | None:
    """How many times a length goes into a bound; None unless it is known to divide it."""
    exact = context.linear(bound).quotient(context.linear(by))
    if exact is None and isinstance(by, Const) and by.value > 0 and is_multiple(context, sizes, bound, by.value):
        return linear(normal(bound // by.value))
    return exact


class _Parts:
    """The old variable as row · length + column, and its quotients and remainders by multiples of the length."""

    def __init__(self, name: str, row: Var, column: Var, length: Expr, context: Context) -> None:
        self.context, self.length, self.column = context, linear(length), linear(column)
        self.memo: dict[Node, Any] = {Var(name, "i64"): canonical(row * length + column)}

    def of(self, node: Node) -> Any:
        """The node in the new loops."""
        if node not in self.memo:
            out = node.map(self.of)
            match out:
                case Op(fn="floordiv" | "mod", args=(Expr(dtype="i64", lanes=1) as value, by)):
                    out = self._divided(out, linear(value), linear(by))
            self.memo[node] = out
        return self.memo[node]

    def _divided(self, out: Op, value: Linear, by: Linear) -> Expr:
        """(q · length + column) / (times · length) = q / times, also rounded down, since 0 <= column < length."""
        times, rows = by.quotient(self.length), (value - self.column).quotient(self.length)
        if times is None or rows is None or not self.context.is_nonnegative(times):
            return out
        whole, parts = times == constant(1), expression(times)
        quotient = expression(rows)
        if out.fn == "floordiv":
            return quotient if whole else quotient // parts
        rest = linear(expression(self.column)) if whole else self.length.times(linear(quotient % parts)) + self.column
        return expression(rest)
