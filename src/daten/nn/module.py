"""Modules: parameters, and what is computed with them."""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from caten.core.dtypes import is_float
from caten.core.numpy_types import numpy_dtype

from ..element_types import type_named
from ..graph import Leaf, Ref
from ..huge_pages import copied
from ..tensor import Tensor
from ..tracing import hold


class Module(ABC):
    """A layer or a network. Tensors, modules, and lists and dicts of them that are its attributes belong to it: tensors
    that require gradients are its parameters, the others its buffers."""

    training = True

    @abstractmethod
    def forward(self, *inputs: Any, **options: Any) -> Any:
        """What the module computes."""

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        return self.forward(*inputs, **options)

    def named_tensors(self) -> Iterator[tuple[str, Tensor]]:
        """All parameters and buffers, each once, by names such as "layers.0.weight"."""
        seen: set[int] = set()
        for name, tensor in _named(self, ""):
            if id(tensor) not in seen:
                seen.add(id(tensor))
                yield name, tensor

    def parameters(self) -> list[Tensor]:
        """The tensors that are trained."""
        return [t for _, t in self.named_tensors() if t.requires_grad]

    def modules(self) -> Iterator[Module]:
        """This module and those inside."""
        yield self
        for value in vars(self).values():
            for part in _parts(value):
                if isinstance(part, Module):
                    yield from part.modules()

    def train(self, mode: bool = True) -> Module:
        """Compute as in training: with dropout, and statistics of the batch. `eval()` ends it."""
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Module:
        """Compute without dropout, and with the statistics that training gathered."""
        return self.train(False)

    def to(self, dtype: Any) -> Module:
        """Store all parameters and buffers of floats in this type of floats: `net.to("bfloat16")`. Optimizers that are
        made afterwards keep what rounding takes from them; inputs are to be of this type, too."""
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
        """The values of all parameters and buffers, by name."""
        return {name: tensor.numpy() for name, tensor in self.named_tensors()}

    def load_state_dict(self, values: Mapping[str, np.ndarray]) -> None:
        """Set all parameters and buffers. ValueError if one is missing, unknown, or of another shape."""
        own = dict(self.named_tensors())
        if missing := sorted(own.keys() - values.keys()):
            raise ValueError(f"the state lacks {', '.join(missing[:5])}{' …' if len(missing) > 5 else ''}")
        if unknown := sorted(values.keys() - own.keys()):
            raise ValueError(f"the module has no {', '.join(unknown[:5])}{' …' if len(unknown) > 5 else ''}")
        for name, tensor in own.items():
            if tuple(values[name].shape) != tensor.shape:
                raise ValueError(f"{name} has the shape {tensor.shape}, not {tuple(values[name].shape)}")
        for name, tensor in own.items():
            tensor.assign(np.asarray(values[name]))

    def __repr__(self) -> str:
        count = sum(p.size for p in self.parameters())
        return f"{type(self).__name__}({count:,} parameters)"


class Sequential(Module):
    """Modules and functions, one after the other."""

    def __init__(self, *layers: Any) -> None:
        self.layers = list(layers)

    def forward(self, x: Any) -> Any:
        """The last result."""
        for layer in self.layers:
            x = layer(x)
        return x


def _named(value: Any, name: str) -> Iterator[tuple[str, Tensor]]:
    if isinstance(value, Tensor):
        yield name, value
        return
    entries = vars(value).items() if isinstance(value, Module) else value.items() if isinstance(
        value, dict) else enumerate(value) if isinstance(value, list | tuple) else ()
    for key, part in entries:
        yield from _named(part, f"{name}.{key}" if name else str(key))


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for part in value:
            yield from _parts(part)
    else:
        yield value
