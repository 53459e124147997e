"""Results of steps: the new loops and arrays by role, so that later steps need not guess names."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

from ..frozen import frozen
from ..loop.statements import LoopProgram
from .analysis.loop_queries import locals_in, loops_in

Names = Mapping[str, str]             # new loops by the original loops, in text order


class Made:
    """The result of a step: its new loops and local arrays."""

    @property
    def loops(self) -> tuple[str, ...]:
        return ()

    @property
    def arrays(self) -> tuple[str, ...]:
        return ()


NOTHING = Made()                      # no new loops or arrays


@frozen
class Split(Made):
    """The loop over tiles and the loop inside a tile. `tail`: the tail loop, if any; `copies`: the loops inside it."""

    outer: str
    inner: str
    tail: str = ""
    copies: Names = field(default_factory=dict)
    arrays: tuple[str, ...] = ()

    @property
    def rest(self) -> tuple[str, ...]:
        """The tail loop and the loops inside it; empty if there is no tail."""
        return (self.tail, *self.copies.values()) if self.tail else ()

    @property
    def loops(self) -> tuple[str, ...]:
        return (self.outer, self.inner, *self.rest)


@frozen
class Partitioned(Made):
    """The loop over the iterations in which a condition may fail, the loops inside it by the original names, and its
    arrays."""

    rest: str
    copies: Names
    arrays: tuple[str, ...] = ()

    @property
    def loops(self) -> tuple[str, ...]:
        return (self.rest, *self.copies.values())


@frozen
class Around(Made):
    """The loops before and after the interior, with those inside them, and their arrays."""

    others: tuple[str, ...]
    arrays: tuple[str, ...] = ()

    @property
    def loops(self) -> tuple[str, ...]:
        return self.others


@frozen
class OneLoop(Made):
    """The fused loop, or the second loop after fission."""

    loop: str

    @property
    def loops(self) -> tuple[str, ...]:
        return (self.loop,)


@frozen
class Unrolled(Made):
    """The copied loops of each unrolled iteration after the first."""

    iterations: tuple[Names, ...] = ()
    arrays: tuple[str, ...] = ()

    @property
    def loops(self) -> tuple[str, ...]:
        return tuple([name for copies in self.iterations for name in copies.values()])


@frozen
class Jammed(Made):
    """The loops over the iterations of the jammed loop, in text order after the first, which has its name."""

    others: tuple[str, ...]

    @property
    def loops(self) -> tuple[str, ...]:
        return self.others


@frozen
class Hoisted(Made):
    """The arrays that hold what was loaded."""

    arrays: tuple[str, ...] = ()


@frozen
class Vectorized(Made):
    """The mask arrays."""

    arrays: tuple[str, ...] = ()


@frozen
class Specialized(Made):
    """The loops of the copy."""

    copies: Names
    arrays: tuple[str, ...] = ()

    @property
    def loops(self) -> tuple[str, ...]:
        return tuple(self.copies.values())


@frozen
class FinitenessTest:
    """The array that is 0 if all elements of a factor are finite, and the loops that add them up."""

    total: str
    loops: tuple[str, ...]


@frozen
class Unguarded(Made):
    """The tests whether factors are finite, and the guarded copy. Integers need neither."""

    tests: tuple[FinitenessTest, ...] = ()
    copies: Names = field(default_factory=dict)
    copied_arrays: tuple[str, ...] = ()

    @property
    def loops(self) -> tuple[str, ...]:
        return (*[name for test in self.tests for name in test.loops], *self.copies.values())

    @property
    def arrays(self) -> tuple[str, ...]:
        return (*[test.total for test in self.tests], *self.copied_arrays)


@frozen
class Spread(Made):
    """The loop over threads, and the loops whose iterations they share."""

    thread: str
    shared: Names
    arrays: tuple[str, ...] = ()

    @property
    def loops(self) -> tuple[str, ...]:
        return (self.thread, *self.shared.values())


@frozen
class Separated(Made):
    """The kernels that one kernel became, in order; the first keeps its name."""

    kernels: tuple[str, ...]


@frozen
class Nest:
    """A nest over the elements of a tile. `loops`: its loops by tile axis. `does`: `fill` (load the tile), `begin` (set
    it to the identity element), `halve` (a step of a reduction tree), `lay` (copy it to memory), `store` (store it to
    the array). `is_edge`: for tiles that cross the edge of the array."""

    does: str
    is_edge: bool
    loops: Names


@frozen
class Staged(Made):
    """The tile, the array that it is copied to before it is stored (if any), and its nests in text order."""

    tile: str
    laid: str = ""
    nests: tuple[Nest, ...] = ()

    @property
    def loops(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([name for nest in self.nests for name in nest.loops.values()]))

    @property
    def arrays(self) -> tuple[str, ...]:
        return (self.tile, self.laid) if self.laid else (self.tile,)

    def over(self, axis: str, *does: str) -> tuple[str, ...]:
        """The loops over an axis of the tile, in all nests or in those with this role."""
        return _over(self.nests, axis, does)

    def usual(self, axis: str, *does: str) -> tuple[str, ...]:
        """The loops in the usual nests: edge tiles are rare, so their nests may stay scalar."""
        return _over(self.usual_nests(*does), axis, ())

    def usual_nests(self, *does: str) -> tuple[Nest, ...]:
        """The nests for whole tiles, and those for edge tiles without a counterpart for whole tiles."""
        whole = {nest.does for nest in self.nests if not nest.is_edge}
        return tuple([nest for nest in self.nests
                      if not (nest.is_edge and nest.does in whole) and (not does or nest.does in does)])


def _over(nests: Iterable[Nest], axis: str, does: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([nest.loops[axis] for nest in nests
                                if axis in nest.loops and (not does or nest.does in does)]))


def loops_of(copies: Mapping[str, str], made: Any) -> dict[str, str]:
    """The renamed loops that a program or statements still have, in text order."""
    old = {new: name for name, new in copies.items()}
    return {old[loop.name]: loop.name for loop in loops_in(made) if loop.name in old}


def arrays_of(names: Iterable[str], program: LoopProgram) -> tuple[str, ...]:
    """The names that are local arrays of a program."""
    wanted = set(names)
    return tuple([local.name for local in locals_in(program.kernels) if local.name in wanted])
