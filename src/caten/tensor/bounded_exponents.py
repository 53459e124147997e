"""The exponents of a softmax are at most 0, and say so: exp(x - max x) becomes exp(min(x - max x, 0)).

An exponential of numbers that are at most 0 takes fewer operations (`exp_of_nonpositive` in mathematics.elementary).
Only the values tell that they are: loops compute the maximum earlier, or in another kernel. The minimum itself
changes nothing: x is at most the maximum, rounding is monotone, and NaN stays NaN. It takes the place of the bound
above which e^x is infinite.
"""
from __future__ import annotations

from itertools import permutations

from ..core.expr import Expr, Op, number
from ..core.node import substitute
from ..core.program import Target
from .index_maps import element
from .products import Values, is_maximum_over, values_of
from .values import Axis, Compute, Define, FusedKernel, Read, Reduce, TensorProgram, Value, with_formulas


def with_bounded_exponents(program: TensorProgram) -> TensorProgram:
    """The program whose exponents of this kind are minima with 0. A program for a device stays as it is: its own
    functions are used there."""
    target = program.first(Target)
    if program.first(FusedKernel) is not None or (target is not None and target.machine.groups):
        return program
    values = values_of(program)
    if not any(isinstance(v, Reduce) and v.fn == "max" for v in values.values()):
        return program
    clauses = tuple([c.replace(value=_bounded(c.value, values)) if isinstance(c, Define) else c
                     for c in program.clauses])
    return program.replace(clauses=clauses)


def _bounded(value: Value, values: Values) -> Value:
    if not isinstance(value, Compute | Reduce):
        return value
    axes = (*value.axes, *(value.over if isinstance(value, Reduce) else ()))
    found: dict[Expr, Expr] = {}
    for node in value.unique():
        match node:
            case Op("exp", (exponent,)) if _is_shifted(exponent, axes, values):
                found[node] = Op("exp", (Op("min", (exponent, number(0.0, node.dtype))),))
    return with_formulas(value, lambda e: substitute(e, found)) if found else value


def _is_shifted(e: Expr, axes: tuple[Axis, ...], values: Values) -> bool:
    """Is it x - max x, the maximum over some of these axes?"""
    match e:
        case Read(buffer, at) if isinstance(source := values.get(buffer), Compute):
            return isinstance(source.expr, Op) and source.expr.fn == "sub" and _is_shifted(
                element(source, at), axes, values)
        case Op("sub", (x, Read(top) as read)) if isinstance(maximum := values.get(top), Reduce):
            return any(is_maximum_over(read, x, over, values) for over in permutations(axes, len(maximum.over)))
    return False
