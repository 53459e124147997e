"""Reverse accumulation over a program of values: the gradient of each is a value of the same kinds.

For v[a] = Σ_r e(a, r), with the gradient g[a] of v, and each read x[φ(a, r)] in e:

    x̄[b] += Σ { g[a] · ∂e/∂x[φ] : φ(a, r) = b }

The index map φ is inverted (`index_inversion`): what it determines is an index, and the rest is summed over. Where it
has no inverse, g · ∂e/∂x is scattered over the domain of the reader. Other values:

- max, min: the gradient goes to the first position that attains the extreme;
- a product over an axis: to each factor times all others, by two exclusive scans;
- a scan by add: its gradient is scanned in the other direction; by max or min: it goes to where the extreme was met;
- a scan by mul: to each factor those before it times a linear recurrence of the gradient (`recurrences`);
- a scatter by add: its source has the gradient, and what is scattered has it at its index.

Gradients of 16-bit floats are float32 inside, and rounded where they are results.

After Griewank and Walther, Evaluating Derivatives (2nd edition, 2008), chapter 3, and, for index notation, Paszke et
al., Getting to the Point: Index Sets and Parallelism-Preserving Autodiff (2021).
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..core.dtypes import computed, is_complex, is_float
from ..core.expr import TRUE, Expr, Op, Var, index, number
from ..core.node import substitute
from ..core.program import Scalar
from ..core.unique_names import Names
from ..loop.affine import canonical
from ..loop.context import Context
from ..tensor.conditional_values import both
from ..tensor.gathering import Gathering
from ..tensor.index_inversion import within
from ..tensor.values import (
    Axis,
    Compute,
    Define,
    FailIf,
    Inside,
    Named,
    Nest,
    Output,
    Read,
    Reduce,
    Scan,
    Scatter,
    TensorProgram,
    Value,
    ValueTable,
    names_in,
    operands_of,
    reads_of,
    shapes_of,
    types_of,
)
from .cancelling import cancelling_maxima
from .formula_adjoints import Leaf, NotDifferentiable, holds_bits, times, weights, wide
from .recurrences import Recurrence, recurrence_of

OTHER = {"up": "down", "down": "up"}


class Gradients:
    """The values of a program, and after `accumulate` those of its gradients."""

    def __init__(self, program: TensorProgram, wanted: Iterable[str]) -> None:
        """`wanted`: the arrays and scalars to differentiate with respect to."""
        self.program, self.context = program, Context.of(program)
        self.table = ValueTable(program.without(Define, FailIf, Output, Named))
        self.table.names.taken.update(*[d.names for d in program.definitions],
                                      *[names_in(d.value) for d in program.definitions if isinstance(d.value, Nest)])
        self.types: dict[str, str] = {b.name: b.type for b in program.buffers.values()}
        self.shapes: dict[str, tuple[Expr, ...]] = {b.name: b.axes for b in program.buffers.values()}
        self.scalars = {s.name: s.type for s in program.all(Scalar)}
        self.depends = set(wanted)                          # what depends on one of the wanted, smoothly
        self.parts: dict[str, list[str]] = {}               # the summands of the gradient of each
        self.order: list[Define] = []
        self.gathering = Gathering(self.table.axis_names, self.context, self.define)

    def define(self, value: Value) -> str:
        """A value that the gradients are made of."""
        name = self.table.define(value)[0]
        self.types[name], self.shapes[name] = types_of(value)[0], shapes_of(value)[0]
        return name

    def forward(self, definitions: Sequence[Define]) -> None:
        """The values of the program itself. Their names stay as they are."""
        needless = cancelling_maxima(self.program)
        for d in definitions:
            self.order.append(d)
            for name, dtype, shape in zip(d.names, types_of(d.value), shapes_of(d.value), strict=True):
                self.types[name], self.shapes[name] = dtype, shape
            if d.names and d.name in needless:
                continue
            if any(map(self.is_wanted, reads_of(d.value) if not isinstance(d.value, Nest) else ())) or any(
                    name in self.depends for name in _whole(d.value)) or any(
                    v in self.depends for v in _scalars(d.value, self.scalars)):
                self.depends.update([n for n, t in zip(d.names, types_of(d.value), strict=True)
                                     if is_float(t) or is_complex(t) or holds_bits(d.value)])

    def is_wanted(self, leaf: Leaf) -> bool:
        """Does something that is differentiated depend on this read?"""
        return (leaf.buffer if isinstance(leaf, Read) else leaf.name) in self.depends

    def seed(self, value: str, gradient: str) -> None:
        """The gradient of a value is, or has as a summand, an array or another value."""
        self.parts.setdefault(value, []).append(gradient)

    def accumulate(self) -> None:
        """The gradients of all that depends on what is wanted, the last value first."""
        for d in reversed(self.order):
            for name in d.names:
                if name in self.depends and (g := self.gradient(name)) is not None:
                    try:
                        self.back(d, name, g)
                    except NotDifferentiable as problem:
                        raise NotDifferentiable(problem.what, problem.name or name) from None

    def gradient(self, name: str) -> str | None:
        """The value that is the gradient of another, of an array or of a scalar; None where it is 0."""
        parts = self.parts.get(name, [])
        if len(parts) > 1:
            axes = self.axes(name)
            at = tuple([a.var for a in axes])
            total = self.weight(parts[0], at)
            for part in parts[1:]:
                total = total + self.weight(part, at)
            self.parts[name] = [self.define(Compute(total.dtype, axes, total))]
        return self.parts[name][0] if parts else None

    def axes(self, name: str) -> tuple[Axis, ...]:
        """The axes of an array, a value or a scalar."""
        return self.table.axis_names.axes(self.shapes.get(name, ()))

    def read(self, name: str, at: Sequence[Expr]) -> Read:
        """An element of a value."""
        return Read(name, tuple(at), self.types[name])

    def weight(self, name: str, at: Sequence[Expr]) -> Expr:
        """An element of a gradient, in the type in which it is computed."""
        return wide(self.read(name, at))

    def back(self, d: Define, name: str, g: str) -> None:
        """What the gradient `g` of a value gives to its operands."""
        value = d.value
        if is_complex(self.types[name]):
            raise NotDifferentiable("gradients of complex numbers are not known")
        match value:
            case Compute(_, axes, expr):
                self.to_reads(axes, TRUE, expr, self.weight(g, _at(axes)))
            case Reduce(_, axes, over, "add", cond, expr):
                self.to_reads((*axes, *over), cond, expr, self.weight(g, _at(axes)))
            case Reduce(_, axes, over, "max" | "min", cond, expr):
                self.to_extremes(value, name, g)
            case Reduce(_, axes, over, "mul", cond, expr):
                self.to_factors(value, g)
            case Scan(dtype, axes, along, "add", mode, direction, cond, expr):
                scanned = self.define(Scan(computed(dtype), axes, along, "add", mode, OTHER[direction], TRUE,
                                           self.weight(g, _at(axes))))
                self.to_reads(axes, cond, expr, self.weight(scanned, _at(axes)))
            case Scan(fn="max" | "min"):
                self.to_running_extremes(value, name, g)
            case Scan(fn="mul"):
                self.to_running_factors(value, g)
            case Scatter(_, source, _, axes, "add", at, cond, expr):
                if source in self.depends:
                    self.seed(source, g)
                self.to_reads(axes, cond, expr, self.weight(g, at))
            case Nest() if (recurrence := recurrence_of(value)) is not None:
                self.to_recurrence(recurrence, name, g)
            case Nest():
                raise NotDifferentiable("a loop nest that keeps the order of its iterations has no derivative")
            case _:
                raise NotDifferentiable(f"{value.head} by {getattr(value, 'fn', '?')} has no derivative")

    # to the operands of a formula

    def to_reads(self, axes: Sequence[Axis], cond: Expr, expr: Expr, g: Expr) -> None:
        """What a formula over axes, weighted with `g`, gives to its operands."""
        for leaf, (guard, weight) in weights(expr, g, self.is_wanted).items():
            self.to_leaf(leaf, axes, both(cond, guard), weight)

    def to_leaf(self, leaf: Leaf, axes: Sequence[Axis], cond: Expr, weight: Expr) -> None:
        """What the elements over axes give to what they read by `leaf`."""
        name = leaf.buffer if isinstance(leaf, Read) else leaf.name
        dtype = computed(leaf.dtype)
        at = leaf.index if isinstance(leaf, Read) else ()
        element = self.axes(name)
        total = self.gathering.total(at, axes, element, cond, weight, dtype)
        if total is None:
            zeros = self.define(Compute(dtype, element, number(0.0, dtype)))
            shape = self.shapes.get(name, ())
            plain = [_unchecked(i) for i in at]
            inside = _inside(zip(plain, shape, strict=True), within(axes, self.context))
            self.seed(name, self.define(Scatter(dtype, zeros, shape, tuple(axes), "add", tuple(plain),
                                                both(cond, inside), weight)))
            return
        self.seed(name, total)

    # extremes and products

    def to_extremes(self, value: Reduce, name: str, g: str) -> None:
        """Of a maximum: to the first position that attains it, in the order of the reduced axes."""
        position: Expr = index(0)
        size: Expr = index(1)
        for a in reversed(value.over):
            position, size = canonical(position + a.var * size), canonical(size * a.extent)
        attains = Op("eq", (value.expr, self.read(name, _at(value.axes))))
        first = self.define(Reduce("i64", value.axes, value.over, "min", both(value.cond, attains), position))
        self.to_reads((*value.axes, *value.over),
                      both(value.cond, Op("eq", (position, self.read(first, _at(value.axes))))), value.expr,
                      self.weight(g, _at(value.axes)))

    def to_running_extremes(self, value: Scan, name: str, g: str) -> None:
        """Of a running maximum: each to the first position that attains it."""
        along, is_up = value.scanned, value.direction == "up"
        if value.mode != "inclusive":
            raise NotDifferentiable(f"an exclusive scan by {value.fn} has no derivative")
        axes = value.axes
        before = self.define(value.replace(mode="exclusive"))
        new = Op("gt" if value.fn == "max" else "lt", (value.expr, self.read(before, _at(axes))))
        edge = index(-1) if is_up else canonical(along.extent)
        where = self.define(Scan("i64", axes, value.axis, "max" if is_up else "min", "inclusive", value.direction, TRUE,
                                 Op("where", (both(value.cond, new), along.var, edge))))
        dtype = computed(value.type)
        zeros = self.define(Compute(dtype, axes, number(0.0, dtype)))
        to = self.read(where, _at(axes))
        met = self.define(Scatter(
            dtype, zeros, tuple([a.extent for a in axes]), axes, "add",
            tuple([to if a is along else a.var for a in axes]), _inside([(to, along.extent)], self.context),
            self.weight(g, _at(axes))))
        self.to_reads(axes, value.cond, value.expr, self.weight(met, _at(axes)))

    def to_factors(self, value: Reduce, g: str) -> None:
        """Of a product: to each factor, times all others. Over several axes it is the product over the first of the
        products over the others."""
        kept = len(value.axes)
        axes = self.table.axis_names.axes([a.extent for a in (*value.axes, *value.over)])
        names = {a.var: b.var for a, b in zip((*value.axes, *value.over), axes, strict=True)}
        cond, expr = substitute(value.cond, names), substitute(value.expr, names)
        dtype = computed(value.type)
        weight = self.weight(g, _at(axes)[:kept])
        among, factor = cond, wide(expr)
        for n in range(len(axes), kept, -1):
            for direction in ("up", "down"):
                others = self.define(Scan(dtype, axes[:n], axes[n - 1].name, "mul", "exclusive", direction, among,
                                          factor))
                weight = times(weight, self.read(others, _at(axes[:n])))
            inner = self.define(Reduce(dtype, axes[:n - 1], axes[n - 1:n], "mul", among, factor))
            among, factor = TRUE, self.read(inner, _at(axes[:n - 1]))
        self.to_reads(axes, cond, expr, weight)

    # running products

    def to_running_factors(self, value: Scan, g: str) -> None:
        """Of a running product: to each factor the product of those before it, times h: the sum of the gradients of all
        products that it is in, each times the factors behind it. Nothing is divided by."""
        axes, along = value.axes, value.axes.index(value.scanned)
        dtype = computed(value.type)
        factor = wide(value.expr)
        factors = self.array(axes, factor if value.cond is TRUE else Op("where", (
            value.cond, factor, number(1.0, dtype))))
        products = self.define(Scan(dtype, axes, value.axis, "mul", value.mode, value.direction, TRUE,
                                    self.read(factors, _at(axes))))
        terms = self.array(axes, self.weight(g, _at(axes)))
        h = self.recurrence(Recurrence(factors, terms, dtype, tuple([a.extent for a in axes]), along,
                                       OTHER[value.direction], value.mode == "inclusive"))
        before: Expr
        after: Expr
        if value.mode == "inclusive":
            before, after = self.neighbour(products, axes, along, value.direction, 1.0), self.read(h, _at(axes))
        else:
            before = self.read(products, _at(axes))
            after = self.neighbour(h, axes, along, OTHER[value.direction], 0.0)
        self.to_reads(axes, value.cond, value.expr, times(before, after))

    def to_recurrence(self, value: Recurrence, name: str, g: str) -> None:
        """Of h[j] = b[j] + a[j] · h[j - 1]."""
        axes = self.table.axis_names.axes(value.shape)
        back = self.recurrence(Recurrence(value.factors, g, value.type, value.shape, value.along,
                                          OTHER[value.direction], not value.is_shifted))
        if value.terms in self.depends:
            self.seed(value.terms, back)
        if value.factors in self.depends:
            if value.is_shifted:
                weight = times(self.neighbour(back, axes, value.along, OTHER[value.direction], 0.0),
                               self.read(name, _at(axes)))
            else:
                weight = times(self.read(back, _at(axes)),
                               self.neighbour(name, axes, value.along, value.direction, 0.0))
            self.seed(value.factors, self.define(Compute(value.type, axes, weight)))

    def recurrence(self, value: Recurrence) -> str:
        """A recurrence as a value."""
        is_guarded = not self.context.proves(Op("lt", (index(0), value.shape[value.along])))
        return self.define(value.nest(Names(self.table.names.taken).fresh, is_guarded))

    def array(self, axes: Sequence[Axis], expr: Expr) -> str:
        """A formula as an array: what it reads where that is all it does."""
        if isinstance(expr, Read) and expr.index == _at(axes) and self.shapes[expr.buffer] == tuple(
                [a.extent for a in axes]):
            return expr.buffer
        return self.define(Compute(expr.dtype, tuple(axes), expr))

    def neighbour(self, name: str, axes: Sequence[Axis], along: int, direction: str, otherwise: float) -> Expr:
        """The element of a value that is one step before, in a direction; `otherwise` where there is none."""
        at = axes[along].var
        there, exists = (canonical(at - 1), Op("le", (index(1), at))) if direction == "up" else (
            canonical(at + 1), Op("lt", (canonical(at + 1), axes[along].extent)))
        read = self.read(name, [there if n == along else a.var for n, a in enumerate(axes)])
        return Op("where", (exists, read, number(otherwise, read.dtype)))


def _at(axes: Sequence[Axis]) -> tuple[Expr, ...]:
    return tuple([a.var for a in axes])


def _unchecked(e: Expr) -> Expr:
    """An expression whose checked indices are not checked again: the value that was read has failed by now."""
    def go(n: Expr) -> Expr:
        return go(n.index) if isinstance(n, Inside) else n.map(go)
    return go(e)


def _inside(indices: Iterable[tuple[Expr, Expr]], context: Context) -> Expr:
    """Are indices inside their extents? Of those that are known to be, nothing is asked."""
    cond: Expr = TRUE
    for i, extent in indices:
        for bound in (Op("le", (index(0), i)), Op("lt", (i, extent))):
            if not context.proves(bound):
                cond = both(cond, bound)
    return cond


def _whole(value: Value) -> tuple[str, ...]:
    if isinstance(value, Nest):
        return operands_of(value)
    return (value.source,) if isinstance(value, Scatter) else ()


def _scalars(value: Value, scalars: Mapping[str, str]) -> list[str]:
    if isinstance(value, Nest):
        return []
    return [n.name for n in value.unique() if isinstance(n, Var) and n.name in scalars]
