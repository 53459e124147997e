"""Conditions on an index are masks of small numbers: on its remainder, and on which side of a bound it is."""
from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import cffi
import numpy as np
import pytest

import caten
from caten.core.program import resolve
from caten.core.text import read
from caten.render.cstyle import CStyle

CASES = [("=", 3, 1), ("<", 5, 2), ("/=", 60, 7), (">=", 200, 150), ("=", 8, 3), ("=", 1, 0)]
COMPARED = {"=": np.equal, "<": np.less, "/=": np.not_equal, ">=": np.greater_equal}


@pytest.mark.parametrize("dtype", ["int16", "uint8", "float64"])
@pytest.mark.parametrize("runtime", ["clang", "gcc"])
def test_every_comparison_at_every_length(runtime: str, dtype: str) -> None:
    outputs = ", ".join(f'"y{n}{{{dtype}}}[M N]"' for n in range(len(CASES)))
    body = "".join(f"(setf (aref y{n} i j) (aref x i j)) (if ({fn} (mod j {by}) {rest}) (incf (aref y{n} i j) 5))" for n, (fn, by, rest) in enumerate(CASES))
    spec = f'[composite]\nname = "Periodic"\ninputs = ["x{{{dtype}}}[M N]"]\noutputs = [{outputs}]\n[implementation]\ncode = "(dotimes (i M) (dotimes (j N) {body}))"\n'
    operator = caten.compile(spec, runtime=runtime)
    assert "ct_mod_positive_i" in operator.source
    assert "ct_mod_positive_i64" not in operator.source
    for n in (1, 7, 64, 131, 500):
        x = np.random.default_rng(n).integers(0, 100, (3, n)).astype(dtype)
        for (fn, by, rest), found in zip(CASES, operator(x), strict=True):
            np.testing.assert_array_equal(found, np.where(COMPARED[fn](np.arange(n) % by, rest), x + 5, x), err_msg=f"{fn} {by} {rest}, {n}")


@pytest.mark.parametrize("dtype", ["f64", "f32", "i16", "u8"])
@pytest.mark.parametrize("compiler", ["gcc", "zig"])
def test_ranges_that_count_up_and_down_are_compared_as_numbers(compiler: str, dtype: str, tmp_path: Path) -> None:
    if compiler == "gcc" and shutil.which("gcc") is None:
        pytest.skip("no gcc")
    lanes, cases = 8, [(fn, step, turned) for fn in ("<", "<=", ">", ">=") for step in (1, -1) for turned in (False, True)]
    buffers, body = "", ""
    for n, (fn, step, turned) in enumerate(cases):
        sides = [f"(ramp {lanes} B {step})", f"(splat {lanes} E)"]
        buffers += f"(buffer y{n} {dtype} ({lanes}) (0) out)"
        body += f"(setf (vref y{n} {lanes} (0) -1 ({fn} {' '.join(sides[::-1] if turned else sides)})) (vref x {lanes} (0)))"
    source = CStyle().render(resolve(read(f"(loop p (buffer x {dtype} ({lanes}) (0) in) {buffers} (size B) (size E) (kernel main {body}))")[0]))
    assert "ct_below_" in source or "ct_until_" in source
    (tmp_path / "k.c").write_text(source)
    command = ["gcc", "-Wno-psabi", "-march=native"] if compiler == "gcc" else [sys.executable, "-m", "ziglang", "cc", "-march=native"]
    done = subprocess.run([*command, "-std=c11", "-O1", "-fPIC", "-shared", "k.c", "-o", "k.so"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    ffi, kind = cffi.FFI(), np.dtype({"f64": "f8", "f32": "f4", "i16": "i2", "u8": "u1"}[dtype])
    ffi.cdef(f"int32_t ct_p({'void *, ' * (1 + len(cases))}int64_t, int64_t);")
    lib, x = ffi.dlopen(str(tmp_path / "k.so")), np.arange(1, lanes + 1).astype(kind)
    for begin in range(lanes + 3):
        for end in range(lanes + 3):
            results = [np.zeros(lanes, kind) for _ in cases]
            assert lib.ct_p(*[ffi.cast("void *", a.ctypes.data) for a in (x, *results)], begin, end) == 0
            for (fn, step, turned), found in zip(cases, results, strict=True):
                sides = begin + step * np.arange(lanes), np.full(lanes, end)
                holds = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}[fn](*(sides[::-1] if turned else sides))
                np.testing.assert_array_equal(found, np.where(holds, x, 0), err_msg=f"{fn} {step} {turned}, {begin} {end}")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
@pytest.mark.parametrize("runtime", ["clang", "gcc"])
def test_small_integers_are_compared_with_a_large_one_in_their_own_width(runtime: str, dtype: str) -> None:
    outputs = ", ".join(f'"y{n}{{float}}[N]"' for n in range(8))
    code = "".join(f"    y{n} = np.where({left} {fn} {right}, z, 0)\n" for n, (fn, left, right) in enumerate(
        (fn, *sides) for fn in ("<", "<=", ">", ">=") for sides in (("x", "e"), ("e", "x"))))
    spec = (f'[composite]\nname = "Compared"\ninputs = ["x{{{dtype}}}[N]", "z{{float}}[N]", "e{{int64}}[]"]\noutputs = [{outputs}]\n'
            f'[implementation]\nlang = "python"\ncode = """\n{code}    return {", ".join(f"y{n}" for n in range(8))}\n"""\n')
    operator = caten.compile(spec, runtime=runtime)
    assert "ct_min_i64(ct_max_i64(e, " in operator.source, "the nearest number"
    row = np.iinfo(dtype)
    x = np.array([row.min, row.min + 1, -1 if row.min else 1, 0, 5, row.max - 1, row.max] * 3, dtype)
    z = np.arange(1, len(x) + 1, dtype=np.float32)
    for end in (-(1 << 63), -(1 << 40), row.min - 1, row.min, -1, 0, 5, row.max - 1, row.max, row.max + 1, 1 << 40, (1 << 63) - 1):
        wide = [int(v) for v in x]
        for found, (left, fn) in zip(operator(x, z, end), [(side, fn) for fn in ("<", "<=", ">", ">=") for side in (0, 1)], strict=True):
            pairs = [(v, end) if left == 0 else (end, v) for v in wide]
            holds = [{"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[fn] for a, b in pairs]
            np.testing.assert_array_equal(found, np.where(holds, z, 0), err_msg=f"{fn} {left} {end}")
