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


@pytest.mark.parametrize("opt", [0, 2])
@pytest.mark.parametrize("program", PROGRAMS, ids=[p.name for p in PROGRAMS])
def test_the_numbers_of_numpy(program: NumericalProgram, opt: int):
    given = program.arguments(program.small)
    scalars = {n: v for n, v in program.small.items() if n not in given}
    expected = program.python()(**copy.deepcopy(given), **dict(zip([t.name for t in program.made], program.results(program.small), strict=True)), **scalars)
    found = caten.compile(FOLDER / f"{program.name}.toml", opt=opt)(**copy.deepcopy(given))
    for got, want in zip(*[x if isinstance(x, tuple) else (x,) for x in (found, expected)], strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-5 if got.dtype == np.float32 else 1e-12, atol=1e-6 if got.dtype == np.float32 else 1e-13)
