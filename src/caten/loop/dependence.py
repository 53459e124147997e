"""May a loop be run in parallel, in lockstep, in another order, in two halves, together with the next? If not, which two accesses forbid it.

A dependence is a pair of accesses to one element, at least one of them a write, in two different iterations. Whether it exists is a question
of integer feasibility: a copy of the loop with its own variables is put beside the loop, and the context of both is asked to exclude the pair.
Accumulations by the same operator commute with each other.
"""
from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from ..core.expr import Const, Expr, Op, Var, index
from ..core.node import substitute
from ..core.program import Program
from ..errors import error
from .affine import canonical, linear, of_atom, text_of
from .blocks import kept_apart
from .context import Context
from .effects import loop_names, reads, writes, written
from .integer_sets import Constraint
from .simplify import statement_field
from .statements import Fail, For, If, Let, Local, Stmt
from .strided import Accesses, range_of
from .touches import OTHER, Touch, commute, pairs, same_place, shared_arrays


def obstacle_to_parallel(program: Program, loop_name: str) -> str | None:
    """Why iterations may not run at once, in any order; None where they may."""
    return obstacle_to_any_order(*find_loop(program, loop_name))[0]


def obstacle_to_any_order(loop: For, context: Context) -> tuple[str | None, bool]:
    """Why iterations may not run at once, or in lockstep (None where they may), and whether all that they share is one accumulation."""
    if any(isinstance(n, Fail) for n in loop.unique()):
        return f"the loop over {loop.name} contains a check that may end the call", False
    strict, commuting = _carried(loop, context)
    if strict is not None:
        return clash(strict, loop.name), False
    if commuting is not None:
        return f"the loop over {loop.name} is a reduction: every iteration accumulates into {commuting[0].text}", True
    return None, False


def carried_dependence(loop: For, context: Context) -> str | None:
    """Two accesses of different iterations that share an element, accumulations included; None where there are none."""
    strict, commuting = _carried(loop, context)
    pair = strict or commuting
    return None if pair is None else clash(pair, loop.name)


def is_reduction_over(program: Program, loop_name: str) -> bool:
    """Is all that its iterations share an accumulation by one operator?"""
    return obstacle_to_any_order(*find_loop(program, loop_name))[1]


def obstacle_to_permutation(loop: For, context: Context, old: list[str], new: list[str]) -> str | None:
    """Why the perfect nest that starts at `loop` may not have its loops in the order `new`."""
    nest: list[For] = [loop]
    while len(nest) < len(old):
        inner = nest[-1].body[0]
        assert isinstance(inner, For)
        nest.append(inner)
    for at, name in enumerate(new):
        bounds = nest[old.index(name)]
        needed = {v.name for e in (bounds.lo, bounds.hi, bounds.step) for v in e.unique() if isinstance(v, Var)}
        for late in new[at + 1:]:
            if late in needed:
                return f"the bounds of the loop over {name} depend on {late}"
    shared = shared_arrays(loop)
    strided = Accesses(loop, shared, context)
    separate = [strided.apart(n.name, _most_iterations(n, outside), old[:at])        # the first loop that differs is to show it
                for at, (n, outside) in enumerate(zip(nest, _contexts(nest, context), strict=True))]
    shared -= strided.commuting().keys() | separate[0].intersection(*separate)
    if not shared:
        return None
    sign = {n.name: _direction(n, context) for n in nest}
    for a, b, both in pairs(loop, context, commute, by_statement=False, shared=shared):
        for first, moved in product(range(len(old)), repeat=2):
            order = _precedes(old, first, sign, 1) + _precedes(new, moved, sign, -1)
            if not both.excludes((*same_place(a, b), *order)):
                return clash((a, b), f"{old[0]} and {old[-1]}", "would change places")
    return None


def _contexts(nest: list[For], context: Context) -> Iterator[Context]:
    """What is known before each loop of a perfect nest."""
    for loop in nest:
        yield context
        context = context.inside(loop)


