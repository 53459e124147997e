"""What is said about arrays whose extents an operator refuses: its arguments and their axes, and not the names of sizes
that it has inside."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from caten.core.expr import Const, Expr, Op, Var
from caten.core.node import substitute
from caten.core.size_formula import names
from caten.errors import CatenError, error
from caten.loop.affine import canonical

from .symbolic_sizes import text_of

# What the left side has to be, by the operator of a condition, and the operator for the sides exchanged.
RELATIONS = {"eq": "", "ne": "other than ", "le": "at most ", "lt": "less than ", "ge": "at least ",
             "gt": "greater than "}
EXCHANGED = {"eq": "eq", "ne": "ne", "le": "ge", "lt": "gt", "ge": "le", "gt": "lt"}


class Axes:
    """The axes of the inputs of an operator, by the sizes that are their extents."""

    def __init__(self, inputs: Sequence[str], shapes: Sequence[Sequence[Expr]]) -> None:
        self._of: dict[str, str] = {}
        axes = [(f"axis {axis} of {name}", extent) for name, shape in zip(inputs, shapes, strict=True)
                for axis, extent in enumerate(shape)]
        for e, own in [*[(e, own) for own, e in axes], *[(canonical(e), own) for own, e in axes]]:
            if isinstance(e, Var):
                self._of.setdefault(e.name, own)

    def unmet(self, operator: str, condition: Expr, sizes: Mapping[str, int]) -> CatenError:
        """E675: a condition over sizes does not hold for these."""
        if not isinstance(condition, Op) or condition.fn not in RELATIONS:
            what = f"{self._text(condition)} does not hold"
        else:
            fn, (left, right) = condition.fn, condition.args
            if isinstance(left, Const):
                fn, left, right = EXCHANGED[fn], right, left
            relation = "equal to " if fn == "eq" and not isinstance(right, Const) else RELATIONS[fn]
            what = f"{self._text(left)} has to be {relation}{self._text(right)}"
            if isinstance(left, Var) and isinstance(right, Const):
                return error("E675", f"{operator}: {what}, and is {sizes[left.name]}")
        return error("E675", f"{operator}: {what}{self._values(condition, sizes=sizes)}")

    def differs(self, operator: str, axis: str, extent: int, formula: Expr, sizes: Mapping[str, int]) -> CatenError:
        """E675: an extent is not what it has to be by other axes."""
        e = canonical(formula)
        if isinstance(e, Const):
            return error("E675", f"{operator}: {axis} has to be {e.value}, and is {extent}")
        return error("E675", f"{operator}: {axis} has to be equal to {self._text(e)}"
                             f"{self._values(e, sizes=sizes, before=f'{axis} is {extent}')}")

    def negative(self, operator: str, result: str, extents: Sequence[Expr], shape: Sequence[int],
                 sizes: Mapping[str, int]) -> CatenError:
        """E675: a result would have a negative extent."""
        wrong = [e for e, n in zip(extents, shape, strict=True) if n < 0]
        return error("E675", f"{operator}: {result} would have the shape {tuple(shape)}"
                             f"{self._values(*wrong, sizes=sizes)}")

    def _text(self, e: Expr) -> str:
        return text_of(substitute(e, {Var(n, "i64"): Var(own, "i64") for n, own in self._of.items()}))

    def _values(self, *formulas: Expr, sizes: Mapping[str, int], before: str = "") -> str:
        read = dict.fromkeys([n for e in formulas for n in names(e)])
        values = [*[before] * bool(before), *[f"{self._of.get(name, name)} is {sizes[name]}" for name in read]]
        return f": {', '.join(values)}" if values else ""
