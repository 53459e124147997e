"""The comparison of the levels: its table, and one tiny run."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from benchmarks import levels, table

ROOT = Path(__file__).resolve().parents[2]


def row(name: str, tuned: str, **seconds: float) -> dict[str, Any]:
    """`seconds`: o0, o1, o2, o3."""
    return {"workload": name, "tuned": tuned, "levels": {level[1:]: {"seconds": [s] * 5} for level, s in seconds.items()}}


def document(*rows: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "levels", "budget": 20.0, "rounds": 5, "cpu_time": False, "machine": {"cpu": "CPU", "date": "today"}, "rows": list(rows)}


FASTER = row("gemm 512", "gemm.rows = 4", o0=8.0, o1=8.0, o2=1.0, o3=0.5)
SAME = row("sum", "", o0=2.0, o1=2.0, o2=1.0)
SLOWER = row("sin", "maps.vectors = 4", o0=2.0, o1=2.0, o2=1.0, o3=1.25)


def test_the_share_of_workloads_that_tuning_makes_faster() -> None:
    text = levels.markdown(document(FASTER, SAME, SLOWER))
    assert "faster than -O2 in **1 of 3** workloads and slower in 1; geometric mean 1.170" in text
    assert "gemm 512: -O2 is **8.0** times as fast as -O0 (target: 5)" in text


@pytest.mark.parametrize(("given", "line"), [
    (FASTER, "| gemm 512 | 8e+03 | 8e+03 | 1e+03 | 500 | 8 | 2.00 | 2.00 … 2.00 | gemm.rows = 4 |"),
    (SAME, "| sum | 2e+03 | 2e+03 | 1e+03 | as -O2 | 2 | 1.00 | the same code | - |"),
    ({"workload": "sin", "levels": {}, "failed": "its process ended with -11"}, "| sin | its process ended with -11 |"),
    ({"workload": "sin", "tuned": "", "levels": {"0": {"failed": "gives a wrong result"}}}, "| sin | gives a wrong result | - | - | as -O2 | - | - | - | - |")])
def test_a_row(given: dict[str, Any], line: str) -> None:
    assert line in levels.markdown(document(given))


def test_the_table_of_tables_knows_it() -> None:
    assert table.shown(document(FASTER)) == levels.markdown(document(FASTER))


def test_a_tiny_run(tmp_path: Path, tool: Callable[[str], str]) -> None:
    out = tmp_path / "out.json"
    run = subprocess.run([sys.executable, "-m", "benchmarks.levels", "--odd", "--only", "^sum 997$", "--budget", "0.5", "--rounds", "3",
                          "--batch", "0.0001", "--retakes", "0", "--json", str(out)], cwd=ROOT, env=os.environ | {"CC": tool("gcc")},
                         capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    (found,) = json.loads(out.read_text())["rows"]
    assert "failed" not in found
    assert all(found["levels"][level]["seconds"] for level in "012")
    assert "| sum 997 |" in run.stdout
