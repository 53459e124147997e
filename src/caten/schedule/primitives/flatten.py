"""flatten: view two neighbouring axes of an array as one."""
from __future__ import annotations

from functools import partial
from typing import Any

from ...core.expr import Expr, Op, Var
from ...core.node import Node, substitute
from ...core.program import Buffer
from ...loop.affine import canonical, linear
from ...loop.statements import Aref, For, From, Let, Local, LoopProgram, Repeat, Vref
from ..analysis.loop_queries import local_array, mentions, reads_memory, refusal
from ..step_results import NOTHING, Made

Array = Local | Buffer


def flatten(program: LoopProgram, array: str, axis: int | None = None) -> tuple[LoopProgram, Made]:
    """Make one axis of the last two axes of an array, or of axis COUNT (from 0) and the next one. No element moves. Use
    it after `fuse`: the array is then contiguous along the collapsed loop, so that loop can be vectorized.

        (fuse y x) (flatten T)
        (local T f32 (4 8) stack)                       (local T f32 (32) stack)
        (for y 0 4 1 serial                       ->    (for yx 0 32 1 serial
          (for x 0 8 1 serial                             (incf (aref T yx) a))
            (incf (aref T y x) a)))
    Arrays on which a kernel is repeated are flattened together. It also works on an argument that is dense with its
    axes in memory order: the kernels see one axis, and callers pass the array as before.
        (fuse i j) (flatten A)
        (buffer A f32 (M N) (0 1) inout)                (buffer A f32 (M N) (0 1) inout (seen (* M N)))
        (for i 0 M 1 serial                       ->    (for ij 0 (* M N) 1 serial
          (for j 0 N 1 serial                             (incf (aref A ij) a))
            (incf (aref A i j) a)))
    """
    step = f"flatten {array}" + ("" if axis is None else f" {axis}")
    for name in _like(program, array):
        program = _flattened(program, name, axis, step)
    return program, NOTHING


def _like(program: LoopProgram, array: str) -> list[str]:
    """The array, and those that take its place where a kernel is repeated, or whose place it takes."""
    found, todo = [array], [array]
    pairs = [pair for again in program.all(Repeat) for pair in again.arrays]
    while todo:
        name = todo.pop()
        new = [other for a, b in pairs if name in (a, b) for other in (a, b) if other not in found]
        found += dict.fromkeys(new)
        todo += dict.fromkeys(new)
    return found


def _flattened(program: LoopProgram, array: str, axis: int | None, step: str) -> LoopProgram:
    found = array_of(program, array, step)
    shape = found.axes if isinstance(found, Buffer) else found.shape
    at = len(shape) - 2 if axis is None else axis
    if not 0 <= at < len(shape) - 1:
        raise refusal("E533", step,
                      f"{found} has fewer than two axes" if len(shape) < 2 else f"{found} has no two axes from {at} on")
    joined = canonical(shape[at] * shape[at + 1])
    axes = (*shape[:at], joined, *shape[at + 2:])

    lets = {Var(n.name, n.type): n for n in program.unique() if isinstance(n, Let) and not reads_memory(n.value)}

    def place(ref: Any) -> Any:
        row, cell = [lets[i].value if i in lets else i for i in ref.index[at:at + 2]]
        joined = _as_it_was(row, cell, shape[at + 1]) or _joined(ref.index[at], ref.index[at + 1], shape[at + 1])
        return (*ref.index[:at], joined, *ref.index[at + 2:])

    flat = found.replace(seen=axes) if isinstance(found, Buffer) else found.replace(shape=axes)
    new: dict[Node, Node] = {found: flat}
    for ref in program.unique():
        match ref:
            case Aref(buffer=name) if name == array:
                new[ref] = ref.replace(index=place(ref))
            case From(array=name) if name == array:
                new[ref] = ref.replace(index=place(ref))
            case Vref(buffer=name, axis=along) if name == array:
                along %= len(shape)
                if along == at:
                    raise refusal("E533", step, f"{ref} is a vector along another axis than the last")
                new[ref] = ref.replace(index=place(ref), axis=-1 if along == len(shape) - 1 else along - (along > at))
    made: LoopProgram = substitute(program, new)
    named = [i for ref in new for i in getattr(ref, "index", ()) if i in lets]
    return _without(made, {lets[i].name for i in named if not mentions(made.kernels, (i.name,))})


def _without(program: LoopProgram, names: set[str]) -> LoopProgram:
    """The program without these `let`s of loops, which nothing reads."""
    new: dict[Node, Node] = {}
    for loop in program.unique() if names else ():
        if isinstance(loop, For):
            body = tuple([s for s in loop.body if not isinstance(s, Let) or s.name not in names])
            new |= {loop: loop.replace(body=body)} if len(body) < len(loop.body) else {}
    made: LoopProgram = substitute(program, new)
    return made


def array_of(program: LoopProgram, name: str, step: str) -> Array:
    """The local array of that name, or the caller's."""
    buffer = program.buffers.get(name)
    if buffer is None:
        return local_array(program, name, partial(refusal, "E533", step))
    if buffer.strides or buffer.axes_in_memory != tuple(range(len(buffer.axes))):
        raise refusal("E533", step, f"'{name}' is not dense in memory with its axes in order")
    return buffer


def _joined(row: Expr, cell: Expr, length: Expr) -> Expr:
    """row · length + column, simplified where they have the quotient and the remainder of x: (a + x / length) · length
    + x mod length = a · length + x."""
    return _as_it_was(row, cell, length) or canonical(row * length + cell)


def _as_it_was(row: Expr, cell: Expr, length: Expr) -> Expr | None:
    """Row · length + column without a quotient and a remainder; None where they have none."""
    match cell:
        case Op(fn="mod", args=(x, to)) if to is length:
            form, quotient = linear(row), x // length
            if form.terms.get((quotient,)) == 1:
                return canonical((row - quotient) * length + x)
    return None
