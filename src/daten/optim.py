"""Optimizers: parameters and their gradients to new parameters, in the library that computes the gradients.

    optimizer = AdamW(parameters, lr=1e-3)
    loss.backward()
    optimizer.step(loss)                 # computes the loss, the gradients and the new parameters at once

Learning rates are inputs of the library: `optimizer.lr = 1e-4`, a schedule, compiles nothing.

Of parameters of 16 bits (`module.to("bfloat16")`) the optimizer keeps what rounding takes from them, so that steps
smaller than the last bit count: the parameter and its rest together are a float32, as the states are (mixed precision;
Micikevicius et al., Mixed precision training, 2018).
"""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import cos, pi
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from caten.core.dtypes import computed
from caten.core.numpy_types import numpy_dtype

from .graph import Leaf, Ref
from .realization import run
from .tensor import Tensor
from .tracing import drawn, give, happens, hold

_WITH_NEXT_STEP: WeakValueDictionary[int, Tensor] = WeakValueDictionary()       # by id: == compares elements


class Optimizer(ABC):
    """What all have in common. `parameters`: tensors that require gradients; `lr`: the learning rate; `rests`: what
    rounding took from those of 16 bits."""

    states = 0                                              # arrays that are kept for each parameter

    def __init__(self, parameters: Sequence[Tensor], lr: float, weight_decay: float = 0.0) -> None:
        self.parameters, self.lr, self.weight_decay = list(parameters), lr, weight_decay
        for p in self.parameters:
            if not p.requires_grad:
                raise ValueError(f"{p!r} requires no gradient")
        self.steps = 0
        self.kept = [[_zeros(p) for _ in range(self.states)] for p in self.parameters]
        self.rests = {n: _zeros(p) for n, p in enumerate(self.parameters) if computed(p._ref.dtype) != p._ref.dtype}

    def step(self, *others: Tensor) -> None:
        """Change each parameter that has a gradient, and forget the gradients. `others`, such as the loss, are computed
        in the same call."""
        happens(self._count)
        numbers: dict[tuple[str, str], Tensor] = {}
        waiting = list(_WITH_NEXT_STEP.values())
        wanted = [t._ref for t in (*others, *waiting)]
        made: list[tuple[int, Tensor, list[Tensor]]] = []
        for n, p in enumerate(self.parameters):
            if p.grad is not None:
                new, states = self._changed(n, p, p.grad, numbers)
                made.append((n, new, states))
                wanted += [t._ref for t in (new, *states)]
        run(wanted)
        for n, new, states in made:
            p = self.parameters[n]
            give(p, new._ref)
            p.grad = None
            for kept, s in zip(self._kept(n), states, strict=True):
                give(kept, s._ref)
        for t in waiting:
            give(t, t._ref)
            _WITH_NEXT_STEP.pop(id(t), None)

    def _kept(self, n: int) -> list[Tensor]:
        """The arrays that are kept for a parameter."""
        return [*self.kept[n], self.rests[n]] if n in self.rests else self.kept[n]

    def _changed(self, n: int, p: Tensor, gradient: Tensor, numbers: dict[tuple[str, str], Tensor]
                 ) -> tuple[Tensor, list[Tensor]]:
        """The new parameter and the new values of what is kept for it."""
        rest = self.rests.get(n)
        if rest is None:
            return self.changed(p, gradient, self.kept[n], partial(_number, numbers, p))
        whole = p.astype(rest.dtype) + rest
        new, states = self.changed(whole, gradient.astype(rest.dtype), self.kept[n], partial(_number, numbers, whole))
        short = new.astype(p.dtype)
        return short, [*states, new - short.astype(rest.dtype)]

    def _count(self) -> None:
        self.steps += 1

    @abstractmethod
    def changed(self, p: Tensor, gradient: Tensor, states: list[Tensor], number: Any) -> tuple[Tensor, list[Tensor]]:
        """The new parameter and the new states. `number(name, function)`: a number that may differ from step to
        step."""

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for p in self.parameters:
            p.grad = None

    def state_dict(self) -> dict[str, np.ndarray]:
        """The arrays that are kept for the parameters, and the number of steps."""
        return {"steps": np.asarray(self.steps)} | {f"{n}.{k}": kept.numpy() for n in range(len(self.parameters))
                                                    for k, kept in enumerate(self._kept(n))}

    def load_state_dict(self, values: Mapping[str, np.ndarray]) -> None:
        """Go on where the optimizer was that gave this state. ValueError if it is of other parameters."""
        own = {f"{n}.{k}": kept for n in range(len(self.parameters)) for k, kept in enumerate(self._kept(n))}
        if own.keys() | {"steps"} != values.keys() or any(k.shape != values[n].shape for n, k in own.items()):
            raise ValueError("this is the state of an optimizer of other parameters")
        self.steps = int(values["steps"])
        for name, kept in own.items():
            kept.assign(values[name])


