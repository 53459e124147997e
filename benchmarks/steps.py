"""From the naive gemm to the fast one: each step of the walk in docs/schedule.md, timed.

python -m benchmarks.steps [--size 512] [--write]     # --write: into benchmarks/steps.json, from which the page is
generated

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
REGISTERS = ("(stage p C partial register ii ji) (split ji 16) (vectorize jii) (unroll jio) (split ji_z 16) (vectorize "
             "ji_zi) (unroll ji_zo)\n"
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
         "Each element of C takes a row of A and a column of B. The elements of a column lie N apart, so each one "
         "costs a cache line.",
         "(schedule)"),
    Step("Loops in the order of memory",
         "With j innermost, the loop walks along rows of B and C, and the C compiler vectorises it.",
         "(schedule (reorder i p j))"),
    Step("Explicit vectors",
         "The schedule now chooses the vectors: sixteen columns, then a tail. By itself this is a little slower. It "
         "removes no memory access: each "
         "vector of products still loads B, loads C and stores C. In step 1 the C compiler chose four vectors of eight "
         "lanes for an iteration; here "
         "there are two of sixteen, 64 bytes each, and such an access crosses a cache line unless the row begins at "
         "one. The next step needs vectors "
         "of a known width.",
         "(schedule (reorder i p j) (split j 16) (vectorize ji))"),
    Step("A tile of C in registers",
         "A register tile of eight rows by two vectors stays in registers while p runs: one load of B serves eight "
         "rows, one element of A serves two "
         "vectors. `pad` makes every tile full, so the innermost loops have no tails; for that, `stage … read` copies "
         "the rows of A with zero "
         "padding.",
         f"(schedule {TILE}\n {ROWS}\n {REGISTERS})"),
    Step("B in packed panels",
         "`stage io B read` packs the 32 columns of a tile next to each other, once. Every tile then reads them in "
         "order.",
         f"(schedule {TILE}\n {ROWS}\n {PANELS}\n {REGISTERS}\n {COPIES})"),
    Step("Fused multiply-add", "`contract` makes x·y + z one instruction (FMA): half the arithmetic instructions.",
         f"(schedule {TILE}\n {ROWS}\n {PANELS}\n {REGISTERS}\n {COPIES}\n (contract p))"),
    Step("What the compiler does",
         "Cache blocks of 256 in p and 1024 columns, so that the packed panels fit the caches at every size; "
         "prefetches; threads; and separate "
         "versions of the nest for few columns, for few rows and for small products.", ""),
)


def rate(seconds: float, size: int) -> str:
    return f"{seconds * 1e3:.3g} ms, {2 * size ** 3 / seconds / 1e9:.1f} GFLOP/s"


def section() -> str:
    """The walk as a part of docs/schedule.md, with the figures of benchmarks/steps.json."""
    results: dict[str, Any] = json.loads(RESULTS.read_text())
    size, machine = results["size"], results["machine"]
    parts = [f"""## From the naive gemm to the fast one

`samples/gemm.toml` is the naive triple loop. Each schedule below adds one idea, up to the schedule that the compiler chooses. Try any of them with
`-s FILE`. The times are for {size} × {size} × {size} on one thread of an {machine["cpu"]} ({machine["date"]}); `python -m benchmarks.steps` measures
them on your machine. [The glossary](glossary.md) explains the terms.

![A roofline of the steps](pictures/roofline.svg)
"""]
    for number, (step, seconds) in enumerate(zip(STEPS, results["seconds"], strict=True)):
        shown = "`caten schedule samples/gemm.toml` prints it.\n"
        if step.schedule:
            shown = f"```lisp\n{step.schedule}\n```\n"
        parts.append(f"### {number}. {step.title}: {rate(seconds, size)}\n\n{step.why}\n\n{shown}")
    return "\n".join(parts)


def measure(size: int) -> list[float]:
    """Seconds of every step."""
    import numpy as np

    import caten
    from caten.benchmarking import timing
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
    from caten.benchmarking import machine
    seconds = measure(given.size)
    for step, taken in zip(STEPS, seconds, strict=True):
        print(f"{step.title:32} {rate(taken, given.size)}")
    if given.write:
        RESULTS.write_text(json.dumps({"size": given.size, "machine": machine.described(), "seconds": seconds},
                                      indent=1) + "\n")


if __name__ == "__main__":
    main()
