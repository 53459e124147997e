"""The loop level: loop nests over named multi-dimensional buffers. It is the body language plus what scheduling adds to it.

Names of loops, `let`s and locals are unique in a program, so statements are addressed by loop names.
"""
from __future__ import annotations

from typing import Any

from ..core.expr import Const, Expr, index
from ..core.node import Node
from ..core.program import Program

MARKS = ("serial", "unroll", "parallel", "grid", "block")
SPACES = ("register", "stack", "scratch", "shared", "global")
STREAM, WRITE = "stream", "write"          # how a setf stores, and what a prefetch is for


class Stmt(Node):
    """A statement."""


class Ref(Expr):
    """A place: something that can be read and written."""

    @property
    def lanes(self) -> int:
        return 1


class Aref(Ref, head="aref", hidden=("type",)):
    """`(aref A i p)`: one element of a buffer; indices stay multi-dimensional until rendering. A rank-0 local is `(aref x)`."""

    buffer: str
    index: tuple[Expr, ...]
    type: str = ""

    @property
    def dtype(self) -> str:
        return self.type


class Vref(Ref, head="vref", hidden=("type",)):
    """`(vref B 8 (p j))`: `count` consecutive elements along `axis` (the last by default) starting at an index; `mask`, a bool vector,
    says which lanes are touched: the others read as 0 and are not written."""

    buffer: str
    count: int
    index: tuple[Expr, ...]
    axis: int = -1
    mask: Expr | None = None
    type: str = ""

    @property
    def dtype(self) -> str:
        return self.type

    @property
    def lanes(self) -> int:
        return self.count


class Splat(Expr, head="splat"):
    """`(splat 8 x)`: a vector whose lanes all equal the scalar x."""

    count: int
    arg: Expr

    @property
    def dtype(self) -> str:
        return self.arg.dtype

    @property
    def lanes(self) -> int:
        return self.count


class Ramp(Expr, head="ramp"):
    """`(ramp 8 a s)`: the vector a, a+s, a+2s, …"""

    count: int
    base: Expr
    step: Expr

    @property
    def dtype(self) -> str:
        return self.base.dtype

    @property
    def lanes(self) -> int:
        return self.count


class Shuffle(Expr, head="shuffle"):
    """`(shuffle v 3 2 1 0)`: lanes picked from a vector."""

    arg: Expr
    picks: tuple[int, ...]

    @property
    def dtype(self) -> str:
        return self.arg.dtype

    @property
    def lanes(self) -> int:
        return len(self.picks)


class Fold(Expr, head="fold"):
    """`(fold add v)`: all lanes combined by an operator, as a fixed tree: halves are combined until one lane is left."""

    fn: str
    arg: Expr

    @property
    def dtype(self) -> str:
        return self.arg.dtype


class For(Stmt, head="for"):
    """`(for i lo hi step mark stmt…)`: run the body for i = lo, lo+step, … while i < hi (i > hi where step is negative).

    Bounds are evaluated once. A step of 0 is not allowed. `mark`: `serial`, `unroll`, `parallel` (iterations in any order, at once),
    or on a device `grid` (one group of threads each) or `block` (one thread of a group each).
    """

    name: str
    lo: Expr
    hi: Expr
    step: Expr
    mark: str
    body: tuple[Stmt, ...]

    def declares(self) -> tuple[str, str]:
        return self.name, "i64"


class If(Stmt, head="if"):
    """`(if cond (stmt…) (stmt…))`: one or the other list."""

    cond: Expr
    then: tuple[Stmt, ...]
    otherwise: tuple[Stmt, ...] = ()

    def to_form(self) -> tuple[Any, ...]:
        return ("if", self.cond, self.then, *((self.otherwise,) if self.otherwise else ()))

    @classmethod
    def of_form(cls, form: Any, parse: Any) -> If:
        _, cond, then, *rest = form
        return cls(parse(cond), tuple(parse(s) for s in then), tuple(parse(s) for s in rest[0]) if rest else ())


class Let(Stmt, head="let"):
    """`(let x i64 e)`: a name for a value, for the statements after it in the same list."""

    name: str
    type: str
    value: Expr

    def declares(self) -> tuple[str, str]:
        return self.name, self.type


class Setf(Stmt, head="setf"):
    """`(setf place x)`: place = x. `(setf place x stream)`: a vector goes to memory past the caches, where the machine has such a store; what is
    read afterwards is the same."""

    ref: Ref
    value: Expr
    how: str = ""


class Incf(Stmt, head="incf"):
    """`(incf place x)`: place = place + x, or with another operator, `(incf place x max)`: place = max(place, x). Such statements
    commute with each other on one place, which is what lets their loops be reordered."""

    ref: Ref
    value: Expr
    fn: str = "add"


class Transpose(Stmt, head="transpose"):
    """`(transpose (vref T 8 (p i)) 0 (vref A 16 (i p)) 0)`: 8 rows of A, each of 16 neighbours, one after the other along axis 0, become 16 rows
    of T, each of 8 neighbours, along its axis 0: T[p + b, i + a] = A[i + a, p + b]. Both arrays are contiguous along the axes of their vectors,
    and differ."""

    ref: Vref
    axis: int
    value: Vref
    value_axis: int


class Local(Stmt, head="local"):
    """`(local T f32 (6 16) register)`: a dense array (a scalar where the shape is empty) for the statements after it in the same list,
    not initialised. `space`: `register` or `stack` (constant shape), `scratch` (the call's scratch block), `shared` (constant shape: one for the
    threads of a group), `global` (between kernels)."""

    name: str
    type: str
    shape: tuple[Expr, ...]
    space: str

    def declares(self) -> tuple[str, str]:
        return self.name, self.type


class Prefetch(Stmt, head="prefetch"):
    """`(prefetch place)`: ask for a place's cache line (of a vector, that of its last element), with `(prefetch place write)` in order to write it;
    changes nothing. The place need not exist."""

    ref: Ref
    how: str = ""


class Barrier(Stmt, head="barrier"):
    """`(barrier)`: every thread of a group waits for the others, and sees then what they wrote."""


class Fail(Stmt, head="fail"):
    """`(fail 3)`: the call fails with check 3; the rest of the kernel is skipped, so what follows in the list may assume it did not happen."""

    row: int


class Kernel(Node, head="kernel"):
    """`(kernel name stmt…)`: a unit of work over the program's parameters."""

    name: str
    body: tuple[Stmt, ...]


class LoopProgram(Program, head="loop"):
    """`(loop name clause…)`: parameters, facts, global locals, and kernels that run in order."""

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        return self.all(Kernel)


ZERO, ONE = index(0), index(1)


def dotimes(name: str, extent: Expr, *body: Stmt) -> For:
    """A serial loop from 0 to extent."""
    return For(name, ZERO, extent, ONE, "serial", body)


def is_const(expr: Expr, value: int | None = None) -> bool:
    """Is it a literal (of this value)?"""
    return isinstance(expr, Const) and (value is None or expr.value == value)
