"""Random numbers that follow from a seed: keys for the random operators of the library (Threefry; Salmon et al.,
Parallel random numbers: as easy as 1, 2, 3, 2011), and the first values of parameters."""
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
        """The generator of NumPy, made when it is first used, because it is slow to import."""
        return np.random.default_rng(self._seed)

    def key(self) -> Tensor:
        """A new key for an operator such as `dropout`: uint32[2]."""
        def draw() -> np.ndarray:
            source = current() if is_current else self
            return source.numbers.integers(0, 1 << 32, 2, np.uint32)
        is_current = self is current()                       # a traced function goes on with that of a later seed
        return Tensor(drawn(draw, "u32"))

    def uniform(self, shape: tuple[int, ...], bound: float, dtype: str = "float32") -> np.ndarray:
        """Numbers that are uniformly distributed in [-bound, bound)."""
        return self.numbers.uniform(-bound, bound, shape).astype(dtype)

    def normal(self, shape: tuple[int, ...], deviation: float, dtype: str = "float32") -> np.ndarray:
        """Normally distributed numbers with mean 0 and this standard deviation."""
        return (self.numbers.standard_normal(shape) * deviation).astype(dtype)


_CURRENT = [Source(0)]


def seed(number: int) -> None:
    """Set the seed of the random numbers of new parameters and of dropout. The default seed is 0."""
    _CURRENT[0] = Source(number)


def current() -> Source:
    """The source of the random numbers of layers and dropout."""
    return _CURRENT[0]
