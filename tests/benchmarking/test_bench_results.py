"""Results as a file, as a table, and compared with each other."""
from __future__ import annotations

import json
from pathlib import Path

import pytest
from bench_rows import LIMITS, results, row

from caten.benchmarking import regressions
from caten.benchmarking.results import read, spelled, table
from caten.errors import CatenError


@pytest.mark.parametrize("limits", [LIMITS, None])
def test_a_file_reads_back(tmp_path: Path, limits: object) -> None:
    written = results(row(), row("Axpy", N=3), limits=limits)  # type: ignore[arg-type]
    path = tmp_path / "a.json"
    path.write_text(written.text())
    assert read(str(path)) == written


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '{"schema_version": 9}', '{"schema_version": 1, "machine": {}, "limits": null, "rows": [{}]}',
                                  '{"schema_version": 1, "machine": 3, "limits": null, "rows": []}'])
def test_another_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(CatenError, match="E931"):
        read(str(path))


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CatenError, match="E902"):
        read(str(tmp_path / "none.json"))


def test_every_sample_is_in_the_file() -> None:
    rows = json.loads(results(row()).text())["rows"]
    assert rows[0]["samples"] == pytest.approx([0.9e-3, 1e-3, 1.1e-3])


def test_what_the_limits_allow_is_the_roofline() -> None:
    assert row(flops=50_000_000).attainable(LIMITS) == pytest.approx(0.5e-3)       # memory: 10 MB at 20 GB/s
    assert row(flops=200_000_000).attainable(LIMITS) == pytest.approx(2e-3)        # arithmetic


def test_the_table() -> None:
    head, line, limits, note = table(results(row()))
    assert head.split() == ["operator", "sizes", "runtime", "time", "95", "%", "interval", "GFLOP/s", "GB/s", "%", "of", "peak"]
    assert line.split() == ["Gemm", "M=64", "clang", "1", "ms", "900", "us", "…", "1.1", "ms", "50.0", "10.0", "50%"]
    assert "100 GFLOP/s" in limits
    assert "1 of 3 samples of 1 row were disturbed" in note


def test_without_limits_there_is_no_share() -> None:
    assert table(results(row(), limits=None))[1].endswith("-")


@pytest.mark.parametrize(("seconds", "text"), [(2.5, "2.5 s"), (0.0123, "12.3 ms"), (999e-6, "999 us"), (4.2e-7, "420 ns")])
def test_times_have_a_unit_that_fits(seconds: float, text: str) -> None:
    assert spelled(seconds) == text


@pytest.mark.parametrize(("new", "verdict"), [(1.0e-3, "same"), (1.19e-3, "same"), (1.3e-3, "slower"), (0.7e-3, "faster")])
def test_a_change_is_one_where_the_intervals_do_not_meet(new: float, verdict: str) -> None:
    assert [c.verdict for c in regressions.changes(results(row()), results(row(seconds=new)))] == [verdict]


def test_other_sizes_are_other_measurements() -> None:
    lines = regressions.report(results(row(M=1), row(M=2)), results(row(M=2), row(M=3)))
    assert len(lines) == 2
    assert lines[0].startswith("same    1.00  Gemm(M=2) clang")
    assert lines[1].startswith("2 measurements")


def test_another_machine_is_noted() -> None:
    other = results(row())
    other.machine["cpu"] = "Other"
    assert regressions.report(results(row()), other)[0] == "note: cpu was Some <CPU>, and is Other"


def test_nothing_in_common() -> None:
    with pytest.raises(CatenError, match="E841"):
        regressions.changes(results(row("A")), results(row("B")))
