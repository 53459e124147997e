"""The table of all nest kinds, their plans in order, and the parameters of their planners.

A nest is recognised by its structure alone: names choose nothing. The kinds are tried in the order of this table, and
the plans of a kind in their order. A plan with a condition on the sizes applies to a copy of the nest under that
condition (loop versioning). The first plan that applies without a condition is for all remaining calls, so the plans
after it are not tried. If the sizes are known at compile time, the conditions are decided then and no copy is made.
"""
from __future__ import annotations

from . import (
    contractions,
    convolutions,
    gpu,
    maps,
    packed_products,
    product,
    reductions,
    row_passes,
    scans,
    scatters,
    transposes,
    windows,
)
from .contractions import PRODUCTS
from .maps import MAPS, MAPS_WITH_SUMS
from .parameters import Parameter
from .plan import NestKind
from .reductions import COLUMN_SUMS, OTHER_SUMS, ROW_SUMS, SHORT_SUMS
from .scans import SCANS
from .scatters import SCATTERS
from .transposes import TRANSPOSES
from .windows import WINDOW_GRADIENTS, WINDOW_SUMS

PERFECT_NESTS: tuple[NestKind, ...] = (
    TRANSPOSES, PRODUCTS, WINDOW_SUMS, WINDOW_GRADIENTS, SHORT_SUMS, ROW_SUMS, COLUMN_SUMS, OTHER_SUMS, SCANS,
    MAPS_WITH_SUMS, SCATTERS, MAPS)
WHOLE_NESTS: tuple[NestKind, ...] = (row_passes.COLUMNS, row_passes.KNOWN_PASSES)
ROW_PASSES: tuple[NestKind, ...] = (row_passes.PASSES,)
OUTER_LOOPS: tuple[NestKind, ...] = (row_passes.SERIAL,)
DEVICE_NESTS: tuple[NestKind, ...] = gpu.KINDS

COPIES = Parameter("nest.copies", (0, 1), 0, what="is there a specialised copy of the nest for the likely sizes?")
MODULES = (product, packed_products, convolutions, contractions, reductions, maps, row_passes, transposes, scans,
           scatters, windows, gpu)
PARAMETERS: dict[str, Parameter] = {p.name: p for p in (COPIES, *[
    value for module in MODULES for value in vars(module).values() if isinstance(value, Parameter)])}
