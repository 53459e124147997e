"""From what the user names to programs: specs, and texts that earlier stages printed."""
from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from .attach import attach, reconcile
from .core.program import Program, Unchecked, resolve
from .core.text import flat, form_of, parse, place_in, read_forms
from .errors import CatenError, Diagnostic, NothingMatched, PartlyRefused, Place, combined, did_you_mean, error
from .frontend.composite import fold, named
from .frontend.instances import name_end
from .frontend.op import OpProgram
from .frontend.spec_files import SpecText
from .options import Instance, Options
from .passes import LEVELS, VERIFIERS, level_of

_HEAD = re.compile(r"(?:\s|;[^\n]*\n)*\(\s*([^\s()]+)")      # the first word of a text of the stages, after comments


def load_programs(source: SpecText, options: Options) -> list[Program]:
    """A spec, or the text that an earlier stage printed, as programs with the options attached. Those that --only
    leaves out are there, as they were: it selects among all that a command reads."""
    head = _HEAD.match(source.text)
    if head is not None and head[1] in LEVELS:
        if options.instances:
            raise error("E675", f"{source.name} is a text of a stage, and one instance already",
                        hint="--instance belongs to the command that reads the spec")
        return [reconcile(p, options) if _is_selected(p, options) else p for p in read_programs(source)]
    try:
        from .frontend import spec  # a graph of known operators needs none of it
        return [attach(p, options) if _is_selected(p, options) else p for p in spec.load(source, options)]
    except PartlyRefused as refusal:
        programs: list[Program] = []
        with suppress(CatenError):               # a wrong option or runtime: an error of its own once the spec is right
            programs = [attach(p, options) for p in refusal.programs if _is_selected(p, options)]
        raise PartlyRefused(refusal.diagnostics, programs, refusal.declared) from None


def _is_selected(program: Program, options: Options) -> bool:
    return not options.only or any(named(name, (program.name,)) for name in options.only)


def read_programs(source: SpecText) -> list[Program]:
    """The verified programs of a text of the stages. Raises CatenError with all errors."""
    def place(pos: int) -> Place:
        return place_in(source.text, pos, source.name)
    programs: list[Program] = []
    problems: list[Diagnostic] = []
    for form in read_forms(source.text, place):
        try:
            node = parse(form, place)
            if not isinstance(node, Program):
                raise error("E214", f"a text of the stages holds programs, not {flat(form_of(node))[:60]}",
                            hint="each starts with (op …), (tensor …) or (loop …)")
            program = resolve(node)
            # the accesses of an op are looked at by its first pass, which adds the checks
            VERIFIERS[level_of(program)](program.adding(Unchecked()) if isinstance(program, OpProgram) else program)
            programs.append(program)
        except CatenError as problem:
            problems += [_of_text(d, place(form.pos)) for d in problem.diagnostics]
    if problems:
        raise CatenError(*problems)
    return programs


def _of_text(d: Diagnostic, place: Place) -> Diagnostic:
    """What a verifier says of a program that a person gave: not our fault, and the place is the program."""
    if d.code.startswith(("E47", "E48")):
        d = replace(d, code="E215", hint="correct the text, or make it again from the spec")
    return d.at(place)


def selected(programs: list[Program], only: Sequence[str]) -> list[Program]:
    """The programs that --only names (all without it). NothingMatched where it names none."""
    names = [p.name for p in programs]
    wanted = [named(name, names) for name in only]
    if None in wanted:
        name = only[wanted.index(None)]
        raise NothingMatched(Diagnostic("E920", f"no composite is called '{name}'",
                                        hint=did_you_mean(name, names) or f"there is: {', '.join(names)}"))
    return [p for p in programs if not only or p.name in wanted]


def loaded(sources: Sequence[SpecText], options: Options) -> list[Program]:
    """The selected programs of specs or of texts of earlier stages. CatenError with the errors of every source:
    PartlyRefused with the programs that later phases can check, if there are any."""
    programs: list[Program] = []
    problems: list[CatenError] = []
    for source in sources:
        try:
            programs += load_programs(source, options)
        except CatenError as problem:
            problems.append(problem)
    if problems:
        raise _partly_refused(problems, [p for p in programs if _is_selected(p, options)])
    if not programs:
        raise NothingMatched(Diagnostic("E920", "there is no composite in the input"))
    for instance in options.instances:
        _check_operator(instance, [p.name for p in programs])
    return selected(programs, options.only)


def _check_operator(instance: Instance, programs: Sequence[str]) -> None:
    """E675 unless the operator that an instance names is one of the programs, whose name may end with its types."""
    name, made = instance.of, fold(f"{instance.of}{name_end(instance)}")
    if name and not any(fold(p) == fold(name) or fold(p).startswith(made) for p in programs):
        raise error("E675", f"--instance \"{name}: …\": there is no operator '{name}'",
                    hint=did_you_mean(name, list(programs)) or f"there is: {', '.join(programs)}")


def _partly_refused(problems: Sequence[CatenError], programs: Sequence[Program]) -> CatenError:
    """Errors of several sources as one, with the programs of all."""
    partly = [p for p in problems if isinstance(p, PartlyRefused)]
    if len(partly) < len(problems):
        return combined(problems)
    return PartlyRefused(combined(problems).diagnostics, [*programs, *[p for one in partly for p in one.programs]],
                         [p for one in partly for p in one.declared])


def digest(sources: Sequence[SpecText]) -> str:
    """The SHA-256 of the specs, as a manifest holds it."""
    return hashlib.sha256("\0".join([s.text for s in sources]).encode()).hexdigest()
