"""Facts from the sections of a TOML spec: `[test]`, `[[test.case]]`, `[schedule]`. `[bench]` is only checked."""
from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path as FilePath
from pathlib import PurePosixPath
from typing import Any

from ..core.dtypes import DTYPES
from ..core.program import (
    AnyAxes,
    At,
    Case,
    Fact,
    Fusion,
    GradientBody,
    GradientSteps,
    InOrder,
    Reference,
    Schedule,
    Setting,
    Tolerance,
)
from ..core.text import Atom, Form, Quoted, flat, read_forms
from ..errors import CatenError, Diagnostic, Place, did_you_mean, error
from ..options import Instance
from ..tensor.fusion_requests import FORMS, REQUESTS, is_request
from .composite import named
from .generic_signature import read_instance
from .schema import INCOMPLETE
from .signature import Signature
from .spec_files import language_of, shown
from .toml_positions import Locations, Path
from .typing import spell

WORDS = {"input": ("random",), "expect": ("reference", "empty")}       # words instead of arrays
Section = tuple[dict[str, Any], Path]      # a table and its path; both empty if absent


def facts(test: Section, bench: Section, schedule: Section, gradient: Section, signature: Signature | None,
          places: Locations, runtime: str,
          instance: Instance | None = None) -> tuple[tuple[Fact, ...], list[Diagnostic]]:
    """The facts of one operator, and every error in these sections; without a signature only those that need none."""
    problems: list[Diagnostic] = []
    found: list[Fact] = []
    parts: list[Iterator[Fact | Diagnostic]] = [_reference(*test, places), _gradient(*gradient, places),
                                               _schedule(*schedule, places, runtime)]
    if signature is not None:
        parts[1:1] = [_cases(*test, signature, places, instance), _presets(*bench, signature, places, instance)]
    for part in parts:
        for item in part:
            if isinstance(item, Diagnostic):
                problems.append(item)
            else:
                found.append(item)
    return tuple(found), problems


def facts_of(signature: Signature) -> tuple[Fact, ...]:
    """The sizes that `~` stands for, and the source positions of the conditions."""
    return (*([AnyAxes(signature.any_axes)] if signature.any_axes else []),
            *[At.of(place.line, place.column, condition) for condition, place in signature.positions])


def _reference(table: dict[str, Any], path: Path, places: Locations) -> Iterator[Fact | Diagnostic]:
    code = table.get("code", "")
    if code.strip():
        start = places.inside(*path, "code")(0)
        yield Reference("lisp" if language_of(code) == "lisp" else "python", code, start.line, start.column)
    if "tolerance" in table:
        yield Tolerance(table["tolerance"])


def _gradient(table: dict[str, Any], path: Path, places: Locations) -> Iterator[Fact | Diagnostic]:
    if "code" in table:
        start = places.inside(*path, "code")(0)
        yield GradientBody(table["code"], start.line, start.column)
    if "steps" in table:
        start = places.inside(*path, "steps")(0)
        yield GradientSteps(table["steps"], start.line, start.column)


def _cases(table: dict[str, Any], path: Path, signature: Signature, places: Locations,
           instance: Instance | None) -> Iterator[Fact | Diagnostic]:
    """The cases of an instance; those that name none are of the operator without one."""
    spots: list[tuple[str, Place]] = []
    for i, case in enumerate(table.get("case", ())):
        here = (*path, "case", i)
        if "instance" in case:
            try:
                own = read_instance(case["instance"])
            except CatenError as problem:
                yield replace(problem.diagnostics[0], place=places.value(*here, "instance"))
                continue
            if instance is None or repr(own) != repr(instance):
                continue
        elif instance is not None:
            continue
        name = case.get("name", f"case {i + 1}")
        settings = list(_settings(case.get("sizes", {}), (*here, "sizes"), signature, places))
        sizes = [item for item in settings if isinstance(item, Setting)]
        yield from [item for item in settings if isinstance(item, Diagnostic)]
        given, expect = case.get("input", "random"), case.get("expect", "reference")
        yield from _named_file(given, WORDS["input"], (*here, "input"), places)
        yield from _named_file(expect, WORDS["expect"], (*here, "expect"), places)
        if isinstance(given, dict):
            given, unknown = _arrays(given, (*here, "input"), signature, places)
            yield from unknown
        for n, tag in enumerate(case.get("tags", ())):
            if not tag or not all(c.isascii() and (c.isalnum() or c in "_-.") for c in tag):
                yield Diagnostic("E020", f"{shown(tag)} is not a tag", places.value(*here, "tags", n),
                                 "a tag is letters, digits, '_', '-' and '.'")
        if len(sizes) < len(settings) or INCOMPLETE in case:
            continue                           # it would seem to lack the sizes that are wrong
        found = Case(name, _text(given), _text(expect), tuple(case.get("tags", ())), tuple(sizes))
        yield found
        spots.append((found.spot(), places.key(*here)))
        spots += [(found.spot(part), places.value(*here, part))
                  for part in ("input", "expect") if getattr(found, part) not in WORDS[part]]
    yield from [At(place.line, place.column, what) for what, place in spots]


def _named_file(value: Any, words: Sequence[str], path: Path, places: Locations) -> Iterator[Diagnostic]:
    """An `.npz` below the spec's folder, or one of the words that may stand instead."""
    if not isinstance(value, str) or value in words:
        return
    if not value.endswith(".npz"):
        others = " nor ".join([f"'{w}'" for w in words])
        yield Diagnostic("E020", f"{shown(value)} is neither {others} nor an .npz file", places.value(*path))
    elif (PurePosixPath(value).is_absolute() or FilePath(value).is_absolute()
          or ".." in value.replace("\\", "/").split("/")):
        yield Diagnostic("E022", f"{shown(value)} is outside the spec's folder", places.value(*path),
                         "move the file beside the spec")


