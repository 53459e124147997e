"""Random numbers that a seed determines: keys for the library's operators of random numbers (Threefry), and parameters
of new layers."""
from __future__ import annotations

from functools import cached_property

import numpy as np

from .tensor import Tensor
from .tracing import drawn


class Source:
    """A sequence of random numbers."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    @cached_property
    def numbers(self) -> np.random.Generator:
        """NumPy's, which is slow to import and made when it is first used."""
        return np.random.default_rng(self._seed)

    def key(self) -> Tensor:
        """A new key for an operator such as `dropout`: two numbers of 32 bits."""
        return Tensor(drawn(lambda: self.numbers.integers(0, 1 << 32, 2, np.uint32), "u32"))

    def uniform(self, shape: tuple[int, ...], bound: float, dtype: str = "float32") -> np.ndarray:
        """Numbers between -bound and bound."""
        return self.numbers.uniform(-bound, bound, shape).astype(dtype)

    def normal(self, shape: tuple[int, ...], deviation: float, dtype: str = "float32") -> np.ndarray:
        """Normal numbers around 0."""
        return (self.numbers.standard_normal(shape) * deviation).astype(dtype)


_CURRENT = [Source(0)]


def seed(number: int) -> None:
    """Begin the sequence of random numbers that this seed determines. A process begins with 0."""
    _CURRENT[0] = Source(number)


def current() -> Source:
    """The sequence that layers and dropout draw from."""
    return _CURRENT[0]
