"""What runs in a child may crash, hang, or run out of memory alone."""
from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from caten.errors import CatenError, Diagnostic, NothingMatched, Place, ToolError, UsageError, did_you_mean, error
from caten.testing import isolate


def test_facts_and_arrays_come_back() -> None:
    outcome = isolate.run(lambda: ({"a": 1}, {"x": np.arange(300_000.0), "empty": np.zeros((0, 3))}), 20)
    assert (outcome.status, outcome.facts) == ("ok", {"a": 1})
    assert outcome.arrays["x"].sum() == np.arange(300_000.0).sum()
    assert outcome.arrays["empty"].shape == (0, 3)


def _killed() -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    os.kill(os.getpid(), 9)
    return {}, {}


def _sleep() -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    time.sleep(30)
    return {}, {}


def _spin() -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    while True:
        pass


def test_a_crash_is_told_by_its_signal() -> None:
    outcome = isolate.run(_killed, 20)
    assert (outcome.status, outcome.signal) == ("crash", "SIGKILL")


def test_a_hang_is_ended() -> None:
    start = time.monotonic()
    assert isolate.run(_sleep, 0.2).status == "timeout"
    assert time.monotonic() - start < 10
    assert isolate.run(_spin, 20, cpu=1).status == "timeout"


def test_memory_is_limited() -> None:
    outcome = isolate.run(lambda: ({}, {"x": np.ones(1 << 28)}), 20, memory=1 << 28)
    assert outcome.status == "error"
    assert outcome.diagnostics[0].code == "E834"


def test_files_are_out_of_reach(tmp_path: Path) -> None:
    def write() -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        (tmp_path / "x").write_text("x")
        return {}, {}
    with pytest.raises(RuntimeError, match="Too many open files"):
        isolate.run(write, 20, no_files=True)
    assert not (tmp_path / "x").exists()


def test_names_are_suggested_where_no_file_can_be_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "difflib", raising=False)
    outcome = isolate.run(lambda: ({"hint": did_you_mean("totl", ["total"])}, {}), 20, no_files=True)
    assert outcome.facts == {"hint": "did you mean 'total'?"}


def test_functions_that_import_late_work_without_files() -> None:
    program = """
import sys, numpy as np
from caten.testing import isolate
loaded = [m for m in isolate.LATE if m in sys.modules]
print(loaded, isolate.run(lambda: ({}, {"m": np.median(np.arange(4.0)), "u": np.unique(np.ones(3))}), 20, no_files=True).status)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[] ok\n", done.stderr


def test_diagnostics_keep_their_place() -> None:
    def fail() -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        raise error("E805", "no", Place("a", 1, 2, "text"), hint="do")
    outcome = isolate.run(fail, 20)
    assert outcome.status == "error"
    assert outcome.diagnostics[0].place == Place("a", 1, 2, "text")
    assert outcome.diagnostics[0].hint == "do"


@pytest.mark.parametrize("kind", [CatenError, UsageError, ToolError, NothingMatched])
def test_an_error_keeps_its_exit_code(kind: type[CatenError]) -> None:
    def work() -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        raise kind(Diagnostic("E664", "this processor lacks avx512f"))

    raised = isolate.run(work, 20).error()
    assert (type(raised), raised.exit_code, str(raised)) == (kind, kind.exit_code, "E664: this processor lacks avx512f")


def test_a_fault_of_our_own_is_raised_as_one() -> None:
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        isolate.run(lambda: ({"a": 1 // 0}, {}), 20)


def test_no_child_is_left() -> None:
    isolate.run(_killed, 20)
    isolate.run(_sleep, 0.1)
    assert not isolate.CHILDREN
