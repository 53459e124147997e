"""unguard: drop the conditions around products with a zero-padded tile."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from typing import Any

from ...core.dtypes import is_complex, is_float
from ...core.expr import Const, Expr, Op, Var, number
from ...core.node import substitute
from ...core.unique_names import Names
from ...loop.accesses import conjuncts
from ...loop.context import Context
from ...loop.effects import reads, written
from ...loop.statements import Aref, For, If, Incf, Let, Local, LoopProgram, Setf, Stmt, Vref
from ..analysis.access_bounds import is_inside, shapes
from ..analysis.guards import wrapped
from ..analysis.halos import halo
from ..analysis.loop_queries import context_at, find, loops_in, mentions, reads_memory, refusal, replaced, trail, writes
from ..loop_names import copied
from ..normalize import tidied
from ..step_results import FinitenessTest, Unguarded, arrays_of, loops_of

# loops around, by name; conditions around; what reads the tile
Use = tuple[dict[str, For], tuple[Expr, ...], Stmt]


def unguard(program: LoopProgram, loop: str, tile: str, ending: str = "g") -> tuple[LoopProgram, Unguarded]:
    """Drop the condition around each product with the tile BUFFER, where the tile holds 0 whenever the condition fails:
    adding 0 · x then replaces skipping the term.

    Use it for convolutions with padding and triangular products, after `stage … read` of the operand and `stage …
    partial` of the sum inside LOOP: without the condition, the innermost loop has no branch and no mask. For floats, 0
    · x is 0 only if x is finite. A check before the loop therefore reads all of the other operand once (`u - u` is 0
    exactly for finite values), and if an element is infinite or NaN, a copy of the loop that keeps the conditions runs
    instead. The loops of that copy end in `g`, or in the NAME given. If the other operand is a tile, too, which one
    nest before LOOP fills, the conditions for which it holds zeros go as well, and what is copied into the first tile
    is checked like it. If one nest before LOOP sets the sums to 0, and LOOP stores nothing else, no operand is checked:
    sums that are not finite are set to 0 and added up again with the conditions.

        (unguard i T)
        (for i 0 M 1 serial                                   (local u_sum f32 () register)
          (local T f32 (8) scratch)                           (setf (aref u_sum) 0.0)
          (for p_r 0 8 1 serial                               (for p_u 0 8 1 serial
            (setf (aref T p_r) (where c … 0.0)))       ->       (incf (aref u_sum) (- (aref u p_u) (aref u p_u))))
          … (for p 0 8 1 serial                               (if (= (aref u_sum) 0.0)
            (if c                                               ((for i …
              ((incf (aref w_part) (* (aref T p) (aref u p))))))    (incf (aref w_part) (* (aref T p) (aref u p)))))
                                                                ((for ig …)))

    Refused: the tile is not filled by one nest in LOOP or before it, or used for anything but one sum of products; no
    condition around the products for which the tile holds zeros; a sum that does not start from 0 (stage it as
    partial); complex elements; the other operand is written in LOOP, or is not proven to be in bounds without the
    conditions.
    """
    step = f"unguard {loop} {tile}"
    found = find(program, loop, step)
    products = _Products(program, found, tile, step)
    free = products.without_conditions()
    if not is_float(products.other.dtype):
        return replaced(program, found, *tidied((free,))), Unguarded()
    names = Names.of(program)
    start = products.start_of_sums()
    tests = products.tests(names) if start is None else products.test_of_sums(start, names)
    totals = [test[0].name for test in tests if isinstance(test[0], Local)]
    finite = [Op("eq", (Aref(total, (), products.other.dtype), number(0, products.other.dtype))) for total in totals]
    are_finite = reduce(lambda a, b: Op("and", (a, b)), finite)
    copy, new = copied((found,) if start is None else (start, found), ending, names)
    before = tuple([stmt for test in tests for stmt in test])
    chosen = (*before, If(are_finite, (free,), copy)) if start is None else (
        free, *before, If(Op("not", (are_finite,)), copy))
    made = tidied(chosen)
    after = replaced(program, found, *made)
    loops = [tuple([loop.name for loop in loops_in(tidied(test))]) for test in tests]
    return after, Unguarded(tuple(map(FinitenessTest, totals, loops)), loops_of(new, made),
                            arrays_of(new.values(), after))


class _Products:
    """The filling of the tile, the products that use it, and their other factor."""

    def __init__(self, program: LoopProgram, found: For, tile: str, step: str) -> None:
        self.program, self.found, self.tile, self.step = program, found, tile, step
        self.around = context_at(program, found)
        self.filling, self.context, used = self._filling_and_uses()
        uses = list(_uses(used, tile, {}, ()))
        if len(uses) != 1 or not isinstance(use := uses[0][2], Incf):
            raise self.refuse("it is not read by one accumulation alone")
        self.loops, self.conds = uses[0][0], uses[0][1]
        self.use = use
        self.mine, self.other = self._factors()
        self._check_sum()
        zeros = _Zeros(self.mine, self.filling, self._loops_since(self.filling), self.context)
        dropped = [c for c in self.conds if zeros.where_not(c)]
        filling = self._filling_before(self.other.buffer)
        before = None if filling is None or self._loops_to_the_filling() is None else _Zeros(
            self.other, filling, self._loops_since(filling), context_at(program, filling))
        self.by_other = tuple([c for c in self.conds if c not in dropped and before is not None
                               and before.where_not(c)])
        self.dropped = (*dropped, *self.by_other)
        if not self.dropped:
            raise self.refuse("around its products there is no condition that it holds zeros for")
        self.needed = self._loops_of_the_other()

    def _factors(self) -> tuple[Aref, Aref]:
        match self.use:
            case Incf(value=Op(fn="mul", args=(Aref() as a, Aref() as b)), fn="add"):
                if (a.buffer == self.tile) != (b.buffer == self.tile):
                    return (a, b) if a.buffer == self.tile else (b, a)
        raise self.refuse(f"{self.use.ref} does not take products of the tile and one other element")

    def _check_sum(self) -> None:
        """Check that the sum starts from 0.0. Then adding zeros changes at most the sign of a zero, which partial sums
        do not preserve anyway."""
        ref = self.use.ref
        assert isinstance(ref, Aref)                             # a vector takes no product of two elements
        if is_complex(ref.dtype):
            raise self.refuse("the values are complex")
        place = _declaration(self.found.body, ref.buffer, self.around.inside(self.found))
        scope = (self.found,) if place is None else place[0]
        last = next((n for n, stmt in enumerate(scope) if any(w is self.use for w in writes(stmt))), len(scope))
        stores = [w for w in writes(scope[:last + 1]) if isinstance(w.ref, Aref | Vref) and w.ref.buffer == ref.buffer
                  and w is not self.use]                     # what is stored later is not in the sum
        if ref.buffer in self.program.buffers or not all(isinstance(w, Setf) and _is_zero(w.value) for w in stores):
            raise self.refuse(f"{ref} is no sum that starts from zero; stage it as partial")
        if self.other.buffer in written((self.found,)):
            raise self.refuse(f"{self.other} is written inside '{self.found.name}'")

    def _filling_and_uses(self) -> tuple[Stmt, Context, Sequence[Stmt]]:
        """The nest that fills the tile, in the loop or before it, the context there, and the statements that may use
        it."""
        place = _declaration(self.found.body, self.tile, self.around.inside(self.found))
        if place is None:
            filling = self._filling_before(self.tile)
            if filling is None or self.tile in written((self.found,)):
                raise self.refuse(f"no nest in '{self.found.name}' or before it fills a tile of that name")
            return filling, context_at(self.program, filling), self.found.body
        after, context = place
        touching = [s for s in after if any(isinstance(n, Aref | Vref) and n.buffer == self.tile for n in s.unique())]
        if len(touching) != 2 or self.tile in written(touching[1:]):
            raise self.refuse("it is not filled by one nest and read by one nest after it")
        return touching[0], context, touching[1:]

    def _filling_before(self, name: str) -> Stmt | None:
        """The nest before the loop that fills a tile; None if there is none, or several. None, too, if what is copied
        into the tile cannot be read before the loop."""
        before = [s for stmts, _ in trail(self.program, self.found) for s in stmts]
        filling = [stmt for stmt in before if name in written((stmt,))]
        declared = any(isinstance(stmt, Local) and stmt.name == name for stmt in before)
        changing = [n.name for n in self.found.walk() if isinstance(n, Let)]
        if len(filling) != 1 or not declared or mentions(filling[0], changing) or reads(filling[0]) & written(
                (self.found,)):
            return None
        return filling[0]

    def _loops_since(self, filling: Stmt) -> dict[str, For]:
        """The loops around the products that begin after a nest has filled a tile."""
        way = trail(self.program, self.found)
        level = next((n for n, (before, _) in enumerate(way) if any(s is filling for s in before)), len(way))
        return {**{stmt.name: stmt for _, stmt in way[level:] if isinstance(stmt, For)}, **self.loops}

    def _loops_to_the_filling(self) -> list[For] | None:
        """The loops around the nest that fills the tile, from the loop on: none if it is before the loop. None if there
        are conditions."""
        way = [stmt for _, stmt in trail(self.program, self.filling)][:-1]
        inside = way[next((n for n, stmt in enumerate(way) if stmt is self.found), len(way)):]
        loops = [stmt for stmt in inside if isinstance(stmt, For)]
        return loops if len(loops) == len(inside) else None

    def _loops_of_the_other(self) -> list[For]:
        """The loops whose variables the other factor uses. Its accesses are in bounds without the conditions."""
        inner = loops_in(self.found)
        needed = [loop for loop in inner if mentions(self.other, (loop.name,))]
        changing = [*[loop.name for loop in inner if loop not in needed],
                    *[n.name for n in self.found.walk() if isinstance(n, Let)]]
        known = (*self.other.index, *[e for loop in needed for e in (loop.lo, loop.hi, loop.step)])
        if mentions(known, changing) or any(reads_memory(e) for e in known):
            raise self.refuse(f"what is read of {self.other} does not stay the same in '{self.found.name}'")
        context = self.around
        for loop in needed:
            context = context.inside(loop)
        if not is_inside(self.other, shapes(self.program)[self.other.buffer], context):
            raise self.refuse(f"{self.other} is not proven to stay inside {self.other.buffer} without the conditions")
        return needed

    # results --------------------------------------------------------------------------------------------------------
    def without_conditions(self) -> For:
        """The loop without the conditions."""
        def go(node: Any) -> Any:
            if isinstance(node, If) and not node.otherwise and any(n is self.use for n in node.walk()):
                then = tuple([new for s in node.then for new in _listed(go(s))])
                rest = tuple([c for c in conjuncts(node.cond) if c not in self.dropped])
                return (wrapped(then, rest),) if rest else then
            return node.map(go) if isinstance(node, For | If) else node
        return self.found.map(go)

    def tests(self, names: Names) -> list[tuple[Stmt, ...]]:
        """Statements before the loop that add x - x for every element x of the other factor, from a sum that starts at
        0. For a finite x, x - x is 0; otherwise it is NaN, and so is the sum. If the other factor holds zeros for some
        conditions, more such statements are about what is copied into the tile."""
        cell = self._total(self.other, names)
        body: Stmt = Incf(cell, Op("sub", (self.other, self.other)))
        made = [self._test(cell, self.needed, body, names)]
        outside = self._loops_to_the_filling() if self.by_other else None
        if outside is not None:
            cell = self._total(self.mine, names)

            def tested(node: Any) -> Any:
                if isinstance(node, Setf):
                    value = node.value if outside else node.ref          # the tile itself if it is filled before
                    return Incf(cell, Op("sub", (value, value)))
                return node.map(tested) if isinstance(node, For | If) else node
            made.append(self._test(cell, outside, tested(self.filling), names))
        return made

    def start_of_sums(self) -> Stmt | None:
        """The nest beside the loop that sets the sums to zero, from which they can be added up again: the loop stores
        nothing else but in arrays of its own. None if there is none."""
        name = self.use.ref.buffer
        before = trail(self.program, self.found)[-1][0]
        own = {stmt.name for stmt in self.found.walk() if isinstance(stmt, Local)}
        stores = [w for w in writes(self.found) if w.ref.buffer == name]
        declared = next((n for n, stmt in enumerate(before) if isinstance(stmt, Local) and stmt.name == name), None)
        if declared is None or len(stores) != 1 or written((self.found,)) - own != {name}:
            return None
        nests = [stmt for stmt in before[declared:] if name in written((stmt,))]
        return nests[0] if len(nests) == 1 and not isinstance(nests[0], If) and all(
            isinstance(w, Setf) and w.ref.buffer == name and _is_zero(w.value) for w in writes(nests[0])) else None

    def test_of_sums(self, start: Stmt, names: Names) -> list[tuple[Stmt, ...]]:
        """Statements that add x - x for every sum x, which `start` set to zero."""
        ref = self.use.ref
        assert isinstance(ref, Aref)
        cell = self._total(ref, names)

        def tested(node: Any) -> Any:
            if isinstance(node, Setf):
                return Incf(cell, Op("sub", (node.ref, node.ref)))
            return node.map(tested) if isinstance(node, For | If) else node
        return [self._test(cell, (), tested(start), names)]

    def _total(self, factor: Aref, names: Names) -> Aref:
        return Aref(names.fresh(f"{factor.buffer}_sum"), (), factor.dtype)

    def _test(self, cell: Aref, loops: Sequence[For], body: Stmt, names: Names) -> tuple[Stmt, ...]:
        for loop in reversed(loops):
            body = For(loop.name, loop.lo, loop.hi, loop.step, "serial", (body,))
        zero = number(0, cell.dtype)
        return Local(cell.buffer, cell.dtype, (), "register"), Setf(cell, zero), *copied((body,), "_u", names)[0]

    def refuse(self, reason: str) -> Exception:
        return refusal("E529", self.step, reason)


class _Zeros:
    """Where a tile holds zeros: the access to it in the products, the loops around these, and the nest that fills
    it."""

    def __init__(self, mine: Aref, filling: Stmt, loops: dict[str, For], context: Context) -> None:
        self.mine, self.filling, self.loops, self.context = mine, filling, loops, context

    def where_not(self, cond: Expr) -> bool:
        """Is every element that the products read zero if `cond` fails for it?"""
        return not reads_memory(cond) and self._fills(self.filling, {}, cond, self.context)

    def _fills(self, stmt: Stmt, loops: dict[str, For], cond: Expr, context: Context) -> bool:
        """Does a statement set every element of the tile, and to zero if the condition fails for it?"""
        match stmt:
            case For(body=(only,)):
                return self._fills(only, {**loops, stmt.name: stmt}, cond, context.inside(stmt))
            case If(cond=asked, then=(yes,), otherwise=(no,)) if not reads_memory(asked):
                return (self._fills(yes, loops, cond, context.given(asked))
                        and self._fills(no, loops, cond, context.given(asked, False)))
            case Setf(ref=Aref() as ref) if ref.buffer == self.mine.buffer:
                where_filled = self._in_the_filling(cond, ref, loops)
                return where_filled is not None and _is_zero_without(stmt.value, where_filled, context)
        return False

    def _in_the_filling(self, cond: Expr, ref: Aref, loops: dict[str, For]) -> Expr | None:
        """A condition around the products as one around the filling of the element that they read, which is stored to
        `ref`. None unless the filling covers every element that the products read, and the condition is the same for
        all that read an element."""
        same: dict[Var, Var] = {}
        used: list[For] = []
        for position, (mine, filled) in enumerate(zip(self.mine.index, ref.index, strict=True)):
            if not isinstance(filled, Var) or filled.name not in loops or filled in same.values():
                return None
            axis, of_axis = self._axis(position, cond)
            if axis is None or of_axis is None or mentions(mine, [loop.name for loop in used]):
                return None
            cond = of_axis
            same[Var(axis.name, "i64")] = filled
            used.append(axis)
        if len(same) < len(loops):
            return None
        for axis, stored in zip(used, same.values(), strict=True):
            loop = loops[stored.name]
            if substitute((axis.lo, axis.hi, axis.step), same) != (loop.lo, loop.hi, loop.step):
                return None
        return substitute(cond, same)

    def _axis(self, position: int, cond: Expr) -> tuple[For | None, Expr | None]:
        """The loop along an axis of the tile, or the loop over the sums of those that share it, and the condition over
        it."""
        mine = self.mine.index[position]
        if isinstance(mine, Var):
            return self.loops.get(mine.name), cond
        try:
            shared = halo(self.mine, [loop for name, loop in self.loops.items() if mentions(mine, (name,))])
        except ValueError:
            return None, None
        return shared.loop, shared.of(cond)


def _declaration(stmts: tuple[Stmt, ...], tile: str, context: Context) -> tuple[tuple[Stmt, ...], Context] | None:
    """The statements after the declaration of a tile in its list, and the context there."""
    for n, stmt in enumerate(stmts):
        match stmt:
            case Local(name=name) if name == tile:
                return stmts[n + 1:], context
            case For(body=body):
                inner = _declaration(body, tile, context.inside(stmt))
            case If(cond=cond, then=then, otherwise=otherwise):
                inner = (_declaration(then, tile, context.given(cond))
                         or _declaration(otherwise, tile, context.given(cond, False)))
            case _:
                inner = None
        if inner is not None:
            return inner
        context = context.after(stmt)
    return None


def _uses(stmts: Iterable[Stmt], tile: str, loops: dict[str, For], conds: tuple[Expr, ...]) -> Iterator[Use]:
    """The statements that read a tile, once for each time that they do."""
    for stmt in stmts:
        match stmt:
            case For(body=body):
                yield from _uses(body, tile, {**loops, stmt.name: stmt}, conds)
                parts: tuple[Expr, ...] = (stmt.lo, stmt.hi, stmt.step)
            case If(cond=cond, then=then, otherwise=otherwise):
                yield from _uses(then, tile, loops, conds if otherwise else (*conds, *conjuncts(cond)))
                yield from _uses(otherwise, tile, loops, conds)
                parts = (cond,)
            case _:
                parts = tuple([c for c in stmt.children if isinstance(c, Expr)])
        yield from [(loops, conds, stmt) for part in parts for n in part.walk() if isinstance(n, Aref | Vref)
                    and n.buffer == tile]


def _is_zero_without(value: Expr, cond: Expr, context: Context) -> bool:
    """Is a value zero where the condition does not hold?"""
    match value:
        case Op(fn="where", args=(test, chosen, other)) if _is_zero(other):
            return cond in conjuncts(test) or _is_zero_without(chosen, cond, context.given(test))
    return context.proves(cond)


def _is_zero(value: Expr) -> bool:
    """Is it 0 or 0.0 (not -0.0)?"""
    return isinstance(value, Const) and repr(value.value) in ("0", "0.0")


def _listed(made: Any) -> tuple[Any, ...]:
    return made if isinstance(made, tuple) else (made,)
