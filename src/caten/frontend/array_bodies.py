"""Bodies over whole arrays, in Python and in Lisp, as values."""
from __future__ import annotations

from ..core.program import At, Fusion, Variables
from ..tensor.canonical_values import canonical_values
from ..tensor.fusion_requests import names_in
from ..tensor.index_maps import axes_of
from ..tensor.unit_axes import without_unit_axes
from ..tensor.values import Define, Named, TensorProgram, ValueTable
from .arrays.called_composites import Composites
from .arrays.handles import NeedsLoops
from .arrays.whole_arrays import evaluate
from .composite import Composite, parameters
from .lowered_body import Lowered


def python_body(composite: Composite, composites: Composites) -> Lowered:
    """A body in Python: as values, or as statements if it has loops over elements. Raises CatenError."""
    try:
        return array_body(composite, composites)
    except NeedsLoops:
        from .arrays.loop_bodies import evaluate_loops
        return evaluate_loops(composite, composites)


def array_body(composite: Composite, composites: Composites) -> Lowered:
    """The values of a body over whole arrays, in canonical form. Raises CatenError; NeedsLoops if it has statements
    over elements. The outputs, and variables that requests to fusion name, are values with their names."""
    params = parameters(composite)
    start = TensorProgram(composite.name, params)
    table = ValueTable(start)
    found = evaluate(params, composite.outputs, composite.code, composite.lang, composite.where, table,
                     lambda message, pos: 0, composites, composite.attributes)
    requests = next((f for f in composite.facts if isinstance(f, Fusion)), Fusion(()))
    asked = {name for request in requests.requests for name in names_in(request)}
    kept = [(name, value) for name, value in found.variables if name in asked]
    named = _named(found.definitions, [*kept, *[(o.name, o.value) for o in found.outputs]])
    whole = without_unit_axes(start.adding(*named, *found.definitions, *found.outputs), table.axis_names)
    program = canonical_values(whole.adding(*([Fusion(tuple([("keep", name) for name, _ in kept]))] if kept else [])))
    variables = [Variables(tuple([name for name, _ in found.variables]))] if asked else []
    made = {at.what: at for at in found.positions}
    positions = tuple([At.of_array(at.line, at.column, o.name) for o in found.outputs if (at := made.get(o.value))])
    return Lowered((), positions, tuple([c.cond for c in found.conditions]),
                   values=program.without(Fusion).adding(*found.conditions, *variables))


def _named(definitions: tuple[Define, ...], names: list[tuple[str, str]]) -> list[Named]:
    """Values with their names in the body."""
    axes = {d.name: tuple([a.name for a in axes_of(d.value)]) for d in definitions}
    return [Named(value, name, axes[value]) for name, value in names if value in axes]
