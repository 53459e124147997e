"""CUDA: every sample compiles for a named architecture, without a graphics card; with one, they run."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import caten
from caten import build
from caten.api import read
from caten.errors import CatenError, ToolError
from caten.options import Options
from caten.runtime import discover, nvrtc

SAMPLES = sorted((Path(__file__).parents[2] / "samples").glob("*.toml"))


@pytest.fixture(scope="module")
def compiler() -> None:
    if nvrtc.found() is None:
        pytest.skip("needs NVRTC: pip install 'caten[cuda]'")


@pytest.fixture
def card(compiler: None) -> None:
    try:
        discover.find("cuda").available()
    except CatenError:
        pytest.skip("needs a GPU")


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_a_sample_compiles_for_an_architecture(compiler: None, sample: Path) -> None:
    built = build.build([read(sample)], Options(runtime="cuda", use_cache=False))
    text = built.artifact.read_text()
    assert ".target sm_75" in text
    for op in built.manifest.get("ops", [built.manifest]):
        assert all(f".entry {kernel['function']}(" in text for kernel in op["kernels"])


def test_machine_code_for_one_kind_of_card(compiler: None) -> None:
    built = build.build([read(SAMPLES[0])], Options(runtime="cuda", config=(("ARCH", "sm_90"),), use_cache=False))
    assert built.artifact.read_bytes().startswith(b"\x7fELF")


def test_an_unknown_architecture_is_refused_with_the_words_of_the_compiler(compiler: None) -> None:
    with pytest.raises(ToolError, match=r"NVRTC: .*gpu-architecture"):
        build.build([read(SAMPLES[0])], Options(runtime="cuda", config=(("ARCH", "sm_1"),), use_cache=False))


@pytest.mark.parametrize("n", [0, 1, 1000])
def test_a_product_on_a_card(card: None, n: int) -> None:
    gemm = caten.compile(SAMPLES[0].parent / "gemm.toml", runtime="cuda")
    a, b, c = (np.random.default_rng(k).standard_normal((n, n)).astype(np.float32) for k in range(3))
    wanted = c + a.astype(np.float64) @ b
    gemm(a, b, c)
    assert np.allclose(c, wanted, atol=1e-3)
