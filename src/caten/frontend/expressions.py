"""Expressions of the Lisp body language: forms -> typed terms (type inference)."""
from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import NoReturn

from ..core.dtypes import DTYPES, SPELLINGS
from ..core.expr import FALSE, TRUE, Bitcast, Expr
from ..core.scalars import COMPARISONS, OPERATORS
from ..core.text import Atom, Form, Quoted, Sexp
from ..errors import CatenError, Diagnostic, did_you_mean
from ..loop.statements import Aref
from .composite import fold
from .functions import apply_function
from .lowering_state import Frame
from .scope import Array, Broken, Number, Scope, Variable
from .typing import MAX_DEPTH, WEAK_FLOAT, WEAK_INT, Literal, Term, Value, spell
from .vocabulary import CONSTANTS, FUNCTIONS, HABITS, UNBOUNDED, VARIADIC

Reader = Callable[[Frame, Form, Scope], Term]


_INTEGER = re.compile(r"[-+]?\d+\Z", re.ASCII)
# In another base, as Common Lisp spells it, #xFF, or Python and C, 0xFF.
_IN_BASE = re.compile(r"(?:[-+]?0|#)(?:[xX][\da-fA-F]+|[oO][0-7]+|[bB][01]+)\Z", re.ASCII)
_DECIMAL = re.compile(r"([-+]?(?:\d+\.\d*|\.\d+|\d+(?=[eEdDfF])))(?:[eEdDfF]([-+]?\d+))?\Z", re.ASCII)


MOST_NAMES = 10                  # in a hint


def infer(f: Frame, form: Sexp, scope: Scope) -> Term:
    """The typed value of a form. Operands of functions are read without recursion: a sum may be long."""
    begun: list[tuple[Form, list[Term]]] = []  # the stack: functions and their operands so far
    while True:
        if isinstance(form, Form) and is_function(form):
            check_arity(f, form)
            begun.append((form, []))
        else:
            term = _other(f, form, scope)
            while begun:
                outer, operands = begun[-1]
                operands.append(term)
                if len(operands) < len(outer) - 1:
                    break
                begun.pop()
                term = apply_function(f.typing, FUNCTIONS[outer[0].lower()], operands, outer.pos)
            else:
                return term
        outer, operands = begun[-1]
        form = outer[len(operands) + 1]


def is_function(form: Form) -> bool:
    """True for a function applied to operands."""
    return (bool(form) and isinstance(form[0], Atom) and form[0].lower() in FUNCTIONS
            and form[0].lower() not in EXPRESSIONS)


def _other(f: Frame, form: Sexp, scope: Scope) -> Term:
    """A form that is no function call: it binds names, or means more than its value."""
    match form:
        case Atom():
            return _atom(f, form, scope)
        case Quoted():
            f.fail("E223", "a string has no meaning in a body", form.pos)
        case _ if not form or not isinstance(form[0], Atom):
            f.fail("E223", "expected (function operand …) here", form.pos,
                   "remove the extra parentheses" if form else None)
    head = form[0].lower()
    if head in EXPRESSIONS:
        return EXPRESSIONS[head](f, form, scope)
    if head in f.work.statements:
        f.fail("E224", f"({form[0]} …) is a statement, not a value", form.pos)
    unknown(f, form)


def check_arity(f: Frame, form: Form) -> None:
    """E222 for too few or too many operands. Associative functions take any number; comparisons form chains."""
    fn = FUNCTIONS[form[0].lower()]
    arity = OPERATORS[fn].arity
    if fn in COMPARISONS:
        f.arity(form, 2, MAX_DEPTH, f"({form[0]} a b)")
    elif fn in VARIADIC:
        f.arity(form, 1, None, f"({form[0]} a b …)")
    else:
        f.arity(form, arity, arity, f"({form[0]} {' '.join('abc'[:arity])})")


