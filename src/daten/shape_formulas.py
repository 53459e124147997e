"""The shapes of a trace as formulas of the sizes that vary, beside the numbers that they are in the call that is
traced. What a compiled graph takes for granted about its extents has to follow from the formulas."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from caten.core.expr import Const, Expr, index
from caten.core.expr import Var as Name
from caten.core.node import substitute

from .extents import Extents, Meanings, Recipe, number_of, operator_sizes
from .graph import Call, Constant, Ref, in_order
from .symbolic_sizes import Variables
from .templates import Barrier, ByHand, Reshape, Template


class ShapeFormulas:
    """The formulas of arrays and results. `degenerate`: an extent that varies is 0 or 1 in this call, which may mean
    other operators (an axis of 1 is repeated), and so the trace is for these sizes alone."""

    def __init__(self, variables: Variables) -> None:
        self.variables = variables
        self.degenerate = False
        self._arrays: dict[int, tuple[np.ndarray, Extents]] = {}        # by id; the array keeps it taken
        self._results: dict[tuple[int, int], tuple[Call, Extents]] = {}

    def comes(self, array: np.ndarray, extents: Extents) -> None:
        """An array has these extents."""
        self._arrays[id(array)] = array, extents

    def shape(self, r: Ref) -> tuple[Any, ...]:
        """The shape of a result, with sizes that vary."""
        return tuple([self.variables.size(e) for e in self.of(r)])

    def of(self, r: Ref) -> Extents:
        """The extents of an array or a result."""
        if isinstance(r.node, Constant):
            return ()
        array = r.array
        if array is not None:
            known = self._arrays.get(id(array))
            return known[1] if known is not None else tuple([index(e) for e in r.shape])
        if (id(r.node), r.index) not in self._results:
            for call in in_order([r], self._is_known):
                for n, extents in enumerate(self._computed(call)):
                    self._results[id(call), n] = call, extents
        return self._results[id(r.node), r.index][1]

    def _is_known(self, r: Ref) -> bool:
        return r.array is not None or (id(r.node), r.index) in self._results

    def _computed(self, call: Call) -> Sequence[Extents]:
        """The extents of the results of an operator."""
        template = call.template
        if isinstance(template, Template):
            self._begins(call.inputs)
            sizes = operator_sizes(template, call.inputs, [self.of(r) for r in call.inputs], self._unite, self._fix)
            return [sizes.of(shape) for shape in template.output_shapes]
        if isinstance(template, ByHand | Barrier):
            return [self.of(r) for r in call.inputs[:len(call.shapes)]]
        return [self._reshaped(call, template)]

    def _reshaped(self, call: Call, template: Reshape) -> Extents:
        if template.formulas is None:
            self._fix(*self.of(call.inputs[0]))
        return template.formulas or tuple([index(e) for e in call.shapes[0]])

    def _unite(self, a: Expr, b: Expr) -> None:
        if not self.degenerate:
            self.variables.unite(a, b)

    def _fix(self, *formulas: Expr) -> None:
        if not self.degenerate:
            self.variables.fix(*formulas)

    def _begins(self, inputs: Sequence[Ref]) -> None:
        """An operator or a graph is over these."""
        if any(e <= 1 and not isinstance(f, Const) for r in inputs for f, e in zip(self.of(r), r.shape, strict=True)):
            self.degenerate = True

    def meanings(self, wanted: Sequence[Ref], leaves: Sequence[Ref], calls: Sequence[Call]) -> Meanings | None:
        """The formulas of a graph that is to run; none if it is for this call alone."""
        self._begins(leaves)
        for r in wanted:
            self.of(r)
        if self.degenerate:
            return None
        reshapes = {id(c): self.of(Ref(c)) for c in calls if isinstance(c.template, Reshape)}
        return Meanings([self.of(r) for r in leaves], reshapes, self.variables.equal)


def takes_for_equal(meanings: Meanings, recipe: Recipe, leaves: Sequence[Ref],
                    calls: Sequence[Call]) -> list[tuple[Expr, Expr]]:
    """What a compiled graph takes for equal, and is not for all values of the sizes."""
    formulas = [f for r, meant in zip(leaves, meanings.of_leaves, strict=True)
                for f, e in zip(meant, r.shape, strict=True) if e != 1]
    equal: list[tuple[Expr, Expr]] = [(formulas[number_of(name)], index(n)) for name, n in recipe.numbers.items()]
    equal += [(formulas[number_of(a)], formulas[number_of(b)]) for a, b in recipe.pairs]
    reshapes = [meanings.of_reshapes[id(c)] for c in calls if isinstance(c.template, Reshape)]
    for split, meant in zip(recipe.splits, reshapes, strict=True):
        for e, f in zip(split, meant, strict=True):
            own = {} if e is None else {Name(n, "i64"): formulas[number_of(n)] for n in e.variables}
            equal.append((index(1) if e is None else substitute(e, own), f))
    return [(a, b) for a, b in equal if not meanings.equal(a, b)]
