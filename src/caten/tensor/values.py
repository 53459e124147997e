"""The tensor level: pure values in index notation. Each element is a formula over its indices, in no particular order.

    (define v0 (reduce f32 ((i M) (j N)) ((p K)) add true (* (read A i p) (read B p j))))         v0 = A · B
    (define v1 (compute f32 ((i M) (j N)) (+ (read C i j) (read v0 i j))))
    (output C v1)

A value is defined once. A read of a parameter gives what the caller passed, also where the parameter is an output. The
axes of a value count from 0 and are named by position (`i j k …`, reduced `p q r …`), so equal structure over equal
operands is the same object. A part that occurs several times in an expression prints once, as `(let ((t0 part)…) e)`.
`named` has the names of the spec. A `nest` keeps the sequential semantics of a loop nest that has no index notation.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, count
from typing import Any, TypeVar

from ..core.expr import TRUE, Expr, Op, Var
from ..core.node import Node, kept, substitute
from ..core.program import Buffer, Fact, Program
from ..core.text import shared
from ..core.unique_names import Names, declared_names
from ..loop.statements import Address, Aref, For, Stmt

V = TypeVar("V", bound="Value")
KEPT, REDUCED = "ijklmn", "pqrstu"        # the names of the first axes


class Read(Expr, head="read", hidden=("type",)):
    """`(read A i p)`: an element of a parameter, as it was before the call, or of a value."""

    buffer: str
    index: tuple[Expr, ...]
    type: str = ""

    @property
    def dtype(self) -> str:
        return self.type


class Pieces(Expr, head="pieces"):
    """`(pieces i (a b c) 10 20)`: by the value of an index, the first expression below 10, the second below 20, the
    third from there on. The bounds ascend. Only the chosen expression is evaluated. `(pieces (inside i N 6) (a))`: a,
    after a check."""

    at: Expr
    arms: tuple[Expr, ...]
    bounds: tuple[Expr, ...]

    @property
    def dtype(self) -> str:
        return self.arms[0].dtype if self.arms else ""

    @property
    def is_check(self) -> bool:
        """Is there nothing to choose, but an index to check?"""
        return not self.bounds and any(isinstance(n, Inside) for n in self.at.unique())

    @property
    def choice(self) -> Expr:
        """The same as a choice by conditions."""
        value = self.arms[-1]
        for arm, bound in reversed(list(zip(self.arms[:-1], self.bounds, strict=True))):
            value = Op("where", (Op("lt", (self.at, bound)), arm, value))
        return value


class Inside(Expr, head="inside"):
    """`(inside index N 6)`: an index that is checked: if it is outside [0, N), the call fails with check 6, before the
    index is used. Row 0: the number of the check is not known."""

    index: Expr
    extent: Expr
    row: int

    @property
    def dtype(self) -> str:
        return "i64"


class Axis(Node):
    """`(i M)`: an index and its extent. It counts from 0."""

    name: str
    extent: Expr

    def to_form(self) -> tuple[Any, ...]:
        return (self.name, self.extent)

    def declares(self) -> tuple[str, str]:
        return self.name, "i64"

    @property
    def var(self) -> Var:
        """The index as an expression."""
        return Var(self.name, "i64")


def _axes(forms: Any, parse: Any) -> tuple[Axis, ...]:
    axes = tuple([Axis(str(n), parse(extent)) for n, extent in forms])
    for axis in axes:
        if not isinstance(axis.extent, Expr):
            raise TypeError(f"the axis {axis.name} does not range over numbers")
    return axes


class Value(Node):
    """The right-hand side of a definition."""


class Compute(Value, head="compute"):
    """`(compute f32 ((i M)…) expr)`: element [i…] is the expression."""

    type: str
    axes: tuple[Axis, ...]
    expr: Expr

    def to_form(self) -> tuple[Any, ...]:
        return ("compute", self.type, self.axes, shared(self.expr))

    @classmethod
    def of_form(cls, form: Any, parse: Any) -> Compute:
        _, dtype, axes, expr = form
        return cls(str(dtype), _axes(axes, parse), parse(expr))


class Reduce(Value, head="reduce"):
    """`(reduce f32 ((i M)…) ((p K)…) add cond expr)`: element [i…] combines the expression over all p… where the
    condition holds, in no particular order, from the identity element of the monoid (0 for add, 1 for mul). `fn`: `add
    mul max min and or xor`. The expression is evaluated only where the condition holds."""

    type: str
    axes: tuple[Axis, ...]
    over: tuple[Axis, ...]
    fn: str
    cond: Expr = TRUE
    expr: Expr = TRUE

    def to_form(self) -> tuple[Any, ...]:
        return ("reduce", self.type, self.axes, self.over, self.fn, shared(self.cond), shared(self.expr))

    @classmethod
    def of_form(cls, form: Any, parse: Any) -> Reduce:
        _, dtype, axes, over, fn, cond, expr = form
        return cls(str(dtype), _axes(axes, parse), _axes(over, parse), str(fn), parse(cond), parse(expr))


class Scan(Value, head="scan"):
    """`(scan f32 ((i M) (j N)) j add inclusive up cond expr)`: element [i, j] combines the expression over all j' ≤ j
    where the condition holds, from the identity element of the monoid. `exclusive`: over j' < j. `down`: over j' ≥ j,
    or j' > j. `fn`: those of `reduce`. As there, the order in which elements are combined is open."""

    type: str
    axes: tuple[Axis, ...]
    axis: str
    fn: str
    mode: str = "inclusive"
    direction: str = "up"
    cond: Expr = TRUE
    expr: Expr = TRUE

    def to_form(self) -> tuple[Any, ...]:
        return ("scan", self.type, self.axes, self.axis, self.fn, self.mode, self.direction, shared(self.cond),
                shared(self.expr))

    @classmethod
    def of_form(cls, form: Any, parse: Any) -> Scan:
        _, dtype, axes, axis, fn, mode, direction, cond, expr = form
        return cls(str(dtype), _axes(axes, parse), str(axis), str(fn), str(mode), str(direction), parse(cond),
                   parse(expr))

    @property
    def scanned(self) -> Axis:
        """The axis along which elements are combined."""
        return next(a for a in self.axes if a.name == self.axis)

    @property
    def others(self) -> tuple[Axis, ...]:
        """The axes along which the scans are independent."""
        return tuple([a for a in self.axes if a.name != self.axis])


