"""A store to a part of an array is loops over that part, not conditions in loops over the whole."""
from __future__ import annotations

import pytest

from caten import driver
from caten.core.text import show
from caten.frontend.spec import load
from caten.frontend.spec_files import SpecText
from caten.loop.statements import For, If, Kernel, LoopProgram
from caten.options import Options

INTERIOR = ("1", "(- N 1)"), ("1", "(- M 1)")


def loops(code: str) -> tuple[list[tuple[str, str]], int]:
    """The bounds of the loops of the only kernel, outermost first, and the number of its conditions."""
    options = Options(runtime="clang", opt=0)
    spec = f'[composite]\nname = "Op"\ninputs = ["U{{float}}[N M]", "V{{float}}[N M]", "k{{int64}}[]"]\noutputs = ["V"]\n[implementation]\nlang = "python"\ncode = """\n{code}\n"""\n'
    (op,) = load(SpecText("op.toml", spec, "toml"), options)
    program = driver.advance(op, "loop", options)
    assert isinstance(program, LoopProgram)
    (kernel,) = [c for c in program.clauses if isinstance(c, Kernel)]
    nodes = [n for s in kernel.body for n in s.walk()]
    return [(show(n.lo), show(n.hi)) for n in nodes if isinstance(n, For)], sum(isinstance(n, If) for n in nodes)


@pytest.mark.parametrize("code", [
    "V[1:-1, 1:-1] = U[:-2, 1:-1] + U[2:, 1:-1]",
    "V[1:U.shape[0] - 1, 1:-1] = U[:-2, 1:-1] + U[2:, 1:-1]",
    "N, M = U.shape\nfor i in range(1, N - 1):\n    for j in range(1, M - 1):\n        V[i, j] = U[i - 1, j] + U[i + 1, j]",
    "N, M = U.shape\nfor i in range(N):\n    for j in range(M):\n        if 0 < i < N - 1:\n            if not (j < 1 or j >= M - 1):\n                V[i, j] = U[i - 1, j] + U[i + 1, j]",
    "N, M = U.shape\nfor i in range(1, N - 1):\n    for j in range(M):\n        if j >= 1 and j < M - 1:\n            V[i, j] = U[i - 1, j] + U[i + 1, j]"])
def test_the_interior_however_it_is_written(code: str) -> None:
    bounds, conditions = loops(code)
    assert (tuple(bounds), conditions) == (INTERIOR, 0)


@pytest.mark.parametrize(("code", "bounds"), [
    ("V[2:] = U[2:] + 1", [("2", "N"), ("0", "M")]),
    ("V[:, :-3] = U[:, 3:] + 1", [("0", "N"), ("0", "(- M 3)")])])
def test_parts_at_an_end(code: str, bounds: list[tuple[str, str]]) -> None:
    assert loops(code) == (bounds, 0)


def test_a_bound_that_may_be_beyond_the_array_stays_a_condition() -> None:
    bounds, conditions = loops("N, M = U.shape\nfor i in range(N):\n    for j in range(M):\n        if j < k:\n            V[i, j] = U[i, j] + 1")
    assert bounds[0] == ("0", "N")
    assert conditions or bounds[1] != ("0", "M")
