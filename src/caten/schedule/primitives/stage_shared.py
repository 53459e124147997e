"""stage … shared: a tile that the threads of a group fill together."""
from __future__ import annotations

from functools import partial

from ...core.expr import Const, Expr, Op, Var, index, number
from ...core.node import substitute
from ...core.program import Target
from ...core.unique_names import Names
from ...loop.accesses import conjuncts
from ...loop.affine import canonical
from ...loop.context import Context
from ...loop.gpu_verifier import block_of, data_race, group_of
from ...loop.statements import ONE, ZERO, Aref, Barrier, For, If, Let, Local, LoopProgram, Setf, Stmt, is_const
from ..analysis.access_bounds import bytes_of, is_inside, shapes
from ..analysis.classify import contiguous_loop
from ..analysis.guards import guards_of
from ..analysis.loop_queries import (
    Refusing,
    accesses,
    context_at,
    enclosing,
    find,
    largest,
    loops_in,
    mentions,
    reads_memory,
    refusal,
    replaced,
    trail,
    writes,
)
from ..normalize import tidied
from ..step_results import Nest, Staged


def stage_shared(program: LoopProgram, at: str, buffer: str, loops: tuple[str, ...]) -> tuple[LoopProgram, Staged]:
    """Stage a tile in shared memory. It has one axis for each of `loops`, which are block loops or loops inside `at`.
    Neighbouring threads load neighbouring elements of the array."""
    step = f"stage {at} {buffer}"
    refuse = partial(refusal, "E515", step)
    found = find(program, at, step)
    fill = _Fill(program, found, buffer, loops, refuse)
    made = fill.placed()
    loop = next(n for n in loops_in(made) if n.name == fill.block[0].name)
    reason = data_race(loop, context_at(made, loop))
    if reason is not None:
        raise refuse(reason)
    return made, fill.made


