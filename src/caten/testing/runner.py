"""Run one compiled operator on drawn data, compare it with its reference, time it, and say what came out."""
from __future__ import annotations

import json
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..build import Built, build_programs
from ..core.formula import evaluate
from ..core.program import Buffer, Case, Outputs, Program, Reference, Scalar, Source
from ..errors import CatenError, Diagnostic, NothingMatched, Place, UsageError, did_you_mean, error
from ..frontend.lambdas import reference_program
from ..frontend.op import OpProgram
from ..loop import bounds, comparison, interpret, oracle
from ..loop.statements import LoopProgram
from ..options import Options
from ..runtime import work
from . import data, isolate
from .pure import Lambda
from .settings import match_settings, read_setting

INTERPRETED_STEPS = 1_000_000          # above this many operations a reference runs as unscheduled C in float64
TEST_TIMEOUT = 120.0                   # seconds for one run of a kernel or a reference
TEST_CPU = 120
TEST_MEMORY = 8 << 30                  # bytes that a reference may use
TIMING = 0.3                           # seconds spent on repeated calls


@dataclass(frozen=True)
class OutputReport:
    """One output: the greatest error as a fraction of what rounding allows, and where; how many elements sat on an edge."""

    name: str
    passed: bool
    ratio: float
    worst: tuple[int, ...]
    loose: int
    detail: str


@dataclass(frozen=True)
class Report:
    """The outcome of one test run. `status`: ok, wrong, failed (a check of the kernel), crash, timeout, error."""

    op: str
    case: str
    arguments: dict[str, Any]
    status: str
    reference: str
    outputs: tuple[OutputReport, ...] = ()
    seconds: float | None = None
    flops: int = 0
    bytes: int = 0
    note: str = ""
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def passed(self) -> bool:
        return self.status == "ok"

    def lines(self) -> list[str]:
        """The report for a person."""
        what = f"{self.op}{f' [{self.case}]' if self.case else ''}({', '.join(f'{k}={_short(v)}' for k, v in self.arguments.items())})"
        if self.status in ("ok", "wrong"):
            worst = max((o.ratio for o in self.outputs), default=0.0)
            lines = [f"{what}: {'ok' if self.passed else 'WRONG'}, greatest error {worst:.2g} of its bound, against {self.reference}"]
            lines += [f"  {o.name}: {o.detail}" for o in self.outputs if not o.passed or o.loose]
        else:
            lines = [f"{what}: {self.status.upper()}{f': {self.note}' if self.note else ''}"]
        if self.seconds is not None:
            rates = [f"{self.flops / self.seconds / 1e9:.1f} GFLOP/s"] if self.flops else []
            rates.append(f"{self.bytes / self.seconds / 1e9:.1f} GB/s")
            lines.append(f"  time {_time(self.seconds)}, {', '.join(rates)}")
        return lines

    def as_json(self) -> dict[str, Any]:
        """The report for a program."""
        return {"op": self.op, "case": self.case, "arguments": {k: float(v) if isinstance(v, float) else int(v) for k, v in self.arguments.items()},
                "status": self.status, "reference": self.reference, "seconds": self.seconds, "flops": self.flops, "bytes": self.bytes,
                "outputs": [{"name": o.name, "passed": o.passed, "ratio": o.ratio, "worst": list(o.worst), "loose": o.loose} for o in self.outputs],
                "note": self.note}


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _time(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e3)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def run_at(built: Built, values: Mapping[str, int | float], options: Options, only: str | None = None) -> list[Report]:
    """`--test "M=3, a=2.5"`: every operator of a library on data drawn from the seed, timed. `values`: every size, and some scalars."""
    return [_run(built, op, program, "", values, options, timed=True) for op, program in zip(built.ops, built.programs, strict=True)
            if only is None or op.name == only]


