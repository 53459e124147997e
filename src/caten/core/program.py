"""The program text of every level: `(LEVEL name clause…)`; a clause is a parameter, a fact, or level content.

Facts travel unchanged through all stages, so the text printed by any stage holds all that the later ones need.
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from ..errors import Place
from .expr import Const, Expr, Var
from .node import Node, kept_property
from .text import Text, flat, form_of

T = TypeVar("T", bound=Node)
FREE_MASKS_BYTES = 64           # vectors of so many bytes have masks in registers of their own, for all elements


class Param(Node):
    """A clause that declares something the caller gives, or a condition on it."""


class Size(Param, head="size"):
    """`(size M)`: an extent, passed as int64, in [0, 2^40]."""

    name: str

    def declares(self) -> tuple[str, str]:
        return self.name, "i64"


class Scalar(Param, head="scalar"):
    """`(scalar a f32)`: a number passed by value."""

    name: str
    type: str

    def declares(self) -> tuple[str, str]:
        return self.name, self.type


class Buffer(Param, head="buffer", named="seen"):
    """`(buffer A f32 (M K) (0 1) in)`: an array of `shape`, its axes from slowest to fastest in `order`, `in`, `out` or
    `inout`.

    It is dense in that order, unless `strides` gives the distance in elements along every axis (the fastest has 1).
    Kernels may see a dense array with other axes over the same elements: `(buffer A f32 (M K) (0 1) in (seen (* M
    K)))` has a single axis in kernels."""

    name: str
    type: str
    shape: tuple[Expr, ...]
    order: tuple[int, ...]
    access: str
    strides: tuple[Expr, ...] = ()
    seen: tuple[Expr, ...] = ()

    @property
    def axes(self) -> tuple[Expr, ...]:
        """The shape that kernels see."""
        return self.seen or self.shape

    @property
    def axes_in_memory(self) -> tuple[int, ...]:
        """The axes that kernels see from slowest to fastest."""
        return tuple(range(len(self.seen))) if self.seen else self.order

    @property
    def contiguous_axis(self) -> int | None:
        """The axis whose elements follow each other in memory: of a dense array the last that has several elements;
        None for a scalar."""
        order = self.axes_in_memory
        several = [axis for axis in order if self.strides or self.axes[axis] != Const(1, "i64")]
        return (several or order)[-1] if order else None

    def declares(self) -> tuple[str, str]:
        return self.name, self.type


class Require(Param, head="require"):
    """`(require cond)`: a condition over sizes that holds at every call; checked at entry, assumed everywhere else."""

    cond: Expr


class Fact(Node):
    """A clause that says something about the operator and is carried through all levels."""


class Doc(Fact, head="doc"):
    """`(doc "…")`: the documentation of the spec."""

    text: Text


class Source(Fact, head="source"):
    """`(source "samples/gemm.toml")`: the file that positions refer to, as it was named."""

    file: Text


class Signature(Fact, head="signature"):
    """`(signature "A{float}[M K]<0 1>()" …)`: the declarations as written: first the inputs, then the outputs that are
    no inputs."""

    tensors: tuple[Text, ...]


class Outputs(Fact, head="outputs"):
    """`(outputs C)`: the names of the outputs, in the order of the spec: that of returned values and of what a
    reference gives."""

    names: tuple[str, ...]


class AnyAxes(Fact, head="any-axes"):
    """`(any-axes axis0 axis1)`: the sizes of the axes that `~` stands for in an instance of a generic spec."""

    names: tuple[str, ...]


class Collapsed(Fact, head="collapsed"):
    """`(collapsed axis0)`: sizes that are each the product of the extents of adjacent axes; a caller of the kernel has
    any number of such axes in their places."""

    names: tuple[str, ...]


class Bind(Fact, head="bind"):
    """`(bind M 100)`: the size is known at compile time; the call must agree."""

    name: str
    value: int


class Opt(Fact, head="opt"):
    """`(opt 2)`: the optimisation level, 0 to 3."""

    level: int


class Unchecked(Fact, head="unchecked"):
    """`(unchecked)`: no run-time bounds checks (-fno-bounds-check)."""


class InOrder(Fact, head="in-order"):
    """`(in-order)`: sums and products of floats are accumulated in the order in which they are written
    (-fno-reassociate)."""


class Lines(Fact, head="lines"):
    """`(lines)`: the C text has #line directives that refer to the source (-g)."""


class Config(Node, head="config"):
    """`(config OMP 1)`: an option of the runtime, as the user gave it."""

    key: str
    value: Text


