"""Patterns are nodes with holes; rules are lists of them; one matcher and one rewriter serve every level.

    x, y = holes("x y")
    SIMPLIFY = Rules(
        (x + 0, x),                      # x + 0 = x
        (x * y, swap_constants),         # a function of the bindings, or None to decline
    )
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..errors import error
from .expr import Hole, Op
from .node import Node

N = TypeVar("N", bound=Node)
Template = Node | Callable[..., Any]
MAX_STEPS = 100_000            # rewrites in one call of `rewrite`; more is a rule set that does not end


def holes(names: str, test: Callable[[Any], bool] | None = None) -> list[Any]:
    """Pattern variables, one per name: `x, y = holes("x y")`; `test` restricts what may fill them."""
    return [Hole(n, test) for n in names.split()]


def match(pattern: Any, node: Any, env: dict[str, Any]) -> dict[str, Any] | None:
    """The bindings that make `pattern` equal to `node`, or None. `env` is not changed."""
    if isinstance(pattern, Hole):
        if pattern.name in env:
            return env if env[pattern.name] is node else None
        if pattern.test is not None and not pattern.test(node):
            return None
        return env | {pattern.name: node}
    if isinstance(pattern, Node):
        if pattern is node:
            return env
        if type(pattern) is not type(node):
            return None
        return _match_parts(pattern.parts, node.parts, env)
    if isinstance(pattern, tuple):
        return _match_parts(pattern, node, env) if isinstance(node, tuple) else None
    return env if pattern == node and type(pattern) is type(node) else None


def _match_parts(patterns: tuple[Any, ...], parts: tuple[Any, ...], env: dict[str, Any]) -> dict[str, Any] | None:
    if len(patterns) != len(parts):
        return None
    for p, n in zip(patterns, parts, strict=True):
        found = match(p, n, env)
        if found is None:
            return None
        env = found
    return env


def fill(template: Any, env: dict[str, Any]) -> Any:
    """A template with its holes replaced by their bindings."""
    if isinstance(template, Hole):
        return env[template.name]
    return template.map(lambda t: fill(t, env)) if isinstance(template, Node) else template


class Rules:
    """An ordered set of (pattern, template) rewrites; `+` composes sets. A template is a node with holes, or a function
    of the bindings that returns the new node, or None to decline."""

    def __init__(self, *rules: tuple[Node, Template]):
        self.rules = rules
        self._by_head: dict[Any, list[tuple[Node, Template]]] = {}
        for pattern, template in rules:
            self._by_head.setdefault(_head(pattern), []).append((pattern, template))

    def __add__(self, more: Rules) -> Rules:
        return Rules(*self.rules, *more.rules)

    def __len__(self) -> int:
        return len(self.rules)

    def step(self, node: Node) -> Node | None:
        """The first rewrite of `node` itself that changes it, or None."""
        for pattern, template in self._by_head.get(_head(node), ()):
            env = match(pattern, node, {})
            if env is None:
                continue
            new = template(**env) if not isinstance(template, Node) else fill(template, env)
            if new is not None and new is not node:
                return new  # type: ignore[no-any-return]   # a template makes nodes
        return None

    def once(self, node: N) -> N:
        """`node` after its first rewrite, or as it is. The rules must keep expressions expressions."""
        return self.step(node) or node  # type: ignore[return-value]   # what the docstring says


def _head(node: Node) -> Any:
    return (Op, node.fn) if isinstance(node, Op) else type(node)


def rewrite(node: Any, rules: Rules) -> Any:
    """Apply `rules` bottom-up until none fires. Shared parts are rewritten once."""
    memo: dict[Node, Any] = {}
    budget = MAX_STEPS

    def go(n: Node) -> Any:
        nonlocal budget
        if n in memo:
            return memo[n]
        new = n.map(go)
        while isinstance(new, Node) and (stepped := rules.step(new)) is not None:
            budget -= 1
            if budget < 0:
                raise error("E490", f"rewriting did not end after {MAX_STEPS} steps",
                            hint="this is a fault in a rule set: a rule undoes another one")
            new = stepped.map(go)
        memo[n] = new
        return new

    return tuple(go(n) for n in node) if isinstance(node, tuple) else go(node)
