"""Train a program or a module on arrays, in batches of random order."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from . import optim
from .graph import Ref, in_order
from .jit import jit
from .realization import run
from .tensor import Tensor

OPTIMIZERS = {"sgd": optim.SGD, "adam": optim.Adam, "adamw": optim.AdamW, "lion": optim.Lion}


def batches(data: Mapping[str, np.ndarray], size: int, draw: np.random.Generator) -> Iterator[dict[str, np.ndarray]]:
    """Yield the rows of arrays in random order, in batches of `size` rows; the last batch may be smaller."""
    count = len(next(iter(data.values())))
    order = draw.permutation(count)
    for start in range(0, count, size):
        yield {name: values[order[start:start + size]] for name, values in data.items()}


def epoch(loss_of: Callable[[dict[str, np.ndarray]], Tensor], optimizer: optim.Optimizer,
          data: Mapping[str, np.ndarray], batch: int, draw: np.random.Generator, clip: float = 0.0,
          find_nan: bool = False,
          step: Callable[[], object] = lambda: None) -> float:
    """Train for one pass over the data, and return the mean loss. `clip`: the largest global L2 norm of the gradients,
    0 for no limit. `find_nan`: raise FloatingPointError if the loss is NaN; the message names the first operator that
    produced a NaN. `step` is called after each batch."""
    @jit
    def changed(rows: dict[str, Any]) -> Tensor:
        loss = loss_of(rows)
        loss.backward()
        if clip:
            optim.clip_norm(optimizer.parameters, clip)
        optimizer.step(loss)
        return loss
    total, count = 0.0, 0
    for rows in batches(data, batch, draw):
        number = len(next(iter(rows.values())))
        before = [p._ref for p in optimizer.parameters]
        value = changed(rows).item()
        if find_nan and math.isnan(value):
            for p, old in zip(optimizer.parameters, before, strict=True):
                p._ref = old
            raise FloatingPointError(f"the loss is no number: {first_nan(loss_of(rows)._ref)}")
        total, count = total + value * number, count + number
        step()
    return total / max(1, count)


def first_nan(ref: Ref) -> str:
    """A text about the first operator of a graph that produced a NaN, with the types and shapes of its inputs."""
    for call in list(in_order([ref])):
        results = [Ref(call, n) for n in range(len(call.shapes))]
        run(results)
        if any(_has_nan(r) for r in results):
            given = ", ".join(f"{r.dtype}{list(r.shape)}" for r in call.inputs)
            how = "of inputs without NaN" if not any(_has_nan(r) for r in call.inputs) else "of an input that has NaN"
            return f"'{call.template.name}' makes NaN {how}: {given}"
    return "no operator makes NaN when they are computed one by one"


def _has_nan(r: Ref) -> bool:
    return r.array is not None and r.array.dtype.kind in "fc" and bool(np.isnan(r.array).any())


def optimizer_named(name: str, parameters: Sequence[Tensor], **given: Any) -> optim.Optimizer:
    """The optimizer with this name. KeyError for an unknown name."""
    made: optim.Optimizer = OPTIMIZERS[name](parameters, **given)
    return made


__all__ = ["OPTIMIZERS", "batches", "epoch", "first_nan", "optimizer_named"]
