"""What a body, or a function of it, returns from several branches: numbers are variables that each branch sets, arrays
are memory that each branch fills."""
from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, Protocol

from .builder import Builder
from .elementwise_functions import term_of
from .handles import Array, Operand
from .loop_expressions import Variable


class Memory(Protocol):
    """What is asked of the statements."""

    expressions: Any
    made: Any

    def declare(self, b: Builder, name: str, term: Any, pos: int) -> Variable: ...
    def change(self, b: Builder, name: str, variable: Variable, value: Operand) -> None: ...
    def read(self, variable: Variable, pos: int) -> Any: ...
    def in_memory(self, b: Builder, wanted: str, value: Operand) -> Array: ...


def _counted(values: Sequence[Any]) -> str:
    return f"{len(values) or 'no'} value{'s' * (len(values) > 1)}"


class ReturnedValues:
    """The values of an `if` whose branches return. E240 if they return different numbers of values."""

    def __init__(self, memory: Memory, node: ast.If) -> None:
        self.memory, self.b, self.node = memory, memory.expressions.at(node), node
        self.several: bool | None = None
        self.parts: list[Variable | Array] | None = None

    def keep(self, value: Any) -> None:
        """What the branch that is being evaluated returns."""
        values = list(value) if isinstance(value, tuple | list) else [] if value is None else [value]
        if self.parts is None:
            self.several = isinstance(value, tuple | list)
            self.parts = [self._first(n, each) for n, each in enumerate(values)]
            return
        if len(values) != len(self.parts):
            self.memory.expressions.fail(self.node, "E240", f"one branch returns {_counted(self.parts)}, and the other "
                                         f"{_counted(values)}", "return in both, or after the 'if'")
        for n, (part, each) in enumerate(zip(self.parts, values, strict=True)):
            operand = self._operand(each)
            if isinstance(part, Variable):
                self.memory.change(self.b, f"returned_{n}", part, operand)
            else:
                self.b.same_shape(self.b.array(operand).shape, part.shape, "what the other branch returns")
                self.memory.made.store(self.b, part, operand)

    def _first(self, n: int, value: Any) -> Variable | Array:
        operand = self._operand(value)
        if isinstance(operand, Array) and operand.rank:
            return self.memory.in_memory(self.b, f"returned_{n}", operand)
        variable = self.memory.declare(self.b, f"returned_{n}", self.b.term(operand, ()), self.b.pos)
        self.memory.change(self.b, f"returned_{n}", variable, operand)
        return variable

    def _operand(self, value: Any) -> Operand:
        found = term_of(value, self.b.pos)
        return found if found is not None else self.memory.expressions.as_operand(self.node, value)

    def value(self) -> Any:
        """What is returned, whichever branch was taken."""
        values = [self.memory.read(part, self.b.pos) if isinstance(part, Variable) else part
                  for part in self.parts or ()]
        return tuple(values) if self.several else values[0] if values else None
