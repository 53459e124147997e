"""The types of bodies in Python, where operands of different types meet: NumPy's promotion.

Numbers of Python, loop variables and sizes take the type that they meet, as everywhere. Of two element types NumPy
computes in one that holds both: float32 and int64 in float64, int8 and int32 in int32. An integer that the caller gives
as a number is one of Python, and takes the type of the floats that it meets.
"""
from __future__ import annotations

from collections.abc import Container, Sequence
from functools import cache

from ...core.dtypes import DTYPES, computed, is_complex, is_float
from ...core.expr import Const, Expr, Op, Var
from ...tensor.values import Read
from ..typing import WEAK_FLOAT, WEAK_INT, Literal, Term, Typing, Value, narrowed

ON_BOOLS = {"max": "or", "min": "and", "add": "or", "mul": "and"}           # True is the greater
NOT_ON_BOOLS = {"sub": "of two bools, x ^ y says whether they differ", "neg": "of a bool, ~x is the opposite"}
_KINDS = ("bool", "uint", "int", "float", "complex")      # what may be stored where: in itself, and in those after it


class NumpyTyping(Typing):
    """The typing rules of bodies in Python."""

    def join_kinds(self, a: str, b: str, pos: int, what: str) -> str:
        weak, strong = (a, b) if a in (WEAK_INT, WEAK_FLOAT) else (b, a)
        if weak == WEAK_FLOAT and strong in DTYPES and _is_whole(strong):
            return "f64"
        if weak == WEAK_INT and strong == "bool":
            return "i64"
        return _promoted(a, b) or super().join_kinds(a, b, pos, what)

    def apply(self, fn: str, args: Sequence[Term], pos: int) -> Term:
        if all(arg.kind == "bool" for arg in args):
            if fn == "clip":
                x, least, most = args
                return super().apply("and", (super().apply("or", (x, least), pos), most), pos)
            if fn == "abs":
                return args[0]
            if fn in NOT_ON_BOOLS:
                self.fail("E304", f"{self.words.operator(fn)} is not defined on bool", pos,
                          f"{NOT_ON_BOOLS[fn]}; to count, convert it first: {self.words.cast('int64', 'x')}")
            fn = ON_BOOLS.get(fn, fn)
        return super().apply(fn, args, pos)

    def monoid(self, fn: str, dtype: str) -> str:
        return ON_BOOLS.get(fn, fn) if dtype == "bool" else fn

    def stored(self, term: Term, dtype: str, what: str) -> Expr:
        """The expression in the type of an element that is assigned, which loses digits at most. E310 if NumPy calls
        the conversion unsafe, from floats to integers."""
        if is_same_kind(term.kind, dtype):
            return narrowed(self.default(term), dtype)
        return self.settle(as_truth(term, dtype), dtype, what)

    def stored_wide(self, term: Term, dtype: str, what: str) -> Expr:
        """`stored`, but a 16-bit float stays in float32 without intermediate rounding."""
        if term.kind != dtype and is_same_kind(term.kind, dtype):
            return narrowed(self.default(term), computed(dtype))
        return self.settle_wide(as_truth(term, dtype), dtype, what)


def as_truth(term: Term, dtype: str) -> Term:
    """0 and 1, written where a bool is stored, are False and True."""
    if dtype == "bool" and isinstance(term, Literal) and term.value in (0, 1):
        return Value("bool", term.pos, expr=Const(bool(term.value), "bool"))
    return term


def is_number_of_python(term: Term, counts: Container[str] = ()) -> bool:
    """Is it an integer that no element of an array decides: of sizes, of numbers that the caller gives, and of the
    values `counts`?"""
    if not isinstance(term, Value) or term.expr is None or term.kind not in DTYPES or DTYPES[term.kind].kind not in (
            "int", "uint"):
        return False
    nodes = [*term.expr.unique()]
    return not any(isinstance(n, Read) and n.index for n in nodes) and any(
        isinstance(n, Var) or (isinstance(n, Read) and n.buffer in counts) for n in nodes)


def is_complex_constant(x: object) -> bool:
    """Is it a complex number as written?"""
    return isinstance(x, Value) and isinstance(x.expr, Op) and x.expr.fn == "complex" and all(
        isinstance(each, Const) for each in x.expr.args)


@cache
def _promoted(a: str, b: str) -> str | None:
    """The type in which NumPy computes with both; None where there is none, or where it would lose digits."""
    if a == b or a not in DTYPES or b not in DTYPES or _is_stored_only(a) or _is_stored_only(b):
        return a if a == b else None
    if "bf16" in (a, b):
        other = b if a == "bf16" else a
        return "bf16" if _is_whole(other) else None if other == "f16" else other
    if "u64" in (a, b) and {DTYPES[a].kind, DTYPES[b].kind} == {"int", "uint"}:
        return None                                         # NumPy's float64 is not what anybody means
    import numpy

    found = numpy.result_type(DTYPES[a].numpy, DTYPES[b].numpy).name
    return next(d.name for d in DTYPES.values() if d.numpy == found)


@cache
def is_same_kind(given: str, dtype: str) -> bool:
    """Does NumPy convert one type to the other by itself, with a loss of digits at most?"""
    return given in DTYPES and not (_is_stored_only(given) or _is_stored_only(dtype)) and (
        _KINDS.index(DTYPES[given].kind) <= _KINDS.index(DTYPES[dtype].kind))


def _is_stored_only(dtype: str) -> bool:
    """Is it a type of 4 bits, which only explicit conversions make?"""
    return DTYPES[dtype].bits < 8


def _is_whole(dtype: str) -> bool:
    return not is_float(dtype) and not is_complex(dtype)
