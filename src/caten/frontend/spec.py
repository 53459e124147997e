"""Loading of specs into op programs: read the text, validate its schema, declare the signature, lower the body."""
from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path as FilePath
from typing import Any, TypeVar

import tomli

from ..core.dtypes import DTYPES
from ..core.node import Node
from ..core.program import At, Attribute, Doc, Outputs, Require, Signature, Size, Source, Variables
from ..core.text import flat, read_forms, show
from ..errors import CatenError, Diagnostic, PartlyRefused, Place, amount, error, gather, in_file_order
from ..loop.statements import ExternCall, If
from ..options import Instance, Options
from ..tensor.values import Define, Named, Output
from . import one_line_spec, operator_library, schema, sections
from .array_bodies import array_body, python_body
from .arrays.handles import NeedsLoops
from .composite import MAX_NESTED_FORMS, Callees, Composite, Declarations, Declared, fold, named, parameter
from .composite_functions import CompositeFunctions
from .generic_signature import INFERRED, attributes
from .instances import Asked, instances_of
from .lowered_body import Lowered
from .op import Body, OpProgram, Rewrite
from .rewrite_rules import WrittenRule, check_conditions, written_rules
from .signature import Written, declare, identifier
from .spec_files import SpecText, check_text, decode, inside, read_file, shown
from .toml_positions import Locations, Path, locate

__all__ = ["SpecText", "decode", "load", "read_file", "read_spec"]

T = TypeVar("T")
WHOLE = "E235"
WHOLE_TENSORS = {"E220", "E221", WHOLE}        # what the reader of loops says of a body over whole tensors
MAX_INLINED = 10_000                                       # inlined statements in the bodies of one file
PARTS = ("implementation", "test", "bench", "schedule", "gradient")    # the sections that belong to one composite


def load(source: SpecText, options: Options) -> list[OpProgram]:
    """The validated operators of a spec, with typed bodies. Raises PartlyRefused with every error, the operators
    without errors in their signatures and bodies, and those whose body alone has errors, without it."""
    specs = _Specs(options)
    own = specs.read(source)
    wanted = any(not i.of or named(i.of, [c.name for c in own]) for i in options.instances)
    if wanted and not specs.found.problems and not any(c.generic or c.attributes for c in own):
        raise error("E675", f"{shown(source.name)} has no type variable, no '~' and no attribute: there is nothing to "
                            "choose")
    programs, declared, inlined = list[OpProgram](), list[OpProgram](), 0
    for composite in own:
        try:
            if inlined > MAX_INLINED:
                raise error("E239", f"calls bring more than {MAX_INLINED} statements into the bodies of this file",
                            composite.name_place,
                            hint="each body that calls others holds their statements: divide the file")
            lowered = specs.lower(composite)
        except CatenError as refusal:
            specs.record(refusal, composite)
            declared.append(_program(composite, Lowered((), (), ())))
            continue
        inlined += lowered.inlined
        if fold(composite.name) not in specs.found.refused:
            programs.append(_program(composite, lowered))
    rules = [rule for each in specs.rules if (rule := specs.found.attempt(partial(specs.rule, each))) is not None]
    programs = [p.adding(*rules) for p in programs]
    if specs.found.problems:
        raise PartlyRefused(in_file_order(specs.found.problems, (source.name,)), programs, declared)
    return programs


def runtime_rules(text: str, name: str, options: Options) -> list[Rewrite]:
    """The rules of a runtime: `[[rewrite]]` tables as in a spec. `name`: its file. CatenError with all errors."""
    specs = _Specs(options)
    document, places, problems = read_document(SpecText(name, text), "rules")
    specs.add_rules(document, places, SpecText(name, text))
    if problems or specs.found.problems:
        raise CatenError(*problems, *specs.found.problems)
    return gather(specs.rule, specs.rules)


def composites_of(source: SpecText, options: Options) -> tuple[list[Composite], CompositeFunctions]:
    """The composites of a spec, whose bodies are not read yet, and those that they may call. CatenError with all errors
    in their signatures."""
    specs = _Specs(options)
    own = specs.read(replace(source, is_main=False))
    if specs.found.problems:
        raise CatenError(*specs.found.problems)
    return own, specs.functions


def dependencies(source: SpecText, options: Options) -> list[FilePath]:
    """The absolute paths of the files that a spec includes or calls, in reading order."""
    specs = _Specs(options)
    for composite in specs.read(source):
        specs.lower(composite)
    return list(dict.fromkeys([*specs.known, *[FilePath(c.file) for c in specs.library.values()]]))


