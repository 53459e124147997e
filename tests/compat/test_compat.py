"""Specs in the manner of the ancestor project, unchanged: names in either case, loops named as in Lisp, scalar tensors, counters as indices. They
compile, are right wherever they stay in bounds, and stop at the call, with the access named, where they would not."""
from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from caten import compiler
from caten.errors import CatenError
from caten.frontend.lambdas import reference_program
from caten.frontend.spec import read_file
from caten.options import Options
from caten.semantics.interpret import run

HERE = Path(__file__).parent


@cache
def compiled(name: str) -> tuple[Any, Callable[..., Any]]:
    """The op of a spec, and its kernel."""
    built = compiler.build([read_file(HERE / f"{name}.toml")], Options(runtime="gcc", config=(("MARCH", "x86-64-v3"),), use_cache=False))
    return built.ops[0], built.runtime.load(built.artifact, built.manifest)


def floats(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


@pytest.mark.parametrize("n", [0, 1, 7, 64, 1000])
def test_arange(n: int) -> None:
    _, arange = compiled("arange")
    out = floats(n)
    arange(out, 0.5, -3.0)
    np.testing.assert_allclose(out, 0.5 * np.arange(n, dtype=np.float32) - 3, rtol=1e-6)


@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (3, 4, 5), (17, 33, 19), (0, 3, 2), (2, 3, 0)])
def test_gemm(m: int, n: int, k: int) -> None:
    _, gemm = compiled("gemm")
    a, b, c = floats(m, k), floats(k, n, seed=1), floats(m, n, seed=2)
    expected = c + a @ b
    gemm(a, b, c)
    np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-5)


def test_swapped_sizes_are_right_for_square_matrices() -> None:
    _, gemm = compiled("gemm_swapped")
    a, b, c = floats(6, 5), floats(5, 5, seed=1), floats(6, 5, seed=2)
    expected = c + a @ b
    gemm(a, b, c)
    np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("n", "k", "access"), [(4, 5, "(aref C mth nth): index 2 (= nth)"), (5, 4, "(aref A mth kth): index 2 (= kth)")])
def test_swapped_sizes_stop_at_the_call(n: int, k: int, access: str) -> None:
    _, gemm = compiled("gemm_swapped")
    c = floats(3, n, seed=2)
    before = c.copy()
    with pytest.raises(CatenError) as stopped:
        gemm(floats(3, k), floats(k, n, seed=1), c)
    assert access in str(stopped.value)
    assert "gemm_swapped.toml:14:" in str(stopped.value)
    np.testing.assert_array_equal(c, before, "the call failed before it wrote anything")


def columns(x: np.ndarray[Any, Any], kernel: tuple[int, int], out: tuple[int, int], stride: tuple[int, int]) -> np.ndarray[Any, Any]:
    """im2col in numpy, by slices."""
    return np.stack([np.stack([x[:, :, p:p + out[0] * stride[0]:stride[0], q:q + out[1] * stride[1]:stride[1]] for q in range(kernel[1])], axis=2)
                     for p in range(kernel[0])], axis=2)


@pytest.mark.parametrize("stride", [(1, 1), (2, 1), (1, 3)])
def test_im2col(stride: tuple[int, int]) -> None:
    _, im2col = compiled("im2col")
    kernel, out = (3, 2), (4, 3)
    x = floats(2, 3, kernel[0] + out[0] * stride[0], kernel[1] + out[1] * stride[1])
    col = np.zeros((2, 3, *kernel, *out), np.float32)
    im2col(x, col, *stride)
    np.testing.assert_array_equal(col, columns(x, kernel, out, stride))


@pytest.mark.parametrize(("name", "height", "stride", "access"), [
    ("im2col", 5, 1, "(aref X batch_n cth H_out_im W_out_im): index 3 (= H_out_im) is outside [0, H)"),
    ("im2col", 9, 0, "the step STRIDE_H of the loop over H_out_im is 0"),
    ("im2col_late", 9, 1, "H_out_col W_out_col): index 6 (= W_out_col) is outside [0, w_out)"),
])
def test_im2col_out_of_bounds(name: str, height: int, stride: int, access: str) -> None:
    _, im2col = compiled(name)
    with pytest.raises(CatenError) as stopped:
        im2col(floats(1, 1, height, 9), np.zeros((1, 1, 3, 3, 4, 1), np.float32), stride, 1)
    assert access in str(stopped.value)
    assert f"{name}.toml:" in str(stopped.value)


@pytest.mark.parametrize(("name", "arguments"), [
    ("arange", {"OUT": floats(5), "A": np.float32(0.25), "B": np.float32(1), "i": 5}),
    ("gemm", {"A": floats(3, 4), "B": floats(4, 2, seed=1), "C": floats(3, 2, seed=2), "M": 3, "N": 2, "K": 4}),
    ("gemm_swapped", {"A": floats(3, 4), "B": floats(4, 4, seed=1), "C": floats(3, 4, seed=2), "M": 3, "N": 4, "K": 4}),
])
def test_lisp_lambdas_are_references(name: str, arguments: dict[str, Any]) -> None:
    op, kernel = compiled(name)
    mine = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in arguments.items()}
    assert run(reference_program(op), mine) == 0
    tensors = [v.copy() if isinstance(v, np.ndarray) else float(v) for k, v in arguments.items() if k not in op.sizes]
    kernel(*tensors)
    out = list(arguments).index("OUT" if name == "arange" else "C")
    np.testing.assert_allclose(tensors[out], list(mine.values())[out], rtol=1e-5, atol=1e-6)
