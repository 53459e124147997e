"""The partial derivatives of scalar operators, from the table of operators."""
from __future__ import annotations

from functools import lru_cache

from .expr import Const, Expr, Op, Var, number
from .node import substitute
from .scalars import OPERATORS
from .text import read

X, Y, Z = Var("x"), Var("y"), Var("z")


@lru_cache(maxsize=1024)
def formula(text: str, dtype: str) -> Expr:
    """An expression of the table over x y z, with typed numbers."""
    parsed: Expr = read(text)[0]

    def typed(node: Expr) -> Expr:
        return number(node.value, dtype) if isinstance(node, Const) and node.dtype != "bool" else node.map(typed)
    return typed(parsed)


def at(text: str, values: tuple[Expr, ...], dtype: str) -> Expr:
    """A formula of the table applied to arguments."""
    filled: Expr = substitute(formula(text, dtype), dict(zip((X, Y, Z), values, strict=False)))
    return filled


def derivative(e: Op, n: int) -> Expr | None:
    """∂e/∂x of the n-th operand x; None where the table has none."""
    texts = OPERATORS[e.fn].derivative
    return at(texts[n], e.args, e.args[n].dtype) if texts else None
