"""Errors: diagnostics that are raised, and which exit code follows."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from .diagnostic import Diagnostic, Place

T = TypeVar("T")

if TYPE_CHECKING:
    from typing import Self

__all__ = ["CatenError", "Diagnostic", "NothingMatched", "OutOfMemory", "PartlyRefused", "Place", "ToolError",
           "UsageError",
           "combined", "did_you_mean", "error", "in_file_order", "out_of_memory"]


class CatenError(Exception):
    """An error with a message for the user: one or more diagnostics. Its text includes source lines and carets.

    It can be pickled, with all attributes of a subclass, so that a worker process can pass it on."""

    exit_code = 1

    def __init__(self, *diagnostics: Diagnostic):
        super().__init__(*diagnostics)
        self.diagnostics = diagnostics

    def __str__(self) -> str:
        from .diagnostic_lines import in_python  # imported here: most errors are shown otherwise, or caught
        return "\n".join([in_python(d) for d in self.diagnostics])

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (type(self), self.args, self.__dict__)

    def shortened(self) -> Self:
        """The same error without the frames inside caten, to be raised `from None` at the user's call."""
        self.__cause__ = None
        return self.with_traceback(None)


def _unpickled(kind: type[CatenError], args: tuple[Any, ...], fields: dict[str, Any]) -> CatenError:
    """An error of any subclass, whatever its `__init__` takes."""
    made: CatenError = Exception.__new__(kind, *args)
    made.__dict__.update(fields)
    return made


class PartlyRefused(CatenError):
    """Some definitions of a file have errors. `programs` are those that later phases can check; of those that are
    `declared`, only the body has errors, and their tests can be checked."""

    def __init__(self, diagnostics: Iterable[Diagnostic], programs: Sequence[Any] = (), declared: Sequence[Any] = ()):
        super().__init__(*diagnostics)
        self.programs, self.declared = programs, declared


class UsageError(CatenError):
    """A wrong option, argument or file name, on the command line or in a call of a Python function (exit code 2)."""

    exit_code = 2


class ToolError(CatenError):
    """The host compiler or another tool of the runtime is missing or failed (exit code 3)."""

    exit_code = 3


class OutOfMemory(CatenError, MemoryError):
    """The memory that a call needs cannot be allocated. It is also a MemoryError."""


class NothingMatched(CatenError):
    """No operator, test case or test has a given name or tag (exit code 5)."""

    exit_code = 5


def error(code: str, message: str, place: Place | None = None, *, hint: str | None = None,
          notes: tuple[tuple[str, Place | None], ...] = ()) -> CatenError:
    """A CatenError of one diagnostic: `raise error("E301", "…", place)`."""
    return CatenError(Diagnostic(code, message, place, hint, notes))


def out_of_memory(op: str, message: str) -> OutOfMemory:
    """E712 in a call of the operator `op`."""
    return OutOfMemory(Diagnostic("E712", f"{op}: {message}"))


def combined(problems: Sequence[CatenError]) -> CatenError:
    """Several errors as one: all diagnostics, with the exit code of the first."""
    if len(problems) == 1:
        return problems[0]
    first = type(problems[0])
    kind = first if first in (UsageError, NothingMatched) else CatenError
    return kind(*[d for p in problems for d in p.diagnostics])


def in_file_order(problems: Iterable[Diagnostic], files: Sequence[str] = ()) -> list[Diagnostic]:
    """The distinct diagnostics by line and column: those of `files` first, in this order, then those of other files."""
    def position(d: Diagnostic) -> tuple[int, int, int]:
        if d.place is None:
            return len(files) + 1, 0, 0
        return files.index(d.place.file) if d.place.file in files else len(files), d.place.line, d.place.column
    return sorted(dict.fromkeys(problems), key=position)


def amount(n: int | str, noun: str) -> str:
    """How many: `1 input`, `2 inputs`."""
    return f"{n} {noun}" if str(n) == "1" else f"{n} {noun}s"


def did_you_mean(name: str, known: list[str] | tuple[str, ...]) -> str | None:
    """A hint that names the closest of `known`, or None."""
    from difflib import get_close_matches
    close = get_close_matches(name.lower(), [k.lower() for k in known], 1, 0.6)
    return next((f"did you mean '{k}'?" for k in known if close and k.lower() == close[0]), None)


def near_function(name: str, known: Iterable[str]) -> str | None:
    """A hint that names the functions which may be meant, or None: those that begin with the name, or one that is a
    slip of the keyboard away. Names are short and many, so that `did_you_mean` would find one for any word."""
    wanted, names = name.lower(), sorted(dict.fromkeys(known), key=lambda k: (len(k), k))
    begun = [f"'{k}'" for k in names if len(wanted) >= 4 and k.lower().startswith(wanted)][:3]
    if begun:
        return f"did you mean {' or '.join([', '.join(begun[:-1]), begun[-1]] if len(begun) > 1 else begun)}?"
    most = 0 if len(wanted) < 3 else 1 if len(wanted) < 6 else 2
    slips = {k: (_slips(wanted, k.lower()), k[0] != name[0]) for k in names if abs(len(k) - len(wanted)) <= most}
    close = min(slips, key=lambda k: slips[k], default=None)
    return f"did you mean '{close}'?" if close is not None and slips[close][0] <= most else None


def _slips(a: str, b: str) -> int:
    """How many letters are wrong, missing, too many, or changed places with the next one."""
    before, row = list[int](), list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row, earlier = row, [i], before
        for j, y in enumerate(b, 1):
            row.append(min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (x != y)))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                row[j] = min(row[j], earlier[j - 2] + 1)
        before = last
    return row[-1]


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
