"""A random program in NumPy and the same in loops are the same values."""
from __future__ import annotations

import random

import pytest
from test_structure_families import values_of

from caten.tensor import canonical_values
from caten.tensor.values import TensorProgram
from index_programs import Sizes, program, reordered, written
from random_programs import random_program


def pair(seed: int) -> tuple[TensorProgram, TensorProgram]:
    """The values of a program as it is written in NumPy, and in loops."""
    text, square, _ = random_program(seed)
    lines = program(text)
    sizes, rng = Sizes(square).of(lines), random.Random(seed)
    (_, whole), (_, loops) = written(lines, sizes, "numpy", rng), written(reordered(lines, rng), sizes, rng.choice(("loops", "around", "python")), rng)
    return values_of(whole), values_of(loops)


@pytest.mark.slow
def test_programs_are_the_same_values_in_numpy_and_in_loops(nightly: bool) -> None:
    """None with gathers, whose indices NumPy counts from the end where they are negative."""
    seeds = [seed for seed in range(1000) if not random_program(seed)[2]["gather"]][:200 if nightly else 20]
    different = []
    for seed in seeds:
        first, second = pair(seed)
        if (first.definitions, first.outputs) != (second.definitions, second.outputs):
            different.append(seed)
    assert not different


def test_it_sees_what_is_computed_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a rule of the canonical form there are differences."""
    monkeypatch.setattr(canonical_values, "with_common_parts", lambda program, kept, names: program)
    first, second = pair(198)
    assert first.definitions != second.definitions