def unknown(f: Frame, form: Form) -> NoReturn:
    """E221: an unknown function."""
    head = form[0].lower()
    known = [*FUNCTIONS, *EXPRESSIONS, *f.work.statements]
    if head in UNBOUNDED:
        f.fail("E240", f"there is no '{form[0]}': every loop runs a number of times that is known when it starts",
               form.pos,
               "loop a fixed number of times and choose with (where …)")
    second = form[1] if len(form) > 1 and isinstance(form[1], Atom) else ""
    if second.lower() in FUNCTIONS and not second[0].isalpha():
        hint: str | None = f"operators come first: ({second} {form[0]} …)"
    else:
        hint = f"write ({HABITS[head]} …)" if head in HABITS else did_you_mean(form[0], known)
    f.fail("E221", f"there is no function or statement '{form[0]}'", form.pos, hint)


# atoms


def _atom(f: Frame, atom: Atom, scope: Scope) -> Term:
    if (number := read_number(f, atom)) is not None:
        return number
    binding = scope.find(atom)
    match binding:
        case Number(term=term):
            return relocated(term, atom.pos)
        case Variable():
            return f.read(binding, atom.pos)
        case Array(shape=()):
            return _element(f, binding, (), atom.pos, 1, 1)
        case Array():
            f.fail("E235", f"'{atom}' is a whole tensor, where a number is needed", atom.pos,
                   f"read one element of it: {example(atom, binding.shape)}")
        case Broken():
            raise CatenError()      # the refusal of its declaration has been reported
    value = CONSTANTS.get(atom.lower())
    if value is None:
        undefined(f, atom, scope)
    if isinstance(value, bool):
        return Value("bool", atom.pos, expr=TRUE if value else FALSE)
    return Literal(WEAK_FLOAT, atom.pos, value=value)


def relocated(term: Term, pos: int) -> Term:
    """The same value, used at another position."""
    match term:
        case Literal():
            return Literal(term.kind, pos, term.depth, term.size, term.value)
        case Value():
            return Value(term.kind, pos, term.depth, term.size, term.expr)
    return term


def undefined(f: Frame, atom: Atom, scope: Scope) -> NoReturn:
    """E220: an undefined name."""
    if re.match(r"[-+]?[\d.]", atom) or not re.match(r"[\w*-]", atom):
        plain = re.fullmatch(r"([-+]?\d*\.?\d+)[fFlLuU]+", atom)
        f.fail("E223", f"{str(atom)!a} is neither a name nor a number", atom.pos,
               f"write {plain[1]}: a number takes the type of what it meets" if plain else None)
    if (ended := scope.ended_at(atom)) is not None:
        line = f.spot(ended).line
        f.fail("E220", f"there is no '{atom}' here: its scope is the inner statement list of line {line}", atom.pos,
               f"(set {atom} …) before that statement")
    if atom[0] == "-" and (atom[1:].lower() in CONSTANTS or scope.find(atom[1:]) is not None):
        f.fail("E220", f"there is no '{atom}' here", atom.pos, f"(- {atom[1:]}) negates")
    array = atom.split("[")[0]
    if array != atom and isinstance(scope.find(array), Array):
        f.fail("E220", f"there is no '{atom}' here", atom.pos, f"an element is (aref {array} i …)")
    known = f"known here: {', '.join(scope.names[:MOST_NAMES])}{', …' * (len(scope.names) > MOST_NAMES)}"
    declared = f"; (set {atom} …) declares a local" if re.fullmatch(r"[A-Za-z_][\w-]*", atom, re.ASCII) else ""
    f.fail("E220", f"there is no '{atom}' here", atom.pos, did_you_mean(atom, scope.names) or known + declared)


def read_number(f: Frame, atom: Atom) -> Literal | None:
    """A numeric literal, or None."""
    base = 10 if _INTEGER.match(atom) else 0 if _IN_BASE.match(atom) else None
    if base is not None:
        if len(atom) > 400:
            f.fail("E308", f"this number has {len(atom)} digits", atom.pos)
        return Literal(WEAK_INT, atom.pos, value=int(atom.replace("#", "0"), base))
    if m := _DECIMAL.match(atom):
        value = float(m[1] + "e" + (m[2] or "0"))
        if math.isinf(value):
            f.fail("E308", f"{atom} is beyond the range of double", atom.pos, "write inf for infinity")
        return Literal(WEAK_FLOAT, atom.pos, value=value)
    return None


# special forms


def _aref(f: Frame, form: Form, scope: Scope) -> Term:
    array, index, depth, size = element_of(f, form, scope)
    return _element(f, array, index, form.pos, depth, size)


