"""Gradients of Python functions: derived, written by hand, and checked against finite differences."""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from caten.errors import amount

from .graph import Ref, called
from .structures import mapped, with_parts
from .templates import ByHand
from .tensor import Tensor, gradients, tensor

ROUNDINGS = 4                   # of the values whose difference is taken, those of what they are made of among them


class Func(ABC):
    """A function whose gradient is written by hand. Derive a class with `forward` and `backward`, and call an instance
    of it. The operators in `forward` need not be differentiable."""

    @abstractmethod
    def forward(self, *inputs: Tensor) -> Any:
        """Return the output, or a tuple of outputs."""

    @abstractmethod
    def backward(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor], grads: Sequence[Tensor]) -> Any:
        """Return one gradient for each input, of the shape of the input, or None for zeros. `grads` has one gradient
        for each floating-point output, of its shape, in order. The backward pass raises ValueError if the number of
        gradients or a shape is wrong."""

    def __call__(self, *inputs: Any) -> Any:
        given = [tensor(i) for i in inputs]
        made = self.forward(*given)
        results = made if isinstance(made, tuple) else (made,)

        def backward(before: Sequence[Ref], after: Sequence[Ref], seeds: Sequence[Ref]) -> list[Ref]:
            found = self.backward(*[[Tensor(r) for r in refs] for refs in (before, after, seeds)])
            found = found if isinstance(found, tuple | list) else (found,)
            if len(found) != len(before):
                raise ValueError(f"{type(self).__name__}.backward gives {amount(len(found), 'gradient')} for "
                                 f"{amount(len(before), 'input')}")
            made = [tensor(np.zeros(r.shape, np.float32) if g is None else g).astype(Tensor(r).dtype)._ref
                    for r, g in zip(before, found, strict=True)]
            for n, (r, g) in enumerate(zip(before, made, strict=True)):
                if g.shape != r.shape:
                    raise ValueError(f"{type(self).__name__}.backward gives a gradient of shape {g.shape} for input "
                                     f"{n}, which has the shape {r.shape}")
            return made
        template = ByHand(tuple([r._ref.dtype for r in results]), backward)
        refs = called(template, [*[r._ref for r in results], *[i._ref for i in given]])
        for i in given:
            i.recorded()
        whole = tuple([Tensor(r) for r in refs])
        return whole if isinstance(made, tuple) else whole[0]


