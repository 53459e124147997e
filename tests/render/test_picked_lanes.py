"""Lanes at regular distances, and comparisons, of vectors wider than a register."""
from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import cffi
import numpy as np
import pytest

from caten.core.program import resolve
from caten.core.text import read
from caten.render.cstyle import CStyle

COMPILERS = {"gcc": ["gcc", "-Wno-psabi", "-march=native"], "zig": [sys.executable, "-m", "ziglang", "cc", "-fno-sanitize=undefined", "-march=native"]}
FLAGS = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-fPIC", "-shared"]
TYPES = {"f32": np.float32, "f64": np.float64, "u8": np.uint8, "i16": np.int16}
# lanes read, lanes picked, the first, the step
PICKS = [(32, 16, 0, 2), (32, 16, 1, 2), (64, 16, 2, 3), (64, 16, 1, 4), (64, 16, 63, -4), (16, 8, 15, -2), (128, 64, 1, 2), (128, 32, 3, 4), (64, 8, 5, 7), (16, 16, 15, -1)]


def called(compiler: str, text: str, arrays: list[np.ndarray], folder: Path) -> None:
    """Compile a program and call it with arrays."""
    if compiler == "gcc" and shutil.which("gcc") is None:
        pytest.skip("no gcc")
    (folder / "k.c").write_text(CStyle().render(resolve(read(text)[0])))
    done = subprocess.run([*COMPILERS[compiler], *FLAGS, "k.c", "-o", "k.so"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    ffi = cffi.FFI()
    ffi.cdef(f"int32_t ct_p({', '.join(['void *'] * len(arrays))});")
    assert ffi.dlopen(str(folder / "k.so")).ct_p(*[ffi.cast("void *", a.ctypes.data) for a in arrays]) == 0


@pytest.mark.parametrize("compiler", list(COMPILERS))
def test_comparisons(compiler: str, tmp_path: Path) -> None:
    lanes, cases = 128, [(t, fn) for t in TYPES for fn in ("<", "<=", "=")]
    buffers = "".join(f"(buffer A{k} {t} ({lanes}) (0) in) (buffer B{k} {t} ({lanes}) (0) in) (buffer Y{k} {t} ({lanes}) (0) out)" for k, (t, _) in enumerate(cases))
    body = "".join(f"(setf (vref Y{k} {lanes} (0)) (where ({fn} (vref A{k} {lanes} (0)) (vref B{k} {lanes} (0))) (vref A{k} {lanes} (0)) (vref B{k} {lanes} (0))))"
                   for k, (_, fn) in enumerate(cases))
    draw = np.random.default_rng(0)
    given = [(*[draw.integers(0, 5, lanes).astype(TYPES[t]) for _ in range(2)], np.zeros(lanes, TYPES[t])) for t, _ in cases]
    called(compiler, f"(loop p {buffers} (kernel main {body}))", [a for arrays in given for a in arrays], tmp_path)
    for (t, fn), (a, b, y) in zip(cases, given, strict=True):
        np.testing.assert_array_equal(y, np.where({"<": a < b, "<=": a <= b, "=": a == b}[fn], a, b), err_msg=f"{fn} {t}")


@pytest.mark.parametrize("compiler", list(COMPILERS))
def test_every_second_and_other_distances(compiler: str, tmp_path: Path) -> None:
    cases = [(dtype, *pick) for dtype in TYPES for pick in PICKS]
    buffers = "".join(f"(buffer X{k} {t} ({lanes}) (0) in) (buffer Y{k} {t} ({count}) (0) out)" for k, (t, lanes, count, _, _) in enumerate(cases))
    body = "".join(f"(setf (vref Y{k} {count} (0)) (shuffle (vref X{k} {lanes} (0)) {' '.join(str(first + step * n) for n in range(count))}))"
                   for k, (_, lanes, count, first, step) in enumerate(cases))
    arrays = [(np.arange(lanes).astype(TYPES[t]), np.zeros(count, TYPES[t])) for t, lanes, count, _, _ in cases]
    called(compiler, f"(loop p {buffers} (kernel main {body}))", [a for pair in arrays for a in pair], tmp_path)
    for case, (x, y) in zip(cases, arrays, strict=True):
        np.testing.assert_array_equal(y, x[[case[3] + case[4] * n for n in range(case[2])]], err_msg=str(case))
