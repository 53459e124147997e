"""Vectors converted to types of another size, and divided by constants."""
from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
from pathlib import Path

import cffi
import numpy as np
import pytest

import caten
from caten.core.dtypes import DTYPES
from caten.core.program import resolve
from caten.core.text import read
from caten.render.conversion_steps import conversion_steps, gnu_conversion
from caten.render.cstyle import CStyle

INTEGERS = [f"{sign}{bits}" for sign in "iu" for bits in (8, 16, 32, 64)]
PAIRS = [(of, to) for of in [*INTEGERS, "f32", "f64"] for to in [*INTEGERS, "f32", "f64"] if of != to]
COMPILERS = {"gcc": ["gcc", "-Wno-psabi"], "zig": [sys.executable, "-m", "ziglang", "cc", "-fno-sanitize=undefined"]}
FLAGS = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-fwrapv", "-fPIC", "-shared"]
MARCHES = ["x86-64-v2", "x86-64-v3", "native"]


def test_no_step_is_more_than_a_doubling() -> None:
    for of, to in PAIRS:
        if DTYPES[of].kind != "float" or DTYPES[to].kind == "float":           # floats to integers: conversions.saturated
            widths = [DTYPES[t].bits for t in (of, *conversion_steps(of, to))]
            assert widths[-1] == DTYPES[to].bits
            assert all(a in (b, 2 * b) or b == 2 * a for a, b in itertools.pairwise(widths))