class _Specs(Callees):
    """The specs of one compilation: the compiled one and those that it includes or calls. Bodies may call composites of
    this spec, of its includes, and of name.toml along the -I path."""

    def __init__(self, options: Options):
        super().__init__()
        self.options = options
        self.found = Declarations()
        self.reading: list[FilePath] = []                       # the include chain, to find cycles
        self.known: dict[FilePath, list[Composite]] = {}
        self.library: dict[str, Composite] = {}                 # operators of caten's own that are called
        self.rules: list[WrittenRule] = []
        self.silent = False                                     # a call met a composite with errors on record
        self.functions = CompositeFunctions(self, self.lower)
        self.lowered: dict[str, Lowered] = {}                   # bodies by the name of the composite
        self.shapes: dict[tuple[str, str], Composite | None] = {}     # with the shapes of outputs that bodies return
        self.instances: dict[str, Composite] = {}               # of generic composites that are called
        self.lowering: list[str] = []                           # called composites whose bodies are being lowered
        self.refused: set[str] = set()                          # called composites whose bodies have errors

    def read(self, source: SpecText) -> list[Composite]:
        """The operators of a text, which may be an included file. CatenError if it cannot be read at all."""
        check_text(source)
        source = replace(source, text=source.text.replace("\r\n", "\n"))
        if source.lang == "lisp":
            own = one_line_spec.composites(source, self.found, self.options)
        else:
            document, places, problems = read_document(source)
            self.found.problems += problems
            for i, name in enumerate(document.get("include", ())):
                if self.found.attempt(partial(self.include, name, source, places.value("include", i))) is None:
                    self.found.complete = False
            own = self.declare(document, places, source)
            self.add_rules(document, places, source)
        self.found.attempt(partial(check_distinct, own))
        before = self.composites
        self.composites = [*own, *before]                       # bodies that say the shapes of outputs may call these
        # Each call of a generic composite makes an instance: without the axes of the call, its body may be wrong.
        own = [each for c in own if (each := c if c.generic and not source.is_main else self.shaped(c)) is not None]
        self.composites = [*own, *before]
        return own

    def include(self, name: str, source: SpecText, place: Place) -> list[Composite]:
        path = inside(name, source.name, self.options.include_dirs)
        if path is None:
            raise error("E016", f"there is no {shown(name)} below the spec's folder or the -I path", place,
                        hint="an include never leaves these folders; add one with -I")
        return self.file(path, place)

    def file(self, path: FilePath, place: Place | None) -> list[Composite]:
        """The operators of a file, read once."""
        resolved = path.resolve()
        if resolved in self.reading:
            raise error("E017", f"{shown(str(path))} includes itself", place,
                        hint="remove one of the includes of the loop")
        if resolved not in self.known:
            self.reading.append(resolved)
            try:
                self.known[resolved] = self.read(replace(read_file(path), is_main=False))
            finally:
                self.reading.pop()
        return self.known[resolved]

    def declare(self, document: dict[str, Any], places: Locations, source: SpecText) -> list[Composite]:
        """The composites of a document. The shapes of outputs that follow from bodies are not known yet."""
        written = document.get("composite", [])
        tables: list[tuple[dict[str, Any], Path, dict[str, Any]]] = [(written, ("composite",), document)]
        if isinstance(written, list):
            tables = [(table, ("composite", i), {}) for i, table in enumerate(written)]
            self.found.problems += [
                Diagnostic("E014", f"with [[composite]], write [composite.{p}]: [{p}] would belong to none of them",
                           places.key(p)) for p in PARTS if p in document and written]
        declared = [_composite(table, path, outer, places, source, self.options, self.found, asked)
                    for table, path, outer in tables for asked in self.instances_of(table, outer, source)]
        return [each for each in declared if each is not None]

    def instances_of(self, table: dict[str, Any], outer: dict[str, Any], source: SpecText) -> list[Asked]:
        """The instances of a composite that are asked for; an included or called one has none."""
        texts = [str(text) for part in ("inputs", "outputs") for text in table.get(part, ())]
        cases = [case.get("instance") for part in (table.get("test", {}), outer.get("test", {}))
                 for case in part.get("case", ())]
        return instances_of(str(table.get("name", "")), texts, "attributes" in table,
                            self.options, cases) if source.is_main else [(None, "")]

    def shaped(self, composite: Composite) -> Composite | None:
        """A composite whose outputs have shapes; None if there are none, and the errors go to `found`."""
        key = (composite.file, composite.key)
        if key not in self.shapes:
            try:
                self.shapes[key] = self.with_shapes(composite)
            except CatenError as refusal:
                self.record(refusal, composite)
                self.found.refuse(composite.name)
                self.shapes[key] = None
        return self.shapes[key]

    def record(self, refusal: CatenError, composite: Composite) -> None:
        """Errors in the body of a composite go to `found`. Those of a composite that it calls may be there already."""
        known = {(d.code, d.message, d.place) for d in self.found.problems}
        self.found.problems += [self.with_instance(d, composite) for d in refusal.diagnostics
                                if (d.code, d.message, d.place) not in known]

    def with_instance(self, d: Diagnostic, composite: Composite) -> Diagnostic:
        """An error in a body, which says as what a generic operator was read where no instance was asked for."""
        varied = [t for t in composite.generic if t.is_generic and t.name in composite.inputs]
        if not varied or self.options.instances or self.options.case_instances:
            return d
        arrays = [f"{t.name}={DTYPES[t.dtype].numpy}[{','.join(map(show, t.shape))}]"
                  for t in composite.tensors if t.name in composite.inputs]
        hint = f'give the instance for other types or axes: --instance "{composite.inputs[0]}=float64[M,N]"'
        note = f"without --instance, {composite.name} is that of {' '.join(arrays)}"
        return replace(d, hint=d.hint or hint, notes=(*d.notes, (note, None)))

    def with_shapes(self, composite: Composite) -> Composite:
        """A composite whose outputs have the shapes that its body returns, where the signature leaves them out."""
        if not composite.inferred:
            return composite
        from .returned_types import returned_types  # most signatures have all shapes
        with self.functions.reading(composite):
            found = returned_types(composite, self.functions)
        if len(found) != len(composite.outputs):
            raise error("E229", f"{amount(len(found), 'value')} {'is' if len(found) == 1 else 'are'} returned for "
                                f"{amount(len(composite.outputs), 'output')}",
                        composite.where(0), hint=f"the outputs are {', '.join(composite.outputs)}: return all of them")
        shapes = {name: each for name, each in zip(composite.outputs, found, strict=True) if name in composite.inferred}
        typed = {t.name for t in composite.generic if t.word == INFERRED}

        def known(tensor: Declared) -> Declared:
            if tensor.name not in shapes:
                return tensor
            dtype, shape = shapes[tensor.name]
            return tensor.with_shape(shape, dtype if tensor.name in typed else tensor.dtype)
        return replace(composite, inferred=(), tensors=tuple([known(t) for t in composite.tensors]))

    def instance(self, composite: Composite, instance: Instance) -> Composite:
        key = f"{composite.name} {instance!r}"
        if key not in self.instances:
            assert composite.remade is not None
            self.instances[key] = replace(self.with_shapes(composite.remade(instance)), instance=f" {instance!r}")
        return self.instances[key]

    def add_rules(self, document: dict[str, Any], places: Locations, source: SpecText) -> None:
        """The rules of a document: they hold for all operators of the file, and of those that include it."""
        rules, problems = written_rules(document, places, source)
        self.rules += rules
        self.found.problems += problems

    def rule(self, rule: WrittenRule) -> Rewrite:
        """A rule with the bodies of its two operators."""
        def op(composite: Composite, lowered: Lowered) -> OpProgram:
            program = _program(composite, lowered)
            return program.replace(clauses=tuple([c for c in program.clauses if not isinstance(c, At)
                                                  or c.what == flat(("op", program.name))]))
        pattern = op(rule.pattern, self._lower(rule.pattern))
        if isinstance(rule.replacement, ExternCall | If):
            return Rewrite(pattern, op(rule.pattern, Lowered((rule.replacement,), (), ())), rule.library)
        made = op(rule.replacement, self._lower(rule.replacement))
        check_conditions(rule.replacement, pattern, made)
        return Rewrite(pattern, made, rule.library)

    def lower(self, composite: Composite) -> Lowered:
        """The body of a composite. CatenError without diagnostics for what errors on record bring about."""
        if composite.key not in self.lowered:
            self.lowered[composite.key] = self._lower(composite)
        return self.lowered[composite.key]

    def array_body(self, composite: Composite) -> Lowered | None:
        if composite.key in self.lowering or composite.key in self.refused:      # it calls itself, or has errors
            return None
        self.lowering.append(composite.key)
        try:
            lowered = self.lower(composite)
        except CatenError:
            if composite.lang == "lisp":                        # the reader of loops tells what is wrong
                self.refused.add(composite.key)
                return None
            raise
        finally:
            self.lowering.remove(composite.key)
        return lowered if lowered.values is not None or composite.lang == "python" else None

    def _lower(self, composite: Composite) -> Lowered:
        self.silent = False
        try:
            if composite.lang == "python":
                return python_body(composite, self.functions)
            from .body import lower_body  # most operators of the library are written in Python
            return lower_body(composite, self)
        except CatenError as refusal:
            codes = {d.code for d in refusal.diagnostics}
            if composite.lang == "lisp" and codes & WHOLE_TENSORS:
                try:
                    return array_body(composite, self.functions)
                except NeedsLoops:
                    from .body import lower_body
                    try:
                        return lower_body(composite, self, self.functions)
                    except CatenError as problem:
                        if WHOLE in codes or not any(d.code == "E221" for d in problem.diagnostics):
                            raise
                except CatenError:
                    if WHOLE in codes:                          # it is no body of loops
                        raise
            if self.silent:                                     # the call may set the outputs
                raise CatenError(*[d for d in refusal.diagnostics if d.code not in ("E227", "E228")]) from None
            raise

    def find(self, name: str) -> Composite | None:
        """The composite that a body calls. CatenError without diagnostics if it has errors on record."""
        if fold(name) not in self.found.refused:
            composite = super().find(name) or self._on_path(name) or self.of_library(name)
            if composite is not None or self.found.complete:
                return composite
        self.silent = True
        raise CatenError

    def _on_path(self, name: str) -> Composite | None:
        for folder in self.options.include_dirs:
            for spelled in dict.fromkeys((name, name.lower())):
                path = FilePath(folder) / f"{spelled}.toml"
                if re.fullmatch(r"[A-Za-z0-9_-]+", name) and path.is_file():
                    return next((c for c in self.file(path, None) if fold(c.name) == fold(name)), None)
        return None

    def of_library(self, name: str) -> Composite | None:
        entry = operator_library.find(name)
        if entry is None:
            return None
        if entry.name not in self.library:
            found = self.read(replace(entry.spec, is_main=False))
            if not found:
                self.silent = True
                raise CatenError
            self.library[entry.name] = found[0]
        return self.library[entry.name]

    def library_names(self) -> list[str]:
        return [entry.name for entry in operator_library.entries()]


