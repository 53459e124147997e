"""Threads that compile different specs at once give what one thread gives: the same C text, the same manifest, the same results."""
from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import caten
from caten.kernels.known_kernels import LOADED

THREADS = 2
FUNCTIONS = ("+", "*", "-", "max", "min")


@pytest.fixture(autouse=True)
def unloaded() -> Iterator[None]:
    LOADED.clear()
    yield
    LOADED.clear()


def spec(n: int) -> str:
    """A map, a sum of rows, a sum across, a product or a window, each with a number of its own."""
    function = FUNCTIONS[n // 5 % len(FUNCTIONS)]
    code = (
        f"(dotimes (i M) (dotimes (j M) (setf (aref Y i j) ({function} {n}.5 (aref A i j)))))",
        f"(dotimes (i M) (dotimes (j M) (setf (aref Y i j) {n}) (dotimes (k M) (incf (aref Y i j) ({function} (aref A i k) {n}.0)))))",
        f"(dotimes (i M) (dotimes (j M) (setf (aref Y i j) 0))) "
        f"(dotimes (k M) (dotimes (i M) (dotimes (j M) (incf (aref Y i j) ({function} (aref A k j) {n}.0)))))",
        f"(dotimes (i M) (dotimes (j M) (setf (aref Y i j) {n}) (dotimes (k M) (incf (aref Y i j) (* (aref A i k) (aref B k j))))))",
        f"(dotimes (i M) (dotimes (j M) (setf (aref Y i j) {n}) (dotimes (k 3) (when (< (+ j k) M) (incf (aref Y i j) (aref A i (+ j k)))))))",
    )[n % 5]
    return f"(composite Own{n} ((A{{float}}[M M], B{{float}}[M M]) -> (Y{{float}}[M M])) {code})"


def made(number: int) -> tuple[str, Any, str, bytes]:
    """What a spec becomes: C, manifest, schedule, results."""
    a = np.arange(49, dtype=np.float32).reshape(7, 7) % 11 - 5
    operator = caten.compile(spec(number), runtime="gcc", config={"MARCH": "x86-64-v3"})
    return operator.source, operator.manifest, operator.schedule, operator(a, a.T.copy()).tobytes()


def test_threads_compile_what_one_thread_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nightly: bool) -> None:
    numbers = range(100 if nightly else 6)
    together, busy, overlapping = threading.Barrier(THREADS), set[int](), set[int]()

    def work(share: int) -> dict[int, Any]:
        together.wait()                                           # all begin at once, nobody finds what another one loaded before
        found = {}
        for number in numbers[share::THREADS]:
            busy.add(share)
            found[number] = made(number)
            if len(busy) > 1:
                overlapping.add(number)
        busy.discard(share)
        return found
    monkeypatch.setenv("CATEN_CACHE_DIR", str(tmp_path / "threads"))
    with ThreadPoolExecutor(THREADS) as pool:
        at_once = {number: result for found in pool.map(work, range(THREADS)) for number, result in found.items()}
    assert len(overlapping) > len(numbers) // 3                    # the threads did run side by side
    LOADED.clear()
    monkeypatch.setenv("CATEN_CACHE_DIR", str(tmp_path / "one"))
    for number in numbers:
        assert made(number) == at_once[number]
