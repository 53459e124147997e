"""fission: distribute the statements of a loop over two loops."""
from __future__ import annotations

from ...core.expr import Var
from ...core.unique_names import Names
from ...loop.dependence import obstacle_to_fission
from ...loop.effects import reads, writes
from ...loop.statements import For, Let, LoopProgram, Stmt
from ..analysis.loop_queries import find, loops_in, mentions, refusal, replaced
from ..loop_names import renamed, with_value
from ..step_results import OneLoop


def fission(program: LoopProgram, loop: str, after: str | int, name: str = "") -> tuple[LoopProgram, OneLoop]:
    """Distribute the body of a loop over two loops: the statements up to and including an inner LOOP, or the first
    COUNT of them, stay; the others move to a second loop after it. The second loop has the same name with a number
    appended, or the NAME. Both loops get the `let`s of the first part.

        (fission i j)
        (for i 0 M 1 serial                             (for i 0 M 1 serial
          (for j 0 N 1 serial                             (for j 0 N 1 serial
            (incf (aref A i) (aref B i j)))       ->        (incf (aref A i) (aref B i j))))
          (setf (aref C i) (aref A i)))                 (for i_2 0 M 1 serial (setf (aref C i_2) (aref A i_2)))
    """
    step = f"fission {loop} {after}"
    found = find(program, loop, step)
    at = _position(found, after, step)
    names = Names.of(program)
    if name in names:
        raise refusal("E524", step, f"the name {name} must be new to the program")
    first, second = found.body[:at], found.body[at:]
    lets = _needed(found, first, second)
    new = {let.name: names.fresh(let.name) for let in lets}
    second = renamed((*lets, *second), new)
    reason = obstacle_to_fission(replaced(program, found, found.replace(body=(*first, *second))), loop, at)
    if reason is not None:
        raise refusal("E524", step, reason)
    other = Var(name or names.fresh(loop), "i64")
    rest = found.replace(name=other.name, body=with_value(second, found, other))
    return replaced(program, found, found.replace(body=first), rest), OneLoop(other.name)


def _position(found: For, after: str | int, step: str) -> int:
    """The number of statements of the body that stay in the first loop."""
    if isinstance(after, int):
        at = after
    else:
        at = next((n for n, stmt in enumerate(found.body, 1) if after in [loop.name for loop in loops_in(stmt)]), 0)
        if not at:
            raise refusal("E524", step, f"'{after}' is no loop inside '{found.name}'")
    if not 0 < at < len(found.body):
        raise refusal("E524", step, f"'{found.name}' holds {len(found.body)} statements: one part of it would be empty")
    return at


def _needed(found: For, first: tuple[Stmt, ...], second: tuple[Stmt, ...]) -> tuple[Let, ...]:
    """The values that the first part names and the second uses, where they are the same after the whole loop."""
    needed: list[Let] = []
    for stmt in reversed(first):
        if (isinstance(stmt, Let) and mentions((*needed, *second), (stmt.name,))
                and reads(stmt).isdisjoint(writes(found))):
            needed.insert(0, stmt)
    return tuple(needed)
