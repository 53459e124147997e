"""What the commands that measure by themselves have in common: options for how samples are taken, the process that
takes them, and the file of results."""
from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from caten.benchmarking import timing

from .peers import environment


def add_options(parser: argparse.ArgumentParser, rounds: int, batch: float) -> None:
    """With these defaults."""
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--batch", type=float, default=batch, help="seconds of one sample")
    parser.add_argument("--retakes", type=int, default=timing.RETAKES,
                        help="how often a disturbed sample is taken again")
    parser.add_argument("--cpu-time", action="store_true",
                        help="for a busy machine: what the process had of its CPU, not what the clock says")
    parser.add_argument("--json", type=Path, metavar="FILE")


def task(options: argparse.Namespace) -> dict[str, Any]:
    """The options as a process that measures gets them."""
    return {name: getattr(options, name) for name in ("rounds", "batch", "retakes", "cpu_time")}


def plan(given: dict[str, Any]) -> timing.Plan:
    """What such a process does with them."""
    return timing.Plan(given["batch"], given["retakes"], given["cpu_time"])


def alone(module: str) -> None:
    """This process on one CPU, with one thread. It starts again as the module where its environment is another one:
    NumPy and the memory allocator read it at their start."""
    wanted = environment(1, alone=True)
    if any(os.environ.get(name) != value for name, value in wanted.items()):
        os.execve(sys.executable, [sys.executable, "-m", module, *sys.argv[1:]], {**os.environ, **wanted})
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def save(file: Path | None, result: dict[str, Any]) -> None:
    """The results, where a file was named."""
    if file:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(result, indent=1) + "\n")
