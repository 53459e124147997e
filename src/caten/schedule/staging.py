"""The tile of one staging step: its access, axes and conditions, and the loops that fill and store it."""
from __future__ import annotations

from collections.abc import Callable

from ..core.expr import Expr, Op, Var, index, number
from ..core.node import substitute
from ..core.unique_names import Names
from ..loop.accesses import conjuncts, stride_in
from ..loop.affine import canonical
from ..loop.dependence import obstacle_to_parallel
from ..loop.statements import Aref, For, If, Let, Local, LoopProgram, Stmt, is_const
from .analysis.access_bounds import MAX_STACK_BYTES, bytes_of, is_inside, shapes
from .analysis.guards import guards_of, throughout, without_guards, wrapped
from .analysis.halos import Halo, halo
from .analysis.injectivity import obstacle_to_one_to_one
from .analysis.loop_queries import (
    accesses,
    context_at,
    enclosing,
    largest,
    locals_in,
    loops_in,
    mentions,
    reads_memory,
    refusal,
    writes,
)
from .loop_names import renamed
from .step_results import Nest, Staged

# builds the loops over the last axes of a tile, either for whole tiles or for those that cross the edge of the array
Edge = Callable[[list[For]], tuple[Stmt, ...]]

# A loop, or the loops that share an axis of a tile.
Shared = str | tuple[str, ...]

# The role of a nest over a tile by the suffix of its loop names, and whether it is for tiles that cross the edge.
DOES = {"_r": ("fill", False), "_re": ("fill", True), "_z": ("begin", False), "_h": ("halve", False),
        "_s": ("lay", False),
        "_w": ("store", False), "_we": ("store", True), "_b": ("start", False), "_be": ("start", True),
        "_a": ("add", False), "_ae": ("add", True), "_f": ("finish", False), "_fe": ("finish", True)}


