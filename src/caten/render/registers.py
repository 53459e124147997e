"""Register arrays as scalar and vector C variables (scalar replacement): arrays that are only indexed by constants."""
from __future__ import annotations

import itertools
from collections.abc import Iterator

from ..core.expr import Const
from ..core.node import Node
from ..loop.statements import Aref, Kernel, Local, Transpose, Vref

MAX_VARIABLES = 512   # for one array


def vector_widths(kernel: Kernel) -> dict[str, int]:
    """For every local that can become variables, the lanes of one variable (1: a scalar). All accesses to it must have
    constant indices, and its vector accesses one width, along the last axis, aligned to that width."""
    accesses: dict[str, list[Aref | Vref]] = {}
    locals_: dict[str, Local] = {}
    for node in kernel.unique():
        if isinstance(node, (Aref, Vref)):
            accesses.setdefault(node.buffer, []).append(node)
        elif isinstance(node, Local) and (node.space == "register" or (not node.shape and node.space != "shared")):
            locals_[node.name] = node
    blocks = {place.buffer for node in kernel.unique() if isinstance(node, Transpose)
              for place in (node.ref, node.value)}
    widths = {}
    for name, local in locals_.items():
        width = None if name in blocks else _width(local, accesses.get(name, []))
        if width is not None:
            widths[name] = width
    return widths


def _width(local: Local, accesses: list[Aref | Vref]) -> int | None:
    counts = {a.count for a in accesses if isinstance(a, Vref)}
    if len(counts) > 1 or not all(isinstance(e, Const) for e in local.shape):
        return None
    width = counts.pop() if counts else 1
    elements = 1
    for extent in local.shape:
        elements *= _number(extent)
    if elements > MAX_VARIABLES * width or (local.shape and _number(local.shape[-1]) % width):
        return None
    for access in accesses:
        if not all(isinstance(i, Const) for i in access.index):
            return None
        along_last = not isinstance(access, Vref) or access.axis in (-1, len(local.shape) - 1)
        if isinstance(access, Vref) and (access.mask is not None or not along_last
                                         or _number(access.index[-1]) % width):
            return None
    return width


def variable(local: str, index: tuple[Node, ...], width: int) -> tuple[str, int]:
    """The name (before mangling) of the variable that holds an element, and the element's lane. The dots tell it from
    all names of a program, such as that of a loop over `x_0`."""
    numbers = [_number(i) for i in index]
    lane = 0
    if width > 1:
        lane, numbers[-1] = numbers[-1] % width, numbers[-1] // width
    return ".".join([local, *map(str, numbers)]), lane


def variables(local: Local, width: int) -> Iterator[str]:
    """The names of all variables of a local."""
    extents = [_number(e) for e in local.shape]
    if width > 1:
        extents[-1] //= width
    for point in itertools.product(*[range(e) for e in extents]):
        yield ".".join([local.name, *map(str, point)])


def _number(node: Node) -> int:
    assert isinstance(node, Const)
    return int(node.value)
