"""The canonical form is its own canonical form, and is not computed again."""
from __future__ import annotations

from pathlib import Path

import pytest
from test_random_pairs import pair

from caten import driver, loading
from caten.core.program import Doc
from caten.frontend.spec_files import SpecText, read_file
from caten.options import Options
from caten.tensor import canonical_values as module
from caten.tensor.canonical_values import canonical_values
from caten.tensor.values import Named, Output, TensorProgram

SAMPLES = sorted(Path("samples").glob("*.toml"))


def values_of_sample(path: Path) -> list[TensorProgram]:
    made = [driver.advance(loaded, "tensor", Options()) for loaded in loading.load_programs(read_file(path), Options())]
    return [program for program in made if isinstance(program, TensorProgram)]


@pytest.mark.slice(6)
@pytest.mark.parametrize("path", SAMPLES, ids=lambda p: p.stem)
def test_the_values_of_a_sample_stay_as_they_are(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for program in values_of_sample(path):
        monkeypatch.setattr(module, "_CANONICAL", module._Latest(1))
        assert canonical_values(program) is program


@pytest.mark.slow
def test_the_values_of_random_programs_stay_as_they_are(monkeypatch: pytest.MonkeyPatch, nightly: bool) -> None:
    for seed in range(200 if nightly else 20):
        for program in pair(seed):
            monkeypatch.setattr(module, "_CANONICAL", module._Latest(1))
            assert canonical_values(program) is program, seed


def test_the_canonical_form_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def computed(program: TensorProgram) -> bool:
        with monkeypatch.context() as patch:
            calls: list[object] = []
            right = module._inlined
            patch.setattr(module, "_inlined", lambda *given: calls.append(given) or right(*given))
            canonical_values(program)
            return bool(calls)
    made = canonical_values(values_of_sample(Path("samples/softmax.toml"))[0])
    assert not computed(made)
    assert not computed(made.adding(Doc("more")))
    assert computed(made.without(Output).adding(Output("Y", made.definitions[1].name)))
    assert computed(made.adding(Named(made.definitions[0].name, "highest", ("i",))))


def values_of(lang: str, code: str, inputs: str, outputs: str) -> TensorProgram:
    spec = SpecText("written.toml", f'[composite]\nname = "Written"\ninputs = [{inputs}]\noutputs = [{outputs}]\n[implementation]\nlang = "{lang}"\ncode = """\n{code}\n"""\n')
    (loaded,) = loading.load_programs(spec, Options())
    made = driver.advance(loaded, "tensor", Options())
    assert isinstance(made, TensorProgram)
    return made


def test_the_order_of_axes_is_not_that_of_operands_before_views_are_gone() -> None:
    """In NumPy an operand is a view of a view: what is told apart by that is the same element in loops."""
    signature = '"A{float}[M K]", "C{float}[M N]", "W{float}[K N]"', '"Y{float}[M]"'
    arrays = values_of("python", "t = np.sum(A[:, None, :] * W.transpose(1, 0)[None, :, :], axis=2)\nY = np.sum(t * C, axis=1)", *signature)
    loops = values_of("lisp", "(dotimes (i M) (setf (aref Y i) 0.0) (dotimes (j N) (set t 0.0) (dotimes (p K) (incf t (* (aref W p j) (aref A i p))))"
                              " (incf (aref Y i) (* t (aref C i j)))))", *signature)
    assert arrays.definitions == loops.definitions
    assert "(reduce f32 ((i M) (j N)) ((p K))" in str(arrays.definitions[0])


def test_names_of_local_arrays_are_free_for_axes() -> None:
    code = "(array {0} float (M)) (dotimes (i M) (setf (aref {0} i) 0.0) (dotimes (k N) (incf (aref {0} i) (aref x i k)))) (dotimes (i M) (setf (aref Y i) (exp (aref {0} i))))"
    signature = '"x{float}[M N]"', '"Y{float}[M]"'
    assert values_of("lisp", code.format("p"), *signature).definitions == values_of("lisp", code.format("total"), *signature).definitions
