"""A local array, the statements that compute it, and those that read it: what `compute_at` and `inline` work with."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...errors import CatenError
from ...frozen import frozen
from ...loop.effects import reads, writes, written
from ...loop.level import verify
from ...loop.statements import Fail, For, If, Kernel, Local, LoopProgram, Stmt
from .nests import Refusing, local_array, locals_in

Stmts = tuple[Stmt, ...]
FIELDS = {For: ("body",), If: ("then", "otherwise"), Kernel: ("body",)}


@frozen
class Produced:
    """`around`: the list that declares the array; `producers`: the statements of the list that write it; `readers`: those that only read it,
    all after the producers; `between`: what runs from the first producer to the last reader, without the producers."""

    local: Local
    around: Stmts
    producers: Stmts
    readers: Stmts
    between: Stmts


def produced(program: LoopProgram, array: str, refuse: Refusing) -> Produced:
    """The array and who uses it. Raises what `refuse` makes of a reason where there is no such array, or where its producers do more than
    computing it, come after a reader, or read what changes before it is read."""
    local = local_array(program, array, refuse)
    around = next(stmts for stmts in lists(program) if local in stmts)
    producers = tuple([s for s in around if array in writes(s)])
    readers = tuple([s for s in around if array in reads(s) and s not in producers])
    if not producers or not readers:
        raise refuse("nothing sets it" if not producers else "nothing reads it but the statements that set it")
    first, last = around.index(producers[0]), around.index(readers[-1])
    if around.index(producers[-1]) > around.index(readers[0]):
        raise refuse("it is set again after it was read", "fission the loop that sets it and reads it, or stage it there")
    for stmt in producers:
        own = {n.name for n in locals_in(stmt)}
        others = writes(stmt) - own - {array}
        if others:
            raise refuse(f"what sets it also writes {', '.join(sorted(others))}", "fission that loop first")
        if any(isinstance(n, Fail) for n in stmt.unique()):
            raise refuse("what sets it contains a check that may end the call")
    between = tuple([s for s in around[first:last + 1] if s not in producers])
    changed = written(between).intersection(*[frozenset().union(*[reads(s) for s in producers])]) - {array}
    if changed:
        raise refuse(f"it is computed from {', '.join(sorted(changed))}, which is written before it is read for the last time")
    return Produced(local, around, producers, readers, between)


def lists(program: LoopProgram) -> Iterator[Stmts]:
    """Every list of statements."""
    for node in program.unique():
        for field in FIELDS.get(type(node), ()):
            yield getattr(node, field)


def with_list(program: LoopProgram, old: Stmts, new: Stmts) -> LoopProgram:
    """The program with another list in the place of one that declares something, and so occurs once."""
    memo: dict[Any, Any] = {}

    def go(node: Any) -> Any:
        if not isinstance(node, For | If | Kernel):
            return node
        if node not in memo:
            memo[node] = node.map(go).replace(**{f: new for f in FIELDS[type(node)] if getattr(node, f) == old})
        return memo[node]
    return program.map(go)  # type: ignore[no-any-return]   # of the same class



def verified(program: LoopProgram, refuse: Refusing) -> LoopProgram:
    """The program, whose accesses are proven again: they moved to where something else is known."""
    try:
        verify(program)
    except CatenError as problem:
        raise refuse(f"what comes out is not proven to be right: {problem.diagnostics[0].message}") from None
    return program
