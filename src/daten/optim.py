"""Optimizers. They compute the new parameters in the same library as the gradients.

    optimizer = AdamW(parameters, lr=1e-3)
    loss.backward()
    optimizer.step(loss)                 # computes the loss, the gradients and the new parameters at once

Settings are inputs of the library: setting `optimizer.lr = 1e-4`, as a schedule does, compiles nothing.

Parameters in groups may have settings of their own; what a group has not is that of the optimizer:

    optimizer = SGD([{"params": body, "lr": 1e-3}, {"params": head}], lr=1e-2, momentum=0.9)
    optimizer.param_groups[0]["lr"] = 1e-4

For 16-bit parameters (`module.to("bfloat16")`) the optimizer keeps the rounding error in float32, so that updates
smaller than one ulp are not lost: parameter plus rounding error is the float32 master weight. The optimizer states are
float32, too (Micikevicius et al., Mixed precision training, 2018).

In the formulas, p is a parameter, g its gradient, and t the number of the step, from 1.
"""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from math import cos, pi
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import WeakValueDictionary

import numpy as np

from caten.core.dtypes import computed
from caten.core.numpy_types import numpy_dtype

from .graph import Leaf, Ref
from .realization import run
from .state_dicts import fitting
from .tensor import Tensor
from .tracing import assumed, change, drawn, give, happens, hold, taken

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


