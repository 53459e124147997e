"""Expressions of bodies in Python inside loops over elements: conditions, and what variables hold."""
from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any, Protocol

from ...tensor.values import Read
from ..typing import Term
from .argument_binding import as_array
from .array_scope import ArrayScope
from .builder import Builder
from .elementwise_functions import apply, choose, scalar, term_of, truth
from .handles import Array, Operand
from .python_expressions import HANDLERS as EXPRESSIONS
from .python_expressions import PythonExpressions, UserFunction
from .python_source import PythonSource
from .python_statements import may_change_arrays
from .selection import select


@dataclass(eq=False)
class Variable:
    """A number that statements change. `name`: in memory. `key`: where its type is kept between two readings of the
    body."""

    name: str
    key: tuple[int, str]


class Variables(Protocol):
    """What expressions ask of statements. `ended`: names that are no longer set, and what set them."""

    ended: dict[str, str]

    def read(self, variable: Variable, pos: int) -> Term:
        """The number that a variable holds."""

    def stays(self, b: Builder, term: Term) -> bool:
        """Is it arithmetic over sizes and variables of loops?"""

    def kept(self, b: Builder, value: Any) -> Any:
        """What a list gets, as it is now."""


class LoopExpressions(PythonExpressions):
    """Expressions inside loops: conditions may depend on elements."""

    def __init__(self, owner: Variables, builder: Builder, source: PythonSource, scope: ArrayScope,
                 run: Callable[[UserFunction, dict[str, Any]], Any],
                 generated: Callable[[ast.Call], Any]) -> None:
        super().__init__(builder, source, scope, run, generated)
        self.owner = owner
        self.handlers = {
            **EXPRESSIONS, ast.Name: LoopExpressions.name, ast.UnaryOp: LoopExpressions.unary,
            ast.Compare: LoopExpressions.compare, ast.BoolOp: LoopExpressions.logic, ast.IfExp: LoopExpressions.choice,
            ast.Subscript: LoopExpressions.subscript}

    def name(self, node: ast.Name) -> Any:
        """A variable gives its number; others are as in other bodies."""
        value = self.scope.values.get(node.id)
        if isinstance(value, Variable):
            return self.owner.read(value, self.source.position(node))
        if value is None and node.id not in self.scope.values and node.id in self.owner.ended:
            self.fail(node, "E220", f"'{node.id}' may not be set here: it is assigned in {self.owner.ended[node.id]}",
                      f"assign it before: {node.id} = 0.0")
        return super().name(node)

    def kept(self, b: Builder, value: Any) -> Any:
        return self.owner.kept(b, value)

    def before(self, value: Any, *later: ast.expr) -> Any:
        """An element as it is now, if a call in a later operand changes elements."""
        return self.owner.kept(self.builder, value) if any(map(self.has_effects, later)) else value

    def has_effects(self, node: ast.AST, inside: frozenset[str] = frozenset()) -> bool:
        """Does it call a function of the body that changes elements? `inside`: the functions that are looked at."""
        for each in ast.walk(node):
            if not isinstance(each, ast.Call) or not isinstance(each.func, ast.Name) or each.func.id in inside:
                continue
            function = self.scope.values.get(each.func.id)
            if isinstance(function, UserFunction) and isinstance(function.body, list):
                seen = inside | {each.func.id}
                if may_change_arrays(function.body) or any(self.has_effects(part, seen) for part in function.body):
                    return True
        return False

    def known(self, node: ast.expr) -> bool | Operand:
        """A condition: what it is when the body is compiled, or a bool for each call."""
        value = self.eval(node)
        operand = None if isinstance(value, tuple | list | str | bool | int | float) else term_of(value, 0)
        if operand is None or (isinstance(operand, Array) and operand.rank):
            return self.as_truth(node, value)
        b = self.at(node)
        test = truth(b, operand)
        if isinstance(test, Term):
            cond = b.typing.condition(test, b.typing.words.where)
            for answer, holds in ((True, b.sizes.proves), (False, b.sizes.refutes)):
                if not any(isinstance(n, Read) for n in cond.unique()) and holds(cond):
                    return answer
        return test

    def unary(self, node: ast.UnaryOp) -> Any:
        if not isinstance(node.op, ast.Not):
            return super().unary(node)
        test = self.known(node.operand)
        return (not test) if isinstance(test, bool) else apply(self.at(node), "not", test)

    def compare(self, node: ast.Compare) -> Any:
        """`a < b < c` is two comparisons."""
        if len(node.ops) == 1:
            return super().compare(node)
        operands = [node.left, *node.comparators]
        pairs = [ast.copy_location(ast.Compare(x, [op], [y]), node)
                 for x, op, y in zip(operands, node.ops, operands[1:], strict=False)]
        return self.logic(ast.copy_location(ast.BoolOp(ast.And(), list(pairs)), node))

    def logic(self, node: ast.BoolOp) -> Any:
        """`a and b`: b is not computed where a does not hold."""
        stops_at = isinstance(node.op, ast.Or)
        tests: list[Operand] = []
        for part in node.values:
            test = self.known(part)
            if not isinstance(test, bool):
                tests.append(test)
            elif test == stops_at:
                if not tests:
                    return test
                found = term_of(test, self.source.position(part))
                assert found is not None
                tests.append(found)
                break
        b = self.at(node)
        yes, no = [found for found in (term_of(True, b.pos), term_of(False, b.pos)) if found is not None]
        if not tests:
            return not stops_at

        def both(rest: Operand, test: Operand) -> Operand:
            if isinstance(rest, Term) and self.owner.stays(b, rest):
                return apply(b, "or" if stops_at else "and", test, rest)
            return choose(b, test, yes, rest) if stops_at else choose(b, test, rest, no)
        return reduce(both, reversed(tests))

    def choice(self, node: ast.IfExp) -> Any:
        test = self.known(node.test)
        if isinstance(test, bool):
            return self.eval(node.body if test else node.orelse)
        b, x, y = self.at(node), self.operand(node.body), self.operand(node.orelse)
        if any(isinstance(each, Array) and each.rank for each in (x, y)):
            return choose(b, test, x, y)
        cond = b.typing.condition(b.term(test, ()), b.typing.words.where)           # weak numbers stay weak
        return scalar(b, b.typing.choose(cond, b.term(x, ()), b.term(y, ()), b.pos))

    def subscript(self, node: ast.Subscript) -> Any:
        """An element of a list whose index is not known is one of an array of its numbers."""
        if isinstance(node.value, ast.Name | ast.Tuple | ast.List):
            owner = self.eval(node.value)
            if isinstance(owner, tuple | list):
                at = self.eval(node.slice)
                if isinstance(at, Array | Term) and (made := as_array(self.at(node), owner)) is not None:
                    return select(self.at(node.slice), made, at)
        return super().subscript(node)