class Tile:
    """The tile that replaces the accesses of a loop to one buffer."""

    def __init__(self, program: LoopProgram, found: For, buffer: str, space: str, axes: tuple[Shared, ...],
                 step: str, reads: bool = False) -> None:
        self.program, self.found, self.buffer, self.step, self.space = program, found, buffer, step, space
        self.nests: list[Nest] = []                              # over the elements, in order of creation
        self.laid = ""                                           # the copy of a register tile in memory
        self.first: Expr | None = None                           # holds for the tile that sets; later ones add
        self.start: Expr | None = None                           # what the first tile is added to, if not the identity
        self.last: Expr | None = None                            # holds for the tile to which `epilogue` is applied
        self.epilogue: tuple[Stmt, ...] = ()
        self.shared_by: tuple[str, ...] = ()                     # parallel loops for which `check_threads` has to prove
        self.inner = [found, *loops_in(found.body)]
        loops = tuple([name for axis in axes for name in _names(axis)])
        self.access = self.ref = self._access(loops if reads else ())
        known = {loop.name: loop for loop in self.inner}
        for name in loops:
            if name not in known:
                raise self.refuse(f"'{name}' is no loop inside '{found.name}'")
        if (twice := next((n for n in loops if loops.count(n) > 1), None)) is not None:
            raise self.refuse(f"'{twice}' is named twice; it is one axis of the tile")
        axes = axes or tuple([name for name in known if mentions(self.ref, (name,))])
        self.halos = self._halos([[known[name] for name in _names(axis)] for axis in axes], reads)
        self.axes = [known[axis] if isinstance(axis, str) else self.halos[axis[0]].loop for axis in axes]
        for loop in self.axes:
            if not mentions(self.ref, (loop.name,)) and self._uses(loop) < self._uses(found):
                raise self.refuse(f"{self.ref} is also used outside of '{loop.name}', where no iteration of it has an "
                                  "element of the tile")
        self.names, self.context = Names.of(program), context_at(program, found)
        self.shape = shapes(program)[buffer]
        lets = [n.name for n in found.unique() if isinstance(n, Let)]
        shared = {name for h in self.halos.values() for name in h.names}
        unused = [*[loop.name for loop in self.inner if loop not in self.axes and loop.name not in shared], *lets]
        for name in unused:
            if mentions(self.ref, (name,)):
                raise self.refuse(f"{self.ref} moves with '{name}', which is no axis of the tile")
        if any(reads_memory(i) for i in self.ref.index):
            raise self.refuse(f"the index of {self.ref} reads memory")
        conds = guards_of((found,), self.ref)
        whole = [c for c in conds if not mentions(c, unused) and not reads_memory(c)]
        self.guards = tuple([part for cond in conds for part in conjuncts(cond)
                             if not mentions(part, unused) and not reads_memory(part)])
        self.is_conditional = len(whole) < sum(1 for n in found.walk() if isinstance(n, If))
        for h in self.halos.values():
            self._share(h)
        self.extents = [self._extent(loop, n) for n, loop in enumerate(self.axes)]
        if space == "stack" and bytes_of(self.ref.dtype, self.extents) > MAX_STACK_BYTES:
            size = bytes_of(self.ref.dtype, self.extents)
            raise self.refuse(f"its {size} bytes do not fit on the stack ({MAX_STACK_BYTES}); use scratch")

    def _uses(self, loop: For) -> int:
        return sum(1 for n in loop.walk() if n is self.ref)

    def _halos(self, axes: list[list[For]], reads: bool) -> dict[str, Halo]:
        """The axes that several loops share, by the first of them."""
        several = [loops for loops in axes if len(loops) > 1]
        if several and not reads:
            raise self.refuse(f"'{several[0][0].name}' and '{several[0][1].name}' share an axis, and what they store "
                              "would meet in it; only a tile that is read has such axes")
        try:
            return {loops[0].name: halo(self.ref, loops) for loops in several}
        except ValueError as problem:
            raise self.refuse(str(problem)) from None

    def _share(self, h: Halo) -> None:
        """Access the elements of a halo, under the conditions that hold for one of the iterations that meet in each,
        but for those that follow from others."""
        self.ref = self.ref.replace(index=tuple([h.of(i) or i for i in self.ref.index]))
        exact = tuple([cond for given in self.guards if (cond := h.of(given)) is not None])
        wider = [cond for given in self.guards if h.of(given) is None and (cond := h.for_some(given)) is not None]
        context = self.context
        for loop in self.axes:
            context = context.inside(loop)
        for cond in exact:
            context = context.given(cond)
        self.guards = (*exact, *[cond for cond in wider if not context.proves(cond)])

    def _local(self, suffix: str) -> tuple[Local, Aref]:
        local = Local(self.names.fresh(f"{self.buffer}_{suffix}"), self.ref.dtype, tuple(self.extents), self.space)
        return local, Aref(local.name, self._cell(), self.ref.dtype)

    def _cell(self) -> tuple[Expr, ...]:
        """The index in the tile of an iteration."""
        return tuple([canonical(Var(loop.name, "i64") - loop.lo) for loop in self.axes])

    def _place(self) -> tuple[Expr, ...]:
        """The index in the tile of the element that an iteration reads."""
        return tuple([self.halos[loop.name].position if loop.name in self.halos else cell
                      for loop, cell in zip(self.axes, self._cell(), strict=True)])

    def _with(self, local: Local, tile: Aref) -> tuple[Stmt, ...]:
        """The loop, with the tile instead of the buffer."""
        loops: tuple[Stmt, ...] = substitute((self.found,), {self.ref: tile})
        if not self.guards:
            return loops
        known = shapes(self.program) | {local.name: local.shape}
        folded = frozenset([loop.name for loop in self.axes if not mentions(self.ref, (loop.name,))])
        return without_guards(loops, set(self.guards), local.name, known, context_at(self.program, self.found), folded)

    def _load(self) -> Expr:
        """The element, or zero if a condition fails."""
        value: Expr = self.ref
        for cond in reversed(self.guards):
            value = Op("where", (cond, value, number(0, self.ref.dtype)))
        return value

    def _guarded(self, stmt: Stmt) -> tuple[Stmt, ...]:
        return (wrapped((stmt,), self.guards),) if self.guards else (stmt,)

    def _each(self, body: tuple[Stmt, ...], suffix: str) -> Edge:
        """Build `body` for every element."""
        return lambda axes: self._copy(self._over(axes, body), suffix)

    def _nest(self, body: tuple[Stmt, ...], suffix: str) -> tuple[Stmt, ...]:
        """`body` in new loops over the axes of the tile."""
        return self._copy(self._over(self.axes, body), suffix)

    def _over(self, axes: list[For], body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        for loop in reversed(axes):
            body = (For(loop.name, loop.lo, loop.hi, loop.step, "serial", body),)
        return body

    def _copy(self, stmts: tuple[Stmt, ...], suffix: str) -> tuple[Stmt, ...]:
        loops = {loop.name: self.names.fresh(loop.name + suffix) for loop in loops_in(stmts)}
        self.nests.append(Nest(*DOES[suffix], loops))
        return renamed(stmts, loops)

    def made(self, stmts: tuple[Stmt, ...], tile: str) -> Staged:
        """The result of the step, without nests that were simplified away."""
        at = {loop.name: n for n, loop in enumerate(loops_in(stmts))}
        nests = [nest for nest in self.nests if all(name in at for name in nest.loops.values())]
        nests.sort(key=lambda nest: [at[name] for name in nest.loops.values()])
        laid = self.laid if any(local.name == self.laid for local in locals_in(stmts)) else ""
        return Staged(tile, laid, tuple(nests))

    def _either(self, full: Edge, edge: Edge, suffix: str) -> tuple[Stmt, ...]:
        """`full` if the whole tile satisfies the conditions, else `edge`. The test is inside the axes of variable
        extent that the conditions use, and outside the other axes; there is none for single elements. Where it would
        always fail (of a known number of tiles the last is not whole, or each is at an edge of the array), it is inside
        further axes."""
        if not self.guards:
            return full(self.axes)
        around = self._choices_around()
        inner = self.axes[around:]
        whole = throughout(self.guards, inner)
        if whole is None or not inner:
            return edge(self.axes)
        inside = len(self.nests)
        choice = If(whole, full(inner), edge(inner))
        outer = {loop.name: self.names.fresh(loop.name + suffix) for loop in self.axes[:around]}
        self.nests[inside:] = [Nest(nest.does, nest.is_edge, outer | dict(nest.loops)) for nest in self.nests[inside:]]
        return renamed(self._over(self.axes[:around], (choice,)), outer)

    def _choices_around(self) -> int:
        """The number of axes around the test whether the whole tile satisfies the conditions."""
        variable = [n for n, loop in enumerate(self.axes) if not is_const(canonical(loop.hi - loop.lo))
                    and mentions(self.guards, (loop.name,))]
        around = max(variable, default=-1) + 1
        while around < len(self.axes) and (whole := throughout(self.guards, self.axes[around:])) is not None and (
                self.context.refutes(whole)):
            around += 1                     # no tile is whole along this axis, or one that is inside it
        return around

    def _access(self, loops: tuple[str, ...]) -> Aref:
        """The access that moves with these loops, and with no other one inside; without loops, the only one."""
        refs = accesses(self.found, self.buffer)
        if any(n.name == self.buffer for n in locals_in(self.found)):
            raise self.refuse(f"it is declared inside '{self.found.name}'")
        if not refs:
            raise self.refuse(f"'{self.found.name}' does not use it")
        if len(refs) > 1 and loops and not any(w.ref.buffer == self.buffer for w in writes(self.found)):
            names = [loop.name for loop in self.inner]
            refs = [r for r in refs if {name for name in names if mentions(r, (name,))} == set(loops)] or refs
        if len(refs) > 1:
            raise self.refuse(f"it is used in more than one way: {', '.join([str(r) for r in refs[:3]])}")
        (ref,) = refs
        if not isinstance(ref, Aref):
            raise self.refuse(f"{ref} is a vector already; stage before vectorize")
        return ref

    def _extent(self, loop: For, position: int) -> Expr:
        """The extent of the tile along one loop."""
        if not is_const(loop.step, 1):
            raise self.refuse(f"the step of '{loop.name}' is {loop.step}, not 1")
        later = [other.name for other in self.inner if other not in self.axes[:position]]
        later += [n.name for n in self.found.unique() if isinstance(n, Let)]
        if mentions((loop.lo, loop.hi), later):
            raise self.refuse(f"the range of '{loop.name}' depends on what is no axis of the tile before it")
        if any(reads_memory(e) for e in (loop.lo, loop.hi)):
            raise self.refuse(f"the range of '{loop.name}' reads memory")
        extent = canonical(loop.hi - loop.lo)
        bound = largest(extent)
        if bound is not None:
            return index(bound)
        if self.space != "scratch":
            raise self.refuse(
                f"the length {extent} of '{loop.name}' has no constant bound, which a tile in {self.space} needs")
        if mentions(extent, [outer.name for outer in (*enclosing(self.program, self.found), *self.inner)]):
            raise self.refuse(f"the length {extent} of '{loop.name}' changes from iteration to iteration")
        return extent if self.context.interval(self.context.linear(extent))[0] >= 0 else Op("max", (extent, index(0)))

    def _check_inside(self) -> None:
        context = self.context
        for loop in self.axes:
            context = context.inside(loop)
        for cond in self.guards:
            context = context.given(cond)
        if not is_inside(self.ref, self.shape, context):
            raise self.refuse(f"{self.ref} is not proven to stay inside {self.buffer} for the whole tile")

    def _sharing_threads(self) -> tuple[str, ...]:
        """The parallel loops of which tiles of two iterations may overlap. The tile is stored back whole, with elements
        that no iteration wrote: on one thread that is harmless, and so it is if each iteration has an array of its
        own."""
        found: list[str] = []
        around = enclosing(self.program, self.found)
        ranges = [e for loop in self.inner if loop not in self.axes for e in (loop.lo, loop.hi)]
        for wide, thread in enumerate(around):
            within = [loop.name for loop in (*around[wide + 1:], *self.inner)]
            if thread.mark != "parallel" or not (self.is_conditional or mentions(tuple(ranges), (thread.name,))):
                continue
            if any(n.name == self.buffer for n in locals_in(thread)):
                continue
            if any(stride_in(i, thread.name) and not mentions(i, within) for i in self.ref.index):
                continue
            found.append(thread.name)
        return tuple(found)

    def check_threads(self, staged: LoopProgram) -> None:
        """Check that no two iterations of a parallel loop store back the same element. `staged`: with the tile."""
        for name in self.shared_by:
            if obstacle_to_parallel(staged, name) is not None:
                raise self.refuse("elements whose conditions fail would be stored back "
                                  f"while other iterations of '{name}' write it")

    def _check_one_to_one(self) -> None:
        reason = obstacle_to_one_to_one(self.ref, self.axes, self.extents, self.context)
        if reason is not None:
            raise self.refuse(reason)

    def refuse(self, reason: str) -> Exception:
        return refusal("E515", self.step, reason)


def _names(axis: Shared) -> tuple[str, ...]:
    return (axis,) if isinstance(axis, str) else axis
