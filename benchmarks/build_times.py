"""How long building takes: whole processes, cold and from the cache, as medians. `python benchmarks/build_times.py [--runs N] [--json FILE]`."""
from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CATEN = str(Path(sys.executable).with_name("caten"))
# name -> (arguments, is the cache emptied before every run?, target in seconds or None)
CASES: dict[str, tuple[list[str], bool, float | None]] = {
    "python -c pass": ([sys.executable, "-c", "pass"], False, None),
    "caten --version": ([CATEN, "--version"], False, None),
    "gemm, cold": ([CATEN, "samples/gemm.toml", "-o", "{out}/gemm.so"], True, 0.6),
    "axpy (elementwise), cold": ([CATEN, "samples/axpy.toml", "-o", "{out}/axpy.so"], True, 0.35),
    "gemm, from the cache": ([CATEN, "samples/gemm.toml", "-o", "{out}/gemm.so"], False, 0.15),
    "axpy, from the cache": ([CATEN, "samples/axpy.toml", "-o", "{out}/axpy.so"], False, 0.15),
}


def measure(arguments: list[str], cold: bool, runs: int, folder: Path) -> list[float]:
    """Seconds of each run after one that is not counted (which warms the host compiler, and fills the cache)."""
    cache = folder / "cache"
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}     # modules are compiled once, as for everyone
    times = []
    for n in range(runs + 1):
        if cold:
            for entry in cache.glob("*") if cache.exists() else ():
                if entry.is_dir() and len(entry.name) == 64:
                    shutil.rmtree(entry)                 # the compiled libraries; what is known about the compiler stays
        start = time.perf_counter()
        subprocess.run([a.format(out=folder) for a in arguments], cwd=ROOT, check=True, stdout=subprocess.DEVNULL,
                       env=environment | {"CATEN_CACHE_DIR": str(cache)})
        if n:
            times.append(time.perf_counter() - start)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows: dict[str, dict[str, float | None]] = {}
    with tempfile.TemporaryDirectory() as name:
        for case, (arguments, cold, target) in CASES.items():
            times = measure(arguments, cold, options.runs, Path(name))
            rows[case] = {"median": statistics.median(times), "least": min(times), "greatest": max(times), "target": target}
    base = rows["python -c pass"]["median"] or 0.0
    rows["caten --version"]["target"] = base + 0.08
    print(f"{platform.processor() or platform.machine()}, Python {platform.python_version()}, {os.cpu_count()} cores, median of {options.runs} runs")
    print(f"{'':28}{'median':>9}{'least':>9}{'greatest':>10}{'target':>9}")
    for case, row in rows.items():
        target = f"{row['target']:.3f}" if row["target"] else "-"
        print(f"{case:28}{row['median']:9.3f}{row['least']:9.3f}{row['greatest']:10.3f}{target:>9}")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
