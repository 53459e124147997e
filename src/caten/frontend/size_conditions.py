"""Parser of size arithmetic: dimensions such as `(* 2 M)`, and conditions such as `K = 2 * M, M > 0`, in prefix or
infix notation.

    conditions ::= [condition (("," | "and") condition)*]
    condition  ::= "(" COMPARE operand operand… ")" | "(" "and" condition… ")" | sum (COMPARE sum)+
    sum        ::= product (("+" | "-") product)*
    product    ::= operand (("*" | "floordiv" | "mod") operand)*
    operand    ::= NUMBER | NAME | "-" operand | "(" OPERATOR operand… ")" | "(" sum ")"

`-` is a name character (`x-size`), so a subtraction is written with spaces.
"""
from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import reduce
from itertools import pairwise

from ..core.expr import Const, Expr, Op, index
from ..core.integer_arithmetic import exact
from ..errors import CatenError, Place, amount, error
from ..frozen import frozen
from .spec_files import shown

LARGEST = 1 << 62              # greatest number in a signature
MAX_DEPTH = 64                 # nesting of parentheses
MAX_OPERATORS = 64             # nesting of operators; `a + b + c` is two
MAX_FACTORS = 32               # of one product: an array has no more axes
MAX_TEXT = 1 << 16             # characters of one declaration or condition

ARITHMETIC = {"+": "add", "-": "sub", "*": "mul", "floordiv": "floordiv", "//": "floordiv", "mod": "mod", "%": "mod",
              "max": "max", "min": "min"}
