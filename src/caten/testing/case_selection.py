"""Which operators and test cases of specs --only and --tag select."""
from __future__ import annotations

from collections.abc import Sequence

from ..core.program import Case, Program
from ..errors import Diagnostic, NothingMatched, did_you_mean
from ..frontend.instances import is_instance


def selected(programs: Sequence[Program], tags: tuple[str, ...], names: tuple[str, ...]) -> list[str]:
    """The operators of which cases with one of these tags and names are run. NothingMatched where there are none."""
    known = [c.name for op in programs for c in op.all(Case)]
    everything = [*known, *[op.name for op in programs]]
    if names and not any(is_known(name, everything) for name in names):
        raise unknown_name(names[0], everything)
    found = [op.name for op in programs
             if selected_cases(op, tags, names) or runs_at_default_sizes(op, tags, names)]
    if not found:
        raise NothingMatched(Diagnostic("E835", "no test case matched",
                                        hint=f"the cases are {', '.join(known) or 'none'}"))
    return found


def selected_cases(op: Program, tags: tuple[str, ...], names: tuple[str, ...]) -> list[Case]:
    """The cases of an operator with one of these tags and names."""
    return [c for c in op.all(Case) if (not tags or set(tags) & set(c.tags))
            and (not names or c.name in names or any(is_known(name, [op.name]) for name in names))]


def runs_at_default_sizes(op: Program, tags: tuple[str, ...], names: tuple[str, ...]) -> bool:
    """Is an operator without cases run, at small sizes?"""
    return not op.all(Case) and not tags and (not names or any(is_known(name, [op.name]) for name in names))


def is_known(name: str, names: Sequence[str]) -> bool:
    """Is it one of these names of operators and cases, or that of an operator with an instance among them?"""
    return any(name == each or is_instance(each, name) for each in names)


def unknown_name(name: str, known: Sequence[str]) -> NothingMatched:
    """The refusal of a name that no operator and no test case has."""
    return NothingMatched(Diagnostic("E835", f"no composite or test case is called '{name}'",
                                     hint=did_you_mean(name, list(known))))
