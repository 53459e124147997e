"""The programs of samples/programs beside NumPy and numba: `python -m benchmarks.numerical [--only REGEX]
[--threads 1|2] [--json FILE]`.

NumPy runs the body of the spec as it is. numba compiles the same text: as it is, and with parallel=True on several
threads; both with fastmath. What numba cannot compile is left out, with its reason. Each call first copies the arrays
that the program changes in place. Every peer has a process for itself, which is pinned to one CPU on one thread.
"""
from __future__ import annotations

import argparse
import os
import re
import sys
from typing import Any

from caten.benchmarking import machine, statistics, timing

from . import processes, sampling
from .numerical_programs import programs
from .peers import environment

PEERS = ("caten", "numpy", "numba", "numba parallel")
TARGETS = {"numpy": 2.0, "numba": 1.2}                    # geometric means that the project wants


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.numerical", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="REGEX", help="only programs whose name matches")
    parser.add_argument("--threads", type=int, default=1, choices=range(1, (os.cpu_count() or 1) + 1))
    sampling.add_options(parser, 7, timing.BATCH)
    options = parser.parse_args()
    names = [p.name for p in programs() if re.search(options.only, p.name)]
    if not names:
        parser.error(f"no program matches {options.only}; there are {', '.join([p.name for p in programs()])}")
    result: dict[str, Any] = {"kind": "numerical", "threads": options.threads, "rounds": options.rounds,
                              "cpu_time": options.cpu_time, "machine": machine.described(), "rows": []}
    for name in names:
        row: dict[str, Any] = {"program": name, "peers": {}}
        for peer in [p for p in PEERS if options.threads > 1 or p != "numba parallel"]:
            task = {"program": name, "peer": peer, "threads": options.threads} | sampling.task(options)
            found, why = processes.ran("benchmarks.numerical_worker", task, environment(options.threads, alone=True))
            row["peers"][peer] = found | ({"failed": why} if why else {})
        result["rows"].append(row)
        print(_row(row), file=sys.stderr, flush=True)
        sampling.save(options.json, result)
    print(markdown(result))
    return 0


def markdown(result: dict[str, Any]) -> str:
    """A table, and above it the geometric means."""
    text = ["### Programs", "",
            f"{result['machine']['cpu']}; {result['machine']['date']}; {result['threads']} thread(s)", ""]
    for peer in PEERS[1:]:
        gains = [g for row in result["rows"] if (g := gain(row, peer)) is not None]
        if gains:
            mean = statistics.geometric_mean([statistics.Estimate(g, g, g) for g in gains])
            wanted = f", wanted {TARGETS[peer.split()[0]]:g}"
            text.append(f"- {peer}: geometric mean **{mean.value:.2f}** over {len(gains)} programs{wanted}; "
                        f"least {min(gains):.2f}")
    peers = [p for p in PEERS if any(p in row["peers"] for row in result["rows"])]
    return "\n".join([*text, "", "| program | " + " | ".join([f"{p}, ms" for p in peers]) + " | "
                      + " | ".join([f"{p} / caten" for p in peers[1:]]) + " |",
                      "|---|" + "--:|" * (2 * len(peers) - 1), *[_row(row) for row in result["rows"]], ""])


def gain(row: dict[str, Any], peer: str) -> float | None:
    """How many times as long a peer takes."""
    own, theirs = _seconds(row, "caten"), _seconds(row, peer)
    return theirs / own if own and theirs else None


def _seconds(row: dict[str, Any], peer: str) -> float | None:
    samples = row["peers"].get(peer, {}).get("seconds")
    return statistics.median(samples).value if samples else None


def _row(row: dict[str, Any]) -> str:
    peers = list(row["peers"])
    times = [f"{1e3 * t:.3f}" if (t := _seconds(row, p)) else "—" for p in peers]
    gains = [f"{g:.2f}" if (g := gain(row, p)) else row["peers"][p].get("failed", "—")[:60] for p in peers[1:]]
    return f"| {row['program']} | {' | '.join(times)} | {' | '.join(gains)} |"


if __name__ == "__main__":
    sys.exit(main())
