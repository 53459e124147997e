"""Optimizers. They compute the new parameters in the same library as the gradients.

    optimizer = AdamW(parameters, lr=1e-3)
    loss.backward()
    optimizer.step(loss)                 # computes the loss, the gradients and the new parameters at once

The learning rate is an input of the library: setting `optimizer.lr = 1e-4`, as a schedule does, compiles nothing.

For 16-bit parameters (`module.to("bfloat16")`) the optimizer keeps the rounding error in float32, so that updates
smaller than one ulp are not lost: parameter plus rounding error is the float32 master weight. The optimizer states are
float32, too (Micikevicius et al., Mixed precision training, 2018).

In the formulas, p is a parameter, g its gradient, and t the number of the step, from 1.
"""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import cos, pi
from typing import Any, Generic, TypeVar
from weakref import WeakValueDictionary

import numpy as np

from caten.core.dtypes import computed
from caten.core.numpy_types import numpy_dtype

from .graph import Leaf, Ref
from .realization import run
from .state_dicts import fitting
from .tensor import Tensor
from .tracing import change, drawn, give, happens, hold, taken

Value = TypeVar("Value")

_WITH_NEXT_STEP: WeakValueDictionary[int, Tensor] = WeakValueDictionary()       # by id: == compares elements


class _Setting(Generic[Value]):
    """A setting of an optimizer, which is checked whenever it is set: `check` raises ValueError."""

    def __init__(self, check: Callable[[str, Any], Value]) -> None:
        self.check, self.name = check, ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, optimizer: Optimizer | None, owner: type) -> Value:
        if optimizer is None:
            raise AttributeError(self.name)
        found: Value = optimizer.__dict__[self.name]
        return found

    def __set__(self, optimizer: Optimizer, value: Any) -> None:
        optimizer.__dict__[self.name] = self.check(self.name, value)


def _from_0(name: str, value: Any) -> float:
    """A number that is neither negative nor NaN."""
    try:
        if float(value) >= 0:
            return float(value)
    except (TypeError, ValueError):
        pass
    raise ValueError(f"{name} is a number from 0 on, not {value!r}")


def _rate(name: str, value: Any) -> float:
    """A decay rate of a running mean, with which it forgets and does not grow."""
    try:
        if 0 <= float(value) < 1:
            return float(value)
    except (TypeError, ValueError):
        pass
    raise ValueError(f"{name} is a number from 0 on and below 1, not {value!r}")


def _rates(name: str, value: Any) -> tuple[float, float]:
    """Decay rates of running means, with which these forget and do not grow."""
    try:
        first, second = map(float, value)
        if 0 <= first < 1 and 0 <= second < 1:
            return first, second
    except (TypeError, ValueError):
        pass
    raise ValueError(f"{name} are two numbers from 0 on and below 1, not {value!r}")


