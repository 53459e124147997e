"""Expressions over values as products of factors, seen through the maps that they read."""
from __future__ import annotations

from collections.abc import Mapping

from ..core.expr import TRUE, Const, Expr, Op
from ..core.node import substitute
from .index_maps import element, in_canonical_form, is_small, replaced
from .values import Axis, Compute, Read, Reduce, TensorProgram, Value

Values = Mapping[str, Value]


def values_of(program: TensorProgram) -> dict[str, Value]:
    """The values of a program by name; a nest by the name of its first result."""
    return {d.name: d.value for d in program.definitions}


def opened(e: Expr, values: Values) -> Expr:
    """An expression with what the maps compute in the place of their reads, as long as it stays small."""
    def go(read: Read) -> Expr:
        value = values.get(read.buffer)
        return replaced(element(value, read.index), go) if isinstance(value, Compute) else read
    whole = replaced(e, go)
    return whole if is_small(whole) else e


def factors(e: Expr, values: Values) -> list[tuple[Expr, bool]]:
    """The factors of a product or quotient, through maps, in order. True: it divides."""
    match e:
        case Op("mul", (a, b)):
            return [*factors(a, values), *factors(b, values)]
        case Op("div", (a, b)):
            return [*factors(a, values), *[(f, not divides) for f, divides in factors(b, values)]]
        case Read(buffer, index):
            value = values.get(buffer)
            if isinstance(value, Compute) and isinstance(value.expr, Op) and value.expr.fn in ("mul", "div"):
                return factors(element(value, index), values)
    return [(e, False)]


def is_free_of(e: Expr, axes: tuple[Axis, ...]) -> bool:
    """Does an expression not depend on these axes?"""
    return e.variables.isdisjoint([a.name for a in axes])


def shifted_exponential(e: Expr, over: tuple[Axis, ...], values: Values) -> Read | None:
    """If `e` is exp(x - max x), the maximum over the axes `over`: the read of that maximum. Such a term is at most 1,
    and 1 where x is the maximum, or it is NaN."""
    match e:
        case Read(buffer, index) if isinstance(source := values.get(buffer), Compute):
            return shifted_exponential(element(source, index), over, values)
    match shift_of(e):
        case (x, read) if is_maximum_over(read, x, over, values):
            return read
    return None


def shift_of(e: Expr) -> tuple[Expr, Read] | None:
    """x and the read m, if `e` is exp(x - m), or exp(min(x - m, 0))."""
    match e:
        case Op("exp", (Op("sub", (x, Read() as read)) | Op("min", (Op("sub", (x, Read() as read)), Const(value=0))),)):
            return x, read
    return None


def is_maximum_over(read: Read, x: Expr, over: tuple[Axis, ...], values: Values) -> bool:
    """Is an element the maximum of x over the axes `over`, all of them?"""
    value = values.get(read.buffer)
    if not (isinstance(value, Reduce) and value.fn == "max" and value.cond is TRUE and is_free_of(read, over)
            and [a.extent for a in value.over] == [a.extent for a in over]):
        return False
    names: dict[Expr, Expr] = {a.var: i for a, i in zip(value.axes, read.index, strict=True)}
    names |= {a.var: b.var for a, b in zip(value.over, over, strict=True)}
    return in_canonical_form(substitute(opened(value.expr, values), names)) is in_canonical_form(opened(x, values))


def is_softmax_sum(read: Read, values: Values) -> bool:
    """Is an element a sum over exp(x - max x) of the same x, hence at least 1 or NaN (or a sum of nothing)?"""
    value = values.get(read.buffer)
    return (isinstance(value, Reduce) and value.fn == "add" and value.cond is TRUE
            and shifted_exponential(value.expr, value.over, values) is not None)


def product(parts: list[tuple[Expr, bool]]) -> Expr:
    """The product of factors, in order; the first does not divide."""
    (whole, divides), *rest = parts
    assert not divides
    for e, below in rest:
        whole = Op("div" if below else "mul", (whole, e))
    return whole

