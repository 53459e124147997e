"""Calls of other composites in whole-array bodies: `H = Layer(X, W, b)`. A call changes none of its arguments: it
returns the outputs, as values."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

from ...core.dtypes import DTYPES
from ...core.expr import Expr, Op, Var
from ...core.node import substitute
from ...core.program import Buffer, Require, Scalar, Size
from ...errors import CatenError, amount, did_you_mean
from ...frozen import frozen
from ...loop.affine import canonical
from ...options import Instance
from ...tensor.inlining import inline
from ...tensor.values import TensorProgram
from ..generic_signature import Tensor, for_each_axis, is_value, misfit, of_call, tuples
from ..solved_sizes import solved_sizes
from ..typing import spell
from .argument_binding import ElementType, as_operand, described, refuse_selected, unset
from .builder import Builder
from .handles import Array, Selected, Unset, constant_of, spelled


@frozen
class CalledComposite:
    """A composite as a function of its inputs, which returns its outputs. `values`: those of an instance of a generic
    composite, or of one that is none. `attributes`: with their defaults."""

    described: ClassVar[str] = "a composite"
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    values: Callable[[Instance | None], TensorProgram]
    attributes: tuple[tuple[str, Any], ...] = ()
    generic: tuple[Tensor, ...] = ()

    @property
    def usage(self) -> str:
        """How it is called."""
        return f"{self.name}({', '.join([*self.inputs, *[f'{name}={value!r}' for name, value in self.attributes]])})"


class Composites(Protocol):
    """The composites that a body may call."""

    def function(self, name: str) -> CalledComposite | None:
        """The composite of this name, in any spelling."""

    def of_library(self, name: str) -> CalledComposite | None:
        """The operator of the library, also where the spec has another composite of this name."""

    def names(self) -> list[str]:
        """All names that are known without a search."""

    def library_names(self) -> list[str]:
        """The names of the operators of the library."""


class NoComposites:
    """A body that calls nothing."""

    def function(self, name: str) -> CalledComposite | None:
        return None

    def of_library(self, name: str) -> CalledComposite | None:
        return None

    def names(self) -> list[str]:
        return []

    def library_names(self) -> list[str]:
        return []


def call_composite(b: Builder, callee: CalledComposite, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """The output of a call, or a tuple of several. E322 for a wrong number of arguments, E314 for a wrong type or rank,
    E242 for a size that does not follow from the arguments, E315 if the shapes contradict the signature."""
    attributes = {name: static(b, callee, name, keywords[name]) for name, _ in callee.attributes if name in keywords}
    given = _bound(b, callee, args, {name: value for name, value in keywords.items() if name not in attributes})
    program = _values(b, callee, given, attributes)
    arrays: dict[str, Array] = {}
    numbers: dict[Expr, Expr] = {}
    for p in program.params:
        if isinstance(p, Buffer | Scalar) and p.name in given:
            operand = _operand(b, callee, p.name, given[p.name])
            if isinstance(p, Buffer):
                arrays[p.name] = _array(b, callee, p, operand)
            else:
                numbers[Var(p.name, p.type)] = _scalar(b, callee, p, operand)
    pairs = [(p, mine, theirs) for p in program.all(Buffer) if p.name in arrays
             for mine, theirs in zip(p.axes, arrays[p.name].shape, strict=True)]
    conditions = [r.cond for r in program.all(Require)]
    sizes = solved_sizes([(mine, theirs) for _, mine, theirs in pairs], conditions, numbers)
    for size in program.all(Size):
        if Var(size.name, "i64") not in sizes:
            b.fail("E242", f"the size '{size.name}' of {callee.name} does not follow from the arguments of this call",
                   f"declare an input of {callee.name} with an axis that is '{size.name}' alone")
    for p, mine, theirs in pairs:
        expected = canonical(substitute(mine, sizes))
        if expected is not theirs:
            b.require(Op("eq", (expected, theirs)), "E315", f"the argument '{p.name}' of {callee.name} has the shape "
                      f"{spelled(arrays[p.name].shape)}, where {spelled(p.axes)} is declared, with {mine!r} = "
                      f"{expected!r}")
    for condition in conditions:
        b.require(substitute(condition, sizes), "E315",
                  f"this call contradicts a condition of {callee.name}, {condition!r}")
    unset = {p.name: "" for p in program.all(Buffer) if p.name not in arrays}      # every element is set before a read
    names = inline(program, b.table, unset | {name: array.name for name, array in arrays.items()}, sizes)
    found: list[Array] = []
    for output in program.outputs:
        buffer = program.buffers[output.name]
        shape = tuple([canonical(substitute(extent, sizes)) for extent in buffer.axes])
        found.append(Array(names[output.value], buffer.type, shape))
        b.positions.setdefault(names[output.value], b.pos)
    return found[0] if len(found) == 1 else tuple(found)


def _values(b: Builder, callee: CalledComposite, given: Mapping[str, Any],
            attributes: Mapping[str, Any]) -> TensorProgram:
    """The values of a composite; of a generic one, those of the instance for these arguments. E314 if there is none."""
    if not callee.generic and not callee.attributes:
        return callee.values(None)
    arrays: dict[str, tuple[str, tuple[int, ...]]] = {}
    for name, value in given.items():
        operand = _operand(b, callee, name, value)
        if isinstance(operand, Array):
            arrays[name] = operand.dtype, tuple([1 if constant_of(extent) == 1 else 2 for extent in operand.shape])
        else:
            arrays[name] = operand.kind, ()
    try:
        return callee.values(of_call(callee.generic, arrays, attributes, callee.attributes))
    except CatenError as problem:
        if (filled := for_each_axis(problem, callee.attributes, attributes)) is not None:
            return _values(b, callee, given, filled)
        if (said := misfit(problem, callee.attributes, attributes)) is not None:
            b.fail("E314", f"{callee.name}: {said}")
        first = next(iter(problem.diagnostics), None)
        if first is None or first.code != "E675":
            raise
        b.fail("E314", f"{callee.name}: {first.message}", first.hint)


def static(b: Builder, callee: CalledComposite, name: str, value: Any) -> Any:
    """The value of an attribute."""
    if isinstance(value, ElementType):
        return DTYPES[value.dtype].numpy
    if not is_value(value):
        b.fail("E322", f"the attribute '{name}' of {callee.name} is known when the body is compiled, and not "
               f"{described(value)}", "it may be a number, True, False, None, a text, or a tuple of them")
    return tuples(value)


def _bound(b: Builder, callee: CalledComposite, args: Sequence[Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments by name."""
    for key in keywords:
        if key not in callee.inputs:
            b.fail("E322", f"{callee.name} has no input '{key}'",
                   did_you_mean(key, callee.inputs) or f"write {callee.usage}")
    given = dict(zip(callee.inputs, args, strict=False)) | dict(keywords)
    if len(args) + len(keywords) != len(callee.inputs) or len(given) != len(callee.inputs):
        b.fail("E322", f"{callee.name} takes {amount(len(callee.inputs), 'argument')}, not {len(args) + len(keywords)}",
               f"write {callee.usage}")
    return given