def grad(function: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns the gradient of `function`, which must return a scalar, with respect to argument number
    `argnums`; for several numbers, a tuple of gradients. Each gradient has the shape of its argument. That of a tuple,
    list or dict of tensors, arrays and floats is such a structure, with None for what is none of them. Other arguments,
    also by name, become tensors if they are arrays or lists of numbers, and stay as they are if they are not.

    `has_aux`: `function` returns a pair of the scalar and anything else, and the result is the pair of the gradient and
    this.

    ValueError if the function returns no scalar, or no pair where `has_aux` says so, and for an argument of integers;
    IndexError for the number of an argument that is not given by position."""
    both = _with_gradient("grad", function, argnums, has_aux)

    def of(*inputs: Any, **named: Any) -> Any:
        (_, aux), found = both(inputs, named)
        return (found, aux) if has_aux else found
    return of


def value_and_grad(function: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[
        ..., Any]:
    """A function that returns the pair of the value of `function` and its gradient, as `grad` gives it. They are lazy:
    `realize`, a step of an optimizer and `jit` compute them together.

    `has_aux`: `function` returns a pair of the scalar and anything else, which is the value in the result. Errors are
    those of `grad`."""
    both = _with_gradient("value_and_grad", function, argnums, has_aux)

    def of(*inputs: Any, **named: Any) -> Any:
        (value, aux), found = both(inputs, named)
        return (value, aux) if has_aux else value, found
    return of


def _with_gradient(name: str, function: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool) -> Callable[
        [Sequence[Any], Mapping[str, Any]], Any]:
    """A function of the arguments by position and of those by name that returns ((value, aux), gradient)."""
    numbers = [argnums] if isinstance(argnums, int) else list(argnums)

    def of(inputs: Sequence[Any], named: Mapping[str, Any]) -> Any:
        for n in numbers:
            if not -len(inputs) <= n < len(inputs):
                raise IndexError(f"{name}: there is no argument {n} among {amount(len(inputs), 'argument')} by "
                                 f"position")
        wanted = {n % len(inputs) for n in numbers}
        given = [_differentiable(name, v, n) if n in wanted else _argument(v) for n, v in enumerate(inputs)]
        made, aux = function(*given, **{key: _argument(v) for key, v in named.items()}), None
        if has_aux:
            if not isinstance(made, tuple) or len(made) != 2:
                raise ValueError(f"{name}: with has_aux the function returns a pair of a scalar and anything else, not "
                                 f"{made!r}")
            made, aux = made
        if not isinstance(made, Tensor):
            said = " of a pair" if has_aux else ": has_aux=True is for a scalar beside other results"
            raise ValueError(f"{name}: the function returns {made!r}, which is no tensor{said}")
        structures, parts = [given[n] for n in numbers], list[Tensor]()
        mapped(structures, Tensor, parts.append)
        rest = iter(gradients(made, parts))
        found = mapped(structures, object, lambda v: next(rest) if isinstance(v, Tensor) else None)
        return (made, aux), found[0] if isinstance(argnums, int) else tuple(found)
    return of


def _differentiable(name: str, value: Any, number: int) -> Any:
    """An argument with respect to which is differentiated: tensors for its arrays, floats and lists of numbers."""
    parts: list[Tensor] = []
    made = _with_tensors(value, (Tensor, np.ndarray, np.floating, float), parts)
    wrong = next((t for t in parts if t.dtype.kind not in ("float", "complex")), None if parts else value)
    if wrong is not None or not parts:
        raise ValueError(f"{name}: only floats have gradients, and argument {number} is {wrong!r}: "
                         f"Tensor(…, \"float32\") converts")
    return made


def _argument(value: Any) -> Any:
    """Another argument: tensors for its arrays and lists of numbers."""
    return _with_tensors(value, np.ndarray, [])


def _with_tensors(value: Any, kinds: Any, made: list[Tensor]) -> Any:
    """A structure with tensors, which are appended to `made`, for lists of numbers and for values of some kinds."""
    if isinstance(value, kinds) or _is_of_numbers(value):
        made.append(tensor(value))
        return made[-1]
    match value:
        case tuple() | list() | dict():
            return with_parts(value, lambda v: _with_tensors(v, kinds, made))
    return value


def _is_of_numbers(value: Any) -> bool:
    """Is it a list of numbers, or of such lists?"""
    return isinstance(value, list | tuple) and bool(value) and all(
        isinstance(v, int | float | complex | np.generic) or _is_of_numbers(v) for v in value)


def gradcheck(function: Callable[..., Tensor], inputs: Sequence[Any], rtol: float = 1e-6, step: float = 1e-3) -> float:
    """Compare gradients with fourth-order central differences in float64, and return the largest relative error.

    `function` returns one tensor; its sum with random weights is differentiated. `step`: the step of the differences.
    The error of an element is relative to the largest gradient of its input, or to the finite difference if that is
    larger; what rounding makes of a difference is no error. ValueError if it exceeds `rtol`; the message names the
    input and the element."""
    arrays = [np.asarray(i.numpy() if isinstance(i, Tensor) else i, np.float64) for i in inputs]
    given = [Tensor(a) for a in arrays]
    result = function(*given)
    weights = np.random.default_rng(0).uniform(0.5, 1.5, result.shape)

    def total(values: Sequence[np.ndarray]) -> tuple[float, float]:
        """The sum, and that of the absolute values: what it may be rounded by is relative to this."""
        parts = function(*[Tensor(v) for v in values]).numpy() * weights
        return float(parts.sum()), float(np.abs(parts).sum())
    found = [g.numpy() for g in gradients(result, given, Tensor(weights))]
    greatest = 0.0
    for n, array in enumerate(arrays):
        size = max(1e-12, float(np.abs(found[n]).max(initial=0)))
        for at in np.ndindex(array.shape):
            values, sizes = [], []
            for k in (-2, -1, 1, 2):
                moved = array.copy()
                moved[at] += k * step
                value, of_parts = total([*arrays[:n], moved, *arrays[n + 1:]])
                values.append(value)
                sizes.append(of_parts)
            slope = (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * step)
            rounding = ROUNDINGS * np.finfo(np.float64).eps * max(sizes) / step
            error = max(0.0, abs(slope - float(found[n][at])) - rounding) / max(size, abs(slope))
            greatest = max(greatest, error)
            if error > rtol:
                raise ValueError(f"the gradient with respect to input {n} at {at} is {found[n][at]}, "
                                 f"by differences {slope}")
    return greatest