class Scatter(Value, head="scatter"):
    """`(scatter i64 v0 (B) ((i N)…) add (index…) cond expr)`: the array v0, of shape (B), to whose element [index…] the
    expression is added for all i… where the condition holds, in no particular order. `fn`: those of `reduce`. Several
    iterations may meet in one element. The index is evaluated only where the condition holds."""

    type: str
    source: str
    shape: tuple[Expr, ...]
    axes: tuple[Axis, ...]
    fn: str
    index: tuple[Expr, ...]
    cond: Expr = TRUE
    expr: Expr = TRUE

    def to_form(self) -> tuple[Any, ...]:
        return ("scatter", self.type, self.source, self.shape, self.axes, self.fn, self.index,
                shared(self.cond), shared(self.expr))

    @classmethod
    def of_form(cls, form: Any, parse: Any) -> Scatter:
        _, dtype, source, shape, axes, fn, index, cond, expr = form
        return cls(str(dtype), str(source), tuple([parse(e) for e in shape]), _axes(axes, parse), str(fn),
                   tuple([parse(i) for i in index]), parse(cond), parse(expr))


Indexed = Compute | Reduce | Scan | Scatter        # a value in index notation: an expression over axes


class Out(Node, head="out"):
    """`(out C f32 (M N) v0)`: an array that a nest writes: its name in the nest, and the value that it holds at first
    (`-`: none, its elements are set before they are read)."""

    name: str
    type: str
    shape: tuple[Expr, ...]
    source: str = ""

    def to_form(self) -> tuple[Any, ...]:
        return ("out", self.name, self.type, self.shape, *((self.source,) if self.source else ()))

    def declares(self) -> tuple[str, str]:
        return self.name, self.type


class Nest(Value, head="nest"):
    """`(nest (stmt…) (out C f32 (M N) v0)…)`: a loop nest with sequential semantics. Its results are the arrays that it
    writes; it reads all others as parameters or values."""

    stmts: tuple[Stmt, ...]
    outs: tuple[Out, ...]

    def has_own_names(self) -> bool:
        """Another nest may declare the same names, with other element types."""
        return True


class Define(Node, head="define"):
    """`(define v value)`, `(define (v w) nest)`: names for the results of a value."""

    names: tuple[str, ...]
    value: Value

    def to_form(self) -> tuple[Any, ...]:
        return ("define", self.names[0] if len(self.names) == 1 else self.names, self.value)

    @classmethod
    def of_form(cls, form: Any, parse: Any) -> Define:
        _, names, value = form
        return cls((str(names),) if isinstance(names, str) else tuple([str(n) for n in names]), parse(value))

    @property
    def name(self) -> str:
        """The name of the only result, or of the first."""
        return self.names[0]

    def declares_all(self) -> tuple[tuple[str, str], ...]:
        """The results with their element types."""
        return tuple(zip(self.names, types_of(self.value), strict=False))


class Output(Node, head="output"):
    """`(output C v1)`: the value that a parameter holds after the call."""

    name: str
    value: str