def _operand(b: Builder, callee: CalledComposite, name: str, value: Any) -> Any:
    if isinstance(value, Unset):
        unset(b, value)
    if isinstance(value, Selected):
        refuse_selected(b)
    operand = as_operand(b, value)
    if operand is None:
        b.fail("E322", f"the argument '{name}' of {callee.name} is an array or a number, not {described(value)}")
    return operand


def _array(b: Builder, callee: CalledComposite, formal: Buffer, operand: Any) -> Array:
    if not isinstance(operand, Array):
        expr = b.typing.settle(operand, formal.type, f"the argument '{formal.name}' of {callee.name}")
        operand = b.compute((), lambda _: expr)
    for mine, theirs, noun in ((spell(formal.type), spell(operand.dtype), "type"),
                               (len(formal.axes), operand.rank, "number of axes")):
        if mine != theirs:
            b.fail("E314", f"the argument '{formal.name}' of {callee.name} has the {noun} {mine}, not {theirs}")
    found: Array = operand
    return found


def _scalar(b: Builder, callee: CalledComposite, formal: Scalar, operand: Any) -> Expr:
    what = f"the argument '{formal.name}' of {callee.name}"
    if isinstance(operand, Array) and operand.rank:
        b.fail("E314", f"{what} is a number, not {described(operand)}")
    return b.typing.settle(b.term(operand, ()), formal.type, what)
