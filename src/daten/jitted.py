"""`jit`: functions of tensors that are traced at the first call; later calls only run the compiled libraries."""
from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial, update_wrapper
from inspect import Parameter, signature
from typing import Any, overload

import numpy as np

from caten.core.expr import Var as Name
from caten.core.expr import index
from caten.frozen import frozen
from caten.functions.call_keys import dtype_of

from .extents import Extents
from .graph import Leaf, Ref
from .realization import run
from .settings import forgotten_by_use
from .shape_formulas import ShapeFormulas
from .structures import mapped
from .symbolic_sizes import Symbolic, Var, Variables, value_of_all
from .tensor import Tensor
from .tracing import ACTIVE, UNCOMPUTED, KeepsArray, Replay, Source, Trace, give, keep, kept_array

Formulas = tuple[Variables, Sequence[Extents]]              # the sizes that vary, and the shapes of arguments
DynamicShapes = Mapping[str, Mapping[int, Var] | Sequence[Var | None]]


class Jitted:
    """A function made by `jit`. `traces`: its traces by the shapes, types and constants of the arguments."""

    def __init__(self, function: Callable[..., Any], dynamic_shapes: DynamicShapes | None = None) -> None:
        self.function = function
        self.variable = VariableShapes(function, dynamic_shapes or {})
        self.traces: dict[Hashable, _Traced] = {}
        update_wrapper(self, function)
        forgotten_by_use(self.traces.clear)

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        if ACTIVE.get() is not None:                        # it is part of what is traced
            return self.function(*inputs, **named)
        if self.variable:
            return self._of_many(inputs, named)
        arrays: list[np.ndarray] = []
        key = _flat((inputs, named), arrays)
        known = self._fitting(key)
        if known is None:
            made, self.traces[key] = _traced(self.function, inputs, named, arrays)
            return made
        return known.run(arrays)

    def _of_many(self, inputs: Any, named: Any) -> Any:
        """A call of a function with sizes that vary."""
        arrays: list[np.ndarray] = []
        general, sizes = self.variable.of_call(inputs, named, arrays)
        special = {name: n for name, n in sizes.items() if n <= 1}      # an axis of 1 is repeated where others are not
        known = self._fitting((general, tuple(special.items()))) or self._fitting((general, ()))
        if known is None:
            alone = _flat((inputs, named), [])
            known = self._fitting(alone)
        if known is None:
            formulas = self.variable.formulas(inputs, named, sizes, special)
            made, traced = _traced(self.function, inputs, named, arrays, formulas)
            self.traces[(general, tuple(special.items())) if traced.is_general else alone] = traced
            return made
        return known.run(arrays, sizes)

    def _fitting(self, key: Hashable) -> _Traced | None:
        """The trace with this key, if the tensors that it reads in each call still have their shapes and types."""
        known = self.traces.get(key)
        return known if known is not None and known.fits() else None

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return self if owner is None else partial(self, owner)


@overload
def jit(function: Callable[..., Any], *, dynamic_shapes: DynamicShapes | None = None) -> Jitted: ...


@overload
def jit(function: None = None, *, dynamic_shapes: DynamicShapes | None = None) -> Callable[..., Jitted]: ...


def jit(function: Callable[..., Any] | None = None, *, dynamic_shapes: DynamicShapes | None = None) -> Any:
    """Trace `function` at the first call for each combination of argument shapes and types. Later calls run only the
    compiled libraries and skip the Python code. Use it for a training step, or for the generation of one token.

        @jit
        def step(x, y):
            loss = apply("cross_entropy", model(x), y)
            loss.backward()
            optimizer.step(loss)
            return loss

    Arguments are tensors and arrays, and tuples, lists and dicts of them. Other arguments must be hashable; they are
    constants of a trace. The function returns tensors, in such structures too. Parameters, buffers, states and
    settings of optimizers, and random keys are read again in each call; all other tensors, and all results of Python
    code, are those of the first call. A function of `jit` that another one calls becomes part of the other's trace.

    `dynamic_shapes`: for arguments by name, the axes whose extents vary, of each tensor in the argument. One trace and
    one library serve all values of these sizes. If a size is 0 or 1 at the first call, that trace is for this value
    only; the other sizes still vary.

        n = Var("n", 1, 4096)

        @jit(dynamic_shapes={"x": {0: n}, "mask": (n, n)})
        def attend(x, mask): ...

    Raises TypeError if the function asks for the value of a tensor that differs from call to call. Raises ValueError if
    it asks for the value of such a size, if a size is outside the range of its Var, if a parameter has a gradient at
    the end of the function, and if it has one from before where the function adds to it or an optimizer takes it."""
    if function is None:
        return partial(Jitted, dynamic_shapes=dynamic_shapes)
    if not callable(function):
        raise TypeError(f"jit takes a function, not {function!r}")
    return Jitted(function, dynamic_shapes)


