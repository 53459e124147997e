"""Loading of specs into op programs: read the text, validate its schema, declare the signature, lower the body."""
from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path as FilePath
from typing import Any, TypeVar

import tomli

from ..core.node import Node
from ..core.program import At, Buffer, Doc, Outputs, Require, Scalar, Signature, Size, Source
from ..core.text import flat
from ..errors import CatenError, Diagnostic, Place, error
from ..options import Options
from . import one_line_spec, schema, sections
from .body import Lowered, lower_body
from .composite import Composite, Declared, Refused, fold
from .op import Body, OpProgram
from .signature import Written, declare, identifier
from .spec_files import SpecText, check_text, decode, inside, read_file, shown
from .toml_positions import Locations, Path, locate

__all__ = ["SpecText", "composites", "decode", "load", "read_file"]

T = TypeVar("T")
MAX_INLINED = 10_000                                       # inlined statements in the bodies of one file
PARTS = ("implementation", "test", "bench", "schedule")    # the sections that belong to one composite


def load(source: SpecText, options: Options) -> list[OpProgram]:
    """The validated operators of a spec, with typed bodies. Raises CatenError with every fault."""
    specs = _Specs(options)
    try:
        own = specs.read(source)
    except Refused as refusal:
        raise CatenError(*refusal.diagnostics, *_faults_of_bodies(specs, refusal)) from None
    lookup, inlined = specs.lookup_in(own), 0

    def program(composite: Composite) -> OpProgram:
        nonlocal inlined
        if inlined > MAX_INLINED:
            raise error("E239", f"calls bring more than {MAX_INLINED} statements into the bodies of this file",
                        composite.name_place,
                        hint="each body that calls others holds their statements: divide the file")
        lowered = lower_body(composite, lookup)
        inlined += lowered.inlined
        return _program(composite, lowered)
    return gather(program, own)


def _faults_of_bodies(specs: _Specs, refusal: Refused) -> list[Diagnostic]:
    """The faults in the bodies of the composites whose declarations are right."""
    known = specs.lookup_in(list(refusal.declared))
    problems: list[Diagnostic] = []
    for composite in refusal.declared:
        missing: list[str] = []

        def lookup(name: str, missing: list[str] = missing) -> Composite | None:
            if fold(name) not in refusal.names:
                return known(name)
            missing.append(name)
            raise CatenError()                # already reported
        try:
            lower_body(composite, lookup)
        except CatenError as problem:
            problems += [d for d in problem.diagnostics
                         if not missing or d.code not in ("E227", "E228")]      # the call may set them
    return problems


def dependencies(source: SpecText, options: Options) -> list[FilePath]:
    """The absolute paths of the files that a spec includes or calls, in reading order."""
    specs = _Specs(options)
    own = specs.read(source)
    lookup = specs.lookup_in(own)
    gather(lambda one: lower_body(one, lookup), own)
    return list(specs.known)


def composites(source: SpecText, options: Options) -> list[Composite]:
    """The declared operators of a spec, with bodies as text."""
    return _Specs(options).read(source)


def gather(make: Callable[[Any], T], items: Iterable[Any]) -> list[T]:
    """`make` of every item. The diagnostics of all failures are raised together."""
    made: list[T] = []
    problems: list[Diagnostic] = []
    for item in items:
        try:
            made.append(make(item))
        except CatenError as refusal:
            problems.extend(refusal.diagnostics)
    if problems:
        raise CatenError(*problems)
    return made


