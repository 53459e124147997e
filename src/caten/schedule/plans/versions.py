"""Which plans a nest may get: the table of versions, and all parameters of their planners.

A nest is told by its structure, not by the names in it nor by what it is called. Kinds of nests are looked at in the order of this table, and of a
kind the plans in their order. A plan for some calls gets a copy of the nest under its condition; the first plan that is for all calls is the
last. Sizes that are known when a program is compiled decide their conditions then, and no copy is made.
"""
from __future__ import annotations

from . import devices, maps, products, rows, sums, transposes
from .maps import MAPS, MAPS_WITH_SUMS
from .parameters import Parameter
from .plan import Family
from .products import PRODUCTS
from .sums import COLUMN_SUMS, OTHER_SUMS, ROW_SUMS, SHORT_SUMS
from .transposes import TRANSPOSES

INNERMOST: tuple[Family, ...] = (TRANSPOSES, PRODUCTS, SHORT_SUMS, ROW_SUMS, COLUMN_SUMS, OTHER_SUMS, MAPS_WITH_SUMS, MAPS)
PASSES: tuple[Family, ...] = (rows.PASSES,)
ACROSS: tuple[Family, ...] = (rows.SERIAL,)
ON_DEVICES: tuple[Family, ...] = devices.FAMILIES

COPIES = Parameter("nest.copies", (0, 1), 0, what="is there a copy of the nest for the sizes that calls are likely to have?")
MODULES = (products, sums, maps, rows, transposes, devices)
PARAMETERS: dict[str, Parameter] = {p.name: p for p in (COPIES, *[
    value for module in MODULES for value in vars(module).values() if isinstance(value, Parameter)])}
