"""What a step made: its new loops and arrays, told by what they stand for, so that the next step need not know how they are named."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

from ..frozen import frozen
from ..loop.statements import LoopProgram
from .analysis.nests import locals_in, loops_in

Names = Mapping[str, str]             # new loops by the loops of the program before that they stand for, in text order


class Made:
    """What any step may tell: every loop and every local array whose name is new to the program."""

    @property
    def loops(self) -> tuple[str, ...]:
        return ()

    @property
    def arrays(self) -> tuple[str, ...]:
        return ()


@frozen
class Nothing(Made):
    """No loop and no array is new."""


NOTHING = Nothing()


@frozen
class Split(Made):
    """The loop over tiles and the one inside a tile; where iterations may be left over, the loop over these and the copies of what is inside."""

    outer: str
    inner: str
    tail: str = ""
    copies: Names = field(default_factory=dict)
    arrays: tuple[str, ...] = ()

    @property
    def rest(self) -> tuple[str, ...]:
        """The loops over what is left over, from the outermost; none where there is nothing left."""
        return (self.tail, *self.copies.values()) if self.tail else ()

    @property
    def loops(self) -> tuple[str, ...]:
        return (self.outer, self.inner, *self.rest)


@frozen
class Fused(Made):
    """The loop over all iterations of both."""

    loop: str

    @property
    def loops(self) -> tuple[str, ...]:
        return (self.loop,)


@frozen
class Fissioned(Made):
    """The second loop."""

    second: str

    @property
    def loops(self) -> tuple[str, ...]:
        return (self.second,)


@frozen
class Unrolled(Made):
    """The loops of the iterations that are written out after the first, one mapping for each iteration."""

    iterations: tuple[Names, ...] = ()
    arrays: tuple[str, ...] = ()

    @property
    def loops(self) -> tuple[str, ...]:
        return tuple([name for copies in self.iterations for name in copies.values()])


@frozen
class Vectorized(Made):
    """The arrays of masks."""

    masks: tuple[str, ...] = ()

    @property
    def arrays(self) -> tuple[str, ...]:
        return self.masks


@frozen
class Specialized(Made):
    """The loops of the copy."""

    copies: Names
    arrays: tuple[str, ...] = ()

    @property
    def loops(self) -> tuple[str, ...]:
        return tuple(self.copies.values())


@frozen
class Unguarded(Made):
    """The loops that look whether the other factor is finite, and the array that tells; the copy that keeps the conditions. The loops themselves have
    none any more. Of integers there is neither."""

    tests: tuple[str, ...] = ()
    total: str = ""
    copies: Names = field(default_factory=dict)
    copied_arrays: tuple[str, ...] = ()

    @property
    def loops(self) -> tuple[str, ...]:
        return (*self.tests, *self.copies.values())

    @property
    def arrays(self) -> tuple[str, ...]:
        return (*([self.total] if self.total else []), *self.copied_arrays)


@frozen
class Spread(Made):
    """The loop over the threads, and the loops whose iterations are shared out."""

    thread: str
    shared: Names
    arrays: tuple[str, ...] = ()

    @property
    def loops(self) -> tuple[str, ...]:
        return (self.thread, *self.shared.values())


@frozen
class Separated(Made):
    """The kernels that a kernel became, in their order; the first has its name. The copies of its local arrays."""

    kernels: tuple[str, ...]


@frozen
class Nest:
    """Loops over the cells of a tile, by the axes that they stand for. `does`: `fill` (the tile takes what the array holds), `begin` (its sums
    begin with the neutral value), `halve` (one half of it takes the other), `lay` (it is laid out in memory), `store` (the array takes what it
    holds). `is_edge`: for tiles that go beyond the edge of the array."""

    does: str
    is_edge: bool
    loops: Names


@frozen
class Staged(Made):
    """The tile, the array that it is laid out in before it is stored where there is one, and the nests over its cells in text order."""

    tile: str
    laid: str = ""
    nests: tuple[Nest, ...] = ()

    @property
    def loops(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([name for nest in self.nests for name in nest.loops.values()]))

    @property
    def arrays(self) -> tuple[str, ...]:
        return (self.tile, self.laid) if self.laid else (self.tile,)

    @property
    def has_whole_tiles(self) -> bool:
        """Is there a nest for tiles that do not go beyond the edge?"""
        return any(not nest.is_edge for nest in self.nests)

    def over(self, axis: str, *does: str) -> tuple[str, ...]:
        """The loops over an axis of the tile, in all nests or in those that do this."""
        return _over(self.nests, axis, does)

    def usual(self, axis: str, *does: str) -> tuple[str, ...]:
        """Those of whole tiles, and of tiles beyond the edge only where all may be such: what is rare may stay as it is."""
        return _over(self.usual_nests(*does), axis, ())

    def usual_nests(self, *does: str) -> tuple[Nest, ...]:
        """The nests over whole tiles, and those over tiles beyond the edge where no other does the same."""
        whole = {nest.does for nest in self.nests if not nest.is_edge}
        return tuple([nest for nest in self.nests if not (nest.is_edge and nest.does in whole) and (not does or nest.does in does)])


def _over(nests: Iterable[Nest], axis: str, does: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([nest.loops[axis] for nest in nests if axis in nest.loops and (not does or nest.does in does)]))


def loops_of(copies: Mapping[str, str], made: Any) -> dict[str, str]:
    """Those of renamed things that are loops of a program or of statements, in text order: what never runs may have been left out."""
    old = {new: name for name, new in copies.items()}
    return {old[loop.name]: loop.name for loop in loops_in(made) if loop.name in old}


def arrays_of(names: Iterable[str], program: LoopProgram) -> tuple[str, ...]:
    """Those of names that are local arrays of a program."""
    wanted = set(names)
    return tuple([local.name for local in locals_in(program.kernels) if local.name in wanted])