class _Specs:
    """The specs of one compilation: the compiled one and those that it includes or calls."""

    def __init__(self, options: Options):
        self.options = options
        self.reading: list[FilePath] = []                       # the include chain, to find cycles
        self.known: dict[FilePath, list[Composite]] = {}
        self.included: list[Composite] = []

    def read(self, source: SpecText) -> list[Composite]:
        """The operators of a text, which may be an included file."""
        check_text(source)
        source = SpecText(source.name, source.text.replace("\r\n", "\n"), source.lang)
        if source.lang == "lisp":
            return distinct(one_line_spec.composites(source))
        document, places = parse(source)
        for i, name in enumerate(document.get("include", ())):
            self.include(name, source, places.value("include", i))
        return distinct(_composites(document, places, source, self.options))

    def include(self, name: str, source: SpecText, place: Place) -> None:
        path = inside(name, source.name, self.options.include_dirs)
        if path is None:
            raise error("E016", f"there is no {shown(name)} below the spec's folder or the -I path", place,
                        hint="an include never leaves these folders; add one with -I")
        self.included.extend(self.file(path, place))

    def file(self, path: FilePath, place: Place | None) -> list[Composite]:
        """The operators of a file, read once."""
        resolved = path.resolve()
        if resolved in self.reading:
            raise error("E017", f"{shown(str(path))} includes itself", place,
                        hint="remove one of the includes of the loop")
        if resolved not in self.known:
            self.reading.append(resolved)
            self.known[resolved] = self.read(read_file(path))
            self.reading.pop()
        return self.known[resolved]

    def lookup_in(self, own: list[Composite]) -> Callable[[str], Composite | None]:
        """Name resolution for `(call Name …)`: in this spec, in its includes, as name.toml along the -I path."""
        def lookup(name: str) -> Composite | None:
            for found in (*own, *self.included):
                if fold(found.name) == fold(name):
                    return found
            for folder in self.options.include_dirs:
                for spelled in dict.fromkeys((name, name.lower())):
                    path = FilePath(folder) / f"{spelled}.toml"
                    if re.fullmatch(r"[A-Za-z0-9_-]+", name) and path.is_file():
                        return next((c for c in self.file(path, None) if fold(c.name) == fold(name)), None)
            return None
        return lookup


def parse(source: SpecText) -> tuple[dict[str, Any], Locations]:
    """The document of a TOML spec, validated against the schema, and its source positions."""
    places = locate(source.text, source.name)
    try:
        document = tomli.loads(source.text)
    except tomli.TOMLDecodeError as problem:
        raise _not_toml(problem, source, places) from None
    except (ValueError, RecursionError):     # numbers that Python cannot convert
        number = max(re.finditer(r"\d[\d_]*", source.text), key=lambda m: m.end() - m.start())
        raise error("E004", f"a number of {len(number[0])} digits", places.at(number.start())) from None
    found = schema.problems(document, places)
    if found:
        raise CatenError(*found)
    return document, places


# tomli's message -> our message and hint.
_NOT_TOML: dict[str, tuple[str, str | None]] = {
    "Cannot overwrite": ("this key is given twice", "keep one of the two"),
    "Cannot declare": ("this section is there twice",
                       "several operators are [[composite]], each with its own [composite.implementation]"),
    "Unescaped '\\' in a string": ("a backslash that escapes nothing", "write \\\\, or the string in single quotes"),
    "Invalid statement": ("expected [section] or key = value", None),
}


def _not_toml(problem: tomli.TOMLDecodeError, source: SpecText, places: Locations) -> CatenError:
    """The TOML parser's error in our words, at the position of the fault."""
    offset = _offset(source.text, problem.lineno, problem.colno)
    if places.unclosed is not None and (problem.msg.startswith("Unterminated") or "\\n" in problem.msg):
        return error("E005", "not TOML: this string is never closed", places.at(places.unclosed),
                     hint='end it with the quotes it begins with; """ may span lines')
    known = next((row for start, row in _NOT_TOML.items() if problem.msg.startswith(start)), None)
    if known is not None and known[0].startswith("this"):
        line = source.text.rfind("\n", 0, offset) + 1
        offset = line + len(source.text[line:offset]) - len(source.text[line:offset].lstrip())
    message, hint = known or (shown(problem.msg, 200)[1:-1], None)
    return error("E005", f"not TOML: {message}", places.at(offset), hint=hint)


def _offset(text: str, line: int, column: int) -> int:
    starts = [0, *[m.end() for m in re.finditer("\n", text)]]
    return min(starts[min(line, len(starts)) - 1] + column - 1, len(text))


def distinct(found: list[Composite]) -> list[Composite]:
    """The composites, if their names are distinct."""
    seen: dict[str, Composite] = {}
    for composite in found:
        if (other := seen.setdefault(fold(composite.name), composite)) is not composite:
            raise error("E015", f"there are two composites called '{composite.name}'", composite.name_place,
                        notes=(("the first one is here", other.name_place),))
    return found


