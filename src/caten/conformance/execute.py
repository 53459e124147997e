"""Executing cases: kernels are compiled many to a library, and called in a process that may crash or hang alone."""
from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from .. import compiler, loading
from ..errors import CatenError, Diagnostic, ToolError
from ..frontend import operator_library
from ..frontend.op import OpProgram
from ..frontend.spec import read_file
from ..frontend.spec_files import SpecText
from ..frozen import frozen
from ..options import Options
from ..runtime.protocol import Runtime
from ..testing import pipe_messages, runner
from . import guarded_calls, pool
from .cases import Case, Kernel, selects
from .elementwise_verdicts import Elementwise
from .verdicts import BAD, Called, Verdict

BATCH = 40                          # kernels of one library
SILENCE = 400.0                     # seconds after which a process that compiles or judges is given up
# mallopt's M_PERTURB of glibc, and a byte: fresh memory is filled with its complement
PERTURB, UNSET = -6, 0xA5
Progress = Callable[[int, int, str], None]


@frozen
class Plan:
    """How cases are run. `options`: the runtime and its options; `runtime`: the same, found; `seconds`: the time
    limit of one call; `missing`: why nothing can be called here (then everything is compiled as far as that goes)."""

    options: Options
    runtime: Runtime
    workers: int
    seconds: float
    missing: Diagnostic | None = None

    @property
    def unavailable(self) -> str:
        """What is missing, as verdicts say it."""
        return self.missing.message if self.missing else ""


def run(cases: Sequence[Case], plan: Plan, progress: Progress) -> dict[str, Verdict]:
    """A verdict for every case, by its id; what the runtime's file says of known faults and of denormal numbers is
    taken into account."""
    kept = [_as_promised(c, plan.runtime.fast) for c in cases if plan.runtime.denormals or c.name != "denormals"]
    verdicts = _executed(kept, plan, progress)
    lacking = Verdict("UNSUPPORTED", "the runtime's file says that denormal numbers are not kept")
    return {c.id: _expected(c, verdicts[c.id], plan.runtime.skips) if c.id in verdicts else lacking for c in cases}


def _as_promised(case: Case, fast: bool) -> Case:
    """A case judged by what the fast forms of functions promise, where the runtime's options ask for those."""
    return replace(case, judge=replace(case.judge, fast=True)) if fast and isinstance(case.judge, Elementwise) else case


def _expected(case: Case, verdict: Verdict, skips: Mapping[str, str]) -> Verdict:
    """The verdict on a case that the runtime's file lists as a known fault, if it does: XFAIL, or XPASS where there
    is none."""
    reason = next((reason for pattern, reason in skips.items() if selects(pattern, case)), None)
    if reason is None or verdict.status in ("NOT-RUN", "UNSUPPORTED"):
        return verdict
    if verdict.status in BAD:
        return Verdict("XFAIL", f"{reason} ({verdict.status})")
    return Verdict("XPASS", f"listed under skips, and right: {reason}")


def _executed(cases: Sequence[Case], plan: Plan, progress: Progress) -> dict[str, Verdict]:
    verdicts: dict[str, Verdict] = {}
    todo = _jobs(cases)
    while todo:
        again: list[list[Case]] = []
        left = [{c.id: c for c in job} for job in todo]
        for number, heard in pool.run_all([partial(_job, job, plan) for job in todo], plan.workers, SILENCE):
            if isinstance(heard, dict):
                verdicts[heard["id"]] = Verdict(heard["status"], heard["note"], heard["ulp"])
                left[number].pop(heard["id"])
                progress(len(verdicts), len(cases), heard["id"])
            elif isinstance(heard, pool.Lost) and left[number]:
                alone = _by_kernel(list(left[number].values()))
                if len(alone) > 1:
                    again += alone
                else:
                    lost = Verdict("TIMEOUT" if heard.late else "CRASH", f"while it was compiled: {heard.why}")
                    verdicts |= dict.fromkeys(left[number], lost)
        todo = again
    return verdicts


def _jobs(cases: Sequence[Case]) -> list[list[Case]]:
    """Cases that share a library: of kernels with the same options, or of one sample."""
    groups: dict[Any, list[Case]] = {}
    for case in cases:
        key = (case.kernel.config, case.kernel.strided) if case.kernel is not None else case.sample
        groups.setdefault(key, []).append(case)
    found = []
    for group in groups.values():
        kernels = iter(_by_kernel(group)) if group[0].kernel is not None else iter([group])
        while batch := list(islice(kernels, BATCH)):
            found.append([c for of_kernel in batch for c in of_kernel])
    return found


