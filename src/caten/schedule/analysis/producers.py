"""Producers and consumers of a local array, for `compute_at` and `inline`."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...errors import CatenError
from ...frozen import frozen
from ...loop.effects import reads, writes, written
from ...loop.statements import Fail, For, If, Kernel, Local, LoopProgram, Stmt
from ...loop.verifier import verify
from .loop_queries import Refusing, local_array, locals_in

Stmts = tuple[Stmt, ...]
FIELDS = {For: ("body",), If: ("then", "otherwise"), Kernel: ("body",)}


@frozen
class Produced:
    """The users of a local array. `around`: the statement list that declares it. `producers`: its statements that write
    the array. `readers`: those that only read it, after the producers. `between`: all from the first producer to the
    last reader except the producers."""

    local: Local
    around: Stmts
    producers: Stmts
    readers: Stmts
    between: Stmts


def produced(program: LoopProgram, array: str, refuse: Refusing) -> Produced:
    """Find the producers and readers of an array. Raises `refuse(reason)` if there is no such array, or if its
    producers write something else, come after a reader, or read what changes before the array is read."""
    local = local_array(program, array, refuse)
    around = next(stmts for stmts in lists(program) if local in stmts)
    producers = tuple([s for s in around if array in writes(s)])
    readers = tuple([s for s in around if array in reads(s) and s not in producers])
    if not producers or not readers:
        raise refuse("nothing sets it" if not producers else "nothing reads it but the statements that set it")
    first, last = around.index(producers[0]), around.index(readers[-1])
    if around.index(producers[-1]) > around.index(readers[0]):
        raise refuse("it is set again after it was read",
                     "fission the loop that sets it and reads it, or stage it there")
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
        sources = ", ".join(sorted(changed))
        raise refuse(f"it is computed from {sources}, which is written before it is read for the last time")
    return Produced(local, around, producers, readers, between)


def lists(program: LoopProgram) -> Iterator[Stmts]:
    """Yield every statement list of a program."""
    for node in program.unique():
        for field in FIELDS.get(type(node), ()):
            yield getattr(node, field)


def with_list(program: LoopProgram, old: Stmts, new: Stmts) -> LoopProgram:
    """Replace a statement list that declares something, and so occurs once."""
    memo: dict[Any, Any] = {}

    def go(node: Any) -> Any:
        if not isinstance(node, For | If | Kernel):
            return node
        if node not in memo:
            memo[node] = node.map(go).replace(**{f: new for f in FIELDS[type(node)] if getattr(node, f) == old})
        return memo[node]
    return program.map(go)


def verified(program: LoopProgram, refuse: Refusing) -> LoopProgram:
    """Verify a program whose accesses moved, and return it. Raises `refuse(reason)` if it is not proven right."""
    try:
        verify(program)
    except CatenError as problem:
        raise refuse(f"what comes out is not proven to be right: {problem.diagnostics[0].message}") from None
    return program
