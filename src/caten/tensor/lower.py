"""Lowering of index notation to loop nests: `(tensor …)` -> `(loop …)`.

Every definition becomes a loop nest, in order, in one kernel. A reduce is fused into the compute that reads it:

    accumulate in place    C[i] = C[i] + R[i]     ->  for i, p: C[i] += …
    initialise, then add   C[i] = x + R[i]        ->  for i: C[i] = x;  for i, p: C[i] += …
    (contractions)         C[i] = f(R[i])         ->  for i: C[i] = 0;  for i, p: C[i] += …;  for i: C[i] = f(C[i])
    (contractions)         C[i] = g(C[i]) + R[i]  ->  for i: C[i] = g(C[i]);  for i, p: C[i] += …
    temporary array        C[i] = f(C[i], R[i])   ->  for i, p: T[i] += …;  for i: C[i] = f(C[i], T[i])
    accumulator            C[i] = f(C[i], R[i])   ->  for i: acc = 0; for p: acc += …; C[i] = f(C[i], acc)

Contractions take the temporary array; all other reductions, and those that read C, take a scalar accumulator.
"""
from __future__ import annotations

from collections.abc import Callable

from ..core.expr import TRUE, Expr, Op, Var
from ..core.monoids import identity
from ..core.node import Node, contains, substitute
from ..core.unique_names import Names
from ..loop.statements import ONE, Aref, For, If, Incf, Kernel, Let, Local, LoopProgram, Setf, Stmt
from .values import Axis, Compute, Define, Nest, Read, Reduce, TensorProgram


def lower(program: TensorProgram) -> LoopProgram:
    """Lower a tensor program to the loop level: same parameters and facts, one kernel."""
    lowering = _Lowering(program)
    stmts = tuple(s for d in program.definitions for s in lowering.definition(d))
    clauses = tuple(c for c in program.clauses if not isinstance(c, Define))
    return LoopProgram(program.name, (*clauses, Kernel(_c_name(program.name), stmts)))


def _c_name(name: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in name).lower()


