"""Sums over axes of extent 1 are no sums."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import caten
from caten import driver, loading
from caten.core.expr import index
from caten.frontend.spec_files import SpecText
from caten.options import Options
from caten.tensor.values import Named, Reduce, TensorProgram
from daten import Tensor, realization
from daten.tensor import apply

SPEC = '[composite]\nname = "F"\ninputs = ["X{{float}}[{x}]", "W{{float}}[{w}]"]\noutputs = ["Y{{float}}[...]"]\nimplementation = {{ lang = "python", code = "return {code}" }}\n'


def program(x: str, w: str, code: str) -> TensorProgram:
    (start,) = loading.load_programs(SpecText("f.toml", SPEC.format(x=x, w=w, code=code), "toml"), Options())
    made = driver.advance(start, "tensor", Options())
    assert isinstance(made, TensorProgram)
    return made


@pytest.mark.parametrize(("x", "w", "code", "sums"), [
    ("1 M", "M", "X.sum(axis=0) + W", ()), ("1 M", "M", "X.sum(axis=(0, 1)) + W", (1,)), ("1 M", "M", "X.max(axis=0) + W", ()),
    ("M 1", "1 N", "X @ W", ()), ("1 M", "M", "X.prod(axis=0) + W", ()), ("1 M", "M N", "X @ W", (1,)), ("1 M 1 N", "M N", "X.sum(axis=(0, 2)) + W", ()),
    ("1 M 1", "M", "X.min(axis=(0, 2), initial=np.inf) + W", ()), ("1 M 1 N", "N", "X.sum(axis=(0, 1, 2)) + W", (1,))])
def test_sums_are_over_axes_of_several_terms(x: str, w: str, code: str, sums: tuple[int, ...]) -> None:
    made = program(x, w, code)
    assert tuple([len(d.value.over) for d in made.definitions if isinstance(d.value, Reduce)]) == sums
    extents = {"M": 5, "N": 3, "1": 1}
    rng = np.random.default_rng(0)
    X, W = (rng.standard_normal([extents[e] for e in shape.split()]).astype(np.float32) for shape in (x, w))
    operator = caten.compile(SPEC.format(x=x, w=w, code=code), runtime="numpy")
    np.testing.assert_allclose(operator(X, W), eval(code, {"X": X, "W": W, "np": np}), rtol=1e-5)


def test_names_keep_the_axes_that_are_left() -> None:
    made = program("1 M 1 N", "N", "X.sum(axis=(0, 1, 2))")
    (named,), (define,) = made.all(Named), made.definitions
    assert isinstance(define.value, Reduce)
    assert len(named.axes) == len(define.value.axes) + len(define.value.over) == 2


@pytest.mark.slow
def test_graphs_have_no_sums_of_one_term(monkeypatch: pytest.MonkeyPatch) -> None:
    """One query and one key: what an operator for any number of them is, with one."""
    made: list[TensorProgram] = []
    usual = realization.program_of

    def assembled(*given: Any, **options: Any) -> Any:
        made.append(usual(*given, **options)[0])
        return usual(*given, **options)
    monkeypatch.setattr(realization, "program_of", assembled)
    q, k, v = (np.random.default_rng(n).standard_normal((2, 1, 4)).astype(np.float32) for n in range(3))
    np.testing.assert_allclose(apply("attention", Tensor(q), Tensor(k), Tensor(v)).numpy(), v, rtol=1e-5)
    (whole,) = made
    sums = [d.value.over for d in whole.definitions if isinstance(d.value, Reduce)]
    assert not [a for over in sums for a in over if a.extent is index(1)]
