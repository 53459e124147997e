"""Complex numbers as their real and imaginary parts, for which there are vectors.

A map of numbers of two float32, one of two float64 with functions such as `exp`, and a sum read the parts from where
they lie, in pairs (see `PARTS_OF_ALL` in core.identities). Others read its parts. Products of complex matrices are
real ones:

    Σ a b  =  Σ re a re b - Σ im a im b  +  i (Σ re a im b + Σ im a re b)

The parts of each matrix are arrays of their own, whose elements are next to each other: registers hold vectors of
them, and the plans of real products apply. A factor that is real has no imaginary part. Sums of parts take the same
roundings as those of complex numbers, but in another order; products that keep their order stay as they are.
"""
from __future__ import annotations

from functools import partial
from math import prod

from ..core.dtypes import DTYPES, is_complex, part
from ..core.expr import Cast, Const, Expr, Hole, Op, Var
from ..core.identities import PARTS_OF_ALL
from ..core.node import Node
from ..core.program import InOrder
from ..core.rewrite import Rules, rewrite
from ..core.unique_names import Names
from .fusion import is_contraction
from .fusion_requests import values_asked_for
from .index_maps import has_costly_function
from .values import Axis, Compute, Define, FusedKernel, Named, Read, Reduce, TensorProgram, Value, operands_of, reads_of

FEW = 512                           # products that are computed as they are written: more than the splitting takes

MOST_NODES = 20_000                 # of parts, written out: each product of two numbers has each of their parts twice

WIDEST = 64                         # bits of numbers whose arithmetic is over parts: a wider one fills a register

FUNCTIONS = ("real", "imag")

# The real and the imaginary part of a factor; None for no imaginary part.
Parts = tuple[Expr, Expr | None]


def with_complex_in_parts(program: TensorProgram) -> TensorProgram:
    """The program with maps and sums of complex numbers over their parts."""
    if program.first(InOrder) is not None or program.first(FusedKernel) is not None:
        return program
    splitting = _Splitting(program)
    clauses: list[Node] = []
    for clause in program.clauses:
        clauses += splitting.split(clause) if isinstance(clause, Define) else (clause,)
    if tuple(clauses) == program.clauses:
        return program
    return _without_unread(program.replace(clauses=tuple(clauses)), splitting.own)


def _without_unread(program: TensorProgram, names: set[str]) -> TensorProgram:
    """The program without those of some values that nothing reads: some readers take one of two parts, or the parts
    instead of the whole."""
    wanted, unread = set(program.results), set[str]()
    for d in reversed(program.definitions):
        if d.name in names - wanted:
            unread.add(d.name)
        else:
            wanted.update(operands_of(d.value))
    return program.replace(clauses=tuple([c for c in program.clauses if not (
        (isinstance(c, Define) and c.name in unread) or (isinstance(c, Named) and c.value in unread))]))


