"""split: strip-mine a loop into two, the inner one of a fixed length."""
from __future__ import annotations

from ...core.expr import Expr, Op, Var, index
from ...core.unique_names import Names
from ...loop.affine import canonical, constant, expression, text_of
from ...loop.context import Context
from ...loop.divisibility import is_multiple
from ...loop.effects import reads, written
from ...loop.statements import ONE, ZERO, For, If, Local, LoopProgram, Stmt, is_const
from ..analysis.guards import below, guarded
from ..analysis.loop_queries import accesses, context_at, find, refusal, replaced, writes
from ..loop_names import copied, declared, with_value
from ..normalize import normal, tidied
from ..step_results import Split, arrays_of, loops_of

TAILS = ("cut", "min", "pad", "overlap")


def split(program: LoopProgram, loop: str, factor: int, tail: str = "cut",
          names: tuple[str, str] | None = None) -> tuple[LoopProgram, Split]:
    """Split loop i into a loop `io` over tiles and a loop `ii` over the COUNT iterations of a tile. Two NAMEs replace
    these names. Unless COUNT is known to divide the number of iterations, `cut` (the default), `min`, `pad` or
    `overlap` chooses how the tail is treated.

        (for i 0 M 1 serial (setf (aref A i) 0.0))
    cut: full tiles, then a separate loop over the tail, with names that end in t
        (for io 0 (floordiv M 4) 1 serial
          (for ii 0 4 1 serial (setf (aref A (+ (* io 4) ii)) 0.0)))
        (for it (* (floordiv M 4) 4) M 1 serial (setf (aref A it) 0.0))
    min: the last tile is shorter
        (for io 0 (floordiv (+ M 3) 4) 1 serial
          (for ii 0 (min 4 (- M (* io 4))) 1 serial (setf (aref A (+ (* io 4) ii)) 0.0)))
    pad: every tile is full; a condition around each store keeps it in bounds
        (for io 0 (floordiv (+ M 3) 4) 1 serial
          (for ii 0 4 1 serial (if (< (+ (* io 4) ii) M) ((setf (aref A (+ (* io 4) ii)) 0.0)))))
    overlap: the tail is the last COUNT iterations, of which the first run again; there must be as many, and they must
    not read what they write
        (for io 0 (floordiv M 4) 1 serial
          (for ii 0 4 1 serial (setf (aref A (+ (* io 4) ii)) 0.0)))
        (if (< (* (floordiv M 4) 4) M)
          ((for it (- M 4) M 1 serial (setf (aref A it) 0.0))))
    """
    step = f"split {loop}"
    found = find(program, loop, step)
    _check(found, factor, tail, step)
    context, new = context_at(program, found), Names.of(program)
    outer, inner = [new.fresh(name) for name in names or (found.name + "o", found.name + "i")]
    if names is not None and names != (outer, inner):
        raise refusal("E510", step, f"the names {names[0]} and {names[1]} must differ and be new to the program")
    extent = canonical(found.hi - found.lo)
    if context.interval(context.linear(extent))[0] < 0 and not context.proves(Op("le", (found.lo, found.hi))):
        extent = Op("max", (extent, ZERO))
    if is_const(extent) and tail == "cut" and factor > extent.value:
        raise refusal("E510", step, f"it has {extent} iterations, not one full tile of {factor}",
                      f"a factor of {extent} or less, or a tail: (split {found.name} {factor} min)")
    whole = is_multiple(context, Context.of(program), extent, factor)
    if tail == "overlap" and not whole:
        _check_overlap(found, factor, extent, context, step)
    exact = context.linear(extent).quotient(constant(factor)) if whole else None
    round_up = 0 if whole or tail in ("cut", "overlap") else factor - 1
    tiles = normal((extent + round_up) // factor) if exact is None else expression(exact)
    start = Var(outer, "i64") * factor
    at = canonical(found.lo + start + Var(inner, "i64"))
    body = with_value(found.body, found, at)
    outer_mark = "parallel" if found.mark == "parallel" else "serial"

    def nest(length: Expr, body: tuple[Stmt, ...]) -> For:
        return For(outer, ZERO, tiles, ONE, outer_mark, (For(inner, ZERO, length, ONE, "serial", body),))

    left, copies = "", dict[str, str]()
    made: tuple[Stmt, ...]
    if whole:
        made = (nest(index(factor), body),)
    elif tail == "min" and is_const(extent) and extent.value <= factor:
        made = (nest(extent, body),)                                     # there is no other tile
    elif tail == "min":
        made = (nest(Op("min", (index(factor), canonical(extent - start))), body),)
    elif tail == "pad":
        inside = context.inside(For(outer, ZERO, tiles, ONE, "serial", ()))
        inside = inside.inside(For(inner, ZERO, index(factor), ONE, "serial", ()))
        made = (nest(index(factor), guarded(body, below(at, found.hi, inside))),)
    else:
        end = canonical(found.lo + tiles * factor)
        start = canonical(found.hi - factor) if tail == "overlap" else end
        rest = For(new.fresh(found.name + "t"), start, found.hi, ONE, outer_mark, ())
        copy, copies = copied(found.body, "t", new)
        left = rest.name
        rest = rest.replace(body=with_value(copy, found, Var(left, "i64")))
        made = (nest(index(factor), body), If(Op("lt", (end, found.hi)), (rest,), ()) if tail == "overlap" else rest)
    stmts = tidied(made)
    after = replaced(program, found, *stmts)
    return after, Split(outer, inner, left, loops_of(copies, stmts), arrays_of(copies.values(), after))


def _check_overlap(found: For, factor: int, extent: Expr, context: Context, step: str) -> None:
    """Refuse to repeat iterations that may not be there, or that change what they read. What an iteration declares is
    its own."""
    if not context.proves(Op("le", (index(factor), extent))):
        raise refusal("E510", step, f"it may have fewer than {factor} iterations",
                      f"(specialize {found.name} (<= {factor} {text_of(extent)})) and split the copy")
    own = {local.name for local in declared(found.body) if isinstance(local, Local)}
    changed = sorted((written(found.body) & reads(found)) - own)
    if changed:
        raise refusal("E510", step, f"an iteration that runs again would read {', '.join(changed)}, which it wrote")


def _check(found: For, factor: int, tail: str, step: str) -> None:
    if tail not in TAILS:
        raise refusal("E510", step, f"the tail is one of {', '.join(TAILS)}, not '{tail}'")
    if factor < 1:
        raise refusal("E510", step, f"a tile has at least one iteration, not {factor}")
    if not is_const(found.step, 1):
        raise refusal("E510", step, f"its step is {found.step}, not 1",
                      "write the loop with step 1, and its index as a multiple")
    changed = {w.ref.buffer for w in writes(found)}
    for buffer in sorted(changed):
        if accesses((found.lo, found.hi), buffer):
            raise refusal("E510", step, f"its bounds read {buffer}, which its body writes")