def _by_kernel(cases: Sequence[Case]) -> list[list[Case]]:
    found: dict[Any, list[Case]] = {}
    for case in cases:
        found.setdefault(case.kernel.name if case.kernel else case.id, []).append(case)
    return list(found.values())


class Varies(Exception):
    """A runtime that renders the same programs as another text each time."""


# -- in a process of its own ------------------------------------------------------------------------------------------

def _job(cases: Sequence[Case], plan: Plan) -> Iterator[pool.Message]:
    first = cases[0]
    of = _of_kernels if first.kernel is not None else _of_sample if first.sample is not None else _of_options
    for case_id, verdict in of(cases, plan):
        ulp = None if verdict.ulp is None else round(verdict.ulp, 3)             # as the record on file has it
        yield {"id": case_id, "status": verdict.status, "note": verdict.note, "ulp": ulp}, {}


def _of_kernels(cases: Sequence[Case], plan: Plan) -> Iterator[tuple[str, Verdict]]:
    by_kernel = {c.kernel: [d for d in cases if d.kernel == c.kernel] for c in cases if c.kernel is not None}
    declared = [k for k in by_kernel if k.types <= plan.runtime.types.keys()]
    for kernel in by_kernel:
        if kernel not in declared:
            found = refused(kernel, plan)
            for case in by_kernel[kernel]:
                yield case.id, Verdict("PASS") if case.kind == "rejection" and found.status == "UNSUPPORTED" else found
    for kernels, built in _built(declared, plan):
        if isinstance(built, Exception):
            yield from _each(by_kernel[kernels[0]], undeclared(kernels[0], built, plan))
        elif plan.unavailable:
            for kernel in kernels:
                yield from _each(by_kernel[kernel], Verdict("NOT-RUN", plan.unavailable))
        else:
            yield from _called(built, [c for k in kernels for c in by_kernel[k]], plan)


def _each(cases: Sequence[Case], verdict: Verdict) -> Iterator[tuple[str, Verdict]]:
    for case in cases:
        yield case.id, verdict


def options_of(kernel: Kernel, plan: Plan) -> Options:
    """The options to compile a kernel with: the user's, and those that it needs and the runtime has."""
    asked = {k.upper() for k, _ in plan.options.config}
    own = [(k, v) for k, v in kernel.config if k in plan.runtime.config and k not in asked]
    return replace(plan.options, config=(*plan.options.config, *own), strided=kernel.strided)


def refused(kernel: Kernel, plan: Plan) -> Verdict:
    """The verdict on a kernel with a type that the runtime's table lacks: it must be refused, with an error that
    names the type."""
    lacking = sorted(kernel.types - plan.runtime.types.keys())
    try:
        compiler.build([kernel.source], options_of(kernel, plan))
    except CatenError as problem:
        first = problem.diagnostics[0]
        if any(t in first.message for t in lacking):
            return Verdict("UNSUPPORTED", f"{', '.join(lacking)}: {first.code}")
        return Verdict("FAIL",
                       f"{', '.join(lacking)} is not in the runtime's table of types; it was refused with "
                       f"{first.code}: {first.message}")
    except Exception as problem:            # a runtime's own Python may fail in any way
        return Verdict("FAIL",
                       f"{', '.join(lacking)} is not in the runtime's table of types; refused with "
                       f"{type(problem).__name__}: {problem}")
    return Verdict("FAIL", f"{', '.join(lacking)} is not in the runtime's table of types, and was compiled")


def undeclared(kernel: Kernel, problem: Exception, plan: Plan) -> Verdict:
    """The verdict on a kernel that the runtime's tables allow and that was not compiled."""
    if isinstance(problem, Varies):
        return Verdict("FAIL", str(problem))
    if not isinstance(problem, CatenError):
        return Verdict("UNDECLARED", brief(f"{type(problem).__name__}: {problem}"))
    first = problem.diagnostics[0]
    if first.code == "E610":
        return Verdict("NOT-RUN", first.message)
    lacking = [fn for fn in kernel.operators if fn not in plan.runtime.ops]
    return Verdict("UNSUPPORTED" if first.code == "E616" and lacking else "UNDECLARED", told(first))


