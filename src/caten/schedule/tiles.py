"""How large tiles are, from what is known of a machine."""
from __future__ import annotations

from collections.abc import Callable

from ..core.dtypes import DTYPES
from ..core.program import Machine
from ..frozen import frozen

KC = 256                        # products summed between two visits of a tile of the result
VECTORS = 2                     # of a row of a tile
QUARTERS = 2                    # of the last cache of a core, for the packed panel of the left operand


@frozen
class GemmTile:
    """`rows` × `columns` of the result live in registers, `lanes` of a row in each; `panel` rows are packed at once, `depth` products at a time."""

    rows: int
    columns: int
    panel: int
    depth: int
    lanes: int


def lanes_of(machine: Machine, dtypes: list[str]) -> int:
    """How many elements of the widest of these types a vector holds; 1 where the machine has no vectors for them. What is computed with storage types
    is of 4 bytes."""
    widest = max([4 if DTYPES[d].storage else DTYPES[d].bytes for d in dtypes], default=8)
    return max(1, machine.vector_bytes // widest)


def default(hole: str, value: int) -> int:
    """No choice: every hole has its default."""
    return value


def gemm_tile(machine: Machine, dtype: str, inner: int = 1, choice: Callable[[str, int], int] = default) -> GemmTile:
    """The accumulators fill the registers, less two vectors of the right operand and one repeated element of the left; the packed panel of the left
    operand fills half of the last cache of a core. `inner`: products in the constant loops inside the one that `depth` splits;
    `choice`: the value of a hole, from its name and its default.

    16 registers: 6 rows of 2 vectors, 12 accumulators. 32 registers: 8 rows, 16 accumulators, which hide the latency of the two multiply-adds that
    start in a cycle; more rows are more streams to read, and more waste where the result has few.
    """
    lanes = lanes_of(machine, [dtype])
    rows = choice("gemm.rows", 2 if machine.registers < 16 else 6 if machine.registers < 32 else 8)
    depth = choice("gemm.depth", KC)
    panel = machine.cache_bytes[-1] * choice("gemm.quarters", QUARTERS) // 4 // (depth * DTYPES[dtype].bytes)
    columns = choice("gemm.vectors", VECTORS) * lanes
    return GemmTile(rows, columns, max(1, panel // rows) * rows, 1 << max(0, (depth // inner - 1).bit_length()), lanes)
