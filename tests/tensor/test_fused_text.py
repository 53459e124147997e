"""The kernels of fusion as text: printed, read, verified, lowered."""
from __future__ import annotations

from pathlib import Path

import pytest
from test_fusion import PROGRAMS, raised

from caten import driver, loading
from caten.core.program import resolve
from caten.core.text import read, show
from caten.errors import CatenError
from caten.frontend.spec_files import SpecText
from caten.options import Options
from caten.tensor import tensor_verifier
from caten.tensor.before_fusion import ready_for_fusion
from caten.tensor.fused_text import fused
from caten.tensor.fusion import kernels_of
from caten.tensor.kernels import names_of
from caten.tensor.lower import lower
from caten.tensor.values import FusedKernel, TensorProgram

SAMPLES = sorted((Path(__file__).resolve().parents[2] / "samples").glob("*.toml"))
OPTIONS = Options(config=(("MARCH", "x86_64_v3"),))


def read_again(program: TensorProgram) -> TensorProgram:
    found = resolve(read(show(program))[0])
    assert isinstance(found, TensorProgram)
    return found


def is_lowered_alike(program: TensorProgram) -> bool:
    text = fused(program)
    assert read_again(text) is text
    assert fused(text) is text
    tensor_verifier.verify(text)
    assert [names_of(k) for k in kernels_of(text)] == [names_of(k) for k in kernels_of(program)]
    return lower(text).kernels == lower(ready_for_fusion(program)).kernels


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_with_its_kernels_is_lowered_to_the_same_loops(name: str) -> None:
    assert is_lowered_alike(raised(PROGRAMS[name][0]))


@pytest.mark.parametrize("path", SAMPLES, ids=lambda p: p.stem)
def test_samples_with_their_kernels_are_lowered_to_the_same_loops(path: Path) -> None:
    for program in loading.load_programs(SpecText(f"samples/{path.name}", path.read_text(), "toml"), OPTIONS):
        values = driver.advance(program, "tensor", OPTIONS)
        assert isinstance(values, TensorProgram)
        assert is_lowered_alike(values)


FORMS = {"softmax": ["rows"], "a product and its epilogue": ["contraction"], "shifted reads of a costly map": ["map", "map"],
         "a nest between maps": ["map", "nest", "map"], "columns": ["rows"], "the mean of all elements": ["rows", "map"]}


@pytest.mark.parametrize("name", FORMS)
def test_forms(name: str) -> None:
    assert [k.form for k in fused(raised(PROGRAMS[name][0])).all(FusedKernel)] == FORMS[name]


def kernels(text: str) -> TensorProgram:
    parameters = "(size N) (buffer x f32 (N) (0) in) (buffer Y f32 (N N) (0 1) out)"
    program = resolve(read(f"(tensor T {parameters} {text} (output Y v1))")[0])
    assert isinstance(program, TensorProgram)
    return program


ROW = "(define v0 (compute f32 ((i N)) (exp (read x i))))"
MAP = "(define v1 (compute f32 ((i N) (j N)) (* (read v0 {}) (read x j))))"


def test_a_member_may_have_its_outer_loops_elsewhere() -> None:
    text = kernels(f"(group k0 (outer (j N)) (form map) (along v0 i) {ROW} (pass ((i N)) {MAP.format('j')}))")
    tensor_verifier.verify(text)
    assert read_again(text) is text


WRONG = {
    "another row": (f"(group k0 (outer (i N)) (form map) {ROW} (pass ((j N)) {MAP.format('(- (- N i) 1)')}))",
                    r"k0: v1 reads axis 0 of v0 at \(- \(- N i\) 1\) \(shifted\), and the outer loops are not the same for both"),
    "another form": (f"(group k0 (outer (i N)) (form rows) {ROW} (pass ((j N)) {MAP.format('i')}))", "k0: the members make other passes, or are of another form"),
    "other passes": (f"(group k0 (outer (i N)) (form map) {ROW} {MAP.format('i')})", "k0: the members make other passes, or are of another form"),
    "no such axis": (f"(group k0 (outer (k N)) (form map) {ROW} (pass ((j N)) {MAP.format('i')}))", "k0: the outer loops are no axes of v0 with these extents"),
    "another extent": (f"(group k0 (outer (i 3)) (form map) {ROW} (pass ((j N)) {MAP.format('i')}))", "k0: the outer loops are no axes of v0 with these extents"),
    "too many axes": (f"(group k0 (outer (i N)) (form map) (along v0 i i) {ROW} (pass ((j N)) {MAP.format('i')}))", "k0: the outer loops are no axes of v0"),
    "no member": (f"(group k0 (outer (i N)) (form map) (along w i) {ROW} (pass ((j N)) {MAP.format('i')}))", "k0: w is no member"),
    "outside": (f"{ROW} (group k1 (outer (i N) (j N)) (form map) {MAP.format('i')})", "v0 is outside all kernels"),
    "empty": (f"(group k0 (outer) (form map)) (group k1 (outer (i N)) (form map) {ROW} (pass ((j N)) {MAP.format('i')}))", "k0 has no members"),
    "something else": (f"(group k0 (outer (i N)) (form map) (size K) {ROW} (pass ((j N)) {MAP.format('i')}))", "k0: a kernel holds definitions and passes"),
    "what a scatter changes": (
        "(group k0 (outer) (form scatter) (pass ((i N) (j N)) (define v0 (compute f32 ((i N) (j N)) 0.0)))"
        " (pass ((i N)) (define v1 (scatter f32 v0 (N N) ((i N)) add (i i) true (read x i)))))",
        "k0: v1 needs the whole of v0, which another kernel is to compute"),
    "a nest with others": (
        f"(group k0 (outer) (form nest) {ROW} (define v1 (nest ((for a 0 N 1 serial (for b 0 N 1 serial (setf (aref Y a b) 0.0)))) (out Y f32 (N N)))))",
        "k0: the nest v1 has a kernel of its own"),
}


@pytest.mark.parametrize("name", WRONG)
def test_kernels_that_are_refused(name: str) -> None:
    text, message = WRONG[name]
    with pytest.raises(CatenError, match=f"E472: {message}"):
        tensor_verifier.verify(kernels(text))


def test_a_kernel_is_malformed() -> None:
    with pytest.raises(CatenError, match=r"E212: malformed \(group …\): after the name"):
        kernels(f"(group k0 (loops (i N)) (form map) {ROW})")
