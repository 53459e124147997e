"""Assignments in C: to elements, named registers and vectors in memory."""
from __future__ import annotations

from ..core.dtypes import DTYPES
from ..core.expr import Const, Expr, Op
from ..loop.statements import Aref, Ref, Setf, Splat, Stmt, Vref
from . import caches
from .bodies import COMPARISONS
from .code import Code, Infix, call
from .expressions import Expressions


def assignment(ex: Expressions, ref: Ref, value: Expr) -> str:
    """`place = value;`"""
    return _assigned(ex, ref, _stored(ex, ref, value))


def goes_past_the_caches(ex: Expressions, ref: Ref) -> bool:
    """Can a store of a vector be one that leaves the caches alone? Its lanes are neighbours in memory."""
    assert isinstance(ref, Vref)
    return not ex.register(ref) and not ex.views[ref.buffer].packed and ex.stride(ref).text == "1"


def streamed(ex: Expressions, ref: Ref, value: Expr) -> str:
    """The store of a vector past the caches; a fence has to follow."""
    return call(caches.store(ex.helpers, ref.dtype, ref.lanes), ex.pointer(ref), _stored(ex, ref, value)).text + ";"


def combination(ex: Expressions, ref: Ref, value: Expr, fn: str) -> str:
    """`place op= value;`"""
    spelling, kind = ex.helpers.ops.get(fn), DTYPES[ref.dtype].kind
    target = ex.place(ref) if isinstance(ref, Aref) else ex.register(ref)
    plain = isinstance(spelling, Infix) and kind not in ("complex", "bool") and fn not in COMPARISONS
    if target is not None and plain and isinstance(spelling, Infix):
        if isinstance(value, Const) and value.value == 1 and fn == "add" and kind in ("int", "uint"):
            return f"{target.text}++;"
        return f"{target.text} {spelling.symbol}= {_stored(ex, ref, value).text};"
    if ref.dtype == "bool" and isinstance(ref, Vref):
        return _assigned(ex, ref, ex.truth(Op(fn, (ref, value))))
    operands = ex.value(ref), _stored(ex, ref, value)
    if fn in ("max", "min") and ref.lanes > 1:         # the first is asked whether it is NaN, which of the new one can be known early
        operands = operands[1], operands[0]
    return _assigned(ex, ref, ex.helpers.apply(fn, ref.dtype, ref.lanes, operands))


def _stored(ex: Expressions, ref: Ref, value: Expr) -> Code:
    """The value in the form in which the place holds it."""
    if isinstance(ref, Vref):
        if ref.dtype == "bool":
            return ex.truth(value)
        return ex.value(value) if ex.lanes(value) > 1 else ex.splat(value, ref.count)
    return ex.value(value)


def _assigned(ex: Expressions, ref: Ref, code: Code) -> str:
    if isinstance(ref, Aref):
        put = ex.put(ref, code)
        return f"{put.text};" if put is not None else f"{ex.place(ref).text} = {code.text};"
    assert isinstance(ref, Vref)
    named = ex.register(ref)
    return f"{named.text} = {code.text};" if named else ex.access("store", ref, code).text + ";"


def is_zeroing(stmt: Stmt, name: str) -> bool:
    """Does it set part of a local to (positive) zero?"""
    match stmt:
        case Setf(ref=Aref(buffer=buffer) | Vref(buffer=buffer), value=Splat(arg=Const() as value) | (Const() as value)):
            return buffer == name and repr(value.value) in ("0", "0.0", "False")
    return False