def told(problem: Diagnostic) -> str:
    """Why something was not compiled: of what a compiler said the first error, and where its input is kept and the
    command."""
    first, *rest = problem.message.split("\n")
    fault = next((line for line in rest if "error:" in line), None)
    if fault is None:
        return "; ".join([brief(f"{problem.code}: {problem.message}"), *[text for text, _ in problem.notes]])
    return "; ".join([f"{problem.code}: {first.rstrip(':')}", fault.strip()[:300],
                      *[text for text, _ in problem.notes]])


def brief(text: str) -> str:
    """The first lines of a message, which may be all that a compiler says."""
    lines = text.split("\n")
    return " ".join([line.strip()[:200] for line in lines[:2]]) + (" …" if len(lines) > 2 else "")


def _built(kernels: Sequence[Kernel], plan: Plan) -> Iterator[tuple[Sequence[Kernel], compiler.Built | Exception]]:
    """Libraries of as many kernels as can be compiled together, and by themselves those that cannot be compiled,
    with why."""
    if not kernels:
        return
    try:
        options = options_of(kernels[0], plan)
        compilation = compiler.Compilation(loading.loaded([k.source for k in kernels], options), options)
        rendered = compilation.rendered
        if rendered.runtime.render(*rendered.programs) != rendered.source:
            raise Varies("render gives another text each time, for the same programs and options")
        try:
            yield kernels, compilation.artifact()
        except ToolError as problem:
            if not (plan.unavailable and problem.diagnostics[0].code == "E610"):
                raise
            for kernel in kernels:
                yield [kernel], problem
    except Exception as problem:            # a runtime's own Python may fail in any way
        if len(kernels) == 1:
            yield kernels, problem
            return
        half = len(kernels) // 2
        yield from _built(kernels[:half], plan)
        yield from _built(kernels[half:], plan)


def _called(built: compiler.Built, cases: Sequence[Case], plan: Plan) -> Iterator[tuple[str, Verdict]]:
    """Every case called in a child; where that dies or hangs, the next ones in another."""
    ops = {op.name: op for c in cases if c.kernel for op in plain_ops(c.kernel)}
    waiting = [(c, ops[c.kernel.name], arguments_of(c, ops[c.kernel.name], plan.options.seed)) for c in cases
               if c.kernel]
    while waiting:
        child = pool.Child(partial(_calls, built, list(waiting)))
        try:
            while waiting:
                case, op, arguments = waiting[0]
                facts, arrays = child.receive(plan.seconds)
                if "unloaded" in facts:
                    child.kill()
                    yield from _not_loaded(facts, [c for c, _, _ in waiting], plan)
                    return
                waiting.pop(0)
                if "memory" in facts:
                    yield case.id, Verdict("NOT-RUN", f"there is no memory for it: {facts['memory']}")
                    continue
                yield case.id, _judged(case, op, arguments, Called(arrays, facts["error"], tuple(facts["wrong"])))
            child.kill()
        except pool.Died as why:
            yield waiting.pop(0)[0].id, Verdict("CRASH", str(why))
        except pipe_messages.Late:
            yield waiting.pop(0)[0].id, Verdict("TIMEOUT", f"no result after {plan.seconds:g} s")


def _not_loaded(facts: Mapping[str, Any], cases: Sequence[Case], plan: Plan) -> Iterator[tuple[str, Verdict]]:
    """The verdicts where a library cannot be loaded: each kernel alone, to find the one that is at fault."""
    alone = _by_kernel(cases)
    if facts["unloaded"] == "E610":
        yield from _each(cases, Verdict("NOT-RUN", facts["why"]))
    elif len(alone) == 1:
        yield from _each(cases, Verdict("UNDECLARED", f"compiled, and cannot be loaded: {facts['why']}"))
    else:
        for of_kernel in alone:
            yield from _of_kernels(of_kernel, plan)


def _judged(case: Case, op: OpProgram, arguments: Mapping[str, Any], called: Called) -> Verdict:
    try:
        return case.judge(op, arguments, called)
    except Exception as problem:            # a fault of the reference: a verdict, so that the other cases go on
        return Verdict("FAIL", f"the suite cannot say what is right: {type(problem).__name__}: {problem}")


def plain_ops(kernel: Kernel) -> list[OpProgram]:
    """The operators of a kernel as they are written."""
    return [p for p in loading.load_programs(kernel.source, Options()) if isinstance(p, OpProgram)]


