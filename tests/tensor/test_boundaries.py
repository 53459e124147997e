"""Why one kernel ends and another one begins."""
from __future__ import annotations

import pytest
from test_fusion import PROGRAMS, SUM, raised

from caten import driver, loading
from caten.frontend.spec_files import SpecText
from caten.options import Options
from caten.tensor.blocks_of_rows import boundaries
from caten.tensor.boundaries import line_of, told
from caten.tensor.fusion import boundaries_of, kernels_of
from caten.tensor.kernels import names_of, reads_of_kernel
from caten.tensor.values import TensorProgram

T = "(local t f32 (N M) scratch) (for i 0 N 1 serial (for j 0 M 1 serial (setf (aref t i j) (exp (aref C j i)))))"
CASES = {
    "transposed": (
        "(local t f32 (M N) scratch) (for i 0 M 1 serial (for j 0 N 1 serial (setf (aref t i j) (exp (aref C i j)))))"
        " (for a 0 M 1 serial (for b 0 N 1 serial (setf (aref C a b)"
        " (+ (aref t a b) (where (and (< b M) (< a N)) (aref t b a) 0.0)))))",
        ["v0 | v1: v1 reads axis 0 of v0 at its own axis 1 (transposed)"]),
    "two readers": (
        f"{T} (for a 0 M 1 serial (for b 0 N 1 serial (setf (aref C a b) (+ (aref t b a) (aref t (- (- N b) 1) a)))))"
        f" (for a_2 0 N 1 serial {SUM.format(s='m', p='b_2', n='M', e='(aref t a_2 b_2)')} (setf (aref y a_2) (aref m)))",
        ["v0 | v2: a value is computed once, in the kernel of the reader that runs first"]),
    "reduced": (
        f"(for i 0 N 1 serial (setf (aref y i) (exp (aref x i)))) {SUM.format(s='m', p='p', n='N', e='(aref y p)')}"
        " (for a 0 M 1 serial (for b 0 N 1 serial (setf (aref C a b) (* (aref C a b) (aref m)))))",
        ["v0 | v1: v1 reads axis 0 of v0 at its own axis 0 (reduced)", "v1 | v2: a value without axes has no outer loop to share"]),
    "shifted": (PROGRAMS["shifted reads of a costly map"][0], ["v0 | v1: v1 reads axis 0 of v0 at (- i 1) (shifted)"]),
    "a map with a costly operator before a product": (
        PROGRAMS["a product of what a map costs"][0], ["v0 | v1: an operand of a contraction costs 20, more than 2"]),
    "zeros between elements, in a convolution": (
        "(local t f32 ((* 2 N)) scratch) (for i 0 (* 2 N) 1 serial (setf (aref t i) (where (= (mod i 2) 0) (aref x (floordiv i 2)) 0.0)))"
        " (for i_2 0 N 1 serial (setf (aref y i_2) 0.0))"
        " (for i_3 0 N 1 serial (for p 0 3 1 serial (incf (aref y i_3) (* (cast f32 p) (aref t (max 0 (- i_3 p)))))))",
        ["v0 | v1: v1 reads axis 0 of v0 at (max (- i p) 0) (shifted)"]),
    "zeros between columns, in a product": (
        "(local t f32 (M K) scratch) (for i 0 M 1 serial (for p 0 K 1 serial (setf (aref t i p) (where (= (mod p 2) 0) (aref A i (floordiv p 2)) 0.0))))"
        " (for i_2 0 M 1 serial (for j 0 N 1 serial (for p_2 0 K 1 serial (incf (aref C i_2 j) (* (aref t i_2 p_2) (aref B p_2 j))))))",
        ["v0 | v1: a map that chooses elements by remainders of its index is computed once"]),
    "two products": (
        "(local t f32 (M N) scratch) (for i 0 M 1 serial (for j 0 N 1 serial (setf (aref t i j) 0.0)))"
        " (for i_2 0 M 1 serial (for j_2 0 N 1 serial (for p 0 K 1 serial (incf (aref t i_2 j_2) (* (aref A i_2 p) (aref B p j_2))))))"
        " (for i_3 0 M 1 serial (for j_3 0 N 1 serial (for p_2 0 N 1 serial (incf (aref C i_3 j_3) (* (aref t i_3 p_2) (* (aref x p_2) (aref x j_3)))))))",
        ["v0 | v1: a contraction is not computed again, and shares a kernel with its epilogue only"]),
    "windows of unknown length, and a sum of each row": (
        "(local t f32 (M N) scratch) (for i 0 M 1 serial (for j 0 N 1 serial (setf (aref t i j) 0.0)))"
        " (for i_2 0 M 1 serial (for j_2 0 N 1 serial (for p 0 N 1 serial (if (< (+ j_2 p) K) ((incf (aref t i_2 j_2) (* (aref A i_2 (+ j_2 p)) (aref C i_2 p))))))))"
        f" (for i_3 0 M 1 serial {SUM.format(s='m', p='j_3', n='N', e='(aref t i_3 j_3)')} (for a 0 N 1 serial (setf (aref C i_3 a) (aref m))))",
        ["v0 | v1: a sum of products over a window of unknown extent shares all of its loops or none"]),
    "all elements": (PROGRAMS["the mean of all elements"][0], ["v0 | v1: a value without axes has no outer loop to share"]),
    "a nest": (PROGRAMS["a nest between maps"][0],
               ["v0 | v1: a nest is a kernel by itself", "v1 | v2: a nest is a kernel by itself"]),
}


