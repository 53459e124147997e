"""Modules: objects that hold parameters and compute something with them."""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from caten.core.dtypes import is_float
from caten.core.numpy_types import numpy_dtype

from ..element_types import type_named
from ..graph import Leaf, Ref
from ..huge_pages import copied
from ..other_names import MODULES
from ..state_dicts import fitting
from ..tensor import Tensor
from ..tracing import happens, hold


class Module(ABC):
    """The base class of layers and networks. Derive a class with a method `forward`, and call an instance of it.

    A module owns the tensors and modules among its attributes, also those in lists, tuples and dicts. Tensors that
    require gradients are its parameters; the others are its buffers."""

    training = True

    @abstractmethod
    def forward(self, *inputs: Any, **options: Any) -> Any:
        """Compute the result of the module; a call of the module calls this."""

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        return self.forward(*inputs, **options)

    if not TYPE_CHECKING:              # with it, a type checker would take any name for an attribute
        def __getattr__(self, name: str) -> Any:
            """What there is instead of methods of other libraries."""
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}"
                                 f"{f': {MODULES[name]}' if name in MODULES else ''}", name=name, obj=self)

    def named_tensors(self) -> Iterator[tuple[str, Tensor]]:
        """All parameters and buffers, each once, by names such as "layers.0.weight"."""
        seen: set[int] = set()
        for name, tensor in _named(self, "", set()):
            if id(tensor) not in seen:
                seen.add(id(tensor))
                yield name, tensor

    def parameters(self) -> list[Tensor]:
        """The parameters: the tensors that require gradients, each once."""
        return [t for _, t in self.named_tensors() if t.requires_grad]

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """The parameters, each once, by names such as "layers.0.weight"."""
        return ((name, t) for name, t in self.named_tensors() if t.requires_grad)

    def zero_grad(self) -> None:
        """Set the gradients of all parameters to None. The `step` of an optimizer does it, too."""
        def clear() -> None:
            for p in self.parameters():
                p.grad = None
        happens(clear)

    def modules(self) -> Iterator[Module]:
        """This module, and all modules inside it, each once."""
        seen: dict[int, Module] = {}
        waiting: list[Module] = [self]
        while waiting:
            module = waiting.pop()
            if id(module) not in seen:
                seen[id(module)] = module
                yield module
                inside = [part for value in vars(module).values() for part in _parts(value)]
                waiting += [part for part in reversed(inside) if isinstance(part, Module)]

    def train(self, mode: bool = True) -> Module:
        """Switch this module and all modules inside it to training: dropout is active, and BatchNorm uses the
        statistics of the batch. `train(False)` is `eval()`. Returns the module."""
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Module:
        """Switch this module and all modules inside it to inference: no dropout, and BatchNorm uses its running
        averages. Returns the module."""
        return self.train(False)

    def to(self, dtype: Any) -> Module:
        """Convert all floating-point parameters and buffers to this floating-point type, in place:
        `net.to("bfloat16")`.

        Call it before you make the optimizer, which then keeps the float32 rounding errors of 16-bit parameters (see
        daten.optim). Convert the inputs to the same type. Gradients are cleared. Returns the module. ValueError if
        `dtype` is not a floating-point type."""
        name = type_named(dtype)
        if not is_float(name):
            raise ValueError(f"parameters are floats, not {dtype}")
        for _, tensor in self.named_tensors():
            if is_float(tensor._ref.dtype):
                tensor._ref = Ref(Leaf(copied(tensor.numpy().astype(numpy_dtype(name))), name))
                tensor.grad = None
                hold(tensor)
        return self

    def state_dict(self) -> dict[str, np.ndarray]:
        """The values of all parameters and buffers as arrays, by names such as "layers.0.weight"."""
        return {name: tensor.numpy() for name, tensor in self.named_tensors()}

    def load_state_dict(self, values: Mapping[str, np.ndarray]) -> None:
        """Set all parameters and buffers to these values, converted to their element types. ValueError if a name is
        missing or unknown, a shape differs, or values are no numbers of the tensor's kind; then nothing is changed.
        Entries `num_batches_tracked`, which PyTorch's BatchNorm adds, are ignored."""
        own = dict(self.named_tensors())
        values = {name: value for name, value in values.items()
                  if name in own or name.rpartition(".")[2] != "num_batches_tracked"}
        missing, unknown = sorted(own.keys() - values.keys()), sorted(values.keys() - own.keys())
        if missing:
            raise ValueError(f"the state lacks {_some(missing)}"
                             f"{f', and has {_some(unknown)}, which the module has not' if unknown else ''}")
        if unknown:
            raise ValueError(f"the module has no {_some(unknown)}")
        for name, array in fitting(values, own).items():
            own[name].assign(array)

    def __repr__(self) -> str:
        count = sum(p.size for p in self.parameters())
        return f"{type(self).__name__}({count:,} parameters)"


class Sequential(Module):
    """Modules and functions of one argument, applied one after the other."""

    def __init__(self, *layers: Any) -> None:
        self.layers = list(layers)

    def __len__(self) -> int:
        return len(self.layers)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.layers)

    def __getitem__(self, at: int | slice) -> Any:
        """A layer, or the `Sequential` of some."""
        return Sequential(*self.layers[at]) if isinstance(at, slice) else self.layers[at]

    def forward(self, x: Any) -> Any:
        """The result of the last layer."""
        for layer in self.layers:
            x = layer(x)
        return x


def _some(names: list[str]) -> str:
    return f"{', '.join(names[:5])}{' …' if len(names) > 5 else ''}"


def _named(value: Any, name: str, seen: set[int]) -> Iterator[tuple[str, Tensor]]:
    """`seen`: the ids of the modules until now, which are not walked again: one may hold another that holds it."""
    if isinstance(value, Tensor):
        yield name, value
        return
    if isinstance(value, Module):
        if id(value) in seen:
            return
        seen.add(id(value))
    entries = vars(value).items() if isinstance(value, Module) else value.items() if isinstance(
        value, dict) else enumerate(value) if isinstance(value, list | tuple) else ()
    for key, part in entries:
        yield from _named(part, f"{name}.{key}" if name else str(key), seen)


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for part in value:
            yield from _parts(part)
    else:
        yield value
