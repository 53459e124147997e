"""The rules of `[rewrite]`: a pattern and its replacement, both as operators of one signature.

The replacement is a body in the language of the pattern, or a call of a C function:

    (cblas_saxpy (int32 N) alpha x (int32 1) y (int32 1))

An argument is the name of an array (a pointer to its first element), a scalar, a size (as int64), or `(TYPE number)`:
a literal, a scalar or arithmetic over sizes as a number of this type.
"""
from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import reduce as folded
from typing import Any

from ..core.dtypes import DTYPES
from ..core.expr import Cast, Const, Expr, Op, Var, number, read_atom
from ..core.program import Require
from ..core.scalars import BY_SPELLING
from ..core.text import Atom, Form, flat, form_of, read_forms
from ..errors import CatenError, Diagnostic, Place, did_you_mean, error
from ..frozen import frozen
from ..loop.context import Context
from ..loop.statements import ZERO, Address, ExternCall, If, is_const
from .arrays.handles import spelled
from .composite import Composite, Declared, named
from .op import OpProgram
from .signature import Signature, Written, declare, dtype_of, identifier
from .spec_files import SpecText, shown
from .toml_positions import Locations, Path

HOW = {"in": "read", "out": "write", "inout": "update"}
ARITHMETIC = ("add", "sub", "mul", "floordiv", "mod", "max", "min")


@frozen
class WrittenRule:
    """A rule as declared. `replacement`: a body, or a call, which is made if its result has elements."""

    pattern: Composite
    replacement: Composite | ExternCall | If
    library: str


def written_rules(document: dict[str, Any], places: Locations, source: SpecText) -> tuple[list[WrittenRule],
                                                                                          list[Diagnostic]]:
    """The rules of a document, and every error in them."""
    tables = document.get("rewrite", [])
    pairs: list[tuple[dict[str, Any], Path]] = (
        [(table, ("rewrite", i)) for i, table in enumerate(tables)] if isinstance(tables, list)
        else [(tables, ("rewrite",))])
    found, problems = list[WrittenRule](), list[Diagnostic]()
    for table, path in pairs:
        try:
            found.append(_rule(table, path, places, source))
        except CatenError as refusal:
            problems += refusal.diagnostics
    return found, problems


def _rule(table: dict[str, Any], path: Path, places: Locations, source: SpecText) -> WrittenRule:
    if any(key not in table for key in ("name", "inputs", "outputs", "pattern")):
        raise CatenError                                   # the schema has said it
    given = [key for key in ("replacement", "call") if key in table]
    if len(given) != 1:
        raise error("E024", f"a rule has either 'replacement' or 'call', and this one has "
                            f"{'both' if given else 'neither'}", places.key(*path),
                    hint="replacement: a body of the same operator; call: a C function, (f x (int32 N) y)")
    name_place = places.inside(*path, "name")(0)

    def strings(key: str) -> list[Written]:
        return [Written(text, places.inside(*path, key, i)) for i, text in enumerate(table.get(key, ()))]
    signature = declare(strings("inputs"), strings("outputs"), strings("requirements"), places.key(*path, "outputs"))
    _check_output(signature, places.key(*path, "outputs"))
    composite = Composite(identifier(table["name"], name_place), signature.tensors, signature.inputs, signature.outputs,
                          signature.sizes, signature.conditions, table["pattern"], str(table.get("lang", "lisp")),
                          places.inside(*path, "pattern"), name_place, source.name)
    where = places.inside(*path, given[0])
    if given == ["call"]:
        call = read_call(table["call"], where, composite)
        return WrittenRule(composite, _where_needed(call, composite), table.get("library", ""))
    return WrittenRule(composite, replace(composite, code=table["replacement"], where=where), table.get("library", ""))


def check_conditions(replacement: Composite, pattern: OpProgram, made: OpProgram) -> None:
    """E024 if the shapes in a replacement fit only under conditions that do not follow from those of its pattern."""
    known = Context.of(pattern)
    for needed in [r.cond for r in made.all(Require) if not known.proves(r.cond)]:
        output = replacement.tensor(replacement.outputs[0])
        assert output is not None
        raise error("E024", f"this replacement needs {flat(form_of(needed))}, which does not follow from the rule",
                    replacement.where(0),
                    hint=f"it has to make '{output.name}' of the shape {spelled(output.shape)}; requirements = […] "
                         f"states what holds for the sizes")


