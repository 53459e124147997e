"""Common subexpressions: split large expressions into named parts. Later passes walk an expression as a tree, so one of
ten thousand operators, or one with parts shared a hundred times, becomes `let`s of bounded size.

    (setf (aref Y i) (* (+ … 64 operators …) (- … 64 operators …)))
->  (let part f32 (+ …))
    (setf (aref Y i) (* part (- …)))
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from ..core.expr import Const, Conversion, Expr, Op, Var
from ..core.node import Node
from ..loop.statements import Aref, If, Incf, Let, Setf, Stmt
from .scope import Names
from .typing import MAX_DEPTH, MAX_SIZE

LARGE = 200                    # smaller expressions, in nodes written out, stay whole
PART = 64                      # approximate nodes of a part


def split_large_expressions(stmts: Sequence[Stmt], names: Names, refuse: Callable[[str], None]) -> list[Stmt]:
    """The statements, preceded by `let`s for large parts of their expressions. `refuse` is called for an expression
    that cannot be split: its parts read elements that only a condition makes safe to read."""
    out: list[Stmt] = []
    for stmt in stmts:
        match stmt:
            case Setf(value=value) | Incf(value=value) | Let(value=value) if is_large(value):
                field = "value"
            case If(cond=value) if is_large(value):
                field = "cond"
            case _:
                out.append(stmt)
                continue
        lets, rest = _parts(value, names)
        for expr in (*[let.value for let in lets], rest):
            if expr.depth > MAX_DEPTH or expr.written_out > MAX_SIZE:
                refuse(f"nests deeper than {MAX_DEPTH} operators" if expr.depth > MAX_DEPTH
                       else f"has more than {MAX_SIZE} operators")
        out += [*lets, stmt.replace(**{field: rest})]
    return out


def is_large(expr: Expr) -> bool:
    """True if the expression is too large to walk as a tree."""
    return expr.written_out > LARGE or expr.depth > MAX_DEPTH


def _parts(expr: Expr, names: Names) -> tuple[list[Let], Expr]:
    """The named parts in order, and the remaining expression. Shared parts, loaded elements and large parts get a
    name."""
    order = _operands_first(expr)
    uses = Counter([child for node in order for child in _operands(node)])
    always = _always_read(expr)
    lets: list[Let] = []
    new: dict[Expr, Expr] = {}
    size: dict[Expr, int] = {}
    free: dict[Expr, bool] = {}                        # safe to compute unconditionally?
    for node in order:
        operands = _operands(node)
        new[node] = node.map(lambda child: new.get(child, child)) if operands else node
        size[node] = 1 + sum([size[child] for child in operands])
        free[node] = node in always if isinstance(node, Aref) else all(free[child] for child in operands)
        if (not isinstance(node, Const | Var) and free[node] and node is not expr
            and (uses[node] > 1 or size[node] > PART)):
            lets.append(Let(names.fresh("part"), node.dtype, new[node]))
            new[node], size[node] = Var(lets[-1].name, node.dtype), 1
    return lets, new[expr]


def _operands(expr: Expr) -> tuple[Expr, ...]:
    """The operands of an operator. A loaded element stays whole, with its index."""
    match expr:
        case Op(args=args):
            return args
        case Conversion(arg=arg):
            return (arg,)
    return ()


def _operands_first(expr: Expr) -> list[Expr]:
    """Every distinct subexpression in post-order."""
    seen: set[Node] = set()
    order: list[Expr] = []
    stack = [(expr, False)]
    while stack:
        node, is_ready = stack.pop()
        if is_ready:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend([(child, False) for child in reversed(_operands(node))])
    return order


def _always_read(expr: Expr) -> set[Expr]:
    """The elements read unconditionally. Those in the arms of a `where` and behind `and` and `or` may not exist."""
    seen: set[Expr] = set()
    stack = [expr]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            operands = _operands(node)
            stack.extend(operands[:1] if isinstance(node, Op) and node.fn in ("where", "and", "or") else operands)
    return {node for node in seen if isinstance(node, Aref)}
