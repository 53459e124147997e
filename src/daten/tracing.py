"""What a function does with arrays, recorded: the libraries that it calls, and the tensors that it gives new values. So
it can be done again without the function (`jit`)."""
from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from weakref import WeakValueDictionary, ref

import numpy as np

from caten.core.expr import Const, Expr
from caten.core.numpy_types import numpy_dtype

from .graph import NUMBERS, Call, Leaf, Ref
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
Value = TypeVar("Value")


@dataclass
class Replay:
    """What is there when a trace is run: the arguments, the sizes that vary, the arrays that tensors kept at its
    beginning, those that were drawn, the results of each call, and the ids of the arguments."""

    arguments: Sequence[np.ndarray]
    sizes: Mapping[str, int] = field(default_factory=dict)
    kept: Sequence[np.ndarray] = ()
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
        # Tensors that keep a value, and the leaf that was read; those whose value is read when a run begins.
        self.held: dict[int, tuple[KeepsArray, Leaf]] = {}
        self._reads: list[KeepsArray] = []
        self.assumptions: dict[Hashable, tuple[Callable[[], object], object]] = {}      # what is read, and what it was
        self.begun: dict[int, KeepsArray] = {}                          # by id: those that have had no gradient before
        self.assigned: dict[int, KeepsArray] = {}                       # by id: those whose gradient was set
        self._born: dict[int, KeepsArray] = {}                          # by id: those that the function makes
        self._first = next(NUMBERS)
        self._sources: dict[int, tuple[np.ndarray, Source]] = {}        # by id; the array keeps it taken
        self._calls = self._draws = 0
        for n, array in enumerate(arguments):
            self._comes_from(array, _argument(n))

    def source(self, r: Ref) -> Source:
        """Where the array of a node comes from: what is neither an argument, a result, drawn nor kept by a tensor is
        the same each time."""
        array = r.array
        assert array is not None
        if isinstance(r.node, Leaf):
            self._reads_if_kept(r.node)
        known = self._sources.get(id(array))
        return known[1] if known is not None else lambda now: array

    def _reads_if_kept(self, own: Leaf) -> None:
        """If this is what a tensor keeps when the function begins, it is read anew each time. One that has another
        value by now, or had before, does not keep it; one that the function itself makes begins with it each time."""
        holder: KeepsArray | None = own.holder() if own.holder is not None else None
        if id(own.array) in self._sources or holder is None or id(holder) in self.held or id(holder) in self._born or (
                isinstance(holder._ref.node, Leaf) and holder._ref.array is not own.array):
            return
        self.held[id(holder)] = holder, holder._ref.node if isinstance(holder._ref.node, Leaf) else own
        number = len(self._reads)
        self._reads.append(holder)
        self._comes_from(own.array, lambda now: now.kept[number])

    def replay(self, arguments: Sequence[np.ndarray], sizes: Mapping[str, int]) -> Replay:
        """Do again what was recorded, with other arguments."""
        now = Replay(arguments, sizes, [kept_array(t) for t in self._reads])
        for step in self.steps:
            step(now)
        return now

    def new_gradients(self) -> list[KeepsArray]:
        """The tensors that have a gradient from the function that is traced, and not from before."""
        known = {**self.begun, **{n: tensor for n, (tensor, _) in self.held.items()}}
        return [t for n, t in known.items() if t.grad is not None and (n in self.begun or self.differs(t.grad._ref))]

    def differs(self, r: Ref) -> bool:
        """Is it another array each time?"""
        if isinstance(r.node, Leaf):
            self._reads_if_kept(r.node)
        return not self.is_older(r) if r.array is None else id(r.array) in self._sources

    def is_older(self, r: Ref) -> bool:
        """Was it asked for before the function began? Then its value is the same each time."""
        return isinstance(r.node, Call) and r.node.number < self._first

    def makes(self, tensor: KeepsArray) -> None:
        """The function makes a tensor that stays: each time another one."""
        self._born[id(tensor)] = tensor
        source = self.source(tensor._ref) if isinstance(tensor._ref.node, Leaf) else None
        _hold(tensor)
        if source is not None:
            self._comes_from(_computed(tensor._ref), source)

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

    def gives(self, tensor: KeepsArray, r: Ref) -> None:
        """A tensor keeps this array from now on."""
        source = self.source(r)
        if isinstance(tensor._ref.node, Leaf):               # graphs may still read what it has kept until now
            self.source(tensor._ref)
        keep(tensor, _computed(r))
        own = tensor._ref.node
        assert isinstance(own, Leaf)
        self.held[id(tensor)] = tensor, own
        self._comes_from(own.array, source)
        self.steps.append(lambda now: keep(tensor, source(now)))

    def _comes_from(self, array: np.ndarray, source: Source) -> None:
        self._sources[id(array)] = array, source


