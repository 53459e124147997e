"""The numerical check of a rule of [rewrite]: its pattern, compiled with the rule, against its pattern as written.

A rule is checked once for each library, compiler and version of caten; that it passed is kept in the cache. A check
runs in processes of its own, because the function of a rule may crash.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from .. import driver
from ..attach import attach, runtime_of
from ..compiler import Built, Compilation, open_cache
from ..core.program import Case, InOrder, Program, Require, Setting
from ..core.size_formula import evaluate
from ..core.small_sizes import small_sizes
from ..core.text import show
from ..errors import CatenError, Diagnostic, Place, ToolError, error
from ..frontend.op import OpProgram, Rewrite
from ..options import Options
from ..runtime import work_formulas
from ..runtime.library_cache import key as hashed
from ..runtime.manifest import operators
from ..runtime.protocol import Unavailable
from ..schedule.planning_log import Entry, Rewritten
from .outcomes import EMPTY, Report
from .runner import run_cases

LARGER = (20, 15, 10, 5)            # besides small sizes, 1 and 0: the first of these from which on sizes take at most
MOST_STEPS = 1 << 27                # so many steps of the reference, which are less than a second


def check_rules(program: Program, options: Options, compiled: bool = True) -> None:
    """Check the rules of an operator that can fire. Raises CatenError E670 with all that are wrong. `compiled`: also
    with those that cannot be compiled and linked here."""
    rules = program.all(Rewrite)
    if not rules or program.opt == 0 or program.first(InOrder) is not None:
        return
    problems: list[Diagnostic] = []
    for rule in rules:
        try:
            check_rule(rule, options, compiled)
        except CatenError as refusal:
            problems += refusal.diagnostics
    if problems:
        raise CatenError(*problems)


def check_rule(rule: Rewrite, options: Options, compiled: bool = True) -> None:
    """Check one rule. E670 if it computes something else than its pattern or never fires; if `compiled`, also if it
    cannot be compiled and run."""
    plain = replace(options, opt=2, binds=(), strided=(), schedule=None, only=(), lines=False, debug=0,
                    given=frozenset())
    op = attach(rule.pattern.adding(rule), plain)
    assert isinstance(op, OpProgram)
    try:
        name = hashed("rule", show(rule), runtime_of(plain).identity(), str(plain.unchecked), str(plain.in_order))
    except Unavailable:
        return                                           # what needs a compiler will say that there is none
    def make(folder: Path) -> None:
        _run(rule, op, plain)
        (folder / "checked").write_text(show(rule), "utf-8")
    try:
        open_cache(plain).fetch(name, make)
    except ToolError as problem:
        if compiled:
            raise _refused(rule.pattern.name, "cannot be compiled and run", rule.pattern.place(),
                           problem.diagnostics) from None


def _run(rule: Rewrite, op: OpProgram, options: Options) -> None:
    name, place = rule.pattern.name, rule.pattern.place()
    log: list[Entry] = []
    driver.advance(op, "tensor", options, log=log)
    if Rewritten(name, name) not in log:
        raise error("E670", f"the rule '{name}' never applies, not even to its own pattern", place,
                    hint="a pattern has an index notation: caten ir shows it; a conversion, a running sum or a "
                         "run-time check may have none")
    built = Compilation((op,), options).artifact()
    for report in [r for case in _cases(op, built) for r in run_cases(_with_case(built, op, case), options)]:
        if not report.passed:
            raise _refused(name, _fault(report), place, report.diagnostics)


def _cases(op: OpProgram, built: Built) -> Iterator[Case]:
    """Small sizes, different ones, and larger ones; then all 1, and each of them 0, where the conditions allow it."""
    described = next(m for m in operators(built.manifest) if m["op"] == op.name)
    first, steps = small_sizes(described), work_formulas.steps(op)
    larger = next((sizes for least in LARGER if work_formulas.at(
        steps, sizes := small_sizes(described, least)) <= MOST_STEPS), first)
    tried = [first, larger, dict.fromkeys(op.sizes, 1)]
    tried += [first | {size: 0} for size in op.sizes]
    for n, sizes in enumerate(tried):
        if all(evaluate(r.cond, sizes) for r in op.all(Require)):
            empty = any(evaluate(e, sizes) == 0 for b in op.buffers.values() if b.access != "in" for e in b.shape)
            yield Case(f"sizes {n + 1}", "random", EMPTY if empty else "reference", (),
                       tuple([Setting(name, str(value)) for name, value in sizes.items()]))


def _with_case(built: Built, op: OpProgram, case: Case) -> Built:
    return replace(built, ops=(op.without(Case).adding(case),))


def _fault(report: Report) -> str:
    """What is wrong with a run of a rule, with the element."""
    sizes = ", ".join([f"{k} = {v}" for k, v in report.arguments.items()])
    wrong = [f"{o.name} {o.detail}" for o in report.outputs if not o.passed]
    if wrong:
        return f"computes something else than its pattern: {wrong[0]} (with {sizes})"
    return f"does not run (with {sizes}): {report.status} {report.note}".rstrip()


def _refused(name: str, what: str, place: Place | None, reasons: Sequence[Diagnostic]) -> CatenError:
    notes = tuple([(d.message, None) for d in reasons if d.message not in what])
    return error("E670", f"the rule '{name}' {what}", place, notes=notes,
                 hint="correct the rule, or leave it out with -fno-rewrite")
