"""What a function does with arrays, recorded: the libraries that it calls, and the tensors that it gives new values. So
it can be done again without the function (`jit`)."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

from .graph import Leaf, Ref

if TYPE_CHECKING:
    from caten.runtime.call import Operator

    from .tensor import Tensor

Source = Callable[["Replay"], np.ndarray]


@dataclass
class Replay:
    """What is there when a trace is run: the arguments, the arrays that were drawn, and the results of each call."""

    arguments: Sequence[np.ndarray]
    drawn: list[np.ndarray] = field(default_factory=list)
    results: list[tuple[np.ndarray, ...]] = field(default_factory=list)


class Trace:
    """The record of one run of a function over `arguments`."""

    def __init__(self, arguments: Sequence[np.ndarray]) -> None:
        self.steps: list[Callable[[Replay], None]] = []
        self.held: dict[int, tuple[Tensor, Leaf]] = {}          # tensors that keep a value, and the leaf that was read
        self._sources: dict[int, tuple[np.ndarray, Source]] = {}        # by id; the array keeps it taken
        self._calls = self._draws = 0
        for n, array in enumerate(arguments):
            self._comes_from(array, lambda now, n=n: now.arguments[n])      # type: ignore[misc]

    def source(self, r: Ref) -> Source:
        """Where the array of a node comes from: what is neither an argument, a result, drawn nor kept by a tensor is
        the same each time."""
        array = r.array
        assert array is not None
        known = self._sources.get(id(array))
        if known is not None:
            return known[1]
        holder = r.node.holder() if isinstance(r.node, Leaf) and r.node.holder is not None else None
        if holder is not None and isinstance(r.node, Leaf):
            self.held.setdefault(id(holder), (holder, r.node))
            return lambda now: kept_array(holder)
        return lambda now: array

    def knows(self, array: np.ndarray | None) -> bool:
        """Is it another array each time?"""
        return array is None or id(array) in self._sources

    def called(self, operator: Operator, leaves: Sequence[Ref], made: Sequence[np.ndarray]) -> None:
        """A library has computed arrays."""
        sources, number = [self.source(r) for r in leaves], self._calls
        self._calls += 1
        for n, array in enumerate(made):
            self._comes_from(array, lambda now, n=n: now.results[number][n])      # type: ignore[misc]

        def step(now: Replay) -> None:
            results: Any = operator(*[source(now) for source in sources])
            now.results.append(results if isinstance(results, tuple) else (results,))
        self.steps.append(step)

    def drew(self, draw: Callable[[], np.ndarray], array: np.ndarray) -> None:
        """An array was made that is another one each time."""
        number = self._draws
        self._draws += 1
        self._comes_from(array, lambda now: now.drawn[number])
        self.steps.append(lambda now: now.drawn.append(draw()))

    def gave(self, tensor: Tensor, r: Ref) -> None:
        """A tensor keeps this array from now on."""
        source, own = self.source(r), tensor._ref.node
        assert isinstance(own, Leaf)
        self.held[id(tensor)] = tensor, own
        self.steps.append(lambda now: keep(tensor, source(now)))

    def _comes_from(self, array: np.ndarray, source: Source) -> None:
        self._sources[id(array)] = array, source


ACTIVE: ContextVar[Trace | None] = ContextVar("active", default=None)


def happens(effect: Callable[[], None]) -> None:
    """Do something, now and each time that what is being traced is done again."""
    effect()
    trace = ACTIVE.get()
    if trace is not None:
        trace.steps.append(lambda now: effect())


def drawn(draw: Callable[[], np.ndarray], dtype: str) -> Ref:
    """An array that is another one each time: a random key, a learning rate."""
    array = draw()
    trace = ACTIVE.get()
    if trace is not None:
        trace.drew(draw, array)
    return Ref(Leaf(array, dtype))


def give(tensor: Tensor, r: Ref) -> None:
    """A tensor keeps the array of a node, which is computed."""
    array = r.array
    assert array is not None
    keep(tensor, array)
    trace = ACTIVE.get()
    if trace is not None:
        trace.gave(tensor, r)


def keep(tensor: Tensor, array: np.ndarray) -> None:
    """A tensor of the program, a parameter or a state, has this value from now on."""
    array.flags.writeable = False
    tensor._ref = Ref(Leaf(array, tensor._ref.dtype, stays=True))
    hold(tensor)


def hold(tensor: Tensor) -> None:
    """The tensor stays: the next graph reads it again, with another value perhaps."""
    if isinstance(tensor._ref.node, Leaf):
        tensor._ref.node.stays = True
        tensor._ref.node.holder = ref(tensor)


def kept_array(tensor: Tensor) -> np.ndarray:
    """The array of a tensor that stays."""
    array = tensor._ref.array
    return tensor.numpy() if array is None else array
