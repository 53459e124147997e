"""Assignments of the Lisp body language: `set`, `setf`, `incf` and its variants, and their targets."""
from __future__ import annotations

from dataclasses import replace

from ..core.dtypes import DTYPES, computed
from ..core.expr import Op
from ..core.scalars import OPERATORS
from ..core.text import Atom, Form, Sexp
from ..errors import CatenError
from ..loop.statements import Aref, Incf, Local, Setf, Stmt
from .composite import fold
from .expressions import element_of, example, infer, reads_fresh
from .lowering_state import Frame, same_name
from .scope import Array, Broken, Number, Scope, Variable
from .typing import WEAK_INT, Literal, Term, narrowed, spell, widened


def declare_local(f: Frame, scope: Scope, name: str, value: Term, pos: int) -> list[Stmt]:
    """Declare a local with its first value."""
    local = Variable(f.work.names.fresh(name), (*f.path, pos))
    f.meet(local, value)
    scope.declare(name, local)
    place = f.place(local)
    f.mark(place, pos)
    return [Local(local.name, place.dtype, (), "register"),
            Setf(place, f.typing.settle(value, place.dtype, f"the local '{name}'"))]


def set_local(f: Frame, form: Form, scope: Scope) -> list[Stmt]:
    """`(set x e)` declares a local in this statement list, or assigns a visible one."""
    usage = "(set x value)"
    f.arity(form, 2, 2, usage)
    if isinstance(form[1], Form):
        f.fail("E223", "(set …) takes the name of a local", form[1].pos, "(setf place value) stores into a tensor")
    name = f.identifier(form[1], usage)
    binding = scope.find(name)
    if isinstance(binding, Variable):
        return store(f, binding, form[2], scope)
    match scope.find_exact(name):
        case Array(shape=()) as array if array.writable:
            return set_place(f, form, scope)
        case Array():
            f.fail("E225", f"'{name}' is a tensor: (set …) takes the name of a local", form[1].pos,
                   f"(setf (aref {name} …) value), or another name")
        case Number(what="loop variable"):
            f.fail("E226", f"'{name}' is a loop variable and cannot be assigned", form[1].pos,
                   "take another name for the local")
    try:
        value = infer(f, form[2], scope)
    except CatenError:
        if not isinstance(binding, Broken):
            scope.declare(name, Broken())
        raise
    return declare_local(f, scope, name, value, form.pos)


def set_place(f: Frame, form: Form, scope: Scope) -> list[Stmt]:
    """`(setf target value …)`: assign one pair after the other."""
    usage = "(setf place value)"
    f.arity(form, 2, None, usage)
    if len(form) % 2 == 0:
        f.fail("E222", "(setf …) takes pairs of a place and a value", form.pos, f"write {usage}")
    stmts: list[Stmt] = []
    for place, value in zip(form[1::2], form[2::2], strict=True):
        stmts += store(f, target_of(f, place, scope, form), value, scope)
    return stmts


def store(f: Frame, target: Aref | Variable, form: Sexp, scope: Scope) -> list[Stmt]:
    """Store the value of a form into a target, in the target's type."""
    value = infer(f, form, scope)
    if isinstance(target, Variable):
        f.meet(target, value)
        target = f.place(target)
    return [Setf(target, f.typing.settle(value, target.dtype, f"'{target.buffer}'"))]


def target_of(f: Frame, form: Sexp, scope: Scope, whole: Form) -> Aref | Variable:
    """The target of an assignment: an element of an output or of a local array, or a local."""
    setting = whole[0].lower() in ("setf", "set")
    if isinstance(form, Form) and form and same_name(form[0], "aref"):
        array, index, _, _ = element_of(f, form, scope)
        name = form[1]
    elif isinstance(form, Atom):
        name, index = form, ()
        array = _named_target(f, form, scope)
    else:
        f.fail("E223", "expected a place here, (aref C i …) or the name of a local", form.pos,
               f"write ({whole[0]} (aref C i …) value)")
    if isinstance(array, Variable):
        f.mark(f.place(array), form.pos)
        return array
    if not array.writable:
        f.fail("E225", f"'{name}' is an input and no output: it cannot be changed", form.pos,
               output_instead(name, scope))
    place = Aref(array.name, index, array.dtype)
    f.mark(place, form.pos)
    f.work.written.add(array.name)
    if array.fresh and not setting:
        reads_fresh(f, array, place, f"({whole[0]} …) reads", form.pos)
    return place


