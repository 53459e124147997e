"""partition: split a loop where the conditions inside it cease to hold."""
from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from ...core.expr import TRUE, Expr, Op, Var
from ...core.node import substitute
from ...core.unique_names import Names
from ...loop.accesses import conjuncts
from ...loop.affine import canonical
from ...loop.statements import For, If, Let, LoopProgram, Stmt, is_const
from ..analysis.guards import end_of, throughout
from ..analysis.loop_queries import context_at, find, mentions, reads_memory, refusal, replaced
from ..loop_names import copied, with_value
from ..normalize import tidied
from ..step_results import Partitioned, arrays_of, loops_of

MARKS = ("serial", "unroll", "parallel")


def partition(program: LoopProgram, loop: str, ending: str = "e") -> tuple[LoopProgram, Partitioned]:
    """Split a loop in two where conditions inside it cease to hold (loop partitioning, index-set splitting): the first
    part is without them, and the second one runs the iterations that are left. Conditions that hold up to some
    iteration count: upper bounds that are linear in the loop. Names in the second part end in `e`, or in the NAME
    given.

        (partition po)
        (for po 0 (floordiv (+ K 7) 8) 1 serial              (for po 0 (floordiv K 8) 1 serial
          (for pi 0 8 1 serial                                 (for pi 0 8 1 serial (incf (aref s) …)))
            (if (< (+ (* 8 po) pi) K)                  ->    (for poe (floordiv K 8) (floordiv (+ K 7) 8) 1 serial
              ((incf (aref s) (aref A (+ (* 8 po) pi))))))     (for pie 0 8 1 serial
                                                                 (if (< (+ (* 8 poe) pie) K) ((incf (aref s) …)))))

    Use it for the tail of a loop that was split with `pad` where both parts are to work on one tile: a vector
    accumulator is then added up once, not once for each part.
    """
    step = f"partition {loop}"
    found = find(program, loop, step)
    if found.mark not in MARKS:
        raise refusal("E541", step, f"it is bound to the {found.mark}", "partition it before bind")
    if not is_const(found.step, 1):
        raise refusal("E541", step, f"it counts in steps of {found.step}")
    ends = dict(_ends(found, found.body, ()))
    if not ends:
        raise refusal("E541", step, "no condition in it holds up to an iteration that is known before the loop",
                      "the bounds that `split … pad` puts around stores do")
    names, context = Names.of(program), context_at(program, found)
    end = canonical(reduce(lambda a, b: a if a is b else Op("min", (a, b)), ends.values()))
    until = end if context.proves(Op("le", (end, found.hi))) else canonical(Op("min", (end, found.hi)))
    start = end if context.proves(Op("le", (found.lo, end))) else canonical(Op("max", (end, found.lo)))
    first = found.replace(hi=until, body=substitute(found.body, dict.fromkeys(ends, TRUE)))
    copy, new = copied(found.body, ending, names)
    rest = For(names.fresh(found.name + ending), start, found.hi, found.step, found.mark, ())
    made = tidied((first, rest.replace(body=with_value(copy, found, Var(rest.name, "i64")))))
    after = replaced(program, found, *made)
    return after, Partitioned(rest.name, loops_of(new, made), arrays_of(new.values(), after))


def _ends(found: For, stmts: tuple[Stmt, ...], inner: tuple[For, ...]) -> Iterator[tuple[Expr, Expr]]:
    """The conditions, each with the first iteration of `found` in which it may fail. `inner`: the loops around it."""
    local = [n.name for n in found.unique() if isinstance(n, Let | For)]       # what has no value before the loop
    for stmt in stmts:
        if isinstance(stmt, For):
            yield from _ends(found, stmt.body, (*inner, stmt))
        elif isinstance(stmt, If):
            for part in conjuncts(stmt.cond):
                worst = throughout((part,), [*inner])
                end = end_of(worst, found.name) if worst is not None and mentions(worst, (found.name,)) else None
                if end is not None and not mentions(end, local) and not reads_memory(end):
                    yield part, end
            yield from _ends(found, stmt.then, inner)
            yield from _ends(found, stmt.otherwise, inner)
