"""What a body in Python returns: element types and shapes."""
from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from ..core.expr import Expr
from ..core.text import read_forms
from ..errors import error
from ..tensor.values import TensorProgram, ValueTable
from .arrays.argument_binding import described
from .arrays.array_scope import ArrayScope
from .arrays.builder import Builder
from .arrays.called_composites import Composites
from .arrays.elementwise_functions import term_of
from .arrays.handles import Array, NeedsLoops
from .arrays.lisp_arrays import LispArrays
from .arrays.loop_bodies import read_until_stable
from .arrays.python_source import PythonSource
from .arrays.python_statements import PythonStatements
from .arrays.size_facts import SizeFacts
from .arrays.whole_arrays import decimals, typing_of
from .composite import Composite, parameters

Types = tuple[tuple[str, tuple[Expr, ...]], ...]
Returned = tuple[Any, ...] | None


def returned_types(composite: Composite, composites: Composites) -> Types:
    """The element type and the shape of each value that the body of a composite returns. Its outputs that are no inputs
    are not looked at: what it returns takes their place, also where the type of decimals is that of the signature.
    Raises CatenError with what is wrong with the body."""
    inputs = tuple([t for t in composite.tensors if t.name in composite.inputs])
    known = replace(composite, tensors=inputs, outputs=tuple([n for n in composite.outputs if n in composite.inputs]))
    params, found = parameters(known), _returned(known, composites, ())
    results = [dtype for dtype, _ in found]
    if decimals(params, results) == decimals(params):
        return found
    return _returned(known, composites, results)


def _returned(known: Composite, composites: Composites, results: Collection[str]) -> Types:
    """What is returned if the results have these types, as far as the type of decimals depends on them."""
    try:
        try:
            return _types(*_whole(known, composites, results))
        except NeedsLoops:
            if known.lang == "lisp":
                raise error("E229", "loops over elements return nothing whose shape could be that of an output",
                            known.where(0), hint="declare the shapes of the outputs") from None
            body, returned = read_until_stable(known, composites, PythonStatements.run, results)
            return _types(body.expressions.builder.at(body.end), returned)
    except RecursionError:
        raise error("E239", "the expressions of this body nest too deeply", known.where(0),
                    hint="keep a part of one in a variable") from None


def _whole(composite: Composite, composites: Composites, results: Collection[str]) -> tuple[Builder, Returned]:
    """What a body over whole arrays returns."""
    params = parameters(composite)
    builder = Builder(ValueTable(TensorProgram(composite.name, params)),
                      typing_of(composite.lang, composite.where, params, results), SizeFacts(params),
                      lambda message, pos: 0, {}, {}, composite.lang)
    scope = ArrayScope(params, composite.outputs, composites, composite.attributes)
    body: PythonStatements | LispArrays
    if composite.lang == "python":
        body = PythonStatements(builder, PythonSource(composite.code, composite.where), scope)
    else:
        body = LispArrays(builder, read_forms(composite.code, composite.where), scope)
    returned = body.run()
    return builder.at(body.end), returned


def _types(b: Builder, returned: Returned) -> Types:
    found: list[tuple[str, tuple[Expr, ...]]] = []
    for value in returned or ():
        operand = term_of(value, b.pos)
        if operand is None:
            b.fail("E322", f"a body returns arrays and numbers, not {described(value)}")
        found.append((operand.dtype, operand.shape) if isinstance(operand, Array)
                     else (b.typing.storage(operand.kind), ()))
    return tuple(found)
