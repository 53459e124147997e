"""What one step of staging works with: an access, its loops and conditions, and a tile around a loop that takes its
place."""
from __future__ import annotations

from collections.abc import Callable

from ..core.expr import Expr, Op, Var, index, number
from ..core.node import substitute
from ..core.unique_names import Names
from ..loop.accesses import conjuncts
from ..loop.affine import canonical
from ..loop.statements import Aref, For, If, Let, Local, LoopProgram, Stmt, is_const
from .analysis.access_bounds import MAX_STACK_BYTES, bytes_of, is_inside, shapes
from .analysis.guards import guards_of, throughout, without_guards, wrapped
from .analysis.injectivity import obstacle_to_one_to_one
from .analysis.loop_queries import accesses, context_at, enclosing, largest, locals_in, loops_in, mentions, reads_memory, refusal, stride_in
from .loop_names import renamed
from .step_results import Nest, Staged

Edge = Callable[[list[For]], tuple[Stmt, ...]]        # what is done over the last axes of a tile, one that goes beyond the edge or a whole one

# What the loops over the cells of a tile do, by the ending of their names, and whether that is for tiles beyond the edge.
DOES = {"_r": ("fill", False), "_re": ("fill", True), "_z": ("begin", False), "_h": ("halve", False), "_s": ("lay", False),
        "_w": ("store", False), "_we": ("store", True)}