def _composites(document: dict[str, Any], places: Locations, source: SpecText, options: Options) -> list[Composite]:
    """The composites of a valid document."""
    written = document["composite"]
    if isinstance(written, list):
        stray = [Diagnostic("E014", f"with [[composite]], write [composite.{p}]: [{p}] would belong to none of them",
                            places.key(p))
                 for p in PARTS if p in document]
        if stray:
            raise CatenError(*stray)
        return _each(written, lambda i: _composite(written[i], ("composite", i), {}, places, source, options))
    return [_composite(written, ("composite",), document, places, source, options)]


def _each(tables: list[dict[str, Any]], make: Callable[[int], Composite]) -> list[Composite]:
    """The composite of each table. Raises Refused with the diagnostics of all failures."""
    declared: list[Composite] = []
    problems: list[Diagnostic] = []
    refused: list[str] = []
    for i, table in enumerate(tables):
        try:
            declared.append(make(i))
        except CatenError as refusal:
            problems += refusal.diagnostics
            refused.append(table["name"])
    if problems:
        raise Refused(problems, refused, declared)
    return declared


def _composite(table: dict[str, Any], path: Path, outer: dict[str, Any], places: Locations, source: SpecText,
               options: Options) -> Composite:
    """One `[composite]` with its sections, which stand in it or (for a single one) at the top level."""
    def section(name: str) -> sections.Section:
        if name in table and name in outer:
            raise error("E014", f"both [{name}] and [composite.{name}]", places.key(*path, name),
                        notes=(("the other one is here", places.key(name)),))
        return (table[name], (*path, name)) if name in table else (outer.get(name, {}), (name,))

    def strings(values: list[str], at: Path) -> list[Written]:
        return [Written(text, places.inside(*at, i)) for i, text in enumerate(values)]

    implementation, code_path = section("implementation")
    if not implementation:
        raise error("E011", f"{shown(table['name'])} lacks an [implementation]", places.key(*path),
                    hint="add a section with code = \"\"\"…\"\"\"")
    if implementation.get("lang") == "python":
        raise error("E018", "Python bodies are not supported yet", places.value(*code_path, "lang"),
                    hint="write the body in Lisp")
    test, test_path = section("test")
    name_place = places.inside(*path, "name")(0)
    name = identifier(table["name"], name_place)
    signature = declare(strings(table["inputs"], (*path, "inputs")), strings(table["outputs"], (*path, "outputs")),
                        strings(test.get("requirements", []), (*test_path, "requirements")),
                        places.key(*path, "outputs"))
    facts = sections.facts((test, test_path), section("bench"), section("schedule"), signature, places, options.runtime)
    return Composite(name, signature.tensors, signature.inputs, signature.outputs, signature.sizes,
                     signature.conditions, implementation["code"], "lisp", places.inside(*code_path, "code"),
                     name_place, source.name,
                     table.get("documentation", "").strip(), (*facts, *sections.positions(signature)))


def _program(composite: Composite, lowered: Lowered) -> OpProgram:
    """The op program of a composite and its body."""
    clauses: list[Node] = [Doc(composite.doc)] if composite.doc else []
    clauses += [Source(composite.file), Signature(tuple(t.text for t in composite.tensors)), Outputs(composite.outputs)]
    clauses += [parameter(t) for t in composite.tensors]
    clauses += [Size(name) for name in composite.sizes]
    clauses += [Require(condition) for condition in dict.fromkeys((*composite.conditions, *lowered.requirements))]
    named = At(composite.name_place.line, composite.name_place.column, flat(("op", composite.name)))
    return OpProgram(composite.name, (*clauses, *composite.facts, named, *lowered.positions, Body(lowered.stmts)))


def parameter(tensor: Declared) -> Node:
    """The parameter of a tensor: scalars are passed by value, everything else by address."""
    if tensor.scalar:
        return Scalar(tensor.name, tensor.dtype)
    return Buffer(tensor.name, tensor.dtype, tensor.shape, tensor.order, tensor.access)
