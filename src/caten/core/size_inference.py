"""What the shapes of arrays say about the sizes of a call: solving for the sizes, and finding contradictions."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import CatenError, error
from ..frozen import frozen
from .expr import Expr, Op, Var
from .size_formula import conjuncts, evaluate, formula, names, solve, spell

GREATEST_SIZE = 1 << 40


@frozen
class Dimension:
    """One axis of one array: the formula that the signature gives for its extent."""

    array: str
    axis: int
    expr: Expr


def dimensions(arguments: Iterable[Mapping[str, Any]]) -> tuple[Dimension, ...]:
    """Every axis of every tensor among the arguments of a manifest."""
    return tuple([Dimension(a["name"], axis, formula(e)) for a in arguments if a["kind"] == "tensor"
                  for axis, e in enumerate(a["shape"])])


def equations(conditions: Iterable[str]) -> tuple[tuple[Expr, Expr], ...]:
    """The conditions that are equations, as pairs; they determine sizes that no shape does."""
    return equations_in([formula(c) for c in conditions])


def equations_in(conditions: Iterable[Expr]) -> tuple[tuple[Expr, Expr], ...]:
    """The equations among conditions, as pairs of their two sides."""
    return tuple([(c.args[0], c.args[1]) for e in conditions for c in conjuncts(e)
                  if isinstance(c, Op) and c.fn == "eq"])


def determined(dims: Iterable[Dimension], equal: Iterable[tuple[Expr, Expr]], known: Iterable[str]) -> set[str]:
    """The sizes that follow from the arrays' shapes (whatever their values), and the known ones."""
    found = set(known)
    exprs = [d.expr for d in dims]
    changed = True
    while changed:
        before = len(found)
        for e in exprs:
            found |= _solvable(e, found)
        for left, right in equal:
            for a, b in ((left, right), (right, left)):
                if set(names(b)) <= found:
                    found |= _solvable(a, found)
        changed = len(found) > before
    return found


def _solvable(expr: Expr, known: set[str]) -> set[str]:
    answer = solve(expr, 0, dict.fromkeys(known, 1))
    return {answer[0]} if answer else set()


def sizes_of(op: str, dims: Iterable[Dimension], shapes: Mapping[str, tuple[int, ...]],
             equal: Iterable[tuple[Expr, Expr]],
             given: Mapping[str, tuple[int, str]], wanted: Iterable[str]) -> dict[str, int]:
    """The value of every wanted size. `given`: those that the caller or the compilation fixed, each with a text that
    says who.

    Raises E704 for an axis of another extent than its formula, E705 for a size that has two values, E707 for one that
    nothing determines."""
    known = {name: value for name, (value, _) in given.items()}
    origin = {name: text for name, (_, text) in given.items()}
    pending = [(d.expr, shapes[d.array][d.axis], f"axis {d.axis} of {d.array}") for d in dims if d.array in shapes]
    # a bare symbol says most directly what it is
    pending.sort(key=lambda row: not isinstance(row[0], Var))
    open_equations = list(equal)
    progress = True
    while progress:
        progress = False
        rest = []
        for expr, extent, where in pending:
            answer = solve(expr, extent, known)
            if answer is None and not set(names(expr)) <= known.keys():
                rest.append((expr, extent, where))                            # later, when more is known
                continue
            progress = True
            if answer is None:
                _agree(op, expr, extent, where, known, origin)
            elif answer[1] is None or not 0 <= answer[1] <= GREATEST_SIZE:
                raise error("E704", f"{op}: {where} must be {spell(expr)}, "
                                    f"which cannot be {extent} for any size {answer[0]}{_so_far(known)}")
            else:
                known[answer[0]], origin[answer[0]] = answer[1], f"by {where}"
        pending = rest
        progress |= _solved(open_equations, known, origin)
    for name in wanted:
        if name not in known:
            raise error("E707", f"{op}: no array's shape determines the size {name}",
                        hint=f"pass it by keyword: {name}=…")
        if not 0 <= known[name] <= GREATEST_SIZE:
            raise error("E710", f"{op}: the size {name} is {known[name]} {origin[name]}; sizes go from 0 to 2^40")
    return known


def from_equations(equal: Iterable[tuple[Expr, Expr]], known: Mapping[str, int], checked: bool = True) -> dict[str,
                                                                                                               int]:
    """The known sizes, and those that follow from them by equations. An equation that no size can satisfy is E705;
    `checked=False` leaves it to the call."""
    found, origin, pending = dict(known), dict.fromkeys(known, ""), list(equal)
    while _solved(pending, found, origin):
        pass
    for left, right in pending if checked else ():
        unknown = {*names(left), *names(right)} - found.keys()
        holds = f"the condition {spell(left)} = {spell(right)}"
        values = ", ".join([f"{n} = {found[n]}" for n in dict.fromkeys((*names(left), *names(right))) if n in found])
        if not unknown and evaluate(left, found) != evaluate(right, found):
            raise error("E705", f"{holds} does not hold for {values}")
        if len(unknown) == 1 and any(set(names(b)) <= found.keys() and solve(a, evaluate(b, found), found) is not None
                                     for a, b in ((left, right), (right, left))):
            raise error("E705", f"no integer {unknown.pop()} satisfies {holds}{f' with {values}' if values else ''}")
    return found


def _solved(pending: list[tuple[Expr, Expr]], known: dict[str, int], origin: dict[str, str]) -> bool:
    """Solve every equation that has one unknown size, and remove it from `pending`. False where none could be
    solved."""
    progress = False
    for left, right in list(pending):
        for a, b in ((left, right), (right, left)):
            if set(names(b)) <= known.keys() and (answer := solve(a, evaluate(b, known),
                                                                  known)) is not None and answer[1] is not None:
                known[answer[0]], origin[answer[0]] = answer[1], f"by the condition {spell(left)} = {spell(right)}"
                pending.remove((left, right))
                progress = True
                break
    return progress


def _agree(op: str, expr: Expr, extent: int, where: str, known: Mapping[str, int], origin: Mapping[str, str]) -> None:
    value = evaluate(expr, known)
    if value == extent:
        return
    if isinstance(expr, Var):
        raise _conflict(op, expr.name, value, origin[expr.name], extent, where)
    because = f" = {value}{_so_far({n: known[n] for n in names(expr)})}" if names(expr) else ""
    raise error("E704", f"{op}: {where} must be {spell(expr)}{because}, and is {extent}")


def _conflict(op: str, name: str, value: int, origin: str, extent: int, where: str) -> CatenError:
    return error("E705", f"{op}: the size {name} is {value} {origin}, and {extent} by {where}")


def _so_far(known: Mapping[str, int]) -> str:
    return f" (with {', '.join([f'{n} = {v}' for n, v in known.items()])})" if known else ""
