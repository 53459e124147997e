"""Float32 accumulators for 16-bit floats: `incf` and its variants accumulate in float32 and round once, after the loops
in which the element is invariant.

    (for p 0 K                             (local C_wide f32 () register)
      (incf (aref C i j) x))          ->   (setf (aref C_wide) (cast f32 (aref C i j)))
                                           (for p 0 K (incf (aref C_wide) x))
                                           (setf (aref C i j) (cast f16 (aref C_wide)))

So it is for `y = max(y, x)`, which rounds nothing. Axes that these loops traverse become axes of the accumulator. An
array that the loops use otherwise, and an element that may be out of bounds in an access that never runs, is rounded at
every step.
"""
from __future__ import annotations

from collections.abc import Mapping

from ..core.dtypes import computed, is_short
from ..core.expr import Cast, Expr, Op, Var
from ..core.node import Node, substitute
from ..core.program import At
from ..loop.context import Context
from ..loop.statements import ONE, ZERO, Aref, For, If, Incf, Let, Local, Setf, Stmt, dotimes
from ..loop.value_ranges import GREATEST_SIZE
from .scope import Names

Shapes = dict[str, tuple[Expr, ...]]


def accumulate_in_float32(stmts: tuple[Stmt, ...], shapes: Mapping[str, tuple[Expr, ...]], names: Names,
                 positions: dict[Node, At]) -> tuple[Stmt, ...]:
    """The statements with float32 accumulators for 16-bit floats. `shapes`: those of the arrays of the signature.
    `positions` gains the new elements."""
    stmts = tuple([_with_extremes(s) for s in stmts])
    if not any(isinstance(n, Incf) and is_short(n.ref.dtype) for s in stmts for n in s.walk()):
        return stmts
    sizes = {n.name for shape in shapes.values() for e in shape for n in e.unique() if isinstance(n, Var)}
    return _Accumulators(dict(shapes), names, positions).block(stmts, Context(dict.fromkeys(sizes, (0, GREATEST_SIZE))))


def _with_extremes(stmt: Stmt) -> Stmt:
    """With `y = max(y, x)` as an accumulation, which rounding does not change; and with min."""
    match stmt:
        case Setf(Aref() as ref, Cast(_, Op("max" | "min" as fn, (a, b)))) if is_short(ref.dtype):
            wide = Cast(computed(ref.dtype), ref)
            other = b if a is wide else a if b is wide else None
            if other is not None and other.dtype == wide.dtype and not any(
                    isinstance(n, Aref) and n.buffer == ref.buffer for n in other.unique()):
                return Incf(ref, other, fn)
    return stmt if isinstance(stmt, Expr) else stmt.map(lambda n: _with_extremes(n) if isinstance(n, Stmt) else n)


class _Accumulators:
    """The pass over one body."""

    def __init__(self, shapes: Shapes, names: Names, positions: dict[Node, At]):
        self.shapes, self.names, self.positions = shapes, names, positions

    def block(self, stmts: tuple[Stmt, ...], context: Context) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        for stmt in stmts:
            match stmt:
                case Local(name=name, shape=shape):
                    self.shapes[name] = shape
                    out.append(stmt)
                case For():
                    out += self.loop(stmt, context)
                case If(cond, then, otherwise):
                    out.append(If(cond, self.block(then, context), self.block(otherwise, context)))
                case Incf(ref, value, fn) if is_short(ref.dtype):
                    wide = computed(ref.dtype)
                    out.append(Setf(ref, Cast(ref.dtype, Op(fn, (Cast(wide, ref), value)))))
                case _:
                    out.append(stmt)
        return tuple(out)

    def loop(self, loop: For, context: Context) -> tuple[Stmt, ...]:
        """The loop between the loads of its accumulators and their stores."""
        before: list[Stmt] = []
        after: list[Stmt] = []
        certain = True
        for ref in self.accumulated(loop):
            safe = self.is_inside(ref, loop, context)
            if not safe and not (loop.step is ONE and any(isinstance(s, Incf) and s.ref is ref for s in loop.body)):
                continue
            certain = certain and safe
            first, last, loop = self.moved(ref, loop)
            before += first
            after += last
        whole = (*before, loop.replace(body=self.block(loop.body, context.inside(loop))), *after)
        return whole if certain else (If(Op("lt", (loop.lo, loop.hi)), whole),)

    def accumulated(self, loop: For) -> list[Aref]:
        """The loop-invariant elements of arrays that the loop uses for nothing but accumulation."""
        nodes = list(loop.walk())
        own = {n.name for n in nodes if isinstance(n, (Let, Local))} | {loop.name}
        written = {n.ref.buffer for n in nodes if isinstance(n, (Setf, Incf)) and isinstance(n.ref, Aref)}
        found: list[Aref] = []
        for ref in dict.fromkeys([n.ref for n in nodes
                                  if isinstance(n, Incf) and isinstance(n.ref, Aref) and is_short(n.ref.dtype)]):
            uses = [n for n in nodes if isinstance(n, Aref) and n.buffer == ref.buffer]
            only = (all(n is ref for n in uses)
                    and len(uses) == sum(1 for n in nodes if isinstance(n, Incf) and n.ref is ref))
            inside = [n for i in ref.index for n in i.unique()]
            fixed = not any((isinstance(n, Var) and n.name in own)
                            or (isinstance(n, Aref) and n.buffer in own | written) for n in inside)
            if only and fixed and ref.buffer not in own:
                found.append(ref)
        return found

    def moving(self, ref: Aref, loop: For) -> tuple[int, ...]:
        """The axes along which the loops inside `loop` move a reference."""
        inner = {n.name for n in loop.walk() if isinstance(n, For)}
        return tuple([axis for axis, i in enumerate(ref.index)
                      if any(isinstance(n, Var) and n.name in inner for n in i.unique())])

    def is_inside(self, ref: Aref, loop: For, context: Context) -> bool:
        """True if the loop-invariant axes are in bounds whatever the loop does."""
        moving = self.moving(ref, loop)
        return all(axis in moving or (context.proves(Op("le", (ZERO, i))) and context.proves(Op("lt", (i, extent))))
                   for axis, (i, extent) in enumerate(zip(ref.index, self.shapes.get(ref.buffer, ()), strict=True)))

    def moved(self, ref: Aref, loop: For) -> tuple[list[Stmt], list[Stmt], For]:
        """The statements before and after a loop, and the loop, with one array accumulated in float32."""
        moving, wide = self.moving(ref, loop), computed(ref.dtype)
        extents = tuple([self.shapes[ref.buffer][axis] for axis in moving])
        local = Local(self.names.fresh(f"{ref.buffer}_wide"), wide, extents, "scratch" if extents else "register")
        place = Aref(local.name, tuple([ref.index[axis] for axis in moving]), wide)
        if (at := self.positions.get(ref)) is not None:
            self.positions[place] = At.of(at.line, at.column, place)

        def copy(back: bool) -> Stmt:
            axes = {axis: Var(self.names.fresh(f"{ref.buffer}_{axis}"), "i64") for axis in moving}
            own = Aref(local.name, tuple(axes.values()), wide)
            outer = ref.replace(index=tuple([axes.get(axis, i) for axis, i in enumerate(ref.index)]))
            stmt: Stmt = Setf(outer, Cast(ref.dtype, own)) if back else Setf(own, Cast(wide, outer))
            for axis, extent in reversed(list(zip(moving, extents, strict=True))):
                stmt = dotimes(axes[axis].name, extent, stmt)
            return stmt
        (inside,) = substitute((loop,), {ref: place})
        return [local, copy(False)], [copy(True)], inside