@pytest.mark.parametrize("name", CASES)
def test_reasons(name: str) -> None:
    body, reasons = CASES[name]
    assert [line_of(b) for b in boundaries_of(raised(body))] == reasons


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_value_that_another_kernel_reads_has_a_reason(name: str) -> None:
    program = raised(PROGRAMS[name][0])
    kernels = kernels_of(program)
    crossing = {(source, k) for k in kernels for source in reads_of_kernel(k) if source not in program.buffers}
    found = boundaries_of(program)
    assert {(b.source, next(k for k in kernels if b.reader in names_of(k))) for b in found} == crossing
    assert (len(kernels) == 1) == (not found)


ATTENTION = """[composite]
name = "Attention"
inputs = ["Q{float}[T 64]", "K{float}[T 64]", "V{float}[T 64]"]
outputs = ["O{float}[T 64]"]
[implementation]
lang = "python"
code = '''
S = Q @ K.T
E = np.exp(S - S.max(axis=-1, keepdims=True))
return E @ V
'''
"""
BLOCKS = "a device with groups of threads has no kernels of blocks of rows, where they would be together"
CONTRACTION = "a contraction is not computed again, and shares a kernel with its epilogue only"


@pytest.mark.parametrize(("runtime", "text", "reasons"), [
    ("clang", ATTENTION, {}),
    ("cuda", ATTENTION, {"v0": BLOCKS, "v2": BLOCKS}),
    ("opencl", ATTENTION.replace("E @ V", "E @ V @ R").replace('"V{', '"R{float}[64 64]", "V{'), {"v0": BLOCKS, "v2": BLOCKS, "v3": CONTRACTION}),
    ("opencl", ATTENTION.replace("64", "1024"), {"v0": CONTRACTION, "v2": "an operand of a contraction costs 11, more than 2"}),
    ("clang", ATTENTION.replace("64", "1024"), {"v0": CONTRACTION, "v2": "an operand of a contraction costs 11, more than 2"})])
def test_reasons_of_devices(runtime: str, text: str, reasons: dict[str, str]) -> None:
    """What a CPU would have in blocks of rows is told as such, and nothing else is."""
    options = Options(runtime=runtime)
    (program,) = loading.load_programs(SpecText("attention.toml", text, "toml"), options)
    values = driver.advance(program, "tensor", options)
    assert isinstance(values, TensorProgram)
    assert {b.source: told(b.why, b.source, b.reader) for b in boundaries(values)} == reasons
