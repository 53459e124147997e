"""Test lambdas: the reference of a spec, `(lambda (A B C k m n) …)` in Lisp, as an operator over the same
parameters."""
from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from ..core.program import (
    At,
    Attribute,
    Buffer,
    Case,
    Check,
    Doc,
    Ensure,
    Fusion,
    Outputs,
    Reference,
    Require,
    Scalar,
    Schedule,
    Source,
)
from ..core.text import Atom, Form, Sexp, read_forms
from ..errors import Place, error
from .body import lower_forms, signature_scope
from .composite import Callees, Composite, Declared, fold
from .generic_signature import tuples
from .op import Body, OpProgram


def reference_program(op: OpProgram) -> OpProgram:
    """The operator whose body is the test lambda of `op`. Its parameters are bound by name to tensors, scalars and
    sizes."""
    reference = op.first(Reference)
    if reference is None:
        raise error("E820", f"{op.name} has no test code to run", op.place(),
                    hint='add [test] code = "(lambda (A …) …)"')
    composite = _composite(op, reference)
    names, body = _parts(composite, reference)
    visible = (*map(str, names), *[o for o in composite.outputs if fold(o) not in map(fold, names)])
    lowered = lower_forms(composite, body, Callees(), signature_scope(visible, composite), "E822")
    kept = op.without(At, Attribute, Body, Reference, Case, Schedule, Fusion, Ensure, Check, Doc)
    program: OpProgram = kept.adding(*lowered.positions,
                                     Body(lowered.stmts))
    return program


def _parts(composite: Composite, reference: Reference) -> tuple[Form, Sequence[Sexp]]:
    """The parameters and statements of the lambda. E821 if the code is no lambda, E823 if its parameters do not fit."""
    forms = read_forms(reference.code, composite.where) if reference.lang == "lisp" else []
    match forms:
        case [Form([Atom() as head, Form() as names, *statements])] if head.lower() == "lambda":
            _check_parameters(composite, names)
            return names, statements
    raise error("E821", "test code in Lisp is one (lambda (A B …) …)", composite.where(forms[0].pos if forms else 0),
                hint="write (lambda (A B …) statement…)")


def _check_parameters(composite: Composite, names: Form) -> None:
    """E823 for a parameter that is not in the signature, or is named twice."""
    known = {fold(n) for n in (*composite.names, *[name for name, _ in composite.attributes])}
    seen: set[str] = set()
    for name in names:
        if not isinstance(name, Atom) or fold(name) not in known or fold(name) in seen:
            given, wanted = (" ".join(map(str, group)) for group in (names, composite.names))
            raise error("E823", f"the parameters of this lambda are ({given}), but the signature has ({wanted})",
                        composite.where(name.pos),
                        hint="each parameter bears the name of a tensor, a scalar or a size, once")
        seen.add(fold(name))


def _composite(op: OpProgram, reference: Reference) -> Composite:
    """The declarations of `op` with the test code as their body."""
    source = op.first(Source)
    file = source.file if source is not None else "<text>"
    where = locator(file, reference)
    tensors = tuple([_declared(p) for p in op.params if isinstance(p, (Buffer, Scalar))])
    outputs = op.first(Outputs)
    names = outputs.names if outputs is not None else tuple([t.name for t in tensors if t.access != "in"])
    return Composite(op.name, tensors, tuple([t.name for t in tensors if t.access != "out"]), names, op.sizes,
                     tuple([r.cond for r in op.all(Require)]), reference.code, "lisp", where, where(0), file,
                     attributes=tuple([(a.name, tuples(json.loads(a.value))) for a in op.all(Attribute)]))


def _declared(param: Buffer | Scalar) -> Declared:
    if isinstance(param, Scalar):
        return Declared(param.name, param.type, (), (), "in", param.name)
    return Declared(param.name, param.type, param.shape, param.order, param.access, param.name)


def locator(file: str, reference: Reference) -> Callable[[int], Place]:
    """Maps offsets in the test code to positions in the spec."""
    lines = reference.code.split("\n")

    def where(pos: int) -> Place:
        row = reference.code.count("\n", 0, pos)
        start = reference.code.rfind("\n", 0, pos) + 1
        return Place(file, reference.line + row, pos - start + (reference.column if row == 0 else 1),
                     lines[row] if row else "")
    return where
