"""A scatter of a sum adds into the other term, instead of into zeros that are then added to it.

    Z = 0;  S = scatter Z, add, …;  Y[i, j] = T[i, j] + S[i, j]   ->   Y = scatter T, add, …

So the gradient of a table that is read by rows, and elsewhere, needs one array of its size instead of two.
"""
from __future__ import annotations

from collections import Counter

from ..core.dtypes import is_float
from ..core.expr import Const, Expr, Op
from ..core.program import InOrder
from ..core.unique_names import Names
from .products import Values
from .values import Compute, Define, Indexed, Read, Scatter, TensorProgram, Value, operands_of, reads_of, shapes_of


def with_scatters_into_sums(program: TensorProgram, kept: frozenset[str]) -> TensorProgram:
    """The program with scatters into the sums that they are terms of. Values that are `kept`, and sums whose order is
    to stay, are left as they are."""
    if not any(isinstance(d.value, Scatter) for d in program.definitions):
        return program
    values: dict[str, Value] = {name: d.value for d in program.definitions for name in d.names}
    readers = Counter([name for d in program.definitions for name in operands_of(d.value)])
    readers.update([*program.results, *[r.buffer for c in program.checks for r in reads_of(c.cond)], *kept])
    names, in_order = Names.of(program), program.first(InOrder) is not None
    clauses: list[object] = []
    for clause in program.clauses:
        made = [clause] if isinstance(clause, Define) else []
        while made and (parts := _taken_apart(made[0], values, readers, names, in_order)) is not None:
            made[:1] = parts
        clauses += made or [clause]
    return program.replace(clauses=tuple(clauses))


def _taken_apart(define: Define, values: Values, readers: Counter[str], names: Names,
                 in_order: bool) -> list[Define] | None:
    """The rest of a sum, if it is no value yet, and the scatter into it; None if no term is such a scatter."""
    value = define.value
    match value:
        case Compute(expr=Op("add", (first, second))) if not (in_order and is_float(value.type)):
            for term, rest in ((second, first), (first, second)):
                scatter = _scatter_into_zeros(term, value, values)
                if scatter is None or not isinstance(term, Read) or not _is_only_read(term, rest, readers):
                    continue
                if isinstance(rest, Read) and _is_whole(rest, value, values):
                    return [define.replace(value=scatter.replace(source=rest.buffer))]
                name = names.fresh(f"{define.name}_rest")
                return [Define((name,), value.replace(expr=rest)),
                        define.replace(value=scatter.replace(source=name))]
    return None


def _is_only_read(term: Read, rest: Expr, readers: Counter[str]) -> bool:
    return readers[term.buffer] == 1 and not any(isinstance(n, Read) and n.buffer == term.buffer for n in rest.unique())


def _scatter_into_zeros(term: Expr, sum_: Compute, values: Values) -> Scatter | None:
    """The scatter that is a term of a sum, element by element, if it adds to zeros."""
    if not isinstance(term, Read) or not _is_whole(term, sum_, values):
        return None
    value = values[term.buffer]
    if not isinstance(value, Scatter) or value.fn != "add":
        return None
    match values.get(value.source):
        case Compute(expr=Const(value=0)):
            return value
    return None


def _is_whole(read: Read, reader: Compute, values: Values) -> bool:
    """Does a map read all elements of a value of its own type, each at its own index?"""
    value = values.get(read.buffer)
    return (isinstance(value, Indexed) and read.type == reader.type
            and read.index == tuple([a.var for a in reader.axes]) and shapes_of(value) == shapes_of(reader))
