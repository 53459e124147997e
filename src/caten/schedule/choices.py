"""The holes of the recipes: numbers for which a recipe has a default, and that may have another value for one kernel on one machine.

A recipe asks for the value of a hole by its name, `draft.choice("gemm.depth", KC)`. Without a choice that is its default; `caten tune` measures
others.
"""
from __future__ import annotations

from ..frozen import frozen

# What a hole may be instead of its default, the default among them or not. The machine table says which of these make no sense on a machine.
HOLES: dict[str, tuple[int, ...]] = {
    "nest.copies": (0, 1),                                   # for the sizes that calls are likely to have
    "gemm.rows": (2, 3, 4, 5, 6, 8, 10, 12, 14),             # of the tile in registers
    "gemm.vectors": (1, 2, 3, 4),                            # of a row of that tile
    "gemm.depth": (64, 128, 256, 512, 1024),                 # products summed between two visits of a tile
    "gemm.quarters": (1, 2, 3),                              # of the last cache of a core, filled by the packed left operand
    "gemm.panels": (8, 16, 32, 64, 128),                     # of the right operand, packed at once
    "gemm.ahead": (1, 2, 4, 8, 16),                          # rows that are asked for while one is packed
    "gemm.order": (0, 1),                                    # of the tiles: down the rows first, or along the columns
    "gemm.unroll": (1, 2, 4),                                # products of a tile, written out
    "gemm.steps": (1, 8, 32),                                # of an inner sum, written out
    "convolution.width": (4, 8, 16),                         # places of a line in a tile; the lines are what is left of the tile
    "convolution.share": (1, 2, 4),                          # how much less is summed at once than in a plain product
    "dots.columns": (4, 12, 24, 40, 64),                     # up to which products are summed along vectors
    "dots.rows": (2, 4, 6, 8),                               # of a tile of such sums
    "narrow.rows": (1, 2, 3, 5, 9),                          # rows from which on packing the right operand pays
    "narrow.streams": (4, 8, 16),                            # rows of the right operand that are read side by side
    "narrow.block": (256, 512, 1024, 4096, 8192),            # columns that one thread sweeps
    "narrow.vectors": (1, 2, 4),                             # of the result, in registers while the rows are added
    "sums.tree": (0, 1),                                     # are partial sums added up as a tree?
    "sums.block": (1 << 14, 1 << 16, 1 << 18),               # of a long sum: what one thread adds up at a time
    "sums.apart": (0, 1 << 16, 1 << 18),                     # elements between streams that are summed together; 0: one stream
    "sums.vectors": (1, 2, 4, 6, 8),                         # of partial sums along memory
    "columns.vectors": (1, 2, 4, 6, 8),                      # of sums across memory
    "columns.rows": (4, 8, 16),                              # that are summed side by side
    "columns.apart": (0, 16, 64),                            # rows between streams that are summed together; 0: rows side by side alone
    "columns.block": (1 << 11, 1 << 13, 1 << 15),            # bytes of results that one thread sums
    "maps.vectors": (1, 2, 4, 8),                            # computed at once, one after the other
    "maps.stream": (0, 1),                                   # are results stored past the caches?
    "maps.ahead": (0, 1 << 10, 1 << 12),                     # bytes between a store and what is asked for; 0: nothing is
    "rows.ahead": (0, 1),                                    # does a pass over a row ask for the next one?
    "transposes.fits": (1, 16, 64),                          # times the last cache: what is larger is stored past the caches
    "transposes.down": (512, 1024, 2048),                    # bytes of a tile's columns
    "transposes.across": (128, 256, 512),                    # bytes of a tile's rows
}


@frozen
class Choices:
    """Values of some holes, by name; every other hole has its default."""

    values: tuple[tuple[str, int], ...] = ()

    def of(self, hole: str, default: int) -> int:
        """The value of a hole."""
        return dict(self.values).get(hole, default)

    def with_(self, hole: str, value: int) -> Choices:
        """The same choices but for one hole."""
        return Choices(tuple(sorted((dict(self.values) | {hole: value}).items())))

    def __str__(self) -> str:
        return ", ".join([f"{hole} = {value}" for hole, value in self.values]) or "the defaults"


DEFAULTS = Choices()
