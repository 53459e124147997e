"""What scheduling makes of the samples: no check that was proven away comes back, and every optimisation leaves its mark in the program."""
from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from caten import driver, loading
from caten.core.expr import Op
from caten.core.node import Node
from caten.core.program import Check, Ensure
from caten.frontend.spec_files import SpecText
from caten.loop import bounds_checks
from caten.loop.statements import Aref, Fail, Fold, For, If, Local, LoopProgram, Prefetch, Vref, is_const
from caten.options import Options
from caten.schedule.emit import emit
from caten.schedule.plans.maps import VectorLoop

SAMPLES = sorted((Path(__file__).resolve().parents[2] / "samples").glob("*.toml"))
# A value that is loaded decides where these read or write: the only samples with checks that run.
DATA_DEPENDENT = {"Gather": 2, "Histogram": 2}         # the indices, and that there are rows, or bins


@cache
def loops(march: str = "x86_64_v3", only: str = "") -> dict[str, LoopProgram]:
    """The operators of all samples (or of one), scheduled."""
    options = Options(config=(("MARCH", march),))
    programs = [p for path in SAMPLES if path.stem.startswith(only) for p in loading.load_programs(SpecText(path.name, path.read_text(), "toml"), options)]
    found = {p.name: driver.advance(p, "loop", options) for p in reversed(programs)}
    return {name: p for name, p in found.items() if isinstance(p, LoopProgram)}


def nodes(program: LoopProgram) -> list[Node]:
    return [n for k in program.kernels for s in k.body for n in s.walk()]


def checks(program: LoopProgram) -> tuple[list[str], list[str]]:
    """The checks of accesses that run inside the kernels, and those at entry."""
    texts = {c.row: c.text for c in program.all(Check)}
    inside = [texts[n.row] for n in nodes(program) if isinstance(n, Fail)]
    return inside, [texts[e.row] for e in program.all(Ensure) if "index" in texts[e.row] and "outside [0," in texts[e.row]]


def test_no_check_of_an_affine_access_is_left() -> None:
    assert len(loops()) >= 34
    found = {name: len(inside) + len(entry) for name, program in loops().items() for inside, entry in [checks(program)] if inside or entry}
    assert found == DATA_DEPENDENT, {name: checks(loops()[name]) for name in found}


