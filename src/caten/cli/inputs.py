"""Read the inputs of a command line: files, stdin, or S-expressions given as arguments."""
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .. import checking
from ..core.program import Program
from ..errors import Diagnostic, UsageError, did_you_mean
from ..frontend.operator_library import PREFIX
from ..frontend.spec import read_spec
from ..frontend.spec_files import SpecText
from .shared_options import Request

ARGUMENT = "<argument>"


def sources(request: Request, commands: Sequence[str] = ()) -> list[SpecText]:
    """The text of every input. `commands`: names of commands, for the hint about a missing file."""
    check_names(request, commands)
    return [_source(name, request.language) for name in request.inputs]


def check_names(request: Request, commands: Sequence[str] = ()) -> None:
    """UsageError E902 if there are no inputs, or a name is not that of an existing file."""
    if not request.inputs:
        raise UsageError(Diagnostic("E902", "no input files",
                                    hint="name a spec: caten gemm.toml; caten --help shows examples"))
    if request.inputs.count("-") > 1:
        raise UsageError(Diagnostic("E902", "stdin ('-') can be read only once"))
    problems = [d for name in request.inputs for d in _missing(name, commands)]
    if problems:
        raise UsageError(*problems)


def _source(name: str, language: str | None) -> SpecText:
    if name.lstrip().startswith("("):
        return SpecText(ARGUMENT, name, "lisp")
    text = read_spec(name)
    return SpecText(text.name, text.text, language) if language else text


def _missing(name: str, commands: Sequence[str]) -> list[Diagnostic]:
    """The diagnostic for an input that does not exist, or nothing."""
    if name == "-" or name.lstrip().startswith("(") or name.startswith(PREFIX):
        return []
    if not name:
        return [Diagnostic("E902", "the name of an input is empty", hint="is a shell variable unset?")]
    try:
        path = Path(name)
        if path.is_dir():
            return [Diagnostic("E902", f"{name} is a folder, not a spec", hint="name the .toml files in it")]
        if path.exists():
            return []
    except (OSError, ValueError):                             # the name is too long, or contains a NUL
        return [Diagnostic("E902", f"'{name[:80]}' is not the name of a file")]
    if name in commands:
        return [Diagnostic("E902", f"there is no file '{name}'", hint=f"the command comes first: caten {name} …")]
    if "." not in name and "/" not in name and commands:
        return [Diagnostic("E901", f"there is no command and no file '{name}'",
                           hint=did_you_mean(name, tuple(commands)) or f"the commands are {', '.join(commands)}")]
    return [Diagnostic("E902", f"there is no file '{name}'", hint=_similar(path))]


def _similar(path: Path) -> str | None:
    """A hint with a similar file name in the same folder."""
    try:
        # only stems are compared: equal suffixes would make any two names similar
        there = {p.stem: p.name for p in sorted(path.parent.iterdir()) if p.suffix == path.suffix}
        hint = did_you_mean(path.stem, list(there))
        return None if hint is None else hint.replace(stem := hint.split("'")[1], there[stem])
    except OSError:
        return None


def load(request: Request, texts: Sequence[SpecText], applied: bool = True) -> list[Program]:
    """The programs of all inputs, with their tests checked, and their rules of [rewrite] if these are `applied`.
    CatenError with all errors found."""
    return checking.loaded(texts, request.options, applied=applied)
