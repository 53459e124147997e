"""Simpler specs that still fail."""
from __future__ import annotations

from dataclasses import replace
from typing import Any

from index_specs import IndexSpec
from spec_forms import EXTENTS, UPDATES, Form, RandomSpec, symbols, writes

BLOCKS = {"dotimes": 2, "loop": 2, "when": 2, "unless": 2, "progn": 1}


def smaller(spec: RandomSpec) -> Any:
    """Simpler specs, the boldest changes first. Not all of them are valid."""
    if isinstance(spec, IndexSpec):
        yield from spec.smaller()
        return
    for n in range(len(spec.body)):
        if len(spec.body) > 1:
            body = spec.body[:n] + spec.body[n + 1:]
            outputs = tuple(t for t in spec.outputs if writes(list(body), t.name))
            yield replace(spec, body=body, outputs=outputs or spec.outputs)
    for name, value in spec.sizes:
        for less in [e for e in EXTENTS if e < value]:
            yield replace(spec, sizes=tuple((k, less if k == name else v) for k, v in spec.sizes))
    if spec.strided:
        yield replace(spec, strided=())
    for n, form in enumerate(spec.body):
        for simpler in simpler_forms(form):
            yield replace(spec, body=(*spec.body[:n], simpler, *spec.body[n + 1:]))
    used = set(symbols(spec.body))
    kept = tuple(t for t in spec.inputs if t.name in used)
    if len(kept) < len(spec.inputs):
        yield replace(spec, inputs=kept)
    outputs = tuple(t for t in spec.outputs if t.name in used)
    if outputs and len(outputs) < len(spec.outputs):
        yield replace(spec, outputs=outputs)


def simpler_forms(form: Form) -> Any:
    """The form with one part removed, or replaced by a part of itself."""
    if isinstance(form, str):
        return
    head = form[0] if form and isinstance(form[0], str) else ""
    start = BLOCKS.get(head)
    if start is not None and len(form) > start + 1:
        for n in range(start, len(form)):
            yield (*form[:n], *form[n + 1:])
    if head in ("when", "unless") and len(form) == 3:
        yield form[2]
    if head == "if":
        yield form[2]
        yield from ([form[3]] if len(form) > 3 else [])
    if head and head not in ("dotimes", "loop", "setf", "set", "array", "let", "aref", "cond", "cast", "bitcast", *UPDATES, *BLOCKS):
        yield from form[1:]
    for n, part in enumerate(form):
        for simpler in simpler_forms(part):
            yield (*form[:n], simpler, *form[n + 1:])


def shrink(spec: RandomSpec, fails: Any, tries: int = 150) -> RandomSpec:
    """The simplest spec found that still fails."""
    changed = True
    while changed and tries > 0:
        changed = False
        for candidate in smaller(spec):
            tries -= 1
            if tries <= 0:
                break
            if fails(candidate):
                spec, changed = candidate, True
                break
    return spec
