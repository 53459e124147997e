"""Type inference for body expressions. Literals, loop variables and sizes are weakly typed and take the type they meet;
everything else has one type.

An expression is first a `Term` of an element type or one of two weak kinds; `settle` turns it into a typed `Expr` once
the destination is known. A weak integer with a loop variable or a size is computed exactly, in 64 bits, and converted
once where it meets another type. Weak literals become literals of the type they meet.

Arithmetic on 16-bit floats is explicit from here on: operands become float32, and each result is rounded. A term also
keeps the unrounded float32 value, which `incf` accumulates.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

from ..core import dtypes
from ..core.dtypes import DTYPES, LATER, SPELLINGS, computed, is_complex, is_float, is_short, part, rounded
from ..core.expr import Cast, Const, Expr, Op, number
from ..core.integer_arithmetic import exact
from ..core.scalars import OPERATORS
from ..errors import Diagnostic, Place, did_you_mean, error
from ..frozen import frozen

WEAK_INT, WEAK_FLOAT = "int?", "float?"
MAX_DEPTH = 100                       # nesting of an expression that cannot be split: index, condition, weak number
MAX_SIZE = 20_000                     # operators of one expression, `let`s expanded
MAX_OPERATORS = 50_000                # operators of one body

Spot = Callable[[int], Place]


@frozen
class Term:
    """An expression whose type may be open. `kind`: an element type, `int?` or `float?`. `pos`: its source position.
    `depth`: of its tree. `size`: of its part with an open type."""

    kind: str
    pos: int
    depth: int = 1
    size: int = 1

    @property
    def weak(self) -> bool:
        return self.kind in (WEAK_INT, WEAK_FLOAT)


@frozen
class Literal(Term):
    """A number as written."""

    value: int | float = 0


@frozen
class Value(Term):
    """A typed expression. A weak kind (a loop variable, a size) is converted to the type it meets. `wide`: a 16-bit
    float's value in float32, without intermediate rounding."""

    expr: Expr | None = None
    wide: Expr | None = None


@frozen
class Open(Term):
    """An operator with weak operands only: it takes the type of its destination. A `where` keeps its condition as
    `cond`."""

    fn: str = ""
    args: tuple[Term, ...] = ()
    cond: Expr | None = None
    exact: bool = False               # involves a loop variable or a size: computed in 64 bits


class Wording:
    """How messages spell operators and what they advise: here in Lisp."""

    compare, make_bool = "compare it: (/= x 0)", "compare it, (/= x 0), or write t or nil"
    round_down = "(floordiv a b) rounds down; (/ (cast float a) (cast float b)) keeps the fraction"
    to_index = "(floordiv a b) divides integers; (cast int x) converts"
    where = "(where …)"

    def operator(self, fn: str) -> str:
        return f"({OPERATORS[fn].spelling} …)"

    def cast(self, word: str, value: str = "…") -> str:
        """The conversion to the type of this word."""
        return f"(cast {word} {value})"


