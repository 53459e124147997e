"""Operators that a runtime's table lacks, as inline functions written from their rules in core.decompose."""
from __future__ import annotations

from ..core.decompose import Definition, definition
from ..errors import error
from .expressions import Expressions
from .helpers import Helpers
from .names import Names
from .polynomials import polynomial


def write(helpers: Helpers, fn: str, dtype: str, lanes: int, name: str) -> str:
    """The text of a function `name` for an operator on scalars or vectors of a type. E616 where there is no rule either."""
    found = polynomial(fn, dtype, helpers.fused) if lanes > 1 else None
    found = found or definition(fn, dtype, frozenset(helpers.ops))
    if found is None:
        raise error("E616", f"this runtime cannot compute '{fn}' of {dtype}", hint="its table of operators lacks it, and no rule replaces it")
    return function(helpers, found, lanes, name)


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
