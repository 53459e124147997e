"""The passes in order: how a program gets from level to level.

    gemm.toml ──parse──▶ (op …) ──ir──▶ (tensor …) ──schedule──▶ (loop …) ──render──▶ C ──compile──▶ library

A pass is a function from program to program; `driver` runs, times and verifies them. Each imports what it needs when it
runs: a process whose kernels are all in the cache needs none of it.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from .core.expr import Var, index
from .core.node import Node, kept, substitute
from .core.program import Bind, Fusion, InOrder, Program
from .core.text import flat, form_of
from .errors import CatenError, Diagnostic
from .frontend.op import Body, OpProgram, Rewrite, in_loops
from .frozen import frozen
from .loop.statements import Aref, For, Kernel, LoopProgram, Stmt
from .schedule.planning import Planning
from .schedule.planning_log import Ignored, Rewritten, StaysNest
from .tensor.values import TensorProgram

In = TypeVar("In", bound=Program)
Out = TypeVar("Out", bound=Program)


def verify_op(op: OpProgram) -> None:
    """The verifier of the level of the body: of loops, or of values. Raises CatenError."""
    values = op.values
    if values is None:
        verify_loops(op)
    elif op.first(Body) is not None:
        raise CatenError(Diagnostic("E470", f"{op.name} has a body of statements, and outputs that are values"))
    else:
        verify_values(values.without(Fusion))


def verify_values(program: TensorProgram) -> None:
    """The verifier of the tensor level. Raises CatenError."""
    from .tensor.tensor_verifier import verify
    verify(program)


def verify_loops(program: Program) -> None:
    """The verifier of the loop level. Raises CatenError."""
    from .loop.verifier import verify
    verify(program)


LEVELS: dict[str, type[Program]] = {"op": OpProgram, "tensor": TensorProgram, "loop": LoopProgram}
VERIFIERS: dict[str, Callable[[Any], None]] = {"op": verify_op, "tensor": verify_values,
                                               "loop": verify_loops}
RAISE = "raise"
LOWER = "lower"
SCHEDULE = "schedule"           # the pass that records of `caten tune` take the place of


@frozen
class Pass(Generic[In, Out]):
    """One step of the pipeline; `to` is the level that the stage it belongs to ends at. `plain`: the least that makes a
    program of the next step; it has its turn where `run` fails, or the verifier refuses what it made, which is a fault
    of ours."""

    name: str
    run: Callable[[In, Planning], Out]
    to: str
    plain: Callable[[In], Out] | None = None


def pure(function: Callable[[In], Out]) -> Callable[[In, Planning], Out]:
    """A pass that plans nothing."""
    return lambda program, planning: function(program)


def as_it_is(program: In) -> In:
    """The program, for passes that may be left out."""
    return program


def with_checks(op: OpProgram) -> OpProgram:
    """The operator with its run-time checks. A body over whole arrays becomes loops at -O0, for sums in order, and
    where only loops can have its checks."""
    from .loop.bounds_checks import add_checks
    from .tensor.checks_of_values import checked_values
    values = op.values
    made = checked_values(values) if values is not None and op.opt > 0 and op.first(InOrder) is None else None
    if made is not None:
        return made
    checked: OpProgram = add_checks(in_loops(op))
    return checked


def normalised(op: OpProgram) -> OpProgram:
    """The operator with its accumulations in their normal form: X = X + e is one, however it is written."""
    from .loop.accumulations import normalise
    made: OpProgram = normalise(op)
    return made


def filled(op: OpProgram) -> OpProgram:
    """The operator with outputs that hold 0 at first, unless they are proven to be set everywhere."""
    from .loop.zero_fill import fill_outputs
    made: OpProgram = fill_outputs(op)
    return made


def raised(program: OpProgram, planning: Planning) -> TensorProgram:
    """Loop nests as index notation where they fit; the log has those that do not."""
    from .loop.effects import writes

    def heard(stmt: Stmt, why: str, keeps: Node | None) -> None:
        loops = [n.name for n in stmt.walk() if isinstance(n, For)]
        at = ""
        if isinstance(keeps, Aref):
            at = flat(form_of(keeps)) if keeps.index else keeps.buffer
        names = [*([keeps.name] if isinstance(keeps, For) else [at]), *loops]
        place = next((place for name in names if (place := program.place_of(name)) is not None), None)
        what = f"'{loops[0]}'" if loops else f"'{flat(form_of(stmt))}'"
        if place is None and program.place() is not None:      # a statement over whole arrays: its loops have no names
            arrays = sorted(writes(stmt), key=lambda name: (name not in program.buffers, name))
            place = next((place for name in arrays if (place := program.place_of_array(name)) is not None),
                         program.place())
            known = bool(arrays) and arrays[0] in program.buffers
            what = (f"the loop that computes '{arrays[0]}'" if known else "a loop over whole arrays" if arrays
                    else "what makes a run-time check")
            at = keeps.buffer if isinstance(keeps, Aref) and keeps.buffer in program.buffers else ""
        planning.log.append(StaysNest(what, why, at, place))
    from .tensor.raising import raise_op
    made = raise_op(program, heard=heard)
    if made.first(Fusion) is not None:
        from .tensor.fusion import kernels_of
        kernels_of(made)                       # a request that is refused is an error of the spec
    return made


def bind_sizes(program: LoopProgram) -> LoopProgram:
    """Kernels with the sizes known at compile time as constants; the parameters stay, and entry checks compare."""
    values = {Var(b.name, "i64"): index(b.value) for b in program.all(Bind)}
    if not values:
        return program
    clauses = tuple(substitute(c, values) if isinstance(c, Kernel) else c for c in program.clauses)
    return program.replace(clauses=clauses)


def rewrite_values(program: TensorProgram, planning: Planning) -> TensorProgram:
    """The program after its rules, and without them."""
    from .tensor.value_rewriting import ValueRule, rewritten
    rules = [ValueRule(r.pattern.name, values_of(r.pattern), values_of(r.replacement)) for r in program.all(Rewrite)]
    made, names = rewritten(program.without(Rewrite), rules)
    planning.log += [Rewritten(program.name, name) for name in names]
    return made


def left_as_nests(program: OpProgram) -> TensorProgram:
    """The tensor level of an operator of which nothing is raised."""
    from .tensor.raising import raise_op
    return raise_op(program, as_written=True)


def lowered(program: TensorProgram, planning: Planning) -> LoopProgram:
    """Index notation as loops, with attention in blocks of rows."""
    from .tensor.blocks_of_rows import BLOCKS, ignored_requests
    from .tensor.lower import lower
    made = lower(program, blocks=BLOCKS)
    planning.log += map(Ignored, ignored_requests(program))
    return made


def plainly_lowered(program: TensorProgram) -> LoopProgram:
    """Index notation as loops, every kernel in the form that always applies."""
    from .tensor.lower import lower
    return lower(program)


def simplified(program: LoopProgram, planning: Planning) -> LoopProgram:
    """The loops with canonical indices and folded constants."""
    from .schedule import autoscheduler
    return autoscheduler.simplified(program, planning)


def scheduled(program: LoopProgram, planning: Planning) -> LoopProgram:
    """The loops as planned, or with the schedule that was given."""
    from .schedule import autoscheduler
    return autoscheduler.schedule(program, planning)


def as_written(program: LoopProgram) -> LoopProgram:
    """The loops as they are, as what the scheduler leaves."""
    from .schedule import autoscheduler
    return autoscheduler.as_written(program)


@kept
def values_of(op: OpProgram) -> TensorProgram:
    """The values of a pattern or a replacement."""
    from .tensor.call_kernels import is_call
    from .tensor.raising import raise_op
    body = op.first(Body)
    if body is not None and any(map(is_call, body.stmts)):
        return raise_op(op)
    return raise_op(filled(normalised(with_checks(op))))


PASSES: tuple[Pass[Any, Any], ...] = (
    # Accesses that are not proven inside get a check.
    Pass("add_checks", pure(with_checks), "tensor"),
    # X = x + e is an accumulation, however it is written.
    Pass("normalise", pure(normalised), "tensor", plain=as_it_is),
    # Outputs that are not proven to be set everywhere hold 0 at first.
    Pass("fill", pure(filled), "tensor"),
    # Loop nests to index notation where they fit.
    Pass(RAISE, raised, "tensor", plain=left_as_nests),
    # The rules of specs and runtimes, on values.
    Pass("rewrite", rewrite_values, "tensor", plain=lambda p: p.without(Rewrite)),
    Pass(LOWER, lowered, "loop", plain=plainly_lowered),     # index notation to loops
    Pass("bind", pure(bind_sizes), "loop"),                     # sizes known at compile time become numbers
    Pass("simplify", simplified, "loop", plain=as_it_is),       # canonical indices, folded constants
    Pass(SCHEDULE, scheduled, "loop", plain=as_written),         # the planners' schedule, or the one that was given
)


def level_of(program: Program) -> str:
    """`op`, `tensor` or `loop`."""
    return next(name for name, cls in LEVELS.items() if isinstance(program, cls))
