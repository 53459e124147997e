"""Render assignments in C: to elements, register variables and vectors in memory."""
from __future__ import annotations

from ..core.dtypes import DTYPES, is_complex
from ..core.expr import Const, Expr, Op
from ..core.monoids import identity
from ..core.scalars import COMPARISONS
from ..loop.statements import Aref, Ref, Setf, Splat, Stmt, Vref
from . import cache_hints
from .c_expressions import Expressions
from .code import Code, Infix, call


def render_assignment(ex: Expressions, ref: Ref, value: Expr) -> str:
    """`place = value;`"""
    if isinstance(ref, Vref) and isinstance(value, Op) and value.fn == "complex":
        return ex.store_parts(ref, [_stored(ex, ref, part) for part in value.args]).text + ";"
    return _assigned(ex, ref, _stored(ex, ref, value))


def allows_non_temporal_store(ex: Expressions, ref: Ref) -> bool:
    """May this vector be stored non-temporally? Its lanes must be contiguous in memory."""
    assert isinstance(ref, Vref)
    return (not ex.register(ref) and not ex.views[ref.buffer].packed and not is_complex(ref.dtype)
            and ex.stride(ref).text == "1")


def render_non_temporal_store(ex: Expressions, ref: Ref, value: Expr) -> str:
    """A non-temporal vector store. A store fence must follow it."""
    return call(cache_hints.define_non_temporal_store(ex.helpers, ref.dtype, ref.lanes), ex.pointer(ref),
                _stored(ex, ref, value)).text + ";"


def render_update(ex: Expressions, ref: Ref, value: Expr, fn: str) -> str:
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
    if (better := _unless_nan(ref, value, fn)) is not None:
        return _assigned(ex, ref, ex.value(better))
    operands = ex.value(ref), _stored(ex, ref, value)
    # the helper tests its first operand for NaN, and the new one is known earlier
    if fn in ("max", "min") and ref.lanes > 1:
        operands = operands[1], operands[0]
    return _assigned(ex, ref, ex.helpers.apply(fn, ref.dtype, ref.lanes, operands))


def _unless_nan(ref: Ref, value: Expr, fn: str) -> Expr | None:
    """The minimum or maximum with a number that is left out where it is NaN: one comparison, which NaN fails."""
    match value:
        case Op("where", (Op("eq", (a, b)), number, other)) if (
                a is b is number and fn in ("min", "max") and number.lanes == ref.lanes
                and (other.arg if isinstance(other, Splat) else other) is identity(fn, ref.dtype)):
            return Op("where", (Op("lt" if fn == "min" else "gt", (number, ref)), number, ref))
    return None


def _stored(ex: Expressions, ref: Ref, value: Expr) -> Code:
    """The value, converted to the representation of its destination."""
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
    """Does the statement set part of a local to positive zero?"""
    match stmt:
        case Setf(ref=Aref(buffer=buffer) | Vref(buffer=buffer),
                  value=Splat(arg=Const() as value) | (Const() as value)):
            return buffer == name and repr(value.value) in ("0", "0.0", "False")
    return False