class FailIf(Node, head="fail-if"):
    """`(fail-if (read v0) 6)`: the call fails with check 6 if the condition holds. It reads values without axes."""

    cond: Expr
    row: int

    def renamed(self, names: Mapping[str, str]) -> FailIf:
        """The check with values by other names."""
        new: FailIf = substitute(self, {r: r.replace(buffer=names[r.buffer]) for r in reads_of(self.cond)})
        return new


class Named(Fact, head="named"):
    """`(named v0 s i j p)`: what the spec calls a value, and its axes from the outside in, the reduced ones last."""

    value: str
    name: str
    axes: tuple[str, ...]


class Pass(Node, head="pass"):
    """`(pass ((p K)) step…)`: loops that definitions share. A step is a definition or a pass inside these loops."""

    axes: tuple[Axis, ...]
    steps: tuple[Node, ...]

    def to_form(self) -> tuple[Any, ...]:
        return ("pass", self.axes, *self.steps)

    @classmethod
    def of_form(cls, form: Any, parse: Any) -> Pass:
        _, axes, *steps = form
        return cls(_axes(axes, parse), tuple([parse(s) for s in steps]))


class Along(Node, head="along"):
    """`(along v0 j)`: the axes of a value that the outer loops of its kernel are, where their names differ."""

    value: str
    axes: tuple[str, ...]


class FusedKernel(Node, head="group"):
    """`(group k0 (outer (i M)…) (form rows) step…)`: definitions that share a kernel, as fusion has it: `caten ir
    --fused`. Each iteration of the outer loops, which are axes of every member, runs the steps in order. `form`: `map`,
    `contraction`, `rows`, `blocks`, `scan`, `scatter` or `nest`."""

    name: str
    outer: tuple[Axis, ...]
    form: str
    steps: tuple[Node, ...]

    def to_form(self) -> tuple[Any, ...]:
        return ("group", self.name, ("outer", *self.outer), ("form", self.form), *self.steps)

    @classmethod
    def of_form(cls, form: Any, parse: Any) -> FusedKernel:
        _, name, (outer, *axes), (kind, value), *steps = form
        if (outer, kind) != ("outer", "form"):
            raise ValueError("after the name there are (outer AXIS…) and (form FORM)")
        return cls(str(name), _axes(axes, parse), str(value), tuple([parse(s) for s in steps]))

    @property
    def definitions(self) -> tuple[Define, ...]:
        """The members, in order."""
        return tuple(_definitions_in(self.steps))


def _definitions_in(steps: Iterable[Node]) -> Iterator[Define]:
    for step in steps:
        if isinstance(step, Define):
            yield step
        elif isinstance(step, Pass):
            yield from _definitions_in(step.steps)


class TensorProgram(Program, head="tensor"):
    """`(tensor name clause…)`: parameters, facts, definitions, each after those that it reads, checks and outputs."""

    @property
    def definitions(self) -> tuple[Define, ...]:
        kernels = self.all(FusedKernel)
        return (*self.all(Define), *[d for k in kernels for d in k.definitions]) if kernels else self.all(Define)

    @property
    def outputs(self) -> tuple[Output, ...]:
        return self.all(Output)

    @property
    def checks(self) -> tuple[FailIf, ...]:
        """The checks whose conditions are values, in the order of the body."""
        return self.all(FailIf)

    @property
    def results(self) -> tuple[str, ...]:
        """The values that checks and outputs need, in order."""
        return (*[r.buffer for c in self.checks for r in reads_of(c.cond)], *[o.value for o in self.outputs])


def names_in_spec(program: TensorProgram) -> dict[str, str]:
    """What the spec calls the values, for people. Without names such as `v1`, which the arrays of a body over whole
    arrays have in its loops."""
    return {n.value: n.name for n in program.all(Named) if not re.fullmatch(r"v\d+", n.name)}


def types_of(value: Value) -> tuple[str, ...]:
    """The element types of the results."""
    return tuple([out.type for out in value.outs]) if isinstance(value, Nest) else (str(getattr(value, "type", "")),)


def shapes_of(value: Value) -> tuple[tuple[Expr, ...], ...]:
    """The shapes of the results."""
    if isinstance(value, Nest):
        return tuple([out.shape for out in value.outs])
    if isinstance(value, Scatter):
        return (value.shape,)
    assert isinstance(value, Compute | Reduce | Scan)
    return (tuple([a.extent for a in value.axes]),)


@kept
def reads_of(value: Node) -> tuple[Read, ...]:
    """The distinct reads of a value or expression, those inside indices included, in the order of `unique`."""
    return tuple([n for n in value.unique() if isinstance(n, Read)])


FORMULAS = ("cond", "expr")               # the fields of a value in index notation with its formulas


