"""compute_at: compute a part of an array inside the loop that reads that part."""
from __future__ import annotations

from typing import Any

from ...core.expr import Const, Expr, Op, Var, index
from ...core.node import substitute
from ...loop.affine import canonical
from ...loop.effects import reads
from ...loop.statements import ZERO, Aref, For, If, Let, LoopProgram, Stmt, Vref, is_const
from ..analysis.access_bounds import MAX_STACK_BYTES, bytes_of
from ..analysis.footprints import Span, box, uses_in
from ..analysis.loop_queries import (
    context_at,
    enclosing,
    find,
    largest,
    loops_in,
    mentions,
    refusal,
    replaced,
    use_count,
)
from ..analysis.producers import Produced, produced, verified, with_list
from ..loop_names import with_value
from ..normalize import tidied
from ..step_results import NOTHING, Made


def compute_at(program: LoopProgram, array: str, at: str, space: str = "") -> tuple[LoopProgram, Made]:
    """Move the statements that compute a local array into the LOOP that reads it; each iteration then computes just the
    part that it reads. The array shrinks to that part: in a register for one element, on the stack if the size is
    constant and small, else in scratch memory. Elements that two iterations read are computed twice. Parallel loops
    among the moved ones become serial.

        (compute_at T j)
        (local T f32 ((+ N 1)) scratch)
        (for i 0 (+ N 1) 1 serial                            (for j 0 N 1 serial
          (setf (aref T i) (* x (aref A i))))                  (local T f32 (2) stack)
        (for j 0 N 1 serial                            ->      (for i j (+ j 2) 1 serial
          (setf (aref B j)                                       (setf (aref T (- i j)) (* x (aref A i))))
            (+ (aref T j) (aref T (+ j 1)))))                  (setf (aref B j) (+ (aref T 0) (aref T 1))))
    """
    step = f"compute_at {array} {at}"

    def refuse(reason: str, hint: str | None = None) -> Any:
        return refusal("E525", step, reason, hint)
    found, loop = produced(program, array, refuse), find(program, at, step)
    part = _Part(program, found, loop, _region(found, loop, refuse), space, refuse)
    rest = tuple([s for s in found.around if s is not found.local and s not in found.producers])
    after = replaced(with_list(program, found.around, rest), part.loop_in(rest),
                     loop.replace(body=(*part.computed(), *part.read())))
    return verified(after, refuse), NOTHING


def _region(found: Produced, loop: For, refuse: Any) -> list[Span]:
    """The first and last index along each axis that one iteration reads."""
    name = found.local.name
    uses = uses_in(loop.body, name)
    if not uses or loop not in loops_in(found.readers) or use_count(found.readers, name) > use_count(loop.body, name):
        raise refuse(f"it is not read inside '{loop.name}' alone", "name a loop around everything that reads it")
    if any(isinstance(n, Vref) and n.buffer == name
           for n in (*loop.unique(), *[n for s in found.producers for n in s.unique()])):
        raise refuse("it is used as vectors already", "compute_at before vectorize")
    try:
        region = box(uses)
    except ValueError as problem:
        raise refuse(str(problem)) from None
    inside = [n.name for stmt in loop.body for n in stmt.walk() if isinstance(n, For | Let)]
    for least, most in region:
        if mentions((least, most), inside) or any(reads(e) for e in (least, most)):
            raise refuse(f"what is read of it, from {least} to {most}, is only known inside of '{loop.name}'")
    return region


