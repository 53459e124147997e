"""Conditions and extents in schedule steps, over the names that are in scope before a loop."""
from __future__ import annotations

from typing import Any

from ...core.expr import Const, Expr, Op, Var
from ...core.node import substitute
from ...core.program import Param
from ...core.scalars import OPERATORS
from ...core.text import flat, parse, read_forms
from ...errors import CatenError
from ...loop.statements import For, Let, LoopProgram
from .loop_queries import trail


def condition(program: LoopProgram, before: For, form: Any) -> Expr:
    """Read a condition in the scope before a loop. It may use operators, numbers, sizes, scalars, outer loops and `let`
    names; it reads no memory. Raises ValueError with the reason if it is malformed."""
    cond = _expression(program, before, form)
    if cond.dtype != "bool":
        raise ValueError(f"{cond} is a value of type {cond.dtype}, not a condition")
    return cond


def extent(program: LoopProgram, before: For | None, form: Any) -> Expr:
    """Read a number of iterations in the scope before a loop, as `condition` reads a condition; without a loop, at the
    start of the program."""
    count = _expression(program, before, form)
    if count.dtype != "i64":
        raise ValueError(f"{count} is a value of type {count.dtype}, not an extent")
    return count


def _expression(program: LoopProgram, before: For | None, form: Any) -> Expr:
    try:
        (spelled,) = [parse(part) for part in read_forms(flat(form))]
    except CatenError as problem:
        raise ValueError(problem.diagnostics[0].message) from None
    if not isinstance(spelled, Expr) or not all(isinstance(n, Const | Op | Var) for n in spelled.unique()):
        raise ValueError(f"{flat(form)} is more than operators, numbers and names")
    types = visible(program, before)
    used = [n for n in spelled.unique() if isinstance(n, Var)]
    for name in [v.name for v in used if v.name not in types]:
        raise ValueError(f"'{name}' is no size, scalar or loop there; these are: {', '.join(types) or 'none'}")
    cond: Expr = substitute(spelled, {v: Var(v.name, types[v.name]) for v in used})
    for op in [n for n in cond.unique() if isinstance(n, Op)]:
        _check_operands(op)
    return cond


def visible(program: LoopProgram, before: For | None) -> dict[str, str]:
    """The names in scope before a loop, or at the start, with their types."""
    types = {name: dtype for param in program.all(Param) if hasattr(param, "declares") and not hasattr(param, "shape")
             for name, dtype in (param.declares(),)}
    for earlier, stmt in trail(program, before) if before else ():
        types |= {s.name: s.type for s in earlier if isinstance(s, Let)}
        if isinstance(stmt, For) and stmt is not before:
            types[stmt.name] = "i64"
    return types


def _check_operands(op: Op) -> None:
    row = OPERATORS[op.fn]
    types = [a.dtype for a in op.args]
    if op.fn == "where" and types.pop(0) != "bool":
        raise ValueError(f"{op}: its first operand is not a condition")
    if len(set(types)) > 1:
        raise ValueError(f"{op} has operands of different types: {', '.join(types)}")
    if not row.takes_type(types[0]):
        raise ValueError(f"{op}: '{row.spelling}' is not defined on {types[0]}")
