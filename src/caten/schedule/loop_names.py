"""Names of the loops and arrays that a step adds: derived from the old names, unique, and deterministic."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core.expr import Var
from ..core.node import Node, substitute
from ..core.unique_names import Names
from ..loop.statements import Aref, For, Let, Local, Stmt, Vref, statements_in


def declared(stmts: Iterable[Stmt]) -> list[For | Let | Local]:
    """Every declaration in the statements, in text order."""
    return [stmt for stmt in statements_in(stmts) if isinstance(stmt, For | Let | Local)]


def copied(stmts: tuple[Stmt, ...], suffix: str, names: Names) -> tuple[tuple[Stmt, ...], dict[str, str]]:
    """A copy whose declarations have new names, the old ones with `suffix`. Also returns the new names by the old
    ones."""
    new: dict[str, str] = {}
    for node in declared(stmts):
        if node.name not in new:
            new[node.name] = names.fresh(node.name + suffix)
    return renamed(stmts, new), new


def renamed(stmts: tuple[Stmt, ...], new: dict[str, str]) -> tuple[Stmt, ...]:
    """Rename declarations and uses of the names in `new`."""
    memo: dict[Node, Any] = {}

    def go(node: Node) -> Any:
        if node not in memo:
            out = node.map(go)
            match out:
                case Var(name=name) | For(name=name) | Let(name=name) | Local(name=name) if name in new:
                    out = out.replace(name=new[name])
                case Aref(buffer=name) | Vref(buffer=name) if name in new:
                    out = out.replace(buffer=new[name])
            memo[node] = out
        return memo[node]

    return tuple([go(stmt) for stmt in stmts])


def with_value(stmts: tuple[Stmt, ...], loop: For, value: Any) -> tuple[Stmt, ...]:
    """Replace the variable of `loop` by an expression."""
    return substitute(stmts, {Var(loop.name, "i64"): value})
