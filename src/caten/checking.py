"""Checks of specs without compiling them."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from . import driver, loading
from .core.program import Check, Ensure, Program
from .driver import ignore
from .errors import CatenError, Diagnostic, PartlyRefused, gather, in_file_order
from .frontend.op import Rewrite
from .frontend.spec_files import SpecText
from .frozen import frozen
from .loop.statements import Fail
from .options import Options
from .runtime.tuning_records import Warn


@frozen
class Checked:
    """The result of `check` for an operator without errors. `name`: its name; `at_entry`: the number of conditions that
    a call checks before its loops; `in_loops`: the texts of the conditions that it checks inside its loops, by
    number."""

    name: str
    at_entry: int
    in_loops: dict[int, str]


def proved(program: Program, options: Options, warn: Warn = ignore) -> Checked:
    """Take a program through every stage up to its schedule. CatenError with what is wrong with it."""
    program = driver.advance(program, "loop", options, warn)
    # A check of an index may have a condition on the sizes at entry beside the one in the loops.
    at_entry = {e.row for e in program.all(Ensure)} - {n.row for n in program.unique() if isinstance(n, Fail)}
    return Checked(program.name, len(at_entry), {c.row: c.text for c in program.all(Check) if c.row not in at_entry})


def loaded(sources: Sequence[SpecText], options: Options, *, applied: bool = True,
           compiled: bool = False) -> list[Program]:
    """The programs of specs, with their tests checked. CatenError with all errors in the specs, those of bounds and
    schedules too. `applied`: the rules of [rewrite] will be, so they are tried, if they can be compiled; `compiled`: a
    library will be made, so it is an error if they cannot."""
    from .testing.spec_tests import check_tests  # graphs need none of it
    programs: list[Program] = []
    try:
        programs = loading.loaded(sources, options)
        gather(check_tests, programs)
        if (applied or compiled) and any(p.first(Rewrite) is not None for p in programs):
            from .testing.rule_check import check_rules  # it imports numpy, and most specs have no rules
            gather(partial(check_rules, options=options, compiled=compiled), programs)
    except PartlyRefused as refusal:
        raise with_later_errors(refusal, sources, options) from None
    except CatenError as refusal:
        if not programs:
            raise
        raise with_later_errors(PartlyRefused(refusal.diagnostics, programs), sources, options) from None
    return programs


def with_later_errors(refusal: PartlyRefused, sources: Sequence[SpecText], options: Options) -> CatenError:
    """The errors of a refusal, and those that the later phases find in its other programs, in file order."""
    from .testing.spec_tests import check_tests
    problems: list[Diagnostic] = list(refusal.diagnostics)
    checks: list[Callable[[], object]] = [partial(check_tests, p) for p in (*refusal.programs, *refusal.declared)]
    checks += [partial(proved, p, options) for p in refusal.programs]
    for check in checks:
        try:
            check()
        except CatenError as problem:
            problems += problem.diagnostics if problem.exit_code == 1 else ()
    return CatenError(*in_file_order(problems, [source.name for source in sources]))
