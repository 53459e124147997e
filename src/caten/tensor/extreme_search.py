"""Where the greatest or least element of a row is (argmax, argmin), in one pass over a long row.

    best = -inf;  for p: best = max(best, X[p])
    at = none;    for p: if X[p] = best: at = min(at, p)

Blocks: of each block the greatest element, and of these the first block that has it. Only this block is searched, so
the row is read once, and no vector of indices is carried along.

    best = -inf;  block = 0
    for b:  top = -inf;  for p in block b: top = max(top, X[p])
            if top > best: block = b
            best = max(best, top)
    at = none;  for p in that block: if X[p] = best: at = min(at, p)

A short row stays in the first cache between the two passes. Its indices are compared as 32-bit integers, as many to a
vector as elements of the usual types.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from ..core.dtypes import is_float
from ..core.expr import Cast, Const, Expr, Op, Var, index
from ..core.monoids import identity
from ..core.node import Node, substitute, unique_in
from ..core.program import Bind, Schedule, Target
from ..frozen import frozen
from ..loop.affine import canonical, constant, linear
from ..loop.statements import ONE, ZERO, Aref, For, If, Incf, Let, Local, Setf, Stmt, statements_in
from .inlining import inlined_statements
from .loop_builder import count_of_blocks
from .loop_splitting import conjunction
from .values import TensorProgram

BLOCK = 512             # elements that are searched
SHORT = 4096            # elements of a row that stays in the first cache between two passes
NARROW = "i32"
TAKES = {("max", "min"): "gt", ("max", "max"): "ge", ("min", "min"): "lt", ("min", "max"): "le"}  # a later block


def may_search_in_blocks(program: TensorProgram) -> bool:
    """May rows be searched in blocks? A schedule that is given meets the loops as they are, and a device with groups of
    threads shares a row among them."""
    target = program.first(Target)
    return (target is not None and not target.machine.groups and program.opt >= 2
            and program.first(Schedule) is None)


def searched_in_blocks(stmts: tuple[Stmt, ...], program: TensorProgram, fresh: Callable[[str], str],
                       ) -> tuple[Stmt, ...]:
    """The statements of a kernel, with narrow indices where rows are short, and blocks where they are long. `fresh`: a
    name that is free, from the one that is wanted."""
    searches = list(_searches(stmts))
    sizes: dict[Node, Expr] = {Var(b.name, "i64"): index(b.value) for b in program.all(Bind)}
    extents = [substitute(s.loop.hi, sizes) for s in searches]
    inside = {n.name for n in unique_in(stmts) if isinstance(n, For | Let | Local)}
    if not searches or any(inside & e.variables for e in extents):
        return stmts
    bounds = dict.fromkeys([Op("le", (e, index(SHORT))) for e in extents if not isinstance(e, Const)])
    is_long = any(isinstance(e, Const) and e.value > SHORT for e in extents)

    def short() -> tuple[Stmt, ...]:
        return _rewritten(stmts, lambda s: s.narrow(fresh))

    def long() -> tuple[Stmt, ...]:
        contiguous = _contiguous(program, stmts)
        return _rewritten(stmts, lambda s: s.blocks(fresh) if s.reads_in_order(contiguous) else None)
    if is_long:
        return long()
    if not bounds:
        return short()
    return (If(conjunction(list(bounds)), short(), inlined_statements(long(), fresh, {}, {})),)


def kept_in_one_pass(stmts: tuple[Stmt, ...], fresh: Callable[[str], str]) -> tuple[Stmt, ...]:
    """Searches as loops that keep the extreme so far, and its index. With bounds on rounding errors, `key = best` is
    never certain of the element that is the best; that it is greater than all others may be."""
    return _rewritten(stmts, lambda s: s.kept(fresh))


@frozen
class _Top:
    """A loop that finds the extreme of a row: `acc` becomes the extreme of the `key`s."""

    loop: For
    acc: Aref
    key: Expr
    fn: str


@frozen
class _Search:
    """A loop that finds the first (`fn` is min) or last index `at` where a condition holds. `place`: where the
    declaration of the index is in its list of statements; its first value and the loop follow. `top`: the loop that
    finds the extreme that the condition compares with, if it does nothing else, and where this loop is in the list."""

    loop: For
    at: Aref
    cond: Expr
    fn: str
    place: int
    top: _Top | None
    top_place: int

    def narrow(self, fresh: Callable[[str], str]) -> dict[int, tuple[Stmt, ...]]:
        """The loop with a narrow index. Gives statements in place of those of the list."""
        found = Aref(fresh(self.at.buffer), (), NARROW)
        loop = self.loop.replace(body=(If(self.cond, (self.add(found, Var(self.loop.name, "i64")),)),))
        return self.instead((*self.begun(found), loop), found, ZERO)

    def blocks(self, fresh: Callable[[str], str]) -> dict[int, tuple[Stmt, ...]]:
        """The loops over blocks, and the search of one block."""
        assert self.top is not None
        top, best = self.top, self.top.acc
        count, size = count_of_blocks(top.loop.hi, BLOCK), index(BLOCK)
        block, number = Aref(fresh(f"{self.at.buffer}_block"), (), "i64"), Var(fresh(f"{top.loop.name}_block"), "i64")
        part, inner = Aref(fresh(best.buffer), (), best.type), Var(fresh(top.loop.name), "i64")

        def start(of: Expr) -> Expr:
            return Op("mul", (size, of))

        def length(of: Expr) -> Expr:
            return Op("min", (Op("sub", (top.loop.hi, start(of))), size))

        def at(e: Expr, loop: For, of: Expr, var: Var) -> Expr:
            place = canonical(Op("add", (start(of), var)))
            changed: Expr = substitute(e, {Var(loop.name, "i64"): place})
            return changed
        over_block = For(inner.name, ZERO, length(number), ONE, "serial",
                         (Incf(part, at(top.key, top.loop, number, inner), top.fn),))
        taken: Expr = Op(TAKES[top.fn, self.fn], (part, best))
        if _takes_nan(self.cond):
            later: Expr = Op("isnan", (part,))
            if self.fn == "min":
                later = Op("and", (later, Op("not", (Op("isnan", (best,)),))))
            taken = Op("or", (taken, later))
        over_blocks = For(number.name, ZERO, count, ONE, "serial", (
            Local(part.buffer, part.type, (), "register"), Setf(part, identity(top.fn, part.type)), over_block,
            If(taken, (Setf(block, number),)), Incf(best, part, top.fn)))
        chosen = Aref(fresh(block.buffer), (), "i64")
        most = Op("floordiv", (Op("sub", (top.loop.hi, ONE)), size))
        bounded = Op("max", (Op("min", (block, most)), ZERO))          # as it is, but for the proof that it is inside
        found, var = Aref(fresh(self.at.buffer), (), NARROW), Var(fresh(self.loop.name), "i64")
        search = For(var.name, ZERO, length(chosen), ONE, "serial",
                     (If(at(self.cond, self.loop, chosen, var), (self.add(found, var),)),))
        made = self.instead((Local(chosen.buffer, "i64", (), "register"), Setf(chosen, bounded), *self.begun(found),
                             search), found, start(chosen))
        if not self.holds_at(top.key):
            made[self.place + 2] += (If(Op("eq", (self.at, identity(self.fn, "i64"))), (self.loop,)),)
        made[self.top_place] = (Local(block.buffer, "i64", (), "register"), Setf(block, ZERO), over_blocks)
        return made

    def kept(self, fresh: Callable[[str], str]) -> dict[int, tuple[Stmt, ...]] | None:
        """A loop that keeps the extreme so far. Gives statements in place of those of the list."""
        key = None if self.top is None else _compared(self.cond, self.top.acc)
        if self.top is None or key is None:
            return None
        best = Aref(fresh(self.top.acc.buffer), (), self.top.acc.type)
        first = Op("and", (Op("eq", (self.at, identity(self.fn, "i64"))), Op("eq", (key, best))))
        taken = Op("or", (Op(TAKES[self.top.fn, self.fn], (key, best)), first))
        if _takes_nan(self.cond):
            is_nan: Expr = Op("isnan", (key,))
            if self.fn == "min":
                is_nan = Op("and", (is_nan, Op("not", (Op("isnan", (best,)),))))
            taken = Op("or", (is_nan, taken))
        loop = self.loop.replace(body=(If(taken, (Setf(best, key), Setf(self.at, Var(self.loop.name, "i64")))),))
        return {self.place + 2: (Local(best.buffer, best.type, (), "register"),
                                 Setf(best, identity(self.top.fn, best.type)), loop)}

    def instead(self, loops: tuple[Stmt, ...], found: Aref, first: Expr) -> dict[int, tuple[Stmt, ...]]:
        """Statements in place of those of the list. `found`: the narrow index, from `first` on."""
        value: Expr = Op("add", (first, Cast("i64", found)))
        none = Op("eq", (found, identity(self.fn, NARROW)))
        end = Setf(self.at, Op("where", (none, identity(self.fn, "i64"), value)))
        return {self.place + 1: loops, self.place + 2: (end,)}

    def begun(self, found: Aref) -> tuple[Stmt, ...]:
        """The declaration of the narrow index, and its first value."""
        return Local(found.buffer, NARROW, (), "register"), Setf(found, identity(self.fn, NARROW))

    def add(self, found: Aref, at: Expr) -> Incf:
        """What the search does where its condition holds."""
        return Incf(found, Cast(NARROW, at), self.fn)

    def holds_at(self, key: Expr) -> bool:
        """Does the condition hold at a key that is the extreme, whatever it is?"""
        assert self.top is not None
        here: Expr = substitute(key, {Var(self.top.loop.name, "i64"): Var(self.loop.name, "i64")})
        return here is _compared(self.cond, self.top.acc) and (_takes_nan(self.cond) or not is_float(here.dtype))

    def reads_in_order(self, contiguous: frozenset[str]) -> bool:
        """Is the extreme found by a loop of its own, over elements that are contiguous in memory?"""
        if self.top is None:
            return False
        var = Var(self.top.loop.name, "i64")
        refs = [n for n in self.top.key.unique() if isinstance(n, Aref) and var.name in n.variables]
        return bool(refs) and all(
            r.buffer in contiguous and not any(var.name in i.variables for i in r.index[:-1])
            and linear(r.index[-1]).coefficient(var) == constant(1) for r in refs)


def _takes_nan(cond: Expr) -> bool:
    return isinstance(cond, Op) and cond.fn == "or"


def _compared(cond: Expr, best: Aref) -> Expr | None:
    """The key of a condition `key = best`, or `key = best or key is NaN`."""
    match cond:
        case Op("or", (Op("eq", (key, top)), Op("isnan", (same,)))) if top is best and key is same:
            return key
        case Op("eq", (key, top)) if top is best:
            return key
    return None


def _searches(stmts: Sequence[Stmt]) -> Iterator[_Search]:
    """The searches in statements, of lists inside, too."""
    for s in stmts:
        for body in _bodies(s):
            yield from _searches(body)
    yield from _searches_of(stmts)


def _bodies(s: Stmt) -> tuple[tuple[Stmt, ...], ...]:
    match s:
        case For():
            return (s.body,)
        case If():
            return s.then, s.otherwise
    return ()


def _searches_of(stmts: Sequence[Stmt]) -> Iterator[_Search]:
    """The searches in a list of statements."""
    tops: dict[Expr, tuple[int, _Top]] = {}
    for n in range(len(stmts) - 2):
        match stmts[n:n + 3]:
            case (Local(name, dtype, ()), Setf(Aref() as acc, Const() as start), For(body=(only,)) as loop) if (
                    acc.buffer == name and loop.lo is ZERO and loop.step is ONE):
                match only:
                    case Incf(ref, key, ("max" | "min") as fn) if ref is acc and start is identity(fn, dtype):
                        tops[acc] = n + 2, _Top(loop, acc, key, fn)
                    case If(cond, (Incf(ref, Var(var), ("max" | "min") as fn),), ()) if (
                            ref is acc and var == loop.name and dtype == "i64" and start is identity(fn, dtype)):
                        place, top = _top_of(cond, loop, tops)
                        yield _Search(loop, acc, cond, fn, n, top, place)


def _top_of(cond: Expr, loop: For, tops: Mapping[Expr, tuple[int, _Top]]) -> tuple[int, _Top | None]:
    """The loop that finds the extreme that a condition compares keys with, and its place in the list."""
    for place, top in tops.values():
        key = _compared(cond, top.acc)
        if key is None or top.loop.hi is not loop.hi:
            continue
        own = substitute(key, {Var(loop.name, "i64"): Var(top.loop.name, "i64")})
        numbers = Op("where", (Op("eq", (own, own)), own, identity(top.fn, top.acc.type)))
        if top.key is own or top.key is numbers:
            return place, top
    return -1, None


def _rewritten(stmts: tuple[Stmt, ...], make: Callable[[_Search], dict[int, tuple[Stmt, ...]] | None],
               ) -> tuple[Stmt, ...]:
    """Statements with other ones in place of those of searches. `make`: the statements by their place, or None."""
    made: dict[int, tuple[Stmt, ...]] = {}
    for search in _searches_of(stmts):
        made |= make(search) or {}
    found: list[Stmt] = []
    for n, s in enumerate(stmts):
        match made.get(n, s):
            case tuple() as others:
                found += others
            case For() as loop:
                found.append(loop.replace(body=_rewritten(loop.body, make)))
            case If() as choice:
                found.append(choice.replace(then=_rewritten(choice.then, make),
                                            otherwise=_rewritten(choice.otherwise, make)))
            case other:
                found.append(other)
    return tuple(found)


def _contiguous(program: TensorProgram, stmts: Sequence[Stmt]) -> frozenset[str]:
    """The arrays whose last axis is contiguous in memory."""
    dense = {b.name for b in program.buffers.values()
             if b.axes and not b.strides and b.axes_in_memory[-1] == len(b.axes) - 1}
    return frozenset(dense | {n.name for n in statements_in(stmts) if isinstance(n, Local)})
