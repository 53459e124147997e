"""hoist: move a loop-invariant condition out of a loop (loop unswitching), or a load (loop-invariant code motion)."""
from __future__ import annotations

from collections.abc import Iterator

from ...core.expr import Expr, Op, index
from ...core.node import substitute
from ...core.unique_names import Names
from ...loop.accesses import conjuncts
from ...loop.effects import written
from ...loop.statements import Aref, For, If, Incf, Let, Local, LoopProgram, Setf, Stmt, Vref
from ..analysis.access_bounds import is_inside, shapes
from ..analysis.guards import wrapped
from ..analysis.loop_queries import context_at, find, loops_in, mentions, reads_memory, refusal, replaced, trip_count
from ..step_results import NOTHING, Hoisted, Made


def hoist(program: LoopProgram, loop: str, buffer: str = "") -> tuple[LoopProgram, Made]:
    """Move the loop-invariant parts of a condition from the body of LOOP to before it, where they are tested once.
    Further loops may lie between LOOP and the condition.

        (hoist p)
        (for p 0 K 1 serial                             (if (< i L)
          (if (and (< i L) (< p i))               ->      ((for p 0 K 1 serial
            ((incf (aref A i) (aref B p)))))                 (if (< p i) ((incf (aref A i) (aref B p)))))))

    With a BUFFER, move the loads of it that are the same in all iterations to before LOOP, whose length is constant.
    Use it for vectors under a mask in loops that are unrolled: C compilers load these again in every iteration.

        (hoist i B)
        (for p 0 K 1 serial                             (for p 0 K 1 serial
          (for i 0 4 1 unroll                             (local B_kept f32 () register)
            (incf (aref S i)                      ->      (setf (aref B_kept) (aref B p))
              (* (aref A i p) (aref B p)))))              (for i 0 4 1 unroll
                                                            (incf (aref S i) (* (aref A i p) (aref B_kept)))))

    Refused: no condition in LOOP has a part that does not change with it; LOOP writes BUFFER, or reads no element of it
    that stays the same, outside conditions and in loops of constant length; the element is not proven to be in
    bounds before LOOP.
    """
    step = f"hoist {loop}"
    found = find(program, loop, step)
    if buffer:
        return _hoist_loads(program, found, buffer, f"{step} {buffer}")
    nest, body = [found], found.body
    while len(body) == 1 and isinstance(body[0], For):
        nest.append(body[0])
        body = body[0].body
    conds: list[Expr] = []
    while len(body) == 1 and isinstance(body[0], If) and not body[0].otherwise:
        conds += conjuncts(body[0].cond)
        body = body[0].then
    if not conds:
        raise refusal("E521", step, f"the body of '{nest[-1].name}' is not under a condition")
    fixed = tuple([c for c in conds if not mentions(c, [inner.name for inner in nest]) and not reads_memory(c)])
    if not fixed:
        raise refusal("E521", step, f"every condition in it changes with its iterations, or reads memory: {conds[0]}")
    rest = tuple([c for c in conds if c not in fixed])
    inside: tuple[Stmt, ...] = (wrapped(body, rest),) if rest else body
    for inner in reversed(nest):
        inside = (inner.replace(body=inside),)
    return replaced(program, found, wrapped(inside, fixed)), NOTHING


def _hoist_loads(program: LoopProgram, found: For, buffer: str, step: str) -> tuple[LoopProgram, Hoisted]:
    if buffer in written((found,)):
        raise refusal("E521", step, f"'{found.name}' writes {buffer}")
    inside = [n.name for n in found.unique() if isinstance(n, Let | Local)] + [n.name for n in loops_in((found,))]
    loads = [ref for ref in dict.fromkeys(_loads((found,), buffer)) if not mentions(ref, inside)
             and not any(reads_memory(part) for part in ref.children)]
    outside = context_at(program, found)
    if away := next((ref for ref in loads if not is_inside(ref, shapes(program)[buffer], outside)), None):
        raise refusal("E521", step, f"{away} is not proven to be in bounds before '{found.name}'")
    if not loads:
        raise refusal("E521", step, f"it reads no element of {buffer} that is the same in all iterations")
    names, before, kept = Names.of(program), list[Stmt](), dict[Expr, Aref | Vref]()
    made: list[str] = []
    for ref in loads:
        vector = isinstance(ref, Vref)
        local = Local(names.fresh(f"{buffer}_kept"), ref.dtype, (index(ref.lanes),) if vector else (), "register")
        kept[ref] = (Vref(local.name, ref.lanes, (index(0),), type=ref.dtype) if vector
                     else Aref(local.name, (), ref.dtype))
        before += [local, Setf(kept[ref], ref)]
        made.append(local.name)
    return replaced(program, found, *before, substitute(found, kept)), Hoisted(tuple(made))


def _loads(stmts: tuple[Stmt, ...], buffer: str) -> Iterator[Aref | Vref]:
    """What statements read of a buffer whenever they run."""
    for stmt in stmts:
        match stmt:
            case For(body=body):
                if (trip_count(stmt) or 0) > 0:
                    yield from _loads(body, buffer)
            case Setf() | Incf() | Let():
                yield from [n for n in _evaluated(stmt.value) if isinstance(n, Aref | Vref) and n.buffer == buffer]


def _evaluated(expr: Expr) -> Iterator[Expr]:
    """The parts of an expression that are evaluated whatever its conditions are."""
    yield expr
    for child in expr.children[:1] if isinstance(expr, Op) and expr.fn == "where" else expr.children:
        if isinstance(child, Expr):
            yield from _evaluated(child)
