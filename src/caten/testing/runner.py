"""Run one compiled operator on drawn data, compare it with its reference, time it, and say what came out."""
from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from ..compiler import Built
from ..core.program import Case, Scalar
from ..core.small_sizes import small_sizes
from ..core.text import flat, form_of
from ..errors import CatenError, Diagnostic, ToolError
from ..frontend.op import OpProgram
from ..loop.statements import Aref, Stmt
from ..options import Options
from ..runtime import work_formulas
from ..runtime.manifest import operators
from . import data, isolate
from .case_arrays import arrays_of
from .case_selection import runs_at_default_sizes, selected, selected_cases
from .outcomes import Report, outputs_compared, verdict
from .reference import TIMEOUT, caller, expected_of, never_stored, numbers_of, outputs_of
from .sizes_and_scalars import case_values

OUTSIDE = "E485"                       # an access outside its array, where bounds checks were left out
LEAST, SCALARS = (0, 20, 60), 4        # default sizes: the least that are tried, and how many draws of scalars at each
MOST_STEPS = 200_000                   # operations of a nest that is interpreted to see what it runs
TIMING = 0.3                           # seconds spent on repeated calls


def run_at(built: Built, values: Mapping[str, int | float], options: Options, only: str | None = None) -> list[Report]:
    """`--test "M=3, a=2.5"`: every operator of a library on data drawn from the seed, timed. `values`: every size,
    and some scalars."""
    return [_run(built, op, "", values, options, timed=True) for op in built.ops if only is None or op.name == only]


def run_cases(built: Built, options: Options, tags: tuple[str, ...] = (), names: tuple[str, ...] = ()) -> list[Report]:
    """The reports of all cases, as in `reports_of`."""
    return list(reports_of(built, options, tags, names))


def reports_of(built: Built, options: Options, tags: tuple[str, ...] = (),
               names: tuple[str, ...] = ()) -> Iterator[Report]:
    """`caten test`: run the cases of every operator's own [test], and one of small sizes where it has none; the report
    of each when it ended.

    `tags`: only cases with one of them; `names`: only these cases, or all of these operators. NothingMatched where
    none is selected."""
    selected(built.ops, tags, names)
    todo: list[Callable[[], Report]] = []
    for op in built.ops:
        cases = selected_cases(op, tags, names)
        if runs_at_default_sizes(op, tags, names):
            todo.append(partial(_at_default_sizes, built, op, options))
        todo += [partial(_run, built, op, c.name, case_values(op, c), options, timed=False, case=c) for c in cases]
    for run in todo:
        yield run()


def _at_default_sizes(built: Built, op: OpProgram, options: Options) -> Report:
    """A spec without cases, at small sizes; failed where there are none that fit it."""
    described = next(m for m in operators(built.manifest) if m["op"] == op.name)
    try:
        values, never = _reaching(op, described, options)
    except CatenError as problem:
        return Report(op.name, "default sizes", {}, "failed", "", note=problem.diagnostics[0].message,
                      diagnostics=tuple([d.at(op.place()) for d in problem.diagnostics]))
    report = _run(built, op, "default sizes", values, options, timed=False)
    return replace(report, unreached=tuple([_place(op, stmt) for stmt in never]))


def _reaching(op: OpProgram, described: Mapping[str, Any],
              options: Options) -> tuple[dict[str, int | float], list[Stmt]]:
    """Small sizes, and scalars, at which every statement that stores something is run, if some are found; and the
    statements that are not."""
    best: tuple[dict[str, int | float], list[Stmt]] | None = None
    for least, shift in product(LEAST, range(SCALARS)):
        values: dict[str, int | float] = dict(small_sizes(described, least))
        drawn = data.arguments(op, values, options.seed + shift)
        if shift:
            values |= {s.name: drawn[s.name].item() for s in op.all(Scalar)}
        steps = work_formulas.at(work_formulas.steps(op), numbers_of(op, drawn) | {n: int(drawn[n]) for n in op.sizes})
        if best is not None and steps > MOST_STEPS:
            break
        never = never_stored(op, data.arguments(op, values, options.seed)) if steps <= MOST_STEPS else []
        if best is None or len(never) < len(best[1]):
            best = values, never
        if not never:
            break
    assert best is not None
    return best


def _place(op: OpProgram, stmt: Stmt) -> str:
    """Where a statement was written, for a person."""
    place = stmt.children[0]
    assert isinstance(place, Aref)
    at = op.place_of(flat(form_of(place)))
    return f"{place.buffer} in line {at.line}" if at is not None else place.buffer


