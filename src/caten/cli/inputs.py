"""The inputs of a command line, read and turned into programs."""
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .. import loading, passes
from ..core.program import Program
from ..errors import CatenError, Diagnostic, NothingMatched, UsageError, did_you_mean
from ..frontend.op import OpProgram
from ..frontend.spec import SpecText, read_file
from .options import Request

ARGUMENT = "<argument>"


def sources(request: Request, commands: Sequence[str] = ()) -> list[SpecText]:
    """The text of every input. `commands`: names that a missing input may have been meant to be."""
    if not request.inputs:
        raise UsageError(Diagnostic("E902", "no input files", hint="name a spec: caten gemm.toml; caten --help shows examples"))
    if request.inputs.count("-") > 1:
        raise UsageError(Diagnostic("E902", "stdin ('-') can be read only once"))
    problems = [d for name in request.inputs for d in _missing(name, commands)]
    if problems:
        raise UsageError(*problems)
    return [_source(name, request.language) for name in request.inputs]


def _source(name: str, language: str | None) -> SpecText:
    if name.lstrip().startswith("("):
        return SpecText(ARGUMENT, name, "lisp")
    text = read_file(name)
    return SpecText(text.name, text.text, language) if language else text


def _missing(name: str, commands: Sequence[str]) -> list[Diagnostic]:
    """Why an input cannot be read, as far as its name tells."""
    if name == "-" or name.lstrip().startswith("("):
        return []
    if not name:
        return [Diagnostic("E902", "the name of an input is empty", hint="is a variable of the shell unset?")]
    try:
        path = Path(name)
        if path.is_dir():
            return [Diagnostic("E902", f"{name} is a folder, not a spec", hint="name the .toml files in it")]
        if path.exists():
            return []
    except (OSError, ValueError):                             # a name too long for a file, or with a NUL
        return [Diagnostic("E902", f"'{name[:80]}' is not the name of a file")]
    if name in commands:
        return [Diagnostic("E902", f"there is no file '{name}'", hint=f"the command comes first: caten {name} …")]
    if "." not in name and "/" not in name and commands:
        return [Diagnostic("E901", f"there is no command and no file '{name}'",
                           hint=did_you_mean(name, tuple(commands)) or f"the commands are {', '.join(commands)}")]
    return [Diagnostic("E902", f"there is no file '{name}'", hint=_similar(path))]


def _similar(path: Path) -> str | None:
    """A file of a similar name in the same folder."""
    try:
        there = {p.stem: p.name for p in sorted(path.parent.iterdir()) if p.suffix == path.suffix}       # the suffix says nothing of what is meant
        hint = did_you_mean(path.stem, list(there))
        return None if hint is None else hint.replace(stem := hint.split("'")[1], there[stem])
    except OSError:
        return None


def load(request: Request, texts: Sequence[SpecText]) -> list[Program]:
    """The programs of all inputs; the errors of every input are reported, not only of the first. --only selects among all of them."""
    programs: list[Program] = []
    problems: list[CatenError] = []
    for text in texts:
        try:
            programs += loading.load_programs(text, request.options)
        except CatenError as problem:
            problems.append(problem)
    if problems:
        raise combined(problems)
    if not programs:
        raise NothingMatched(Diagnostic("E920", "there is no composite in the input"))
    return loading.selected(programs, request.options.only)


def combined(problems: Sequence[CatenError]) -> CatenError:
    """Several errors as one: all diagnostics, with the exit code of the first."""
    if len(problems) == 1:
        return problems[0]
    worst = type(problems[0])
    return (worst if worst in (UsageError, NothingMatched) else CatenError)(*[d for p in problems for d in p.diagnostics])


def as_written(programs: Sequence[Program], verb: str) -> None:
    """E934 where a program comes from the text of a later stage, which no longer holds the operator as it was written: its results could be compared
    with nothing but themselves. `verb`: what was to be done."""
    for program in programs:
        if not isinstance(program, OpProgram):
            given = f"{program.name} is given as a text of the level '{passes.level_of(program)}'"
            raise UsageError(Diagnostic("E934", f"{given}, which lacks the operator as it was written",
                                        hint=f"{verb} the spec, or the text of caten parse"))
