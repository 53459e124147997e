"""OpenCL: the samples on a device, as it is here: PoCL's, which is the CPU."""
from __future__ import annotations

import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import caten
from caten.errors import CatenError, OutOfMemory, ToolError
from caten.runtime import device_calls, discover

SAMPLES = sorted((Path(__file__).parents[2] / "samples").glob("*.toml"))
PROCESSES, BY_DAY = 20, 2        # processes that share the samples; PoCL takes seconds to compile one

AXPY = '[composite]\nname = "Axpy"\ninputs = ["a{float}[]()", "x{float}[N]<0>()", "y{float}[N]<0>()"]\noutputs = ["y"]\n' \
       '[implementation]\ncode = "(dotimes (i N) (incf (aref y i) (* a (aref x i))))"\n'
BOUND = "(schedule (split i 64 pad) (bind io grid) (bind ii block))"


def in_a_child(test: Callable[..., None]) -> Callable[..., None]:
    """The test in a process of its own: once OpenCL has started in a process, the children that other tests fork cannot use it."""
    @wraps(test)
    def forked(*given: Any, **named: Any) -> None:
        reader, writer = os.pipe()
        if os.fork() == 0:
            try:
                test(*given, **named)
            except BaseException:
                os.write(writer, traceback.format_exc()[-60_000:].encode())
            finally:
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as said:
            assert said.read() == ""
        os.wait()
    return forked


@pytest.fixture(scope="module")
def run() -> Callable[..., Any]:
    """Compiles a spec for OpenCL; skips where there is no device."""
    try:
        discover.find("opencl").available()
    except CatenError as problem:
        pytest.skip(f"needs an OpenCL device: {problem.diagnostics[0].message}")
    return lambda spec, **options: caten.compile(spec, runtime="opencl", **options)


@pytest.mark.parametrize("n", [0, 1, 64, 1000])
@in_a_child
def test_a_loop_in_groups_of_threads(run: Callable[..., Any], n: int) -> None:
    axpy = run(AXPY, schedule=BOUND)
    x, y = np.arange(n, dtype=np.float32), np.ones(n, np.float32)
    axpy(2.0, x, y)
    assert np.array_equal(y, 2 * x + 1)
    assert axpy.manifest["kernels"] == [{"name": "axpy", "launch": ["(floordiv (+ N 63) 64)"], "function": "ct_axpy_1_axpy",
                                         "groups": "(floordiv (+ N 63) 64)", "threads": [64], "arguments": ["a", "x", "y", "N"]}]


@in_a_child
def test_strided_arrays_are_packed_for_the_device(run: Callable[..., Any]) -> None:
    axpy = run(AXPY.replace("[N]<0>", "[N N]<0 1>").replace("(dotimes (i N) (incf (aref y i) (* a (aref x i))))",
                                                            "(dotimes (i N) (dotimes (j N) (incf (aref y i j) (* a (aref x i j)))))"), strided=["x", "y"])
    x, y = np.arange(48, dtype=np.float32).reshape(6, 8)[::2, :3], np.ones((8, 3), np.float32)[::-3]
    axpy(2.0, x, y)
    assert np.array_equal(y, 2 * x + 1)


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (67, 131)])
@in_a_child
def test_threads_share_the_bytes_of_arrays_of_4_bits(run: Callable[..., Any], shape: tuple[int, int], tmp_path: Path) -> None:
    spec = tmp_path / "halves.lisp"
    spec.write_text("""(composite Halves ((x{int8}[M N], Q{int4}[M N], u{uint4}[]) -> (Q, R{uint4}[N M]))
        (dotimes (i M) (dotimes (j N)
          (when (/= (mod (aref x i j) 3) 0) (setf (aref Q i j) (cast int4 (+ (cast int8 (aref Q i j)) (aref x i j)))))
          (setf (aref R j i) (cast uint4 (+ (aref x i j) (cast int8 u)))))))""")
    rng = np.random.default_rng(0)
    x, q = (rng.integers(-8, 8, shape).astype(np.int8) for _ in range(2))
    halves = q.astype(ml_dtypes.int4)
    _, r = run(spec)(x, halves, 9)
    assert np.array_equal(halves.astype(np.int8), np.where(x % 3 != 0, (q + x + 8) % 16 - 8, q))
    assert np.array_equal(r.astype(np.int8), ((x + 9) % 16).T)


