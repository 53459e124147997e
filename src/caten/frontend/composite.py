"""A declared operator: its signature, and its body as text.

Both spellings of a spec (TOML and the one-line form) end here. frontend.body lowers the text to statements.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, TypeVar

from ..core.expr import Expr
from ..core.node import Node
from ..core.program import Buffer, Fact, Require, Scalar, Size
from ..core.text import show
from ..errors import CatenError, Diagnostic, Place
from ..frozen import frozen
from ..options import Instance
from .generic_signature import Tensor
from .lowered_body import Lowered

T = TypeVar("T")
MAX_NESTED_FORMS = 20_000      # nesting of a body in Lisp, with the operands of functions


def declaration(name: str, dtype: str, shape: Sequence[Expr], order: Sequence[int]) -> str:
    """A tensor as a signature declares it."""
    axes = "" if list(order) == sorted(order) else f"<{' '.join(map(str, order))}>"
    return f"{name}{{{dtype}}}[{' '.join([show(extent) for extent in shape])}]{axes}"


@frozen
class Declared:
    """A tensor of the signature. `name`: a C identifier (`x-size` is `x_size`). `shape`: arithmetic over sizes, of type
    i64. `order`: the axes from slowest to fastest. `access`: `in`, `out` or `inout`. `text`: the declaration as
    written, at `place`."""

    name: str
    dtype: str
    shape: tuple[Expr, ...]
    order: tuple[int, ...]
    access: str
    text: str
    place: Place | None = None
    grad: bool = False

    @property
    def rank(self) -> int:
        return len(self.shape)

    def with_shape(self, shape: tuple[Expr, ...], dtype: str) -> Declared:
        """The same with this shape and element type, in row-major order."""
        order = tuple(range(len(shape)))
        return replace(self, shape=shape, order=order, dtype=dtype, text=declaration(self.name, dtype, shape, order))

    @property
    def scalar(self) -> bool:
        """True if it is passed by value: a read-only tensor of rank 0. All others are buffers, of shape () for rank
        0."""
        return not self.shape and self.access == "in"


@frozen
class Composite:
    """A declared operator and the text of its body.

    `tensors`: the inputs in order, then the pure outputs. `sizes`: in order of first appearance, which is their order
    as C arguments. `conditions`: the constraints on sizes from where-clauses and requirements. `where`: maps an offset
    in `code` to a position in the spec's file. `attributes`: by name, with their values. `generic`: the declarations,
    if this is an instance of a generic signature. `inferred`: outputs whose shape follows from the body. `remade`:
    makes another instance. `instance`: what tells it from others of the same name. `ending`: what its name has for that
    reason, in a library of several instances.
    """

    name: str
    tensors: tuple[Declared, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    sizes: tuple[str, ...]
    conditions: tuple[Expr, ...]
    code: str
    lang: str
    where: Callable[[int], Place]
    name_place: Place
    file: str = "<text>"
    doc: str = ""
    facts: tuple[Fact, ...] = ()
    attributes: tuple[tuple[str, Any], ...] = ()
    generic: tuple[Tensor, ...] = ()
    inferred: tuple[str, ...] = ()
    remade: Callable[[Instance], Composite] | None = None
    instance: str = ""
    ending: str = ""

    @property
    def called(self) -> str:
        """The name that bodies call it by."""
        return self.name.removesuffix(self.ending)

    def tensor(self, name: str) -> Declared | None:
        """The declaration with exactly this name."""
        return next((t for t in self.tensors if t.name == name), None)

    @property
    def key(self) -> str:
        """Its name and its instance."""
        return self.name + self.instance

    @property
    def names(self) -> tuple[str, ...]:
        """All declared names: tensors, then sizes."""
        return (*[t.name for t in self.tensors], *self.sizes)


def parameter(tensor: Declared) -> Node:
    """The parameter of a tensor: scalars are passed by value, everything else by address."""
    if tensor.scalar:
        return Scalar(tensor.name, tensor.dtype)
    return Buffer(tensor.name, tensor.dtype, tensor.shape, tensor.order, tensor.access)


def parameters(composite: Composite) -> tuple[Node, ...]:
    """The parameters of a composite: tensors, sizes and conditions."""
    return (*[parameter(t) for t in composite.tensors], *[Size(name) for name in composite.sizes],
            *[Require(cond) for cond in composite.conditions])


class Callees:
    """The composites that a body may call, by name in any spelling."""

    def __init__(self, composites: Sequence[Composite] = ()):
        self.composites = composites

    def find(self, name: str) -> Composite | None:
        return next((c for c in self.composites if fold(c.called) == fold(name)), None)

    def of_library(self, name: str) -> Composite | None:
        """The operator of the library."""
        return None

    def names(self) -> list[str]:
        return list(dict.fromkeys([c.called for c in self.composites]))

    def library_names(self) -> list[str]:
        """The names of the operators of the library."""
        return []

    def instance(self, composite: Composite, instance: Instance) -> Composite:
        """An instance of a generic composite. CatenError if there is none."""
        assert composite.remade is not None
        return composite.remade(instance)

    def array_body(self, composite: Composite) -> Lowered | None:
        """The body of a composite, if it is one over whole arrays."""
        return None


@dataclass
class Declarations:
    """What was read so far: the composites whose signatures are right, all errors, and the names of refused composites.
    `complete`: False if a composite without a name, or a whole file, was refused."""

    composites: list[Composite] = field(default_factory=list)
    problems: list[Diagnostic] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)
    complete: bool = True

    def attempt(self, make: Callable[[], T]) -> T | None:
        """What `make` returns; None, and its errors on record, if it refuses."""
        try:
            return make()
        except CatenError as refusal:
            self.problems += refusal.diagnostics
            return None

    def refuse(self, name: str | None) -> None:
        if name is None:
            self.complete = False
        else:
            self.refused.add(fold(name))


@lru_cache(maxsize=4096)
def fold(name: str) -> str:
    """The canonical spelling of a name: `K_H`, `k_h` and `k-h` are one name to a Lisp body."""
    return name.lower().replace("-", "_")


def named(written: str, known: Iterable[str]) -> str | None:
    """The name that is meant: the same, else one that differs in spelling only, else None."""
    names = list(known)
    return written if written in names else next((name for name in names if fold(name) == fold(written)), None)
