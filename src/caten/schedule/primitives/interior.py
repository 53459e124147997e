"""interior: split a loop into the iterations in which all conditions hold, and those before and after them."""
from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Any

from ...core.expr import FALSE, TRUE, Expr, Op, Var, index
from ...core.node import Node
from ...core.unique_names import Names
from ...frozen import frozen
from ...loop.accesses import LANE, conjuncts, lane_of, stride_in
from ...loop.affine import canonical
from ...loop.context import Context
from ...loop.statements import For, If, Incf, Let, LoopProgram, Setf, Splat, Stmt, Vref, is_const
from ..analysis.guards import end_of, throughout
from ..analysis.loop_queries import context_at, find, mentions, reads_memory, refusal, replaced
from ..loop_names import copied, with_value
from ..normalize import tidied
from ..step_results import Around, arrays_of, loops_of

MARKS = ("serial", "unroll", "parallel")
FAILS = {"lt": "le", "le": "lt"}                                    # not a < b is b <= a


@frozen
class Edge:
    """Where a condition changes. `rises`: it holds in all iterations from `holds` on, and in none before `fails`.
    Otherwise it holds in all before `holds`, and in none from `fails` on (None: that is unknown)."""

    rises: bool
    holds: Expr
    fails: Expr | None


def interior(program: LoopProgram, loop: str, before: str = "b", after: str = "e") -> tuple[LoopProgram, Around]:
    """Split a loop in three (index-set splitting): the iterations in which all conditions hold that hold from some
    iteration on, or up to some, and which lose them, and those before and after. Conditions are those of `if` and
    `where`, and masks, linear in the loop; of a vector, all lanes must hold. Iterations that do nothing, since a
    condition fails in all lanes, are left out. Names in the other parts end in `b` and `e`, or in the NAMEs given.

        (interior p)                                     (for pb (max 0 (- i N -1)) (min K …) 1 serial …)
        (for p 0 K 1 serial                              (for p (max 0 (- i N -8)) (min K (+ i 1)) 1 serial
          (setf (vref w 8 (0)) (where           ->         (incf (vref w 8 (0)) (* (vref x 8 ((- i p))) …)))
            (and (<= 0 (ramp 8 (- i p) 1)) …)            (for pe (max (+ i 1) …) (min K (+ i 8)) 1 serial …)
            (+ (vref w 8 (0)) …) (vref w 8 (0)))))

    Use it for the sums of convolutions with padding, after `vectorize`: most tiles then have no masks at all.
    """
    step = f"interior {loop}"
    found = find(program, loop, step)
    if found.mark not in MARKS:
        raise refusal("E541", step, f"it is bound to the {found.mark}", "take it before bind")
    if not is_const(found.step, 1):
        raise refusal("E541", step, f"it counts in steps of {found.step}")
    edges = dict(_edges(found, found.body, ()))
    if not edges:
        raise refusal("E541", step, "no condition in it holds from or up to an iteration that is known before the loop",
                      "the conditions of padding do")
    context, names = context_at(program, found), Names.of(program)
    lo, hi = _idle_ends(found, edges)
    start = _extreme("max", [found.lo, *[e.holds for e in edges.values() if e.rises]], context)
    end = _extreme("min", [found.hi, *[e.holds for e in edges.values() if not e.rises]], context)
    if context.proves(Op("le", (end, start))):
        raise refusal("E541", step, "its conditions hold in no iteration together")
    middle = found.replace(lo=start, hi=end, body=_without(found.body, frozenset(edges)))
    sides = [(before, [found.lo, *lo], [start, found.hi]), (after, [start, end], [found.hi, *hi])]
    made: list[Stmt] = [middle]
    new: dict[str, str] = {}
    for rises, (ending, first, last) in zip((True, False), sides, strict=True):
        since, until = _extreme("max", first, context), _extreme("min", last, context)
        if any(e.rises is rises for e in edges.values()) and not context.proves(Op("le", (until, since))):
            made.insert(0 if rises else len(made), _copy(found, since, until, ending, names, new))
    parts = tidied(tuple(made))
    result = replaced(program, found, *parts)
    return result, Around(tuple(loops_of(new, parts).values()), arrays_of(new.values(), result))


def _copy(found: For, lo: Expr, hi: Expr, ending: str, names: Names, new: dict[str, str]) -> For:
    """A copy of the loop for other iterations."""
    body, renamed = copied(found.body, ending, names)
    made = For(names.fresh(found.name + ending), lo, hi, found.step, found.mark, ())
    new |= {made.name: made.name, **{inner: inner for inner in renamed.values()}}
    return made.replace(body=with_value(body, found, Var(made.name, "i64")))


def _extreme(fn: str, bounds: list[Expr], context: Context) -> Expr:
    """The least or greatest of some bounds, but for those that are proven to be none."""
    kept: list[Expr] = []
    for bound in dict.fromkeys(bounds):
        beyond = [Op("le", (other, bound) if fn == "min" else (bound, other)) for other in kept]
        if any(context.proves(cond) for cond in beyond):
            continue
        kept = [k for k in kept if not context.proves(Op("le", (bound, k) if fn == "min" else (k, bound)))]
        kept.append(bound)
    return canonical(reduce(lambda a, b: Op(fn, (a, b)), kept))


