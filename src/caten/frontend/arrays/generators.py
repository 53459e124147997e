"""`sum(… for j in range(n))`, `any(…)` and `all(…)` of what a loop over elements gives: the loop that computes them."""
from __future__ import annotations

import ast
from typing import Any

from .handles import Array, constant_of
from .python_builtins import UnknownRange
from .python_iteration import ITERATORS, call_of

FUNCTIONS = ("sum", "any", "all")


def generator_of(node: ast.Call, expressions: Any) -> ast.GeneratorExp | ast.ListComp | None:
    """What is summed, where the number of its items is not known when the body is compiled."""
    call = call_of(node, FUNCTIONS, expressions)
    if call is None or call.keywords or not 1 <= len(call.args) <= 2:
        return None
    given = call.args[0]
    if not isinstance(given, ast.GeneratorExp | ast.ListComp) or (len(call.args) == 2 and call_of(
            node, ("sum",), expressions) is None):
        return None
    return given if _goes_over_elements(given.generators[0].iter, expressions) else None


def _goes_over_elements(node: ast.expr, expressions: Any) -> bool:
    if call := call_of(node, ITERATORS, expressions):
        return any(_goes_over_elements(a, expressions) for a in call.args)
    value = expressions.eval(node)
    return isinstance(value, UnknownRange) or (isinstance(value, Array) and bool(value.rank) and constant_of(
        value.shape[0]) is None)


def loop_of(node: ast.Call, generator: ast.GeneratorExp | ast.ListComp, name: str) -> list[ast.stmt]:
    """Statements that compute it. `name`: the variable that gets it; the names of the generator are its own."""
    own = {n.id for part in generator.generators for n in ast.walk(part.target) if isinstance(n, ast.Name)}
    renamed = _Renamed({each: f"{name}_{each}" for each in own})
    fn = getattr(node.func, "id", "")

    def load() -> ast.Name:
        return ast.Name(name, ast.Load())

    def stored(value: ast.expr) -> ast.stmt:
        return ast.Assign([ast.Name(name, ast.Store())], value)

    element: ast.expr = renamed.visit(_copied(generator.elt))
    body: ast.stmt
    if fn == "sum":
        first: ast.expr = node.args[1] if len(node.args) == 2 else ast.Constant(0)
        body = ast.AugAssign(ast.Name(name, ast.Store()), ast.Add(), element)
    else:
        first = ast.Constant(fn == "all")
        test = element if fn == "any" else ast.UnaryOp(ast.Not(), element)
        body = ast.If(test, [stored(ast.Constant(fn == "any"))], [])
    for n, part in reversed(list(enumerate(generator.generators))):
        for cond in reversed(part.ifs):
            body = ast.If(renamed.visit(_copied(cond)), [body], [])
        over = part.iter if n == 0 else renamed.visit(_copied(part.iter))
        body = ast.For(target=renamed.visit(_copied(part.target)), iter=over, body=[body], orelse=[])
    return [ast.fix_missing_locations(ast.copy_location(each, node)) for each in (stored(first), body)]


class _Renamed(ast.NodeTransformer):
    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.copy_location(ast.Name(self.names.get(node.id, node.id), node.ctx), node)


def _copied(node: Any) -> Any:
    """A tree of its own, which may be changed."""
    if isinstance(node, list):
        return [_copied(each) for each in node]
    if not isinstance(node, ast.AST):
        return node
    return ast.copy_location(type(node)(**{name: _copied(value) for name, value in ast.iter_fields(node)}), node)
