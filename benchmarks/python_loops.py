"""Kernels in plain Python loops beside Numba: `python -m benchmarks.python_loops [--only REGEX] [--json FILE]`.

Each text of `loop_programs` is compiled by caten and by `numba.njit(fastmath=True)`; both are called in turns, in one
process on one CPU. Each call first copies the arrays whose old elements the program reads and changes. The ratio is the
time of Numba divided by that of caten; results that differ are said.
"""
from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np

import caten
from caten.benchmarking import machine, statistics, timing

from . import sampling
from .loop_programs import PROGRAMS, LoopProgram

TOLERANCE = {np.dtype(np.float32): 1e-3, np.dtype(np.float64): 1e-7}     # for sums in another order
ODD = 1e-3                     # share of integers that may differ: comparisons of rounded numbers decide about them


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.python_loops", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="REGEX", help="only programs whose name matches")
    sampling.add_options(parser, 7, 0.02)
    options = parser.parse_args()
    if not find_spec("numba"):
        parser.error("Numba is not installed; `make bench` has it in .venv-bench")
    chosen = [p for p in PROGRAMS if re.search(options.only, p.name)]
    if not chosen:
        parser.error(f"no program matches {options.only}; there are {', '.join([p.name for p in PROGRAMS])}")
    sampling.alone("benchmarks.python_loops")
    result: dict[str, Any] = {"kind": "python loops", "machine": machine.described(), "rows": []}
    for program in chosen:
        row = measured(program, options.rounds, sampling.plan(sampling.task(options)))
        result["rows"].append(row)
        print(_row(row), file=sys.stderr, flush=True)
        sampling.save(options.json, result)
    print(markdown(result))
    return 0


def measured(program: LoopProgram, rounds: int, plan: timing.Plan) -> dict[str, Any]:
    """The seconds of Numba and of caten, medians, or why there are none."""
    import numba
    given = program.arguments()
    operator, jitted = caten.compile(program.spec()), numba.njit(fastmath=True)(program.function)
    calls, results = {}, {}
    for peer, function in {"caten": operator, "numba": jitted}.items():
        work = {name: array.copy() for name, array in given.items()}
        function(*work.values())
        results[peer] = {name: array.copy() for name, array in work.items()}
        calls[peer] = _call(function, work, {name: given[name] for name in program.restored})
    if not agrees(results["caten"], results["numba"]):
        return {"name": program.name, "failed": "gives another result"}
    taken = timing.rounds(calls, rounds, plan)
    return {"name": program.name} | {peer: statistics.median([s.seconds for s in samples]).value
                                     for peer, samples in taken.items()}


def _call(function: Callable[..., Any], work: Mapping[str, np.ndarray],
          restored: Mapping[str, np.ndarray]) -> Callable[[], None]:
    def call() -> None:
        for name, array in restored.items():
            np.copyto(work[name], array)
        function(*work.values())
    return call


def agrees(found: Mapping[str, np.ndarray], wanted: Mapping[str, np.ndarray]) -> bool:
    """Are all arrays those of Numba, within what sums in another order change?"""
    return all(_close(found[name], array) for name, array in wanted.items())


def _close(found: np.ndarray, wanted: np.ndarray) -> bool:
    if wanted.dtype in TOLERANCE:
        tolerance = TOLERANCE[wanted.dtype]
        return np.allclose(found, wanted, rtol=tolerance, atol=tolerance, equal_nan=True)
    return bool(np.mean(found != wanted) <= ODD)


def markdown(result: dict[str, Any]) -> str:
    """A table, and above it the distribution of the ratios."""
    ratios = [row["numba"] / row["caten"] for row in result["rows"] if "caten" in row]
    text = ["### Python loops", "", f"{result['machine']['cpu']}; {result['machine']['date']}; one thread", ""]
    if ratios:
        text.append(f"Numba takes **{np.exp(np.mean(np.log(ratios))):.2f}** times as long (geometric mean of "
                    f"{len(ratios)}); least {min(ratios):.2f}, median {np.median(ratios):.2f}; "
                    f"{sum([r < 1 for r in ratios])} below 1")
    return "\n".join([*text, "", "| program | caten, µs | Numba, µs | Numba / caten |", "|---|--:|--:|--:|",
                      *[_row(row) for row in result["rows"]], ""])


def _row(row: dict[str, Any]) -> str:
    if "failed" in row:
        return f"| {row['name']} | — | — | {row['failed']} |"
    own, theirs = row["caten"], row["numba"]
    return f"| {row['name']} | {1e6 * own:.1f} | {1e6 * theirs:.1f} | {theirs / own:.2f} |"


if __name__ == "__main__":
    sys.exit(main())
