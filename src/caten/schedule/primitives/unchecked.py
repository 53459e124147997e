"""unchecked: a copy of a loop without the checks of its indices, for calls in which they hold (loop versioning)."""
from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...core.expr import FALSE, TRUE, Expr, Op, Var, index
from ...core.node import Node, substitute
from ...core.unique_names import Names
from ...frozen import frozen
from ...loop.accesses import conjuncts
from ...loop.affine import Linear, canonical, expression, linear
from ...loop.effects import written
from ...loop.statements import ZERO, Aref, Fail, For, If, Let, Local, LoopProgram, Setf, Stmt, Vref, is_const
from ..analysis.loop_queries import find, refusal, replaced
from ..loop_names import copied, declared
from ..normalize import normal, tidied
from ..step_results import Specialized, arrays_of, loops_of

MOST = 1 << 40                  # of the bounds and indices of such a loop, so that nothing overflows
MOST_FACTOR = 1 << 20
FEW = 4                         # terms of a sum that does not overflow then


@frozen
class Growth:
    """What an integer is in each iteration: `factor` times the loop's variable plus `start`, which does not change."""

    factor: int
    start: Linear


@frozen
class Index(Growth):
    """An index that a check is about: as it is used, which may count negative ones from the end; whether it must not
    be negative; the extents that it must be below."""

    used: Expr
    from_zero: bool
    extents: tuple[Expr, ...]


def unchecked(program: LoopProgram, loop: str, ending: str = "u") -> tuple[LoopProgram, Specialized]:
    """Make a copy of a loop without the checks of indices that grow by the same number in each iteration. It runs
    instead of the loop where these indices are inside their arrays, and not negative, in the first and the last
    iteration, and so in all of them. Names in the copy end in `u`, or in the NAME given.

        (unchecked k)
        (for k (aref start i) (aref start (+ i 1)) 1 serial         (let k_lo i64 (aref start i))
          (if (not (and (<= 0 k) (< k K))) ((fail 4)))              (let k_hi i64 (aref start (+ i 1)))
          (incf (aref y i) (aref x k)))                             (if (and (<= 0 k_lo) (< (- k_hi 1) K) …)
                                                              ->      ((for ku k_lo k_hi 1 serial
                                                                         (incf (aref y i) (aref x ku))))
                                                                      ((for k … as before …)))

    Integer variables of an iteration that grow like this are replaced by their values, for the steps that follow.
    Refused: no such check is in the loop itself, as opposed to loops and conditions inside it.
    """
    step = f"unchecked {loop}"
    found, names = find(program, loop, step), Names.of(program)
    if not is_const(found.step, 1):
        raise refusal("E540", step, f"it counts in steps of {found.step}")
    checks = list(_checks(found))
    if not checks:
        raise refusal("E540", step, "it holds no check of an index that grows by the same number in each iteration")
    ends = _Ends(found, names)
    lo, hi = ends.lo, ends.hi
    guards: list[Expr] = []
    new: dict[Node, Expr] = {}
    for check in checks:
        for each in check[1]:
            first = ends.first(each)
            last = canonical(first + (hi - 1 - lo) * each.factor)
            guards += [Op("le", (ZERO, end)) for end in (first, last) if each.from_zero]
            guards += [Op("lt", (end, extent)) for extent in each.extents for end in (first, last)]
            new[each.used] = canonical(first + (Var(loop, "i64") - lo) * each.factor)
    gone: list[Stmt] = [check for check, _ in checks]
    for ref, value in _scalars(found):
        new[ref] = canonical(ends.first(value) + (Var(loop, "i64") - lo) * value.factor)
        gone += [s for s in found.body if ref.buffer in ((s.name,) if isinstance(s, Local) else written((s,)))]
    body = _read(substitute(tuple([s for s in found.body if not any(s is each for each in gone)]), new))
    copy, others = copied((found.replace(lo=lo, hi=hi, body=body),), ending, names)
    # That nothing overflows is said first: the other conditions are arithmetic then.
    bounds = [Op("le", pair) for end in ends.small if not (isinstance(end, Var) and end.name in program.sizes)
              for pair in ((lo if end is hi and is_const(lo) else index(-MOST), end), (end, index(MOST)))]
    test: Expr = TRUE
    for part in dict.fromkeys([*bounds, *guards]):
        test = normal(Op("and", (test, part)))
    if test == FALSE:
        raise refusal("E540", step, "its indices are never inside in every iteration")
    copy = tidied(copy)
    made = replaced(program, found, *tidied((*ends.lets, If(test, copy, (found,)))))
    return made, Specialized(loops_of(others, copy), arrays_of(others.values(), made))


class _Ends:
    """The first values of what grows in a loop, and its bounds, by names that are made before it. `small`: what must be
    so that nothing overflows."""

    def __init__(self, loop: For, names: Names) -> None:
        self.loop, self.names = loop.name, names
        self.lets: list[Stmt] = []
        self.small: list[Expr] = []
        self.held: dict[Expr, Expr] = {}
        self.firsts: list[tuple[Linear, Expr]] = []
        self.lo, self.hi = self.named(loop.lo, "lo"), self.named(loop.hi, "hi")

    def named(self, value: Expr, wish: str) -> Expr:
        """A value that stays what it is here."""
        if is_const(value):
            return value
        if value not in self.held:
            self.held[value] = value
            if not isinstance(value, Var):
                name = self.names.fresh(f"{self.loop}_{wish}")
                self.lets.append(Let(name, "i64", value))
                self.held[value] = Var(name, "i64")
            self.small.append(self.held[value])
        return self.held[value]

    def first(self, growth: Growth) -> Expr:
        """The value in the first iteration: that of another one and a distance, if this is shorter. By how much the two
        differ is known then, though the products in them may overflow."""
        start = growth.start + linear(self.lo).times(linear(index(growth.factor)))
        base, at = min(self.firsts, key=lambda each: len((start - each[0]).terms), default=(start, None))
        if at is not None and len((start - base).terms) < max(len(start.terms), 1):
            return canonical(at + self.distance(start - base))
        first = self.named(canonical(expression(start)), "at")
        self.firsts.append((start, first))
        return first

    def distance(self, form: Linear) -> Expr:
        """A sum of few names as it is, anything else by one name."""
        if len(form.terms) > FEW or any(len(m) > 1 or not isinstance(m[0], Var) or abs(c) > MOST_FACTOR
                                        for m, c in form.terms.items()):
            return self.named(canonical(expression(form)), "by")
        for atom in form.atoms():
            self.named(atom, "")
        return expression(form)


