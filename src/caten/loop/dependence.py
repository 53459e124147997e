"""Dependence analysis: may a loop run in parallel, in lockstep, permuted, split (fission) or merged (fusion)? If not,
which two accesses forbid it?

A dependence is a pair of accesses to one element, at least one of them a write, in two different iterations. Its
existence is a question of integer feasibility: a renamed copy of the loop stands for the second iteration, and the
context of both must exclude the pair. Accumulations by the same operator commute.
"""
from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from ..core.expr import Const, Expr, Op, Var, index
from ..core.node import substitute
from ..core.program import Program
from ..errors import error
from .access_pairs import OTHER, Touch, commute, pairs, same_place, shared_arrays
from .affine import canonical, linear, of_atom, text_of
from .block_accesses import arrays_in_disjoint_blocks
from .context import Context
from .disjoint_accesses import Accesses, range_of
from .effects import loop_names, reads, writes, written
from .integer_sets import Constraint
from .simplify import statement_field
from .statements import Fail, For, If, Let, Local, Stmt


def obstacle_to_parallel(program: Program, loop_name: str) -> str | None:
    """Why iterations may not run concurrently and in any order; None if they may."""
    return obstacle_to_any_order(*find_loop(program, loop_name))[0]


def obstacle_to_any_order(loop: For, context: Context) -> tuple[str | None, bool]:
    """Why iterations may not run concurrently or in lockstep (None if they may), and whether the loop is a
    reduction."""
    if any(isinstance(n, Fail) for n in loop.unique()):
        return f"the loop over {loop.name} contains a check that may end the call", False
    strict, commuting = _carried(loop, context)
    if strict is not None:
        return clash(strict, loop.name), False
    if commuting is not None:
        return f"the loop over {loop.name} is a reduction: every iteration accumulates into {commuting[0].text}", True
    return None, False


def carried_dependence(loop: For, context: Context) -> str | None:
    """Two accesses of a loop-carried dependence, accumulations included; None if there is none."""
    strict, commuting = _carried(loop, context)
    pair = strict or commuting
    return None if pair is None else clash(pair, loop.name)


def is_reduction_over(program: Program, loop_name: str) -> bool:
    """True if its iterations share nothing but accumulations by one operator."""
    return obstacle_to_any_order(*find_loop(program, loop_name))[1]


