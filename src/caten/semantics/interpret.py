"""The interpreter: run a program statement by statement over numpy arrays, as the reference semantics of the loop
level.

A program is compiled to Python closures once per call. Undefined behaviour of kernels is an error here: an access out
of bounds raises, locals start as NaN or the greatest integer, and `order="reverse"` runs parallel loops, grids and
threads backwards.
"""
from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from ..core.dtypes import DTYPES
from ..core.numpy_types import numpy_dtype
from ..core.program import Buffer, Ensure, Program, Require, Scalar, Size
from ..errors import error
from ..loop.early_exit import leaving_condition
from ..loop.empty_calls import idle_sizes
from ..loop.gpu_verifier import has_barrier
from ..loop.renaming import renamed_arrays, shifted_arrays
from ..loop.statements import (
    Assume,
    Barrier,
    Fail,
    For,
    If,
    Incf,
    Let,
    Local,
    LoopProgram,
    Prefetch,
    Setf,
    Stmt,
    Transpose,
)
from ..mathematics import evaluate
from .closures import Action, Closures, poison, to_scalar
from .thread_groups import group


class WithBody(Protocol):
    """A program whose statements are its `body`: the op level, which this level does not import."""

    @property
    def body(self) -> tuple[Stmt, ...]: ...


class _Failed(Exception):
    """A `(fail n)` was reached."""

    def __init__(self, row: int):
        self.row = row


def run(program: Program, arguments: dict[str, Any], order: str = "forward", stored: set[Stmt] | None = None) -> int:
    """Run an op or loop program. `arguments`: an int per size, a number per scalar, an array per buffer, indexed
    logically (whatever its memory order) and updated in place. Returns 0 or the number of the check that failed.

    `order="reverse"` runs parallel iterations, and the threads of a group between barriers, from last to first.
    `stored` collects the stores and accumulations that were run. Raises CatenError E485 for an access out of bounds or
    a step of 0, E486 for arguments that disagree with the declarations; MemoryError for a local array that is too
    large.
    """
    code = _Code(order, stored)
    seen = _bind(program, arguments, code)
    with np.errstate(all="ignore"):
        for ensure in program.all(Ensure):
            if not code.value(ensure.cond)():
                return ensure.row
        for require in program.all(Require):
            if not code.value(require.cond)():
                raise error("E486", f"the condition {require.cond!r} does not hold for these arguments")
        if any(not arguments[n] for n in program.sizes) and any(not arguments[n]
                                                                for n in idle_sizes(program, statements(program))):
            return 0   # an empty call: nothing to allocate or loop over
        body = code.block((*program.all(Local), *statements(program)))
        try:
            body()
        except _Failed as failed:
            return failed.row
        finally:
            for array, other in seen:
                array[...] = other.reshape(array.shape)
    return 0


def statements(program: Program) -> tuple[Stmt, ...]:
    """The statements of a program: those of its kernels in order, or its body."""
    if isinstance(program, LoopProgram):
        return tuple([s for kernel, arrays, starts in program.runs
                      for s in renamed_arrays(shifted_arrays(kernel.body, starts), arrays)])
    with_body: Any = program
    checked: WithBody = with_body
    return checked.body


def _bind(program: Program, arguments: dict[str, Any], code: _Code) -> list[tuple[np.ndarray, np.ndarray]]:
    """Bind arguments to names. Returns the arrays that kernels see transposed, each with its copy."""
    seen = []
    for param in program.params:
        match param:
            case Size(name) | Scalar(name) | Buffer(name):
                if name not in arguments:
                    raise error("E486", f"the argument {name} is missing")
    for size in program.all(Size):
        code.set(size.name, int(arguments[size.name]))
    for scalar in program.all(Scalar):
        code.set(scalar.name, to_scalar(arguments[scalar.name], scalar.type))
    for buffer in program.all(Buffer):
        array = arguments[buffer.name]
        shape = tuple(code.value(extent)() for extent in buffer.shape)
        if not isinstance(array, np.ndarray) or array.dtype != numpy_dtype(buffer.type) or array.shape != shape:
            found = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
            expected = f"{DTYPES[buffer.type].numpy} {shape}"
            raise error("E486", f"the argument {buffer.name} must be an array of {expected}, not {found}")
        if buffer.seen:
            inside = array.transpose(buffer.order)
            seen.append((inside, inside.reshape([code.value(extent)() for extent in buffer.seen]).copy()))
        code.set(buffer.name, seen[-1][1] if buffer.seen else array)
    return seen