class Tile:
    """The access, its loops, its conditions, and the tile's axes."""

    def __init__(self, program: LoopProgram, found: For, buffer: str, space: str, loops: tuple[str, ...], step: str) -> None:
        self.program, self.found, self.buffer, self.step, self.space = program, found, buffer, step, space
        self.nests: list[Nest] = []                              # over the cells, as they were made
        self.laid = ""                                           # the array in which the tile is laid out
        self.first: Expr | None = None                           # where a tile sets what others add to
        self.ref = self._access()
        self.inner = [found, *loops_in(found.body)]
        known = {loop.name: loop for loop in self.inner}
        for name in loops:
            if name not in known:
                raise self.refuse(f"'{name}' is no loop inside '{found.name}'")
        if (twice := next((n for n in loops if loops.count(n) > 1), None)) is not None:
            raise self.refuse(f"'{twice}' is named twice; it is one axis of the tile")
        self.axes = [known[n] for n in loops] if loops else [loop for loop in self.inner if mentions(self.ref, (loop.name,))]
        self.names, self.context = Names.of(program), context_at(program, found)
        self.shape = shapes(program)[buffer]
        lets = [n.name for n in found.unique() if isinstance(n, Let)]
        unused = [*[loop.name for loop in self.inner if loop not in self.axes], *lets]
        for name in unused:
            if mentions(self.ref, (name,)):
                raise self.refuse(f"{self.ref} moves with '{name}', which is no axis of the tile")
        if any(reads_memory(i) for i in self.ref.index):
            raise self.refuse(f"the index of {self.ref} reads memory")
        conds = guards_of((found,), self.ref)
        whole = [c for c in conds if not mentions(c, unused) and not reads_memory(c)]
        self.guards = tuple([part for cond in whole for part in conjuncts(cond)])              # each is asked for the whole tile
        self.is_conditional = len(whole) < sum(1 for n in found.walk() if isinstance(n, If))
        self.extents = [self._extent(loop, n) for n, loop in enumerate(self.axes)]
        if space == "stack" and bytes_of(self.ref.dtype, self.extents) > MAX_STACK_BYTES:
            raise self.refuse(f"its {bytes_of(self.ref.dtype, self.extents)} bytes do not fit on the stack ({MAX_STACK_BYTES}); use scratch")

    def _local(self, suffix: str) -> tuple[Local, Aref]:
        local = Local(self.names.fresh(f"{self.buffer}_{suffix}"), self.ref.dtype, tuple(self.extents), self.space)
        return local, Aref(local.name, self._cell(), self.ref.dtype)

    def _cell(self) -> tuple[Expr, ...]:
        """The place of an iteration in the tile."""
        return tuple([canonical(Var(loop.name, "i64") - loop.lo) for loop in self.axes])

    def _with(self, local: Local, tile: Aref) -> tuple[Stmt, ...]:
        """The loop with the tile in the place of the buffer."""
        loops: tuple[Stmt, ...] = substitute((self.found,), {self.ref: tile})
        if not self.guards:
            return loops
        known = shapes(self.program) | {local.name: local.shape}
        return without_guards(loops, set(self.guards), local.name, known, context_at(self.program, self.found))

    def _load(self) -> Expr:
        """The element, or zero where a condition fails."""
        value: Expr = self.ref
        for cond in reversed(self.guards):
            value = Op("where", (cond, value, number(0, self.ref.dtype)))
        return value

    def _guarded(self, stmt: Stmt) -> tuple[Stmt, ...]:
        return (wrapped((stmt,), self.guards),) if self.guards else (stmt,)

    def _each(self, body: tuple[Stmt, ...], suffix: str) -> Edge:
        """`body` for every cell."""
        return lambda axes: self._copy(self._over(axes, body), suffix)

    def _nest(self, body: tuple[Stmt, ...], suffix: str) -> tuple[Stmt, ...]:
        """`body` in loops over the axes of the tile, with names of their own."""
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
        """What became of all this in the statements: what never runs has been left out."""
        at = {loop.name: n for n, loop in enumerate(loops_in(stmts))}
        nests = [nest for nest in self.nests if all(name in at for name in nest.loops.values())]
        nests.sort(key=lambda nest: [at[name] for name in nest.loops.values()])
        laid = self.laid if any(local.name == self.laid for local in locals_in(stmts)) else ""
        return Staged(tile, laid, tuple(nests))

    def _either(self, full: Edge, edge: Edge, suffix: str) -> tuple[Stmt, ...]:
        """`full` where the whole tile satisfies the conditions, else `edge`. The question is asked inside the axes of
        variable length that the conditions speak of, and outside of the others."""
        if not self.guards:
            return full(self.axes)
        around = self._choices_around()
        inner = self.axes[around:]
        whole = throughout(self.guards, inner)
        if whole is None:
            return edge(self.axes)
        inside = len(self.nests)
        choice = If(whole, full(inner), edge(inner))
        outer = {loop.name: self.names.fresh(loop.name + suffix) for loop in self.axes[:around]}
        self.nests[inside:] = [Nest(nest.does, nest.is_edge, outer | dict(nest.loops)) for nest in self.nests[inside:]]
        return renamed(self._over(self.axes[:around], (choice,)), outer)

    def _choices_around(self) -> int:
        """How many axes lie around the question whether the whole tile satisfies the conditions."""
        asked = [n for n, loop in enumerate(self.axes) if not is_const(canonical(loop.hi - loop.lo)) and mentions(self.guards, (loop.name,))]
        return max(asked, default=-1) + 1

    def _access(self) -> Aref:
        refs = accesses(self.found, self.buffer)
        if any(n.name == self.buffer for n in locals_in(self.found)):
            raise self.refuse(f"it is declared inside '{self.found.name}'")
        if not refs:
            raise self.refuse(f"'{self.found.name}' does not use it")
        if len(refs) > 1:
            raise self.refuse(f"it is used in more than one way: {', '.join([str(r) for r in refs[:3]])}")
        (ref,) = refs
        if not isinstance(ref, Aref):
            raise self.refuse(f"{ref} is a vector already; stage before vectorize")
        return ref

    def _extent(self, loop: For, position: int) -> Expr:
        """The length of the tile along one loop."""
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
            raise self.refuse(f"the length {extent} of '{loop.name}' has no constant bound, which a tile in {self.space} needs")
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

    def _check_threads(self) -> None:
        """Storing back what no iteration wrote is harmless on one thread; on several, the tiles of two threads must not
        meet."""
        around = enclosing(self.program, self.found)
        ranges = [e for loop in self.inner if loop not in self.axes for e in (loop.lo, loop.hi)]
        for wide, thread in enumerate(around):
            within = [loop.name for loop in (*around[wide + 1:], *self.inner)]
            if thread.mark != "parallel" or not (self.is_conditional or mentions(tuple(ranges), (thread.name,))):
                continue
            if any(stride_in(i, thread.name) and not mentions(i, within) for i in self.ref.index):
                continue
            raise self.refuse(f"what is not written under its conditions would be stored back while other iterations of '{thread.name}' write it")

    def _check_one_to_one(self) -> None:
        reason = obstacle_to_one_to_one(self.ref, self.axes, self.extents, self.context)
        if reason is not None:
            raise self.refuse(reason)

    def refuse(self, reason: str) -> Exception:
        return refusal("E515", self.step, reason)