def read_spec(name: str | FilePath) -> SpecText:
    """The spec in a file, on standard input (`-`), or in the library (`ops:softmax`)."""
    prefix, of_library, operator = str(name).partition(operator_library.PREFIX)
    return operator_library.spec_of(operator) if of_library and not prefix else read_file(name)


def parse(source: SpecText) -> tuple[dict[str, Any], Locations]:
    """The document of a TOML spec, valid against the schema, and its source positions."""
    document, places, problems = read_document(source)
    if problems:
        raise CatenError(*problems)
    return document, places


def read_document(source: SpecText, kind: str = "spec") -> tuple[dict[str, Any], Locations, list[Diagnostic]]:
    """The document of a TOML spec without the parts that violate the schema, its source positions, and the violations.
    `kind`: `spec`, or `rules` for the rules of a runtime. E004 or E005 if it is no TOML."""
    places = locate(source.text, source.name)
    places.given = source.places
    try:
        document = tomli.loads(source.text)
    except tomli.TOMLDecodeError as problem:
        raise _not_toml(problem, source, places) from None
    except (ValueError, RecursionError):     # numbers that Python cannot convert
        number = max(re.finditer(r"\d[\d_]*", source.text), key=lambda m: m.end() - m.start())
        raise error("E004", f"a number of {len(number[0])} digits", places.at(number.start())) from None
    return document, places, schema.problems(document, places, kind)


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