def run_cases(built: Built, options: Options, tags: tuple[str, ...] = (), names: tuple[str, ...] = ()) -> list[Report]:
    """`caten test`: the cases of every operator's own [test]; one of small sizes where it has none."""
    reports = []
    known = [c.name for op in built.ops for c in op.all(Case)]
    for name in names:
        if name not in known and name not in [op.name for op in built.ops]:
            raise NothingMatched(Diagnostic("E835", f"no composite or test case is called '{name}'", hint=did_you_mean(name, known)))
    for op, program in zip(built.ops, built.programs, strict=True):
        cases = [c for c in op.all(Case) if (not tags or set(tags) & set(c.tags)) and (not names or c.name in names or op.name in names)]
        if not op.all(Case) and not tags:
            small = {n: 3 + 2 * i for i, n in enumerate(op.sizes)}
            reports.append(_run(built, op, program, "default sizes", small, options, timed=False))
        for case in cases:
            reports.append(_run(built, op, program, case.name, case_values(op, case), options, timed=False, case=case))
    if not reports:
        raise NothingMatched(Diagnostic("E835", "no test case matched", hint=f"the cases are {', '.join(known) or 'none'}"))
    return reports


def case_values(op: OpProgram, case: Case) -> dict[str, int | float]:
    """The sizes and scalars of a test case. CatenError where they do not fit the operator: it is the spec that is wrong."""
    where = f"the test case '{case.name}' of {op.name}"
    try:
        return match_settings([read_setting(f"{s.name}={s.value}", where) for s in case.sizes], [op], where)
    except UsageError as problem:
        raise CatenError(*problem.diagnostics) from None


def _run(built: Built, op: OpProgram, program: LoopProgram, name: str, values: Mapping[str, int | float], options: Options, timed: bool,
         case: Case | None = None) -> Report:
    given, expected = _files(op, case)
    arguments = data.arguments(op, values, options.seed, given)
    shown = {k: v.item() if isinstance(v, np.generic) else v for k, v in arguments.items() if not isinstance(v, np.ndarray)}
    report = Report(op.name, name, shown, "ok", "")
    want_error = case is not None and case.expect.startswith("{")
    outcome = isolate.run(lambda: _kernel(built, op, arguments, timed), options_timeout(options), cpu=None)
    if want_error:
        return _expected_failure(report, outcome, json.loads(case.expect)["error"] if case else "")
    if outcome.status != "ok":
        text = outcome.diagnostics[0].message if outcome.diagnostics else outcome.signal
        failed = outcome.status == "error" and outcome.diagnostics[0].code.startswith("E7")
        return replace(report, status="failed" if failed else outcome.status, note=text, diagnostics=outcome.diagnostics)
    reference = _reference(op, arguments, options, expected)
    outputs = tuple(_compare(op, n, outcome.arrays[n], reference) for n in _outputs(op))
    passed = all(o.passed for o in outputs)
    sizes = {n: int(arguments[n]) for n in op.sizes}
    return replace(report, status="ok" if passed else "wrong", reference=reference.what, outputs=outputs, seconds=outcome.facts.get("seconds"),
                   flops=int(evaluate(work.flops(op), _numbers(op, arguments) | sizes)), bytes=int(evaluate(work.bytes_moved(op), sizes)))


def _numbers(op: Program, arguments: Mapping[str, Any]) -> dict[str, int]:
    return {s.name: int(arguments[s.name]) for s in op.all(Scalar) if not isinstance(arguments[s.name], np.floating)}


def options_timeout(options: Options) -> float:
    """Seconds for one kernel."""
    return TEST_TIMEOUT


def _outputs(op: OpProgram) -> tuple[str, ...]:
    fact = op.first(Outputs)
    return fact.names if fact else tuple(b.name for b in op.buffers.values() if b.access != "in")


def _files(op: OpProgram, case: Case | None) -> tuple[dict[str, np.ndarray] | None, dict[str, np.ndarray] | None]:
    """The arrays that a case brings along: its input, and what it expects."""
    if case is None:
        return None, None
    source = op.first(Source)
    folder = Path(source.file).parent if source else Path()

    def arrays(text: str) -> dict[str, np.ndarray] | None:
        if text in ("random", "reference", "") or text.startswith('{"error"'):
            return None
        if text.startswith("{"):
            return {k: np.asarray(v) for k, v in json.loads(text).items()}
        try:
            with np.load(folder / text, allow_pickle=False) as archive:
                return {k: archive[k] for k in archive.files}
        except (OSError, ValueError) as problem:
            raise error("E836", f"cannot read the arrays of case '{case.name}' from {text}: {problem}") from None
    return arrays(case.input), arrays(case.expect)


