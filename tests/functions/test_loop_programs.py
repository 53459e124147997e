"""Kernels in plain Python loops (those of the benchmark beside Numba): caten computes what Python does."""
from __future__ import annotations

import pytest
from benchmarks.loop_programs import PROGRAMS, LoopProgram
from benchmarks.python_loops import agrees, markdown

import caten


@pytest.mark.slice(6)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_the_numbers_of_python(program: LoopProgram) -> None:
    found, wanted = program.arguments(limit=9, seed=1), program.arguments(limit=9, seed=1)
    caten.compile(program.spec(), runtime="gcc")(*found.values())
    program.function(*wanted.values())
    assert agrees(found, wanted)


def test_arrays_that_differ_do_not_agree() -> None:
    found, wanted = PROGRAMS[0].arguments(limit=9), PROGRAMS[0].arguments(limit=9)
    assert agrees(found, wanted)
    found["D"][0, 1] += 1
    assert not agrees(found, wanted)


def test_the_page_counts_slower_ones() -> None:
    rows = [{"name": "a", "caten": 1e-6, "numba": 4e-6}, {"name": "b", "caten": 2e-6, "numba": 1e-6}, {"name": "c", "failed": "gives another result"}]
    page = markdown({"machine": {"cpu": "a CPU", "date": "today"}, "rows": rows})
    assert "**1.41** times as long (geometric mean of 2); least 0.50, median 2.25; 1 below 1" in page
    assert "| b | 2.0 | 1.0 | 0.50 |" in page
    assert "| c | — | — | gives another result |" in page
