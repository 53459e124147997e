"""The names of a whole-array body, and what becomes of its outputs."""
from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from ...core.expr import Var
from ...core.node import Node
from ...core.program import Buffer, Scalar, Size
from ...errors import amount
from ...loop.affine import canonical
from ...tensor.values import Output
from ..typing import WEAK_INT, Value
from .argument_binding import described, refuse_selected
from .builder import Builder
from .called_composites import Composites
from .elementwise_functions import term_of
from .handles import Array, Selected, Unset


class ArrayScope:
    """What each name stands for: a static value of Python, a scalar, an array, or an output that is not set.

    `outputs`: in the order of the spec. `composites`: those that the body may call. `attributes`: by name."""

    def __init__(self, params: Sequence[Node], outputs: Sequence[str], composites: Composites,
                 attributes: Sequence[tuple[str, Any]] = ()) -> None:
        self.composites = composites
        self.attributes = dict(attributes)
        self.values: dict[str, Any] = dict(attributes)
        self.outputs = tuple(outputs)
        self.buffers = {p.name: p for p in params if isinstance(p, Buffer)}
        self.params: dict[str, Any] = {}
        self.suspended: list[dict[str, Any]] = []           # the names of the callers of the function that runs
        self.waiting: list[Any] = []                        # parts of a tuple that are stored next
        self.sizes = frozenset([p.name for p in params if isinstance(p, Size)])
        for p in params:
            match p:
                case Size(name=name):
                    self.values[name] = Value(WEAK_INT, 0, expr=Var(name, "i64"))
                case Scalar(name=name, type=dtype):
                    self.values[name] = Value(dtype, 0, expr=Var(name, dtype))
                case Buffer(name=name, type=dtype, access=access):
                    shape = tuple([canonical(extent) for extent in p.shape])
                    made: Array | Unset = (Unset if access == "out" else Array)(name, dtype, shape)
                    self.values[name] = self.params[name] = made

    def attributes_in(self, node: ast.AST) -> dict[str, Any]:
        """The attributes that an expression names, with their values."""
        names = dict.fromkeys([n.id for n in ast.walk(node) if isinstance(n, ast.Name)])
        return {name: self.attributes[name] for name in names if name in self.attributes}

    def is_input(self, array: Any) -> bool:
        """Is it an array of the caller's that is no output, or a view of one?"""
        if not isinstance(array, Array):
            return False
        root = array.root
        return any(root is given and self.buffers[name].access == "in" for name, given in self.params.items())

    def check_change(self, b: Builder, name: str, array: Any) -> None:
        """E225 for a change of an input, E245 for one that numpy would show under another name too."""
        if self.is_input(array):
            b.fail("E225", f"'{name}' is an input and no output: it cannot be changed",
                   f"take a new name, or list \"{name}\" among the outputs")
        for values in self.suspended:
            for other in _holders(values, array):
                b.fail("E245", f"this function changes '{other}', which is not its own",
                       "return the new value, and assign it where the function is called")
        holders = _holders(self.values, array)
        holders.remove(name)
        for other in holders:
            if other == name:
                b.fail("E245", f"'{name}' has this array twice: this changes both", "put a .copy() into it")
            b.fail("E245", f"'{name}' and '{other}' share their elements: this changes both",
                   f"give one of them elements of its own: {other}.copy()")
        if any(_root(each) is _root(array) for each in arrays_in(self.waiting)):
            b.fail("E245", f"this changes '{name}' before a part of it is stored",
                   "copy the part first: " + f"{name}[0].copy()")

    def finish(self, b: Builder, returned: Sequence[Any] | None, changed: Collection[str] = ()) -> tuple[Output, ...]:
        """The value of each output: what is returned, by position, or what its name stands for. E228 if that is what it
        was at the call, and not among the arrays that are `changed` in place, perhaps in a loop without iterations."""
        values = dict(self.values)
        if returned is not None:
            values |= zip(self.returned_outputs(b, len(returned)), returned, strict=True)
        return tuple([self._output(b, name, values[name], name in changed) for name in self.outputs])

    def returned_outputs(self, b: Builder, count: int) -> tuple[str, ...]:
        """The outputs that so many returned values are for: all, or those that are no inputs."""
        separate = tuple([name for name in self.outputs if self.buffers[name].access == "out"])
        for names in (self.outputs, separate):
            if count == len(names):
                return names
        b.fail("E229", f"{amount(count, 'value')} {'is' if count == 1 else 'are'} returned for "
                       f"{amount(len(self.outputs), 'output')}",
               f"the outputs are {', '.join(self.outputs)}")

    def _output(self, b: Builder, name: str, value: Any, may_stay: bool) -> Output:
        param = self.params[name]
        unchanged = isinstance(value, Array) and value.name == name
        if isinstance(value, Unset) or (unchanged and value is param and not may_stay):
            b.fail("E228", f"the output '{value.name if isinstance(value, Unset) else name}' is never written",
                   "assign it, or take it off the outputs")
        return Output(name, self.fitting(b, name, value).name)

    def fitting(self, b: Builder, name: str, value: Any) -> Array:
        """A value as that of an output. E310 and E320 if it has another type or shape."""
        param, operand = self.params[name], term_of(value, b.pos)
        if isinstance(value, Selected):
            refuse_selected(b)
        if operand is None:
            b.fail("E322", f"the output '{name}' is an array, not {described(value)}")
        if not isinstance(operand, Array):
            expr = b.typing.settle(operand, param.dtype, f"the output '{name}'")
            operand = b.compute((), lambda _: expr)
        b.same_shape(operand.shape, param.shape, f"the output '{name}'",
                     f"{name}[...] = value repeats it along the axes that it lacks")
        if operand.dtype != param.dtype:
            b.typing.settle(b.term(operand, b.axes(operand.shape)[1]), param.dtype, f"the output '{name}'")
        if operand.name in self.buffers:                   # a copy of a parameter
            return b.compute(param.shape, operand.at)
        return operand


def _holders(values: dict[str, Any], array: Any) -> list[str]:
    """The names under which the elements of an array are seen, once for each time."""
    return [name for name, value in values.items() for each in arrays_in(value) if _root(each) is _root(array)]


def _root(array: Array | Unset) -> Array | Unset:
    return array.root if isinstance(array, Array) else array


def arrays_in(value: Any) -> Iterator[Array | Unset]:
    if isinstance(value, Array | Unset):
        yield value
    elif isinstance(value, tuple | list):
        for part in value:
            yield from arrays_in(part)