def check_distinct(composites: Sequence[Composite]) -> None:
    """E015 for composites of the same name."""
    seen: dict[str, Composite] = {}
    repeated = [(c, first) for c in composites if (first := seen.setdefault(fold(c.name), c)) is not c]
    if repeated:
        raise CatenError(*[Diagnostic("E015", f"there are two composites called '{c.name}'", c.name_place,
                                      notes=(("the first one is here", first.name_place),)) for c, first in repeated])


def _composite(table: dict[str, Any], path: Path, outer: dict[str, Any], places: Locations, source: SpecText,
               options: Options, found: Declarations, asked: Asked) -> Composite | None:
    """One `[composite]` with its sections, which stand in it or (for a single one) at the top level. Its errors go to
    `found`; None if they leave no signature or no body. `asked`: the instance, and the end of its name."""
    instance, ending = asked
    def section(name: str) -> sections.Section:
        if name in table and name in outer:
            found.problems.append(Diagnostic("E014", f"both [{name}] and [composite.{name}]", places.key(*path, name),
                                             notes=(("the other one is here", places.key(name)),)))
        return (table[name], (*path, name)) if name in table else (outer.get(name, {}), (name,))

    def strings(values: list[str], at: Path) -> list[Written]:
        return [Written(text, places.inside(*at, i)) for i, text in enumerate(values)]

    (implementation, code_path), (test, test_path) = section("implementation"), section("test")
    written, name_place = table.get("name"), places.inside(*path, "name")(0)
    name = None if written is None else found.attempt(lambda: identifier(written, name_place))
    if name is None:
        found.refuse(written)
    misplaced = any(d.code == "E014" or d.hint == "did you mean 'implementation'?" for d in found.problems)
    if written is not None and "implementation" not in table and "implementation" not in outer and not misplaced:
        found.problems.append(Diagnostic("E011", f"{shown(written)} lacks an [implementation]", places.key(*path),
                                         "add a section with code = \"\"\"…\"\"\""))
    lang = str(implementation.get("lang", "lisp"))
    defaults = [(text, places.inside(*path, "attributes", n)(0)) for n, text in enumerate(table.get("attributes", ()))]
    given = found.attempt(partial(attributes, defaults, instance))
    if given is None and instance is not None:
        given = found.attempt(partial(attributes, defaults, None))
    signature = found.attempt(lambda: declare(
        strings(table["inputs"], (*path, "inputs")), strings(table["outputs"], (*path, "outputs")),
        strings(test.get("requirements", []), (*test_path, "requirements")),
        places.key(*path, "outputs"), instance=instance,
        attributes=given or (), exact=lang == "python")) if "inputs" in table and "outputs" in table else None
    for n, (attribute, _) in enumerate(given or ()):
        taken = signature is not None and named(attribute, signature.names)
        if taken:
            found.problems.append(Diagnostic("E121", f"the attribute '{attribute}' has the name of the tensor or size "
                                             f"'{taken}'", defaults[n][1], "take another name"))
    facts, problems = sections.facts((test, test_path), section("bench"), section("schedule"), section("gradient"),
                                     signature, places, options.runtime, instance)
    found.problems += problems
    code, where = implementation.get("code"), places.inside(*code_path, "code")
    if name is None or signature is None or code is None:
        found.refuse(name or written)
        if code is not None and lang == "lisp":
            found.attempt(lambda: read_forms(code, where, depth=MAX_NESTED_FORMS))
        return None
    return Composite(name + ending, signature.tensors, signature.inputs, signature.outputs, signature.sizes,
                     signature.conditions, code, lang, where, name_place, source.name,
                     table.get("documentation", "").strip(),
                     (*facts, *[Attribute(key, json.dumps(value)) for key, value in given or ()],
                      *sections.facts_of(signature)),
                     given or (),
                     signature.generic, signature.inferred,
                     partial(_instance, table, path, outer, places, source, options), ending=ending)