def arguments_of(case: Case, op: OpProgram, seed: int) -> Mapping[str, Any]:
    """The arguments of a case: from the seed and its name, so that they are the same whatever else is run."""
    rng = np.random.Generator(np.random.PCG64([seed, zlib.crc32(case.id.encode())]))
    return guarded_calls.arguments_of(op, case.given(rng), rng)


def _calls(built: compiler.Built, waiting: Sequence[tuple[Case, OpProgram,
                                                          Mapping[str, Any]]]) -> Iterator[pool.Message]:
    """In the child of a child: load the library, and call. Memory that nobody has written holds no zeros, so that it
    shows where it is read."""
    with contextlib.suppress(OSError, AttributeError):                 # another C library
        ctypes.CDLL(None).mallopt(PERTURB, UNSET)
    own = os.getpid()
    try:
        loaded = built.runtime.load(built.artifact, built.manifest)
    except CatenError as problem:
        yield {"unloaded": problem.diagnostics[0].code, "why": problem.diagnostics[0].message}, {}
        return
    except Exception as problem:            # a runtime's own Python may fail in any way
        yield {"unloaded": "", "why": f"{type(problem).__name__}: {problem}"}, {}
        return
    for case, op, arguments in waiting:
        message = guarded_calls.call(built, loaded, op, case, arguments)
        # the kernel made a copy of this process, which must not go on as it
        if os.getpid() != own:
            os.kill(own, signal.SIGABRT)
            os._exit(1)
        yield message


def _of_options(cases: Sequence[Case], plan: Plan) -> Iterator[tuple[str, Verdict]]:
    """Options that the runtime must refuse, by an error that names the key."""
    for case in cases:
        assert case.refused is not None
        key, value = case.refused
        try:
            plan.runtime.configure((case.refused,))
            yield case.id, Verdict("FAIL", f"--config {key}={value} was accepted")
        except CatenError as problem:
            named = any(key in d.message for d in problem.diagnostics)
            yield case.id, Verdict("PASS") if named else Verdict("FAIL",
                                                                 f"the refusal does not name {key}: "
                                                                 f"{problem.diagnostics[0].message}")
        except Exception as problem:            # a runtime's own Python may fail in any way
            yield case.id, Verdict("FAIL",
                                   brief(f"--config {key}={value} was refused with {type(problem).__name__}: "
                                         f"{problem}"))


# Status of a test report -> verdict
_REPORTED = {"ok": "PASS", "wrong": "FAIL", "vacuous": "VACUOUS", "failed": "FAIL", "error": "FAIL", "crash": "CRASH",
             "timeout": "TIMEOUT"}


def _specs_of(cases: Sequence[Case], path: Path) -> list[SpecText]:
    """The specs of the operators of these cases: of the library, only theirs; else the whole file."""
    if cases[0].kind != "library":
        return [read_file(str(path))]
    return [operator_library.spec_of(name)
            for name in dict.fromkeys([operator_library.generic_name(case.row) for case in cases])]


def _of_sample(cases: Sequence[Case], plan: Plan) -> Iterator[tuple[str, Verdict]]:
    """The tests that a spec carries."""
    path = cases[0].sample
    assert path is not None
    try:
        built = compiler.build(_specs_of(cases, path), replace(plan.options, case_instances=True))
        lacking = ""
    except CatenError as problem:
        first = problem.diagnostics[0]
        lacking = told(first)
        if first.code == "E610":
            yield from _each(cases, Verdict("NOT-RUN", first.message))
        else:
            yield from _each(cases, Verdict("UNSUPPORTED" if first.code in ("E611", "E616") else "UNDECLARED", lacking))
        return
    except Exception as problem:                # as above
        yield from _each(cases, Verdict("UNDECLARED", brief(f"{type(problem).__name__}: {problem}")))
        return
    if plan.unavailable:
        yield from _each(cases, Verdict("NOT-RUN", plan.unavailable))
        return
    try:
        reports = {(r.op, r.case): r for r in runner.run_cases(built, plan.options)}
    except Exception as problem:                # as above
        yield from _each(cases, Verdict("FAIL", brief(f"{type(problem).__name__}: {problem}")))
        return
    for case in cases:
        report = reports[case.row, case.name]
        note = report.note or "; ".join([o.detail for o in report.outputs if not o.passed])
        yield case.id, Verdict(_REPORTED[report.status], note if report.status != "ok" else "")
