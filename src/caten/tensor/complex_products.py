"""Products of complex matrices as real ones.

    Σ a b  =  Σ re a re b - Σ im a im b  +  i (Σ re a im b + Σ im a re b)

The parts of each matrix are arrays of their own, whose elements are next to each other: registers hold vectors of
them, and the plans of real products apply. A factor that is real has no imaginary part. Sums of parts take the same
roundings as those of complex numbers, but in another order; products that keep their order stay as they are.
"""
from __future__ import annotations

from math import prod

from ..core.dtypes import is_complex, part
from ..core.expr import Cast, Const, Expr, Op
from ..core.node import Node
from ..core.program import InOrder
from ..core.unique_names import Names
from .fusion import is_contraction
from .fusion_requests import values_asked_for
from .values import Axis, Compute, Define, FusedKernel, Read, Reduce, TensorProgram, Value

FEW = 512                           # products that are computed as they are written: more than the splitting takes

# The real and the imaginary part of a factor; None for no imaginary part.
Parts = tuple[Expr, Expr | None]


def with_real_products(program: TensorProgram) -> TensorProgram:
    """The program with sums of products of complex matrices as sums over their parts."""
    if program.first(InOrder) is not None or program.first(FusedKernel) is not None:
        return program
    splitting = _Splitting(program)
    clauses: list[Node] = []
    for clause in program.clauses:
        clauses += splitting.split(clause) if isinstance(clause, Define) else (clause,)
    return program.replace(clauses=tuple(clauses)) if len(clauses) > len(program.clauses) else program


class _Splitting:
    """The parts of arrays that products read, each defined before the first that does."""

    def __init__(self, program: TensorProgram) -> None:
        self.names, self.asked = Names.of(program), values_asked_for(program)
        self.extents = {b.name: b.axes for b in program.buffers.values()}
        self.extents |= {d.name: tuple([a.extent for a in d.value.axes]) for d in program.definitions
                         if isinstance(d.value, Compute | Reduce)}
        self.known: dict[tuple[str, str], str] = {}
        self.made: list[Define] = []

    def split(self, define: Define) -> tuple[Define, ...]:
        """The definitions in the place of one."""
        value = define.value
        if define.name in self.asked or not isinstance(value, Reduce) or not is_complex(value.type) or _is_few(value):
            return (define,)
        match value.expr:
            case Op("mul", (a, b)) if is_contraction(value):
                self.made = []
                one, other = self.parts(a), self.parts(b)
                if one is not None and other is not None and not one[1] is other[1] is None:
                    whole = self.whole(value, one, other)
                    return (*self.made, Define(define.names, whole))
        return (define,)

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
                real, imaginary = [Read(self.array_of(e, fn), e.index, part(e.dtype)) for fn in ("real", "imag")]
                return real, imaginary
        return None

    def array_of(self, e: Read, fn: str) -> str:
        """The name of the array of the real or the imaginary parts of another one."""
        key = e.buffer, fn
        if key not in self.known:
            axes = tuple([Axis(f"i{n}", extent) for n, extent in enumerate(self.extents[e.buffer])])
            whole = Op(fn, (e.replace(index=tuple([a.var for a in axes])),))
            self.known[key] = self.define(f"{e.buffer}_{fn}", Compute(part(e.dtype), axes, whole))
        return self.known[key]

    def define(self, wish: str, value: Value) -> str:
        name = self.names.fresh(wish)
        self.made.append(Define((name,), value))
        return name

    def whole(self, value: Reduce, one: Parts, other: Parts) -> Compute:
        """The sums over parts, as complex numbers."""
        dtype = part(value.type)

        def total(a: Expr | None, b: Expr | None) -> Expr | None:
            if a is None or b is None:
                return None
            name = self.define("v", value.replace(type=dtype, expr=Op("mul", (a, b))))
            return Read(name, tuple([x.var for x in value.axes]), dtype)
        real = _joined("sub", total(one[0], other[0]), total(one[1], other[1]))
        imaginary = _joined("add", total(one[0], other[1]), total(one[1], other[0]))
        return Compute(value.type, value.axes, Op("complex", (real, imaginary)))


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
