"""stage: copy the part of a buffer that a loop uses into a local tile (packing, register tiling)."""
from __future__ import annotations

from ...core.expr import TRUE, Const, Expr, Op, Var, index
from ...core.monoids import identity, is_monoid
from ...core.node import substitute
from ...loop.accesses import conjuncts
from ...loop.affine import canonical
from ...loop.context import Context
from ...loop.gpu_verifier import BOUND, has_barrier, thread_conflict
from ...loop.statements import SPACES, Aref, For, If, Incf, Local, LoopProgram, Setf, Stmt, is_const
from ..analysis.access_bounds import MAX_STACK_BYTES, bytes_of
from ..analysis.accumulator_end import ending
from ..analysis.accumulator_init import Begun, beginning
from ..analysis.guards import shortened, wrapped
from ..analysis.loop_queries import context_at, enclosing, find, mentions, refusal, replaced, writes
from ..loop_names import copied
from ..normalize import tidied
from ..staging import Edge, Shared, Tile
from ..step_results import Staged
from .stage_shared import stage_shared

HOWS = ("read", "write", "accumulate", "partial", "begin", "finish", "tree")


def stage(program: LoopProgram, at: str, buffer: str, how: str, space: str,
          *loops: Shared) -> tuple[LoopProgram, Staged]:
    """Replace BUFFER inside the first LOOP by a local tile that holds the part of BUFFER which the loop uses. This one
    step is packing (`read` into `scratch`), register tiling (`accumulate` or `partial` in `register`) and privatisation
    of sums (`partial`, `tree`).

    The LOOPs at the end are the axes of the tile, from the slowest to the fastest; they are inside the first LOOP, or
    the first LOOP itself. Their order is the memory layout of the tile. Without them, the tile has an axis for every
    such loop that the access uses. The memory is `register` (constant size, all indices constant after unrolling),
    `stack` (constant size), `scratch` (any size) or `shared` (a group of device threads). The word before it says how
    the tile and BUFFER exchange values.

    **read**: packing. Copy BUFFER into the tile before the loop, and read the tile inside it. Elements for which the
    conditions around the access fail become zeros. Use it so that a tile which is read often lies without gaps.
        (stage i B read stack p)
        (for i 0 M 1 serial                               (local B_tile f32 (8) stack)
          (for p 0 8 1 serial                             (for p_r 0 8 1 serial (setf (aref B_tile p_r) (aref B p_r)))
            (incf (aref A i) (aref B p))))          ->    (for i 0 M 1 serial
                                                            (for p 0 8 1 serial (incf (aref A i) (aref B_tile p))))
    Loops in parentheses share an axis of a tile that is read: of the elements at i + k (or 2 · i + k) there is each
    once, not once for each k. Use it for the pixels under the windows of a convolution, which overlap (their halo).
        (stage k u read stack (i k))
        (for k 0 3 1 serial                               (local u_tile f32 (6) stack)
          (for i 0 4 1 serial                             (for i_r 0 6 1 serial (setf (aref u_tile i_r) (aref u i_r)))
            (incf (aref v i) (aref u (+ i k)))))    ->    (for k 0 3 1 serial
                                                            (for i 0 4 1 serial
                                                              (incf (aref v i) (aref u_tile (+ i k)))))
    **read … shared**: the threads of a group fill the tile together, a part each, and then meet at a barrier. Block
    loops may be axes.
        (stage p B read shared i p)
        (for g 0 G 1 grid                                 (for g 0 G 1 grid
          (for i 0 4 1 block                                (local B_tile f32 (4 8) shared)
            (for p 0 8 1 serial                             (for i 0 4 1 block
              (incf (aref A g i) (aref B i p)))))     ->      (for p_f 0 8 1 serial
                                                                (let c i64 (+ (* 4 p_f) i))
                                                                (setf (aref B_tile (floordiv c 8) (mod c 8))
                                                                      (aref B (floordiv c 8) (mod c 8))))
                                                              (barrier)
                                                              (for p 0 8 1 serial
                                                                (incf (aref A g i) (aref B_tile i p)))))
    **write**: set the tile inside the loop, and copy it to BUFFER after the loop. Use it where the stores would be
    strided. The loop must set every element of the tile, and read none of BUFFER.
        (stage j B write stack i j)
        (for j 0 8 1 serial                               (local B_tile f32 (8 8) stack)
          (for i 0 8 1 serial                       ->    (for j 0 8 1 serial
            (setf (aref B i j) (aref A j i))))              (for i 0 8 1 serial (setf (aref B_tile i j) (aref A j i))))
                                                          (for i_w 0 8 1 serial
                                                            (for j_w 0 8 1 serial
                                                              (setf (aref B i_w j_w) (aref B_tile i_w j_w))))
    **accumulate**: load the tile before the loop, work on it, and store it after the loop. Use it for a register tile
    where each element must see its operations in the order of the program.
        (stage p C accumulate register)
        (for p 0 K 1 serial                               (local C_tile f32 () register)
          (incf (aref C i) (aref A i p)))                 (setf (aref C_tile) (aref C i))
                                                    ->    (for p 0 K 1 serial (incf (aref C_tile) (aref A i p)))
                                                          (setf (aref C i) (aref C_tile))
    **partial**: start the tile at the identity element (0 for a sum), accumulate into it, and add the tile to BUFFER
    after the loop. Use it for the register tile of a gemm, and for several independent accumulators of one sum. An axis
    that the access does not use (`pi` below) gives one accumulator for each of its iterations; they are added one by
    one. Only elements inside BUFFER are added.
        (stage po s partial register pi)
        (for po 0 K 1 serial                              (local s_part f32 (4) register)
          (for pi 0 4 1 serial                            (for pi_z 0 4 1 serial (setf (aref s_part pi_z) 0.0))
            (incf (aref s) (aref A po pi))))        ->    (for po … (for pi … (incf (aref s_part pi) (aref A po pi))))
                                                          (for pi_w 0 4 1 serial (incf (aref s) (aref s_part pi_w)))
    **begin**: like `partial`, but the first tile of each element is stored instead of added (as a BLAS treats beta =
    0), so BUFFER need not be filled with the identity element before. If it is filled with other values, such as a
    bias, the first tile is added to these. Use it where an output is filled and then summed up: it saves one pass over
    BUFFER. The loop that filled BUFFER disappears; it remains only for calls in which the sum has no terms (`N <= 0`
    below). Conditions that skip some terms stay around the sum.
        (stage i w begin register i)
        (for i 0 M 1 serial (setf (aref w i) 0.0))        (if (<= N 0) ((for i 0 M 1 serial (setf (aref w i) 0.0))))
        (for jo 0 N 1 serial                              (for jo 0 N 1 serial
          (for i 0 M 1 serial                      ->       … (if (= jo 0) ((setf (aref w i_w) (aref w_part i_w)))
            (incf (aref w i) (aref A i jo))))                          ((incf (aref w i_w) (aref w_part i_w)))))
    **finish**: like `begin`, and the nest behind that maps each element (a bias, an activation: the *epilogue*) is
    applied to the last tile of each element, before that is stored. It may read other arrays, and store to them at the
    index of the element. Use it to save a second pass over BUFFER. The nest remains only for calls in which the sum has
    no terms.
        (stage i w finish register i)
        (for i 0 M 1 serial (setf (aref w i) 0.0))        (if (<= N 0) ((for i 0 M 1 serial (setf (aref w i) 0.0))))
        (for jo 0 N 1 serial                              (for jo 0 N 1 serial
          (for i 0 M 1 serial                               … (if (= jo (- N 1))
            (incf (aref w i) (aref A i jo))))                   ((if (not (= jo 0))
        (for l 0 M 1 serial                       ->                (… (incf (aref w_part i_a) (aref w i_a))))
          (setf (aref w l)                                       … (setf (aref w i_f) (max (aref w_part i_f) 0.0)))
            (max (aref w l) 0.0)))                              (… as `begin` stores the tiles before))
                                                          (if (<= N 0) ((for l 0 M 1 serial …)))
    **tree**: like `partial`, but the accumulators are combined pairwise: the lower half with the upper half, until one
    remains. Use it for sums over one long axis. If the access does not use several LOOPs, the innermost of them, which
    will be vector lanes, is not combined.
        (stage po s tree register pi)
                                      ->    (local s_part …) …
                                            (for po … (for pi … (incf (aref s_part pi) (aref A po pi))))
                                            (for pi_h 0 2 1 serial (incf (aref s_part pi_h) (aref s_part (+ pi_h 2))))
                                            (for pi_h_2 0 1 1 serial
                                              (incf (aref s_part pi_h_2) (aref s_part (+ pi_h_2 1))))
                                            (incf (aref s) (aref s_part 0))

    If the loop reads BUFFER in several ways, `read` is about the one that uses the LOOPs that are named, and no other
    loop inside: one operand of a product of an array with its own transpose.

    Refused, among others: the loop uses BUFFER in more than one way otherwise; for `read`, the loop writes BUFFER (use
    accumulate); for `accumulate`, the loop only reads it (use read); for `write`, not every element is set (use
    accumulate); for `partial`, `begin`, `finish` and `tree`, the updates are not all one associative operator with an
    identity element; for `begin`, no nest before sets each element of BUFFER (use partial); for `finish`, no nest
    behind maps each element of it (use begin); for `tree`, an extent is not constant; a register or stack tile has no
    constant size; BUFFER is also used outside of one of the LOOPs at the end, in another branch; loops that share an
    axis do not count from 0 by 1, or BUFFER does not move with their sum alone.
    """
    step = f"stage {at} {buffer}"
    found = find(program, at, step)
    if how not in HOWS:
        raise refusal("E515", step, f"a tile is one of {', '.join(HOWS)}, not '{how}'")
    if space == "shared":
        if how != "read":
            raise refusal("E515", step,
                          "threads fill a shared tile together with what they read; what they write is theirs")
        if several := next((axis for axis in loops if not isinstance(axis, str)), None):
            raise refusal("E515", step, f"{' and '.join(several)} share an axis, and a shared tile has none of these")
        return stage_shared(program, at, buffer, tuple([str(axis) for axis in loops]))
    if found.mark in BOUND:
        raise refusal("E515", step,
                      f"'{at}' is bound to the {found.mark}, and a tile around it would belong to no thread",
                      "stage inside it, or before bind")
    for outer in enclosing(program, found) if has_barrier(found) else ():
        conflict = thread_conflict(outer, context_at(program, outer), buffer) if outer.mark == "block" else None
        if conflict is not None:
            raise refusal("E515", step, f"threads wait for each other inside '{at}' because of it: {conflict}")
    if space not in SPACES[:3]:
        raise refusal("E515", step, f"a tile lives in {', '.join(SPACES[:3])}, not '{space}'")
    tile = _Staged(program, found, buffer, space, loops, step, how == "read")
    stmts: tuple[Stmt, ...] = tidied(getattr(tile, how)())
    assert isinstance(stmts[0], Local)                               # each kind declares its tile first
    staged = replaced(tile.program, found, *stmts)
    tile.check_threads(staged)
    return staged, tile.made(stmts, stmts[0].name)


