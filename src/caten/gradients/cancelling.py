"""Maxima that cancel: those that are subtracted in front of exponentials so that none overflows.

    e = exp(x - m)    s = Σ e        e / s   and   log s + m   are the same whatever m is

So no gradient goes through m, and where it lies need not be searched. Whether that is so is seen from how values grow
with m: an invariant does not; a *shift* is an invariant + c · m; a *scale* is an invariant times exp(c · m). Sums of
scales are scales, quotients of equal ones are invariants, logarithms are shifts. If all outputs are invariants, m
cancels.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..core.dtypes import is_float
from ..core.expr import Cast, Const, Expr, Op
from ..core.node import substitute
from ..frozen import frozen
from ..loop.affine import canonical
from ..tensor.values import (
    Axis,
    Compute,
    Define,
    Nest,
    Read,
    Reduce,
    TensorProgram,
    Value,
    operands_of,
    reads_of,
)


@frozen
class Growth:
    """How a value grows with m: as an invariant + c · m[at], or, if it `is_scale`, times exp(c · m[at])."""

    is_scale: bool
    c: int
    at: tuple[Expr, ...]


Kind = Growth | None                            # None: an invariant


class _Unknown(Exception):
    """It grows in another way."""


def cancelling_maxima(program: TensorProgram) -> frozenset[str]:
    """The maxima and minima of a program that its outputs do not depend on."""
    return frozenset([d.name for n, d in enumerate(program.definitions)
                      if isinstance(d.value, Reduce) and d.value.fn in ("max", "min") and is_float(d.value.type)
                      and _cancels(d, program.definitions[n + 1:], program)])


def _cancels(extreme: Define, later: Sequence[Define], program: TensorProgram) -> bool:
    assert isinstance(extreme.value, Reduce)
    kinds: dict[str, tuple[Kind, tuple[Axis, ...]]] = {
        extreme.name: (Growth(False, 1, tuple([a.var for a in extreme.value.axes])), extreme.value.axes)}
    try:
        for d in later:
            if not kinds.keys().isdisjoint(operands_of(d.value)):
                kind = _of_value(d.value, kinds)
                if kind is not None:
                    assert isinstance(d.value, Compute | Reduce)
                    kinds[d.name] = kind, d.value.axes
    except _Unknown:
        return False
    read = {o.value for o in program.outputs} | {r.buffer for c in program.checks for r in reads_of(c.cond)}
    return len(kinds) > 1 and kinds.keys().isdisjoint(read)


def _of_value(value: Value, kinds: Mapping[str, tuple[Kind, tuple[Axis, ...]]]) -> Kind:
    if isinstance(value, Nest) or not isinstance(value, Compute | Reduce):
        raise _Unknown
    kind = _Formula(kinds).of(value.expr)
    if isinstance(value, Compute) or kind is None:
        return kind
    over = {a.name for a in value.over}
    if _Formula(kinds).of(value.cond) is not None or any(e.variables & over for e in kind.at):
        raise _Unknown
    if value.fn in ("max", "min") or (value.fn == "add" and kind.is_scale):
        return kind
    raise _Unknown


class _Formula:
    """The kinds of expressions. `kinds`: those of values that are no invariants, over their axes."""

    def __init__(self, kinds: Mapping[str, tuple[Kind, tuple[Axis, ...]]]) -> None:
        self.kinds = kinds
        self.memo: dict[Expr, Kind] = {}

    def of(self, e: Expr) -> Kind:
        """The kind of an expression. _Unknown if there is none."""
        if e not in self.memo:
            self.memo[e] = self._of(e)
        return self.memo[e]

    def _of(self, e: Expr) -> Kind:
        match e:
            case Read(buffer, index) if buffer in self.kinds:
                kind, axes = self.kinds[buffer]
                assert kind is not None
                at = {a.var: i for a, i in zip(axes, index, strict=True)}
                return replace(kind, at=tuple([canonical(substitute(i, at)) for i in kind.at]))
            case Op("where", (cond, a, b)) if self.of(cond) is None:
                return self.chosen(a, b)
        found = [self.of(n) for n in e.children if isinstance(n, Expr)]
        if all(kind is None for kind in found):
            return None
        match e, found:
            case Cast(dtype, arg), [Growth() as kind] if is_float(dtype) and is_float(arg.dtype):
                return kind
            case Op("add" | "sub" as fn, _), [left, right]:
                return self.sum(left, right, 1 if fn == "add" else -1)
            case Op("neg", _), [Growth(is_scale, c) as kind]:
                return kind if is_scale else replace(kind, c=-c)
            case Op("mul" | "div" as fn, _), [left, right]:
                return self.product(left, right, 1 if fn == "mul" else -1)
            case Op("exp", _), [Growth(False) as kind]:
                return replace(kind, is_scale=True)
            case Op("log", _), [Growth(True) as kind]:
                return replace(kind, is_scale=False)
        raise _Unknown

    def chosen(self, a: Expr, b: Expr) -> Kind:
        """One of two: 0 is a scale of any kind, and an infinity a shift of any kind."""
        first, second = self.of(a), self.of(b)
        if first == second:
            return first
        for kind, other, e in ((first, second, b), (second, first, a)):
            if kind is not None and other is None and isinstance(e, Const) and (
                    e.value == 0 if kind.is_scale else e.value in (float("inf"), float("-inf"))):
                return kind
        raise _Unknown

    def sum(self, a: Kind, b: Kind, sign: int) -> Kind:
        """a + b or a - b."""
        if a is not None and a.is_scale and a == b:
            return a
        if (a is None or not a.is_scale) and (b is None or not b.is_scale):
            return self.together(a, b, sign)
        raise _Unknown

    def product(self, a: Kind, b: Kind, sign: int) -> Kind:
        """a · b or a / b, of scales."""
        if (a is not None and not a.is_scale) or (b is not None and not b.is_scale):
            raise _Unknown
        return self.together(a, b, sign)

    def together(self, a: Kind, b: Kind, sign: int) -> Kind:
        """Two kinds of one form, whose factors of m add up."""
        if b is None:
            return a
        if a is None:
            return replace(b, c=sign * b.c)
        if a.at != b.at:
            raise _Unknown
        c = a.c + sign * b.c
        return replace(a, c=c) if c else None