class Optimizer(ABC):
    """The base class of the optimizers. `parameters`: tensors that require gradients; `lr`: the learning rate, which
    may be changed between steps; `steps`: the number of steps so far; `rests`: the rounding errors of 16-bit
    parameters, by their position. ValueError for a parameter that requires no gradient or is given twice, and, also
    where they are set later, for a negative learning rate, weight decay, momentum or eps, and for betas outside
    [0, 1)."""

    states = 0                                              # the number of state arrays for each parameter
    lr, weight_decay = _Setting(_from_0), _Setting(_from_0)

    def __init__(self, parameters: Sequence[Tensor], lr: float, weight_decay: float = 0.0) -> None:
        self.parameters, self.lr, self.weight_decay = _tensors("an optimizer", parameters), lr, weight_decay
        known: dict[int, int] = {}                           # by id: == compares elements
        for n, p in enumerate(self.parameters):
            if not p.requires_grad:
                raise ValueError(f"{p!r} requires no gradient")
            if (first := known.setdefault(id(p), n)) != n:
                raise ValueError(f"the parameters at {first} and {n} are one tensor of the shape {list(p.shape)}: give "
                                 "it once, as the parameters() of a module that holds both layers does")
        self.steps = 0
        happens(partial(setattr, self, "steps", 0))          # of an optimizer that a traced function makes
        self.kept = [[_zeros(p) for _ in range(self.states)] for p in self.parameters]
        self.rests = {n: _zeros(p) for n, p in enumerate(self.parameters) if computed(p._ref.dtype) != p._ref.dtype}

    def step(self, *others: Tensor) -> None:
        """Update each parameter that has a gradient, and set its gradient to None. `others`, such as the loss, are
        computed in the same call of the library."""
        for t in others:
            if not isinstance(t, Tensor):
                raise TypeError(f"step takes tensors to compute beside the parameters, such as the loss, not {t!r}")
        happens(self._count)
        numbers: dict[tuple[str, str], Tensor] = {}
        waiting = list(_WITH_NEXT_STEP.values())
        wanted = [t._ref for t in (*others, *waiting)]
        made: list[tuple[int, Tensor, list[Tensor]]] = []
        for n, p in enumerate(self.parameters):
            if p.grad is not None:
                taken(p)
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
        """The state arrays of a parameter, with its rounding error."""
        return [*self.kept[n], self.rests[n]] if n in self.rests else self.kept[n]

    def _changed(self, n: int, p: Tensor, gradient: Tensor, numbers: dict[tuple[str, str], Tensor]
                 ) -> tuple[Tensor, list[Tensor]]:
        """The new parameter and its new state arrays, with its new rounding error."""
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
        """The new parameter and its new states. `number(name, function)`: a scalar tensor with the value of
        `function()`, which is evaluated in each step; parameters of one type share those with the same name."""

    def zero_grad(self) -> None:
        """Set the gradients of all parameters to None. `step` does it, too."""
        happens(self._clear)

    def _clear(self) -> None:
        for p in self.parameters:
            p.grad = None

    def state_dict(self) -> dict[str, np.ndarray]:
        """The number of steps ("steps"), and the state arrays of each parameter: "0.1" is array 1 of parameter 0."""
        return {"steps": np.asarray(self.steps)} | {f"{n}.{k}": kept.numpy() for n in range(len(self.parameters))
                                                    for k, kept in enumerate(self._kept(n))}

    def load_state_dict(self, values: Mapping[str, np.ndarray]) -> None:
        """Restore the state that `state_dict` returned. ValueError if the names or shapes do not match the parameters
        of this optimizer, or the number of steps is none; then nothing is changed."""
        own = {f"{n}.{k}": kept for n in range(len(self.parameters)) for k, kept in enumerate(self._kept(n))}
        if own.keys() | {"steps"} != values.keys():
            raise ValueError("this is the state of an optimizer of other parameters")
        steps = np.asarray(values["steps"])
        if steps.shape or steps.dtype.kind not in "iu" or steps < 0:
            raise ValueError(f"the number of steps is an integer from 0 on, not {values['steps']!r}")
        try:
            arrays = fitting(values, own)
        except ValueError as problem:
            raise ValueError(f"this is the state of an optimizer of other parameters: {problem}") from None
        self.steps = int(steps)
        for name, array in arrays.items():
            own[name].assign(array)


