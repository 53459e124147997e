"""Reads as index maps: which element of a value another value reads, and reads replaced by what they read."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ..core.expr import Const, Expr, Op, Var
from ..core.node import Node, kept, substitute
from ..loop.affine import canonical
from ..loop.renaming import renamed_arrays
from .values import (
    Axis,
    AxisNames,
    Compute,
    Nest,
    Read,
    Reduce,
    Scan,
    Scatter,
    Value,
    operands_of,
    reads_of,
    with_formulas,
)

Uses = list[tuple[Value, Read]]                     # the readers of a value, and where they read it

# What an operator costs for each element; those that are not listed: 1.
COSTS: dict[str, int] = {"div": 4, "floordiv": 4, "mod": 4, "sqrt": 4, "rsqrt": 6} | dict.fromkeys(
    ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "cbrt", "truncdiv", "truncmod", "hypot"),
    10) | dict.fromkeys(("tan", "tanh", "erf", "erfc", "pow", "sinh", "cosh", "asin", "acos", "atan", "atan2", "asinh",
                         "acosh", "atanh", "lgamma", "sigmoid"), 20)
CHEAP = 4                       # what several readers of a map may cost each
MOST_NODES, MOST_LEVELS = 256, 48        # of the expression of a map that is inlined, written out
GATHER = 8                      # a read whose index is read


@kept
def cost(e: Expr) -> int:
    """The cost of an element, shared parts once. Arithmetic of indices is free."""
    return _cost(e.unique())


def cost_of_each(value: Compute) -> int:
    """The cost of the parts of an element that vary as the element does, along all its axes: the others are computed
    less often."""
    axes = {a.name for a in value.axes}
    varying = value.expr.variables & axes
    return _cost([n for n in value.expr.unique() if isinstance(n, Expr) and n.variables & axes == varying])


def _cost(nodes: Iterable[Node]) -> int:
    total = 0
    for n in nodes:
        if isinstance(n, Op) and n.args[0].dtype != "i64":
            total += COSTS.get(n.fn, 1)
        elif isinstance(n, Read) and any(isinstance(m, Read) for i in n.index for m in i.unique()):
            total += GATHER
    return total


def has_costly_function(e: Expr) -> bool:
    """Is there an exponential, a logarithm or their like, which takes much less time in vectors?"""
    return any(isinstance(n, Op) and COSTS.get(n.fn, 1) >= 10 for n in e.unique())


def is_small(e: Expr) -> bool:
    """May an expression be part of another one?"""
    return e.written_out <= MOST_NODES and e.depth <= MOST_LEVELS


def axes_of(value: Value) -> tuple[Axis, ...]:
    """All axes of a value: those of its elements, then the reduced ones."""
    if isinstance(value, Reduce):
        return (*value.axes, *value.over)
    return value.axes if isinstance(value, Compute | Scan | Scatter) else ()


def loops_of(value: Value) -> tuple[Axis, ...]:
    """The axes of a value along which it has several elements or terms."""
    return tuple([a for a in axes_of(value) if not (isinstance(a.extent, Const) and a.extent.value == 1)])


def is_identity(read: Read, value: Value) -> bool:
    """Does a value read another at its own axes, in order?"""
    own = axes_of(value)[:len(getattr(value, "axes", ()))]
    return len(read.index) == len(own) and all(i is a.var for i, a in zip(read.index, own, strict=True))


def is_once(index: tuple[Expr, ...], reader: Value) -> bool:
    """Does the reader read each element at most once: is each of its axes an index by itself?"""
    bare = {i.name for i in index if isinstance(i, Var)}
    return all(a.name in bare or _is_one(a.extent) for a in axes_of(reader))


def _is_one(extent: Expr) -> bool:
    return isinstance(extent, Const) and extent.value == 1


def uses_of(values: Iterable[Value]) -> dict[str, Uses]:
    """The uses of each value and array by these values; not by loops (`Nest`)."""
    uses: dict[str, Uses] = {}
    for value in values:
        for r in reads_of(value) if not isinstance(value, Nest) else ():
            uses.setdefault(r.buffer, []).append((value, r))
    return uses


def replaced(e: Expr, read: Callable[[Read], Expr], memo: dict[Expr, Expr] | None = None) -> Expr:
    """An expression whose reads are replaced, inner ones first."""
    known = {} if memo is None else memo

    def go(n: Expr) -> Expr:
        if n not in known:
            new: Expr = n.map(go)
            known[n] = read(new) if isinstance(new, Read) else new
        return known[n]
    return go(e)


def with_reads(value: Value, read: Callable[[Read], Expr]) -> Value:
    """A value whose reads are replaced."""
    memo: dict[Expr, Expr] = {}
    match value:
        case Compute():
            return value.replace(expr=replaced(value.expr, read, memo))
        case Reduce() | Scan():
            return value.replace(cond=replaced(value.cond, read, memo), expr=replaced(value.expr, read, memo))
        case Scatter():
            return value.replace(index=tuple([replaced(i, read, memo) for i in value.index]),
                                 cond=replaced(value.cond, read, memo), expr=replaced(value.expr, read, memo))
    assert isinstance(value, Nest)
    return value


def element(value: Compute, index: tuple[Expr, ...]) -> Expr:
    """The expression of an element of a map."""
    if all(a.var is i for a, i in zip(value.axes, index, strict=True)):
        return value.expr
    return in_canonical_form(substitute(value.expr, {a.var: i for a, i in zip(value.axes, index, strict=True)}))


def in_canonical_form(e: Expr) -> Expr:
    """The expression with canonical indices."""
    return replaced(e, lambda r: r.replace(index=tuple([canonical(i) for i in r.index])))


def with_axis_names(value: Value, names: AxisNames) -> Value:
    """A value whose axes have their canonical names."""
    own, count = axes_of(value), len(getattr(value, "axes", ()))
    extents = [a.extent for a in own]
    made = (*names.axes(extents[:count]), *names.over(extents[count:]))
    if own == made:
        return value
    new: dict[Expr, Expr] = {a.var: b.var for a, b in zip(own, made, strict=True)}

    def go(e: Expr) -> Expr:
        return in_canonical_form(substitute(e, new))
    changes: dict[str, object] = {"axes": made[:count]}
    match value:
        case Reduce():
            changes["over"] = made[count:]
        case Scan():
            changes["axis"] = made[own.index(value.scanned)].name
        case Scatter():
            changes["index"] = tuple(map(go, value.index))
    return with_formulas(value, go).replace(**changes)


def renamed(value: Value, names: Mapping[str, str]) -> Value:
    """A value that reads arrays and values by other names."""
    if isinstance(value, Scatter):
        value = value.replace(source=names.get(value.source, value.source))
    if not isinstance(value, Nest):
        if all(names.get(name, name) == name for name in operands_of(value)):
            return value
        return with_reads(value, lambda r: r.replace(buffer=names.get(r.buffer, r.buffer)))
    own = {out.name for out in value.outs}
    return value.replace(stmts=renamed_arrays(value.stmts, {k: v for k, v in names.items() if k not in own}),
                         outs=tuple([o.replace(source=names.get(o.source, o.source)) for o in value.outs]))