class Machine(Node, head="machine"):
    """`(machine x86_64_v3 32 16 (32768 524288) true)`: the machine as planners see it. It follows from -march, and
    does not depend on the load of the machine.

    `arch`: the architecture. `vector_bytes`: bytes of a vector register. `registers`: the number of vector registers.
    `cache_bytes`: bytes of each private cache of a core, from L1 on. `has_fma`: is there a fused multiply-add?
    `groups`, for devices with groups of threads: the number of threads in lockstep, the most threads of a group, and
    the bytes of its shared memory. `threads`: do several threads share parallel loops? Then more copies of a nest may
    pay. `fetches_ahead`: is the hardware prefetcher so good that prefetch instructions pay only in compute-bound
    loops?"""

    arch: str
    vector_bytes: int
    registers: int
    cache_bytes: tuple[int, ...]
    has_fma: bool = False
    groups: tuple[int, ...] = ()
    threads: bool = False
    fetches_ahead: bool = False

    @property
    def group_threads(self) -> int:
        """How many threads a group may have."""
        return self.groups[1]

    @property
    def shared_bytes(self) -> int:
        """How many bytes of memory the threads of a group may share."""
        return self.groups[2]


class Target(Fact, head="target"):
    """`(target clang (machine …) (config K "V")…)`: the runtime, the machine, and the options of the runtime."""

    runtime: Text
    machine: Machine
    config: tuple[Config, ...]


class At(Fact, head="at"):
    """`(at 8 17 "(aref A i p)")`: the first position of this access or statement in the source file. For a loop, the
    text is its variable; for an array that a statement over whole arrays sets, `(array T)`; for the name of the
    operator, `(op Gemm)`; for a test case, `(case "small")`. Since it is text, a pass that renames or removes the node
    does not change it."""

    line: int
    column: int
    what: Text

    @classmethod
    def of(cls, line: int, column: int, node: Node) -> At:
        """The position of a node."""
        return cls(line, column, flat(form_of(node)))

    @classmethod
    def of_array(cls, line: int, column: int, name: str) -> At:
        """The position of the statement over whole arrays that sets an array."""
        return cls(line, column, flat(("array", name)))


class Check(Fact, head="check"):
    """`(check 3 "…")`: the text of run-time failure number `row` (from 1)."""

    row: int
    text: Text


class Ensure(Fact, head="ensure"):
    """`(ensure 3 cond)`: the call fails with check `row` unless the condition over sizes and scalars holds; evaluated
    once, at entry, and assumed everywhere else."""

    row: int
    cond: Expr


class Reference(Fact, head="reference"):
    """`(reference python "lambda A, B: A @ B" 20 4)`: the spec's test code, its language, and where it starts."""

    lang: str
    code: Text
    line: int
    column: int


class Tolerance(Fact, head="tolerance"):
    """`(tolerance 100)`: the greatest error that passes the spec's tests, in units in the last place of the greatest
    value of an output."""

    ulps: int


class GradientBody(Fact, head="gradient-body"):
    """`(gradient-body "return grad_y * y" 20 8)`: the spec's body of its gradient, and where it starts."""

    code: Text
    line: int
    column: int


class GradientSteps(Fact, head="gradient-steps"):
    """`(gradient-steps "return grad_y * y" 20 8)`: the spec's second body of its gradient, without loops, and where it
    starts."""

    code: Text
    line: int
    column: int


class Attribute(Fact, head="attribute"):
    """`(attribute axis "-1")`: an attribute of the spec and its value, as JSON."""

    name: str
    value: Text


class Case(Fact, head="case"):
    """`(case "small" "random" "reference" (tag…) (set-size M 3)…)`: one test case of the spec: name, input, expected
    result, tags, sizes and scalars. `input` and `expect` are a word, a file, or JSON."""

    name: Text
    input: Text
    expect: Text
    tags: tuple[str, ...]
    sizes: tuple[Setting, ...]

    def spot(self, part: str = "case") -> str:
        """What an `At` calls this case, or its `input` or `expect`."""
        return flat((part, form_of(self.name, "Text")))


class Setting(Node, head="set-size"):
    """`(set-size M 3)`: the value of a size or scalar in a test case."""

    name: str
    value: str


class Taken(Fact, head="taken"):
    """`(taken io ii)`: names that another part of the program uses. This program is one part, and new names must be
    unique in the whole."""

    names: tuple[str, ...]