def obstacle_to_permutation(loop: For, context: Context, old: list[str], new: list[str]) -> str | None:
    """Why the perfect nest that starts at `loop` may not have its loops in the order `new` (loop interchange)."""
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
    separate = [strided.apart(n.name, _most_iterations(n, outside), old[:at])        # by the first loop that differs
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
    """The context before each loop of a perfect nest."""
    for loop in nest:
        yield context
        context = context.inside(loop)


def obstacle_to_fission(program: Program, loop_name: str, at: int) -> str | None:
    """Why the loop may not be split (fission) before statement `at` of its body; None if it may."""
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
    """Why the loop over `second` may not be merged into the loop over `first` before it (fusion); None if it may."""
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
    """The loop of that name and the context before it. Raises CatenError E410 if there is none."""
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
    """A pair that forbids reordering the iterations, and a pair that only accumulates; None where there is none."""
    commuting: tuple[Touch, Touch] | None = None

    def skipped(a: Touch, b: Touch) -> bool:
        return siv_test_separates(loop, a, b) or (commuting is not None and commute(a, b))

    shared = shared_arrays(loop)
    strided = Accesses(loop, shared, context)
    summed = strided.summed() if _runs_often(loop) else {}
    shared -= strided.apart(loop.name, _most_iterations(loop, context)) | summed.keys()
    for incf in summed.values():
        name: str = incf.ref.buffer
        place = Touch(name, text_of(incf.ref), True, incf.fn, (), context, 0)
        commuting = commuting or (place, place)
    shared -= arrays_in_disjoint_blocks(loop, context, shared)
    if not shared:
        return None, commuting
    order, cases = before(loop, context), _before_as_two(loop, context)
    for a, b, both in pairs(loop, context, skipped, by_statement=False, shared=shared):
        if (not are_disjoint(loop, a, b, both, order)
            and not (cases and all(are_disjoint(loop, a, b, both, (*order, *case)) for case in cases))):
            if not commute(a, b):
                return (a, b), commuting
            commuting = commuting or (a, b)
    return None, commuting


def _runs_often(loop: For) -> bool:
    """True unless the loop has at most one iteration by its constant bounds."""
    return not (isinstance(loop.lo, Const) and isinstance(loop.hi, Const) and abs(loop.hi.value - loop.lo.value) <= 1)


def _most_iterations(loop: For, context: Context) -> int:
    """The greatest distance between two values of the loop variable."""
    least, most = range_of(loop, context)
    return most - least


def are_disjoint(loop: For, a: Touch, b: Touch, both: Context, order: tuple[Constraint, ...]) -> bool:
    """True if the accesses touch different elements in all iterations in that order. One axis that moves with the loop
    is tried first: a smaller question."""
    axes, var = same_place(a, b), Var(loop.name, "i64")
    moving = [c for c in axes if len(axes) > 1 and any(atom is var for atom in c.linear.atoms())]
    return any(both.excludes((c, *order)) for c in moving) or both.excludes((*axes, *order))


def siv_test_separates(loop: For, a: Touch, b: Touch) -> bool:
    """True if one axis alone separates two different iterations: its indices differ by a constant, or by a multiple of
    the iteration distance that is never 0. The strong SIV test of Goff, Kennedy and Tseng, "Practical dependence
    testing", 1991. It needs no context and settles most pairs."""
    step = of_atom(Var(loop.name + OTHER, "i64")) - of_atom(Var(loop.name, "i64"))
    monomial = next(iter(step.terms))
    for constraint in same_place(a, b):
        gap = constraint.linear
        if gap.is_constant:
            if gap.constant:
                return True
            continue
        factor = gap.terms.get(monomial, 0)
        if (factor and gap.plus(step, -factor * step.terms[monomial]).is_constant
            and (gap.constant == 0 or gap.constant % factor)):
            return True
    return False


def before(loop: For, context: Context) -> tuple[Constraint, ...]:
    """The constraints that the loop's iteration comes before the copy's."""
    return _precedes([loop.name], 0, {loop.name: _direction(loop, context)}, 1)


def _direction(loop: For, context: Context) -> int:
    """-1 for a loop that counts down, else 1."""
    if isinstance(loop.step, Const):
        return -1 if loop.step.value < 0 else 1
    return -1 if context.proves(loop.step < index(0)) else 1


def _before_as_two(loop: For, context: Context) -> list[tuple[Constraint, ...]]:
    """The same for a loop that was fused or split, whose body uses ⌊e/d⌋ and e mod d where e grows with i: the quotient
    is less than the copy's, or the quotients are equal and the remainder is less. Empty for other loops."""
    var, other, known = Var(loop.name, "i64"), Var(loop.name + OTHER, "i64"), context.inside(loop)
    divided = next((n.args for n in loop.unique()
                    if isinstance(n, Op) and n.fn == "floordiv" and _grows_with(n.args[0], n.args[1], loop)), None)
    if divided is None or not known.proves(loop.step > index(0)) or not known.proves(divided[1] > index(0)):
        return []
    copied = substitute(divided, {var: other})
    quotients, remainders = [known.linear(Op(fn, copied)) - known.linear(Op(fn, divided)) for fn in ("floordiv", "mod")]
    return [(Constraint(quotients.shifted(-1)),), (Constraint(quotients, equal=True),
                                                   Constraint(remainders.shifted(-1)))]


def _grows_with(value: Expr, divisor: Expr, loop: For) -> bool:
    """True if the value grows by a positive constant per iteration and the divisor is loop-invariant."""
    var, form = Var(loop.name, "i64"), linear(value)
    growth = form.terms.get((var,), 0)
    if growth <= 0 or reads(value) or reads(divisor):
        return False
    others = {n.name for atom in (*form.plus(of_atom(var), -growth).atoms(), divisor)
              for n in atom.unique() if isinstance(n, Var)}
    return others.isdisjoint([n.name for n in loop.unique() if isinstance(n, For | Let)])


def _precedes(order: list[str], at: int, sign: dict[str, int], towards: int) -> tuple[Constraint, ...]:
    """The first variable that differs in this loop order is the one at `at`; the loop comes before (1) or after (-1)
    its copy."""
    gaps = [of_atom(Var(n + OTHER, "i64")) - of_atom(Var(n, "i64")) for n in order[:at + 1]]
    return (*[Constraint(g, equal=True) for g in gaps[:-1]],
            Constraint(gaps[-1].scaled(sign[order[at]] * towards).shifted(-1)))


def clash(pair: tuple[Touch, Touch], loops: str, what: str = "") -> str:
    """The message that names the two accesses of a dependence."""
    a, b = pair
    verbs = ["writes" if t.is_write else "reads" for t in (a, b)]
    end = f": they {what}" if what else ""
    return (f"one iteration of {loops} {verbs[0]} {a.text}, and a later one {verbs[1]} {b.text}, "
            f"which may be the same element{end}")