class Typing:
    """The typing rules for one body. `spot` gives source positions. `weak_float`: the type of a decimal that meets
    nothing else. `words`: those of the body's language."""

    def __init__(self, spot: Spot, weak_float: str, words: Wording | None = None):
        self.spot = spot
        self.weak_float = weak_float
        self.words = words or Wording()
        self.operators = 0                 # so far

    def fail(self, code: str, message: str, pos: int, hint: str | None = None) -> NoReturn:
        raise error(code, message, self.spot(pos), hint=hint)

    def diagnostic(self, code: str, message: str, pos: int, hint: str | None = None) -> Diagnostic:
        return Diagnostic(code, message, self.spot(pos), hint)

    def check_extent(self, depth: int, size: int, pos: int) -> None:
        """E239 if a tree is too large."""
        if depth > MAX_DEPTH or size > MAX_SIZE:
            limit = f"nests deeper than {MAX_DEPTH}" if depth > MAX_DEPTH else f"has more than {MAX_SIZE}"
            self.fail("E239", f"this expression {limit} operators", pos, "keep a part of it in a local: (set x …)")

    def _extent(self, args: Sequence[Term], pos: int) -> tuple[int, int]:
        self.operators += 1
        if self.operators > MAX_OPERATORS:
            self.fail("E239", f"this body has more than {MAX_OPERATORS} operators", pos,
                      "divide it into several composites")
        depth = 1 + max([a.depth for a in args])
        if not all(a.weak for a in args):
            return depth, 1
        size = 1 + sum([a.size for a in args])
        self.check_extent(depth, size, pos)
        return depth, size

    def storage(self, kind: str) -> str:
        """The element type that stores a value of this kind."""
        return {WEAK_INT: "i64", WEAK_FLOAT: self.weak_float}.get(kind, kind)

    # joining

    def join(self, terms: Sequence[Term], what: str) -> str:
        """The common kind of operands (their join): E301 for two different types, E302 for a decimal with an
        integer."""
        kind = terms[0].kind
        for t in terms[1:]:
            kind = self.join_kinds(kind, t.kind, t.pos, what)
        return kind

    def join_kinds(self, a: str, b: str, pos: int, what: str) -> str:
        match (a, b):
            case _ if a == b:
                return a
            case (("int?", "float?") | ("float?", "int?")):
                return WEAK_FLOAT
            case (("int?" | "float?"), strong) | (strong, ("int?" | "float?")):
                self.check_meets(a if strong == b else b, strong, pos, what)
                return strong
        self.fail("E301", f"{what} has operands of different types, {spell(a)} and {spell(b)}", pos,
                  f"convert one of them: {self.words.cast(spell(a))}")

    def check_meets(self, weak: str, dtype: str, pos: int, what: str) -> None:
        """Check that a weak number may become a `dtype`."""
        if dtype == "bool":
            self.fail("E301", f"{what} has a number where a bool is expected", pos,
                      self.words.make_bool)
        if weak == WEAK_FLOAT and not (is_float(dtype) or is_complex(dtype)):
            self.fail("E302", f"{what}: a decimal number cannot become {_a(dtype)}", pos,
                      f"convert the integer, {self.words.cast('float')}, or round the decimal, "
                      f"{self.words.cast(spell(dtype))}")

    # settling

    def settle(self, term: Term, dtype: str, what: str = "this value") -> Expr:
        """The expression of exactly this type; E310 if the term has another one."""
        if not term.weak:
            if term.kind != dtype:
                self.fail("E310", f"{what} is {spell(dtype)}, but the value is {spell(term.kind)}", term.pos,
                          f"convert it: {self.words.cast(spell(dtype))}")
        else:
            self.check_meets(term.kind, dtype, term.pos, what)
        return self._emit(term, dtype)

    def settle_wide(self, term: Term, dtype: str, what: str) -> Expr:
        """Like `settle`, but a 16-bit float stays in float32 without intermediate rounding."""
        expr = self.settle(term, dtype, what)
        return self._wide(term, dtype) if is_short(dtype) else expr

    def stored(self, term: Term, dtype: str, what: str) -> Expr:
        """The expression in the type of the element that it is assigned to."""
        return self.settle(term, dtype, what)

    def stored_wide(self, term: Term, dtype: str, what: str) -> Expr:
        """`stored`, as `settle_wide` keeps a 16-bit float."""
        return self.settle_wide(term, dtype, what)

    def default(self, term: Term) -> Expr:
        """The expression in its own type, or in the default type of a weak kind."""
        return self._emit(term, self.storage(term.kind))

    def _emit(self, term: Term, dtype: str) -> Expr:
        match term:
            case Literal():
                return self.literal(term, dtype)
            case Value(expr=expr) if expr is not None:
                return expr if expr.dtype == dtype else Cast(dtype, expr)
            case Open() if is_short(dtype):
                return Cast(dtype, self._emit(term, computed(dtype)))
            case Open(fn="where", cond=cond, args=(a, b)) if cond is not None:
                return Op("where", (cond, self._emit(a, dtype), self._emit(b, dtype)))
            case Open(fn=fn) if term.kind == WEAK_INT and dtype != "i64" and (
                    term.exact or not OPERATORS[fn].accepts(DTYPES[dtype].kind)):
                return Cast(dtype, self._emit(term, "i64"))
            case Open():
                return Op(term.fn, tuple([self._emit(a, dtype) for a in term.args]))
        raise AssertionError(f"no such term: {term}")

    def _wide(self, term: Term, dtype: str) -> Expr:
        """The value in the type that computes 16-bit floats."""
        if isinstance(term, Value) and term.wide is not None:
            return term.wide
        if isinstance(term, Open):
            return self._emit(term, computed(dtype))
        return widened(self._emit(term, dtype))

    def literal(self, term: Literal, dtype: str) -> Const:
        """A constant of `dtype`; E308 if the number is out of its range."""
        kind, value = DTYPES[dtype].kind, term.value
        if kind in ("int", "uint"):
            low, high = DTYPES[dtype].least, DTYPES[dtype].greatest
            if not low <= value <= high:
                self.fail("E308", f"{shown(value)} is beyond the range of {spell(dtype)}, {low} to {high}", term.pos,
                          "use a wider type, or cast it explicitly")
            return number(value, dtype)
        try:
            too_large = dtypes.rounds_to_infinity(float(value), part(dtype)) if dtype != "bool" else value not in (0, 1)
        except OverflowError:
            too_large = True
        if too_large:
            self.fail("E308", f"{shown(value)} is beyond the range of {spell(dtype)}", term.pos,
                      "write inf for infinity, or use double")
        return number(value, dtype)

    # operators

    def apply(self, fn: str, args: Sequence[Term], pos: int) -> Term:
        """An operator of core.scalars on operands that must share a type."""
        row = OPERATORS[fn]
        what = self.words.operator(fn)
        depth, size = self._extent(args, pos)
        if (folded := self._fold(fn, args, pos)) is not None:
            return folded
        kind = self.join(args, what)
        if fn == "div" and (kind == WEAK_INT or DTYPES.get(kind, DTYPES["f32"]).kind in ("int", "uint")):
            if kind != WEAK_INT:
                self.fail("E303", f"/ divides floats, but its operands are {spell(kind)}", pos,
                          self.words.round_down)
            kind = WEAK_FLOAT
        if kind in (WEAK_INT, WEAK_FLOAT):
            if row.takes == "float":
                kind = WEAK_FLOAT
            if not row.accepts("int" if kind == WEAK_INT else "float"):
                self.fail("E304", f"{what} is not defined on decimal numbers", pos)
            if row.gives in ("bool", "whole"):
                dtype = computed(self.storage(kind))
                made = Op(fn, tuple([self._emit(a, dtype) for a in args]))
                return Value(made.dtype, pos, depth, size, made)
            return Open(kind, pos, depth, size, fn, tuple(args), None, any(is_exact(a) for a in args))
        if not row.accepts(DTYPES[kind].kind) or (
                row.gives == "whole" and not row.defined_on(kind)):
            self.fail("E304", f"{what} is not defined on {spell(kind)}", pos, self._advice(row.takes))
        operands = [self._emit(a, kind) for a in args]
        if is_short(kind):
            result = Op(fn, tuple([widened(e) for e in operands]))
            if result.dtype == "bool":
                return Value("bool", pos, depth, size, result)
            return Value(kind, pos, depth, size, Cast(kind, result), Op(fn, tuple([self._wide(a, kind) for a in args])))
        if DTYPES[kind].storage:
            self.fail("E304", f"{what} is not defined on {spell(kind)}, which is for storage", pos,
                      f"convert it first: {self.words.cast(_ROOMIER[kind], 'x')}")
        expr = Op(fn, tuple(operands))
        return Value(expr.dtype, pos, depth, size, expr)

    def monoid(self, fn: str, dtype: str) -> str:
        """The operator that combines elements of a type where `fn` is written."""
        return fn

    def choose(self, cond: Expr, yes: Term, no: Term, pos: int) -> Term:
        """`(where cond yes no)`."""
        kind = self.join([yes, no], self.words.where)
        depth, size = self._extent([yes, no], pos)
        if kind in (WEAK_INT, WEAK_FLOAT):
            return Open(kind, pos, depth, size, "where", (yes, no), cond, is_exact(yes) or is_exact(no))
        wide = Op("where", (cond, self._wide(yes, kind), self._wide(no, kind))) if is_short(kind) else None
        return Value(kind, pos, depth, size, Op("where", (cond, self._emit(yes, kind), self._emit(no, kind))), wide)

    def cast(self, dtype: str, arg: Term, pos: int) -> Term:
        """`(cast T x)`: a weak decimal is computed in T if T is a float; an integer literal beyond int64 is one of
        T."""
        beyond = (isinstance(arg, Literal) and isinstance(arg.value, int) and arg.value > DTYPES["i64"].greatest
                  and DTYPES[dtype].kind == "uint")
        if isinstance(arg, Literal) and (beyond or DTYPES[dtype].kind in ("float", "complex")):
            return Value(dtype, pos, 1, 1, self.literal(arg, dtype))
        expr = self._emit(arg, dtype) if arg.kind == WEAK_FLOAT and is_float(dtype) else self.default(arg)
        return Value(dtype, pos, arg.depth + 1, arg.size + 1, expr if expr.dtype == dtype else Cast(dtype, expr))

    def condition(self, term: Term, what: str) -> Expr:
        """A bool; E305 for a number."""
        if term.kind != "bool":
            self.fail("E305", f"the condition of {what} is {_a(term.kind)}, not a bool", term.pos,
                      self.words.compare)
        return self._emit(term, "bool")

    def index(self, term: Term, what: str) -> Expr:
        """An i64: weak integers as they are, other integers converted; E306 for everything else."""
        if term.kind == WEAK_FLOAT or (term.kind != WEAK_INT and DTYPES[term.kind].kind not in ("int", "uint")):
            self.fail("E306", f"{what} is {_a(term.kind)}, not an integer", term.pos,
                      self.words.to_index)
        self.check_extent(term.depth, term.size, term.pos)
        expr = self.default(term)
        return expr if expr.dtype == "i64" else Cast("i64", expr)

    def type_word(self, word: str, pos: int) -> str:
        """The element type of a word; E309 if there is none."""
        known = SPELLINGS.get(word.lower())
        if known is None:
            later = LATER.get(word.lower())
            self.fail("E309", f"'{word}': {later}" if later else f"'{word}' is not an element type", pos,
                      None if later else did_you_mean(word, list(SPELLINGS))
                      or "an element type such as float, double, int32 or bool")
        return known

    def _advice(self, takes: str) -> str | None:
        """What to do with operands that an operator does not take."""
        word = {"float": "float", "number": "int"}.get(takes)
        return f"convert it first: {self.words.cast(word, 'x')}" if word else _TAKES_HINT.get(takes)

    def _fold(self, fn: str, args: Sequence[Term], pos: int) -> Term | None:
        """Fold arithmetic on integer literals, so that `(- 1)` is a literal."""
        values = [a.value for a in args if isinstance(a, Literal)]
        if len(values) < len(args) or fn not in _FOLDS or not (fn == "neg" or all(isinstance(v, int) for v in values)):
            return None
        value = exact(fn)(*values)
        return None if isinstance(value, int) and abs(value) >= 1 << 64 else Literal(args[0].kind, pos, value=value)


