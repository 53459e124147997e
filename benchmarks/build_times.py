"""How long building takes: whole processes, cold and from the cache, as medians. `python -m benchmarks.build_times
[--runs N] [--json FILE]`."""
from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from caten.benchmarking import machine
from caten.runtime.library_cache import COMPILER, PROBES

from . import gpt2

ROOT = Path(__file__).resolve().parent.parent
LAYERS: dict[int, float | None] = {12: 1.25, 48: None}           # of GPT-2, and the target
CATEN = str(Path(sys.executable).with_name("caten"))
# name -> (arguments, is the cache emptied before every run?, target in seconds or None)
CASES: dict[str, tuple[list[str], bool, float | None]] = {
    "python -c pass": ([sys.executable, "-c", "pass"], False, None),
    "caten --version": ([CATEN, "--version"], False, None),
    "gemm, cold": ([CATEN, "samples/gemm.toml", "-o", "{out}/gemm.so"], True, 0.6),
    "axpy (elementwise), cold": ([CATEN, "samples/axpy.toml", "-o", "{out}/axpy.so"], True, 0.35),
    "gemm, from the cache": ([CATEN, "samples/gemm.toml", "-o", "{out}/gemm.so"], False, 0.15),
    "axpy, from the cache": ([CATEN, "samples/axpy.toml", "-o", "{out}/axpy.so"], False, 0.15),
    **{f"{layers} layers of GPT-2, rendered": ([CATEN, "render", f"{{out}}/gpt2-{layers}.toml", "--only", "Layers",
                                                "-o", "{out}/gpt2.c"], True, target)
       for layers, target in LAYERS.items()},
}


def measure(arguments: list[str], cold: bool, runs: int, folder: Path) -> list[float]:
    """Seconds of each run after one that is not counted (which warms the host compiler, and fills the cache)."""
    cache = folder / "cache"
    # modules are compiled once, as for everyone
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    times = []
    for n in range(runs + 1):
        if cold:
            for entry in cache.iterdir() if cache.exists() else ():
                if entry.is_dir() and entry.name not in (COMPILER, PROBES):
                    # libraries, plans, objects and values; what is known about the compiler stays
                    shutil.rmtree(entry)
        start = time.perf_counter()
        subprocess.run([a.format(out=folder) for a in arguments], cwd=ROOT, check=True, stdout=subprocess.DEVNULL,
                       env=environment | {"CATEN_CACHE_DIR": str(cache)})
        if n:
            times.append(time.perf_counter() - start)
    return times


def markdown(result: dict[str, Any]) -> str:
    """A table, and where it comes from."""
    facts, rows = result["machine"], result["rows"]
    return "\n".join(["### Building", "",
                      f"{facts['cpu']}, {facts['cpus']} CPUs, {facts['system']}, Python {facts['python']}; "
                      f"{facts['date']}; "
                      f"whole processes, the median of {result['runs']} runs.", "",
                      "| command | seconds | least | greatest | target |",
                      "|---|--:|--:|--:|--:|", *[_row(case, row) for case, row in rows.items()], ""])


def _row(case: str, row: dict[str, float | None]) -> str:
    times = " | ".join([f"{row[name]:.3f}" for name in ("median", "least", "greatest")])
    target = "-" if row["target"] is None else f"{row['target']:.3f}"
    return f"| {case} | {times} | {target} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.build_times", description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    rows: dict[str, dict[str, float | None]] = {}
    with tempfile.TemporaryDirectory() as name:
        for layers in LAYERS:
            Path(name, f"gpt2-{layers}.toml").write_text(gpt2.spec(layers))
        for case, (arguments, cold, target) in CASES.items():
            times = measure(arguments, cold, options.runs, Path(name))
            rows[case] = {"median": statistics.median(times), "least": min(times), "greatest": max(times),
                          "target": target}
    rows["caten --version"]["target"] = (rows["python -c pass"]["median"] or 0.0) + 0.08
    result = {"kind": "building", "machine": machine.described(), "runs": options.runs, "rows": rows}
    print(markdown(result))
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