class VariableShapes:
    """The axes of arguments whose extents vary: for each name the Var of an axis."""

    def __init__(self, function: Callable[..., Any], given: DynamicShapes) -> None:
        self._signature = signature(function) if given else None
        self._axes: dict[str, dict[int, Var]] = {}
        self.variables: dict[str, Var] = {}
        for name, axes in given.items():
            if self._signature is not None and name not in self._signature.parameters:
                raise ValueError(f"jit: the function has no argument {name!r}: it has "
                                 f"{', '.join(self._signature.parameters) or 'none'}")
            pairs = axes.items() if isinstance(axes, Mapping) else enumerate(axes)
            self._axes[name] = {axis: v for axis, v in pairs if v is not None}
            for axis, v in self._axes[name].items():
                if not isinstance(axis, int) or not isinstance(v, Var):
                    raise TypeError(f"jit: the axes of {name!r} are {{axis: Var}} or a Var or None for each axis, not "
                                    f"{axes!r}")
                if self.variables.setdefault(v.name, v) != v:
                    raise ValueError(f"jit: {v} and {self.variables[v.name]} have one name")

    def __bool__(self) -> bool:
        return bool(self._axes)

    def arguments(self, inputs: Any, named: Any) -> list[tuple[str, Any]]:
        """The arguments by name, in the order of `_flat((inputs, named))`."""
        assert self._signature is not None
        bound = self._signature.bind(*inputs, **named).arguments
        found = list[tuple[str, Any]]()
        kinds = {p.name: p.kind for p in self._signature.parameters.values()}
        for name, value in bound.items():
            if kinds[name] is not Parameter.VAR_KEYWORD and name not in named:
                found.append((name, value))
        return [*found, *named.items()]

    def of_call(self, inputs: Any, named: Any, arrays: list[np.ndarray]) -> tuple[Hashable, dict[str, int]]:
        """The key of the trace of a call, without the sizes that vary, and the values of these. The arrays in the
        arguments are appended to `arrays`."""
        values: dict[str, int] = {}
        kinds = []
        for name, argument in self.arguments(inputs, named):
            own: list[np.ndarray] = []
            kind = _flat(argument, own, of_shape=False)
            kinds.append((name, kind, tuple([self._shape(name, a.shape, values) for a in own])))
            arrays += own
        for name, n in values.items():
            v = self.variables[name]
            if not v.low <= n <= v.high:
                raise ValueError(f"jit: the size {name} is from {v.low} to {v.high}, and not {n}")
        return ("general", tuple(kinds)), values

    def _shape(self, name: str, shape: tuple[int, ...], values: dict[str, int]) -> tuple[int | str, ...]:
        """A shape with the names of the sizes that vary."""
        found: list[int | str] = list(shape)
        for axis, v in self._axes.get(name, {}).items():
            if not -len(shape) <= axis < len(shape):
                raise ValueError(f"jit: {name} has an array of {len(shape)} axes, and none of number {axis}")
            extent = shape[axis]
            if values.setdefault(v.name, extent) != extent:
                raise ValueError(f"jit: the size {v.name} is {values[v.name]}, and {extent} by axis {axis} of {name}")
            found[axis] = v.name
        return tuple(found)

    def formulas(self, inputs: Any, named: Any, sizes: Mapping[str, int], special: Mapping[str, int]) -> Formulas:
        """The sizes in the trace of a call, and the extents of the arrays in its arguments. `special`: sizes that are
        numbers in this trace."""
        shapes: list[Extents] = []
        for name, argument in self.arguments(inputs, named):
            own: list[np.ndarray] = []
            _flat(argument, own)
            shapes += [tuple([Name(e, "i64") if isinstance(e, str) and e not in special else index(n)
                              for e, n in zip(self._shape(name, a.shape, {}), a.shape, strict=True)]) for a in own]
        return Variables({name: v for name, v in self.variables.items() if name not in special}, sizes), shapes