def _is_set(name: str, value: Any) -> bool:
    """A setting that is on or off."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} is True or False, not {value!r}")
    return bool(value)


class Group:
    """Parameters of an optimizer that share settings: `group["params"]` is the list of them, `group["lr"]` the learning
    rate, which can be set. A setting that the group has not itself is that of the optimizer. KeyError for another
    name, ValueError for a value that the setting cannot have."""

    def __init__(self, optimizer: Optimizer, parameters: Sequence[Tensor], settings: Mapping[str, Any]) -> None:
        self._optimizer, self._parameters, self._own = optimizer, list(parameters), dict[str, Any]()
        for name, value in settings.items():
            self[name] = value

    def __getitem__(self, name: str) -> Any:
        if name == "params":
            return self._parameters
        if name in self._own:
            return self._own[name]
        self._setting(name)
        return getattr(self._optimizer, name)

    def __setitem__(self, name: str, value: Any) -> None:
        self._own[name] = self._setting(name).check(name, value)

    def __iter__(self) -> Iterator[str]:
        return iter(("params", *self._optimizer.settings()))

    def __len__(self) -> int:
        return 1 + len(self._optimizer.settings())

    def keys(self) -> Iterator[str]:
        """The names of the settings, after "params": `dict(group)` has their values."""
        return iter(self)

    def has(self, name: str) -> bool:
        """Is a setting on, or not 0? What `jit` traces is traced again when this is no longer so."""
        return assumed((self, name), lambda: bool(self[name]))

    def _setting(self, name: str) -> _Setting[Any]:
        known = self._optimizer.settings()
        if name not in known:
            raise KeyError(f"{type(self._optimizer).__name__} has no setting {name!r}: a group has params, "
                           f"{', '.join(known)}")
        return known[name]


class Optimizer(ABC):
    """The base class of the optimizers. `parameters`: tensors that require gradients, or a list of groups, dicts with
    such tensors as "params" and settings of their own; `param_groups`: the groups, one of all parameters if none are
    given; `lr`: the learning rate, which may be changed between steps, as the other settings may; `steps`: the number
    of steps so far; `rests`: the rounding errors of 16-bit parameters, by their position. ValueError for no parameters,
    for one that requires no gradient or is given twice, and, also where they are set later, for a negative learning
    rate, weight decay, momentum or eps, and for betas outside [0, 1)."""

    states = 0                                              # the number of state arrays for each parameter
    lr, weight_decay = _Setting(_from_0), _Setting(_from_0)

    def __init__(self, parameters: Sequence[Tensor] | Sequence[Mapping[str, Any]], lr: float, weight_decay: float = 0.0
                 ) -> None:
        self.lr, self.weight_decay = lr, weight_decay
        self.param_groups = [Group(self, tensors, settings) for tensors, settings in _groups(parameters)]
        self.parameters = [p for group in self.param_groups for p in group["params"]]
        if not self.parameters:
            raise ValueError("an optimizer takes one parameter or more, and the list is empty")
        known: dict[int, int] = {}                           # by id: == compares elements
        for n, p in enumerate(self.parameters):
            if not p.requires_grad:
                raise ValueError(f"{p!r} requires no gradient")
            if (first := known.setdefault(id(p), n)) != n:
                raise ValueError(f"the parameters at {first} and {n} are one tensor of the shape {list(p.shape)}: give "
                                 "it once, as the parameters() of a module that holds both layers does")
        self.steps = 0
        happens(partial(setattr, self, "steps", 0))          # of an optimizer that a traced function makes
        self.kept = [[_zeros(p) for _ in range(self.states_in(group))] for group in self.param_groups
                     for p in group["params"]]
        self.rests = {n: _zeros(p) for n, p in enumerate(self.parameters) if computed(p._ref.dtype) != p._ref.dtype}

    @classmethod
    @cache                                                  # each step reads settings
    def settings(cls) -> dict[str, _Setting[Any]]:
        """The settings by name, those that all optimizers have first."""
        return {name: value for kind in reversed(cls.__mro__) for name, value in vars(kind).items()
                if isinstance(value, _Setting)}

    def states_in(self, group: Group) -> int:
        """The number of state arrays for each parameter of a group."""
        return self.states

    def step(self, *others: Tensor) -> None:
        """Update each parameter that has a gradient, and set its gradient to None. `others`, such as the loss, are
        computed in the same call of the library."""
        for t in others:
            if not isinstance(t, Tensor):
                raise TypeError(f"step takes tensors to compute beside the parameters, such as the loss, not {t!r}")
        happens(self._count)
        numbers: dict[tuple[str, str, int], Tensor] = {}
        groups = [group for group in self.param_groups for _ in group["params"]]
        waiting = list(_WITH_NEXT_STEP.values())
        wanted = [t._ref for t in (*others, *waiting)]
        made: list[tuple[int, Tensor, list[Tensor]]] = []
        for n, p in enumerate(self.parameters):
            if p.grad is not None:
                taken(p)
                new, states = self._changed(n, p, p.grad, groups[n], numbers)
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

    def _changed(self, n: int, p: Tensor, gradient: Tensor, group: Group,
                 numbers: dict[tuple[str, str, int], Tensor]) -> tuple[Tensor, list[Tensor]]:
        """The new parameter and its new state arrays, with its new rounding error."""
        rest = self.rests.get(n)
        if rest is None:
            return self.changed(p, gradient, self.kept[n], group, partial(_number, numbers, group, p))
        whole = p.astype(rest.dtype) + rest
        new, states = self.changed(whole, gradient.astype(rest.dtype), self.kept[n], group,
                                   partial(_number, numbers, group, whole))
        short = new.astype(p.dtype)
        return short, [*states, new - short.astype(rest.dtype)]

    def _count(self) -> None:
        self.steps += 1

    @abstractmethod
    def changed(self, p: Tensor, gradient: Tensor, states: list[Tensor], group: Group, number: Any) -> tuple[
            Tensor, list[Tensor]]:
        """The new parameter and its new states. `group`: the settings. `number(name, function)`: a scalar tensor with
        the value of `function()`, which is evaluated in each step, by default `group[name]`; parameters of one group
        and type share those with the same name."""

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
    `weight_decay` · p is added to the gradient. Parameters that began without momentum have none later: ValueError in
    `step`."""

    momentum, nesterov = _Setting(_from_0), _Setting(_is_set)

    def __init__(self, parameters: Sequence[Tensor], lr: float = 1e-2, momentum: float = 0.0, nesterov: bool = False,
                 weight_decay: float = 0.0) -> None:
        self.momentum, self.nesterov = momentum, nesterov
        super().__init__(parameters, lr, weight_decay)

    def states_in(self, group: Group) -> int:
        """A state is for momentum."""
        return int(group["momentum"] > 0)

    def changed(self, p: Tensor, gradient: Tensor, states: list[Tensor], group: Group, number: Any) -> tuple[
            Tensor, list[Tensor]]:
        """As the class says."""
        g = _with_decay(p, gradient, group, number)
        rate = number("lr")
        if not states:
            if group.has("momentum"):
                raise ValueError("momentum was 0 when the optimizer was made: SGD(parameters, momentum=…) has it")
            return p - rate * g, []
        momentum = number("momentum")
        v = states[0] * momentum + g
        return p - rate * (g + v * momentum if group.has("nesterov") else v), [v]


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015), with (β₁, β₂) = `betas`: m = β₁ m + (1 - β₁) g; v = β₂ v + (1 - β₂) g²;
    p -= lr · m̂ / (sqrt(v̂) + eps), where m̂ = m / (1 - β₁ᵗ) and v̂ = v / (1 - β₂ᵗ).

    `weight_decay` · p is added to the gradient; `AdamW` decouples it."""

    states = 2
    decoupled = False
    betas, eps = _Setting(_rates), _Setting(_from_0)

    def __init__(self, parameters: Sequence[Tensor], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8, weight_decay: float = 0.0) -> None:
        self.betas, self.eps = betas, eps
        super().__init__(parameters, lr, weight_decay)

    def changed(self, p: Tensor, gradient: Tensor, states: list[Tensor], group: Group, number: Any) -> tuple[
            Tensor, list[Tensor]]:
        """As the class says."""
        g = gradient if self.decoupled else _with_decay(p, gradient, group, number)
        m, v = _averaged(states[0], g, 0, group, number), _averaged(states[1], g * g, 1, group, number)
        step = number("rate", lambda: group["lr"] / (1 - group["betas"][0] ** self.steps)) * m / (
            (v * number("scale", lambda: 1 / (1 - group["betas"][1] ** self.steps))).sqrt() + number("eps"))
        if self.decoupled and group.has("weight_decay"):
            p = p - number("decay", lambda: group["lr"] * group["weight_decay"]) * p
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
    p -= lr · u, or with momentum b = momentum · b + u; p -= lr · b. `weight_decay` · p is added to the gradient.
    Parameters that began without momentum have none later: ValueError in `step`."""

    alpha, momentum, eps = _Setting(_rate), _Setting(_from_0), _Setting(_from_0)

    def __init__(self, parameters: Sequence[Tensor], lr: float = 1e-2, alpha: float = 0.99, eps: float = 1e-8,
                 momentum: float = 0.0, weight_decay: float = 0.0) -> None:
        self.alpha, self.eps, self.momentum = alpha, eps, momentum
        super().__init__(parameters, lr, weight_decay)

    def states_in(self, group: Group) -> int:
        """The second state is for momentum."""
        return 1 + int(group["momentum"] > 0)

    def changed(self, p: Tensor, gradient: Tensor, states: list[Tensor], group: Group, number: Any) -> tuple[
            Tensor, list[Tensor]]:
        """As the class says."""
        g = _with_decay(p, gradient, group, number)
        v = states[0] * number("alpha") + g * g * number("rest", lambda: 1 - group["alpha"])
        update, rate = g / (v.sqrt() + number("eps")), number("lr")
        if len(states) == 1:
            if group.has("momentum"):
                raise ValueError("momentum was 0 when the optimizer was made: RMSprop(parameters, momentum=…) has it")
            return p - rate * update, [v]
        b = states[1] * number("momentum") + update
        return p - rate * b, [v, b]


