"""OpenCL: the samples on a device, as it is here: PoCL's, which is the CPU."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import caten
from caten.errors import CatenError
from caten.runtime import discover

AXPY = '[composite]\nname = "Axpy"\ninputs = ["a{float}[]()", "x{float}[N]<0>()", "y{float}[N]<0>()"]\noutputs = ["y"]\n' \
       '[implementation]\ncode = "(dotimes (i N) (incf (aref y i) (* a (aref x i))))"\n'
BOUND = "(schedule (split i 64 pad) (bind io grid) (bind ii block))"


@pytest.fixture(scope="module")
def run() -> Callable[..., Any]:
    """Compiles a spec for OpenCL; skips where there is no device."""
    try:
        discover.find("opencl").available()
    except CatenError as problem:
        pytest.skip(f"needs an OpenCL device: {problem.diagnostics[0].message}")
    return lambda spec, **options: caten.compile(spec, runtime="opencl", **options)


@pytest.mark.parametrize("n", [0, 1, 64, 1000])
def test_a_loop_in_groups_of_threads(run: Callable[..., Any], n: int) -> None:
    axpy = run(AXPY, schedule=BOUND)
    x, y = np.arange(n, dtype=np.float32), np.ones(n, np.float32)
    axpy(2.0, x, y)
    assert np.array_equal(y, 2 * x + 1)
    assert axpy.manifest["kernels"] == [{"name": "axpy", "launch": ["(floordiv (+ N 63) 64)"], "function": "ct_axpy_1_axpy",
                                         "groups": "(floordiv (+ N 63) 64)", "threads": [64], "arguments": ["a", "x", "y", "N"]}]


def test_strided_arrays_are_packed_for_the_device(run: Callable[..., Any]) -> None:
    axpy = run(AXPY.replace("[N]<0>", "[N N]<0 1>").replace("(dotimes (i N) (incf (aref y i) (* a (aref x i))))",
                                                            "(dotimes (i N) (dotimes (j N) (incf (aref y i j) (* a (aref x i j)))))"), strided=["x", "y"])
    x, y = np.arange(48, dtype=np.float32).reshape(6, 8)[::2, :3], np.ones((8, 3), np.float32)[::-3]
    axpy(2.0, x, y)
    assert np.array_equal(y, 2 * x + 1)


def test_checks_at_entry_and_in_a_kernel_end_the_call(run: Callable[..., Any]) -> None:
    gather = run('[composite]\nname = "Pick"\ninputs = ["x{float}[N]<0>()", "I{i64}[K]<0>()"]\noutputs = ["y{float}[K]<0>()"]\n'
                 '[implementation]\ncode = "(dotimes (k K) (setf (aref y k) (aref x (aref I k))))"\n')
    x = np.arange(5, dtype=np.float32)
    assert np.array_equal(gather(x, np.array([4, 0], np.int64)), [4, 0])
    with pytest.raises(CatenError, match="is outside"):
        gather(x, np.array([0, 5, 1], np.int64))