def element_of(f: Frame, form: Form, scope: Scope) -> tuple[Array | Variable, tuple[Expr, ...], int, int]:
    """`(aref A i …)`: the array, its index, and the depth and size of the expression."""
    f.arity(form, 1, None, "(aref A i …)")
    if not isinstance(form[1], Atom):
        f.fail("E223", "expected the name of a tensor here", form[1].pos, "write (aref A i …)")
    name = form[1]
    binding = scope.find(name)
    given = len(form) - 2
    match binding:
        case None:
            undefined(f, name, scope)
        case Broken():
            raise CatenError()      # the refusal of its declaration has been reported
        case Variable() if given == 0:
            return binding, (), 1, 1
        case Number() | Variable():
            f.fail("E311", f"'{name}' is a number, not a tensor", name.pos, f"read it by its name alone: {name}")
        case Array(shape=shape) if len(shape) != given:
            axes = f"{_count(len(shape), 'axis', 'axes')}, [{' '.join(map(repr, shape))}]"
            verb = "is" if given == 1 else "are"
            f.fail("E307", f"'{name}' has {axes}, but {_count(given, 'index', 'indices')} {verb} given", form.pos,
                   f"write one index for each axis, separated by spaces: {example(name, shape)}")
    terms = [infer(f, part, scope) for part in form[2:]]
    index = tuple([f.typing.index(t, f"this index of '{name}'") for t in terms])
    assert isinstance(binding, Array)
    depth, size = 1 + max((t.depth for t in terms), default=0), 1 + sum(t.size for t in terms)
    f.typing.check_extent(depth, size, form.pos)
    return binding, index, depth, size


def example(name: str, shape: tuple[Expr, ...]) -> str:
    """An example of how to spell an element of a tensor."""
    return name if not shape else f"(aref {name}{''.join(' ' + 'ijklmn'[k % 6] for k in range(len(shape)))})"


def _count(n: int, one: str, many: str) -> str:
    return f"{n} {one if n == 1 else many}"


def _element(f: Frame, array: Array | Variable, index: tuple[Expr, ...], pos: int, depth: int, size: int) -> Term:
    if isinstance(array, Variable):
        return f.read(array, pos)
    expr = Aref(array.name, index, array.dtype)
    f.mark(expr, pos)
    if array.fresh:
        reads_fresh(f, array, expr, "reads", pos)
    return Value(array.dtype, pos, depth, size, expr)


def reads_fresh(f: Frame, array: Array, place: Aref, verb: str, pos: int) -> None:
    """Record the refusal for the case that nothing can have set this pure output before."""
    if place not in f.work.unset:
        f.work.unset[place] = array.blame or unset_output(f, array, verb, pos)


def unset_output(f: Frame, array: Array, verb: str, pos: int) -> Diagnostic:
    """E227: a pure output is read too early."""
    message = f"this {verb} the output '{array.name}', which is no input, before anything sets it"
    first = f"(setf {example(array.name, array.shape)} 0) first"
    return f.typing.diagnostic("E227", message, pos,
                               f"{first}, or list it among the inputs too if it comes from the caller")


def _where(f: Frame, form: Form, scope: Scope) -> Term:
    f.arity(form, 3, 3, f"({form[0]} condition a b)")
    cond = f.typing.condition(infer(f, form[1], scope), f"({form[0]} …)")
    return f.typing.choose(cond, infer(f, form[2], scope), infer(f, form[3], scope), form.pos)


def _cond(f: Frame, form: Form, scope: Scope) -> Term:
    clauses = clauses_of(f, form)
    last = clauses[-1]
    if not is_otherwise(last[0], scope):
        f.fail("E222", "this (cond …) has no value when no clause holds", form.pos, "end it with (t value)")
    for clause in clauses:
        if len(clause) != 2:
            f.fail("E222", "as a value, a clause of (cond …) has a condition and one value", clause.pos,
                   "write (condition value)")
    value = infer(f, last[1], scope)
    for clause in reversed(clauses[:-1]):
        value = f.typing.choose(f.typing.condition(infer(f, clause[0], scope), "(cond …)"), infer(f, clause[1], scope),
                                value, clause.pos)
    return value


