"""Compile graphs and run them. A graph like one that was compiled before is only run."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from caten import build_progress
from caten.driver import ignore
from caten.kernels import known_build
from caten.runtime.call import Operator
from caten.tensor.values import TensorProgram

from .extents import Meanings, Recipe
from .graph import Call, Ref, in_order, is_there
from .graph_keys import Key, key_of, leaves_of, words_of
from .kept_values import kept
from .settings import forgotten_by_use, options
from .shape_formulas import takes_for_equal
from .symbolic_sizes import text_of
from .tracing import ACTIVE, Trace

COMPILED: dict[Key, list[tuple[Recipe, Operator]]] = {}      # of one key: for other extents
forgotten_by_use(COMPILED.clear)


def run(wanted: Sequence[Ref]) -> None:
    """Compute these results, if they are not there, in one call of one library."""
    todo = [r for r in dict.fromkeys(wanted) if r.array is None and isinstance(r.node, Call)]
    if not todo:
        return
    trace = ACTIVE.get()
    if trace is not None:
        todo = _without_older(todo, trace)
        if not todo:
            return
    calls, leaves = leaves_of(todo)
    formulas = None if trace is None else trace.formulas
    operator = _operator(todo, calls, leaves, None if formulas is None else formulas.meanings(todo, leaves, calls))
    made: Any = operator(*[r.array for r in leaves])
    results = [np.asarray(array) for array in (made if isinstance(made, tuple) else (made,))]
    if trace is not None:
        trace.called(operator, leaves, todo, results)
    for r, result in zip(todo, results, strict=True):
        r.becomes(result)


def _without_older(wanted: Sequence[Ref], trace: Trace) -> list[Ref]:
    """These results without those that were asked for before the function that is traced, which are computed here, with
    all others of this kind that they need: they are no part of the trace."""
    def ends(r: Ref) -> bool:
        return is_there(r) or trace.is_older(r)
    read = [*wanted, *[r for call in in_order(wanted, ends) for r in call.inputs]]
    older = [r for r in read if trace.is_older(r) and not is_there(r)]
    if older:
        token = ACTIVE.set(None)
        try:
            run(older)
        finally:
            ACTIVE.reset(token)
    return [r for r in wanted if not trace.is_older(r)]


def _operator(wanted: Sequence[Ref], calls: Sequence[Call], leaves: Sequence[Ref],
              meanings: Meanings | None = None) -> Operator:
    """The compiled graph. `meanings`: the formulas of extents for all values of which it has to be."""
    known = COMPILED.setdefault(key_of(wanted, calls, leaves), [])
    for recipe, operator in known:
        if recipe.fits(leaves, calls) and (meanings is None or not takes_for_equal(meanings, recipe, leaves, calls)):
            return operator
    # The first one is for images of these extents; where others come, the second one is for all.
    program, recipe = program_of(wanted, calls, leaves, meanings, fixes_images=not known)
    for a, b in takes_for_equal(meanings, recipe, leaves, calls)[:1] if meanings is not None else ():
        raise ValueError(f"jit: a program for all sizes would need that {text_of(a)} is {text_of(b)}: an axis that "
                         f"varies is split, or is as long as one that does not. Leave it out of dynamic_shapes")
    with build_progress.shown():
        made = known_build.loaded([program], options(), "", ignore)
    assert isinstance(made, Operator)
    known.append((recipe, made))
    return made


def program_of(wanted: Sequence[Ref], calls: Sequence[Call], leaves: Sequence[Ref],
               meanings: Meanings | None, fixes_images: bool) -> tuple[TensorProgram, Recipe]:
    """The program of a graph and its recipe: assembled, or as another process has left them."""
    def made() -> tuple[TensorProgram, Recipe]:
        from .assembly import assembled  # slow to import
        return assembled(wanted, calls, leaves, meanings, fixes_images)
    words = words_of(wanted, calls, leaves) if meanings is None else None
    return made() if words is None else kept(("graph", repr(fixes_images), *words), made)