class _Code(Closures):
    """Compiles statements too."""

    def __init__(self, order: str, stored: set[Stmt] | None = None):
        super().__init__()
        self.order, self.stored = order, stored

    def block(self, stmts: tuple[Stmt, ...]) -> Action:
        actions = [self.action(s) for s in stmts]
        if len(actions) == 1:
            return actions[0]

        def run_all() -> None:
            for act in actions:
                act()
        return run_all

    def action(self, stmt: Stmt) -> Action:
        match stmt:
            case For():
                return self.loop(stmt)
            case If(cond, then, otherwise):
                test, yes, no = self.value(cond), self.block(then), self.block(otherwise)
                return lambda: yes() if test() else no()
            case Let(name, _, value):
                env, slot, compute = self.env, self.slot(name), self.value(value)

                def define() -> None:
                    env[slot] = compute()
                return define
            case Setf(ref, value):
                return self.noted(stmt, self.write(ref, self.value(value)))
            case Incf(ref, value, fn):
                return self.noted(stmt, self.combine(ref, value, fn))
            case Transpose():
                return self.transpose(stmt)
            case Local():
                return self.local(stmt)
            case Prefetch() | Barrier():
                return lambda: None
            case Assume():
                return self.assumption(stmt)
            case Fail(row):
                return self.fail(row)
        raise error("E485", f"the interpreter does not know ({stmt.head} …)")

    def noted(self, stmt: Stmt, act: Action) -> Action:
        stored = self.stored
        if stored is None:
            return act

        def noting() -> None:
            stored.add(stmt)
            act()
        return noting

    def loop(self, stmt: For) -> Action:
        backwards = stmt.mark in ("parallel", "grid", "block") and self.order == "reverse"
        if stmt.mark == "block" and has_barrier(stmt):
            return group(self, stmt, self.block, backwards)
        env, slot = self.env, self.slot(stmt.name)
        lo, hi, step, body = self.value(stmt.lo), self.value(stmt.hi), self.value(stmt.step), self.block(stmt.body)
        guard = leaving_condition(stmt)
        goes_on = None if guard is None else self.value(guard)

        def iterate() -> None:
            by = step()
            if by == 0:
                raise error("E485", f"the loop over {stmt.name} has a step of 0")
            span = range(lo(), hi(), by)
            for i in reversed(span) if backwards else span:
                env[slot] = i
                if goes_on is not None and not goes_on():
                    break
                body()
        return iterate

    def local(self, stmt: Local) -> Action:
        env, slot = self.env, self.slot(stmt.name)
        extents = [self.value(e) for e in stmt.shape]
        dtype, filler = evaluate.numpy_type(stmt.type), poison(stmt.type)

        def allocate() -> None:
            try:
                env[slot] = np.full(tuple([e() for e in extents]), filler, dtype)
            except ValueError as problem:                    # beyond the address space
                raise MemoryError(str(problem)) from None
        return allocate

    def assumption(self, stmt: Assume) -> Action:
        env, slot = self.env, self.slot(stmt.array.buffer)
        least, end = self.value(stmt.least), self.value(stmt.end)

        def look() -> None:
            elements = np.asarray(env[slot])
            if not np.all((least() <= elements) & (elements < end())):
                raise error("E485", f"an element of '{stmt.array.buffer}' is outside [{least()}, {end()})")
        return look

    @staticmethod
    def fail(row: int) -> Action:
        def stop() -> None:
            raise _Failed(row)
        return stop