_FOLDS = ("neg", "add", "sub", "mul")

def widened(expr: Expr) -> Expr:
    """A 16-bit float as the equal float32; other values unchanged."""
    wide = computed(expr.dtype)
    if wide == expr.dtype:
        return expr
    return number(rounded(expr.value, expr.dtype), wide) if isinstance(expr, Const) else Cast(wide, expr)


def narrowed(expr: Expr, dtype: str) -> Expr:
    """The value rounded to this type."""
    return expr if expr.dtype == dtype else Cast(dtype, expr)


_ROOMIER = {"i4": "int8", "u4": "uint8"}

_TAKES_HINT = {"bits": "it is for integers and bools", "integer": "it is for integers"}

_WORDS = {"f16": "half", "bf16": "bfloat16", "f32": "float", "f64": "double", "c64": "complex64", "c128": "complex128",
          WEAK_INT: "int", WEAK_FLOAT: "decimal",
          **{f"i{b}": f"int{b}" for b in (4, 8, 16, 32, 64)}, **{f"u{b}": f"uint{b}" for b in (4, 8, 16, 32, 64)}}


def spell(kind: str) -> str:
    """A type as a spec spells it."""
    return _WORDS.get(kind, kind)


def _a(kind: str) -> str:
    word = "decimal number" if kind == WEAK_FLOAT else "integer" if kind == WEAK_INT else spell(kind)
    return ("an " if word[0] in "aeio" else "a ") + word


def is_exact(term: Term) -> bool:
    """True for a weak number that involves a loop variable or a size."""
    return isinstance(term, Value) or (isinstance(term, Open) and term.exact)


def shown(value: int | float) -> str:
    """A number for a message; a huge one by its number of digits."""
    if isinstance(value, int) and abs(value) >= 10**40:
        return f"this number (about 2^{value.bit_length()})"
    return str(value)
