"""What a loop over elements goes over: an array, a range, and `enumerate`, `zip` and `reversed` of them."""
from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ...core.expr import Expr
from ...frozen import frozen
from ...loop.affine import canonical
from ..typing import WEAK_INT, Term, Value
from .elementwise_functions import apply
from .handles import ZERO, Array, Operand
from .python_expressions import PythonExpressions
from .selection import select

ITERATORS = ("enumerate", "zip", "reversed")


@frozen
class Iterated:
    """`extent`: the number of items. `item`: one of them, by the number of the iteration. `name`: for the loop."""

    extent: Expr
    item: Callable[[Term], Any]
    name: str


class Loops(Protocol):
    """What is asked of the statements."""

    expressions: Any

    def number(self, node: ast.expr, value: Any, what: str) -> Expr:
        """A bound of a loop."""


def call_of(node: ast.AST, names: Sequence[str], ex: PythonExpressions) -> ast.Call | None:
    """A call of one of these functions of Python, by position."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names and (
            node.func.id not in ex.scope.values and not any(isinstance(a, ast.Starred) for a in node.args)):
        return node
    return None


def iterated(loops: Loops, node: ast.expr, target: ast.AST | None) -> Iterated | None:
    """What is gone over; None for a list, which is known when the body is compiled. `target`: what gets the items."""
    ex = loops.expressions
    b = ex.at(node)
    if call := call_of(node, ("range",), ex):
        given = [ex.eval(a) for a in call.args]
        if not 1 <= len(given) <= 2 or call.keywords:
            return None
        low, high = [loops.number(node, value, "a bound") for value in ([0, *given] if len(given) == 1 else given)]
        return Iterated(canonical(high - low), lambda at: _shifted(b, at, low), _name(target))
    call = call_of(node, ITERATORS, ex)
    if call is None:
        value = ex.eval(node)
        if not isinstance(value, Array) or not value.rank:
            return None
        return Iterated(value.shape[0], lambda at: select(b, value, at), "item")
    parts = _elements(target)
    called = getattr(call.func, "id", "")
    if called == "enumerate":
        starts = [*call.args[1:], *[k.value for k in call.keywords if k.arg == "start"]]
        counted = iterated(loops, call.args[0], parts[1] if len(parts) == 2 else None) if call.args else None
        if counted is None or len(starts) > 1:
            return None
        first = loops.number(starts[0], ex.eval(starts[0]), "the start") if starts else ZERO
        extent, item = counted.extent, counted.item
        return Iterated(extent, lambda at: (_shifted(b, at, first), item(at)), _name(parts[0] if parts else None))
    if call.keywords:
        return None
    found = [iterated(loops, a, parts[n] if n < len(parts) else None) for n, a in enumerate(call.args)]
    known = [each for each in found if each is not None]
    if len(known) != len(call.args) or not known:
        return None
    if called == "reversed":
        (inner,) = known[:1]
        return Iterated(inner.extent, lambda at: inner.item(_reversed(b, at, inner.extent)), _name(target))
    for each in known[1:]:
        if b.same_extent(known[0].extent, each.extent) is None:
            ex.fail(node, "E320", "these arrays have different lengths")
    return Iterated(known[0].extent, lambda at: tuple([each.item(at) for each in known]), known[0].name)


def _shifted(b: Any, at: Term, by: Expr) -> Operand:
    return at if by is ZERO else apply(b, "add", at, Value(WEAK_INT, b.pos, expr=by))


def _reversed(b: Any, at: Term, extent: Expr) -> Any:
    last = Value(WEAK_INT, b.pos, expr=canonical(extent - 1))
    return apply(b, "sub", last, at)


def _elements(target: ast.AST | None) -> list[ast.expr]:
    return target.elts if isinstance(target, ast.Tuple) else []


def _name(target: ast.AST | None) -> str:
    return target.id if isinstance(target, ast.Name) else "item"
