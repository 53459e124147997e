"""Inlining of `(call Relu X Y)`: the body of another composite is lowered in place, over the caller's arrays."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..core.dtypes import DTYPES
from ..core.expr import Const, Expr, Op, Var, index
from ..core.node import Node, substitute
from ..core.text import Atom, Form, Sexp, read_forms
from ..errors import CatenError, amount, did_you_mean
from ..loop.affine import canonical
from ..loop.statements import Let, Stmt
from ..tensor.inlining import inlined_statements
from ..tensor.plain_loops import plain_loops
from .composite import Composite, Declared
from .expressions import infer, read_number, undefined, unset_output
from .generic_signature import of_call
from .lowered_body import Lowered
from .lowering_state import MAX_CALLS, Frame
from .return_values import split, store_returned
from .scope import Array, Broken, Number, Scope, Variable, declare_attributes
from .solved_sizes import solved_sizes
from .statement_forms import sequence
from .typing import WEAK_INT, Typing, Value, spell


def inline_call(f: Frame, form: Form, scope: Scope) -> list[Stmt]:
    """Inline a call. Arguments: the inputs, then the separate outputs, in the order of their declaration."""
    f.arity(form, 1, None, "(call Name X Y …)")
    callee = _find(f, form)
    callee = _instance(f, callee, form, scope)
    usage = f"(call {callee.name} {' '.join(t.name for t in callee.tensors)})"
    if len(form) - 2 != len(callee.tensors):
        expected = f"{amount(len(callee.tensors), 'argument')}, its inputs and then its other outputs"
        f.fail("E234", f"{callee.name} takes {expected}, not {len(form) - 2}", form.pos, f"write {usage}")
    inner = Scope()
    declare_attributes(inner, callee.attributes)
    stmts: list[Stmt] = []
    passed: list[tuple[Declared, Array, Sexp]] = []
    for formal, actual in zip(callee.tensors, form[2:], strict=True):
        if formal.scalar:
            stmts += _pass_scalar(f, formal, actual, scope, inner)
        else:
            binding = _pass_array(f, callee, formal, actual, scope)
            if isinstance(binding, Array):
                passed.append((formal, binding, actual))
            inner.declare(formal.name, binding)
    _check_overlap(f, callee, passed)
    for name, extent in unify_sizes(f, callee, passed, form).items():
        f.typing.check_extent(extent.depth, extent.written_out, form.pos)
        inner.declare(name, Number(Value(WEAK_INT, form.pos, extent.depth, extent.written_out, expr=extent), "size"))
    whole = f.work.callees.array_body(callee)
    if whole is not None:
        return [*stmts, *_array_body(f, callee, whole, inner, form)]
    spot = callee.where
    frame = replace(f.deeper(form.pos), spot=spot, typing=Typing(spot, weak_float(callee.tensors)),
                    path=(*f.path, form.pos), callers=(*f.callers, callee.name),
                    called_at=f.called_at or f.spot(form.pos))
    names = Scope(inner)
    body, last = split(callee, read_forms(callee.code, callee.where))
    stmts += sequence(frame, body, names)
    return stmts if last is None else stmts + store_returned(frame, callee, last, inner, names)


def _array_body(f: Frame, callee: Composite, body: Lowered, scope: Scope, form: Form) -> list[Stmt]:
    """The statements of a body in Python or over whole arrays, over the caller's arrays. `scope`: what the callee's
    names stand for."""
    arrays: dict[str, str] = {}
    numbers: dict[Node, Expr] = {}
    for name in callee.names:
        binding = scope.find_exact(name)
        if isinstance(binding, Array):
            arrays[name] = binding.name
        elif isinstance(binding, Variable):
            arrays[name] = f.place(binding).buffer
        elif isinstance(binding, Number):
            tensor = callee.tensor(name)
            dtype = tensor.dtype if tensor else "i64"
            numbers[Var(name, dtype)] = f.typing.settle(binding.term, dtype)
    for condition in body.requirements:
        f.require(substitute(condition, numbers), form.pos,
                  f"this call contradicts a condition of {callee.name}, {condition!r}")
    own = body.stmts if body.values is None else plain_loops(body.values)
    stmts = inlined_statements(own, f.work.names.fresh, arrays, numbers)
    f.work.inlined += sum([1 for s in stmts for _ in s.walk()])
    return list(stmts)


def weak_float(tensors: Sequence[Declared]) -> str:
    """The type of a decimal that meets no other type: the only float type of the signature, else double."""
    types = {t.dtype: None for t in tensors if DTYPES[t.dtype].kind == "float"}
    return next(iter(types)) if len(types) == 1 else "f64"


def _find(f: Frame, form: Form) -> Composite:
    name = form[1]
    if not isinstance(name, Atom):
        f.fail("E223", "expected the name of a composite here", name.pos, "write (call Name X Y …)")
    callee = f.work.callees.find(name)
    if callee is None:
        f.fail("E232", f"there is no composite '{name}'", name.pos,
               did_you_mean(name, [*f.work.callees.names(), *f.work.callees.library_names()])
               or f"include the file that defines it, or put {name}.toml on the -I path")
    if callee.name in f.callers:
        f.fail("E233", f"{' calls '.join((*f.callers, callee.name))}: recursion is not possible", name.pos,
               "write a loop")
    f.work.calls += 1
    if f.work.calls > MAX_CALLS:
        f.fail("E239", f"more than {MAX_CALLS} composites are called", form.pos)
    return callee


def _instance(f: Frame, callee: Composite, form: Form, scope: Scope) -> Composite:
    """The instance of a generic composite for the arrays that are passed."""
    if not callee.generic or len(form) - 2 != len(callee.tensors):
        return callee
    arrays: dict[str, tuple[str, tuple[int, ...]]] = {}
    for formal, actual in zip(callee.tensors, form[2:], strict=True):
        binding = scope.find(actual) if isinstance(actual, Atom) and read_number(f, actual) is None else None
        if isinstance(binding, Array) and formal.name in callee.inputs:
            arrays[formal.name] = binding.dtype, tuple([1 if extent == index(1) else 2
                                                        for extent in binding.shape])
    try:
        return f.work.callees.instance(callee, of_call(callee.generic, arrays, {}))
    except CatenError as problem:
        first = next(iter(problem.diagnostics), None)
        if first is None or first.code != "E675":
            raise
        f.fail("E314", f"{callee.name}: {first.message}", form.pos, first.hint)


# arguments


def _pass_scalar(f: Frame, formal: Declared, actual: Sexp, scope: Scope, inner: Scope) -> list[Stmt]:
    """Pass by value, computed once."""
    expr = f.typing.settle(infer(f, actual, scope), formal.dtype, f"the argument '{formal.name}'")
    stmts: list[Stmt] = []
    if not isinstance(expr, Const):
        var = Var(f.work.names.fresh(formal.name), formal.dtype)
        stmts.append(Let(var.name, var.type, expr))
        expr = var
    inner.declare(formal.name, Number(Value(formal.dtype, actual.pos, expr=expr), "scalar input"))
    return stmts


def _pass_array(f: Frame, callee: Composite, formal: Declared, actual: Sexp, scope: Scope) -> Array | Variable:
    """The caller's array under the callee's name. Types, ranks, axis orders and write access must agree."""
    what = f"the argument '{formal.name}' of {callee.name}"
    if not isinstance(actual, Atom) or read_number(f, actual) is not None:
        f.fail("E234", f"{what} is a whole tensor, not an expression", actual.pos, "name a tensor or a local array")
    binding = scope.find(actual)
    match binding:
        case None:
            undefined(f, actual, scope)
        case Broken():
            raise CatenError()      # its declaration was refused
        case Variable() if not formal.shape:
            f.meet(binding, Value(formal.dtype, actual.pos))
            if f.place(binding).dtype != formal.dtype:
                f.fail("E314", f"{what} is {spell(formal.dtype)}, but '{actual}' is {spell(f.place(binding).dtype)}",
                       actual.pos)
            return binding
        case Number() | Variable():
            f.fail("E234", f"{what} is a tensor, but '{actual}' is a number", actual.pos,
                   "name a tensor or a local array")
    assert isinstance(binding, Array)
    for mine, theirs, noun in ((spell(formal.dtype), spell(binding.dtype),
                                "type"), (len(formal.shape), len(binding.shape), "number of axes"),
                               (_order(formal.order), _order(binding.order), "axis order")):
        if mine != theirs:
            f.fail("E314", f"{what} has the {noun} {mine}, but '{actual}' has {theirs}", actual.pos)
    writes = formal.access != "in"
    if writes and not binding.writable:
        f.fail("E225", f"{callee.name} writes '{formal.name}', but '{actual}' is an input and no output", actual.pos,
               f'list "{actual}" among the outputs, or pass a local array')
    if writes:
        f.work.written.add(binding.name)
    blame = binding.blame
    if binding.fresh and formal.access != "out":
        blame = blame or unset_output(f, binding, f"call of {callee.name} reads", actual.pos)
    return replace(binding, writable=writes, blame=blame)


def _order(order: tuple[int, ...]) -> str:
    return f"<{' '.join(map(str, order))}>"


def _check_overlap(f: Frame, callee: Composite, passed: Sequence[tuple[Declared, Array, Sexp]]) -> None:
    """No aliasing: an array that the callee writes may not be another argument too."""
    for formal, array, actual in passed:
        others = [o.name for o, a, _ in passed if a.name == array.name and o is not formal]
        if formal.access != "in" and others:
            written = f"'{formal.name}', which {callee.name} writes,"
            f.fail("E241", f"'{actual}' is passed both as {written} and as '{others[0]}'", actual.pos,
                   "pass a local array, (array T float (…)), and copy it")


# sizes


def unify_sizes(f: Frame, callee: Composite, passed: Sequence[tuple[Declared, Array, Sexp]],
                form: Form) -> dict[str, Expr]:
    """The callee's sizes in terms of the caller's. What the shapes do not imply becomes a requirement; a contradiction
    is E315."""
    pairs = [(mine, theirs, formal, actual) for formal, array, actual in passed
             for mine, theirs in zip(formal.shape, array.shape, strict=True)]
    sizes = solved_sizes([(mine, theirs) for mine, theirs, _, _ in pairs], callee.conditions)
    missing = [s for s in callee.sizes if Var(s, "i64") not in sizes]
    if missing:
        f.fail("E242", f"the size '{missing[0]}' of {callee.name} does not follow from the arguments of this call",
               form.pos,
               f"declare a tensor of {callee.name} with an axis that is '{missing[0]}' alone")
    for mine, theirs, formal, actual in pairs:
        expected = substitute(mine, sizes)
        if expected is not theirs:                      # a proof of large extents is slow
            f.require(Op("eq", (expected, theirs)), actual.pos,
                      f"'{actual}' has {theirs!r} elements along an axis where '{formal.name}' of "
                      f"{callee.name} has {canonical(expected)!r}")
    for condition in callee.conditions:
        required = substitute(condition, sizes)
        f.require(required, form.pos, f"this call contradicts a condition of {callee.name}, {required!r}")
    return {name: sizes[Var(name, "i64")] for name in callee.sizes}