class SGD(Optimizer):
    """Stochastic gradient descent with momentum: v = momentum · v + g; p -= lr · v. With `nesterov`, p -= lr · (g +
    momentum · v) (Sutskever et al., On the importance of initialization and momentum in deep learning, 2013).
    `weight_decay` · p is added to the gradient. An optimizer that was made without momentum has none later: ValueError
    in `step`."""

    states = 1
    momentum = _Setting(_from_0)

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
        if not states and self.momentum:
            raise ValueError("momentum was 0 when the optimizer was made: SGD(parameters, momentum=…) has it")
        if not states:
            return p - rate * g, []
        v = states[0] * self.momentum + g
        return p - rate * (g + v * self.momentum if self.nesterov else v), [v]


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015), with (β₁, β₂) = `betas`: m = β₁ m + (1 - β₁) g; v = β₂ v + (1 - β₂) g²;
    p -= lr · m̂ / (sqrt(v̂) + eps), where m̂ = m / (1 - β₁ᵗ) and v̂ = v / (1 - β₂ᵗ).

    `weight_decay` · p is added to the gradient; `AdamW` decouples it."""

    states = 2
    decoupled = False
    betas, eps = _Setting(_rates), _Setting(_from_0)

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
    """Adam with decoupled weight decay (Loshchilov and Hutter, Decoupled weight decay regularization, 2019):
    p -= lr · weight_decay · p, beside the step of Adam."""

    decoupled = True

    def __init__(self, parameters: Sequence[Tensor], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 1e-2) -> None:
        super().__init__(parameters, lr, betas, eps, weight_decay)


class RMSprop(Optimizer):
    """RMSprop (Tieleman and Hinton, Lecture 6.5, 2012): v = alpha · v + (1 - alpha) · g²; u = g / (sqrt(v) + eps);
    p -= lr · u, or with momentum b = momentum · b + u; p -= lr · b. `weight_decay` · p is added to the gradient. An
    optimizer that was made without momentum has none later: ValueError in `step`."""

    states = 2
    alpha, momentum, eps = _Setting(_rate), _Setting(_from_0), _Setting(_from_0)

    def __init__(self, parameters: Sequence[Tensor], lr: float = 1e-2, alpha: float = 0.99, eps: float = 1e-8,
                 momentum: float = 0.0, weight_decay: float = 0.0) -> None:
        super().__init__(parameters, lr, weight_decay)
        self.alpha, self.eps, self.momentum = alpha, eps, momentum
        if not momentum:
            self.kept = [kept[:1] for kept in self.kept]

    def changed(self, p: Tensor, gradient: Tensor, states: list[Tensor], number: Any) -> tuple[Tensor, list[Tensor]]:
        """As the class says."""
        g = gradient + p * self.weight_decay if self.weight_decay else gradient
        v = states[0] * self.alpha + g * g * (1 - self.alpha)
        update, rate = g / (v.sqrt() + self.eps), number("rate", lambda: self.lr)
        if len(states) == 1 and self.momentum:
            raise ValueError("momentum was 0 when the optimizer was made: RMSprop(parameters, momentum=…) has it")
        if len(states) == 1:
            return p - rate * update, [v]
        b = states[1] * self.momentum + update
        return p - rate * b, [v, b]


class Lion(Optimizer):
    """Lion (Chen et al., Symbolic discovery of optimization algorithms, 2023), with (β₁, β₂) = `betas`:
    p -= lr · (sign(β₁ m + (1 - β₁) g) + weight_decay · p); m = β₂ m + (1 - β₂) g."""

    states = 1
    betas = _Setting(_rates)

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


def _tensors(what: str, given: Any) -> list[Tensor]:
    """A list of tensors. TypeError for anything else, also for a tensor, whose rows would be others."""
    if isinstance(given, Tensor) or not isinstance(given, Iterable):
        raise TypeError(f"{what} takes a list of tensors, as module.parameters() gives, not {given!r}")
    tensors = list(given)
    for t in tensors:
        if isinstance(t, dict):
            raise TypeError(f"{what} takes a list of tensors, and no groups of parameters: make an optimizer for each "
                            f"group, and call step of each")
        if not isinstance(t, Tensor):
            raise TypeError(f"{what} takes a list of tensors, as module.parameters() gives, not of {t!r}")
    return tensors


def with_next_step(tensor: Tensor, value: Tensor) -> None:
    """Give a tensor a new value, which is computed in the call of the next step; layers use it for running averages."""
    change(tensor, value._ref)
    _WITH_NEXT_STEP[id(tensor)] = tensor


def cosine(peak: float, steps: int, warmup: int = 0, last: float = 0.0) -> Callable[[int], float]:
    """A cosine learning-rate schedule with linear warm-up (Loshchilov and Hutter, SGDR, 2017), as a function of the
    step number, from 0: `optimizer.lr = schedule(step)`. The rate rises to `peak` in `warmup` steps, then falls to
    `last` at step `steps`, which includes the warm-up, and stays there."""
    def rate(step: int) -> float:
        if step < warmup:
            return peak * (step + 1) / warmup
        done = min(1.0, (step - warmup) / max(1, steps - warmup))
        return last + (peak - last) * (1 + cos(pi * done)) / 2
    return rate


def linear(peak: float, steps: int, warmup: int = 0, last: float = 0.0) -> Callable[[int], float]:
    """A linear learning-rate schedule with linear warm-up, as a function of the step number, from 0. The rate rises to
    `peak` in `warmup` steps, then falls linearly to `last` at step `steps`, which includes the warm-up, and stays
    there."""
    def rate(step: int) -> float:
        if step < warmup:
            return peak * (step + 1) / warmup
        return peak + (last - peak) * min(1.0, (step - warmup) / max(1, steps - warmup))
    return rate


def clip_norm(parameters: Sequence[Tensor], greatest: float) -> Tensor:
    """Scale the gradients in place so that their global L2 norm is at most `greatest`. Returns the norm before scaling,
    a scalar tensor; a parameter that is given twice counts once. Call it between `backward` and `step`. (Pascanu et
    al., On the difficulty of training recurrent neural networks, 2013.) TypeError for what is no list of tensors,
    ValueError for a negative norm."""
    parameters, greatest = _tensors("clip_norm", parameters), _from_0("the greatest norm", greatest)
    parameters = list({id(p): p for p in parameters}.values())
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
    """A scalar that is evaluated in each step: one tensor for all parameters of a type."""
    dtype = like._ref.dtype
    if (name, dtype) not in known:
        known[name, dtype] = Tensor(drawn(lambda: np.asarray(value(), numpy_dtype(dtype)), dtype))
    return known[name, dtype]


def _zeros(p: Tensor) -> Tensor:
    dtype = computed(p._ref.dtype)
    made = Tensor(Ref(Leaf(np.zeros(p.shape, numpy_dtype(dtype)), dtype)))
    hold(made)
    return made