COMPARE = {"=": "eq", "==": "eq", "/=": "ne", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
SUMS, PRODUCTS = ("+", "-"), ("*", "floordiv", "//", "mod", "%")

_TOKEN = re.compile(r"""(?P<skip>(?:\s+|;[^\n]*)+)|(?P<number>\d[A-Za-z0-9_.]*)|(?P<name>[A-Za-z_][A-Za-z0-9_-]*)"""
                    r"""|(?P<mark>->|//|==|/=|!=|<=|>=|[-+*/%=<>(){}\[\],~])""")
_LOST = re.compile(r";[ \t]*[A-Za-z_][A-Za-z0-9_-]*[ \t]*\{")        # a declaration in a comment


@frozen
class Token:
    """`kind`: `number`, `name`, `mark` or `end`."""

    kind: str
    text: str
    start: int
    end: int


def tokens(text: str, where: Callable[[int], Place]) -> list[Token]:
    """Lexer for tensor declarations and conditions. The last token is of kind `end`."""
    if len(text) > MAX_TEXT:
        raise error("E004", f"a declaration or condition of more than {MAX_TEXT} characters", where(0))
    found: list[Token] = []
    pos = 0
    while pos < len(text):
        m = _TOKEN.match(text, pos)
        if m is None:
            raise stray(text[pos], where(pos))
        if m.lastgroup == "skip" and (lost := _LOST.search(m[0])) is not None:
            raise stray(";", where(pos + lost.start()))
        if m.lastgroup != "skip":
            found.append(Token(str(m.lastgroup), m[0], pos, m.end()))
        pos = m.end()
    return [*found, Token("end", "", len(text), len(text))]


def stray(char: str, place: Place) -> CatenError:
    """The refusal of a character that belongs to no token."""
    if ord(char) < 128:
        hint = "; begins a comment: separate declarations with commas" if char == ";" else None
        return error("E101", f"{shown(char)} has no meaning here", place, hint=hint)
    name = unicodedata.name(char, f"U+{ord(char):04X}")
    return error("E106", f"names are ASCII letters, digits, _ and -: this is {name}", place,
                 hint="some letters of other alphabets look like ASCII ones")


class Arithmetic:
    """Recursive-descent parser of size arithmetic over tokens. `variable` gives the value of a name (or refuses it)."""

    def __init__(self, found: list[Token], where: Callable[[int], Place], variable: Callable[[str, Place], Expr]):
        self.tokens, self.where, self.variable, self.i = found, where, variable, 0

    @property
    def token(self) -> Token:
        return self.tokens[self.i]

    @property
    def place(self) -> Place:
        return self.where(self.token.start)

    def accept(self, *texts: str) -> Token | None:
        """Consume the current token if it is one of these."""
        token = self.token
        if token.kind == "end" or token.text not in texts:
            return None
        self.i += 1
        return token

    def expect(self, text: str, why: str) -> Token:
        token = self.accept(text)
        if token is None:
            raise error("E101", f"expected '{text}' {why}, not {self.here()}", self.place)
        return token

    def here(self) -> str:
        """The current token, for a message."""
        return "the end" if self.token.kind == "end" else shown(self.token.text)

    # dimensions and operands
    def operand(self, depth: int = 0) -> Expr:
        token, place = self.token, self.place
        if depth > MAX_DEPTH:
            raise error("E004", f"parentheses are nested deeper than {MAX_DEPTH}", place)
        if token.kind == "number":
            self.i += 1
            return index(whole(token.text, place))
        if token.kind == "name":
            self.i += 1
            return self.variable(token.text, place)
        if self.accept("-"):
            return apply("sub", [index(0), self.operand(depth + 1)], place)
        if self.accept("("):
            value = self.prefix(depth + 1) if self.is_prefix() else self.sum(depth + 1)
            self.expect(")", "to close this expression")
            return value
        joins = self.token.text in (*SUMS, *PRODUCTS)
        raise error("E117", f"expected a number, a size or (…), not {self.here()}", place,
                    hint="a computed extent stands in parentheses: (M + 1)" if joins else None)

    def is_prefix(self) -> bool:
        """After a `(`: true if an operator follows. `(-M)` and `(- M 1)` both qualify; a name must be an operator's."""
        return self.token.text in ARITHMETIC or self.token.text in COMPARE or self.token.text == "/" or (
            self.token.kind == "name" and self.tokens[self.i + 1].text not in (")", *SUMS, *PRODUCTS, "/", *COMPARE))

    def prefix(self, depth: int) -> Expr:
        """After a `(`: an operator and its operands."""
        operator, place = self.token, self.place
        if operator.text == "/":
            raise divided(place)
        if operator.text not in ARITHMETIC:
            raise error("E112", f"{shown(operator.text)} is not an operator on sizes", place,
                        hint=f"use one of {' '.join(ARITHMETIC)}")
        self.i += 1
        args: list[Expr] = []
        while self.token.text != ")" and self.token.kind != "end":
            args.append(self.operand(depth))
            self.accept(",")
        return apply(ARITHMETIC[operator.text], args, place)

    def sum(self, depth: int = 0) -> Expr:
        left = self.product(depth)
        while (operator := self.accept(*SUMS)) is not None:
            left = apply(ARITHMETIC[operator.text], [left, self.product(depth)], self.where(operator.start))
        return left

    def product(self, depth: int) -> Expr:
        left = self.operand(depth)
        while (operator := self.accept(*PRODUCTS, "/")) is not None:
            if operator.text == "/":
                raise divided(self.where(operator.start))
            left = apply(ARITHMETIC[operator.text], [left, self.operand(depth)], self.where(operator.start))
        return left

    # conditions
    def conditions(self, *, until: str = "") -> list[Expr]:
        """Conditions joined by commas or `and`, to the end or up to the mark `until`."""
        found: list[Expr] = []
        while self.token.kind != "end" and self.token.text != until:
            found.extend(self.condition())
            if not self.accept(",", "and") and self.token.kind != "end" and self.token.text != until:
                if self.token.text in ("or", "not"):
                    word = self.token.text
                    raise error("E117", f"'{word}' is not part of conditions: only commas and 'and' join them",
                                self.place)
                raise error("E117", f"expected a comma, 'and' or the end after a condition, not {self.here()}",
                            self.place)
        return found

    def condition(self, depth: int = 0) -> list[Expr]:
        start, place = self.i, self.place
        if depth > MAX_DEPTH:
            raise error("E004", f"parentheses are nested deeper than {MAX_DEPTH}", place)
        if self.accept("("):
            if self.accept("and"):
                return self.closing([c for part in self.parts(depth) for c in part], place)
            if (operator := self.accept(*COMPARE)) is not None:
                return self.closing(chain([(operator.text, part) for part in self.operands()], place), place)
            if self.compares_inside():
                return self.closing(self.condition(depth + 1), place)
            self.i = start
        links = [("", self.sum())]
        while (operator := self.accept(*COMPARE)) is not None:
            links.append((operator.text, self.sum()))
        if len(links) < 2:
            raise error("E118", "this is a number, not a condition", place, hint="write a comparison, such as M > 0")
        return chain(links, place)

    def parts(self, depth: int) -> list[list[Expr]]:
        found = []
        while self.token.text != ")" and self.token.kind != "end":
            found.append(self.condition(depth + 1))
            self.accept(",")
        return found

    def operands(self) -> list[Expr]:
        found = []
        while self.token.text != ")" and self.token.kind != "end":
            found.append(self.operand())
            self.accept(",")
        return found

    def closing(self, conditions: list[Expr], place: Place) -> list[Expr]:
        if not self.accept(")"):
            raise error("E117", "this ( is never closed", place)
        return conditions

    def compares_inside(self) -> bool:
        """After a `(`: true if a comparison comes before the matching `)`."""
        depth = 0
        for token in self.tokens[self.i:]:
            depth += (token.text == "(") - (token.text == ")")
            if depth < 0:
                return False
            if depth == 0 and token.text in COMPARE:
                return True
        return False


def parse_conditions(text: str, where: Callable[[int], Place], variable: Callable[[str, Place], Expr]) -> list[Expr]:
    """The conditions in a text; an empty text has none."""
    return Arithmetic(tokens(text, where), where, variable).conditions()


def whole(text: str, place: Place) -> int:
    """The integer of a literal. Its digits are limited first, because the conversion takes quadratic time."""
    if not text.isdigit():
        if re.fullmatch(r"\d+\.\d*(?:[eE]\d+)?|\d+[eE]\d+", text):
            raise error("E112", f"sizes are whole numbers, not {shown(text)}", place)
        raise error("E106", f"{shown(text)} is neither a number nor a name: names do not start with a digit", place)
    if len(text) > 20 or int(text) > LARGEST:
        raise error("E109", f"{shown(text, 24)} is too large for a size", place, hint="sizes go up to 2^40")
    return int(text)


def divided(place: Place) -> CatenError:
    """The refusal of `/` on sizes."""
    return error("E112", "sizes are whole numbers: '/' could leave a fraction", place,
                 hint="use floordiv, which rounds down")


def apply(fn: str, args: list[Expr], place: Place) -> Expr:
    """An operator on sizes, left-associative over any number of operands, with constant folding."""
    if fn == "sub" and len(args) == 1:
        args = [index(0), *args]
    few = len(args) < (2 if fn in ("floordiv", "mod") else 1)
    if few or (fn in ("floordiv", "mod") and len(args) > 2):
        arity = "two" if fn in ("floordiv", "mod") else "one or more"
        raise error("E112", f"'{fn}' takes {amount(arity, 'operand')}, not {len(args)}", place)
    return reduce(lambda x, y: _fold(fn, x, y, place), args)


def _fold(fn: str, x: Expr, y: Expr, place: Place) -> Expr:
    if not (isinstance(x, Const) and isinstance(y, Const)):
        made = Op(fn, (x, y))
        limit = MAX_FACTORS if fn == "mul" else MAX_OPERATORS
        if made.depth > limit:
            parts = "factors" if fn == "mul" else "operators"
            raise error("E239", f"this arithmetic nests deeper than {limit} {parts}", place,
                        hint="a sum or product of many parts nests, too: name a part of it, (where K = …)")
        return made
    value = exact(fn)(int(x.value), int(y.value))
    if abs(value) > LARGEST:
        raise error("E109", "this number is too large for a size", place, hint="sizes go up to 2^40")
    return index(value)


def chain(links: list[tuple[str, Expr]], place: Place) -> list[Expr]:
    """`0 < M <= 4` as its comparisons. The operator of a link stands before its operand."""
    if len(links) < 2:
        raise error("E118", "a comparison takes two operands", place)
    return [Op(COMPARE[op], (left, right)) for (_, left), (op, right) in pairwise(links)]