def _named_target(f: Frame, name: Atom, scope: Scope) -> Array | Variable:
    binding = scope.find(name)
    match binding:
        case Variable() | Array(shape=()):
            return binding
        case Array(shape=shape):
            f.fail("E235", f"'{name}' is a whole tensor, where one number can be assigned", name.pos,
                   f"write its elements: (setf {example(name, shape)} …)")
        case Number(what="scalar input"):
            f.fail("E225", f"'{name}' is an input and no output: it cannot be changed", name.pos,
                   output_instead(name, scope))
        case Number(what=what):
            f.fail("E226", f"'{name}' is a {what} and cannot be assigned", name.pos,
                   f"take a local instead: (set x {name})")
        case Broken():
            raise CatenError()      # its declaration was refused
    if fold(name) in ("t", "nil", "pi", "inf", "nan"):
        f.fail("E226", f"'{name}' is a constant and cannot be assigned", name.pos)
    ended = scope.ended_at(name)
    reason = f": its scope is the inner statement list of line {f.spot(ended).line}" if ended is not None else ""
    f.fail("E220", f"there is no '{name}' here{reason}", name.pos, f"(set {name} value) declares a local")


def output_instead(name: str, scope: Scope) -> str:
    """The suggestion for an assignment to an input."""
    output = f"{name}_out"                        # of a one-line form
    if isinstance(scope.find_exact(output), Array):
        return f"the output declared like it is a new tensor, {output}"
    return f'list "{name}" among the outputs'


# Statement -> operator, and whether the operand is negated first (a difference is a sum with the negated operand).
UPDATES: dict[str, tuple[str, bool]] = {
    "incf": ("add", False), "decf": ("add", True), "mulcf": ("mul", False), "divcf": ("div", False),
    "maxcf": ("max", False), "mincf": ("min", False)}


def update(f: Frame, form: Form, scope: Scope) -> list[Stmt]:
    """`(incf target x)` and its variants. `(incf target)` adds 1."""
    fn, negated = UPDATES[form[0].lower()]
    f.arity(form, 1 if fn == "add" else 2, 2, f"({form[0]} place value)")
    target = target_of(f, form[1], scope, form)
    value = infer(f, form[2], scope) if len(form) > 2 else Literal(WEAK_INT, form.pos, value=1)
    if isinstance(target, Variable):
        f.meet(target, value)
        target = f.place(target)
    dtype, what = target.dtype, f"({form[0]} …) on '{target.buffer}'"
    if fn == "div" and DTYPES[dtype].kind in ("int", "uint"):
        f.fail("E303", f"{what} divides floats, but it is {spell(dtype)}", form.pos,
               "(setf place (floordiv place x)) rounds down")
    if not OPERATORS[fn].takes_type(computed(dtype)):
        f.fail("E304", f"({form[0]} …) is not defined on {spell(dtype)}", form.pos,
               f"convert it: (setf place (cast {spell(dtype)} …))" if DTYPES[dtype].storage else None)
    if negated and isinstance(value, Literal) and DTYPES[dtype].kind != "uint":
        return [Incf(target, f.typing.settle_wide(replace(value, value=-value.value), dtype, what))]
    operand = f.typing.settle_wide(value, dtype, what)
    if fn == "div":
        return [Setf(target, narrowed(Op("div", (widened(target), operand)), dtype))]
    return [Incf(target, Op("neg", (operand,)) if negated else operand, fn)]
