"""What the evaluator of whole-array bodies computes with: arrays, which are named values, and scalars."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any, ClassVar, TypeVar

from ...core.dtypes import DTYPES, is_integer
from ...core.expr import Const, Expr, Op, Var, index
from ...core.node import Node
from ...core.text import flat, form_of
from ...frozen import frozen
from ...loop.affine import canonical
from ...tensor.values import Read
from ..typing import WEAK_INT, Term, Value

Indices = tuple[Expr, ...]
ZERO, ONE = index(0), index(1)


@frozen
class Array:
    """A parameter or a value, by name. `base`: the array whose elements numpy would share with it (it is a view).
    `copied`: numpy would give it elements of its own."""

    name: str
    dtype: str
    shape: tuple[Expr, ...]
    base: Array | None = field(default=None, compare=False, repr=False)
    copied: bool = field(default=False, compare=False, repr=False)

    @property
    def rank(self) -> int:
        return len(self.shape)

    def at(self, indices: Sequence[Expr]) -> Expr:
        """An element."""
        return Read(self.name, tuple([canonical(i) for i in indices]), self.dtype)

    @property
    def root(self) -> Array:
        """The array whose elements it shares, at the end of the chain of views."""
        array = self
        while array.base is not None:
            array = array.base
        return array


Operand = Array | Term        # a term is a scalar: a number, a size, a scalar argument, arithmetic over them
AnyOperand = TypeVar("AnyOperand", bound=Operand)


@frozen
class Unset:
    """An output that is no input, before the body sets it."""

    name: str
    dtype: str
    shape: tuple[Expr, ...]


@frozen
class Selected:
    """The elements, or rows, of an array where a mask of some of its axes is true; `axis` is the first of these. In
    NumPy they have one axis in the place of those of the mask. How many there are is not known before the call."""

    array: Array
    mask: Array
    axis: int = 0
    described: ClassVar[str] = "the elements that a mask selects"

    @property
    def dtype(self) -> str:
        return self.array.dtype

    @property
    def rank(self) -> int:
        """How many axes there are in NumPy."""
        return self.array.rank - self.mask.rank + 1

    @property
    def after(self) -> int:
        """How many axes follow that of what is selected."""
        return self.rank - 1 - self.axis


def owned(operand: AnyOperand) -> AnyOperand:
    """An array with elements of its own, as a copy has them."""
    return replace(operand, base=None, copied=True) if isinstance(operand, Array) else operand


class NeedsLoops(Exception):
    """A statement over single elements: the front end for loops must read it."""

    def __init__(self, statement: Any) -> None:
        super().__init__("this statement needs loops over elements")
        self.statement = statement


def shape_of(operand: Operand) -> tuple[Expr, ...]:
    """The shape; () for a scalar."""
    return operand.shape if isinstance(operand, Array) else ()


def dtype_of(operand: Operand) -> str:
    """The element type, or a weak kind."""
    return operand.dtype if isinstance(operand, Array) else operand.kind


def is_whole(kind: str) -> bool:
    """Is it an integer type? A weak kind is none."""
    return kind in DTYPES and is_integer(kind)


def spelled(shape: Sequence[Expr]) -> str:
    """A shape for a message: [M 3]."""
    return f"[{' '.join([spelled_extent(extent) for extent in shape])}]"


def spelled_extent(extent: Node) -> str:
    """An extent for a message."""
    return extent.name if isinstance(extent, Var) else flat(form_of(extent))


def size_term(expr: Expr, pos: int = 0) -> Term:
    """Arithmetic over sizes as a weak integer."""
    return Value(WEAK_INT, pos, expr=canonical(expr))


def is_one(extent: Expr) -> bool:
    """Is the extent the number 1?"""
    return extent is ONE


def product_of(extents: Sequence[Expr]) -> Expr:
    """The product in canonical form."""
    total: Expr = ONE
    for extent in extents:
        total = Op("mul", (total, extent))
    return canonical(total)


def constant_of(expr: Expr) -> int | None:
    """The number, if the expression is one."""
    return expr.value if isinstance(expr, Const) and isinstance(expr.value, int) else None