def formulas_of(value: Value | None) -> list[Expr]:
    """The condition and the formula of a value in index notation."""
    return [getattr(value, name) for name in FORMULAS if hasattr(value, name)]


def with_formulas(value: V, change: Callable[[Expr], Expr]) -> V:
    """A value with its condition and its formula changed; a nest as it is."""
    own = {name: getattr(value, name) for name in FORMULAS if hasattr(value, name)}
    changed = {name: new for name, old in own.items() if (new := change(old)) is not old}
    return value.replace(**changed) if changed else value


@kept
def operands_of(value: Value) -> tuple[str, ...]:
    """The names of the parameters and values that a value reads, each once."""
    if isinstance(value, Nest):
        own = {out.name for out in value.outs}
        found = [out.source for out in value.outs if out.source]
        found += [n.buffer for s in value.stmts for n in s.walk()
                  if isinstance(n, Aref | Address) and n.buffer not in own]
        declared = {n.declares()[0] for s in value.stmts for n in s.walk() if hasattr(n, "declares")}
        return tuple(dict.fromkeys([name for name in found if name not in declared]))
    return tuple(dict.fromkeys([*whole_operands_of(value), *[r.buffer for r in reads_of(value)]]))


def whole_operands_of(value: Value) -> tuple[str, ...]:
    """The operands that a value needs in memory as a whole: it reads them in another way than by `read`."""
    if isinstance(value, Nest):
        return operands_of(value)
    return (value.source,) if isinstance(value, Scatter) else ()


def names_in(nest: Nest) -> frozenset[str]:
    """What a nest declares: arrays, numbers and the variables of its loops. No value may have one of these names."""
    return frozenset([out.name for out in nest.outs]).union(*[declared_names(s) for s in nest.stmts])


class AxisNames:
    """The canonical names of axes by position: `i j k …`, reduced `p q r …`, without those that the program uses."""

    def __init__(self, taken: Iterable[str]) -> None:
        names = set(taken)
        self._kept, self._reduced = (_endless(letters, names) for letters in (KEPT, REDUCED))
        self._known: dict[bool, list[str]] = {False: [], True: []}

    def _name(self, position: int, reduced: bool) -> str:
        known, more = self._known[reduced], self._reduced if reduced else self._kept
        while len(known) <= position:
            known.append(next(more))
        return known[position]

    def axes(self, shape: Sequence[Expr]) -> tuple[Axis, ...]:
        """The axes of a value of this shape."""
        return tuple([Axis(self._name(n, False), extent) for n, extent in enumerate(shape)])

    def over(self, extents: Sequence[Expr]) -> tuple[Axis, ...]:
        """Reduced axes of these extents."""
        return tuple([Axis(self._name(n, True), extent) for n, extent in enumerate(extents)])


def _endless(letters: str, taken: set[str]) -> Any:
    for name in chain(letters, (f"{letters[0]}{n}" for n in count(len(letters)))):
        if name not in taken:
            yield name


class ValueTable:
    """Definitions in order, numbered by their structure: an equal value gets the name that it has already (value
    numbering, which is common-subexpression elimination)."""

    def __init__(self, program: Node, names: Names | None = None) -> None:
        self.names = names or Names.of(program)
        loops = {n.name for n in program.unique() if isinstance(n, For)}         # they have a scope of their own
        self.axis_names = AxisNames(self.names.taken - loops)
        self.shapes = {n.name: n.shape for n in program.unique() if isinstance(n, Buffer)}
        self.values: dict[str, Value] = {}                     # the first result of each value -> the value
        self._names_of: dict[Value, tuple[str, ...]] = {}
        self.nests: dict[tuple[object, ...], tuple[str, ...]] = {}   # the results of those that have been inlined

    def define(self, value: Value) -> tuple[str, ...]:
        """The names of the results of a value."""
        known = self._names_of.get(value)
        if known is None:
            known = tuple([self._fresh() for _ in types_of(value)])
            self._names_of[value] = known
            if known:                                          # a nest may do nothing but fail
                self.values[known[0]] = value
            if isinstance(value, Nest):
                self.names.taken |= names_in(value)
        return known

    def _fresh(self) -> str:
        for number in count(len(self._names_of)):
            if (name := f"v{number}") not in self.names.taken:
                self.names.taken.add(name)
                return name
        raise AssertionError

    @property
    def definitions(self) -> tuple[Define, ...]:
        return tuple([Define(names, value) for value, names in self._names_of.items()])

    def needed(self, names: Iterable[str]) -> tuple[Define, ...]:
        """The definitions that these values are computed from, each after those that it reads."""
        wanted, found = set(names), list[Define]()
        for definition in reversed(self.definitions):
            if not wanted.isdisjoint(definition.names):
                wanted.update(operands_of(definition.value))
                found.append(definition)
        return tuple(found[::-1])
