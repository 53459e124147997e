"""Of a reduction of which one map reads a part, that part is computed."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import caten
from caten import driver, loading
from caten.core.text import flat, form_of
from caten.frontend.spec_files import SpecText
from caten.options import Options
from caten.tensor.before_fusion import ready_for_fusion
from caten.tensor.values import Reduce, TensorProgram


def spec(body: str, inputs: str, output: str) -> str:
    return (f'[composite]\nname = "T"\ninputs = [{inputs}]\noutputs = ["{output}"]\n'
            f'[implementation]\nlang = "python"\ncode = """\n{body}\n"""\n')


def extents(text: str) -> list[list[str]]:
    """The extents of the reductions of a program."""
    (loaded,) = loading.load_programs(SpecText("parts.toml", text), Options())
    made = driver.advance(loaded, "tensor", Options())
    assert isinstance(made, TensorProgram)
    return [[flat(form_of(a.extent)) for a in d.value.axes] for d in ready_for_fusion(made).definitions if isinstance(d.value, Reduce)]


SIGNAL, MATRIX = '"x{float}[N]", "h{float}[K]"', '"A{float}[M N]"'
PARTS: list[tuple[str, list[list[str]]]] = [
    (spec("return np.convolve(x, h, mode='valid')", SIGNAL, "y{float}[(+ 1 (- N K))]"), [["(+ (- N K) 1)"]]),
    (spec("return np.convolve(x, h, mode='same') * 2", '"x{float}[N]", "h{float}[5]"', "y{float}[N]"), [["N"]]),
    (spec("return A.sum(axis=1)[3:] * 2", MATRIX, "y{float}[(- M 3)]"), [["(- M 3)"]]),
    (spec("return A.max(axis=0)[:-2]", MATRIX, "y{float}[(- N 2)]"), [["(- N 2)"]]),
    (spec("return np.maximum((A @ A.T)[1:, :M - 2], 0)", MATRIX, "Y{float}[(- M 1) (- M 2)]"), [["(- M 1)", "(- M 2)"]]),
    (spec("return (A @ A.T)[1:, 1:].T", MATRIX, "Y{float}[(- M 1) (- M 1)]"), [["(- M 1)", "(- M 1)"]]),
]


@pytest.mark.parametrize(("text", "left"), PARTS)
def test_a_part_is_computed(text: str, left: list[list[str]]) -> None:
    assert extents(text) == left


@pytest.mark.parametrize(("text", "left"), [
    (spec("s = A.sum(axis=1)\nreturn s[1:] + s[:-1]", MATRIX, "y{float}[(- M 1)]"), [["M"]]),              # two parts
    (spec("return A.sum(axis=1)[::-1]", MATRIX, "y{float}[M]"), [["M"]]),
    (spec("return A.sum(axis=1)[::2]", '"A{float}[(* 2 M) N]"', "y{float}[M]"), [["(* 2 M)"]]),
    (spec("return np.concatenate((A.sum(axis=1), np.zeros(3, dtype=np.float32)))", MATRIX, "y{float}[(+ M 3)]"), [["M"]]),    # beside it is nothing
    (spec("return A.sum(axis=1)[i]", '"A{float}[M N]", "i{int64}[K]"', "y{float}[K]"), [[], ["M"]]),       # after a test of i
])
def test_what_is_no_part_stays_whole(text: str, left: list[list[str]]) -> None:
    assert extents(text) == left


@pytest.mark.slow
@pytest.mark.parametrize(("body", "inputs", "output", "shapes"), [
    ("return np.convolve(x, h, mode='valid')", SIGNAL, "y{float}[(+ 1 (- N K))]", [[(40,), (7,)], [(7,), (7,)], [(301,), (40,)], [(5,), (1,)]]),
    ("return np.convolve(x, h, mode='same') * 2", '"x{float}[N]", "h{float}[5]"', "y{float}[N]", [[(5,), (5,)], [(64,), (5,)], [(301,), (5,)]]),
    ("return np.maximum((A @ A.T)[1:, :M - 2], 0)", MATRIX, "Y{float}[(- M 1) (- M 2)]", [[(2, 3)], [(9, 1)], [(40, 70)]]),
    ("return (A @ A.T)[1:, 2:].T", MATRIX, "Y{float}[(- M 2) (- M 1)]", [[(2, 3)], [(9, 1)], [(40, 70)]]),
])
def test_parts_have_the_values_of_the_whole(body: str, inputs: str, output: str, shapes: list[list[tuple[int, ...]]]) -> None:
    run, draw = caten.compile(spec(body, inputs, output)), np.random.default_rng(1)
    scope: dict[str, Any] = {"np": np}
    names = [i.split("{")[0].strip(' "') for i in inputs.split(", ")]
    exec(f"def f({', '.join(names)}):\n    M = {'A.shape[0]' if 'A' in names else '0'}\n    {body}", scope)
    for each in shapes:
        arrays = [draw.standard_normal(shape).astype(np.float32) for shape in each]
        np.testing.assert_allclose(run(*arrays), scope["f"](*arrays), rtol=1e-4, atol=1e-4)