class SGD(Optimizer):
    """Stochastic gradient descent: v = momentum · v + g; p -= lr · v. With `nesterov`, p -= lr · (g + momentum · v)
    (Sutskever et al., On the importance of initialization and momentum in deep learning, 2013)."""

    states = 1

    def __init__(self, parameters: Sequence[Tensor], lr: float = 1e-2, momentum: float = 0.0, nesterov: bool = False,
                 weight_decay: float = 0.0) -> None:
        super().__init__(parameters, lr, weight_decay)
        self.momentum, self.nesterov = momentum, nesterov
        if not momentum:
            self.kept = [[] for _ in self.parameters]

    def changed(self, p: Tensor, gradient: Tensor, states: list[Tensor], number: Any) -> tuple[Tensor, list[Tensor]]:
        """As the class says."""
        g = gradient + p * self.weight_decay if self.weight_decay else gradient
        rate = number("rate", lambda: self.lr)
        if not self.momentum:
            return p - rate * g, []
        v = states[0] * self.momentum + g
        return p - rate * (g + v * self.momentum if self.nesterov else v), [v]


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015); `weight_decay` is added to the gradient."""

    states = 2
    decoupled = False

    def __init__(self, parameters: Sequence[Tensor], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 0.0) -> None:
        super().__init__(parameters, lr, weight_decay)
        self.betas, self.eps = betas, eps

    def changed(self, p: Tensor, gradient: Tensor, states: list[Tensor], number: Any) -> tuple[Tensor, list[Tensor]]:
        """As the class says."""
        g = gradient + p * self.weight_decay if self.weight_decay and not self.decoupled else gradient
        b1, b2 = self.betas
        m, v = states[0] * b1 + g * (1 - b1), states[1] * b2 + g * g * (1 - b2)
        step = number("rate", lambda: self.lr / (1 - b1 ** self.steps)) * m / (
            (v * number("scale", lambda: 1 / (1 - b2 ** self.steps))).sqrt() + self.eps)
        if self.weight_decay and self.decoupled:
            p = p - number("decay", lambda: self.lr * self.weight_decay) * p
        return p - step, [m, v]


class AdamW(Adam):
    """Adam with a weight decay of its own (Loshchilov and Hutter, Decoupled weight decay regularization, 2019)."""

    decoupled = True

    def __init__(self, parameters: Sequence[Tensor], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 1e-2) -> None:
        super().__init__(parameters, lr, betas, eps, weight_decay)


class Lion(Optimizer):
    """The sign of an interpolated momentum (Chen et al., Symbolic discovery of optimization algorithms, 2023)."""

    states = 1

    def __init__(self, parameters: Sequence[Tensor], lr: float = 1e-4, betas: tuple[float, float] = (0.9, 0.99),
                 weight_decay: float = 0.0) -> None:
        super().__init__(parameters, lr, weight_decay)
        self.betas = betas

    def changed(self, p: Tensor, gradient: Tensor, states: list[Tensor], number: Any) -> tuple[Tensor, list[Tensor]]:
        """As the class says."""
        b1, b2 = self.betas
        direction = (states[0] * b1 + gradient * (1 - b1)).sign()
        if self.weight_decay:
            direction = direction + p * self.weight_decay
        return p - number("rate", lambda: self.lr) * direction, [states[0] * b2 + gradient * (1 - b2)]


def with_next_step(tensor: Tensor, value: Tensor) -> None:
    """Give a tensor a new value, which is computed with the next step: the running statistics of a layer."""
    tensor._ref = value._ref
    _WITH_NEXT_STEP[id(tensor)] = tensor


def cosine(peak: float, steps: int, warmup: int = 0, last: float = 0.0) -> Callable[[int], float]:
    """A schedule of the learning rate: it rises to `peak` in `warmup` steps, then falls as half a cosine to `last`
    (Loshchilov and Hutter, SGDR, 2017)."""
    def rate(step: int) -> float:
        if step < warmup:
            return peak * (step + 1) / warmup
        done = min(1.0, (step - warmup) / max(1, steps - warmup))
        return last + (peak - last) * (1 + cos(pi * done)) / 2
    return rate


def linear(peak: float, steps: int, warmup: int = 0, last: float = 0.0) -> Callable[[int], float]:
    """A schedule of the learning rate: it rises to `peak` in `warmup` steps, then falls evenly to `last`."""
    def rate(step: int) -> float:
        if step < warmup:
            return peak * (step + 1) / warmup
        return peak + (last - peak) * min(1.0, (step - warmup) / max(1, steps - warmup))
    return rate


def clip_norm(parameters: Sequence[Tensor], greatest: float) -> Tensor:
    """Scale the gradients of all parameters so that their norm together is at most `greatest`; returns the norm that
    they have."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    if not gradients:
        return Tensor(0.0)
    total = (gradients[0] * gradients[0]).sum()
    for g in gradients[1:]:
        total = total + (g * g).sum()
    norm = total.sqrt()
    scale = (greatest / (norm + 1e-12)).minimum(1.0)
    for p in parameters:
        if p.grad is not None:
            p.grad = p.grad * scale
    found: Tensor = norm
    return found


def _number(known: dict[tuple[str, str], Tensor], like: Tensor, name: str, value: Callable[[], float]) -> Tensor:
    """A number of a step: one for all parameters of a type."""
    dtype = like._ref.dtype
    if (name, dtype) not in known:
        known[name, dtype] = Tensor(drawn(lambda: np.asarray(value(), numpy_dtype(dtype)), dtype))
    return known[name, dtype]


def _zeros(p: Tensor) -> Tensor:
    dtype = computed(p._ref.dtype)
    made = Tensor(Ref(Leaf(np.zeros(p.shape, numpy_dtype(dtype)), dtype)))
    hold(made)
    return made
