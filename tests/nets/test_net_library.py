"""Random instances of the library's operators have the values of their references, and arguments in any layout give the same."""
from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path

import library_instances
import numpy as np
import pytest

import caten
from caten.core.numpy_types import named
from caten.frontend import operator_library as library

ENTRIES = tuple(library_instances.operators(library.entries()))
# What a drawn case may end with: its sizes or its types are none of the operator's. A condition that fails for other sizes is too strict.
REFUSED = ("is for storage", "zero-size array to reduction", "has no element", "on an edge, where any value", "which is an extent of",
           "there is no axis", "where a bool is expected", "(mod (* M N) 2) = 0 does not hold", "need at least one array")           # axes of another rank, a window longer than the signal
# Of one operator: irfft of one element, as NumPy; the reference of fma, x * y + z, rounds twice; an index with fewer rows than the shape has axes.
EXCUSED = re.compile(r"irfft: .*the condition \(> \(- \w+ 1\) 0\) does not hold|fma: x=float64.*: wrong\s*$"
                     r"|ravel_multi_index: .*the condition \(< \d K\) does not hold")
OF_CASES = ("E711", "E837")            # diagnostics that a case's status says, too
EVERYDAY = 10
SEED = 20


def chosen(seed: int, nightly: bool) -> list[library.Entry]:
    return list(ENTRIES) if nightly else random.Random(seed).sample([e for e in ENTRIES if e.family not in ("attention", "convolutions", "random", "sorting")], EVERYDAY)


@pytest.mark.slice(2)
@pytest.mark.parametrize("opt", [0, 2])
def test_random_instances_have_the_values_of_the_reference(tmp_path: Path, nightly: bool, opt: int):
    passed, wrong = Counter[bool](), list[str]()
    for entry in chosen(SEED + opt, nightly):
        path = tmp_path / f"{entry.name}.toml"
        path.write_text(library_instances.spec_of(entry, random.Random(f"{SEED} {opt} {entry.name}"), 3 if nightly else 1))
        for found in caten.test(path, opt=opt).files:
            said = [f"{entry.name}: {d}" for d in found.diagnostics if d.code not in OF_CASES and not (d.code == "E905" and entry.name == "gemm")]
            said += [f"{entry.name}: {c.case}: {c.status} {c.note}" for c in found.cases if not c.passed and not library_instances.EMPTY.search(c.case)]
            wrong += [each for each in said if not any(reason in each for reason in REFUSED) and not EXCUSED.match(each)]
            passed.update([c.passed for c in found.cases])
    assert wrong == []
    assert passed[True] >= 0.75 * passed.total(), passed


def test_a_layout_of_the_arguments_changes_nothing(nightly: bool):
    draw, compared = random.Random(SEED), 0
    simple = [e for e in ENTRIES if e.family in ("arithmetic", "activations", "comparison", "normalisation", "reductions", "cumulative", "movement", "products")]
    for entry in simple if nightly else draw.sample(simple, 9):
        arrays, attributes = library_instances.arguments(entry, draw)
        if not any(a.ndim for a in arrays):
            continue
        operator = getattr(caten.ops, entry.name)
        try:
            expected = operator(*arrays, **attributes)
        except caten.CatenError as problem:
            if any(reason in str(problem) for reason in ("does not hold", "is for storage", "for any size", "there is no axis", "where a bool is expected")):
                continue
            raise
        found = operator(*[relaid(a, draw) for a in arrays], **attributes)
        compared += 1
        for a, b in zip(*[x if isinstance(x, tuple) else (x,) for x in (expected, found)], strict=True):
            assert a.shape == b.shape
            assert a.tobytes() == b.tobytes() or np.allclose(a.astype(named("complex128")), b.astype(named("complex128")), rtol=1e-2, atol=1e-3, equal_nan=True), (entry.name, attributes)
    assert compared >= 5


def relaid(array: np.ndarray, draw: random.Random) -> np.ndarray:
    """The same elements with gaps, backwards, or with the axes in another order in memory."""
    steps = [draw.choice((1, 2, -1, -2, 3)) for _ in array.shape]
    order = draw.sample(range(array.ndim), array.ndim)
    wide = np.zeros([array.shape[n] * abs(steps[n]) for n in order], array.dtype).transpose(np.argsort(order))
    view = wide[(*[slice(None, None, s) for s in steps], ...)]
    view[...] = array
    return view
