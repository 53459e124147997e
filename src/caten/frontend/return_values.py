"""Return values: the `(return …)` at the end of a body sets the outputs by position."""
from __future__ import annotations

from collections.abc import Sequence

from ..core.expr import Const, Op, Var
from ..core.text import Atom, Form, Sexp
from ..errors import amount
from ..loop.statements import Aref, Let, Setf, Stmt, dotimes
from .composite import Composite, Declared, fold
from .expressions import infer
from .lowering_state import Frame
from .scope import Array, Scope, Variable
from .typing import Value


def split(composite: Composite, forms: Sequence[Sexp]) -> tuple[Sequence[Sexp], Sexp | None]:
    """The statements of a body, and the final `(return …)` or bare output."""
    last = forms[-1] if forms else None
    if isinstance(last, Atom):
        found = any(fold(o) == fold(last) for o in composite.outputs)
    else:
        found = isinstance(last, Form) and bool(last) and isinstance(last[0], Atom) and last[0].lower() == "return"
    return (forms[:-1], last) if found else (forms, None)


def store_returned(f: Frame, composite: Composite, form: Sexp, outputs: Scope, scope: Scope) -> list[Stmt]:
    """Store returned values into the outputs by position: an output itself needs nothing, a number goes to an output of
    rank 0, an array is copied. All values are computed before any store. `outputs`: the scope of the signature."""
    values = form[1:] if isinstance(form, Form) else (form,)
    if len(values) == 1 and isinstance(values[0], Form) and values[0] and values[0][0] == "values":
        values = values[0][1:]
    if len(values) != len(composite.outputs):
        f.fail("E229", f"{amount(len(values), 'value')} {'is' if len(values) == 1 else 'are'} returned for "
                       f"{amount(len(composite.outputs), 'output')}", form.pos,
               f"write {_usage(composite)}, or leave it out")
    lets: list[Stmt] = []
    stores: list[Stmt] = []
    for value, name in zip(values, composite.outputs, strict=True):
        target, declared = outputs.find_exact(name), composite.tensor(name)
        if not isinstance(target, Array | Variable) or declared is None:  # a refused declaration
            continue
        binding = scope.find(value) if isinstance(value, Atom) else None
        if isinstance(binding, Array | Variable) and binding.name == target.name:
            continue
        f.work.written.add(target.name)
        if isinstance(target, Array) and declared.shape:
            stores.append(_copied(f, composite, value, binding, target, declared))
        else:
            place = f.place(target) if isinstance(target, Variable) else Aref(target.name, (), target.dtype)
            f.mark(place, value.pos)
            expr = f.typing.settle(infer(f, value, scope), place.dtype, f"the output '{name}'")
            if len(values) > 1 and not isinstance(expr, Const):
                var = Var(f.work.names.fresh(name), place.dtype)
                lets.append(Let(var.name, var.type, expr))
                expr = var
            stores.append(Setf(place, expr))
    return [*lets, *stores]


def _usage(composite: Composite) -> str:
    return f"(return {' '.join(composite.outputs)})"


def _copied(f: Frame, composite: Composite, value: Sexp, binding: object, target: Array, declared: Declared) -> Stmt:
    """Copy a local array or an input to an output. The shapes must agree, at the latest at the call."""
    if not isinstance(binding, Array) or binding.name in composite.outputs or len(binding.shape) != len(target.shape):
        code, reason = (("E235", "")
                        if isinstance(value, Form) else ("E229", ""))
        f.fail(code, f"the returned value is not the output '{declared.name}'{reason}", value.pos,
               f"set its elements, then write {_usage(composite)} or leave it out")
    axes = tuple([Var(f.work.names.fresh(f"{target.name}_{k}"), "i64") for k in range(len(target.shape))])
    for mine, theirs in zip(target.shape, binding.shape, strict=True):
        f.require(Op("eq", (mine, theirs)), value.pos,
                  f"the output '{declared.name}' has {mine!r} elements along an axis where '{value}' has {theirs!r}")
    place, element = Aref(target.name, axes, target.dtype), Aref(binding.name, axes, binding.dtype)
    copy: Stmt = Setf(place, f.typing.settle(Value(binding.dtype, value.pos, expr=element), target.dtype,
                                             f"the output '{declared.name}'"))
    for node in (place, element, *axes):
        f.mark(node, value.pos)
    for axis, extent in zip(reversed(axes), reversed(target.shape), strict=True):
        copy = dotimes(axis.name, extent, copy)
    return copy