class Lion(Optimizer):
    """Lion (Chen et al., Symbolic discovery of optimization algorithms, 2023), with (β₁, β₂) = `betas`:
    p -= lr · (sign(β₁ m + (1 - β₁) g) + weight_decay · p); m = β₂ m + (1 - β₂) g."""

    states = 1
    betas = _Setting(_rates)

    def __init__(self, parameters: Sequence[Tensor], lr: float = 1e-4, betas: tuple[float, float] = (0.9, 0.99),
                 weight_decay: float = 0.0) -> None:
        self.betas = betas
        super().__init__(parameters, lr, weight_decay)

    def changed(self, p: Tensor, gradient: Tensor, states: list[Tensor], group: Group, number: Any) -> tuple[
            Tensor, list[Tensor]]:
        """As the class says."""
        direction = _with_decay(p, _averaged(states[0], gradient, 0, group, number).sign(), group, number)
        return p - number("lr") * direction, [_averaged(states[0], gradient, 1, group, number)]


def _with_decay(p: Tensor, direction: Tensor, group: Group, number: Any) -> Tensor:
    """direction + weight_decay · p."""
    return direction + p * number("weight_decay") if group.has("weight_decay") else direction


def _averaged(state: Tensor, value: Tensor, which: int, group: Group, number: Any) -> Tensor:
    """β · state + (1 - β) · value, with the first or the second of `betas`."""
    beta: Tensor = number(f"beta{which}", lambda: group["betas"][which])
    rest: Tensor = number(f"rest{which}", lambda: 1 - group["betas"][which])
    return state * beta + value * rest