@frozen
class _Traced:
    """`shapes`: of the tensors that stay, as they were. `result`: what the function returns, with sources for
    tensors. `is_general`: for all sizes that vary."""

    trace: Trace
    shapes: tuple[tuple[KeepsArray, tuple[int, ...], str], ...]
    result: Any
    is_general: bool

    def fits(self) -> bool:
        """Do the tensors that are read in each call still have their shapes and types, and is what the trace depends on
        as it was?"""
        return all((r := t._ref).shape == shape and r.dtype == dtype for t, shape, dtype in self.shapes) and all(
            read() == value for read, value in self.trace.assumptions.values())

    def run(self, arrays: Sequence[np.ndarray], sizes: Mapping[str, int] | None = None) -> Any:
        """Run the steps of the trace with new arrays; the result of the function."""
        now = self.trace.replay(arrays, sizes or {})
        return mapped(self.result, (_Result, Symbolic), lambda r: r.tensor(now) if isinstance(r, _Result) else
                       value_of_all(r, now.sizes))


@frozen
class _Result:
    source: Source
    dtype: str

    def tensor(self, now: Replay) -> Tensor:
        """The result of a run."""
        array = self.source(now)
        # A later change of the caller's array is none of it, nor is it what a parameter keeps later.
        array = array.copy() if id(array) in now.given else array.view()
        array.flags.writeable = False
        return Tensor(Ref(Leaf(array, self.dtype)))


def _traced(function: Callable[..., Any], inputs: Any, named: Any, arrays: Sequence[np.ndarray],
            given_formulas: Formulas | None = None) -> tuple[Any, _Traced]:
    # The graph keeps them. Each is an object of its own: one that is given twice may be two at the next call.
    arrays = [a.copy() if a.flags.writeable or a.base is not None else a.view() for a in arrays]
    formulas = None
    if given_formulas is not None:
        variables, extents_of = given_formulas
        formulas = ShapeFormulas(variables)
        for array, extents in zip(arrays, extents_of, strict=True):
            formulas.comes(array, extents)
    _settle()
    trace = Trace(arrays, formulas)
    rest = iter(arrays)
    given, by_name = mapped((inputs, named), (Tensor, np.ndarray), lambda _: Tensor(_leaf(next(rest))))
    token = ACTIVE.set(trace)
    try:
        made = function(*given, **by_name)
        results: list[Tensor] = []
        mapped(made, Tensor, results.append)
        run([t._ref for t in results])
        for tensor in trace.new_gradients():
            raise ValueError(f"jit: a gradient is left in {tensor!r}: let an optimizer take it, set it to None, or "
                             f"return what gradients(loss, parameters) gives")
        for tensor in list(UNCOMPUTED.values()):                # they were changed, and nobody asked for the value
            run([tensor._ref])
            give(tensor, tensor._ref)
        result = mapped(made, (Tensor, Symbolic), lambda t: t if isinstance(t, Symbolic) else
                         _Result(trace.source(t._ref), t._ref.dtype))
        made = mapped(made, Symbolic, value_of_all)
    except BaseException:
        for tensor in trace.new_gradients():                    # of a graph that nobody will run
            tensor.grad = None
        raise
    finally:
        ACTIVE.reset(token)
    shapes = tuple([(t, t._ref.shape, t._ref.dtype) for t, _ in trace.held.values()])
    trace.formulas = None                                   # what they hold is needed by no run
    trace.assigned.clear()
    return made, _Traced(trace, shapes, result, formulas is not None and not formulas.degenerate)


def _settle() -> None:
    """Compute what tensors that stay have been set to: a trace, which reads them in each call, begins with the values
    that they have, and not with how these are computed from those before."""
    waiting = list(UNCOMPUTED.values())
    run([t._ref for t in waiting])
    for t in waiting:
        keep(t, kept_array(t))


def _leaf(array: np.ndarray) -> Ref:
    name = dtype_of(array)
    if name is None:
        raise TypeError(f"no tensor has elements of type {array.dtype}")
    return Ref(Leaf(array, name))


def _flat(value: Any, arrays: list[np.ndarray], of_shape: bool = True) -> Hashable:
    """The key of the trace of a call. The arrays in it are appended to `arrays`. `of_shape`: with their shapes."""
    match value:
        case Tensor():
            arrays.append(kept_array(value))
            return "tensor", value._ref.dtype, value._ref.shape if of_shape else value.ndim
        case np.ndarray():
            arrays.append(np.asarray(value, order="C"))
            return "array", value.dtype.str, value.shape if of_shape else value.ndim
        case tuple() | list():
            return type(value), tuple([_flat(v, arrays, of_shape) for v in value])
        case dict():
            return dict, tuple([(k, _flat(v, arrays, of_shape)) for k, v in value.items()])
        case float() | complex() | np.inexact():            # -0.0 == 0.0, and a NaN is equal to none
            return type(value), repr(value)
        case Hashable():
            return type(value), value
    raise TypeError(f"jit takes tensors, arrays and hashable values, not {value!r}")
