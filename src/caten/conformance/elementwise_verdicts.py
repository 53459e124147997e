"""Judge one operator or conversion, element by element, against its exact meaning (mathematics.evaluate); errors are
in units in the last place."""
from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from ..core.dtypes import DTYPES, FORMATS, part
from ..core.numpy_types import numpy_dtype
from ..core.scalars import OPERATORS
from ..frontend.op import OpProgram
from ..frozen import frozen
from ..mathematics import evaluate
from ..mathematics.elementary.elementary_table import FAST_ULP, FORMS
from ..semantics.rounding_bounds import least_normal
from .verdicts import Called, Verdict, stray

# which zero of two equal ones is not specified
EITHER_ZERO = frozenset(("max", "min", "fmax", "fmin", "clip", "relu", "sign"))
# of complex numbers these take several roundings
ROUNDED_OFTEN = frozenset(("mul", "div", "abs"))
Array = np.ndarray[Any, Any]


@frozen
class Elementwise:
    """R[i] = fn(X[i], …). `operands`: the element types of X, Y, Z; `fn`: a row of the operator table, `cast` or
    `bitcast`; `fast`: may functions be computed by their fast forms, and be as far off as those promise?"""

    fn: str
    operands: tuple[str, ...]
    result: str
    fast: bool = False

    def __call__(self, op: OpProgram, arguments: Mapping[str, Any], called: Called) -> Verdict:
        if called.error:
            return Verdict("FAIL", f"the call failed: {called.error}")
        args = [arguments[n] for n in "XYZ"[:len(self.operands)]]
        got, want = called.results["R"], self.declared(args)
        worst, hard, target = None, 0.0, self.target()
        error = (got != want).astype(np.float64)
        if DTYPES[self.result].kind in ("float", "complex"):
            error = self.errors(args, got, want)
            worst = float(error.max(initial=0.0))
            # SEMANTICS: 2 · (2 · ulp · u · |result|) + 1 ulp
            hard = 4 * target + 1 if target else 0.0
            if self.fast and self.fn in FORMS:
                error = np.where((got == 0) & (np.abs(want) < 2 * least_normal(self.result)), 0.0, error)
                worst, target = float(error.max(initial=0.0)), max(target, FAST_ULP)
                hard = max(hard, target)
        if not len(got):
            return Verdict("VACUOUS", "nothing was compared: R has no element")
        outside = ~(error <= hard)                                         # an error that is NaN, too
        if outside.any():
            return Verdict("FAIL", self.first_fault(args, got, want, outside), worst)
        if worst is not None and worst > target:
            return Verdict("QUALITY", f"{worst:.3g} ulp, the operator's bound is {target:g}", worst)
        return stray(called) or Verdict("PASS", ulp=worst)

    def first_fault(self, args: list[Array], got: Array, want: Array, bad: Array) -> str:
        k = int(np.argmax(bad))
        given = " ".join([str(a[k]) for a in args])
        return f"({self.fn} {given}) gives {got[k]}, expected {want[k]}; {int(bad.sum())} of {len(got)} wrong"

    def declared(self, args: list[Array]) -> Array:
        """The results in the declared type."""
        with np.errstate(all="ignore"):
            if self.fn == "cast":
                return np.asarray(evaluate.cast(args[0], self.operands[0], self.result))
            if self.fn == "bitcast":
                return np.asarray(evaluate.bitcast(args[0], self.result))
            return np.asarray(evaluate.apply(self.fn, args, self.operands[-1])).astype(numpy_dtype(self.result))

    def is_rounded_once(self) -> bool:
        """Is there one right result, to the last bit? So it is for conversions, exact operators, and what is
        correctly rounded."""
        often = DTYPES[self.operands[-1]].kind == "complex" and self.fn in ROUNDED_OFTEN
        return self.fn not in OPERATORS or (OPERATORS[self.fn].ulp <= 0.5 and not often)

    def target(self) -> float:
        """The operator's bound in units in the last place; 0 where bits must be equal. A reference that is no wider
        may be off by one itself."""
        if self.is_rounded_once():
            return 0.5 if self.fn in OPERATORS and OPERATORS[self.fn].ulp else 0.0
        if DTYPES[self.result].kind == "complex":
            # as in semantics.rounding_bounds: four times the rounding of one number
            return 4.0
        own = OPERATORS["hypot" if self.fn == "abs" else self.fn].ulp
        return own + (1.0 if wider(self.fn, self.operands[-1]) is None else 0.0)

    def errors(self, args: list[Array], got: Array, want: Array) -> Array:
        """The error of every element in units in the last place: of a result that is rounded once, the distance to
        the right one, else to the exact value; infinite for a wrong NaN, infinity or sign of zero."""
        float_type = part(self.result)
        if self.is_rounded_once():
            same = same_bits(got, want, float_type)
            error = np.where(same, 0.0, np.maximum(ulps(got, want, float_type), 1.0))
        else:
            function = wider(self.fn, self.operands[-1]) or (lambda *values: evaluate.apply(self.fn, values,
                                                                                            self.operands[-1]))
            with np.errstate(all="ignore"):
                error = ulps(got, np.asarray(function(*args)), float_type)
        both_zero = (got == 0) & (want == 0)
        if self.fn in EITHER_ZERO:
            return np.where(both_zero, 0.0, error)
        if DTYPES[self.result].kind == "complex":
            return error
        return np.where(both_zero & (np.signbit(got) != np.signbit(want)), np.inf, error)