def _expected_failure(report: Report, outcome: isolate.Outcome, wanted: str) -> Report:
    text = outcome.diagnostics[0].message if outcome.diagnostics else ""
    if outcome.status == "error" and wanted.lower() in text.lower():
        return replace(report, status="ok", reference="the failure that the case expects")
    got = f"failed with '{text}'" if outcome.status == "error" else "succeeded" if outcome.status == "ok" else outcome.status
    return replace(report, status="wrong", reference="the failure that the case expects", note=got,
                   outputs=(OutputReport("-", False, float("inf"), (), 0, f"expected a failure with '{wanted}', the call {got}"),))


def _kernel(built: Built, op: OpProgram, arguments: Mapping[str, Any], timed: bool) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """In the child: call the kernel once for its results, then repeatedly for its time."""
    function = built.runtime.load(built.artifact, built.manifest)
    function = getattr(function, op.name, function)
    run = {k: v.copy(order="K") if isinstance(v, np.ndarray) else v for k, v in arguments.items()}
    call = _caller(op, function, run)
    call()
    results = {n: np.array(run[n]) for n in _outputs(op)}
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


def _caller(op: OpProgram, function: Any, run: Mapping[str, Any]) -> Any:
    """A call without arguments on fixed arrays."""
    pure = [b.name for b in op.buffers.values() if b.access == "out"]
    leading = [run[p.name] for p in op.params if isinstance(p, (Scalar, Buffer)) and p.name not in pure]
    keywords = {n: run[n] for n in getattr(function, "keywords", op.sizes)}
    if pure:
        keywords["out"] = run[pure[0]] if len(pure) == 1 else tuple(run[n] for n in pure)
    return function.bind(*leading, **keywords)


@dataclass(frozen=True)
class _Expected:
    """What each output should be, the rounding bound of each element, and which elements sit on an edge."""

    what: str
    values: Mapping[str, np.ndarray]
    bounds: Mapping[str, np.ndarray]
    loose: Mapping[str, np.ndarray]


def _reference(op: OpProgram, arguments: Mapping[str, Any], options: Options, expected: Mapping[str, np.ndarray] | None) -> _Expected:
    """The oracle's values and bounds; the values of the spec's own reference where it has one."""
    exact = _oracle(op, arguments, options)
    if expected is not None:
        return replace(exact, what="the case's arrays", values=_checked(op, expected, arguments))
    reference = op.first(Reference)
    if reference is None:
        return replace(exact, what="the spec at -O0 in float64 (it has no [test])")
    source = op.first(Source)
    if reference.lang == "lisp":
        own = _oracle(reference_program(op), arguments, options)
        return replace(exact, what="the spec's [test]", values=own.values)
    place = Place(source.file if source else "<spec>", reference.line, reference.column)
    function = Lambda(reference.code, place)
    _check_parameters(function, op, place)
    outcome = isolate.run(lambda: _python(function, op, arguments), TEST_TIMEOUT, memory=TEST_MEMORY, cpu=TEST_CPU, no_files=True)
    if outcome.status == "error":
        raise CatenError(*outcome.diagnostics)
    if outcome.status != "ok":
        raise error("E806", f"the test code of {op.name} ended with {outcome.status} {outcome.signal}".rstrip(), place,
                    hint=f"it may use {TEST_CPU} s and {TEST_MEMORY >> 30} GiB")
    return replace(exact, what="the spec's [test]", values=_checked(op, outcome.arrays, arguments))


def _check_parameters(function: Lambda, op: OpProgram, place: Place) -> None:
    known = [*[p.name for p in op.params if hasattr(p, "declares")]]  # type: ignore[attr-defined]
    unknown = [n for n in function.parameters if n not in known]
    if unknown:
        own = ", ".join(function.parameters) or "none"
        raise error("E807", f"the test lambda of {op.name} asks for {', '.join(unknown)}", place,
                    notes=((f"the lambda's parameters are {own}", None), (f"the operator has {', '.join(known)}", None)),
                    hint=did_you_mean(unknown[0], known) or "name tensors, scalars and sizes as the signature spells them")