def _edges(found: For, stmts: tuple[Stmt, ...], inner: tuple[For, ...]) -> Iterator[tuple[Expr, Edge]]:
    """The comparisons that are to hold in the loop, each with where it changes. `inner`: the loops around it."""
    local = [n.name for n in found.unique() if isinstance(n, Let | For)]       # what has no value before the loop
    for stmt in stmts:
        for cond in _conditions(stmt):
            for part in map(_comparison, conjuncts(cond)):
                edge = _edge(part, found.name, inner)
                if edge is not None and not any(mentions(end, local) for end in (edge.holds, edge.fails) if end):
                    yield part, edge
        match stmt:
            case For():
                yield from _edges(found, stmt.body, (*inner, stmt))
            case If():
                yield from _edges(found, stmt.then, inner)
                yield from _edges(found, stmt.otherwise, inner)


def _conditions(stmt: Stmt) -> Iterator[Expr]:
    """What is to hold in the interior for a statement's own expressions: the conditions under which something is read,
    or computed, instead of a constant."""
    for child in stmt.children:
        for n in child.unique() if isinstance(child, Expr) else ():
            match n:
                case Op("where", (cond, yes, _)):
                    yield Op("not", (cond,)) if not yes.variables and not reads_memory(yes) else cond
                case Vref(mask=Expr() as cond):
                    yield cond
    if isinstance(stmt, If):
        yield stmt.cond


def _comparison(cond: Expr) -> Expr:
    """A condition without `not` and the `splat` of a scalar, where it is the opposite of a comparison, or its splat."""
    match cond:
        case Splat(_, arg):
            return _comparison(arg)
        case Op("not", (arg,)):
            match _comparison(arg):
                case Op("lt" | "le" as fn, (a, b)):
                    return Op(FAILS[fn], (b, a))
    return cond


def _edge(cond: Expr, name: str, inner: tuple[For, ...]) -> Edge | None:
    """Where a condition changes in the loop `name`; None if it is not linear in it, or reads memory."""
    part = lane_of(cond)
    if not isinstance(part, Op) or part.fn not in FAILS or part.args[0].dtype != "i64" or reads_memory(part) or (
            not mentions(part, (name,))):
        return None
    loops = [*inner, For(LANE.name, index(0), index(cond.lanes), index(1), "serial", ())]
    a, b = part.args
    always, never = [throughout((c,), loops) for c in (part, Op(FAILS[part.fn], (b, a)))]
    stride = stride_in(a - b, name)
    if always is None or not stride:
        return None
    at, until = (end_of, _start_of) if stride > 0 else (_start_of, end_of)
    holds = at(always, name)
    return None if holds is None else Edge(stride < 0, holds, None if never is None else until(never, name))


def _start_of(cond: Expr, name: str) -> Expr | None:
    """The iteration from which on a condition holds: that up to which its opposite does."""
    match cond:
        case Op(fn="lt" | "le" as fn, args=(a, b)):
            return end_of(Op(FAILS[fn], (b, a)), name)
    return None


def _idle_ends(found: For, edges: dict[Expr, Edge]) -> tuple[list[Expr], list[Expr]]:
    """The bounds within which the loop does something: where each of its statements does nothing as soon as one of the
    same conditions fails."""
    always = reduce(frozenset.intersection, map(_needed, _leaves(found.body)))
    ends = [(edge.rises, edge.fails) for part, edge in edges.items() if part in always and edge.fails is not None]
    return [end for rises, end in ends if rises], [end for rises, end in ends if not rises]


def _leaves(stmts: tuple[Stmt, ...]) -> Iterator[Stmt]:
    for stmt in stmts:
        if isinstance(stmt, For):
            yield from _leaves(stmt.body)
        else:
            yield stmt


def _needed(stmt: Stmt) -> frozenset[Expr]:
    """The conditions without any of which a statement does nothing."""
    match stmt:
        case If(cond=cond, otherwise=()):
            return frozenset(map(_comparison, conjuncts(cond)))
        case Setf(ref, Op("where", (cond, _, other))) if other == ref:
            return frozenset(map(_comparison, conjuncts(cond)))
    return frozenset()


def _without(stmts: tuple[Stmt, ...], known: frozenset[Expr]) -> tuple[Stmt, ...]:
    """The statements where these comparisons hold."""
    memo: dict[Node, Any] = {}

    def left(cond: Expr) -> Expr:
        """What is left of a condition."""
        kept = [part for part in conjuncts(cond) if _comparison(part) not in known]
        if any(_comparison(Op("not", (part,))) in known for part in kept):
            return FALSE
        return reduce(lambda a, b: Op("and", (a, b)), kept) if kept else TRUE

    def go(node: Node) -> Any:
        if node not in memo:
            memo[node] = made(node)
        return memo[node]

    def made(node: Node) -> Any:
        match node:
            case Op("where", (cond, yes, no)) if (rest := left(cond)) is not cond:
                if rest in (TRUE, FALSE):
                    return go(yes if rest is TRUE else no)
                return Op("where", (rest, go(yes), go(no)))
            case Vref(mask=Expr() as cond) if (rest := left(cond)) is not cond and rest is not FALSE:
                return go(node.replace(mask=None if rest is TRUE else rest))
            case If(cond=cond) if (rest := left(cond)) is not cond:
                return go(node.replace(cond=rest))
        out = node.map(go)
        match out:
            case Setf(ref, Op("add", (first, value))) if first == ref and out is not node:
                return Incf(ref, value)
        return out
    return tuple([go(stmt) for stmt in stmts])
