"""Loops whose end is read from an array and clamped: vectors with a masked tail, as for an end that is a size."""
from __future__ import annotations

import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest

import caten

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")]
ENDS = ["(min N (max 0 (aref L i)))", "(max 0 (min N (aref L i)))", "(min (max (aref L i) 0) N)", "(clip (aref L i) 0 N)"]
STEPS = {"sum": ("(incf acc (aref X i j))", "0", np.sum), "product": ("(mulcf acc (aref X i j))", "1", np.prod),
         "maximum": ("(maxcf acc (aref X i j))", "-7", lambda row: np.max(row, initial=-7))}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CATEN_CACHE_DIR", str(tmp_path / "cache"))


@pytest.mark.slice(6)
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("dtype", ["float", "int32"])
@pytest.mark.parametrize("name", STEPS)
def test_rows_of_lengths_that_an_array_has_are_vectors(end: str, dtype: str, name: str) -> None:
    step, start, reference = STEPS[name]
    spec = (f"(composite Ragged ((X{{{dtype}}}[M N], L{{int64}}[M]) -> (Z{{{dtype}}}[M])) (dotimes (i M) (set acc (cast {dtype} {start})) "
            f"(dotimes (j {end}) {step}) (setf (aref Z i) acc)))")
    with warnings.catch_warnings():
        warnings.simplefilter("error")                       # E942: a plan that could not be verified
        ragged = caten.compile(spec, "gcc")
    assert "(vectorize " in ragged.schedule
    lengths = np.arange(-3, 47, dtype=np.int64)
    x = np.random.default_rng(1).integers(-1, 2, (50, 40)).astype("f4" if dtype == "float" else "i4")
    expected = [reference(x[i, :min(40, max(0, n))]) for i, n in enumerate(lengths)]
    np.testing.assert_array_equal(ragged(x, lengths), np.array(expected, x.dtype))
