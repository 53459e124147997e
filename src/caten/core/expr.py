"""Scalar expressions, shared by all levels: constants, variables, operators and conversions.

Every expression knows its `dtype` (element type) and `lanes` (1 for a scalar). A bare integer is an `i64`, a bare
decimal an `f32`; every other literal says its type: `1:i32`, `0.5:f64`, `true`, `inf`, `nan:f64`."""
from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from . import scalars
from .dtypes import DTYPES
from .node import Node, bottom_up


class Expr(Node):
    """A value. Subclasses give `dtype` and, where they are vectors, `lanes`."""

    @property
    def dtype(self) -> str:
        raise NotImplementedError(type(self).__name__)

    @property
    def lanes(self) -> int:
        return 1

    # Python operators build index arithmetic and rules; they mean exactly the operator of that row.
    def __add__(self, other: Any) -> Expr: return Op("add", (self, lift(other, self)))
    def __radd__(self, other: Any) -> Expr: return Op("add", (lift(other, self), self))
    def __sub__(self, other: Any) -> Expr: return Op("sub", (self, lift(other, self)))
    def __rsub__(self, other: Any) -> Expr: return Op("sub", (lift(other, self), self))
    def __mul__(self, other: Any) -> Expr: return Op("mul", (self, lift(other, self)))
    def __rmul__(self, other: Any) -> Expr: return Op("mul", (lift(other, self), self))
    def __truediv__(self, other: Any) -> Expr: return Op("div", (self, lift(other, self)))
    def __floordiv__(self, other: Any) -> Expr: return Op("floordiv", (self, lift(other, self)))
    def __mod__(self, other: Any) -> Expr: return Op("mod", (self, lift(other, self)))
    def __neg__(self) -> Expr: return Op("neg", (self,))
    def __lt__(self, other: Any) -> Expr: return Op("lt", (self, lift(other, self)))
    def __le__(self, other: Any) -> Expr: return Op("le", (self, lift(other, self)))
    def __gt__(self, other: Any) -> Expr: return Op("gt", (self, lift(other, self)))
    def __ge__(self, other: Any) -> Expr: return Op("ge", (self, lift(other, self)))
    def __and__(self, other: Any) -> Expr: return Op("and", (self, lift(other, self)))
    def __or__(self, other: Any) -> Expr: return Op("or", (self, lift(other, self)))


class Const(Expr):
    """A literal: `value` is an int, float, bool or complex; `type` its element type."""

    value: Any
    type: str = "i64"

    @classmethod
    def _key(cls, args: tuple[Any, ...]) -> tuple[Any, ...]:
        value, dtype = args
        return (repr(value), dtype)          # 0 == 0.0 == False and nan != nan in Python: the spelling tells them apart

    @property
    def dtype(self) -> str:
        return self.type

    def to_form(self) -> str:
        if self.type == "bool":
            return "true" if self.value else "false"
        shown = repr(self.value).strip("()")
        plain = (self.type == "i64" and isinstance(self.value, int)) or (self.type == "f32"
                                                                         and isinstance(self.value, float))
        return shown if plain else f"{shown}:{self.type}"


class Var(Expr, hidden=("type",)):
    """A loop variable, a size, a `let` name or a scalar argument, read."""

    name: str
    type: str = ""

    @property
    def dtype(self) -> str:
        return self.type

    def _read(self) -> frozenset[str]:
        return frozenset((self.name,))

    def to_form(self) -> str:
        return self.name


class Op(Expr):
    """An operator of the table in core.scalars applied to its arguments."""

    fn: str
    args: tuple[Expr, ...]

    @bottom_up
    def dtype(self) -> str:
        return scalars.OPERATORS[self.fn].result_type(tuple([a.dtype for a in self.args]))

    @bottom_up
    def lanes(self) -> int:
        return max([a.lanes for a in self.args], default=1)

    def to_form(self) -> tuple[Any, ...]:
        return (scalars.OPERATORS[self.fn].spelling, *self.args)


class Conversion(Expr):
    """An expression as another element type, lane by lane."""

    type: str
    arg: Expr

    @property
    def dtype(self) -> str:
        return self.type

    @property
    def lanes(self) -> int:
        return self.arg.lanes


class Cast(Conversion, head="cast"):
    """Conversion by value: `(cast f32 x)`. Float to integer saturates and maps NaN to 0; to a narrower integer wraps;
    to bool is x ≠ 0."""


class Bitcast(Conversion, head="bitcast"):
    """The same bits read as another type of the same size: `(bitcast i32 x)`."""


class Hole(Expr):
    """A pattern variable, `?x`. A pattern is an ordinary node that contains holes; `test` restricts the match."""

    name: str
    test: Callable[[Any], bool] | None = None

    @property
    def dtype(self) -> str:
        return "?"

    def to_form(self) -> str:
        return "?" + self.name


def lift(value: Any, like: Expr | None = None) -> Expr:
    """A Python number as a constant of the type of `like` (i64 without one)."""
    if isinstance(value, Node):
        return value        # type: ignore[return-value]   # every caller passes expressions
    if isinstance(value, bool):
        return Const(value, "bool")
    dtype = like.dtype if like is not None and like.dtype not in ("?", "") else ("f32" if isinstance(value, float)
                                                                                 else "i64")
    return number(value, dtype)


def number(value: int | float, dtype: str) -> Const:
    """A constant of `dtype`, with the value converted to the Python type that the dtype prints as."""
    kind = DTYPES[dtype].kind
    return Const({"float": float, "int": int, "uint": int, "bool": bool, "complex": complex}[kind](value), dtype)


def index(value: int) -> Const:
    """An i64 constant."""
    return Const(int(value), "i64")


TRUE, FALSE = Const(True, "bool"), Const(False, "bool")

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_NUMBER = re.compile(r"([-+]?(?:\d[\d.]*(?:[eE][-+]?\d+)?|inf|nan))(?::([a-z]+\d*))?\Z")
_COMPLEX = re.compile(r"([-+.\deainf]+j):(c64|c128)\Z")


def read_atom(atom: str) -> Expr | None:
    """A literal, a variable or a hole (`?x`); None when the atom is none of these."""
    if atom in ("true", "false"):
        return TRUE if atom == "true" else FALSE
    if atom.startswith("?"):
        return Hole(atom[1:])
    if m := _NUMBER.match(atom):
        digits, dtype = m[1], m[2]
        try:
            value: Any = int(digits) if re.fullmatch(r"[-+]?\d+", digits) else float(digits)
        except ValueError:
            return None
        if dtype is None:
            return Const(value, "i64" if isinstance(value, int) else "f32")
        if dtype not in DTYPES:
            return None
        return Const(value, dtype)
    if m := _COMPLEX.match(atom):
        try:
            return Const(complex(m[1]), m[2])
        except ValueError:
            return None
    return Var(atom) if _NAME.match(atom) else None

