"""From the naive gemm to the fast one: each step of the walk in docs/schedule.md, timed.

    python -m benchmarks.steps [--size 512] [--write]     # --write: into benchmarks/steps.json, from which the page is generated

One thread; the kernels take turns, and the time is the median of the undisturbed rounds.
"""
from __future__ import annotations

import argparse
import json
import os
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SPEC = HERE.parent / "samples" / "gemm.toml"
RESULTS = HERE / "steps.json"

TILE = "(split i 8 pad) (split j 32 pad) (reorder io jo p ii ji)"
ROWS = "(stage jo A read scratch ii p)"
PANELS = "(stage io B read scratch jo p ji)"
REGISTERS = ("(stage p C partial register ii ji) (split ji 16) (vectorize jii) (unroll jio) (split ji_z 16) (vectorize ji_zi) (unroll ji_zo)\n"
             " (split ji_s 16) (vectorize ji_si) (unroll ji_so) (split ji_w 16) (vectorize ji_wi) (unroll ji_wo)\n"
             " (unroll ii) (unroll ii_z) (unroll ii_s) (unroll ii_w)")
COPIES = "(split ji_r 16) (vectorize ji_ri) (unroll ji_ro)"


@dataclass(frozen=True)
class Step:
    """A stop of the walk. `schedule` is empty for what the compiler chooses."""

    title: str
    why: str
    schedule: str


STEPS = (
    Step("As it is written",
         "For every element of C, a row of A and a column of B. The elements of a column lie N apart: each one costs a cache line.",
         "(schedule)"),
    Step("Loops in the order of memory",
         "With j innermost, rows of B and of C are read and written from left to right, and the C compiler finds vectors by itself.",
         "(schedule (reorder i p j))"),
    Step("Vectors", "Said explicitly: sixteen columns at once. Every product still loads and stores an element of C.",
         "(schedule (reorder i p j) (split j 16) (vectorize ji))"),
    Step("A tile of C in registers",
         "Eight rows of two vectors stay in registers while p runs: one load of B serves eight rows, one element of A two vectors. `pad` fills the "
         "last tile up with zeros, so that the innermost loops have no edges; the rows of A are copied for that.",
         f"(schedule {TILE}\n {ROWS}\n {REGISTERS})"),
    Step("B in panels", "The 32 columns that a tile needs are copied next to each other once; every tile reads them in a row then.",
         f"(schedule {TILE}\n {ROWS}\n {PANELS}\n {REGISTERS}\n {COPIES})"),
    Step("Multiply and add at once", "`contract` makes x·y + z one operation, with one rounding: half the instructions.",
         f"(schedule {TILE}\n {ROWS}\n {PANELS}\n {REGISTERS}\n {COPIES}\n (contract p))"),
    Step("What the compiler does",
         "Blocks of 256 products and 1024 columns, so that what is packed stays in the caches at every size; requests for what lies in steps of a "
         "row; threads; and nests of their own for few columns, for small products and for few rows.", ""),
)


def rate(seconds: float, size: int) -> str:
    return f"{seconds * 1e3:.3g} ms, {2 * size ** 3 / seconds / 1e9:.1f} GFLOP/s"


def section() -> str:
    """The walk as a part of docs/schedule.md, with the figures of benchmarks/steps.json."""
    results: dict[str, Any] = json.loads(RESULTS.read_text())
    size, machine = results["size"], results["machine"]
    parts = [f"""## From the naive gemm to the fast one

`samples/gemm.toml` is the triple loop of the textbook. These schedules lead from it to what the compiler chooses; each can be given with `-s FILE`.
The times are those of {size} × {size} × {size} on one thread of an {machine["cpu"]} ({machine["date"]}); `python -m benchmarks.steps` measures them
on yours.
"""]
    for number, (step, seconds) in enumerate(zip(STEPS, results["seconds"], strict=True)):
        shown = f"```lisp\n{step.schedule}\n```\n" if step.schedule else "`caten schedule samples/gemm.toml` prints it.\n"
        parts.append(f"### {number}. {step.title}: {rate(seconds, size)}\n\n{step.why}\n\n{shown}")
    return "\n".join(parts)


def measure(size: int) -> list[float]:
    """Seconds of every step."""
    import numpy as np

    import caten
    from caten.bench import timing
    random = np.random.default_rng(0)
    a, b, c = [random.uniform(-1, 1, (size, size)).astype(np.float32) for _ in range(3)]
    kernels = [caten.compile(SPEC, **({"schedule": step.schedule} if step.schedule else {})) for step in STEPS]
    calls = {str(n): kernel.bind(a, b, c.copy()) for n, kernel in enumerate(kernels)}
    samples = timing.rounds(calls, 5, timing.Plan())
    return [statistics.median(timing.accepted(samples[name])) for name in calls]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.steps", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--write", action="store_true", help="into benchmarks/steps.json")
    given = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    from caten.bench import machine
    seconds = measure(given.size)
    for step, taken in zip(STEPS, seconds, strict=True):
        print(f"{step.title:32} {rate(taken, given.size)}")
    if given.write:
        RESULTS.write_text(json.dumps({"size": given.size, "machine": machine.described(), "seconds": seconds}, indent=1) + "\n")


if __name__ == "__main__":
    main()
