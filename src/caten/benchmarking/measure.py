"""Time an operator that several runtimes compiled: the same arguments, one child process, interleaved rounds."""
from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import cores
from ..compiler import Built
from ..core.size_formula import evaluate
from ..errors import error
from ..frontend.op import OpProgram
from ..options import Options
from ..runtime import work_formulas
from ..testing import data, isolate
from ..testing.reference import caller, numbers_of
from . import statistics, timing
from .results import BenchRow

TIMEOUT = 600.0                        # seconds for one operator at one size


def threads(options: Options) -> int:
    """The number of threads of a kernel: with OMP=1 the default of OpenMP, otherwise 1."""
    if {k.upper(): v.strip().lower() for k, v in options.config}.get("OMP", "0") in ("0", "false", "off", "no"):
        return 1
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    return int(wanted) if wanted.isdecimal() and int(wanted) else cores.available()


def measured(name: str, builts: Mapping[str, Built], values: Mapping[str, int | float], options: Options, rounds: int,
             plan: timing.Plan) -> list[BenchRow]:
    """One row per runtime. CatenError E840 if a kernel crashes or exceeds the time limit, E7xx if it refuses its
    arguments."""
    op = next(o for built in builts.values() for o in built.ops if o.name == name)
    arguments = data.arguments(op, values, options.seed)
    outcome = isolate.run(lambda: (_sampled(op, builts, arguments, rounds, plan, threads(options)), {}), TIMEOUT)
    if outcome.status == "error":
        raise outcome.error()
    if outcome.status != "ok":
        raise error("E840", f"{name}: the measurement ended with {outcome.status} {outcome.signal}".rstrip(),
                    hint=f"caten test checks the kernel; one operator may take {TIMEOUT:.0f} s at one size")
    sizes = {n: int(arguments[n]) for n in op.sizes}
    flops = work_formulas.at(work_formulas.flops(op), numbers_of(op, arguments) | sizes)
    moved = int(evaluate(work_formulas.bytes_moved(op), sizes))
    return [_row(name, runtime, built, values, outcome.facts[runtime], flops, moved)
            for runtime, built in builts.items()]


def _sampled(op: OpProgram, builts: Mapping[str, Built], arguments: Mapping[str, Any], rounds: int, plan: timing.Plan,
             count: int) -> dict[str, Any]:
    """Run in the child: the samples of each runtime as [seconds, is it clean?]. One thread is pinned to one CPU."""
    if count == 1 and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    calls = {}
    for name, built in builts.items():
        function = built.runtime.load(built.artifact, built.manifest)
        own = {k: v.copy(order="K") if isinstance(v, np.ndarray) else v for k, v in arguments.items()}
        calls[name] = caller(op, getattr(function, op.name, function), own)
    return {name: [[s.seconds, s.clean] for s in taken] for name, taken in timing.rounds(calls, rounds, plan).items()}


def _row(name: str, runtime: str, built: Built, values: Mapping[str, int | float], taken: list[Any], flops: int,
         moved: int) -> BenchRow:
    samples = [timing.Sample(seconds, 0.0 if clean else float("inf")) for seconds, clean in taken]
    used = timing.accepted(samples)
    return BenchRow(name, runtime, dict(values), statistics.median(used), flops, moved, tuple(used),
               len([s for s in samples if s.clean]), len(samples),
               f"{os.path.basename(built.record.compiler)} {built.record.version}".strip(), built.record.flags)