@pytest.mark.slice(8)
@pytest.mark.parametrize("march", MARCHES)
@pytest.mark.parametrize("lanes", [4, 8, 16, 32])
@pytest.mark.parametrize("compiler", list(COMPILERS))
def test_every_type_from_every_type(compiler: str, lanes: int, march: str, tmp_path: Path) -> None:
    """As NumPy has it: by value, modulo 2^bits between integers, and saturated from floats."""
    if compiler == "gcc" and shutil.which("gcc") is None:
        pytest.skip("no gcc")
    buffers = "".join(f"(buffer X{k} {of} ({lanes}) (0) in) (buffer Y{k} {to} ({lanes}) (0) out)" for k, (of, to) in enumerate(PAIRS))
    body = "".join(f"(setf (vref Y{k} {lanes} (0)) (cast {to} (vref X{k} {lanes} (0))))" for k, (of, to) in enumerate(PAIRS))
    source = CStyle().render(resolve(read(f"(loop P {buffers} (kernel main {body}))")[0]))
    (tmp_path / "k.c").write_text(source)
    named = march.replace("-", "_") if compiler == "zig" else march
    done = subprocess.run([*COMPILERS[compiler], *FLAGS, f"-march={named}", "k.c", "-o", "k.so", "-lm"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    ffi = cffi.FFI()
    ffi.cdef(f"int32_t ct_p({', '.join(['void *'] * (2 * len(PAIRS)))});")
    lib, draw = ffi.dlopen(str(tmp_path / "k.so")), np.random.default_rng(lanes)
    arrays = []
    for of, to in PAIRS:
        kind = np.dtype(DTYPES[of].numpy)
        if DTYPES[of].kind == "float":
            x = draw.normal(0, 10.0 ** draw.integers(0, 12, lanes), lanes).astype(kind)
        else:
            x = draw.integers(DTYPES[of].least, DTYPES[of].greatest, lanes, kind, endpoint=True)
        arrays.append((x, np.zeros(lanes, DTYPES[to].numpy)))
    lib.ct_p(*[ffi.cast("void *", a.ctypes.data) for pair in arrays for a in pair])
    for (of, to), (x, y) in zip(PAIRS, arrays, strict=True):
        if DTYPES[of].kind == "float" and DTYPES[to].kind != "float":
            least, most = DTYPES[to].least, DTYPES[to].greatest
            want = np.array([min(max(int(v), least), most) for v in x.tolist()], y.dtype)
        else:
            want = x.astype(y.dtype)
        np.testing.assert_array_equal(y, want, err_msg=f"{of} to {to}")


def test_gcc_widens_and_narrows_by_one_instruction() -> None:
    assert gnu_conversion("i8", "f32", 16) == gnu_conversion("i8", "i32", 16)
    assert gnu_conversion("i4", "f32", 16) == gnu_conversion("i8", "i32", 16)
    assert gnu_conversion("i8", "i32", 4) is None
    assert gnu_conversion("f32", "f64", 8) is None


@pytest.mark.slice(10)
@pytest.mark.parametrize("runtime", ["clang", "gcc"])
@pytest.mark.parametrize("march", MARCHES)
def test_division_by_constants(runtime: str, march: str) -> None:
    """As NumPy's: the quotient rounds down, and the remainder has the sign of the divisor."""
    divisors = {t: (1, 7, 64, np.iinfo(t).max) for t in (DTYPES[i].numpy for i in INTEGERS)}
    results = [f"x_{t} {sign} {c}" for t, numbers in divisors.items() for c in numbers for sign in ("//", "%")]
    kinds = [t for t, numbers in divisors.items() for _ in range(2 * len(numbers))]
    spec = f'''
[composite]
name = "Divisions"
inputs = [{", ".join(f'"x_{t}{{{t}}}[N]"' for t in divisors)}]
outputs = [{", ".join(f'"y{k}{{{t}}}[N]"' for k, t in enumerate(kinds))}]

[implementation]
lang = "python"
code = """return {", ".join(results)}"""
'''
    divide = caten.compile(spec, runtime=runtime, opt=2, config={"MARCH": march})
    assert "ct_floordiv_positive_" in divide.source
    assert "vector_size" in divide.source
    draw = np.random.default_rng(0)
    given = {t: draw.integers(np.iinfo(t).min, np.iinfo(t).max, 300, t, endpoint=True) for t in divisors}
    for t, x in given.items():
        x[:4] = np.iinfo(t).min, np.iinfo(t).max, 0, 1
    for text, found in zip(results, divide(*given.values()), strict=True):
        np.testing.assert_array_equal(found, eval(text, {f"x_{t}": x for t, x in given.items()}), err_msg=text)


@pytest.mark.slice(5)
@pytest.mark.parametrize("runtime", ["clang", "gcc"])
@pytest.mark.parametrize("march", MARCHES)
def test_comparisons_and_shuffles_of_vectors_wider_than_a_register(runtime: str, march: str) -> None:
    """Rows read forwards and backwards, every second element, and sums in a wider type, at lengths that no vector divides."""
    spec = '''
[composite]
name = "Wide"
inputs = ["x{int8}[M N]", "f{float}[M N]"]
outputs = ["both{int8}[...]", "halves{float}[...]", "most{int32}[M]"]

[implementation]
lang = "python"
code = """
both = np.concatenate([x, x[:, ::-1]], axis=1)
halves = np.maximum(f[:, :N - N % 2:2], f[:, 1::2])
most = np.abs(x.astype(np.int32) * 3 - 7).max(axis=1, initial=0)
return both, halves, most
"""
'''
    operator = caten.compile(spec, runtime=runtime, config={"MARCH": march})
    draw = np.random.default_rng(0)
    for n in (1, 2, 15, 31, 64, 65, 127, 200):
        x, f = draw.integers(-128, 127, (3, n), np.int8, endpoint=True), draw.random((3, n), np.float32)
        both, halves, most = operator(x, f)
        np.testing.assert_array_equal(both, np.concatenate([x, x[:, ::-1]], axis=1))
        np.testing.assert_array_equal(halves, np.maximum(f[:, :n - n % 2:2], f[:, 1::2]))
        np.testing.assert_array_equal(most, np.abs(x.astype(np.int32) * 3 - 7).max(axis=1, initial=0))
