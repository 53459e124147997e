"""Compiled conversions of 16-bit floats, over all of them, and arrays of 4 bits: by the machine's instructions and by integer arithmetic."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import caten
from caten.core.numpy_types import numpy_dtype
from caten.mathematics import evaluate

MACHINES = [("clang", "native"), ("clang", "x86-64"), ("gcc", "native"), ("gcc", "x86-64")]


def compiled(tmp_path: Path, runtime: str, signature: str, body: str, opt: int = 2, **config: Any) -> Any:
    spec = tmp_path / "small.lisp"
    spec.write_text(f"(composite Small ({signature}) {body})")
    return caten.compile(spec, runtime=runtime, opt=opt, config=config)


@pytest.mark.slice(2)
@pytest.mark.parametrize(("runtime", "march"), MACHINES)
@pytest.mark.parametrize("opt", [0, 2], ids=["scalar", "vector"])
def test_conversions_of_all_16_bit_floats(runtime: str, march: str, opt: int, tmp_path: Path) -> None:
    signature = "(X{half}[N], Y{bf16}[N], V{float}[M], W{double}[M]) -> (A{float}[N], B{float}[N], C{half}[M], D{bf16}[M], E{half}[M], F{bf16}[M])"
    convert = compiled(tmp_path, runtime, signature, """
        (dotimes (i N) (setf (aref A i) (cast float (aref X i))))
        (dotimes (i N) (setf (aref B i) (cast float (aref Y i))))
        (dotimes (i M) (setf (aref C i) (cast half (aref V i))))
        (dotimes (i M) (setf (aref D i) (cast bfloat16 (aref V i))))
        (dotimes (i M) (setf (aref E i) (cast half (aref W i))))
        (dotimes (i M) (setf (aref F i) (cast bfloat16 (aref W i))))""", opt, MARCH=march)
    every = np.arange(1 << 16, dtype=np.uint16)
    x, y = every.view(np.float16), every.view(numpy_dtype("bf16"))
    v = np.concatenate([(np.arange(1 << 18, dtype=np.uint64) * 16411 % (1 << 32)).astype(np.uint32).view(np.float32), ties()])
    w = np.concatenate([v.astype(np.float64) * (1 + 2.0**-40), np.repeat(ties().astype(np.float64), 2)[:len(v)]])[:len(v)]
    with np.errstate(all="ignore"):
        wanted = [x.astype(np.float32), y.astype(np.float32), *[evaluate.cast(a, of, to) for of, a in (("f32", v), ("f64", w)) for to in ("f16", "bf16")]]
    for got, want in zip(convert(x, y, v, w), wanted, strict=True):
        bits = np.dtype(f"u{want.dtype.itemsize}")
        a, b = got.astype(np.float64), want.astype(np.float64)
        assert ((got.view(bits) == want.view(bits)) | (np.isnan(a) & np.isnan(b))).all()


def ties() -> np.ndarray:
    """Half-way between neighbours, and next to that, in both types."""
    bits = np.arange(0x3C00, 0x3F00, dtype=np.uint32)
    half16, half_b = (bits.astype(np.uint16).view(np.float16).astype(np.float32) * (1 + 2.0**-11)).astype(np.float32), (bits << 16) | 0x8000
    return np.concatenate([half16, *[(half_b.astype(np.int64) + d).astype(np.uint32).view(np.float32) for d in (-1, 0, 1)]])


@pytest.mark.parametrize("runtime", ["clang", "gcc", "numpy"])
@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (4, 32), (7, 67)])
def test_arrays_of_4_bits_in_both_orders(runtime: str, shape: tuple[int, int], tmp_path: Path) -> None:
    both = compiled(tmp_path, runtime, "(X{int4}[M N], Y{uint4}[M N]<1 0>) -> (A{int8}[M N], B{int4}[M N]<1 0>, C{uint4}[M N])", """
        (dotimes (i M) (dotimes (j N)
          (setf (aref A i j) (cast int8 (aref X i j)))
          (setf (aref B i j) (cast int4 (+ (cast int32 (aref X i j)) 3)))
          (setf (aref C i j) (cast uint4 (aref Y i j)))))""")
    rng = np.random.default_rng(0)
    x, y = rng.integers(-8, 8, shape).astype(ml_dtypes.int4), np.asfortranarray(rng.integers(0, 16, shape).astype(np.int8)).astype(ml_dtypes.uint4)
    a, b, c = both(x, y)
    assert np.array_equal(a, x.astype(np.int8))
    assert np.array_equal(b.astype(np.int8), (x.astype(np.int8) + 3 + 8) % 16 - 8)
    assert np.array_equal(c.astype(np.int8), y.astype(np.int8))


def test_threads_share_the_bytes_of_an_array_of_4_bits(tmp_path: Path) -> None:
    rows = compiled(tmp_path, "clang", "(X{int8}[M N]) -> (Q{int4}[M N])",
                    "(dotimes (i M) (dotimes (j N) (setf (aref Q i j) (cast int4 (aref X i j)))))", OMP=1)
    x = np.random.default_rng(0).integers(-8, 8, (4099, 77)).astype(np.int8)                       # rows end within a byte
    for _ in range(5):
        assert np.array_equal(rows(x).astype(np.int8), x)


def test_an_output_of_4_bits_keeps_what_is_not_written(tmp_path: Path) -> None:
    evens = compiled(tmp_path, "clang", "(Q{uint4}[N]) -> (Q)", "(loop (i 0 N 2) (setf (aref Q i) 9))")
    q = np.arange(7).astype(ml_dtypes.uint4)
    assert evens(q) is q
    assert q.astype(int).tolist() == [9, 1, 9, 3, 9, 5, 9]


@pytest.mark.parametrize("opt", [0, 1, 2])
def test_a_sum_of_16_bit_floats_is_rounded_once_at_every_level(opt: int, tmp_path: Path) -> None:
    total = compiled(tmp_path, "clang", "(X{half}[M N], s{half}[M]) -> (s)", "(dotimes (i M) (dotimes (j N) (incf (aref s i) (aref X i j))))", opt)
    x = np.full((2, 5000), 0.25, np.float16)                                 # in float16, 512 + 0.25 is 512
    assert total(x, np.zeros(2, np.float16)).tolist() == [1250, 1250]


@pytest.mark.parametrize("order", ["(dotimes (p K) (dotimes (i M) (incf (aref y i) (aref X i p))))",
                                   "(dotimes (i M) (dotimes (p K) (incf (aref y i) (aref X i p))))"])
@pytest.mark.parametrize("runtime", ["clang", "numpy"])
def test_the_order_of_the_loops_does_not_change_the_rounding(order: str, runtime: str, tmp_path: Path) -> None:
    total = compiled(tmp_path, runtime, "(X{bf16}[M K], y{bf16}[M]) -> (y)", order, opt=0)
    x = np.full((3, 300), 0.5, numpy_dtype("bf16"))
    assert total(x, np.zeros(3, numpy_dtype("bf16"))).astype(float).tolist() == [150] * 3


def test_a_number_that_16_bits_cannot_hold_is_refused(tmp_path: Path) -> None:
    scale = compiled(tmp_path, "numpy", "(a{half}[], X{half}[N]) -> (Y{half}[N])", "(dotimes (i N) (setf (aref Y i) (* a (aref X i))))")
    assert scale(0.5, np.ones(2, np.float16)).tolist() == [0.5, 0.5]
    with pytest.raises(caten.CatenError, match="outside the range of float16"):
        scale(65520, np.ones(2, np.float16))


@pytest.mark.parametrize("opt", [0, 2])
def test_an_accumulator_of_loops_that_fall(opt: int, tmp_path: Path) -> None:
    """A sum that is kept wide is skipped where an inner loop has no iteration: one that falls has one if it begins behind its end."""
    falling = compiled(tmp_path, "gcc", "(x{bf16}[N]) -> (y{bf16}[])", """
        (setf y 1) (dotimes (i 2) (loop (k (- N 1) -1 -1) (incf y (aref x k))))""", opt)
    for n in (0, 1, 3):
        assert float(falling(np.ones(n, numpy_dtype("bf16")))) == 1 + 2 * n
