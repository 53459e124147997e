"""Recurrent layers, step by step: a graph has the operators of all steps, the library each kernel once."""
from __future__ import annotations

from abc import abstractmethod
from math import sqrt

import numpy as np

from .. import random
from ..tensor import Tensor, apply
from .layers import parameter
from .module import Module

State = tuple[Tensor, ...]


class _Cell(Module):
    gates = 1

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

    @abstractmethod
    def start(self, batch: int) -> State:
        """Zeros, where a sequence begins."""


class LSTMCell(_Cell):
    """A cell with a long short-term memory (Hochreiter and Schmidhuber, 1997; with the forget gate of Gers, 1999)."""

    gates = 4

    def start(self, batch: int) -> State:
        """Zeros, where a sequence begins."""
        zeros = Tensor(np.zeros((batch, self._width), np.float32))
        return zeros, zeros

    def forward(self, x: Tensor, state: State) -> State:
        """x[batch, inputs] and the state (h, c) to the next state."""
        h, c = state
        ours, theirs = self._gates(x, self.weight_ih, self.bias_ih), self._gates(h, self.weight_hh, self.bias_hh)
        i, f, g, o = [a + b for a, b in zip(ours, theirs, strict=True)]
        c = apply("sigmoid", f) * c + apply("sigmoid", i) * apply("tanh", g)
        return apply("sigmoid", o) * apply("tanh", c), c


class GRUCell(_Cell):
    """A gated recurrent unit (Cho et al., 2014)."""

    gates = 3

    def start(self, batch: int) -> State:
        """Zeros, where a sequence begins."""
        return (Tensor(np.zeros((batch, self._width), np.float32)),)

    def forward(self, x: Tensor, state: State) -> State:
        """x[batch, inputs] and the state (h,) to the next state."""
        (h,) = state
        ours, theirs = self._gates(x, self.weight_ih, self.bias_ih), self._gates(h, self.weight_hh, self.bias_hh)
        reset, update = [apply("sigmoid", a + b) for a, b in zip(ours[:2], theirs[:2], strict=True)]
        new = apply("tanh", ours[2] + reset * theirs[2])
        return ((1 - update) * new + update * h,)


class _Recurrent(Module):
    cell: LSTMCell | GRUCell

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """x[batch, time, inputs] to h of each step, [batch, time, width], and the last state."""
        current = self.cell.start(x.shape[0]) if state is None else state
        outputs: list[Tensor] = []
        for t in range(x.shape[1]):
            current = self.cell(x[:, t], current)
            outputs.append(current[0].reshape(x.shape[0], 1, -1))
        return _joined(outputs), current


class LSTM(_Recurrent):
    """A long short-term memory over a sequence."""

    def __init__(self, inputs: int, width: int) -> None:
        self.cell = LSTMCell(inputs, width)


class GRU(_Recurrent):
    """Gated recurrent units over a sequence."""

    def __init__(self, inputs: int, width: int) -> None:
        self.cell = GRUCell(inputs, width)


def _joined(parts: list[Tensor]) -> Tensor:
    """Joined along the time, halves first: the depth is the logarithm of the length."""
    while len(parts) > 1:
        pairs = [apply("concatenate", a, b, axis=1) for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = pairs + (parts[-1:] if len(parts) % 2 else [])
    return parts[0]
