"""The comparison of forms: its specs, its table, and one tiny run."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import forms, table

ROOT = Path(__file__).resolve().parents[2]
PRODUCT, CONVOLUTION = forms.GROUPS


def document(**seconds: float) -> dict[str, Any]:
    titles = {"first": "C += A B", "double": "float64, two operations for one", "other": "other names"}
    return {"kind": "forms", "rounds": 5, "cpu_time": False, "machine": {"cpu": "CPU", "date": "today"},
            "groups": {PRODUCT: {"forms": {titles[name]: {"seconds": [s] * 5} for name, s in seconds.items()}}}}


def test_the_rate_of_an_operation_that_may_take_twice_as_long() -> None:
    text = forms.markdown(document(first=0.02, double=0.05, other=0.025))
    assert "| C += A B | 20 | 107.4 | 1.00 | 1.00 … 1.00 |" in text
    assert "| float64, two operations for one | 50 | 42.9 | 0.80 | 0.80 … 0.80 |" in text
    assert "| other names | 25 | 85.9 | 0.80 | 0.80 … 0.80 |" in text
    assert table.shown(document(first=0.02)) == forms.markdown(document(first=0.02))


def test_what_failed() -> None:
    given = document(first=0.02)
    given["groups"][PRODUCT] |= {"failed": "its process ended with -11"}
    given["groups"][PRODUCT]["forms"]["other names"] = {"failed": "gives a wrong result"}
    text = forms.markdown(given)
    assert "| other names | gives a wrong result | - | - | - |" in text
    assert "\nits process ended with -11.\n" in text


def test_a_tiny_run(nightly: bool, tmp_path: Path, tool: Callable[[str], str]) -> None:
    out = tmp_path / "out.json"
    run = subprocess.run([sys.executable, "-m", "benchmarks.forms", "--only", "1 x 1, stride 2|C [+]=" if nightly else "C [+]=", "--rounds", "2", "--batch", "0.0001",
                          "--retakes", "0", "--json", str(out)], cwd=ROOT, env=os.environ | {"CC": tool("gcc")}, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    found = json.loads(out.read_text())["groups"]
    windows = {CONVOLUTION: ["3 x 3, stride 1, dilation 1", "1 x 1, stride 2, dilation 1"]} if nightly else {}
    assert {group: list(facts["forms"]) for group, facts in found.items()} == {PRODUCT: ["C += A B"]} | windows
    assert all(fact["seconds"] for facts in found.values() for fact in facts["forms"].values()), found


def test_what_nothing_matches() -> None:
    run = subprocess.run([sys.executable, "-m", "benchmarks.forms", "--only", "cosine"], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 2
    assert "no form matches cosine; there are C += A B; other names;" in run.stderr
