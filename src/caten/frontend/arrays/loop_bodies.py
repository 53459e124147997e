"""Bodies in Python with loops over elements: from the text to statements."""
from __future__ import annotations

import ast
from collections.abc import Callable, Collection
from typing import NoReturn, TypeVar

from ...core.node import Node
from ...core.program import At
from ...errors import error
from ...tensor.values import AxisNames, TensorProgram, ValueTable
from ..accumulators import accumulate_in_float32
from ..composite import Composite, parameters
from ..expression_sharing import split_large_expressions
from ..lowered_body import Lowered
from ..scope import Names
from ..unset_reads import unset_reads
from .array_scope import ArrayScope
from .builder import Builder
from .called_composites import Composites
from .loop_statements import LoopFacts, LoopStatements, NotInEveryIteration
from .python_loops import PythonLoops
from .python_source import PythonSource
from .whole_arrays import typing_of

T = TypeVar("T")
MAX_READINGS = 64                     # of a body, until the types of its variables are stable


def evaluate_loops(composite: Composite, composites: Composites) -> Lowered:
    """The statements of a body. Raises CatenError."""
    return _lowered(composite, read_until_stable(composite, composites, PythonLoops.run)[0])


def read_until_stable(composite: Composite, composites: Composites,
                      run: Callable[[PythonLoops], T], results: Collection[str] = ()) -> tuple[PythonLoops, T]:
    """A body that was read, and what `run` returned. The type of a variable is the join of all its assignments, and it
    is never negative if none of them makes it so: the body is read again until nothing changes (a fixpoint).
    `results`: the types of what it returns, if they are no outputs yet."""
    kinds: dict[tuple[int, str], str] = {}
    negative: set[tuple[int, str]] = set()
    source = PythonSource(composite.code, composite.where)
    try:
        for _ in range(MAX_READINGS):
            before = dict(kinds), set(negative)
            body = _body(composite, composites, source, kinds, negative, results)
            made = run(body)
            if before == (kinds, negative):
                return body, made
    except RecursionError:
        raise error("E239", "the expressions of this body nest too deeply", composite.where(0),
                    hint="keep a part of one in a variable") from None
    except NotInEveryIteration as problem:
        raise error("E326", f"this needs {problem.cond}, which is not known to hold in every iteration",
                    composite.where(problem.pos), hint="an 'if' around the statement states it") from None
    raise error("E317", "the types of the variables depend on each other in too long a chain", composite.where(0),
                hint="convert some of them: np.float32(x)")


def _body(composite: Composite, composites: Composites, source: PythonSource,
          kinds: dict[tuple[int, str], str], negative: set[tuple[int, str]], results: Collection[str]) -> PythonLoops:
    """A body that is to be read, with what is known of its variables so far."""
    params = parameters(composite)
    table = ValueTable(TensorProgram(composite.name, params))
    written = {n.id for s in source.body for n in ast.walk(s) if isinstance(n, ast.Name)}
    table.axis_names = AxisNames({*table.names.taken, *written})         # formulas have variables of loops, too
    typing = typing_of("python", composite.where, params, results)
    builder = Builder(table, typing, LoopFacts(params), lambda message, pos: 0, {}, {}, "python")
    scope = ArrayScope(params, composite.outputs, composites, composite.attributes)
    return PythonLoops(builder, source, scope, params, kinds, negative)


def check_unset(composite: Composite, made: LoopStatements) -> None:
    """E227 for an output, not also an input, that is read where nothing can have set it."""
    fresh = frozenset([t.name for t in composite.tensors if t.access == "out"])
    fixed = frozenset([*composite.sizes, *[t.name for t in composite.tensors if t.scalar]])
    for name, at in unset_reads(made.blocks[0].stmts, fresh, fixed).items():
        raise error("E227", f"this reads the output '{name}', which is no input, before anything sets it",
                    composite.where(made.marks.get(at, 0)),
                    hint=f"{name}[...] = 0 first, or list it among the inputs too if it comes from the caller")


def _lowered(composite: Composite, body: PythonLoops) -> Lowered:
    builder, made = body.expressions.builder, body.made
    names = Names(tuple(builder.table.names.taken))

    def refuse(reason: str) -> NoReturn:
        raise error("E239", f"an expression {reason}", composite.where(0), hint="keep a part of it in a variable")
    check_unset(composite, made)
    stmts = tuple(split_large_expressions(made.blocks[0].stmts, names, refuse))
    positions: dict[Node, At] = dict(zip(made.marks, made.positions(), strict=True))
    stmts = accumulate_in_float32(stmts, {t.name: t.shape for t in composite.tensors}, names, positions)
    return Lowered(stmts, (*positions.values(), *made.positions_of_parts()), tuple(builder.sizes.conditions))