def _python(function: Lambda, op: OpProgram, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """In the child: the lambda on float64 copies."""
    wide: dict[str, Any] = {}
    for n in function.parameters:
        value = arguments[n]
        if isinstance(value, np.ndarray):
            kind = value.dtype.kind
            wide[n] = value.astype(np.float64) if kind == "f" else value.astype(np.complex128) if kind == "c" else value.copy()
        else:
            wide[n] = value.item() if isinstance(value, np.generic) else value
    result = function(**wide)
    names = _outputs(op)
    if result is None:
        return {}, {n: np.asarray(wide.get(n, arguments[n])) for n in names}
    results = result if isinstance(result, (tuple, list)) and len(names) > 1 else (result,)
    if len(results) != len(names):
        raise function.error("E808", f"the test code gives {len(results)} values, {op.name} has {len(names)} outputs: {', '.join(names)}")
    return {}, {n: np.asarray(r) for n, r in zip(names, results, strict=True)}


def _checked(op: OpProgram, arrays: Mapping[str, np.ndarray], arguments: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The arrays of a reference, of the outputs' shapes."""
    result = {}
    for n in _outputs(op):
        if n not in arrays:
            raise error("E808", f"the expected arrays of {op.name} lack '{n}'")
        if arrays[n].shape != arguments[n].shape:
            raise error("E808", f"the reference's {n} has shape {arrays[n].shape}, the kernel's {arguments[n].shape}",
                        hint="the test code and the signature disagree")
        result[n] = arrays[n]
    return result


def _oracle(op: OpProgram, arguments: Mapping[str, Any], options: Options) -> _Expected:
    """Values in float64 with their rounding bounds, from the nest as written: interpreted, or as C where that would take long."""
    program = oracle.bounded(bounds.add_checks(op))
    run = comparison.widened(op, arguments)
    sizes = _numbers(op, arguments) | {n: int(arguments[n]) for n in op.sizes}
    if int(evaluate(work.flops(op), sizes)) + int(evaluate(work.bytes_moved(op), sizes)) // 4 <= INTERPRETED_STEPS:
        outcome = isolate.run(lambda: ({"code": interpret.run(program, run)}, _results(program, run)), TEST_TIMEOUT)
    else:
        built = build_programs((op,), (program,), replace(options, runtime="clang", config=(), opt=0, binds=(), strided=()))
        function = built.runtime.load(built.artifact, built.manifest)
        call = _caller(program, getattr(function, program.name, function), run)  # type: ignore[arg-type]   # both levels have parameters
        outcome = isolate.run(lambda: (call(), ({"code": 0}, _results(program, run)))[1], TEST_TIMEOUT)
    if outcome.status == "error":
        raise CatenError(*outcome.diagnostics)
    if outcome.status != "ok" or outcome.facts["code"]:
        raise error("E809", f"the reference of {op.name} ended with {outcome.status} {outcome.signal or outcome.facts.get('code', '')}")
    names = _outputs(op)
    bounds_of = {n: outcome.arrays.get(f"{n}__bound", np.zeros(())) for n in names}
    loose = {n: outcome.arrays.get(f"{n}__loose", np.zeros((), np.uint8)) for n in names}
    return _Expected("the spec at -O0 in float64", {n: outcome.arrays[n] for n in names}, bounds_of, loose)


def _results(program: LoopProgram, run: Mapping[str, Any]) -> dict[str, np.ndarray]:
    return {b.name: np.array(run[b.name]) for b in program.buffers.values() if b.access != "in"}


def _compare(op: OpProgram, name: str, got: np.ndarray, expected: _Expected) -> OutputReport:
    c = comparison.check(got, expected.values[name], expected.bounds[name], expected.loose[name], op.buffers[name].type)
    worst = c.worst or ()
    detail = f"at {list(worst)}: {got[worst]!r}, the reference says {expected.values[name][worst]!r}" if not c.passed and got.size else ""
    edge = f"{c.loose} elements lie on an edge, where either side passes" if c.loose else ""
    return OutputReport(name, c.passed, c.ratio, worst, c.loose, "; ".join(p for p in (detail, edge) if p))