@cache
def wider(fn: str, dtype: str) -> Callable[..., Any] | None:
    """An operator computed more precisely than its element type does; None where nothing here can."""
    unit = DTYPES[dtype].unit_roundoff
    wide = "c128" if DTYPES[dtype].kind == "complex" else "f64"
    if unit > DTYPES[wide].unit_roundoff:
        return lambda *args: evaluate.apply(fn, [a.astype(numpy_dtype(wide)) for a in args], wide)
    row = OPERATORS[fn]
    if DTYPES[dtype].kind == "complex" or np.finfo(np.longdouble).eps >= unit:
        return None
    if row.numpy:
        function: Callable[..., Any] = getattr(np, row.numpy)
        return lambda *args: function(*[a.astype(np.longdouble) for a in args])
    return _libm(row.libm + "l", row.arity) if row.libm else None


def _libm(name: str, arity: int) -> Callable[..., Any] | None:
    """A function of the C library on long doubles."""
    try:
        function = getattr(ctypes.CDLL(None), name)
    except (OSError, AttributeError):
        return None
    function.restype = ctypes.c_longdouble
    function.argtypes = [ctypes.c_longdouble] * arity
    each: Callable[..., Any] = np.frompyfunc(lambda *args: function(*args), arity, 1)
    return lambda *args: each(*args).astype(np.longdouble)


def same_bits(got: Array, want: Array, dtype: str) -> Array:
    """Where two arrays hold the same bits, any NaN counting as any other. `dtype`: the float type of the numbers, or
    of their parts."""
    a, b = (np.ascontiguousarray(x).view(numpy_dtype(dtype)).reshape(len(x), -1) for x in (got, want))
    bits = np.dtype(f"u{a.dtype.itemsize}")
    return np.asarray(((a.view(bits) == b.view(bits)) | (np.isnan(a) & np.isnan(b))).all(axis=1))


def ulps(got: Array, wide: Array, dtype: str) -> Array:
    """|got - wide| in units in the last place of `wide` in a float type; infinite for a wrong NaN or infinity, but 1
    where `wide` lies next to the greatest number. Complex numbers: the distance in the plane, in units of the
    modulus."""
    least, greatest = limits(dtype)
    with np.errstate(all="ignore"):
        exponent = np.frexp(np.abs(wide).astype(np.float64))[1] - 1
        spacing = np.maximum(np.ldexp(2 * DTYPES[dtype].unit_roundoff, exponent), least)
        off = np.abs(got.astype(wide.dtype) - wide).astype(np.float64) / spacing
        rounded = wide.astype(got.dtype)
        finite, should_be = np.isfinite(got), np.isfinite(rounded)
        agree = (np.isnan(got) & np.isnan(rounded)) | ((got == rounded) & ~should_be)
        smaller = np.minimum(np.abs(got), np.abs(rounded)).astype(np.float64)
        at_edge = (finite != should_be) & np.isfinite(wide) & (smaller == greatest)
    return np.asarray(np.where(agree, 0.0, np.where(finite & should_be, off, np.where(at_edge, 1.0, np.inf))))


def limits(dtype: str) -> tuple[float, float]:
    """The least positive number of a float type (a denormal one), and the greatest."""
    _, last, greatest = FORMATS[dtype]
    return math.ldexp(1.0, last), greatest
