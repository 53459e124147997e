"""The programs of samples/programs: caten computes what Python and NumPy make of their bodies."""
from __future__ import annotations

import copy

import numpy as np
import pytest
from benchmarks.numerical_programs import FOLDER, NumericalProgram, programs

import caten

PROGRAMS = programs()


def test_there_are_forty():
    assert len(PROGRAMS) >= 40


@pytest.mark.slice(6)
@pytest.mark.parametrize("opt", [pytest.param(0, marks=pytest.mark.nightly), 2])
@pytest.mark.parametrize("program", PROGRAMS, ids=[p.name for p in PROGRAMS])
def test_the_numbers_of_numpy(program: NumericalProgram, opt: int):
    given = program.arguments(program.small)
    scalars = {n: v for n, v in program.small.items() if n not in given}
    expected = program.python()(**copy.deepcopy(given), **dict(zip([t.name for t in program.made], program.results(program.small), strict=True)), **scalars)
    found = caten.compile(FOLDER / f"{program.name}.toml", opt=opt)(**copy.deepcopy(given))
    for got, want in zip(*[x if isinstance(x, tuple) else (x,) for x in (found, expected)], strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-5 if got.dtype == np.float32 else 1e-12, atol=1e-6 if got.dtype == np.float32 else 1e-13)


@pytest.mark.parametrize(("body", "shape"), [("X.T @ X", "N N"), ("X @ X.T", "M M")])
def test_products_of_an_array_with_its_transpose(body: str, shape: str):
    """Large enough for packed operands, and not."""
    product = caten.compile(f'[composite]\nname = "Gram"\ninputs = ["X{{double}}[M N]"]\noutputs = ["Y{{double}}[{shape}]"]\n'
                            f'[implementation]\nlang = "python"\ncode = "return {body}"\n')
    for m, n in ((1, 1), (5, 3), (64, 64), (300, 200), (33, 420)):
        x = np.random.default_rng(m).standard_normal((m, n))
        np.testing.assert_allclose(product(x), x.T @ x if shape == "N N" else x @ x.T, rtol=1e-10, atol=1e-10)