def _run(built: Built, op: OpProgram, name: str, values: Mapping[str, int | float], options: Options, timed: bool,
         case: Case | None = None) -> Report:
    """One run. What is said of it has the place of its case, where it has none of its own."""
    place = op.place_of(case.spot()) if case is not None else None
    try:
        report = _outcome(built, op, name, values, options, timed, case)
    except ToolError:
        raise
    except CatenError as problem:
        raise CatenError(*[d.at(place or op.place()) for d in problem.diagnostics]) from None
    return replace(report, diagnostics=tuple([d.at(place) for d in report.diagnostics]))


def _outcome(built: Built, op: OpProgram, name: str, values: Mapping[str, int | float], options: Options, timed: bool,
             case: Case | None) -> Report:
    given, expected = arrays_of(op, case, {n: int(values[n]) for n in op.sizes})
    want_error = case is not None and case.expect.startswith("{")
    try:
        arguments = data.arguments(op, values, options.seed, given)
    except CatenError as refusal:                         # sizes that no array can have
        if refusal.diagnostics[0].code != "E711":
            raise
        report = Report(op.name, name, dict(values), "failed", "", note=refusal.diagnostics[0].message,
                        diagnostics=refusal.diagnostics)
        outcome = isolate.Outcome("error", diagnostics=refusal.diagnostics)
        return _expected_failure(replace(report, diagnostics=()), outcome,
                                 json.loads(case.expect)["error"]) if want_error and case else report
    shown = {k: v.item() if isinstance(v, np.generic) else v
             for k, v in arguments.items() if not isinstance(v, np.ndarray)}
    report = Report(op.name, name, shown, "ok", "")
    outcome = isolate.run(lambda: _kernel(built, op, arguments, timed), TIMEOUT)
    if want_error:
        return _expected_failure(report, outcome, json.loads(case.expect)["error"] if case else "")
    if outcome.kind is ToolError:                         # such as a tool that runs the product, which is missing
        raise outcome.error()
    if outcome.status != "ok":
        text = outcome.diagnostics[0].message if outcome.diagnostics else outcome.signal
        code = outcome.diagnostics[0].code if outcome.diagnostics else ""
        if code == OUTSIDE:
            return _outside(report, outcome.diagnostics[0])
        failed = outcome.status == "error" and code.startswith("E7")
        status = "crash" if code == "E715" else "failed" if failed else outcome.status
        return replace(report, status=status, note=text, diagnostics=outcome.diagnostics)
    try:
        reference = expected_of(op, arguments, options, expected)
    except CatenError as refusal:
        if refusal.diagnostics[0].code != OUTSIDE:
            raise
        return _outside(report, refusal.diagnostics[0])
    outputs = outputs_compared(op, outcome.arrays, reference)
    status, note, diagnostics = verdict(op, case, outputs)
    sizes = {n: int(arguments[n]) for n in op.sizes}
    return replace(report, status=status, note=note, diagnostics=diagnostics, reference=reference.what, outputs=outputs,
                   seconds=outcome.facts.get("seconds"), bytes=work_formulas.at(work_formulas.bytes_moved(op), sizes),
                   flops=work_formulas.at(work_formulas.flops(op), numbers_of(op, arguments) | sizes))


def _outside(report: Report, found: Diagnostic) -> Report:
    """The report of a run that left an array."""
    found = replace(found, hint="without -fno-bounds-check the call is refused; give sizes or an input that fit")
    return replace(report, status="failed", note=found.message, diagnostics=(found,))


def _expected_failure(report: Report, outcome: isolate.Outcome, wanted: str) -> Report:
    text = outcome.diagnostics[0].message if outcome.diagnostics else ""
    if outcome.status == "error" and wanted.lower() in text.lower():
        return replace(report, status="ok", reference="the failure that the case expects")
    got = {"error": f"failed with '{text}'", "ok": "succeeded"}.get(outcome.status, outcome.status)
    return replace(report, status="wrong", reference="the failure that the case expects",
                   note=f"expected a failure with '{wanted}', the call {got}")


def _kernel(built: Built, op: OpProgram, arguments: Mapping[str, Any],
            timed: bool) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """In the child: call the kernel once for its results, then repeatedly for its time."""
    function = built.runtime.load(built.artifact, built.manifest)
    function = getattr(function, op.name, function)
    run = {k: v.copy(order="K") if isinstance(v, np.ndarray) else v for k, v in arguments.items()}
    call = caller(op, function, run)
    call()
    results = {n: np.array(run[n]) for n in outputs_of(op)}
    facts: dict[str, Any] = {}
    if timed:
        times: list[float] = []
        stop = time.perf_counter() + TIMING
        while len(times) < 3 or (time.perf_counter() < stop and len(times) < 10_000):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        facts["seconds"] = statistics.median(times)
    return facts, results
