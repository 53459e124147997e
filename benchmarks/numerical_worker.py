"""One program with one peer: compiled, checked, measured. `python -m benchmarks.numerical` starts it."""
from __future__ import annotations

import copy
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from caten.benchmarking import timing

from . import sampling
from .numerical_programs import FOLDER, NumericalProgram, programs
from .processes import wrote

TOLERANCE = {np.dtype(np.float32): 1e-3, np.dtype(np.float64): 1e-8}


def main() -> None:
    task, result = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    if task["threads"] == 1 and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    program = next(p for p in programs() if p.name == task["program"])
    try:
        call = prepared(program, task["peer"], task["threads"])
    except Exception as problem:                           # what a compiler of Python says about the text is the row
        said = str(problem).strip().splitlines()
        wrote(result, {"failed": f"{type(problem).__name__}: {said[0] if said else ''}"})
        return
    plan = sampling.plan(task)
    (samples,) = timing.rounds({"it": call}, task["rounds"], plan).values()
    wrote(result, {"seconds": [s.seconds for s in samples]})


def prepared(program: NumericalProgram, peer: str, threads: int = 1) -> Callable[[], Any]:
    """A call that gives the program's results, which are those of NumPy at the small size."""
    small, expected = run_of(program, peer, program.small, threads)(), run_of(program, "numpy", program.small)()
    for got, want in zip(*[x if isinstance(x, tuple) else (x,) for x in (small, expected)], strict=True):
        tolerance = TOLERANCE.get(np.asarray(want).dtype, 0.0)
        if not np.allclose(got, want, rtol=tolerance, atol=tolerance):
            raise ValueError("gives a wrong result")
    return run_of(program, peer, program.large, threads)


def run_of(program: NumericalProgram, peer: str, sizes: Any, threads: int = 1) -> Callable[[], Any]:
    """The call at these sizes, on arrays of its own. NumPy and numba have their threads from the environment."""
    given = program.arguments(sizes)
    work = {n: copy.copy(v) for n, v in given.items()}
    changed = [n for n in program.outputs if n in given]

    def restored() -> None:
        for n in changed:
            np.copyto(work[n], given[n])
    if peer == "caten":
        import caten
        operator = caten.compile(FOLDER / f"{program.name}.toml", config={"OMP": 1} if threads > 1 else None)

        def call() -> Any:
            restored()
            return operator(**work)
        return call
    scalars = {n: v for n, v in sizes.items() if n not in given}
    results = program.results(sizes)
    if peer == "numpy":
        function = program.python()
    else:
        import numba
        function = program.python(numba.njit(fastmath=True, parallel=peer == "numba parallel"))
    arguments = (*work.values(), *results, *scalars.values())

    def python_call() -> Any:
        restored()
        return function(*arguments)
    return python_call


if __name__ == "__main__":
    main()
