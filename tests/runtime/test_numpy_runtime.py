"""The interpreter as a runtime: it behaves as a compiled library does."""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from caten.core.program import resolve
from caten.core.text import read
from caten.errors import CatenError
from caten.runtime import discover

GEMM = """(loop Gemm (size M) (size K) (size N) (buffer A f32 (M K) (1 0) in) (buffer B f32 (K N) (0 1) in) (buffer C f32 (M N) (0 1) inout)
  (check 1 "M is even") (ensure 1 (= (mod M 2) 0))
  (kernel Gemm (for i 0 M 1 parallel (for j 0 N 1 serial (for p 0 K 1 serial (incf (aref C i j) (* (aref A i p) (aref B p j))))))))"""
AXPY = """(loop Axpy (size N) (scalar a f32) (buffer X f32 (N) (0) in) (buffer Y f32 (N) (0) out)
  (kernel Axpy (for i 0 N 1 serial (setf (aref Y i) (* a (aref X i))))))"""
LAST = """(loop Last (size N) (buffer X i8 (N) (0) in) (buffer Y i8 () () out)
  (kernel Last (for i 0 N 1 parallel (setf (aref Y) (aref X i)))))"""


@pytest.fixture
def compiled(tmp_path: Path, describe: Callable[..., dict[str, Any]]) -> Callable[..., Any]:
    def make(*texts: str, config: tuple[tuple[str, str], ...] = ()) -> Any:
        runtime = discover.find("numpy").configure(config)
        runtime.available()
        out = tmp_path / "library.json"
        record = runtime.compile(runtime.render(*[resolve(read(t)[0]) for t in texts]), out, "so")
        assert record.commands == ()
        return runtime.load(out, describe(*texts))
    return make


def test_arrays_in_their_declared_order_scalars_and_new_outputs(compiled: Callable[..., Any]) -> None:
    ops = compiled(GEMM, AXPY)
    rng = np.random.default_rng(0)
    a = np.asfortranarray(rng.integers(-3, 4, (4, 3)).astype(np.float32))
    b = rng.integers(-3, 4, (3, 5)).astype(np.float32)
    c = np.ones((4, 5), np.float32)
    assert ops.Gemm(a, b, c) is c
    assert np.array_equal(c, 1 + a @ b)
    assert list(ops.Axpy(2.0, np.float32([1, 2]))) == [2, 4]
    assert ops.Axpy(2.0, np.zeros(0, np.float32)).shape == (0,)


def test_a_failed_check_is_told(compiled: Callable[..., Any]) -> None:
    with pytest.raises(CatenError, match="E711: Gemm: M is even"):
        compiled(GEMM)(np.zeros((3, 2), np.float32, "F"), np.zeros((2, 2), np.float32), np.zeros((3, 2), np.float32))


@pytest.mark.parametrize("n", [1 << 20, 1 << 40])
def test_a_local_array_for_which_there_is_no_memory(n: int, compiled: Callable[..., Any]) -> None:
    large = compiled("""(loop Large (size N) (buffer Y f32 () () out) (kernel Large (local t f32 (N N) scratch) (setf (aref Y) 1.0)))""")
    with pytest.raises(CatenError, match="E712"):
        large(N=n)


def test_parallel_loops_backwards(compiled: Callable[..., Any]) -> None:
    x = np.int8([1, 2, 3])
    assert compiled(LAST)(x) == 3
    assert compiled(LAST, config=(("ORDER", "reverse"),))(x) == 1


def test_strided_arrays(compiled: Callable[..., Any]) -> None:
    rows = compiled("""(loop Rows (size M) (size N) (scalar X_stride0 i64) (buffer X f32 (M N) (0 1) in X_stride0 1) (buffer Y f32 (M) (0) out)
      (kernel Rows (for i 0 M 1 serial (setf (aref Y i) (aref X i 0)))))""")
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    assert list(rows(x[::2, 1:4])) == [1, 13]


def test_complex_and_bool_scalars(compiled: Callable[..., Any]) -> None:
    scale = compiled("""(loop Scale (scalar a c64) (scalar t bool) (buffer X c64 (2) (0) in) (buffer Y c64 (2) (0) out)
      (kernel Scale (for i 0 2 1 serial (setf (aref Y i) (where t (* a (aref X i)) a)))))""")
    assert list(scale(1j, True, np.complex64([1, 2j]))) == [1j, -2]
    assert list(scale(1j, False, np.complex64([1, 2j]))) == [1j, 1j]


def test_any_byte_but_0_is_true_and_is_stored_as_1(compiled: Callable[..., Any]) -> None:
    copy = compiled("""(loop Copy (buffer X bool (4) (0) in) (buffer Y bool (4) (0) out)
      (kernel Copy (for i 0 4 1 serial (setf (aref Y i) (aref X i)))))""")
    assert copy(np.array([0, 1, 2, 255], np.uint8).view(bool)).view(np.uint8).tolist() == [0, 1, 1, 1]


def test_a_file_that_is_something_else_is_refused(tmp_path: Path, describe: Callable[..., dict[str, Any]]) -> None:
    other = tmp_path / "library.json"
    for text in ("", "[]", "{}"):
        other.write_text(text)
        with pytest.raises(CatenError, match=r"E669: .*library\.json is not what the numpy runtime writes"):
            discover.find("numpy").load(other, describe(AXPY))


def test_a_spec_through_the_whole_pipeline() -> None:
    from caten.compiler import build
    from caten.frontend.spec import SpecText
    from caten.options import Options
    spec = """[composite]
name = "Scale"
inputs = ["X{float}[N]<0>()"]
outputs = ["Y{float}[N]<0>()"]
[implementation]
code = "(dotimes (i N) (setf (aref Y i) (* 2 (tanh (aref X i)))))"
"""
    x = np.linspace(-2, 2, 9).astype(np.float32)
    for opt in (0, 2):
        built = build([SpecText("scale.toml", spec, "toml")], Options(runtime="numpy", opt=opt, use_cache=False))
        y = built.runtime.load(built.artifact, built.manifest)(x)
        assert np.allclose(y, 2 * np.tanh(x), rtol=1e-6)