def _where_needed(call: ExternCall, composite: Composite) -> ExternCall | If:
    extents = dict.fromkeys([e for t in composite.tensors if t.access != "in" for e in t.shape if not is_const(e)])
    conds = [Op("lt", (ZERO, e)) for e in extents]
    return If(folded(lambda a, b: Op("and", (a, b)), conds), (call,)) if conds else call


def _check_output(signature: Signature, place: Place) -> None:
    outputs = [t for t in signature.tensors if t.access != "in"]
    if len(outputs) != 1 or outputs[0].order != tuple(range(outputs[0].rank)):
        raise error("E024", "a rule has one output, which is row-major", place,
                    hint="values are row-major; other outputs are rules of their own")


def read_call(code: str, where: Callable[[int], Place], composite: Composite) -> ExternCall:
    """The call of a C function, `(f argument…)`."""
    forms = read_forms(code, where)
    if len(forms) != 1 or not isinstance(forms[0], Form) or not forms[0] or not isinstance(forms[0][0], Atom):
        raise error("E024", "a call is (FUNCTION argument…)", where(0), hint="for example (f x (int32 N) y)")
    function, *arguments = forms[0]
    if not re.fullmatch(r"(?!ct_)[A-Za-z_][A-Za-z0-9_]*", function):
        raise error("E024", f"{shown(str(function))} is no name of a C function that can be called",
                    where(function.pos), hint="names that start with ct_ are those of caten")
    args = tuple([_argument(a, composite, where) for a in arguments])
    missing = [t.name for t in composite.tensors if t.access != "in"
               and not any(isinstance(a, Address) and a.buffer == t.name for a in args)]
    if missing:
        raise error("E024", f"{function} does not get the output '{missing[0]}'", where(function.pos),
                    hint="a function sets the array that it is given")
    return ExternCall(str(function), args)


def _argument(form: Any, composite: Composite, where: Callable[[int], Place]) -> Expr:
    if isinstance(form, Form):
        if len(form) != 2 or not isinstance(form[0], Atom):
            raise error("E024", f"{flat(form)[:60]} is no argument", where(form.pos),
                        hint="write an array, a scalar, a size, or (TYPE number)")
        return _typed(dtype_of(form[0], where(form[0].pos)), _number(form[1], composite, where), where(form.pos))
    tensor = _tensor(form, composite)
    if tensor is not None and not tensor.scalar:
        return Address(tensor.name, HOW[tensor.access], tensor.dtype)
    value = _number(form, composite, where)
    if isinstance(value, Const):
        raise error("E024", f"{form} has no C type here", where(form.pos), hint=f"write (int32 {form})")
    return value


def _tensor(name: str, composite: Composite) -> Declared | None:
    found = named(str(name), [t.name for t in composite.tensors])
    return composite.tensor(found) if found is not None else None


def _number(form: Any, composite: Composite, where: Callable[[int], Place]) -> Expr:
    """A literal, a scalar, a size, or arithmetic over these."""
    if isinstance(form, Form):
        row = BY_SPELLING.get(form[0]) if form and isinstance(form[0], Atom) else None
        if row is None or row.name not in ARITHMETIC or len(form) < 3:
            raise error("E024", f"{flat(form)[:60]} is no arithmetic over sizes", where(form.pos),
                        hint="the operators are + - * floordiv mod max min")
        parts = [_number(f, composite, where) for f in form[1:]]
        if any(p.dtype != "i64" for p in parts):
            raise error("E024", f"{flat(form)[:60]} is arithmetic over others than sizes", where(form.pos))
        return folded(lambda a, b: Op(row.name, (a, b)), parts)
    literal = read_atom(form)
    if isinstance(literal, Const):
        return literal
    tensor = _tensor(form, composite)
    if tensor is not None and tensor.scalar:
        return Var(tensor.name, tensor.dtype)
    size = named(str(form), composite.sizes)
    if size is None:
        raise error("E024", f"{shown(str(form))} is neither a tensor nor a size of the rule", where(form.pos),
                    hint=did_you_mean(str(form), composite.names) or f"these are {', '.join(composite.names)}")
    return Var(size, "i64")


def _typed(dtype: str, value: Expr, place: Place) -> Expr:
    row = DTYPES[dtype]
    if isinstance(value, Const):
        whole = row.kind in ("int", "uint")
        if whole and not (isinstance(value.value, int) and row.least <= value.value <= row.greatest):
            raise error("E024", f"{value.value} is no {dtype}", place)
        return number(value.value, dtype)
    return value if value.dtype == dtype else Cast(dtype, value)