def _argument(number: int) -> Source:
    return lambda now: now.arguments[number]


def _result(call: int, number: int) -> Source:
    return lambda now: now.results[call][number]


ACTIVE: ContextVar[Trace | None] = ContextVar("active", default=None)
# By id, as == compares elements: tensors that stay and have values that are not computed.
UNCOMPUTED: WeakValueDictionary[int, KeepsArray] = WeakValueDictionary()


def happens(effect: Callable[[], None]) -> None:
    """Do something, now and each time that what is being traced is done again."""
    effect()
    trace = ACTIVE.get()
    if trace is not None:
        trace.steps.append(lambda now: effect())


def assumed(key: Hashable, read: Callable[[], Value]) -> Value:
    """A value of Python on which it depends what is computed: where it is another one at a later call of what `jit`
    traces, this is traced again. `key`: tells one value from others."""
    value, trace = read(), ACTIVE.get()
    if trace is not None:
        trace.assumptions.setdefault(key, (read, value))
    return value


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
    trace = ACTIVE.get()
    if trace is None:
        keep(tensor, _computed(r))
    else:
        trace.gives(tensor, r)


def keep(tensor: KeepsArray, array: np.ndarray) -> None:
    """A tensor of the program, a parameter or a state, has this value from now on."""
    array.flags.writeable = False
    tensor._ref = Ref(Leaf(array.view(), tensor._ref.dtype, stays=True))   # an array's identity says whose value it is
    _hold(tensor)
    UNCOMPUTED.pop(id(tensor), None)


def hold(tensor: KeepsArray) -> None:
    """A tensor stays from now on: the next graph reads it again, with another value perhaps."""
    trace = ACTIVE.get()
    if is_kept(tensor):
        return
    if trace is None:
        _hold(tensor)
    else:
        trace.makes(tensor)


def _hold(tensor: KeepsArray) -> None:
    own = tensor._ref.node
    if isinstance(own, Leaf):
        other = own.holder() if own.holder is not None else None
        if other is not None and other is not tensor:
            tensor._ref = Ref(own := Leaf(own.array.view(), own.dtype))
        own.stays, own.holder = True, ref(tensor)
    elif ACTIVE.get() is None:
        UNCOMPUTED[id(tensor)] = tensor


def is_kept(tensor: KeepsArray) -> bool:
    """Does the tensor stay?"""
    own = tensor._ref.node
    return UNCOMPUTED.get(id(tensor)) is tensor or (
        isinstance(own, Leaf) and own.holder is not None and own.holder() is tensor)


def change(tensor: KeepsArray, r: Ref) -> None:
    """A tensor has the value of a node from now on, which is computed when it is needed."""
    if is_kept(tensor):
        UNCOMPUTED[id(tensor)] = tensor
        trace = ACTIVE.get()
        if trace is not None and isinstance(tensor._ref.node, Leaf):
            trace.source(tensor._ref)                       # graphs may still read it
    tensor._ref = r


def begins(tensor: KeepsArray) -> None:
    """A gradient is added to that of a tensor. ValueError if it has one from before the function that is traced, which
    would be there in the first call alone."""
    taken(tensor)
    trace = ACTIVE.get()
    if tensor.grad is None and trace is not None:
        happens(lambda: _refuse_gradient(tensor))
        trace.begun[id(tensor)] = tensor


def taken(tensor: KeepsArray) -> None:
    """The gradient of a tensor is used. ValueError as above."""
    trace = ACTIVE.get()
    if trace is not None and id(tensor) not in trace.assigned:
        _refuse_gradient(tensor)


def _refuse_gradient(tensor: KeepsArray) -> None:
    if tensor.grad is not None:
        raise ValueError(f"jit: {tensor!r} has a gradient from before the call: let an optimizer take it, or set it to "
                         f"None")


def _computed(r: Ref) -> np.ndarray:
    array = r.array
    assert array is not None
    return array


def kept_array(tensor: KeepsArray) -> np.ndarray:
    """The array of a tensor that stays."""
    array = tensor._ref.array
    return tensor.numpy() if array is None else array
