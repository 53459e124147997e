"""Statements of the Lisp body language: forms -> statements of the loop level."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NoReturn

from ..core.dtypes import DTYPES
from ..core.expr import TRUE, Const, Expr, Op, Var, number
from ..core.text import Atom, Form, Sexp
from ..errors import CatenError
from ..loop.statements import ONE, ZERO, Aref, For, If, Let, Local, Setf, Stmt, dotimes
from .assignments import UPDATES, declare_local, set_local, set_place, update
from .composite import fold
from .expression_sharing import split_large_expressions
from .expressions import EXPRESSIONS, clauses_of, infer, is_otherwise, let_pairs, unknown
from .lowering_state import MAX_REPORTS, MAX_STATEMENTS, Frame, Handler
from .scope import Array, Broken, Number, Scope
from .typing import WEAK_INT, Literal, Value
from .vocabulary import FUNCTIONS

STACK_BYTES = 16 * 1024               # a local array up to this size lives on the stack
MAX_BYTES = 1 << 46                   # more than any memory


def block(f: Frame, forms: Sequence[Sexp], outer: Scope) -> tuple[Stmt, ...]:
    """A statement list with a scope of its own. A refused statement is reported and skipped."""
    if not forms:
        return ()
    scope = Scope(outer)
    stmts = sequence(f.deeper(forms[0].pos), forms, scope)
    close(scope, outer, forms[0].pos)
    return stmts


def close(inner: Scope, outer: Scope, pos: int) -> None:
    """Remember the names of a closed list, for messages about later uses."""
    for name, where in [*[(fold(n), pos) for n in inner.exact], *inner.ended.items()]:
        outer.ended.setdefault(name, where)


def sequence(f: Frame, forms: Sequence[Sexp], scope: Scope) -> tuple[Stmt, ...]:
    """Statements in the scope `scope`."""
    stmts: list[Stmt] = []
    for form in forms:
        if len(f.work.diagnostics) >= MAX_REPORTS:
            break
        try:
            f.work.count += 1
            f.work.inlined += len(f.callers) > 1
            if f.work.count == MAX_STATEMENTS + 1:
                f.fail("E239", f"more than {MAX_STATEMENTS} statements in one body", form.pos,
                       "write loops over them, or several composites")
            if f.work.count > MAX_STATEMENTS:
                break
            stmts.extend(divided(f, statement(f, form, scope), form.pos))
        except CatenError as problem:
            f.report(problem)
    return tuple(stmts)


def divided(f: Frame, stmts: Sequence[Stmt], pos: int) -> list[Stmt]:
    """The statements with large expressions split into named parts; E239 if one cannot be split."""
    def refuse(reason: str) -> NoReturn:
        f.fail("E239", f"this expression {reason}", pos, "keep a part of it in a local: (set x …)")

    return split_large_expressions(stmts, f.work.names, refuse)


def statement(f: Frame, form: Sexp, scope: Scope) -> list[Stmt]:
    """One form in a statement list."""
    if isinstance(form, Atom) and form.lower() == "nil":
        return []
    if not isinstance(form, Form):
        f.fail("E224", "expected a statement here", form.pos, "a statement is (setf …), (dotimes …), …")
    if not form or not isinstance(form[0], Atom):
        f.fail("E223", "expected (statement …) here", form.pos,
               "remove the extra parentheses; several statements are (progn …)")
    head = form[0].lower()
    if f.work.whole is not None and f.work.whole.is_one(form, scope):
        return f.work.whole.statements(f, form, scope)
    if head in f.work.statements:
        return f.work.statements[head](f, form, scope)
    if head in FUNCTIONS or head in EXPRESSIONS:
        f.fail("E224", f"the value of ({form[0]} …) is not used", form.pos,
               "store it, (setf place value), or name it, (set x value)")
    unknown(f, form)


# loops


def _dotimes(f: Frame, form: Form, scope: Scope) -> list[Stmt]:
    usage = "(dotimes (i n) …)"
    header = _loop_header(f, form, 2, 2, usage)
    return [_loop(f, form, scope, header, ZERO, f.typing.index(infer(f, header[1], scope), "the number of iterations"),
                  ONE)]


def _range(f: Frame, form: Form, scope: Scope) -> list[Stmt]:
    usage = "(loop (i from to by) …)"
    header = _loop_header(f, form, 3, 4, usage)
    lo, hi, *rest = [f.typing.index(infer(f, part, scope), f"{what} of the loop")
                     for part, what in zip(header[1:], ("the start", "the end", "the step"), strict=False)]
    step = rest[0] if rest else ONE
    if isinstance(step, Const) and step.value == 0:
        f.fail("E231", "the step of this loop is 0", header[3].pos, "a negative step counts down")
    return [_loop(f, form, scope, header, lo, hi, step)]


def _loop_header(f: Frame, form: Form, low: int, high: int, usage: str) -> Form:
    if len(form) < 2 or not isinstance(form[1], Form) or not low <= len(form[1]) <= high:
        f.fail("E223", f"expected {usage.split(' ', 1)[1].rsplit(' ', 1)[0]} after {form[0]}", form.pos,
               f"write {usage}")
    if len(form) == 2:
        f.fail("E230", "this loop has no statements", form.pos, f"write {usage}")
    return form[1]


def _loop(f: Frame, form: Form, scope: Scope, header: Form, lo: Expr, hi: Expr, step: Expr) -> Stmt:
    spelled = f.identifier(header[0], "a loop as (dotimes (i n) …)")
    var = Var(f.work.names.fresh(spelled), "i64")
    f.mark(var, form.pos)
    inner = Scope(scope)
    inner.declare(spelled, Number(Value(WEAK_INT, header[0].pos, expr=var), "loop variable"))
    f.work.loops.append(For(var.name, lo, hi, step, "serial", ()))
    body = block(f, form[2:], inner)
    f.work.loops.pop()
    close(inner, scope, form.pos)
    return For(var.name, lo, hi, step, "serial", body)


# names


def _let(f: Frame, form: Form, scope: Scope) -> list[Stmt]:
    """`(let ((x e) …) body…)`: all values are computed before any name is bound; `let*` binds in sequence. A name that
    the body assigns becomes a local."""
    inner, assigned = Scope(scope), _assigned(form[2:])
    stmts: list[Stmt] = []
    for pair, (name, value) in zip(form[1] if len(form) > 1 else (), let_pairs(f, form), strict=True):
        stmts += _bind(f, inner, inner if form[0].lower() == "let*" else scope, name, value, pair.pos, assigned)
    stmts += block(f, form[2:], inner)
    close(inner, scope, form.pos)
    return stmts


def _bind(f: Frame, inner: Scope, outer: Scope, name: str, form: Sexp, pos: int, assigned: set[str]) -> list[Stmt]:
    try:
        value = infer(f, form, outer)
    except CatenError as problem:
        f.report(problem)
        inner.declare(name, Broken())
        return []
    if fold(name) in assigned:
        return declare_local(f, inner, name, value, pos)
    if isinstance(value, Literal):
        inner.declare(name, Number(value, "let"))
        return []
    var = Var(f.work.names.fresh(name), f.typing.storage(value.kind))
    inner.declare(name, Number(Value(value.kind, pos, expr=var), "let"))
    return [Let(var.name, var.type, f.typing.default(value))]


def _assigned(forms: Sequence[Sexp]) -> set[str]:
    """The names that statements assign, in canonical spelling (`fold`)."""
    found: set[str] = set()
    stack = list(forms)
    while stack:
        form = stack.pop()
        if isinstance(form, Form):
            stack.extend(form)
            if form and isinstance(form[0], Atom) and form[0].lower() in ("set", "setf", *UPDATES):
                found.update([fold(part) for part in form[1::2] if isinstance(part, Atom)])
    return found


def _array(f: Frame, form: Form, scope: Scope) -> list[Stmt]:
    """`(array S float (T))`: a local array, filled with 0."""
    usage = "(array S float (T))"
    f.arity(form, 3, 3, usage)
    name = f.identifier(form[1], usage)
    scope.declare(name, Broken())
    if not isinstance(form[2], Atom) or not isinstance(form[3], Form):
        f.fail("E223", "expected a type and a list of extents", form.pos, f"write {usage}")
    dtype = f.typing.type_word(form[2], form[2].pos)
    shape = tuple([_extent(f, part, scope) for part in form[3]])
    if math.prod([e.value if isinstance(e, Const) else 1 for e in shape]) * DTYPES[dtype].bytes > MAX_BYTES:
        f.fail("E313", f"the local array '{name}' takes more than 2^46 bytes", form[3].pos)
    array = Array(f.work.names.fresh(name), dtype, shape, tuple(range(len(shape))), True)
    scope.declare(name, array)
    axes = [Var(f.work.names.fresh(f"{array.name}_{k}"), "i64") for k in range(len(shape))]
    zero: Stmt = Setf(Aref(array.name, tuple(axes), dtype), number(0, dtype))
    for axis, extent in zip(reversed(axes), reversed(shape), strict=True):
        zero = dotimes(axis.name, extent, zero)
        f.mark(axis, form.pos)
    return [Local(array.name, dtype, shape, space_of(dtype, shape)), zero]


def _extent(f: Frame, form: Sexp, scope: Scope) -> Expr:
    """An extent of a local array: arithmetic over sizes."""
    extent = f.typing.index(infer(f, form, scope), "this extent")
    if any(isinstance(n, Aref) or (isinstance(n, Var) and n.name not in f.work.sizes) for n in extent.unique()):
        f.fail("E313", "an extent of a local array may only use sizes and numbers", form.pos,
               "declare it as large as it can become")
    if isinstance(extent, Const) and not 0 <= extent.value <= 1 << 40:
        f.fail("E313", f"an extent of {extent.value} is not between 0 and 2^40", form.pos)
    return extent


def space_of(dtype: str, shape: tuple[Expr, ...]) -> str:
    """The memory space of a local array: register for a scalar, stack for a small constant shape, else scratch."""
    if not shape:
        return "register"
    total = DTYPES[dtype].bytes
    for extent in shape:
        if not isinstance(extent, Const):
            return "scratch"
        total *= extent.value
    return "stack" if total <= STACK_BYTES else "scratch"


# choice and sequence


def _if(f: Frame, form: Form, scope: Scope) -> list[Stmt]:
    f.arity(form, 2, None, "(if condition statement [otherwise])")
    if len(form) > 4:
        f.fail("E222", "(if …) takes a condition, a statement and another one for when it does not hold", form[4].pos,
               "several statements are (progn …), or (when condition …)")
    return _choice(f, scope, [(form[1], form[2:3]), (None, form[3:])], "(if …)")


def _when(f: Frame, form: Form, scope: Scope) -> list[Stmt]:
    f.arity(form, 2, None, f"({form[0]} condition statement…)")
    if form[0].lower() == "when":
        return _choice(f, scope, [(form[1], form[2:])], "(when …)")
    cond = _condition(f, form[1], scope, "(unless …)")
    then = block(f, form[2:], scope)
    return [] if cond is None else [If(Op("not", (cond,)), then)]


def _cond(f: Frame, form: Form, scope: Scope) -> list[Stmt]:
    clauses: list[tuple[Sexp | None, Sequence[Sexp]]] = []
    for clause in clauses_of(f, form):
        otherwise = is_otherwise(clause[0], scope)
        clauses.append((None if otherwise else clause[0], clause[1:]))
        if otherwise:
            break
    return _choice(f, scope, clauses, "(cond …)")


def _choice(f: Frame, scope: Scope, clauses: Sequence[tuple[Sexp | None, Sequence[Sexp]]], what: str) -> list[Stmt]:
    """The first list whose condition holds. A clause without a condition always holds."""
    arms = [(TRUE if cond is None else _condition(f, cond, scope, what), block(f, body, scope))
            for cond, body in clauses]
    result: tuple[Stmt, ...] = ()
    for cond, body in reversed(arms):
        if cond is TRUE:
            result = body
        elif cond is not None:
            result = (If(cond, body, result),)
    return list(result)


def _condition(f: Frame, form: Sexp, scope: Scope, what: str) -> Expr | None:
    """A bool; None if it was refused, so that the statements under it are still read."""
    try:
        return f.typing.condition(infer(f, form, scope), what)
    except CatenError as problem:
        f.report(problem)
        return None


def _progn(f: Frame, form: Form, scope: Scope) -> list[Stmt]:
    return list(sequence(f.deeper(form.pos), form[1:], scope))


def _return(f: Frame, form: Form, scope: Scope) -> list[Stmt]:
    f.fail("E229", "(return …) may only stand at the end of a body", form.pos,
           "every output that is set is returned; leave it out")


STATEMENTS: dict[str, Handler] = {
    "dotimes": _dotimes, "loop": _range, "set": set_local, "setf": set_place, **dict.fromkeys(UPDATES, update),
    "let": _let, "let*": _let,
    "array": _array, "if": _if, "when": _when, "unless": _when, "cond": _cond, "progn": _progn, "return": _return}