class _Lowering:
    """Keeps names unique: a loop name that is already used gets a number."""

    def __init__(self, program: TensorProgram):
        self.bodies = {d.name: d.value for d in program.definitions if isinstance(d.value, Reduce)}
        self.declared = set(program.buffers)
        taken = {c.declares()[0] for c in program.clauses if hasattr(c, "declares") and not isinstance(c, Define)}
        taken |= {n.name for d in program.definitions if isinstance(d.value, Nest)
                  for n in d.walk() if isinstance(n, (For, Let, Local))}
        self.names = Names(taken)

    def definition(self, d: Define) -> tuple[Stmt, ...]:
        """The statements of one definition; none for a reduce, which is fused into its reader."""
        match d.value:
            case Nest(stmts=stmts):
                return stmts
            case Compute() as value:
                return (*self.declaration(d.name, value), *self.compute(d.name, value))
        return ()

    def declaration(self, name: str, value: Compute) -> tuple[Stmt, ...]:
        """Declare the local array of a value that is no parameter, before its first definition."""
        if name in self.declared:
            return ()
        self.declared.add(name)
        return (Local(name, value.type, tuple(a.hi for a in value.axes), "scratch" if value.axes else "register"),)

    def compute(self, name: str, value: Compute) -> tuple[Stmt, ...]:
        reads = [n for n in value.expr.unique() if isinstance(n, Read) and n.buffer in self.bodies]
        reads.sort(key=lambda r: list(self.bodies).index(r.buffer))
        old = Read(name, tuple(_var(a) for a in value.axes), value.type)
        if len(reads) == 1:
            total, reduce = reads[0], self.bodies[reads[0].buffer]
            changes = name in {n.buffer for n in reduce.unique()
                               if isinstance(n, Read)}        # does the summand read the accumulator?
            in_nests = total.index == old.index and set(reduce.axes) == set(value.axes) and not changes
            if in_nests and reduce.type == value.type:
                if value.expr is Op(reduce.fn, (old, total)):
                    return self._accumulate(name, value, reduce)
                start: Expr = identity(reduce.fn, value.type)
                rest = value.expr
                match value.expr:
                    case Op(fn, (first, second)) if fn == reduce.fn and second is total and not contains(first, total):
                        start, rest = first, total                 # x + R: initialise with x
                untouched = not contains(value.expr, old)
                if untouched and (rest is total or _is_contraction(reduce)):
                    begin = self._loops(value.axes,
                                        lambda place: (Setf(place(name, value.type, value.axes), place.inside(start)),))
                    accumulate = self._accumulate(name, value, reduce)
                    finish = () if rest is total else self._loops(
                        value.axes, lambda place: (Setf(place(name, value.type, value.axes),
                                                        place.inside(substitute(rest, {total: old}))),))
                    return (*begin, *accumulate, *finish)
            if in_nests and _is_contraction(reduce):
                return self._beside(name, value, reduce, total)
        return self._loops(value.axes, lambda place: self._element(name, value, reads, place))

    def _beside(self, name: str, value: Compute, reduce: Reduce, total: Read) -> tuple[Stmt, ...]:
        """A contraction whose reader also reads the array it overwrites: accumulated into it, or into a temporary
        array."""
        old = Read(name, total.index, value.type)
        match value.expr:
            case Op(reduce.fn, (x, last)) if last is total and not contains(x, total) and reduce.type == value.type:
                begin = self._loops(value.axes,
                                    lambda place: (Setf(place(name, value.type, value.axes), place.inside(x)),))
                return (*begin, *self._accumulate(name, value, reduce))
        apart = Compute(reduce.type, value.axes, old)
        own = self.names.fresh(total.buffer)
        zero = self._loops(value.axes,
                           lambda place: (Setf(place(own, reduce.type, value.axes), identity(reduce.fn, reduce.type)),))
        finish = substitute(value.expr, {total: Read(own, total.index, reduce.type)})
        end = self._loops(value.axes, lambda place: (Setf(place(name, value.type, value.axes), place.inside(finish)),))
        return (*self.declaration(own, apart), *zero, *self._accumulate(own, value, reduce, reduce.type), *end)

    def _element(self, name: str, value: Compute, reads: list[Read], place: _Bindings) -> tuple[Stmt, ...]:
        """One element: each reduce into a scalar accumulator, then the expression."""
        stmts: list[Stmt] = []
        totals: dict[Node, Node] = {}
        for read in reads:
            reduce = self.bodies[read.buffer]
            acc = Aref(self.names.fresh(read.buffer), (), reduce.type)
            totals[read] = acc
            inside = place.extended({a.name: i
                                     for a, i in zip(reduce.axes, [place.inside(i) for i in read.index], strict=True)})
            stmts += [Local(acc.buffer, reduce.type, (), "register"), Setf(acc, identity(reduce.fn, reduce.type))]
            stmts += self._over(reduce, inside, acc)
        return (*stmts, Setf(place(name, value.type, value.axes), place.inside(substitute(value.expr, totals))))

    def _accumulate(self, name: str, value: Compute, reduce: Reduce, dtype: str = "") -> tuple[Stmt, ...]:
        return self._loops(value.axes,
                           lambda place: self._over(reduce, place, place(name, dtype or value.type, value.axes)))

    def _over(self, reduce: Reduce, place: _Bindings, target: Aref) -> tuple[Stmt, ...]:
        """The loops over the reduced axes around one accumulation."""
        def leaf(inner: _Bindings) -> tuple[Stmt, ...]:
            add = Incf(target, inner.inside(reduce.expr), reduce.fn)
            return (add,) if reduce.cond is TRUE else (If(inner.inside(reduce.cond), (add,)),)
        return self._loops(reduce.over, leaf, place)

    def _loops(self, axes: tuple[Axis, ...], body: Callable[[_Bindings], tuple[Stmt, ...]],
               place: _Bindings | None = None) -> tuple[Stmt, ...]:
        """Serial loops over `axes`, outermost first, around the statements that `body` makes."""
        place = place or _Bindings({})
        if not axes:
            return body(place)
        axis, rest = axes[0], axes[1:]
        name = self.names.fresh(axis.name)
        inner = place.extended({axis.name: Var(name, "i64")})
        return (For(name, place.inside(axis.lo), place.inside(axis.hi), ONE, "serial", self._loops(rest, body, inner)),)


class _Bindings:
    """The loop variables that stand for axis names at a point of the nest."""

    def __init__(self, names: dict[str, Expr]):
        self.names = names

    def extended(self, names: dict[str, Expr]) -> _Bindings:
        return _Bindings(self.names | names)

    def inside(self, e: Expr) -> Expr:
        """A tensor-level expression in terms of these loop variables."""
        def go(n: Expr) -> Expr:
            if isinstance(n, Var) and n.name in self.names:
                return self.names[n.name]
            if isinstance(n, Read):
                return Aref(n.buffer, tuple(go(i) for i in n.index), n.type)
            new: Expr = n.map(go)
            return new
        return go(e)

    def __call__(self, buffer: str, dtype: str, axes: tuple[Axis, ...]) -> Aref:
        """The element of `buffer` at these axes."""
        return Aref(buffer, tuple(self.inside(_var(a)) for a in axes), dtype)


def _var(axis: Axis) -> Var:
    return Var(axis.name, "i64")


def _is_contraction(reduce: Reduce) -> bool:
    """True for a sum of products whose two factors each vary along an axis that the other does not: worth tiling."""
    match reduce.expr:
        case Op("mul", (a, b)) if reduce.fn == "add":
            axes = {x.name for x in reduce.axes}
            in_a, in_b = ({n.name for n in e.unique() if isinstance(n, Var)} & axes for e in (a, b))
            return bool(in_a - in_b) and bool(in_b - in_a)
    return False
