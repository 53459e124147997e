"""What the commands that measure by themselves have in common: options for how samples are taken, and the file of
results."""
from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from caten.benchmarking import timing


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


def save(file: Path | None, result: dict[str, Any]) -> None:
    """The results, where a file was named."""
    if file:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(result, indent=1) + "\n")