def clauses_of(f: Frame, form: Form) -> list[Form]:
    """The clauses of `(cond (c e…) …)`."""
    f.arity(form, 1, MAX_DEPTH, "(cond (condition …) … (t …))")
    for clause in form[1:]:
        if not isinstance(clause, Form) or not clause:
            f.fail("E223", "expected a clause of (cond …) here", clause.pos, "write (condition …)")
    return list(form[1:])


def is_otherwise(form: Sexp, scope: Scope) -> bool:
    """True for the `t` of a last clause, even if a size is called T."""
    if not isinstance(form, Atom) or form.lower() not in ("t", "else", "otherwise"):
        return False
    return scope.find_exact(form) is None and (form.lower() == "t" or scope.find(form) is None)


def _cast(f: Frame, form: Form, scope: Scope) -> Term:
    dtype, arg = _conversion(f, form, scope)
    return f.typing.cast(dtype, arg, form.pos)


def _bitcast(f: Frame, form: Form, scope: Scope) -> Term:
    dtype, arg = _conversion(f, form, scope)
    bits = DTYPES[dtype].bits
    expr = (f.typing.settle(arg, f"f{bits}") if arg.kind == WEAK_FLOAT and bits in (16, 32, 64)
            else f.typing.default(arg))
    if DTYPES[expr.dtype].bits != bits or "bool" in (dtype, expr.dtype):
        f.fail("E312", f"(bitcast …) cannot read the bits of {spell(expr.dtype)} as {spell(dtype)}", form.pos,
               "both need the same size, and neither may be bool; (cast …) converts by value")
    return Value(dtype, form.pos, arg.depth + 1, arg.size + 1, Bitcast(dtype, expr))


def _conversion(f: Frame, form: Form, scope: Scope) -> tuple[str, Term]:
    f.arity(form, 2, 2, f"({form[0]} float x)")
    word, value = form[1], form[2]
    if not isinstance(word, Atom) or (word.lower() not in SPELLINGS and isinstance(value, Atom)
                                      and value.lower() in SPELLINGS):
        f.fail("E223", f"the type comes first in ({form[0]} …)", form.pos,
               f"write ({form[0]} {value if isinstance(value, Atom) else 'float'} …)")
    return f.typing.type_word(word, word.pos), infer(f, value, scope)


def _let(f: Frame, form: Form, scope: Scope) -> Term:
    inner = Scope(scope)
    for name, value in let_pairs(f, form):
        inner.declare(name, Number(infer(f, value, inner if form[0].lower() == "let*" else scope), "let"))
    f.arity(form, 2, 2, "(let ((x e) …) value)")
    return infer(f, form[2], inner)


def let_pairs(f: Frame, form: Form) -> list[tuple[str, Sexp]]:
    """The bindings of `(let ((x e) …) …)`."""
    usage = "(let ((x e) …) …)"
    f.arity(form, 2, None, usage)
    if not isinstance(form[1], Form):
        f.fail("E223", "expected a list of bindings here", form[1].pos, f"write {usage}")
    pairs: list[tuple[str, Sexp]] = []
    bound: set[str] = set()
    for pair in form[1]:
        if not isinstance(pair, Form) or len(pair) != 2:
            f.fail("E223", "expected (name value) here", pair.pos, f"write {usage}")
        name = f.identifier(pair[0], usage)
        if fold(name) in bound and form[0].lower() == "let":
            f.fail("E237", f"'{name}' is bound twice in one (let …)", pair.pos, "(let* …) binds one after the other")
        bound.add(fold(name))
        pairs.append((name, pair[1]))
    return pairs


def _progn(f: Frame, form: Form, scope: Scope) -> Term:
    f.arity(form, 1, 1, "the value alone")
    return infer(f, form[1], scope)


def _plus_one(f: Frame, form: Form, scope: Scope) -> Term:
    f.arity(form, 1, 1, f"({form[0]} x)")
    return f.typing.apply("add" if form[0] == "1+"
                          else "sub", [infer(f, form[1], scope), Literal(WEAK_INT, form.pos, value=1)], form.pos)


EXPRESSIONS: dict[str, Reader] = {
    "aref": _aref, "where": _where, "if": _where, "cond": _cond, "cast": _cast, "bitcast": _bitcast,
    "let": _let, "let*": _let, "progn": _progn, "1+": _plus_one, "1-": _plus_one}
