"""The one-line form of a spec: `(composite [Name] ((A{float}[M N]) -> (C{float}[M N]) [where M > 0]) body…)`.

It uses the notation of TOML specs. The name defaults to `Main`. An output C declared like an input is a new tensor,
C_out; the body may return its value.
"""
from __future__ import annotations

import re
from functools import partial

from ..core.text import Atom, Form, Sexp, read_forms
from ..errors import Place, error
from ..options import Options
from .composite import Composite, Declarations
from .instances import Asked, instances_of
from .sections import facts_of
from .signature import Written, declare, identifier
from .spec_files import SpecText, shown
from .toml_positions import Locations

NAME_OR_BRACKET = re.compile(r"[A-Za-z_][\w-]*|[{}()\[\]]")
MAIN = "Main"
SHAPE = "(composite [Name] ((A{float}[M]) -> (B{float}[M]) [where …]) body…)"


def composites(source: SpecText, found: Declarations, options: Options) -> list[Composite]:
    """The operators of a text of `(composite …)` forms, each in the instances that are asked for; errors go to `found`.
    E019 or E20x for a text without forms."""
    places = Locations(source.text, source.name)
    forms = read_forms(source.text, places.at)
    if not forms:
        raise error("E019", "there is no composite here", Place(source.name, 1, 1), hint=f"write {SHAPE}")
    declared: list[Composite] = []
    for form in forms:
        named = isinstance(form, Form) and len(form) > 1 and isinstance(form[1], Atom)
        name = str(form[1]) if named else MAIN
        text = source.text[form.pos:form.end] if isinstance(form, Form) else ""
        for asked in instances_of(name, [text], False, options):
            composite = found.attempt(partial(_composite, form, places, asked))
            if composite is not None:
                declared.append(composite)
            else:
                found.refuse(name)
    return declared


def _composite(form: Sexp, source: Locations, asked: Asked) -> Composite:
    if not isinstance(form, Form) or not form or not isinstance(form[0], Atom) or form[0].lower() != "composite":
        raise error("E023", "expected (composite …)", source.at(form.pos), hint=f"write {SHAPE}")
    named = len(form) > 1 and isinstance(form[1], Atom)
    name_place = source.at(form[1].pos if named else form.pos)
    name = identifier(form[1], name_place) if named else MAIN
    parts = form[2:] if named else form[1:]
    if not parts or not isinstance(parts[0], Form):
        raise error("E023", "expected the signature ((input…) -> (output…))",
                    source.at(parts[0].pos if parts else form.end), hint=f"write {SHAPE}")
    inputs, outputs, requirements = _signature(parts[0], source)
    instance, ending = asked
    signature = declare([inputs] if inputs.text.strip() else [], outputs, requirements, source.at(parts[0].pos),
                        renames=True, instance=instance)
    start, end = parts[1].pos if len(parts) > 1 else form.end, form.end
    return Composite(name + ending, signature.tensors, signature.inputs, signature.outputs, signature.sizes,
                     signature.conditions, source.text[start:end], "lisp", lambda offset: source.at(start + offset),
                     name_place, source.file, facts=facts_of(signature), generic=signature.generic,
                     inferred=signature.inferred, remade=lambda other: _composite(form, source, (other, "")),
                     ending=ending)


def _signature(form: Form, source: Locations) -> tuple[Written, list[Written], list[Written]]:
    """The texts of the inputs, of each output, and of the conditions."""
    if len(form) < 3 or not isinstance(form[0], Form) or form[1] != "->" or not isinstance(form[2], Form):
        raise error("E023", "a signature is ((input…) -> (output…) [where …])", source.at(form.pos),
                    hint=f"write {SHAPE}")
    more = form[3:]
    if not more:
        return _within(form[0], source), _entries(form[2], source), []
    if isinstance(more[0], Form) and more[0] and more[0][0] == "where":
        start, end = more[0][0].pos + len("where"), more[0].end
        if len(more) > 1:
            raise error("E023", "expected the end of the signature after its conditions", source.at(more[1].pos))
    elif more[0] == "where":
        start, end = more[0].pos + len("where"), form.end
    else:
        raise error("E023", f"expected 'where' after the outputs, not {_written(more[0])}", source.at(more[0].pos))
    return _within(form[0], source), _entries(form[2], source), [_slice(source, start, end)]


def _written(form: Sexp) -> str:
    """A form, for a message."""
    return "(…)" if isinstance(form, Form) else shown(str(form))


def _within(form: Form, source: Locations) -> Written:
    """The text between a form's parentheses."""
    return _slice(source, form.pos + 1, form.end)


def _entries(form: Form, source: Locations) -> list[Written]:
    """The texts of the declarations (or bare names) between a form's parentheses: each begins with a name outside all
    brackets."""
    first, end = form.pos + 1, form.end
    starts, depth = [first], 0
    for part in NAME_OR_BRACKET.finditer(source.text, first, end):
        if part[0] in "{[(}])":
            depth += 1 if part[0] in "{[(" else -1
        elif depth == 0 and source.text[starts[-1]:part.start()].strip(" \t\r\n,"):
            starts.append(part.start())
    pieces = [source.text[a:b].rstrip(" \t\r\n,") for a, b in zip(starts, [*starts[1:], end], strict=True)]
    return [_slice(source, a, a + len(text)) for a, text in zip(starts, pieces, strict=True) if text]


def _slice(source: Locations, start: int, end: int) -> Written:
    return Written(source.text[start:end], lambda offset: source.at(start + offset))
