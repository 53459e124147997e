"""Kernels that occur again: a program whose kernels are equal but for their arrays, as the layers of a network are.

    (kernel gpt (for i …))                          the first one is scheduled, verified and rendered
    (repeat gpt (X v19) (W_0 W_1))                  the others run it on other arrays

Two kernels are equal if their statements are, with loops and locals numbered in order of appearance, over arrays of the
same types, shapes and orders.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..core.expr import Var, index
from ..core.node import Node
from ..core.program import Buffer
from ..frozen import frozen
from ..loop.effects import written
from ..loop.renaming import array_kind
from ..loop.statements import Aref, Fail, For, Kernel, Let, Local, Repeat, Stmt, Vref

MANY = 6                            # kernels that are functions of their own, so that arrays between them share memory


@frozen
class Form:
    """Statements in canonical form, and the arrays outside of them in order of appearance."""

    stmts: tuple[Stmt, ...]
    described: tuple[tuple[Any, ...], ...]
    arrays: tuple[str, ...]


def with_repeats(name: str, parts: Sequence[tuple[Stmt, ...]], locals_: Sequence[Local],
                 buffers: Mapping[str, Buffer]) -> tuple[Node, ...]:
    """The clauses for the statements of kernels, in order: one kernel for all, or several around those that are equal.
    `locals_`: the arrays that the kernels share."""
    whole = (Kernel(name, (*locals_, *[s for part in parts for s in part])),)
    parts, locals_ = _in_memory(parts, locals_)
    shared = {c.name: c.replace(space="global") for c in locals_}
    forms = [form_of(part, {**buffers, **shared}) for part in parts]
    equal: dict[tuple[Any, ...], list[int]] = {}
    for n, form in enumerate(forms):
        if form is not None:
            equal.setdefault((form.stmts, form.described), []).append(n)
    repeated = {n: group[0] for group in equal.values() if len(group) > 1 for n in group}
    if not repeated and len(parts) < MANY:
        return whole
    clauses: list[Node] = list(shared.values())
    names: dict[int, str] = {}
    number = 0
    for n, part in enumerate(parts):
        first = repeated.get(n)
        if first is not None and first != n:
            clauses.append(_repeat(names[first], forms[first], forms[n]))
        else:
            number += 1
            names[n] = name if number == 1 else f"{name}_{number}"
            clauses.append(Kernel(names[n], part))
    return tuple(clauses)


def _in_memory(parts: Sequence[tuple[Stmt, ...]],
               locals_: Sequence[Local]) -> tuple[Sequence[tuple[Stmt, ...]], Sequence[Local]]:
    """The same with arrays of one element in the place of numbers, which functions cannot share: such as the mean of a
    single row."""
    numbers = {c.name for c in locals_ if not c.shape}
    if not numbers:
        return parts, locals_
    memo: dict[Node, Any] = {}

    def go(n: Node) -> Any:
        if n not in memo:
            new: Any = n.map(go)
            memo[n] = new.replace(index=(index(0),)) if isinstance(new, Aref) and new.buffer in numbers else new
        return memo[n]
    return ([tuple([go(s) for s in part]) for part in parts],
            [c.replace(shape=(index(1),)) if c.name in numbers else c for c in locals_])


def _repeat(kernel: str, first: Form | None, again: Form | None) -> Repeat:
    assert first is not None and again is not None
    return Repeat(kernel, tuple([(a, b) for a, b in zip(first.arrays, again.arrays, strict=True) if a != b]))


def form_of(stmts: tuple[Stmt, ...], arrays: Mapping[str, Buffer | Local]) -> Form | None:
    """The canonical form of the statements of a kernel; None if it has no loop, or a run-time check: the text of a
    failure names one array."""
    nodes = [n for s in stmts for n in s.walk()]
    if not any(isinstance(n, For) for n in nodes) or any(isinstance(n, Fail) for n in nodes):
        return None
    names: dict[str, str] = {}
    for n in nodes:
        if isinstance(n, For | Let | Local):
            names.setdefault(n.name, f"l{len(names)}")
    found = list(dict.fromkeys(_arrays(nodes, names)))
    if any(a not in arrays for a in found):
        return None
    names |= {a: f"a{n}" for n, a in enumerate(found)}
    memo: dict[Node, Any] = {}

    def go(n: Node) -> Any:
        if n not in memo:
            new: Any = n.map(go)
            match new:
                case Var(name=own) | For(name=own) | Let(name=own) | Local(name=own) if own in names:
                    new = new.replace(name=names[own])
                case Aref(buffer=own) | Vref(buffer=own):
                    new = new.replace(buffer=names[own])
            memo[n] = new
        return memo[n]
    changed = written(stmts)
    return Form(tuple([go(s) for s in stmts]), tuple([(*array_kind(arrays[a]), a in changed) for a in found]),
                tuple(found))


def _arrays(nodes: Sequence[Node], declared: Mapping[str, str]) -> Iterator[str]:
    return (n.buffer for n in nodes if isinstance(n, Aref | Vref) and n.buffer not in declared)
