"""Operators that a runtime's table lacks, as inline functions written from their rules in mathematics.decompose."""
from __future__ import annotations

from dataclasses import replace

from ..core.dtypes import DTYPES
from ..core.scalars import OPERATORS
from ..errors import error
from ..mathematics.decompose import Definition, definition
from ..mathematics.elementary import elementary_table, remainders
from ..mathematics.elementary.arithmetic import Arithmetic
from . import vector_widening
from .c_expressions import Expressions
from .c_identifiers import Names
from .helper_bodies import SCALE_BUILTINS
from .helper_functions import Helpers


def write(helpers: Helpers, fn: str, dtype: str, lanes: int, name: str) -> str:
    """The text of a function `name` for an operator on scalars or vectors of a type. E616 where there is no rule
    either."""
    a = helpers.arithmetic(dtype)
    if lanes > 1 and elementary_table.has_form(fn, a):
        if elementary_table.is_wide(fn, a) or (lanes > 2 and DTYPES[dtype].bytes * lanes > helpers.vector_bytes):
            return by_halves(helpers, fn, a, lanes, name)
        return form(helpers, fn, a, lanes, name)
    if lanes > 1 and fn in remainders.FORMS and fn in helpers.ops:   # for Helpers.remainder, which keeps its range
        x, y = elementary_table.parameters(fn, a)
        return function(helpers, Definition.of((x, y), remainders.FORMS[fn](a, x, y)), lanes, name)
    operands = elementary_table.parameters(fn, a) if OPERATORS[fn].libm else ()
    if operands and elementary_table.limit(fn, a) is None and (expanded := elementary_table.expand(fn, operands,
                                                                                                   a)) is not None:
        return function(helpers, Definition.of(operands, expanded), lanes, name)      # what a C library would have
    found = definition(fn, dtype, frozenset(helpers.ops))
    if found is None:
        raise error("E616", f"this runtime cannot compute '{fn}' of {dtype}",
                    hint="its table of operators lacks it, and no rule replaces it")
    return function(helpers, found, lanes, name)


def form(helpers: Helpers, fn: str, a: Arithmetic, lanes: int, name: str) -> str:
    """An operator by its form in mathematics.elementary."""
    operands, a = elementary_table.parameters(fn, a), replace(a, scales=(a.dtype, lanes) in SCALE_BUILTINS)
    return function(helpers, Definition.of(operands, elementary_table.written(fn, a, *operands)), lanes, name)


def by_halves(helpers: Helpers, fn: str, a: Arithmetic, lanes: int, name: str) -> str:
    """A form on half of the lanes at a time: of float32 that is computed in float64, and of vectors wider than the
    registers."""
    through = a.wide() if elementary_table.is_wide(fn, a) else a
    half = max(lanes // 2, 2)
    inner = f"ct_{fn}_{'short_' * through.short}{through.dtype}x{half}"
    if through.short:
        helpers.define(inner, lambda: form(helpers, fn, through, half, inner))
    else:
        helpers.define(inner, lambda: write(helpers, fn, a.dtype, half, inner))
    vector, operands = helpers.type(a.dtype, lanes), [p.name for p in elementary_table.parameters(fn, a)]
    if lanes == half:
        given = [vector_widening.converted(v, a.dtype, through.dtype, helpers.type(through.dtype, half))
                 for v in operands]
        result = vector_widening.converted(f"{inner}({', '.join(given)})", through.dtype, a.dtype, vector)
    else:
        result = vector_widening.halved(helpers, inner, operands, a.dtype, through.dtype, lanes)
    return helpers.function(name, vector, ", ".join([f"{vector} {v}" for v in operands]), f"return {result};")


def function(helpers: Helpers, found: Definition, lanes: int, name: str) -> str:
    """A definition as a C function on scalars or vectors."""
    ex = Expressions(helpers, Names([*[p.name for p in found.params], *[v.name for v, _ in found.lets]]))
    ex.vectors = {p.name: (lanes, 0) for p in found.params if lanes > 1}
    lines = []
    for var, value in found.lets:
        bits = ex.mask_bits(value) if var.dtype == "bool" and ex.lanes(value) > 1 else 0
        kind = helpers.mask_type(bits, lanes) if bits else helpers.type(var.dtype, ex.lanes(value))
        lines.append(f"const {kind} {ex.names.of(var.name)} = {ex.text(value)};")
        if ex.lanes(value) > 1:
            ex.vectors[var.name] = (lanes, bits)
    lines.append(f"return {ex.text(found.result)};")
    parameters = ", ".join([f"{helpers.type(p.dtype, lanes)} {ex.names.of(p.name)}" for p in found.params])
    return helpers.function(name, helpers.type(found.result.dtype, lanes), parameters, "\n".join(lines))
