"""The loop level: loop nests over named multi-dimensional buffers. It is the body language with the additions of
schedules.

Names of loops, `let`s and locals are unique in a program, so statements are addressed by loop names.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from ..core.expr import Const, Expr, Op, index
from ..core.node import Node
from ..core.program import Program

MARKS = ("serial", "unroll", "parallel", "grid", "block")
SPACES = ("register", "stack", "scratch", "shared", "global")
STREAM, WRITE = "stream", "write"          # non-temporal setf; prefetch for writing
ADDRESSED = ("read", "write", "update")   # what a C function does with an array


class Stmt(Node):
    """A statement."""


class Ref(Expr):
    """A reference to memory that can be read and written."""

    if TYPE_CHECKING:                                  # fields of both subclasses, in different positions
        @property
        def buffer(self) -> str: ...
        @property
        def index(self) -> tuple[Expr, ...]: ...

    @property
    def lanes(self) -> int:
        return 1


class Aref(Ref, head="aref", hidden=("type",)):
    """`(aref A i p)`: one element of a buffer, with multi-dimensional indices until rendering. `(aref x)`: a rank-0
    local."""

    buffer: str
    index: tuple[Expr, ...]
    type: str = ""

    @property
    def dtype(self) -> str:
        return self.type


class Vref(Ref, head="vref", hidden=("type",)):
    """`(vref B 8 (p j))`: `count` consecutive elements along `axis` (default: the last) from an index. `mask`, a bool
    vector, selects lanes: masked-out lanes read as 0 and are not written."""

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


class Lanes(Expr, head="lanes"):
    """`(lanes a b c d)`: a vector of these scalars."""

    args: tuple[Expr, ...]

    @property
    def dtype(self) -> str:
        return self.args[0].dtype

    @property
    def lanes(self) -> int:
        return len(self.args)


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
    """`(fold add v)`: reduce all lanes by an operator, as a fixed tree: halves are combined until one lane remains."""

    fn: str
    arg: Expr

    @property
    def dtype(self) -> str:
        return self.arg.dtype


class Address(Expr, head="address", hidden=("type",)):
    """`(address A read)`: where an array begins, for a C function that reads it. `write`: the function sets elements
    and reads none before; `update`: it does both. Only an argument of `extern`."""

    buffer: str
    how: str
    type: str = ""

    @property
    def dtype(self) -> str:
        return self.type


class Prefix(Expr, head="prefix"):
    """`(prefix add v)`: the vector whose lane n combines the lanes 0 … n of v, in log₂ steps: each adds the lane 1, 2,
    4 … before (the scan of Hillis and Steele, 1986)."""

    fn: str
    arg: Expr

    @property
    def dtype(self) -> str:
        return self.arg.dtype

    @property
    def lanes(self) -> int:
        return self.arg.lanes


class For(Stmt, head="for"):
    """`(for i lo hi step mark stmt…)`: run the body for i = lo, lo+step, … while i < hi (i > hi if step is negative).

    Bounds are evaluated once. A step of 0 is not allowed. `mark`: `serial`, `unroll`, `parallel` (iterations in any
    order, concurrently), or on a device `grid` (each iteration a group of threads) or `block` (each iteration a thread
    of a group).
    """

    name: str
    lo: Expr
    hi: Expr
    step: Expr
    mark: str
    body: tuple[Stmt, ...]

    def declares(self) -> tuple[str, str]:
        return self.name, "i64"

    @property
    def has_iterations(self) -> Expr | None:
        """The condition that the loop has an iteration. None: only its step, which is no constant, would tell."""
        if not isinstance(self.step, Const):
            return None
        return Op("lt", (self.lo, self.hi) if self.step.value > 0 else (self.hi, self.lo))


class If(Stmt, head="if"):
    """`(if cond (stmt…) (stmt…))`: one list or the other."""

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
    """`(let x i64 e)`: a name for a value, visible to the statements after it in the list."""

    name: str
    type: str
    value: Expr

    def declares(self) -> tuple[str, str]:
        return self.name, self.type


class Setf(Stmt, head="setf"):
    """`(setf ref x)`: ref = x. `(setf ref x stream)`: a non-temporal (streaming) vector store where the machine has
    one; later reads see the same values."""

    ref: Ref
    value: Expr
    how: str = ""


class Incf(Stmt, head="incf"):
    """`(incf ref x)`: accumulate, ref = ref + x, or with another operator, `(incf ref x max)`: ref = max(ref, x).
    Accumulations into one element commute, so their loops may be reordered."""

    ref: Ref
    value: Expr
    fn: str = "add"


class Transpose(Stmt, head="transpose"):
    """`(transpose (vref T 8 (p i)) 0 (vref A 16 (i p)) 0)`: 8 rows of A, each of 16 consecutive elements, become 16
    rows of T of 8: T[p + b, i + a] = A[i + a, p + b]. Each row axis (0 here) counts the vectors. The arrays differ, and
    both are contiguous along the axes of their vectors."""

    ref: Vref
    axis: int
    value: Vref
    value_axis: int


class Local(Stmt, head="local"):
    """`(local T f32 (6 16) register)`: a dense uninitialised array (a scalar if the shape is empty), visible to the
    statements after it in the list. `space`: `register` or `stack` (constant shape), `scratch` (the call's scratch
    block), `shared` (constant shape, one per thread group), `global` (between kernels)."""

    name: str
    type: str
    shape: tuple[Expr, ...]
    space: str

    def declares(self) -> tuple[str, str]:
        return self.name, self.type


class Prefetch(Stmt, head="prefetch"):
    """`(prefetch ref)`: prefetch the cache line of an element (of a vector: of its last element) for reading, with
    `(prefetch ref write)` for writing. It has no effect on values, and the element need not exist."""

    ref: Ref
    how: str = ""


class ExternCall(Stmt, head="extern"):
    """`(extern cblas_saxpy (cast i32 N) a (address x read) 1:i32 …)`: call a C function without result, with numbers
    and arrays. It is in no loop, and the only statement of its kernel besides conditions."""

    fn: str
    args: tuple[Expr, ...]


class Barrier(Stmt, head="barrier"):
    """`(barrier)`: every thread of a group waits for the others; then it sees what they wrote."""


class Fail(Stmt, head="fail"):
    """`(fail 3)`: the call fails with check 3, and the rest of the kernel is skipped. Later statements assume the
    opposite."""

    row: int


class Assume(Stmt, head="assume"):
    """`(assume (address I read) 0 N)`: each element of an array of integers is at least 0 and below N, as a check
    before has found. Proofs rely on it until the array is written; in C it is nothing."""

    array: Address
    least: Expr
    end: Expr


class From(Node, head="from"):
    """`(from X 0 3 0)`: what a kernel has at X[i, j, k] is the element at [i, j + 3, k] of the array. `array`: the name
    in the text of the kernel."""

    array: str
    index: tuple[Expr, ...]


class Kernel(Node, head="kernel", named="starts"):
    """`(kernel name stmt…)`: a unit of work over the program's parameters. `(starts (from X 0 3 0))`: the arrays that
    do not begin at their first element in its first run."""

    name: str
    body: tuple[Stmt, ...]
    starts: tuple[From, ...] = ()


class Repeat(Node, head="repeat"):
    """`(repeat gemm (W_0 W_1) (X v3))`: run a kernel before again, on W_1 instead of W_0, and on v3 instead of X.
    `(repeat gemm (from X 0 4 0))`: on X from another element on."""

    kernel: str
    arrays: tuple[tuple[str, str], ...]
    starts: tuple[From, ...] = ()

    def to_form(self) -> tuple[Any, ...]:
        return ("repeat", self.kernel, *self.arrays, *self.starts)

    @classmethod
    def of_form(cls, form: Any, parse: Any) -> Repeat:
        _, kernel, *pairs = form
        arrays = [(str(pair[0]), str(pair[1])) for pair in pairs if len(pair) == 2]
        return cls(str(kernel), tuple(arrays), tuple([parse(pair) for pair in pairs if len(pair) != 2]))


class Run(NamedTuple):
    """A run of a kernel: the arrays that replace those in its text, and where arrays begin, by their names there."""

    kernel: Kernel
    arrays: dict[str, str]
    starts: dict[str, tuple[Expr, ...]]


class LoopProgram(Program, head="loop"):
    """`(loop name clause…)`: parameters, facts, global locals, and kernels that run in order, some of them again."""

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        return self.all(Kernel)

    @property
    def runs(self) -> tuple[Run, ...]:
        """The kernels in the order in which a call runs them."""
        named = {k.name: k for k in self.kernels}
        return tuple([Run(c if isinstance(c, Kernel) else named[c.kernel],
                          dict(c.arrays) if isinstance(c, Repeat) else {}, {s.array: s.index for s in c.starts})
                      for c in self.clauses if isinstance(c, Kernel | Repeat)])


ZERO, ONE = index(0), index(1)


def statements_in(stmts: Iterable[Stmt]) -> Iterator[Stmt]:
    """These statements and those inside them, in text order."""
    stack = list(stmts)[::-1]
    while stack:
        stmt = stack.pop()
        yield stmt
        stack += [child for child in reversed(stmt.children) if isinstance(child, Stmt)]


def dotimes(name: str, extent: Expr, *body: Stmt) -> For:
    """A serial loop from 0 to extent."""
    return For(name, ZERO, extent, ONE, "serial", body)


def is_const(expr: Expr, value: int | None = None) -> TypeGuard[Const]:
    """True if the expression is a literal (of this value)."""
    return isinstance(expr, Const) and (value is None or expr.value == value)
