"""The operators of the library beside NumPy, numba, SciPy, torch and onnxruntime: `python -m benchmarks.operators
[--only REGEX] [--seed N] [--json FILE] [--figures FILE]`.

One thread. Every operator is called at three sizes, which are drawn from those of its spec. NumPy runs the reference of
the spec, numba compiles it where it can; torch, SciPy and onnxruntime have the functions with the operator's name, or
that docs/coverage.md names, where they take the same arguments and give the same result. Every call makes its outputs:
a view is copied. The ratio is the time of the best of them divided by that of caten.
"""
from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np

from caten.benchmarking import machine, timing
from caten.frontend import operator_library

from . import processes, sampling
from .peers import environment

# The geometric means over these families that the project wants, and over the others.
TARGETS = (("elementwise, reductions, normalisations", 1.5, (
    "activations", "arithmetic", "comparison", "exponentials", "normalisation", "reductions", "rounding",
    "trigonometry", "bits", "losses")),
           ("sorting and Fourier transforms", 0.9, ("sorting", "transforms")), ("all", 1.2, ()))
LOW = 0.7


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.operators", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="REGEX", help="only operators whose name or family matches")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the sizes")
    parser.add_argument("--figures", metavar="FILE", help="write what `caten ops NAME` shows")
    sampling.add_options(parser, 5, timing.BATCH / 6)
    options = parser.parse_args()
    if options.figures and options.only:
        parser.error("--figures needs all operators: leave out --only")
    chosen = [e for e in operator_library.entries() if re.search(options.only, f"{e.family} {e.name}")]
    if not chosen:
        parser.error(f"no operator matches {options.only}; caten ops lists them")
    result: dict[str, Any] = {"kind": "operators", "seed": options.seed, "rounds": options.rounds,
                              "cpu_time": options.cpu_time, "machine": machine.described(), "rows": []}
    for entry in chosen:
        task = {"operator": entry.name, "seed": options.seed} | sampling.task(options)
        found, why = processes.ran("benchmarks.operators_worker", task, environment(1, alone=False))
        rows = found.get("rows", [])
        result["rows"] += [row | {"family": entry.family, "operator": entry.name} for row in rows]
        for row in result["rows"][len(result["rows"]) - len(rows):]:
            print(_row(row), file=sys.stderr, flush=True)
        if why or not rows:
            print(f"{entry.name}: {why or found.get('failed', 'nobody has it')}", file=sys.stderr, flush=True)
        sampling.save(options.json, result)
    print(markdown(result))
    if options.figures:
        Path(options.figures).write_text(figures(result), "utf-8")
    return 0


def figures(result: dict[str, Any]) -> str:
    """By operator: sizes, seconds, the best peer and the ratio, as caten.frontend.operator_library reads them."""
    made: dict[str, list[dict[str, Any]]] = {}
    for row in result["rows"]:
        by = ratio(row)
        made.setdefault(row["operator"], []).append({
            "sizes": row["sizes"], "seconds": float(f"{row['seconds']['caten']:.3g}"),
            "peer": None if by is None else best(row), "ratio": None if by is None else round(by, 2)})
    lines = [f"{json.dumps(name)}: {json.dumps(rows)}" for name, rows in made.items()]
    about = f"{result['machine']['cpu']}, one thread, {result['machine']['date']}"
    return f'{{"machine": {json.dumps(about)}, "operators": {{\n' + ",\n".join(lines) + "\n}}\n"


def markdown(result: dict[str, Any]) -> str:
    """What the ratios come to by family, and the rows below LOW."""
    rows = [row for row in result["rows"] if ratio(row) is not None]
    text = ["### Operators of the library", "",
            f"{result['machine']['cpu']}; {result['machine']['date']}; one thread; sizes drawn with seed "
            f"{result['seed']}", ""]
    for title, target, families in TARGETS:
        found = [ratio(row) for row in rows if not families or row["family"] in families]
        if found:
            text.append(f"- {title}: geometric mean **{_mean(found):.2f}** (wanted: {target:g}), 5th percentile "
                        f"{np.percentile(found, 5):.2f}, median {np.median(found):.2f}, over {len(found)} rows of "
                        f"{len({row['operator'] for row in rows if not families or row['family'] in families})} "
                        "operators")
    text += ["", "| family | rows | geometric mean | least | median |", "|---|--:|--:|--:|--:|"]
    for family in dict.fromkeys(row["family"] for row in rows):
        found = [ratio(row) for row in rows if row["family"] == family]
        text.append(f"| {family} | {len(found)} | {_mean(found):.2f} | {min(found):.2f} | {np.median(found):.2f} |")
    low = sorted([row for row in rows if ratio(row) < LOW], key=ratio)
    return "\n".join([*text, "", f"Below {LOW}:", "", "| operator | sizes | ms | ratio | the best |",
                      "|---|---|--:|--:|---|", *[_row(row) for row in low], ""])


def ratio(row: dict[str, Any]) -> Any:
    """The time of the best of the others divided by that of caten; None where nobody else has it."""
    others = [t for name, t in row["seconds"].items() if name != "caten"]
    return min(others) / row["seconds"]["caten"] if others and "caten" in row["seconds"] else None


def best(row: dict[str, Any]) -> str:
    """The fastest of the others."""
    times = row["seconds"]
    return min([name for name in times if name != "caten"], key=times.__getitem__, default="—")


def _mean(ratios: list[Any]) -> float:
    return float(np.exp(np.mean(np.log(ratios))))


def _row(row: dict[str, Any]) -> str:
    times, by = row["seconds"], ratio(row)
    sizes = " ".join([f"{n}={v}" for n, v in row["sizes"].items()])
    return (f"| {row['operator']} | {sizes} | {1e3 * times.get('caten', 0):.4f} | "
            f"{'—' if by is None else f'{by:.2f}'} | {best(row)} |")


if __name__ == "__main__":
    sys.exit(main())