class _Fill:
    """The access, the axes of the tile, which may be block loops, and the conditions."""

    def __init__(self, program: LoopProgram, found: For, buffer: str, loops: tuple[str, ...], refuse: Refusing) -> None:
        self.program, self.found, self.refuse = program, found, refuse
        self.kernel = next(k for k in program.kernels if found in loops_in(k))
        self.block = block_of(self.kernel)
        if not self.block or found in self.block or found not in loops_in(self.block[-1]):
            raise refuse(f"'{found.name}' is not inside the threads of a group", "bind loops to a block before")
        refs = accesses(found, buffer)
        if len(refs) != 1 or not isinstance(refs[0], Aref) or any(w.ref is refs[0] for w in writes(found)):
            raise refuse(f"'{found.name}' does not read {buffer} in exactly one way, or writes it")
        self.ref = refs[0]
        known = {loop.name: loop for loop in (*self.block, found, *loops_in(found.body))}
        if missing := [n for n in loops if n not in known]:
            raise refuse(f"'{missing[0]}' is neither a block loop nor a loop inside '{found.name}'")
        self.axes = [known[n] for n in loops or [name for name in known if mentions(self.ref, (name,))]]
        self.other = [*[n for n, loop in known.items() if loop not in self.axes],
                      *[n.name for n in found.unique() if isinstance(n, Let)]]
        if mentions(self.ref, self.other) or any(reads_memory(i) for i in self.ref.index):
            raise refuse(f"{self.ref} moves with what is no axis of the tile, or with what is read from memory")
        self.extents = [self._extent(loop) for loop in self.axes]
        self.guards = [part for cond in guards_of((found,), self.ref) for part in conjuncts(cond)
                       if not mentions(part, self.other) and not reads_memory(part)]
        self.names = Names.of(program)
        target = program.first(Target)
        shared = sum([bytes_of(n.type, n.shape) for n in group_of(self.kernel) if isinstance(n, Local)])
        shared += bytes_of(self.ref.dtype, map(index, self.extents))
        if target is not None and target.machine.groups and shared > target.machine.shared_bytes:
            raise refuse(f"a group would share {shared} bytes, and {target.machine.shared_bytes} are the most")

    def _extent(self, loop: For) -> int:
        most = largest(canonical(loop.hi - loop.lo))
        if most is None or not is_const(loop.step, 1) or not is_const(loop.lo, 0):
            raise self.refuse(
                f"'{loop.name}' has no constant bound on its length, or does not count from 0 in steps of 1")
        return most

    def placed(self) -> LoopProgram:
        """The program with the tile. A barrier follows the filling; another one precedes it if the tile is filled
        repeatedly."""
        local = Local(self.names.fresh(f"{self.ref.buffer}_tile"), self.ref.dtype, tuple(map(index, self.extents)),
                      "shared")
        tile = Aref(local.name, tuple([Var(loop.name, "i64") for loop in self.axes]), local.type)
        (using,) = substitute((self.found,), {self.ref: tile})
        before, _ = trail(self.program, self.found)[-1]
        fill = tidied(self.fill(local))
        if before and isinstance(before[-1], Barrier):           # another tile is filled here: they share its barrier
            program = self._instead(before[-1:], (*fill, *before[-1:]), using)
        else:
            again = any(loop not in self.block and loop.mark not in ("grid", "block")
                        for loop in enclosing(self.program, self.found))
            program = replaced(self.program, self.found, *([Barrier()] if again else []), *fill, Barrier(), using)
        block = next(n for n in loops_in(program) if n.name == self.block[0].name)
        return replaced(program, block, local, block)

    def _instead(self, old: tuple[Stmt, ...], new: tuple[Stmt, ...], using: Stmt) -> LoopProgram:
        """Replace the statements `old` just before the loop by `new`, and the loop by `using`."""
        (before, _), above = trail(self.program, self.found)[-1], trail(self.program, self.found)[-2][1]
        assert isinstance(above, For)
        kept = before[:len(before) - len(old)]
        rest = above.body[len(before) + 1:]
        return replaced(self.program, above, above.replace(body=(*kept, *new, using, *rest)))

    def fill(self, local: Local) -> tuple[Stmt, ...]:
        """Fill the tile: thread t loads the elements t, t + threads, …"""
        threads, cells = 1, 1
        number_of: Expr = ZERO
        for loop in self.block:
            assert isinstance(loop.hi, Const)
            number_of = number_of * loop.hi.value + Var(loop.name, "i64")
            threads *= loop.hi.value
        for extent in self.extents:
            cells *= extent
        axis = self.axes[-1].name
        rounds = Var(self.names.fresh(f"{axis}_f"), "i64")
        cell = Var(self.names.fresh(f"{local.name}_cell"), "i64")
        # one loop over the elements of all axes
        self.made = Staged(local.name, "", (Nest("fill", False, {axis: rounds.name}),))
        places = self.places(cell)
        at = {Var(loop.name, "i64"): place for loop, place in zip(self.axes, places, strict=True)}
        conds = [*[substitute(g, at) for g in self.guards],
                 *[place < substitute(loop.hi, at)
                   for loop, place in zip(self.axes, places, strict=True) if not isinstance(loop.hi, Const)]]
        value: Expr = substitute(self.ref, at)
        self.check_inside(value, conds, cell, cells)
        for cond in reversed(conds):
            value = Op("where", (cond, value, number(0, local.type)))
        store: Stmt = Setf(Aref(local.name, places, local.type), value)
        if cells % threads:
            store = If(cell < index(cells), (store,))
        body = (Let(cell.name, "i64", rounds * threads + number_of), store)
        return (For(rounds.name, ZERO, index(-(-cells // threads)), ONE, "serial", body),)

    def places(self, cell: Expr) -> tuple[Expr, ...]:
        """The index of an element of the tile by its number. The contiguous axis of the array changes fastest."""
        fast = contiguous_loop(self.program, self.ref, tuple([loop.name for loop in self.axes]))
        order = sorted(range(len(self.axes)), key=lambda n: self.axes[n].name == fast)
        found: dict[int, Expr] = {}
        for n in reversed(order):
            found[n] = cell % index(self.extents[n]) if n != order[0] else cell
            cell = cell // index(self.extents[n])
        return tuple([found[n] for n in range(len(self.axes))])

    def check_inside(self, ref: Expr, conds: list[Expr], cell: Var, cells: int) -> None:
        context: Context = context_at(self.program, self.found).given(cell >= ZERO).given(cell < index(cells))
        for cond in conds:
            context = context.given(cond)
        if not isinstance(ref, Aref) or not is_inside(ref, shapes(self.program)[ref.buffer], context):
            raise self.refuse(f"{self.ref} is not proven to stay inside {self.ref.buffer} for the whole tile")
