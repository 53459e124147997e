"""Recurrent layers. The graph is unrolled: it has the operators of all steps; the compiled library has each kernel
once."""
from __future__ import annotations

from math import sqrt
from typing import Any

from .. import random
from ..element_types import dtype as element_type
from ..element_types import type_named
from ..tensor import Tensor, apply
from .layers import parameter
from .module import Module

State = tuple[Tensor, ...]


class _Cell(Module):
    gates = states = 1

    def __init__(self, inputs: int, width: int) -> None:
        bound = 1 / sqrt(width)
        self._width = width
        self.weight_ih = parameter(random.current().uniform((self.gates * width, inputs), bound))
        self.weight_hh = parameter(random.current().uniform((self.gates * width, width), bound))
        self.bias_ih = parameter(random.current().uniform((self.gates * width,), bound))
        self.bias_hh = parameter(random.current().uniform((self.gates * width,), bound))

    def _gates(self, x: Tensor, weight: Tensor, bias: Tensor) -> list[Tensor]:
        made = x @ weight.T + bias
        return [made[:, n * self._width:(n + 1) * self._width] for n in range(self.gates)]

    def start(self, batch: int, dtype: Any = "float32") -> State:
        """The state at the start of a sequence: zeros."""
        from ..array_api.creation_functions import zeros  # imported here: few networks have recurrent layers
        return (zeros((batch, self._width), dtype=element_type(type_named(dtype))),) * self.states

    def first(self, x: Tensor) -> State:
        """The state in front of x[batch, inputs]: zeros, of its type."""
        return self.start(x.shape[0], x.dtype if x.dtype.kind == "float" else self.weight_ih.dtype)


class LSTMCell(_Cell):
    """One step of a long short-term memory (Hochreiter and Schmidhuber, 1997; with the forget gate of Gers et al.,
    1999): c' = σ(f) · c + σ(i) · tanh(g), h' = σ(o) · tanh(c').

    weight_ih[4 width, inputs] and weight_hh[4 width, width] have the rows of i, f, g and o in this order, as in
    PyTorch. All parameters start uniformly distributed in ±1/√width."""

    gates, states = 4, 2

    def forward(self, x: Tensor, state: State | None = None) -> State:
        """x[batch, inputs] and the state (h, c), each [batch, width], to the next state. `state` None: zeros."""
        h, c = self.first(x) if state is None else state
        ours, theirs = self._gates(x, self.weight_ih, self.bias_ih), self._gates(h, self.weight_hh, self.bias_hh)
        i, f, g, o = [a + b for a, b in zip(ours, theirs, strict=True)]
        c = apply("sigmoid", f) * c + apply("sigmoid", i) * apply("tanh", g)
        return apply("sigmoid", o) * apply("tanh", c), c


class GRUCell(_Cell):
    """One step of a gated recurrent unit (Cho et al., 2014): h' = (1 - z) · n + z · h, with the update gate z and the
    new value n. The reset gate is applied after the matrix product, as in PyTorch.

    weight_ih[3 width, inputs] and weight_hh[3 width, width] have the rows of the reset gate, the update gate and the
    new value in this order. All parameters start uniformly distributed in ±1/√width."""

    gates = 3

    def forward(self, x: Tensor, state: State | None = None) -> State:
        """x[batch, inputs] and the state (h,), which is [batch, width], to the next state. `state` None: zeros."""
        (h,) = self.first(x) if state is None else state
        ours, theirs = self._gates(x, self.weight_ih, self.bias_ih), self._gates(h, self.weight_hh, self.bias_hh)
        reset, update = [apply("sigmoid", a + b) for a, b in zip(ours[:2], theirs[:2], strict=True)]
        new = apply("tanh", ours[2] + reset * theirs[2])
        return ((1 - update) * new + update * h,)


class _Recurrent(Module):
    cell: LSTMCell | GRUCell

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """x[batch, time, inputs] to the pair of h[batch, time, width], for all steps, and the last state. `state`: the
        first state, as the cell takes it; zeros without it. ValueError for another number of axes and for no steps."""
        if x.ndim != 3 or x._ref.shape[1] == 0:
            raise ValueError(f"{type(self).__name__} takes x[batch, time, inputs] with one step or more, not {x!r}")
        current = self.cell.first(x) if state is None else state
        outputs: list[Tensor] = []
        for t in range(x.shape[1]):
            current = self.cell(x[:, t], current)
            outputs.append(current[0].reshape(x.shape[0], 1, -1))
        return _joined(outputs), current


class LSTM(_Recurrent):
    """An `LSTMCell` (the attribute `cell`) over a sequence."""

    def __init__(self, inputs: int, width: int) -> None:
        self.cell = LSTMCell(inputs, width)


class GRU(_Recurrent):
    """A `GRUCell` (the attribute `cell`) over a sequence."""

    def __init__(self, inputs: int, width: int) -> None:
        self.cell = GRUCell(inputs, width)


def _joined(parts: list[Tensor]) -> Tensor:
    """The parts, concatenated along the time axis in pairs: the depth of the graph is logarithmic in their number."""
    while len(parts) > 1:
        pairs = [apply("concatenate", a, b, axis=1) for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = pairs + (parts[-1:] if len(parts) % 2 else [])
    return parts[0]
