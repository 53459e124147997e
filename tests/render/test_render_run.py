"""Rendered C, compiled by every host compiler that is here with all warnings as errors, against expected numbers."""
from __future__ import annotations

import math
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import cffi
import numpy as np
import pytest

import caten
from caten.core.numpy_types import numpy_dtype
from caten.core.program import Buffer, Scalar, resolve
from caten.core.scalars import OPERATORS
from caten.core.text import read
from caten.render.c_identifiers import symbol
from caten.render.cstyle import CStyle
from caten.render.entry_points import arguments

STRICT = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-O2", "-ffp-contract=off", "-fwrapv", "-fPIC", "-shared"]
COMPILERS = {
    "gcc": ["gcc", "-march=x86-64-v3", "-Wno-psabi"],
    "zig": [sys.executable, "-m", "ziglang", "cc", "-march=x86_64_v3", "-fno-sanitize=undefined"],
}


class Threads(CStyle):
    settings: ClassVar = {"OMP": True}


def program(text: str) -> Any:
    return resolve(read(text)[0])


def build(text: str, folder: Path, compiler: str, renderer: CStyle, *flags: str) -> Any:
    """A function that calls the program with numpy arrays and numbers, in the order of the C interface."""
    if compiler == "gcc" and shutil.which("gcc") is None:
        pytest.skip("no gcc")
    if compiler == "zig":
        pytest.importorskip("ziglang")
    prog = program(text)
    source = renderer.render(prog)
    (folder / "k.c").write_text(source)
    done = subprocess.run([*COMPILERS[compiler], *STRICT, *flags, "k.c", "-o", "k.so", "-lm"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + source
    ffi = cffi.FFI()
    kinds = {"bool": "uint8_t", "f32": "float", "f64": "double"} | {f"{s}{b}": f"{u}int{b}_t" for s, u in (("i", ""), ("u", "u")) for b in (8, 16, 32, 64)}
    params = [("void *" if isinstance(p, Buffer) else kinds[p.type] if isinstance(p, Scalar) else "int64_t") for p in arguments(prog)]
    name = symbol(prog.name)
    ffi.cdef(f"int32_t {name}({', '.join(params) or 'void'}); const char *{name}_check(int32_t);")
    lib = ffi.dlopen(str(folder / "k.so"))

    def run(*args: Any) -> int:
        return int(getattr(lib, name)(*[ffi.cast("void *", a.ctypes.data) if isinstance(a, np.ndarray) else a for a in args]))
    run.source = source                                                  # type: ignore[attr-defined]
    run.check = lambda n: ffi.string(getattr(lib, f"{name}_check")(n)).decode()   # type: ignore[attr-defined]
    return run


@pytest.fixture(params=list(COMPILERS))
def compiled(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return lambda text, renderer=None, *flags: build(text, tmp_path, request.param, renderer or CStyle(), *flags)


GEMM = """(loop Gemm (buffer A f32 (M K) (0 1) in) (buffer B f32 (K N) (0 1) in) (buffer C f32 (M N) (0 1) inout) (size M) (size K) (size N)
  (doc "C <- A @ B + C */ and ??/ more") (check 1 "M is at most \\"8\\"??") (ensure 1 (<= M 8))
  (kernel main (for i 0 M 1 serial (for j 0 N 1 serial (for p 0 K 1 serial (incf (aref C i j) (* (aref A i p) (aref B p j))))))))"""


def test_a_naive_gemm_and_its_entry_checks(compiled: Any) -> None:
    run, rng = compiled(GEMM), np.random.default_rng(0)
    a, b, c = (rng.random(s, dtype=np.float32) for s in ((5, 7), (7, 3), (5, 3)))
    expected = a @ b + c
    assert run(a, b, c, 5, 7, 3) == 0
    assert np.allclose(c, expected)
    assert run(a, b, c, 9, 7, 3) == 1
    assert run.check(1) == 'M is at most "8"??'
    assert run.check(-1) == "out of memory"


@pytest.mark.parametrize(("dtype", "expr", "expected"), [
    ("i64", "(shl (where (< N 5) -1 100) 55)", [-1 << 55, 100 << 55]),
    ("i64", "(* (where (< N 5) 2000000000 3) 4)", [8_000_000_000, 12]),
    ("i64", "(+ (where (< N 5) (where (< N 0) 7 2147483647) 2147483646) 2)", [2_147_483_649, 2_147_483_648]),
    ("u64", "(+ (where (< N 5) 4294967295:u64 1:u64) 1:u64)", [4_294_967_296, 2]),
])
def test_a_choice_of_constants_has_its_type(dtype: str, expr: str, expected: list[int], compiled: Any) -> None:
    run = compiled(f"(loop W (buffer Y {dtype} (1) (0) out) (size N) (kernel main (setf (aref Y 0) {expr})))")
    y = np.zeros(1, np.int64)
    for n, want in zip((1, 9), expected, strict=True):
        assert run(y, n) == 0
        assert int(y[0]) % (1 << 64) == want % (1 << 64)


TILED = """(loop Tile (buffer A f32 (K 4) (0 1) in) (buffer B f32 (K 16) (0 1) in) (buffer C f32 (4 16) (0 1) inout) (size K)
  (kernel main (local T f32 (4 16) register)
    (for a 0 4 1 unroll (for b 0 2 1 unroll (setf (vref T 8 (a (* b 8))) (splat 8 0.0))))
    (for p 0 K 1 serial (for i 0 4 1 unroll (for j 0 2 1 unroll
      (setf (vref T 8 (i (* j 8))) (fma (splat 8 (aref A p i)) (vref B 8 (p (* j 8))) (vref T 8 (i (* j 8))))))))
    (for c 0 4 1 unroll (for d 0 2 1 unroll (incf (vref C 8 (c (* d 8))) (vref T 8 (c (* d 8))))))))"""


def test_a_register_tile_becomes_named_vectors(compiled: Any) -> None:
    run, rng = compiled(TILED), np.random.default_rng(0)
    assert "ct_f32x8 T_0_0 = {0}, T_0_1 = {0}" in run.source
    assert "T[" not in run.source
    a, b, c = (rng.random(s, dtype=np.float32) for s in ((9, 4), (9, 16), (4, 16)))
    expected = a.T @ b + c
    assert run(a, b, c, 9) == 0
    assert np.allclose(c, expected)


@pytest.mark.parametrize("body", [
    "(for i 0 8 1 unroll (if (< i 7) ((local a i32 () register) (setf (aref a) 1) (incf (aref a) (cast i32 i)) (setf (aref Y i) (aref a)))))",
    """(for i 0 8 1 unroll (if (>= i 7) ((setf (aref Z 0) 5))
         ((local a i32 () register) (setf (aref a) (cast i32 i)) (incf (aref a) 1) (setf (aref Y i) (aref a)))))""",
    """(for i 0 4 1 unroll (for j 0 2 1 unroll (if (< i 3)
         ((let a i32 (cast i32 (+ (+ (* 2 i) j) 1))) (setf (aref Y (+ (* 2 i) j)) a) (if (< j 1) ((let b i32 (+ a 1)) (setf (aref Y 6) b)))))))""",
    """(for i 0 7 1 unroll (if (> N 100) ((setf (aref Z 0) 6))
         ((if (< i 7) ((local a i32 () register) (setf (aref a) (cast i32 i)) (incf (aref a) 1) (setf (aref Y i) (aref a)))))))""",
], ids=["an arm", "the other arm", "copies of copies", "an arm in another"])
def test_what_an_arm_declares_is_of_its_copy_alone(body: str, compiled: Any) -> None:
    """Where a condition is decided in a copy of an unrolled loop, its arm stands in the place of it, with locals of its own."""
    run = compiled(f"(loop U (buffer Y i32 (8) (0) inout) (buffer Z i32 (1) (0) inout) (size N) (kernel main {body}))")
    y, z = np.full(8, 9, np.int32), np.zeros(1, np.int32)
    assert run(y, z, 0) == 0
    assert y.tolist() == [1, 2, 3, 4, 5, 6, 6 if "let b" in body else 7, 9]
    assert int(z[0]) == (5 if ">= i 7" in body else 0)
    assert "if (true)" not in run.source
    assert "if (1)" not in run.source


def test_vectors_with_masked_tail_gather_and_transposed_store(compiled: Any) -> None:
    run = compiled("""(loop V (buffer X f32 (N) (0) in) (buffer Y f32 (N) (0) out) (buffer Z f32 (8 N) (0 1) out) (size N)
      (kernel main (for i 0 N 8 serial
        (setf (vref Y 8 (i) -1 (< (ramp 8 i 1) (splat 8 N)))
          (where (< (vref X 8 (i) -1 (< (ramp 8 i 1) (splat 8 N))) (splat 8 0.5)) (splat 8 1.0) (vref X 8 (i) -1 (< (ramp 8 i 1) (splat 8 N))))))
        (for j 0 N 1 serial (setf (vref Z 8 (0 j) 0) (splat 8 (aref X j))))))""")
    x = np.random.default_rng(0).random(13, dtype=np.float32)
    y, z = np.full(13, 9, np.float32), np.zeros((8, 13), np.float32)
    assert run(x, y, z, 13) == 0
    assert (y == np.where(x < 0.5, np.float32(1), x)).all()
    assert (z == x).all()


@pytest.mark.slice(3)
@pytest.mark.parametrize(("dtype", "lanes"), [("f32", 64), ("f64", 32), ("i16", 64), ("u8", 64), ("i64", 16), ("f32", 4)])
@pytest.mark.parametrize("flags", [(), ("-march=native",)], ids=["AVX2", "native"])
def test_masks_of_vectors_longer_than_a_register(dtype: str, lanes: int, flags: tuple[str, ...], compiled: Any) -> None:
    mask = f"(< (ramp {lanes} 0 1) (splat {lanes} N))"
    run = compiled(f"""(loop P (buffer X {dtype} (N) (0) in) (buffer Y {dtype} (N) (0) out) (size N)
        (kernel main (setf (vref Y {lanes} (0) -1 {mask}) (vref X {lanes} (0) -1 {mask}))))""", None, *flags)
    x = np.arange(1, lanes + 1).astype(numpy_dtype(dtype))
    for n in range(lanes + 1):
        y = np.full(lanes, 99, x.dtype)
        assert run(x, y, n) == 0
        assert y.tolist() == [*x[:n].tolist(), *[99] * (lanes - n)]


@pytest.mark.slice(3)
@pytest.mark.parametrize(("dtype", "lanes"), [("f32", 8), ("f64", 4), ("i32", 8), ("i64", 4), ("u8", 32), ("u8", 16), ("u8", 8), ("u8", 4), ("i16", 16), ("i16", 8), ("i16", 4), ("i16", 2)])
@pytest.mark.parametrize("flags", [(), ("-march=native",)], ids=["AVX2", "native"])
def test_masks_of_any_lanes(dtype: str, lanes: int, flags: tuple[str, ...], compiled: Any) -> None:
    """The first lanes, which are a tail, and others; nothing is read or written elsewhere."""
    mask = f"(cast bool (vref C {lanes} (0)))"
    run = compiled(f"""(loop P (buffer C {dtype} ({lanes}) (0) in) (buffer X {dtype} (N) (0) in) (buffer Y {dtype} (N) (0) out) (size N)
        (kernel main (setf (vref Y {lanes} (0) -1 {mask}) (vref X {lanes} (0) -1 {mask}))))""", None, *flags)
    x, draw = np.arange(1, lanes + 1).astype(numpy_dtype(dtype)), np.random.default_rng(0)
    for c in (*[np.arange(lanes) < n for n in range(lanes + 1)], *(draw.random((40, lanes)) < 0.5)):
        y = np.full(lanes, 99, x.dtype)
        assert run(c.astype(x.dtype), x, y, lanes) == 0
        assert y.tolist() == np.where(c, x, 99).tolist()


def test_folds_shuffles_and_bool_vectors(compiled: Any) -> None:
    run = compiled("""(loop F (buffer X f32 (8) (0) in) (buffer B bool (8) (0) in) (buffer S f32 (3) (0) out) (buffer R f32 (8) (0) out)
      (buffer Q bool (8) (0) out)
      (kernel main
        (setf (aref S 0) (fold add (vref X 8 (0)))) (setf (aref S 1) (fold max (vref X 8 (0)))) (setf (aref S 2) (fold min (vref X 8 (0))))
        (setf (vref R 8 (0)) (where (and (vref B 8 (0)) (< (splat 8 0.0) (vref X 8 (0)))) (shuffle (vref X 8 (0)) 7 6 5 4 3 2 1 0) (cast f32 (vref B 8 (0)))))
        (setf (vref Q 8 (0)) (or (not (vref B 8 (0))) (isnan (vref X 8 (0)))))))""")
    x = np.array([1, -2, 3, -4, 5, -6, 7, -8], np.float32)
    b = np.array([1, 2, 0, 255, 1, 0, 0, 1], np.uint8)
    s, r, q = np.zeros(3, np.float32), np.zeros(8, np.float32), np.full(8, 7, np.uint8)
    assert run(x, b, s, r, q) == 0
    assert s.tolist() == [-4, 7, -8]
    assert r.tolist() == np.where((b != 0) & (x > 0), x[::-1], b != 0).tolist()
    assert q.tolist() == (b == 0).astype(int).tolist()


@pytest.mark.parametrize(("fn", "combined"), [("or", np.logical_or), ("and", np.logical_and), ("xor", np.logical_xor)])
def test_conditions_are_accumulated_in_vectors(fn: str, combined: np.ufunc, compiled: Any) -> None:
    """Into a vector in registers, into one in memory, and all lanes into one place; of bytes and of wider comparisons."""
    run = compiled(f"""(loop F (buffer X f32 (4 8) (0 1) in) (buffer B bool (8) (0) inout) (buffer S bool (2) (0) inout)
      (kernel main
        (local t bool (8) register) (setf (vref t 8 (0)) (vref B 8 (0)))
        (for i 0 4 1 serial (incf (vref t 8 (0)) (< (splat 8 0.0) (vref X 8 (i 0))) {fn}) (incf (vref B 8 (0)) (isnan (vref X 8 (i 0))) {fn}))
        (incf (aref S 0) (fold {fn} (vref t 8 (0))) {fn}) (incf (aref S 1) (fold {fn} (< (splat 8 1.0) (vref X 8 (0 0)))) {fn})))""")
    rng = np.random.default_rng(0)
    for _ in range(30):
        x, b, s = rng.choice(np.array([-1, 1, 2, np.nan], np.float32), (4, 8), p=(0.2, 0.5, 0.2, 0.1)), rng.integers(0, 2, 8, np.uint8), rng.integers(0, 2, 2, np.uint8)
        t = combined.reduce(np.concatenate([b[None] != 0, x > 0]))
        wanted = [*combined.reduce(np.concatenate([b[None] != 0, np.isnan(x)])), combined(s[0], combined.reduce(t)), combined(s[1], combined.reduce(x[0] > 1))]
        assert run(x, b, s) == 0
        assert [*b, *s] == wanted


TAKE = """(loop Take (buffer I i32 (N) (0) in) (buffer X f64 (M) (0) in) (buffer Y f64 (N) (0) out) (size N) (size M)
  (check 2 "index") (kernel main (for n 0 N 1 parallel (let k i64 (cast i64 (aref I n))) (if (or (< k 0) (>= k M)) ((fail 2)))
    (for again 0 4000 1 serial (setf (aref Y n) (aref X k))))))"""


@pytest.mark.parametrize(("compiler", "renderer", "flags"), [
    ("gcc", CStyle(), []), ("zig", CStyle(), []), ("gcc", Threads(), ["-fopenmp", "-Wl,-z,nodelete"])])
def test_gather_with_a_failing_check(compiler: str, renderer: CStyle, flags: list[str], tmp_path: Path) -> None:
    run = build(TAKE, tmp_path, compiler, renderer, *flags)
    i, x, y = np.array([2, 0, 1] * 20, np.int32), np.array([1.0, 2.0, 3.0]), np.zeros(60)
    assert run(i, x, y, 60, 3) == 0
    assert y[:3].tolist() == [3, 1, 2]
    i[40] = 3
    assert run(i, x, y, 60, 3) == 2


def test_locals_on_the_stack_and_in_scratch(compiled: Any) -> None:
    run = compiled("""(loop L (buffer X f32 (M N) (0 1) in) (buffer Y f32 (M N) (0 1) out) (size M) (size N)
      (local G f32 (M) global)
      (kernel sums (for i 0 M 1 serial (local s f32 () register) (setf (aref s) 0.0) (for j 0 N 1 serial (incf (aref s) (aref X i j)))
        (setf (aref G i) (aref s))))
      (kernel scale (local T f32 (N) scratch) (local U f32 (4) stack)
        (for i_2 0 M 1 serial (for k 0 4 1 serial (setf (aref U k) (cast f32 k)))
          (for j_2 0 N 1 serial (setf (aref T j_2) (/ (aref X i_2 j_2) (aref G i_2))))
          (for j_3 (- N 1) -1 -1 serial (setf (aref Y i_2 j_3) (+ (aref T j_3) (aref U (mod j_3 4))))))))""")
    x = np.random.default_rng(0).random((3, 6), dtype=np.float32) + 1
    y = np.zeros_like(x)
    assert run(x, y, 3, 6) == 0
    assert np.allclose(y, x / x.sum(1, keepdims=True) + np.arange(6) % 4)
    assert "float s = 0.0f;" in run.source


def test_a_block_of_many_megabytes(compiled: Any) -> None:
    run = compiled("""(loop L (buffer Y f32 (N) (0) inout) (size N) (kernel main (local T f32 (N 1024) scratch)
      (for i 0 N 1 serial (for j 0 1024 1 serial (setf (aref T i j) (cast f32 j))))
      (for i 0 N 1 serial (for j 0 1024 1 serial (incf (aref Y i) (aref T i j))))))""")
    for n in (0, 1, 1023, 1024, 5000, 0):                          # from which 4 MB and more ask for huge pages
        y = np.zeros(n, np.float32)
        assert run(y, n) == 0
        assert (y == 523776).all()


def test_an_impossible_scratch_size_is_out_of_memory(compiled: Any) -> None:
    run = compiled("""(loop Big (buffer Y f32 () () inout) (size N)
      (kernel main (local T f32 (N N N) scratch) (setf (aref T 0 0 0) (aref Y)) (setf (aref Y) (aref T 0 0 0))))""")
    y = np.array(3, np.float32)
    assert run(y, 1 << 40) == -1
    assert run(y, 1) == 0


SCALARS = {
    # (type, expression over x y): pairs of operands -> results
    ("i32", "(floordiv x y)"): {(7, 2): 3, (-7, 2): -4, (7, -2): -4, (-7, -2): 3, (5, 0): 0, (-(2**31), -1): -(2**31)},
    ("i32", "(mod x y)"): {(7, 3): 1, (-7, 3): 2, (7, -3): -2, (-7, -3): -1, (5, 0): 0, (-(2**31), -1): 0},
    ("i32", "(truncdiv x y)"): {(7, 2): 3, (-7, 2): -3, (5, 0): 0, (-(2**31), -1): -(2**31)},
    ("i32", "(truncmod x y)"): {(-7, 3): -1, (7, -3): 1, (5, 0): 0, (-(2**31), -1): 0},
    ("i64", "(floordiv x 8)"): {(-1, 0): -1, (17, 0): 2},
    ("i64", "(mod x 8)"): {(-1, 0): 7, (17, 0): 1},
    ("i64", "(+ 2000000000 2000000000)"): {(0, 0): 4000000000},
    ("i8", "(+ x y)"): {(127, 1): -128, (-128, -1): 127},
    ("i8", "(shr (+ x y) 1:i8)"): {(127, 1): -64},
    ("i8", "(neg x)"): {(-128, 0): -128},
    ("i8", "(abs x)"): {(-128, 0): -128, (-3, 0): 3},
    ("u8", "(- x y)"): {(0, 1): 255},
    ("u8", "(not x)"): {(1, 0): 254},
    ("u16", "(* x y)"): {(65535, 65535): 1},
    ("i32", "(shl x y)"): {(1, 31): -(2**31), (1, 32): 0, (1, -1): 0, (3, 2): 12},
    ("i32", "(shr x y)"): {(-8, 1): -4, (-8, 40): -1, (8, 40): 0, (-8, -1): -1},
    ("u32", "(shr x y)"): {(2**32 - 1, 31): 1, (2**32 - 1, 32): 0},
    ("f32", "(max x y)"): {(1.0, np.nan): np.nan, (np.nan, 1.0): np.nan, (1.0, 2.0): 2.0},
    ("f32", "(min x y)"): {(1.0, np.nan): np.nan, (np.nan, 1.0): np.nan, (1.0, 2.0): 1.0},
    ("f32", "(fmax x y)"): {(1.0, np.nan): 1.0, (np.nan, 1.0): 1.0},
    ("f64", "(floordiv x y)"): {(-7.0, 2.0): -4.0, (7.0, 0.0): np.inf, (-1.0, np.inf): -1.0},
    ("f64", "(mod x y)"): {(-7.0, 3.0): 2.0, (7.0, -3.0): -2.0, (1.0, 0.0): np.nan},
    ("f32", "(round x)"): {(0.5, 0): 0.0, (1.5, 0): 2.0, (-2.5, 0): -2.0},
    ("f32", "(cast f32 (cast i32 x))"): {(np.nan, 0): 0.0, (1e20, 0): 2.0**31, (-1e20, 0): -(2.0**31), (-2.7, 0): -2.0},
    ("f32", "(cast f32 (cast u8 x))"): {(300.0, 0): 255.0, (-3.0, 0): 0.0},
    ("f64", "(cast f64 (cast i64 x))"): {(1e300, 0): 2.0**63},
    ("i32", "(cast i32 (cast i8 x))"): {(200, 0): -56},
    ("i32", "(cast i32 (cast bool x))"): {(200, 0): 1, (0, 0): 0},
    ("f32", "(bitcast f32 (+ (bitcast i32 x) 1:i32))"): {(1.0, 0): np.nextafter(np.float32(1), np.float32(2))},
    ("f32", "(+ (* x 0.1) 16777217.0)"): {(0.0, 0): 16777216.0},
    ("f32", "(where (< x y) inf nan)"): {(0.0, 1.0): np.inf, (1.0, 0.0): np.nan},
    ("i32", "(where (and (< x y) (or (= x 1:i32) (not (< y 3:i32)))) 1:i32 -1:i32)"): {(0, 2): -1, (1, 2): 1, (0, 5): 1},
    ("i32", "(- x (- y (neg x)))"): {(5, 2): -2},
    ("f32", "(relu x)"): {(-1.0, 0): 0.0, (np.nan, 0): np.nan, (2.0, 0): 2.0},
    ("f32", "(sign x)"): {(-3.0, 0): -1.0, (np.nan, 0): np.nan, (0.0, 0): 0.0},
    ("f32", "(clip x y 1.0)"): {(5.0, 0.0): 1.0, (-5.0, 0.5): 0.5, (0.0, 2.0): 1.0},
    ("f32", "(abs x)"): {(-1.5, 0): 1.5, (-np.inf, 0): np.inf},
    ("f32", "(exp x)"): {(0.0, 0): 1.0, (np.inf, 0): np.inf, (-np.inf, 0): 0.0, (np.nan, 0): np.nan, (200.0, 0): np.inf, (-200.0, 0): 0.0},
    ("f32", "(log x)"): {(1.0, 0): 0.0, (0.0, 0): -np.inf, (-1.0, 0): np.nan, (np.inf, 0): np.inf, (np.nan, 0): np.nan},
    ("f32", "(cast f32 (isinf x))"): {(np.inf, 0): 1.0, (np.nan, 0): 0.0, (-np.inf, 0): 1.0},
    ("i32", "(xor (and x 12:i32) (or y 1:i32))"): {(15, 2): 15},
}


def on_vectors(expr: str) -> str:
    """The same expression on eight lanes: operands become vectors, constants splats."""
    words = []
    for word in expr.replace("(", " ( ").replace(")", " ) ").split():
        constant = word[0].isdigit() or (word[0] == "-" and word[1:2].isdigit()) or word in ("inf", "nan")
        words.append(f"(vref {word.upper()} 8 (0))" if word in ("x", "y") else f"(splat 8 {word})" if constant else word)
    return " ".join(words)


def _programs(dtype: str, expr: str) -> str:
    return f"""(loop S (buffer X {dtype} (8) (0) in) (buffer Y {dtype} (8) (0) in) (buffer R {dtype} (8) (0) out) (buffer V {dtype} (8) (0) out)
      (kernel main (for i 0 8 1 serial (let x {dtype} (aref X i)) (let y {dtype} (aref Y i)) (setf (aref R i) {expr}))
        (setf (vref V 8 (0)) {on_vectors(expr)})))"""


@pytest.mark.parametrize("compiler", list(COMPILERS))
def test_operators_mean_exactly_what_the_table_says(compiler: str, tmp_path: Path) -> None:
    """Scalars and vectors, one library with a program per row."""
    names = {"i": "int", "u": "uint", "f": "float"}
    programs = []
    for n, (dtype, expr) in enumerate(SCALARS):
        programs.append(program(_programs(dtype, expr).replace("(loop S", f"(loop S{n}")))
    source = CStyle().render(*programs)
    (tmp_path / "k.c").write_text(source)
    if compiler == "gcc" and shutil.which("gcc") is None:
        pytest.skip("no gcc")
    done = subprocess.run([*COMPILERS[compiler], *STRICT, "k.c", "-o", "k.so", "-lm"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + source
    ffi = cffi.FFI()
    ffi.cdef("".join(f"int32_t ct_s{n}(void *, void *, void *, void *);" for n in range(len(SCALARS))))
    lib = ffi.dlopen(str(tmp_path / "k.so"))
    for n, ((dtype, expr), rows) in enumerate(SCALARS.items()):
        numpy_type = names[dtype[0]] + dtype[1:]
        x, y = (np.array([k[side] for k in rows] + [1] * (8 - len(rows)), numpy_type) for side in (0, 1))
        r, v = np.zeros(8, numpy_type), np.zeros(8, numpy_type)
        assert getattr(lib, f"ct_s{n}")(*[ffi.cast("void *", a.ctypes.data) for a in (x, y, r, v)]) == 0
        expected = np.array(list(rows.values()), numpy_type)
        assert np.array_equal(r[:len(rows)], expected, equal_nan=dtype[0] == "f"), (expr, r, expected)
        assert np.array_equal(v, r, equal_nan=dtype[0] == "f"), ("vector", expr, v, r)


@pytest.mark.parametrize(("march", "fused"), [("x86-64-v3", True), ("x86-64", False)])
def test_vector_functions_stay_within_the_bound_of_their_row(march: str, fused: bool, tmp_path: Path) -> None:
    """Against float64 of the C library; a machine without fma gets a quarter of an ulp more."""
    if shutil.which("gcc") is None:
        pytest.skip("no gcc")
    functions = {"exp": math.exp, "log": math.log, "tanh": math.tanh, "erf": math.erf, "sin": math.sin, "cos": math.cos}
    renderer = CStyle()
    renderer.fused = fused
    text = "(loop {0} (buffer X f32 (N) (0) in) (buffer Y f32 (N) (0) out) (size N) (kernel main (for i 0 N 8 serial (setf (vref Y 8 (i)) ({0} (vref X 8 (i)))))))"
    (tmp_path / "k.c").write_text(renderer.render(*[program(text.format(fn)) for fn in functions]))
    subprocess.run(["gcc", f"-march={march}", "-Wno-psabi", *STRICT, "-fno-math-errno", "k.c", "-o", "k.so", "-lm"], cwd=tmp_path, check=True)
    ffi = cffi.FFI()
    ffi.cdef("".join(f"int32_t ct_{fn}(void *, void *, int64_t);" for fn in functions))
    lib = ffi.dlopen(str(tmp_path / "k.so"))
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.uniform(-100, 88, 4000), rng.uniform(-3, 3, 4000), rng.normal(0, 1e-4, 800), rng.normal(0, 1e6, 800)]).astype(np.float32)
    for fn, reference in functions.items():
        x = np.abs(points) + np.float32(1e-40) if fn == "log" else points
        x = x[:8800] if fn in ("exp", "tanh", "erf") else x
        y = np.zeros_like(x)
        assert getattr(lib, f"ct_{fn}")(ffi.cast("void *", x.ctypes.data), ffi.cast("void *", y.ctypes.data), len(x)) == 0
        exact = np.array([reference(v) for v in x.tolist()])
        ulp = np.abs(y - exact) / np.spacing(np.abs(exact).astype(np.float32))
        assert ulp.max() <= OPERATORS[fn].ulp + (0 if fused else 0.25), (fn, x[ulp.argmax()], ulp.max())


@pytest.mark.parametrize(("dtype", "lanes", "march", "register"), [
    ("f32", 16, "x86-64-v4", "zmm"), ("f64", 8, "x86-64-v4", "zmm"), ("f32", 8, "x86-64-v3", "ymm"), ("f64", 4, "x86-64-v3", "ymm"),
    ("f32", 4, "x86-64-v3", "xmm"), ("f64", 2, "x86-64-v3", "xmm")])
def test_gcc_multiplies_and_adds_whole_vectors(dtype: str, lanes: int, march: str, register: str, tmp_path: Path) -> None:
    if shutil.which("gcc") is None or platform.machine() != "x86_64":
        pytest.skip("no gcc for x86")
    at = f"(vref X {lanes} ((* i {lanes})))"
    text = CStyle().render(program(f"(loop P (buffer X {dtype} (N) (0) inout) (size N) (kernel main (for i 0 N 1 serial (setf {at} (fma {at} {at} {at})))))"))
    (tmp_path / "k.c").write_text(text)
    subprocess.run(["gcc", f"-march={march}", *STRICT, "-S", "k.c", "-o", "k.s"], cwd=tmp_path, check=True)
    made = [line for line in (tmp_path / "k.s").read_text().splitlines() if "\tvfm" in line]
    assert len(made) == 1
    assert f"132p{dtype.replace('f32', 's').replace('f64', 'd')}" in made[0].replace("213", "132").replace("231", "132")
    assert f"%{register}" in made[0]


@pytest.mark.parametrize("march", ["x86_64_v3", "native"])
def test_the_edges_of_padded_lines_of_every_length(march: str) -> None:
    spec = Path(__file__).parents[2] / "benchmarks" / "specs" / "im2col3x3.toml"
    columns = caten.compile(spec, config={"MARCH": march})
    rng = np.random.default_rng(1)
    for width in range(1, 70):
        x = rng.integers(-9, 9, (2, 1, 3, width)).astype("f4")
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        got = np.full((2, 1, 3, 3, 3, width), np.nan, "f4")
        columns(x, out=got)
        for kh, kw in np.ndindex(3, 3):
            np.testing.assert_array_equal(got[:, :, kh, kw], padded[:, :, kh:kh + 3, kw:kw + width])


def test_a_loop_of_nothing_but_a_declaration_has_braces(compiled: Any) -> None:
    """What a step leaves behind that moves the use of a scalar into another loop."""
    run = compiled("""(loop P (buffer X f32 (N) (0) in) (buffer Y f32 (N) (0) out) (size N)
        (kernel main (for i 0 N 1 serial (let part f32 (aref X i))) (for i 0 N 1 serial (let part f32 (aref X i)) (setf (aref Y i) part))))""", None, "-Wno-unused-variable")
    x, y = np.arange(5, dtype=np.float32), np.zeros(5, np.float32)
    assert run(x, y, 5) == 0
    assert y.tolist() == x.tolist()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")
@pytest.mark.parametrize("opt", [0, 1, 2])
@pytest.mark.parametrize("count", [2, 3, 5])
def test_loads_under_a_condition_get_their_own_lanes_from_gcc(count: int, opt: int) -> None:
    spec = f"""(composite P ((X{{float}}[M N {count}], Z{{float}}[M N {count}]) -> (Y{{float}}[M N {count}], V{{float}}[M N {count}]))
      (dotimes (i M) (dotimes (j N) (dotimes (k {count})
        (setf (aref Y i j k) (where (< 1 (aref X i j k)) (aref X (- M i 1) j k) 7))
        (setf (aref V i j k) (where (< 1 (aref X i j k)) 7 (aref Z i j (- {count - 1} k))))))))"""
    x, z = np.random.default_rng(count).integers(-3, 4, (2, 19, 35, count)).astype(np.float32)
    y, v = caten.compile(spec, runtime="gcc", opt=opt)(x, z)
    np.testing.assert_array_equal(y, np.where(x > 1, x[::-1], 7))
    np.testing.assert_array_equal(v, np.where(x > 1, 7, z[..., ::-1]))