def obstacle_to_fission(program: Program, loop_name: str, at: int) -> str | None:
    """Why the loop may not be split into one over the first `at` statements of its body and one over the rest; None where it may."""
    loop, context = find_loop(program, loop_name)
    first, second = loop.body[:at], loop.body[at:]
    if any(not reads(bound).isdisjoint(written(first)) for bound in (loop.lo, loop.hi, loop.step)):
        return f"the bounds of the loop over {loop_name} read what its first part writes"
    if any(isinstance(n, Fail) for s in first for n in s.unique()):
        return f"a check in the first part of the loop over {loop_name} guards the second part"
    declared = {s.name for s in first if isinstance(s, Let | Local)}
    for stmt in second:
        used = {n.name for n in stmt.unique() if isinstance(n, Var)} | reads(stmt) | writes(stmt)
        for s in first:
            if isinstance(s, Let | Local) and s.name in used & declared:
                return f"'{s.name}' of the first part of the loop over {loop_name} is used in the second part"
    for a, b, both in pairs(loop, context, lambda a, b: not a.at >= at > b.at or commute(a, b)):
        if not both.excludes((*same_place(a, b), *before(loop, context))):
            return clash((a, b), loop_name)
    return None


def obstacle_to_merge(program: Program, first: str, second: str) -> str | None:
    """Why the loop over `second`, which follows the loop over `first`, may not share its iterations; None where it may."""
    one, context = find_loop(program, first)
    two, _ = find_loop(program, second)
    bounds = ((one.lo, two.lo), (one.hi, two.hi), (one.step, two.step))
    if not all(canonical(x) is canonical(y) or context.proves(Op("eq", (x, y))) for x, y in bounds):
        return f"the loops over {first} and {second} have different bounds"
    if any(not reads(bound).isdisjoint(writes(one)) for bound in (two.lo, two.hi, two.step)):
        return f"the bounds of the loop over {second} read what the loop over {first} writes"
    if any(isinstance(n, Fail) for n in one.unique()):
        return f"a check in the loop over {first} guards the loop over {second}"
    merged = one.replace(body=(*one.body, *substitute(two.body, {Var(two.name, "i64"): Var(one.name, "i64")})))
    at = len(one.body)
    for a, b, both in pairs(merged, context, lambda a, b: not a.at >= at > b.at or commute(a, b)):
        if not both.excludes((*same_place(a, b), *before(merged, context))):
            return clash((a, b), f"{first} and {second}")
    return None


def find_loop(program: Program, name: str) -> tuple[For, Context]:
    """The loop of that name and what is known before it. Raises CatenError E410 where there is none."""
    context = Context.of(program)
    for clause in program.clauses:
        if (field := statement_field(clause)) and (found := _find(getattr(clause, field), name, context)):
            return found
    raise error("E410", f"there is no loop over '{name}'")


def _find(stmts: tuple[Stmt, ...], name: str, context: Context) -> tuple[For, Context] | None:
    for stmt in stmts:
        if isinstance(stmt, For | If) and name in loop_names(stmt):
            match stmt:
                case For() if stmt.name == name:
                    return stmt, context
                case For():
                    return _find(stmt.body, name, context.inside(stmt))
                case If(cond, then, otherwise):
                    return _find(then, name, context.given(cond)) or _find(otherwise, name, context.given(cond, False))
        context = context.after(stmt)
    return None


def _carried(loop: For, context: Context) -> tuple[tuple[Touch, Touch] | None, tuple[Touch, Touch] | None]:
    """A pair that forbids other orders of the iterations, and a pair that only accumulates; None where there is none."""
    commuting: tuple[Touch, Touch] | None = None

    def skipped(a: Touch, b: Touch) -> bool:
        return strides_apart(loop, a, b) or (commuting is not None and commute(a, b))

    shared = shared_arrays(loop)
    strided = Accesses(loop, shared, context)
    summed = strided.summed() if _runs_often(loop) else {}
    shared -= strided.apart(loop.name, _most_iterations(loop, context)) | summed.keys()
    for incf in summed.values():
        place = Touch(incf.ref.buffer, text_of(incf.ref), True, incf.fn, (), context, 0)  # type: ignore[attr-defined]   # an element or a vector
        commuting = commuting or (place, place)
    shared -= kept_apart(loop, context, shared)
    if not shared:
        return None, commuting
    order, cases = before(loop, context), _before_as_two(loop, context)
    for a, b, both in pairs(loop, context, skipped, by_statement=False, shared=shared):
        if not apart(loop, a, b, both, order) and not (cases and all(apart(loop, a, b, both, (*order, *case)) for case in cases)):
            if not commute(a, b):
                return (a, b), commuting
            commuting = commuting or (a, b)
    return None, commuting


def _runs_often(loop: For) -> bool:
    """Are there two iterations, as far as the text says?"""
    return not (isinstance(loop.lo, Const) and isinstance(loop.hi, Const) and abs(loop.hi.value - loop.lo.value) <= 1)