def test_a_check_that_cannot_be_proven_away_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted fault: nothing is provably inside."""
    monkeypatch.setattr(bounds_checks, "is_inside", lambda context, position, extent: False)
    options = Options()
    text = SAMPLES[[p.stem for p in SAMPLES].index("gemm")].read_text()
    program = bounds_checks.add_checks(loading.load_programs(SpecText("gemm.toml", text, "toml"), options)[0])
    rows = [c.text for c in program.all(Check) if "outside [0, " in c.text and "index" in c.text]
    fails = [n for s in program.body for n in s.walk() if isinstance(n, Fail)]
    assert rows or fails or program.all(Ensure)


# -- marks of optimisations -----------------------------------------------------------------------------------------------------------------

def kernels(p: LoopProgram) -> int:
    return len(p.kernels)


def parallel(p: LoopProgram) -> int:
    return sum(isinstance(n, For) and n.mark == "parallel" for n in nodes(p))


def vectors(p: LoopProgram) -> int:
    return sum(isinstance(n, Vref) for n in nodes(p))


def folds(p: LoopProgram) -> int:
    return sum(isinstance(n, Fold) for n in nodes(p))


def fused(p: LoopProgram) -> int:
    """Multiply-adds of vectors."""
    return sum(isinstance(n, Op) and n.fn == "fma" and n.lanes > 1 for n in nodes(p))


def register_tile(p: LoopProgram) -> int:
    """Vectors that a sum of products is kept in, over the loop that adds to it."""
    tiles = [n for n in nodes(p) if isinstance(n, Local) and n.space == "register" and len(n.shape) >= 2]
    total = 0
    for tile in tiles:
        size = 1
        for extent in tile.shape:
            size *= extent.value if is_const(extent) else 0       # type: ignore[attr-defined]   # a literal has a value
        total = max(total, size)
    return total


def packed(p: LoopProgram) -> int:
    """Copies of operands that lie in the order in which they are used."""
    return sum(isinstance(n, Local) and n.space == "scratch" and len(n.shape) >= 3 for n in nodes(p))


def asks(p: LoopProgram) -> int:
    """Places that are asked for before they are used."""
    return sum(isinstance(n, Prefetch) for n in nodes(p))


def vector_loops(p: LoopProgram) -> int:
    """Innermost loops that only work on vectors."""
    inner = [n for n in nodes(p) if isinstance(n, For) and not any(isinstance(m, For) for s in n.body for m in s.walk())]
    return sum(any(isinstance(m, Vref) for s in loop.body for m in s.walk()) for loop in inner)


def scalar_loops(p: LoopProgram) -> int:
    """Innermost loops without vectors: tails, and what could not be vectorised."""
    inner = [n for n in nodes(p) if isinstance(n, For) and not any(isinstance(m, For) for s in n.body for m in s.walk())]
    return sum(not any(isinstance(m, Vref) for s in loop.body for m in s.walk()) for loop in inner)


def branches(p: LoopProgram) -> int:
    return sum(isinstance(n, If) for n in nodes(p))


def scalar_reads_in_vector_loops(p: LoopProgram) -> int:
    """Elements that are read one by one where vectors are."""
    inner = [n for n in nodes(p) if isinstance(n, For) and any(isinstance(m, Vref) for s in n.body for m in s.walk())
             and not any(isinstance(m, For) for s in n.body for m in s.walk())]
    return sum(isinstance(m, Aref) and bool(m.index) for loop in inner for s in loop.body for m in s.walk())


Measure = Callable[[LoopProgram], int]
# Operator, what is counted, from, to.
MARKS: tuple[tuple[str, Measure, int, int], ...] = (
    ("Axpy", kernels, 1, 1), ("Axpy", vector_loops, 2, 2), ("Axpy", scalar_loops, 0, 0), ("Axpy", parallel, 1, 1), ("Axpy", scalar_reads_in_vector_loops, 0, 0),
    ("Gelu", vector_loops, 2, 2), ("Gelu", scalar_loops, 0, 0), ("SinCos", vector_loops, 2, 2), ("SinCos", branches, 0, 0),
    ("Clip", vector_loops, 2, 2), ("Where", vector_loops, 2, 2), ("Where", branches, 0, 0), ("ComplexMultiply", vector_loops, 4, 4),
    ("Gemm", register_tile, 64, 128), ("Gemm", fused, 1, 32), ("Gemm", packed, 2, 4), ("Gemm", parallel, 11, 11),
    ("GemmBatched", register_tile, 64, 128), ("GemmBatched", packed, 1, 2), ("GemmBiasRelu", register_tile, 64, 128), ("GemmColumn", register_tile, 64, 128),
    ("GemmColumn", packed, 2, 4), ("Mlp", fused, 2, 64), ("Linear", register_tile, 64, 128), ("CausalGemm", register_tile, 8, 128),
    ("Dot", folds, 1, 8), ("Dot", vector_loops, 4, 6), ("Dot", parallel, 1, 1), ("SumRows", folds, 1, 8), ("SumRows", parallel, 3, 3), ("MaxRows", folds, 1, 8), ("Gemv", folds, 1, 8),
    ("SumColumns", folds, 3, 3), ("SumColumns", vectors, 2, 114), ("Softmax", folds, 1, 8), ("Softmax", vector_loops, 18, 30), ("Softmax", scalar_loops, 0, 4), ("Softmax", parallel, 4, 4), ("Softmax", asks, 2, 4),
    ("LayerNorm", folds, 2, 16), ("LayerNorm", vector_loops, 18, 30), ("Transpose", vectors, 1, 8), ("Gather", vectors, 12, 40), ("Gather", parallel, 1, 2), ("OneHot", vectors, 1, 5),
    ("Stencil", vectors, 4, 40), ("PrefixSum", vectors, 6, 6), ("PrefixSum", parallel, 0, 0), ("Histogram", parallel, 0, 1), ("Quantize", vectors, 2, 16),
    ("Mandelbrot", parallel, 1, 2), ("Conv2d", parallel, 20, 20), ("MaxPool", parallel, 1, 2), ("Im2Col", parallel, 1, 2), ("Logic", vectors, 4, 24),
)


@pytest.mark.parametrize(("name", "measure", "least", "most"), MARKS, ids=lambda v: getattr(v, "__name__", str(v)))
def test_the_mark_of_an_optimisation(name: str, measure: Measure, least: int, most: int) -> None:
    assert least <= measure(loops()[name]) <= most, f"{name}: {measure.__name__} is {measure(loops()[name])}"


def test_wider_registers_give_wider_vectors() -> None:
    widths = {march: max(n.count for n in nodes(loops(march, "axpy")["Axpy"]) if isinstance(n, Vref)) for march in ("x86_64", "x86_64_v3", "x86_64_v4")}
    assert widths["x86_64"] < widths["x86_64_v3"] < widths["x86_64_v4"], widths


def test_an_optimisation_that_is_lost_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted fault: the plan of elementwise nests becomes no steps."""
    monkeypatch.setitem(emit.OF_LOOPS, VectorLoop, lambda *_: None)
    loops.cache_clear()
    try:
        assert vector_loops(loops(only="axpy")["Axpy"]) == 0
    finally:
        loops.cache_clear()
