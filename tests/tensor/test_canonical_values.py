"""The canonical form is its own canonical form, and is not computed again."""
from __future__ import annotations

from pathlib import Path

import pytest
from test_random_pairs import pair

from caten import driver, loading
from caten.core.program import Doc
from caten.frontend.spec_files import read_file
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
