"""What the levels -O0 to -O3 make of each workload: `python -m benchmarks.levels [--only REGEX] [--budget SECONDS]
[--json FILE]`.

One thread. A workload has a process and a cache of its own, in which `caten tune` searches for so many seconds, at the
sizes of the workload; then the kernels of the four levels take turns on the same arrays. Where nothing was found to be
faster, -O3 is -O2, and is not measured.
"""
from __future__ import annotations

import argparse
import re
import sys
from typing import Any

from caten.benchmarking import machine, statistics, timing
from caten.benchmarking.statistics import Estimate

from . import processes, sampling
from .peers import environment
from .workloads import WORKLOADS

LEVELS = ("0", "1", "2", "3")
BUDGET = 40.0                  # seconds of search
# seconds beyond it after which a process counts as hanging: -O0 may take a minute for a call
SPARE = 240.0
TARGET = ("gemm 512", 5.0)     # how many times as fast as -O0 it shall be at -O2


def main() -> int:
    options = _options()
    result: dict[str, Any] = {"kind": "levels", "budget": options.budget, "rounds": options.rounds,
                              "cpu_time": options.cpu_time,
                              "machine": machine.described(), "rows": []}
    for workload in [w for w in WORKLOADS if re.search(options.only, w.name) and (options.odd or not w.odd)]:
        task = {"workload": workload.name, "budget": options.budget} | sampling.task(options)
        row, why = processes.ran("benchmarks.levels_worker", task, environment(1, alone=True), options.budget + SPARE)
        result["rows"].append({"workload": workload.name, "levels": {}} | row | ({"failed": why} if why else {}))
        print(_said(result["rows"][-1]), file=sys.stderr, flush=True)
        sampling.save(options.json, result)
    print(markdown(result))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.levels", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="REGEX", help="only workloads whose name matches")
    parser.add_argument("--odd", action="store_true", help="odd sizes and edges, too")
    parser.add_argument("--budget", type=float, default=BUDGET, help="seconds of search for each workload")
    sampling.add_options(parser, 15, timing.BATCH / 2)
    options = parser.parse_args()
    if not [w for w in WORKLOADS if re.search(options.only, w.name) and (options.odd or not w.odd)]:
        parser.error(f"no workload matches {options.only}; there are {', '.join([w.name for w in WORKLOADS])}")
    return options


def markdown(result: dict[str, Any]) -> str:
    """A table, and above it what it comes to."""
    rows: list[dict[str, Any]] = result["rows"]
    text = ["### The levels", "",
            f"{result['machine']['cpu']}; {result['machine']['date']}; one thread, {result['rounds']} rounds, "
            f"{result['budget']:.0f} seconds of `caten tune` for each "
            f"workload.{' The times are CPU times.' if result['cpu_time'] else ''}", ""]
    gains = [g for row in rows if (g := gain(row)) is not None]
    faster, slower = len([g for g in gains if g.low > 1]), len([g for g in gains if g.high < 1])
    if gains:
        mean = statistics.geometric_mean(gains)
        text += [f"With what was tuned, -O3 is faster than -O2 in **{faster} of {len(gains)}** workloads and slower in "
                 f"{slower}; geometric mean "
                 f"{mean.value:.3f} ({mean.low:.3f} … {mean.high:.3f}).", ""]
    name, target = TARGET
    text += [f"{name}: -O2 is **{by.value:.1f}** times as fast as -O0 (target: {target:g}).\n" for row in rows
             if row["workload"] == name
             and (by := _by(row, "0", "2")) is not None]
    return "\n".join([*text,
                      "| workload | -O0, ms | -O1, ms | -O2, ms | -O3, ms | -O2 by -O0 | -O3 by -O2 | 95 % interval | "
                      "what was tuned |",
                      "|---|--:|--:|--:|--:|--:|--:|---|---|", *[_row(row) for row in rows], ""])


def gain(row: dict[str, Any]) -> Estimate | None:
    """How many times as fast as -O2 is -O3? Exactly 1 where it is the same code; None where one of them was not
    measured."""
    if "2" in row["levels"] and row.get("tuned") == "":
        return Estimate(1.0, 1.0, 1.0)
    return _by(row, "2", "3")


def _by(row: dict[str, Any], above: str, below: str) -> Estimate | None:
    levels = row["levels"]
    if any("seconds" not in levels.get(level, {}) for level in (above, below)):
        return None
    a, b = [levels[level]["seconds"] for level in (above, below)]
    return statistics.paired_ratio([a], [b]) if len(a) == len(b) else statistics.ratio([a], [b])


def _row(row: dict[str, Any]) -> str:
    by, faster = _by(row, "0", "2"), gain(row)
    interval = "-" if faster is None else f"{faster.low:.2f} … {faster.high:.2f}" if row["tuned"] else "the same code"
    columns = [row["workload"], *[_time(row, level) for level in LEVELS], f"{by.value:.3g}" if by else "-",
               f"{faster.value:.2f}" if faster else "-",
               interval, row.get("tuned") or "-"]
    return f"| {' | '.join(columns)} |"


def _time(row: dict[str, Any], level: str) -> str:
    fact = row["levels"].get(level, {})
    if "seconds" in fact:
        return f"{statistics.median(fact['seconds']).value * 1e3:.3g}"
    if level == "3" and row.get("tuned") == "":
        return "as -O2"
    return str(fact.get("failed") or row.get("failed") or "-").partition(":")[0]


def _said(row: dict[str, Any]) -> str:
    faster = gain(row)
    return f"{row['workload']:28} {'  '.join([f'-O{level} {_time(row, level)}' for level in LEVELS])}  " + (
        f"x{faster.value:.3f} ({faster.low:.3f} … {faster.high:.3f})  {row.get('tuned', '')}" if faster
        else row.get("failed", ""))


if __name__ == "__main__":
    sys.exit(main())
