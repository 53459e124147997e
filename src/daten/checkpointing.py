"""Gradient checkpointing: parts of a graph that backward computes again instead of storing their intermediate
values."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from caten.core.dtypes import is_float

from .backward import differentiated
from .graph import NUMBERS, Call, Constant, Ref, called, in_order, is_there, stops_gradients
from .templates import Barrier, ByHand
from .tensor import Tensor, tensor


def checkpoint(function: Callable[..., Any]) -> Callable[..., Any]:
    """Gradient checkpointing (Chen et al., Training deep nets with sublinear memory cost, 2016): only the inputs of
    `function` are kept for the backward pass. Intermediate values are not stored; backward computes them a second time.

    `function` takes tensors and returns a tensor or a tuple of tensors. Python calls it once; the second time the graph
    is repeated with the same random numbers. Tensors that it uses without taking them as arguments, such as the
    parameters of a layer, get gradients too."""
    def kept(*inputs: Any) -> Any:
        given = [tensor(i) for i in inputs]
        for i in given:
            i.recorded()
        first = next(NUMBERS)
        made = function(*given)
        results = [r._ref for r in (made if isinstance(made, tuple) else (made,))]
        part = _Part(results, [i._ref for i in given], first)
        refs = called(ByHand(tuple([r.dtype for r in results]), part.backward), [*results, *part.inputs])
        whole = tuple([Tensor(r) for r in refs])
        return whole if isinstance(made, tuple) else whole[0]
    return kept


class _Part:
    """A part of a graph, from its inputs to its results. `given`: the arguments. Further inputs are the values that the
    part reads and that operators with numbers below `first` made."""

    def __init__(self, results: Sequence[Ref], given: Sequence[Ref], first: int) -> None:
        def is_outside(r: Ref) -> bool:
            return isinstance(r.node, Call) and (r.node.number < first or (stops_gradients(r) and is_there(r)))
        self.results = tuple(results)
        self.calls = list(in_order(results, is_outside))
        own = list(dict.fromkeys([r for r in given if not isinstance(r.node, Constant)]))
        self.given = len(own)
        inside = {id(call) for call in self.calls}
        read = [r for call in self.calls for r in call.inputs] + list(results)
        self.inputs = list(dict.fromkeys([*own, *[r for r in read if id(r.node) not in inside
                                                  and not isinstance(r.node, Constant)]]))

    def backward(self, before: Sequence[Ref], after: Sequence[Ref], seeds: Sequence[Ref]) -> list[Ref]:
        """The gradients with respect to the inputs. `seeds`: the gradients of the floating-point results. The part is
        computed again from its inputs behind a barrier, so that this happens after the seeds are computed and is not
        merged with the first computation."""
        barred = [*before[:self.given], *[s for s in seeds if not isinstance(s.node, Constant)]]
        apart = dict(zip(barred, called(Barrier(tuple([r.dtype for r in barred])), barred), strict=True))
        again = [apart.get(r, r) for r in before]
        new = dict(zip(self.inputs, again, strict=True))
        for call in self.calls:
            made = called(call.template, [new.get(r, r) for r in call.inputs])
            for n, r in enumerate(made):
                new[Ref(call, n)] = r
                assert isinstance(r.node, Call)
                r.node.stops = call.stops
        floats = [new.get(r, r) for r in self.results if is_float(r.dtype)]
        return differentiated(floats, again, [apart.get(s, s) for s in seeds], is_partial=True)
