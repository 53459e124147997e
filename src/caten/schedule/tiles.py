"""How large tiles are, from what is known of a machine."""
from __future__ import annotations

from dataclasses import dataclass

from ..core.dtypes import DTYPES
from ..core.program import Machine

KC = 256                        # products summed between two visits of a tile of the result
MC = 144                        # rows of the left operand packed at once, about


@dataclass(frozen=True)
class GemmTile:
    """`rows` × `columns` of the result live in registers; `panel` rows are packed at once, `depth` products at a time."""

    rows: int
    columns: int
    panel: int
    depth: int


def lanes_of(machine: Machine, dtypes: list[str]) -> int:
    """How many elements of the widest of these types a vector holds; 1 where the machine has no vectors for them."""
    widest = max([DTYPES[d].bytes for d in dtypes], default=8)
    return max(1, machine.vector_bytes // widest)


def gemm_tile(machine: Machine, dtype: str) -> GemmTile:
    """The accumulators fill the registers, less two vectors of the right operand and one repeated element of the left.

    16 registers: 6 rows of 2 vectors, 12 accumulators. 32 registers: 12 rows, 24 accumulators.
    """
    lanes = lanes_of(machine, [dtype])
    rows = 12 if machine.registers >= 32 else 6 if machine.registers >= 16 else 2
    return GemmTile(rows, 2 * lanes, MC // rows * rows, KC)
