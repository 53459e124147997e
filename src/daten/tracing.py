"""What a function does with arrays, recorded: the libraries that it calls, and the tensors that it gives new values. So
it can be done again without the function (`jit`)."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol
from weakref import ref

import numpy as np

from caten.core.expr import Const, Expr
from caten.core.numpy_types import numpy_dtype

from .graph import Leaf, Ref
from .shape_formulas import ShapeFormulas
from .symbolic_sizes import formula_of, value_of_all

if TYPE_CHECKING:
    from caten.runtime.call import Operator


class KeepsArray(Protocol):
    """A tensor that keeps a value. `Tensor` itself is built on this module."""

    grad: Any
    _ref: Ref

    def numpy(self) -> np.ndarray:
        """The elements."""


Source = Callable[["Replay"], np.ndarray]


@dataclass
class Replay:
    """What is there when a trace is run: the arguments, the sizes that vary, the arrays that were drawn, the results of
    each call, and the ids of the arguments."""

    arguments: Sequence[np.ndarray]
    sizes: Mapping[str, int] = field(default_factory=dict)
    drawn: list[np.ndarray] = field(default_factory=list)
    results: list[tuple[np.ndarray, ...]] = field(default_factory=list)
    given: frozenset[int] = field(init=False)

    def __post_init__(self) -> None:
        self.given = frozenset(map(id, self.arguments))


class Trace:
    """The record of one run of a function over `arguments`. `formulas`: of shapes, if it is for many sizes."""

    def __init__(self, arguments: Sequence[np.ndarray], formulas: ShapeFormulas | None = None) -> None:
        self.formulas = formulas
        self.steps: list[Callable[[Replay], None]] = []
        # Tensors that keep a value, and the leaf that was read.
        self.held: dict[int, tuple[KeepsArray, Leaf]] = {}
        self._sources: dict[int, tuple[np.ndarray, Source]] = {}        # by id; the array keeps it taken
        self._calls = self._draws = 0
        for n, array in enumerate(arguments):
            self._comes_from(array, _argument(n))

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

    def called(self, operator: Operator, leaves: Sequence[Ref], wanted: Sequence[Ref],
               made: Sequence[np.ndarray]) -> None:
        """A library has computed arrays: the results that were wanted."""
        if self.formulas is not None:
            for r, array in zip(wanted, made, strict=True):
                self.formulas.comes(array, self.formulas.of(r))
        sources, number = [self.source(r) for r in leaves], self._calls
        self._calls += 1
        for n, array in enumerate(made):
            self._comes_from(array, _result(number, n))

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

    def made(self, make: Callable[..., np.ndarray], given: Sequence[Any], extents: Sequence[Any]) -> np.ndarray:
        """An array of these extents is made of numbers, and of sizes that vary."""
        array, number = make(*map(value_of_all, given)), self._draws
        self._draws += 1
        assert self.formulas is not None
        self.formulas.comes(array, tuple(map(formula_of, extents)))
        self._comes_from(array, lambda now: now.drawn[number])
        self.steps.append(lambda now: now.drawn.append(make(*[value_of_all(v, now.sizes) for v in given])))
        return array

    def gave(self, tensor: KeepsArray, r: Ref) -> None:
        """A tensor keeps this array from now on."""
        source, own = self.source(r), tensor._ref.node
        assert isinstance(own, Leaf)
        self.held[id(tensor)] = tensor, own
        self.steps.append(lambda now: keep(tensor, source(now)))

    def _comes_from(self, array: np.ndarray, source: Source) -> None:
        self._sources[id(array)] = array, source


def _argument(number: int) -> Source:
    return lambda now: now.arguments[number]


def _result(call: int, number: int) -> Source:
    return lambda now: now.results[call][number]


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


def formulas_of(r: Ref) -> tuple[Expr, ...] | None:
    """The extents of a result as formulas, in a function that is traced once for many sizes."""
    trace = ACTIVE.get()
    return None if trace is None or trace.formulas is None else trace.formulas.of(r)


def shape_of(r: Ref) -> tuple[Any, ...]:
    """The shape of a result, with the sizes that vary."""
    trace = ACTIVE.get()
    return r.shape if trace is None or trace.formulas is None else trace.formulas.shape(r)


def zeros(r: Ref) -> Ref:
    """Zeros in the shape of a result."""
    dtype, extents = numpy_dtype(r.dtype), formulas_of(r)
    if extents is None or all(isinstance(e, Const) for e in extents):
        return Ref(Leaf(np.zeros(r.shape, dtype), r.dtype))
    return made_of_sizes(lambda given: np.zeros(given, dtype), [shape_of(r)], shape_of(r), r.dtype)


def made_of_sizes(make: Callable[..., np.ndarray], given: Sequence[Any], extents: Sequence[Any], dtype: str) -> Ref:
    """An array of these extents that is made of numbers, and of sizes that vary: another one each time."""
    trace = ACTIVE.get()
    assert trace is not None
    return Ref(Leaf(trace.made(make, given, extents), dtype))


def give(tensor: KeepsArray, r: Ref) -> None:
    """A tensor keeps the array of a node, which is computed."""
    array = r.array
    assert array is not None
    keep(tensor, array)
    trace = ACTIVE.get()
    if trace is not None:
        trace.gave(tensor, r)


def keep(tensor: KeepsArray, array: np.ndarray) -> None:
    """A tensor of the program, a parameter or a state, has this value from now on."""
    array.flags.writeable = False
    tensor._ref = Ref(Leaf(array, tensor._ref.dtype, stays=True))
    hold(tensor)


def hold(tensor: KeepsArray) -> None:
    """The tensor stays: the next graph reads it again, with another value perhaps."""
    if isinstance(tensor._ref.node, Leaf):
        tensor._ref.node.stays = True
        tensor._ref.node.holder = ref(tensor)


def kept_array(tensor: KeepsArray) -> np.ndarray:
    """The array of a tensor that stays."""
    array = tensor._ref.array
    return tensor.numpy() if array is None else array
