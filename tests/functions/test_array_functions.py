"""Functions of NumPy that no kernel was tuned for (those of the benchmark): what `caten.op` makes of them is what NumPy computes."""
from __future__ import annotations

import pytest
from benchmarks.array_functions import FUNCTIONS, ArrayFunction
from benchmarks.functions import agrees

import caten


@pytest.mark.slice(10)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.name)
def test_what_numpy_computes(function: ArrayFunction) -> None:
    given = function.arguments(seed=1)
    found, wanted = caten.op(function.function, runtime="gcc")(*given), function.function(*given)
    assert agrees(found, wanted)