def test_a_device_without_memory_is_out_of_memory() -> None:
    def allocate(size: int) -> None:
        raise MemoryError
    device: Any = SimpleNamespace(allocate=allocate, release=lambda buffers: None)
    op = {"op": "Fill", "arguments": [], "ensures": [], "kernels": [{"arguments": [device_calls.STATUS]}]}
    with pytest.raises(OutOfMemory, match="E712: Fill: the device has too little memory"):
        device_calls.entry(op, None, device)()


def test_a_buffer_on_a_device_ends_with_a_whole_word() -> None:
    sizes: list[int] = []
    call = device_calls._Call({"kernels": []}, SimpleNamespace(allocate=sizes.append), {})       # type: ignore[arg-type]   # no other method is used
    for size in (0, 4, 5):
        call.new("Q", size)
    assert sizes == [4, 4, 8]


@in_a_child
def test_checks_at_entry_and_in_a_kernel_end_the_call(run: Callable[..., Any]) -> None:
    gather = run('[composite]\nname = "Pick"\ninputs = ["x{float}[N]<0>()", "I{i64}[K]<0>()"]\noutputs = ["y{float}[K]<0>()"]\n'
                 '[implementation]\ncode = "(dotimes (k K) (setf (aref y k) (aref x (aref I k))))"\n')
    x = np.arange(5, dtype=np.float32)
    assert np.array_equal(gather(x, np.array([4, 0], np.int64)), [4, 0])
    with pytest.raises(CatenError, match="is outside"):
        gather(x, np.array([0, 5, 1], np.int64))


@pytest.mark.slice(2)
@pytest.mark.parametrize("part", [pytest.param(n, marks=[pytest.mark.nightly] if n >= BY_DAY else []) for n in range(PROCESSES)])
def test_samples_pass_their_own_tests(run: Callable[..., Any], part: int) -> None:
    """Several in a process, which takes a second to start OpenCL."""
    done = subprocess.run([sys.executable, "-m", "caten", "test", *map(str, SAMPLES[part::PROCESSES]), "--runtime", "opencl"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@in_a_child
def test_the_same_call_gives_the_same_bits(run: Callable[..., Any]) -> None:
    dot = run(SAMPLES[0].with_name("dot.toml"))
    x, y = (np.random.default_rng(k).standard_normal(100_000).astype(np.float32) for k in range(2))
    results = {dot(x, y, np.zeros((), np.float32)).tobytes() for _ in range(3)}
    assert len(results) == 1
    assert abs(np.frombuffer(results.pop(), np.float32)[0] - x.astype(np.float64) @ y) < 0.05


def test_what_the_compiler_refuses_is_said_in_its_words(run: Callable[..., Any], tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"OpenCL: [^~]*error: ") as caught:
        discover.find("opencl").compile("__kernel void k(__global float *x) { x = 1.0f +; }", tmp_path / "k.cl", "so")
    assert caught.value.diagnostics[0].code == "E620"


def test_a_device_that_is_not_there(run: Callable[..., Any], tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="no OpenCL device called 'Enigma'") as caught:
        discover.find("opencl").configure((("DEVICE", "Enigma"),)).compile("__kernel void k() {}", tmp_path / "k.cl", "so")
    assert caught.value.diagnostics[0].code == "E610"


@in_a_child
def test_a_process_that_was_forked_later_is_told_so(run: Callable[..., Any]) -> None:
    axpy = run(AXPY)
    x = np.ones(3, np.float32)
    axpy(1.0, x, x.copy())
    reader, writer = os.pipe()
    if os.fork() == 0:
        try:
            run(AXPY)(1.0, x, x.copy())
        except CatenError as problem:
            os.write(writer, problem.diagnostics[0].message.encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.wait()
    assert os.read(reader, 200) == b"OpenCL was started before this process was forked"
    os.close(reader)


@pytest.mark.slice(3)
@pytest.mark.parametrize(("shape", "axis"), [((130, 300), None), ((3, 5, 7000), None), ((0, 4), None), ((1300, 300), 0), ((1, 300), 0), ((0, 3), 0), ((5, 1300, 7), 1)])
@in_a_child
def test_long_sums_are_shared_by_groups(run: Callable[..., Any], shape: tuple[int, ...], axis: int | None) -> None:
    x = np.random.default_rng(0).standard_normal(shape)
    total = run("ops:sum", opt=2)
    np.testing.assert_allclose(total(x, axis=axis), x.sum(axis=axis), rtol=1e-12, atol=1e-12)
    greatest = run("ops:max", opt=2)
    if x.size:
        np.testing.assert_array_equal(greatest(x, axis=axis), x.max(axis=axis))
