"""Functions of tensors that are traced once, and then only run."""
from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial, update_wrapper
from typing import Any

import numpy as np

from caten.functions.call_keys import dtype_of

from .graph import Leaf, Ref
from .realization import run
from .settings import forgotten_by_use
from .tensor import Tensor
from .tracing import ACTIVE, Replay, Source, Trace, give, kept_array


class Jitted:
    """A function that `jit` has made: `traces` by the kinds of its arguments."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.traces: dict[Hashable, _Traced] = {}
        update_wrapper(self, function)
        forgotten_by_use(self.traces.clear)

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        arrays: list[np.ndarray] = []
        key = _flat((inputs, named), arrays)
        known = self.traces.get(key)
        if known is None or not known.fits():
            made, self.traces[key] = _traced(self.function, inputs, named, arrays)
            return made
        return known.run(arrays)

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return self if owner is None else partial(self, owner)


def jit(function: Callable[..., Any]) -> Jitted:
    """A function of tensors, traced at the first call with arguments of some shapes and types; from then on only the
    libraries are called that it called, without its Python: a step of training, a token of a model.

        @jit
        def step(x, y):
            loss = apply("cross_entropy", model(x), y)
            loss.backward()
            optimizer.step(loss)
            return loss

    Arguments are tensors and arrays, and tuples, lists and dicts of them; others must be hashable, and are constants of
    a trace. It returns tensors, in such structures too. Parameters, buffers and the states of optimizers are read anew
    each time, and so are learning rates and random keys; other tensors and all Python are as in the first call.
    TypeError where the function asks for the value of a tensor that differs from call to call; ValueError where it
    leaves a gradient in a parameter."""
    return Jitted(function)


@dataclass(frozen=True)
class _Traced:
    """`shapes`: of the tensors that stay, as they were. `result`: what the function returns, with sources for
    tensors."""

    trace: Trace
    shapes: tuple[tuple[Tensor, tuple[int, ...], str], ...]
    result: Any

    def fits(self) -> bool:
        """Have the tensors that stay the shapes and types that they had?"""
        return all(t.shape == shape and t._ref.dtype == dtype for t, shape, dtype in self.shapes)

    def run(self, arrays: Sequence[np.ndarray]) -> Any:
        """Do it again."""
        now = Replay(arrays)
        for step in self.trace.steps:
            step(now)
        return _mapped(self.result, _Result, lambda r: r.tensor(now))


@dataclass(frozen=True)
class _Result:
    source: Source
    dtype: str

    def tensor(self, now: Replay) -> Tensor:
        """The result of a run."""
        array = self.source(now)
        if any(array is a for a in now.arguments):
            array = array.copy()                            # a later change of the caller's array is none of it
        array.flags.writeable = False
        return Tensor(Ref(Leaf(array, self.dtype)))


def _traced(function: Callable[..., Any], inputs: Any, named: Any, arrays: Sequence[np.ndarray]) -> tuple[Any, _Traced]:
    arrays = [a.copy() if a.flags.writeable or a.base is not None else a for a in arrays]         # the graph keeps them
    trace = Trace(arrays)
    rest = iter(arrays)
    given, by_name = _mapped((inputs, named), (Tensor, np.ndarray), lambda _: Tensor(_leaf(next(rest))))
    token = ACTIVE.set(trace)
    try:
        made = function(*given, **by_name)
        results: list[Tensor] = []
        _mapped(made, Tensor, results.append)
        run([t._ref for t in results])
        for tensor, leaf in list(trace.held.values()):
            if tensor.grad is not None:
                raise ValueError(f"jit: a gradient is left in {tensor!r}: let an optimizer take it, or return it")
            if tensor._ref.node is not leaf:                     # it was changed, and nobody asked for the value
                run([tensor._ref])
                give(tensor, tensor._ref)
        result = _mapped(made, Tensor, lambda t: _Result(trace.source(t._ref), t._ref.dtype))
    finally:
        ACTIVE.reset(token)
    shapes = tuple([(t, t.shape, t._ref.dtype) for t, _ in trace.held.values()])
    return made, _Traced(trace, shapes, result)


def _leaf(array: np.ndarray) -> Ref:
    name = dtype_of(array)
    if name is None:
        raise TypeError(f"no tensor has elements of type {array.dtype}")
    return Ref(Leaf(array, name))


def _flat(value: Any, arrays: list[np.ndarray]) -> Hashable:
    """What the trace of a call depends on. The arrays in it are added to `arrays`."""
    match value:
        case Tensor():
            arrays.append(kept_array(value))
            return "tensor", value._ref.dtype, value.shape
        case np.ndarray():
            arrays.append(np.ascontiguousarray(value))
            return "array", value.dtype.str, value.shape
        case tuple() | list():
            return type(value), tuple([_flat(v, arrays) for v in value])
        case dict():
            return dict, tuple([(k, _flat(v, arrays)) for k, v in value.items()])
        case Hashable():
            return type(value), value
    raise TypeError(f"jit takes tensors, arrays and hashable values, not {value!r}")


def _mapped(value: Any, kind: Any, change: Callable[[Any], Any]) -> Any:
    """A structure with other values in the place of some."""
    match value:
        case _ if isinstance(value, kind):
            return change(value)
        case tuple() | list():
            parts = [_mapped(v, kind, change) for v in value]
            return parts if isinstance(value, list) else tuple(parts)
        case dict():
            return {k: _mapped(v, kind, change) for k, v in value.items()}
    return value