def _most_iterations(loop: For, context: Context) -> int:
    """By how much the variable of a loop differs at most."""
    least, most = range_of(loop, context)
    return most - least


def apart(loop: For, a: Touch, b: Touch, both: Context, order: tuple[Constraint, ...]) -> bool:
    """Are the places different in every two iterations in that order? Mostly one axis that moves with the loop shows it: a smaller question."""
    axes, var = same_place(a, b), Var(loop.name, "i64")
    moving = [c for c in axes if len(axes) > 1 and any(atom is var for atom in c.linear.atoms())]
    return any(both.excludes((c, *order)) for c in moving) or both.excludes((*axes, *order))


def strides_apart(loop: For, a: Touch, b: Touch) -> bool:
    """Does an axis alone show that two different iterations touch different places? Its indices differ by a constant, or by a multiple of the
    distance of the iterations that no distance makes 0: the strong SIV test of Goff, Kennedy and Tseng, "Practical dependence testing", 1991.
    It needs no context, and most pairs no more than it."""
    step = of_atom(Var(loop.name + OTHER, "i64")) - of_atom(Var(loop.name, "i64"))
    monomial = next(iter(step.terms))
    for constraint in same_place(a, b):
        gap = constraint.linear
        if gap.is_constant:
            if gap.constant:
                return True
            continue
        factor = gap.terms.get(monomial, 0)
        if factor and gap.plus(step, -factor * step.terms[monomial]).is_constant and (gap.constant == 0 or gap.constant % factor):
            return True
    return False


def before(loop: For, context: Context) -> tuple[Constraint, ...]:
    """The loop's iteration comes before the copy's."""
    return _precedes([loop.name], 0, {loop.name: _direction(loop, context)}, 1)


def _direction(loop: For, context: Context) -> int:
    """-1 where the variable of a loop falls."""
    if isinstance(loop.step, Const):
        return -1 if loop.step.value < 0 else 1
    return -1 if context.proves(loop.step < index(0)) else 1


def _before_as_two(loop: For, context: Context) -> list[tuple[Constraint, ...]]:
    """The same for a loop that stands for two, or for a part of one: its body uses ⌊e/d⌋ and e mod d, where e grows with i. The quotient is less
    than the copy's, or they are equal and the remainder is less. Empty for other loops."""
    var, other, known = Var(loop.name, "i64"), Var(loop.name + OTHER, "i64"), context.inside(loop)
    divided = next((n.args for n in loop.unique() if isinstance(n, Op) and n.fn == "floordiv" and _grows_with(n.args[0], n.args[1], loop)), None)
    if divided is None or not known.proves(loop.step > index(0)) or not known.proves(divided[1] > index(0)):
        return []
    copied = substitute(divided, {var: other})
    quotients, remainders = [known.linear(Op(fn, copied)) - known.linear(Op(fn, divided)) for fn in ("floordiv", "mod")]
    return [(Constraint(quotients.shifted(-1)),), (Constraint(quotients, equal=True), Constraint(remainders.shifted(-1)))]


def _grows_with(value: Expr, divisor: Expr, loop: For) -> bool:
    """Does a value grow by a positive constant from iteration to iteration, and is the divisor the same in all?"""
    var, form = Var(loop.name, "i64"), linear(value)
    growth = form.terms.get((var,), 0)
    if growth <= 0 or reads(value) or reads(divisor):
        return False
    others = {n.name for atom in (*form.plus(of_atom(var), -growth).atoms(), divisor) for n in atom.unique() if isinstance(n, Var)}
    return others.isdisjoint([n.name for n in loop.unique() if isinstance(n, For | Let)])


def _precedes(order: list[str], at: int, sign: dict[str, int], towards: int) -> tuple[Constraint, ...]:
    """In this order of loops, the first variable that differs is the one at `at`, and the loop comes before (1) or after (-1) its copy."""
    gaps = [of_atom(Var(n + OTHER, "i64")) - of_atom(Var(n, "i64")) for n in order[:at + 1]]
    return (*[Constraint(g, equal=True) for g in gaps[:-1]], Constraint(gaps[-1].scaled(sign[order[at]] * towards).shifted(-1)))


def clash(pair: tuple[Touch, Touch], loops: str, what: str = "") -> str:
    a, b = pair
    verbs = ["writes" if t.is_write else "reads" for t in (a, b)]
    end = f": they {what}" if what else ""
    return f"one iteration of {loops} {verbs[0]} {a.text}, and a later one {verbs[1]} {b.text}, which may be the same element{end}"
