"""A division by a size that does not change in a loop is computed before it, and what is computed stays the same."""
from __future__ import annotations

import re

import numpy as np
import pytest

import caten
from caten import driver, loading
from caten.core.program import resolve
from caten.core.text import read
from caten.frontend.spec_files import SpecText
from caten.loop.statements import For, Let, LoopProgram
from caten.options import Options
from caten.render.invariant_divisions import with_invariant_divisions

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


def test_two_loops_that_threads_share_as_one_stay_together() -> None:
    """A name between them would end the pragma's perfect nest: it is inside of both."""
    (program,) = [resolve(p) for p in read("""(loop P (buffer y i64 (M N C) (0 1 2) inout) (size M) (size N) (size C) (size D) (kernel k
        (for i 0 M 1 parallel (for j 0 N 1 parallel (for p 0 C 1 serial (setf (aref y i j p) (floordiv i D)))))))""")]
    assert isinstance(program, LoopProgram)
    (outer,) = with_invariant_divisions(program).kernels[0].body
    assert isinstance(outer, For)
    (inner,) = outer.body
    assert isinstance(inner, For)
    assert [type(s) for s in inner.body] == [Let, For]


@pytest.mark.scheduled
@pytest.mark.parametrize("sizes", [(2, 3, 4, 6), (1, 1, 1, 1), (2, 3, 20, 9), (0, 3, 4, 5), (2, 0, 4, 5)])
def test_results_stay_the_same(sizes: tuple[int, int, int, int]) -> None:
    a, b, c, m = sizes
    x, y = np.random.default_rng(1).random((a, b, c), np.float32), np.full((m, c), -1, np.float32)
    caten.compile(TEXT.format(code=ROWS))(x, np.int64(1), out=y)
    i = np.arange(m)
    np.testing.assert_array_equal(y, x[i // b % a, i % b] if a and b else np.zeros_like(y))
