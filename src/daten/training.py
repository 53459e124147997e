"""Train a program or a module on arrays, in batches of random order."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from caten.core.numpy_types import kind_of

from . import optim
from .graph import Ref, in_order
from .jitted import jit
from .realization import run
from .tensor import Tensor, gradients

OPTIMIZERS = {"sgd": optim.SGD, "adam": optim.Adam, "adamw": optim.AdamW, "lion": optim.Lion,
              "rmsprop": optim.RMSprop}


def batches(data: Mapping[str, np.ndarray], size: int, draw: np.random.Generator) -> Iterator[dict[str, np.ndarray]]:
    """Yield the rows of arrays in random order, in batches of `size` rows; the last batch may be smaller."""
    count = len(next(iter(data.values())))
    order = draw.permutation(count)
    for start in range(0, count, size):
        yield {name: values[order[start:start + size]] for name, values in data.items()}


class NotFinite(FloatingPointError):
    """A loss or a parameter that is NaN or infinite. `hint`: what to do about it."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def epoch(loss_of: Callable[[dict[str, np.ndarray]], Tensor], optimizer: optim.Optimizer,
          data: Mapping[str, np.ndarray], batch: int, draw: np.random.Generator, clip: float = 0.0,
          find_nan: bool = False,
          step: Callable[[], object] = lambda: None) -> float:
    """Train for one pass over the data, and return the mean loss. `clip`: the largest global L2 norm of the gradients,
    0 for no limit. `find_nan`: look at the parameters after each batch, and not only after the last one. `step` is
    called after each batch.

    NotFinite for a loss and for a parameter that is NaN or infinite; with `find_nan` the parameters are then those
    before the batch, and the message names the first operator that makes such a value."""
    @jit
    def changed(rows: dict[str, Any]) -> Tensor:
        loss = loss_of(rows)
        loss.backward()
        if clip:
            optim.clip_norm(optimizer.parameters, clip)
        optimizer.step(loss)
        return loss
    total, count = 0.0, 0
    for n, rows in enumerate(batches(data, batch, draw)):
        number = len(next(iter(rows.values())))
        before = [p._ref for p in optimizer.parameters]
        value = changed(rows).item()
        if not math.isfinite(value) or (find_nan and not _are_finite(optimizer.parameters)):
            what = f"batch {n + 1}: " + ("the loss is finite, but not the parameters after the step"
                                        if math.isfinite(value) else f"the loss is {value}")
            if not find_nan:
                raise NotFinite(what, _hint(rows, "--find-nan tells which operator makes it; "))
            for p, old in zip(optimizer.parameters, before, strict=True):
                p._ref = old
            loss = loss_of(rows)
            made = gradients(loss, optimizer.parameters) if math.isfinite(value) else [loss]
            raise NotFinite(f"{what}; {first_not_finite([t._ref for t in made])}", _hint(rows))
        total, count = total + value * number, count + number
        step()
    if not _are_finite(optimizer.parameters):
        raise NotFinite("the losses are finite, but not the parameters after the last step",
                        _hint(data, "--find-nan tells after which batch; "))
    return total / max(1, count)


def _are_finite(tensors: Sequence[Tensor]) -> bool:
    return all(_all_finite(t.numpy()) for t in tensors)


def _all_finite(values: np.ndarray) -> bool:
    return kind_of(values.dtype) not in "fc" or bool(np.isfinite(values).all())


def _hint(rows: Mapping[str, np.ndarray], before: str = "") -> str:
    """What to do about a value that is not finite: it may be one of the data."""
    for name, values in rows.items():
        if not _all_finite(values):
            what = "NaN" if np.isnan(values).any() else "an infinite number"
            return f"the data has {what}, in '{name}': remove these rows, or replace the values"
    return f"{before}a smaller learning rate, or clip in [train], may help"


def first_not_finite(refs: Sequence[Ref]) -> str:
    """A text about the first operator of a graph that made a NaN, or an infinite number if there is no NaN, with the
    types and shapes of its inputs."""
    order = list(in_order(refs))                             # of what is not computed yet
    for call in order:
        run([Ref(call, n) for n in range(len(call.shapes))])
    for what, is_it in (("NaN", np.isnan), ("an infinite number", np.isinf)):
        for call in order:
            if any(_has(Ref(call, n), is_it) for n in range(len(call.shapes))):
                given = ", ".join(f"{r.dtype}{list(r.shape)}" for r in call.inputs)
                how = "an input that has" if any(_has(r, is_it) for r in call.inputs) else "inputs without"
                return f"'{call.template.name}' makes {what} of {how} {what}: {given}"
    return "each operator by itself makes finite numbers"


def _has(r: Ref, is_it: Callable[[np.ndarray], np.ndarray]) -> bool:
    return r.array is not None and kind_of(r.array.dtype) in "fc" and bool(is_it(r.array).any())


def optimizer_named(name: str, parameters: Sequence[Tensor], **given: Any) -> optim.Optimizer:
    """The optimizer with this name. KeyError for an unknown name."""
    made: optim.Optimizer = OPTIMIZERS[name](parameters, **given)
    return made


__all__ = ["OPTIMIZERS", "NotFinite", "batches", "epoch", "first_not_finite", "optimizer_named"]
