"""One workload of the comparison of levels: tuned, compiled at every level, checked, measured. `python -m
benchmarks.levels` starts it."""
from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import caten
from caten.benchmarking import timing

from . import sampling
from .levels import LEVELS, gain
from .peers import Call
from .problems import Problem
from .processes import wrote
from .workloads import WORKLOADS, Workload

HEAVY = 4e9                    # operations: -O0 and -O1 take minutes for so many, and are left out
LONG = 1.0                     # seconds: a call that takes longer is made once
# the width of the interval of -O3 by -O2 for which there are more rounds, up to so many times as many:
NARROW = 0.04
TIMES = 5
ONE_BY_ONE = 50                # times the error that a workload allows: sums that are added up in the order of the text


def main() -> None:
    task, result = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    workload = next(w for w in WORKLOADS if w.name == task["workload"])
    problem = workload.make()
    row: dict[str, Any] = {"levels": {}}
    with tempfile.TemporaryDirectory() as cache:
        os.environ["CATEN_CACHE_DIR"] = cache
        row |= _tuned(workload, problem, task["budget"])
        wrote(result, row)
        calls: dict[str, Call] = {}
        for level in LEVELS[2 * (problem.flops > HEAVY):4 if row["tuned"] else 3]:
            row["levels"][level] = _prepared(level, workload, problem, calls, timing.Plan(cpu_time=task["cpu_time"]))
            wrote(result, row)
        plan = sampling.plan(task)
        taken: dict[str, list[timing.Sample]] = {level: [] for level in calls}
        for _ in range(TIMES):
            for level, samples in timing.rounds(calls, task["rounds"], plan).items():
                taken[level] += samples
                row["levels"][level]["seconds"] = (
                    timing.accepted(taken[level]) if level in LEVELS[:2] else [s.seconds for s in taken[level]])
            calls = {level: call for level, call in calls.items() if level in LEVELS[2:]}
            known = gain(row)
            if known is None or known.high - known.low <= NARROW:
                break
    wrote(result, row)


def _tuned(workload: Workload, problem: Problem, budget: float) -> dict[str, Any]:
    """What `caten tune` found, in words; nothing where nothing was faster; and why it failed."""
    sizes = ",".join([f"{name}={value}" for name, value in problem.sizes.items()])
    done = subprocess.run([sys.executable, "-m", "caten", "tune", str(workload.spec), "--sizes", sizes, "--budget",
                           str(budget), "--json", "-"],
                          capture_output=True, text=True)
    if done.returncode:
        return {"tuned": "", "failed": f"caten tune: {(done.stderr.splitlines() or [str(done.returncode)])[-1]}"}
    (outcome,) = json.loads(done.stdout)
    choices = outcome["record"]["choices"] if outcome["record"] else {}
    return {"tuned": ", ".join([f"{hole} = {value}" for hole, value in choices.items()]),
            "schedules": outcome["measured"]}


def _prepared(level: str, workload: Workload, problem: Problem, calls: dict[str, Call],
              plan: timing.Plan) -> dict[str, Any]:
    """The call of a level goes to `calls`, if its result is right; one that takes long is measured here."""
    try:
        call: Call = caten.compile(workload.spec, opt=int(level)).bind(*problem.arguments, **problem.keywords)
    except caten.CatenError as refused:
        return {"failed": refused.diagnostics[0].message}
    problem.output[...] = 0                        # to which a product is added
    start = plan.clock()
    call()
    spent = plan.clock() - start
    if not problem.error(problem.output) <= problem.tolerance * (ONE_BY_ONE if level < "2" else 1):
        return {"failed": "gives a wrong result"}
    if spent > LONG:
        return {"seconds": [spent]}
    calls[level] = call
    return {}


if __name__ == "__main__":
    main()
