"""The side-by-side: `python -m benchmarks [--only REGEX] [--threads 1|2] [--peers caten,numpy] [--rounds N] [--runs N]
[--seed N] [--json FILE]`.

On one thread, every run is one process with all peers, which take turns, pinned to one CPU. On several threads every
peer has a process for itself, because the threads of several libraries in one process wait for work at the cost of each
other. Peers that the first run shows to be far behind are left out of the others. docs/performance.md says more.
"""
from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from caten.benchmarking import machine, timing

from . import processes, table, worker
from .peers import PEERS, environment
from .workloads import sized


def main() -> int:
    options = _options()
    groups = [options.peers] if options.threads == 1 else [[name] for name in options.peers]
    result: dict[str, Any] = {"threads": options.threads, "rounds": options.rounds, "cpu_time": options.cpu_time,
                              "machine": machine.described(), "runs": []}
    slow: dict[str, list[str]] = {}
    for run in range(options.runs):
        parts = []
        for group in groups:
            print(f"run {run + 1} of {options.runs}, {options.threads} thread(s): {', '.join(group)}", file=sys.stderr,
                  flush=True)
            parts.append(_process(group, options, slow))
        result["runs"].append(parts)
        slow = slow or _slow(parts)
        if not any(part["rows"] for part in parts):
            return 1
        if options.json:
            options.json.parent.mkdir(parents=True, exist_ok=True)
            options.json.write_text(json.dumps(result | {"summary": table.summary(result)}, indent=1) + "\n")
    print(table.markdown(result))
    if options.seed is not None:
        print(table.percentiles(result))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="REGEX", help="only workloads whose name matches")
    parser.add_argument("--threads", type=int, default=1, choices=range(1, (os.cpu_count() or 1) + 1))
    parser.add_argument("--peers", default=",".join(PEERS), help=f"any of {','.join(PEERS)}")
    parser.add_argument("--rounds", type=int, default=7, help="rounds of one run")
    parser.add_argument("--runs", type=int, default=1,
                        help="runs, each in a new process; the ratio is the median of theirs")
    parser.add_argument("--batch", type=float, default=timing.BATCH, help="seconds of one sample")
    parser.add_argument("--retakes", type=int, default=timing.RETAKES,
                        help="how often a disturbed sample is taken again")
    parser.add_argument("--seed", type=int, metavar="N",
                        help="sizes drawn at random instead of the table's; the spread of the ratios is printed too")
    parser.add_argument("--count", type=int, default=40, metavar="N",
                        help="products drawn; half as many convolutions, a quarter of the others")
    parser.add_argument("--cpu-time", action="store_true",
                        help="for a busy machine: what the process had of its CPU, not what the clock says")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    if options.cpu_time and options.threads > 1:
        parser.error("--cpu-time is for one thread: of several, the CPU times add up")
    options.peers = options.peers.split(",")
    if unknown := [name for name in options.peers if name not in PEERS]:
        parser.error(f"there is no peer {unknown[0]}; there are {', '.join(PEERS)}")
    names = [w.name for w in sized(options.seed, options.count)]
    if not [name for name in names if re.search(options.only, name)]:
        parser.error(f"no workload matches {options.only}; there are {', '.join(names)}")
    return options


def _process(peers: list[str], options: argparse.Namespace, slow: Mapping[str, list[str]]) -> dict[str, Any]:
    """What processes of these peers measured: where one crashes or hangs, the next goes on behind the peer that it
    was with. `slow`: by workload, the peers that are left out."""
    measured: dict[str, Any] = {"versions": {}, "missing": {}, "rows": []}
    failed: dict[str, dict[str, str]] = {}
    given_up: list[str] = []
    while True:
        done = [*given_up, *[row["workload"] for row in measured["rows"]]]
        going = [name for name in peers if name not in measured["missing"]]
        task = {"peers": going, "threads": options.threads, "only": options.only, "rounds": options.rounds,
                "batch": options.batch,
                "retakes": options.retakes, "seed": options.seed, "count": options.count,
                "cpu_time": options.cpu_time, "slow": slow, "done": done, "failed": failed}
        part, why = processes.ran("benchmarks.worker", task, environment(options.threads, alone=len(peers) == 1))
        for name in ("versions", "missing"):
            measured[name] |= part.get(name, {})
        measured = {k: v for k, v in part.items()
                    if k not in ("doing", "complete")} | measured | {"rows": measured["rows"] + part.get("rows", [])}
        if why is None or part.get("complete"):
            return measured
        workload, peer = part.get("doing", (None, None))
        print(f"{workload or 'the beginning'}, {peer or 'while measuring'}: {why}", file=sys.stderr)
        if workload is None and peer is None:
            return measured | {"missing": measured["missing"] | dict.fromkeys(going, why)}
        if workload is None:
            measured["missing"][peer] = why
        elif peer is not None and peer not in failed.get(workload, {}):
            failed.setdefault(workload, {})[peer] = why
        else:
            given_up.append(workload)


def _slow(parts: list[dict[str, Any]]) -> dict[str, list[str]]:
    """By workload, the peers that were far behind the best: the first run tells how slow they are."""
    found = {}
    for line in table.lines({"threads": 2, "runs": [parts]}):
        near = worker.near_the_best(line.times)
        found[line.workload] = [name for name in line.times if name not in near]
    return found


if __name__ == "__main__":
    sys.exit(main())
