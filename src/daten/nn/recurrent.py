"""Recurrent layers. The graph of a short sequence is unrolled: it has the operators of all steps, which are kernels as
for one step. That of a long one has an operator of the library, whose loop over the steps is compiled once."""
from __future__ import annotations

from abc import abstractmethod
from math import sqrt
from typing import Any

from caten.errors import amount

from .. import random
from ..element_types import dtype as element_type
from ..element_types import type_named
from ..tensor import Tensor, apply
from .layers import check_counts, parameter
from .module import Module

State = tuple[Tensor, ...]
UNROLLED = 16           # steps: their kernels run up to twice as fast, but planning takes longer with each step


class _Cell(Module):
    gates = states = 1

    def __init__(self, inputs: int, width: int) -> None:
        check_counts(inputs=inputs, width=width)
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

    def before(self, x: Tensor, state: State | Tensor | None) -> State:
        """The state in front of x[batch, inputs], as it is given; a state of one tensor may be this tensor. ValueError
        for another number of tensors."""
        if state is None:
            return self.first(x)
        given = (state,) if isinstance(state, Tensor) else tuple(state)
        if len(given) != self.states:
            raise ValueError(f"the state of {type(self).__name__} is {amount(self.states, 'tensor')}, each [batch, "
                             f"{self._width}], not {amount(len(given), 'tensor')}")
        return given


class RNNCell(_Cell):
    """One step of a simple recurrent unit (Elman, Finding structure in time, 1990): h' = tanh(W x + b + R h + c), with
    weight_ih W[width, inputs], weight_hh R[width, width], bias_ih b[width] and bias_hh c[width], as in PyTorch. All
    start uniformly distributed in ±1/√width."""

    def forward(self, x: Tensor, state: Any = None) -> Any:
        """x[batch, inputs] and the state (h,), which is [batch, width], to the next state (h',); or the tensor h to the
        tensor h'. `state` None: zeros."""
        (h,) = self.before(x, state)
        (ours,), (theirs,) = self._gates(x, self.weight_ih, self.bias_ih), self._gates(h, self.weight_hh, self.bias_hh)
        h = apply("tanh", ours + theirs)
        return h if isinstance(state, Tensor) else (h,)


class LSTMCell(_Cell):
    """One step of a long short-term memory (Hochreiter and Schmidhuber, 1997; with the forget gate of Gers et al.,
    1999): c' = σ(f) · c + σ(i) · tanh(g), h' = σ(o) · tanh(c').

    weight_ih[4 width, inputs] and weight_hh[4 width, width] have the rows of i, f, g and o in this order, as in
    PyTorch. All parameters start uniformly distributed in ±1/√width."""

    gates, states = 4, 2

    def forward(self, x: Tensor, state: State | None = None) -> State:
        """x[batch, inputs] and the state (h, c), each [batch, width], to the next state. `state` None: zeros."""
        h, c = self.before(x, state)
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

    def forward(self, x: Tensor, state: Any = None) -> Any:
        """x[batch, inputs] and the state (h,), which is [batch, width], to the next state (h',); or the tensor h to the
        tensor h'. `state` None: zeros."""
        (h,) = self.before(x, state)
        ours, theirs = self._gates(x, self.weight_ih, self.bias_ih), self._gates(h, self.weight_hh, self.bias_hh)
        reset, update = [apply("sigmoid", a + b) for a, b in zip(ours[:2], theirs[:2], strict=True)]
        new = apply("tanh", ours[2] + reset * theirs[2])
        h = (1 - update) * new + update * h
        return h if isinstance(state, Tensor) else (h,)


class _Recurrent(Module):
    cell: RNNCell | LSTMCell | GRUCell
    unrolled: int

    def forward(self, x: Tensor, state: State | Tensor | None = None) -> tuple[Tensor, State]:
        """x[batch, time, inputs] to the pair of h[batch, time, width], for all steps, and the last state. `state`: the
        first state, as the cell takes it; zeros without it. ValueError for another number of axes and for no steps."""
        if x.ndim != 3 or x._ref.shape[1] == 0:
            raise ValueError(f"{type(self).__name__} takes x[batch, time, inputs] with one step or more, not {x!r}")
        current = self.cell.before(x, state)
        steps = x.shape[1]
        if not isinstance(steps, int) or steps > self.unrolled:
            y, *last = self.whole(x.transpose(1, 0, 2), current)
            return y.transpose(1, 0, 2), tuple(last)
        outputs: list[Tensor] = []
        for t in range(steps):
            current = self.cell(x[:, t], current)
            outputs.append(current[0].reshape(x.shape[0], 1, -1))
        return _joined(outputs), current

    @abstractmethod
    def whole(self, x: Tensor, state: State) -> tuple[Tensor, ...]:
        """x[time, batch, inputs] and the first state to h[time, batch, width] and the last state, by one operator."""


class RNN(_Recurrent):
    """An `RNNCell` (the attribute `cell`) over a sequence. `unrolled`: the longest sequence whose graph has the
    operators of all steps; a longer one, or one whose length varies, is one operator."""

    def __init__(self, inputs: int, width: int, unrolled: int = UNROLLED) -> None:
        self.cell, self.unrolled = RNNCell(inputs, width), unrolled

    def whole(self, x: Tensor, state: State) -> tuple[Tensor, ...]:
        cell = self.cell
        return tuple(apply("rnn", x, cell.weight_ih, cell.weight_hh, cell.bias_ih + cell.bias_hh, *state))


class LSTM(_Recurrent):
    """An `LSTMCell` (the attribute `cell`) over a sequence. `unrolled`: the longest sequence whose graph has the
    operators of all steps; a longer one, or one whose length varies, is one operator."""

    def __init__(self, inputs: int, width: int, unrolled: int = UNROLLED) -> None:
        self.cell, self.unrolled = LSTMCell(inputs, width), unrolled

    def whole(self, x: Tensor, state: State) -> tuple[Tensor, ...]:
        cell = self.cell
        return tuple(apply("lstm", x, cell.weight_ih, cell.weight_hh, cell.bias_ih + cell.bias_hh, *state))


class GRU(_Recurrent):
    """A `GRUCell` (the attribute `cell`) over a sequence. `unrolled`: the longest sequence whose graph has the
    operators of all steps; a longer one, or one whose length varies, is one operator."""

    def __init__(self, inputs: int, width: int, unrolled: int = UNROLLED) -> None:
        self.cell, self.unrolled = GRUCell(inputs, width), unrolled

    def whole(self, x: Tensor, state: State) -> tuple[Tensor, ...]:
        cell = self.cell
        return tuple(apply("gru", x, cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh, *state))


def _joined(parts: list[Tensor]) -> Tensor:
    """The parts, concatenated along the time axis in pairs: the depth of the graph is logarithmic in their number."""
    while len(parts) > 1:
        pairs = [apply("concatenate", a, b, axis=1) for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = pairs + (parts[-1:] if len(parts) % 2 else [])
    return parts[0]
