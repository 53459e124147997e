"""Disjoint accesses: the arrays of which two iterations of a loop never share an element, and those to which they only
accumulate. Found from indices and loop ranges alone, without a proof; `dependence` takes the rest.

An axis separates the iterations of i if every access has an index c·i + r + d there, with the same c, the same
loop-invariant r, and d from a range narrower than |c|: a tile of 8 elements that starts at 8·i. This is the strong SIV
test of Goff, Kennedy and Tseng, "Practical dependence testing", 1991, for blocks of elements.
"""
from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from ..core.expr import Const, Expr, Op, Var
from ..core.node import Node
from .affine import Linear, Monomial, linear
from .context import Context
from .effects import reads, writes
from .statements import Aref, For, If, Incf, Let, Prefetch, Setf, Transpose, Vref

SPAN = 1 << 64                     # smaller differences of indices do not wrap to 0
WIDEST = 1 << 40                   # the greatest range of an inner loop that is used

Span = tuple[int, int]


class Accesses:
    """The accesses of a loop to the arrays that its iterations share. `context`: what is known before the loop."""

    def __init__(self, loop: For, shared: Collection[str], context: Context):
        self.changed = writes(loop)
        self.refs: dict[str, list[Aref | Vref]] = {name: [] for name in shared}
        self.added: dict[str, list[Incf]] = {}
        self.read: set[str] = set()                    # arrays that are also read or set
        self.names = {loop.name}                       # names that vary between iterations
        self.inner: dict[str, Span] = {}               # inner loops with an invariant range
        self.loops: list[For] = []
        self.has_conditions = False
        for node in _nodes(loop):
            match node:
                case Aref(buffer=name) | Vref(buffer=name) if name in self.refs:
                    self.refs[name].append(node)
                case Incf(ref=Aref(buffer=name) | Vref(buffer=name) as ref, value=value):
                    self.added.setdefault(name, []).append(node)
                    self.read |= reads(value).union(*[reads(i) for i in ref.children])
                case Transpose(ref=ref, value=value):
                    self.refs.pop(ref.buffer, None)
                    self.refs.pop(value.buffer, None)
                case Setf(ref=Aref(buffer=name) | Vref(buffer=name)):
                    self.read |= {name, *reads(node)}
                case Let(name=name, value=value):
                    self.names.add(name)
                    self.read |= reads(value)
                case If(cond=cond):
                    self.has_conditions |= not is_bound(cond)
                    self.read |= reads(cond)
                case For(name=name) if node is not loop:
                    self.loops.append(node)
                    self.read |= reads(node.lo) | reads(node.hi) | reads(node.step)
                    self.names.add(name)
                    lo, hi = range_of(node, context)
                    if hi - lo < WIDEST and not reads(node.lo) and not reads(node.hi):     # locals change in the loop
                        self.inner[name] = lo, hi

    def apart(self, var: str, iterations: int, fixed: Collection[str] = ()) -> set[str]:
        """The arrays of which any two iterations over `var`, at most `iterations` apart, touch different elements, for
        all values of the names that are not `fixed`."""
        return {name for name, refs in self.refs.items() if refs and any(
            self._separates(axis, refs, var, iterations, fixed) for axis in range(len(refs[0].index)))}

    def summed(self) -> dict[str, Incf]:
        """The arrays that all statements accumulate into by one operator and at one reference: loop-invariant, or over
        inner loops that are the same in every iteration. Empty if a condition is no bound."""
        if self.has_conditions:
            return {}
        repeated = self._repeated()
        return {name: incf
                for name, incf in self.commuting().items() if all(s.ref is incf.ref for s in self.added[name])
                and all(self._is_same(i, repeated) for i in incf.ref.children if isinstance(i, Expr))}

    def _repeated(self) -> set[str]:
        """The inner loops that take the same values in every iteration."""
        found: set[str] = set()
        for loop in self.loops:                                 # outer loops come first
            bounds = (loop.lo, loop.hi, loop.step)
            if all(self._is_same(e, found) for e in bounds):
                found.add(loop.name)
        return found

    def commuting(self) -> dict[str, Incf]:
        """The arrays that are only accumulated into, by one operator."""
        return {name: incfs[0] for name, incfs in self.added.items()
                if name in self.refs and name not in self.read and len({s.fn for s in incfs}) == 1}

    def _separates(self, axis: int, refs: list[Aref | Vref], var: str, iterations: int, fixed: Collection[str]) -> bool:
        found = [self._moved(ref, axis, var, fixed) for ref in refs]
        first = found[0]
        if first is None:
            return False
        factor, same, _ = first
        spans = [f[2] for f in found if f is not None and f[0] == factor and f[1] == same]
        if len(spans) < len(found):
            return False
        width = max([most for _, most in spans]) - min([least for least, _ in spans])
        return abs(factor) > width and abs(factor) * iterations + width < SPAN

    def _moved(self, ref: Aref | Vref, axis: int, var: str,
               fixed: Collection[str]) -> tuple[int, Mapping[Monomial, int], Span] | None:
        """How an index moves with `var`: its coefficient, the loop-invariant part, and the range of the rest."""
        if len(ref.index) <= axis:
            return None
        form: Linear = linear(ref.index[axis])
        factor, least, most = 0, form.constant, form.constant
        same: dict[Monomial, int] = {}
        for m, k in form.terms.items():
            match m:
                case (Var(name=name),) if name == var:
                    factor = k
                case (Var(name=name),) if name in self.inner and name not in fixed:
                    lo, hi = self.inner[name]
                    least, most = least + min(k * lo, k * hi), most + max(k * lo, k * hi)
                case _ if all(self._is_same(a, fixed) for a in m):
                    same[m] = k
                case _:
                    return None
        if isinstance(ref, Vref) and ref.axis % len(ref.index) == axis:
            most += ref.count - 1
        return (factor, same, (least, most)) if factor else None

    def _is_same(self, expr: Expr, fixed: Collection[str] = ()) -> bool:
        """True if the expression is loop-invariant."""
        moving = [n.name for n in expr.unique() if isinstance(n, Var) and n.name in self.names and n.name not in fixed]
        return not moving and reads(expr).isdisjoint(self.changed)


def is_bound(cond: Expr) -> bool:
    """True if the condition consists of order comparisons only, so that it holds for neighbouring iterations."""
    return isinstance(cond, Op) and (cond.fn in ("lt", "le") or (cond.fn == "and" and all(map(is_bound, cond.args))))


def range_of(loop: For, context: Context) -> Span:
    """The range of a loop variable, from the ranges in its bounds."""
    (least, greatest), (low, high) = [context.interval(context.linear(bound)) for bound in (loop.lo, loop.hi)]
    if isinstance(loop.step, Const):
        return (least, max(high - 1, least)) if loop.step.value > 0 else (min(low + 1, greatest), greatest)
    return min(least, low), max(greatest, high)


def _nodes(loop: For) -> Iterator[Node]:
    """Every distinct node of a loop, without prefetched references."""
    seen: set[Node] = {loop}
    stack: list[Node] = [loop]
    while stack:
        node = stack.pop()
        yield node
        for child in node.ref.children if isinstance(node, Prefetch) else node.children:
            if child not in seen:
                seen.add(child)
                stack.append(child)
