"""A division by a size that does not change in a loop is computed before it, and what is computed stays the same."""
from __future__ import annotations

import re

import numpy as np
import pytest

import caten
from caten import driver, loading
from caten.frontend.spec_files import SpecText
from caten.options import Options

TEXT = """[composite]
name = "Rows"
inputs = ["X{{float}}[A B C]", "k{{int64}}[]"]
outputs = ["Y{{float}}[M C]"]
implementation = {{ code = "{code}" }}
"""
ROWS = ("(dotimes (i M) (dotimes (j C) (setf (aref Y i j) (if (and (< 0 B) (< 0 A)) (aref X (mod (floordiv i B) A) (mod i B) j) 0.0))))")


def rendered(code: str = ROWS, level: int = 1) -> str:
    options = Options(opt=level)
    return driver.render(loading.load_programs(SpecText("f.toml", TEXT.format(code=code), "toml"), options), options)


def test_quotients_of_an_outer_loop_are_named_in_it() -> None:
    text = rendered()
    names = {value: name for name, value in re.findall(r"const int64_t (quotient\w*|rest\w*) = (.*);", text)}
    assert sorted(names) == ["ct_floordiv_i64(i, B)", "ct_mod_i64(i, B)", f"ct_mod_i64({names['ct_floordiv_i64(i, B)']}, A)"]
    assert text.index("i < M") < text.index("const int64_t quotient") < text.index("j < C")


@pytest.mark.parametrize(("code", "count"), [
    ("(dotimes (i M) (dotimes (j C) (setf (aref Y i j) (cast float (floordiv (+ i j) (max k 1))))))", 0),           # of the inner loop
    ("(dotimes (i M) (setf (aref Y i 0) (cast float (floordiv i (max k 1)))))", 0),                                # of the only loop
    ("(dotimes (i M) (dotimes (j C) (setf (aref Y i j) (cast float (floordiv M (max C 1))))))", 1),                # of sizes
    ("(dotimes (i M) (dotimes (j C) (setf (aref Y i j) (cast float (floordiv i 7)))))", 0)])                       # a compiler's own affair
def test_what_is_named(code: str, count: int) -> None:
    assert len(re.findall(r"const int64_t (?:quotient|rest)", rendered(code))) == count


@pytest.mark.scheduled
@pytest.mark.parametrize("sizes", [(2, 3, 4, 6), (1, 1, 1, 1), (2, 3, 20, 9), (0, 3, 4, 5), (2, 0, 4, 5)])
def test_results_stay_the_same(sizes: tuple[int, int, int, int]) -> None:
    a, b, c, m = sizes
    x, y = np.random.default_rng(1).random((a, b, c), np.float32), np.full((m, c), -1, np.float32)
    caten.compile(TEXT.format(code=ROWS))(x, np.int64(1), out=y)
    i = np.arange(m)
    np.testing.assert_array_equal(y, x[i // b % a, i % b] if a and b else np.zeros_like(y))