class _Staged(Tile):
    """The kinds of tiles."""

    def read(self) -> tuple[Stmt, ...]:
        if any(w.ref is self.ref for w in writes(self.found)):
            raise self.refuse(f"{self.ref} is written inside '{self.found.name}', use accumulate")
        local, tile = self._local("tile")
        self._check_inside()
        read = tile.replace(index=self._place())
        return (local, *self._filled(tile), *substitute((self.found,), {self.access: read}))

    def accumulate(self) -> tuple[Stmt, ...]:
        if not any(w.ref is self.ref for w in writes(self.found)):
            raise self.refuse(f"{self.ref} is only read inside '{self.found.name}', use read")
        self._check_one_to_one()
        self.shared_by = self._sharing_threads()
        self._check_inside()
        local, tile = self._local("tile")
        return (local, *self._filled(tile), *self._with(local, tile), *self._stored(tile))

    def _filled(self, tile: Aref) -> tuple[Stmt, ...]:
        """Loops that load the tile."""
        whole, edge = Setf(tile, self.ref), Setf(tile, self._load())
        return self._either(self._each((whole,), "_r"), self._each((edge,), "_re"), "_r")

    def write(self) -> tuple[Stmt, ...]:
        stores = [w for w in writes(self.found) if w.ref is self.ref]
        uses = sum(1 for n in self.found.walk() if n is self.ref)
        if not stores or not all(isinstance(w, Setf) for w in stores) or uses > len(stores):
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

    def begin(self) -> tuple[Stmt, ...]:
        self._begin()
        before, tile, fn = self._parts()
        return (*before, *self._add(tile, fn))

    def finish(self) -> tuple[Stmt, ...]:
        begun = self._begin()
        try:
            self.program, self.last, self.epilogue = ending(
                self.program, self.found, self.ref, self.shape, begun, self._context_of_elements(begun))
        except ValueError as problem:
            raise self.refuse(f"{problem}; use begin") from None
        before, tile, fn = self._parts()
        return (*before, *self._add(tile, fn))

    def _begin(self) -> Begun:
        """Remove the nest that fills the array; the first tile sets each element."""
        try:
            self.program, begun = beginning(
                self.program, self.found, self.ref, self.axes, self._operator(), self.shape)
        except ValueError as problem:
            raise self.refuse(f"{problem}; use partial") from None
        self.first, self.start = begun.first, begun.start
        self.guards = tuple([cond for cond in self.guards if not self._leaves_out(cond, begun)])
        return begun

    def _leaves_out(self, cond: Expr, begun: Begun) -> bool:
        """May a condition fail for an element that was set? Then it stays around the sum, and the tile keeps the
        identity element there."""
        return not self._context_of_elements(begun).proves(cond)

    def _context_of_elements(self, begun: Begun) -> Context:
        """What holds for an element that was set, inside the axes of the tile."""
        context = self.context
        for loop in self.axes:
            context = context.inside(loop)
        for i, extent in begun.region.within(self.ref.index):
            context = context.given(Op("lt", (i, extent))) if extent is not None else context
        return context

    def tree(self) -> tuple[Stmt, ...]:
        summed = [loop for loop in self.axes if not mentions(self.ref, (loop.name,))]
        if not summed:
            raise self.refuse(f"every loop of the tile moves {self.ref}, so there is nothing to combine; use partial")
        for loop in summed:
            if not is_const(canonical(loop.hi - loop.lo)):
                raise self.refuse(
                    f"the length {canonical(loop.hi - loop.lo)} of '{loop.name}' is not constant, which a tree needs")
        if mentions(self.guards, [loop.name for loop in summed]):
            raise self.refuse(
                f"its conditions depend on '{summed[-1].name}', so that some parts may not exist; use partial")
        before, tile, fn = self._parts()
        halved = summed[:-1] if len(summed) > 1 and summed[-1] is self.axes[-1] else summed
        levels: list[Stmt] = []
        for loop in halved:
            tile, made = self._halved(loop, tile, fn)
            levels += made
        return (*before, *levels, *self._add(tile, fn))

    def _stored(self, tile: Aref) -> tuple[Stmt, ...]:
        """Store the elements of the tile that lie inside the buffer."""
        return self._either(self._each((Setf(self.ref, tile),), "_w"),
                            self._each(self._guarded(Setf(self.ref, tile)), "_we"), "_w")

    def _is_set(self, stmts: tuple[Stmt, ...], context: Context) -> bool:
        """Do these statements set the element whenever they run and the conditions of the tile hold?"""
        for stmt in stmts:
            match stmt:
                case Setf(ref=ref) if ref is self.ref:
                    return True
                case For(body=body) if stmt in self.axes or (
                        (runs := stmt.has_iterations) is not None and context.proves(runs)):
                    found = self._is_set(body, context.inside(stmt))
                case If(cond=cond, then=then) if set(conjuncts(cond)) <= set(self.guards):
                    found = self._is_set(then, context.given(cond))
                case _:
                    found = False
            if found:
                return True
            context = context.after(stmt)
        return False

    def _operator(self) -> str:
        """The operator of the accumulation into the buffer."""
        stores = [w for w in writes(self.found) if w.ref is self.ref]
        fns = {w.fn for w in stores if isinstance(w, Incf)}
        uses = sum(1 for n in self.found.walk() if n is self.ref)
        if len(fns) != 1 or uses != len(stores) or not all(isinstance(w, Incf) for w in stores):
            raise self.refuse(f"{self.ref} is not only added to, with one operator, inside '{self.found.name}'")
        (fn,) = fns
        if not is_monoid(fn, self.ref.dtype):
            raise self.refuse(f"'{fn}' has no identity element on {self.ref.dtype}")
        return fn

    def _parts(self) -> tuple[tuple[Stmt, ...], Aref, str]:
        """The statements that compute the partial results in the tile; an element of the tile; the operator."""
        fn = self._operator()
        self.shared_by = self._sharing_threads()
        self._check_inside()
        local, tile = self._local("part")
        start = self._nest((Setf(tile, identity(fn, self.ref.dtype)),), "_z")
        return (local, *start, *self._with(local, tile)), tile, fn

    def _halved(self, loop: For, tile: Aref, fn: str) -> tuple[Aref, list[Stmt]]:
        """Reduce one axis of the tile pairwise: add the upper half to the lower half until element 0 has the sum.
        Removes the axis. Returns an element of the reduced tile, and the statements."""
        cells, at = self.extents[self.axes.index(loop)], canonical(Var(loop.name, "i64") - loop.lo)
        assert isinstance(cells, Const)
        left = int(cells.value)
        levels: list[Stmt] = []
        where = next(n for n, i in enumerate(tile.index) if i is at)
        while left > 1:
            pairs = left // 2
            left -= pairs
            other = tile.replace(index=tuple([canonical(i + left) if n == where else i
                                              for n, i in enumerate(tile.index)]))
            shorter = [axis.replace(hi=canonical(axis.lo + pairs)) if axis is loop else axis for axis in self.axes]
            levels += self._copy(self._over(shorter, (Incf(tile, other, fn),)), "_h")
        self.extents.pop(self.axes.index(loop))
        self.axes.remove(loop)
        return tile.replace(index=tuple([index(0) if n == where else i for n, i in enumerate(tile.index)])), levels

    def _add(self, tile: Aref, fn: str) -> tuple[Stmt, ...]:
        """Add the tile to the buffer. For a tile that crosses the edge of the array, registers are first copied to the
        stack: registers have no variable index."""
        add = self._given(tile, fn, "_w")
        if not mentions(self.guards, [loop.name for loop in self.axes]):
            nest = add(self.axes)
            return (wrapped(nest, self.guards),) if self.guards else nest
        if self.space != "register" or bytes_of(tile.dtype, self.extents) > MAX_STACK_BYTES:
            return self._either(add, self._given(tile, fn, "_we"), "_w")
        out = Local(self.names.fresh(f"{self.buffer}_out"), tile.dtype, tuple(self.extents), "stack")
        place, self.laid = Aref(out.name, self._cell(), tile.dtype), out.name
        laid, rest = (out, *self._nest((Setf(place, tile),), "_s")), self._given(place, fn, "_we")
        if self._choices_around():                               # one layout for all of them
            return (*laid, *self._either(self._given(place, fn, "_w"), rest, "_w"))
        return self._either(add, lambda axes: (*laid, *rest(axes)), "_w")

    def _given(self, value: Aref, fn: str, suffix: str) -> Edge:
        """Store the elements of the tile, or (suffix `_we`) those in bounds, to the buffer: each is added, or set by
        the first tile. `value`: an element of the tile."""
        edge = suffix == "_we"

        def nest(axes: list[For], *stmts: Stmt, does: str = "_w") -> tuple[Stmt, ...]:
            loops = shortened(axes, self.guards, stmts) if edge else self._over(axes, stmts)
            return self._copy(loops, does + "e" * edge)

        def made(axes: list[For]) -> tuple[Stmt, ...]:
            if self.last is None:
                return stored(axes)
            before = nest(axes, Incf(value, self.start, fn), does="_b") if self.start is not None else ()
            if self.first is not TRUE:
                assert self.first is not None                               # `finish` begins, too
                added = nest(axes, Incf(value, self.ref, fn), does="_a")
                before = (If(self.first, before, added) if before else If(Op("not", (self.first,)), added),)
            end = (*before, *nest(axes, *self._finished(value), does="_f"))
            return end if self.last is TRUE else (If(self.last, end, stored(axes)),)

        def stored(axes: list[For]) -> tuple[Stmt, ...]:
            if self.first is None:
                return nest(axes, Incf(self.ref, value, fn))
            setting = Setf(self.ref, value if self.start is None else Op(fn, (self.start, value)))
            if self.first is TRUE:
                return nest(axes, setting)
            added = nest(axes, Incf(self.ref, value, fn))
            return (If(self.first, nest(axes, setting), added),)
        return made

    def _finished(self, value: Aref) -> tuple[Stmt, ...]:
        """The epilogue of an element, whose sum is `value`."""
        stmts = tuple([Setf(self.ref, substitute(s.value, {self.ref: value})) if isinstance(s, Setf) and
                       s.ref is self.ref else substitute(s, {self.ref: value}) for s in self.epilogue])
        return copied(stmts, "_f", self.names)[0]
