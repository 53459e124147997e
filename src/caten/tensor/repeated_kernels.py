"""Kernels that occur again: a program whose kernels are equal but for their arrays, as the layers of a network are.

    (kernel gpt (for i …))                          the first one is scheduled, verified and rendered
    (repeat gpt (X v19) (W_0 W_1))                  the others run it on other arrays
    (repeat gpt (X v19) (from T 0 1 0))             or on other parts of them

Two kernels are equal if their statements are, with loops and locals numbered in order of appearance, over arrays of the
same types, shapes and orders. Three or more are one kernel also where they differ in the part of an array that they
take: if all indices of an array have numbers in them that differ by as much from kernel to kernel (`shifted_kernels`).
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..core.expr import Var, index
from ..core.node import Node, unique_in
from ..core.program import Buffer
from ..frozen import frozen
from ..loop.effects import written
from ..loop.renaming import array_kind
from ..loop.statements import Aref, Fail, For, From, Kernel, Let, Local, Repeat, Stmt, Vref
from .shifted_kernels import LEAST, Start, moved_by, starts_of, where_they_differ

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
    equal = equal_kernels(parts, {**buffers, **shared})
    if not equal.repeated and len(parts) < MANY:
        return whole
    clauses: list[Node] = list(shared.values())
    names: dict[int, str] = {}
    for n, part in enumerate(parts):
        first = equal.first.get(n, n)
        begin = tuple([From(array, tuple(map(index, start))) for array, start in equal.begins(n, first).items()
                       if any(start)])
        if first != n:
            clauses.append(_repeat(names[first], equal.forms[first], equal.forms[n], begin))
        else:
            names[n] = f"{name}_{len(names) + 1}" if names else name
            clauses.append(Kernel(names[n], equal.moved(n, part), begin))
    return tuple(clauses)


@frozen
class Equal:
    """Which kernels are equal. `forms`: their forms, by their numbers; `first`: of those that have one, the first that
    they are equal to; `starts`: where arrays begin, by the numbers of the arrays, if that differs from the first's."""

    forms: tuple[Form | None, ...]
    first: Mapping[int, int]
    starts: Mapping[int, Mapping[int, Start]]

    @property
    def repeated(self) -> bool:
        """Does a kernel occur again?"""
        return any(n != first for n, first in self.first.items())

    def begins(self, n: int, named_by: int) -> dict[str, Start]:
        """Where the arrays of a kernel begin, by the names that another one has for them."""
        form = self.forms[named_by]
        return {} if form is None else {form.arrays[k]: start for k, start in self.starts.get(n, {}).items()}

    def moved(self, n: int, part: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """The statements of a kernel, over arrays from where they begin on."""
        return moved_by(part, self.begins(n, n), -1)


def equal_kernels(parts: Sequence[tuple[Stmt, ...]], arrays: Mapping[str, Buffer | Local]) -> Equal:
    """Which of these kernels are equal but for their arrays and where these begin."""
    forms = tuple([form_of(part, arrays) for part in parts])
    equal: dict[tuple[Any, ...], list[int]] = {}
    for n, form in enumerate(forms):
        if form is not None:
            equal.setdefault((form.stmts, form.described), []).append(n)
    first = {n: group[0] for group in equal.values() for n in group}
    alike: dict[tuple[Any, ...], list[tuple[list[int], list[Start]]]] = {}
    for group in equal.values():
        form, found = forms[group[0]], starts_of(parts[group[0]], arrays)
        moved = form_of(moved_by(parts[group[0]], found, -1), arrays) if found else form
        if form is not None and moved is not None and moved.arrays == form.arrays:
            at = [found.get(name, (0,) * _rank(arrays[name])) for name in form.arrays]
            alike.setdefault((moved.stmts, moved.described), []).append((group, at))
    starts: dict[int, Mapping[int, Start]] = {}
    for groups in alike.values():
        if len(groups) >= LEAST:
            for (group, _), own in zip(groups, where_they_differ([at for _, at in groups]), strict=True):
                starts |= dict.fromkeys(group, own)
                first |= dict.fromkeys(group, groups[0][0][0])
    return Equal(forms, first, starts)


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


def _repeat(kernel: str, first: Form | None, again: Form | None, starts: tuple[From, ...]) -> Repeat:
    assert first is not None and again is not None
    return Repeat(kernel, tuple([(a, b) for a, b in zip(first.arrays, again.arrays, strict=True) if a != b]), starts)


def form_of(stmts: tuple[Stmt, ...], arrays: Mapping[str, Buffer | Local]) -> Form | None:
    """The canonical form of the statements of a kernel; None if it has no loop, or a run-time check: the text of a
    failure names one array."""
    nodes = list(unique_in(stmts))
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


def _rank(array: Buffer | Local) -> int:
    return len(array.axes if isinstance(array, Buffer) else array.shape)
