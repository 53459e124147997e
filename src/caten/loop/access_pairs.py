"""Access pairs for dependence analysis: two accesses to one buffer in two iterations of a loop, with the context of
each.

The second iteration is a renamed copy of the loop (i and i'). Accesses that no test can tell apart are merged. Pairs
that the GCD test separates are skipped, so a body of a thousand statements has few pairs.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import gcd
from typing import Any

from ..core.expr import Var
from ..core.node import Node
from ..frozen import frozen
from . import operation_count
from .accesses import LANE, Access, accesses
from .affine import Linear, text_of
from .context import Context
from .effects import reads, writes
from .integer_sets import Constraint
from .statements import Barrier, For, If, Incf, Let, Local, Stmt

OTHER = "'"                          # suffix of the copy's variables: i and i'
Phases = tuple[tuple[str, int, int], ...]


@frozen
class Touch:
    """An access as dependence analysis sees it. `place`: its index as linear forms, None for an axis that is not known.
    `fn`: the operator of an accumulation. `at`: the position of its statement in the loop body. `phases`: for each
    enclosing list, from the loop body inwards, the loop, the barriers before the access, and all barriers."""

    buffer: str
    text: str
    is_write: bool
    fn: str
    place: tuple[Linear | None, ...]
    context: Context
    at: int
    phases: Phases = ()


def shared_arrays(loop: For) -> frozenset[str]:
    """The buffers that a loop writes and that several iterations may access: all but the locals of its body."""
    return writes(loop) - {n.name for n in loop.unique() if isinstance(n, Local)}


def commute(a: Touch, b: Touch) -> bool:
    """True if both accesses are accumulations by the same operator."""
    return bool(a.fn) and a.fn == b.fn


def pairs(loop: For, context: Context, skipped: Callable[[Touch, Touch], bool] = lambda a, b: False,
          by_statement: bool = True, shared: frozenset[str] | None = None) -> Iterator[tuple[Touch, Touch, Context]]:
    """Each access of one iteration with each access of another that may touch the same memory, and the context of both.

        skipped       leaves out the pairs for which it is true
        by_statement  keeps accesses apart that different statements make
        shared        the arrays to look at (None: all that iterations share)
    """
    changed = writes(loop)
    shared = shared_arrays(loop) if shared is None else shared
    copy = renamed_copy(loop)
    ones = _touches(loop.body, context.inside(loop), changed, shared, LANE, (loop.name,))
    others = _touches(copy.body, context.inside(copy), changed, shared, Var(LANE.name + OTHER, "i64"), (loop.name,))
    both: dict[tuple[int, int], Context] = {}
    meter = operation_count.current()
    ones, others = _different(ones, by_statement), _different(others, by_statement)
    class_of = _classes((*ones, *others))
    met: dict[Any, list[Touch]] = {}
    for b in others:
        met.setdefault(class_of(b), []).append(b)
    for a in ones:
        for b in met.get(class_of(a), ()):
            if not (a.is_write or b.is_write):
                continue
            meter.charge(operation_count.PAIR)
            if not skipped(a, b):
                known = both.get((id(a.context), id(b.context)))
                if known is None:
                    known = both[id(a.context), id(b.context)] = a.context.together(b.context).forgetting(changed)
                yield a, b, known


def distinct_accesses(loop: For, context: Context, arrays: frozenset[str]) -> list[Touch]:
    """The distinct accesses of one iteration to these arrays. `context`: what is known before the loop."""
    return _different(_touches(loop.body, context.inside(loop), writes(loop), arrays, LANE, (loop.name,)), False)


def _different(touches: list[Touch], by_statement: bool) -> list[Touch]:
    """One access for each group that a question about indices cannot tell apart."""
    found: dict[Any, Touch] = {}
    for t in touches:
        found.setdefault((t.buffer, t.is_write, t.fn, t.place, id(t.context), (t.at, t.phases) if by_statement else ()),
                         t)
    return list(found.values())


def _classes(touches: Iterable[Touch]) -> Callable[[Touch], tuple[Any, ...]]:
    """A key that is equal for two accesses that may touch one element: the buffer, and for each axis the constant
    modulo the greatest common divisor of all coefficients there (the GCD test of Banerjee, "Dependence analysis",
    1997), or the constant itself where an axis has no variables."""
    divisors: dict[str, list[int | None]] = {}
    for t in touches:
        axes = divisors.setdefault(t.buffer, [0] * len(t.place))
        for n, form in enumerate(t.place):
            known = axes[n]
            axes[n] = None if form is None or known is None else gcd(known, *form.terms.values())

    def class_of(touch: Touch) -> tuple[Any, ...]:
        axes = zip(touch.place, divisors[touch.buffer], strict=True)
        return touch.buffer, *[form.constant % by if by else form.constant for form, by in axes if form is not None
                               and by is not None]

    return class_of


def _touches(stmts: tuple[Stmt, ...], context: Context, changed: frozenset[str], shared: frozenset[str], lane: Var,
             inside: tuple[str, ...],
             at: int | None = None, around: Phases = (), within: Phases = ()) -> list[Touch]:
    """The accesses of statements to the `shared` arrays. `changed`: the buffers that the loop writes. `inside`: the
    enclosing loops from the analysed one on. `within`: the phases of the enclosing condition."""
    found: list[Touch] = []
    barriers, passed = sum(isinstance(s, Barrier) for s in stmts), 0
    for k, stmt in enumerate(stmts):
        where = k if at is None else at
        passed += isinstance(stmt, Barrier)
        phases = within or (*around, (inside[-1], passed, barriers))
        if shared.isdisjoint(reads(stmt) | writes(stmt)):
            context = context.after(stmt)
            continue
        for access in accesses(stmt, context):
            if access.ref.buffer in shared:
                found.append(_touch(access, stmt.fn if isinstance(stmt, Incf)
                                    and access.is_write else "", changed, lane, where, phases))
        match stmt:
            case For():
                names = (*inside, stmt.name.removesuffix(OTHER))
                found += _touches(stmt.body, context.inside(stmt), changed, shared, lane, names, where, phases)
            case If(cond, then, otherwise):
                found += _touches(then, context.given(cond), changed, shared, lane, inside, where, (), phases)
                found += _touches(otherwise, context.given(cond, False), changed, shared, lane, inside, where, (),
                                  phases)
        context = context.after(stmt)
    return found


def _touch(access: Access, fn: str, changed: frozenset[str], lane: Var, at: int, phases: Phases) -> Touch:
    context, positions = access.positions(lane)
    forms = [context.linear(p) for p in positions]
    place = tuple([None if any(not reads(a).isdisjoint(changed) for a in f.atoms()) else f for f in forms])
    return Touch(access.ref.buffer, text_of(access.ref).replace(OTHER, ""), access.is_write, fn, place, context, at,
                 phases)


def renamed_copy(loop: For) -> For:
    """The loop with a prime behind every name that it binds."""
    bound = {n.name for n in loop.unique() if isinstance(n, For | Let)}
    memo: dict[Node, Any] = {}

    def go(node: Node) -> Any:
        if node not in memo:
            new = node.map(go)
            if isinstance(new, Var | For | Let) and new.name in bound:
                new = new.replace(name=new.name + OTHER)
            memo[node] = new
        return memo[node]

    renamed: For = go(loop)
    return renamed


def same_place(a: Touch, b: Touch) -> tuple[Constraint, ...]:
    """The constraints under which both accesses touch one element."""
    return tuple([Constraint(x - y, equal=True) for x, y in zip(a.place, b.place, strict=True) if x is not None
                  and y is not None])
