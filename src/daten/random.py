"""Random numbers that follow from a seed: tensors of them, keys for the random operators of the library (Threefry;
Salmon et al., Parallel random numbers: as easy as 1, 2, 3, 2011), and the first values of parameters."""
from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from .tensor import Tensor, one
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


def normal(shape: int | Sequence[int], mean: float = 0.0, deviation: float = 1.0) -> Tensor:
    """Normally distributed float32 numbers; other ones in each call, also in those of a function of `jit`."""
    return one("normal", current().key(), shape=_shape(shape), mean=mean, deviation=deviation)


def uniform(shape: int | Sequence[int], low: float = 0.0, high: float = 1.0) -> Tensor:
    """Float32 numbers that are uniformly distributed in [low, high), drawn as by `normal`."""
    return one("uniform", current().key(), shape=_shape(shape), low=low, high=high)


def randint(low: int, high: int, shape: int | Sequence[int]) -> Tensor:
    """Integers from `low` to `high` - 1, int64, drawn as by `normal`."""
    return one("randint", current().key(), shape=_shape(shape), low=low, high=high)


def bernoulli(shape: int | Sequence[int], p: float = 0.5) -> Tensor:
    """Bools that are true with probability `p`, drawn as by `normal`."""
    return one("bernoulli", current().key(), shape=_shape(shape), p=p)


def permutation(n: int) -> Tensor:
    """The integers from 0 to n - 1 in a random order, int64, drawn as by `normal`."""
    return one("permutation", current().key(), n=n)


def _shape(shape: int | Sequence[int]) -> tuple[int, ...]:
    return tuple(shape) if isinstance(shape, Sequence) else (shape,)
