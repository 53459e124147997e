"""unroll: unroll a loop of constant length, here or in the host compiler."""
from __future__ import annotations

from ...core.expr import Const, index
from ...core.unique_names import Names
from ...loop.bound_tightening import tighten_by_constants
from ...loop.statements import LoopProgram, Stmt
from ..analysis.loop_queries import context_at, find, refusal, replaced
from ..loop_names import copied, with_value
from ..normalize import tidied
from ..step_results import Names as Loops
from ..step_results import Unrolled, arrays_of, loops_of

MAX_COPIES = 64                  # of one loop body in the text
MAX_STATEMENTS = 512             # that one step may write, and
MAX_NODES = 65536                # statements and expressions: what verifies them takes seconds


def unroll(program: LoopProgram, loop: str, how: str = "mark") -> tuple[LoopProgram, Unrolled]:
    """Mark a loop of constant extent for unrolling by the host compiler; with `full`, write its iterations out. Loops
    in these begin and end where conditions say so that are on their variables alone then.

        (unroll i full)
        (for i 0 2 1 serial                      (setf (aref A 0) 0.0)
          (setf (aref A i) 0.0))           ->    (setf (aref A 1) 0.0)
    """
    step = f"unroll {loop}"
    found = find(program, loop, step)
    if not (isinstance(found.lo, Const) and isinstance(found.hi, Const) and isinstance(found.step, Const)):
        raise refusal("E512", step, f"its range from {found.lo} to {found.hi} by {found.step} is not constant",
                      f"(split {loop} 4) and unroll the inner loop, or -D gives its size")
    if found.mark == "parallel":
        raise refusal("E512", step, "the loop is parallel", f"(split {loop} 4) and unroll the inner loop")
    if how == "mark":
        return replaced(program, found, found.replace(mark="unroll")), Unrolled()
    values = range(found.lo.value, found.hi.value, found.step.value)
    nodes = [node for stmt in found.body for node in stmt.walk()]
    statements = sum(isinstance(node, Stmt) for node in nodes)
    if len(values) > MAX_COPIES or len(values) * statements > MAX_STATEMENTS or len(values) * len(nodes) > MAX_NODES:
        raise refusal("E512", step, f"{len(values)} copies of its body are too much text",
                      f"(split {loop} 8) and unroll the inner loop")
    names, context = Names.of(program), context_at(program, found)
    out: list[Stmt] = []
    iterations: list[Loops] = []
    new: list[str] = []
    for n, value in enumerate(values):
        body, copies = (found.body, {}) if n == 0 else copied(found.body, f"_{n}", names)
        body = tuple([tighten_by_constants(s, context) for s in tidied(with_value(body, found, index(value)))])
        out += body
        iterations += [loops_of(copies, body)] if n else []
        new += copies.values()
    after = replaced(program, found, *out)
    return after, Unrolled(tuple(iterations), arrays_of(new, after))