class Schedule(Fact, head="schedule"):
    """`(schedule (split i 6 pad) (reorder …) …)`: steps of the schedule language, in the order of their application.
    Each is a tuple of words."""

    steps: tuple[Any, ...]

    @property
    def children(self) -> tuple[Node, ...]:
        """None: words are no nodes, and after many steps there are many of them to look through."""
        return ()

    def to_form(self) -> tuple[Any, ...]:
        return ("schedule", *self.steps)

    @classmethod
    def of_form(cls, form: Any, parse: Any) -> Schedule:
        def plain(f: Any) -> Any:
            return str(f) if isinstance(f, str) else tuple(plain(p) for p in f)
        return cls(tuple(plain(f) for f in form[1:]))


class Fusion(Fact, head="fusion"):
    """`(fusion (keep S) (apart A B) …)`: the spec's requests to fusion, each a tuple of words."""

    requests: tuple[Any, ...]

    def to_form(self) -> tuple[Any, ...]:
        return ("fusion", *self.requests)

    @classmethod
    def of_form(cls, form: Any, parse: Any) -> Fusion:
        return cls(tuple([tuple([str(word) for word in request]) for request in form[1:]]))


class Variables(Fact, head="variables"):
    """`(variables S E)`: the variables of a body over whole arrays, if there are requests to fusion, which may name
    them."""

    names: tuple[str, ...]


class Program(Node):
    """Base of the three levels: a name and clauses. `Fact` clauses survive every stage."""

    name: str
    clauses: tuple[Node, ...]

    def all(self, kind: type[T]) -> tuple[T, ...]:
        """The clauses of one class, in order. Stored: every schedule step asks, and a program may have hundreds."""
        known = self._by_class
        if kind not in known:
            own = {each for each in self._classes if issubclass(each, kind)}
            known[kind] = tuple([c for c in self.clauses if c.__class__ in own]) if own else ()
        return known[kind]

    @kept_property
    def _by_class(self) -> dict[type, tuple[Any, ...]]:
        """What `all` found before."""
        return {}

    @kept_property
    def _classes(self) -> frozenset[type]:
        """Those of its clauses."""
        return frozenset([c.__class__ for c in self.clauses])

    def first(self, kind: type[T]) -> T | None:
        """The first clause of a class, or None."""
        return next(iter(self.all(kind)), None)

    def adding(self, *clauses: Node) -> Self:
        """With more clauses at the end."""
        return self.replace(clauses=(*self.clauses, *clauses))

    def without(self, *kinds: type[Node]) -> Self:
        """Without the clauses of these classes."""
        return self.replace(clauses=tuple([c for c in self.clauses if not isinstance(c, kinds)]))

    def place(self) -> Place | None:
        """Where in the source file the operator is named."""
        return self.place_of(flat(("op", self.name)))

    def place_of_array(self, name: str) -> Place | None:
        """Where in the source file the statement over whole arrays is that sets an array."""
        return self.place_of(flat(("array", name)))

    def place_of(self, what: str) -> Place | None:
        """Where in the source file this was written, if that is known; `what` as the `At` calls it."""
        at, source = next((a for a in self.all(At) if a.what == what), None), self.first(Source)
        return Place(source.file, at.line, at.column) if at is not None and source is not None else None

    @property
    def params(self) -> tuple[Param, ...]:
        return self.all(Param)

    @property
    def facts(self) -> tuple[Fact, ...]:
        return self.all(Fact)

    @property
    def buffers(self) -> dict[str, Buffer]:
        return {b.name: b for b in self.all(Buffer)}

    @property
    def sizes(self) -> tuple[str, ...]:
        return tuple([s.name for s in self.all(Size)])

    @property
    def opt(self) -> int:
        fact = self.first(Opt)
        return 2 if fact is None else fact.level


def resolve(program: Any) -> Any:
    """Fill in the element types of variables and accesses after reading: every name that a text declares is declared
    once, or once in each of several nests (`has_own_names`)."""
    return _resolved(program, _declared_in(program))


def _declared_in(part: Any) -> dict[str, str]:
    """The element types of the names that a part of a program declares."""
    types: dict[str, str] = {}
    for node in part.unique():
        if hasattr(node, "declares_all"):
            types.update(node.declares_all())
        elif hasattr(node, "declares"):
            name, dtype = node.declares()
            types[name] = dtype
    return types


def _resolved(part: Any, types: Mapping[str, str]) -> Any:
    memo: dict[Node, Any] = {}

    def go(node: Node) -> Any:
        if node not in memo:
            if hasattr(node, "has_own_names") and node is not part:
                memo[node] = _resolved(node, {**types, **_declared_in(node)})
                return memo[node]
            new: Any = node.map(go)
            if "type" in new._hidden and not new.type:
                name = new.name if isinstance(new, Var) else new.buffer
                new = new.replace(type=types.get(name, ""))
            memo[node] = new
        return memo[node]

    return go(part)