def _arrays(given: dict[str, Any], path: Path, signature: Signature,
            places: Locations) -> tuple[dict[str, Any], list[Diagnostic]]:
    """Inline arrays by the tensors' declared names."""
    names = [t.name for t in signature.tensors]
    unknown = [Diagnostic("E020", f"{shown(name)} is not a tensor of the signature", places.key(*path, name),
                          did_you_mean(name, names) or f"the tensors are {', '.join(names)}")
               for name in given if named(name, names) is None]
    return {named(name, names) or name: value for name, value in given.items()}, unknown


def _settings(table: dict[str, Any], path: Path, signature: Signature,
              places: Locations) -> Iterator[Setting | Diagnostic]:
    """Values of sizes and scalars, in the order given."""
    scalars = {t.name: t for t in signature.tensors if t.scalar}
    for key, value in table.items():
        name, place = named(key, (*signature.sizes, *scalars)) or key, places.value(*path, key)
        if name in signature.sizes:
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 1 << 40:
                yield Diagnostic("E020", f"the size '{key}' must be a whole number from 0 to 2^40, not {value}", place)
            else:
                yield Setting(name, str(value))
        elif name in scalars:
            dtype = DTYPES[scalars[name].dtype]
            if dtype.kind in ("int", "uint") and not (type(value) is int and dtype.least <= value <= dtype.greatest):
                kind = f"{spell(dtype.name)}, from {dtype.least} to {dtype.greatest}"
                yield Diagnostic("E020", f"'{key}' is {kind}: {value} does not fit", place)
            else:
                yield Setting(scalars[name].name, str(value).lower())
        else:
            known = [*signature.sizes, *[t.name for t in scalars.values()]]
            yield Diagnostic("E020", f"{shown(key)} is neither a size nor a scalar of the signature",
                             places.key(*path, key),
                             did_you_mean(key, known) or f"these are {', '.join(known) or 'none'}")


def _presets(table: dict[str, Any], path: Path, signature: Signature, places: Locations,
             instance: Instance | None) -> Iterator[Fact | Diagnostic]:
    """The presets are checked for the operator without an instance: others may have other sizes."""
    if instance is not None:
        return
    for name, preset in table.get("sizes", {}).items():
        for item in _settings(preset, (*path, "sizes", name), signature, places):
            if isinstance(item, Diagnostic):
                yield item


def _schedule(table: dict[str, Any], path: Path, places: Locations, runtime: str) -> Iterator[Fact | Diagnostic]:
    if not table:
        return
    holds = table.get("runtime", FilePath(runtime).stem) == FilePath(runtime).stem
    if holds and not table.get("reassociate", True):
        yield InOrder()
    if holds and "fusion" in table:
        yield from _fusion(table["fusion"], places.inside(*path, "fusion"))
    if "code" not in table:
        if "reassociate" not in table and "fusion" not in table:
            yield Diagnostic("E011", "[schedule] lacks 'code'", places.key(*path), "(schedule (split i 6 pad) …)")
        return
    where = places.inside(*path, "code")
    try:
        steps = steps_of(table["code"], where)
    except CatenError as refusal:
        yield from refusal.diagnostics
        return
    if holds:
        yield Schedule(tuple([_plain(step, where) for step in steps]))
        for step in steps:
            place = where(step.pos)
            yield At(place.line, place.column, flat(step))


def _fusion(text: str, where: Callable[[int], Place]) -> Iterator[Fact | Diagnostic]:
    """The requests to fusion, with their places."""
    try:
        forms = read_forms(text, where)
        for form in forms:
            words = list(form) if isinstance(form, Form) else []
            if not words or not all(isinstance(w, Atom) for w in words) or not is_request(words):
                near = did_you_mean(flat(words[0]), list(REQUESTS)) if words and words[0] not in REQUESTS else None
                raise error("E473", f"{flat(form)[:60]} is not a request to fusion", where(form.pos),
                            hint=near or f"the requests are {FORMS}")
    except CatenError as refusal:
        yield from refusal.diagnostics
        return
    yield Fusion(tuple([_plain(form, where) for form in forms]))
    for form in forms:
        place = where(form.pos)
        yield At(place.line, place.column, flat(form))


def steps_of(code: str, where: Callable[[int], Place]) -> list[Form]:
    """The steps of `(schedule (split i 6 pad) …)`. A printed schedule ends with `(applied)`; here the steps still have
    to run."""
    forms = read_forms(code, where)
    if len(forms) != 1 or not isinstance(forms[0], Form) or not forms[0] or forms[0][0] != "schedule":
        stray = forms[1] if len(forms) > 1 else forms[0] if forms else None
        raise error("E021", "a [schedule] holds one (schedule step…)", where(stray.pos if stray is not None else 0),
                    hint="for example (schedule (split i 8) (vectorize ii))")
    steps: list[Form] = []
    for step in forms[0][1:]:
        if not isinstance(step, Form) or not step or not isinstance(step[0], Atom):
            raise error("E021", "a step of a schedule is (PRIMITIVE argument…)", where(step.pos),
                        hint="for example (split i 6 pad)")
        steps.append(step)
    return [step for step in steps if flat(step) != "(applied)"]


def _plain(form: Any, where: Callable[[int], Place]) -> Any:
    if isinstance(form, Quoted):
        raise error("E021", "a schedule has no strings", where(form.pos), hint="write the name without quotes")
    return str(form) if isinstance(form, str) else tuple(_plain(f, where) for f in form)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
