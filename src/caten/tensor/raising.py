"""Raising of loop nests to index notation: `(op …)` -> `(tensor …)`.

A perfect nest around straight-line statements is executed symbolically: the final value of each array becomes a
`compute`, each accumulation over inner loops a `reduce`. Everything else (sequential semantics, local arrays, computed
steps, run-time checks) stays a `nest`. At -O0 nothing is raised.

    (for i 0 M (for j 0 N (for p 0 K (incf (aref C i j) (* (aref A i p) (aref B p j))))))
->  (define C_add (reduce f32 ((i 0 M) (j 0 N)) ((p 0 K)) add true (* (read A i p) (read B p j))))
    (define C (compute f32 ((i 0 M) (j 0 N)) (+ (read C i j) (read C_add i j))))
"""
from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, islice

from ..core.expr import TRUE, Cast, Const, Expr, Op, Var
from ..core.monoids import identity, is_monoid
from ..core.node import Node
from ..core.unique_names import Names
from ..frontend.op import Body, OpProgram
from ..loop import constant_folding
from ..loop.effects import writes
from ..loop.statements import ONE, ZERO, Aref, For, If, Incf, Let, Local, Setf, Stmt
from .values import Axis, Compute, Define, Nest, Read, Reduce, TensorProgram

MAX_TERMS = 200        # larger expressions (written out) stay a nest


class DoesNotFit(Exception):
    """This nest has no index notation, so it stays a nest. Never leaves this module."""


def raise_op(op: OpProgram, as_written: bool = False) -> TensorProgram:
    """Raise an operator to the tensor level. Every statement of the body is in exactly one definition, in order.
    `as_written`: raise nothing, as at -O0."""
    as_written = as_written or op.opt == 0
    names = Names.of(op)
    clauses = tuple(c for c in op.clauses if not isinstance(c, Body))
    definitions: list[Define] = []
    for group in [op.body] if as_written else _groups(op.body):
        try:
            if as_written:
                raise DoesNotFit
            definitions += _Raiser(group, names).definitions()
        except DoesNotFit:
            outs = _written(group)
            definitions.append(Define(names.fresh(f"{outs[0] if outs else op.name}_nest"), Nest(group, outs)))
    return TensorProgram(op.name, (*clauses, *_without_dead(definitions)))


def _groups(stmts: tuple[Stmt, ...]) -> list[tuple[Stmt, ...]]:
    """Group statements into nests: one each, but all that follow a scalar, a name or a check stay together, as they may
    depend on it. A local array that is filled before any other use is declared by its first definition."""
    groups: list[tuple[Stmt, ...]] = []
    for n, s in enumerate(stmts):
        if isinstance(s, Local) and s.shape and _is_filled(s, stmts[n + 1:]):
            continue
        if isinstance(s, (Local, Let, If)):
            return [*groups, stmts[n:]]
        groups.append((s,))
    return groups


def _is_filled(local: Local, rest: tuple[Stmt, ...]) -> bool:
    """True if the next statement that accesses the array is a perfect nest that sets every element."""
    for s in rest:
        if isinstance(s, Local) and s.shape:
            continue
        loops: list[For] = []
        body: tuple[Stmt, ...] = (s,)
        while len(body) == 1 and isinstance(body[0], For):
            loops.append(body[0])
            body = body[0].body
        if local.name not in {n.buffer for n in s.walk() if isinstance(n, Aref)}:
            continue
        place = Aref(local.name, tuple(Var(x.name, "i64") for x in loops), local.type)
        return (len(body) == 1 and isinstance(body[0], Setf) and body[0].ref is place
                and all(x.lo is ZERO and x.step is ONE and x.hi is e for x, e in zip(loops, local.shape, strict=True)))
    return False


def _without_dead(definitions: list[Define]) -> list[Define]:
    """Dead code elimination: drop computes that a later one replaces before any read. Works backwards."""
    kept: list[Define] = []
    later: dict[str, Define | None] = {}           # name -> its next definition, None if it is read before
    for d in reversed(definitions):
        by = later.get(d.name)
        if not (isinstance(d.value, Compute) and by is not None and _has_axes_of(by, d.value)):
            kept.append(d)
        later[d.name] = d
        later.update(dict.fromkeys([n.buffer for n in d.value.unique() if isinstance(n, Read | Aref)]))
    return kept[::-1]


def _has_axes_of(d: Define, value: Compute) -> bool:
    return isinstance(d.value, Compute) and [(a.lo, a.hi) for a in d.value.axes] == [(a.lo, a.hi) for a in value.axes]


def _written(stmts: tuple[Stmt, ...]) -> tuple[str, ...]:
    """The arrays that statements write and do not declare, in order of first appearance."""
    nodes = [n for s in stmts for n in s.walk()]
    locals_ = {n.name for n in nodes if isinstance(n, Local)}
    return tuple(dict.fromkeys(name for n in nodes if isinstance(n, (Setf, Incf)) for name in writes(n) - locals_))