def _instance(table: dict[str, Any], path: Path, outer: dict[str, Any], places: Locations, source: SpecText,
              options: Options, instance: Instance) -> Composite:
    """Another instance of a composite. CatenError if there is none."""
    found = Declarations()
    made = _composite(table, path, outer, places, source, options, found, (instance, ""))
    if made is None or found.problems:
        raise CatenError(*found.problems)
    return made


def _program(composite: Composite, lowered: Lowered) -> OpProgram:
    """The op program of a composite and its body."""
    clauses: list[Node] = [Doc(composite.doc)] if composite.doc else []
    clauses += [Source(composite.file), Signature(tuple(t.text for t in composite.tensors)), Outputs(composite.outputs)]
    clauses += [parameter(t) for t in composite.tensors]
    clauses += [Size(name) for name in composite.sizes]
    clauses += [Require(condition) for condition in dict.fromkeys((*composite.conditions, *lowered.requirements))]
    named = At(composite.name_place.line, composite.name_place.column, flat(("op", composite.name)))
    body: Sequence[Node] = (Body(lowered.stmts),) if lowered.values is None else [
        c for c in lowered.values.clauses if isinstance(c, Variables | Named | Define | Output)]
    return OpProgram(composite.name, (*clauses, *composite.facts, named, *lowered.positions, *body))
