"""Whole-array bodies: from the text of a body to values. This is the entry of the package.

    evaluate((Size("N"), Buffer("X", "f32", (N,), (0,), "in"), Buffer("Y", "f32", (N,), (0,), "out")), ("Y",),
             "return X / X.sum()", "python", place, table, check)
"""
from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from ...core.dtypes import is_float
from ...core.node import Node
from ...core.program import At, Buffer, Require, Scalar
from ...core.text import read_forms
from ...errors import Place, error
from ...frozen import frozen
from ...tensor.values import Define, Output, ValueTable
from ..typing import Typing, Wording
from .array_scope import ArrayScope
from .builder import Builder, CheckRow
from .called_composites import Composites, NoComposites
from .handles import Array
from .lisp_arrays import LispArrays
from .numpy_promotion import NumpyTyping
from .python_memory import changed_arrays
from .python_source import PythonSource
from .python_statements import PythonStatements
from .size_facts import SizeFacts
from .wording import PythonWording

MAX_NESTED = 400


def typing_of(lang: str, place: Callable[[int], Place], params: Sequence[Node],
              results: Collection[str] = ()) -> Typing:
    """The typing rules of a body in a language. `results`: see `decimals`."""
    if lang == "python":
        return NumpyTyping(place, decimals(params, results), PythonWording())
    return Typing(place, decimals(params, results), Wording())


@frozen
class Evaluated:
    """`definitions`: the values that the outputs need, each after those that it reads. `conditions`: what every call
    must satisfy so that the shapes fit. `positions`: of values by name, and of conditions by their text. `variables`:
    names of the body, each with the value that it has in the end."""

    definitions: tuple[Define, ...]
    outputs: tuple[Output, ...]
    conditions: tuple[Require, ...]
    positions: tuple[At, ...]
    variables: tuple[tuple[str, str], ...] = ()


def evaluate(params: Sequence[Node], outputs: Sequence[str], code: str, lang: str, place: Callable[[int], Place],
             table: ValueTable, check: CheckRow, composites: Composites | None = None,
             attributes: Sequence[tuple[str, Any]] = ()) -> Evaluated:
    """The values of a body over whole arrays.

    `params`: Size, Scalar, Buffer and Require clauses. `place`: maps an offset in the code to a position in the source.
    `check`: allots the row of a run-time check, from its message and the offset. `composites`: those that the body may
    call. `attributes`: static values by name. NeedsLoops for a statement over single elements; CatenError for what is
    wrong."""
    builder = Builder(table, typing_of(lang, place, params), SizeFacts(params), check, {}, {}, lang)
    scope = ArrayScope(params, outputs, composites or NoComposites(), attributes)
    try:
        body = (PythonStatements(builder, PythonSource(code, place), scope) if lang == "python"
                else LispArrays(builder, read_forms(code, place, depth=MAX_NESTED), scope))
        returned = body.run()
        changed = changed_arrays(body.source.body) if isinstance(body, PythonStatements) else ()
        found = scope.finish(builder.at(body.end), returned, changed)
    except RecursionError:
        raise error("E239", "the expressions of this body nest too deeply", place(0),
                    hint="keep a part of one in a variable") from None
    definitions = table.needed([output.value for output in found])
    names = {name for each in definitions for name in each.names}
    conditions = {Require(cond): pos for cond, pos in builder.sizes.conditions.items()}
    positions = [At(place(pos).line, place(pos).column, name) for name, pos in builder.positions.items()
                 if name in names]
    positions += [At.of(place(pos).line, place(pos).column, cond) for cond, pos in conditions.items()]
    variables = [(name, value.name) for name, value in scope.values.items()
                 if isinstance(value, Array) and value.name in names]
    return Evaluated(definitions, found, tuple(conditions), tuple(positions), tuple(variables))


def decimals(params: Sequence[Node], results: Collection[str] = ()) -> str:
    """The type of decimals that meet nothing else: the floating-point type of the signature. `results`: the types of
    outputs that are no parameters yet."""
    kinds = {p.type for p in params if isinstance(p, Buffer | Scalar) and is_float(p.type)}
    kinds |= {dtype for dtype in results if is_float(dtype)}
    return kinds.pop() if len(kinds) == 1 else "f64"