def _read(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Without names that nothing reads any more: each is a fact that proofs would go through."""
    kept: list[Stmt] = []
    for stmt in reversed(body):
        if not isinstance(stmt, Let) or any(stmt.name in later.variables for later in kept):
            kept.append(stmt)
    return tuple(reversed(kept))


def _checks(loop: For) -> Iterator[tuple[If, tuple[Index, ...]]]:
    """The checks at the top of a loop's body whose indices are all linear, with these."""
    changed = _changed(loop)
    for stmt, values in _with_values(loop):
        match stmt:
            case If(cond=cond, then=(Fail(),), otherwise=()):
                indices = _indices(_needed(cond), values, loop, changed)
                if indices is not None:
                    yield stmt, indices


def _scalars(loop: For) -> Iterator[tuple[Aref, Growth]]:
    """The integer scalars of an iteration that have one linear value, each with it."""
    changed = _changed(loop)
    for stmt, values in _with_values(loop):
        match stmt:
            case Setf(ref=Aref(dtype="i64") as ref) if ref in values:
                growth = _growth(values[ref], values, loop, changed)
                if growth is not None:
                    yield ref, growth


def _with_values(loop: For) -> Iterator[tuple[Stmt, dict[Node, Expr]]]:
    """The statements of a loop's body, each with the values of the names and scalars that are known after it."""
    values: dict[Node, Expr] = {}
    for stmt in loop.body:
        match stmt:
            case Let(name=name, type="i64", value=value):
                values[Var(name, "i64")] = substitute(value, values)
            case Setf(ref=Aref(buffer=name, index=()) as ref, value=value) if _is_set_once(loop, name):
                values[ref] = substitute(value, values)
        yield stmt, values


def _changed(loop: For) -> frozenset[str]:
    return written((loop,)) | {n.name for n in declared(loop.body)} | {loop.name}


def _needed(cond: Expr) -> Sequence[Expr]:
    """What must hold for a check not to fail."""
    match cond:
        case Op(fn="not", args=(holds,)):
            return conjuncts(holds)
        case Op(fn="ge", args=(used, extent)):
            return (Op("lt", (used, extent)),)
        case Op(fn="lt", args=(used, low)) if low is ZERO:
            return (Op("le", (low, used)),)
    return (Op("not", (cond,)),)


def _is_set_once(loop: For, name: str) -> bool:
    """Is it a scalar of an iteration, with one value?"""
    stores = [n for n in loop.unique() if isinstance(n, Setf) and isinstance(n.ref, Aref) and n.ref.buffer == name]
    others = [s for s in loop.body if name in written((s,))]
    return len(stores) == len(others) == 1 and any(isinstance(s, Local) and s.name == name for s in loop.body)


def _indices(conds: Sequence[Expr], values: dict[Node, Expr], loop: For,
             changed: frozenset[str]) -> tuple[Index, ...] | None:
    """What a check is about; None if it is about anything but bounds of indices that are linear in the variable."""
    uses: dict[Expr, list[Expr]] = {}
    lowest: set[Expr] = set()
    for cond in conds:
        match cond:
            case Op(fn="le", args=(low, used)) if low is ZERO:
                uses.setdefault(used, [])
                lowest.add(used)
            case Op(fn="lt", args=(used, extent)) if not _is_changed(extent, changed):
                uses.setdefault(used, []).append(extent)
            case _:
                return None
    found: list[Index] = []
    for used, extents in uses.items():
        value, from_zero = used, used in lowest
        match used:                                     # a negative index counts from the end
            case Op(fn="where", args=(Op(fn="lt", args=(low, zero)), _, high)) if low is high and zero is ZERO:
                value, from_zero = high, True
        growth = _growth(value, values, loop, changed)
        if growth is None:
            return None
        found.append(Index(growth.factor, growth.start, used, from_zero, tuple(extents)))
    return tuple(found)


def _growth(value: Expr, values: dict[Node, Expr], loop: For, changed: frozenset[str]) -> Growth | None:
    """How a value grows with the loop; None if not by the same number in each iteration."""
    var = Var(loop.name, "i64")
    form = linear(substitute(value, values))
    factor = form.coefficient(var)
    start = form - linear(var).times(factor)
    if value.dtype != "i64" or not factor.is_constant or abs(factor.constant) > MOST_FACTOR or any(
            _is_changed(atom, changed) for atom in start.atoms()):
        return None
    return Growth(factor.constant, start)


def _is_changed(value: Expr, changed: frozenset[str]) -> bool:
    """May it have another value in another iteration?"""
    return any((isinstance(n, Var) and n.name in changed) or (isinstance(n, Aref | Vref) and n.buffer in changed)
               for n in value.unique())
