"""A contraction of two arrays as its planners see it, and the conditions on its sizes that they make."""
from __future__ import annotations

from typing import Any

from ...core.program import Machine
from ...frozen import frozen
from .parameters import Parameter
from .plan import Axis

ROWS = Parameter("gemm.rows", (2, 3, 4, 5, 6, 8, 10, 12, 14), what="rows of the register tile")
VECTORS = Parameter("gemm.vectors", (1, 2, 3, 4), 2, what="vectors per row of the register tile")
SMALL_BATCH = 4                 # from so many products on, each thread computes its own


@frozen
class Product:
    """C[batch, rows, columns] += A[batch, rows, sums] · B[batch, sums, columns]. `dtype`: of C. `lanes`: of vectors of
    all operands. `left_along`, `right_along`: the loops in which A and B are contiguous. `moving`: the columns along
    which windows of B move (convolution). `is_2d`: they move in two dimensions."""

    dtype: str
    lanes: int
    batch: tuple[Axis, ...]
    rows: tuple[Axis, ...]
    columns: tuple[Axis, ...]
    sums: tuple[Axis, ...]
    left_along: str | None = None
    right_along: str | None = None
    moving: tuple[Axis, ...] = ()
    is_2d: bool = False

    @property
    def has_windows(self) -> bool:
        """Is B read in windows?"""
        return bool(self.moving)

    @property
    def is_single(self) -> bool:
        """Is it one product of two matrices?"""
        return not self.batch and len(self.rows) == len(self.columns) == len(self.sums) == 1


def register_rows(machine: Machine) -> int:
    """The rows of a register tile. Its accumulators fill the registers but for two vectors of B and a broadcast element
    of A. 16 registers: 6 rows of 2 vectors, 12 accumulators. 32 registers: 8 rows, 16 accumulators, enough to hide the
    latency of two multiply-adds per cycle; more rows would read more streams and waste more in the tail."""
    return 2 if machine.registers < 16 else 6 if machine.registers < 32 else 8


def batch_size(p: Product) -> Any:
    """The number of products as a condition spells it; None for one product, or if sizes do not give the number."""
    return iterations(p.batch)


def iterations(axes: tuple[Axis, ...]) -> Any:
    """The number of iterations of nested loops as a condition spells it; None without loops, or if sizes do not give
    the number."""
    if not axes or not all(axis.size for axis in axes):
        return None
    count: Any = axes[0].size
    for axis in axes[1:]:
        count = ("*", count, axis.size)
    return count


def extent(axis: Axis) -> str:
    """The length of a loop as a condition spells it."""
    return axis.size or str(axis.count)


def at_most(axis: Axis, count: int) -> Any:
    """The condition that a loop has at most so many iterations."""
    return ("<=", extent(axis), str(count))


def at_least(axis: Axis, count: int) -> Any:
    """The condition that a loop has at least so many iterations."""
    return ("<=", str(count), extent(axis))


def area_at_most(one: Axis, other: Axis, count: int) -> Any:
    """The condition that two nested loops have at most so many iterations."""
    return ("<=", ("*", extent(one), extent(other)), str(count))
