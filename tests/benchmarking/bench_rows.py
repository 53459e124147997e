"""BenchResults made up for the tests."""
from __future__ import annotations

from caten.benchmarking.limits import Limits
from caten.benchmarking.results import BenchResults, BenchRow
from caten.benchmarking.statistics import Estimate

LIMITS = Limits(1, 100e9, 20e9, 16e9, 18e9)


def row(op: str = "Gemm", runtime: str = "clang", seconds: float = 1e-3, spread: float = 0.1, flops: int = 50_000_000, **sizes: int) -> BenchRow:
    low, high = seconds * (1 - spread), seconds * (1 + spread)
    return BenchRow(op, runtime, dict(sizes or {"M": 64}), Estimate(seconds, low, high), flops, 10_000_000, (low, seconds, high), 2, 3, "cc 1", ("-O3",))


def results(*rows: BenchRow, limits: Limits | None = LIMITS) -> BenchResults:
    return BenchResults(rows, {"cpu": "Some <CPU>", "cpus": 2}, limits)
