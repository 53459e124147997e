"""Random programs in index notation, written in NumPy or in loops: raised, fused and compiled, they compute what the loops mean as they are written."""
from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from index_specs import index_spec, made
from spec_batches import ALL, BUILDS, MACHINES, faults_in, report

from caten.tensor import canonical_values
from random_programs import FEATURES

PARTS, NIGHTLY = 10, 500                         # a part is a test: so many programs each in a nightly run
SLICE, BY_DAY = 4, (0, 1)                       # and in every run: at -O0, and at -O2 with one to three threads
BATCH = 25                                       # programs to a library
WAYS = ("numpy", "python", "loops", "around", "renamed", "permuted", "reordered", "numbers", "scalars", "lets", "shuffled")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "part" in metafunc.fixturenames:
        metafunc.parametrize("part", range(PARTS if metafunc.config.getoption("--nightly") else 1))


def test_programs_compute_what_their_loops_mean(part: int, nightly: bool, tool: Callable[[str], str], tmp_path: Path) -> None:
    tool("gcc")
    seeds = range(part * NIGHTLY, part * NIGHTLY + (NIGHTLY if nightly else SLICE))
    begin, seen, wrong = time.monotonic(), Counter[str](), []
    for first in range(seeds[0], seeds[-1] + 1, BATCH):
        machine = MACHINES[first // BATCH % len(MACHINES)]
        specs = [index_spec(seed) for seed in range(first, min(first + BATCH, seeds[-1] + 1))]
        for spec in specs:
            seen.update(spec.features)
        wrong += [report(f, tmp_path, machine=machine) for f in faults_in(specs, tmp_path, seen, ALL if nightly else BY_DAY, machine)]
    print(f"seeds {seeds[0]} to {seeds[-1]}, {time.monotonic() - begin:.0f} s:", dict(sorted(seen.items())))
    assert not wrong, f"{len(wrong)} faults:\n" + "\n".join(wrong[:3])
    enough(seen, len(seeds), ALL if nightly else BY_DAY)


def enough(seen: Counter[str], count: int, builds: Sequence[int]) -> None:
    """Was something compared?"""
    assert seen["call succeeds"] > 0.7 * count
    assert seen["elements"] > 5 * count
    assert seen["nothing to compare"] < 0.5 * count
    for b in builds:
        assert seen[f"called by {BUILDS[b]}"] == count


def test_everything_is_drawn() -> None:
    """Every feature and every way to write a program occurs among 300, and a few calls that fail."""
    specs = [index_spec(seed) for seed in range(300)]
    seen = Counter(f for spec in specs for f in spec.features)
    print(dict(seen))
    assert not [f for f in (*FEATURES, *WAYS) if not seen[f]]
    assert any(t.below.startswith("(") for spec in specs for t in spec.inputs)


def test_an_axis_mistaken_for_another_is_caught_and_shrunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted fault: a map that is computed by its reader has its axes in the opposite order."""
    lines = "t0[i,j] = A[i,j] * B[j]\nt1[i] = max j: t0[i,j]\nY[i,j] = exp(t0[j,i]) - 2.0\nZ[i] = t1[i] + 1.0\nW[i] = B[i] * 3.0"
    spec = made(lines, True, 0, {"Ni": 3})
    assert not faults_in([spec], tmp_path, None, (3,))
    right = canonical_values.element
    monkeypatch.setattr(canonical_values, "element", lambda value, index: right(value, index[::-1]))
    (fault,) = faults_in([spec], tmp_path, None, (3,))
    assert (fault.build, fault.kind) == (3, "wrong")
    text = report(fault, tmp_path, 6)
    assert "# t0[i,j]" in text
    assert "# W[" not in text, "the innocent line is gone"
