"""CUDA: every sample compiles for a named architecture, without a graphics card; with one, they run."""
from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import caten
from caten import compiler
from caten.api import read
from caten.errors import CatenError, ToolError
from caten.options import Options
from caten.runtime import discover, nvrtc

SAMPLES = sorted((Path(__file__).parents[2] / "samples").glob("*.toml"))


@pytest.fixture(scope="module")
def nvrtc_here() -> None:
    if nvrtc.found() is None:
        pytest.skip("needs NVRTC: pip install 'caten[cuda]'")


@pytest.fixture
def card(nvrtc_here: None) -> None:
    try:
        discover.find("cuda").available()
    except CatenError:
        pytest.skip("needs a GPU")


@pytest.mark.slice(6)
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_a_sample_compiles_for_an_architecture(nvrtc_here: None, sample: Path) -> None:
    built = compiler.build([read(sample)], Options(runtime="cuda", use_cache=False))
    text = built.artifact.read_text()
    assert ".target sm_75" in text
    for op in built.manifest.get("ops", [built.manifest]):
        assert all(f".entry {kernel['function']}(" in text for kernel in op["kernels"])


def test_machine_code_for_one_kind_of_card(nvrtc_here: None) -> None:
    built = compiler.build([read(SAMPLES[0])], Options(runtime="cuda", config=(("ARCH", "sm_90"),), use_cache=False))
    assert built.artifact.read_bytes().startswith(b"\x7fELF")


def test_an_unknown_architecture_is_refused_with_the_words_of_the_compiler(nvrtc_here: None) -> None:
    with pytest.raises(ToolError, match=r"NVRTC: .*gpu-architecture"):
        compiler.build([read(SAMPLES[0])], Options(runtime="cuda", config=(("ARCH", "sm_1"),), use_cache=False))


@pytest.mark.parametrize("n", [0, 1, 1000])
def test_a_product_on_a_card(card: None, n: int) -> None:
    gemm = caten.compile(SAMPLES[0].parent / "gemm.toml", runtime="cuda")
    a, b, c = (np.random.default_rng(k).standard_normal((n, n)).astype(np.float32) for k in range(3))
    wanted = c + a.astype(np.float64) @ b
    gemm(a, b, c)
    assert np.allclose(c, wanted, atol=1e-3)


class Driver:
    """Takes the calls of the driver, and keeps memory where the caller can read it."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.memory: dict[int, Any] = {}
        self.values: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        def take(*arguments: Any) -> int:
            self.calls.append(name)
            return int(getattr(type(self), f"do_{name}", lambda *_: 0)(self, *arguments))
        return take

    def do_cuMemAlloc_v2(self, pointer: Any, size: Any) -> int:
        block = ctypes.create_string_buffer(size.value)
        pointer._obj.value = ctypes.addressof(block)
        self.memory[pointer._obj.value] = block
        return 2 if size.value > 1 << 30 else 0

    def do_cuMemcpyHtoD_v2(self, to: Any, of: Any, size: Any) -> int:
        ctypes.memmove(to.value, of.value, size.value)
        return 0

    def do_cuMemcpyDtoH_v2(self, to: Any, of: Any, size: Any) -> int:
        ctypes.memmove(to.value, of.value, size.value)
        return 0

    def do_cuLaunchKernel(self, kernel: Any, *rest: Any) -> int:
        self.shape, pointers = rest[:6], rest[8]
        self.values = [ctypes.string_at(p, 4) for p in pointers]
        y, n = (ctypes.cast(pointers[k], ctypes.POINTER(ctypes.c_uint64))[0] for k in (2, 3))
        ctypes.memset(y, 0, 4 * n)                                                    # what this kernel computes
        return 0


def test_the_calls_of_the_driver(nvrtc_here: None, monkeypatch: pytest.MonkeyPatch) -> None:
    axpy = caten.compile(SAMPLES[0].parent / "axpy.toml", runtime="cuda")
    fake = Driver()
    monkeypatch.setattr(sys.modules[type(discover.find("cuda")).__module__], "driver", lambda: fake)
    x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    axpy(2.0, x, y)
    assert not y.any()
    assert fake.shape == (4, 1, 1, 256, 1, 1)
    assert fake.values[0] == np.float32(2).tobytes()
    assert fake.calls.count("cuMemAlloc_v2") == fake.calls.count("cuMemFree_v2") == 2