class _Part:
    """The part of an array that one iteration reads, and the statements that compute it."""

    def __init__(self, program: LoopProgram, found: Produced, loop: For, region: list[Span], space: str,
                 refuse: Any) -> None:
        self.found, self.loop, self.refuse = found, loop, refuse
        around = enclosing(program, loop)
        self.context = context_at(program, loop).inside(loop)
        self.base = [least for least, _ in region]
        self.extents = [self._extent(*side, [outer.name for outer in (*around, loop)]) for side in region]
        self.kept = [axis for axis, extent in enumerate(self.extents) if not is_const(extent, 1)]
        self.space = space or self._space()
        if self.space != "scratch" and not all(isinstance(n, Const) for n in self.extents):
            raise refuse(f"its part has no constant size, which {self.space} memory needs", "use scratch")

    def _extent(self, least: Expr, most: Expr, loops: list[str]) -> Expr:
        extent = canonical(most - least + 1)
        bound = largest(extent)
        if bound is not None:
            return index(max(bound, 0))
        if mentions(extent, loops):
            raise self.refuse(f"the part that is read, {extent} elements along an axis, "
                              "changes from iteration to iteration")
        return extent if self.context.is_nonnegative(self.context.linear(extent)) else Op("max", (extent, ZERO))

    def _space(self) -> str:
        if not self.kept:
            return "register"
        size = bytes_of(self.found.local.type, self.extents)
        return "stack" if size <= MAX_STACK_BYTES and all(isinstance(n, Const) for n in self.extents) else "scratch"

    def loop_in(self, stmts: tuple[Stmt, ...]) -> For:
        """The loop, which the other statements still hold."""
        return next(loop for loop in loops_in(stmts) if loop.name == self.loop.name)

    def computed(self) -> tuple[Stmt, ...]:
        """The array and the statements that set the part, each in the range of the part."""
        local = self.found.local.replace(shape=tuple([self.extents[axis] for axis in self.kept]), space=self.space)
        return (local, *tidied(self._moved(self._narrowed(self.found.producers, self._axes()))))

    def read(self) -> tuple[Stmt, ...]:
        return tidied(self._moved(self.loop.body))

    def _moved(self, stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """The statements with indices that count from the first element of the part."""
        def moved(place: Aref) -> Aref:
            return place.replace(index=tuple([canonical(place.index[axis] - self.base[axis]) for axis in self.kept]))
        return substitute(stmts, {place: moved(place) for _, place in uses_in(stmts, self.found.local.name)})

    def _axes(self) -> dict[str, int]:
        """Which axis each loop over the array runs along: the loops whose variables are the indices of what sets it."""
        axes: dict[str, int] = {}
        for inner, place in uses_in(self.found.producers, self.found.local.name):
            known = {loop.name: loop for loop in inner}
            for axis, at in enumerate(place.index):
                loop = known.get(at.name) if isinstance(at, Var) else None
                if loop is None or not is_const(loop.step, 1) or axes.setdefault(loop.name, axis) != axis:
                    raise self.refuse(
                        f"what sets it uses {place}, whose indices are not the loops around it one by one",
                        "inline it, or schedule the loops that set it first")
        return axes

    def _narrowed(self, stmts: tuple[Stmt, ...], axes: dict[str, int]) -> tuple[Stmt, ...]:
        """The statements with the loops over the array in the range of the part; of a loop that runs once, its body."""
        out: list[Stmt] = []
        for stmt in stmts:
            match stmt:
                case For(name=name, lo=lo, hi=hi, mark=mark, body=body):
                    body = self._narrowed(body, axes)
                    if name in axes:
                        first, extent = self.base[axes[name]], self.extents[axes[name]]
                        lo, hi = self._extreme("max", lo, first), self._extreme("min", hi, canonical(first + extent))
                    if name in axes and is_const(canonical(hi - lo), 1):
                        out += with_value(body, stmt, lo)
                    else:
                        out.append(stmt.replace(lo=lo, hi=hi, mark="serial" if mark == "parallel" else mark, body=body))
                case If(cond, then, otherwise):
                    out.append(If(cond, self._narrowed(then, axes), self._narrowed(otherwise, axes)))
                case _:
                    out.append(stmt)
        return tuple(out)

    def _extreme(self, fn: str, a: Expr, b: Expr) -> Expr:
        """The greater or the smaller of two, where it is not known which that is."""
        for one, other in ((a, b), (b, a)):
            if self.context.proves(Op("ge" if fn == "max" else "le", (one, other))):
                return one
        return Op(fn, (a, b))
