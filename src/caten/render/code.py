"""A piece of C text together with how tightly its outermost operator binds."""
from __future__ import annotations

from typing import NamedTuple

from ..frozen import frozen

# Precedence of C, tightest first.
PRIMARY, UNARY, MUL, ADD, SHIFT, RELATION, EQUALITY, BITAND, BITXOR, BITOR, AND, OR, CHOICE = range(16, 3, -1)
_MIXED = (SHIFT, BITAND, BITXOR, BITOR)           # C compilers ask for parentheses around any operand of these


class Code(NamedTuple):
    """C text and the precedence of its outermost operator."""

    text: str
    level: int = PRIMARY

    def at(self, level: int) -> str:
        """The text, in parentheses unless it binds at least as tightly as `level`."""
        return self.text if self.level >= level else f"({self.text})"


@frozen
class Infix:
    """`x + y`. Vectors use the same symbol, complex numbers a helper named after the operator."""

    symbol: str
    level: int


@frozen
class Prefix:
    """`-x`."""

    symbol: str


@frozen
class Helper:
    """A small inline function that render.helper_functions prints where it is needed."""


@frozen
class Libm:
    """A function of the C library, with an `f` behind its name for float32; vectors call it lane by lane."""

    name: str


Spelling = Infix | Prefix | Helper | Libm | str    # a plain string is the name of a function


def infix(symbol: str, level: int, left: Code, right: Code, *, associative: bool = False) -> Code:
    """`left symbol right` with the parentheses that C and its compilers' warnings ask for; a right operand of the same
    level goes without where the operator is `associative`."""
    if level in _MIXED or level in (RELATION, EQUALITY):
        inner = UNARY if level in _MIXED else SHIFT + 1
        return Code(f"{left.at(inner)} {symbol} {right.at(inner)}", level)
    if level == OR:
        return Code(" || ".join([c.text if c.level == OR else c.at(AND + 1) for c in (left, right)]), OR)
    return Code(f"{left.at(level)} {symbol} {right.at(level if associative or level == AND else level + 1)}", level)


def prefix(symbol: str, arg: Code) -> Code:
    """`-arg`, never `--arg`."""
    text = arg.at(UNARY)
    return Code(symbol + (f"({text})" if text.startswith(symbol) else text), UNARY)


def call(name: str, *args: Code) -> Code:
    """`name(args)`."""
    return Code(f"{name}({', '.join([a.text for a in args])})")
