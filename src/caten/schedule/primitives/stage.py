"""stage: keep what a loop uses of a buffer in a local tile."""
from __future__ import annotations

from collections.abc import Callable

from ...core.expr import Const, Expr, Op, Var, index, number
from ...core.monoids import identity, is_monoid
from ...core.naming import Names
from ...core.node import substitute
from ...loop.accesses import conjuncts
from ...loop.affine import canonical
from ...loop.context import Context
from ...loop.statements import SPACES, Aref, For, If, Incf, Let, Local, LoopProgram, Setf, Stmt, is_const
from ..cells import obstacle_to_one_to_one
from ..guards import guards_of, shortened, throughout, without_guards, wrapped
from ..names import renamed
from ..nests import accesses, context_at, enclosing, find, largest, loops_in, mentions, reads_memory, refusal, replaced, stride_in, writes
from ..shapes import MAX_STACK_BYTES, bytes_of, is_inside, shapes
from ..tidy import tidied

Edge = Callable[[list[For]], tuple[Stmt, ...]]        # what is done over the last axes of a tile that goes beyond the edge

HOWS = ("read", "write", "accumulate", "partial", "tree")


def stage(program: LoopProgram, at: str, buffer: str, how: str, space: str, *loops: str) -> LoopProgram:
    """A tile around loop `at` takes the place of `buffer` inside it, with one axis for each of `loops` (loops inside `at`, or itself; those
    that the access uses, where none are named), in this order: naming them is choosing the layout.

    read: the tile is filled before the loop, with zeros where the conditions around the access fail.
        (stage i B read stack p)
        (for i 0 M 1 serial                               (local B_tile f32 (8) stack)
          (for p 0 8 1 serial                             (for p_r 0 8 1 serial (setf (aref B_tile p_r) (aref B p_r)))
            (incf (aref A i) (aref B p))))          ->    (for i 0 M 1 serial (for p 0 8 1 serial (incf (aref A i) (aref B_tile p))))
    write: every element of the tile is set inside the loop, and stored after it.
        (stage j B write stack i j)
        (for j 0 8 1 serial                               (local B_tile f32 (8 8) stack)
          (for i 0 8 1 serial                       ->    (for j 0 8 1 serial (for i 0 8 1 serial (setf (aref B_tile i j) (aref A j i))))
            (setf (aref B i j) (aref A j i))))            (for i_w 0 8 1 serial (for j_w 0 8 1 serial (setf (aref B i_w j_w) …)))
    accumulate: the tile is loaded before the loop and stored after it; the order of operations on an element stays.
        (stage p C accumulate register)
        (for p 0 K 1 serial                               (local C_tile f32 () register)
          (incf (aref C i) (aref A i p)))                 (setf (aref C_tile) (aref C i))
                                                    ->    (for p 0 K 1 serial (incf (aref C_tile) (aref A i p)))
                                                          (setf (aref C i) (aref C_tile))
    partial: the tile sums from nothing, and is added to the buffer after the loop: the parts of `loops` that the access does not use one by
    one, and of a tile that goes beyond the edge only what is inside.
        (stage po s partial register pi)
        (for po 0 K 1 serial                              (local s_part f32 (4) register)
          (for pi 0 4 1 serial                            (for pi_z 0 4 1 serial (setf (aref s_part pi_z) 0.0))
            (incf (aref s) (aref A po pi))))        ->    (for po … (for pi … (incf (aref s_part pi) (aref A po pi))))
                                                          (for pi_w 0 4 1 serial (incf (aref s) (aref s_part pi_w)))
    tree: the same, but the parts are combined with each other first, the lower half with the upper half until one is left. Of several `loops`
    that the access does not use, the parts of the innermost, which are lanes once it is vectorized, are left to be added one by one.
        (stage po s tree register pi)
                                                    ->    (local s_part …) … (for po … (for pi … (incf (aref s_part pi) (aref A po pi))))
                                                          (for pi_h 0 2 1 serial (incf (aref s_part pi_h) (aref s_part (+ pi_h 2))))
                                                          (for pi_h_2 0 1 1 serial (incf (aref s_part pi_h_2) (aref s_part (+ pi_h_2 1))))
                                                          (incf (aref s) (aref s_part 0))
    """
    step = f"stage {at} {buffer}"
    found = find(program, at, step)
    if how not in HOWS:
        raise refusal("E515", step, f"a tile is one of {', '.join(HOWS)}, not '{how}'")
    if space not in SPACES[:3]:
        raise refusal("E515", step, f"a tile lives in {', '.join(SPACES[:3])}, not '{space}'")
    tile = _Tile(program, found, buffer, space, loops, step)
    made = {"read": tile.read, "write": tile.write, "accumulate": tile.accumulate, "partial": tile.partial, "tree": tile.tree}[how]()
    return replaced(program, found, *tidied(made))