class _Splitting:
    """The parts of values and arrays that others read, each defined before the first that does."""

    def __init__(self, program: TensorProgram) -> None:
        self.names, self.asked = Names.of(program), values_asked_for(program)
        self.extents = {b.name: b.axes for b in program.buffers.values()}
        self.extents |= {d.name: tuple([a.extent for a in d.value.axes]) for d in program.definitions
                         if isinstance(d.value, Compute | Reduce)}
        self.read = {r.buffer for d in program.definitions if isinstance(d.value, Compute | Reduce)
                     for r in reads_of(d.value)}
        self.arrays: dict[tuple[str, str], str] = {}           # of the parts of operands of products
        self.halves: dict[tuple[str, str], str] = {}           # of values that are computed in parts
        self.made: list[Define] = []
        self.own = set[str]()                                  # values that may be left without readers
        split = Hole("split", lambda n: isinstance(n, Read) and (n.buffer, "real") in self.halves)
        self.rules = PARTS_OF_ALL + Rules(*[(Op(fn, (split,)), partial(self.half, fn)) for fn in FUNCTIONS])

    def half(self, fn: str, split: Read) -> Read:
        """The element of the real or the imaginary parts of a value that is computed in parts."""
        return Read(self.halves[split.buffer, fn], split.index, part(split.dtype))

    def split(self, define: Define) -> tuple[Define, ...]:
        """The definitions in the place of one."""
        value = define.value
        if define.name in self.asked or not isinstance(value, Compute | Reduce):
            return (define,)
        if not is_complex(value.type):
            if any((r.buffer, "real") in self.halves for r in reads_of(value)):
                made = rewrite(value.expr, self.rules)
                define = define if made.written_out > MOST_NODES else define.replace(value=value.replace(expr=made))
            return (define,)
        self.made = []
        found = self.element(value)
        if found is None:
            return (define,)
        if define.name in self.read:
            self.own.add(define.name)
            found = Op("complex", tuple([self.kept(define.name, fn, e, value.axes)
                                         for fn, e in zip(FUNCTIONS, found.args, strict=True)]))
        return (*self.made, define.replace(value=Compute(value.type, value.axes, found)))

    def kept(self, name: str, fn: str, e: Expr, axes: tuple[Axis, ...]) -> Read:
        """The real or the imaginary part of a value as a value of its own."""
        place = tuple([a.var for a in axes])
        if not (isinstance(e, Read) and e.index == place and e.buffer in [d.name for d in self.made]):
            e = Read(self.define(f"{name}_{fn}", Compute(e.dtype, axes, e)), place, e.dtype)
        self.halves[name, fn] = e.buffer
        return e

    def element(self, value: Compute | Reduce) -> Op | None:
        """An element of a value, as a real and an imaginary part; None for one that stays as it is."""
        if isinstance(value, Compute):
            gains = DTYPES[value.type].bits <= WIDEST or has_costly_function(value.expr)
            return in_parts(value.expr, self.rules) if gains else None
        if _is_few(value) or value.fn != "add":
            return None
        match value.expr:
            case Op("mul", (a, b)) if is_contraction(value):
                one, other = self.parts(a), self.parts(b)
                if one is not None and other is not None and not one[1] is other[1] is None:
                    return self.product(value, one, other)
        found = in_parts(value.expr, self.rules)
        return found and Op("complex", tuple([self.total(value, e) for e in found.args]))

    def parts(self, e: Expr) -> Parts | None:
        """The parts of a factor; None where it is no element of an array."""
        match e:
            case Cast(arg=arg) if not is_complex(arg.dtype):
                return (arg if arg.dtype == part(e.dtype) else Cast(part(e.dtype), arg)), None
            case Op("conj", (x,)):
                found = self.parts(x)
                if found is None or found[1] is None:
                    return found
                return found[0], Op("neg", (found[1],))
            case Read(buffer=name) if name in self.extents:
                real, imaginary = [Read(self.array_of(e, fn), e.index, part(e.dtype)) for fn in FUNCTIONS]
                return real, imaginary
        return None

    def array_of(self, e: Read, fn: str) -> str:
        """The name of the array of the real or the imaginary parts of another one."""
        key = e.buffer, fn
        if key in self.halves:
            return self.halves[key]
        if key not in self.arrays:
            axes = tuple([Axis(f"i{n}", extent) for n, extent in enumerate(self.extents[e.buffer])])
            whole = Op(fn, (e.replace(index=tuple([a.var for a in axes])),))
            self.arrays[key] = self.define(f"{e.buffer}_{fn}", Compute(part(e.dtype), axes, whole))
        return self.arrays[key]

    def define(self, wish: str, value: Value) -> str:
        name = self.names.fresh(wish)
        self.own.add(name)
        self.made.append(Define((name,), value))
        return name

    def product(self, value: Reduce, one: Parts, other: Parts) -> Op:
        """An element of a product, by sums over parts of its factors."""
        def total(a: Expr | None, b: Expr | None) -> Expr | None:
            return None if a is None or b is None else self.total(value, Op("mul", (a, b)))
        real = _joined("sub", total(one[0], other[0]), total(one[1], other[1]))
        imaginary = _joined("add", total(one[0], other[1]), total(one[1], other[0]))
        return Op("complex", (real, imaginary))

    def total(self, value: Reduce, term: Expr) -> Expr:
        """The element of a sum of real numbers over the axes of one of complex numbers."""
        dtype = part(value.type)
        return Read(self.define("v", value.replace(type=dtype, expr=term)), tuple([x.var for x in value.axes]), dtype)


def in_parts(e: Expr, rules: Rules = PARTS_OF_ALL) -> Op | None:
    """A complex number as a real and an imaginary part, which read only parts of elements. None where other operators
    are left, or if it is too long."""
    parts: Op = rewrite(Op("complex", tuple([Op(fn, (e,)) for fn in FUNCTIONS])), rules)
    whole = [c for n in parts.unique() for c in n.children if isinstance(c, Expr) and is_complex(c.dtype)
             and not (isinstance(c, Read | Var) and isinstance(n, Op) and n.fn in FUNCTIONS)]
    return None if whole or parts.written_out > MOST_NODES else parts


def _joined(fn: str, a: Expr | None, b: Expr | None) -> Expr:
    if a is None or b is None:
        only = a or b
        assert only is not None
        return only
    return Op(fn, (a, b))


def _is_few(value: Reduce) -> bool:
    """Is it known to be a sum of few products?"""
    extents = [a.extent for a in (*value.axes, *value.over)]
    counts = [e.value for e in extents if isinstance(e, Const)]
    return len(counts) == len(extents) and prod(counts) <= FEW
