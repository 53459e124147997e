"""Kernels in WebAssembly, under wasmtime: the same results and the same errors as on this machine, without a C library."""
from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import caten
from caten.errors import CatenError, OutOfMemory
from caten.runtime import discover, toolchain
from caten.runtime.protocol import Host, Unavailable

GEMM = """(composite Gemm ((A{float}[M K] B{float}[K N] C{float}[M N]) -> (C))
  (dotimes (i M) (dotimes (j N) (dotimes (p K) (incf (aref C i j) (* (aref A i p) (aref B p j)))))))"""
SCALE = "(composite Scale ((a{float}[] x{float}[N](where N > 0)) -> (y{float}[N])) (dotimes (i N) (setf (aref y i) (* a (aref x i)))))"

Wasm = Callable[..., Any]


@pytest.fixture
def wasm() -> Wasm:
    """`wasm(spec, SIMD=1)`: the spec, compiled for WebAssembly."""
    pytest.importorskip("wasmtime", reason="needs wasmtime")
    if toolchain.embedded() is None:
        pytest.skip("needs ziglang")
    return lambda spec, **config: caten.compile(spec, runtime="wasm", config=config)


def of(fn: str, dtype: str = "float64") -> str:
    return f"(composite F ((x{{{dtype}}}[N]) -> (y{{{dtype}}}[N])) (dotimes (i N) (setf (aref y i) ({fn} (aref x i)))))"


@pytest.mark.parametrize("simd", [0, 1])
def test_results_are_those_of_this_machine(simd: int, wasm: Wasm) -> None:
    rng = np.random.default_rng(0)
    a, b = [rng.standard_normal(shape).astype(np.float32) for shape in ((37, 19), (19, 23))]
    c = wasm(GEMM, SIMD=simd)(a, b, np.zeros((37, 23), np.float32))
    assert np.abs(c - a.astype(np.float64) @ b).max() < 1e-5


@pytest.mark.parametrize("fn", ["sin", "cos"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_sine_and_cosine_of_any_angle(fn: str, dtype: str, wasm: Wasm) -> None:
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.uniform(-9, 9, 500), 10.0 ** rng.uniform(-300, 300, 500), [0.0, -0.0, np.inf, np.nan]])
    with np.errstate(all="ignore"):
        x = x.astype(dtype)
    expected = np.array([getattr(math, fn)(v) if math.isfinite(v) else math.nan for v in x])
    got = wasm(of(fn, dtype))(x)
    near = np.abs(got - expected) <= 1.5 * np.spacing(np.abs(expected).astype(dtype))
    assert np.all(near | (np.isnan(got) & np.isnan(expected)))
    assert np.array_equal(np.signbit(got[1000:1002]), np.signbit(expected[1000:1002]))


def test_the_double_that_is_closest_to_a_multiple_of_a_quarter_turn(wasm: Wasm) -> None:
    """J.-M. Muller, Elementary Functions, 3rd edition, table 11.1: its cosine is -4.68716592425462761112e-19."""
    assert wasm(of("cos"))(np.array([6381956970095103 * 2.0**797])).tolist() == [-4.687165924254628e-19]


def test_remainders_are_exact(wasm: Wasm) -> None:
    rng = np.random.default_rng(2)
    x, y = [np.concatenate([rng.choice([-1, 1], 400) * 10.0 ** rng.uniform(-310, 300, 400), [1.0, np.inf, 0.0, 5.0]]) for _ in range(2)]
    y[400:] = 0.0, 1.0, -3.0, np.inf
    with np.errstate(all="ignore"):
        expected = np.fmod(x, y)
    got = wasm("(composite F ((x{double}[N] y{double}[N]) -> (z{double}[N])) (dotimes (i N) (setf (aref z i) (truncmod (aref x i) (aref y i)))))")(x, y)
    assert np.array_equal(got, expected, equal_nan=True)


def test_a_condition_that_fails_is_the_same_error(wasm: Wasm) -> None:
    with pytest.raises(CatenError, match=r"E711: Scale: .*N"):
        wasm(SCALE)(2.0, np.zeros(0, np.float32))


@pytest.mark.nightly
def test_an_array_that_32_bits_cannot_address_is_named(wasm: Wasm) -> None:
    scale = wasm(SCALE)
    large = np.zeros(1 << 30, np.float32)                  # of pages that nothing has touched
    with pytest.raises(OutOfMemory, match="E712: Scale: x does not fit"):
        scale(2.0, large, out=large)
    assert scale(2.0, np.float32([1])).tolist() == [2]


def test_a_trap_is_an_error_and_the_next_call_starts_anew(wasm: Wasm, tmp_path: Path) -> None:
    runtime = discover.find("wasm")
    text = '__attribute__((visibility("default"))) int ct_f_ws(int x, int y, long long n, int s) { if (n == 2) __builtin_trap(); return 0; }'
    runtime.compile(text, tmp_path / "f.wasm", "so")
    f = runtime.load(tmp_path / "f.wasm", wasm(of("exp", "float")).manifest)
    with pytest.raises(CatenError, match="E715: F: the kernel crashed"):
        f(np.zeros(2, np.float32))
    assert f(np.zeros(3, np.float32)).shape == (3,)


def test_threads_wait_and_a_fork_goes_on(wasm: Wasm) -> None:
    scale = wasm(SCALE)
    found: list[float] = []
    threads = [threading.Thread(target=lambda n=n: found.append(float(scale(n, np.ones(9, np.float32)).sum()))) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [9 * n for n in range(8)]
    child = os.fork()
    if child == 0:
        os._exit(0 if scale(3, np.float32([1])).tolist() == [3] else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_there_is_no_function_that_allocates(wasm: Wasm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from caten.cli.boundary import guarded
    monkeypatch.chdir(tmp_path)
    assert guarded([GEMM, "--runtime", "wasm", "-o", "gemm.wasm"]) == 0
    header = (tmp_path / "gemm.wasm.h").read_text()
    assert "ct_gemm_ws(" in header
    assert "ct_gemm_ws_size(" in header
    assert "ct_gemm(" not in header
    loaded = caten.load("gemm.wasm")
    assert "call" not in loaded.manifest["symbols"]
    assert loaded(*np.ones((3, 2, 2), np.float32)).tolist() == [[3, 3], [3, 3]]
    assert guarded([GEMM, "--runtime", "wasm", "--emit=python"]) == 2


def test_what_is_missing_is_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "wasmtime" else find(name, *rest))
    if toolchain.embedded() is not None:
        with pytest.raises(Unavailable) as info:
            discover.find("wasm").available()
        assert info.value.diagnostics[0].hint == "pip install 'caten[wasm]'"
    monkeypatch.setattr(toolchain, "embedded", lambda: None)
    with pytest.raises(Unavailable) as info:
        discover.find("wasm").configure((), Host(cc="gcc")).available()
    assert info.value.diagnostics[0].hint == "pip install 'caten[toolchain]'"