class _Tile:
    """What one staging step works with: the access, its loops, its conditions, and the tile's axes."""

    def __init__(self, program: LoopProgram, found: For, buffer: str, space: str, loops: tuple[str, ...], step: str) -> None:
        self.program, self.found, self.buffer, self.step, self.space = program, found, buffer, step, space
        self.ref = self._access()
        self.inner = [found, *loops_in(found.body)]
        known = {loop.name: loop for loop in self.inner}
        for name in loops:
            if name not in known:
                raise self.refuse(f"'{name}' is no loop inside '{found.name}'")
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
        self.guards = tuple([c for c in conds if not mentions(c, unused) and not reads_memory(c)])
        self.is_conditional = len(self.guards) < sum(1 for n in found.walk() if isinstance(n, If))
        self.extents = [self._extent(loop, n) for n, loop in enumerate(self.axes)]
        if space == "stack" and bytes_of(self.ref.dtype, self.extents) > MAX_STACK_BYTES:
            raise self.refuse(f"its {bytes_of(self.ref.dtype, self.extents)} bytes do not fit on the stack ({MAX_STACK_BYTES}); use scratch")

    # the three kinds -------------------------------------------------------------------------------------------------------------
    def read(self) -> tuple[Stmt, ...]:
        if any(w.ref is self.ref for w in writes(self.found)):
            raise self.refuse(f"{self.ref} is written inside '{self.found.name}', use accumulate")
        self.guards = tuple([part for cond in self.guards for part in conjuncts(cond)])       # each is asked for the whole tile
        local, tile = self._local("tile")
        self._check_inside()
        fill = self._either((Setf(tile, self.ref),), self._each((Setf(tile, self._load()),), "_re"), "_r")
        return (local, *fill, *substitute((self.found,), {self.ref: tile}))

    def accumulate(self) -> tuple[Stmt, ...]:
        if not any(w.ref is self.ref for w in writes(self.found)):
            raise self.refuse(f"{self.ref} is only read inside '{self.found.name}', use read")
        self._check_one_to_one()
        self._check_threads()
        self._check_inside()
        local, tile = self._local("tile")
        load = self._either((Setf(tile, self.ref),), self._each((Setf(tile, self._load()),), "_re"), "_r")
        return (local, *load, *self._with(local, tile), *self._stored(tile))

    def write(self) -> tuple[Stmt, ...]:
        stores = [w for w in writes(self.found) if w.ref is self.ref]
        if not stores or not all(isinstance(w, Setf) for w in stores) or sum(1 for n in self.found.walk() if n is self.ref) > len(stores):
            raise self.refuse(f"{self.ref} is not only set inside '{self.found.name}', use accumulate")
        if not self._is_set((self.found,), self.context):
            raise self.refuse(f"{self.ref} is not set in every iteration of the tile's loops, use accumulate")
        self._check_one_to_one()
        self._check_inside()
        local, tile = self._local("tile")
        return (local, *self._with(local, tile), *self._stored(tile))

    def partial(self) -> tuple[Stmt, ...]:
        before, tile, fn = self._parts()
        return (*before, *self._add(tile, fn))

    def tree(self) -> tuple[Stmt, ...]:
        summed = [loop for loop in self.axes if not mentions(self.ref, (loop.name,))]
        if not summed:
            raise self.refuse(f"every loop of the tile moves {self.ref}, so there is nothing to combine; use partial")
        for loop in summed:
            if not is_const(canonical(loop.hi - loop.lo)):
                raise self.refuse(f"the length {canonical(loop.hi - loop.lo)} of '{loop.name}' is not constant, which a tree needs")
        if mentions(self.guards, [loop.name for loop in summed]):
            raise self.refuse(f"its conditions speak of '{summed[-1].name}', so that some parts may not exist; use partial")
        before, tile, fn = self._parts()
        halved = summed[:-1] if len(summed) > 1 and summed[-1] is self.axes[-1] else summed
        levels: list[Stmt] = []
        for loop in halved:
            tile, made = self._halved(loop, tile, fn)
            levels += made
        return (*before, *levels, *self._add(tile, fn))

    # parts of them ---------------------------------------------------------------------------------------------------------------
    def _stored(self, tile: Aref) -> tuple[Stmt, ...]:
        """The buffer takes every cell of the tile that exists in it."""
        return self._either((Setf(self.ref, tile),), self._each(self._guarded(Setf(self.ref, tile)), "_we"), "_w")

    def _is_set(self, stmts: tuple[Stmt, ...], context: Context) -> bool:
        """Is the place set whenever these statements run where the tile's conditions hold?"""
        for stmt in stmts:
            match stmt:
                case Setf(ref=ref) if ref is self.ref:
                    return True
                case For(lo=lo, hi=hi, body=body) if stmt in self.axes or context.proves(Op("lt", (lo, hi))):
                    found = self._is_set(body, context.inside(stmt))
                case If(cond=cond, then=then) if cond in self.guards:
                    found = self._is_set(then, context.given(cond))
                case _:
                    found = False
            if found:
                return True
            context = context.after(stmt)
        return False

    def _parts(self) -> tuple[tuple[Stmt, ...], Aref, str]:
        """The tile of partial results and the loop that fills it; a cell; the operator."""
        stores = [w for w in writes(self.found) if w.ref is self.ref]
        fns = {w.fn for w in stores if isinstance(w, Incf)}
        uses = sum(1 for n in self.found.walk() if n is self.ref)
        if len(fns) != 1 or uses != len(stores) or not all(isinstance(w, Incf) for w in stores):
            raise self.refuse(f"{self.ref} is not only added to, with one operator, inside '{self.found.name}'")
        (fn,) = fns
        if not is_monoid(fn, self.ref.dtype):
            raise self.refuse(f"'{fn}' has no neutral value on {self.ref.dtype}")
        self._check_threads()
        self._check_inside()
        local, tile = self._local("part")
        start = self._nest((Setf(tile, identity(fn, self.ref.dtype)),), "_z")
        return (local, *start, *self._with(local, tile)), tile, fn

    def _halved(self, loop: For, tile: Aref, fn: str) -> tuple[Aref, list[Stmt]]:
        """Cell 0 along an axis after it took the others, the lower half the upper half until one is left; the axis is none of the tile's then."""
        cells, at = self.extents[self.axes.index(loop)], canonical(Var(loop.name, "i64") - loop.lo)
        assert isinstance(cells, Const)
        left = int(cells.value)
        levels: list[Stmt] = []
        where = next(n for n, i in enumerate(tile.index) if i is at)
        while left > 1:
            pairs = left // 2
            left -= pairs
            other = tile.replace(index=tuple([canonical(i + left) if n == where else i for n, i in enumerate(tile.index)]))
            shorter = [axis.replace(hi=canonical(axis.lo + pairs)) if axis is loop else axis for axis in self.axes]
            levels += self._copy(self._over(shorter, (Incf(tile, other, fn),)), "_h")
        self.extents.pop(self.axes.index(loop))
        self.axes.remove(loop)
        return tile.replace(index=tuple([index(0) if n == where else i for n, i in enumerate(tile.index)])), levels

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

    def _add(self, tile: Aref, fn: str) -> tuple[Stmt, ...]:
        """The buffer takes what the tile holds. Where the edge decides how much of it, registers, which have no index that varies, are laid
        out on the stack before."""
        if not mentions(self.guards, [loop.name for loop in self.axes]):
            nest = self._nest((Incf(self.ref, tile, fn),), "_w")
            return (wrapped(nest, self.guards),) if self.guards else nest
        add = (Incf(self.ref, tile, fn),)
        if self.space != "register" or bytes_of(tile.dtype, self.extents) > MAX_STACK_BYTES:
            return self._either(add, lambda axes: self._copy(shortened(axes, self.guards, add), "_we"), "_w")
        out = Local(self.names.fresh(f"{self.buffer}_out"), tile.dtype, tuple(self.extents), "stack")
        place = Aref(out.name, self._cell(), tile.dtype)
        laid = (out, *self._nest((Setf(place, tile),), "_s"))
        rest = (Incf(self.ref, place, fn),)
        if self._choices_around():                                                            # one layout for all of them
            return (*laid, *self._either(rest, lambda axes: self._copy(shortened(axes, self.guards, rest), "_we"), "_w"))
        return self._either(add, lambda axes: (*laid, *self._copy(shortened(axes, self.guards, rest), "_we")), "_w")

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
        return renamed(stmts, {loop.name: self.names.fresh(loop.name + suffix) for loop in loops_in(stmts)})

    def _either(self, full: tuple[Stmt, ...], edge: Edge, suffix: str) -> tuple[Stmt, ...]:
        """`full` for every cell where the whole tile satisfies the conditions, else `edge`. The question is asked inside the axes of variable
        length that the conditions speak of, and outside of the others."""
        if not self.guards:
            return self._nest(full, suffix)
        around = self._choices_around()
        inner = self.axes[around:]
        whole = throughout(self.guards, inner)
        if whole is None:
            return edge(self.axes)
        choice = If(whole, self._copy(self._over(inner, full), suffix), edge(inner))
        outer = {loop.name: self.names.fresh(loop.name + suffix) for loop in self.axes[:around]}
        return renamed(self._over(self.axes[:around], (choice,)), outer)

    def _choices_around(self) -> int:
        """How many axes lie around the question whether the whole tile satisfies the conditions."""
        asked = [n for n, loop in enumerate(self.axes) if not is_const(canonical(loop.hi - loop.lo)) and mentions(self.guards, (loop.name,))]
        return max(asked, default=-1) + 1

    # checks ----------------------------------------------------------------------------------------------------------------------
    def _access(self) -> Aref:
        refs = accesses(self.found, self.buffer)
        if any(isinstance(n, Local) and n.name == self.buffer for n in self.found.unique()):
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
        """Storing back what no iteration wrote is harmless on one thread; on several, the tiles of two threads must not meet."""
        around = enclosing(self.program, self.found)
        wide = next((n for n, loop in enumerate(around) if loop.mark == "parallel"), None)
        if wide is None:
            return
        thread, within = around[wide], [loop.name for loop in (*around[wide + 1:], *self.inner)]
        ranges = [e for loop in self.inner if loop not in self.axes for e in (loop.lo, loop.hi)]
        if not self.is_conditional and not mentions(tuple(ranges), (thread.name,)):
            return
        if not any(stride_in(i, thread.name) and not mentions(i, within) for i in self.ref.index):
            raise self.refuse(f"what is not written under its conditions would be stored back while other iterations of '{thread.name}' write it")

    def _check_one_to_one(self) -> None:
        reason = obstacle_to_one_to_one(self.ref, self.axes, self.extents, self.context)
        if reason is not None:
            raise self.refuse(reason)

    def refuse(self, reason: str) -> Exception:
        return refusal("E515", self.step, reason)