def _groups(given: Any) -> list[tuple[list[Tensor], dict[str, Any]]]:
    """The parameters of each group, with its settings; a list of tensors is one group. TypeError for anything else,
    ValueError for a group without "params"."""
    parts = list(given) if isinstance(given, Iterable) and not isinstance(given, Tensor | Mapping) else []
    if not any(isinstance(part, Mapping) for part in parts):
        return [(_tensors("an optimizer", parts if parts else given), {})]
    found = []
    for n, part in enumerate(parts):
        if not isinstance(part, Mapping):
            raise TypeError(f"an optimizer takes a list of tensors, or one of groups alone, not both: {part!r}")
        if "params" not in part:
            raise ValueError(f"group {n} has no \"params\", a list of tensors: it has {', '.join(map(repr, part))}")
        tensors = part["params"]
        found.append((_tensors(f"\"params\" of group {n}", [tensors] if isinstance(tensors, Tensor) else tensors),
                      {name: value for name, value in part.items() if name != "params"}))
    return found


def _tensors(what: str, given: Any) -> list[Tensor]:
    """A list of tensors. TypeError for anything else, also for a tensor, whose rows would be others."""
    if isinstance(given, Tensor) or not isinstance(given, Iterable):
        raise TypeError(f"{what} takes a list of tensors, as module.parameters() gives, not {given!r}")
    tensors = list(given)
    for t in tensors:
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
    for p in parameters:
        taken(p)
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


def _number(known: dict[tuple[str, str, int], Tensor], group: Group, like: Tensor, name: str,
            value: Callable[[], float] | None = None) -> Tensor:
    """A scalar that is evaluated in each step, by default a setting: one tensor for all parameters of a group and
    type."""
    dtype = like._ref.dtype
    if (key := (name, dtype, id(group))) not in known:
        known[key] = Tensor(drawn(lambda: np.asarray(group[name] if value is None else value(), numpy_dtype(dtype)),
                                  dtype))
    return known[key]


def _zeros(p: Tensor) -> Tensor:
    dtype = computed(p._ref.dtype)
    made = Tensor(Ref(Leaf(np.zeros(p.shape, numpy_dtype(dtype)), dtype)))
    hold(made)
    return made


if not TYPE_CHECKING:                  # with it, a type checker would take any name for an optimizer
    def __getattr__(name: str) -> Any:
        """What there is instead of optimizers and schedules of other libraries."""
        from .other_names import OPTIMIZERS
        said = f": {OPTIMIZERS[name]}" if name in OPTIMIZERS else ""
        raise AttributeError(f"module 'daten.optim' has no attribute {name!r}{said}")
