"""The graph of lazy tensors: arrays, numbers, and operators applied to them. Nothing in it is computed."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np

from caten.core.expr import Expr

from .templates import AnyTemplate, Reshape

Shape = tuple[int, ...]
NUMBERS = count()                                           # of operators, in the order in which they are applied
RECORDS: ContextVar[bool] = ContextVar("records", default=True)         # do gradients go through what is made now?


@dataclass(eq=False)
class Leaf:
    """An array that is there. `stays`: a parameter, whose extents are the same in the next graph; `fixed`: of another
    array the axes of which this is so. `holder`: the tensor that has it, if it stays."""

    array: np.ndarray
    dtype: str
    stays: bool = False
    fixed: frozenset[int] = frozenset()
    holder: Any = None                                          # a weak reference

    def __post_init__(self) -> None:
        self.computed: list[np.ndarray | None] = [self.array]

    @property
    def shape(self) -> Shape:
        return self.array.shape


@dataclass(eq=False)
class Constant:
    """A number: an array without axes that every graph has in its code."""

    value: complex
    dtype: str
    shape: Shape = ()
    computed: tuple[None] = (None,)


@dataclass(eq=False)
class Call:
    """An operator applied to arrays. `computed`: its results, once there are any. `stops`: no gradient goes through.
    `number`: later ones have greater numbers."""

    template: AnyTemplate
    inputs: tuple[Ref, ...]
    shapes: tuple[Shape, ...]
    computed: list[np.ndarray | None] = field(default_factory=list)
    stops: bool = False
    number: int = field(default_factory=NUMBERS.__next__)

    def __post_init__(self) -> None:
        self.computed = [None] * len(self.shapes)


Node = Leaf | Constant | Call


class Ref:
    """One result of a node."""

    __slots__ = ("dtype", "index", "node", "shape")
    node: Node
    index: int
    shape: Shape
    dtype: str

    def __init__(self, node: Node, index: int = 0) -> None:
        self.node, self.index = node, index
        if isinstance(node, Call):
            self.shape, self.dtype = node.shapes[index], node.template.dtypes[index]
        else:
            self.shape, self.dtype = node.shape, node.dtype

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ref) and self.node is other.node and self.index == other.index

    def __hash__(self) -> int:
        return hash((id(self.node), self.index))

    @property
    def stays(self) -> bool:
        """Is it a parameter?"""
        return isinstance(self.node, Leaf) and self.node.stays

    @property
    def numbers(self) -> tuple[bool, ...]:
        """For each axis of an array: is the extent the same in the next graph?"""
        return tuple([isinstance(self.node, Leaf) and (self.node.stays or axis in self.node.fixed)
                      for axis in range(len(self.shape))])

    @property
    def array(self) -> np.ndarray | None:
        """The array, if it is there."""
        return self.node.computed[self.index]

    def becomes(self, array: np.ndarray) -> None:
        """The result of an operator is computed: it is this array, which nobody changes."""
        assert isinstance(self.node, Call)
        array.flags.writeable = False
        self.node.computed[self.index] = array
        if self.node.stops and all(c is not None for c in self.node.computed):
            self.node.inputs = ()                           # no gradient will ask for them


def called(template: AnyTemplate, inputs: Iterable[Ref]) -> tuple[Ref, ...]:
    """An operator applied to arrays: its results."""
    given = tuple(inputs)
    node = Call(template, given, template.shapes([(r.dtype, r.shape) for r in given]), stops=not RECORDS.get())
    return tuple([Ref(node, n) for n in range(len(node.shapes))])


def reshaped(r: Ref, shape: Shape, formulas: tuple[Expr, ...] | None = None) -> Ref:
    """The same elements in another shape; `formulas`: of its extents, if they vary."""
    return r if r.shape == shape and formulas is None else called(Reshape(r.dtype, shape, formulas), [r])[0]


def is_there(r: Ref) -> bool:
    """Is a result computed, so that what it was computed from is not needed?"""
    return r.array is not None


def stops_gradients(r: Ref) -> bool:
    """Does no gradient go through the operator of a result?"""
    return isinstance(r.node, Call) and r.node.stops


def in_order(wanted: Iterable[Ref], ends: Callable[[Ref], bool] = is_there) -> Iterator[Call]:
    """The operators that these results need, each after those that it needs; not those that end the search."""
    done: set[int] = set()
    stack: list[tuple[Ref, bool]] = [(r, False) for r in reversed(list(wanted))]
    while stack:
        ref, is_ready = stack.pop()
        node = ref.node
        if not isinstance(node, Call) or (not is_ready and (id(node) in done or ends(ref))):
            continue
        if is_ready:
            yield node
            continue
        done.add(id(node))
        stack.append((ref, True))
        stack += [(r, False) for r in reversed(node.inputs)]