class _Raiser:
    """Symbolic execution of one nest: the value of each element as an expression over the arrays from before."""

    def __init__(self, group: tuple[Stmt, ...], names: Names):
        if len(group) != 1 or not isinstance(group[0], (For, Setf, Incf)):
            raise DoesNotFit
        self.names = names
        self.axes: dict[str, Axis] = {}
        self.locals: dict[str, Expr | None] = {}                   # scalar local -> its value (None: not set yet)
        self.lets: dict[str, Expr] = {}                            # `let` name -> its value
        self.places: dict[str, tuple[Aref, Expr]] = {}             # array -> its only element in use, and its value
        self.reduces: list[Define] = []
        self.written = _written(group)
        touched = [n for n in group[0].walk() if isinstance(n, Aref) and n.buffer in self.written]
        if len({n.buffer for n in touched}) != len(set(touched)):
            raise DoesNotFit       # loop-carried dependence
        loops, body = self._descend(group)
        leaf = body[0]
        if len(body) == 1 and isinstance(leaf, If) and not leaf.otherwise and len(leaf.then) == 1:
            leaf = leaf.then[0]
        self.over_outside = tuple[For, ...]()
        if len(body) == 1 and isinstance(leaf, Incf) and isinstance(leaf.ref, Aref) and not self.locals:
            indexing = {v for i in leaf.ref.index for v in i.variables}
            self.over_outside = tuple(x for x in loops if x.name not in indexing)
            loops = [x for x in loops if x.name in indexing]
        self.axes = {x.name: Axis(x.name, x.lo, x.hi) for x in loops}
        reduced = {x.name for x in self.over_outside}
        if any(b.variables & reduced for a in self.axes.values() for b in (a.lo, a.hi)):
            raise DoesNotFit
        self.body = body

    def _descend(self, body: tuple[Stmt, ...]) -> tuple[list[For], tuple[Stmt, ...]]:
        """The loops down to the innermost body, past scalars and names set on the way."""
        loops: list[For] = []
        while isinstance(body[-1], For) and all(isinstance(s, (Local, Let, Setf)) for s in body[:-1]):
            if not loops and len(body) > 1:
                raise DoesNotFit
            prefix = [s.name for s in body if isinstance(s, Local)]
            if any(isinstance(s, Setf) and not (isinstance(s.ref, Aref) and s.ref.buffer in prefix) for s in body[:-1]):
                break  # not a perfect nest: an array is set before the loop
            if any(isinstance(n, (Setf, Incf)) and isinstance(n.ref, Aref) and n.ref.buffer in prefix
                   for n in body[-1].walk()):
                break  # the loop carries the scalar: an accumulator
            for s in body[:-1]:
                self._execute(s)
            loop = _plain(body[-1])
            loops.append(loop.replace(lo=self._value(loop.lo), hi=self._value(loop.hi)))
            body = body[-1].body
            if not body:
                raise DoesNotFit
        return loops, body

    def definitions(self) -> list[Define]:
        """The definitions of this nest. Raises DoesNotFit."""
        stores = [n.ref for s in self.body for n in s.walk() if isinstance(n, (Setf, Incf))]
        for ref in stores:
            if not isinstance(ref, Aref):
                raise DoesNotFit
        if self.over_outside:
            self._accumulate(self.over_outside, self.body)
        else:
            for s in self.body:
                self._execute(s)
        results: list[Define] = []
        for name, (ref, value) in self.places.items():
            if any(isinstance(n, Read) and n.buffer in {d.name for d in results} for n in self._inlined(value)):
                raise DoesNotFit               # it would read an element that this nest has overwritten
            results.append(Define(name, Compute(ref.dtype, self._axes_of(ref), value)))
        if not results:
            raise DoesNotFit
        definitions = self.reduces + results
        written_out = chain.from_iterable(d.walk() for d in definitions)
        if next(islice(written_out, MAX_TERMS, None), None) is not None:
            raise DoesNotFit
        return definitions

    def _inlined(self, value: Expr) -> Iterable[Node]:
        bodies = {d.name: d.value for d in self.reduces}
        for n in value.unique():
            yield n
            if isinstance(n, Read) and n.buffer in bodies:
                yield from bodies[n.buffer].unique()

    def _axes_of(self, ref: Aref) -> tuple[Axis, ...]:
        """The axes of an element whose indices are the loop variables, each exactly once."""
        names = [i.name if isinstance(i, Var) else "" for i in ref.index]
        if sorted(names) != sorted(self.axes):
            raise DoesNotFit
        axes = [self.axes[n] for n in names]
        for n, a in enumerate(axes):  # bounds depend on outer axes only
            later = {b.name for b in axes[n:]}
            if (a.lo.variables | a.hi.variables) & later:
                raise DoesNotFit
        return tuple(axes)

    def _execute(self, s: Stmt) -> None:
        match s:
            case Local(name, _, (), _):
                self.locals[name] = None
            case Let(name, _, value):
                self.lets[name] = self._value(value)
                if self.lets[name].written_out > MAX_TERMS:
                    raise DoesNotFit  # grows exponentially
            case Setf(Aref() as ref, value):
                self._assign(ref, self._value(value))
            case Incf(Aref() as ref, value, fn):
                self._assign(ref, Op(fn, (self._now(ref), self._value(value))))
            case If(cond, (Setf(Aref() as ref, a),), (Setf(other, b),)) if other is ref:
                self._assign(ref, Op("where", (self._value(cond), self._value(a), self._value(b))))
            case For():
                inner: list[For] = []
                body: tuple[Stmt, ...] = (s,)
                while len(body) == 1 and isinstance(body[0], For):
                    inner.append(_plain(body[0]))
                    body = body[0].body
                self._accumulate(tuple(inner), body)
            case _:
                raise DoesNotFit

    def _accumulate(self, loops: tuple[For, ...], body: tuple[Stmt, ...]) -> None:
        """Loops around accumulations only, possibly under a condition and with scalars of their own: a reduce each."""
        over = tuple(Axis(x.name, self._value(x.lo), self._value(x.hi)) for x in loops)
        own: list[str] = []
        for s in body:
            match s:
                case Local(name, _, (), _):
                    own.append(name)
                    self._execute(s)
                case Let():
                    self._execute(s)
                case Setf(Aref(buffer, ()), _) if buffer in own:
                    self._execute(s)
                case Incf(Aref() as ref, value, fn) if ref.buffer not in own:
                    self._reduce(over, TRUE, ref, value, fn, body)
                case If(cond, then, ()) if all(isinstance(t, Incf) and isinstance(t.ref, Aref)
                                               and t.ref.buffer not in own for t in then):
                    for t in then:
                        assert isinstance(t, Incf)
                        assert isinstance(t.ref, Aref)
                        self._reduce(over, self._value(cond), t.ref, t.value, t.fn, body)
                case _:
                    raise DoesNotFit
        for name in own:
            del self.locals[name]

    def _reduce(self, over: tuple[Axis, ...], cond: Expr, ref: Aref, value: Expr, fn: str,
                body: tuple[Stmt, ...]) -> None:
        """One accumulation: the previous value of the element, combined with a reduce."""
        uses = [n for s in body for n in s.walk() if isinstance(n, Aref) and n is ref]
        if not is_monoid(fn, ref.dtype) or len(uses) != 1:
            raise DoesNotFit  # reads its own sum, or accumulated twice
        axes = tuple(self.axes.values()) if ref.buffer in self.locals else self._axes_of(ref)
        name = self.names.fresh(f"{ref.buffer}_{fn}")
        self.reduces.append(Define(name, Reduce(ref.dtype, axes, over, fn, cond, self._value(value))))
        total = Read(name, tuple(Var(a.name, "i64") for a in axes), ref.dtype)
        now = self._now(ref)
        self._assign(ref, total if now is identity(fn, ref.dtype) else Op(fn, (now, total)))

    def _assign(self, ref: Aref, value: Expr) -> None:
        if ref.buffer in self.locals:
            self.locals[ref.buffer] = value
        else:
            self._now(ref)
            self.places[ref.buffer] = (ref, value)

    def _now(self, ref: Aref) -> Expr:
        """The current value of a written element."""
        if ref.buffer in self.locals:
            value = self.locals[ref.buffer]
            if value is None or ref.index:
                raise DoesNotFit
            return value
        if ref.buffer in self.places:
            known, value = self.places[ref.buffer]
            if known is not ref:
                raise DoesNotFit
            return value
        self._axes_of(ref)
        return Read(ref.buffer, ref.index, ref.dtype)

    def _value(self, e: Expr) -> Expr:
        """The expression with every read replaced by the current value."""
        if isinstance(e, Var) and e.name in self.lets:
            return self.lets[e.name]
        if isinstance(e, Aref):
            if e.buffer in self.locals or e.buffer in self.written:
                return self._now(e)
            return Read(e.buffer, tuple(self._value(i) for i in e.index), e.dtype)
        new: Expr = e.map(self._value)
        return constant_folding.fold(new) if isinstance(new, Cast) and isinstance(new.arg, Const) else new


def _plain(loop: For) -> For:
    if loop.step is not ONE or any(isinstance(n, Aref) for b in (loop.lo, loop.hi) for n in b.unique()):
        raise DoesNotFit
    return loop
