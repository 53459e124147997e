"""The text of kernels in the languages of devices, as a whole, and what is refused."""
from __future__ import annotations

from pathlib import Path

import pytest

from caten import driver, loading
from caten.core.program import resolve
from caten.core.text import read
from caten.errors import CatenError
from caten.frontend.spec_files import SpecText
from caten.options import Options
from caten.runtime import discover

GOLDENS = Path(__file__).parent / "device_goldens"
SAMPLES = Path(__file__).parents[2] / "samples"


@pytest.mark.parametrize(("sample", "runtime"), [
    ("axpy", "opencl"), ("axpy", "cuda"), ("axpy", "metal"), ("softmax", "metal"), ("transpose", "cuda"), ("gather", "opencl"), ("gather", "metal"),
    ("gemm", "cuda"), ("complex_multiply", "metal"), ("dot", "opencl"), ("sincos", "opencl"),
])
def test_golden(sample: str, runtime: str, update_goldens: bool) -> None:
    path = SAMPLES / f"{sample}.toml"
    options = Options(runtime=runtime)
    text = driver.render(loading.load_programs(SpecText(path.name, path.read_text(), "toml"), options), options)
    text = text.partition("*/\n")[2]                       # without the title
    golden = GOLDENS / f"{sample}.{runtime}.txt"
    if update_goldens:
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text)
    assert text == golden.read_text()


def test_a_device_without_float64_takes_its_own_functions() -> None:
    program = resolve(read("(loop Op (buffer Y f32 (8) (0) inout) (kernel main (setf (aref Y 0) (log10 (aref Y 0)))))")[0])
    assert "(float)log10((double)x)" in discover.find("opencl").render(program)
    assert "double" not in discover.find("opencl").configure((("FLOAT64", "0"),)).render(program)


@pytest.mark.parametrize(("runtime", "word"), [("opencl", "atomic_and(at, "), ("cuda", "atomicAnd(at, "), ("metal", "atomic_fetch_and_explicit(at, ")])
def test_threads_set_elements_of_4_bits_by_atomic_operations(runtime: str, word: str) -> None:
    program = resolve(read("""(loop Op (buffer X i4 (N) (0) in) (buffer Y i4 (N) (0) inout) (size N)
        (kernel main (for i 0 N 1 grid (setf (aref Y i) (aref X i)))))""")[0])
    text = discover.find(runtime).render(program)
    assert word in text
    assert "p[e >> 1] " in text                       # what is only read is read by bytes


@pytest.mark.parametrize(("runtime", "code", "message", "text"), [
    ("opencl", "E613", "this runtime has no vectors",
     "(loop Op (buffer Y f32 (8) (0) inout) (kernel main (setf (vref Y 8 (0)) (splat 8 0.0))))"),
    ("opencl", "E612", "no loops marked 'parallel'", "(loop Op (buffer Y f32 (8) (0) inout) (kernel main (for i 0 8 1 parallel (setf (aref Y i) 0.0))))"),
    ("opencl", "E612", "lies inside of groups of threads",
     "(loop Op (size N) (buffer Y f32 (N) (0) inout) (kernel main (for i 0 N 1 grid (local T f32 (N) scratch) (setf (aref T i) 0.0) (setf (aref Y i) (aref T i)))))"),
    ("metal", "E611", "does not support f64", "(loop Op (buffer Y f64 (8) (0) inout) (kernel main (setf (aref Y 0) 1.0:f64)))"),
    ("metal", "E616", "goes through f64", "(loop Op (buffer Y f32 (8) (0) inout) (kernel main (setf (aref Y 0) (erfc (aref Y 0)))))"),
])
def test_what_a_device_cannot(runtime: str, code: str, message: str, text: str) -> None:
    with pytest.raises(CatenError, match=message) as caught:
        discover.find(runtime).render(resolve(read(text)[0]))
    assert caught.value.diagnostics[0].code == code
