"""Functions of NumPy beside NumPy: `python -m benchmarks.functions [--only REGEX] [--json FILE]`.

Each function of `array_functions` is compiled by `caten.op` and called with the arrays that NumPy is called with, in
turns, in one process on one CPU. The ratio is the time of NumPy divided by that of caten; results that differ are said.
"""
from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import caten
from caten.benchmarking import machine, statistics, timing

from . import sampling
from .array_functions import FUNCTIONS, ArrayFunction


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.functions", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="REGEX", help="only functions whose name matches")
    sampling.add_options(parser, 5, 0.02)
    options = parser.parse_args()
    sampling.alone("benchmarks.functions")
    chosen = [f for f in FUNCTIONS if re.search(options.only, f.name)]
    if not chosen:
        parser.error(f"no function matches {options.only}; there are {', '.join([f.name for f in FUNCTIONS])}")
    result: dict[str, Any] = {"kind": "functions", "machine": machine.described(), "rows": []}
    for function in chosen:
        row = measured(function, options.rounds, sampling.plan(sampling.task(options)))
        result["rows"].append(row)
        print(_row(row), file=sys.stderr, flush=True)
        sampling.save(options.json, result)
    print(markdown(result))
    return 0


def measured(function: ArrayFunction, rounds: int, plan: timing.Plan) -> dict[str, Any]:
    """The seconds of NumPy and of caten, medians, or why there are none."""
    given = function.arguments()
    compiled = caten.op(function.function)
    try:
        if not agrees(compiled(*given), function.function(*given)):
            return {"name": function.name, "failed": "gives another result"}
    except caten.CatenError as problem:
        return {"name": function.name, "failed": problem.diagnostics[0].message}
    calls: dict[str, Callable[[], Any]] = {"caten": partial(compiled, *given),
                                           "numpy": partial(function.function, *given)}
    taken = timing.rounds(calls, rounds, plan)
    return {"name": function.name} | {peer: statistics.median([s.seconds for s in samples]).value
                                      for peer, samples in taken.items()}


def agrees(found: Any, wanted: Any) -> bool:
    """Are results those of NumPy, within what sums in another order, and float32 for float64, change?"""
    pairs = zip(*[each if isinstance(each, tuple) else (each,) for each in (found, wanted)], strict=True)
    return all(np.shape(a) == np.shape(b) and np.allclose(a, b, rtol=1e-2, atol=1e-3) for a, b in pairs)


def markdown(result: dict[str, Any]) -> str:
    """A table, and above it the distribution of the ratios."""
    ratios = sorted([row["numpy"] / row["caten"] for row in result["rows"] if "caten" in row])
    text = ["### Functions of NumPy", "", f"{result['machine']['cpu']}; {result['machine']['date']}; one thread", ""]
    if ratios:
        at = {share: ratios[int(share * (len(ratios) - 1))] for share in (0.05, 0.25, 0.5)}
        slower = sum([r < 1 for r in ratios])
        mean = np.exp(np.mean(np.log(ratios)))
        text.append(f"NumPy takes **{mean:.2f}** times as long (geometric mean of {len(ratios)}); 5 % {at[0.05]:.2f}, "
                    f"25 % {at[0.25]:.2f}, median {at[0.5]:.2f}; {slower} below 1")
    return "\n".join([*text, "", "| function | caten, ms | NumPy, ms | NumPy / caten |", "|---|--:|--:|--:|",
                      *[_row(row) for row in result["rows"]], ""])


def _row(row: dict[str, Any]) -> str:
    if "failed" in row:
        return f"| {row['name']} | — | — | {row['failed']} |"
    own, theirs = row["caten"], row["numpy"]
    return f"| {row['name']} | {1e3 * own:.3f} | {1e3 * theirs:.3f} | {theirs / own:.2f} |"


if __name__ == "__main__":
    sys.exit(main())
